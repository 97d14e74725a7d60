//! Durations of single steps: die occupancy, lower and upper pages, pSLC blocks, data of one write.

use alloc::vec::Vec;

use super::*;

#[test]
fn what_has_been_programmed_is_read_from_the_medium() {
    let mut drive = Nand::new(small(), Precondition::Fresh, 1);
    let write = |id, n| Command::write(id, n * 4096, 4096);
    let end = run(
        &mut drive,
        &mut Closed::new(32, 4_000, write),
        Time::ZERO,
        Time::NEVER,
    );
    let mut load = Closed::new(1, 100, |id, n| Command::read(id, n * 4096, 4096));
    load.now = end;
    run(&mut drive, &mut load, end, Time::NEVER);
    let sensed =
        |(_, _, anatomy): &(CommandId, Span, Anatomy)| anatomy.get(Part::Medium) > Span::ZERO;
    assert!(load.latencies.iter().all(sensed));
    assert_eq!(drive.shared.array.counts().senses, 100);
}

/// Returns 4 KiB reads per second at this depth, on a drive that has been written sequentially.
fn read_speed(config: NandConfig, depth: u32) -> f64 {
    let pages = pages(&config);
    let mut drive = Nand::new(config, Precondition::Filled, 1);
    let mut load = Closed::new(depth, 20_000, random_4k(Op::Read, pages, 5));
    let end = run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    20_000.0 / end.seconds()
}

#[test]
fn a_die_without_cache_read_is_taken_until_its_data_have_crossed() {
    let speed = |cache_read, depth| {
        let mut config = small();
        config.timing.cache_read = cache_read;
        config.controller.per_read = Span::ZERO;
        read_speed(config, depth)
    };
    assert!((speed(true, 1) / speed(false, 1) - 1.0).abs() < 1e-9);
    // At high queue depth sixteen dies work all the time, and four of them share a channel.
    let (with, without) = (speed(true, 512), speed(false, 512));
    let sense_alone = 16.0 / 60e-6;
    let (channel, least) = (12_788e-9, 16.0 / (60e-6 + 4.0 * 12_788e-9));
    assert!(with > 0.9 * sense_alone, "{with}");
    let held = 16.0 / (60e-6 + channel);
    assert!((least..held).contains(&without), "{without} {least} {held}");
}

/// A cell of three bits has three kinds of pages. With one, two and four thresholds, the median read is faster than the
/// mean, and no read is slower than that of an upper page.
#[test]
fn kinds_of_pages_have_one_sense_time_each() {
    let senses = |thresholds: &[u32]| {
        let mut config = small();
        config.timing.read_spread = 0.5;
        config.timing.read_thresholds = thresholds.to_vec();
        // Each kind has a third of the page.
        config.geometry.page_bytes *= 3;
        let mean = config.timing.read;
        let pages = pages(&config);
        let mut drive = Nand::new(config, Precondition::Filled, 1);
        let mut load = Closed::new(1, 3_000, random_4k(Op::Read, pages, 5));
        run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
        let sense = |it: &(CommandId, Span, Anatomy)| it.2.get(Part::Medium).ns() as f64;
        let mut times: Vec<f64> = load.latencies.iter().map(sense).collect();
        // Without the few reads whose page is still in the die's register.
        times.retain(|time| *time > 0.0);
        times.iter_mut().for_each(|time| *time /= mean.ns() as f64);
        times.sort_by(f64::total_cmp);
        let all: f64 = times.iter().sum();
        assert!((all / times.len() as f64 - 1.0).abs() < 0.03, "{all}");
        let (median, most) = (times[times.len() / 2], times[times.len() - 1]);
        times.dedup();
        (times.len(), median, most)
    };
    let (kinds, median, most) = senses(&[1, 2, 4]);
    assert_eq!(kinds, 3);
    assert!((median - 0.9).abs() < 0.001, "{median}");
    assert!((most - 1.5).abs() < 0.001, "{most}");
    let (times, median, _) = senses(&[]);
    assert!(
        times > 1_000 && (median - 1.0).abs() < 0.03,
        "{times} {median}"
    );
}

