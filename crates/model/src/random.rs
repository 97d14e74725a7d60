//! Deterministic random streams.
//!
//! Every device, thread and distribution has its own stream, derived from the run's seed and a name. Adding a stream
//! therefore never changes the numbers that another one draws. The generator is Xoshiro256++ from `rand_xoshiro`: its
//! values are stable across platforms and across versions of one major release. Logarithms come from `libm`, because
//! those of the standard library may differ between machines in the last bit.

use crate::time::Span;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// Creates the stream called `name` of the run with this seed. Different names give independent streams.
    pub fn new(seed: u64, name: &str) -> Stream {
        // FNV-1a over the name, folded into the seed; SplitMix64 inside `seed_from_u64` spreads the bits.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Stream(Xoshiro256PlusPlus::seed_from_u64(
            seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ hash,
        ))
    }

    /// Creates stream `index` of a family (one per die, one per thread).
    pub fn numbered(seed: u64, name: &str, index: u64) -> Stream {
        Stream::new(
            seed.wrapping_add(index.wrapping_mul(0xd1b5_4a32_d192_ed03)),
            name,
        )
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a value uniform in `0..bound`; `bound` must not be zero. (Multiply-shift: the bias is below 2^-32 for
    /// bounds under 2^32.)
    #[inline]
    pub fn uniform_below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a value uniform in `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns true with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Returns an exponentially distributed span with this mean.
    #[inline]
    pub fn exponential(&mut self, mean: Span) -> Span {
        Span::from_ns((-libm::log(1.0 - self.unit()) * mean.ns() as f64) as u64)
    }

    /// Returns a factor whose median is 1 and whose logarithm is normally distributed with this standard deviation. If
    /// `deviation` is 0, it returns 1 and draws no number.
    #[inline]
    pub fn lognormal(&mut self, deviation: f64) -> f64 {
        if deviation == 0.0 {
            return 1.0;
        }
        // Box-Muller transform: a radius and an angle.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        let angle = core::f64::consts::TAU * self.unit();
        libm::exp(deviation * radius * libm::cos(angle))
    }
}
