//! The write cache: writes that are acknowledged and not yet on the disk, and the flushes that wait for them.
//!
//! A write that overlaps a waiting one replaces it, and a write that continues another is merged with it, so that
//! sequential writes go to the disk in large pieces. Flushes are numbered. Each write carries the number of flushes
//! that came before the oldest data that it replaces. A flush is done when no write of its number or an older one is
//! left, in the cache or in progress.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::access::{Access, AccessPurpose};
use super::geometry::DiskGeometry;
use crate::device::Range;
use crate::time::Time;

/// Longest piece after merging: a read that arrives meanwhile waits for that piece.
const LONGEST: u64 = 512 << 10;

/// A waiting flush.
#[derive(Clone, Copy, Debug)]
pub(super) struct HddFlush {
    pub(super) slot: u32,
    pub(super) epoch: u32,
    pub(super) since: Time,
}

/// Writes in the cache.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// Waiting writes, in no order.
    waiting: Vec<Access>,
    bytes: u64,
    /// The write in progress, and its remaining bytes in the buffer.
    under_way: Option<Access>,
    most_bytes: u64,
    most_writes: usize,
    /// Number of flushes so far.
    epoch: u32,
    flushes: VecDeque<HddFlush>,
}

impl Cache {
    pub(super) fn new(most_bytes: u64, most_writes: u32) -> Cache {
        Cache {
            waiting: Vec::with_capacity(most_writes as usize + 2),
            bytes: 0,
            under_way: None,
            most_bytes,
            most_writes: most_writes as usize,
            epoch: 0,
            flushes: VecDeque::with_capacity(16),
        }
    }

    /// Returns the waiting writes.
    pub(super) fn waiting(&self) -> &[Access] {
        &self.waiting
    }

    /// Returns the bytes in the buffer, including those in progress.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes + self.under_way.map_or(0, |it| it.bytes())
    }

    /// Whether `bytes` fit.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.waiting.len() < self.most_writes && self.bytes() + bytes <= self.most_bytes
    }

    /// Whether it is so full that reads no longer have priority.
    pub(super) fn is_filling(&self) -> bool {
        self.waiting.len() * 4 >= self.most_writes * 3 || self.bytes() * 4 >= self.most_bytes * 3
    }

    /// Whether one of the writes contains this whole range.
    #[inline]
    pub(super) fn holds(&self, offset: u64, end: u64) -> bool {
        let all = self.waiting.iter().chain(&self.under_way);
        all.into_iter()
            .any(|it| it.offset <= offset && end <= it.end)
    }

    /// Adds a write.
    pub(super) fn insert(&mut self, now: Time, offset: u64, end: u64, geometry: &DiskGeometry) {
        let mut epoch = self.supersede(offset, end, geometry);
        let mut range = (offset, end);
        let mut since = now;
        let joins = |it: &Access| it.end == offset && end - it.offset <= LONGEST;
        if let Some(at) = self.waiting.iter().position(joins) {
            let joined = self.waiting.swap_remove(at);
            self.bytes -= joined.bytes();
            range.0 = joined.offset;
            since = joined.since;
            epoch = epoch.min(joined.epoch);
        }
        self.bytes += range.1 - range.0;
        self.waiting.push(Access::new(
            geometry,
            range,
            (since, epoch),
            AccessPurpose::Cache,
        ));
    }

    /// Replaces a range by newer data: waiting writes of the range are dropped. Returns the number of flushes that came
    /// before the oldest data that the newer data replaces.
    pub(super) fn supersede(&mut self, offset: u64, end: u64, geometry: &DiskGeometry) -> u32 {
        let mut epoch = self.epoch;
        let mut at = 0;
        while at < self.waiting.len() {
            let old = self.waiting[at];
            if !old.overlaps(offset, end) {
                at += 1;
                continue;
            }
            self.waiting.swap_remove(at);
            self.bytes -= old.bytes();
            epoch = epoch.min(old.epoch);
            for rest in [(old.offset, offset), (end, old.end)] {
                if rest.0 < rest.1 {
                    self.bytes += rest.1 - rest.0;
                    let age = (old.since, old.epoch);
                    self.waiting
                        .push(Access::new(geometry, rest, age, AccessPurpose::Cache));
                }
            }
        }
        epoch
    }

    /// Removes and returns the write that goes to the disk now.
    pub(super) fn begin(&mut self, at: usize) -> Access {
        let access = self.waiting.swap_remove(at);
        self.bytes -= access.bytes();
        self.under_way = Some(access);
        access
    }

    /// The write in progress has reached the disk.
    pub(super) fn written(&mut self) {
        self.under_way = None;
    }

    /// Adds a flush.
    pub(super) fn flush(&mut self, now: Time, slot: u32) {
        self.flushes.push_back(HddFlush {
            slot,
            epoch: self.epoch,
            since: now,
        });
        self.epoch += 1;
    }

    /// Returns the oldest waiting flush.
    pub(super) fn first_flush(&self) -> Option<HddFlush> {
        self.flushes.front().copied()
    }

    /// Removes and returns the oldest flush, if no write that it waits for is left, in the cache or among these other
    /// writes.
    pub(super) fn flushed<'a>(
        &mut self,
        mut others: impl Iterator<Item = &'a Access>,
    ) -> Option<HddFlush> {
        let first = self.first_flush()?;
        let mut waits = self.waiting.iter().chain(&self.under_way);
        let holds_up = |it: &Access| it.writes && it.epoch <= first.epoch;
        if waits.any(holds_up) || others.any(holds_up) {
            return None;
        }
        self.flushes.pop_front()
    }

    /// Appends the data that a power cut would lose.
    pub(super) fn at_risk(&self, ranges: &mut Vec<Range>) {
        let all = self.waiting.iter().chain(&self.under_way);
        ranges.extend(all.map(|it| Range {
            offset: it.offset,
            bytes: it.bytes(),
        }));
    }

    /// Empties the cache after a power cut.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
        self.under_way = None;
        self.flushes.clear();
        self.bytes = 0;
    }
}
