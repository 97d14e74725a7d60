//! Mirror: identical data on each child, the mirror members (`leg` in names).
//!
//! A write goes to all members at once and completes with the last of them; a read goes to one, selected by
//! [`super::Reads`]; a flush goes to all. The following mechanisms keep the members identical:
//!
//! - A region (64 MiB or more) is marked on the label of each member before the first write to it is sent. Five seconds
//!   after the last write, the members are flushed and the marks are cleared. After a crash, marked regions are copied
//!   from the first member in sync to the others ([`recover`]).
//! - A member that fails a write or a flush, or is missing, is out: a write that it missed is acknowledged only when
//!   the labels of the others record this. Marks then remain, and when it returns, marked regions are copied
//!   ([`copying`]) while new writes arrive.
//! - Overlapping writes are serialised, so that all members end with the same data.
//! - Data that one member cannot read is read from another, and written back.
//!
//! This follows Linux's md with a write-intent bitmap. The marks are in the label itself, so that one write of 4 KiB
//! changes its whole content. Not modelled: clearing marks while the mirror is busy.

mod config;
mod copying;
mod reading;
mod recover;
mod rest;
#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;

pub use self::config::{MOST_LEGS, MirrorConfig};

use model::anatomy::{Anatomy, Part};
use model::command::{Command, CommandId, Completion, Op, Status};
use model::data::{Unreadable, Unwritable};
use model::device::Range;
use model::engine::Slab;
use model::time::{Span, Time};

use self::copying::ResyncCopy;
use super::copies::Copies;
use super::labels::{self, Labels};
use super::legs;
use super::offline::{ChildImages, Damage};
use super::planted::{self, Bug};
use super::read_errors::ReadErrors;
use super::rebuild::RebuildPace;
use super::{Child, Tier, TierContext};

/// Time without writes after which the members are flushed and all marks are cleared (the default delay of md's
/// bitmap).
const REST: Span = Span::from_ms(5000);

/// Part to which waiting for a label, for another write to the same range, or for a copy is attributed.
const WAITING: Part = Part::Tier;

/// An outstanding command.
#[derive(Clone, Copy, Debug)]
struct MirrorRequest {
    command: Command,
    began: Time,
    /// Number of pieces outstanding at the members.
    left: u32,
    /// Members that have completed it, and that have failed it.
    done: u32,
    failed: u32,
    status: Status,
    /// Latency breakdown up to the last step.
    anatomy: Anatomy,
}

/// Purpose of a command to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MirrorPurpose {
    /// A client's read, write or flush.
    Client(u32),
    /// Data that this member could not read is written back to it.
    Repair(u32),
    Label,
    /// The flush before marks are cleared.
    Rest,
    Copy,
}

/// A range that is being written or copied: meanwhile no other write to it is sent.
#[derive(Clone, Copy, Debug)]
struct LockedRange {
    at: u64,
    end: u64,
    /// The request that writes it.
    request: u32,
}

/// The extent of a copy, which has no request.
const COPY: u32 = u32::MAX;

/// A mirror over its members.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// Addressable bytes; the labels follow.
    bytes: u64,
    labels: Labels,
    /// Selects the member for a read.
    copies: Copies,
    requests: Slab<MirrorRequest>,
    /// By the token of a command to a member: its purpose, and the member.
    pieces: Slab<(MirrorPurpose, Child)>,
    /// Ranges that are being written.
    extents: Vec<LockedRange>,
    /// Writes that may not be sent yet, in order.
    waiting: Vec<u32>,
    /// Reads that failed on one member and are in progress on another: their data must be written back.
    repairing: Vec<u32>,
    /// Flushes outstanding at the members.
    flushing: Vec<u32>,
    /// Writes and flushes that are done, but may not be acknowledged yet.
    unacknowledged: Vec<u32>,
    copying: Option<ResyncCopy>,
    /// Bytes copied at a time, and the rate limit.
    copied: u64,
    pace: RebuildPace,
    /// Members that wait for a resync; and members, waiting or being resynced, that need all data.
    returned: u32,
    whole: u32,
    /// Members that could not be opened during recovery: they stay out until the next recovery.
    barred: u32,
    read_errors: ReadErrors,
    /// Used ranges of its addresses: only these are copied.
    used: Vec<Range>,
    /// Whether the mirror has been recovered, so that its members have labels.
    found: bool,
    /// When to check whether the mirror is idle.
    rest_at: Time,
    last_write: Time,
    /// Outstanding flushes before marks are cleared, and whether one failed or a write arrived.
    resting: u32,
    disturbed: bool,
    /// Label writes to be sent.
    outgoing: Vec<(u16, Command)>,
}

