//! Data that a child cannot read is computed, written back and read again, and what counts as a read error.

use model::command::Status;
use model::data::{Contents, DriveFault, LastingErrors};
use model::device::Device;
use model::time::Span;

use crate::parity::tests::{byte, config, fill, read};
use alloc::vec::Vec;

use crate::rebuild::SyncState;
use crate::rig::{Rig, UNIT, made};

/// Arrays: parity columns, and children.
const ARRAYS: [(u16, u16); 4] = [(1, 3), (1, 4), (2, 4), (2, 5)];

fn filled(parity: u16, children: u16) -> (Rig, u64) {
    let config = config(parity, children);
    let mut rig = Rig::on(&config, &mut made(&config)).0;
    fill(&mut rig, &config, 0);
    rig.rest();
    (rig, config.bytes() / u64::from(UNIT))
}

fn spoil(rig: &mut Rig, member: u16, at: u64) {
    let (at, bytes) = (at, 512);
    rig.pool
        .befall(rig.now, member, DriveFault::Unreadable { at, bytes });
}

fn is_readable(rig: &Rig, member: usize, at: u64) -> bool {
    let mut page = [0; UNIT as usize];
    let image = rig.pool.members()[member].contents();
    image.read(at / 4096 * 4096, &mut page).is_ok()
}

fn is_in_sync(rig: &Rig, member: u16) -> bool {
    rig.pool.sync_state(member) == SyncState::InSync
}

/// One bad sector, read often: it is written again once, the member stays, and a bad sector of another member is not
/// lost.
#[test]
fn a_sector_that_cannot_be_read_is_written_again() {
    for (parity, children) in ARRAYS {
        let mut left = 0;
        for member in 0..children {
            let (mut rig, units) = filled(parity, children);
            let read_all = |rig: &mut Rig| {
                for unit in 0..units {
                    assert_eq!(read(rig, unit), Ok(byte(unit, 0)), "{unit} {member}");
                }
            };
            let place = 5 * 4096 + 512;
            spoil(&mut rig, member, place);
            for _ in 0..20 {
                read_all(&mut rig);
            }
            left += u16::from(!is_readable(&rig, member.into(), place));
            let other = (member + 1) % children;
            spoil(&mut rig, other, 9 * 4096);
            read_all(&mut rig);
            assert!((0..children).all(|it| is_in_sync(&rig, it)), "{member}");
        }
        // No client reads parity.
        assert_eq!(left, parity, "{children}");
    }
}

/// Sectors that fail again after each read, in turn: each is written again, and none puts its member out.
#[test]
fn sectors_that_fail_in_turn_put_no_member_out() {
    for (parity, children) in ARRAYS {
        let (mut rig, units) = filled(parity, children);
        // Two chunks with data.
        let mut places = Vec::new();
        for at in (0..8).map(|chunk| chunk * 4 * 4096) {
            let (mut rig, _) = filled(parity, children);
            spoil(&mut rig, 0, at);
            for unit in 0..units {
                assert_eq!(read(&mut rig, unit), Ok(byte(unit, 0)), "{unit}");
            }
            if is_readable(&rig, 0, at) {
                places.push(at);
            }
        }
        for round in 0..40 {
            let at = places[round % 2];
            spoil(&mut rig, 0, at);
            // Up to the unit with the bad sector: few reads of this member succeed in between.
            let unit = (0..units).find(|&unit| {
                assert_eq!(read(&mut rig, unit), Ok(byte(unit, 0)), "{unit}");
                is_readable(&rig, 0, at)
            });
            let unit = unit.expect("the unit with the bad sector");
            // The same unit again, before any other read.
            for _ in 0..8 {
                spoil(&mut rig, 0, at);
                assert_eq!(read(&mut rig, unit), Ok(byte(unit, 0)));
                assert!(is_readable(&rig, 0, at), "{parity} {children} {round}");
            }
            assert!(is_in_sync(&rig, 0), "{parity} {children} {round}");
        }
        rig.pool.befall(rig.now, 1, DriveFault::Dies);
        for unit in 0..units {
            assert_eq!(read(&mut rig, unit), Ok(byte(unit, 0)), "{unit}");
        }
    }
}

