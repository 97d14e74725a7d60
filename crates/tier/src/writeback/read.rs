//! Reads: data in the buffer from there, the rest from the capacity tier.

use model::command::{Command, Completion, Payload};
use model::time::Time;

use super::ring::UNIT;
use super::{CACHE, WriteBack, WriteBackPurpose};
use crate::TierContext;
use crate::planted::{self, Bug};

/// A part of a read that is outstanding at a child.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadPiece {
    /// Owner: a read, or a request that merges.
    of: u32,
    /// The segment that must not be freed meanwhile.
    segment: Option<u32>,
}

impl WriteBack {
    /// Starts a client's read. All pieces are sent at once, so that the last to complete determines the latency.
    #[inline]
    pub(super) fn read<W: TierContext>(&mut self, command: &Command, way: &mut W) {
        let request = self.reads.begin(command.id);
        let (mut at, end) = (command.offset, command.end());
        while at < end {
            let (slot, until) = self.piece(at, end);
            let piece = Command {
                bytes: (until - at) as u32,
                payload: command.payload.skip((at - command.offset) as u32),
                ..*command
            };
            match slot {
                Some(_) => self.counts.hit += until - at,
                None => self.counts.miss += until - at,
            }
            self.reads.expect(request);
            self.send_piece(
                WriteBackPurpose::Read,
                request,
                slot,
                Command {
                    offset: at,
                    ..piece
                },
                way,
            );
            at = until;
        }
    }

    /// Returns the parts of a range: the slot, if the part is in the buffer, and its first byte and end.
    pub(super) fn pieces(
        &self,
        at: u64,
        end: u64,
    ) -> impl Iterator<Item = (Option<u32>, u64, u64)> + '_ {
        let mut next = at;
        core::iter::from_fn(move || {
            let from = next;
            let (slot, until) = (from < end).then(|| self.piece(from, end))?;
            next = until;
            Some((slot, from, until))
        })
    }

    /// Returns the first part, and its end.
    #[inline]
    fn piece(&self, at: u64, end: u64) -> (Option<u32>, u64) {
        let mut slot = self.map.get(at / u64::from(UNIT));
        if planted::has(Bug::ReadsPastTheBuffer) {
            slot = None;
        }
        (slot, self.reaches(at, end, slot))
    }

    /// Returns the child that has a byte, and the offset there: the buffer at this slot, or else the capacity tier.
    #[inline]
    pub(super) fn locate(&self, slot: Option<u32>, offset: u64) -> (u16, u64) {
        match slot {
            Some(slot) => (CACHE, WriteBack::place(slot) + offset % u64::from(UNIT)),
            None => self.home(offset),
        }
    }

    /// Returns the end of the range that is contiguous from `at`: on the cache starting at `slot`, or on a drive of the
    /// capacity tier.
    fn reaches(&self, at: u64, end: u64, slot: Option<u32>) -> u64 {
        let unit = u64::from(UNIT);
        let mut until = (at / unit + 1) * unit;
        let most = match slot {
            Some(slot) => until + u64::from(self.ring.per - 1 - slot % self.ring.per) * unit,
            None if self.striping.count == 1 => end,
            None => self.striping.border(at),
        };
        let end = end.min(most);
        let mut next = slot;
        while until < end {
            next = next.map(|slot| slot + 1);
            if self.map.get(until / unit) != next {
                break;
            }
            until += unit;
        }
        until.min(end)
    }

    /// Sends a read, whose offset is the client's, to the location of the data.
    #[inline]
    fn send_piece<W: TierContext>(
        &mut self,
        why: WriteBackPurpose,
        of: u32,
        slot: Option<u32>,
        mut command: Command,
        way: &mut W,
    ) {
        let child;
        (child, command.offset) = self.locate(slot, command.offset);
        let segment = slot.map(|slot| self.ring.segment(slot));
        if let Some(segment) = segment {
            self.ring.segments[segment as usize].pins += 1;
        }
        let piece = self.pieces.insert(ReadPiece { of, segment });
        way.send(child, why.token(piece), command);
    }

    /// Reads a whole unit for a request that writes a part of it.
    pub(super) fn read_unit<W: TierContext>(
        &mut self,
        request: u32,
        unit: u64,
        into: Payload,
        way: &mut W,
    ) {
        let mut slot = self.map.get(unit);
        if planted::has(Bug::MergesPastTheBuffer) {
            slot = None;
        }
        let command = Command {
            payload: into,
            ..Command::read(0, unit * u64::from(UNIT), UNIT)
        };
        self.send_piece(WriteBackPurpose::Merge, request, slot, command, way);
    }

    /// A piece has completed: releases its segment. Returns the owner.
    #[inline]
    pub(super) fn let_go<W: TierContext>(&mut self, now: Time, piece: u32, way: &mut W) -> u32 {
        let ReadPiece { of, segment } = self.pieces[piece];
        self.pieces.release(piece);
        if let Some(segment) = segment {
            self.unpin(now, segment, way);
        }
        of
    }

    /// A piece of a client's read has completed.
    #[inline]
    pub(super) fn was_read<W: TierContext>(
        &mut self,
        now: Time,
        piece: u32,
        done: &Completion,
        way: &mut W,
    ) {
        let request = self.let_go(now, piece, way);
        if let Some((id, status)) = self.reads.done(request, done) {
            way.finish(id, status, done.anatomy);
        }
    }
}
