//! Behaviour of an XPoint drive that follows from its parameters, in closed form where possible.

mod closed_loop;
mod levelling;
mod pieces;

use closed_loop::Loop;
use model::media::xpoint::{
    Levelling, Recovery, Wear, XPoint, XPointConfig, XPointPower, XPointRefresh, XPointTiming,
};
use model::{Command, Completion, Device, Gauge, Op, Part, Span, Time};

/// A drive whose times divide evenly, without background work.
fn quiet() -> XPointConfig {
    XPointConfig {
        bytes: 1 << 36,
        block: 512,
        channels: 7,
        dies_per_channel: 4,
        die_bytes: 1 << 34,
        max_transfer: 128 << 10,
        timing: XPointTiming {
            link: Span::from_ns(1_000),
            link_ps_per_byte: 250,
            data_fetch: Span::from_ns(400),
            controller: Span::from_ns(2_000),
            further_block: Span::ZERO,
            controller_interval: Span::from_ns(500),
            controller_slots: 128,
            write_buffers: 32,
            table_places: 16,
            read_path_ps_per_byte: 375,
            read_part: 4096,
            read_completion: Span::ZERO,
            read_spread: Span::ZERO,
            write_path_ps_per_byte: 500,
            turnaround: Span::from_ns(300),
            duplex: false,
            die_read: Span::from_ns(4_200),
            decode: Span::ZERO,
            die_write: Span::from_ns(28_000),
        },
        refresh: XPointRefresh {
            batch_units: 0,
            period: Span::from_ms(1),
            after_power_on: Span::from_ms(1),
            uptime_at_start: Span::ZERO,
        },
        levelling: Levelling {
            writes_per_move: 0,
            batch_units: 0,
        },
        recovery: Recovery {
            reads_per_recovery: 0,
            time: Span::ZERO,
        },
        power: XPointPower {
            idle_watts: 5.0,
            read_joules_per_byte: 1e-9,
            write_joules_per_byte: 4e-9,
            limit_watts: 1e6,
            governor_window: Span::from_ms(10),
        },
        wear: Wear {
            endurance_bytes: 1 << 50,
            percentage_used_at_start: 0.0,
            factor: 1.0,
            protect_at_percent: 105.0,
            protected_bytes_per_second: 30_000_000,
        },
        format_die_bytes_per_second: 54_000_000,
    }
}

/// Submits all commands at once to a new drive; returns the completions by id.
fn burst(config: &XPointConfig, commands: &[Command]) -> Vec<Completion> {
    let mut device = XPoint::new(config.clone(), 1);
    for (id, command) in commands.iter().enumerate() {
        let command = Command {
            id: id as u32,
            ..*command
        };
        device.submit(Time::ZERO, command);
    }
    let mut done = Vec::new();
    while device.next_event() != Time::NEVER {
        let next = device.next_event();
        device.advance(next, next, &mut done);
    }
    assert_eq!(done.len(), commands.len());
    done.sort_by_key(|completion| completion.id);
    done
}

fn alone(config: &XPointConfig, command: Command) -> u64 {
    burst(config, &[command])[0].at.ns()
}

fn close_to(measured: f64, expected: f64, share: f64, what: &str) {
    assert!(
        (measured - expected).abs() <= share * expected,
        "{what}: {measured} instead of {expected}"
    );
}

#[test]
fn a_command_alone_takes_the_sum_of_its_stations() {
    let config = quiet();
    // Link 1000, controller 2000, a unit read by seven dies 600, path 4096 * 0.375 = 1536.
    assert_eq!(alone(&config, Command::read(0, 0, 4096)), 5_136);
    // 32 units: the first through all stations, the others after it on the data path.
    assert_eq!(
        alone(&config, Command::read(0, 0, 131_072)),
        5_136 + 31 * 1_536
    );
    // Data fetch 400, path 2048 and a turnaround of 300, a unit written by seven dies 4000.
    assert_eq!(
        alone(&config, Command::write(0, 0, 4096)),
        3_000 + 400 + 2_348 + 4_000
    );
    // No volatile cache: a flush has nothing to wait for, and a deallocation nothing to do.
    assert_eq!(alone(&config, Command::flush(0)), 3_000);
    assert_eq!(
        alone(&config, Command::new(0, Op::Deallocate, 0, 1 << 20)),
        3_000
    );
}

