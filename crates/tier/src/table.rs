//! A sparse table from numbers to values: two levels, no hashing.
//!
//! A root with an entry for each 1024 numbers, and leaves of 1024 values in one arena. A leaf is allocated when the
//! first of its numbers is set, and reused for other numbers once all are cleared. It takes 4 bytes per number of every
//! 1024 that contain a set number.

use alloc::vec;
use alloc::vec::Vec;

/// Numbers per leaf.
const LEAF: u64 = 1024;

/// Values of 32 bits, below `u32::MAX`, by number. A value is stored plus one, so that no stored value is zero.
#[derive(Clone, Debug, Default)]
pub(super) struct SparseTable {
    /// One more than the number of the leaf; 0 if no number is set.
    root: Vec<u32>,
    leaves: Vec<u32>,
    /// By leaf: how many numbers are set.
    used: Vec<u16>,
    free: Vec<u32>,
}

impl SparseTable {
    /// Creates a table for numbers below `bound`, none of which is set.
    pub(super) fn new(bound: u64) -> SparseTable {
        SparseTable {
            root: vec![0; bound.div_ceil(LEAF) as usize],
            leaves: Vec::new(),
            used: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Returns the value of a number, if set.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<u32> {
        let leaf = self.root[(number / LEAF) as usize].checked_sub(1)?;
        self.leaves[place(leaf, number)].checked_sub(1)
    }

    /// Sets a number's value; returns the previous value.
    #[inline]
    pub(super) fn set(&mut self, number: u64, value: u32) -> Option<u32> {
        debug_assert!(value < u32::MAX, "a value that means nothing");
        let root = &mut self.root[(number / LEAF) as usize];
        if *root == 0 {
            let leaf = self.free.pop().unwrap_or_else(|| {
                self.leaves.resize(self.leaves.len() + LEAF as usize, 0);
                self.used.push(0);
                (self.used.len() - 1) as u32
            });
            *root = leaf + 1;
        }
        let leaf = *root - 1;
        let old = core::mem::replace(&mut self.leaves[place(leaf, number)], value + 1);
        self.used[leaf as usize] += u16::from(old == 0);
        old.checked_sub(1)
    }

    /// Clears a number's value.
    #[inline]
    pub(super) fn clear(&mut self, number: u64) {
        let root = &mut self.root[(number / LEAF) as usize];
        let Some(leaf) = root.checked_sub(1) else {
            return;
        };
        let old = core::mem::take(&mut self.leaves[place(leaf, number)]);
        let used = &mut self.used[leaf as usize];
        *used -= u16::from(old != 0);
        if *used == 0 {
            *root = 0;
            self.free.push(leaf);
        }
    }

    /// Clears all values and keeps the memory.
    pub(super) fn reset(&mut self) {
        self.root.fill(0);
        self.leaves.clear();
        self.used.clear();
        self.free.clear();
    }
}

#[inline]
fn place(leaf: u32, number: u64) -> usize {
    leaf as usize * LEAF as usize + (number % LEAF) as usize
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_what_an_ordered_map_is(
            steps in prop::collection::vec((0u64..6000, 0u32..50, 0u8..20), 1..300),
        ) {
            let (mut table, mut shadow) = (SparseTable::new(6000), BTreeMap::new());
            for (number, value, what) in steps {
                match what {
                    0 => {
                        table.reset();
                        shadow.clear();
                    }
                    1..=9 => {
                        table.clear(number);
                        shadow.remove(&number);
                    }
                    _ => prop_assert_eq!(table.set(number, value), shadow.insert(number, value)),
                }
                prop_assert_eq!(table.get(number), shadow.get(&number).copied());
            }
            let found: Vec<(u64, u32)> =
                (0..6000).filter_map(|number| Some((number, table.get(number)?))).collect();
            prop_assert_eq!(found, shadow.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn empty_leaves_are_used_again() {
        let mut table = SparseTable::new(1 << 20);
        for round in 0..1000 {
            table.set(round * 1024, 7);
            table.clear(round * 1024);
        }
        assert_eq!(table.leaves.len(), 1024);
    }
}
