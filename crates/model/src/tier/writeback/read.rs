//! Reads: from the buffer what is in it, the rest from the capacity tier.

use super::ring::UNIT;
use super::{CACHE, For, WriteBack};
use crate::command::{Command, Completion, Payload};
use crate::tier::Way;
use crate::tier::planted::{self, Bug};
use crate::time::Time;

/// A part of a read while it is with a child.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Of what: a read, or a request that merges.
    of: u32,
    /// The segment that has to stay as it is meanwhile.
    segment: Option<u32>,
}

impl WriteBack {
    /// A client reads. All pieces leave at once, so that the last to come back took the time of all.
    #[inline]
    pub(super) fn read<W: Way>(&mut self, command: &Command, way: &mut W) {
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
                For::Read,
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

    /// Where the parts of a range are: the slot, if it is in the buffer, and from which byte to which.
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

    /// The first of them, and where it ends.
    #[inline]
    fn piece(&self, at: u64, end: u64) -> (Option<u32>, u64) {
        let mut slot = self.map.get(at / u64::from(UNIT));
        if planted::has(Bug::ReadsPastTheBuffer) {
            slot = None;
        }
        (slot, self.reaches(at, end, slot))
    }

    /// Which child has a byte, and where: the buffer in this slot, or else the capacity tier.
    #[inline]
    pub(super) fn locate(&self, slot: Option<u32>, offset: u64) -> (u16, u64) {
        match slot {
            Some(slot) => (CACHE, WriteBack::place(slot) + offset % u64::from(UNIT)),
            None => self.home(offset),
        }
    }

    /// How far from `at` what is read lies in one run, on the cache from `slot` on or on a drive of the capacity tier.
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

    /// Sends a read, whose offset is the client's, to where the data are.
    #[inline]
    fn send_piece<W: Way>(
        &mut self,
        why: For,
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
        let piece = self.pieces.insert(Piece { of, segment });
        way.send(child, why.token(piece), command);
    }

    /// All of a unit is read for a request that writes a part of it.
    pub(super) fn read_unit<W: Way>(
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
        self.send_piece(For::Merge, request, slot, command, way);
    }

    /// A piece is there: its segment may go. Returns of what it is.
    #[inline]
    pub(super) fn let_go<W: Way>(&mut self, now: Time, piece: u32, way: &mut W) -> u32 {
        let Piece { of, segment } = self.pieces[piece];
        self.pieces.release(piece);
        if let Some(segment) = segment {
            self.unpin(now, segment, way);
        }
        of
    }

    /// A piece of a client's read is there.
    #[inline]
    pub(super) fn was_read<W: Way>(
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
