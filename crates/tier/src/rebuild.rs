//! Rebuilds and resyncs as load on the members: their rate limit, and their progress for reports.
//!
//! A rebuild or resync has one chunk in progress at a time. With a limit, a chunk starts no earlier than the limit allows
//! for the chunks before it, as md's `speed_limit_max` (`Documentation/admin-guide/md.rst`). md averages its limit over
//! 30 s; here each chunk obeys it. Not included: md's `speed_limit_min`, above which md waits for each of its own
//! commands while clients use the array (here it always waits for them).

use model::time::{Span, Time};

use super::Child;

/// Progress of the rebuild of a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RebuildProgress {
    /// The child that is rebuilt.
    pub child: Child,
    /// Bytes that the rebuild has written to the child.
    pub copied: u64,
}

/// Returns the sum of the parts from `from` on that a rebuild has not copied. `next` returns the first such part at or
/// after a place: its start and end.
pub(super) fn sum_left(mut from: u64, next: impl Fn(u64) -> Option<(u64, u64)>) -> u64 {
    let mut left = 0;
    while let Some((at, end)) = next(from) {
        left += end - at;
        from = end;
    }
    left
}

/// The rate limit of a rebuild.
#[derive(Clone, Copy, Debug)]
pub(super) struct RebuildPace {
    /// Bytes per second; 0 without a limit.
    rate: u64,
    /// Earliest start of the next chunk.
    next: Time,
}

impl RebuildPace {
    pub(super) fn new(rate: u64) -> RebuildPace {
        RebuildPace {
            rate,
            next: Time::ZERO,
        }
    }

    /// Returns the earliest start of the next chunk.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// A chunk of this size starts.
    pub(super) fn start(&mut self, now: Time, bytes: u64) {
        if self.rate > 0 {
            let ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.rate);
            self.next = self.next.max(now) + Span::from_ns(ns as u64);
        }
    }

    /// No chunk has started yet.
    pub(super) fn reset(&mut self) {
        self.next = Time::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_starts_when_the_limit_allows_it() {
        let mut pace = RebuildPace::new(200_000_000);
        pace.start(Time::ZERO + Span::from_ms(3), 200_000);
        assert_eq!(pace.next(), Time::ZERO + Span::from_ms(4));
        pace.start(pace.next(), 400_000);
        assert_eq!(pace.next(), Time::ZERO + Span::from_ms(6));
        let mut unlimited = RebuildPace::new(0);
        unlimited.start(Time::ZERO + Span::from_ms(3), 200_000);
        assert_eq!(unlimited.next(), Time::ZERO);
    }
}