/// A read of slots in several kinds of pages takes at least as long as a read of one of them.
#[test]
fn latency_does_not_fall_with_the_size_of_a_read() {
    let mut config = small();
    config.timing.read_spread = 0.5;
    config.timing.read_thresholds = [1, 2, 4].to_vec();
    config.geometry.page_bytes *= 3;
    config.controller.per_read_unit = Some(Span::ZERO);
    let pages = pages(&config);
    let worst = |units: u64| {
        let mut drive = Nand::new(config.clone(), Precondition::Filled, 1);
        let read = |id, n: u64| {
            let start = n * 7_919 % (pages / units) * units;
            Command::read(id, start * 4096, units as u32 * 4096)
        };
        let mut load = Closed::new(1, 1_000, read);
        run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
        let times = load.latencies.iter().map(|it| it.2.get(Part::Medium));
        times.max().expect("reads")
    };
    assert!(worst(8) >= worst(1), "{:?} {:?}", worst(8), worst(1));
    assert!(worst(24) >= worst(1), "{:?} {:?}", worst(24), worst(1));
}

#[test]
fn cores_bound_reads_of_the_medium_and_nothing_else() {
    let work = Span::from_us(40);
    let parted = |count: Option<u32>| {
        let mut config = small();
        config.controller.per_read = Span::from_ns(100);
        config.controller.cores = count.map(|count| ReadCoreConfig {
            count,
            per_read: work,
        });
        config
    };
    // At QD1, a read takes longer by that time.
    let one = |count| 1e6 / read_speed(parted(count), 1);
    assert!((one(Some(4)) - one(None) - work.us()).abs() < 0.5);
    // At high queue depth they are never idle.
    for count in [1, 3] {
        let (speed, most) = (
            read_speed(parted(Some(count)), 512),
            f64::from(count) / 40e-6,
        );
        assert!(
            (0.97..=1.001).contains(&(speed / most)),
            "{count}: {speed} of {most}"
        );
    }
    // Unwritten units need no read from the medium.
    let of_nothing = |count| {
        let mut drive = Nand::new(parted(count), Precondition::Fresh, 1);
        let mut load = Closed::new(16, 1_000, random_4k(Op::Read, 1_000, 5));
        run(&mut drive, &mut load, Time::ZERO, Time::NEVER)
    };
    assert_eq!(of_nothing(Some(1)), of_nothing(None));
}

#[test]
fn senses_beyond_the_first_of_a_command_take_their_own_controller_time() {
    // On a randomly overwritten drive, the four units of 16 KiB are four senses. The controller limits their rate.
    let commands = |further: Option<u64>| {
        let mut config = small();
        config.controller.per_read = Span::from_us(20);
        config.controller.per_read_unit = further.map(Span::from_us);
        let groups = pages(&config) / 4;
        let mut drive = Nand::new(config, Precondition::Steady, 1);
        let mut random = Stream::new(5, "reads");
        let read = move |id, _| Command::read(id, random.uniform_below(groups) * 16_384, 16_384);
        let mut load = Closed::new(64, 5_000, read);
        let end = run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
        5_000.0 / end.seconds()
    };
    for further in [5, 10, 20] {
        let most = 1e6 / (20 + 3 * further) as f64;
        let share = commands(Some(further)) / most;
        assert!((0.97..=1.01).contains(&share), "{further} us: {share}");
    }
    assert_eq!(commands(None), commands(Some(20)));
}

