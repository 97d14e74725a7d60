//! pSLC blocks (one bit per cell): their maximum number per die, which blocks they are, and their capacity.
//!
//! When they are used and emptied is decided in `media::nand`.

use alloc::vec;
use alloc::vec::Vec;

use super::numbers::{Block, Die};

/// The pSLC blocks of one drive.
#[derive(Clone, Debug)]
pub(super) struct SlcPool {
    /// Maximum number per die at a time.
    pub(super) most: u32,
    /// Slots per pSLC block.
    pub(super) slots: u32,
    /// Whether the host waits for a pSLC block to be emptied if there is no space for another; otherwise it writes
    /// normal blocks.
    pub(super) folds: bool,
    /// By die: number of pSLC blocks.
    used: Vec<u32>,
    /// By block: whether it is a pSLC block.
    is: Vec<bool>,
}

impl SlcPool {
    /// Creates an empty pool; at most `most` blocks per die, with `slots` slots each.
    pub(super) fn new(most: u32, slots: u32, folds: bool, dies: u32, blocks: usize) -> SlcPool {
        SlcPool {
            most,
            slots,
            folds,
            used: vec![0; dies as usize],
            is: vec![false; blocks],
        }
    }

    /// Returns the number of pSLC blocks of a die.
    pub(super) fn used(&self, die: Die) -> u32 {
        self.used[die.index()]
    }

    /// Whether a die may open another.
    #[inline]
    pub(super) fn may_open(&self, die: Die) -> bool {
        self.used(die) < self.most
    }

    /// Whether a block is a pSLC block.
    #[inline]
    pub(super) fn is(&self, block: usize) -> bool {
        self.is[block]
    }

    /// Records that a block of a die becomes a pSLC block.
    pub(super) fn opened(&mut self, die: Die, block: Block) {
        self.used[die.index()] += 1;
        self.is[block.index()] = true;
    }

    /// Records that a block of a die was erased, whether it is a pSLC block or not.
    pub(super) fn erased(&mut self, die: Die, block: Block) {
        if core::mem::take(&mut self.is[block.index()]) {
            self.used[die.index()] -= 1;
        }
    }
}
