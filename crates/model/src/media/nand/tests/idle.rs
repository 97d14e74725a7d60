//! Behaviour of a drive in idle time.

use alloc::vec::Vec;

use super::*;
use crate::device::Gauge;

#[test]
fn an_slc_cache_takes_bursts_and_recovers_when_idle() {
    let mut config = small();
    config.slc = Some(slc());
    let cache = 16 * 4 * u64::from(config.check().expect("valid").block_slots) / 2;
    let mut drive = Nand::new(config, Precondition::Fresh, 1);
    // Mean latency of as many writes as half of the cache holds; then ten seconds for the drive's idle work.
    let latency = |drive: &mut Nand, seconds: u64, first: u64| {
        let write = move |id, n| Command::write(id, (first + n) * 4096, 4096);
        let mut load = Closed::new(64, cache / 2, write);
        let start = Time::ZERO + Span::from_ms(1000 * seconds);
        load.now = start;
        run(drive, &mut load, start, start + Span::from_ms(10_000));
        let sum: f64 = load
            .latencies
            .iter()
            .map(|(_, latency, _)| latency.us())
            .sum();
        sum / load.latencies.len() as f64
    };
    let burst = latency(&mut drive, 0, 0);
    let left = drive.ftl().slc_blocks(Die(0));
    assert!(
        left <= 1,
        "only the open block stays after idle time, not {left}"
    );
    let again = latency(&mut drive, 20, cache / 2);
    assert!((burst / again - 1.0).abs() < 0.1, "{burst} {again}");
    let slow = latency(&mut Nand::new(small(), Precondition::Fresh, 1), 0, 0);
    assert!(slow > burst * 1.5, "{slow} {burst}");
    drive.ftl().check();
}

/// A fresh drive that is written once sequentially: IOPS of the first tenth and of the last quarter.
fn written_once(config: &NandConfig) -> [f64; 2] {
    let pages = pages(config);
    let mut drive = Nand::new(config.clone(), Precondition::Fresh, 1);
    let write = |id, n| Command::write(id, n * 4096, 4096);
    let mut load = Closed::new(64, pages, write);
    run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    drive.ftl().check();
    // Little's law: 64 are in flight all the time.
    let rate = |some: &[(CommandId, Span, Anatomy)]| {
        let sum: f64 = some.iter().map(|(_, latency, _)| latency.seconds()).sum();
        64.0 * some.len() as f64 / sum
    };
    let all = &load.latencies;
    [
        rate(&all[..all.len() / 10]),
        rate(&all[all.len() / 4 * 3..]),
    ]
}

/// Host writes beyond a full cache wait until the same amount has been moved out of it. For each page that is written
/// in pSLC mode, GC moves `bits / (bits - 1)` pages, because it must free one block and fills a part of another.
#[test]
fn a_drive_that_folds_writes_past_its_cache_as_fast_as_it_empties_it() {
    for bits in [2, 3] {
        let mut config = small();
        let timing = config.timing.clone();
        config.slc = Some(SlcCache {
            blocks_per_die: 10_000,
            bits,
            folds: true,
            ..slc()
        });
        let folds = written_once(&config);
        let cache = config.slc.as_mut().expect("set above");
        cache.folds = false;
        let slc = cache.program;
        let direct = written_once(&config);
        assert!(
            (folds[0] / direct[0] - 1.0).abs() < 0.02,
            "{folds:?} {direct:?}"
        );
        assert!(folds[1] < 0.9 * direct[1], "{folds:?} {direct:?}");
        // Time of the dies; channels and waiting for other dies are additional.
        let moved = f64::from(bits) / f64::from(bits - 1);
        let shape = config.check().expect("valid");
        let pages = shape.block_slots / bits / shape.page_slots;
        let erase = timing.erase.seconds() / f64::from(pages);
        let copy = timing.read.seconds() + timing.program.seconds() + erase;
        let seconds = slc.seconds() + moved * copy;
        let most = f64::from(shape.dies * shape.page_slots) / seconds;
        let share = folds[1] / most;
        assert!((0.8..1.02).contains(&share), "{bits} bits: {share}");
    }
}

#[test]
fn a_drive_that_folds_never_stands_still() {
    let mut config = small();
    let pages = pages(&config);
    for (bits, blocks) in [(2, 1), (3, 4), (4, 10_000)] {
        config.slc = Some(SlcCache {
            blocks_per_die: blocks,
            bits,
            folds: true,
            ..slc()
        });
        for state in [
            Precondition::Fresh,
            Precondition::Filled,
            Precondition::Steady,
        ] {
            let mut drive = Nand::new(config.clone(), state, 1);
            let total = 2 * pages;
            let mut load = Closed::new(64, total, random_4k(Op::Write, pages, 5));
            run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
            assert_eq!(
                load.finished, total,
                "{bits} bits, {blocks} blocks, {state:?}"
            );
            drive.ftl().check();
        }
    }
}

#[test]
fn idle_time_is_used_to_collect() {
    let mut config = small();
    config.collection.background_free = 8;
    let pages = pages(&config);
    let mut drive = Nand::new(config, Precondition::Steady, 1);
    let mut load = Closed::new(8, 2_000, random_4k(Op::Write, pages, 5));
    // The run continues until the drive has nothing left to do.
    let before = drive.ftl().free_share();
    run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    let free = drive
        .shape
        .every_die()
        .map(|die| drive.ftl().free_blocks(die));
    assert!(
        free.clone().all(|free| free >= 8),
        "{:?}",
        free.collect::<Vec<_>>()
    );
    assert!(drive.ftl().free_share() > before);
    drive.ftl().check();
}

