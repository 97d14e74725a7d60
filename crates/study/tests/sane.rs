//! Every drive of the catalogue does what any drive does: Little's law, percentiles in order, no throughput lost with
//! depth, with larger blocks or with more streams, mixes between their ends, writing that slows down with use. No
//! published figure is needed for that. Points are few and short, so bounds are wide; what a drive does that breaks one
//! stands in [`EXCEPTIONS`] with its reason.

use model::Span;
use model::media::Precondition;
use study::catalogue;
use study::run::{Measured, Outcome, Plan, sweep};
use study::workload::job::{BlockSizes, Extent, Job, Mix};

/// What is run on each drive.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Point {
    state: Precondition,
    read_percent: u32,
    random: bool,
    bytes: u32,
    /// I/Os in flight, over all threads.
    depth: u32,
    threads: u32,
}

const STEADY: Point = Point {
    state: Precondition::Steady,
    read_percent: 100,
    random: true,
    bytes: 4096,
    depth: 1,
    threads: 1,
};
const DEEP: Point = Point {
    depth: 16,
    threads: 4,
    ..STEADY
};
const SIXTEEN: Point = Point {
    depth: 64,
    threads: 16,
    ..STEADY
};
const STREAMS: Point = Point {
    random: false,
    ..SIXTEEN
};
const LARGE: Point = Point {
    bytes: 131_072,
    ..DEEP
};
const IN_ORDER: Point = Point {
    random: false,
    ..LARGE
};
const WRITE: Point = Point {
    read_percent: 0,
    ..STEADY
};
const WRITES: Point = Point {
    read_percent: 0,
    ..DEEP
};
const LARGE_WRITES: Point = Point {
    read_percent: 0,
    ..LARGE
};
const NEW_WRITES: Point = Point {
    state: Precondition::Fresh,
    ..WRITES
};
const MIX: Point = Point {
    read_percent: 70,
    ..DEEP
};
const POINTS: [Point; 11] = [
    STEADY,
    DEEP,
    SIXTEEN,
    STREAMS,
    LARGE,
    IN_ORDER,
    WRITE,
    WRITES,
    LARGE_WRITES,
    NEW_WRITES,
    MIX,
];

/// `faster` has at least `share` of the bytes a second of `slower`.
struct Order {
    what: &'static str,
    slower: Point,
    faster: Point,
    share: f64,
}

const fn order(what: &'static str, slower: Point, faster: Point, share: f64) -> Order {
    Order {
        what,
        slower,
        faster,
        share,
    }
}

const ORDERS: [Order; 9] = [
    order("reads gain with depth", STEADY, DEEP, 1.0),
    order("deeper reads lose nothing", DEEP, SIXTEEN, 0.97),
    order("streams are as fast as random reads", SIXTEEN, STREAMS, 0.9),
    order("large reads move as much", DEEP, LARGE, 0.95),
    order("reads in order are as fast", LARGE, IN_ORDER, 0.9),
    // At depth 1 the buffer of a steady drive is not always full yet.
    order("writes lose nothing with depth", WRITE, WRITES, 0.9),
    order("large writes move as much", WRITES, LARGE_WRITES, 0.9),
    order("a new drive writes as fast", WRITES, NEW_WRITES, 0.97),
    // Where programs are not suspended most reads of a mix wait for one.
    order(
        "a mix moves a third of what its writes do",
        WRITES,
        MIX,
        0.33,
    ),
];

/// Drives that break an order, and why.
const EXCEPTIONS: [(&str, &str, &str); 0] = [];

fn plan(drive: &str, point: &Point) -> Plan {
    let sheet = catalogue::drive(drive).unwrap_or_else(|problems| panic!("{problems}"));
    let host = catalogue::host("xeon-2017").unwrap_or_else(|problems| panic!("{problems}"));
    let writes = point.read_percent < 100;
    let share = f64::from(100 / point.threads);
    let (offset_increment, size) = match point.random {
        true => (Extent::Bytes(0), None),
        false => (Extent::Percent(share), Some(Extent::Percent(share))),
    };
    let job = Job {
        mix: match point.read_percent {
            100 => Mix::Read,
            0 => Mix::Write,
            _ => Mix::ReadWrite,
        },
        read_percent: point.read_percent,
        random: point.random,
        block_sizes: [(); 3].map(|()| BlockSizes::Fixed(point.bytes)),
        block_align: [point.bytes; 3],
        iodepth: point.depth / point.threads,
        numjobs: point.threads,
        offset_increment,
        size,
        norandommap: true,
        time_based: true,
        // Buffers fill before a drive is steady, and streams read ahead.
        ramp_time: Span::from_ms(if writes { 300 } else { 80 }),
        runtime: Some(Span::from_ms(if writes { 300 } else { 80 })),
        ..Job::default()
    };
    Plan {
        drive: sheet.config,
        state: point.state,
        host: model::host::HostConfig {
            io_queues: sheet.io_queues,
            ..host.config
        },
        jobs: vec![job],
        seed: 1,
        series_every: Span::ZERO,
    }
}

