//! Behaviour of the firmware: read-ahead, hits, the cache, flushes, scheduling, and power.

use super::super::*;
use super::rig::*;

#[test]
fn what_was_read_comes_at_the_rate_of_the_link() {
    let config = large();
    let mut disk = Hdd::new(config.clone(), 1);
    let seen = closed(&mut disk, 1, 20, |id| Command::read(id, 1 << 30, 65_536));
    let fixed = config.controller.command + config.link.delay;
    let hit = fixed + Span::per_bytes(config.link.ps_per_byte, 65_536);
    assert!(seen[0].latency() > 0.001);
    for again in &seen[1..] {
        assert_eq!(again.anatomy.total(), hit);
    }
    // A write clears data that was read, and is cached itself.
    let start = seen[19].at;
    let write = |id| Command {
        fua: true,
        ..Command::write(id, (1 << 30) + 4096, 4096)
    };
    let seen = one_by_one(&mut disk, start, 1, write);
    let start = seen[0].at;
    let seen = one_by_one(&mut disk, start, 2, |id| match id {
        1 => Command::read(id, (1 << 30) + 4096, 4096),
        _ => Command::read(id, 1 << 30, 4096),
    });
    assert_eq!(seen[0].anatomy.get(Part::Medium), Span::ZERO);
    assert!(seen[1].anatomy.get(Part::Medium) > Span::ZERO);
}

#[test]
fn streams_side_by_side_are_read_ahead() {
    let stream = |read_ahead: u64| {
        let mut config = large();
        config.buffer.read_ahead = read_ahead;
        let mut disk = Hdd::new(config.clone(), 1);
        let seen = closed(&mut disk, 2, 4000, |id| {
            let (which, at) = (u64::from(id % 2), u64::from(id / 2));
            Command::read(
                id,
                which * (config.bytes / 2 / 4096 * 4096) + at * 65_536,
                65_536,
            )
        });
        rate(&seen) * 65_536.0
    };
    let (without, with) = (stream(0), stream(512 << 10));
    assert!(with > 3.0 * without, "{with} against {without}");
}

/// A command of a stream that other commands of the stream overtake would wait until the maximum time of the queue.
#[test]
fn deep_sequential_streams_are_served_in_their_order() {
    let rates = [1, 8, 32].map(|depth| {
        let mut config = large();
        config.disk.read_retry = 0.001;
        let mut disk = Hdd::new(config, 1);
        let bytes: u32 = 128 << 10;
        let seen = closed(&mut disk, depth, 8000, |id| {
            Command::read(id, u64::from(id) * u64::from(bytes), bytes)
        });
        let slowest = seen.iter().map(Seen::latency).fold(0.0, f64::max);
        assert!(slowest < 0.1, "{slowest} s at a depth of {depth}");
        rate(&seen)
    });
    assert!(rates.iter().all(|it| *it > 0.95 * rates[0]), "{rates:?}");
}

#[test]
fn writes_are_acknowledged_until_the_cache_is_full() {
    let config = large();
    let mut place = anywhere(config.bytes);
    let mut disk = Hdd::new(config.clone(), 1);
    let seen = closed(&mut disk, 1, 20_000, |id| Command::write(id, place(), 4096));
    let room = config.buffer.writes as usize;
    assert!(seen[..room].iter().all(|it| it.latency() < 0.001));
    let cached = rate(&seen);
    assert!(
        seen[room + 1..]
            .iter()
            .any(|it| it.anatomy.get(Part::BufferFull) > Span::ZERO)
    );
    let mut through = config;
    through.write_cache = false;
    let mut disk = Hdd::new(through, 1);
    let seen = closed(&mut disk, 1, 5000, |id| Command::write(id, place(), 4096));
    // Out of many commands the one with the shortest positioning time is chosen.
    assert!(
        cached > 2.5 * rate(&seen),
        "{cached} against {}",
        rate(&seen)
    );
}

