//! As [`super::table`], in less memory where few of the numbers that lie together are in use: what a large write-back cache
//! needs, whose dirty units are scattered over several times as many.
//!
//! A leaf for each 1024 numbers has a bit for each and, behind each other, the values of those that are set; from three
//! quarters on each number has its place. So a value takes 4 bytes and a tenth of that more, and a leaf 200: 5.2 bytes each
//! where a quarter is set, 5.9 at the worst above a fifth. Finding one is two reads of memory more than in a table; setting
//! one moves those behind it, 3 KiB at most.

use alloc::vec;
use alloc::vec::Vec;

/// Numbers that share a leaf.
pub(super) const LEAF: u64 = 1024;
const WORDS: usize = LEAF as usize / 64;
/// More are set than this, and each has its place.
const MOST_PACKED: u16 = 768;
/// Fewer are set than this, and they are packed again.
const FEW: u16 = 640;

#[derive(Clone, Debug, Default)]
struct Leaf {
    /// Which numbers are set.
    bits: [u64; WORDS],
    /// How many are set before each word.
    before: [u16; WORDS],
    used: u16,
    /// Which numbers it has: from this times 1024 on.
    number: u32,
    values: Vec<u32>,
}

impl Leaf {
    fn is_flat(&self) -> bool {
        self.values.len() == LEAF as usize
    }

    /// Where the value of a number is, or would be.
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
                // A flat leaf is told by its length: never that many.
                self.values.reserve_exact(self.values.len() / 8 + 8);
            }
            self.values.insert(place, value);
        }
        self.bits[at / 64] |= 1 << (at % 64);
        self.count(at, 1);
    }

    /// Each number has its place from now on.
    fn flatten(&mut self) {
        let mut flat = vec![0; LEAF as usize];
        self.each(|at, value| flat[at] = value);
        self.values = flat;
    }

    /// Of one that is empty: sets these numbers, in ascending order.
    fn fill(&mut self, ascending: impl Iterator<Item = (u64, u32)>) {
        // Put together elsewhere: of a place for all of them that shrinks, the rest would be too small for the next leaf's.
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
            // Some room is kept: what leaves comes back.
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

    /// Numbers within the leaf that are set, with their values, in order.
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
pub(super) struct Packed {
    /// One more than the number of the leaf; 0 where nothing is set.
    root: Vec<u32>,
    leaves: Vec<Leaf>,
    free: Vec<u32>,
}

impl Packed {
    /// For numbers below `bound`, none of which is set.
    pub(super) fn new(bound: u64) -> Packed {
        Packed {
            root: vec![0; bound.div_ceil(LEAF) as usize],
            leaves: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Sets these of the numbers that share a leaf, none of which is set: in ascending order, each from the leaf's first on.
    pub(super) fn set_leaf(&mut self, number: u64, ascending: impl Iterator<Item = (u64, u32)>) {
        debug_assert_eq!(self.root[number as usize], 0, "something is set");
        let mut ascending = ascending.peekable();
        if ascending.peek().is_some() {
            self.leaf(number).fill(ascending);
        }
    }

    /// A leaf, which is made if it is not there.
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

    /// What is set.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<u32> {
        let leaf = self.root[(number / LEAF) as usize].checked_sub(1)?;
        let leaf = &self.leaves[leaf as usize];
        let at = (number % LEAF) as usize;
        leaf.has(at).then(|| leaf.values[leaf.place(at)])
    }

    /// Sets it; what was set before.
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

    /// It is not set any more.
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

    /// Where a range of numbers goes on that has nothing set at `number`: the first one after it that may be set. Whole
    /// leaves without anything are passed over.
    pub(super) fn skip(&self, number: u64) -> u64 {
        match self.root[(number / LEAF) as usize] {
            0 => (number / LEAF + 1) * LEAF,
            _ => number + 1,
        }
    }

    /// All that are set, with their values, in no order.
    pub(super) fn each(&self, mut what: impl FnMut(u64, u32)) {
        for leaf in self.leaves.iter().filter(|it| it.used > 0) {
            let first = u64::from(leaf.number) * LEAF;
            leaf.each(|at, value| what(first + at as u64, value));
        }
    }

    /// Bytes of memory that it takes, without the allocator's own.
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
            let (mut table, mut shadow) = (Packed::new(6000), BTreeMap::new());
            for number in (0..full).filter(|it| it % 7 != 3) {
                table.set(number, number as u32 * 3);
                shadow.insert(number, number as u32 * 3);
            }
            if at_once {
                table = Packed::new(6000);
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
        let mut table = Packed::new(1 << 20);
        for round in 0..1000 {
            table.set(round * 1024, 7);
            table.clear(round * 1024);
        }
        assert_eq!(table.leaves.len(), 1);
    }

    /// Scattered over five times their number, over four times, and close together.
    #[test]
    fn a_value_takes_less_than_six_bytes_from_a_fifth_on() {
        for share in [5_u64, 4, 3, 2, 1] {
            let bound = 1 << 20;
            let (mut table, set) = (Packed::new(bound), bound / share);
            for index in 0..set {
                table.set(index * 648_055 % bound, 1);
            }
            let each = table.bytes() as f64 / set as f64;
            assert!(each < 6.0, "1 of {share}: {each} bytes");
            // As many in other places, and the first ones gone: what left has left no memory behind.
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