/// Whether each die has as many free blocks as [`tidies`] requires in idle time.
fn tidy(drive: &Nand) -> bool {
    drive
        .shape
        .every_die()
        .all(|die| drive.ftl().free_blocks(die) >= 8)
}

fn tidies() -> NandConfig {
    let mut config = small();
    config.collection.background_free = 8;
    config
}

#[test]
fn a_drive_that_waits_for_its_first_command_tidies() {
    let second = 1_000_000;
    let mut drive = Nand::new(tidies(), Precondition::Steady, 1);
    let read = [(60 * second, Command::read(0, 0, 4096))];
    at_times_until(&mut drive, &read, Time::ZERO + Span::from_us(60 * second));
    assert!(tidy(&drive));
    drive.ftl().check();
    // A drive that is busy from the start and permanently does not.
    let reads: Vec<_> = (0..1000)
        .map(|read| (u64::from(read) * 10_000, Command::read(read, 0, 4096)))
        .collect();
    let mut drive = Nand::new(tidies(), Precondition::Steady, 1);
    let mut load = Closed::new(1, 100_000, random_4k(Op::Read, 1000, 1));
    run(
        &mut drive,
        &mut load,
        Time::ZERO,
        Time::ZERO + Span::from_ms(1000),
    );
    assert!(!tidy(&drive) && load.finished < load.total);
    // Neither does one whose reads are closer together than the idle threshold.
    let mut drive = Nand::new(tidies(), Precondition::Steady, 1);
    let last = Time::ZERO + Span::from_ms(9_990);
    at_times_until(&mut drive, &reads, last);
    assert!(!tidy(&drive));
}

#[test]
fn a_drive_tidies_between_reads_though_nothing_is_written() {
    let mut drive = Nand::new(tidies(), Precondition::Steady, 1);
    // One read per second: the drive must continue where the previous read has interrupted it.
    let reads: Vec<_> = (0..60)
        .map(|read| (u64::from(read) * 1_000_000, Command::read(read, 0, 4096)))
        .collect();
    let last = Time::ZERO + Span::from_ms(59_000);
    at_times_until(&mut drive, &reads, last);
    assert!(tidy(&drive));
    drive.ftl().check();
}

#[test]
fn idle_time_gives_a_steady_drive_room_for_a_burst() {
    let mut config = tidies();
    config.slc = Some(slc());
    let burst = |config: &NandConfig, after: Span| {
        let mut drive = Nand::new(config.clone(), Precondition::Steady, 1);
        let pages = pages(config);
        let mut load = Closed::new(64, 4000, random_4k(Op::Write, pages, 7));
        load.now = Time::ZERO + after;
        run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
        load.now.since(Time::ZERO + after)
    };
    let at_once = burst(&config, Span::ZERO);
    let rested = burst(&config, Span::from_ms(60_000));
    assert!(rested * 2 < at_once, "{rested:?} {at_once:?}");
}

/// Bytes programmed, those caused by the host, and those written by the host.
fn written(drive: &Nand, now: Time) -> [f64; 3] {
    struct Written([f64; 3]);
    impl Gauges for Written {
        fn gauge(&mut self, gauge: Gauge, value: f64) {
            match gauge {
                Gauge::MediumBytesWritten => self.0[0] = value,
                Gauge::CausedBytesWritten => self.0[1] = value,
                Gauge::HostBytesWritten => self.0[2] = value,
                _ => {}
            }
        }
    }
    let mut written = Written([0.0; 3]);
    drive.inspect(now, &mut written);
    written.0
}

#[test]
fn collection_is_counted_against_the_writes_that_use_its_room() {
    let config = tidies();
    let pages = pages(&config);
    // With many writes, the programmed bytes equal the caused bytes, except for work ahead or left over at either end.
    let mut drive = Nand::new(config.clone(), Precondition::Steady, 1);
    let mut load = Closed::new(16, 3 * pages, random_4k(Op::Write, pages, 3));
    let end = run(
        &mut drive,
        &mut load,
        Time::ZERO,
        Time::ZERO + Span::from_ms(60_000),
    );
    assert_eq!(load.finished, load.total);
    let [programmed, caused, host] = written(&drive, end);
    let many = caused / host;
    assert!(
        (many / (programmed / host) - 1.0).abs() < 0.03,
        "{many}, programmed {}",
        programmed / host
    );
    assert!(many > 2.0, "{many}");
    // With few writes, each causes the same amount, whatever the drive does between them.
    let mut random = Stream::new(4, "few");
    let few: Vec<_> = (0..40)
        .map(|id| {
            let at = u64::from(id) * 1_000_000;
            (
                at,
                Command::write(id, random.uniform_below(pages) * 4096, 4096),
            )
        })
        .collect();
    let mut drive = Nand::new(config, Precondition::Steady, 1);
    let end = Time::ZERO + Span::from_ms(40_000);
    at_times_until(&mut drive, &few, end);
    let [programmed, caused, host] = written(&drive, end);
    assert!(programmed > 20.0 * host, "{programmed} {host}");
    let few = caused / host;
    assert!((few / many - 1.0).abs() < 0.15, "{few}, of many {many}");
}
