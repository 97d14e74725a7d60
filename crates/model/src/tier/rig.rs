//! A pool with data in a test: one client that waits for each of its writes, and the members' images as they stand, to be
//! recovered from.

use alloc::vec;
use alloc::vec::Vec;

use super::offline::{self, Damage, Found, Recovered};
use super::shelf::Shelf;
use super::{Pool, PoolConfig};
use crate::command::{Command, Status};
use crate::data::{Buffers, Bytes, Image, Kept};
use crate::device::Device;
use crate::media::{Drive, DriveConfig, Medium, Precondition};
use crate::time::Time;

/// The identity of these pools.
pub(super) const POOL: u128 = 99;
/// What a write writes.
pub(super) const UNIT: u32 = 4096;

pub(super) struct Rig {
    pub(super) pool: Pool<Kept<Drive, Image>, Bytes>,
    pub(super) bytes: Bytes,
    pub(super) now: Time,
}

impl Rig {
    /// The pool as it is found on these images, and what was found.
    pub(super) fn on(config: &PoolConfig<DriveConfig>, shelf: &mut Shelf) -> (Rig, Vec<Found>) {
        let recovered = recovered(config, shelf).expect("it is right");
        let found = recovered.found.iter().map(|it| it.1).collect();
        let bytes = Bytes::default();
        let members = config.members.iter().zip(&shelf.images);
        let kept = members.map(|(member, image)| {
            let drive = member.drive.build(Precondition::Fresh, 1);
            Kept::new(drive, image.clone(), bytes.clone(), false)
        });
        let tiers = recovered.tiers(config);
        let pool = Pool::resume(config, kept.collect(), tiers, bytes.clone());
        let now = Time::ZERO;
        (Rig { pool, bytes, now }, found)
    }

    pub(super) fn write(&mut self, unit: u64, byte: u8) -> Status {
        self.put(byte, Command::write(0, unit * u64::from(UNIT), UNIT))
    }

    /// A write that is to be on the medium when it is acknowledged.
    pub(super) fn write_through(&mut self, unit: u64, byte: u8) -> Status {
        let write = Command::write(0, unit * u64::from(UNIT), UNIT);
        self.put(byte, Command { fua: true, ..write })
    }

    /// This write of one unit, all of this byte.
    pub(super) fn put(&mut self, byte: u8, command: Command) -> Status {
        let payload = self.bytes.take(UNIT);
        self.bytes.put(payload, &vec![byte; UNIT as usize]);
        self.ask(Command { payload, ..command })
    }

    pub(super) fn ask(&mut self, command: Command) -> Status {
        self.pool.submit(self.now, command);
        let mut done = Vec::new();
        while done.is_empty() {
            let next = self.pool.next_event();
            self.now = self.pool.advance(next, next, &mut done);
        }
        self.bytes.give_back(command.payload);
        done[0].status
    }

    /// Until nothing is left to do.
    pub(super) fn rest(&mut self) {
        while self.pool.next_event() != Time::NEVER {
            let next = self.pool.next_event();
            self.now = self.pool.advance(next, next, &mut Vec::new());
        }
    }

    pub(super) fn shelf(&self) -> Shelf {
        let images = self.pool.members().iter().map(|it| it.contents().clone());
        Shelf {
            images: images.collect(),
            absent: Vec::new(),
        }
    }
}

/// Empty images of all members, made into this pool.
pub(super) fn made(config: &PoolConfig<DriveConfig>) -> Shelf {
    let mut shelf = Shelf::new(config.members.len());
    offline::format(config, POOL, &mut shelf).expect("all are there");
    shelf
}

pub(super) fn recovered(
    config: &PoolConfig<DriveConfig>,
    shelf: &mut Shelf,
) -> Result<Recovered, Damage> {
    offline::recover(config, POOL, shelf).map_err(|it| it.1)
}

/// The first byte of a unit, as the pool gives it once it is recovered.
pub(super) fn at(config: &PoolConfig<DriveConfig>, shelf: &Shelf, unit: u64) -> u8 {
    let mut shelf = shelf.clone();
    let tiers = recovered(config, &mut shelf).expect("it is right");
    let mut data = [0; UNIT as usize];
    let read = tiers.read(config, &mut shelf, 0, unit * u64::from(UNIT), &mut data);
    read.expect("it can be read");
    data[0]
}
