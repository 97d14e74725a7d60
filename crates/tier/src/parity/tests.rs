//! RAID 5 and 6 on drives with data: written data is returned whichever child is out, parity is correct after a crash,
//! and the number of commands per write equals md's.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use model::command::{Command, Op, Status};
use model::data::{Contents, DriveFault, Image, Unreadable, Unwritable};
use model::device::Device;
use model::media::ram::RamConfig;
use model::time::Span;

use super::ParityArrayConfig;
use crate::offline::{self, Damage, Images, RecoveryFinding};
use crate::rig::{POOL, Rig, UNIT, at, made, recovered, recovered_with_loss};
use crate::shelf::Shelf;
use crate::{DriveConfig, Kind, Member, MirrorConfig, PoolConfig, Target, TierConfig, laws};

const CHUNK: u32 = 16 << 10;

pub(super) fn config(parity: u16, children: u16) -> PoolConfig<DriveConfig> {
    let bytes = 1 << 20;
    let drive = DriveConfig::Ram(RamConfig {
        bytes,
        per_command: Span::from_us(3),
        picoseconds_per_byte: 100,
        memory_bus: None,
        spread: 0.0,
    });
    let slice = |member| Target::Slice {
        member,
        base: 0,
        bytes,
    };
    let region = 64 << 10;
    let kind = match parity {
        1 => Kind::Raid5(ParityArrayConfig {
            chunk: CHUNK,
            region,
            resync_rate: 0,
            read_errors: 3,
        }),
        _ => Kind::Raid6(ParityArrayConfig {
            chunk: CHUNK,
            region,
            resync_rate: 0,
            read_errors: 3,
        }),
    };
    let config = PoolConfig {
        members: (0..children)
            .map(|index| Member {
                name: index.to_string(),
                drive: drive.clone(),
            })
            .collect(),
        tiers: vec![TierConfig {
            name: "array".to_string(),
            kind,
            children: (0..children).map(slice).collect(),
        }],
        volumes: vec![0],
        label_bytes: 0,
    };
    assert_eq!(config.problems(), [""; 0]);
    config
}

#[test]
fn keeps_the_laws_and_gives_what_was_written() {
    for (parity, children) in [(1, 3), (1, 4), (2, 4), (2, 7)] {
        laws::holds_the_laws(&config(parity, children));
        laws::gives_what_was_written(&config(parity, children));
    }
}

/// Returns the reads and writes of members for one write, without labels.
fn cost(parity: u16, children: u16, write: Command) -> (usize, usize) {
    let config = config(parity, children);
    let mut rig = Rig::on(&config, &mut made(&config)).0;
    rig.ask(write);
    rig.pool.record();
    rig.ask(write);
    let asked = rig.pool.recorded();
    let count = |op| asked.iter().filter(|it| it.command.op == op).count();
    (count(Op::Read), count(Op::Write))
}

#[test]
fn a_small_write_costs_what_it_costs_md() {
    let small = Command::write(0, 8192, 4096);
    // With three data columns both ways need 2 reads: the rest of the stripe is read. With more columns, the
    // overwritten data and parity are read.
    assert_eq!(cost(1, 4, small), (2, 2));
    assert_eq!(cost(1, 8, small), (2, 2));
    // With two data columns, the other one is less than both.
    assert_eq!(cost(1, 3, small), (1, 2));
    assert_eq!(cost(2, 6, small), (3, 3));
    assert_eq!(cost(2, 10, small), (3, 3));
    assert_eq!(cost(2, 4, small), (1, 3));
    // Parity of whole stripes is computed from the written data.
    assert_eq!(cost(1, 4, Command::write(0, 0, 3 * CHUNK)), (0, 4));
    assert_eq!(cost(2, 6, Command::write(0, 0, 4 * CHUNK)), (0, 6));
    // All except one of six data columns: the sixth is read.
    assert_eq!(cost(1, 7, Command::write(0, 0, 5 * CHUNK)), (1, 6));
    // The rest of a page is read even if the rest of the stripe is read.
    assert_eq!(cost(1, 3, Command::write(0, 8192, 512)), (2, 2));
}

pub(super) fn fill(rig: &mut Rig, config: &PoolConfig<DriveConfig>, salt: u64) {
    for unit in 0..config.bytes() / u64::from(UNIT) {
        assert_eq!(rig.write(unit, byte(unit, salt)), Status::Success);
    }
}

pub(super) fn byte(unit: u64, salt: u64) -> u8 {
    (unit * 7 + unit / 200 + salt) as u8 | 1
}

