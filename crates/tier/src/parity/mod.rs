//! RAID 5 and RAID 6: chunks over all children, and one or two parity chunks in each stripe, as in Linux's md.
//!
//! A read goes to the children with its data; if one is out or cannot read, the data is computed from the others and
//! parity. A write of whole stripes computes parity from its data. A partial-stripe write reads what is cheaper, by
//! md's rule: the overwritten data and parity (read-modify-write, if that is less), or the rest of the stripe
//! (reconstruct-write). Stripes are locked by rows of their chunks.
//!
//! Parity is kept consistent over a crash as in a [mirror](super::mirror): a region is marked on the labels of all
//! children before the first write to it, and parity of marked regions is recomputed ([`recover`]). A child that fails
//! a write is out: labels record that before the write is acknowledged. When it returns it is rebuilt, while the array is
//! in use ([`rebuild`]) or when the pool is opened again.
//!
//! The write hole exists, as in md without a journal: a crash while a child is out may leave parity older than data.
//! Data of the missing child in that stripe is then computed incorrectly. The durability guarantee states this. Labels
//! record whether writes were in progress. If so, and data in marked stripes would have to be computed, the array is
//! not opened ([`Damage::Hole`](super::offline::Damage::Hole)), as md does not start a dirty degraded array. It is
//! opened only if a second parity confirms all of this data, or the loss is accepted.
//!
//! Data that a child cannot read is computed, written back to that child, and read again, as in md
//! (`handle_stripe` in `drivers/md/raid5.c`). A read error counts if that read fails ([`super::read_errors`]). Not
//! modelled: the stripe cache that combines writes.

mod config;
mod rebuild;
mod recover;
mod shape;
#[cfg(test)]
mod tests;
mod work;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

pub use self::config::ParityArrayConfig;

use model::anatomy::{Anatomy, Part};
use model::command::{Command, Completion, Op, Payload, Status};
use model::data::{Buffers, Unreadable, Unwritable};
use model::device::Range;
use model::engine::Slab;
use model::time::{Span, Time};

use self::rebuild::Rebuilding;
use self::shape::ParityLayout;
use self::work::StripeWork;
use super::labels::Labels;
use super::legs;
use super::offline::{ChildImages, Damage};
use super::planted::{self, Bug};
use super::read_errors::ReadErrors;
use super::{Child, Tier, TierContext};

/// Time without writes after which the children are flushed and all marks are cleared.
const REST: Span = Span::from_ms(5000);
/// Part to which waiting for a label, or for another write to the stripe, is attributed.
const WAITING: Part = Part::Tier;
/// Maximum number of stripe pieces of one command that are processed at a time.
const AT_ONCE: u32 = 16;

/// An outstanding command.
#[derive(Clone, Copy, Debug)]
struct ParityRequest {
    command: Command,
    began: Time,
    /// Position up to which processing has started, and the number of works and pieces in progress.
    at: u64,
    left: u32,
    /// Children that have missed part of it.
    missed: u32,
    status: Status,
    anatomy: Anatomy,
}

/// Purpose of a command to a child.
#[derive(Clone, Copy, Debug)]
enum ParityPurpose {
    /// A column of a client's read: position in the array, and number of bytes.
    Read {
        request: u32,
        at: u64,
        bytes: u32,
    },
    Flush(u32),
    Work(u32, u32),
    Label,
    /// The flush before marks are cleared.
    Rest,
    /// The flush at the end of a rebuild.
    RebuildFlush,
}

/// A RAID 5 or RAID 6 over its children.
#[derive(Clone, Debug)]
pub struct ParityArray {
    shape: ParityLayout,
    stripes: u64,
    labels: Labels,
    requests: Slab<ParityRequest>,
    works: Slab<StripeWork>,
    /// Buffers by work and column.
    cells: Vec<Payload>,
    pieces: Slab<(ParityPurpose, Child)>,
    /// Locked rows, by work: of all children, counted from their beginning.
    locked: Vec<(u64, u64, u32)>,
    waiting: VecDeque<u32>,
    /// Writes and flushes that are done, but may not be acknowledged yet.
    unacknowledged: Vec<u32>,
    rest_at: Time,
    last_write: Time,
    resting: u32,
    disturbed: bool,
    outgoing: Vec<(u16, Command)>,
    /// The array was recovered, so its children have labels.
    recovered: bool,
    rebuilding: Rebuilding,
    read_errors: ReadErrors,
    /// Children that missed a rejected write and could not be put out, because too few others are left: nothing may be
    /// computed from them, and the array does not become idle.
    untrusted: u32,
}

