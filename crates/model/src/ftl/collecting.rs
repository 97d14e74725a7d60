//! State of garbage collection (GC) of one die: the victim that is being examined, copies in progress, and the budget
//! that the host has earned.
//!
//! A die that is short of free blocks accepts host pages only as fast as GC frees space for them. A victim with `v`
//! valid slots of `S` earns `S - v`, spread over the pages that are examined. The drive executes this in virtual time
//! (`media::nand::collector`), and [`super::UntimedWriter`] without time, in the same steps, so that one can continue where the
//! other stopped.

use alloc::vec::Vec;

use super::{Block, Ftl, FtlGeometry, Page, Slot};

/// Pages of host data that GC keeps a die ready for. The number is small, so that at every moment a drive collects as
/// much as the host writes, and not in bursts.
pub const AHEAD_PAGES: i64 = 3;

/// A copy in progress: the page and its source slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageCopy {
    /// The logical page.
    pub page: Page,
    /// The slot it was read from.
    pub from: Slot,
}

/// State of GC of one die.
#[derive(Clone, Debug)]
pub struct Collecting {
    /// The block being read, if any.
    pub victim: Option<Block>,
    /// Slots of the victim that have been examined.
    scanned: u32,
    /// Slots that its collection frees.
    gain: u32,
    /// Units that the read in progress returns.
    pub sensing: u32,
    /// Copies read but not programmed: less than two pages.
    pub gathered: Vec<PageCopy>,
    /// Copies being programmed.
    pub programming: Vec<PageCopy>,
    /// Blocks that have been read completely, in order.
    pub emptied: Vec<Block>,
    /// Host slots that may be programmed here before GC must continue, multiplied by the slots per block.
    pub budget: i64,
}

impl Collecting {
    /// Creates a state in which no GC is in progress and the budget is at its target.
    pub fn new(shape: &FtlGeometry) -> Collecting {
        let slots = shape.page_slots as usize;
        Collecting {
            victim: None,
            scanned: 0,
            gain: 0,
            sensing: 0,
            gathered: Vec::with_capacity(2 * slots),
            programming: Vec::with_capacity(slots),
            emptied: Vec::with_capacity(8),
            budget: AHEAD_PAGES * page_price(shape),
        }
    }

    /// Copies the state of another, reusing this one's memory.
    pub fn copy_from(&mut self, other: &Collecting) {
        self.victim = other.victim;
        self.scanned = other.scanned;
        self.gain = other.gain;
        self.sensing = other.sensing;
        self.gathered.clone_from(&other.gathered);
        self.programming.clone_from(&other.programming);
        self.emptied.clone_from(&other.emptied);
        self.budget = other.budget;
    }

    /// Starts with a block of `valid` valid slots.
    pub fn begin(&mut self, ftl: &mut Ftl, victim: Block, valid: u32) {
        self.victim = Some(victim);
        self.scanned = 0;
        self.gain = ftl.shape().block_slots - valid;
        if valid == 0 {
            self.victim_read(ftl, victim);
        }
    }

    /// The victim has been examined completely.
    fn victim_read(&mut self, ftl: &mut Ftl, victim: Block) {
        let rest = ftl.shape().block_slots - self.scanned;
        ftl.collected(rest);
        self.budget += i64::from(rest) * i64::from(self.gain);
        self.emptied.push(victim);
        self.victim = None;
    }

    /// Gathers the valid units of the victim's next page that has any. Returns that page's first slot and the number of
    /// units, or `None` if the victim has none left. Requires a previous [`Ftl::catch_up`].
    pub fn gather(&mut self, ftl: &mut Ftl) -> Option<(Slot, u32)> {
        let shape = *ftl.shape();
        while let Some(victim) = self.victim {
            if self.scanned == shape.block_slots {
                self.victim_read(ftl, victim);
                return None;
            }
            let first = shape.first_slot(victim).plus(self.scanned);
            let held = self.gathered.len();
            for from in (0..shape.page_slots).map(|further| first.plus(further)) {
                if let Some(page) = ftl.valid_page(from) {
                    self.gathered.push(PageCopy { page, from });
                }
            }
            self.scanned += shape.page_slots;
            ftl.collected(shape.page_slots);
            self.budget += i64::from(shape.page_slots) * i64::from(self.gain);
            let most = 2 * i64::from(shape.block_slots) * i64::from(shape.block_slots);
            self.budget = self.budget.min(most);
            let found = self.gathered.len() - held;
            if found > 0 {
                return Some((first, found as u32));
            }
        }
        None
    }

    /// Removes and returns a block whose copies are all programmed, so that it can be erased.
    pub fn take_emptied(&mut self, ftl: &Ftl) -> Option<Block> {
        let safe = |&block: &Block| ftl.valid_in(block) == 0;
        let at = self.emptied.iter().position(safe)?;
        Some(self.emptied.remove(at))
    }

    /// Returns the slots that collecting the last victim frees.
    pub fn gain(&self) -> u64 {
        u64::from(self.gain)
    }

    /// Returns the slots of the victim that have been examined.
    #[cfg(test)]
    pub fn scanned(&self) -> u32 {
        self.scanned
    }

    /// GC cannot free more space: the host may use the existing space, at this price per page.
    pub fn give_up(&mut self, price: i64) {
        self.budget = self.budget.max(price);
    }
}

/// Returns the price of a page of host data in a die's budget.
#[inline]
pub fn page_price(shape: &FtlGeometry) -> i64 {
    i64::from(shape.page_slots) * i64::from(shape.block_slots)
}
