//! Reading ahead in time that nobody else has a use for.
//!
//! What is read ahead takes its turn at the controller when no command wants that, and at a die when no read waits there
//! and nothing has been interrupted; it interrupts nothing itself. Once a command waits for it, it is a read like others.
//! What younger streams have taken the place of in the cache is not read any more, and where as much as the cache is for
//! waits already, nothing is added. On the channel it goes in its turn.
//!
//! Leaves out: how real firmware ranks its reads, which no maker publishes.

use super::ahead::{Found, Waiter};
use super::read::{Run, SenseOp};
use super::{AHEAD, ISSUE, KIND_SHIFT, NONE, Nand, Segment};
use crate::ftl::Place;
use crate::time::{Span, Time};

/// Where an operation ahead waits for time to spare.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Waits {
    #[default]
    Nowhere,
    Controller,
    Die,
}

/// Operations that wait, linked by [`SenseOp::next`].
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadQueue {
    first: u32,
    last: u32,
}

impl ReadQueue {
    pub(super) const EMPTY: ReadQueue = ReadQueue {
        first: NONE,
        last: NONE,
    };

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    #[inline]
    pub(super) fn push(&mut self, ops: &mut [SenseOp], op: u32) {
        ops[op as usize].next = NONE;
        if self.is_empty() {
            self.first = op;
        } else {
            ops[self.last as usize].next = op;
        }
        self.last = op;
    }

    #[inline]
    pub(super) fn pop(&mut self, ops: &[SenseOp]) -> Option<u32> {
        let op = self.first;
        if op == NONE {
            return None;
        }
        self.first = ops[op as usize].next;
        Some(op)
    }

    /// Takes one out, wherever it stands: what a stream has ahead of it at one die is not much.
    pub(super) fn remove(&mut self, ops: &mut [SenseOp], op: u32) {
        let (mut before, mut at) = (NONE, self.first);
        while at != op {
            debug_assert_ne!(at, NONE, "operation {op} does not wait here");
            (before, at) = (at, ops[at as usize].next);
        }
        let next = ops[op as usize].next;
        if before == NONE {
            self.first = next;
        } else {
            ops[before as usize].next = next;
        }
        if self.last == op {
            self.last = before;
        }
    }
}

impl Nand {
    /// A command wants a unit that is being read ahead.
    pub(super) fn await_ahead(&mut self, now: Time, op: u32, segment: &Segment, bytes: u32) {
        let Some(cache) = &mut self.cache else { return };
        let waiter = cache.wait(Waiter {
            id: segment.id,
            bytes,
            dispatched: segment.dispatched,
            arrived: now,
            next: self.ops[op as usize].waiters,
        });
        self.ops[op as usize].waiters = waiter;
        self.hurry(now, op);
        if let Some(inside) = &mut self.inside[segment.id as usize] {
            inside.left += 1;
        }
    }

    pub(super) fn read_ahead(&mut self, now: Time, segment: &Segment, from: u32, to: u32) {
        let mut run: Option<Run> = None;
        for page in from..to {
            let Place::Flash(slot) = self.ftl.locate(page) else {
                continue;
            };
            let cache = self.cache.as_ref();
            let known = cache.map(|cache| cache.find(page, slot));
            if !matches!(known, Some(Found::Nothing)) {
                if let Some(run) = run.take() {
                    self.sense_run(now, segment, &run);
                }
                continue;
            }
            run = Some(self.extend_run(now, segment, run, slot, 0, page));
        }
        if let Some(run) = run {
            self.sense_run(now, segment, &run);
        }
    }

    /// An operation ahead has found its die at work.
    pub(super) fn put_off(&mut self, op: u32, die: u32) {
        let sense = &mut self.ops[op as usize];
        sense.waits = Waits::Die;
        if let Some(cache) = &mut self.cache {
            cache.put_off(sense.units);
        }
        self.dies[die as usize].ahead.push(&mut self.ops, op);
    }