#[test]
fn a_partial_write_reads_first_and_needs_all_its_data() {
    let config = quiet();
    // 512 B: the unit is read (600) while its data arrives (400 + 128); then path with its turnaround, medium.
    let partial = alone(&config, Command::write(0, 512, 512));
    assert_eq!(partial, 3_000 + 600 + 2_348 + 4_000);
    // 32 KiB at an odd sector: nine units, two of them read; all 8.192 us of data must arrive before the first unit is
    // written.
    let unaligned = alone(&config, Command::write(0, 512, 32_768));
    let whole = alone(&config, Command::write(0, 0, 32_768));
    assert_eq!(whole, 3_000 + 400 + 300 + 8 * 2_048 + 4_000);
    assert_eq!(unaligned, 3_000 + 400 + 8_192 + 300 + 9 * 2_048 + 4_000);
}

#[test]
fn commands_on_one_unit_wait_for_each_other_only_if_one_writes() {
    let config = quiet();
    let collision = |commands: &[Command]| {
        let done = burst(&config, commands);
        done.iter()
            .map(|it| it.anatomy.get(Part::Collision).ns())
            .collect::<Vec<_>>()
    };
    let (read, write) = (Command::read(0, 0, 4096), Command::write(0, 0, 4096));
    assert_eq!(collision(&[read, read, read]), [0, 0, 0]);
    assert!(collision(&[write, read])[1] > 0);
    assert!(collision(&[read, write])[1] > 0);
    let elsewhere = Command::write(0, 4096, 4096);
    assert_eq!(collision(&[write, elsewhere]), [0, 0]);
    // In order: a read between two writes waits for the first and delays the second.
    let done = burst(&config, &[write, read, write]);
    assert!(done[0].at < done[1].at && done[1].at < done[2].at);
    // Adjacent ranges that share a unit although they share no byte.
    let halves = [Command::write(0, 0, 2048), Command::write(0, 2048, 2048)];
    assert!(collision(&halves)[1] > 0);
}

#[test]
fn a_large_command_is_split_and_its_pieces_overlap() {
    let mut config = quiet();
    let split = alone(&config, Command::read(0, 0, 1 << 20));
    assert_eq!(split, 5_136 + 255 * 1_536);
    config.max_transfer = 1 << 20;
    assert_eq!(alone(&config, Command::read(0, 0, 1 << 20)), split);
}

#[test]
fn all_times_times_k_gives_latencies_times_k() {
    let mut base = quiet();
    base.timing.die_read = Span::from_ns(4_200);
    base.timing.read_completion = Span::from_ns(90);
    let k = 3;
    let mut scaled = base.clone();
    let timing = &mut scaled.timing;
    for span in [
        &mut timing.link,
        &mut timing.data_fetch,
        &mut timing.controller,
        &mut timing.controller_interval,
        &mut timing.turnaround,
        &mut timing.read_completion,
        &mut timing.die_read,
        &mut timing.die_write,
    ] {
        *span = *span * k;
    }
    timing.link_ps_per_byte *= k;
    timing.read_path_ps_per_byte *= k;
    timing.write_path_ps_per_byte *= k;
    for (bytes, align) in [(4096, 4096), (131_072, 4096), (65_536, 512), (1 << 20, 512)] {
        let job = || Loop::new(16, 60, bytes, align, 3_000);
        let (one, many) = (job().run(&base), job().run(&scaled));
        for (one, many) in one.log.iter().zip(&many.log) {
            assert_eq!((one.id, one.at.ns() * k), (many.id, many.at.ns()));
            for (one, many) in one.anatomy.parts().iter().zip(many.anatomy.parts()) {
                assert_eq!(one.ns() * k, many.ns());
            }
        }
    }
}

