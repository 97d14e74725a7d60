//! fio's random map (no block repeats before all blocks have been used) as a keyed bijection in counter order. It
//! needs no memory, and the next epoch takes a new key.

use core::hint::select_unpredictable;

use model::Stream;

/// A random order of `0..n`, by three rounds of multiply and xor-shift in the range of the next power of two.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    xor: u64,
    multipliers: [u64; 3],
    counter: u64,
}

impl Permutation {
    /// Creates a random order; `n` is at least 1.
    pub(crate) fn new(n: u64, stream: &mut Stream) -> Permutation {
        let bits = (u64::BITS - (n - 1).leading_zeros()).max(1);
        let mut permutation = Permutation {
            n,
            mask: u64::MAX >> (u64::BITS - bits),
            shift: bits.div_ceil(2),
            xor: 0,
            multipliers: [1; 3],
            counter: 0,
        };
        permutation.rekey(stream);
        permutation
    }

    /// Starts a new order.
    pub(crate) fn restart(&mut self, stream: &mut Stream) {
        self.rekey(stream);
    }

    fn rekey(&mut self, stream: &mut Stream) {
        self.xor = stream.bits() & self.mask;
        for multiplier in &mut self.multipliers {
            *multiplier = stream.bits() | 1;
        }
        self.counter = 0;
    }

    #[inline]
    fn mix(&self, index: u64) -> u64 {
        let mut x = index ^ self.xor;
        for multiplier in self.multipliers {
            x = x.wrapping_mul(multiplier) & self.mask;
            x ^= x >> self.shift;
        }
        x
    }

    /// Returns the image of `index`; both are below `n`.
    #[inline]
    pub(crate) fn image(&self, index: u64) -> u64 {
        let mut x = self.mix(index);
        while x >= self.n {
            x = self.mix(x);
        }
        x
    }

    /// Returns the next element; after the last element, a new order starts.
    #[inline]
    pub(crate) fn next(&mut self, stream: &mut Stream) -> u64 {
        while self.counter < self.mask {
            // Two at a time: the processor cannot predict which of the two is below `n`, but it can predict whether
            // one is. A misprediction costs more than a mix.
            let (one, two) = (self.mix(self.counter), self.mix(self.counter + 1));
            let first = one < self.n;
            let x = select_unpredictable(first, one, two);
            self.counter += select_unpredictable(first, 1, 2);
            if x < self.n {
                return x;
            }
        }
        self.next_near_the_end(stream)
    }

    #[cold]
    fn next_near_the_end(&mut self, stream: &mut Stream) -> u64 {
        loop {
            if self.counter > self.mask {
                self.rekey(stream);
            }
            let x = self.mix(self.counter);
            self.counter += 1;
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_at_a_time_are_those_that_come_one_by_one() {
        for n in [1, 2, 3, 64, 65, 1000] {
            let mut stream = Stream::new(n, "test");
            let mut permutation = Permutation::new(n, &mut stream);
            let mixed: Vec<u64> = (0..=permutation.mask)
                .map(|index| permutation.mix(index))
                .collect();
            for x in mixed.into_iter().filter(|&x| x < n) {
                assert_eq!(permutation.next(&mut stream), x, "of {n}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_permutation_gives_each_number_once_an_epoch(n in 1u64..3000, seed: u64) {
            let mut stream = Stream::new(seed, "test");
            let mut permutation = Permutation::new(n, &mut stream);
            for _epoch in 0..2 {
                let mut seen: Vec<u64> = (0..n).map(|_| permutation.next(&mut stream)).collect();
                seen.sort_unstable();
                prop_assert_eq!(seen, (0..n).collect::<Vec<_>>());
            }
            let mut images: Vec<u64> = (0..n).map(|index| permutation.image(index)).collect();
            images.sort_unstable();
            prop_assert_eq!(images, (0..n).collect::<Vec<_>>());
        }
    }
}