    /// A command wants what is read ahead: if that waits for time to spare, it waits with the other reads from now on.
    fn hurry(&mut self, now: Time, op: u32) {
        let sense = &mut self.ops[op as usize];
        let (units, die) = (sense.units, sense.die);
        let waits = core::mem::take(&mut sense.waits);
        if let (true, Some(cache)) = (waits != Waits::Nowhere, &mut self.cache) {
            cache.taken_up(units);
        }
        match waits {
            Waits::Nowhere => {}
            Waits::Controller => {
                self.ahead.remove(&mut self.ops, op);
                self.pass_controller(now, op);
            }
            Waits::Die => {
                let waiting = &mut self.dies[die as usize].ahead;
                waiting.remove(&mut self.ops, op);
                self.queue_read(now, op, die);
            }
        }
    }

    /// An operation ahead takes its turn when nothing else wants the controller.
    pub(super) fn wait_for_controller(&mut self, now: Time, op: u32) {
        let sense = &mut self.ops[op as usize];
        sense.waits = Waits::Controller;
        if let Some(cache) = &mut self.cache {
            cache.put_off(sense.units);
        }
        self.ahead.push(&mut self.ops, op);
        if !self.ahead_due {
            self.ahead_turn(now);
        }
    }

    /// The controller may be free for an operation ahead.
    pub(super) fn ahead_turn(&mut self, now: Time) {
        self.ahead_due = false;
        if self.controller.free_at() <= now {
            let mut waiting = self.ahead;
            let op = self.first_wanted(&mut waiting);
            self.ahead = waiting;
            if let Some(op) = op {
                self.pass_controller(now, op);
            }
        }
        if !self.ahead.is_empty() {
            self.ahead_due = true;
            let next = self.controller.free_at().max(now + Span::from_ns(1));
            self.events.push(next, AHEAD << KIND_SHIFT);
        }
    }

    /// Books the controller for an operation ahead, which then goes to its die.
    pub(super) fn pass_controller(&mut self, now: Time, op: u32) {
        let service = self.config.controller.per_read;
        let leaves = self.controller.book(now, service).1;
        let sense = &mut self.ops[op as usize];
        sense.booked = true;
        sense.dispatched = leaves;
        sense.arrived = leaves;
        if leaves == now {
            let die = sense.die;
            self.queue_read(now, op, die);
        } else {
            self.events.push(leaves, ISSUE << KIND_SHIFT | op);
        }
    }

    /// The next operation ahead at a die that has time for it.
    pub(super) fn next_ahead(&mut self, die: u32) -> Option<u32> {
        let mut waiting = self.dies[die as usize].ahead;
        let op = self.first_wanted(&mut waiting);
        self.dies[die as usize].ahead = waiting;
        op
    }

    /// Takes the first operation ahead out of those that wait. Those that the cache has no place for any more end here.
    fn first_wanted(&mut self, waiting: &mut ReadQueue) -> Option<u32> {
        loop {
            let op = waiting.pop(&self.ops)?;
            let sense = &mut self.ops[op as usize];
            sense.waits = Waits::Nowhere;
            let Some(cache) = &mut self.cache else {
                return Some(op);
            };
            cache.taken_up(sense.units);
            let mut pages = sense.ahead..sense.ahead + sense.units;
            if pages.any(|page| cache.expects(page, op)) {
                return Some(op);
            }
            sense.next = self.free_op;
            self.free_op = op;
        }
    }

    pub(super) fn read_ahead_done(&mut self, now: Time, index: u32, op: &SenseOp) {
        let Some(cache) = &mut self.cache else { return };
        for page in op.ahead..op.ahead + op.units {
            cache.came(page, index);
        }
        let mut at = op.waiters;
        while at != NONE {
            let Some(cache) = &mut self.cache else { return };
            let waiter = cache.woken(at);
            // The medium has been working for the command since it came.
            let mut timeline = op.clone();
            timeline.waited = false;
            timeline.dispatched = waiter.dispatched;
            timeline.arrived = waiter.arrived;
            timeline.started = waiter.arrived;
            timeline.sensed = now;
            if let Some(at) = self.deliver(now, waiter.id, waiter.bytes) {
                self.delivered(at, waiter.id, &timeline);
            }
            at = waiter.next;
        }
    }
}
