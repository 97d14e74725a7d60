//! Mean times, rates and queueing of a disk, compared with closed formulas.

use super::super::*;
use super::rig::*;

/// Mean seek between two random addresses: two random positions, more of them on the longer, outer tracks.
fn mean_seek(config: &HddConfig) -> f64 {
    let (outer, inner) = (config.disk.outer as f64, config.disk.inner as f64);
    // The radius, 0 to 1, within which a share of the bytes lies.
    let radius = |share: f64| {
        let (a, b) = ((inner - outer) / 2.0, outer);
        let c = -share * (outer + inner) / 2.0;
        (-b + libm::sqrt(b * b - 4.0 * a * c)) / (2.0 * a)
    };
    let (track, full) = (config.seek.track.seconds(), config.seek.full.seconds());
    let share = (config.seek.average.seconds() - track) / (full - track);
    let root = (full - track) * (share - 1.0 / 3.0) / (8.0 / 15.0 - 1.0 / 3.0);
    let line = full - track - root;
    let steps = 1000;
    let at = |step: i32| radius((f64::from(step) + 0.5) / f64::from(steps));
    mean((0..steps).flat_map(|from| {
        (0..steps).map(move |to| {
            let far = (at(from) - at(to)).abs();
            track + root * libm::sqrt(far) + line * far
        })
    }))
}

#[test]
fn a_random_read_takes_a_seek_half_a_turn_and_its_transfer() {
    let config = large();
    let mut place = anywhere(config.bytes);
    let mut disk = Hdd::new(config.clone(), 1);
    let seen = closed(&mut disk, 1, 40_000, |id| Command::read(id, place(), 4096));
    let sent = Span::per_bytes(config.link.ps_per_byte, 4096);
    let fixed = config.controller.command + config.controller.access + config.link.delay + sent;
    let passes = 4096.0 / 150e6;
    let expected = mean_seek(&config) + config.disk.turn.seconds() / 2.0 + passes + fixed.seconds();
    let found = mean(seen.iter().map(Seen::latency));
    assert!(
        (found / expected - 1.0).abs() < 0.01,
        "{found} for {expected}"
    );
    // If all addresses are equally likely on equal tracks, the mean seek is the configured one.
    let mut even = config.clone();
    even.disk.inner = even.disk.outer - 1;
    let average = even.seek.average.seconds();
    assert!((mean_seek(&even) / average - 1.0).abs() < 0.002);
}

#[test]
fn a_queue_of_32_does_two_to_three_and_a_half_times_as_much() {
    let config = large();
    let of = |depth: u32| {
        let mut place = anywhere(config.bytes);
        let mut disk = Hdd::new(config.clone(), 1);
        rate(&closed(&mut disk, depth, 20_000, |id| {
            Command::read(id, place(), 4096)
        }))
    };
    let (one, four, deep) = (of(1), of(4), of(32));
    assert!((2.0..3.5).contains(&(deep / one)), "{deep} against {one}");
    assert!(one < four && four < deep, "{one} {four} {deep}");
}

#[test]
fn reads_and_writes_in_order_go_at_the_rate_of_their_zone() {
    let config = large();
    let bytes = 256 << 10;
    let count = 4000_u32;
    for (start, expected) in [
        (0, config.disk.outer),
        (config.bytes - u64::from(count) * bytes, config.disk.inner),
    ] {
        for op in [Op::Read, Op::Write] {
            for depth in [1, 8] {
                let mut disk = Hdd::new(config.clone(), 1);
                let seen = closed(&mut disk, depth, count, |id| {
                    Command::new(id, op, start + u64::from(id - 1) * bytes, bytes as u32)
                });
                let found = rate(&seen) * bytes as f64 / expected as f64;
                assert!(
                    (found - 1.0).abs() < 0.01,
                    "{op:?} from {start} at depth {depth}: {found} of the rate"
                );
            }
        }
    }
}

/// Pollaczek-Khinchine formula: a queue in order of arrival with a disk as its single server.
#[test]
fn one_at_a_time_it_is_an_m_g_1_queue() {
    let mut config = large();
    config.queue.depth = 1;
    config.buffer.read_ahead = 0;
    let mut place = anywhere(config.bytes);
    let mut disk = Hdd::new(config.clone(), 1);
    let gap = Span::from_us(20_000);
    let seen = open(&mut disk, gap, 200_000, |id| {
        Command::read(id, place(), 4096)
    });
    let waits = mean(
        seen.iter()
            .map(|it| it.anatomy.get(Part::QueueSlot).seconds()),
    );
    let service = |it: &Seen| it.latency() - it.anatomy.get(Part::QueueSlot).seconds();
    let first = mean(seen.iter().map(service));
    let second = mean(seen.iter().map(|it| service(it) * service(it)));
    let arrivals = 1.0 / gap.seconds();
    let load = arrivals * first;
    assert!((0.5..0.8).contains(&load), "{load}");
    let expected = arrivals * second / (2.0 * (1.0 - load));
    assert!(
        (waits / expected - 1.0).abs() < 0.03,
        "{waits} for {expected}"
    );
}

