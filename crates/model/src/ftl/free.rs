//! Erased blocks of each die, in the order in which they were erased: using them in that order levels wear.
//!
//! The number of blocks of each die is stored separately: it is read whenever a die has finished a read, and reading it
//! from the queue would cost one cache line per die.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::numbers::{Block, Die};

/// Erased blocks by die.
#[derive(Clone, Debug)]
pub(super) struct FreeBlocks {
    queues: Vec<VecDeque<Block>>,
    /// Length of each die's queue.
    counts: Vec<u32>,
}

impl FreeBlocks {
    /// Creates empty queues for `dies` dies.
    pub(super) fn none_of(dies: u32) -> FreeBlocks {
        FreeBlocks {
            queues: vec![VecDeque::new(); dies as usize],
            counts: vec![0; dies as usize],
        }
    }

    /// Adds a block of this die that has been erased.
    pub(super) fn push(&mut self, die: Die, block: Block) {
        self.queues[die.index()].push_back(block);
        self.counts[die.index()] += 1;
    }

    /// Removes and returns the block of a die that was erased first.
    pub(super) fn pop(&mut self, die: Die) -> Option<Block> {
        let block = self.queues[die.index()].pop_front()?;
        self.counts[die.index()] -= 1;
        Some(block)
    }

    /// Returns the number of free blocks of a die.
    #[inline]
    pub(super) fn count(&self, die: Die) -> u32 {
        self.counts[die.index()]
    }

    /// Returns the number of free blocks of all dies.
    pub(super) fn all(&self) -> u32 {
        self.counts.iter().sum()
    }

    /// Returns all free blocks, for checks.
    pub(super) fn each(&self) -> impl Iterator<Item = Block> + '_ {
        self.queues.iter().flatten().copied()
    }

    /// Becomes a copy of `others`, reusing this one's memory.
    pub(super) fn copy_from(&mut self, others: &FreeBlocks) {
        self.queues.clone_from(&others.queues);
        self.counts.clone_from(&others.counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_taken_in_turn_and_counted() {
        let mut free = FreeBlocks::none_of(2);
        for (die, block) in [(0, 3), (1, 9), (0, 1)] {
            free.push(Die(die), Block(block));
        }
        let counts = |free: &FreeBlocks| (free.count(Die(0)), free.count(Die(1)), free.all());
        assert_eq!(counts(&free), (2, 1, 3));
        let before = free.clone();
        assert_eq!(free.pop(Die(0)), Some(Block(3)));
        assert_eq!(free.pop(Die(0)), Some(Block(1)));
        assert_eq!(free.pop(Die(0)), None);
        assert_eq!(counts(&free), (0, 1, 1));
        assert!(free.each().eq([Block(9)]));
        free.copy_from(&before);
        assert_eq!(counts(&free), (2, 1, 3));
        assert_eq!(free.pop(Die(0)), Some(Block(3)));
    }
}
