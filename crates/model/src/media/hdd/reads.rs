//! Reads: out of the buffer, out of what the head is reading ahead, or from the disk.
//!
//! Data from the disk go out as they come, so that at the end only the last piece is left to send. A head with nothing else
//! to do reads on behind a read, up to the length of the read-ahead behind the last byte that was asked for. Where reads have
//! followed each other it goes on even if others wait, unless one of them is what comes next: without that, two streams would
//! have a seek for each command.

use super::access::{Access, For};
use super::gauges::Counts;
use super::head::Work;
use super::{Event, Hdd};
use crate::anatomy::Part;
use crate::command::Op;
use crate::time::{Span, Time};

/// Largest piece that is left to send when a read's last byte has come from the disk.
const LAST_PIECE: u64 = 64 << 10;

/// The head reads on without being asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// Into which segment.
    segment: usize,
    /// From which byte on.
    start: u64,
    /// Media time at which it began, and when that was.
    from: u64,
    since: Time,
    /// As far as it goes.
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
            return self.due(passes, Event::Passed, slot);
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
        self.due(now + access, Event::Ready, slot);
    }

    /// A command goes to the disk.
    pub(super) fn ready(&mut self, now: Time, slot: u32) {
        let (offset, end) = self.range(slot);
        let (whose, epoch) = match self.inside[slot].command.op {
            Op::Read => (For::Read(slot), 0),
            _ => (
                For::Write(slot),
                self.cache.supersede(offset, end, &self.geometry),
            ),
        };
        let access = Access::new(&self.geometry, (offset, end), (now, epoch), whose);
        self.queue_up(now, access, slot);
    }

    /// All of a read is sent out of the buffer.
    pub(super) fn send_all(&mut self, now: Time, slot: u32) {
        let bytes = self.inside[slot].command.bytes;
        self.send_piece(now, slot, bytes.into());
    }

    /// The last piece of a read is sent.
    pub(super) fn send(&mut self, now: Time, slot: u32) {
        let bytes = u64::from(self.inside[slot].command.bytes);
        self.send_piece(now, slot, bytes.min(LAST_PIECE));
    }

    fn send_piece(&mut self, now: Time, slot: u32, bytes: u64) {
        let service = Span::per_bytes(self.config.link.ps_per_byte, bytes);
        let (waited, at) = self.link.book(now, service);
        self.explain(slot, Part::Transfer, waited + service);
        self.due(at, Event::Finish, slot);
    }

    /// When all of a range has passed under the head that reads ahead, if that is on its way there and may go on.
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
            // It has stopped: that is an ordinary hit.
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
        self.ahead = Some(Ahead {
            limit: ahead.limit.max(limit),
            ..ahead
        });
        if passes > now {
            self.busy_until = self.busy_until.max(passes);
        }
        Some(passes)
    }

    /// How far it has come.
    fn passed(&self, ahead: &Ahead, now: Time) -> u64 {
        let time = ahead.from + now.since(ahead.since).ns();
        let before = self.segments.get(ahead.segment).end;
        self.geometry.reached(time).min(ahead.limit).max(before)
    }

    /// When it gets to its limit.
    fn stops(&self, ahead: &Ahead) -> Time {
        let time = self.geometry.end(ahead.limit).time;
        ahead.since + Span::from_ns(time.saturating_sub(ahead.from))
    }

    /// What is counted, with what has been read ahead by now.
    fn counted_ahead(&self, ahead: &Ahead, now: Time, passed: u64) -> Counts {
        let until = match passed < ahead.limit {
            true => now,
            false => now.min(self.stops(ahead)),
        };
        let mut counts = self.counts;
        counts.medium_read += passed - ahead.start;
        counts.transfer += until.since(ahead.since).ns();
        counts
    }

    /// What is counted by now, work under way too.
    pub(super) fn counted(&self, now: Time) -> Counts {
        let mut counts = match &self.ahead {
            Some(ahead) => self.counted_ahead(ahead, now, self.passed(ahead, now)),
            None => self.counts,
        };
        if let Some(work) = &self.work {
            counts.worked(work, now);
        }
        counts
    }

    /// The head stops reading ahead, wherever it is.
    pub(super) fn stop_ahead(&mut self, now: Time) {
        let Some(ahead) = self.ahead.take() else {
            return;
        };
        let passed = self.passed(&ahead, now);
        self.counts = self.counted_ahead(&ahead, now, passed);
        self.segments.grow(ahead.segment, passed);
        self.arm.be_at(self.geometry.end(passed));
    }

    /// Behind a read that has ended the head goes on, for a time that is its own if reads have followed each other.
    pub(super) fn go_on_reading(&mut self, now: Time, (segment, end): (usize, u64), work: &Work) {
        let limit = (end + self.config.buffer.read_ahead).min(self.geometry.capacity());
        if limit <= end {
            return;
        }
        let ahead = Ahead {
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

    /// A read was answered from a segment: a head with nothing else to do reads on behind that, before its end is reached.
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
        // Nobody's: the slot is never looked at.
        let read = Access::new(&self.geometry, (has, has + 1), (now, 0), For::Read(0));
        let trip = self.arm.trip(now, &read, &self.geometry, 0);
        self.counts.seek += trip.seek;
        self.arm.be_at(self.geometry.spot(has));
        self.ahead = Some(Ahead {
            segment,
            start: has,
            from: read.starts,
            since: now + Span::from_ns(trip.seek + trip.turn),
            limit: limit.max(has),
        });
    }
}
