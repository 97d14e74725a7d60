//! Writes at a fixed arrival rate: the effect of a pacer and of garbage collection in bursts.

use alloc::vec::Vec;

use super::*;

/// A drive whose buffer holds a page per die.
fn narrow() -> NandConfig {
    let mut config = small();
    config.buffer.bytes = 512 << 10;
    config
}

fn bursts() -> NandConfig {
    let mut config = narrow();
    config.collection.bursts = Some(Bursts {
        pages: 6,
        host_share: 12,
        yield_at: 350,
        yield_after: Span::from_ms(20),
    });
    config
}

fn paces() -> NandConfig {
    let mut config = small();
    config.pace = Some(Pace { depth: 2 });
    config
}

/// Returns the latencies in microseconds of random writes with an interval of `us` microseconds, the shortest first.
fn writes_each(config: NandConfig, state: Precondition, us: u64) -> Vec<u64> {
    const WRITES: u32 = 20_000;
    let pages = pages(&config);
    let mut drive = Nand::new(config, state, 1);
    let mut make = random_4k(Op::Write, pages, 4);
    let commands: Vec<_> = (0..WRITES)
        .map(|id| (u64::from(id) * us, make(id, 0)))
        .collect();
    let done = at_times(&mut drive, &commands);
    let latencies = done.iter().zip(&commands);
    let mut latencies: Vec<u64> = latencies
        .map(|(done, (at, _))| done.at.ns() / 1000 - at)
        .collect();
    latencies.sort_unstable();
    latencies
}

/// Returns the latency that a share of the writes does not exceed.
fn percentile(sorted: &[u64], share: f64) -> u64 {
    sorted[(sorted.len() as f64 * share) as usize]
}

#[test]
fn collection_in_bursts_stalls_writes_below_saturation_and_spread_collection_does_not() {
    let even = writes_each(narrow(), Precondition::Steady, 90);
    let stalls = writes_each(bursts(), Precondition::Steady, 90);
    assert!(percentile(&even, 0.99) < 30, "{}", percentile(&even, 0.99));
    assert!(percentile(&stalls, 0.5) < 30);
    let longest = percentile(&stalls, 0.99);
    assert!((1000..20_000).contains(&longest), "{longest}");
    // A drive that collects nothing has no bursts.
    let filled = writes_each(bursts(), Precondition::Filled, 90);
    assert!(percentile(&filled, 0.99) < 30);
}

#[test]
fn bursts_and_a_pace_leave_what_a_drive_writes_at_most() {
    let rate = |config| {
        write_speed(
            &mut Nand::new(config, Precondition::Steady, 1),
            5000,
            40_000,
        )
    };
    for (with, without) in [(bursts(), narrow()), (paces(), small())] {
        let (iops, amplification) = rate(with);
        let (even, same) = rate(without);
        assert!((same / amplification - 1.0).abs() < 0.03, "{same}");
        assert!((0.93..1.03).contains(&(iops / even)), "{iops} and {even}");
    }
}

#[test]
fn a_pace_makes_most_writes_beyond_saturation_wait_alike() {
    let spread = |config: NandConfig| {
        let pages = pages(&config);
        let mut drive = Nand::new(config, Precondition::Steady, 1);
        let mut load = Closed::new(64, 30_000, random_4k(Op::Write, pages, 1));
        run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
        let latencies = load.latencies[10_000..].iter();
        let mut all: Vec<u64> = latencies.map(|(_, span, _)| span.ns()).collect();
        all.sort_unstable();
        percentile(&all, 0.7) as f64 / percentile(&all, 0.3) as f64
    };
    assert!(spread(small()) > 1.25, "{}", spread(small()));
    assert!(spread(paces()) < 1.12, "{}", spread(paces()));
}

#[test]
fn a_pace_lets_a_drive_that_copies_nothing_write_as_fast_as_it_can() {
    let filled = |config| writes_each(config, Precondition::Filled, 20);
    assert_eq!(filled(paces()), filled(small()));
}

#[test]
fn bursts_begin_and_end_after_a_drive_collected_in_idle_time() {
    let mut config = bursts();
    config.collection.background_free = 12;
    let pages = pages(&config);
    let mut drive = Nand::new(config, Precondition::Steady, 1);
    let mut make = random_4k(Op::Write, pages, 4);
    // Some writes, a second without commands, and more writes than the free blocks hold.
    let mut commands = Vec::new();
    for id in 0..60_000_u32 {
        let rest = if id < 100 { 0 } else { 1_000_000 };
        commands.push((rest + u64::from(id) * 30, make(id, 0)));
    }
    assert_eq!(at_times(&mut drive, &commands).len(), 60_000);
    drive.ftl().check();
}
