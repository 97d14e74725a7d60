//! A pool with data for tests: one client that waits for each of its writes, and the current images of the members, for
//! recovery.

use alloc::vec;
use alloc::vec::Vec;

use model::command::{Command, Status};
use model::data::{Buffers, Bytes, DataBackedDrive, Image};
use model::device::Device;
use model::media::{Medium, Precondition};
use model::time::Time;

use super::offline::{self, Damage, RecoveredTiers, RecoveryFinding};
use super::shelf::Shelf;
use super::{Pool, PoolConfig};
use crate::{Drive, DriveConfig};

/// Identifier of these pools.
pub(super) const POOL: u128 = 99;
/// Bytes per write.
pub(super) const UNIT: u32 = 4096;

pub(super) struct Rig {
    pub(super) pool: Pool<DataBackedDrive<Drive, Image>, Bytes>,
    pub(super) bytes: Bytes,
    pub(super) now: Time,
}

impl Rig {
    /// Recovers the pool from these images; returns it with the findings.
    pub(super) fn on(
        config: &PoolConfig<DriveConfig>,
        shelf: &mut Shelf,
    ) -> (Rig, Vec<RecoveryFinding>) {
        let recovered = recovered(config, shelf).expect("it is right");
        let found = recovered.found.iter().map(|it| it.1).collect();
        (Rig::start(config, recovered, shelf), found)
    }

    /// Starts a recovered pool on these images.
    pub(super) fn start(
        config: &PoolConfig<DriveConfig>,
        recovered: RecoveredTiers,
        shelf: &Shelf,
    ) -> Rig {
        let bytes = Bytes::default();
        let members = config.members.iter().zip(&shelf.images);
        let kept = members.map(|(member, image)| {
            let drive = member.drive.build(Precondition::Fresh, 1);
            let volatile = member.drive.volatile_write_cache();
            DataBackedDrive::new(drive, image.clone(), bytes.clone(), volatile)
        });
        let tiers = recovered.tiers(config);
        let pool = Pool::resume(config, kept.collect(), tiers, bytes.clone());
        let now = Time::ZERO;
        Rig { pool, bytes, now }
    }

    pub(super) fn write(&mut self, unit: u64, byte: u8) -> Status {
        self.put(byte, Command::write(0, unit * u64::from(UNIT), UNIT))
    }

    /// Writes a unit that must be on the medium when it is acknowledged.
    pub(super) fn write_through(&mut self, unit: u64, byte: u8) -> Status {
        let write = Command::write(0, unit * u64::from(UNIT), UNIT);
        self.put(byte, Command { fua: true, ..write })
    }

    /// Executes this write of one unit, filled with this byte.
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
        self.bytes.release(command.payload);
        done[0].status
    }

    /// Runs until no event is left.
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

/// Creates empty images of all members, formatted as this pool.
pub(super) fn made(config: &PoolConfig<DriveConfig>) -> Shelf {
    let mut shelf = Shelf::new(config.members.len());
    offline::format(config, POOL, &mut shelf).expect("all are there");
    shelf
}

pub(super) fn recovered(
    config: &PoolConfig<DriveConfig>,
    shelf: &mut Shelf,
) -> Result<RecoveredTiers, Damage> {
    offline::recover(config, POOL, shelf).map_err(|it| it.1)
}

/// Returns the first byte of a unit, as read from the pool after recovery.
pub(super) fn at(config: &PoolConfig<DriveConfig>, shelf: &Shelf, unit: u64) -> u8 {
    let mut shelf = shelf.clone();
    let tiers = recovered(config, &mut shelf).expect("it is right");
    let mut data = [0; UNIT as usize];
    let read = tiers.read(config, &mut shelf, 0, unit * u64::from(UNIT), &mut data);
    read.expect("it can be read");
    data[0]
}

/// Recovers the tiers of a pool, with possible loss accepted.
pub(super) fn recovered_with_loss(
    config: &PoolConfig<DriveConfig>,
    shelf: &mut Shelf,
) -> RecoveredTiers {
    let start = offline::RecoveryInput {
        pool: POOL,
        mark: 0,
        remembered: None,
        in_sync: &[],
        bytes: None,
        accept_loss: true,
    };
    offline::open(config, &start, shelf).unwrap_or_else(|it| panic!("{}: {}", it.0, it.1))
}