#[test]
fn throughput_is_that_of_the_slowest_station() {
    let mut config = quiet();
    let reads = |config: &XPointConfig, bytes| Loop::new(32, 100, bytes, 4096, 20_000).run(config);
    let writes = |config: &XPointConfig, bytes| Loop::new(32, 0, bytes, 4096, 20_000).run(config);
    // The data path: 375 and 500 ps per byte, whatever the size of commands and the number of dies.
    for dies in [3, 4, 8] {
        config.dies_per_channel = dies;
        for bytes in [4096, 65_536] {
            close_to(
                reads(&config, bytes).bytes_per_second,
                1e12 / 375.0,
                0.01,
                "reads",
            );
            close_to(
                writes(&config, bytes).bytes_per_second,
                1e12 / 500.0,
                0.01,
                "writes",
            );
        }
    }
    // One die group: 4 us per unit written.
    config.dies_per_channel = 1;
    close_to(
        writes(&config, 4096).bytes_per_second,
        4096.0 / 4e-6,
        0.01,
        "one group",
    );
    // A controller with a million commands per second.
    config.dies_per_channel = 8;
    config.timing.controller_interval = Span::from_us(4);
    close_to(
        reads(&config, 4096).bytes_per_second,
        4096.0 / 4e-6,
        0.01,
        "commands",
    );
}

#[test]
fn closed_loops_stay_within_operational_bounds() {
    let config = quiet();
    let cycle = 5_136.0;
    let slowest = 1_536.0;
    for depth in [1u32, 2, 3, 4, 6, 8, 16, 64] {
        let run = Loop::new(depth, 100, 4096, 4096, 50_000).run(&config);
        let n = f64::from(depth);
        let throughput = run.bytes_per_second / 4096.0 * 1e-9;
        assert!(throughput <= (n / cycle).min(1.0 / slowest) * 1.000_01);
        assert!(throughput >= n / (cycle + (n - 1.0) * slowest) * 0.999);
        // Little's law, measured from outside.
        close_to(throughput * run.mean_ns(), n, 1e-3, "Little");
    }
}

#[test]
fn utilisations_follow_from_throughput() {
    let run = Loop::new(4, 100, 4096, 4096, 50_000).run(&quiet());
    let rate = run.bytes_per_second / 4096.0;
    let share = |gauge| run.gauge(gauge) / run.end.seconds();
    close_to(
        share(Gauge::LinkBusySeconds),
        rate * 1_536e-9,
        1e-3,
        "data path",
    );
    close_to(
        share(Gauge::MediumBusySeconds),
        rate * 600e-9 / 4.0,
        1e-3,
        "medium",
    );
    close_to(
        share(Gauge::ControllerBusySeconds),
        rate * 500e-9,
        1e-3,
        "controller",
    );
    let watts = run.gauge(Gauge::EnergyJoules) / run.end.seconds();
    close_to(watts, 5.0 + rate * 4096.0 * 1e-9, 1e-3, "watts");
}

#[test]
fn the_governor_holds_mean_power_at_its_limit() {
    let mut config = quiet();
    config.power.limit_watts = 8.0;
    // 3 W above idle at 4 nJ a byte: 750 MB/s of writes.
    let run = Loop::new(32, 0, 4096, 4096, 400_000).run(&config);
    close_to(run.bytes_per_second, 0.75e9, 0.01, "throttled writes");
    let watts = run.gauge(Gauge::EnergyJoules) / run.end.seconds();
    close_to(watts, 8.0, 0.01, "watts");
    let held: u64 = run
        .log
        .iter()
        .map(|it| it.anatomy.get(Part::Throttle).ns())
        .sum();
    assert!(held > 0, "the anatomy shows what held commands back");
}

