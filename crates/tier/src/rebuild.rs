//! Rebuilds and resyncs as load on the members: their rate limit, and their progress for reports.
//!
//! A rebuild or resync has one chunk in progress at a time. With a limit, a chunk starts no earlier than the limit allows
//! for the chunks before it, as md's `speed_limit_max` (`Documentation/admin-guide/md.rst`). md averages its limit over
//! 30 s; here each chunk obeys it. Not included: md's `speed_limit_min`, above which md waits for each of its own
//! commands while clients use the array (here it always waits for them).

use alloc::vec;
use alloc::vec::Vec;

use model::time::{Span, Time};

use super::{AnyTier, Child};

/// State of a child, or of a member with children in several tiers: then the last one in this order counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SyncState {
    /// Has all acknowledged data, or the tier does not track that.
    InSync,
    /// Lacks data, and nothing brings that data to the child.
    Out,
    /// Has all data, and the labels do not state that yet.
    Joining,
    /// Waits for another rebuild, or for sources.
    Waiting,
    /// A rebuild is running.
    Rebuilding,
}

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

impl AnyTier {
    /// Returns the state of a child.
    pub fn sync_state(&self, child: Child) -> SyncState {
        match self {
            AnyTier::Mirror(mirror) => mirror.sync_state(child),
            AnyTier::Raid5(array) | AnyTier::Raid6(array) => array.sync_state(child),
            AnyTier::Raidz(raidz) => raidz.sync_state(child),
            _ => SyncState::InSync,
        }
    }

    /// Returns the progress of the rebuild or resync of a child, if there is one.
    pub fn rebuild(&self) -> Option<RebuildProgress> {
        match self {
            AnyTier::Mirror(mirror) => mirror.rebuild(),
            AnyTier::Raid5(array) | AnyTier::Raid6(array) => array.rebuild(),
            AnyTier::Raidz(raidz) => raidz.rebuild(),
            _ => None,
        }
    }

    /// Returns the bytes that all rebuilds of a child have written to it.
    pub fn rebuilt_bytes(&self, child: Child) -> u64 {
        match self {
            AnyTier::Mirror(mirror) => mirror.rebuilt_bytes(child),
            AnyTier::Raid5(array) | AnyTier::Raid6(array) => array.rebuilt_bytes(child),
            AnyTier::Raidz(raidz) => raidz.rebuilt_bytes(child),
            _ => 0,
        }
    }

    /// Returns the bytes that the rebuild of a child still has to write, also if it waits.
    pub fn rebuild_left(&self, child: Child) -> u64 {
        if !matches!(
            self.sync_state(child),
            SyncState::Waiting | SyncState::Rebuilding
        ) {
            return 0;
        }
        match self {
            AnyTier::Mirror(mirror) => mirror.rebuild_left(child),
            AnyTier::Raid5(array) | AnyTier::Raid6(array) => array.rebuild_left(child),
            AnyTier::Raidz(raidz) => raidz.rebuild_left(child),
            _ => 0,
        }
    }

    /// Starts no more chunks of rebuilds.
    pub(super) fn pause_rebuilds(&mut self) {
        match self {
            AnyTier::Mirror(mirror) => mirror.pause_rebuilds(),
            AnyTier::Raid5(array) | AnyTier::Raid6(array) => array.pause_rebuilds(),
            AnyTier::Raidz(raidz) => raidz.pause_rebuilds(),
            _ => {}
        }
    }

    /// Checks whether writes fail because too few children can record which children have missed writes.
    pub fn rejects_writes(&self) -> bool {
        match self {
            AnyTier::Mirror(mirror) => mirror.rejects_writes(),
            AnyTier::Raid5(array) | AnyTier::Raid6(array) => array.rejects_writes(),
            _ => false,
        }
    }
}

/// The rate limit of rebuilds, and the bytes that they have written.
#[derive(Clone, Debug)]
pub(super) struct RebuildPace {
    /// Bytes per second; 0 without a limit.
    rate: u64,
    /// Earliest start of the next chunk.
    next: Time,
    /// Bytes that rebuilds have written to each child.
    written: Vec<u64>,
}

impl RebuildPace {
    pub(super) fn new(rate: u64, children: usize) -> RebuildPace {
        RebuildPace {
            rate,
            next: Time::ZERO,
            written: vec![0; children],
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

    /// A rebuild has written this many bytes to a child.
    pub(super) fn add(&mut self, child: Child, bytes: u64) {
        self.written[usize::from(child)] += bytes;
    }

    /// Returns the bytes that rebuilds have written to a child.
    pub(super) fn written(&self, child: Child) -> u64 {
        self.written[usize::from(child)]
    }

    /// No chunk starts any more.
    pub(super) fn pause(&mut self) {
        self.next = Time::NEVER;
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
        let mut pace = RebuildPace::new(200_000_000, 1);
        pace.start(Time::ZERO + Span::from_ms(3), 200_000);
        assert_eq!(pace.next(), Time::ZERO + Span::from_ms(4));
        pace.start(pace.next(), 400_000);
        assert_eq!(pace.next(), Time::ZERO + Span::from_ms(6));
        let mut unlimited = RebuildPace::new(0, 1);
        unlimited.start(Time::ZERO + Span::from_ms(3), 200_000);
        assert_eq!(unlimited.next(), Time::ZERO);
    }
}
