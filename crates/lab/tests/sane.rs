//! Plausibility of every drive of the catalogue: Little's law, percentiles in order, no throughput lost with depth,
//! with larger blocks (to 4 MiB) or with more streams. Mixes lie between their ends, writing slows down with use and
//! not after a rest, flushes and trims end. No published figure is needed. Points are few and short, so bounds are
//! wide. A drive that breaks a bound is listed in [`EXCEPTIONS`] with the reason.

mod sample;

use lab::{Lab, Machine, Measured, Outcome, Scenario, to_the_end};
use model::Span;
use model::media::Precondition;
use tier::DriveConfig;
use workload::job::{BlockSizes, Extent, Job, Mix};

/// A load that is run on each drive.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Point {
    state: Precondition,
    read_percent: u32,
    random: bool,
    bytes: u32,
    /// Outstanding I/Os, over all threads.
    depth: u32,
    threads: u32,
    extra: Extra,
}

/// Additional load.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Extra {
    Nothing,
    /// A flush after each write.
    Flushes,
    /// Only trims, or each block trimmed and then written.
    Trims,
    TrimsAndWrites,
    /// A job of writers in addition to the readers, with as many threads and as much depth.
    Writers,
    /// One minute without commands first; then a run so short that a cache holds all writes.
    Rest,
}

