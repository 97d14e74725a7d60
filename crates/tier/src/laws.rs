//! Tests for every pool, whatever its tiers: the laws of devices on its own drives, and data integrity on drives that
//! complete in random order.

use model::conformance::{self, OutOfOrderDrive, Witness};
use model::data::{DataBackedDrive, Image};
use model::media::{Medium, Precondition};

use crate::{Drive, DriveConfig, Member, Pool, PoolConfig};

/// Returns a pool of drives in steady state, with a witness in front of each.
pub(super) fn witnessed(config: &PoolConfig<DriveConfig>, seed: u64) -> Pool<Witness<Drive>> {
    let members = config.members.iter();
    let drives = members.map(|it| Witness::new(it.drive.build(Precondition::Steady, seed)));
    Pool::new(config, drives.collect())
}

pub(super) fn holds_the_laws(config: &PoolConfig<DriveConfig>) {
    conformance::check(|seed| witnessed(config, seed));
}

/// Checks that a read returns the newest data on members that complete in random order.
pub(super) fn gives_what_was_written(config: &PoolConfig<DriveConfig>) {
    conformance::check_data(|seed, buffers| {
        let kept = |(index, it): (usize, &Member<DriveConfig>)| {
            let seed = seed * 16 + index as u64;
            let drive = OutOfOrderDrive::new(seed, it.drive.capacity_bytes());
            DataBackedDrive::new(drive, Image::default(), buffers.clone(), false)
        };
        let members = config.members.iter().enumerate().map(kept);
        let tiers = config.build_tiers();
        Pool::resume(config, members.collect(), tiers, buffers.clone())
    });
}
