//! A smaller NAND drive with the same behaviour, given as changed figures of its file. It fits into a page's memory,
//! and the command line accepts the figures as `--set`.
//!
//! Rates and latencies stay within a few percent of the whole drive's (docs/what-if.md). Not included: other media,
//! and NAND drives in a pool; these run unchanged.

use model::Span;
use model::media::Medium;
use model::media::nand::NandConfig;
use tier::DriveConfig;

use super::{Change, DriveSheet};

/// A NAND drive larger than this (bytes) is replaced by a smaller one.
const LARGEST: u64 = 64_000_000_000;

impl DriveSheet {
    /// Returns a configuration of about 64 GB that behaves as this drive, and the changed figures that produce it;
    /// `None` for a drive that is not NAND.
    pub fn smaller(&self) -> Option<(DriveConfig, Vec<Change>)> {
        let DriveConfig::Nand(whole) = &self.config else {
            return None;
        };
        let small = whole.shrunk(LARGEST);
        let changes = changes(whole, &small);
        Some((DriveConfig::Nand(Box::new(small)), changes))
    }
}

/// Returns the changed figures that turn the whole drive into the small one.
fn changes(whole: &NandConfig, small: &NandConfig) -> Vec<Change> {
    let (from, to) = (&whole.geometry, &small.geometry);
    let erase = |config: &NandConfig| config.timing.erase;
    let slc = |config: &NandConfig| config.slc.as_ref().map(|slc| slc.blocks_per_die);
    let map = |config: &NandConfig| config.map.as_ref().map(|map| map.bytes);
    let ahead = |config: &NandConfig| config.collection.background_free;
    let ns = |span: Span| format!("{} ns", span.ns());
    let all = [
        (
            from.capacity != to.capacity,
            "capacity",
            format!("{} B", to.capacity),
        ),
        (
            from.blocks_per_plane != to.blocks_per_plane,
            "nand.array.blocks_per_plane",
            to.blocks_per_plane.to_string(),
        ),
        (
            from.pages_per_block != to.pages_per_block,
            "nand.array.pages_per_block",
            to.pages_per_block.to_string(),
        ),
        (
            from.reserved.to_bits() != to.reserved.to_bits(),
            "nand.array.reserved",
            format!("{} %", to.reserved * 100.0),
        ),
        (
            slc(whole) != slc(small),
            "nand.slc.blocks_per_die",
            slc(small).unwrap_or_default().to_string(),
        ),
        (
            map(whole) != map(small),
            "nand.map.memory",
            format!("{} B", map(small).unwrap_or_default()),
        ),
        (
            ahead(whole) != ahead(small),
            "nand.collection.background_free",
            ahead(small).to_string(),
        ),
        (
            erase(whole) != erase(small),
            "nand.medium.erase",
            ns(erase(small)),
        ),
    ];
    let changed = all.into_iter().filter(|(changed, ..)| *changed);
    changed
        .map(|(_, key, value)| (key.to_owned(), value))
        .collect()
}
