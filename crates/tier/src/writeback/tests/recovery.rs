//! A ring is recovered from its media as acknowledged; rings that are invalid, or have lost guaranteed data, are
//! reported.

use alloc::vec;

use proptest::prelude::*;

use model::command::{Command, Op, Status};
use model::data::{Buffers, Contents, Image, Unreadable, Unwritable};

use super::*;
use crate::offline::{self, Damage, Images, RecoveryFinding};
use crate::rig::{POOL, Rig, at, made, recovered, recovered_with_loss};
use crate::shelf::Shelf;
use crate::writeback::CACHE;

fn config(durability: Durability) -> PoolConfig<DriveConfig> {
    let config = WriteBackConfig {
        durability,
        segment: 32 << 10,
        buffer_limit: 256 << 10,
        ..small()
    };
    group(config, &[ram(2 * MIB), ram(MIB), ram(MIB)])
}

/// Returns the offset of the record with this number, if each record contains one unit, in the first round.
fn record(number: u64) -> u64 {
    // With eight slots per segment, four records of two slots each.
    4 * u64::from(UNIT) + (number - 1) * 2 * u64::from(UNIT)
}

#[test]
fn what_was_acknowledged_is_found_again_through_many_rounds_and_restarts() {
    for durability in [Durability::Ack, Durability::Flush] {
        let config = config(durability);
        let mut shelf = made(&config);
        let mut wrapped = false;
        for life in 0..12_u8 {
            let (mut rig, found) = Rig::on(&config, &mut shelf);
            let rounds = found.iter().map(|it| match it {
                RecoveryFinding::Replayed { rounds, .. } => *rounds,
                _ => 0,
            });
            wrapped |= rounds.max() > Some(0);
            for write in 0..17 {
                let unit = (u64::from(life) * 7 + write * 5) % 90;
                assert_eq!(rig.write(unit, life + 1), Status::Success);
            }
            let trim = Command::new(0, Op::Deallocate, 0, 2 * UNIT);
            assert_eq!(rig.ask(trim), Status::Success);
            shelf = rig.shelf();
        }
        assert!(wrapped);
        // The last epoch that wrote it, by the same rule.
        for unit in 2..90 {
            let wrote = |life: &u64| (0..17).any(|write| (life * 7 + write * 5) % 90 == unit);
            let last = (0..12).rev().find(wrote).map_or(0, |life| life as u8 + 1);
            assert_eq!(at(&config, &shelf, unit), last, "{unit}");
        }
        assert_eq!((at(&config, &shelf, 0), at(&config, &shelf, 1)), (0, 0));
    }
}

#[test]
fn parts_of_units_are_found_again() {
    let config = config(Durability::Ack);
    let (mut rig, _) = Rig::on(&config, &mut made(&config));
    let payload = rig.bytes.take(5 * 512);
    rig.bytes.put(payload, &vec![3; 5 * 512]);
    let status = rig.ask(Command {
        payload,
        ..Command::write(0, 12 * 512, 5 * 512)
    });
    assert_eq!(status, Status::Success);
    let mut shelf = rig.shelf();
    let (_, found) = Rig::on(&config, &mut shelf);
    let replayed = RecoveryFinding::Replayed {
        through: 1,
        records: 1,
        dropped: 0,
        rounds: 0,
    };
    assert_eq!(found, [replayed]);
    assert_eq!(at(&config, &shelf, 2), 3);
}

#[test]
fn a_durable_record_that_is_missing_is_told_and_nothing_is_written() {
    let config = config(Durability::Ack);
    let (mut rig, _) = Rig::on(&config, &mut made(&config));
    for unit in 0..4 {
        rig.write(unit, 7);
    }
    let mut shelf = rig.shelf();
    shelf.images[0]
        .zero(record(2), 512)
        .expect("it is in memory");
    let before = shelf.clone();
    let (mut rig, found) = Rig::on(&config, &mut shelf);
    // The fourth states that the third was durable; no record states that of the fourth.
    let replayed = RecoveryFinding::Replayed {
        through: 1,
        records: 1,
        dropped: 2,
        rounds: 0,
    };
    assert_eq!(found, [replayed, RecoveryFinding::Lost(2)]);
    assert_eq!(rig.write(9, 1), Status::WriteFault);
    let same = |it: (&Image, &Image)| it.0.same(it.1, 0, 2 * MIB);
    assert!(shelf.images.iter().zip(&before.images).all(same));
    assert_eq!(at(&config, &shelf, 0), 7);
    assert_eq!(at(&config, &shelf, 1), 0);
}

