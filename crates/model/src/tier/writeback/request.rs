//! A client's command that changes something, while it is inside: which units it covers, as a whole or in part, and where
//! its data for them are.

use super::Flushed;
use super::ring::UNIT;
use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, Op, Payload, Status};
use crate::data::Buffers;
use crate::time::{Span, Time};

/// Whether it goes past the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Past {
    /// It does not.
    #[default]
    No,
    /// It does, and waits for that or is being written to the capacity tier.
    Waits,
    /// It is there, and has still to be noted in the ring.
    Written,
}

/// A client's command that changes something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) command: Command,
    /// Up to when its anatomy accounts for its time.
    pub(super) since: Time,
    pub(super) anatomy: Anatomy,
    /// What the clock of the tier said when it came to wait for a record.
    pub(super) stalls: Span,
    /// The next unit to be put into a record.
    pub(super) next: u64,
    /// Where in the ring its entry without data stands, once it does.
    pub(super) mark: Option<u64>,
    /// Up to where its flush makes the ring durable: what was applied when that left.
    pub(super) flushes: Flushed,
    /// The units that it covers in part, as they will be.
    pub(super) rest: [Payload; 2],
    /// Whether it goes past the buffer.
    pub(super) past: Past,
    /// Commands to children that it waits for.
    pub(super) left: u32,
    pub(super) status: Status,
}

impl Request {
    /// That has just come in.
    pub(super) fn new(command: &Command, now: Time) -> Request {
        Request {
            command: *command,
            since: now,
            anatomy: Anatomy::ZERO,
            stalls: Span::ZERO,
            next: command.offset / u64::from(UNIT),
            mark: None,
            flushes: Flushed::default(),
            rest: [Payload::default(); 2],
            past: Past::No,
            left: 0,
            status: Status::Success,
        }
    }

    /// Units that it touches.
    pub(super) fn units(&self) -> core::ops::Range<u64> {
        let unit = u64::from(UNIT);
        let (first, end) = (
            self.command.offset / unit,
            self.command.end().div_ceil(unit),
        );
        first..end
    }

    /// Units that it covers as a whole.
    pub(super) fn whole(&self) -> core::ops::Range<u64> {
        let unit = u64::from(UNIT);
        let (first, end) = (
            self.command.offset.div_ceil(unit),
            self.command.end() / unit,
        );
        first..end
    }

    /// Units that it covers in part: the first, and the last if that is another.
    pub(super) fn parts(&self) -> [Option<u64>; 2] {
        let (units, whole) = (self.units(), self.whole());
        let first = (whole.start > units.start).then_some(units.start);
        let last = (units.end > whole.end).then_some(units.end - 1);
        [first, last.filter(|_| first != last)]
    }

    /// Puts what it writes of the units that it covers in part over the rest of them.
    pub(super) fn overlay(&self, buffers: &mut impl Buffers) {
        let unit_bytes = u64::from(UNIT);
        for (unit, rest) in self.parts().into_iter().zip(self.rest) {
            let Some(unit) = unit else {
                continue;
            };
            let begin = unit * unit_bytes;
            let from = self.command.offset.max(begin);
            let bytes = (self.command.end().min(begin + unit_bytes) - from) as u32;
            let to = rest.skip((from - begin) as u32);
            match self.command.op {
                Op::Write => {
                    let own = (from - self.command.offset) as u32;
                    buffers.copy(self.command.payload.skip(own), to, bytes);
                }
                _ => buffers.zero(to, bytes),
            }
        }
    }

    /// Where its data for a unit are, and whether that is a buffer of a unit that it covers in part.
    pub(super) fn source(&self, unit: u64) -> (Payload, bool) {
        let [first, last] = self.parts();
        if first == Some(unit) {
            return (self.rest[0], true);
        }
        if last == Some(unit) {
            return (self.rest[1], true);
        }
        let into = unit * u64::from(UNIT) - self.command.offset;
        (self.command.payload.skip(into as u32), false)
    }

    /// Whether all that the ring gets of it, but for parts of units, is an entry.
    pub(super) fn is_bare(&self) -> bool {
        self.command.op != Op::Write || self.past == Past::Written
    }

    pub(super) fn is_whole(&self) -> bool {
        let unit = u64::from(UNIT);
        self.command.offset.is_multiple_of(unit) && self.command.end().is_multiple_of(unit)
    }

    pub(super) fn overlaps(&self, other: &Request) -> bool {
        let (one, two) = (self.units(), other.units());
        one.start < two.end && two.start < one.end
    }

    /// What has passed since it was last looked at went by for this reason.
    pub(super) fn account(&mut self, now: Time, part: Part) {
        self.anatomy.add(part, now.since(self.since));
        self.since = now;
    }
}
