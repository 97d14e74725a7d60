//! Logarithmic buckets of nanoseconds: 2^BITS per power of two, so the relative error is at most 2^-BITS. Each value
//! below 2^BITS has its own bucket; values above 2^40 ns (18 minutes) share the last bucket.

/// Buckets, 2^BITS per power of two.
pub(super) struct Buckets<const BITS: u32>;

/// Buckets of a histogram.
pub(super) type Fine = Buckets<7>;

impl<const BITS: u32> Buckets<BITS> {
    /// Number of buckets.
    pub(super) const COUNT: usize = (40 - BITS as usize + 1) << BITS;

    /// Returns the bucket of a value.
    #[inline]
    pub(super) fn index(ns: u64) -> usize {
        if ns < 1 << BITS {
            return ns as usize;
        }
        let shift = 63 - ns.leading_zeros() - BITS;
        let index = ((shift as usize) << BITS) + (ns >> shift) as usize;
        index.min(Self::COUNT - 1)
    }

    /// Returns the coarser bucket that contains a bucket.
    #[inline]
    pub(super) fn coarse_index<const FEWER: u32>(bucket: usize) -> usize {
        let () = const { assert!(FEWER <= BITS) };
        if bucket < 1 << BITS {
            return Buckets::<FEWER>::index(bucket as u64);
        }
        let less = (BITS - FEWER) as usize;
        let index = (bucket >> less) + (less << FEWER);
        index.min(Buckets::<FEWER>::COUNT - 1)
    }

    /// Returns the smallest value of a bucket, and the number of values in it.
    pub(super) fn bounds(bucket: usize) -> (u64, u64) {
        let per_octave = 1 << BITS;
        if bucket < per_octave {
            return (bucket as u64, 1);
        }
        let shift = (bucket >> BITS) - 1;
        let mantissa = (bucket & (per_octave - 1)) + per_octave;
        ((mantissa as u64) << shift, 1 << shift)
    }
}

/// Returns an array with `value` for each of `COUNT` buckets. The length is known at compile time, so an index from
/// [`Buckets::index`] needs no bounds check.
pub(super) fn all_of<T: Clone, const COUNT: usize>(value: T) -> Box<[T; COUNT]> {
    let all: Box<[T]> = vec![value; COUNT].into();
    all.try_into()
        .unwrap_or_else(|_| unreachable!("a vector of {COUNT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_lies_within_the_bounds_of_its_bucket() {
        fn check<const BITS: u32>() {
            let values =
                (0..40).flat_map(|octave: u32| [0, 1, 7, 100].map(|odd| (1 << octave) + odd));
            for ns in values {
                let (low, width) = Buckets::<BITS>::bounds(Buckets::<BITS>::index(ns));
                assert!((low..low + width).contains(&ns), "{ns} with {BITS} bits");
                let within = Buckets::<BITS>::coarse_index::<3>(Buckets::<BITS>::index(ns));
                assert_eq!(within, Buckets::<3>::index(ns), "{ns} with {BITS} bits");
            }
            let last = Buckets::<BITS>::COUNT - 1;
            assert_eq!(Buckets::<BITS>::index(u64::MAX), last);
            assert_eq!(
                Buckets::<BITS>::coarse_index::<3>(last),
                Buckets::<3>::COUNT - 1
            );
        }
        check::<3>();
        check::<7>();
    }
}
