//! A volume: a disk of a cloud or of a hypervisor. It consists of software, a network and limits, and has no medium of
//! its own.
//!
//! An I/O passes the limits of the volume and those of the instance ([`gate`]), then the single thread that processes
//! I/Os in rounds ([`IoPath`]), then the store ([`Store`]). In the store, many I/Os are in service at once, and each
//! takes its own time. Acknowledged data is durable, as the clouds guarantee. A flush therefore waits only for its
//! turn, and a power cut loses nothing.
//!
//! Not modelled: the structure of the store (its cache, its copies, a volume that is still loaded from a snapshot),
//! other tenants except as pauses, and merging of adjacent I/Os. Endurance and power are not modelled either, because
//! no cloud publishes them. Sources: the documents of Amazon EBS, Azure managed disks and Google Persistent Disk, for
//! each figure in the catalogue; `docs/decisions/0079-volumes.md`.

mod config;
mod gate;
mod medium;
mod thread;

#[cfg(test)]
mod tests;

pub use config::{
    Burst, IoPath, Limit, Limits, MOST_WIDTH, Pause, SHORTEST_PACE, Store, VolumeConfig,
    WIDEST_SPREAD,
};

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, Completion, Op, Status};
use crate::device::{Capacity, Device, Gauge, Gauges, Range};
use crate::engine::{EventQueue, Slab};
use crate::random::Stream;
use crate::time::{Span, Time};

use gate::Gate;
use thread::PacedThread;

/// An outstanding command.
#[derive(Clone, Copy, Debug)]
struct VolumeCommand {
    command: Command,
    status: Status,
    anatomy: Anatomy,
    /// When it started to wait for the thread, or for the store.
    since: Time,
}

impl VolumeCommand {
    /// Whether the command reads or writes data.
    fn stores(&self) -> bool {
        let data = matches!(self.command.op, Op::Read | Op::Write | Op::WriteZeroes);
        data && self.status == Status::Success && self.command.bytes > 0
    }

    /// Returns the bytes transferred.
    fn moved(&self) -> u32 {
        match self.stores() && self.command.op.transfers() {
            true => self.command.bytes,
            false => 0,
        }
    }
}

/// Scheduled event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
enum VolumeEvent {
    /// The command in a slot has passed the limits.
    Passed,
    /// The thread has processed its first command.
    Carried,
    /// The store has served the command in a slot.
    Served,
}

const EVENTS: [VolumeEvent; 3] = [
    VolumeEvent::Passed,
    VolumeEvent::Carried,
    VolumeEvent::Served,
];

/// A volume with its outstanding commands.
#[derive(Clone, Debug)]
pub struct Volume {
    config: VolumeConfig,
    events: EventQueue,
    inside: Slab<VolumeCommand>,
    depth: u32,
    limits: Gate,
    instance: Gate,
    /// Commands that wait for the thread, and the one that it processes.
    queue: VecDeque<u32>,
    /// How many of them belong to the current round.
    in_round: usize,
    thread: PacedThread,
    /// Commands that wait for the store.
    outside: VecDeque<u32>,
    serving: u32,
    services: Stream,
    read: u64,
    written: u64,
}

impl Volume {
    /// Creates a volume with all its burst credits, or with none.
    pub fn new(config: VolumeConfig, credits: bool, seed: u64) -> Volume {
        Volume {
            limits: Gate::new(&config.limits, credits),
            instance: Gate::new(&config.instance, credits),
            events: EventQueue::with_capacity(256),
            inside: Slab::default(),
            depth: 0,
            queue: VecDeque::with_capacity(64),
            in_round: 0,
            thread: PacedThread::new(&config.path, seed),
            outside: VecDeque::with_capacity(64),
            serving: 0,
            services: Stream::new(seed, "volume services"),
            read: 0,
            written: 0,
            config,
        }
    }

    #[inline]
    fn due(&mut self, at: Time, event: VolumeEvent, slot: u32) {
        self.events.push(at, event as u32 | slot << 2);
    }

    /// A command has passed the limits and waits for the thread.
    fn join(&mut self, now: Time, slot: u32) {
        self.inside[slot].since = now;
        self.queue.push_back(slot);
        if self.in_round == 0 {
            self.begin_round(now);
        }
    }

    /// Starts a round with all waiting commands.
    fn begin_round(&mut self, now: Time) {
        self.in_round = self.queue.len();
        if self.in_round > 0 {
            self.carry(now, self.config.path.round);
        }
    }

    /// The thread processes the first command of its queue, after the cost of the round.
    fn carry(&mut self, now: Time, first: Span) {
        let Some(&slot) = self.queue.front() else {
            unreachable!("a round processes only requests that were queued when it began");
        };
        let path = self.config.path;
        let transfer = self.transfer(slot, path.read_ps_per_byte, path.write_ps_per_byte);
        let work = first + path.each + transfer;
        let at = self.thread.work(now, work);
        // The transfer's share of a time that is longer or shorter than the nominal work.
        let share = transfer.ns() as f64 / work.ns().max(1) as f64;
        let span = at.since(now);
        self.inside[slot]
            .anatomy
            .add(Part::Transfer, span.scale(share).min(span));
        self.due(at, VolumeEvent::Carried, slot);
    }

