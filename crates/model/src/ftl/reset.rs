//! Reuse of a translation layer's memory: restores its tables to the initial state, or to a saved state.
//!
//! The tables of a large drive are address space that the operating system allocates page by page when touched, which
//! costs more than most other work of a short run. A caller that runs one plan after another therefore keeps them. Only
//! entries that may have been touched are restored. This does not change results: tests compare with new tables.

use alloc::vec::Vec;

use super::account::Account;
use super::changed::ChangeTracker;
use super::free::FreeBlocks;
use super::map::{Map, SavedMap};
use super::reverse::Reverse;
use super::stale::Stale;
use super::{Ftl, FtlGeometry, InitialLayout, OpenBlock, SlcPool, Traffic, Watermark};

/// The large tables of a translation layer.
#[derive(Debug)]
pub(super) struct FtlTables {
    pub(super) map: Map,
    pub(super) reverse: Reverse,
    pub(super) stale: Stale,
}

impl FtlTables {
    /// Creates empty tables of this shape.
    pub(super) fn new(shape: &FtlGeometry) -> FtlTables {
        FtlTables {
            map: Map::new(shape.logical),
            reverse: Reverse::zeroed(shape.slots()),
            stale: Stale::none(shape.slots()),
        }
    }

    /// Whether the tables have the size for this shape.
    fn fit(&self, shape: &FtlGeometry) -> bool {
        self.reverse.slots() == shape.slots() && self.map.is_of(shape.logical)
    }
}

/// State of a translation layer except its large tables.
#[derive(Clone, Debug)]
struct Rest {
    opened: Vec<bool>,
    valid: Vec<u16>,
    free: FreeBlocks,
    open: Vec<[OpenBlock; 3]>,
    slc: Option<SlcPool>,
    traffic: Traffic,
    account: Account,
}

impl Rest {
    fn from_ftl(ftl: &Ftl) -> Rest {
        Rest {
            opened: ftl.opened.clone(),
            valid: ftl.valid.clone(),
            free: ftl.free.clone(),
            open: ftl.open.clone(),
            slc: ftl.slc.clone(),
            traffic: ftl.traffic,
            account: ftl.account,
        }
    }

    /// Sets this state in a translation layer.
    fn give(&self, ftl: &mut Ftl) {
        ftl.opened.clone_from(&self.opened);
        ftl.valid.clone_from(&self.valid);
        ftl.free.copy_from(&self.free);
        ftl.open.clone_from(&self.open);
        ftl.slc.clone_from(&self.slc);
        ftl.traffic = self.traffic;
        ftl.account = self.account;
    }
}

/// A saved state of a translation layer: its initial state, and the changes since then.
#[derive(Clone, Debug)]
pub struct FtlSnapshot {
    map: SavedMap,
    stale: Vec<(u32, u64)>,
    /// Entries of the reverse map for the blocks that were opened, in order.
    reverse: Vec<u32>,
    /// By block: number of opened blocks before it.
    before: Vec<u32>,
    rest: Rest,
    start: Rest,
}

/// Returns the slots of the opened blocks, block by block.
fn slots_of(opened: &[bool], shape: &FtlGeometry) -> impl Iterator<Item = core::ops::Range<usize>> {
    let block_slots = shape.block_slots as usize;
    let blocks = opened.iter().enumerate().filter(|&(_, &opened)| opened);
    blocks.map(move |(block, _)| block * block_slots..(block + 1) * block_slots)
}

impl Ftl {
    /// Returns the same as [`Ftl::new`], reusing this one's memory if it has the right size.
    pub fn reset(
        self,
        shape: FtlGeometry,
        watermark: Watermark,
        layout: Option<InitialLayout>,
    ) -> Ftl {
        let mut tables = FtlTables {
            map: self.map,
            reverse: self.reverse,
            stale: self.stale,
        };
        if !tables.fit(&shape) {
            // Released first: two large drives at once may need too much memory.
            drop(tables);
            return Ftl::new(shape, watermark, layout);
        }
        for slots in slots_of(&self.opened, &self.shape) {
            tables.reverse.clear(slots);
        }
        // Slots become stale only if the map has moved their pages.
        if tables.map.clear() {
            tables.stale.clear();
        }
        Ftl::with_tables(shape, watermark, layout, tables)
    }