#[test]
fn a_sector_is_written_again_each_turn() {
    let mut config = large();
    config.write_cache = false;
    let mut disk = Hdd::new(config.clone(), 1);
    let seen = closed(&mut disk, 1, 1000, |id| Command::write(id, 1 << 30, 4096));
    for pair in seen.windows(2) {
        assert_eq!(pair[1].at.since(pair[0].at), config.disk.turn);
    }
    // At QD1 each command loses one revolution, and advances by a sector.
    let mut disk = Hdd::new(config.clone(), 1);
    let seen = closed(&mut disk, 1, 1000, |id| {
        Command::write(id, u64::from(id) * 4096, 4096)
    });
    let found = 1.0 / rate(&seen) - config.disk.turn.seconds();
    let passes = 4096.0 / config.disk.outer as f64;
    assert!((found / passes - 1.0).abs() < 0.05, "{found} for {passes}");
}

#[test]
fn a_part_of_a_sector_takes_a_turn_more() {
    let config = large();
    let time = |offset: u64, bytes: u32| {
        let mut config = config.clone();
        config.write_cache = false;
        let mut disk = Hdd::new(config, 1);
        let seen = closed(&mut disk, 1, 1, |id| Command::write(id, offset, bytes));
        seen[0].at
    };
    let whole = time(1 << 30, 4096);
    let sent = Span::per_bytes(config.link.ps_per_byte, 4096 - 512);
    for offset in [0, 512, 3584] {
        let part = time((1 << 30) + offset, 512);
        // Fewer bytes cross the link first, so the sector may be reached one revolution earlier.
        let more = part.since(whole);
        assert!(
            more == config.disk.turn
                || more + config.disk.turn == config.disk.turn && sent > Span::ZERO,
            "{more:?}"
        );
    }
    assert_eq!(time((1 << 30) + 4096, 8192), time((1 << 30) + 4096, 8192));
}

#[test]
fn a_share_of_the_reads_is_tried_again() {
    let mut config = large();
    config.disk.read_retry = 0.1;
    let at_once = |config: &HddConfig| {
        let mut place = anywhere(config.bytes);
        let mut disk = Hdd::new(config.clone(), 1);
        let seen = closed(&mut disk, 1, 20_000, |id| Command::read(id, place(), 4096));
        mean(seen.iter().map(Seen::latency))
    };
    let often = at_once(&config);
    config.disk.read_retry = 0.0;
    let never = at_once(&config);
    // With the same probability again: 1/9 of a revolution in the mean.
    let expected = config.disk.turn.seconds() / 9.0;
    let found = often - never;
    assert!(
        (found / expected - 1.0).abs() < 0.1,
        "{found} for {expected}"
    );
}

#[test]
fn it_draws_what_its_work_takes() {
    #[derive(Default)]
    struct Joules(f64);
    impl Gauges for Joules {
        fn gauge(&mut self, gauge: crate::device::Gauge, value: f64) {
            if gauge == crate::device::Gauge::EnergyJoules {
                self.0 = value;
            }
        }
    }
    let watts = |disk: &Hdd, at: Time| {
        let mut joules = Joules::default();
        disk.inspect(at, &mut joules);
        joules.0 / at.seconds()
    };
    let config = large();
    let mut disk = Hdd::new(config.clone(), 1);
    let minute = Time::from_ns(60_000_000_000);
    assert!((watts(&disk, minute) - config.power.idle).abs() < 1e-9);
    // Sequentially, the head reads all the time except for the skew between tracks.
    let seen = closed(&mut disk, 1, 4000, |id| {
        Command::read(id, u64::from(id) << 20, 1 << 20)
    });
    let reading = watts(&disk, seen[3999].at);
    assert!(
        (reading / config.power.transfer - 1.0).abs() < 0.02,
        "{reading}"
    );
    // Randomly without read-ahead, the arm moves for most of the time.
    let mut still = config.clone();
    still.buffer.read_ahead = 0;
    let mut place = anywhere(still.bytes);
    let mut disk = Hdd::new(still, 1);
    let seen = closed(&mut disk, 1, 4000, |id| Command::read(id, place(), 4096));
    let moving = watts(&disk, seen[3999].at);
    let share = mean_seek(&config) / mean(seen.iter().map(Seen::latency));
    let expected = config.power.idle + share * (config.power.seek - config.power.idle);
    assert!(
        (moving / expected - 1.0).abs() < 0.02,
        "{moving} for {expected}"
    );
}

#[test]
fn a_shrunk_disk_takes_as_long() {
    use crate::media::Medium;
    let whole = large();
    let small = whole.shrunk(8_000_000_000);
    assert_eq!(small.bytes, 8_000_000_000 / 4096 * 4096);
    assert_eq!(small.problems(), Vec::<alloc::string::String>::new());
    for op in [Op::Read, Op::Write] {
        let of = |config: &HddConfig| {
            let mut place = anywhere(config.bytes);
            let mut disk = Hdd::new(config.clone(), 1);
            rate(&closed(&mut disk, 8, 20_000, |id| {
                Command::new(id, op, place(), 4096)
            }))
        };
        let (whole, small) = (of(&whole), of(&small));
        assert!(
            (small / whole - 1.0).abs() < 0.02,
            "{op:?}: {small} {whole}"
        );
    }
    assert_eq!(whole.shrunk(u64::MAX), whole);
    let share = small.format_duration().seconds() / whole.format_duration().seconds();
    assert!((share * 250.0 - 1.0).abs() < 0.02, "{share}");
}
