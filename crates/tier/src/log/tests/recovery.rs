//! A volume is recovered from its media according to its guarantee; volumes that are invalid, or have lost guaranteed
//! data, are reported.

use proptest::prelude::*;

use model::data::{Buffers, Contents, DriveFault, Image};

use super::data::small;
use super::*;
use crate::offline::{self, Damage, RecoveryFinding};
use crate::rig::{POOL, Rig, UNIT, at, made, recovered, recovered_with_loss};
use crate::shelf::Shelf;

/// A main pool and this number of log devices; groups close only by themselves.
fn config(logs: usize) -> PoolConfig<DriveConfig> {
    let tier = IntentLogConfig {
        ram: 10 * MIB,
        txg: Span::from_ms(5000),
        ..small(16 << 10)
    };
    let mut drives = vec![ram(8 * MIB, 30)];
    drives.resize(1 + logs, ram(300 * KIB, 3));
    of_drives(&tier, &drives)
}

#[test]
fn what_was_synced_is_found_again_through_many_lives_and_what_was_not_is_old() {
    for logs in 0..3 {
        let config = config(logs);
        let mut shelf = made(&config);
        let mut last = [0; 90];
        for life in 0..9_u8 {
            let (mut rig, found) = Rig::on(&config, &mut shelf);
            if life > 0 {
                let writes = found.iter().map(|it| match it {
                    RecoveryFinding::Logged { writes, .. } => *writes,
                    _ => 0,
                });
                let expected = if life % 3 == 0 { 0 } else { 9 };
                assert_eq!(writes.sum::<u64>(), expected, "{logs} logs, life {life}");
            }
            for write in 0..9 {
                let unit = (u64::from(life) * 7 + write * 5) % 90;
                assert_eq!(rig.write_through(unit, life + 1), Status::Success);
                last[unit as usize] = life + 1;
            }
            if life % 3 == 2 {
                rig.rest();
            }
            assert_eq!(rig.write(200, life + 1), Status::Success);
            shelf = rig.shelf();
        }
        for (unit, last) in last.iter().enumerate() {
            assert_eq!(at(&config, &shelf, unit as u64), *last, "{unit}");
        }
        assert_eq!(at(&config, &shelf, 200), 0);
    }
}

#[test]
fn large_writes_without_a_log_are_found_where_they_stay() {
    let config = config(0);
    let (mut rig, _) = Rig::on(&config, &mut made(&config));
    for (unit, byte) in [(1, 3), (9, 4), (3, 5)] {
        let bytes = 12 * UNIT;
        let payload = rig.bytes.take(bytes);
        rig.bytes.put(payload, &vec![byte; bytes as usize]);
        let status = rig.ask(Command {
            payload,
            fua: true,
            ..Command::write(0, unit * u64::from(UNIT), bytes)
        });
        assert_eq!(status, Status::Success);
    }
    let found = [0, 1, 2, 3, 14, 15, 20, 21].map(|unit| at(&config, &rig.shelf(), unit));
    assert_eq!(found, [0, 3, 3, 5, 5, 4, 4, 0]);
}

#[test]
fn trims_and_zeroes_are_found_again_logged_or_with_their_group() {
    for rests in [false, true] {
        let config = config(1);
        let (mut rig, _) = Rig::on(&config, &mut made(&config));
        for unit in 0..24 {
            rig.write_through(unit, 7);
        }
        rig.rest();
        let unit = u64::from(UNIT);
        let trim = Command::new(0, Op::Deallocate, 2 * unit, 8 * UNIT);
        assert_eq!(rig.ask(trim), Status::Success);
        let zero = Command::new(0, Op::WriteZeroes, 13 * unit, 8 * UNIT);
        assert_eq!(rig.ask(zero), Status::Success);
        rig.write(5, 8);
        assert_eq!(rig.ask(Command::flush(0)), Status::Success);
        if rests {
            rig.rest();
        }
        // Records of four units: a trim does not affect partial records.
        let found = [2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 19, 20, 21];
        let found = found.map(|unit| at(&config, &rig.shelf(), unit));
        assert_eq!(found, [7, 7, 0, 8, 0, 0, 7, 7, 7, 0, 0, 0, 0, 7]);
    }
}

/// Header and entry take 384 bytes, so a block with one unit takes two.
fn zap(shelf: &mut Shelf, block: u64) {
    let at = (block - 1) * 2 * u64::from(UNIT);
    shelf.images[1].zero(at, 512).expect("it is in memory");
}