#[test]
fn past_its_endurance_it_writes_thirty_megabytes_a_second_and_reads_on() {
    let mut config = quiet();
    config.wear.percentage_used_at_start = 104.9;
    config.wear.endurance_bytes = 100_000_000_000;
    // The last 0.1 % is 100 MB; after that, writes are slow.
    let before = Loop::new(8, 0, 65_536, 4096, 1_500).run(&config);
    assert!(before.bytes_per_second > 1.8e9);
    close_to(
        before.gauge(Gauge::PercentageUsed),
        104.9 + 0.098,
        1e-4,
        "used",
    );
    config.wear.percentage_used_at_start = 105.0;
    let after = Loop::new(8, 0, 65_536, 4096, 1_500).run(&config);
    close_to(after.bytes_per_second, 30e6, 0.01, "protected");
    let mixed = Loop::new(8, 50, 4096, 4096, 4_000).run(&config);
    let unheld = mixed
        .log
        .iter()
        .filter(|it| it.anatomy.get(Part::Throttle) == Span::ZERO);
    assert!(unheld.count() > 1_900, "reads are not held back");
}

#[test]
fn refresh_is_heavier_after_power_on_and_shows_in_the_tail_only() {
    let mut config = quiet();
    config.die_bytes = 1 << 32;
    config.bytes = 1 << 34;
    config.refresh = XPointRefresh {
        batch_units: 12,
        period: Span::from_seconds(86_400.0),
        after_power_on: Span::from_seconds(1_000.0),
        uptime_at_start: Span::ZERO,
    };
    let behind = |config: &XPointConfig| {
        let mut job = Loop::new(1, 100, 4096, 4096, 300_000);
        job.span = config.bytes;
        let run = job.run(config);
        let latencies = run.latencies();
        assert_eq!(latencies[latencies.len() / 2], 5_136, "median");
        // A batch of 12 units occupies its die group for 12 * (600 + 4000) ns.
        assert!(
            *latencies.last().expect("not empty") <= 5_136 + 55_200,
            "longest"
        );
        let hit = |it: &&Completion| it.anatomy.get(Part::BehindRefresh) > Span::ZERO;
        run.log.iter().filter(hit).count() as f64 / run.end.seconds()
    };
    let fresh = behind(&config);
    config.refresh.uptime_at_start = Span::from_seconds(1_000.0);
    let settled = behind(&config);
    // Four groups, each of 7 * 2^20 units in 1000 s in batches of twelve. One read in four goes to a group and ten
    // begin while it is busy, so most batches delay exactly one read; the exceptions are batches that coincide.
    let gap = 1_000.0 * 12.0 / (7.0 * 1_048_576.0);
    let batches = 4.0 / (gap + 55.2e-6);
    assert!(
        fresh > 0.85 * batches && fresh < batches,
        "{fresh} reads a second met {batches} batches"
    );
    assert!(
        settled < fresh / 50.0,
        "settled: {settled}, after power-on: {fresh}"
    );
}

#[test]
fn waiting_is_told_apart() {
    let config = quiet();
    // Two units of one group (they are four apart in one of the next runs of four): searches for a pair that collides.
    let pair = (1..64).find_map(|unit| {
        let done = burst(
            &config,
            &[
                Command::write(0, 0, 4096),
                Command::write(0, unit * 4096, 4096),
            ],
        );
        let wait = done[1].anatomy.get(Part::BehindProgram);
        (wait > Span::ZERO).then_some(wait)
    });
    // The second arrives at the group one path time after the first, and waits 4000 - 2048.
    assert_eq!(pair, Some(Span::from_ns(4_000 - 2_048)));
}