const STEADY: Point = Point {
    state: Precondition::Steady,
    read_percent: 100,
    random: true,
    bytes: 4096,
    depth: 1,
    threads: 1,
    extra: Extra::Nothing,
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
const LARGER: Point = Point {
    bytes: 512 << 10,
    ..DEEP
};
const LARGEST: Point = Point {
    bytes: 4 << 20,
    depth: 4,
    ..DEEP
};
const LARGEST_IN_ORDER: Point = Point {
    random: false,
    ..LARGEST
};
const LARGEST_WRITES: Point = Point {
    read_percent: 0,
    ..LARGEST
};
const FLUSHED: Point = Point {
    extra: Extra::Flushes,
    ..WRITE
};
const TRIMS: Point = Point {
    extra: Extra::Trims,
    ..DEEP
};
const TRIMS_AND_WRITES: Point = Point {
    extra: Extra::TrimsAndWrites,
    ..WRITES
};
const BESIDE: Point = Point {
    extra: Extra::Writers,
    ..DEEP
};
const RESTED_WRITES: Point = Point {
    extra: Extra::Rest,
    ..WRITES
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
const POINTS: [Point; 20] = [
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
    LARGER,
    LARGEST,
    LARGEST_IN_ORDER,
    LARGEST_WRITES,
    FLUSHED,
    TRIMS,
    TRIMS_AND_WRITES,
    BESIDE,
    RESTED_WRITES,
];

/// `faster` has at least `share` of the throughput of `slower`.
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

const ORDERS: [Order; 16] = [
    order("reads gain with depth", STEADY, DEEP, 1.0),
    order("deeper reads lose nothing", DEEP, SIXTEEN, 0.97),
    order("streams are as fast as random reads", SIXTEEN, STREAMS, 0.9),
    order("large reads move as much", DEEP, LARGE, 0.95),
    order("reads in order are as fast", LARGE, IN_ORDER, 0.9),
    // At depth 1 a write does not always wait for free space.
    order("writes lose nothing with depth", WRITE, WRITES, 0.9),
    order("large writes move as much", WRITES, LARGE_WRITES, 0.9),
    order("a new drive writes as fast", WRITES, NEW_WRITES, 0.97),
    // If programs are not suspended, most reads of a mix wait for one.
    order(
        "a mix moves a third of what its writes do",
        WRITES,
        MIX,
        0.33,
    ),
    order("larger reads move as much", LARGE, LARGER, 0.97),
    order("the largest reads move as much", LARGE, LARGEST, 0.9),
    order(
        "the largest reads in order are as fast",
        LARGEST,
        LARGEST_IN_ORDER,
        0.9,
    ),
    order(
        "the largest writes move as much",
        LARGE_WRITES,
        LARGEST_WRITES,
        0.85,
    ),
    order("writes gain nothing by flushes", FLUSHED, WRITE, 0.97),
    order(
        "readers and writers as jobs move a third of what writers do",
        WRITES,
        BESIDE,
        0.33,
    ),
    order(
        "a drive that rested writes as fast",
        WRITES,
        RESTED_WRITES,
        0.95,
    ),
];

/// CPU time of the program for each I/O, as the host `xeon-2017` has it for libaio.
const PROGRAM: Span = Span::from_ns(300);

/// Drives whose pSLC cache accepts bursts after a rest, and their minimum speed-up.
const RESTED_CACHES: [(&str, f64); 2] = [("960evo-250", 5.0), ("600p-256", 1.5)];

/// Drives that break an order, with the reason.
const EXCEPTIONS: [(&str, &str, &str); 1] = [(
    "gp2-100",
    "reads gain with depth",
    "without credits its limit of 300 IOPS is reached at depth 1",
)];

/// Returns how much longer than a drive without moving parts this drive needs for the same number of I/Os, and the
/// maximum latency of one of them in milliseconds.
fn pace(drive: &DriveConfig) -> (u64, u64) {
    match drive {
        // A seek and half a revolution take ten milliseconds, not tens of microseconds. A command may be delayed as
        // long as the disk lets nearer commands go first.
        DriveConfig::Hdd(disk) => (50, 200 + disk.queue.oldest.ns() / 1_000_000),
        // In a drive without moving parts, only a queue lasts for 200 ms.
        _ => (1, 200),
    }
}

fn plan(drive: &str, point: &Point) -> Scenario {
    let sheet = catalogue::drive(drive).unwrap_or_else(|problems| panic!("{problems}"));
    let host = catalogue::host("xeon-2017").unwrap_or_else(|problems| panic!("{problems}"));
    let writes = point.read_percent < 100 || point.extra == Extra::Writers;
    // Long enough that a slow drive completes several tens of the largest I/Os.
    let ms = match (point.extra, point.bytes) {
        (Extra::Rest, _) => 100,
        (_, 1_048_576..) => 600,
        // Several bursts of garbage collection, if the drive has them.
        _ if writes && sample::has_bursts(&sheet.config) => 3000,
        _ if writes => 300,
        _ => 80,
    } * pace(&sheet.config).0;
    let share = f64::from(100 / point.threads);
    let (offset_increment, size) = match point.random {
        true => (Extent::Bytes(0), None),
        false => (Extent::Percent(share), Some(Extent::Percent(share))),
    };
    let job = Job {
        mix: match (point.extra, point.read_percent) {
            (Extra::Trims, _) => Mix::Trim,
            (Extra::TrimsAndWrites, _) => Mix::TrimWrite,
            (_, 100) => Mix::Read,
            (_, 0) => Mix::Write,
            _ => Mix::ReadWrite,
        },
        fsync: u32::from(point.extra == Extra::Flushes),
        startdelay: match point.extra {
            Extra::Rest => Span::from_ms(60_000),
            _ => Span::ZERO,
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
        // Buffers fill before a drive is in steady state, and streams read ahead.
        ramp_time: match point.extra {
            Extra::Rest => Span::ZERO,
            _ => Span::from_ms(ms),
        },
        runtime: Some(Span::from_ms(ms)),
        ..Job::default()
    };
    let mut jobs = vec![job];
    if point.extra == Extra::Writers {
        jobs.push(Job {
            mix: Mix::Write,
            ..jobs[0].clone()
        });
    }
    Scenario::jobs(
        Machine::from_configs(
            "a drive",
            sheet.config,
            model::host::HostConfig {
                io_queues: std::num::NonZeroU16::new(sheet.io_queues),
                ..host.config
            },
        ),
        point.state,
        jobs,
        1,
    )
}

/// Returns the totals over all threads: reads, writes, trims and flushes.
fn together(outcome: &Outcome) -> [Measured; 4] {
    let mut sums = [(); 4].map(|()| Measured::default());
    for thread in &outcome.threads {
        let parts = [&thread.read, &thread.write, &thread.trim, &thread.sync];
        for (sum, one) in sums.iter_mut().zip(parts) {
            sum.ios += one.ios;
            sum.bytes += one.bytes;
            sum.errors += one.errors;
            sum.over = sum.over.max(one.over);
            sum.latency.merge(&one.latency);
        }
    }
    sums
}

/// Returns the throughput of reads and writes; trims transfer no data.
fn bytes_per_second(sums: &[Measured; 4]) -> f64 {
    sums[..2].iter().map(Measured::bytes_per_second).sum()
}

/// Returns the violations of one point by itself.
fn wrong_alone(point: &Point, longest_ms: u64, sums: &[Measured; 4]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut in_flight = 0.0;
    for (name, one) in ["reads", "writes", "trims", "flushes"]
        .into_iter()
        .zip(sums)
    {
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
        let queue = one.latency.mean_ns() * 1e-6 * 30.0;
        if quantiles[6] > Span::from_ms(longest_ms + queue as u64) {
            wrong.push(format!("one of the {name} took {:?}", quantiles[6]));
        }
    }
    let ios: u64 = sums.iter().map(|one| one.ios).sum();
    let jobs = if point.extra == Extra::Writers { 2 } else { 1 };
    let depth = f64::from(point.depth * jobs);
    // At each end, some counted I/Os were outstanding outside of the counted time.
    let edge = 0.1 + depth / ios as f64;
    // Between two I/Os of a place, the program works: on persistent memory that is a seventh of the time.
    let busy = sums.iter().filter(|one| one.ios > 0);
    let rate: f64 = busy.map(Measured::iops).sum();
    let with_program = in_flight + rate * PROGRAM.ns() as f64 * 1e-9;
    if with_program < (1.0 - edge) * depth || in_flight >= (1.0 + edge) * depth {
        wrong.push(format!(
            "Little's law: {in_flight:.1} in flight at depth {depth}"
        ));
    }
    wrong.extend(wrong_shares(point, sums));
    wrong
}

/// Returns violations in the shares of reads, writes, trims and flushes.
fn wrong_shares(point: &Point, sums: &[Measured; 4]) -> Vec<String> {
    let mut wrong = Vec::new();
    let [reads, writes, trims, flushes] = sums.each_ref().map(|one| one.ios);
    let ios = reads + writes;
    let near = |a: u64, b: u64| a.abs_diff(b) <= 2 + u64::from(point.depth);
    let expected = match point.extra {
        Extra::Trims => trims > 0 && ios == 0,
        Extra::TrimsAndWrites => near(trims, writes) && trims > 0,
        Extra::Flushes => near(flushes, writes) && flushes > 0,
        Extra::Writers => reads > 0 && writes > 0,
        Extra::Nothing | Extra::Rest => trims + flushes == 0,
    };
    if !expected {
        wrong.push(format!(
            "{reads} reads, {writes} writes, {trims} trims, {flushes} flushes"
        ));
    }
    if ios == 0 || point.extra == Extra::Writers {
        return wrong;
    }
    let share = 100.0 * sums[0].ios as f64 / ios as f64;
    let chance = 3.0 + 300.0 / (ios as f64).sqrt();
    if (share - f64::from(point.read_percent)).abs() > chance {
        wrong.push(format!("{share:.1} % of {ios} I/Os were reads"));
    }
    wrong
}

/// Returns violations of the orders among a drive's points.
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
    for (name, times) in RESTED_CACHES {
        let (busy, rested) = (of(&WRITES), of(&RESTED_WRITES));
        if drive == name && rested < times * busy {
            wrong.push(format!(
                "{drive}: its cache after a rest: {:.1} against {:.1} MB/s",
                rested * 1e-6,
                busy * 1e-6
            ));
        }
    }
    wrong
}

#[test]
fn every_drive_does_what_any_drive_does() {
    let names = sample::drives();
    let plans: Vec<Scenario> = names
        .iter()
        .flat_map(|name| POINTS.iter().map(|point| plan(name, point)))
        .collect();
    let outcomes = Lab::new().run_all(&plans, &to_the_end);
    let mut wrong = Vec::new();
    if let Some((name, ..)) = EXCEPTIONS.iter().find(|(name, ..)| !names.contains(name)) {
        wrong.push(format!("an exception for {name}, which is no drive"));
    }
    let chunks = outcomes.chunks(POINTS.len());
    for ((name, outcomes), plans) in names.iter().zip(chunks).zip(plans.chunks(POINTS.len())) {
        let (_, longest_ms) = pace(plans[0].machine.drive());
        let measured: Vec<[Measured; 4]> = outcomes
            .iter()
            .map(|outcome| {
                together(
                    outcome
                        .as_ref()
                        .unwrap_or_else(|problems| panic!("{problems}")),
                )
            })
            .collect();
        for (point, sums) in POINTS.iter().zip(&measured) {
            let alone = wrong_alone(point, longest_ms, sums);
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
    let none = Measured::default;
    let sums = [reads, none(), none(), none()];
    assert_eq!(wrong_alone(&STEADY, 200, &sums), Vec::<String>::new());
    let found = wrong_alone(&DEEP, 200, &sums);
    assert!(found[0].starts_with("Little's law: 1.0"), "{found:?}");
    let found = wrong_alone(&MIX, 200, &sums);
    assert_eq!(found[1], "100.0 % of 1000 I/Os were reads");
    assert_eq!(wrong_together("a drive", |_| 1e6), Vec::<String>::new());
    let slow_streams = |point: &Point| if *point == STREAMS { 0.8e6 } else { 1e6 };
    let found = wrong_together("a drive", slow_streams);
    assert_eq!(
        found,
        ["a drive: streams are as fast as random reads: 0.8 against 1.0 MB/s"]
    );
}
