//! Rebuilds on drives with data, while a client reads and writes.

use alloc::vec;
use alloc::vec::Vec;

use model::command::Status;
use model::data::DriveFault;
use model::device::Device;

use crate::Kind;
use crate::parity::tests::{byte, config, fill, read};
use crate::rig::{Rig, UNIT, made};

/// Children miss writes, return and are rebuilt while a client reads and writes. Then others fail.
#[test]
fn a_child_that_returns_is_rebuilt_in_use() {
    for (parity, children, dead, replaced) in [
        (1, 4, vec![0], false),
        (1, 3, vec![2], true),
        (2, 5, vec![1, 3], false),
        (2, 6, vec![0, 5], true),
    ] {
        let config = config(parity, children);
        let mut rig = Rig::on(&config, &mut made(&config)).0;
        fill(&mut rig, &config, 0);
        rig.rest();
        for &member in &dead {
            rig.pool.befall(rig.now, member, DriveFault::Dies);
        }
        let units = config.bytes() / u64::from(UNIT);
        let mut salts = vec![0; units as usize];
        let mut write = |rig: &mut Rig, unit: u64, salt: u64| {
            assert_eq!(rig.write(unit, byte(unit, salt)), Status::Success);
            salts[unit as usize] = salt;
        };
        for unit in (0..units / 2).step_by(3) {
            write(&mut rig, unit, 1);
        }
        for &member in &dead {
            if replaced {
                // The drive still has its data, so that only times differ.
                rig.pool.replace(rig.now, member);
            } else {
                rig.pool.befall(rig.now, member, DriveFault::Returns);
            }
        }
        assert!(rig.pool.rebuild(dead[0]).is_some(), "it is being rebuilt");
        assert!(rig.pool.rebuild_left(dead[0]) > 0 && rig.pool.lacks(dead[0]));
        for unit in (0..units).step_by(5) {
            write(&mut rig, unit, 2);
        }
        rig.rest();
        assert!(!dead.iter().any(|&it| rig.pool.lacks(it)), "{dead:?}");
        // Nothing is left to do at the next opening, and marks are cleared.
        let (mut rig, found) = Rig::on(&config, &mut rig.shelf());
        assert_eq!(found, []);
        let others = (0..children).filter(|it| !dead.contains(it));
        for member in others.take(parity.into()) {
            rig.pool.befall(rig.now, member, DriveFault::Dies);
        }
        for (unit, &salt) in (0..).zip(&salts) {
            assert_eq!(read(&mut rig, unit), Ok(byte(unit, salt)), "{unit}");
        }
    }
}

/// A rebuild with a limit takes as long as the limit says, and one that fails leaves the child out.
#[test]
fn a_rebuild_obeys_its_limit_and_ends_with_its_child() {
    let mut config = config(1, 4);
    let Kind::Raid5(array) = &mut config.tiers[0].kind else {
        panic!("it is a RAID 5");
    };
    array.resync_rate = 10_000_000;
    let mut rig = Rig::on(&config, &mut made(&config)).0;
    fill(&mut rig, &config, 0);
    rig.pool.befall(rig.now, 2, DriveFault::Dies);
    assert_eq!(rig.write(0, 9), Status::Success);
    rig.pool.replace(rig.now, 2);
    let (from, left) = (rig.now, rig.pool.rebuild_left(2));
    while rig.pool.lacks(2) {
        let next = rig.pool.next_event();
        rig.now = rig.pool.advance(next, next, &mut Vec::new());
    }
    let seconds = rig.now.since(from).seconds();
    let limit = left as f64 / 1e7;
    assert!(
        (0.95..1.05).contains(&(seconds / limit)),
        "{seconds} {limit}"
    );
    rig.pool.replace(rig.now, 2);
    assert!(rig.pool.rebuild(2).is_some());
    rig.pool.befall(rig.now, 2, DriveFault::Dies);
    // The rebuild notices it at its next write.
    rig.rest();
    assert!(rig.pool.rebuild(2).is_none() && rig.pool.lacks(2));
    assert_eq!(read(&mut rig, 1), Ok(byte(1, 0)));
}
