//! The two marks of dm-writecache, its commits, and its table.

use model::command::Command;

use super::client::{client, random_write};
use super::*;

fn marks() -> WriteBackConfig {
    WriteBackConfig {
        destage: Destage {
            from: WriteBackConfig::DM_WRITECACHE.destage.from,
            band: WriteBackConfig::DM_WRITECACHE.destage.band,
            in_flight: WriteBackConfig::DM_WRITECACHE.destage.in_flight,
            pause: Span::ZERO,
            ..small().destage
        },
        ..small()
    }
}

/// One header per write of a unit: half of the ring is data. Slow writes: destaging ends before the next write.
#[test]
fn the_fill_goes_to_and_fro_between_the_marks() {
    for band in [0.05, 0.0] {
        let mut config = marks();
        config.destage.band = band;
        let ring = (16 * MIB) as f64;
        let mut client = client(config, &[ram(16 * MIB), slow(64 * MIB, 20)]);
        let (mut lowest, mut highest, mut turns, mut before) = (ring, 0.0_f64, 0, 0.0);
        for index in 0..12_000 {
            client.alone(Command::write(0, index * 8192 % (48 * MIB), UNIT));
            client.settle();
            let used = 2.0 * client.gauge(Gauge::DirtyBytes);
            if index > 3000 {
                (lowest, highest) = (lowest.min(used), highest.max(used));
                turns += u32::from(used < before);
            }
            before = used;
        }
        let (low, high) = (lowest / ring, highest / ring);
        // A segment of 1/256 is the unit of freeing.
        let segment = 1.0 / 256.0 + 0.001;
        assert!((high - 0.5).abs() < segment, "{band}: {high}");
        assert!((low - (0.5 - band)).abs() < 2.0 * segment, "{band}: {low}");
        // 9000 pairs of slots: each turn frees the band, or a segment.
        let each = (band * 4096.0).max(16.0) / 2.0;
        let expected = 9000.0 / each;
        let ratio = f64::from(turns) / expected;
        assert!((0.8..1.2).contains(&ratio), "{band}: {turns} of {expected}");
    }
}

fn unsafe_bytes(client: &super::client::Client) -> f64 {
    client.gauge(Gauge::BufferedBytes)
}

#[test]
fn what_nobody_flushes_is_committed_by_blocks_and_by_time() {
    let late = WriteBackConfig {
        durability: Durability::Flush,
        commit: Some(CommitPolicy {
            slots: 100,
            after: Span::from_ms(1000),
        }),
        ..small()
    };
    let mut client = client(late.clone(), &[ram(16 * MIB), slow(64 * MIB, 20)]);
    client.alone(Command::write(0, 0, UNIT));
    let begun = client.now;
    assert_eq!(unsafe_bytes(&client), 8192.0);
    client.settle();
    assert_eq!(unsafe_bytes(&client), 0.0);
    let passed = client.now.since(begun);
    assert!(
        passed > Span::from_ms(999) && passed < Span::from_ms(1001),
        "{passed:?}"
    );
    // Two slots each: the 50th write reaches 100 slots.
    for index in 1..60 {
        client.alone(Command::write(0, index * 4096, UNIT));
        client.now += Span::from_us(10);
        let open = unsafe_bytes(&client) / 8192.0;
        assert!(open <= 50.0, "{index}: {open}");
    }
    assert!(unsafe_bytes(&client) < 12.0 * 8192.0);
    // After a client's flush there is nothing to do.
    client.alone(Command::flush(0));
    assert_eq!(unsafe_bytes(&client), 0.0);
    assert_eq!(client.pool.next_event(), Time::NEVER);
    // Without this setting it stays volatile.
    let never = WriteBackConfig {
        commit: None,
        ..late
    };
    let mut client = super::client::client(never, &[ram(16 * MIB), slow(64 * MIB, 20)]);
    client.run(1, 200, |stream, _| random_write(stream, MIB));
    client.settle();
    assert!(unsafe_bytes(&client) > 100.0 * 8192.0);
}

