//! A table with random access: the entries of a map, or the bits of stale slots.
//!
//! With 64-bit addresses it is one vector, which the operating system allocates as it is touched. With 32-bit addresses
//! (WebAssembly in a web page), that would use too much memory. A drive of 4 TB that is written at random for a moment
//! touches every page of its tables, which is 400 MB of the user's machine; several such drives exceed the available
//! memory. There, only values other than zero are stored. A test checks that both give equal results.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

#[cfg(target_pointer_width = "64")]
pub(super) type SparseArray<V> = FlatTable<V>;
#[cfg(not(target_pointer_width = "64"))]
pub(super) type SparseArray<V> = HashedTable<V>;

/// A value that has a zero.
pub(super) trait Value: Copy + Default + PartialEq {}
impl Value for u32 {}
impl Value for u64 {}

/// The table as one vector.
#[cfg(any(test, target_pointer_width = "64"))]
#[derive(Clone, Debug)]
pub(super) struct FlatTable<V>(Vec<V>);

#[cfg(any(test, target_pointer_width = "64"))]
impl<V: Value> FlatTable<V> {
    /// Creates a table of `values` values, all zero.
    pub(super) fn zeroed(values: u32) -> FlatTable<V> {
        FlatTable(vec![V::default(); values as usize])
    }

    /// Returns the number of values.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Returns the value at a position.
    #[inline]
    pub(super) fn get(&self, at: u32) -> V {
        self.0[at as usize]
    }

    /// Sets the value at a position.
    #[inline]
    pub(super) fn set(&mut self, at: u32, value: V) {
        self.0[at as usize] = value;
    }

    /// Replaces the value at a position by the result of `change`.
    #[inline]
    pub(super) fn change(&mut self, at: u32, change: impl FnOnce(V) -> V) {
        let value = &mut self.0[at as usize];
        *value = change(*value);
    }

    /// Sets the values in a range to zero.
    pub(super) fn clear(&mut self, range: Range<u32>) {
        self.0[range.start as usize..range.end as usize].fill(V::default());
    }

    /// Calls `tell` with the positions and values that are not zero.
    pub(super) fn each(&self, mut tell: impl FnMut(u32, V)) {
        for (at, &value) in self.0.iter().enumerate() {
            if value != V::default() {
                tell(at as u32, value);
            }
        }
    }

    /// Returns the memory range, which does not move.
    pub(super) fn memory(&self) -> Range<*const u8> {
        let Range { start, end } = self.0.as_ptr_range();
        start.cast()..end.cast()
    }
}

/// The table as its non-zero values: a hash table with multiplicative hashing (2^32 divided by the golden ratio) and
/// linear probing.
#[cfg(any(test, not(target_pointer_width = "64")))]
#[derive(Clone, Debug)]
pub(super) struct HashedTable<V> {
    /// Position plus one; 0 for a free entry. The length is a power of two, and at least a quarter of the entries are
    /// 0.
    places: Vec<u32>,
    held: Vec<V>,
    used: usize,
    values: u32,
}

#[cfg(any(test, not(target_pointer_width = "64")))]
impl<V: Value> HashedTable<V> {
    /// As [`FlatTable::zeroed`].
    pub(super) fn zeroed(values: u32) -> HashedTable<V> {
        HashedTable::with_room(values, 16)
    }

    fn with_room(values: u32, room: usize) -> HashedTable<V> {
        HashedTable {
            places: vec![0; room],
            held: vec![V::default(); room],
            used: 0,
            values,
        }
    }