#[test]
fn a_flush_waits_for_what_was_written_before_it() {
    let config = large();
    let mut place = anywhere(config.bytes);
    let mut disk = Hdd::new(config.clone(), 1);
    let seen = closed(&mut disk, 1, 102, |id| match id {
        101 | 102 => Command::flush(id),
        _ => Command::write(id, place(), 4096),
    });
    let (flush, again) = (&seen[100], &seen[101]);
    assert!(flush.latency() > 0.1, "{flush:?}");
    assert_eq!(
        again.anatomy.total(),
        config.controller.command + config.link.delay
    );
    let mut lost = Vec::new();
    disk.at_risk(&mut lost);
    assert!(lost.is_empty());
    // Meanwhile a stream of reads continues.
    let mut disk = Hdd::new(config, 1);
    let seen = closed(&mut disk, 16, 2000, |id| match id {
        1..=100 => Command::write(id, place(), 4096),
        101 => Command::flush(id),
        _ => Command::read(id, place(), 4096),
    });
    let longest = seen.iter().map(Seen::latency).fold(0.0, f64::max);
    assert!(longest < 3.0, "{longest}");
}

#[test]
fn nobody_waits_for_much_longer_than_anyone_may() {
    let config = large();
    let mut near = anywhere(1 << 30);
    let mut disk = Hdd::new(config.clone(), 1);
    // All except a few are near each other.
    let seen = closed(&mut disk, 32, 40_000, |id| match id % 500 {
        0 => Command::read(id, config.bytes - near() - 4096, 4096),
        _ => Command::read(id, near(), 4096),
    });
    let longest = seen.iter().map(Seen::latency).fold(0.0, f64::max);
    let oldest = config.queue.oldest.seconds();
    assert!(longest < oldest + 0.2, "{longest}");
}

#[test]
fn streams_share_the_disk() {
    let config = large();
    let mut disk = Hdd::new(config.clone(), 1);
    let mut at = [0; 4];
    let seen = closed(&mut disk, 16, 8000, |id| {
        let stream = (id % 4) as usize;
        at[stream] += 131_072;
        let base = config.bytes / 4 / 4096 * 4096 * stream as u64;
        Command::read(id, base + at[stream], 131_072)
    });
    let longest = seen.iter().map(Seen::latency).fold(0.0, f64::max);
    // Three other streams, some revolutions each, and the seeks to them.
    assert!(longest < 0.5, "{longest}");
    // The streams alternate strictly, so that each stops while the others catch up.
    let share = rate(&seen) * 131_072.0 / config.disk.outer as f64;
    assert!(share > 0.3, "{share}");
}

#[test]
fn small_writes_in_order_join() {
    let config = large();
    let mut disk = Hdd::new(config.clone(), 1);
    let seen = closed(&mut disk, 4, 100_000, |id| {
        Command::write(id, u64::from(id - 1) * 512, 512)
    });
    // Sectors of 4096 written one by one would take two revolutions each.
    let found = rate(&seen) * 512.0;
    assert!(found > 10e6, "{found}");
}

#[test]
fn power_comes_back_with_the_platters() {
    let config = large();
    let mut place = anywhere(config.bytes);
    let mut disk = Hdd::new(config.clone(), 1);
    for id in 0..50 {
        disk.submit(Time::ZERO, Command::write(id, place(), 4096));
    }
    let (mut now, mut done) = (Time::ZERO, Vec::new());
    while done.len() < 50 {
        now = disk.next_event();
        disk.advance(now, now, &mut done);
    }
    let mut lost = Vec::new();
    let back = disk.power_cut(now, &mut lost);
    assert_eq!(back.since(now), config.spin_up);
    assert!((40..=50).contains(&lost.len()), "{}", lost.len());
    assert_eq!(disk.next_event(), Time::NEVER);
    let seen = one_by_one(&mut disk, back, 10, |id| Command::read(id, place(), 4096));
    assert!(seen.iter().all(|it| it.latency() < 0.1));
}
