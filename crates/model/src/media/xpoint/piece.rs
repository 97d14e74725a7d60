//! A piece: a command as sent by the host's driver, not larger than the drive's largest transfer.

use super::config::{UNIT, XPointConfig};
use super::group::Waits;
use crate::anatomy::{Anatomy, Part};
use crate::command::{CommandId, Op, Status};
use crate::time::{Span, Time};

/// Work of the drive for a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PieceWork {
    /// The controller completes it alone: flush, deallocate, rejected commands.
    Answer,
    /// Units are read.
    Read,
    /// Units are written with data from the host.
    Write,
    /// Units are written with zeroes.
    Zeroes,
}

/// Relation of a piece to the host's command.
#[derive(Clone, Copy, Debug)]
pub(super) enum PieceOwner {
    /// The whole command, and its status.
    Command(CommandId, Status),
    /// One of several pieces, by the slot of the request.
    Request(u32),
}

/// One outstanding piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandPiece {
    pub(super) of: PieceOwner,
    pub(super) work: PieceWork,
    pub(super) bytes: u32,
    pub(super) first_unit: u32,
    pub(super) units: u32,
    /// Bytes of the first and of the last unit that the piece does not cover; for a single unit, the first value
    /// includes both.
    pub(super) uncovered: [u16; 2],
    /// Units still to be done.
    pub(super) remaining: u32,
    /// Merges and data transfers to wait for before units can be written.
    pub(super) awaited: u32,
    /// Order of arrival at the units; 0 if the piece is not active.
    pub(super) sequence: u64,
    /// Position of this piece among those that the locks record.
    pub(super) position: u32,
    pub(super) submitted: Time,
    pub(super) throttled: Span,
    pub(super) dispatched: Time,
    pub(super) started: Time,
    pub(super) streamed: Time,
    /// The read that a partial write waited for last.
    pub(super) merge: Waits,
}

impl CommandPiece {
    /// Creates a piece over `bytes` from `offset`; `PieceWork::Answer` covers no units.
    pub(super) fn new(
        of: PieceOwner,
        work: PieceWork,
        offset: u64,
        bytes: u32,
        now: Time,
    ) -> CommandPiece {
        let unit = u64::from(UNIT);
        let (first, units, uncovered) = if work == PieceWork::Answer {
            (0, 0, [0; 2])
        } else {
            let first = offset / unit;
            let end = offset + u64::from(bytes);
            let units = end.div_ceil(unit) - first;
            let head = (offset % unit) as u16;
            let tail = (end.next_multiple_of(unit) - end) as u16;
            let uncovered = if units == 1 {
                [head + tail, 0]
            } else {
                [head, tail]
            };
            (first, units, uncovered)
        };
        CommandPiece {
            of,
            work,
            bytes,
            first_unit: first as u32,
            units: units as u32,
            uncovered,
            remaining: units as u32,
            awaited: 0,
            sequence: 0,
            position: 0,
            submitted: now,
            throttled: Span::ZERO,
            dispatched: now,
            started: now,
            streamed: now,
            merge: Waits::default(),
        }
    }

    pub(super) fn writes(&self) -> bool {
        matches!(self.work, PieceWork::Write | PieceWork::Zeroes)
    }

    /// Returns the bytes of its units that the dies need not read.
    #[inline]
    pub(super) fn unread(&self, config: &XPointConfig) -> u16 {
        match (self.work, self.units) {
            (PieceWork::Read, 1) => config.parts().spared(self.uncovered[0]),
            _ => 0,
        }
    }

    /// Returns the number of units that must be read before they are written.
    pub(super) fn merges(&self) -> u32 {
        if self.writes() {
            self.uncovered
                .iter()
                .map(|&bytes| u32::from(bytes > 0))
                .sum()
        } else {
            0
        }
    }

    /// Whether both pieces use the same unit and at least one writes it.
    pub(super) fn conflicts(&self, other: &CommandPiece) -> bool {
        let apart = u64::from(self.first_unit) + u64::from(self.units)
            <= u64::from(other.first_unit)
            || u64::from(other.first_unit) + u64::from(other.units) <= u64::from(self.first_unit);
        !apart && (self.writes() || other.writes())
    }

    /// Adds the breakdown of the time from submission to `at`; `last` is the unit that finished last.
    #[inline(always)]
    pub(super) fn explain(
        &self,
        config: &XPointConfig,
        last: &Waits,
        at: Time,
        anatomy: &mut Anatomy,
    ) {
        let link = config.timing.link;
        anatomy.add(Part::Throttle, self.throttled);
        anatomy.add(Part::Link, link);
        let controller = self.dispatched - self.submitted - self.throttled - link;
        anatomy.add(Part::Controller, controller);
        if self.work == PieceWork::Answer {
            return;
        }
        anatomy.add(Part::Collision, self.started - self.dispatched);
        let phases = [
            (self.streamed - self.started, &self.merge),
            (at - self.streamed, last),
        ];
        for (length, waits) in phases {
            if length == Span::ZERO {
                continue;
            }
            let mut rest = length;
            for (part, ns) in [
                (Part::BehindRead, waits.read),
                (Part::BehindProgram, waits.program),
                (Part::BehindRefresh, waits.refresh),
                (Part::Medium, waits.medium),
            ] {
                let span = Span::from_ns(u64::from(ns));
                anatomy.add(part, span);
                rest = rest - span;
            }
            // Time outside of the medium was spent on the data path and the link.
            anatomy.add(Part::Transfer, rest);
        }
    }
}

/// A command of the host that is split into several pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct SplitRequest {
    pub(super) id: CommandId,
    pub(super) left: u32,
}

/// Returns how a command is executed, and whether it is rejected.
pub(super) fn work_of(op: Op, fits: bool, bytes: u32) -> (PieceWork, Status) {
    if !fits {
        return (PieceWork::Answer, Status::LbaOutOfRange);
    }
    let work = match op {
        Op::Read => PieceWork::Read,
        Op::Write => PieceWork::Write,
        Op::WriteZeroes => PieceWork::Zeroes,
        Op::Flush | Op::Deallocate => PieceWork::Answer,
    };
    let work = if bytes == 0 { PieceWork::Answer } else { work };
    (work, Status::Success)
}
