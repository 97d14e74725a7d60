//! Filling and emptying of the buffer, and the effect on writes.

use model::anatomy::Part;
use model::command::{Command, Completion, Op, Status};

use super::client::{client, random_write};
use super::*;

/// Returns the time of one command of `bytes` bytes on a drive with 1 us and 10 GB/s.
fn fast(bytes: u32) -> Span {
    Span::from_us(1) + Span::per_bytes(100, bytes.into())
}

#[test]
fn a_write_takes_what_its_record_takes_and_a_read_of_it_comes_from_the_cache() {
    let mut client = client(small(), &[ram(8 * MIB), slow(64 * MIB, 100)]);
    let write = client.alone(Command::write(0, 40960, UNIT));
    assert_eq!(write.anatomy.total(), fast(2 * UNIT));
    let hit = client.alone(Command::read(0, 40960, UNIT));
    assert_eq!(hit.anatomy.total(), fast(UNIT));
    let miss = client.alone(Command::read(0, 0, UNIT));
    assert!(miss.anatomy.total() > Span::from_us(100));
    // Both: the time of the longer one.
    let both = client.alone(Command::read(0, 36864, 3 * UNIT));
    assert!(both.anatomy.total() > Span::from_us(100));
    let bytes = (
        client.gauge(Gauge::HitBytes),
        client.gauge(Gauge::MissBytes),
    );
    assert_eq!(bytes, (8192.0, 12288.0));
    // A partial unit: the rest is read, then all of it is written.
    let part = client.alone(Command::write(0, 40960, 512));
    assert_eq!(part.anatomy.total(), fast(UNIT) + fast(2 * UNIT));
}

#[test]
fn writes_that_come_while_a_record_is_under_way_share_the_next() {
    let mut client = client(small(), &[ram(8 * MIB), slow(64 * MIB, 100)]);
    let mut done = Vec::new();
    for id in 0..7 {
        let command = Command::write(id, u64::from(id) * 8192, UNIT);
        client.pool.submit(Time::ZERO, command);
    }
    while client.pool.next_event() < Time::NEVER {
        let next = client.pool.next_event();
        client.pool.advance(next, next, &mut done);
    }
    let at: Vec<u64> = done.iter().map(|it| it.at.ns()).collect();
    let first = fast(2 * UNIT).ns();
    let second = first + fast(7 * UNIT).ns();
    assert_eq!(at[0], first);
    assert_eq!(at[1..], [second; 6]);
    assert_eq!(done[1].anatomy.get(Part::Tier).ns(), first);
}

#[test]
fn what_is_written_is_dirty_or_was_destaged_or_absorbed() {
    let mut client = client(small(), &[ram(2 * MIB), slow(64 * MIB, 20)]);
    for span in [MIB / 4, 32 * MIB] {
        client.run(16, 20_000, |stream, index| match index % 50 {
            0 => Command::new(
                0,
                Op::Deallocate,
                stream.uniform_below(span / 8192) * 4096,
                65536,
            ),
            _ => random_write(stream, span),
        });
        let written = client.gauge(Gauge::HostBytesWritten);
        let parts = [
            Gauge::DirtyBytes,
            Gauge::DestagedBytes,
            Gauge::AbsorbedBytes,
        ];
        let sum: f64 = parts.iter().map(|&part| client.gauge(part)).sum();
        assert_eq!(sum, written);
    }
}

#[test]
fn overwrites_are_absorbed_by_a_buffer_that_holds_them() {
    let mut client = client(small(), &[ram(16 * MIB), slow(64 * MIB, 20)]);
    client.run(16, 50_000, |stream, _| random_write(stream, MIB));
    let written = client.gauge(Gauge::HostBytesWritten);
    assert!(client.gauge(Gauge::DestagedBytes) < 0.01 * written);
    assert!(client.gauge(Gauge::AbsorbedBytes) > 0.98 * written);
}

#[test]
fn destaging_begins_at_its_share_and_stops_below_it() {
    let mut client = client(small(), &[ram(8 * MIB), slow(64 * MIB, 20)]);
    // 29 % of the ring, with a header for each record of 8 units.
    client.run(1, 290, |_, index| {
        Command::write(0, u64::from(index) * 32768, 4096)
    });
    client.settle();
    assert_eq!(client.gauge(Gauge::DestagedBytes), 0.0);
    client.run(1, 400, |_, index| {
        Command::write(0, MIB * 12 + u64::from(index) * 32768, 4096)
    });
    client.settle();
    let (dirty, destaged) = (
        client.gauge(Gauge::DirtyBytes),
        client.gauge(Gauge::DestagedBytes),
    );
    assert!(destaged > 0.0);
    // One header per unit: half of 30 % of the ring, except for a segment.
    let half = 0.15 * 8.0 * MIB as f64;
    assert!((dirty - half).abs() < 65536.0, "{dirty} of {half}");
}

