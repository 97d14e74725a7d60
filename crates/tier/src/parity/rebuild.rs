//! Online rebuild: a child that has returned gets its data and parity, computed from the others, while the array is in
//! use.
//!
//! Marked regions are rebuilt in order, one chunk at a time; if the child was replaced, all used rows are rebuilt. A
//! chunk is work on a stripe ([`super::work`]) and locks its rows. All writes of clients, and flushes, also go to the
//! child. At the end the child is flushed, and then listed as in sync, on the other children first. If a chunk cannot
//! be computed, or the child cannot write it, the rebuild ends and the child stays out.

use alloc::vec::Vec;
use core::ops::Range;

use model::command::{Command, Status};
use model::device;
use model::time::Time;

use super::{ParityArray, ParityPurpose, REST};
use crate::planted::{self, Bug};
use crate::rebuild::{RebuildPace, RebuildProgress, SyncState, sum_left};
use crate::{Child, TierContext};

/// Maximum number of bytes that a chunk has on a child.
const CHUNK: u64 = 256 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RebuildStep {
    /// The next chunk may start when the rate limit allows it.
    Seek,
    Work,
    Flush,
}

#[derive(Clone, Copy, Debug)]
struct Rebuild {
    child: Child,
    /// Rows of the last chunk.
    at: u64,
    bytes: u64,
    copied: u64,
    step: RebuildStep,
    /// Whether the rebuild has ended, except for work in progress.
    stopped: bool,
}

/// State of rebuilds.
#[derive(Clone, Debug)]
pub(super) struct Rebuilding {
    current: Option<Rebuild>,
    /// Children that wait for a rebuild; and children, waiting or being rebuilt, that need all data.
    returned: u32,
    whole: u32,
    /// Children that recovery could not rebuild: they stay out until the next recovery.
    pub(super) barred: u32,
    /// Used rows.
    used: Vec<Range<u64>>,
    pace: RebuildPace,
}

impl Rebuilding {
    pub(super) fn new(rate: u64, rows: u64, children: usize) -> Rebuilding {
        Rebuilding {
            current: None,
            returned: 0,
            whole: 0,
            barred: 0,
            used: core::iter::once(0..rows).collect(),
            pace: RebuildPace::new(rate, children),
        }
    }

    /// Ends all rebuilds.
    pub(super) fn forget(&mut self) {
        (self.current, self.returned, self.whole) = (None, 0, 0);
        self.pace.reset();
    }

    /// Returns when the next chunk may start, if the rebuild of a child waits for that.
    pub(super) fn due(&self) -> Time {
        match &self.current {
            Some(current) if current.step == RebuildStep::Seek => self.pace.next(),
            // The child before it has failed while it waited for this time.
            None if self.returned != 0 => self.pace.next(),
            _ => Time::NEVER,
        }
    }

    /// A child has left the array.
    pub(super) fn leave(&mut self, child: Child) {
        let Some(current) = self.current.as_mut().filter(|it| it.child == child) else {
            return;
        };
        match current.step {
            RebuildStep::Seek => self.current = None,
            RebuildStep::Work | RebuildStep::Flush => current.stopped = true,
        }
    }

    /// Returns the bit of the child that is rebuilt, or 0.
    pub(super) fn child(&self) -> u32 {
        let running = self.current.as_ref().filter(|it| !it.stopped);
        running.map_or(0, |it| 1 << it.child)
    }
}

impl ParityArray {
    /// Returns the children that receive writes and flushes, including the one that is rebuilt.
    pub(super) fn stored(&self) -> u32 {
        match planted::has(Bug::RebuildsWithoutWrites) {
            true => self.labels.known.in_sync,
            false => self.labels.known.in_sync | self.rebuilding.child(),
        }
    }

    /// A child responds again, with all data except missed writes, or without any.
    pub(super) fn rebuild_later<W: TierContext>(
        &mut self,
        now: Time,
        child: Child,
        whole: bool,
        way: &mut W,
    ) {
        let bit = 1 << child;
        self.leave(child, way);
        // If too few children are left, this one still counts.
        if self.labels.known.in_sync & bit != 0 || self.rebuilding.barred & bit != 0 {
            return;
        }
        self.rebuilding.returned |= bit;
        if whole {
            self.rebuilding.whole |= bit;
        }
        self.rebuild_next(now, way);
    }

