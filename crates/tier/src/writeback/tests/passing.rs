//! Writes that bypass the buffer, and their cost.

use model::command::{Command, Op};

use super::client::{Client, client, random_write};
use super::*;

fn passing(law: BypassPolicy) -> WriteBackConfig {
    WriteBackConfig {
        passing: Some(law),
        ..small()
    }
}

/// A client of a small cache that destages late.
fn filling(law: BypassPolicy) -> Client {
    let mut config = passing(law);
    config.destage.from = 0.95;
    config.destage.hurry = 1.0;
    client(config, &[ram(4 * MIB), slow(64 * MIB, 20)])
}

/// A write of 64 KiB to the backing drive (100 us, 10 GB/s), followed by a record that is only a header.
#[test]
fn what_is_in_order_passes_beyond_its_limit_and_takes_two_writes() {
    let law = BypassPolicy {
        sequential: MIB,
        ..BypassPolicy::NONE
    };
    let mut client = client(passing(law), &[ram(16 * MIB), slow(64 * MIB, 100)]);
    client.alone(Command::write(0, 2 * MIB, UNIT));
    for index in 0..64 {
        let done = client.alone(Command::write(0, index * 65536, 65536));
        let passes = index >= 16;
        let passed = client.gauge(Gauge::PassedBytes);
        assert_eq!(passed, (index.saturating_sub(15) * 65536) as f64);
        let behind = Span::from_us(100) + Span::per_bytes(100, 65536);
        let header = Span::from_us(1) + Span::per_bytes(100, u64::from(UNIT));
        let takes = done.anatomy.total();
        assert_eq!(takes == behind + header, passes, "{index}: {takes:?}");
        assert!(passes || takes < Span::from_us(30));
    }
    // Bypassed data is read from the backing drive, including units that were in the buffer before.
    let missed = client.gauge(Gauge::MissBytes);
    client.alone(Command::read(0, 2 * MIB, UNIT));
    assert_eq!(client.gauge(Gauge::MissBytes) - missed, f64::from(UNIT));
    let hit = client.gauge(Gauge::HitBytes);
    client.alone(Command::read(0, 0, UNIT));
    assert_eq!(client.gauge(Gauge::HitBytes) - hit, f64::from(UNIT));
    // Partial units do not bypass.
    let before = client.gauge(Gauge::PassedBytes);
    client.alone(Command::write(0, 64 * 65536, 512));
    assert_eq!(client.gauge(Gauge::PassedBytes), before);
}

/// Dirty data reaches its limit: there is one for writes with force unit access, and one for the others.
#[test]
fn all_pass_while_too_much_is_dirty() {
    for (fua, limit) in [(false, 0.4), (true, 0.7)] {
        let law = BypassPolicy {
            from: 0.4,
            fua_from: 0.7,
            ..BypassPolicy::NONE
        };
        let mut client = filling(law);
        // Seven units after each header.
        client.run(1, 160, |stream, _| Command {
            fua,
            bytes: 7 * UNIT,
            ..random_write(stream, 60 * MIB)
        });
        let dirty = client.gauge(Gauge::DirtyBytes) / (4 * MIB) as f64;
        assert!((dirty - limit).abs() < 0.02, "{dirty} {limit}");
        assert_eq!(client.gauge(Gauge::DestagedBytes), 0.0);
        let taken = client.gauge(Gauge::DirtyBytes) + client.gauge(Gauge::AbsorbedBytes);
        let passed = client.gauge(Gauge::PassedBytes);
        assert_eq!(passed + taken, 1120.0 * f64::from(UNIT));
        assert!(passed > 0.4 * taken);
    }
}

