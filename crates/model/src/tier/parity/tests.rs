//! RAID 5 and 6 on drives with data: what is written comes back whoever is out, parity is right after a crash, and a write takes
//! as many commands as md's takes.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::ArrayConfig;
use crate::command::{Command, Op, Status};
use crate::data::Trouble;
use crate::device::Device;
use crate::media::DriveConfig;
use crate::media::ram::RamConfig;
use crate::tier::offline::{Damage, Found};
use crate::tier::rig::{Rig, UNIT, at, made, recovered};
use crate::tier::shelf::Shelf;
use crate::tier::{Kind, Member, PoolConfig, Target, TierConfig, laws};
use crate::time::Span;

const CHUNK: u32 = 16 << 10;

fn config(parity: u16, children: u16) -> PoolConfig<DriveConfig> {
    let bytes = 1 << 20;
    let drive = DriveConfig::Ram(RamConfig {
        bytes,
        per_command: Span::from_us(3),
        picoseconds_per_byte: 100,
    });
    let slice = |member| Target::Slice {
        member,
        base: 0,
        bytes,
    };
    let region = 64 << 10;
    let kind = match parity {
        1 => Kind::Raid5(ArrayConfig {
            chunk: CHUNK,
            region,
        }),
        _ => Kind::Raid6(ArrayConfig {
            chunk: CHUNK,
            region,
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

/// Reads and writes of members for one write, labels left out.
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
    // Of three data 2 reads either way: the rest of the stripe is read. Of more what is overwritten, and parity.
    assert_eq!(cost(1, 4, small), (2, 2));
    assert_eq!(cost(1, 8, small), (2, 2));
    // Of two data the other one is less than both.
    assert_eq!(cost(1, 3, small), (1, 2));
    assert_eq!(cost(2, 6, small), (3, 3));
    assert_eq!(cost(2, 10, small), (3, 3));
    assert_eq!(cost(2, 4, small), (1, 3));
    // Whole stripes are computed from what is written.
    assert_eq!(cost(1, 4, Command::write(0, 0, 3 * CHUNK)), (0, 4));
    assert_eq!(cost(2, 6, Command::write(0, 0, 4 * CHUNK)), (0, 6));
    // All but one of six data: the sixth is read.
    assert_eq!(cost(1, 7, Command::write(0, 0, 5 * CHUNK)), (1, 6));
    // A part of a page is read even where the rest of the stripe is.
    assert_eq!(cost(1, 3, Command::write(0, 8192, 512)), (2, 2));
}

fn fill(rig: &mut Rig, config: &PoolConfig<DriveConfig>, salt: u64) {
    for unit in 0..config.bytes() / u64::from(UNIT) {
        assert_eq!(rig.write(unit, byte(unit, salt)), Status::Success);
    }
}

fn byte(unit: u64, salt: u64) -> u8 {
    (unit * 7 + unit / 200 + salt) as u8 | 1
}

fn read(rig: &mut Rig, unit: u64) -> Result<u8, Status> {
    use crate::data::Buffers;
    let payload = rig.bytes.take(UNIT);
    let read = Command::read(0, unit * u64::from(UNIT), UNIT);
    let status = rig.ask(Command { payload, ..read });
    let mut data = [0; UNIT as usize];
    // It was given back, and nobody has taken it since.
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
            rig.pool.befall(rig.now, member, Trouble::Dies);
        }
        let units = config.bytes() / u64::from(UNIT);
        for unit in 0..units {
            assert_eq!(
                read(&mut rig, unit),
                Ok(byte(unit, 0)),
                "{unit} without {dead:?}"
            );
        }
        // Some are written without them, then they return, stale: nobody reads from them.
        for unit in (0..units).step_by(3) {
            assert_eq!(rig.write(unit, byte(unit, 1)), Status::Success);
        }
        for &member in &dead {
            rig.pool.befall(rig.now, member, Trouble::Returns);
        }
        let salt = |unit: u64| u64::from(unit.is_multiple_of(3));
        for unit in 0..units {
            assert_eq!(read(&mut rig, unit), Ok(byte(unit, salt(unit))), "{unit}");
        }
        // Cut now, nobody knows what they had: parity may be older than data.
        let refused = recovered(&config, &mut rig.shelf()).map(drop);
        assert_eq!(refused, Err(Damage::Hole(dead[0])));
        // At rest it is known. Opened again they are brought up, and then others may go.
        rig.rest();
        let mut shelf = rig.shelf();
        let (mut rig, found) = Rig::on(&config, &mut shelf);
        let stale = found
            .iter()
            .filter(|it| matches!(it, Found::Stale(_, Some(_))));
        assert_eq!(stale.count(), dead.len(), "{found:?}");
        let others = (0..children).filter(|it| !dead.contains(it));
        for member in others.take(parity.into()) {
            rig.pool.befall(rig.now, member, Trouble::Dies);
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
        rig.pool.befall(rig.now, member, Trouble::Dies);
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
    // A write of which only the data have arrived: parity of all its stripe is wrong.
    let member = 2;
    use crate::data::Contents;
    let mut page = [0; UNIT as usize];
    shelf.images[member]
        .read(0, &mut page)
        .expect("it is there");
    page[100] ^= 0xff;
    shelf.images[member].write(0, &page).expect("it is kept");
    let before = (0..16).map(|unit| at(&config, &shelf, unit));
    let before: Vec<u8> = before.collect();
    let (mut rig, found) = Rig::on(&config, &mut shelf);
    assert!(matches!(found[..], [Found::Unclean(_)]), "{found:?}");
    for member in [0, 1] {
        rig.pool.befall(rig.now, member, Trouble::Dies);
    }
    for (unit, byte) in (0..).zip(before) {
        assert_eq!(read(&mut rig, unit), Ok(byte), "{unit}");
    }
    assert!(rig.pool.members().len() == 5 && rig.pool.capacity().bytes == config.bytes());
}