impl Mirror {
    fn new(config: &MirrorConfig, legs: usize, bytes: u64) -> Mirror {
        let region = labels::region_bytes(config.region, bytes);
        Mirror {
            bytes,
            labels: Labels::new(legs, bytes, region),
            copies: Copies::new(config.reads, legs),
            requests: Slab::default(),
            pieces: Slab::default(),
            extents: Vec::new(),
            waiting: Vec::new(),
            repairing: Vec::new(),
            flushing: Vec::new(),
            unacknowledged: Vec::new(),
            copying: None,
            copied: config.copied.into(),
            pace: RebuildPace::new(config.resync_rate, legs),
            returned: 0,
            whole: 0,
            barred: 0,
            read_errors: ReadErrors::new(legs, config.read_errors),
            used: vec![Range { offset: 0, bytes }],
            found: false,
            rest_at: Time::NEVER,
            last_write: Time::ZERO,
            resting: 0,
            disturbed: false,
            outgoing: Vec::new(),
        }
    }

    fn legs(&self) -> impl Iterator<Item = Child> + use<> {
        0..self.copies.places() as Child
    }

    /// Returns the members that receive writes, including the one being resynced.
    fn writable(&self) -> u32 {
        let copied = self.copying.as_ref().filter(|copying| !copying.stopped);
        self.labels.known.in_sync | copied.map_or(0, |copying| 1 << copying.leg)
    }

    #[inline]
    fn send<W: TierContext>(
        &mut self,
        leg: Child,
        what: MirrorPurpose,
        command: &Command,
        way: &mut W,
    ) {
        self.copies.sent(usize::from(leg));
        let token = self.pieces.insert((what, leg));
        way.send(leg, token, *command);
    }

    /// Sends a client's command to several members.
    fn send_to<W: TierContext>(
        &mut self,
        legs: u32,
        request: u32,
        what: MirrorPurpose,
        way: &mut W,
    ) {
        let command = self.requests[request].command;
        for leg in self.legs().filter(|leg| legs & (1 << leg) != 0) {
            self.requests[request].left += 1;
            self.send(leg, what, &command, way);
        }
    }

    fn is_taken(&self, at: u64, end: u64) -> bool {
        let taken = |it: &LockedRange| it.at < end && at < it.end;
        self.extents.iter().any(taken) && !planted::has(Bug::OverlapsWrites)
    }

