//! Latency counts of ACT: by powers of two, in each report interval.
//!
//! Bucket 0 counts latencies below one unit (a millisecond, or a microsecond). Bucket `b` counts latencies from
//! 2^(b-1) to less than 2^b units. The last bucket also counts all longer latencies.

use model::Span;

/// Number of buckets: up to 2^26 µs, about one minute.
pub const BUCKETS: usize = 28;

/// Kind of counted I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestKind {
    /// Record reads as the verdict counts them: from the queue in version 3, from issue in version 6.
    Read = 0,
    /// Record reads from issue (version 3 reports both).
    RawRead = 1,
    /// Reads of large blocks.
    LargeRead = 2,
    /// Writes of large blocks.
    LargeWrite = 3,
    /// Writes of records (version 6 with `commit-to-device`).
    Write = 4,
}

/// Number of kinds.
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

    /// Returns the number of counted I/Os.
    pub fn total(&self) -> u64 {
        self.milliseconds.iter().sum()
    }

    /// Returns how many I/Os took 2^`power` milliseconds or more.
    pub fn over(&self, power: usize) -> u64 {
        self.milliseconds[power + 1..].iter().sum()
    }

    /// Adds all counts of `other`.
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
    /// By [`RequestKind`].
    pub kinds: [Buckets; KINDS],
    /// Requests in queues at the end of the interval (version 3).
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
        // A latency of exactly 1 ms did not complete within 1 ms.
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
