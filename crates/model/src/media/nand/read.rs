//! Reads: looking units up, sensing, channel, link; and reading ahead of sequential streams.
//!
//! Units of one command that lie in one multi-plane page are one sense, and so are those of commands that wait at its die
//! one after the other; a die that falls idle gives its register up. A unit that is in the write buffer or nowhere
//! needs no medium. A drive that reads ahead keeps the units of its last streams in DRAM, whole NAND pages at a time
//! where the data were written in order (`ahead`). What nobody has asked for yet gives way to all else (`spare`).

use super::ahead::{Found, ReadCache};
use super::die::{CAUSE_PARTS, Cause, Causes, Work};
use super::spare::Waits;
use super::{INDEX_MASK, ISSUE, KIND_SHIFT, NONE, Nand, NandConfig, Segment, TRANSFERRED};
use crate::anatomy::{Anatomy, Part};
use crate::command::CommandId;
use crate::ftl::{Place, UNIT};
use crate::time::{Span, Time};

/// One sense of a page, for a command or ahead of one.
#[derive(Clone, Debug)]
pub(super) struct SenseOp {
    /// The command, or [`NONE`].
    pub(super) owner: CommandId,
    /// The next in its die's queue, or in the list of free ones.
    pub(super) next: u32,
    /// Units of 4 KiB it brings.
    pub(super) units: u32,
    /// Bytes of them that the host wants.
    pub(super) host_bytes: u32,
    pub(super) die: u32,
    /// First of the logical pages read ahead.
    pub(super) ahead: u32,
    /// Commands that wait for what is read ahead.
    pub(super) waiters: u32,
    /// Whether its share of the controller is booked.
    pub(super) booked: bool,
    /// Where it waits for time to spare.
    pub(super) waits: Waits,
    /// The first slot it reads.
    pub(super) slot: u32,
    /// Whether `behind` means anything.
    pub(super) waited: bool,
    /// When its segment left the controller, when it had come over the link, and when this came to its die.
    pub(super) dispatched: Time,
    pub(super) entered: Time,
    pub(super) arrived: Time,
    pub(super) started: Time,
    pub(super) sensed: Time,
    /// The die's busy time by cause at arrival; from the start on, what the operation waited for.
    pub(super) behind: Causes,
}

impl SenseOp {
    fn new(segment: &Segment, now: Time) -> SenseOp {
        SenseOp {
            owner: segment.id,
            next: NONE,
            units: 0,
            host_bytes: 0,
            die: 0,
            ahead: NONE,
            waiters: NONE,
            booked: true,
            waits: Waits::Nowhere,
            slot: 0,
            waited: false,
            dispatched: segment.dispatched,
            entered: segment.at,
            arrived: now,
            started: now,
            sensed: now,
            behind: [0; 5],
        }
    }
}

/// Consecutive slots of one page that a command or stream wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    first: u32,
    units: u32,
    host_bytes: u32,
    ahead: u32,
}

impl Nand {
    /// A read segment reaches the translation layer.
    pub(super) fn read_arrives(&mut self, now: Time, segment: &Segment) {
        let unit = u64::from(UNIT);
        let first = (segment.offset / unit) as u32;
        let end = segment.offset + u64::from(segment.bytes);
        let last = ((end - 1) / unit) as u32;
        self.issued = 0;
        let mut run: Option<Run> = None;
        let (mut ready, mut cached) = (0, false);
        // All at once, so that one lookup need not wait for the other.
        let mut places = core::mem::take(&mut self.places);
        self.ftl.locate_each(first, last - first + 1, &mut places);
        for (page, place) in (first..=last).zip(&places) {
            let from = segment.offset.max(u64::from(page) * unit);
            let host_bytes = (end.min(u64::from(page + 1) * unit) - from) as u32;
            let Place::Flash(slot) = *place else {
                ready += host_bytes;
                continue;
            };
            if let Some(cache) = &self.cache {
                match cache.find(page, slot) {
                    Found::Ready => {
                        ready += host_bytes;
                        cached = true;
                        continue;
                    }
                    Found::Coming(op) => {
                        cached = true;
                        self.await_ahead(now, op, segment, host_bytes);
                        continue;
                    }
                    Found::Nothing => {}
                }
            }
            run = Some(self.extend_run(now, segment, run, slot, host_bytes, NONE));
        }
        self.places = places;
        if let Some(run) = run {
            self.sense_run(now, segment, &run);
        }
        if ready > 0 {
            if let Some(at) = self.deliver(now, segment.id, ready) {
                self.delivered(at, segment.id, &SenseOp::new(segment, now));
            }
        } else if let Some(inside) = &mut self.inside[segment.id as usize] {
            // At least one operation is under way, so this is not the last piece.
            inside.left -= 1;
        }
        let Some(cache) = &mut self.cache else { return };
        if cached && self.issued == 0 {
            // All streams may have as much in hand as they read ahead.
            cache.book();
        }
        let inside = &self.inside;
        let submitted = inside[segment.id as usize]
            .as_ref()
            .map_or(now, |inside| inside.submitted);
        let answered = |id: CommandId, at: Time| {
            let there = inside.get(id as usize).and_then(Option::as_ref);
            there.is_none_or(|inside| inside.submitted != at)
        };
        let window = cache.follow(segment, submitted, self.shape.page_slots, answered);
        if let (Some((from, to)), false) = (window, cache.lags()) {
            self.read_ahead(now, segment, from, to.min(self.shape.logical));
        }
    }

