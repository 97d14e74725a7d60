//! A NAND drive as a smaller one that behaves alike, said in changed figures of its file: what fits into a page's memory,
//! and what the command line takes as `--set`.
//!
//! Rates and latencies stay within some percent of the whole drive's (docs/what-if.md). Left out: other media, and NAND
//! drives in a pool, which are run as they are.

use model::Span;
use model::media::nand::NandConfig;
use model::media::{DriveConfig, Medium};

use super::{Change, DriveSheet};

/// A NAND drive larger than this (bytes) is run smaller.
const LARGEST: u64 = 64_000_000_000;

impl DriveSheet {
    /// The configuration of about 64 GB that behaves as this drive, and the changed figures of its file that make it;
    /// `None` of a drive that is not of NAND.
    pub fn smaller(&self) -> Option<(DriveConfig, Vec<Change>)> {
        let DriveConfig::Nand(whole) = &self.config else {
            return None;
        };
        let small = whole.shrunk(LARGEST);
        let changes = changes(whole, &small);
        Some((DriveConfig::Nand(Box::new(small)), changes))
    }
}

/// What makes the small drive of the whole one.
fn changes(whole: &NandConfig, small: &NandConfig) -> Vec<Change> {
    let (from, to) = (&whole.geometry, &small.geometry);
    let erase = |config: &NandConfig| config.timing.erase;
    let slc = |config: &NandConfig| config.slc.as_ref().map(|slc| slc.blocks_per_die);
    let map = |config: &NandConfig| config.map.as_ref().map(|map| map.bytes);
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