pub(super) fn read(rig: &mut Rig, unit: u64) -> Result<u8, Status> {
    use model::data::Buffers;
    let payload = rig.bytes.take(UNIT);
    let read = Command::read(0, unit * u64::from(UNIT), UNIT);
    let status = rig.ask(Command { payload, ..read });
    let mut data = [0; UNIT as usize];
    // The buffer was released and has not been allocated since.
    rig.bytes.get(payload, &mut data);
    match status {
        Status::Success => Ok(data[0]),
        other => Err(other),
    }
}

#[test]
fn what_is_written_comes_back_whoever_is_out() {
    for (parity, children, dead) in [
        (1, 4, vec![0]),
        (1, 3, vec![2]),
        (2, 5, vec![1, 3]),
        (2, 6, vec![0, 5]),
        (2, 4, vec![2]),
    ] {
        let config = config(parity, children);
        let mut rig = Rig::on(&config, &mut made(&config)).0;
        fill(&mut rig, &config, 0);
        for &member in &dead {
            rig.pool.befall(rig.now, member, DriveFault::Dies);
        }
        let units = config.bytes() / u64::from(UNIT);
        for unit in 0..units {
            assert_eq!(
                read(&mut rig, unit),
                Ok(byte(unit, 0)),
                "{unit} without {dead:?}"
            );
        }
        // Units are written without them: they are stale.
        for unit in (0..units).step_by(3) {
            assert_eq!(rig.write(unit, byte(unit, 1)), Status::Success);
        }
        let salt = |unit: u64| u64::from(unit.is_multiple_of(3));
        for unit in 0..units {
            assert_eq!(read(&mut rig, unit), Ok(byte(unit, salt(unit))), "{unit}");
        }
        // After a crash now, their data is unknown: parity may be older than data. An additional parity can confirm it.
        let opened = recovered(&config, &mut rig.shelf()).map(drop);
        match dead.len() == usize::from(parity) {
            true => assert!(
                matches!(opened, Err(Damage::Hole(child)) if dead.contains(&child)),
                "{opened:?}"
            ),
            false => assert_eq!(opened, Ok(())),
        }
        // When the array is idle, data is known. Opened again, they are rebuilt, and then others may fail.
        rig.rest();
        let mut shelf = rig.shelf();
        let (mut rig, found) = Rig::on(&config, &mut shelf);
        let stale = found
            .iter()
            .filter(|it| matches!(it, RecoveryFinding::Stale(_, Some(_))));
        assert_eq!(stale.count(), dead.len(), "{found:?}");
        let others = (0..children).filter(|it| !dead.contains(it));
        for member in others.take(parity.into()) {
            rig.pool.befall(rig.now, member, DriveFault::Dies);
        }
        for unit in 0..units {
            assert_eq!(read(&mut rig, unit), Ok(byte(unit, salt(unit))), "{unit}");
        }
    }
}

#[test]
fn more_than_parity_are_too_many() {
    let config = config(1, 4);
    let mut rig = Rig::on(&config, &mut made(&config)).0;
    assert_eq!(rig.write(0, 1), Status::Success);
    let mut shelf = rig.shelf();
    for member in [0, 1] {
        rig.pool.befall(rig.now, member, DriveFault::Dies);
    }
    let reads: Vec<_> = (0..12).map(|unit| read(&mut rig, unit)).collect();
    assert!(reads.contains(&Err(Status::Gone)), "{reads:?}");
    assert_eq!(rig.ask(Command::write(0, 0, 3 * CHUNK)), Status::Gone);
    shelf.absent = vec![0, 1];
    let refused = recovered(&config, &mut shelf).map(drop);
    assert!(matches!(refused, Err(Damage::Missing(_))), "{refused:?}");
}

#[test]
fn parity_that_a_crash_has_left_behind_is_computed_anew() {
    let config = config(2, 5);
    let mut rig = Rig::on(&config, &mut made(&config)).0;
    fill(&mut rig, &config, 0);
    let mut shelf: Shelf = rig.shelf();
    // A write of which only the data was written: parity of its whole stripe is wrong.
    flip(&mut shelf, 2, 100);
    let before = (0..16).map(|unit| at(&config, &shelf, unit));
    let before: Vec<u8> = before.collect();
    let (mut rig, found) = Rig::on(&config, &mut shelf);
    assert!(
        matches!(found[..], [RecoveryFinding::Unclean(_)]),
        "{found:?}"
    );
    for member in [0, 1] {
        rig.pool.befall(rig.now, member, DriveFault::Dies);
    }
    for (unit, byte) in (0..).zip(before) {
        assert_eq!(read(&mut rig, unit), Ok(byte), "{unit}");
    }
    assert!(rig.pool.members().len() == 5 && rig.pool.capacity().bytes == config.bytes());
}

