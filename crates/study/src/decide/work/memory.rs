//! Memory of pools with an intent log: how much of what is written stays there at the end of a run.

use catalogue::DriveSheet;
use lab::Outcome;
use model::Gauge;
use tier::{DriveConfig, Kind};

use super::super::tally::Tally;

/// Returns the maximum bytes that a pool with an intent log holds in memory; `None` for other pools and drives.
pub(super) fn dirty_max(sheet: &DriveSheet) -> Option<u64> {
    dirty_max_of(&sheet.config)
}

/// As [`dirty_max`], of a drive's configuration.
pub(in crate::decide) fn dirty_max_of(config: &DriveConfig) -> Option<u64> {
    let DriveConfig::Pool(pool) = config else {
        return None;
    };
    let tiers = &pool.tiers;
    let logs = tiers.iter().filter_map(|tier| match &tier.kind {
        Kind::IntentLog(config) => Some(config.dirty_max()),
        _ => None,
    });
    logs.reduce(|sum, bytes| sum + bytes)
}

/// Share of the writes that may stay in memory in the counted time: above it, a rate says little on the drives.
pub const IN_MEMORY: f64 = 0.1;
/// Returns the share of the written bytes that stayed in the memory of a pool with an intent log. It is of the counted
/// time, and of the run with the most; 0 if memory did not fill further. `None` for other drives.
pub fn stays_in_memory(drive: &DriveSheet, outcomes: &[Outcome]) -> Option<f64> {
    dirty_max(drive)?;
    let of = |outcome: &Outcome| {
        let levels = outcome.over_time.series(Gauge::DirtyBytes)?;
        let every = outcome.over_time.every.ns().max(1);
        let counted = (outcome.counted.ns() / every) as usize;
        let end = levels.last()?;
        let begin = match levels.len().checked_sub(counted + 1) {
            Some(index) => levels[index],
            None => 0.0,
        };
        let written =
            Tally::from_runs(&[outcome]).written_bytes_a_second() * outcome.counted.seconds();
        Some(((end - begin) / written.max(1.0)).clamp(0.0, 1.0))
    };
    outcomes.iter().filter_map(of).max_by(f64::total_cmp)
}
