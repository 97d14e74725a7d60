//! A table like [`super::table`] that needs less memory if few of the adjacent numbers are in use. A large write-back
//! cache needs this, because its dirty units are scattered over several times as many numbers.
//!
//! A leaf for each 1024 numbers has one bit per number and the values of the numbers that are set, stored contiguously.
//! If more than three quarters are set, each number has a fixed position. A value therefore takes 4 bytes plus a tenth
//! of that, and a leaf 200 bytes: 5.2 bytes per value if a quarter is set, 5.9 at worst above a fifth. A look-up takes
//! two memory reads more than in a table; setting a value moves those after it, at most 3 KiB.

use alloc::vec;
use alloc::vec::Vec;

/// Numbers per leaf.
pub(super) const LEAF: u64 = 1024;
const WORDS: usize = LEAF as usize / 64;
/// If more numbers than this are set, each gets a fixed position.
const MOST_PACKED: u16 = 768;
/// If fewer numbers than this are set, they are packed again.
const FEW: u16 = 640;

#[derive(Clone, Debug, Default)]
struct Leaf {
    /// Numbers that are set.
    bits: [u64; WORDS],
    /// How many are set before each word.
    before: [u16; WORDS],
    used: u16,
    /// First number of the leaf, divided by 1024.
    number: u32,
    values: Vec<u32>,
}

impl Leaf {
    fn is_flat(&self) -> bool {
        self.values.len() == LEAF as usize
    }

    /// Returns the position of a number's value, or where it would be inserted.
    #[inline]
    fn place(&self, at: usize) -> usize {
        let (word, bit) = (at / 64, at % 64);
        match self.is_flat() {
            true => at,
            false => {
                let lower = self.bits[word] & ((1 << bit) - 1);
                usize::from(self.before[word]) + lower.count_ones() as usize
            }
        }
    }

    #[inline]
    fn has(&self, at: usize) -> bool {
        self.bits[at / 64] >> (at % 64) & 1 == 1
    }

    fn insert(&mut self, at: usize, value: u32) {
        if self.used == MOST_PACKED && !self.is_flat() {
            self.flatten();
        }
        let place = self.place(at);
        if self.is_flat() {
            self.values[place] = value;
        } else {
            if self.values.len() == self.values.capacity() {
                // A flat leaf is identified by its length, so a packed one must never have that length.
                self.values.reserve_exact(self.values.len() / 8 + 8);
            }
            self.values.insert(place, value);
        }
        self.bits[at / 64] |= 1 << (at % 64);
        self.count(at, 1);
    }

    /// Gives each number a fixed position.
    fn flatten(&mut self) {
        let mut flat = vec![0; LEAF as usize];
        self.each(|at, value| flat[at] = value);
        self.values = flat;
    }

    /// Sets these numbers, in ascending order, in an empty leaf.
    fn fill(&mut self, ascending: impl Iterator<Item = (u64, u32)>) {
        // Built in a separate array: otherwise the memory left by shrinking would be too small for the next leaf.
        let mut values = [0; LEAF as usize];
        let mut count = 0;
        for (at, value) in ascending {
            self.bits[at as usize / 64] |= 1 << (at % 64);
            values[count] = value;
            count += 1;
        }
        for (bits, before) in self.bits.iter().zip(&mut self.before) {
            *before = self.used;
            self.used += bits.count_ones() as u16;
        }
        self.values = Vec::with_capacity(count + count / 16 + 4);
        self.values.extend_from_slice(&values[..count]);
        if self.used > MOST_PACKED {
            self.flatten();
        }
    }

    fn remove(&mut self, at: usize) {
        if !self.is_flat() {
            let place = self.place(at);
            self.values.remove(place);
            // Some spare capacity is kept, because removed values often return.
            if self.values.capacity() > self.values.len() + self.values.len() / 4 + 16 {
                self.values
                    .shrink_to(self.values.len() + self.values.len() / 8 + 8);
            }
        }
        self.bits[at / 64] &= !(1 << (at % 64));
        self.count(at, u16::MAX);
        if self.is_flat() && self.used < FEW {
            let mut packed = Vec::with_capacity(usize::from(self.used) + 32);
            self.each(|_, value| packed.push(value));
            self.values = packed;
        }
    }

    fn count(&mut self, at: usize, change: u16) {
        self.used = self.used.wrapping_add(change);
        for before in &mut self.before[at / 64 + 1..] {
            *before = before.wrapping_add(change);
        }
    }

    /// Calls `what` for the numbers within the leaf that are set, with their values, in order.
    #[inline]
    fn each(&self, mut what: impl FnMut(usize, u32)) {
        let (flat, mut next) = (self.is_flat(), 0);
        for (word, &bits) in self.bits.iter().enumerate() {
            let mut left = bits;
            while left != 0 {
                let at = word * 64 + left.trailing_zeros() as usize;
                what(at, self.values[if flat { at } else { next }]);
                next += 1;
                left &= left - 1;
            }
        }
    }
}

/// Values of 32 bits by number.
#[derive(Clone, Debug, Default)]
pub(super) struct PackedTable {
    /// One more than the number of the leaf; 0 if no number is set.
    root: Vec<u32>,
    leaves: Vec<Leaf>,
    free: Vec<u32>,
}

