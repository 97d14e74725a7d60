//! Blocks written with one bit a cell: how many each die may have, which they are, and how much one holds.
//!
//! Leaves out: when they are used and emptied, which `media::nand` decides.

use alloc::vec;
use alloc::vec::Vec;

use super::numbers::{Block, Die};

/// The blocks of one bit a cell of one drive.
#[derive(Clone, Debug)]
pub(super) struct SlcPool {
    /// Most of a die at a time.
    pub(super) most: u32,
    /// Slots such a block holds.
    pub(super) slots: u32,
    /// Whether the host waits for them to be emptied when there is no room for another; else it writes other blocks.
    pub(super) folds: bool,
    /// By die: how many there are.
    used: Vec<u32>,
    /// By block.
    is: Vec<bool>,
}

impl SlcPool {
    /// None yet; at most `most` of each die, of `slots` each.
    pub(super) fn new(most: u32, slots: u32, folds: bool, dies: u32, blocks: usize) -> SlcPool {
        SlcPool {
            most,
            slots,
            folds,
            used: vec![0; dies as usize],
            is: vec![false; blocks],
        }
    }

    /// How many a die has.
    pub(super) fn used(&self, die: Die) -> u32 {
        self.used[die.index()]
    }

    /// Whether a die may have another.
    #[inline]
    pub(super) fn may_open(&self, die: Die) -> bool {
        self.used(die) < self.most
    }

    /// Whether a block is one.
    #[inline]
    pub(super) fn is(&self, block: usize) -> bool {
        self.is[block]
    }

    /// Takes note that a block of a die becomes one.
    pub(super) fn opened(&mut self, die: Die, block: Block) {
        self.used[die.index()] += 1;
        self.is[block.index()] = true;
    }

    /// Takes note that a block of a die was erased, be it one or not.
    pub(super) fn erased(&mut self, die: Die, block: Block) {
        if core::mem::take(&mut self.is[block.index()]) {
            self.used[die.index()] -= 1;
        }
    }
}