    /// As [`FlatTable::len`].
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.values
    }

    /// Returns the index at which the value of a position is stored, or would be.
    #[inline]
    fn find(&self, at: u32) -> usize {
        let last = self.places.len() - 1;
        let spread = at.wrapping_mul(0x9e37_79b1);
        let mut index = (spread >> (32 - last.count_ones())) as usize;
        while self.places[index] != 0 && self.places[index] != at + 1 {
            index = (index + 1) & last;
        }
        index
    }

    /// As [`FlatTable::get`].
    #[inline]
    pub(super) fn get(&self, at: u32) -> V {
        self.held[self.find(at)]
    }

    /// Returns the value at a position, for reading and changing.
    #[inline]
    pub(super) fn entry(&mut self, at: u32) -> &mut V {
        let mut index = self.find(at);
        if self.places[index] == 0 {
            if self.used * 4 >= self.places.len() * 3 {
                self.make_room();
                index = self.find(at);
            }
            self.places[index] = at + 1;
            self.used += 1;
        }
        &mut self.held[index]
    }

    /// Makes space: entries whose value is zero are removed, and the table doubles if the others fill more than half of
    /// it.
    fn make_room(&mut self) {
        let mut left = 0;
        self.each(|_, _| left += 1);
        let room = self.places.len();
        let room = if left * 2 > room { room * 2 } else { room };
        let mut fresh = HashedTable::with_room(self.values, room);
        self.each(|at, value| fresh.set(at, value));
        *self = fresh;
    }

    /// As [`FlatTable::set`].
    #[inline]
    pub(super) fn set(&mut self, at: u32, value: V) {
        *self.entry(at) = value;
    }

    /// As [`FlatTable::change`].
    #[inline]
    pub(super) fn change(&mut self, at: u32, change: impl FnOnce(V) -> V) {
        let value = self.entry(at);
        *value = change(*value);
    }

    /// As [`FlatTable::clear`].
    pub(super) fn clear(&mut self, range: Range<u32>) {
        if range == (0..self.values) {
            *self = HashedTable::zeroed(self.values);
            return;
        }
        for at in range {
            let index = self.find(at);
            self.held[index] = V::default();
        }
    }

    /// As [`FlatTable::each`], in no particular order.
    pub(super) fn each(&self, mut tell: impl FnMut(u32, V)) {
        for (&place, &value) in self.places.iter().zip(&self.held) {
            if value != V::default() {
                tell(place - 1, value);
            }
        }
    }

    /// Has no fixed memory range.
    #[cfg(not(target_pointer_width = "64"))]
    pub(super) fn memory(&self) -> Range<*const u8> {
        core::ptr::null()..core::ptr::null()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn few_say_what_the_whole_says() {
        let values = 100_000;
        let (mut whole, mut few) = (
            FlatTable::<u64>::zeroed(values),
            HashedTable::<u64>::zeroed(values),
        );
        assert_eq!((whole.len(), few.len()), (values, values));
        let mut random = Stream::new(3, "scattered");
        for round in 0..40_000 {
            let at = random.uniform_below(u64::from(values)) as u32;
            let value = random.uniform_below(4) << 40;
            match random.uniform_below(100) {
                0 if round % 20 < 2 => {
                    let range = at..(at + 300).min(values);
                    whole.clear(range.clone());
                    few.clear(range);
                }
                1..50 => {
                    whole.change(at, |before| before ^ value);
                    few.change(at, |before| before ^ value);
                }
                _ => {
                    whole.set(at, value);
                    few.set(at, value);
                }
            }
            assert_eq!(whole.get(at), few.get(at));
        }
        let (mut one, mut other) = (Vec::new(), Vec::new());
        whole.each(|at, value| one.push((at, value)));
        few.each(|at, value| other.push((at, value)));
        other.sort_unstable();
        assert!(one.len() > 10_000);
        assert_eq!(one, other);
        // Entries that are added and removed do not grow the table.
        let room = few.places.len();
        for at in (0..values)
            .cycle()
            .take(1_000_000)
            .filter(|&at| whole.get(at) == 0)
        {
            few.set(at, 1);
            few.set(at, 0);
        }
        assert!(few.places.len() <= room * 2, "{room}: {}", few.places.len());
        whole.clear(0..values);
        few.clear(0..values);
        few.each(|at, _| panic!("something is left at {at}"));
        assert!((0..values).all(|at| whole.get(at) == 0 && few.get(at) == 0));
    }
}
