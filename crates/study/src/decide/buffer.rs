//! Write buffers of pools that short runs do not fill: no figure of the runs covers the time after that.
//!
//! Reported are the time until the buffer is full and, by arithmetic, the bytes that the backing drives are then
//! written: the host's writes, spread evenly. Not modelled: data that is overwritten before it is destaged, so that
//! the figure is an upper bound; write amplification, which only a run would show.

use catalogue::DriveSheet;
use lab::Outcome;
use model::Time;
use tier::{DriveConfig, Kind, PoolConfig, Target, TierConfig};

use crate::review::results::rounded;

/// A pool's write buffer that no run filled.
pub(super) struct Buffer {
    /// Seconds until it is full if nothing is destaged.
    pub(super) full_after: f64,
    /// Members, each with its maximum write rate in 10^6 bytes per second; empty if it is unknown how writes reach
    /// them.
    pub(super) destaged: Vec<(usize, f64)>,
}

/// Returns the write buffer that this rate in bytes per second does not fill within the runs. Pools with several
/// buffers distribute writes over them, some of them twice; for these, nothing is reported.
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

/// Returns the rate destaged to each member below this tier, if all writes of the host pass through it.
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

/// Adds the part of a share of writes that reaches each member below. Returns whether that is known for all tiers in
/// between.
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
