//! fio's latency buckets: 64 for each power of two, each named by its middle; values at and above 2^34 ns share the
//! last.

use statistics::Histogram;

const BITS: u32 = 6;
const GROUPS: u32 = 29;
const LAST: u64 = ((GROUPS << BITS) - 1) as u64;

/// Returns the bucket of a latency in nanoseconds.
fn index_of(ns: u64) -> u64 {
    let bits = u64::BITS - ns.leading_zeros();
    if bits <= BITS + 1 {
        return ns;
    }
    let shift = bits - BITS - 1;
    let index = (u64::from(shift) << BITS) + (ns >> shift);
    index.min(LAST)
}

/// Returns the latency in nanoseconds that represents a bucket.
fn value_of(index: u64) -> u64 {
    if index < 2 << BITS {
        return index;
    }
    let shift = (index >> BITS) - 1;
    let low = ((index & ((1 << BITS) - 1)) + (1 << BITS)) << shift;
    low + (1 << shift) / 2
}

/// Returns a histogram in fio's buckets: the value that represents each, ascending, and its count. Empty buckets are
/// omitted.
pub(super) fn bins(histogram: &Histogram) -> Vec<(u64, u64)> {
    let mut bins: Vec<(u64, u64)> = Vec::new();
    for (low, _, count) in histogram.buckets() {
        let value = value_of(index_of(low));
        match bins.last_mut() {
            Some((last, sum)) if *last == value => *sum += count,
            _ => bins.push((value, count)),
        }
    }
    bins
}

/// Returns the value of the first bucket that contains each percentile's sample, as fio reports percentiles.
/// `percentiles` are ascending.
pub(super) fn percentiles(bins: &[(u64, u64)], percentiles: &[f64]) -> Vec<(f64, u64)> {
    let total: u64 = bins.iter().map(|&(_, count)| count).sum();
    let mut found = Vec::with_capacity(percentiles.len());
    let mut sum = 0;
    let mut rest = percentiles.iter().peekable();
    for &(value, count) in bins {
        sum += count;
        while let Some(&percent) =
            rest.next_if(|&&percent| sum as f64 >= percent / 100.0 * total as f64)
        {
            found.push((percent, value));
        }
    }
    // Rounding may place 100 % slightly above the last sample.
    if let Some(&(last, _)) = bins.last() {
        found.extend(rest.map(|&percent| (percent, last)));
    }
    found
}

/// Upper ends of fio's latency classes, in units of ns, us and ms.
pub(super) const CLASSES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// Shares of completion latencies by class.
#[derive(Default)]
pub(super) struct Classes {
    /// Under 1000 ns.
    pub ns: [u64; 10],
    /// Under 1000 us.
    pub us: [u64; 10],
    /// The rest, then under 2 s, then 2 s and more.
    pub ms: [u64; 12],
}

impl Classes {
    /// Counts all of `histogram`; a bucket belongs to the class that contains its middle.
    pub(super) fn add(&mut self, histogram: &Histogram) {
        let class = |value: u64| CLASSES.iter().position(|&end| value < end);
        for (low, width, count) in histogram.buckets() {
            let ns = low + width / 2;
            let place = if ns < 1_000 {
                &mut self.ns[class(ns).unwrap_or(9)]
            } else if ns < 1_000_000 {
                &mut self.us[class(ns / 1_000).unwrap_or(9)]
            } else {
                let ms = ns / 1_000_000;
                &mut self.ms[class(ms).unwrap_or(if ms < 2_000 { 10 } else { 11 })]
            };
            *place += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Span;

    #[test]
    fn buckets_are_fios() {
        // (latency, what fio 3.33 calls its bucket), from its json+ output.
        for (ns, value) in [
            (100, 100),
            (110, 110),
            (127, 127),
            (160, 161),
            (310, 310),
            (302, 302),
            (5536, 5536),
            (33_000, 33_024),
            (33_149, 33_024),
            (6_930, 6_944),
            (4_206, 4_192),
            (5_448, 5_472),
            (7_611, 7_584),
        ] {
            assert_eq!(value_of(index_of(ns)), value, "{ns}");
        }
        // Above its range everything is in the last bucket, whose middle is 2^34 - 2^26.
        assert_eq!(value_of(index_of(u64::MAX)), (1 << 34) - (1 << 26));
    }

    #[test]
    fn two_of_our_buckets_make_one() {
        let mut histogram = Histogram::default();
        for ns in 1..100_000 {
            histogram.record(Span::from_ns(ns));
        }
        let bins = bins(&histogram);
        assert_eq!(bins.iter().map(|&(_, count)| count).sum::<u64>(), 99_999);
        for window in bins.windows(2) {
            assert!(window[0].0 < window[1].0);
        }
        // A bucket between 65536 and 131072 contains 1024 values.
        assert!(
            bins.iter()
                .filter(|&&(value, _)| value > 65_536 && value < 98_000)
                .all(|&(_, count)| count == 1024)
        );
        let median = percentiles(&bins, &[50.0])[0].1;
        assert!(median.abs_diff(50_000) <= 512, "{median}");
        assert_eq!(
            percentiles(&bins, &[100.0])[0].1,
            bins.last().expect("not empty").0
        );
    }
}
