//! Initial state of a drive in steady state.

use super::*;

/// Returns the mean of `count` latencies at the beginning of a run of writes, and of `count` at its end.
fn first_and_last(drive: &mut Nand, count: usize) -> [f64; 2] {
    let pages = pages(&drive.config);
    let mut load = Closed::new(32, 60_000, random_4k(Op::Write, pages, 1));
    run(drive, &mut load, Time::ZERO, Time::NEVER);
    let mean = |part: &[(CommandId, Span, Anatomy)]| {
        part.iter().map(|(_, latency, _)| latency.us()).sum::<f64>() / part.len() as f64
    };
    let all = &load.latencies;
    [mean(&all[..count]), mean(&all[all.len() - 10 * count..])]
}

#[test]
fn the_first_writes_of_a_steady_drive_wait_as_later_ones_do() {
    for seed in 1..4 {
        let mut drive = Nand::new(small(), Precondition::Steady, seed);
        // As many as fit into the buffer.
        let [first, last] = first_and_last(&mut drive, 512);
        assert!(
            (0.8..1.25).contains(&(first / last)),
            "{first:.0} then {last:.0} us"
        );
        drive.ftl().check();
    }
    let [first, last] = first_and_last(&mut Nand::new(small(), Precondition::Filled, 1), 512);
    assert!(
        first < 0.1 * last,
        "an empty buffer takes the first: {first:.0} then {last:.0} us"
    );
}

#[test]
fn where_the_firmware_bounds_writes_it_does_from_the_first_on() {
    let mut config = small();
    // Three to four times the time of the dies.
    config.collection.per_unit = Span::from_us(60);
    let mut ratio = 0.0;
    for seed in 1..9 {
        let mut drive = Nand::new(config.clone(), Precondition::Steady, seed);
        let [first, last] = first_and_last(&mut drive, 512);
        ratio += first / last / 8.0;
        drive.ftl().check();
    }
    assert!((0.95..1.05).contains(&ratio), "{ratio:.3}");
}

#[test]
fn dies_of_a_steady_drive_are_each_somewhere_else_in_a_victim() {
    let mut drive = Nand::new(small(), Precondition::Steady, 1);
    at_times(&mut drive, &[(0, Command::write(0, 0, 4096))]);
    // The part of a victim that is still to be read, in tenths.
    let mut tenths = [0; 10];
    let block = drive.shape.block_slots;
    for die in drive.collector.progress() {
        tenths[(die.scanned() * 9 / block) as usize] += 1;
    }
    assert!(tenths.iter().all(|&dies| dies <= 6), "of 16: {tenths:?}");
}

#[test]
fn a_write_alone_a_moment_after_the_start_finds_an_empty_buffer() {
    let mut drive = Nand::new(small(), Precondition::Steady, 1);
    let done = at_times(&mut drive, &[(2_000_000, Command::write(0, 0, 4096))]);
    assert_eq!(done[0].anatomy.get(Part::BufferFull), Span::ZERO);
    assert_eq!(drive.buffer.used(), 1);
    let mut drive = Nand::new(small(), Precondition::Steady, 1);
    let done = at_times(&mut drive, &[(0, Command::write(0, 0, 4096))]);
    assert!(done[0].anatomy.get(Part::BufferFull) > Span::ZERO);
    // All left-over units have been programmed in whole pages.
    assert!(drive.buffer.used() < drive.shape.page_slots as usize);
    drive.ftl().check();
}

#[test]
fn a_flush_does_not_wait_for_what_was_left_over() {
    for fua in [false, true] {
        let mut config = small();
        config.buffer.protected = false;
        let program = config.timing.program;
        let mut drive = Nand::new(config, Precondition::Steady, 1);
        let mut write = Command::write(0, 0, 4096);
        write.fua = fua;
        let flush = Command::flush(1);
        let done = at_times(&mut drive, &[(0, write), (2_000, flush)]);
        let longest = done.iter().map(|done| done.anatomy.total()).max();
        // The work that dies have begun, one or two pages of copies that they owe, and its own page.
        assert!(longest < Some(program * 6), "{longest:?}");
        drive.ftl().check();
    }
}

#[test]
fn a_steady_drive_that_is_only_read_writes_nothing() {
    let mut drive = Nand::new(small(), Precondition::Steady, 1);
    let pages = pages(&drive.config);
    let mut load = Closed::new(4, 1_000, random_4k(Op::Read, pages, 5));
    run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    let done = at_times(&mut drive.clone(), &[(1_000_000, Command::flush(0))]);
    assert!(done[0].anatomy.total() < Span::from_us(20));
    assert_eq!(
        (drive.shared.array.counts().programs, drive.buffer.used()),
        (0, 0)
    );
}

#[test]
fn computed_and_replayed_steady_states_write_alike() {
    for (over_provisioning, filled) in [(0.12, 1.0), (0.28, 1.0), (0.5, 1.0), (0.12, 0.8)] {
        let mut config = small();
        config.geometry.blocks_per_plane = 160;
        config.filled = filled;
        set_over_provisioning(&mut config, over_provisioning);
        let count = u64::from(config.shape().written);
        let mut computed = Nand::new(config.clone(), Precondition::Steady, 3);
        let mut replayed = Nand::replayed(config, 2.0, 4);
        let (iops, amplification) = write_speed(&mut computed, 20_000, count);
        let (real_iops, real_amplification) = write_speed(&mut replayed, 20_000, count);
        computed.ftl().check();
        replayed.ftl().check();
        assert!((amplification / real_amplification - 1.0).abs() < 0.02);
        assert!((iops / real_iops - 1.0).abs() < 0.03);
    }
}

#[test]
fn dies_that_have_only_read_do_what_the_first_write_asks_of_them() {
    let moved = |reads: u32| {
        let mut drive = Nand::new(small(), Precondition::Steady, 1);
        let far = pages(&drive.config) / 64;
        let read = |id: u32| Command::read(id, u64::from(id) * far * 4096, 4096);
        let mut commands: Vec<_> = (0..reads).map(|id| (0, read(id))).collect();
        // So late that no unit of the writes before the start is left over.
        commands.push((2_000_000, Command::write(reads, 0, 4096)));
        at_times(&mut drive, &commands);
        drive.ftl().check();
        *drive.ftl().traffic()
    };
    let asked = moved(0);
    assert!(asked.moved > 0, "{asked:?}");
    assert_eq!(moved(64), asked);
}
