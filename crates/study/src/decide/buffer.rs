//! Write buffers of pools that short runs do not fill: what comes once they are full is in none of their figures.

use catalogue::DriveSheet;
use lab::Outcome;
use model::Time;
use model::tier::{Kind, TierConfig};

use crate::review::results::rounded;

/// When a pool's write buffer is full at so many bytes a second, if that is not within the runs. Pools of several buffers spread writes
/// over them, some of them twice: of those nothing is told.
pub(super) fn full_after(
    drive: &DriveSheet,
    bytes_a_second: f64,
    outcomes: &[Outcome],
) -> Option<f64> {
    let pool = drive.pool_config()?;
    let buffer = |(tier, it): (usize, &TierConfig)| match &it.kind {
        Kind::WriteBack(config) => {
            let has = pool.child_bytes(tier).first().copied()?;
            Some(has.min(config.buffer_limit) as f64 * (1.0 - config.start))
        }
        _ => None,
    };
    let buffers: Vec<f64> = pool.tiers.iter().enumerate().filter_map(buffer).collect();
    let [bytes] = buffers[..] else { return None };
    let seconds = bytes / bytes_a_second;
    let counted = outcomes
        .iter()
        .map(|one| one.end.since(Time::ZERO).seconds());
    let longest = counted.fold(0.0, f64::max);
    (seconds.is_finite() && seconds > longest).then(|| rounded(seconds))
}
