//! What ACT counts: latencies by powers of two, in each report interval.
//!
//! Bucket 0 is what took less than one unit (a millisecond, or a microsecond), bucket `b` what took from 2^(b-1) to less
//! than 2^b units. The last bucket takes all that is longer.

use model::Span;

/// Buckets kept: to 2^26 µs, a minute.
pub const BUCKETS: usize = 28;

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads of records as the verdict counts them: from the queue in version 3, from issue in version 6.
    Read = 0,
    /// The same reads from issue (version 3 reports both).
    RawRead = 1,
    /// Reads of large blocks.
    LargeRead = 2,
    /// Writes of large blocks.
    LargeWrite = 3,
    /// Writes of records (version 6 with `commit-to-device`).
    Write = 4,
}

/// How many kinds there are.
pub const KINDS: usize = 5;

/// Counts by power of two.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Buckets {
    /// By power of two of a millisecond.
    pub milliseconds: [u64; BUCKETS],
    /// By power of two of a microsecond.
    pub microseconds: [u64; BUCKETS],
}

fn bucket_of(units: u64) -> usize {
    ((u64::BITS - units.leading_zeros()) as usize).min(BUCKETS - 1)
}

impl Buckets {
    pub(super) fn record(&mut self, latency: Span) {
        self.milliseconds[bucket_of(latency.ns() / 1_000_000)] += 1;
        self.microseconds[bucket_of(latency.ns() / 1_000)] += 1;
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.milliseconds.iter().sum()
    }

    /// How many took 2^`power` milliseconds or more.
    pub fn over(&self, power: usize) -> u64 {
        self.milliseconds[power + 1..].iter().sum()
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Buckets) {
        let mine = self.milliseconds.iter_mut().chain(&mut self.microseconds);
        let theirs = other.milliseconds.iter().chain(&other.microseconds);
        for (mine, theirs) in mine.zip(theirs) {
            *mine += theirs;
        }
    }
}

/// One report interval.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Interval {
    /// By [`Kind`].
    pub kinds: [Buckets; KINDS],
    /// Requests in queues at its end (version 3).
    pub queued: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_begins_at_a_power_of_two() {
        let mut buckets = Buckets::default();
        for us in [0, 999, 1_000, 1_999, 2_000, 63_999, 64_000, 10_000_000_000] {
            buckets.record(Span::from_us(us));
        }
        assert_eq!(buckets.total(), 8);
        assert_eq!(buckets.milliseconds[..3], [2, 2, 1]);
        // Exactly a millisecond failed to complete within one.
        assert_eq!(buckets.over(0), 6);
        assert_eq!(buckets.over(1), 4);
        assert_eq!(buckets.over(6), 2);
        assert_eq!(buckets.milliseconds[BUCKETS - 1], 0);
        let mut twice = buckets.clone();
        twice.merge(&buckets);
        assert_eq!(twice.over(6), 4);
        assert_eq!(twice.microseconds.iter().sum::<u64>(), 16);
    }
}
