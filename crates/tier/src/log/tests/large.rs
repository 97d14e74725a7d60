//! Writes that are larger than the memory for dirty data, or than the free space of the main pool.

use super::*;
use crate::laws::gives_what_was_written;

/// Main pool of 64 MiB with as little free space as is accepted.
fn tight() -> IntentLogConfig {
    IntentLogConfig {
        size: 52 * MIB,
        ram: 10 * MIB,
        ..config()
    }
}

/// Executes writes from 1 MiB to 16 MiB, aligned and not; returns their statuses.
fn large_writes(logs: usize, depth: usize, most_bytes: Option<u64>) -> Vec<Status> {
    let config = pool(&tight(), logs);
    let mut tiers = config.build_tiers();
    if let (Some(most), Some(AnyTier::IntentLog(log))) = (most_bytes, tiers.first_mut()) {
        log.most_bytes = most;
    }
    let members = config.members.iter();
    let members = members.map(|it| it.drive.build(Precondition::Fresh, 1));
    let mut pool = Pool::resume(&config, members.collect(), tiers, ());
    let capacity = pool.capacity().bytes;
    let count = 8 * depth as u64 + 8;
    let writes = (0..count).map(|it| {
        let bytes = MIB << (it % 5);
        let unit = if it % 2 == 0 { 128 * KIB } else { 512 };
        let at = it * 7919 * unit % (capacity - bytes) / unit * unit;
        Command {
            fua: it % 3 == 0,
            ..Command::write(it as u32, at, bytes as u32)
        }
    });
    let (mut now, mut ended) = (Time::ZERO, Vec::new());
    for (submitted, command) in writes.enumerate() {
        pool.submit(now, command);
        while submitted + 1 - ended.len() >= depth && now != Time::NEVER {
            now = pool.next_event();
            if now != Time::NEVER {
                pool.advance(now, now, &mut ended);
            }
        }
    }
    while pool.next_event() != Time::NEVER && (ended.len() as u64) < count {
        now = pool.next_event();
        pool.advance(now, now, &mut ended);
    }
    assert_eq!(ended.len() as u64, count, "they wait for ever");
    ended.iter().map(|it| it.status).collect()
}

#[test]
fn a_write_larger_than_the_free_space_succeeds() {
    for logs in 0..2 {
        for depth in [1, 64] {
            let ended = large_writes(logs, depth, None);
            let failed = ended.iter().filter(|it| **it != Status::Success).count();
            assert_eq!(failed, 0, "{logs} logs, depth {depth}");
        }
    }
    // As a whole, such a write makes the volume read-only.
    let ended = large_writes(1, 1, Some(1 << 40));
    assert!(ended.contains(&Status::WriteFault));
}

#[test]
fn a_large_synced_write_is_acknowledged_when_all_parts_are_durable() {
    for logs in 0..2 {
        let mut pool = pool(&tight(), logs).build(Precondition::Fresh, 1);
        let mut now = Time::ZERO;
        for offset in (0..12).map(|it| it * 3 * MIB + 512) {
            pool.submit(now, sync(offset, 16 * MIB));
            let mut ended = Vec::new();
            while ended.is_empty() {
                now = pool.next_event();
                pool.advance(now, now, &mut ended);
            }
            assert_eq!(ended[0].status, Status::Success);
            let mut at_risk = Vec::new();
            pool.at_risk(&mut at_risk);
            assert_eq!(at_risk, [], "{logs} logs, offset {offset}");
        }
    }
}

/// With data: each part has its own. A power cut loses no part of a synced write.
#[test]
fn a_read_gives_what_was_written_in_parts() {
    for logs in 0..2 {
        let tier = IntentLogConfig {
            size: MIB,
            ram: 10 * 2 * 4096,
            record: 4096,
            run: 64 << 10,
            txg: Span::from_us(900),
            ..config()
        };
        let mut drives = vec![ram(8 * MIB, 30)];
        drives.resize(1 + logs, ram(300 * KIB, 3));
        gives_what_was_written(&of_drives(&tier, &drives));
        holds_the_laws(&of_drives(&tier, &drives));
    }
}