/// A table of one piece for 4,080 slots after the ring.
fn with_table() -> WriteBackConfig {
    WriteBackConfig {
        durability: Durability::Flush,
        table: 64 << 10,
        ..small()
    }
}

/// Returns the bytes written to the cache since the last call.
fn written(client: &super::client::Client, before: &mut f64) -> f64 {
    let all = client.gauge(Gauge::BackBytesWritten);
    all - core::mem::replace(before, all)
}

/// As in the kernel: data (with our header), 64 KiB of table and a superblock for a new block; only data for one that
/// is in the cache; and nothing for a flush without previous writes.
#[test]
fn a_commit_writes_the_pieces_of_the_table_that_changed_and_a_superblock() {
    let mut client = client(with_table(), &[ram(16 * MIB), slow(64 * MIB, 20)]);
    let mut before = 0.0;
    for index in 0..10 {
        client.alone(Command::write(0, index * 8192, UNIT));
        assert_eq!(written(&client, &mut before), 8192.0, "before a flush");
        let from = client.now;
        let flushed = client.alone(Command::flush(0));
        assert_eq!(flushed.anatomy.total(), client.now.since(from));
        assert_eq!(written(&client, &mut before), 65536.0 + 4096.0);
        assert_eq!(unsafe_bytes(&client), 0.0);
    }
    let from = client.now;
    client.alone(Command::flush(0));
    assert_eq!(written(&client, &mut before), 0.0);
    assert_eq!(client.now, from, "there was nothing to make durable");
    for _ in 0..3 {
        client.alone(Command::write(0, 8192, UNIT));
        client.alone(Command::flush(0));
        assert_eq!(written(&client, &mut before), 8192.0, "an overwrite");
        assert_eq!(unsafe_bytes(&client), 0.0);
    }
    // Together: durable when it completes.
    client.alone(Command {
        fua: true,
        ..Command::write(0, 40 << 12, UNIT)
    });
    assert_eq!(written(&client, &mut before), 8192.0 + 65536.0 + 4096.0);
    assert_eq!(unsafe_bytes(&client), 0.0);
}

#[test]
fn nothing_enters_while_a_table_is_written_and_flushes_share_it() {
    let mut client = client(with_table(), &[ram(16 * MIB), slow(64 * MIB, 20)]);
    client.alone(Command::write(0, 0, UNIT));
    let begun = client.now;
    let mut before = client.gauge(Gauge::BackBytesWritten);
    for id in 0..3 {
        client.pool.submit(begun, Command::flush(id));
    }
    client.pool.submit(begun, Command::write(3, 1 << 20, UNIT));
    let mut done = Vec::new();
    while done.len() < 4 {
        let next = client.pool.next_event();
        client.now = client.pool.advance(next, next, &mut done);
    }
    let order: Vec<u32> = done.iter().map(|it| it.id).collect();
    assert_eq!(order, [0, 1, 2, 3]);
    assert_eq!(done[0].at, done[2].at);
    // The second and third had nothing left to do; the write came after the commit.
    assert_eq!(
        written(&client, &mut before),
        65536.0 + 4096.0 + 8192.0,
        "one commit, then a record"
    );
    let waited = done[3].anatomy.get(model::anatomy::Part::Tier);
    assert_eq!(waited, done[2].at.since(begun));
}

/// Slots that a round of destaging frees are written into the table, and the tail in the commit's own superblock.
#[test]
fn destaging_goes_on_with_a_table() {
    let mut client = client(with_table(), &[ram(16 * MIB), slow(64 * MIB, 20)]);
    let mut before = 0.0;
    client.run(4, 20_000, |stream, _| random_write(stream, 48 * MIB));
    client.settle();
    assert!(client.gauge(Gauge::DestagedBytes) > 20.0 * MIB as f64);
    let slots = (16 * MIB / 4096) as f64;
    let used = client.gauge(Gauge::DirtyBytes) / 4096.0;
    assert!(used < 0.32 * slots, "{used} of {slots} slots");
    assert!(written(&client, &mut before) > 20_000.0 * 4096.0);
}