/// What all threads did together, reads and writes.
fn both(outcome: &Outcome) -> [Measured; 2] {
    let mut sums = [Measured::default(), Measured::default()];
    for thread in &outcome.threads {
        for (sum, one) in sums.iter_mut().zip([&thread.read, &thread.write]) {
            sum.ios += one.ios;
            sum.bytes += one.bytes;
            sum.errors += one.errors;
            sum.over = sum.over.max(one.over);
            sum.latency.merge(&one.latency);
        }
    }
    sums
}

fn bytes_per_second(sums: &[Measured; 2]) -> f64 {
    sums.iter().map(Measured::bytes_per_second).sum()
}

/// What is wrong with one point by itself.
fn wrong_alone(point: &Point, sums: &[Measured; 2]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut in_flight = 0.0;
    for (name, one) in ["reads", "writes"].into_iter().zip(sums) {
        if one.errors > 0 {
            wrong.push(format!("{} {name} failed", one.errors));
        }
        if one.ios == 0 {
            continue;
        }
        in_flight += one.iops() * one.latency.mean_ns() * 1e-9;
        let quantiles = [0.0, 1.0, 50.0, 99.0, 99.9, 99.99, 100.0]
            .map(|percent| one.latency.quantile(percent).unwrap_or(Span::ZERO));
        if !quantiles.is_sorted() || quantiles[0] == Span::ZERO {
            wrong.push(format!("percentiles of {name}: {quantiles:?}"));
        }
        // Nothing in a drive lasts for a fifth of a second but a queue.
        let queue = one.latency.mean_ns() * 1e-6 * 30.0;
        if quantiles[6] > Span::from_ms(200 + queue as u64) {
            wrong.push(format!("one of the {name} took {:?}", quantiles[6]));
        }
    }
    let depth = f64::from(point.depth);
    if !(0.9 * depth..1.1 * depth).contains(&in_flight) {
        wrong.push(format!(
            "Little's law: {in_flight:.1} in flight at depth {depth}"
        ));
    }
    let ios: u64 = sums.iter().map(|one| one.ios).sum();
    let share = 100.0 * sums[0].ios as f64 / ios as f64;
    let chance = 3.0 + 300.0 / (ios as f64).sqrt();
    if (share - f64::from(point.read_percent)).abs() > chance {
        wrong.push(format!("{share:.1} % of {ios} I/Os were reads"));
    }
    wrong
}

/// What is wrong with the orders among a drive's points.
fn wrong_together(drive: &str, of: impl Fn(&Point) -> f64) -> Vec<String> {
    let mut wrong = Vec::new();
    for Order {
        what,
        slower,
        faster,
        share,
    } in ORDERS
    {
        let excepted = EXCEPTIONS
            .iter()
            .any(|&(name, order, _)| (name, order) == (drive, what));
        let (slow, fast) = (of(&slower), of(&faster));
        if (fast < share * slow) != excepted {
            let not = if excepted {
                " (no exception any more)"
            } else {
                ""
            };
            wrong.push(format!(
                "{drive}: {what}{not}: {:.1} against {:.1} MB/s",
                fast * 1e-6,
                slow * 1e-6
            ));
        }
    }
    wrong
}

#[test]
fn every_drive_does_what_any_drive_does() {
    let names = catalogue::drive_names();
    let plans: Vec<Plan> = names
        .iter()
        .flat_map(|name| POINTS.iter().map(|point| plan(name, point)))
        .collect();
    let outcomes = sweep(&plans, &|_| {});
    let mut wrong = Vec::new();
    if let Some((name, ..)) = EXCEPTIONS.iter().find(|(name, ..)| !names.contains(name)) {
        wrong.push(format!("an exception for {name}, which is no drive"));
    }
    for (name, outcomes) in names.iter().zip(outcomes.chunks(POINTS.len())) {
        let measured: Vec<[Measured; 2]> = outcomes
            .iter()
            .map(|outcome| {
                both(
                    outcome
                        .as_ref()
                        .unwrap_or_else(|problems| panic!("{problems}")),
                )
            })
            .collect();
        for (point, sums) in POINTS.iter().zip(&measured) {
            let alone = wrong_alone(point, sums);
            wrong.extend(
                alone
                    .iter()
                    .map(|what| format!("{name}: {point:?}: {what}")),
            );
        }
        wrong.extend(wrong_together(name, |point| {
            let at = POINTS.iter().position(|one| one == point);
            bytes_per_second(&measured[at.expect("a point that is run")])
        }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_wrong_is_found() {
    let mut reads = Measured {
        ios: 1000,
        over: Span::from_ms(10),
        ..Measured::default()
    };
    for _ in 0..1000 {
        reads.latency.record(Span::from_us(10));
    }
    let sums = [reads, Measured::default()];
    assert_eq!(wrong_alone(&STEADY, &sums), Vec::<String>::new());
    let found = wrong_alone(&DEEP, &sums);
    assert!(found[0].starts_with("Little's law: 1.0"), "{found:?}");
    let found = wrong_alone(&MIX, &sums);
    assert_eq!(found[1], "100.0 % of 1000 I/Os were reads");
    assert_eq!(wrong_together("a drive", |_| 1e6), Vec::<String>::new());
    let slow_streams = |point: &Point| if *point == STREAMS { 0.8e6 } else { 1e6 };
    let found = wrong_together("a drive", slow_streams);
    assert_eq!(
        found,
        ["a drive: streams are as fast as random reads: 0.8 against 1.0 MB/s"]
    );
}