/// A crash in the middle of a write, and a child that is missing or cannot read. In a RAID 5, its data is unknown; in a
/// RAID 6, the second parity shows whether the first is correct.
#[test]
fn what_parity_cannot_give_for_certain_is_refused() {
    for (parity, children) in [(1, 4), (2, 5)] {
        let config = config(parity, children);
        let mut rig = Rig::on(&config, &mut made(&config)).0;
        fill(&mut rig, &config, 0);
        let away = |shelf: &Shelf| {
            let mut shelf = shelf.clone();
            shelf.absent = vec![2];
            recovered(&config, &mut shelf).map(drop)
        };
        let unread = |shelf: &Shelf| {
            let mut shelf = shelf.clone();
            shelf.images[2].spoil(0, 4096);
            recovered(&config, &mut shelf).map(drop)
        };
        let whole = match parity {
            1 => Err(Damage::Hole(2)),
            _ => Ok(()),
        };
        assert_eq!((away(&rig.shelf()), unread(&rig.shelf())), (whole, whole));
        // Data has been written, but parity has not.
        let mut half = rig.shelf();
        flip(&mut half, 1, 7);
        assert_eq!(away(&half), Err(Damage::Hole(2)), "{parity}");
        assert_eq!(unread(&half), Err(Damage::Hole(2)), "{parity}");
        assert_eq!(recovered(&config, &mut half).map(drop), Ok(()));
        // When the array is idle, all data is known.
        rig.rest();
        assert_eq!((away(&rig.shelf()), unread(&rig.shelf())), (Ok(()), Ok(())));
    }
}

/// One member is away, and another one fails a write: the array rejects that write, and must not compute data of the first
/// member from the second one, neither now nor after an orderly end.
#[test]
fn nothing_is_computed_from_a_member_that_missed_a_rejected_write() {
    for (parity, children) in [(1, 3), (1, 4), (2, 5)] {
        for failing in parity..children {
            let config = config(parity, children);
            let mut rig = Rig::on(&config, &mut made(&config)).0;
            fill(&mut rig, &config, 0);
            rig.rest();
            let dead: Vec<u16> = (0..parity).collect();
            for &member in &dead {
                rig.pool.befall(rig.now, member, DriveFault::Dies);
            }
            let units = config.bytes() / u64::from(UNIT);
            // The labels list the others as out.
            for unit in (0..units).step_by(40) {
                assert_eq!(rig.write(unit, byte(unit, 0)), Status::Success);
            }
            rig.pool.befall(rig.now, failing, DriveFault::FailsWrite);
            let mut rejected = Vec::new();
            for unit in 0..24 {
                if rig.write(unit, byte(unit, 1)) != Status::Success {
                    rejected.push(unit);
                }
            }
            assert!(!rejected.is_empty(), "{parity} {failing}");
            let written = |unit: u64| u64::from(unit < 24);
            let mut errors = 0;
            for unit in 0..units {
                match read(&mut rig, unit) {
                    Ok(it) if rejected.contains(&unit) => {
                        assert!([byte(unit, 0), byte(unit, 1)].contains(&it), "{unit}");
                    }
                    Ok(it) => assert_eq!(it, byte(unit, written(unit)), "{unit} {failing}"),
                    Err(_) => errors += 1,
                }
            }
            assert!(errors > 0, "{parity} {failing}");
            rig.rest();
            let mut shelf = rig.shelf();
            shelf.absent = dead.clone();
            let opened = recovered(&config, &mut shelf).map(drop);
            assert!(matches!(opened, Err(Damage::Hole(_))), "{opened:?}");
        }
    }
}

/// Flips a bit of a member's first page.
fn flip(shelf: &mut Shelf, member: usize, at: usize) {
    let mut page = [0; UNIT as usize];
    shelf.images[member]
        .read(0, &mut page)
        .expect("it is there");
    page[at] ^= 0x55;
    shelf.images[member].write(0, &page).expect("it is kept");
}

/// Members, some of which cannot be written.
pub(super) struct Stubborn(pub(super) Shelf, Vec<u16>);

impl Images for Stubborn {
    fn present(&self, member: u16) -> bool {
        self.0.present(member)
    }
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.0.read(member, at, into)
    }
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        match self.1.contains(&member) {
            true => Err(Unwritable),
            false => self.0.write(member, at, data),
        }
    }
    fn sync(&mut self, member: u16) -> Result<(), Unwritable> {
        self.0.sync(member)
    }
}