    /// Starts the rebuild of a returned child, if one is waiting.
    fn rebuild_next<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let rebuilding = &mut self.rebuilding;
        if rebuilding.current.is_some() || rebuilding.returned == 0 {
            return;
        }
        let child = rebuilding.returned.trailing_zeros() as Child;
        rebuilding.returned &= !(1 << child);
        rebuilding.current = Some(Rebuild {
            child,
            at: 0,
            bytes: 0,
            copied: 0,
            step: RebuildStep::Seek,
            stopped: false,
        });
        self.rebuild_on(now, way);
    }

    /// Starts the next chunk if the rate limit allows it; or ends the rebuild.
    pub(super) fn rebuild_on<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if self.rebuilding.due() > now {
            return;
        }
        let Some(mut current) = self.rebuilding.current else {
            return self.rebuild_next(now, way);
        };
        let next = self.next_rows(current.child, current.at + current.bytes);
        let Some(rows) = next else {
            current.step = RebuildStep::Flush;
            self.rebuilding.current = Some(current);
            let mut child = current.child;
            if planted::has(Bug::JoinsUnflushed) {
                child = (child + 1) % self.shape.children as Child;
            }
            let flush = Command::flush(0);
            return self.send(child, ParityPurpose::RebuildFlush, &flush, way);
        };
        (current.at, current.bytes) = (rows.start, rows.end - rows.start);
        current.step = RebuildStep::Work;
        self.rebuilding.current = Some(current);
        self.rebuilding.pace.start(now, current.bytes);
        self.rebuild_rows(now, rows, way);
    }

    /// Returns the rows of the next chunk that starts at or after `from`.
    fn next_rows(&self, child: Child, mut from: u64) -> Option<Range<u64>> {
        loop {
            let (at, end) = self.next_part(child, from)?;
            let chunk = self.shape.chunk;
            let end = end.min((at / chunk + 1) * chunk).min(at + CHUNK);
            if planted::has(Bug::SkipsStripes) && at / chunk % 4 == 3 {
                from = end;
                continue;
            }
            return Some(at..end);
        }
    }

    /// Returns the next rows at or after `from` that the child lacks: their first byte and end.
    fn next_part(&self, child: Child, from: u64) -> Option<(u64, u64)> {
        let end = self.labels_at();
        let next = match self.rebuilding.whole & (1 << child) {
            0 => {
                let region = self.labels.region;
                let index = self.labels.known.dirty.next((from / region) as usize)? as u64;
                (from.max(index * region), (index + 1) * region)
            }
            _ => {
                let rest = self.rebuilding.used.iter();
                let rest =
                    rest.filter_map(|it| (it.end > from).then_some((it.start.max(from), it.end)));
                rest.min()?
            }
        };
        (next.0 < end).then_some((next.0, next.1.min(end)))
    }

    /// The work on a chunk has ended.
    pub(super) fn rebuilt<W: TierContext>(&mut self, now: Time, status: Status, way: &mut W) {
        let Some(current) = &mut self.rebuilding.current else {
            return;
        };
        if current.stopped || status != Status::Success {
            self.rebuilding.current = None;
            return self.rebuild_next(now, way);
        }
        current.copied += current.bytes;
        current.step = RebuildStep::Seek;
        let (child, bytes) = (current.child, current.bytes);
        self.rebuilding.pace.add(child, bytes);
        self.rebuild_on(now, way);
    }

    /// The flush at the end has completed: the child is complete.
    pub(super) fn rebuild_flushed<W: TierContext>(
        &mut self,
        now: Time,
        status: Status,
        way: &mut W,
    ) {
        let Some(current) = self.rebuilding.current.take() else {
            return;
        };
        if !current.stopped && status == Status::Success {
            let bit = 1 << current.child;
            self.labels.join(current.child);
            self.rebuilding.whole &= !bit;
            // The rebuild includes the rows of all outstanding requests, and was flushed afterwards.
            for request in self.requests.all_mut() {
                request.missed &= !bit;
            }
            // Marks are cleared when the array is idle.
            self.disturbed = true;
            self.rest_at = self.rest_at.min(now + REST);
            self.pump(way);
        }
        self.rebuild_next(now, way);
    }

    /// Sets the used rows.
    pub(super) fn set_used(&mut self, ranges: &[device::Range]) {
        self.rebuilding.used = ranges.iter().map(|it| self.rows_of(it)).collect();
    }

    /// Returns the rows of the stripes of a range of data.
    pub(super) fn rows_of(&self, range: &device::Range) -> Range<u64> {
        let shape = self.shape;
        let first = range.offset / shape.stripe() * shape.chunk;
        let last = (range.offset + range.bytes).div_ceil(shape.stripe()) * shape.chunk;
        first..last.min(self.labels_at())
    }

    /// Returns the progress of the rebuild in bytes.
    pub fn rebuild(&self) -> Option<RebuildProgress> {
        let current = self.rebuilding.current.as_ref()?;
        Some(RebuildProgress {
            child: current.child,
            copied: current.copied,
        })
    }

    /// Returns the rebuild of this child, if it is running.
    fn rebuild_of(&self, child: Child) -> Option<&Rebuild> {
        let current = self.rebuilding.current.as_ref();
        current.filter(|it| it.child == child && !it.stopped)
    }

    /// Returns the state of a child.
    pub fn sync_state(&self, child: Child) -> SyncState {
        match (
            self.rebuild_of(child),
            self.rebuilding.returned >> child & 1,
        ) {
            (Some(_), _) => SyncState::Rebuilding,
            (None, 1) => SyncState::Waiting,
            _ => self.labels.sync_state(child),
        }
    }

    pub(crate) fn pause_rebuilds(&mut self) {
        self.rebuilding.pace.pause();
    }

    /// Returns the bytes that rebuilds have written to a child.
    pub fn rebuilt_bytes(&self, child: Child) -> u64 {
        self.rebuilding.pace.written(child)
    }

    /// Returns the bytes that the rebuild of a child still has to write, or will have to if it waits.
    pub fn rebuild_left(&self, child: Child) -> u64 {
        let from = self.rebuild_of(child).map_or(0, |it| match it.step {
            RebuildStep::Work => it.at,
            _ => it.at + it.bytes,
        });
        sum_left(from, |from| self.next_part(child, from))
    }
}

#[cfg(test)]
mod tests;
