//! Which leg a mirror reads from, and what becomes of a read that a leg could not do.

use super::{Extent, For, Mirror, Reads};
use crate::command::{Completion, Op, Status};
use crate::tier::{Child, Way};
use crate::time::Time;

/// Bytes that [`Reads::Address`] reads from one leg before the next.
const BY_ADDRESS: u64 = 1 << 20;

impl Mirror {
    pub(super) fn leg_to_read(&mut self, offset: u64, legs: u32) -> Option<Child> {
        let count = self.in_flight.len();
        let first = match self.reads {
            Reads::First => 0,
            Reads::Address => (offset / BY_ADDRESS % count as u64) as usize,
            Reads::FewestInFlight => self.turn,
        };
        let mut candidates = (0..count)
            .map(|step| (first + step) % count)
            .filter(|leg| legs & (1 << leg) != 0);
        let leg = match self.reads {
            Reads::FewestInFlight => {
                let leg = candidates.min_by_key(|&leg| self.in_flight[leg])?;
                self.turn = (leg + 1) % count;
                leg
            }
            Reads::First | Reads::Address => candidates.next()?,
        };
        Some(leg as Child)
    }

    pub(super) fn read_done<W: Way>(
        &mut self,
        now: Time,
        request: u32,
        leg: Child,
        done: &Completion,
        way: &mut W,
    ) {
        let asked = &mut self.requests[request];
        asked.left -= 1;
        asked.anatomy.append(&done.anatomy);
        if done.status != Status::Success {
            asked.status = done.status;
            if done.status == Status::UnrecoveredReadError {
                asked.failed |= 1 << leg;
            }
            asked.done |= 1 << leg;
            let tried = asked.done;
            let offset = asked.command.offset;
            if done.status == Status::Gone && self.leave(leg) {
                self.pump(way);
            }
            let legs = self.labels.readable() & !tried;
            match self.leg_to_read(offset, legs) {
                Some(leg) => self.send_to(1 << leg, request, For::Client(request), way),
                None => self.finish(now, request, done.status, way),
            }
            return;
        }
        let (at, end) = (asked.command.offset, asked.command.end());
        let to_repair = asked.failed & self.labels.known.in_sync;
        // Where a write is on its way, that is the repair.
        if to_repair == 0 || self.is_taken(at, end) || !self.labels.mark(at, end - at) {
            self.pump(way);
            self.finish(now, request, Status::Success, way);
            return;
        }
        self.requests[request].command.op = Op::Write;
        self.extents.push(Extent { at, end, request });
        self.send_to(to_repair, request, For::Repair(request), way);
    }

    /// A repair helps nobody who waits, but its data are where the client's are.
    pub(super) fn repaired<W: Way>(
        &mut self,
        now: Time,
        request: u32,
        leg: Child,
        done: &Completion,
        way: &mut W,
    ) {
        let asked = &mut self.requests[request];
        asked.left -= 1;
        let last = asked.left == 0;
        if last {
            asked.anatomy.append(&done.anatomy);
        }
        if done.status != Status::Success && self.leave(leg) {
            self.pump(way);
        }
        if last {
            self.end_extent(request);
            self.finish(now, request, Status::Success, way);
            self.send_waiting(now, way);
        }
    }
}