    /// Returns the current state, for [`Ftl::restore`] and [`Ftl::rewind`], and starts to record changes.
    pub fn save(&mut self) -> FtlSnapshot {
        self.catch_up();
        let mut reverse = Vec::new();
        for slots in slots_of(&self.opened, &self.shape) {
            self.reverse.copy_to(slots, &mut reverse);
        }
        let mut opened = 0;
        let count = |&is: &bool| {
            let before = opened;
            opened += u32::from(is);
            before
        };
        let before = self.opened.iter().map(count).collect();
        let saved = FtlSnapshot {
            map: self.map.save(),
            stale: self.stale.save(),
            reverse,
            before,
            rest: Rest::from_ftl(self),
            start: Rest::from_ftl(&self.started()),
        };
        self.watch();
        saved
    }

    /// Returns the initial state, without the large tables.
    fn started(&self) -> Ftl {
        let tables = FtlTables {
            map: Map::new(0),
            reverse: Reverse::zeroed(0),
            stale: Stale::none(0),
        };
        let start = Ftl::with_tables(self.shape, self.watermark, self.layout.clone(), tables);
        match &self.slc {
            Some(slc) => start.with_slc_of(slc.most, slc.slots, slc.folds),
            None => start,
        }
    }

    /// Starts to record changes.
    fn watch(&mut self) {
        self.map.watch();
        self.stale.watch();
        self.changed = ChangeTracker::none_of(self.valid.len());
    }

    /// Restores the saved state of a translation layer with the same initial state; nothing may have changed since the
    /// start.
    pub fn restore(&mut self, saved: &FtlSnapshot) {
        self.map.restore(&saved.map);
        self.stale.restore(&saved.stale);
        let mut from = 0;
        for slots in slots_of(&saved.rest.opened, &self.shape) {
            let until = from + slots.len();
            self.reverse.copy_from(slots, &saved.reverse[from..until]);
            from = until;
        }
        saved.rest.give(self);
        self.watch();
    }

    /// Returns to the initial state, prepared for [`Ftl::wake`] to the saved state. The FTL must have been in that
    /// state; changes since then are reverted, which takes as long as those changes took.
    pub fn rewind(mut self, saved: &FtlSnapshot) -> Ftl {
        self.map.put_back(&saved.map);
        self.stale.put_back(&saved.stale);
        let (reverse, block_slots) = (&mut self.reverse, self.shape.block_slots as usize);
        self.changed.drain(|block| {
            let slots = block * block_slots..(block + 1) * block_slots;
            if saved.rest.opened.get(block) == Some(&true) {
                let from = saved.before[block] as usize * block_slots;
                let entries = &saved.reverse[from..from + block_slots];
                reverse.copy_from(slots, entries);
            } else if slots.end <= reverse.slots() as usize {
                reverse.clear(slots);
            }
        });
        saved.start.give(&mut self);
        // The tables contain the saved state.
        self.opened.clone_from(&saved.rest.opened);
        self.asleep = true;
        self
    }