#[test]
fn what_is_written_has_passed_or_is_dirty_or_was_destaged_or_absorbed() {
    let law = BypassPolicy {
        from: 0.1,
        ..BypassPolicy::NONE
    };
    let mut client = client(passing(law), &[ram(2 * MIB), slow(64 * MIB, 20)]);
    client.run(16, 20_000, |stream, index| match index % 50 {
        0 => Command::new(0, Op::Deallocate, stream.uniform_below(512) * 4096, 65536),
        _ => random_write(stream, 4 * MIB),
    });
    let written = client.gauge(Gauge::HostBytesWritten);
    let passed = client.gauge(Gauge::PassedBytes);
    assert!(passed > 0.01 * written && passed < 0.99 * written);
    // Units that a bypassing write overwrites count as absorbed.
    let parts = [
        Gauge::DirtyBytes,
        Gauge::DestagedBytes,
        Gauge::AbsorbedBytes,
    ];
    let sum: f64 = parts.iter().map(|&part| client.gauge(part)).sum();
    assert_eq!(sum + passed, written);
}

/// Open CAS's nhit with 3: the third write of a unit is admitted, and so are writes with a unit in the buffer.
#[test]
fn what_is_missed_passes_until_it_has_come_often_enough() {
    let law = BypassPolicy {
        fill_at_miss: 3,
        ..BypassPolicy::NONE
    };
    let mut client = client(passing(law), &[ram(16 * MIB), slow(64 * MIB, 100)]);
    let mut passes = |offset: u64, bytes: u32| {
        let before = client.gauge(Gauge::PassedBytes);
        client.alone(Command::write(0, offset, bytes));
        client.gauge(Gauge::PassedBytes) > before
    };
    for (time, expected) in [true, true, false, false].into_iter().enumerate() {
        assert_eq!(passes(MIB, UNIT), expected, "time {time}");
    }
    // One of its units is in the buffer, so it is admitted; the other unit is then in the buffer, too.
    assert!(!passes(MIB, 2 * UNIT));
    assert!(!passes(MIB + u64::from(UNIT), UNIT));
    // Each unit must have been written three times.
    assert!(passes(2 * MIB, UNIT));
    assert!(passes(2 * MIB, 2 * UNIT));
    assert!(passes(2 * MIB, 2 * UNIT));
    assert!(!passes(2 * MIB, 2 * UNIT));
    // Partial units do not bypass.
    assert!(!passes(3 * MIB, 512));
}

/// Below the fill threshold every write is admitted at once.
#[test]
fn misses_count_from_some_fill_on() {
    let law = BypassPolicy {
        fill_at_miss: 2,
        fill_from: 0.5,
        ..BypassPolicy::NONE
    };
    let mut client = filling(law);
    client.run(1, 150, |_, index| {
        Command::write(0, u64::from(index * 7 * UNIT), 7 * UNIT)
    });
    // Seven units after each header; bypassing writes take a header.
    let dirty = client.gauge(Gauge::DirtyBytes) / (4 * MIB) as f64;
    assert!((0.4..0.5).contains(&dirty), "{dirty}");
    let all = 150.0 * 7.0 * f64::from(UNIT);
    let passed = client.gauge(Gauge::PassedBytes);
    assert_eq!(passed + client.gauge(Gauge::DirtyBytes), all);
}

/// A bypassing stream does not count as misses: the counts of its units begin with their first write outside of it.
#[test]
fn what_passes_in_order_is_no_miss() {
    let law = BypassPolicy {
        sequential: MIB,
        fill_at_miss: 2,
        ..BypassPolicy::NONE
    };
    let mut client = client(passing(law), &[ram(16 * MIB), slow(64 * MIB, 100)]);
    for index in 0..32 {
        client.alone(Command::write(0, index * 65536, 65536));
    }
    assert_eq!(client.gauge(Gauge::PassedBytes), (2 * MIB) as f64);
    // Random order: one unit that the stream wrote beyond its limit and one before it.
    for (offset, passes) in [(3 * MIB / 2, true), (3 * MIB / 2, false), (MIB / 2, false)] {
        let before = client.gauge(Gauge::PassedBytes);
        client.alone(Command::write(0, offset, UNIT));
        assert_eq!(
            client.gauge(Gauge::PassedBytes) > before,
            passes,
            "{offset}"
        );
    }
}
