//! Selection of catalogue drives for slow tests: all measured drives, and the first data-sheet drive of each family,
//! because these differ in few figures. Drives whose map needs more memory than test machines have are excluded.

use std::collections::BTreeSet;

use tier::DriveConfig;

/// Maximum capacity of a drive in bytes: its map has two 32-bit numbers per 4 KiB.
const MOST: u64 = 4_000_000_000_000;

/// Returns their names, in the order of the catalogue.
pub(crate) fn drives() -> Vec<&'static str> {
    let mut families = BTreeSet::new();
    let all = catalogue::drive_names().into_iter();
    all.filter(|name| {
        let sheet = catalogue::drive(name).unwrap_or_else(|problems| panic!("{problems}"));
        let from_sheet = sheet.ratings_met().is_some();
        sheet.capacity < MOST && (!from_sheet || families.insert(sheet.family))
    })
    .collect()
}

/// Whether a drive collects garbage in bursts: it is in steady state only over several of them. Its cycle takes 0.07 to
/// 0.13 s at its maximum rate of random writes, and a run can begin and end anywhere in it (decision 0148).
pub(crate) fn has_bursts(config: &DriveConfig) -> bool {
    matches!(config, DriveConfig::Nand(drive) if drive.collection.bursts.is_some())
}