/// Random writes fill the buffer; after that, their rate equals that of the backing drives, whichever mechanism delays
/// them.
#[test]
fn the_steady_rate_is_that_of_destaging_whatever_the_law_of_congestion() {
    let mut rates = Vec::new();
    for us in [50, 100, 150] {
        let config = WriteBackConfig {
            congestion: Congestion {
                delay: Span::from_us(us),
                ..small().congestion
            },
            destage: Destage {
                round: 1 << 20,
                ..small().destage
            },
            ..small()
        };
        let drives = [ram(16 * MIB), slow(2048 * MIB, 20)];
        let mut client = client(config, &drives);
        let span = 2000 * MIB;
        let (full_speed, _) = client.rates(64, 2000, span);
        client.rates(64, 10_000, span);
        let (congested, level) = client.run(64, 2000, |stream, _| random_write(stream, span));
        assert!(congested > Span::ZERO && level > 0.0);
        let (written, destaged) = client.rates(64, 40_000, span);
        assert!(
            (written / destaged - 1.0).abs() < 0.03,
            "{written} {destaged}"
        );
        // A drive with one server of 20 us and 0.41 us of transfer.
        let behind = f64::from(UNIT) / 20.41e-6;
        assert!((written / behind - 1.0).abs() < 0.03, "{written} {behind}");
        assert!(full_speed > 4.0 * written);
        rates.push(written);
    }
    for rate in &rates {
        assert!((rate / rates[1] - 1.0).abs() < 0.02, "{rates:?}");
    }
}

#[test]
fn without_a_limit_there_is_no_pressure() {
    let drives = [ram(64 * MIB), slow(2048 * MIB, 20)];
    let limits = [u64::MAX, 8 * MIB].map(|buffer_limit| {
        let config = WriteBackConfig {
            buffer_limit,
            ..small()
        };
        let mut client = client(config, &drives);
        client.run(16, 8000, |stream, _| random_write(stream, 2000 * MIB))
    });
    assert_eq!(limits[0], (Span::ZERO, 0.0));
    assert!(limits[1].0 > Span::ZERO && limits[1].1 > 200.0);
}

/// The fuller the buffer is, the faster rounds follow each other.
#[test]
fn pauses_end_where_the_buffer_is_in_a_hurry() {
    let config = WriteBackConfig {
        destage: Destage {
            pause: Span::from_ms(20),
            ..small().destage
        },
        ..small()
    };
    let drives = [ram(16 * MIB), slow(2048 * MIB, 20)];
    let span = 2000 * MIB;
    let mut client = client(config, &drives);
    // Few writes: destaging pauses nearly all of the time, and keeps up.
    client.run(1, 1500, |stream, _| random_write(stream, span));
    client.run(64, 12_000, |stream, _| random_write(stream, span));
    let (written, destaged) = client.rates(64, 20_000, span);
    assert!(
        (written / destaged - 1.0).abs() < 0.03,
        "{written} {destaged}"
    );
    let behind = f64::from(UNIT) / 20.41e-6;
    assert!(destaged > 0.9 * behind, "{destaged} of {behind}");
    // Without load it is slow: 20 ms per round near 30 %.
    let before = client.now;
    client.settle();
    assert!(client.now.since(before) > Span::from_ms(200));
}

#[test]
fn neighbours_move_together() {
    let mut client = client(small(), &[ram(8 * MIB), slow(64 * MIB, 20)]);
    // Sequential from the end to the beginning: sorted, they form consecutive runs.
    client.run(4, 2000, |_, index| {
        Command::write(0, u64::from(1999 - index) * u64::from(UNIT), UNIT)
    });
    client.settle();
    let destaged = client.gauge(Gauge::DestagedBytes);
    let busy = client.gauge(Gauge::ControllerBusySeconds);
    let writes = destaged / 65536.0;
    // If each unit were written separately, that alone would take 20 us per unit.
    assert!(busy < 4.0 * writes * 20e-6 + 2000.0 * 10e-6, "{busy}");
    assert!(writes > 10.0);
}

#[test]
fn a_pool_may_start_with_a_buffer_in_use() {
    let config = WriteBackConfig {
        start: 0.3,
        ..small()
    };
    let mut client = client(config.clone(), &[ram(8 * MIB), slow(64 * MIB, 20)]);
    let dirty = client.gauge(Gauge::DirtyBytes);
    let share = dirty / (8 * MIB) as f64;
    assert!((0.24..0.3).contains(&share), "{share}");
    assert_eq!(client.pool.next_event(), Time::NEVER);
    client.run(1, 40, |_, index| {
        Command::write(0, MIB * 40 + u64::from(index) * 32768, UNIT)
    });
    client.settle();
    assert!(client.gauge(Gauge::DestagedBytes) > 0.0);
    // Above its mark: it destages at once. A drive smaller than that is dirty everywhere, and no more.
    for drive in [64 * MIB, MIB] {
        let full = WriteBackConfig {
            start: 1.0,
            ..config.clone()
        };
        let mut client = self::client(full, &[ram(8 * MIB), slow(drive, 20)]);
        let before = client.gauge(Gauge::DirtyBytes);
        client.settle();
        match drive {
            // Everything except its labels.
            MIB => assert_eq!(before, (MIB - 8192) as f64),
            _ => assert!(client.gauge(Gauge::DestagedBytes) > 0.5 * before),
        }
    }
}

#[test]
fn what_was_acknowledged_is_read_from_the_cache_after_a_power_cut() {
    let mut client = client(small(), &[ram(8 * MIB), slow(64 * MIB, 100)]);
    client.alone(Command::write(0, 0, UNIT));
    client
        .pool
        .submit(client.now, Command::write(1, 8192, UNIT));
    let mut lost = Vec::new();
    client.now = client.pool.power_cut(client.now, &mut lost);
    assert!(lost.is_empty());
    let is_hit = |it: Completion| it.anatomy.total() == fast(UNIT);
    assert!(is_hit(client.alone(Command::read(0, 0, UNIT))));
    assert!(!is_hit(client.alone(Command::read(0, 8192, UNIT))));
    assert_eq!(
        client.alone(Command::write(0, 8192, UNIT)).status,
        Status::Success
    );
}
