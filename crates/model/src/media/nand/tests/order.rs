//! Sequential reads compared with random reads: the effect of the dies' registers and of read-ahead.

use super::*;

/// A drive whose controller, at 200,000 senses per second, is slower than its dies.
fn reader(bytes: u32) -> NandConfig {
    let mut config = small();
    config.controller.per_read = Span::from_us(5);
    config.read_ahead = (bytes > 0).then_some(ReadAhead { bytes, after: 2 });
    config
}

/// Returns 4 KiB reads per second, and the number of senses.
fn reads(
    config: NandConfig,
    state: Precondition,
    depth: u32,
    make: impl FnMut(CommandId, u64) -> Command,
) -> (f64, u64) {
    let mut drive = Nand::new(config, state, 1);
    let mut load = Closed::new(depth, 20_000, make);
    let end = run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    (20_000.0 / end.seconds(), drive.shared.array.counts().senses)
}

#[test]
fn units_of_a_page_that_are_wanted_together_are_sensed_once() {
    for cache_read in [false, true] {
        let senses = |depth| {
            let mut config = reader(0);
            config.timing.cache_read = cache_read;
            config.controller.per_read = Span::ZERO;
            let in_order = |id, n| Command::read(id, n * 4096, 4096);
            reads(config, Precondition::Filled, depth, in_order).1
        };
        // At QD1, each read finds a die that has released its register; eight units form a page.
        assert_eq!(senses(1), 20_000);
        assert!(senses(16) < 20_000 / 4, "{} {cache_read}", senses(16));
    }
}

#[test]
fn reads_in_order_are_not_slower_than_random_ones_where_the_controller_bounds() {
    let config = reader(131_072);
    let pages = pages(&config);
    let random = random_4k(Op::Read, pages, 5);
    let in_order = |id, n| Command::read(id, n * 4096, 4096);
    let (random, _) = reads(config.clone(), Precondition::Steady, 64, random);
    let (in_order, senses) = reads(config, Precondition::Steady, 64, in_order);
    assert!(in_order > 0.99 * random, "{in_order} {random}");
    // The limit on senses applies to these reads, too.
    assert!(in_order < 201_000.0, "{in_order}");
    assert!(senses < 20_100, "{senses}");
}

#[test]
fn sixteen_streams_are_read_ahead_beside_each_other() {
    let config = reader(131_072);
    // A power of two apart.
    let apart = (config.geometry.capacity / 16).next_power_of_two() / 2;
    let streams = |id, n| Command::read(id, n % 16 * apart + n / 16 * 4096, 4096);
    let (speed, senses) = reads(config, Precondition::Steady, 16, streams);
    assert!(speed > 0.95 * 200_000.0, "{speed}");
    // Each stream reads 128 KiB beyond its end.
    assert!(senses < 20_000 + 17 * 32, "{senses}");
}