impl PackedTable {
    /// Creates a table for numbers below `bound`, none of which is set.
    pub(super) fn new(bound: u64) -> PackedTable {
        PackedTable {
            root: vec![0; bound.div_ceil(LEAF) as usize],
            leaves: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Sets these numbers of a leaf in which none is set: in ascending order, each relative to the leaf's first.
    pub(super) fn set_leaf(&mut self, number: u64, ascending: impl Iterator<Item = (u64, u32)>) {
        debug_assert_eq!(self.root[number as usize], 0, "something is set");
        let mut ascending = ascending.peekable();
        if ascending.peek().is_some() {
            self.leaf(number).fill(ascending);
        }
    }

    /// Returns a leaf, which is created if necessary.
    #[inline]
    fn leaf(&mut self, number: u64) -> &mut Leaf {
        let root = &mut self.root[number as usize];
        if *root == 0 {
            let leaf = self.free.pop().unwrap_or_else(|| {
                self.leaves.push(Leaf::default());
                (self.leaves.len() - 1) as u32
            });
            self.leaves[leaf as usize].number = number as u32;
            *root = leaf + 1;
        }
        &mut self.leaves[*root as usize - 1]
    }

    /// Returns the value of a number, if set.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<u32> {
        let leaf = self.root[(number / LEAF) as usize].checked_sub(1)?;
        let leaf = &self.leaves[leaf as usize];
        let at = (number % LEAF) as usize;
        leaf.has(at).then(|| leaf.values[leaf.place(at)])
    }

    /// Sets a number's value; returns the previous value.
    #[inline]
    pub(super) fn set(&mut self, number: u64, value: u32) -> Option<u32> {
        let leaf = self.leaf(number / LEAF);
        let at = (number % LEAF) as usize;
        if leaf.has(at) {
            let place = leaf.place(at);
            return Some(core::mem::replace(&mut leaf.values[place], value));
        }
        leaf.insert(at, value);
        None
    }

    /// Clears a number's value.
    #[inline]
    pub(super) fn clear(&mut self, number: u64) {
        let root = &mut self.root[(number / LEAF) as usize];
        let Some(index) = root.checked_sub(1) else {
            return;
        };
        let leaf = &mut self.leaves[index as usize];
        let at = (number % LEAF) as usize;
        if leaf.has(at) {
            leaf.remove(at);
            if leaf.used == 0 {
                leaf.values = Vec::new();
                *root = 0;
                self.free.push(index);
            }
        }
    }

    /// Returns the first number after `number` that may be set; `number` itself must not be set. Whole empty leaves are
    /// skipped.
    pub(super) fn skip(&self, number: u64) -> u64 {
        match self.root[(number / LEAF) as usize] {
            0 => (number / LEAF + 1) * LEAF,
            _ => number + 1,
        }
    }

    /// Calls `what` for all numbers that are set, with their values, in no particular order.
    pub(super) fn each(&self, mut what: impl FnMut(u64, u32)) {
        for leaf in self.leaves.iter().filter(|it| it.used > 0) {
            let first = u64::from(leaf.number) * LEAF;
            leaf.each(|at, value| what(first + at as u64, value));
        }
    }

    /// Returns the bytes of memory in use, excluding the allocator's overhead.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let values: usize = self.leaves.iter().map(|it| it.values.capacity()).sum();
        let leaves = self.leaves.len() * size_of::<Leaf>();
        4 * (values + self.root.len() + self.free.len()) + leaves
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_what_an_ordered_map_is(
            steps in prop::collection::vec((0u64..6000, any::<u32>(), 0u8..20), 1..300),
            full in 0u64..4000,
            at_once: bool,
        ) {
            let (mut table, mut shadow) = (PackedTable::new(6000), BTreeMap::new());
            for number in (0..full).filter(|it| it % 7 != 3) {
                table.set(number, number as u32 * 3);
                shadow.insert(number, number as u32 * 3);
            }
            if at_once {
                table = PackedTable::new(6000);
                for leaf in 0..6 {
                    let all = shadow.range(leaf * LEAF..(leaf + 1) * LEAF);
                    table.set_leaf(leaf, all.map(|(&number, &value)| (number % LEAF, value)));
                }
            }
            for (number, value, what) in steps {
                match what {
                    0 => for gone in number..(number + 300).min(6000) {
                        table.clear(gone);
                        shadow.remove(&gone);
                    },
                    1..=9 => {
                        table.clear(number);
                        shadow.remove(&number);
                    }
                    _ => prop_assert_eq!(table.set(number, value), shadow.insert(number, value)),
                }
                prop_assert_eq!(table.get(number), shadow.get(&number).copied());
            }
            let (mut number, mut found) = (0, Vec::new());
            while number < 6000 {
                match table.get(number) {
                    Some(value) => {
                        found.push((number, value));
                        number += 1;
                    }
                    None => number = table.skip(number),
                }
            }
            let mut each = Vec::new();
            table.each(|number, value| each.push((number, value)));
            each.sort_unstable();
            prop_assert_eq!(&each, &found);
            prop_assert_eq!(found, shadow.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn empty_leaves_are_used_again() {
        let mut table = PackedTable::new(1 << 20);
        for round in 0..1000 {
            table.set(round * 1024, 7);
            table.clear(round * 1024);
        }
        assert_eq!(table.leaves.len(), 1);
    }

    /// Scattered over five times their number, over four times, and contiguous.
    #[test]
    fn a_value_takes_less_than_six_bytes_from_a_fifth_on() {
        for share in [5_u64, 4, 3, 2, 1] {
            let bound = 1 << 20;
            let (mut table, set) = (PackedTable::new(bound), bound / share);
            for index in 0..set {
                table.set(index * 648_055 % bound, 1);
            }
            let each = table.bytes() as f64 / set as f64;
            assert!(each < 6.0, "1 of {share}: {each} bytes");
            // As many at other positions, with the first ones cleared: no memory is left behind.
            if share > 1 {
                for index in 0..set {
                    table.set((set + index) * 648_055 % bound, 1);
                    table.clear(index * 648_055 % bound);
                }
                let each = table.bytes() as f64 / set as f64;
                assert!(
                    each < 6.0,
                    "1 of {share} after as many changes: {each} bytes"
                );
            }
        }
    }
}