impl ParityArray {
    /// Returns the children that have all acknowledged data, one bit each.
    #[inline]
    pub fn in_sync(&self) -> u32 {
        self.labels.complete()
    }

    /// Whether writes fail because too few children can record which children have missed writes.
    pub fn rejects_writes(&self) -> bool {
        self.labels.nowhere
    }

    /// Returns the offset of the labels on each child.
    fn labels_at(&self) -> u64 {
        self.stripes * self.shape.chunk
    }

    fn children(&self) -> impl Iterator<Item = Child> + use<> {
        0..self.shape.children as Child
    }

    fn send<W: TierContext>(
        &mut self,
        child: Child,
        what: ParityPurpose,
        command: &Command,
        way: &mut W,
    ) {
        let token = self.pieces.insert((what, child));
        way.send(child, token, *command);
    }

    /// Writes a label if there is a change.
    fn pump<W: TierContext>(&mut self, way: &mut W) {
        if self.labels.changed {
            let mut outgoing = core::mem::take(&mut self.outgoing);
            let at = self.labels_at();
            self.labels.pump(at, way.buffers(), &mut outgoing);
            for (child, command) in outgoing.drain(..) {
                self.send(child, ParityPurpose::Label, &command, way);
            }
            self.outgoing = outgoing;
        }
    }

    /// Sends a read to the children with its data; data that they cannot return is computed.
    fn read<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let command = self.requests[request].command;
        let chunk = self.shape.chunk;
        let mut at = command.offset;
        self.requests[request].at = command.end();
        // One more than the number of pieces, until all are sent.
        self.requests[request].left = 1;
        while at < command.end() {
            let until = command.end().min((at / chunk + 1) * chunk);
            let bytes = (until - at) as u32;
            let stripe = at / self.shape.stripe();
            let column = at % self.shape.stripe() / chunk;
            let child = self.shape.child(stripe, column);
            self.requests[request].left += 1;
            let stale = planted::has(Bug::ReadsStaleColumns);
            if self.labels.readable() & (1 << child) == 0 && !stale {
                self.compute_read(now, request, (at, bytes), 0, way);
            } else {
                let read = Command {
                    offset: stripe * chunk + at % chunk,
                    bytes,
                    payload: command.payload.skip((at - command.offset) as u32),
                    ..command
                };
                self.send(
                    child,
                    ParityPurpose::Read { request, at, bytes },
                    &read,
                    way,
                );
            }
            at = until;
        }
        self.part_done(now, request, &Anatomy::ZERO, way);
    }

    fn read_done<W: TierContext>(
        &mut self,
        now: Time,
        (request, at, bytes): (u32, u64, u32),
        child: Child,
        done: &Completion,
        way: &mut W,
    ) {
        if done.status == Status::Success {
            self.read_errors.reset(child);
            return self.part_done(now, request, &done.anatomy, way);
        }
        if done.status == Status::Gone {
            self.leave(child, way);
        }
        self.requests[request].status = done.status;
        let column = self.shape.column(at / self.shape.stripe(), child);
        self.compute_read(now, request, (at, bytes), 1 << column, way);
    }

    /// A part of a request has ended; completes the request after the last part, if no more parts must be started.
    fn part_done<W: TierContext>(
        &mut self,
        now: Time,
        request: u32,
        anatomy: &Anatomy,
        way: &mut W,
    ) {
        let asked = &mut self.requests[request];
        asked.left -= 1;
        asked.anatomy = *anatomy;
        let ended = asked.left == 0;
        if asked.at < asked.command.end() && asked.command.op != Op::Flush {
            return self.write(now, request, way);
        }
        if !ended {
            return;
        }
        if asked.command.op == Op::Read {
            let status = asked.status;
            return self.finish(now, request, status, way);
        }
        if !self.acknowledge(now, request, way) {
            self.unacknowledged.push(request);
        }
    }

    /// A child has missed a write, or does not respond.
    fn leave<W: TierContext>(&mut self, child: Child, way: &mut W) {
        self.rebuilding.leave(child);
        if self.labels.leave(child) {
            // Its data no longer counts, and is rebuilt before it counts again.
            self.untrusted &= !(1 << child);
        }
        self.pump(way);
    }

    /// Notes children that have missed a write and still count: their data may differ from that of the others.
    fn distrust(&mut self, children: u32) {
        if !planted::has(Bug::TrustsMissedWrites) {
            self.untrusted |= children & self.labels.known.in_sync;
        }
    }

    /// Completes a command: time not attributed to any step was spent waiting here.
    fn finish<W: TierContext>(&mut self, now: Time, request: u32, status: Status, way: &mut W) {
        let asked = &mut self.requests[request];
        let rest = now.since(asked.began) - asked.anatomy.total();
        asked.anatomy.add(WAITING, rest);
        let (id, anatomy) = (asked.command.id, asked.anatomy);
        self.requests.release(request);
        way.finish(id, status, anatomy);
    }

    /// Acknowledges a write or flush that is done, once no label lists a child that missed it as complete. Returns
    /// false if it must wait for a label.
    fn acknowledge<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) -> bool {
        let asked = &self.requests[request];
        let (status, missed) = (asked.status, asked.missed);
        if status != Status::Success || missed & self.labels.known.in_sync != 0 {
            let status = match status {
                Status::Success => Status::WriteFault,
                other => other,
            };
            self.finish(now, request, status, way);
        } else if self.labels.required() & missed == 0 {
            self.finish(now, request, Status::Success, way);
        } else {
            return false;
        }
        true
    }

    fn flush<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let command = self.requests[request].command;
        self.requests[request].left = 1;
        let stored = self.stored();
        for child in self.children() {
            if stored & (1 << child) == 0 {
                self.requests[request].missed |= 1 << child;
                continue;
            }
            self.requests[request].left += 1;
            self.send(child, ParityPurpose::Flush(request), &command, way);
        }
        self.part_done(now, request, &Anatomy::ZERO, way);
    }

    fn label_done<W: TierContext>(&mut self, now: Time, child: Child, status: Status, way: &mut W) {
        let Some(written) = self.labels.done(child, status, way.buffers()) else {
            return;
        };
        if let Some(status) = written.nowhere {
            // Durability cannot be guaranteed any more; clients that retry cause another attempt.
            for work in core::mem::take(&mut self.waiting) {
                self.end_work(now, work, status, way);
            }
            for request in core::mem::take(&mut self.unacknowledged) {
                self.finish(now, request, status, way);
            }
            return;
        }
        for child in self.children().filter(|it| written.failed & (1 << it) != 0) {
            self.labels.leave(child);
        }
        self.acknowledge_all(now, way);
        self.pump(way);
        self.start_waiting(now, way);
    }

    fn acknowledge_all<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if !self.unacknowledged.is_empty() {
            let mut requests = core::mem::take(&mut self.unacknowledged);
            requests.retain(|&request| !self.acknowledge(now, request, way));
            self.unacknowledged.append(&mut requests);
        }
    }

    fn rested<W: TierContext>(&mut self, now: Time, child: Child, status: Status, way: &mut W) {
        self.resting -= 1;
        if status != Status::Success {
            self.disturbed = true;
            // If too few children are left, the array does not become idle before the next write.
            if self.labels.leave(child) && self.rest_at == Time::NEVER {
                self.rest_at = now + REST;
            }
        }
        if self.resting == 0 && !self.disturbed && self.untrusted == 0 {
            match self.has_writes() {
                false => self.labels.at_rest(),
                true => self.rest_at = now + REST,
            }
        }
        self.pump(way);
    }
}

