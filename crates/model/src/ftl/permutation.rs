//! A seeded bijection of `0..n`, computable both ways in a few nanoseconds.
//!
//! Three multiplications by odd numbers with additions, and two xor-shifts between them, each invertible on `bits`
//! bits. Values beyond `n` are permuted again (cycle walking), at most two rounds on average. It only needs to spread
//! pages as a random fill would: it is not a cipher.

use crate::random::Stream;

/// A bijection of `0..n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: u32,
    mask: u32,
    shift: u32,
    factors: [u32; 3],
    inverses: [u32; 3],
    addends: [u32; 3],
}

/// Returns the inverse of an odd number modulo 2^32, by Newton's iteration (each step doubles the correct bits).
fn inverse_of_odd(a: u32) -> u32 {
    let mut x = a;
    for _ in 0..5 {
        x = x.wrapping_mul(2u32.wrapping_sub(a.wrapping_mul(x)));
    }
    x
}

impl Permutation {
    /// Creates a bijection of `0..n`, drawn from `random`; `n` must not be zero.
    pub fn new(n: u32, random: &mut Stream) -> Permutation {
        let bits = (32 - (n - 1).leading_zeros()).max(1);
        let mask = if bits == 32 {
            u32::MAX
        } else {
            (1 << bits) - 1
        };
        let factors = [(); 3].map(|()| random.bits() as u32 | 1);
        Permutation {
            n,
            mask,
            shift: bits.div_ceil(2),
            factors,
            inverses: factors.map(inverse_of_odd),
            addends: [(); 3].map(|()| random.bits() as u32),
        }
    }

    /// Returns the image of `x`, which must be below `n`. `tweak` selects one of 2^32 bijections.
    #[inline]
    pub fn forward(&self, mut x: u32, tweak: u32) -> u32 {
        loop {
            for round in 0..3 {
                x = x
                    .wrapping_mul(self.factors[round])
                    .wrapping_add(self.addends[round] ^ tweak)
                    & self.mask;
                if round < 2 {
                    x ^= x >> self.shift;
                }
            }
            if x < self.n {
                return x;
            }
        }
    }

    /// Returns the preimage of `y`, with the same `tweak`.
    #[inline]
    pub fn backward(&self, mut y: u32, tweak: u32) -> u32 {
        loop {
            for round in (0..3).rev() {
                if round < 2 {
                    y ^= y >> self.shift;
                }
                y = y
                    .wrapping_sub(self.addends[round] ^ tweak)
                    .wrapping_mul(self.inverses[round])
                    & self.mask;
            }
            if y < self.n {
                return y;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_bijection(n in 1u32..3000, seed: u64, tweak: u32) {
            let permutation = Permutation::new(n, &mut Stream::new(seed, "permutation"));
            let mut seen = vec![false; n as usize];
            for x in 0..n {
                let y = permutation.forward(x, tweak);
                prop_assert!(!seen[y as usize]);
                seen[y as usize] = true;
                prop_assert_eq!(permutation.backward(y, tweak), x);
            }
        }
    }

    #[test]
    fn neighbours_land_far_apart() {
        let n = 1_000_003;
        let permutation = Permutation::new(n, &mut Stream::new(7, "permutation"));
        let near = (0..100_000)
            .filter(|&x| {
                let gap = permutation
                    .forward(x, 0)
                    .abs_diff(permutation.forward(x + 1, 0));
                gap < n / 100
            })
            .count();
        // Two random positions are within 1 % of the range in about 2 % of cases.
        assert!(
            (1_000..4_000).contains(&near),
            "{near} of 100000 neighbours stayed near"
        );
    }
}
