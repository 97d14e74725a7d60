//! Regions in which mirror members may differ: one bit per region.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// A set of regions, as bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Bits(Vec<u64>);

/// Returns the words of a range of bits, each with a mask of the range's bits.
fn words(range: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let words = range.start / 64..range.end.div_ceil(64);
    words.map(move |word| {
        let first = range.start.saturating_sub(word * 64);
        let last = (range.end - word * 64).min(64);
        let below = |bits: usize| {
            if bits == 64 {
                u64::MAX
            } else {
                (1 << bits) - 1
            }
        };
        (word, below(last) & !below(first))
    })
}

impl Bits {
    /// Creates a set of `count` bits, all zero.
    pub(super) fn new(count: usize) -> Bits {
        Bits(vec![0; count.div_ceil(64)])
    }

    #[inline]
    pub(super) fn has(&self, range: Range<usize>) -> bool {
        words(range).all(|(word, mask)| self.0[word] & mask == mask)
    }

    /// Sets a range; returns whether any bit of it was not set before.
    #[inline]
    pub(super) fn set(&mut self, range: Range<usize>) -> bool {
        let mut new = false;
        for (word, mask) in words(range) {
            new |= self.0[word] & mask != mask;
            self.0[word] |= mask;
        }
        new
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    pub(super) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns the first set bit at or after `at`.
    pub(super) fn next(&self, at: usize) -> Option<usize> {
        let rest = words(at..self.0.len() * 64);
        let mut found = rest.map(|(word, mask)| (word, self.0[word] & mask));
        let (word, bits) = found.find(|&(_, bits)| bits != 0)?;
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// Copies another set of the same size.
    pub(super) fn copy(&mut self, other: &Bits) {
        self.0.copy_from_slice(&other.0);
    }

    /// Adds the bits of the other set.
    pub(super) fn add(&mut self, other: &Bits) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    /// Keeps only bits that are also in the other set.
    pub(super) fn keep(&mut self, other: &Bits) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
    }

    /// Writes the bits as bytes, starting with the first; as many as fit.
    pub(super) fn write(&self, into: &mut [u8]) {
        for (bytes, word) in into.chunks_exact_mut(8).zip(&self.0) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Reads bits that [`Bits::write`] has written.
    pub(super) fn read(&mut self, from: &[u8]) {
        for (bytes, word) in from.as_chunks::<8>().0.iter().zip(&mut self.0) {
            *word = u64::from_le_bytes(*bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_bits_are_set_and_found() {
        let mut bits = Bits::new(200);
        assert!(bits.is_empty() && bits.next(0).is_none());
        assert!(bits.set(60..130));
        assert!(!bits.set(64..128));
        assert!(bits.has(60..130) && !bits.has(59..61) && !bits.has(129..131));
        assert_eq!(
            (bits.next(0), bits.next(61), bits.next(130)),
            (Some(60), Some(61), None)
        );
        assert_eq!(bits.count(), 70);
        let mut bytes = [0; 32];
        bits.write(&mut bytes);
        let mut again = Bits::new(200);
        again.read(&bytes);
        assert_eq!(again, bits);
        let mut other = Bits::new(200);
        other.set(100..101);
        bits.keep(&other);
        assert_eq!(bits, other);
        assert!(bits.has(5..5), "of nothing");
    }
}
