//! How likely a drive or a pool is to lose durable data, where each of its members is lost with the same odds.
//!
//! It follows from the pool's promise: members fail independently of each other and for good, and nobody replaces one.
//! Left out: repair, failures of one cause, and the memory of the machine, which is taken to have power.

use catalogue::DriveSheet;
use model::media::DriveConfig;

/// More members than this are too many sets to look at.
const MOST_MEMBERS: usize = 20;

/// The share of a drive's or pool's kind that loses durable data where this share of drives is lost; `None` of a pool in
/// which more than twenty members matter.
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
            // Either of two mirrors: 1 - (1 - 0.01)^2.
            ("stripe(mirror(2*p4801x-100), mirror(2*p4801x-100))", 0.0199),
        ] {
            let found = of(drive);
            assert!((found - expected).abs() < 1e-12, "{drive}: {found}");
        }
    }
}
