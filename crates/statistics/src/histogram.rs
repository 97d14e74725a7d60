//! A latency histogram with fixed logarithmic buckets: 128 per power of two, so a value is known to 0.8 %.
//!
//! The histogram of fio has 64 per power of two. Two of these buckets form exactly one bucket of fio, so the bins of
//! fio's `json+` can be written without loss. Sums are kept separately, so mean and deviation are exact.

use core::hint::cold_path;

use model::{Span, Time};

use super::buckets::{Fine, all_of};
use super::slices::{COARSER, Slices};

/// Counts of latencies.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: Box<[u64; Fine::COUNT]>,
    count: u64,
    sum: u128,
    sum_of_squares: f64,
    min: u64,
    max: u64,
    /// Counts by time, for latencies with a known completion time.
    slices: Slices,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: all_of(0),
            count: 0,
            sum: 0,
            sum_of_squares: 0.0,
            min: u64::MAX,
            max: 0,
            slices: Slices::default(),
        }
    }
}

impl Histogram {
    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency: Span) {
        self.count_in(Fine::index(latency.ns()), latency.ns());
    }

    /// Counts the latency of an I/O with its completion time, so that intervals take clusters into account.
    #[inline]
    pub fn record_at(&mut self, latency: Span, at: Time) {
        self.count_at(latency, at);
    }

    /// As [`Self::record_at`]; returns the bucket.
    #[inline]
    pub(super) fn count_at(&mut self, latency: Span, at: Time) -> usize {
        let bucket = Fine::index(latency.ns());
        self.count_in(bucket, latency.ns());
        self.slices.record(at, bucket >> COARSER);
        bucket
    }

    #[inline]
    fn count_in(&mut self, bucket: usize, ns: u64) {
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum += u128::from(ns);
        // Below 2^63 ns (292 years), the signed number is equal and needs only one instruction to convert.
        let signed = ns as i64 as f64;
        self.sum_of_squares += signed * signed;
        // Rare: after n values, the next one is a new bound with probability 2/n.
        if ns < self.min {
            cold_path();
            self.min = ns;
        }
        if ns > self.max {
            cold_path();
            self.max = ns;
        }
    }

    /// Adds all counts of `other`, from the same run: simultaneous I/Os may have a common cause.
    pub fn merge(&mut self, other: &Histogram) {
        self.slices.merge(&other.slices);
        self.add(other);
    }

    /// Adds all counts of `other`, from another run.
    pub fn follow(&mut self, other: &Histogram) {
        self.slices.follow(&other.slices);
        self.add(other);
    }

    fn add(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts[..]) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the smallest latency; `None` if there are no samples.
    pub fn min(&self) -> Option<Span> {
        (self.count > 0).then(|| Span::from_ns(self.min))
    }

    /// Returns the largest latency; `None` if there are no samples.
    pub fn max(&self) -> Option<Span> {
        (self.count > 0).then(|| Span::from_ns(self.max))
    }

    /// Returns the mean in nanoseconds (exact); 0 if there are no samples.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// Returns the standard deviation in nanoseconds.
    pub fn deviation_ns(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let n = self.count as f64;
        let variance = (self.sum_of_squares - self.mean_ns() * self.mean_ns() * n) / (n - 1.0);
        variance.max(0.0).sqrt()
    }

    /// Returns the latency that `percent` of the samples do not exceed, for any number of samples; `None` if there
    /// are none. Values are assumed to be distributed evenly within a bucket, and the result is always in
    /// `min..=max`.
    pub fn quantile(&self, percent: f64) -> Option<Span> {
        if self.count == 0 {
            return None;
        }
        let rank = (self.count as f64 * percent / 100.0).max(0.0);
        if rank >= self.count as f64 {
            return Some(Span::from_ns(self.max));
        }
        let mut below = 0u64;
        for (bucket, &count) in self.counts.iter().enumerate() {
            if count > 0 && (below + count) as f64 >= rank {
                let (low, width) = Fine::bounds(bucket);
                let share = ((rank - below as f64) / count as f64).clamp(0.0, 1.0);
                let ns = low + (share * (width - 1) as f64).round() as u64;
                return Some(Span::from_ns(ns.clamp(self.min, self.max)));
            }
            below += count;
        }
        Some(Span::from_ns(self.max))
    }

    /// Returns the design effect at this percentile: the factor by which clusters increase the variance of the number
    /// of samples beyond a latency, compared with independent samples. 1 if completion times are unknown.
    pub(super) fn design_effect(&self, percent: f64) -> f64 {
        let Some(at) = self.quantile(percent) else {
            return 1.0;
        };
        let wide = Fine::index(at.ns()) >> COARSER;
        let of = |buckets: std::ops::Range<usize>| self.counts[buckets].iter().sum::<u64>() as f64;
        let first = wide << COARSER;
        let (below, here) = (of(0..first), of(first..first + (1 << COARSER)));
        let rank = self.count as f64 * percent / 100.0;
        let share = ((rank - below) / here.max(1.0)).clamp(0.0, 1.0);
        self.slices.design_effect(wide, share)
    }

    /// Returns half the 95 % interval of the mean, as a share of the mean; `None` if completion times are unknown or
    /// the time is too short.
    pub fn mean_error(&self) -> Option<f64> {
        let middle = |wide: usize| {
            let (low, width) = Fine::bounds(wide << COARSER);
            low as f64 + (width << COARSER) as f64 / 2.0
        };
        self.slices.mean_error(middle)
    }

    /// Returns the number of samples beyond a percentile.
    pub fn samples_beyond(&self, percent: f64) -> f64 {
        self.count as f64 * (100.0 - percent) / 100.0
    }

    /// Returns a percentile that may be printed: `None` with fewer than ten samples beyond it.
    pub fn percentile(&self, percent: f64) -> Option<Span> {
        // Half a sample of slack, because 100 - 99.999 is not exact in binary.
        if self.samples_beyond(percent) < 9.5 {
            None
        } else {
            self.quantile(percent)
        }
    }

    /// Returns the buckets that are not empty: smallest value, width, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counts
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0)
            .map(|(bucket, &count)| {
                let (low, width) = Fine::bounds(bucket);
                (low, width, count)
            })
    }
}
