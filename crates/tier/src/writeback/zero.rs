//! Ranges without data: deallocated, or zeroed.
//!
//! They are an entry in the ring. Once that is durable, the capacity tier clears the range. Then the units are unmapped
//! in the buffer, the command is acknowledged, and its segment may be freed. Destaging writes at these addresses are
//! never in flight at the same time.

use model::anatomy::Part;
use model::command::{Command, Completion, Status};
use model::time::Time;

use super::ring::UNIT;
use super::{WriteBack, WriteBackPurpose};
use crate::TierContext;
use crate::planted::{self, Bug};

impl WriteBack {
    /// The entry of a request is in the ring.
    pub(super) fn zero<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let segment = self.segment_of(request);
        self.ring.segments[segment as usize].pins += 1;
        self.zeroing.push(request);
        self.try_zero(now, request, way);
    }

    /// Unmaps its units in the buffer, except those written after it. (Not earlier: until the capacity tier has cleared
    /// the range, its data there may be older.)
    fn forget_zeroed(&mut self, request: u32) {
        let own = &self.requests[request];
        let (units, position) = (own.whole(), own.mark.unwrap_or(0));
        self.forget_before(units, position);
    }

    /// Unmaps these units in the buffer if they were written before a position.
    pub(super) fn forget_before(&mut self, units: core::ops::Range<u64>, position: u64) {
        let (mut unit, end) = (units.start, units.end);
        while unit < end {
            let Some(slot) = self.map.get(unit) else {
                unit = self.map.skip(unit);
                continue;
            };
            if self.ring.position(slot) < position {
                self.unmap(unit, slot);
                self.counts.absorbed += u64::from(UNIT);
            }
            unit += 1;
        }
    }

    /// Returns a position in the segment of its entry: that of the preceding unit in the record, or of the header.
    pub(super) fn entry_of(&self, request: u32) -> u64 {
        self.requests[request].mark.unwrap_or(1) - 1
    }

    fn segment_of(&self, request: u32) -> u32 {
        self.ring.segment(self.ring.slot(self.entry_of(request)))
    }

    /// Clears the range on the capacity tier, unless it is being written there.
    fn try_zero<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let range = self.zeroed_bytes(request);
        let drives = 0..self.striping.count as usize;
        let run = |index| self.striping.run(index, range.0, range.1);
        if let Some(status) = self.failed {
            let own = &mut self.requests[request];
            own.account(now, Part::Tier);
            own.status = status;
            self.zeroing.retain(|&it| it != request);
            return self.end(request, way);
        }
        let busy = drives.clone().any(|index| {
            run(index).is_some_and(|run| self.destaging.writes(index, run.offset, run.bytes))
        });
        if busy && !planted::has(Bug::TrimsWhileDestaging) {
            return;
        }
        let own = &mut self.requests[request];
        own.account(now, Part::Tier);
        let command = own.command;
        for index in drives {
            let Some(run) = self.striping.run(index, range.0, range.1) else {
                continue;
            };
            self.requests[request].left += 1;
            self.destaging.touch(index);
            let piece = Command {
                fua: false,
                offset: run.offset,
                bytes: run.bytes as u32,
                ..command
            };
            way.send(
                index as u16 + 1,
                WriteBackPurpose::Zero.token(request),
                piece,
            );
        }
    }

    /// Returns the range of bytes without data.
    fn zeroed_bytes(&self, request: u32) -> (u64, u64) {
        let units = self.requests[request].whole();
        let unit = u64::from(UNIT);
        (units.start * unit, units.end * unit)
    }

    /// Whether a range of a drive of the capacity tier will be zeroed.
    pub(super) fn is_zeroed(&self, index: usize, offset: u64, bytes: u64) -> bool {
        self.zeroing.iter().any(|&request| {
            let range = self.zeroed_bytes(request);
            let run = self.striping.run(index, range.0, range.1);
            run.is_some_and(|run| run.offset < offset + bytes && offset < run.offset + run.bytes)
        })
    }

    /// Continues requests that waited for destaging writes.
    pub(super) fn zero_waiting<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let mut index = 0;
        while let Some(&request) = self.zeroing.get(index) {
            if self.requests[request].left == 0 {
                self.try_zero(now, request, way);
            }
            // It may have been removed.
            index += usize::from(self.zeroing.get(index) == Some(&request));
        }
    }

    /// The capacity tier has cleared a part of the range.
    pub(super) fn has_zeroed<W: TierContext>(
        &mut self,
        now: Time,
        request: u32,
        done: &Completion,
        way: &mut W,
    ) {
        let own = &mut self.requests[request];
        if !own.part_ended(done) {
            return;
        }
        let status = own.status;
        let segment = self.segment_of(request);
        self.zeroing.retain(|&it| it != request);
        match status {
            Status::Success if planted::has(Bug::RemembersTrimmed) => {}
            Status::Success => self.forget_zeroed(request),
            _ => self.give_up(now, status, way),
        }
        self.settle(now, request, way);
        self.unpin(now, segment, way);
        self.unblock(now, way);
        self.start_runs(now, way);
    }
}