    /// Returns the transfer time of a command's bytes.
    fn transfer(&self, slot: u32, read_ps_per_byte: u64, write_ps_per_byte: u64) -> Span {
        let inside = &self.inside[slot];
        let ps_per_byte = match inside.command.op {
            Op::Read => read_ps_per_byte,
            _ => write_ps_per_byte,
        };
        Span::per_bytes(ps_per_byte, inside.moved().into())
    }

    /// The thread has processed the first command of its queue.
    fn carried(&mut self, now: Time, slot: u32, done: &mut Vec<Completion>) {
        self.queue.pop_front();
        self.in_round -= 1;
        let inside = &mut self.inside[slot];
        let all = now.since(inside.since);
        let transfer = inside.anatomy.get(Part::Transfer);
        inside.anatomy.add(Part::Controller, all - transfer);
        inside.since = now;
        if !inside.stores() {
            self.finish(now, slot, done);
        } else if self.serving < self.config.store.width {
            self.serve(now, slot);
        } else {
            self.outside.push_back(slot);
        }
        match self.in_round {
            0 => self.begin_round(now),
            _ => self.carry(now, Span::ZERO),
        }
    }

    /// The store starts a command.
    fn serve(&mut self, now: Time, slot: u32) {
        self.serving += 1;
        let store = self.config.store;
        let transfer = self.transfer(slot, store.read_ps_per_byte, store.write_ps_per_byte);
        let median = match self.inside[slot].command.op {
            Op::Read => store.read,
            _ => store.write,
        };
        let time = median.scale(self.services.lognormal(store.spread));
        let inside = &mut self.inside[slot];
        inside.anatomy.add(Part::Collision, now.since(inside.since));
        inside.anatomy.add(Part::Medium, time);
        inside.anatomy.add(Part::Transfer, transfer);
        self.due(now + time + transfer, VolumeEvent::Served, slot);
    }

    /// The store has served a command, and has a free slot for the next.
    fn served(&mut self, now: Time, slot: u32, done: &mut Vec<Completion>) {
        self.finish(now, slot, done);
        self.serving -= 1;
        if let Some(next) = self.outside.pop_front() {
            self.serve(now, next);
        }
    }

    /// A command completes.
    fn finish(&mut self, now: Time, slot: u32, done: &mut Vec<Completion>) {
        let inside = &self.inside[slot];
        let moved = u64::from(inside.moved());
        match inside.command.op {
            Op::Read => self.read += moved,
            _ => self.written += moved,
        }
        done.push(Completion {
            id: inside.command.id,
            at: now,
            status: inside.status,
            anatomy: inside.anatomy,
        });
        self.inside.release(slot);
        self.depth -= 1;
    }

    fn happen(&mut self, now: Time, event: u32, done: &mut Vec<Completion>) {
        let slot = event >> 2;
        match EVENTS[(event & 3) as usize] {
            VolumeEvent::Passed => self.join(now, slot),
            VolumeEvent::Carried => self.carried(now, slot, done),
            VolumeEvent::Served => self.served(now, slot, done),
        }
    }
}

impl Device for Volume {
    fn capacity(&self) -> Capacity {
        Capacity {
            bytes: self.config.bytes,
            block: self.config.block,
        }
    }

    fn submit(&mut self, now: Time, command: Command) {
        let status = match command.fits(self.config.bytes) {
            true => Status::Success,
            false => Status::LbaOutOfRange,
        };
        let inside = VolumeCommand {
            command,
            status,
            anatomy: Anatomy::ZERO,
            since: now,
        };
        // Commands that do not need the store count for no limit.
        let passes = match inside.stores() {
            true => {
                let moved = inside.moved();
                self.instance.pass(self.limits.pass(now, moved), moved)
            }
            false => now,
        };
        let slot = self.inside.insert(inside);
        self.depth += 1;
        if passes == now {
            return self.join(now, slot);
        }
        let held_back = passes.since(now);
        self.inside[slot].anatomy.add(Part::Throttle, held_back);
        self.due(passes, VolumeEvent::Passed, slot);
    }

    #[inline]
    fn next_event(&self) -> Time {
        self.events.next()
    }

    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        let mut now = now;
        loop {
            while let Some(event) = self.events.pop_due(now) {
                self.happen(now, event, done);
            }
            let next = self.events.next();
            if !done.is_empty() || next >= horizon {
                return now;
            }
            now = next;
        }
    }

    fn power_cut(&mut self, now: Time, _lost: &mut Vec<Range>) -> Time {
        self.events = EventQueue::with_capacity(256);
        self.inside = Slab::default();
        self.depth = 0;
        self.limits.forget(now);
        self.instance.forget(now);
        self.queue.clear();
        self.in_round = 0;
        self.thread.clear(now);
        self.outside.clear();
        self.serving = 0;
        now
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        gauges.gauge(Gauge::HostBytesRead, self.read as f64);
        gauges.gauge(Gauge::HostBytesWritten, self.written as f64);
        gauges.gauge(
            Gauge::ControllerBusySeconds,
            self.thread.busy(now).seconds(),
        );
        gauges.gauge(Gauge::QueueDepth, self.depth.into());
    }
}