#[test]
fn a_record_that_cannot_be_read_is_told_until_loss_is_accepted() {
    let config = config(Durability::Ack);
    let (mut rig, _) = Rig::on(&config, &mut made(&config));
    for unit in 0..4 {
        rig.write(unit, 7);
    }
    let shelf = rig.shelf();
    // The header of the last record, and its data: no later record states that it was durable.
    for place in [record(4), record(4) + u64::from(UNIT)] {
        let mut shelf = shelf.clone();
        shelf.images[0].spoil(place, 512);
        let (mut rig, found) = Rig::on(&config, &mut shelf);
        assert!(found.contains(&RecoveryFinding::Unread(CACHE)), "{found:?}");
        assert_eq!(rig.write(9, 1), Status::WriteFault);
        assert_eq!(at(&config, &shelf, 2), 7);
        let found = recovered_with_loss(&config, &mut shelf).found;
        assert!(
            found
                .iter()
                .any(|it| it.1 == RecoveryFinding::Unread(CACHE))
        );
        let (mut rig, found) = Rig::on(&config, &mut shelf);
        assert!(
            !found.contains(&RecoveryFinding::Unread(CACHE)),
            "{found:?}"
        );
        assert_eq!(
            (rig.write(9, 1), at(&config, &shelf, 2)),
            (Status::Success, 7)
        );
    }
}

/// Images that count reads.
struct Counting {
    shelf: Shelf,
    reads: u32,
}

impl Images for Counting {
    fn present(&self, member: u16) -> bool {
        self.shelf.present(member)
    }
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.reads += 1;
        self.shelf.read(member, at, into)
    }
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        self.shelf.write(member, at, data)
    }
    fn sync(&mut self, member: u16) -> Result<(), Unwritable> {
        self.shelf.sync(member)
    }
}

#[test]
fn recovery_of_a_large_ring_reads_a_part_of_it() {
    let ring = WriteBackConfig {
        segment: 512 << 10,
        buffer_limit: 8 << 30,
        ..small()
    };
    let config = group(ring, &[ram(8 << 30), ram(MIB)]);
    let mut images = Counting {
        shelf: made(&config),
        reads: 0,
    };
    assert!(offline::recover(&config, POOL, &mut images).is_ok());
    // 64 MiB by block, then the rest of 4 GiB by segment; some more for a segment at the border, superblocks and labels.
    let searched = (64 << 20) / 4096 + (4096 - 64) * 2;
    let reads = images.reads;
    assert!((searched..searched + 256).contains(&reads), "{reads}");
}

#[test]
fn what_an_earlier_crash_left_beyond_its_gap_stays_there() {
    let config = config(Durability::Flush);
    let (mut rig, _) = Rig::on(&config, &mut made(&config));
    for unit in 0..4 {
        rig.write(unit, 7);
    }
    let mut shelf = rig.shelf();
    shelf.images[0]
        .zero(record(2), 512)
        .expect("it is in memory");
    let (mut rig, found) = Rig::on(&config, &mut shelf);
    assert!(matches!(
        found[..],
        [RecoveryFinding::Replayed {
            through: 1,
            dropped: 2,
            ..
        }]
    ));
    // A new second record of equal size: the old third one follows it.
    rig.write(9, 8);
    shelf = rig.shelf();
    let (_, found) = Rig::on(&config, &mut shelf);
    assert!(matches!(
        found[..],
        [RecoveryFinding::Replayed {
            through: 2,
            dropped: 0,
            ..
        }]
    ));
    assert_eq!(at(&config, &shelf, 9), 8);
    assert_eq!(at(&config, &shelf, 2), 0);
}

#[test]
fn what_is_not_this_cache_before_these_drives_is_refused() {
    let config = config(Durability::Ack);
    let new = made(&config);
    let refused = |shelf: &Shelf| {
        let mut shelf = shelf.clone();
        recovered(&config, &mut shelf).err()
    };
    assert_eq!(refused(&new), None);
    assert_eq!(refused(&Shelf::new(3)), Some(Damage::Bare(0)));
    let mut shelf = new.clone();
    shelf.absent = vec![0];
    assert_eq!(refused(&shelf), Some(Damage::Missing(0)));
    let mut shelf = new.clone();
    shelf.images.swap(1, 2);
    assert_eq!(refused(&shelf), Some(Damage::Misplaced(1)));
    let mut shelf = new.clone();
    shelf.images[2] = Image::default();
    assert_eq!(refused(&shelf), Some(Damage::Bare(2)));
    // The others have been started without this copy of the cache, or without this copy of a backing drive.
    let mut started = new.clone();
    recovered(&config, &mut started).expect("it is right");
    let mut shelf = started.clone();
    shelf.images[0] = new.images[0].clone();
    assert_eq!(refused(&shelf), Some(Damage::Outdated(0)));
    let mut other = Shelf::new(3);
    offline::format(&config, POOL + 1, &mut other).expect("all are there");
    let mut shelf = new.clone();
    shelf.images[0] = other.images[0].clone();
    assert_eq!(refused(&shelf), Some(Damage::Foreign(0)));
    let mut shelf = new;
    shelf.images[1] = other.images[1].clone();
    assert_eq!(refused(&shelf), Some(Damage::Foreign(1)));
}

