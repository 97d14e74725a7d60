//! Rebuilds on drives with data, while a client reads and writes.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use model::command::Status;
use model::conformance::samples;
use model::data::DriveFault;
use model::device::Device;
use model::time::{Span, Time};

use crate::offline;
use crate::parity::tests::{byte, config, fill, read, refusing};
use crate::rig::{POOL, Rig, UNIT, made};
use crate::shelf::Shelf;
use crate::{DriveConfig, Kind, PoolConfig};

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

/// The rebuild continues while no client writes: the labels state that no write is in progress.
#[test]
fn a_crash_during_a_rebuild_without_clients_is_no_write_hole() {
    let mut config = config(1, 3);
    let mut rig = Rig::on(&config, &mut made(&config)).0;
    fill(&mut rig, &config, 0);
    rig.rest();
    let mut shelf = rig.shelf();
    for member in &mut config.members {
        let DriveConfig::Ram(ram) = &mut member.drive else {
            panic!("it is RAM");
        };
        ram.per_command = Span::from_ms(300);
    }
    let mut rig = Rig::on(&config, &mut shelf).0;
    rig.pool.befall(rig.now, 0, DriveFault::Dies);
    for unit in 0..8 {
        assert_eq!(rig.write(unit * 40, byte(unit * 40, 2)), Status::Success);
    }
    rig.pool.befall(rig.now, 0, DriveFault::Returns);
    run_for(&mut rig, Span::from_ms(7000));
    assert!(rig.pool.rebuild(0).is_some(), "it has not ended");
    let (mut rig, _) = Rig::on(&config, &mut rig.shelf());
    for unit in 0..8 {
        assert_eq!(read(&mut rig, unit * 40), Ok(byte(unit * 40, 2)), "{unit}");
    }
}

/// Advances all events of this span.
fn run_for(rig: &mut Rig, span: Span) {
    let end = rig.now + span;
    while rig.pool.next_event() <= end {
        let next = rig.pool.next_event();
        rig.now = rig.pool.advance(next, next, &mut Vec::new());
    }
}

/// Cuts the power after this number of events of a rebuild. Returns the images, and the generation of each unit; `None`
/// if the rebuild has ended long before.
fn cut_after(
    events: u64,
    config: &PoolConfig<DriveConfig>,
    filled: &Shelf,
    (dead, with_client): (u16, bool),
) -> Option<(Shelf, Vec<u64>)> {
    let mut rig = Rig::on(config, &mut filled.clone()).0;
    let units = config.bytes() / u64::from(UNIT);
    let mut salts = vec![0; units as usize];
    let mut write = |rig: &mut Rig, unit: u64, salt: u64| {
        assert_eq!(rig.write_through(unit, byte(unit, salt)), Status::Success);
        salts[unit as usize] = salt;
    };
    rig.pool.befall(rig.now, dead, DriveFault::Dies);
    for unit in (0..units / 3).step_by(7) {
        write(&mut rig, unit, 2);
    }
    run_for(&mut rig, Span::from_ms(7000));
    rig.pool.befall(rig.now, dead, DriveFault::Returns);
    let mut more = 12;
    for event in 0..events {
        if !rig.pool.lacks(dead) {
            more -= 1;
        }
        if more == 0 || rig.pool.next_event() == Time::NEVER {
            return None;
        }
        if with_client && event % 9 == 8 {
            write(&mut rig, event * 5 % units, 4);
        } else {
            let next = rig.pool.next_event();
            rig.now = rig.pool.advance(next, next, &mut Vec::new());
        }
    }
    rig.pool.power_cut(rig.now, &mut Vec::new());
    Some((rig.shelf(), salts))
}

/// Power is cut after each event of a rebuild. The array opens, and has all data, whichever members fail then. On the
/// drives with a volatile buffer, what was rebuilt is lost unless it was flushed.
#[test]
fn a_power_cut_during_a_rebuild_loses_nothing() {
    let mut volatile = samples::nand();
    volatile.buffer.protected = false;
    for (parity, children, dead, with_client, drive) in [
        (1, 4, 0, false, None),
        (2, 5, 1, true, None),
        (1, 3, 2, false, Some(volatile)),
    ] {
        let mut config = config(parity, children);
        let mut rig = Rig::on(&config, &mut made(&config)).0;
        fill(&mut rig, &config, 0);
        rig.rest();
        let filled = rig.shelf();
        // Drives with flash have many events between those of the array.
        let step = if drive.is_some() { 4 } else { 1 };
        for (member, drive) in config.members.iter_mut().zip(drive.iter().cycle()) {
            member.drive = DriveConfig::Nand(Box::new(drive.clone()));
        }
        let mut events = 0;
        let cut = |events| cut_after(events, &config, &filled, (dead, with_client));
        while let Some((mut shelf, salts)) = cut(events) {
            let mut rig = Rig::on(&config, &mut shelf).0;
            let others = (0..children).filter(|&it| it != dead).cycle();
            for member in others.skip(events as usize).take(parity.into()) {
                rig.pool.befall(rig.now, member, DriveFault::Dies);
            }
            for (unit, &salt) in (0..).zip(&salts) {
                let expected = Ok(byte(unit, salt));
                assert_eq!(read(&mut rig, unit), expected, "{unit} after {events}");
            }
            events += step;
        }
        assert!(events > 40 * step, "{events}");
    }
}

/// A child waits for the rebuild of another one, which fails while its rate limit delays it.
#[test]
fn a_waiting_child_is_rebuilt_although_the_one_before_it_fails() {
    let mut config = config(2, 5);
    let Kind::Raid6(array) = &mut config.tiers[0].kind else {
        panic!("it is a RAID 6");
    };
    array.resync_rate = 1_000_000;
    let mut rig = Rig::on(&config, &mut made(&config)).0;
    fill(&mut rig, &config, 0);
    for member in [0, 1] {
        rig.pool.replace(rig.now, member);
    }
    assert!(rig.pool.rebuild(0).is_some());
    // The first chunk takes microseconds, and the next one may start 16 ms later.
    run_for(&mut rig, Span::from_ms(5));
    rig.pool.befall(rig.now, 0, DriveFault::Dies);
    assert_eq!(rig.write(0, byte(0, 0)), Status::Success);
    rig.rest();
    assert!(rig.pool.lacks(0) && !rig.pool.lacks(1));
}

/// Marks may not name everything that it lacks.
#[test]
fn a_child_that_recovery_could_not_rebuild_is_not_rebuilt_in_use() {
    for stale in [false, true] {
        let config = config(1, 4);
        let mut shelf = refusing(&config, stale);
        let tiers = offline::recover(&config, POOL, &mut shelf).expect("the others are enough");
        let mut shelf = shelf.0;
        let mut rig = Rig::start(&config, tiers, &shelf);
        assert!(rig.pool.lacks(3), "{stale}");
        for returns in 0..2 {
            rig.pool.befall(rig.now, 3, DriveFault::Returns);
            rig.rest();
            assert!(rig.pool.lacks(3), "{stale} {returns}");
            assert_eq!(rig.write(0, byte(0, 0)), Status::Success);
        }
        rig.rest();
        shelf = rig.shelf();
        let mut rig = Rig::on(&config, &mut shelf).0;
        assert!(!rig.pool.lacks(3), "the next opening rebuilds it");
        rig.pool.befall(rig.now, 0, DriveFault::Dies);
        for unit in 0..config.bytes() / u64::from(UNIT) {
            assert_eq!(read(&mut rig, unit), Ok(byte(unit, 0)), "{unit}");
        }
    }
}
