//! Write buffers of pools that short runs do not fill: what comes once they are full is in none of the runs' figures.
//!
//! Told is when that is, and by arithmetic what the drives behind are written from then on: what the host writes, spread evenly. Left out:
//! what is overwritten before it is destaged, so that it is the most; write amplification, which a run would have to show.

use catalogue::DriveSheet;
use lab::Outcome;
use model::Time;
use model::tier::{Kind, PoolConfig, Target, TierConfig};
use serde::Serialize;

use super::life::years_to_rating;
use crate::review::results::rounded;

/// What is destaged to a member, at most.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Destaged {
    /// 10^6 bytes a second.
    pub mb_s: f64,
    /// Years until its rated bytes are written; null without a rating.
    pub years_to_rating: Option<f64>,
}

/// A pool's write buffer that no run filled.
pub(super) struct Buffer {
    /// Seconds until it is full if nothing is destaged.
    pub(super) full_after: f64,
    /// By member; none where it is not known how writes reach them.
    pub(super) destaged: Vec<(usize, Destaged)>,
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
        destaged: destaged(drive, pool, tier, bytes_a_second),
    })
}

/// What is destaged to each member behind this tier, if all that the host writes comes through it.
fn destaged(
    drive: &DriveSheet,
    pool: &PoolConfig<model::media::DriveConfig>,
    tier: usize,
    bytes_a_second: f64,
) -> Vec<(usize, Destaged)> {
    let members = drive.named_members();
    let [_, behind @ ..] = &pool.tiers[tier].children[..] else {
        return Vec::new();
    };
    if pool.volumes[..] != [tier as u16] {
        return Vec::new();
    }
    let mut shares = vec![0.0; members.len()];
    let each = 1.0 / behind.len() as f64;
    let known = behind
        .iter()
        .all(|&child| reaches(pool, child, each, &mut shares));
    if !known {
        return Vec::new();
    }
    let of = |(member, (_, sheet)): (usize, &(&str, &DriveSheet))| {
        let mb_s = shares[member] * bytes_a_second * 1e-6;
        (mb_s > 0.0).then(|| {
            let destaged = Destaged {
                mb_s: rounded(mb_s),
                years_to_rating: years_to_rating(sheet, mb_s),
            };
            (member, destaged)
        })
    };
    members.iter().enumerate().filter_map(of).collect()
}

/// Adds what of a share of writes reaches members below; whether that is known of all tiers on the way.
fn reaches(
    pool: &PoolConfig<model::media::DriveConfig>,
    target: Target,
    share: f64,
    shares: &mut [f64],
) -> bool {
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