    /// Adds a slot to the run if it continues it within one page; otherwise senses the run and begins another.
    #[inline]
    pub(super) fn extend_run(
        &mut self,
        now: Time,
        segment: &Segment,
        run: Option<Run>,
        slot: u32,
        host_bytes: u32,
        ahead: u32,
    ) -> Run {
        if let Some(mut run) = run {
            if slot == run.first + run.units && slot % self.shape.page_slots != 0 {
                run.units += 1;
                run.host_bytes += host_bytes;
                return run;
            }
            self.sense_run(now, segment, &run);
        }
        Run {
            first: slot,
            units: 1,
            host_bytes,
            ahead,
        }
    }

    /// Makes an operation of a run and queues it.
    #[inline]
    pub(super) fn sense_run(&mut self, now: Time, segment: &Segment, run: &Run) {
        let mut op = SenseOp::new(segment, now);
        op.units = run.units;
        op.host_bytes = run.host_bytes;
        op.slot = run.first;
        op.die = self.shape.die_of(run.first);
        op.ahead = run.ahead;
        if run.ahead != NONE {
            op.owner = NONE;
        } else if let Some(inside) = &mut self.inside[segment.id as usize] {
            inside.left += 1;
        }
        let index = self.new_op(op);
        if let (true, Some(cache)) = (run.ahead != NONE, &mut self.cache) {
            for unit in 0..run.units {
                cache.expect(run.ahead + unit, run.first + unit, index);
            }
        }
        let booked = self.booked_before(run.ahead != NONE);
        self.ops[index as usize].booked = booked || run.ahead == NONE;
        let mut delay = self.config.controller.issue_interval * u64::from(self.issued);
        if !booked && run.ahead == NONE {
            let service = self.config.controller.per_read;
            let leaves = self.controller.book(now, service).1;
            delay = delay.max(leaves.since(now));
        }
        self.issued += 1;
        if delay == Span::ZERO {
            self.issue(now, index);
            return;
        }
        let op = &mut self.ops[index as usize];
        op.dispatched += delay;
        op.arrived += delay;
        self.events.push(now + delay, ISSUE << KIND_SHIFT | index);
    }

    /// An operation goes to its die; one ahead that has no share of the controller yet, to the controller.
    #[inline]
    pub(super) fn issue(&mut self, now: Time, op: u32) {
        let sense = &self.ops[op as usize];
        if sense.booked {
            let die = sense.die;
            self.queue_read(now, op, die);
        } else if sense.for_nobody() {
            self.wait_for_controller(now, op);
        } else {
            self.pass_controller(now, op);
        }
    }

    /// Whether a sense's share of the controller was booked with a command: with its own, if it is the command's first,
    /// or with one that found what it wanted read ahead.
    #[inline]
    fn booked_before(&mut self, ahead: bool) -> bool {
        if ahead {
            self.cache.as_mut().is_some_and(ReadCache::use_booked)
        } else {
            self.issued == 0
        }
    }

    #[inline]
    fn new_op(&mut self, op: SenseOp) -> u32 {
        if self.free_op == NONE {
            self.ops.push(op);
            return self.ops.len() as u32 - 1;
        }
        let index = self.free_op;
        self.free_op = self.ops[index as usize].next;
        self.ops[index as usize] = op;
        index
    }

    /// Reads the old contents of a unit that a write covers in part. The command waits for it if `owned`.
    pub(super) fn read_for_merge(&mut self, now: Time, segment: &Segment, slot: u32, owned: bool) {
        let mut op = SenseOp::new(segment, now);
        op.units = 1;
        op.slot = slot;
        op.die = self.shape.die_of(slot);
        let die = op.die;
        if !owned {
            op.owner = NONE;
        } else if let Some(inside) = &mut self.inside[segment.id as usize] {
            inside.left += 1;
        }
        let index = self.new_op(op);
        self.queue_read(now, index, die);
    }

    /// How long the next sense takes, of the page with this slot: mean, spread and retries.
    #[inline]
    pub(super) fn sense_time(&mut self, slot: u32) -> Span {
        let timing = &self.config.timing;
        let mean = match &self.config.slc {
            Some(slc) if self.ftl.is_slc(slot) => slc.read,
            _ => timing.read,
        };
        let mut time = mean;
        if timing.read_spread > 0.0 {
            let factor = 1.0 + timing.read_spread * (2.0 * self.random.unit() - 1.0);
            time = Span::from_ns((time.ns() as f64 * factor) as u64);
        }
        if timing.retry_probability > 0.0 {
            while self.random.chance(timing.retry_probability) {
                time += mean;
            }
        }
        time
    }

