//! A small drive or pool that represents a whole one, so that hours of writing are simulated in seconds.
//!
//! Members, and byte limits of tiers, are reduced by one factor ([`model::media::Medium::shrunk`]). Rates are
//! unchanged, and buffers fill faster by the factor, so times of such a run are multiplied by it. A pool with an
//! intent log or a hard disk is never scaled, because the five seconds of a transaction group and seek times do not
//! scale. No pool is scaled further than its smallest member allows: flash blocks have a minimum size, and a small
//! member has too few units for accurate shares.

use model::media::Medium;
use tier::DriveConfig;

use super::cache::cache_of;

/// Scaling factors; the first that every member allows is used.
const FACTORS: [u64; 6] = [200, 100, 50, 20, 10, 5];

/// Minimum bytes of a scaled member.
const LEAST: f64 = 256e6;

/// Maximum deviation of a member from the factor, as a share.
const OFF: f64 = 0.1;

/// A drive, and the factor by which the whole one is larger.
#[derive(Debug)]
pub(crate) struct ScaledDrive {
    pub(crate) drive: DriveConfig,
    pub(crate) stretch: f64,
}

impl ScaledDrive {
    /// Returns the unscaled drive.
    pub(super) fn whole(drive: &DriveConfig) -> ScaledDrive {
        ScaledDrive {
            drive: drive.clone(),
            stretch: 1.0,
        }
    }

    /// Returns the smallest drive that still represents the whole one.
    pub(crate) fn smallest_for(whole: &DriveConfig) -> ScaledDrive {
        let bytes = whole.capacity_bytes();
        for factor in FACTORS {
            let drive = whole.shrunk(bytes / factor);
            let alike = |(small, large): (f64, f64)| {
                small >= LEAST && (large / small / factor as f64 - 1.0).abs() < OFF
            };
            let small = leaves(&drive).into_iter();
            if small.zip(leaves(whole)).all(alike) {
                // In a pool with a cache, the cache determines the time to fill.
                let fills =
                    |it: &DriveConfig| cache_of(it).map_or(it.capacity_bytes(), |it| it.bytes);
                let stretch = fills(whole) as f64 / fills(&drive) as f64;
                return ScaledDrive { drive, stretch };
            }
        }
        ScaledDrive::whole(whole)
    }
}

/// Returns the bytes of each drive; none can be scaled if one of them is a hard disk.
fn leaves(drive: &DriveConfig) -> Vec<f64> {
    match drive {
        DriveConfig::Pool(pool) => {
            let members = pool.members.iter();
            members.flat_map(|it| leaves(&it.drive)).collect()
        }
        DriveConfig::Hdd(_) => vec![1.0],
        other => vec![other.capacity_bytes() as f64],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_of_flash_are_scaled_and_those_with_disks_or_a_log_are_not() {
        let stretch = |name: &str| {
            let sheet = catalogue::drive(name).unwrap_or_else(|problems| panic!("{problems}"));
            ScaledDrive::smallest_for(&sheet.config).stretch
        };
        let group = stretch("group");
        assert!((190.0..=210.0).contains(&group), "{group}");
        assert_eq!(stretch("s2-slog"), 1.0);
        assert_eq!(stretch("slog-mirror"), 1.0);
        assert_eq!(stretch("exos-x18-16tb"), 1.0);
        let behind = "read-cache(cache=p4800x-375, main=exos-x18-16tb)";
        assert_eq!(stretch(behind), 1.0);
    }
}
