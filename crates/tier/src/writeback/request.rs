//! A client's outstanding command that changes data: which units it covers, entirely or partly, and where its data for
//! them is.

use model::anatomy::{Anatomy, Part};
use model::command::{Command, Completion, Op, Payload, Status};
use model::data::Buffers;
use model::time::{Span, Time};

use super::DurablePosition;
use super::ring::UNIT;

/// Whether it bypasses the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum BypassState {
    /// The request does not bypass.
    #[default]
    No,
    /// The request bypasses; it is waiting, or being written to the capacity tier.
    Waits,
    /// The data is on the capacity tier; the entry in the ring is still to be written.
    Written,
}

/// A client's command that changes data.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteBackRequest {
    pub(super) command: Command,
    /// Time up to which its anatomy is complete.
    pub(super) since: Time,
    pub(super) anatomy: Anatomy,
    /// Value of the tier's stall clock when it started to wait for a record.
    pub(super) stalls: Span,
    /// The next unit to be put into a record.
    pub(super) next: u64,
    /// Position of its entry without data in the ring, once the entry is written.
    pub(super) mark: Option<u64>,
    /// Position up to which its flush makes the ring durable: that of the applied records when the flush was sent.
    pub(super) flushes: DurablePosition,
    /// Buffers of the units that it covers partly, with their final content.
    pub(super) rest: [Payload; 2],
    /// Whether it bypasses the buffer.
    pub(super) past: BypassState,
    /// Number of commands to children that it waits for.
    pub(super) left: u32,
    pub(super) status: Status,
}

impl WriteBackRequest {
    /// Creates the request of a command that has just arrived.
    pub(super) fn new(command: &Command, now: Time) -> WriteBackRequest {
        WriteBackRequest {
            command: *command,
            since: now,
            anatomy: Anatomy::ZERO,
            stalls: Span::ZERO,
            next: command.offset / u64::from(UNIT),
            mark: None,
            flushes: DurablePosition::default(),
            rest: [Payload::default(); 2],
            past: BypassState::No,
            left: 0,
            status: Status::Success,
        }
    }

    /// Records that a command to a child has ended. Returns whether it was the last one. The status is that of the first
    /// failure.
    pub(super) fn part_ended(&mut self, done: &Completion) -> bool {
        self.left -= 1;
        if self.status == Status::Success {
            self.status = done.status;
        }
        if self.left > 0 {
            return false;
        }
        self.anatomy.append(&done.anatomy);
        true
    }

    /// Returns the units that it overlaps.
    pub(super) fn units(&self) -> core::ops::Range<u64> {
        let unit = u64::from(UNIT);
        let (first, end) = (
            self.command.offset / unit,
            self.command.end().div_ceil(unit),
        );
        first..end
    }

    /// Returns the units that it covers entirely.
    pub(super) fn whole(&self) -> core::ops::Range<u64> {
        let unit = u64::from(UNIT);
        let (first, end) = (
            self.command.offset.div_ceil(unit),
            self.command.end() / unit,
        );
        first..end
    }

    /// Returns the units that it covers partly: the first, and the last if that is another one.
    pub(super) fn parts(&self) -> [Option<u64>; 2] {
        let (units, whole) = (self.units(), self.whole());
        let first = (whole.start > units.start).then_some(units.start);
        let last = (units.end > whole.end).then_some(units.end - 1);
        [first, last.filter(|_| first != last)]
    }

    /// Writes its data into the buffers of the units that it covers partly.
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

    /// Returns the location of its data for a unit, and whether that is the buffer of a partly covered unit.
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

    /// Whether it puts only an entry into the ring, apart from partly covered units.
    pub(super) fn is_bare(&self) -> bool {
        self.command.op != Op::Write || self.past == BypassState::Written
    }

    pub(super) fn is_whole(&self) -> bool {
        let unit = u64::from(UNIT);
        self.command.offset.is_multiple_of(unit) && self.command.end().is_multiple_of(unit)
    }

    pub(super) fn overlaps(&self, other: &WriteBackRequest) -> bool {
        let (one, two) = (self.units(), other.units());
        one.start < two.end && two.start < one.end
    }

    /// Attributes the time since the last call to this part.
    pub(super) fn account(&mut self, now: Time, part: Part) {
        self.anatomy.add(part, now.since(self.since));
        self.since = now;
    }
}
