//! The write cache: writes that are acknowledged and not on the disk yet, and the flushes that wait for them.
//!
//! A write over one that waits takes its place, and one that goes on from another joins it, so that what is written in order
//! goes to the disk in large pieces. Flushes are numbered: each write carries the number of flushes before the oldest data
//! that it stands for, and a flush is done when no write of its number or an older one is left, on the disk or on its way.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::access::{Access, For};
use super::geometry::Geometry;
use crate::device::Range;
use crate::time::Time;

/// Longest piece that writes join to: what a read waits for that comes meanwhile.
const LONGEST: u64 = 512 << 10;

/// A flush that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flush {
    pub(super) slot: u32,
    pub(super) epoch: u32,
    pub(super) since: Time,
}

/// Writes in the cache.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// Without order.
    waiting: Vec<Access>,
    bytes: u64,
    /// The one that is being written, and what is left of its bytes in the buffer.
    under_way: Option<Access>,
    most_bytes: u64,
    most_writes: usize,
    /// Flushes so far.
    epoch: u32,
    flushes: VecDeque<Flush>,
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

    /// Writes that wait.
    pub(super) fn waiting(&self) -> &[Access] {
        &self.waiting
    }

    /// Bytes in the buffer, those that are being written too.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes + self.under_way.map_or(0, |it| it.bytes())
    }

    /// Whether so many bytes fit.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.waiting.len() < self.most_writes && self.bytes() + bytes <= self.most_bytes
    }

    /// Whether it is so full that reads no longer go first.
    pub(super) fn is_filling(&self) -> bool {
        self.waiting.len() * 4 >= self.most_writes * 3 || self.bytes() * 4 >= self.most_bytes * 3
    }

    /// Whether one of the writes has all of this range.
    #[inline]
    pub(super) fn holds(&self, offset: u64, end: u64) -> bool {
        let all = self.waiting.iter().chain(&self.under_way);
        all.into_iter()
            .any(|it| it.offset <= offset && end <= it.end)
    }

    /// Takes a write in.
    pub(super) fn insert(&mut self, now: Time, offset: u64, end: u64, geometry: &Geometry) {
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
        self.waiting
            .push(Access::new(geometry, range, (since, epoch), For::Cache));
    }

    /// Newer data for a range: what waits of it is dropped. The number of flushes before the oldest that the newer data now
    /// stand for.
    pub(super) fn supersede(&mut self, offset: u64, end: u64, geometry: &Geometry) -> u32 {
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
                        .push(Access::new(geometry, rest, age, For::Cache));
                }
            }
        }
        epoch
    }

    /// Takes out the write that is to go to the disk now.
    pub(super) fn begin(&mut self, at: usize) -> Access {
        let access = self.waiting.swap_remove(at);
        self.bytes -= access.bytes();
        self.under_way = Some(access);
        access
    }

    /// It is there.
    pub(super) fn written(&mut self) {
        self.under_way = None;
    }

    /// A flush comes.
    pub(super) fn flush(&mut self, now: Time, slot: u32) {
        self.flushes.push_back(Flush {
            slot,
            epoch: self.epoch,
            since: now,
        });
        self.epoch += 1;
    }

    /// The oldest flush that waits.
    pub(super) fn first_flush(&self) -> Option<Flush> {
        self.flushes.front().copied()
    }

    /// Takes the oldest flush if nothing that it waits for is left, in the cache or among these other writes.
    pub(super) fn flushed<'a>(
        &mut self,
        mut others: impl Iterator<Item = &'a Access>,
    ) -> Option<Flush> {
        let first = self.first_flush()?;
        let mut waits = self.waiting.iter().chain(&self.under_way);
        let holds_up = |it: &Access| it.writes && it.epoch <= first.epoch;
        if waits.any(holds_up) || others.any(holds_up) {
            return None;
        }
        self.flushes.pop_front()
    }

    /// What would be lost if power went.
    pub(super) fn at_risk(&self, ranges: &mut Vec<Range>) {
        let all = self.waiting.iter().chain(&self.under_way);
        ranges.extend(all.map(|it| Range {
            offset: it.offset,
            bytes: it.bytes(),
        }));
    }

    /// Power has gone.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
        self.under_way = None;
        self.flushes.clear();
        self.bytes = 0;
    }
}