#[test]
fn a_partial_read_saves_the_link_and_not_the_medium() {
    let config = quiet();
    let whole = alone(&config, Command::read(0, 1 << 20, 4096));
    for bytes in [512, 1024, 2048] {
        // 250 ps per byte; the unit is read and corrected as a whole.
        let spared = u64::from(4096 - bytes) / 4;
        for skip in [0, 4096 - u64::from(bytes)] {
            let read = Command::read(0, (1 << 20) + skip, bytes);
            assert_eq!(alone(&config, read), whole - spared, "{bytes} after {skip}");
        }
    }
    let rate = |bytes| {
        let run = Loop::new(64, 100, bytes, 4096, 20_000).run(&config);
        run.bytes_per_second / f64::from(bytes)
    };
    close_to(rate(512), rate(4096), 0.001, "reads a second");
}

#[test]
fn the_tail_of_reads_is_twice_the_median_at_any_high_depth() {
    let mut config = quiet();
    config.timing.table_places = 16_384;
    config.timing.controller_slots = 128;
    let mut before = 0;
    for depth in [8, 16, 24, 32, 48, 64] {
        let latencies = Loop::new(depth, 100, 4096, 4096, 200_000)
            .run(&config)
            .latencies();
        let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize];
        let ratio = at(0.99) as f64 / at(0.5) as f64;
        let lowest = if depth == 8 { 1.3 } else { 1.7 };
        assert!((lowest..2.2).contains(&ratio), "depth {depth}: {ratio}");
        let last = at(0.9999);
        assert!(last > before, "depth {depth}: {last} after {before}");
        before = last;
    }
}

#[test]
fn few_write_buffers_cost_two_groups_more_than_four_and_nothing_in_order() {
    let rate = |groups, buffers, bytes: u32| {
        let mut config = quiet();
        config.dies_per_channel = groups;
        config.timing.write_buffers = buffers;
        let align = u64::from(bytes);
        let run = Loop::new(32, 0, bytes, align, 40_000 * 4096 / align).run(&config);
        run.bytes_per_second
    };
    // 4 us for a unit in one of two groups correspond to 2.048 us on the path, but five units are rarely distributed
    // three and two.
    let share = rate(2, 5, 4096) / rate(2, 32, 4096);
    assert!((0.85..0.95).contains(&share), "two groups: {share}");
    let share = rate(4, 5, 4096) / rate(4, 32, 4096);
    assert!((0.98..1.001).contains(&share), "four groups: {share}");
    // Consecutive units alternate between both groups.
    let in_order = |buffers| {
        let mut config = quiet();
        config.dies_per_channel = 2;
        config.timing.write_buffers = buffers;
        config.timing.table_places = 16_384;
        let place = |index: u64| Command::write(0, index << 17, 1 << 17);
        let done = burst(&config, &(0..32).map(place).collect::<Vec<_>>());
        done.iter().map(|it| it.at.ns()).max().expect("some") as f64
    };
    let share = in_order(32) / in_order(5);
    assert!((0.96..=1.0).contains(&share), "in order: {share}");
    // One buffer: one unit at a time, 2.048 us on the path and 4 us at its dies.
    close_to(rate(4, 1, 4096), 4096.0 / 6.048e-6, 0.01, "one by one");
}

#[test]
fn reads_pass_writes_that_wait_for_a_buffer() {
    let mut config = quiet();
    config.timing.write_buffers = 1;
    config.timing.table_places = 16_384;
    let mut commands: Vec<Command> = (0..8)
        .map(|unit| Command::write(0, unit * 4096, 4096))
        .collect();
    commands.push(Command::read(0, 1 << 20, 4096));
    let done = burst(&config, &commands);
    let read = done[8].at;
    let before = done[..8].iter().filter(|it| it.at < read).count();
    assert!(before <= 2, "{before} writes came before the read");
}

