//! Write buffers of pools that short runs do not fill: what comes once they are full is in none of the runs' figures.
//!
//! Told is when that is, and by arithmetic what the drives behind are written from then on: what the host writes, spread evenly. Left out:
//! what is overwritten before it is destaged, so that it is the most; write amplification, which a run would have to show.

use catalogue::DriveSheet;
use lab::Outcome;
use model::Time;
use model::media::DriveConfig;
use model::tier::{Kind, PoolConfig, Target, TierConfig};

use crate::review::results::rounded;

/// A pool's write buffer that no run filled.
pub(super) struct Buffer {
    /// Seconds until it is full if nothing is destaged.
    pub(super) full_after: f64,
    /// Members, each with what it is written at most, 10^6 bytes a second; none where it is not known how writes reach them.
    pub(super) destaged: Vec<(usize, f64)>,
}

/// The write buffer that so many bytes a second do not fill within the runs. Pools of several buffers spread writes over them, some of
/// them twice: of those nothing is told.
pub(super) fn not_full(
    drive: &DriveSheet,
    bytes_a_second: f64,
    outcomes: &[Outcome],
) -> Option<Buffer> {
    let pool = drive.pool_config()?;
    let buffer = |(tier, it): (usize, &TierConfig)| match &it.kind {
        Kind::WriteBack(config) => {
            let has = pool.child_bytes(tier).first().copied()?;
            let bytes = has.min(config.buffer_limit) as f64 * (1.0 - config.start);
            Some((tier, bytes))
        }
        _ => None,
    };
    let buffers: Vec<(usize, f64)> = pool.tiers.iter().enumerate().filter_map(buffer).collect();
    let [(tier, bytes)] = buffers[..] else {
        return None;
    };
    let full_after = bytes / bytes_a_second;
    let counted = outcomes
        .iter()
        .map(|one| one.end.since(Time::ZERO).seconds());
    let longest = counted.fold(0.0, f64::max);
    (full_after.is_finite() && full_after > longest).then(|| Buffer {
        full_after: rounded(full_after),
        destaged: destaged(pool, tier, bytes_a_second),
    })
}

/// What is destaged to each member behind this tier, if all that the host writes comes through it.
fn destaged(pool: &PoolConfig<DriveConfig>, tier: usize, bytes_a_second: f64) -> Vec<(usize, f64)> {
    let [_, behind @ ..] = &pool.tiers[tier].children[..] else {
        return Vec::new();
    };
    let mut shares = vec![0.0; pool.members.len()];
    let each = 1.0 / behind.len() as f64;
    let mut below = behind.iter();
    let known = pool.volumes[..] == [tier as u16]
        && below.all(|&child| reaches(pool, child, each, &mut shares));
    if !known {
        return Vec::new();
    }
    let rates = shares
        .into_iter()
        .map(|share| share * bytes_a_second * 1e-6);
    rates.enumerate().filter(|it| it.1 > 0.0).collect()
}

/// Adds what of a share of writes reaches members below; whether that is known of all tiers on the way.
fn reaches(pool: &PoolConfig<DriveConfig>, target: Target, share: f64, shares: &mut [f64]) -> bool {
    let tier = match target {
        Target::Slice { member, .. } => {
            shares[usize::from(member)] += share;
            return true;
        }
        Target::Tier(tier) => &pool.tiers[usize::from(tier)],
    };
    let each = match tier.kind {
        Kind::Mirror(_) => share,
        Kind::Stripe(_) | Kind::Concat(_) => share / tier.children.len() as f64,
        _ => return false,
    };
    let mut below = tier.children.iter();
    below.all(|&child| reaches(pool, child, each, shares))
}
