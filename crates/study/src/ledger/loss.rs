//! Probability that a drive or a pool loses durable data if each of its members is lost with the same probability.
//!
//! It follows from the pool's durability guarantee: members fail independently of each other and permanently, and none
//! is replaced. Not modelled: repair, failures with a common cause, and the machine's memory, which is assumed to have
//! power.

use catalogue::DriveSheet;
use tier::DriveConfig;

/// Maximum number of members: above it there are too many sets to enumerate.
const MOST_MEMBERS: usize = 20;

/// Returns the share of such drives or pools that lose durable data if the share `lost` of drives is lost; `None` for
/// a pool in which more than twenty members matter.
pub(super) fn odds(sheet: &DriveSheet, lost: f64) -> Option<f64> {
    let DriveConfig::Pool(pool) = &sheet.config else {
        return Some(lost);
    };
    let loss = pool.promise().loss;
    let cut_sets = loss.cut_sets();
    let mut members: Vec<u16> = cut_sets.into_iter().flat_map(|(set, _)| set).collect();
    members.sort_unstable();
    members.dedup();
    if members.len() > MOST_MEMBERS {
        return None;
    }
    let sets = 0..1u32 << members.len();
    let losing = sets.filter(|set| {
        let place = |member: u16| members.iter().position(|known| *known == member);
        let failed = |member| place(member).is_some_and(|place| set >> place & 1 == 1);
        loss.happens(&failed, false)
    });
    let odds = losing.map(|set| {
        let failed = set.count_ones() as i32;
        let standing = members.len() as i32 - failed;
        lost.powi(failed) * (1.0 - lost).powi(standing)
    });
    Some(odds.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_is_lost_with_any_member_and_a_mirror_with_all() {
        let of = |drive: &str| {
            let sheet = catalogue::drive(drive).unwrap_or_else(|problems| panic!("{problems}"));
            odds(&sheet, 0.1).expect("few members")
        };
        for (drive, expected) in [
            ("p4801x-100", 0.1),
            ("stripe(2*p4801x-100)", 0.19),
            ("mirror(2*p4801x-100)", 0.01),
            ("mirror(3*p4801x-100)", 0.001),
            // One of two mirrors is lost: 1 - (1 - 0.01)^2.
            ("stripe(mirror(2*p4801x-100), mirror(2*p4801x-100))", 0.0199),
        ] {
            let found = of(drive);
            assert!((found - expected).abs() < 1e-12, "{drive}: {found}");
        }
    }
}