impl Tier for ParityArray {
    fn submit<W: TierContext>(&mut self, now: Time, command: &Command, way: &mut W) {
        let request = self.requests.insert(ParityRequest {
            command: *command,
            began: now,
            at: command.offset,
            left: 0,
            missed: 0,
            status: Status::Success,
            anatomy: Anatomy::ZERO,
        });
        match command.op {
            Op::Read => self.read(now, request, way),
            Op::Flush => self.flush(now, request, way),
            // As in md, which does not forward discards unless configured that all drives then read zeroes.
            Op::Deallocate => self.finish(now, request, Status::Success, way),
            Op::Write | Op::WriteZeroes => self.write(now, request, way),
        }
    }

    fn completed<W: TierContext>(&mut self, now: Time, token: u32, done: &Completion, way: &mut W) {
        let (what, child) = self.pieces[token];
        self.pieces.release(token);
        match what {
            ParityPurpose::Read { request, at, bytes } => {
                self.read_done(now, (request, at, bytes), child, done, way);
            }
            ParityPurpose::Flush(request) => {
                if done.status != Status::Success {
                    self.requests[request].missed |= 1 << child;
                    self.leave(child, way);
                    self.distrust(1 << child);
                }
                self.part_done(now, request, &done.anatomy, way);
            }
            ParityPurpose::Work(work, column) => self.worked(now, (work, column), child, done, way),
            ParityPurpose::Label => self.label_done(now, child, done.status, way),
            ParityPurpose::Rest => self.rested(now, child, done.status, way),
            ParityPurpose::RebuildFlush => self.rebuild_flushed(now, done.status, way),
        }
    }