#[test]
fn in_a_mix_neither_reads_nor_writes_starve() {
    let mut config = quiet();
    config.timing.write_buffers = 5;
    config.timing.table_places = 16_384;
    config.timing.controller_slots = 128;
    let mean = |latencies: &[u64]| latencies.iter().sum::<u64>() as f64 / latencies.len() as f64;
    for (bytes, depth) in [(4096, 16), (4096, 64), (65_536, 16), (65_536, 64)] {
        let run = Loop::new(depth, 50, bytes, 4096, 60_000 * 4096 / u64::from(bytes)).run(&config);
        let [reads, writes] = [true, false].map(|reads| run.latencies_of(reads));
        let ratio = mean(&writes) / mean(&reads);
        assert!(
            (0.7..1.4).contains(&ratio),
            "{bytes} B, depth {depth}: writes take {ratio} times as long as reads"
        );
        let worst = writes[writes.len() * 999 / 1000] as f64 / writes[writes.len() / 2] as f64;
        assert!(
            worst < 4.0,
            "{bytes} B, depth {depth}: 99.9 % of writes {worst} medians"
        );
    }
}

#[test]
fn a_duplex_drive_reads_and_writes_at_once() {
    let mut config = quiet();
    config.dies_per_channel = 8;
    config.timing.table_places = 16_384;
    config.timing.controller_slots = 256;
    let rate = |config: &XPointConfig, reads| {
        Loop::new(128, reads, 16_384, 4096, 20_000)
            .run(config)
            .bytes_per_second
    };
    let [written, read] = [0, 100].map(|reads| rate(&config, reads));
    assert!(rate(&config, 50) < read);
    config.timing.duplex = true;
    close_to(rate(&config, 0), written, 0.01, "writes alone");
    close_to(rate(&config, 100), read, 0.01, "reads alone");
    // Equal bytes in both directions: the slower direction is always busy.
    close_to(rate(&config, 50), 2.0 * written, 0.05, "both");
}

#[test]
fn parts_that_are_read_by_themselves_take_their_share_of_dies_and_path() {
    let mut config = quiet();
    config.timing.controller_interval = Span::from_ns(10);
    config.timing.controller_slots = 256;
    config.timing.table_places = 16_384;
    let rate = |config: &XPointConfig, bytes: u32, align| {
        Loop::new(128, 100, bytes, align, 20_000)
            .run(config)
            .bytes_per_second
            / f64::from(bytes)
    };
    let whole = rate(&config, 4096, 4096);
    close_to(rate(&config, 512, 512), whole, 0.01, "only whole units");
    config.timing.read_part = 512;
    close_to(rate(&config, 512, 512), 8.0 * whole, 0.05, "parts");
    close_to(rate(&config, 4096, 4096), whole, 0.01, "whole units");
    close_to(rate(&config, 4096, 512), whole, 0.02, "parts of two units");
    // A part of half a unit does not help smaller reads.
    config.timing.read_part = 2048;
    close_to(rate(&config, 512, 512), 2.0 * whole, 0.02, "halves");
    // One die group that is slower than the path.
    config.dies_per_channel = 1;
    config.timing.die_read = Span::from_us(70);
    close_to(rate(&config, 4096, 4096), 1e5, 0.01, "whole units, dies");
    close_to(rate(&config, 2048, 2048), 2e5, 0.01, "halves, dies");
}

#[test]
fn completions_take_the_read_path_between_commands_only() {
    let mut config = quiet();
    config.timing.controller_interval = Span::from_ns(10);
    config.timing.controller_slots = 256;
    let time = |config: &XPointConfig, bytes: u32| {
        let rate = Loop::new(64, 100, bytes, 4096, 20_000).run(config);
        1e9 * f64::from(bytes) / rate.bytes_per_second
    };
    let before = [4096, 131_072].map(|bytes| time(&config, bytes));
    let latency = alone(&config, Command::read(0, 0, 4096));
    config.timing.read_completion = Span::from_ns(400);
    let after = [4096, 131_072].map(|bytes| time(&config, bytes));
    for (before, after) in before.into_iter().zip(after) {
        close_to(after - before, 400.0, 0.05, "a command's time");
    }
    assert_eq!(alone(&config, Command::read(0, 0, 4096)), latency);
}
