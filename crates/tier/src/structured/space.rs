//! Space of the capacity child: which stripe has which block, and which stripes are free.
//!
//! A stripe is a sequence of slots, one for each stored block. A block that is written again gets a slot in another
//! stripe; a stripe without live blocks is free. Blocks that were written in order before the run are in the slots of
//! their own numbers and take no memory here.

use alloc::vec;
use alloc::vec::Vec;

use crate::table::SparseTable;

/// Marks a block that was trimmed.
const HOLE: u32 = u32::MAX - 1;

/// Stripes among which the one with the fewest live blocks is cleaned.
const SEARCHED: u32 = 4096;

/// Maximum number of slots: a slot is a number of 32 bits.
pub(super) const MOST_SLOTS: u64 = HOLE as u64;

/// Blocks, slots and stripes.
#[derive(Clone, Debug)]
pub(super) struct StripeSpace {
    /// Slots per stripe.
    per: u32,
    /// Slots of blocks written since the start, and the blocks in slots used since then.
    slots: SparseTable,
    blocks: SparseTable,
    /// Number of blocks; those below `filled` were written before the run.
    count: u64,
    filled: u64,
    /// By stripe: live blocks, and whether it is in memory (one bit each).
    live: Vec<u16>,
    in_memory: Vec<u64>,
    /// By stripe: whether its blocks have been moved, but are not durable elsewhere yet (one bit each).
    held: Vec<u64>,
    /// A planted bug: no stripe is held.
    #[cfg(test)]
    pub(super) frees_early: bool,
    free: u32,
    /// Where the search for a free stripe, and for one to be cleaned, continues.
    next: u32,
    next_cleaned: u32,
}

impl StripeSpace {
    /// Creates the space of `stripes` stripes for `blocks` blocks, all of them written in order if `filled` is set.
    pub(super) fn new(stripes: u32, per: u32, blocks: u64, filled: bool) -> StripeSpace {
        let filled = if filled { blocks } else { 0 };
        let full = (filled / u64::from(per)) as usize;
        let mut live = vec![0; stripes as usize];
        live[..full].fill(per as u16);
        let rest = (filled % u64::from(per)) as u16;
        if rest > 0 {
            live[full] = rest;
        }
        let used = full as u32 + u32::from(rest > 0);
        StripeSpace {
            per,
            slots: SparseTable::new(blocks),
            blocks: SparseTable::new(u64::from(stripes) * u64::from(per)),
            count: blocks,
            filled,
            live,
            in_memory: vec![0; (stripes as usize).div_ceil(64)],
            held: vec![0; (stripes as usize).div_ceil(64)],
            #[cfg(test)]
            frees_early: false,
            free: stripes - used,
            next: used % stripes.max(1),
            next_cleaned: 0,
        }
    }

    /// Returns the number of free stripes.
    pub(super) fn free(&self) -> u32 {
        self.free
    }

    pub(super) fn stripes(&self) -> u32 {
        self.live.len() as u32
    }

    pub(super) fn per(&self) -> u32 {
        self.per
    }

    pub(super) fn stripe_of(&self, slot: u32) -> u32 {
        slot / self.per
    }

    /// Returns the slot of a block; `None` if it has no data.
    #[inline]
    pub(super) fn slot(&self, block: u64) -> Option<u32> {
        match self.slots.get(block) {
            Some(HOLE) => None,
            Some(slot) => Some(slot),
            None => (block < self.filled).then_some(block as u32),
        }
    }

    /// Whether a stripe is in memory: it accepts blocks or is being written.
    #[inline]
    pub(super) fn is_in_memory(&self, stripe: u32) -> bool {
        self.in_memory[stripe as usize / 64] & 1 << (stripe % 64) != 0
    }

    /// Whether a stripe has no live blocks and no other use.
    #[inline]
    fn is_free(&self, stripe: u32) -> bool {
        let is_held = self.held[stripe as usize / 64] & 1 << (stripe % 64) != 0;
        self.live[stripe as usize] == 0 && !is_held && !self.is_in_memory(stripe)
    }

    /// The live blocks of a stripe are about to move: it is not free before [`StripeSpace::release`].
    pub(super) fn hold(&mut self, stripe: u32) {
        #[cfg(test)]
        if self.frees_early {
            return;
        }
        self.held[stripe as usize / 64] |= 1 << (stripe % 64);
    }

    /// The blocks of a held stripe are durable elsewhere.
    pub(super) fn release(&mut self, stripe: u32) {
        let bit = 1 << (stripe % 64);
        if self.held[stripe as usize / 64] & bit != 0 {
            self.held[stripe as usize / 64] &= !bit;
            self.free += u32::from(self.is_free(stripe));
        }
    }

    /// Takes a free stripe into memory.
    pub(super) fn take(&mut self) -> Option<u32> {
        let count = self.stripes();
        if self.free == 0 {
            return None;
        }
        let mut round = (0..count).map(|it| (self.next + it) % count);
        let stripe = round.find(|&it| self.is_free(it))?;
        self.in_memory[stripe as usize / 64] |= 1 << (stripe % 64);
        self.free -= 1;
        self.next = (stripe + 1) % count;
        Some(stripe)
    }