    fn due(&self) -> Time {
        self.rest_at.min(self.rebuilding.due())
    }

    fn tick<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if self.rest_at > now {
            return self.rebuild_on(now, way);
        }
        self.rest_at = Time::NEVER;
        // After a rebuild, marks may be left although no write is in progress.
        let marked = self.labels.is_whole() && !self.labels.known.dirty.is_empty();
        if self.has_writes() || self.resting > 0 || self.last_write + REST > now {
            self.rest_at = (self.last_write + REST).max(now + Span::from_ms(100));
        } else if (self.labels.known.busy || marked) && self.untrusted == 0 {
            self.disturbed = false;
            let in_sync = self.labels.known.in_sync;
            for child in self.children().filter(|it| in_sync & (1 << it) != 0) {
                self.resting += 1;
                self.send(child, ParityPurpose::Rest, &Command::flush(0), way);
            }
        }
    }

    /// The child may have missed writes without any command having been sent to it.
    fn returned<W: TierContext>(&mut self, now: Time, child: Child, way: &mut W) {
        self.read_errors.reset(child);
        self.rebuild_later(now, child, false, way);
    }

    fn replaced<W: TierContext>(&mut self, now: Time, child: Child, way: &mut W) {
        self.read_errors.reset(child);
        self.rebuild_later(now, child, true, way);
    }

    fn used(&mut self, ranges: &[Range]) {
        self.set_used(ranges);
    }

    fn at_risk(&self, children: &[Vec<Range>], ranges: &mut Vec<Range>) {
        let chunk = self.shape.chunk;
        for (child, lost) in children.iter().enumerate() {
            for range in lost {
                let (mut at, end) = (range.offset, range.offset + range.bytes);
                while at < end.min(self.labels_at()) {
                    let until = end.min((at / chunk + 1) * chunk);
                    let column = self.shape.column(at / chunk, child as Child);
                    if column < self.shape.data() {
                        ranges.push(Range {
                            offset: at / chunk * self.shape.stripe() + column * chunk + at % chunk,
                            bytes: until - at,
                        });
                    }
                    at = until;
                }
            }
        }
    }

    fn release_buffers<B: Buffers>(&mut self, buffers: &mut B) {
        for cell in &mut self.cells {
            buffers.release(core::mem::take(cell));
        }
    }

    /// Parity is in the state after [`recover`], which takes no virtual time.
    fn power_cut(&mut self, _now: Time) {
        self.requests = Slab::default();
        self.works = Slab::default();
        self.cells.clear();
        self.pieces = Slab::default();
        self.locked.clear();
        self.waiting.clear();
        self.unacknowledged.clear();
        self.resting = 0;
        self.rest_at = Time::NEVER;
        self.rebuilding.forget();
        self.untrusted = 0;
        self.labels.forget();
    }

    fn read_offline(
        &self,
        at: u64,
        into: &mut [u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unreadable> {
        recover::read(self, at, into, below)
    }

    fn write_offline(
        &mut self,
        at: u64,
        data: &[u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unwritable> {
        // The recovery of the tier above may be interrupted, too, and a child may be missing afterwards.
        let (chunk, size) = (self.shape.chunk, self.shape.stripe());
        let rows = at / size * chunk;
        let until = (at + data.len() as u64).div_ceil(size) * chunk;
        // An array that is being created has no labels, and no data.
        if self.recovered && !self.labels.mark_busy(rows, until - rows) {
            let labels_at = self.labels_at();
            legs::say(&mut self.labels, labels_at, below).map_err(|_| Unwritable)?;
            self.rest_at = Time::ZERO + REST;
        }
        recover::write(self, at, data, below)
    }

    fn settle(&mut self, below: &mut dyn ChildImages) -> Result<(), Damage> {
        if self.rest_at == Time::NEVER || !self.labels.is_whole() {
            return Ok(());
        }
        self.rest_at = Time::NEVER;
        let labels_at = self.labels_at();
        legs::settle(&mut self.labels, labels_at, below)
    }

    fn is_ambiguous_offline(&self, at: u64, bytes: u32, below: &mut dyn ChildImages) -> bool {
        recover::is_ambiguous(self, at, bytes, below)
    }

    fn sync_offline(&self, below: &mut dyn ChildImages) -> Result<(), Unwritable> {
        for child in self.children() {
            if self.labels.known.in_sync & (1 << child) != 0 {
                below.sync(child)?;
            }
        }
        Ok(())
    }
}