    /// Sends a write, or makes it wait.
    fn write<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) -> bool {
        let command = self.requests[request].command;
        let (at, end) = (command.offset, command.end());
        let marked = self.labels.mark(at, u64::from(command.bytes));
        if !(marked || planted::has(Bug::MarksTooLate)) || self.is_taken(at, end) {
            return false;
        }
        self.last_write = now;
        self.disturbed = true;
        if self.rest_at == Time::NEVER {
            self.rest_at = now + REST;
        }
        self.extents.push(LockedRange { at, end, request });
        self.overtake_repairs(at, end);
        let mut legs = self.writable();
        if command.op == Op::Deallocate && planted::has(Bug::TrimsOneLeg) {
            legs &= legs.wrapping_neg();
            self.requests[request].done = self.writable() & !legs;
        }
        self.send_to(legs, request, MirrorPurpose::Client(request), way);
        true
    }

    /// Sends writes that waited for a range that is free now.
    fn send_waiting<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if !self.waiting.is_empty() {
            let mut waiting = core::mem::take(&mut self.waiting);
            waiting.retain(|&request| !self.write(now, request, way));
            self.waiting = waiting;
            self.pump(way);
        }
        self.copy_on(now, way);
    }

    fn end_extent(&mut self, request: u32) {
        let index = self.extents.iter().position(|it| it.request == request);
        if let Some(index) = index {
            self.extents.swap_remove(index);
        }
    }

    /// Writes a label if there is a change.
    fn pump<W: TierContext>(&mut self, way: &mut W) {
        if self.labels.changed {
            let mut outgoing = core::mem::take(&mut self.outgoing);
            self.labels.pump(self.bytes, way.buffers(), &mut outgoing);
            for (leg, command) in outgoing.drain(..) {
                self.send(leg, MirrorPurpose::Label, &command, way);
            }
            self.outgoing = outgoing;
        }
    }

    /// Marks a member as out because it missed a write; returns whether the others are sufficient.
    fn leave(&mut self, leg: Child) -> bool {
        if self.copying.as_ref().is_some_and(|it| it.leg == leg) {
            self.stop_copying();
        }
        self.labels.leave(leg)
    }

    /// Completes a command: time not attributed to any step was spent waiting here.
    fn finish<W: TierContext>(&mut self, now: Time, request: u32, status: Status, way: &mut W) {
        let asked = &mut self.requests[request];
        let rest = now.since(asked.began) - asked.anatomy.total();
        asked.anatomy.add(WAITING, rest);
        let (id, anatomy) = (asked.command.id, asked.anatomy);
        self.requests.release(request);
        if !(planted::has(Bug::AcknowledgesEarly) && id == CommandId::MAX) {
            way.finish(id, status, anatomy);
        }
    }

    /// [`Bug::AcknowledgesEarly`].
    fn finish_early<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let asked = &mut self.requests[request];
        let id = core::mem::replace(&mut asked.command.id, CommandId::MAX);
        if id != CommandId::MAX {
            let mut anatomy = Anatomy::ZERO;
            anatomy.add(WAITING, now.since(asked.began));
            way.finish(id, Status::Success, anatomy);
        }
    }

    /// Acknowledges a write or flush that is done on all members that it was sent to, once no label lists a member
    /// without it as complete. Returns false if it must wait for a label.
    fn acknowledge<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) -> bool {
        let asked = self.requests[request];
        let missed = asked.failed & self.labels.known.in_sync;
        if asked.done == 0 || missed != 0 {
            self.finish(now, request, asked.status, way);
        } else if self.labels.required() & !asked.done == 0
            || planted::has(Bug::AcknowledgesUnlabelled)
        {
            self.finish(now, request, Status::Success, way);
        } else {
            return false;
        }
        true
    }

    fn acknowledge_all<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if !self.unacknowledged.is_empty() {
            let mut requests = core::mem::take(&mut self.unacknowledged);
            requests.retain(|&request| !self.acknowledge(now, request, way));
            self.unacknowledged = requests;
        }
    }

    fn write_done<W: TierContext>(
        &mut self,
        now: Time,
        request: u32,
        leg: Child,
        done: &Completion,
        way: &mut W,
    ) {
        let asked = &mut self.requests[request];
        asked.left -= 1;
        asked.anatomy = done.anatomy;
        let last = asked.left == 0;
        let writes = asked.command.op != Op::Flush;
        if done.status == Status::Success {
            asked.done |= 1 << leg;
        } else {
            asked.failed |= 1 << leg;
            asked.done &= !(1 << leg);
            asked.status = done.status;
            let keeps = match writes {
                true => Bug::KeepsFailedLegs,
                false => Bug::KeepsUnflushedLegs,
            };
            if planted::has(keeps) {
                (asked.failed, asked.done) = (0, asked.done | 1 << leg);
            } else {
                self.leave(leg);
            }
        }
        if planted::has(Bug::AcknowledgesEarly) && !last && done.status == Status::Success {
            self.finish_early(now, request, way);
        }
        if last {
            if writes {
                self.end_extent(request);
            } else {
                self.flushing.retain(|&it| it != request);
            }
            if !self.acknowledge(now, request, way) {
                self.unacknowledged.push(request);
            }
        }
        self.pump(way);
        if last && writes {
            self.send_waiting(now, way);
        }
    }

    fn label_done<W: TierContext>(&mut self, now: Time, leg: Child, status: Status, way: &mut W) {
        let Some(written) = self.labels.done(leg, status, way.buffers()) else {
            return;
        };
        if let Some(status) = written.nowhere {
            // Durability cannot be guaranteed any more; clients that retry cause another attempt.
            for request in core::mem::take(&mut self.waiting) {
                self.finish(now, request, status, way);
            }
            for request in core::mem::take(&mut self.unacknowledged) {
                self.finish(now, request, status, way);
            }
            self.stop_copying();
            return;
        }
        for leg in self.legs().filter(|leg| written.failed & (1 << leg) != 0) {
            self.leave(leg);
        }
        self.acknowledge_all(now, way);
        self.pump(way);
        self.send_waiting(now, way);
        self.acknowledge_all(now, way);
    }
}

impl Tier for Mirror {
    fn submit<W: TierContext>(&mut self, now: Time, command: &Command, way: &mut W) {
        let request = self.requests.insert(MirrorRequest {
            command: *command,
            began: now,
            left: 0,
            done: 0,
            failed: 0,
            status: Status::Success,
            anatomy: Anatomy::ZERO,
        });
        match command.op {
            Op::Read => {
                let mut readable = self.labels.readable();
                if planted::has(Bug::ReadsStaleLegs) {
                    readable = labels::all(self.copies.places());
                } else if planted::has(Bug::ReadsWhileCopying) {
                    readable = self.writable();
                }
                // There is always a member that counts as in sync, failed or not.
                if let Some(leg) = self.leg_to_read(command, readable) {
                    self.send_to(1 << leg, request, MirrorPurpose::Client(request), way);
                }
            }
            Op::Flush => {
                let mut legs = self.writable();
                if planted::has(Bug::FlushesOneLeg) {
                    legs &= legs.wrapping_neg();
                } else if planted::has(Bug::FlushPassesTheCopy) {
                    legs &= self.labels.known.in_sync;
                }
                // The other members count as having done it.
                self.requests[request].done = self.writable() & !legs;
                self.flushing.push(request);
                self.send_to(legs, request, MirrorPurpose::Client(request), way);
            }
            Op::Write | Op::WriteZeroes | Op::Deallocate => {
                if !self.write(now, request, way) {
                    self.waiting.push(request);
                    self.pump(way);
                }
            }
        }
    }

