//! Reads: from the buffer, from the data that the head is reading ahead, or from the disk.
//!
//! Data from the disk is sent as it arrives, so that at the end only the last piece must be sent. After a read, an idle
//! head reads ahead, up to the read-ahead length beyond the last byte that was requested. After sequential reads,
//! read-ahead continues even if other commands wait, unless one of them is the next sequential one. Otherwise, two
//! streams would need a seek for each command.

use super::access::{Access, AccessPurpose};
use super::gauges::HddCounts;
use super::head::HeadWork;
use super::{Hdd, HddEvent};
use crate::anatomy::Part;
use crate::command::Op;
use crate::time::{Span, Time};

/// Largest piece that must be sent after a read's last byte has arrived from the disk.
const LAST_PIECE: u64 = 64 << 10;

/// Read-ahead in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAheadState {
    /// Destination segment.
    segment: usize,
    /// First byte.
    start: u64,
    /// Media time at which the read-ahead started, at the virtual time `since`.
    from: u64,
    since: Time,
    /// Byte at which it ends.
    limit: u64,
}

impl Hdd {
    /// A read has arrived.
    pub(super) fn read(&mut self, now: Time, slot: u32) {
        let (offset, end) = self.range(slot);
        if self.cache.holds(offset, end) {
            return self.send_all(now, slot);
        }
        if let Some(passes) = self.passes_ahead(now, offset, end) {
            if passes <= now {
                return self.send_all(now, slot);
            }
            self.explain(slot, Part::Medium, passes.since(now));
            return self.due(passes, HddEvent::Passed, slot);
        }
        if let Some(segment) = self.segments.hit(offset, end) {
            self.send_all(now, slot);
            return self.fetch_more(now, segment, end);
        }
        let access = self.config.controller.access;
        if access == Span::ZERO {
            return self.ready(now, slot);
        }
        self.explain(slot, Part::Controller, access);
        self.due(now + access, HddEvent::Ready, slot);
    }

    /// A command is ready for the disk.
    pub(super) fn ready(&mut self, now: Time, slot: u32) {
        let (offset, end) = self.range(slot);
        let (whose, epoch) = match self.inside[slot].command.op {
            Op::Read => (AccessPurpose::Read(slot), 0),
            _ => (
                AccessPurpose::Write(slot),
                self.cache.supersede(offset, end, &self.geometry),
            ),
        };
        let access = Access::new(&self.geometry, (offset, end), (now, epoch), whose);
        self.queue_up(now, access, slot);
    }

    /// Sends all of a read from the buffer.
    pub(super) fn send_all(&mut self, now: Time, slot: u32) {
        let bytes = self.inside[slot].command.bytes;
        self.send_piece(now, slot, bytes.into());
    }

    /// Sends the last piece of a read.
    pub(super) fn send(&mut self, now: Time, slot: u32) {
        let bytes = u64::from(self.inside[slot].command.bytes);
        self.send_piece(now, slot, bytes.min(LAST_PIECE));
    }

    fn send_piece(&mut self, now: Time, slot: u32, bytes: u64) {
        let service = Span::per_bytes(self.config.link.ps_per_byte, bytes);
        let (waited, at) = self.link.book(now, service);
        self.explain(slot, Part::Transfer, waited + service);
        self.due(at, HddEvent::Finish, slot);
    }

    /// Returns when all of a range has passed under the head that reads ahead, if the read-ahead will reach it and may
    /// continue.
    fn passes_ahead(&mut self, now: Time, offset: u64, end: u64) -> Option<Time> {
        let ahead = self.ahead?;
        if offset < self.segments.get(ahead.segment).start || offset > ahead.limit {
            return None;
        }
        let passed = self.passed(&ahead, now);
        self.segments.grow(ahead.segment, passed);
        if offset < self.segments.get(ahead.segment).start {
            return None;
        }
        let stops = self.stops(&ahead);
        if end <= passed && now >= stops {
            // It has stopped: this is an ordinary hit.
            return None;
        }
        let passes =
            ahead.since + Span::from_ns(self.geometry.end(end).time.saturating_sub(ahead.from));
        let undisturbed = self.queue.is_empty() && !self.cache_presses(now);
        let runs = now < stops && (undisturbed || passes <= self.busy_until);
        if !runs {
            return (end <= passed).then_some(now);
        }
        let limit = (end + self.config.buffer.read_ahead).min(self.geometry.capacity());
        self.ahead = Some(ReadAheadState {
            limit: ahead.limit.max(limit),
            ..ahead
        });
        if passes > now {
            self.busy_until = self.busy_until.max(passes);
        }
        Some(passes)
    }