    /// A stripe has been written, and leaves memory.
    pub(super) fn written(&mut self, stripe: u32) {
        self.in_memory[stripe as usize / 64] &= !(1 << (stripe % 64));
        self.free += u32::from(self.is_free(stripe));
    }

    /// A block is in this slot now.
    pub(super) fn place(&mut self, block: u64, slot: u32) {
        self.leave(block);
        self.slots.set(block, slot);
        self.blocks.set(u64::from(slot), block as u32);
        let stripe = self.stripe_of(slot);
        self.live[stripe as usize] += 1;
    }

    /// A block has no data any more.
    pub(super) fn trim(&mut self, block: u64) {
        if self.slot(block).is_some() {
            self.leave(block);
            self.slots.set(block, HOLE);
        }
    }

    /// Frees the slot of a block.
    fn leave(&mut self, block: u64) {
        let Some(slot) = self.slot(block) else {
            return;
        };
        let stripe = self.stripe_of(slot);
        self.live[stripe as usize] -= 1;
        self.free += u32::from(self.is_free(stripe));
    }

    /// Returns the stripe that is cleaned next: the one with the fewest live blocks among the next 4,096, or among all
    /// if those have no free slots.
    pub(super) fn victim(&mut self) -> Option<u32> {
        let count = self.stripes();
        let mut searched = 0;
        while searched < count {
            let most = SEARCHED.min(count - searched);
            let round = (0..most).map(|it| (self.next_cleaned + it) % count);
            let used = round.filter(|&it| self.live[it as usize] > 0 && !self.is_in_memory(it));
            let emptiest = used.min_by_key(|&it| self.live[it as usize]);
            let gains = |it: &u32| u32::from(self.live[*it as usize]) < self.per;
            if let Some(stripe) = emptiest.filter(gains) {
                self.next_cleaned = (stripe + 1) % count;
                return Some(stripe);
            }
            self.next_cleaned = (self.next_cleaned + most) % count;
            searched += most;
        }
        None
    }

    /// Returns the live blocks of a stripe, in the order of their slots.
    pub(super) fn live_blocks(&self, stripe: u32) -> impl Iterator<Item = u64> + '_ {
        let first = stripe * self.per;
        (first..first + self.per).filter_map(|slot| {
            let block = match self.blocks.get(u64::from(slot)) {
                Some(block) => u64::from(block),
                None => u64::from(slot),
            };
            // A slot that was never used may have a larger number than any block.
            let is_live = block < self.count && self.slot(block) == Some(slot);
            is_live.then_some(block)
        })
    }

    /// Power cut: stripes in memory are written from the log, which takes no virtual time.
    pub(super) fn power_cut(&mut self) {
        for stripe in 0..self.stripes() {
            if self.is_in_memory(stripe) {
                self.written(stripe);
            }
            self.release(stripe);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_is_free_once_its_blocks_are_elsewhere() {
        // Five stripes of four slots; ten blocks fill two and a half.
        let mut space = StripeSpace::new(5, 4, 10, true);
        assert_eq!((space.free(), space.slot(9)), (2, Some(9)));
        let stripe = space.take().expect("two are free");
        assert_eq!((stripe, space.free()), (3, 1));
        for (index, block) in (0..4).enumerate() {
            space.place(block, stripe * 4 + index as u32);
        }
        assert_eq!((space.free(), space.slot(2)), (2, Some(14)));
        space.written(stripe);
        assert_eq!(space.free(), 2);
        // The stripe of blocks 8 and 9 has free slots, that of 4 to 7 has none.
        assert_eq!(space.victim(), Some(2));
        assert_eq!(space.live_blocks(2).collect::<Vec<_>>(), [8, 9]);
        space.trim(8);
        space.trim(8);
        assert_eq!((space.slot(8), space.free()), (None, 2));
        space.trim(9);
        assert_eq!(space.free(), 3);
    }

    #[test]
    fn a_stripe_in_memory_is_not_free_and_is_not_cleaned() {
        let mut space = StripeSpace::new(3, 2, 4, false);
        assert_eq!(space.slot(0), None);
        let stripe = space.take().expect("all are free");
        space.place(0, stripe * 2);
        assert_eq!(space.victim(), None);
        space.trim(0);
        assert_eq!(space.free(), 2);
        space.power_cut();
        assert_eq!(space.free(), 3);
    }

    #[test]
    fn a_held_stripe_is_not_free() {
        let mut space = StripeSpace::new(3, 2, 2, true);
        space.hold(0);
        let stripe = space.take().expect("two are free");
        space.place(0, stripe * 2);
        space.place(1, stripe * 2 + 1);
        assert_eq!((space.free(), space.take()), (1, Some(2)));
        assert_eq!(space.take(), None);
        space.release(0);
        space.release(0);
        assert_eq!((space.free(), space.take()), (1, Some(0)));
    }

    #[test]
    fn full_stripes_are_not_cleaned() {
        let mut space = StripeSpace::new(3, 2, 4, true);
        assert_eq!(space.victim(), None);
        space.trim(3);
        assert_eq!(space.victim(), Some(1));
    }
}
