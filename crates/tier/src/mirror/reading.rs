//! Selection of the mirror member for a read, and handling of reads that a member failed.

use model::command::{Command, Completion, Op, Status};
use model::time::Time;

use super::{LockedRange, Mirror, MirrorPurpose};
use crate::planted::{self, Bug};
use crate::{Child, TierContext};

impl Mirror {
    /// Returns which of these members this read goes to.
    pub(super) fn leg_to_read(&mut self, command: &Command, legs: u32) -> Option<Child> {
        let of = |leg: usize| (legs & (1 << leg) != 0).then_some((leg, command.offset));
        let count = self.copies.places();
        let leg = self
            .copies
            .choose(count, command.offset, command.bytes, of)?;
        Some(leg as Child)
    }

    pub(super) fn read_done<W: TierContext>(
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
                if asked.failed == 0 {
                    self.repairing.push(request);
                }
                asked.failed |= 1 << leg;
            }
            asked.done |= 1 << leg;
            let tried = asked.done;
            let command = asked.command;
            let is_out = done.status == Status::Gone || self.read_errors.add(leg);
            if is_out && self.leave(leg) {
                self.pump(way);
            }
            let mut legs = self.labels.readable() & !tried;
            if planted::has(Bug::ReadsOneLegOnly) {
                legs = 0;
            }
            match self.leg_to_read(&command, legs) {
                Some(leg) => self.send_to(1 << leg, request, MirrorPurpose::Client(request), way),
                None => {
                    self.repairing.retain(|&it| it != request);
                    self.finish(now, request, done.status, way);
                }
            }
            return;
        }
        self.read_errors.reset(leg);
        if asked.failed != 0 {
            self.repairing.retain(|&it| it != request);
        }
        let asked = &self.requests[request];
        let (at, end) = (asked.command.offset, asked.command.end());
        let to_repair = asked.failed & self.labels.known.in_sync;
        // If a write to the range is in progress, that write is the repair.
        let taken = self.is_taken(at, end) && !planted::has(Bug::RepairsOverWrites);
        if to_repair == 0 || taken || !self.labels.mark(at, end - at) {
            self.pump(way);
            self.finish(now, request, Status::Success, way);
            return;
        }
        self.requests[request].command.op = Op::Write;
        self.extents.push(LockedRange { at, end, request });
        self.send_to(to_repair, request, MirrorPurpose::Repair(request), way);
    }

    /// A write is sent: earlier reads may return the data that it overwrites, which must not be written back. The write
    /// itself is the repair.
    pub(super) fn overtake_repairs(&mut self, at: u64, end: u64) {
        if self.repairing.is_empty() || planted::has(Bug::RepairsOverWrites) {
            return;
        }
        let requests = &mut self.requests;
        self.repairing.retain(|&request| {
            let read = &mut requests[request];
            let overtaken = read.command.offset < end && at < read.command.end();
            if overtaken {
                read.failed = 0;
            }
            !overtaken
        });
    }

    /// A repair has completed. No client waits for it, but its data is in the client's buffer.
    pub(super) fn repaired<W: TierContext>(
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