#[test]
fn lower_and_upper_pages_take_their_own_times() {
    // Without capacitors a flush ends with the program; pages of the first die are written one after another.
    let program = |spread: f64| {
        let mut config = small();
        config.geometry.channels = 1;
        config.geometry.dies_per_channel = 1;
        set_over_provisioning(&mut config, 0.5);
        config.timing.program_spread = spread;
        config.buffer.protected = false;
        let mut drive = Nand::new(config, Precondition::Fresh, 1);
        let commands: Vec<_> = (0..8)
            .map(|n| (n * 10_000, Command::write(2 * n as u32, n * 4096, 4096)))
            .flat_map(|(at, write)| [(at, write), (at + 100, Command::flush(write.id + 1))])
            .collect();
        let done = at_times(&mut drive, &commands);
        let flushes = done.iter().skip(1).step_by(2);
        flushes
            .map(|flush| flush.anatomy.get(Part::BehindProgram))
            .collect::<Vec<_>>()
    };
    let (even, uneven) = (program(0.0), program(0.6));
    for (n, (mean, this)) in even.iter().zip(&uneven).enumerate() {
        let shift = Span::from_us(780);
        let expected = if n % 2 == 0 {
            *mean - shift
        } else {
            *mean + shift
        };
        assert_eq!(*this, expected, "page {n}");
    }
}

#[test]
fn slc_blocks_are_read_in_their_own_time() {
    let mut config = small();
    config.slc = Some(slc());
    let mut drive = Nand::new(config, Precondition::Fresh, 1);
    let write = |id, n| Command::write(id, n * 4096, 4096);
    let end = run(
        &mut drive,
        &mut Closed::new(64, 1_024, write),
        Time::ZERO,
        Time::ZERO + Span::from_ms(19),
    );
    let mut load = Closed::new(1, 100, |id, n| Command::read(id, n * 4096, 4096));
    load.now = end;
    run(&mut drive, &mut load, end, Time::NEVER);
    let medium = |(_, _, anatomy): &(CommandId, Span, Anatomy)| anatomy.get(Part::Medium);
    let sensed = load.latencies.iter().map(medium);
    assert!(
        sensed.clone().all(|span| span == Span::from_us(25)),
        "{:?}",
        sensed.max()
    );
}

#[test]
fn one_large_write_is_taken_in_unit_by_unit_and_several_overlap() {
    let latency = |interval: Span, depth: u32| {
        let mut config = small();
        config.controller.write_issue_interval = interval;
        let mut drive = Nand::new(config, Precondition::Fresh, 1);
        let write = |id, n| Command::write(id, n * 131_072, 131_072);
        let mut load = Closed::new(depth, u64::from(depth), write);
        run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
        load.latencies
            .iter()
            .map(|latency| latency.1)
            .max()
            .expect("some")
    };
    let slow = Span::from_us(3);
    let alone = latency(slow, 1);
    assert_eq!(
        alone,
        Span::from_ns(2_000 + 31 * 300 + 1_000 + 6_000) + slow * 31
    );
    assert!(latency(Span::ZERO, 1) < alone);
    assert!(latency(slow, 4) < alone * 2);
}

#[test]
fn commands_in_the_queue_do_not_make_up_for_a_pause_of_the_firmware() {
    // Limited by the controller: 4,000 units of 5 us, and a pause of some milliseconds for each 400.
    let seconds = |pauses, depth: u32| {
        let mut config = small();
        config.buffer.bytes = 32 << 20;
        config.controller.per_write = Span::from_us(5);
        config.controller.per_write_unit = Span::from_us(5);
        config.housekeeping = pauses;
        let mut drive = Nand::new(config, Precondition::Fresh, 1);
        let write = |id, n| Command::write(id, n * 65_536, 65_536);
        let mut load = Closed::new(depth, 250, write);
        run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
        load.now.since(Time::ZERO).seconds()
    };
    let pauses = Some(Housekeeping {
        every_units: 400,
        mean: Span::from_ms(5),
    });
    let (few, many) = (seconds(pauses.clone(), 4), seconds(pauses, 128));
    let without = seconds(None, 128);
    assert!((without - 0.02).abs() < 0.001, "{without}");
    assert!(few > 2.0 * without, "{few}");
    assert!((many / few - 1.0).abs() < 0.02, "{many} {few}");
}