    /// Changes from the initial state to the state to which it was rewound; nothing may have changed since.
    pub fn wake(&mut self, saved: &FtlSnapshot) {
        debug_assert!(self.asleep);
        self.asleep = false;
        saved.rest.give(self);
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::*;
    use crate::ftl::replay::{self, UntimedWriter};
    use crate::ftl::{NandGeometry, Page, Slot, brute_force};

    const LOW: Watermark = Watermark { low: 3 };

    fn shape(fill: f64) -> FtlGeometry {
        let mut geometry = NandGeometry {
            channels: 3,
            dies_per_channel: 2,
            planes: 2,
            blocks_per_plane: 40,
            pages_per_block: 16,
            page_bytes: 16384,
            reserved: 0.0,
            capacity: 4096,
            indirection: 4096,
            stripe: 0,
        };
        geometry.capacity = (geometry.raw_bytes() as f64 * fill) as u64 / 4096 * 4096;
        geometry.shape(LOW.spare_blocks()).expect("possible")
    }

    /// Writes pages; no work is in progress at the end.
    fn warm_up(ftl: &mut Ftl, seed: u64) {
        let collecting = replay::warm_up(ftl, seed, 0);
        UntimedWriter::resume(ftl, collecting).finish();
    }

    fn steady(shape: FtlGeometry, seed: u64) -> Option<InitialLayout> {
        Some(InitialLayout::steady(shape, LOW.low, seed))
    }

    /// Returns everything that can be queried.
    fn told(ftl: &Ftl) -> String {
        let places: Vec<_> = (0..ftl.shape.logical)
            .map(|page| ftl.locate(Page(page)))
            .collect();
        let pages: Vec<_> = (0..ftl.shape.slots())
            .map(|slot| ftl.valid_page(Slot(slot)))
            .collect();
        format!(
            "{places:?} {pages:?} {:?} {:?} {:?} {:?} {:?}",
            ftl.valid, ftl.free, ftl.open, ftl.traffic, ftl.account
        )
    }

    #[test]
    fn a_reset_one_equals_a_new_one() {
        let (wide, narrow) = (shape(0.7), shape(0.5));
        let mut used = Ftl::new(wide, LOW, steady(wide, 1));
        warm_up(&mut used, 1);
        let collecting = brute_force(&mut used, 0.3, 2);
        UntimedWriter::resume(&mut used, collecting).finish();
        // First unchanged, then with another layout, then fresh, then with another size.
        for (shape, layout) in [
            (wide, steady(wide, 1)),
            (wide, steady(wide, 7)),
            (wide, Some(InitialLayout::filled(wide))),
            (wide, None),
            (narrow, steady(narrow, 3)),
        ] {
            used = used.reset(shape, LOW, layout.clone());
            let mut new = Ftl::new(shape, LOW, layout);
            assert_eq!(told(&used), told(&new));
            warm_up(&mut used, 5);
            warm_up(&mut new, 5);
            assert_eq!(told(&used), told(&new));
            used.check();
        }
    }

    #[test]
    fn a_rewound_one_is_as_it_began_and_wakes_as_it_was_saved() {
        let shape = shape(0.7);
        let layout = steady(shape, 4);
        let make = || Ftl::new(shape, LOW, layout.clone()).with_slc(4, 3, false);
        let began = told(&make());
        let mut used = make();
        warm_up(&mut used, 4);
        let saved = used.save();
        let then = told(&used);
        let mut laters = Vec::new();
        // Many and few writes, so that lines, bits and blocks are new, changed or unchanged.
        for fills in [0.3, 0.001, 0.0, 0.02] {
            let seed = laters.len() as u64;
            let collecting = brute_force(&mut used, fills, seed);
            UntimedWriter::resume(&mut used, collecting).finish();
            let later = told(&used);
            let mut new = make();
            new.restore(&saved);
            let collecting = brute_force(&mut new, fills, seed);
            UntimedWriter::resume(&mut new, collecting).finish();
            assert_eq!(later, told(&new), "{fills}");
            used.check();
            laters.push(later);
            used = used.rewind(&saved);
            assert_eq!(began, told(&used), "{fills}");
            let pages = || (0..shape.logical).map(Page);
            let foreseen: Vec<_> = pages().map(|page| used.foresee(page)).collect();
            used.wake(&saved);
            assert_eq!(then, told(&used), "{fills}");
            for (page, foreseen) in pages().zip(foreseen) {
                let place = used.locate_foreseen(page, foreseen);
                assert_eq!(place, used.locate(page), "{page:?}");
            }
        }
        laters.dedup();
        assert!(laters.len() > 2, "nothing was written");
        // A layer that is asleep, or has just woken, resets like any other.
        for wakes in [false, true] {
            used = used.rewind(&saved);
            if wakes {
                used.wake(&saved);
            }
            used = used.reset(shape, LOW, layout.clone()).with_slc(4, 3, false);
            assert_eq!(began, told(&used));
            used.restore(&saved);
            assert_eq!(then, told(&used));
        }
    }

    #[test]
    fn a_saved_state_comes_back_and_goes_on_as_it_would_have() {
        let shape = shape(0.7);
        let mut first = Ftl::new(shape, LOW, steady(shape, 4)).with_slc(4, 3, false);
        warm_up(&mut first, 4);
        let saved = first.save();
        let then = told(&first);
        warm_up(&mut first, 9);
        let later = told(&first);
        let mut second = first
            .reset(shape, LOW, steady(shape, 4))
            .with_slc(4, 3, false);
        second.restore(&saved);
        assert_eq!(told(&second), then);
        warm_up(&mut second, 9);
        assert_eq!(told(&second), later);
        assert_ne!(then, later);
        second.check();
    }
}