#[test]
fn a_durable_block_that_is_missing_is_told_and_nothing_is_written() {
    let config = config(1);
    let (mut rig, _) = Rig::on(&config, &mut made(&config));
    for unit in 0..4 {
        rig.write_through(unit, 7);
    }
    let mut shelf = rig.shelf();
    zap(&mut shelf, 2);
    let before = shelf.clone();
    let (mut rig, found) = Rig::on(&config, &mut shelf);
    // The fourth states that the third was durable; no block states that of the fourth.
    let logged = RecoveryFinding::Logged {
        group: 0,
        blocks: 1,
        writes: 1,
        dropped: 2,
    };
    assert_eq!(found, [logged, RecoveryFinding::Lost(2)]);
    assert_eq!(rig.write_through(9, 1), Status::WriteFault);
    assert_eq!((at(&config, &shelf, 0), at(&config, &shelf, 1)), (7, 0));
    assert_eq!(found, Rig::on(&config, &mut before.clone()).1);
}

#[test]
fn a_block_or_root_that_cannot_be_read_is_told_until_loss_is_accepted() {
    let config = config(1);
    let (mut rig, _) = Rig::on(&config, &mut made(&config));
    for unit in 0..3 {
        rig.write_through(unit, 7);
    }
    let shelf = rig.shelf();
    // The last block: no later one states that it was durable. And the place of the next root.
    let mut block = [0; 4096];
    shelf.images[0]
        .read(0, &mut block)
        .expect("it is in memory");
    let number = layout::Root::decode(&block).expect("a root").number;
    let root = layout::root_at(number + 1, 16 << 10);
    // Under a root in doubt the log is not replayed: a newer root may need the slots.
    let places = [(1, 4 * u64::from(UNIT), 7), (0, root, 0)];
    for (child, at, before) in places {
        let mut shelf = shelf.clone();
        shelf.images[usize::from(child)].spoil(at, 512);
        let (mut rig, found) = Rig::on(&config, &mut shelf);
        assert!(found.contains(&RecoveryFinding::Unread(child)), "{found:?}");
        assert_eq!(rig.write_through(9, 1), Status::WriteFault);
        assert_eq!(self::at(&config, &shelf, 1), before);
        assert_eq!(Rig::on(&config, &mut shelf).1, found);
        let found = recovered_with_loss(&config, &mut shelf).found;
        assert!(
            found
                .iter()
                .any(|it| it.1 == RecoveryFinding::Unread(child))
        );
        assert_eq!(self::at(&config, &shelf, 1), 7);
        let (mut rig, found) = Rig::on(&config, &mut shelf);
        assert!(
            !found.contains(&RecoveryFinding::Unread(child)),
            "{found:?}"
        );
        assert_eq!(rig.write_through(9, 1), Status::Success);
    }
}

#[test]
fn a_referenced_record_that_cannot_be_read_stays_so_at_each_start() {
    let config = config(0);
    let (mut rig, _) = Rig::on(&config, &mut made(&config));
    // The replay of the first write needs a slot; the second one is referenced where it is.
    rig.write_through(1, 3);
    let payload = rig.bytes.take(12 * UNIT);
    rig.bytes.put(payload, &vec![9; 12 * UNIT as usize]);
    let large = Command {
        payload,
        fua: true,
        ..Command::write(0, 16 * u64::from(UNIT), 12 * UNIT)
    };
    assert_eq!(rig.ask(large), Status::Success);
    let mut shelf = rig.shelf();
    let mut record = vec![0; 16 << 10];
    let holds = |slot: &u64| {
        let read = shelf.images[0].read(slot << 14, &mut record);
        read.is_ok() && record.iter().all(|it| *it == 9)
    };
    let slot = (0..500).find(holds).expect("a record of the second write");
    shelf.images[0].spoil(slot << 14, 512);
    let first = Rig::on(&config, &mut shelf).1;
    assert!(first.contains(&RecoveryFinding::Unread(MAIN)), "{first:?}");
    assert_eq!(Rig::on(&config, &mut shelf).1, first);
    assert_eq!(at(&config, &shelf, 1), 3);
}

