//! Garbage collection of one die as far as it has come: the victim that is being looked at, copies on their way, and
//! what the host has earned.
//!
//! A die short of free blocks takes host pages only as fast as collection earns them: a victim with `v` valid slots of
//! `S` earns `S - v`, a little with each page that is looked at. The drive goes through this in time
//! (`media::nand::collect`), [`super::Replay`] without, in the same steps, so that one goes on where the other stopped.

use alloc::vec::Vec;

use super::{Block, Ftl, Page, Shape, Slot};

/// Pages of host data that collection keeps a die ready for. Small, so that a drive collects as much as the host
/// writes at every moment and not in bursts.
pub const AHEAD_PAGES: i64 = 3;

/// A copy on its way: page and the slot it came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copying {
    /// The logical page.
    pub page: Page,
    /// The slot it was read from.
    pub from: Slot,
}

/// Garbage collection of one die.
#[derive(Clone, Debug)]
pub struct Collecting {
    /// The block being read, if any.
    pub victim: Option<Block>,
    /// Slots of it that have been looked at.
    scanned: u32,
    /// Slots that collecting it frees.
    gain: u32,
    /// Units that the sense under way brings.
    pub sensing: u32,
    /// Copies read but not programmed: less than two pages.
    pub gathered: Vec<Copying>,
    /// Copies being programmed.
    pub programming: Vec<Copying>,
    /// Blocks that have been read to the end, in order.
    pub emptied: Vec<Block>,
    /// Host slots that may be programmed here before collection must get on, times the slots of a block.
    pub budget: i64,
}

impl Collecting {
    /// Nothing begun, and what the die keeps ready is earned.
    pub fn new(shape: &Shape) -> Collecting {
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

    /// Goes on where another stopped, in the memory this one has.
    pub fn go_on_from(&mut self, other: &Collecting) {
        self.victim = other.victim;
        self.scanned = other.scanned;
        self.gain = other.gain;
        self.sensing = other.sensing;
        self.gathered.clone_from(&other.gathered);
        self.programming.clone_from(&other.programming);
        self.emptied.clone_from(&other.emptied);
        self.budget = other.budget;
    }

    /// Begins with a block of so many valid slots.
    pub fn begin(&mut self, ftl: &mut Ftl, victim: Block, valid: u32) {
        self.victim = Some(victim);
        self.scanned = 0;
        self.gain = ftl.shape().block_slots - valid;
        if valid == 0 {
            self.victim_read(ftl, victim);
        }
    }

    /// The victim has been looked at to its end.
    fn victim_read(&mut self, ftl: &mut Ftl, victim: Block) {
        let rest = ftl.shape().block_slots - self.scanned;
        ftl.collected(rest);
        self.budget += i64::from(rest) * i64::from(self.gain);
        self.emptied.push(victim);
        self.victim = None;
    }

    /// Gathers what is valid in the next page of the victim that holds anything; returns that page's first slot and how
    /// many units it had, or `None` if the victim has none left. Wants [`Ftl::catch_up`] before.
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
                    self.gathered.push(Copying { page, from });
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

    /// Takes a block out all of whose copies are programmed, so that it may be erased.
    pub fn take_emptied(&mut self, ftl: &Ftl) -> Option<Block> {
        let safe = |&block: &Block| ftl.valid_in(block) == 0;
        let at = self.emptied.iter().position(safe)?;
        Some(self.emptied.remove(at))
    }

    /// Slots that collecting the last victim frees.
    pub fn gain(&self) -> u64 {
        u64::from(self.gain)
    }

    /// Slots of the victim that have been looked at.
    #[cfg(test)]
    pub fn scanned(&self) -> u32 {
        self.scanned
    }

    /// Nothing is left to earn: the host may use what there is, a page of this price.
    pub fn give_up(&mut self, price: i64) {
        self.budget = self.budget.max(price);
    }
}

/// What a page of host data takes from a die's budget.
#[inline]
pub fn page_price(shape: &Shape) -> i64 {
    i64::from(shape.page_slots) * i64::from(shape.block_slots)
}