/// Returns a filled array whose child 3 refuses writes, and was complete or must be rebuilt.
pub(super) fn refusing(config: &PoolConfig<DriveConfig>, stale: bool) -> Stubborn {
    let mut rig = Rig::on(config, &mut made(config)).0;
    fill(&mut rig, config, 0);
    if stale {
        // Its parity of the first rows remains that of the earlier data.
        assert_eq!(rig.write(0, byte(0, 2)), Status::Success);
        rig.pool.befall(rig.now, 3, DriveFault::Dies);
        assert_eq!(rig.write(0, byte(0, 0)), Status::Success);
        rig.rest();
    }
    let mut shelf = rig.shelf();
    if !stale {
        // Its parity of the first rows is outdated, and must be written.
        flip(&mut shelf, 3, 9);
    }
    Stubborn(shelf, vec![3])
}

#[test]
fn a_child_that_takes_no_writes_stays_out_and_the_others_go_on() {
    for stale in [false, true] {
        let config = config(1, 4);
        let mut members = refusing(&config, stale);
        offline::recover(&config, POOL, &mut members).expect("the others are enough");
        // If it counted, the data that it cannot store would be missing here.
        let mut shelf = members.0;
        shelf.absent = vec![3];
        let units = 0..config.bytes() / u64::from(UNIT);
        for unit in units.step_by(7) {
            assert_eq!(at(&config, &shelf, unit), byte(unit, 0), "{unit}");
        }
        shelf.absent.clear();
        let found = recovered(&config, &mut shelf)
            .expect("it is whole again")
            .found;
        let brought_up =
            |it: &(u16, RecoveryFinding)| matches!(it.1, RecoveryFinding::Stale(3, Some(_)));
        assert!(found.iter().any(brought_up), "{found:?}");
    }
}

/// The tier above writes during its recovery, and power is cut in the middle.
#[test]
fn a_write_while_nothing_runs_is_marked_before_it_is_done() {
    use crate::Tier;
    use crate::children::{Children, Tiers};
    let config = config(1, 4);
    let mut rig = Rig::on(&config, &mut made(&config)).0;
    fill(&mut rig, &config, 0);
    rig.rest();
    let mut shelf = rig.shelf();
    let found = recovered(&config, &mut shelf).expect("it is whole");
    let before = shelf.clone();
    let mut array = found.tiers(&config).remove(0);
    let mut below = Children {
        config: &config.tiers,
        tiers: Tiers::Fixed(&[]),
        tier: 0,
        images: &mut shelf,
        openings: None,
        anew: false,
        found: &mut Vec::new(),
    };
    let written = array.write_offline(0, &[0x5a; UNIT as usize], &mut below);
    written.expect("all take it");
    assert_ne!(array.due(), model::time::Time::NEVER, "it will rest");
    // Labels and data are written; parity, which is on the last child, is not.
    let last = 3;
    let mut page = [0; UNIT as usize];
    before.images[last].read(0, &mut page).expect("it is there");
    shelf.images[last].write(0, &page).expect("it is kept");
    shelf.absent = vec![2];
    assert_eq!(
        recovered(&config, &mut shelf).map(drop),
        Err(Damage::Hole(2))
    );
}

#[test]
fn a_blank_child_gets_what_is_used() {
    let config = config(1, 4);
    let mut rig = Rig::on(&config, &mut made(&config)).0;
    fill(&mut rig, &config, 0);
    rig.rest();
    for (bytes, regions) in [(Some(128 << 10), 1), (None, 16)] {
        let mut shelf = rig.shelf();
        shelf.images[1] = Image::default();
        let start = offline::RecoveryInput {
            pool: POOL,
            mark: 0,
            remembered: None,
            in_sync: &[],
            bytes,
            accept_loss: false,
        };
        let opened = offline::open(&config, &start, &mut shelf).expect("the others are enough");
        assert!(
            opened
                .found
                .contains(&(0, RecoveryFinding::Stale(1, Some(regions)))),
            "{:?}",
            opened.found
        );
        shelf.absent = vec![0];
        for unit in (0..bytes.unwrap_or(config.bytes()) / u64::from(UNIT)).step_by(5) {
            assert_eq!(at(&config, &shelf, unit), byte(unit, 0), "{unit}");
        }
    }
}

/// Checks that the whole pool is opened with this data, whichever of its members is out afterwards.
fn is_whole_again(config: &PoolConfig<DriveConfig>, mut shelf: Shelf, salt: u64) {
    let opened = recovered(config, &mut shelf).map(drop);
    assert_eq!(opened, Ok(()));
    for out in 0..config.members.len() as u16 {
        let mut shelf = shelf.clone();
        shelf.absent = vec![out];
        for unit in (0..config.bytes() / u64::from(UNIT)).step_by(11) {
            assert_eq!(at(config, &shelf, unit), byte(unit, salt), "{unit}");
        }
    }
}