/// Partial-stripe writes whose stripes cannot be read in part: what they do not overwrite is written again.
#[test]
fn a_partial_write_repairs_its_stripe() {
    for (parity, children) in ARRAYS {
        for member in 0..children {
            let (mut rig, units) = filled(parity, children);
            for place in (0..8).map(|page| page * 4096) {
                spoil(&mut rig, member, place);
            }
            let data = u64::from(children - parity);
            let stripe = data * 4;
            for unit in (0..2 * stripe).filter(|unit| unit / 4 % data == 0) {
                assert_eq!(rig.write(unit, byte(unit, 3)), Status::Success);
            }
            let left = (0..8).filter(|page| !is_readable(&rig, member.into(), page * 4096));
            let left = left.count();
            // The rest of a stripe is read, or parity is written.
            assert_eq!(left, 0, "{parity} {children} {member}");
            let dead = u16::from(member == 0);
            rig.pool.befall(rig.now, dead, DriveFault::Dies);
            for unit in 0..units {
                let is_new = unit < 2 * stripe && unit / 4 % data == 0;
                let byte = byte(unit, if is_new { 3 } else { 0 });
                assert_eq!(read(&mut rig, unit), Ok(byte), "{unit} {member}");
            }
            assert!(is_in_sync(&rig, member), "{parity} {children} {member}");
        }
    }
}

/// A child that cannot read what was written again counts, and leaves after more than the limit; one that cannot be
/// written leaves at once.
#[test]
fn a_child_that_cannot_be_repaired_leaves() {
    for (parity, children) in ARRAYS {
        for errors in [LastingErrors::Reads, LastingErrors::All] {
            let (mut rig, units) = filled(parity, children);
            rig.pool.befall(rig.now, 0, DriveFault::Fails(errors));
            let mut reads = 0;
            for unit in 0..units {
                assert_eq!(read(&mut rig, unit), Ok(byte(unit, 0)), "{unit}");
                reads += u64::from(is_in_sync(&rig, 0));
            }
            let most = match errors {
                LastingErrors::Reads => 48,
                _ => 24,
            };
            assert!(!is_in_sync(&rig, 0) && reads < most, "{reads} {errors:?}");
            assert!((1..children).all(|it| is_in_sync(&rig, it)));
            for unit in (0..units).step_by(5) {
                assert_eq!(rig.write(unit, byte(unit, 4)), Status::Success);
            }
            for unit in 0..units {
                let salt = if unit.is_multiple_of(5) { 4 } else { 0 };
                assert_eq!(read(&mut rig, unit), Ok(byte(unit, salt)), "{unit}");
            }
        }
    }
}

/// While the first member is rebuilt, the second one fails a write, which is rejected if too few others are complete.
/// The second one is rebuilt later, and then counts again.
#[test]
fn a_member_that_was_rebuilt_counts_again() {
    let mut rejected = 0;
    for moment in 0..400 {
        let (mut rig, units) = filled(1, 3);
        rig.pool.befall(rig.now, 0, DriveFault::Dies);
        assert_eq!(rig.write(0, byte(0, 1)), Status::Success);
        rig.pool.befall(rig.now, 0, DriveFault::Returns);
        let until = rig.now + Span::from_ns(100 * moment);
        while rig.pool.next_event() <= until {
            let next = rig.pool.next_event();
            rig.now = rig.pool.advance(next, next, &mut Vec::new());
        }
        rig.pool.befall(rig.now, 1, DriveFault::FailsWrite);
        // Data of the second member.
        if rig.write(4, byte(4, 2)) == Status::Success {
            continue;
        }
        rig.rest();
        if !is_in_sync(&rig, 0) {
            continue;
        }
        rejected += 1;
        rig.pool.befall(rig.now, 1, DriveFault::Dies);
        assert_eq!(rig.write(4, byte(4, 3)), Status::Success, "{moment}");
        rig.pool.befall(rig.now, 1, DriveFault::Returns);
        rig.rest();
        assert!((0..3).all(|it| is_in_sync(&rig, it)), "{moment}");
        rig.pool.befall(rig.now, 2, DriveFault::Dies);
        for unit in 0..units {
            let salt = [(0, 1), (4, 3)].iter().find(|it| it.0 == unit);
            let byte = byte(unit, salt.map_or(0, |it| it.1));
            assert_eq!(read(&mut rig, unit), Ok(byte), "{unit} {moment}");
        }
    }
    assert!(rejected > 0);
}

/// Two columns of a stripe cannot be read, so that they cannot be computed, and a client overwrites the third one again and
/// again: nothing was written back, so no error counts.
#[test]
fn errors_of_what_cannot_be_computed_put_no_member_out() {
    let (mut rig, _) = filled(1, 4);
    for member in [1, 2] {
        spoil(&mut rig, member, 0);
    }
    for salt in 1..20 {
        assert_eq!(rig.write(0, byte(0, salt)), Status::Success);
        assert_eq!(read(&mut rig, 0), Ok(byte(0, salt)));
    }
    assert!((0..4).all(|it| is_in_sync(&rig, it)));
}
