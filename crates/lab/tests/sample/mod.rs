//! Which drives of the catalogue a slow test runs: all that somebody measured, and of those made from data sheets the first
//! of each family, as they differ in few figures, and none whose map would take more memory than machines that test have.

use std::collections::BTreeSet;

/// Bytes of the largest drive that is run: its map takes two 32-bit numbers for each 4 KiB.
const MOST: u64 = 4_000_000_000_000;

/// Their names, in the order of the catalogue.
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