    /// Returns the byte that it has reached.
    fn passed(&self, ahead: &ReadAheadState, now: Time) -> u64 {
        let time = ahead.from + now.since(ahead.since).ns();
        let before = self.segments.get(ahead.segment).end;
        self.geometry.reached(time).min(ahead.limit).max(before)
    }

    /// Returns when it reaches its limit.
    fn stops(&self, ahead: &ReadAheadState) -> Time {
        let time = self.geometry.end(ahead.limit).time;
        ahead.since + Span::from_ns(time.saturating_sub(ahead.from))
    }

    /// Returns the counters, including the data read ahead by now.
    fn counted_ahead(&self, ahead: &ReadAheadState, now: Time, passed: u64) -> HddCounts {
        let until = match passed < ahead.limit {
            true => now,
            false => now.min(self.stops(ahead)),
        };
        let mut counts = self.counts;
        counts.medium_read += passed - ahead.start;
        counts.transfer += until.since(ahead.since).ns();
        counts
    }

    /// Returns the counters, including work in progress.
    pub(super) fn counted(&self, now: Time) -> HddCounts {
        let mut counts = match &self.ahead {
            Some(ahead) => self.counted_ahead(ahead, now, self.passed(ahead, now)),
            None => self.counts,
        };
        if let Some(work) = &self.work {
            counts.worked(work, now);
        }
        counts
    }

    /// Stops read-ahead at its current position.
    pub(super) fn stop_ahead(&mut self, now: Time) {
        let Some(ahead) = self.ahead.take() else {
            return;
        };
        let passed = self.passed(&ahead, now);
        self.counts = self.counted_ahead(&ahead, now, passed);
        self.segments.grow(ahead.segment, passed);
        self.arm.be_at(self.geometry.end(passed));
    }

    /// After a read, the head continues with read-ahead. If reads were sequential, it has a reserved time for that.
    pub(super) fn go_on_reading(
        &mut self,
        now: Time,
        (segment, end): (usize, u64),
        work: &HeadWork,
    ) {
        let limit = (end + self.config.buffer.read_ahead).min(self.geometry.capacity());
        if limit <= end {
            return;
        }
        let ahead = ReadAheadState {
            segment,
            start: end,
            from: work.trip.end.time,
            since: now,
            limit,
        };
        let next = |it: &Access| !it.writes && (end..limit).contains(&it.offset);
        if work.behind.is_some() && !self.queue.iter().any(next) {
            self.busy_until = self.stops(&ahead);
        }
        self.ahead = Some(ahead);
    }

    /// A read was completed from a segment: an idle head continues reading after that segment, before its end is
    /// reached.
    fn fetch_more(&mut self, now: Time, segment: usize, end: u64) {
        let idle = self.work.is_none() && self.queue.is_empty() && self.cache.waiting().is_empty();
        let has = self.segments.get(segment).end;
        let read_ahead = self.config.buffer.read_ahead;
        let limit = (end + read_ahead).min(self.geometry.capacity());
        if !idle || now < self.busy_until || end + read_ahead / 2 < has || limit <= has {
            return;
        }
        self.stop_ahead(now);
        let has = self.segments.get(segment).end;
        // Belongs to no command: the slot is never used.
        let read = Access::new(
            &self.geometry,
            (has, has + 1),
            (now, 0),
            AccessPurpose::Read(0),
        );
        let trip = self.arm.trip(now, &read, &self.geometry, 0);
        self.counts.seek += trip.seek;
        self.arm.be_at(self.geometry.spot(has));
        self.ahead = Some(ReadAheadState {
            segment,
            start: has,
            from: read.starts,
            since: now + Span::from_ns(trip.seek + trip.turn),
            limit: limit.max(has),
        });
    }
}
