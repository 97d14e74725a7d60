//! Wear of a drive whose run writes less than its pSLC cache holds.
//!
//! An initial state has data in the pSLC cache. The drive folds this data when it is idle, once. A run at a low arrival
//! rate ([`super::work::Load`]) is mostly idle time, so it programs gigabytes for this folding and megabytes for its own
//! writes. Write amplification and Percentage Used of such a run would be properties of its length. They are left out
//! until the host has written the capacity of the cache. Years to rated bytes do not depend on folding and remain.
//!
//! Not covered: runs of the usual length, which have little idle time, and a RAID 0 of one catalogue entry. The limit is
//! a choice of this project, not from a source.

use catalogue::DriveSheet;
use model::media::Medium;
use tier::DriveConfig;

use super::life_part::{FewWrites, LifePart};
use crate::review::results::rounded;

/// Returns the bytes that a pSLC cache holds; `None` without one.
fn cache_bytes(config: &DriveConfig) -> Option<f64> {
    let DriveConfig::Nand(nand) = config else {
        return None;
    };
    let slc = nand.slc.as_ref()?;
    let share = f64::from(slc.blocks_per_die) / f64::from(nand.geometry.blocks_per_plane);
    Some(nand.raw_bytes()? as f64 * share / f64::from(slc.bits))
}

/// Leaves out the wear of the parts to which a run at a low rate writes less than their pSLC cache holds.
/// `seconds` is the counted time of a run at a low rate; `None` for another run.
pub(super) fn leave_out_wear(drive: &DriveSheet, seconds: Option<f64>, parts: &mut [LifePart]) {
    let Some(seconds) = seconds else {
        return;
    };
    let members = drive.named_members();
    for (index, part) in parts.iter_mut().enumerate() {
        let sheet = match &drive.pool {
            Some(_) => members.get(index).map_or(drive, |(_, sheet)| sheet),
            None => drive,
        };
        let (Some(written), Some(cache)) = (&mut part.written, cache_bytes(&sheet.config)) else {
            continue;
        };
        let bytes = written.mb_s[0] * 1e6 * seconds;
        if bytes >= cache {
            continue;
        }
        written.write_amplification = None;
        part.used_percent_a_year = None;
        // A value that is exceeded already is known.
        let used = part.used_percent;
        part.passes.retain(|pass| pass.percent <= used);
        part.few_writes = Some(FewWrites {
            written_gb: rounded(bytes * 1e-9),
            cache_gb: rounded(cache * 1e-9),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::life::worn;
    use super::*;

    /// By hand: 50 kB/s for 220 s and more are megabytes, and the cache of a 990 PRO of 2 TB holds 226 GB.
    #[test]
    fn wear_needs_as_many_writes_as_the_cache_holds() {
        for (drive, rate, is_known) in [
            ("990pro-2000", 13_100.0, false),
            ("990pro-2000", 100e6, true),
            ("p3700-1600", 13_100.0, true),
            ("p4800x-375", 13_100.0, true),
        ] {
            let sheet = catalogue::drive(drive).expect("built in");
            let mut parts = [worn(drive, rate, rate * 48.7)];
            let rated = parts[0].years_to_rating();
            leave_out_wear(&sheet, Some(13_200.0), &mut parts);
            let [part] = &parts;
            let written = part.written.as_ref().expect("a load");
            assert_eq!(written.write_amplification.is_some(), is_known, "{drive}");
            assert_eq!(part.used_percent_a_year.is_some(), is_known, "{drive}");
            assert_eq!(part.passes.is_empty(), !is_known, "{drive}");
            assert_eq!(part.years_to_rating(), rated, "{drive}");
            if let Some(few) = &part.few_writes {
                assert!((few.cache_gb / 226.0 - 1.0).abs() < 0.1, "{few:?}");
                assert!((few.written_gb / 0.173 - 1.0).abs() < 0.01, "{few:?}");
            }
        }
        // A run of the usual length is not extended.
        let sheet = catalogue::drive("990pro-2000").expect("built in");
        let mut parts = [worn("990pro-2000", 13_100.0, 13_100.0)];
        leave_out_wear(&sheet, None, &mut parts);
        assert_eq!(parts[0].few_writes, None);
    }
}
