//! I/O scheduler of the host: order and merging of requests that wait for a free command slot of the drive.
//!
//! A request goes to the drive at once while a slot is free and the scheduler allows it. Otherwise it waits, and may be
//! merged with an adjacent request of the same direction that waits too. The scheduler selects which one is next
//! (`deadline`, `kyber`, `bfq`). Flushes and deallocations bypass it. Its CPU time, and its lock, are part of the host
//! path ([`SchedulerConfig::cost`]).
//!
//! Not modelled: priorities (ioprio), merging of requests of one system call before they reach the scheduler (plug),
//! the limit of requests that may wait (`nr_requests`), dispatch by a thread on another core.
//!
//! Source: Linux, block/mq-deadline.c, block/kyber-iosched.c, block/bfq-iosched.c, Documentation/block/.

mod bfq;
mod deadline;
mod kyber;

use alloc::vec::Vec;

use self::bfq::Bfq;
use self::deadline::Deadline;
use self::kyber::Kyber;
use crate::anatomy::Part;
use crate::command::{Command, CommandId, Completion, Op};
use crate::device::{Capacity, Device, Gauges, Range};
use crate::engine::Slab;
use crate::time::{Span, Time};

/// An I/O scheduler of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum SchedulerKind {
    /// None: every request goes to the drive.
    #[default]
    None,
    /// Sorted by address, in batches, with deadlines; reads before writes.
    MqDeadline,
    /// Limits by direction, which follow from latencies.
    Kyber,
    /// One process at a time, with a budget.
    Bfq,
}

impl SchedulerKind {
    /// All schedulers, in the order of declaration.
    pub const ALL: [SchedulerKind; 4] = [
        SchedulerKind::None,
        SchedulerKind::MqDeadline,
        SchedulerKind::Kyber,
        SchedulerKind::Bfq,
    ];

    /// Returns the name in Linux.
    pub const fn name(self) -> &'static str {
        match self {
            SchedulerKind::None => "none",
            SchedulerKind::MqDeadline => "mq-deadline",
            SchedulerKind::Kyber => "kyber",
            SchedulerKind::Bfq => "bfq",
        }
    }

    /// Whether all cores share one lock.
    pub(super) const fn has_one_lock(self) -> bool {
        matches!(self, SchedulerKind::MqDeadline | SchedulerKind::Bfq)
    }

    /// Whether requests that wait are merged.
    const fn merges(self) -> bool {
        self.has_one_lock()
    }
}

/// The scheduler between a host and a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SchedulerConfig {
    /// Scheduler, by its name in Linux.
    pub kind: SchedulerKind,
    /// CPU time for each request: insertion, dispatch and completion. With one lock, it is held for this time.
    pub cost: Span,
    /// Commands that the drive accepts at once; 0 means any number.
    pub slots: u32,
    /// Whether the drive is a hard disk.
    pub rotational: bool,
}

/// Largest merged request, bytes: Linux' default of `max_sectors_kb`.
const LARGEST: u32 = 1280 << 10;

/// A request, which may consist of several commands.
#[derive(Clone, Debug)]
struct BlockRequest {
    command: Command,
    arrived: Time,
    sent: Time,
    waits: bool,
    /// Commands, and their times of arrival.
    parts: Vec<(CommandId, Time)>,
}

impl BlockRequest {
    const fn direction(&self) -> usize {
        match self.command.op {
            Op::Read => 0,
            _ => 1,
        }
    }
}

/// Selects requests.
#[derive(Clone, Debug)]
enum SchedulerState {
    None,
    Deadline(Deadline),
    Kyber(Kyber),
    Bfq(Bfq),
}

/// An I/O scheduler in front of a drive.
#[derive(Clone, Debug)]
pub struct Scheduler<D> {
    device: D,
    config: SchedulerConfig,
    policy: SchedulerState,
    requests: Slab<BlockRequest>,
    /// Requests that wait.
    waiting: Vec<u32>,
    in_flight: u32,
    below: Vec<Completion>,
}

impl<D: Device> Scheduler<D> {
    /// Puts a scheduler in front of a drive.
    pub fn new(config: SchedulerConfig, device: D) -> Scheduler<D> {
        let policy = match config.kind {
            SchedulerKind::None => SchedulerState::None,
            SchedulerKind::MqDeadline => SchedulerState::Deadline(Deadline::default()),
            SchedulerKind::Kyber => SchedulerState::Kyber(Kyber::default()),
            SchedulerKind::Bfq => SchedulerState::Bfq(Bfq::new(config.rotational)),
        };
        Scheduler {
            device,
            config,
            policy,
            requests: Slab::default(),
            waiting: Vec::new(),
            in_flight: 0,
            below: Vec::new(),
        }
    }

    /// Merges a command with a request that waits, if they are adjacent. Returns whether it did.
    fn merge(&mut self, now: Time, command: &Command) -> bool {
        if !self.config.kind.merges() {
            return false;
        }
        let fits = |request: &BlockRequest| {
            let other = &request.command;
            let adjacent = other.end() == command.offset || command.end() == other.offset;
            let alike =
                (other.op, other.fua, other.queue) == (command.op, command.fua, command.queue);
            adjacent && alike && other.bytes + command.bytes <= LARGEST
        };
        let mut waiting = self.waiting.iter();
        let Some(&slot) = waiting.find(|&&slot| fits(&self.requests[slot])) else {
            return false;
        };
        self.remove(slot);
        let request = &mut self.requests[slot];
        request.command.offset = request.command.offset.min(command.offset);
        request.command.bytes += command.bytes;
        request.parts.push((command.id, now));
        self.insert(slot);
        true
    }