    /// Starts an operation on an idle die; what is in the die's register already need not be sensed.
    #[inline]
    pub(super) fn start_sense(&mut self, now: Time, op: u32, die: u32) {
        let sense = &mut self.ops[op as usize];
        sense.started = now;
        let slot = sense.slot;
        let page = slot / self.shape.page_slots;
        let register = &mut self.dies[die as usize].register;
        if *register == page {
            self.sensed(now, op, die);
            return;
        }
        *register = page;
        self.tally.senses += 1;
        let until = now + self.sense_time(slot);
        self.begin(now, die, Work::Sense(op), Cause::Read, until);
    }

    /// A sense has ended: its data join the queue for the channel.
    #[inline]
    pub(super) fn sensed(&mut self, now: Time, op: u32, die: u32) {
        let sense = &mut self.ops[op as usize];
        sense.sensed = now;
        self.tally.medium_read += u64::from(sense.units * UNIT);
        let channel = &mut self.channels[(die % self.shape.channels) as usize];
        let at = channel.read(now, sense.units);
        debug_assert!(op <= INDEX_MASK);
        if self.config.timing.cache_read {
            self.events.push(at, TRANSFERRED << KIND_SHIFT | op);
        } else {
            self.begin(now, die, Work::Transfer(op), Cause::Read, at);
        }
    }

    /// Data of a sense are in the controller.
    #[inline]
    pub(super) fn transferred(&mut self, now: Time, index: u32) {
        let op = &mut self.ops[index as usize];
        op.next = self.free_op;
        self.free_op = index;
        let (owner, bytes) = (op.owner, op.host_bytes);
        if owner != NONE {
            let write = self.inside[owner as usize]
                .as_ref()
                .is_some_and(|inside| inside.command.op == crate::command::Op::Write);
            if write {
                let op = op.clone();
                self.merged(now, owner, &op);
            } else if let Some(at) = self.deliver(now, owner, bytes) {
                let op = self.ops[index as usize].clone();
                self.delivered(at, owner, &op);
            }
        } else if op.ahead != NONE {
            let op = op.clone();
            self.read_ahead_done(now, index, &op);
        }
    }

    /// Sends data of a read to the host; returns when the last of the command's data are there.
    #[inline]
    pub(super) fn deliver(&mut self, now: Time, id: CommandId, bytes: u32) -> Option<Time> {
        let controller = &self.config.controller;
        let transfer = Span::per_bytes(controller.link_ps_per_byte, u64::from(bytes));
        let at = self.link_out.book(now, transfer).1;
        let inside = self.inside[id as usize].as_mut()?;
        inside.left -= 1;
        (inside.left == 0).then_some(at)
    }

    /// All data of a read are with the host at `at`; the piece that ended last explains the command's time.
    pub(super) fn delivered(&mut self, at: Time, id: CommandId, op: &SenseOp) {
        let latency = self.config.controller.read_latency;
        let Some(inside) = &mut self.inside[id as usize] else {
            return;
        };
        let way = (op.dispatched, op.dispatched);
        add_way_down(&mut inside.anatomy, &self.config, inside.submitted, way);
        add_sensing(&mut inside.anatomy, op, at);
        inside.anatomy.add(Part::Controller, latency);
        self.read_done.push_back((at + latency, id));
    }
}

/// Adds a sense's waiting, work and transfer up to `at`.
pub(super) fn add_sensing(anatomy: &mut Anatomy, op: &SenseOp, at: Time) {
    if op.waited {
        for (part, ns) in CAUSE_PARTS.iter().zip(op.behind) {
            anatomy.add(*part, Span::from_ns(ns));
        }
    }
    anatomy.add(Part::Medium, op.sensed.since(op.started));
    anatomy.add(Part::Transfer, at.since(op.sensed));
}

impl SenseOp {
    /// Whether it is read ahead and no command waits for it.
    #[inline]
    pub(super) fn for_nobody(&self) -> bool {
        self.ahead != NONE && self.waiters == NONE
    }

    /// When it left the controller, had come over the link, and reached its die.
    pub(super) fn way_down(&self) -> (Time, Time, Time) {
        (self.dispatched, self.entered, self.arrived)
    }
}

/// Adds what a command spent before its data arrived at the dies or the buffer.
pub(super) fn add_way_down(
    anatomy: &mut Anatomy,
    config: &NandConfig,
    submitted: Time,
    segment: (Time, Time),
) {
    let (dispatched, arrived) = segment;
    let link = config.controller.link_latency;
    anatomy.add(Part::Link, link);
    anatomy.add(Part::Controller, dispatched.since(submitted) - link);
    anatomy.add(Part::Transfer, arrived.since(dispatched));
}
