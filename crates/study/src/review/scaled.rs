//! A small drive or pool that stands for a whole one, so that hours of writing are simulated in seconds.
//!
//! Members, and what tiers limit by bytes, are smaller by one factor ([`model::media::Medium::shrunk`]): rates stay, and
//! what fills, fills that many times as fast, so times of such a run are multiplied by the factor. A pool with an intent log
//! or a hard disk is never scaled: five seconds and seeks stay what they are. Nor is one further than its smallest member
//! can be: blocks of flash have a least size, and what is small has few units to tell shares by.

use model::media::{DriveConfig, Medium};

use super::cache::cache_of;

/// Smaller by these; the first that every member can be.
const FACTORS: [u64; 6] = [200, 100, 50, 20, 10, 5];

/// No member is made smaller than this.
const LEAST: f64 = 256e6;

/// How far members may be from the factor.
const OFF: f64 = 0.1;

/// A drive, and how many times larger the whole one is.
#[derive(Debug)]
pub(crate) struct Scaled {
    pub(crate) drive: DriveConfig,
    pub(crate) stretch: f64,
}

impl Scaled {
    /// Not smaller.
    pub(super) fn whole(drive: &DriveConfig) -> Scaled {
        Scaled {
            drive: drive.clone(),
            stretch: 1.0,
        }
    }

    /// As small as it can be and still stand for the whole.
    pub(crate) fn of(whole: &DriveConfig) -> Scaled {
        let bytes = whole.capacity_bytes();
        for factor in FACTORS {
            let drive = whole.shrunk(bytes / factor);
            let alike = |(small, large): (f64, f64)| {
                small >= LEAST && (large / small / factor as f64 - 1.0).abs() < OFF
            };
            let small = leaves(&drive).into_iter();
            if small.zip(leaves(whole)).all(alike) {
                // Of a pool with a cache that is what fills.
                let fills =
                    |it: &DriveConfig| cache_of(it).map_or(it.capacity_bytes(), |it| it.bytes);
                let stretch = fills(whole) as f64 / fills(&drive) as f64;
                return Scaled { drive, stretch };
            }
        }
        Scaled::whole(whole)
    }
}

/// Bytes of each drive; none can be smaller where a hard disk is among them.
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
            Scaled::of(&sheet.config).stretch
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