    fn insert(&mut self, slot: u32) {
        let request = &self.requests[slot];
        match &mut self.policy {
            SchedulerState::None => {}
            SchedulerState::Deadline(policy) => policy.insert(slot, request),
            SchedulerState::Kyber(policy) => policy.insert(slot, request),
            SchedulerState::Bfq(policy) => policy.insert(slot, request),
        }
    }

    fn remove(&mut self, slot: u32) {
        let request = &self.requests[slot];
        match &mut self.policy {
            SchedulerState::None | SchedulerState::Kyber(_) => {}
            SchedulerState::Deadline(policy) => policy.remove(slot, request),
            SchedulerState::Bfq(policy) => policy.remove(slot, request),
        }
    }

    /// Whether the drive accepts a command.
    fn has_slot(&self) -> bool {
        self.config.slots == 0 || self.in_flight < self.config.slots
    }

    /// Sends requests to the drive while it accepts them.
    fn dispatch(&mut self, now: Time) {
        while !self.waiting.is_empty() && self.has_slot() {
            let requests = &self.requests;
            let next = match &mut self.policy {
                SchedulerState::None => self.waiting.first().copied(),
                SchedulerState::Deadline(policy) => policy.next(now, requests),
                SchedulerState::Kyber(policy) => policy.next(),
                SchedulerState::Bfq(policy) => policy.next(now, requests),
            };
            let Some(slot) = next else { return };
            self.waiting.retain(|&other| other != slot);
            self.requests[slot].waits = false;
            self.send(now, slot);
        }
    }

    fn send(&mut self, now: Time, slot: u32) {
        let request = &mut self.requests[slot];
        request.sent = now;
        let command = Command {
            id: slot,
            ..request.command
        };
        self.in_flight += 1;
        self.device.submit(now, command);
    }

    /// A request has completed.
    fn completed(&mut self, now: Time, completion: &Completion, done: &mut Vec<Completion>) {
        let slot = completion.id;
        self.in_flight -= 1;
        let request = &mut self.requests[slot];
        let parts = core::mem::take(&mut request.parts);
        for &(id, arrived) in &parts {
            let mut answer = *completion;
            answer.id = id;
            let waited = request.sent.since(arrived);
            answer.anatomy.add(Part::QueueSlot, waited);
            done.push(answer);
        }
        let request = &self.requests[slot];
        match &mut self.policy {
            SchedulerState::None | SchedulerState::Deadline(_) => {}
            SchedulerState::Kyber(policy) => policy.completed(now, request),
            SchedulerState::Bfq(policy) => policy.completed(now, request),
        }
        self.requests.release(slot);
    }

    /// Returns when a request may be sent although none completes.
    fn wakes_at(&self) -> Time {
        match &self.policy {
            SchedulerState::Bfq(policy) if !self.waiting.is_empty() && self.has_slot() => {
                policy.idles_until()
            }
            _ => Time::NEVER,
        }
    }
}

impl<D: Device> Device for Scheduler<D> {
    fn capacity(&self) -> Capacity {
        self.device.capacity()
    }

    fn submit(&mut self, now: Time, command: Command) {
        let scheduled = command.op.transfers() && command.fits(self.capacity().bytes);
        if scheduled && self.merge(now, &command) {
            return;
        }
        let slot = self.requests.insert(BlockRequest {
            command,
            arrived: now,
            sent: now,
            waits: scheduled,
            parts: alloc::vec![(command.id, now)],
        });
        if !scheduled {
            return self.send(now, slot);
        }
        self.waiting.push(slot);
        self.insert(slot);
        self.dispatch(now);
    }

    fn next_event(&self) -> Time {
        self.device.next_event().min(self.wakes_at())
    }

    fn advance(&mut self, mut now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        loop {
            if self.device.next_event() == now {
                let mut below = core::mem::take(&mut self.below);
                let until = horizon.min(self.wakes_at()).max(now);
                now = self.device.advance(now, until, &mut below);
                for completion in &below {
                    self.completed(now, completion, done);
                }
                below.clear();
                self.below = below;
            }
            self.dispatch(now);
            let next = self.next_event();
            if next > now {
                if next >= horizon || !done.is_empty() {
                    return now;
                }
                now = next;
            }
        }
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        self.device.at_risk(ranges);
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.requests = Slab::default();
        self.waiting.clear();
        self.in_flight = 0;
        match &mut self.policy {
            SchedulerState::None => {}
            SchedulerState::Deadline(policy) => *policy = Deadline::default(),
            SchedulerState::Kyber(policy) => *policy = Kyber::default(),
            SchedulerState::Bfq(policy) => *policy = Bfq::new(self.config.rotational),
        }
        self.device.power_cut(now, lost)
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.device.inspect(now, gauges);
    }
}