    fn completed<W: TierContext>(&mut self, now: Time, token: u32, done: &Completion, way: &mut W) {
        let (what, leg) = self.pieces[token];
        self.pieces.release(token);
        self.copies.done(usize::from(leg));
        match what {
            MirrorPurpose::Client(request) if self.requests[request].command.op == Op::Read => {
                self.read_done(now, request, leg, done, way);
            }
            MirrorPurpose::Client(request) => self.write_done(now, request, leg, done, way),
            MirrorPurpose::Repair(request) => self.repaired(now, request, leg, done, way),
            MirrorPurpose::Label => self.label_done(now, leg, done.status, way),
            MirrorPurpose::Rest => self.rested(now, leg, done.status, way),
            MirrorPurpose::Copy => self.copied(now, done.status, way),
        }
    }

    fn due(&self) -> Time {
        self.rest_at.min(self.copy_due())
    }

    fn tick<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if self.rest_at > now {
            return self.copy_on(now, way);
        }
        self.rest(now, way);
    }

    fn returned<W: TierContext>(&mut self, now: Time, child: Child, way: &mut W) {
        self.read_errors.reset(child);
        // It may have missed writes without any command having been sent to it.
        if self.barred & (1 << child) == 0 && self.leave(child) {
            self.returned |= 1 << child;
            self.pump(way);
            self.copy_next(now, way);
        }
    }

    fn replaced<W: TierContext>(&mut self, now: Time, child: Child, way: &mut W) {
        self.whole |= 1 << child;
        self.returned(now, child, way);
    }

    /// The ranges that the first member in sync loses: its data is copied to the others.
    fn at_risk(&self, children: &[Vec<Range>], ranges: &mut Vec<Range>) {
        let first = self.labels.readable().trailing_zeros() as usize;
        ranges.extend(children.get(first).into_iter().flatten());
    }

    /// The members are in the state after [`recover`], which takes no virtual time.
    fn power_cut(&mut self, _now: Time) {
        self.requests = Slab::default();
        self.pieces = Slab::default();
        self.copies.forget();
        self.extents.clear();
        self.waiting.clear();
        self.repairing.clear();
        self.flushing.clear();
        self.unacknowledged.clear();
        self.copying = None;
        (self.returned, self.whole) = (0, 0);
        self.pace.reset();
        self.resting = 0;
        self.rest_at = Time::NEVER;
        self.labels.forget();
    }

    fn read_offline(
        &self,
        at: u64,
        into: &mut [u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unreadable> {
        let readable = self.labels.readable();
        for leg in self.legs().filter(|leg| readable & (1 << leg) != 0) {
            if below.read(leg, at, into).is_ok() {
                return Ok(());
            }
        }
        Err(Unreadable)
    }

    fn write_offline(
        &mut self,
        at: u64,
        data: &[u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unwritable> {
        recover::mark(self, at, data.len() as u64, below)?;
        let written = self.labels.known.in_sync;
        let mut legs = self.legs().filter(|leg| written & (1 << leg) != 0);
        legs.try_for_each(|leg| below.write(leg, at, data))
    }

    fn is_ambiguous_offline(&self, at: u64, bytes: u32, below: &mut dyn ChildImages) -> bool {
        let readable = self.labels.readable();
        let mut seen: Option<Vec<u8>> = None;
        self.legs()
            .filter(|leg| readable & (1 << leg) != 0)
            .any(|leg| {
                let mut data = vec![0; bytes as usize];
                // Data that one member cannot read is read from another.
                if below.read(leg, at, &mut data).is_err() {
                    return false;
                }
                let differs = seen.as_ref().is_some_and(|first| *first != data);
                seen.get_or_insert(data);
                differs || below.is_ambiguous(leg, at, bytes)
            })
    }

    fn renewed(&mut self, child: Child, below: &mut dyn ChildImages) -> Result<(), Damage> {
        legs::strip(self.bytes, child, below)?;
        self.barred &= !(1 << child);
        self.copy_later(child, true);
        Ok(())
    }

    fn settle(&mut self, below: &mut dyn ChildImages) -> Result<(), Damage> {
        recover::settle(self, below)
    }

    fn used(&mut self, ranges: &[Range]) {
        self.used = ranges.to_vec();
    }

    fn sync_offline(&self, below: &mut dyn ChildImages) -> Result<(), Unwritable> {
        let written = self.labels.known.in_sync;
        let mut legs = self.legs().filter(|leg| written & (1 << leg) != 0);
        legs.try_for_each(|leg| below.sync(leg))
    }
}