#[test]
fn what_an_earlier_crash_left_beyond_its_gap_stays_there() {
    let tier = match &config(1).tiers[0].kind {
        Kind::IntentLog(tier) => tier.clone(),
        _ => panic!("it is one"),
    };
    let config = of_drives(&tier, &[ram(8 * MIB, 30), ram(300 * KIB, 40)]);
    let (mut rig, _) = Rig::on(&config, &mut made(&config));
    rig.write_through(0, 7);
    // Two are in flight at the same time: neither states that the other is durable.
    let mut done = Vec::new();
    let start = rig.now;
    for id in [1, 2] {
        let payload = rig.bytes.take(UNIT);
        rig.bytes.put(payload, &vec![7; UNIT as usize]);
        let at = start + Span::from_us(30 * u64::from(id));
        while rig.pool.next_event() <= at {
            let next = rig.pool.next_event();
            rig.pool.advance(next, next, &mut done);
        }
        let command = Command::write(id, u64::from(id) * u64::from(UNIT), UNIT);
        let fua = true;
        rig.pool.submit(
            at,
            Command {
                payload,
                fua,
                ..command
            },
        );
    }
    while done.len() < 2 {
        let next = rig.pool.next_event();
        rig.now = rig.pool.advance(next, next, &mut done);
    }
    let mut shelf = rig.shelf();
    zap(&mut shelf, 2);
    let (mut rig, found) = Rig::on(&config, &mut shelf);
    assert!(
        matches!(
            found[..],
            [RecoveryFinding::Logged {
                blocks: 1,
                dropped: 1,
                ..
            }]
        ),
        "{found:?}"
    );
    // A new second block of equal size: the old third one follows it.
    rig.write_through(9, 8);
    shelf = rig.shelf();
    let (_, found) = Rig::on(&config, &mut shelf);
    assert!(matches!(
        found[..],
        [RecoveryFinding::Logged {
            blocks: 1,
            dropped: 0,
            ..
        }]
    ));
    assert_eq!((at(&config, &shelf, 9), at(&config, &shelf, 2)), (8, 0));
}

#[test]
fn blocks_that_main_took_for_a_dead_log_are_found_and_those_of_a_log_that_is_back() {
    for logs in [1, 2] {
        let config = config(logs);
        let (mut rig, _) = Rig::on(&config, &mut made(&config));
        for unit in 0..40_u64 {
            match unit {
                7 => rig.pool.befall(rig.now, 1, DriveFault::Dies),
                20 => rig.pool.befall(rig.now, 1, DriveFault::Returns),
                30 if logs == 2 => rig.pool.befall(rig.now, 2, DriveFault::Dies),
                _ => {}
            }
            assert_eq!(rig.write_through(unit, 7), Status::Success);
        }
        let shelf = rig.shelf();
        let wrong = (0..40).find(|&unit| at(&config, &shelf, unit) != 7);
        assert_eq!(wrong, None, "{logs}");
    }
}

#[test]
fn a_log_that_is_gone_takes_what_was_synced_since_the_last_group_and_no_more() {
    let config = config(1);
    let (mut rig, _) = Rig::on(&config, &mut made(&config));
    rig.write_through(0, 7);
    rig.rest();
    rig.write_through(1, 7);
    let mut shelf = rig.shelf();
    shelf.absent = vec![1];
    let (_, found) = Rig::on(&config, &mut shelf);
    assert_eq!(found, [RecoveryFinding::Absent(1)]);
    assert_eq!((at(&config, &shelf, 0), at(&config, &shelf, 1)), (7, 0));
}

#[test]
fn what_is_not_this_volume_is_refused() {
    let config = config(2);
    let new = made(&config);
    let refused = |shelf: &Shelf| recovered(&config, &mut shelf.clone()).err();
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
    let mut started = new.clone();
    for _ in 0..2 {
        recovered(&config, &mut started).expect("it is right");
    }
    // An old copy of the main pool, and one of a log device.
    let mut shelf = started.clone();
    shelf.images[0] = new.images[0].clone();
    assert_eq!(refused(&shelf), Some(Damage::Outdated(0)));
    let mut shelf = started.clone();
    shelf.images[1] = new.images[1].clone();
    assert_eq!(refused(&shelf), Some(Damage::Outdated(1)));
    let mut other = Shelf::new(3);
    offline::format(&config, POOL + 1, &mut other).expect("all are there");
    for member in 0..2 {
        let mut shelf = new.clone();
        shelf.images[member] = other.images[member].clone();
        assert_eq!(refused(&shelf), Some(Damage::Foreign(member as u16)));
    }
}

