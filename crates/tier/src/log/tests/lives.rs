//! Each start of a volume begins an epoch: old copies of the main pool or of a log device are rejected; a start may be
//! interrupted anywhere.

use model::data::{Contents, Unreadable, Unwritable};

use super::data::small;
use super::*;
use crate::offline::{self, Damage, Images, RecoveryFinding};
use crate::rig::{POOL, Rig, at, made, recovered};
use crate::shelf::Shelf;

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

/// One epoch, in which these units are written and synced.
fn life(config: &PoolConfig<DriveConfig>, shelf: &mut Shelf, units: &[u64], byte: u8) {
    let (mut rig, _) = Rig::on(config, shelf);
    for &unit in units {
        assert_eq!(rig.write_through(unit, byte), Status::Success);
    }
    let images = rig.shelf().images;
    for (member, image) in images.into_iter().enumerate() {
        if shelf.present(member as u16) {
            shelf.images[member] = image;
        }
    }
}

#[test]
fn a_copy_from_the_life_before_is_refused() {
    for logs in 1..3 {
        let config = config(logs);
        let mut shelf = made(&config);
        life(&config, &mut shelf, &[0, 1], 1);
        let old = shelf.clone();
        life(&config, &mut shelf, &[0, 2], 2);
        for member in 0..=logs {
            let mut mixed = shelf.clone();
            mixed.images[member] = old.images[member].clone();
            let refused = recovered(&config, &mut mixed).err();
            assert_eq!(
                refused,
                Some(Damage::Outdated(member as u16)),
                "{logs} logs"
            );
        }
        // All of them are a previous state of the volume.
        assert_eq!([0, 1, 2].map(|unit| at(&config, &old, unit)), [1, 1, 0]);
        assert_eq!([0, 1, 2].map(|unit| at(&config, &shelf, unit)), [2, 1, 2]);
    }
}

#[test]
fn a_log_that_was_given_up_is_taken_back_and_an_older_copy_of_it_is_not() {
    let config = config(2);
    let mut shelf = made(&config);
    let older = shelf.clone();
    life(&config, &mut shelf, &[0], 1);
    for byte in 2..5 {
        shelf.absent = vec![1];
        life(&config, &mut shelf, &[1, 2, 3], byte);
    }
    let mut mixed = shelf.clone();
    mixed.absent.clear();
    mixed.images[1] = older.images[1].clone();
    let refused = recovered(&config, &mut mixed).err();
    assert_eq!(refused, Some(Damage::Outdated(1)));
    shelf.absent.clear();
    life(&config, &mut shelf, &[4, 5], 5);
    let found = [1, 2, 3, 4, 5].map(|unit| at(&config, &shelf, unit));
    assert_eq!(found, [4, 4, 4, 5, 5]);
}

/// Records the writes and syncs of a recovery.
struct Steps<'a> {
    shelf: &'a mut Shelf,
    writes: Vec<(u16, u64, Vec<u8>)>,
}

impl Images for Steps<'_> {
    fn present(&self, member: u16) -> bool {
        self.shelf.present(member)
    }
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.shelf.read(member, at, into)
    }
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        self.writes.push((member, at, data.to_vec()));
        self.shelf.write(member, at, data)
    }
    fn sync(&mut self, member: u16) -> Result<(), Unwritable> {
        self.shelf.sync(member)
    }
}

/// Interrupted after each write and in the middle of each, and restarted from there, twice.
#[test]
fn a_start_may_be_cut_anywhere_and_begun_again() {
    let config = config(2);
    let mut shelf = made(&config);
    life(&config, &mut shelf, &[0, 1, 2], 1);
    let writes = |shelf: &Shelf| {
        let mut copy = shelf.clone();
        let mut steps = Steps {
            shelf: &mut copy,
            writes: Vec::new(),
        };
        offline::recover(&config, POOL, &mut steps).expect("it is right");
        steps.writes
    };
    let cut = |before: &Shelf, writes: &[(u16, u64, Vec<u8>)], torn: bool| {
        let mut shelf = before.clone();
        for (index, (member, at, data)) in writes.iter().enumerate() {
            let last = torn && index + 1 == writes.len();
            let data = if last {
                &data[..data.len() / 2 / 512 * 512]
            } else {
                data
            };
            let image = &mut shelf.images[usize::from(*member)];
            image.write(*at, data).expect("it is in memory");
        }
        shelf
    };
    let first = writes(&shelf);
    for count in 0..=first.len() {
        for torn in [false, true] {
            let once = cut(&shelf, &first[..count], torn);
            let second = writes(&once);
            for count in (0..=second.len()).step_by(3) {
                let mut twice = cut(&once, &second[..count], !torn);
                let (_, found) = Rig::on(&config, &mut twice);
                let lost = found
                    .iter()
                    .any(|it| matches!(it, RecoveryFinding::Lost(_)));
                assert!(!lost, "cut after {count}: {found:?}");
                assert_eq!(
                    [0, 1, 2, 3].map(|unit| at(&config, &twice, unit)),
                    [1, 1, 1, 0]
                );
            }
        }
    }
}
