//! What a drive does when nobody asks it for anything.

use super::*;

#[test]
fn an_slc_cache_takes_bursts_and_recovers_when_idle() {
    let mut config = small();
    config.slc = Some(slc());
    let cache = 16 * 4 * u64::from(config.check().expect("valid").block_slots) / 2;
    let mut drive = Nand::new(config, Precondition::Fresh, 1);
    // Mean latency of as many writes as half of the cache holds; then ten seconds for what the drive does when idle.
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
    let left = drive.ftl.slc_blocks(0);
    assert!(
        left <= 1,
        "only the open block stays after idle time, not {left}"
    );
    let again = latency(&mut drive, 20, cache / 2);
    assert!((burst / again - 1.0).abs() < 0.1, "{burst} {again}");
    let slow = latency(&mut Nand::new(small(), Precondition::Fresh, 1), 0, 0);
    assert!(slow > burst * 1.5, "{slow} {burst}");
    drive.ftl.check();
}

#[test]
fn idle_time_is_used_to_collect() {
    let mut config = small();
    config.collection.background_free = 8;
    let pages = pages(&config);
    let mut drive = Nand::new(config, Precondition::Steady, 1);
    let mut load = Closed::new(8, 2_000, random_4k(Op::Write, pages, 5));
    // The run goes on until the drive has nothing left to do.
    let before = drive.ftl.free_share();
    run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    let free = (0..drive.shape.dies).map(|die| drive.ftl.free_blocks(die));
    assert!(
        free.clone().all(|free| free >= 8),
        "{:?}",
        free.collect::<Vec<_>>()
    );
    assert!(drive.ftl.free_share() > before);
    drive.ftl.check();
}