/// Any of the members may fail in each attempt.
#[test]
fn openings_that_fail_do_not_make_complete_members_old() {
    for (parity, children, attempts) in [
        (1, 3, vec![vec![1, 2]; 3]),
        (1, 3, vec![vec![1, 2], vec![0, 1], vec![0, 2], vec![1, 2]]),
        (1, 4, vec![vec![0, 1], vec![1, 2, 3], vec![0, 3]]),
        (2, 5, vec![vec![2, 3, 4]; 3]),
        (2, 5, vec![vec![0, 3, 4], vec![1, 2, 3], vec![2, 3, 4]]),
    ] {
        let config = config(parity, children);
        let mut rig = Rig::on(&config, &mut made(&config)).0;
        fill(&mut rig, &config, 0);
        rig.rest();
        let mut shelf = rig.shelf();
        for fails in attempts {
            let first = fails.clone();
            let mut members = Stubborn(shelf, fails);
            let refused = offline::recover(&config, POOL, &mut members).map(drop);
            assert!(
                matches!(refused, Err((_, Damage::Unwritable(child))) if first.contains(&child)),
                "{refused:?}"
            );
            shelf = members.0;
        }
        is_whole_again(&config, shelf, 0);
    }
}

/// One more fails than the array can lose, in each of many writes.
#[test]
fn writes_that_fail_do_not_make_complete_members_old() {
    for (parity, children, fails) in [
        (1, 3, vec![1, 2]),
        (1, 3, vec![0, 1]),
        (1, 4, vec![0, 3]),
        (2, 5, vec![1, 2, 4]),
    ] {
        let config = config(parity, children);
        let mut rig = Rig::on(&config, &mut made(&config)).0;
        fill(&mut rig, &config, 0);
        rig.rest();
        for &member in &fails {
            rig.pool.befall(rig.now, member, DriveFault::Dies);
        }
        // Each write is to another region and has the same data, because it may have reached some members.
        let mut failed = 0;
        for unit in (0..config.bytes() / u64::from(UNIT)).step_by(13) {
            failed += u32::from(rig.write(unit, byte(unit, 0)) != Status::Success);
        }
        assert!(failed > 10, "{failed}");
        is_whole_again(&config, rig.shelf(), 0);
    }
}

#[test]
fn a_member_that_is_really_old_is_named_and_served_if_loss_is_accepted() {
    let config = config(1, 3);
    let mut rig = Rig::on(&config, &mut made(&config)).0;
    fill(&mut rig, &config, 0);
    rig.rest();
    let old = rig.shelf();
    // Several labels that these two members do not have.
    for unit in [0, 100, 200, 300] {
        assert_eq!(rig.write(unit, byte(unit, 0)), Status::Success);
    }
    rig.rest();
    let mut shelf = rig.shelf();
    for member in [1, 2] {
        shelf.images[member] = old.images[member].clone();
    }
    let refused = recovered(&config, &mut shelf).map(drop);
    assert_eq!(refused, Err(Damage::Outdated(1)));
    recovered_with_loss(&config, &mut shelf);
    is_whole_again(&config, shelf, 0);
}

/// A mirror of two arrays, one of which cannot be written while the pool is opened: its metadata stays.
#[test]
fn an_array_that_cannot_be_written_is_not_formatted_again() {
    let mut config = config(1, 6);
    let children = core::mem::take(&mut config.tiers[0].children);
    config.tiers = [&children[..3], &children[3..]]
        .map(|children| TierConfig {
            children: children.to_vec(),
            ..config.tiers[0].clone()
        })
        .to_vec();
    config.tiers.push(TierConfig {
        name: "mirror".to_string(),
        kind: Kind::Mirror(MirrorConfig::default()),
        children: vec![Target::Tier(0), Target::Tier(1)],
    });
    config.volumes = vec![2];
    assert_eq!(config.problems(), [""; 0]);
    let mut rig = Rig::on(&config, &mut made(&config)).0;
    fill(&mut rig, &config, 0);
    rig.rest();
    let mut members = Stubborn(rig.shelf(), vec![4, 5]);
    let found = offline::recover(&config, POOL, &mut members).expect("one array is enough");
    assert!(
        found.found.contains(&(2, RecoveryFinding::Absent(1))),
        "{:?}",
        found.found
    );
    let mut shelf = members.0;
    let found = recovered(&config, &mut shelf)
        .expect("it is there again")
        .found;
    // It lacks only what is marked.
    assert_eq!(found, [(2, RecoveryFinding::Stale(1, Some(0)))]);
}