/// Otherwise it would not be durable when its entry has been freed.
#[test]
fn the_tail_waits_for_a_trim_that_is_under_way() {
    let (trim, long) = (Span::from_ms(1), 1000);
    let config = WriteBackConfig {
        segment: 64 << 10,
        destage: Destage {
            from: 0.2,
            ..small().destage
        },
        buffer_limit: 256 << 10,
        ..small()
    };
    let config = group(config, &[ram(2 * MIB), slow(MIB, long)]);
    let mut pool = built(&config);
    pool.record();
    let (mut now, mut done) = (Time::ZERO, Vec::new());
    // Seven records of a unit that is overwritten repeatedly, then the trim: it ends the first segment.
    for _ in 0..7 {
        pool.submit(now, Command::write(0, 0, UNIT));
        done.clear();
        while done.is_empty() {
            let next = pool.next_event();
            now = pool.advance(next, next, &mut done);
        }
    }
    pool.submit(now, Command::new(1, Op::Deallocate, 64 << 10, UNIT));
    pool.submit(now, Command::write(2, 0, UNIT));
    while pool.next_event() != Time::NEVER {
        let next = pool.next_event();
        pool.advance(next, next, &mut done);
    }
    let asked = pool.recorded();
    let first = |op: Op| {
        asked
            .iter()
            .find(|it| it.member == 1 && it.command.op == op)
    };
    let (trimmed, flushed) = (first(Op::Deallocate), first(Op::Flush));
    let (trimmed, flushed) = (trimmed.expect("it is done"), flushed.expect("it is, too"));
    assert!(flushed.at >= trimmed.at + trim);
}

proptest! {
    /// Any content is handled without panic, and a restarted recovery has the same result.
    #[test]
    fn any_bytes_can_be_recovered_from_or_are_refused(
        writes in prop::collection::vec((0u64..200, any::<u8>()), 1..60),
        spoilt in prop::collection::vec((0usize..3, 0u64..(MIB / 512), any::<u8>()), 0..6),
        flush in any::<bool>(),
    ) {
        let config = config(if flush { Durability::Flush } else { Durability::Ack });
        let (mut rig, _) = Rig::on(&config, &mut made(&config));
        for (unit, byte) in writes {
            rig.write(unit, byte);
        }
        let mut shelf = rig.shelf();
        for (member, sector, byte) in spoilt {
            // More often inside the ring.
            let at = if byte % 2 == 0 { sector % 600 } else { sector };
            let _ = shelf.images[member].write(at * 512, &[byte; 512]);
        }
        if let Ok(first) = recovered(&config, &mut shelf) {
            let mut again = shelf.clone();
            let second = recovered(&config, &mut again).expect("it was right before");
            for unit in 0..200 {
                let (mut one, mut two) = ([0; UNIT as usize], [0; UNIT as usize]);
                let place = unit * u64::from(UNIT);
                prop_assert!(first.read(&config, &mut shelf, 0, place, &mut one).is_ok());
                prop_assert!(second.read(&config, &mut again, 0, place, &mut two).is_ok());
                prop_assert_eq!(one, two);
            }
        }
    }
}

/// Written into the ring, or trimmed, and then written by a bypass: the ring must neither restore its data, nor replay
/// the trim.
#[test]
fn what_went_past_the_ring_is_found_again() {
    let mut config = config(Durability::Ack);
    let Kind::WriteBack(cache) = &mut config.tiers[0].kind else {
        panic!("it is one");
    };
    cache.passing = Some(BypassPolicy {
        fua_from: 0.0,
        ..BypassPolicy::NONE
    });
    let (mut rig, _) = Rig::on(&config, &mut made(&config));
    for unit in 0..8 {
        rig.write(unit, 7);
    }
    let trim = Command::new(0, Op::Deallocate, 2 * u64::from(UNIT), 4 * UNIT);
    rig.ask(trim);
    let payload = rig.bytes.take(2 * UNIT);
    rig.bytes.put(payload, &vec![9; 2 * UNIT as usize]);
    let mut past = Command {
        payload,
        fua: true,
        ..Command::write(0, 3 * u64::from(UNIT), 2 * UNIT)
    };
    assert_eq!(rig.ask(past), Status::Success);
    past.payload = rig.bytes.take(UNIT);
    rig.bytes.put(past.payload, &vec![8; UNIT as usize]);
    (past.offset, past.bytes) = (0, UNIT);
    assert_eq!(rig.ask(past), Status::Success);
    assert_eq!(gauge(&rig.pool, rig.now, Gauge::PassedBytes), 12288.0);
    rig.write(1, 6);
    let shelf = rig.shelf();
    let found = [0, 1, 2, 3, 4, 5, 6, 7].map(|unit| at(&config, &shelf, unit));
    assert_eq!(found, [8, 6, 0, 9, 9, 0, 7, 7]);
}