/// The members of a recovered volume receive the same commands as those of a volume without data.
#[test]
fn a_volume_that_was_made_and_found_begins_as_one_without_data() {
    for logs in 0..2 {
        let config = config(logs);
        let (mut rig, _) = Rig::on(&config, &mut made(&config));
        let mut without = config.build(Precondition::Fresh, 1);
        rig.pool.record();
        without.record();
        let mut now = Time::ZERO;
        for unit in 0..30 {
            let write = Command {
                fua: unit % 2 == 0,
                ..Command::write(0, unit * 3 * u64::from(UNIT), UNIT)
            };
            rig.put(1, write);
            without.submit(now, write);
            let mut done = Vec::new();
            while done.is_empty() {
                let next = without.next_event();
                now = without.advance(next, next, &mut done);
            }
        }
        rig.rest();
        while without.next_event() != Time::NEVER {
            let next = without.next_event();
            without.advance(next, next, &mut Vec::new());
        }
        let plain = |asked: Vec<ChildCommand>| -> Vec<_> {
            let what = |it: &ChildCommand| {
                (
                    it.at,
                    it.member,
                    it.command.op,
                    it.command.offset,
                    it.command.bytes,
                )
            };
            asked.iter().map(what).collect()
        };
        assert_eq!(plain(rig.pool.recorded()), plain(without.recorded()));
    }
}

proptest! {
    /// Any content is handled without panic, and a restarted recovery has the same result.
    #[test]
    fn any_bytes_can_be_recovered_from_or_are_refused(
        writes in prop::collection::vec((0u64..200, any::<u8>(), any::<bool>()), 1..60),
        spoilt in prop::collection::vec((0usize..3, 0u64..(MIB / 512), any::<u8>()), 0..6),
        logs in 0usize..3,
    ) {
        let config = config(logs);
        let (mut rig, _) = Rig::on(&config, &mut made(&config));
        for (unit, byte, fua) in writes {
            let write = Command::write(0, unit * u64::from(UNIT), UNIT);
            rig.put(byte, Command { fua, ..write });
        }
        let mut shelf = rig.shelf();
        for (member, sector, byte) in spoilt {
            // More often near the beginning.
            let at = if byte % 2 == 0 { sector % 300 } else { sector };
            let member = member % shelf.images.len();
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
                prop_assert!(one == two);
            }
        }
    }
}

/// Writes of all lengths, flushed occasionally: one flush fills several blocks, and long writes continue in the next
/// block.
#[test]
fn what_fills_several_log_blocks_is_found_again() {
    for block in [8 << 10, 12 << 10, 128 << 10] {
        let tier = IntentLogConfig {
            ram: 40 * MIB,
            txg: Span::from_ms(5000),
            block,
            ..small(16 << 10)
        };
        let config = of_drives(&tier, &[ram(24 * MIB, 30), ram(4 * MIB, 3)]);
        let mut shelf = made(&config);
        let mut expected = vec![0_u8; MIB as usize];
        let mut stream = model::random::Stream::new(block.into(), "lengths");
        for life in 0..6 {
            let (mut rig, found) = Rig::on(&config, &mut shelf);
            let lost = found
                .iter()
                .any(|it| matches!(it, RecoveryFinding::Lost(_)));
            assert!(!lost, "block of {block}, life {life}: {found:?}");
            for _ in 0..1 + stream.uniform_below(20) {
                let longest = [8, 40, 300][stream.uniform_below(3) as usize];
                let sectors = 1 + stream.uniform_below(longest);
                let at = 512 * stream.uniform_below(MIB / 512 - sectors);
                let data: Vec<u8> = (0..sectors * 512)
                    .map(|_| stream.uniform_below(256) as u8)
                    .collect();
                expected[at as usize..at as usize + data.len()].copy_from_slice(&data);
                let payload = rig.bytes.take(data.len() as u32);
                rig.bytes.put(payload, &data);
                let write = Command::write(0, at, data.len() as u32);
                let status = rig.ask(Command { payload, ..write });
                assert_eq!(status, Status::Success);
                if stream.uniform_below(4) == 0 {
                    rig.ask(Command::flush(0));
                }
            }
            rig.ask(Command::flush(0));
            shelf = rig.shelf();
        }
        let tiers = recovered(&config, &mut shelf).expect("it is right");
        let mut data = vec![0; MIB as usize];
        let read = tiers.read(&config, &mut shelf, 0, 0, &mut data);
        assert!(read.is_ok() && data == expected, "block of {block}");
    }
}
