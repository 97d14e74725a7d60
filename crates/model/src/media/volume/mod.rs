//! A volume: a disk of a cloud or of a hypervisor, which is software, a network and limits, and no medium of its own.
//!
//! An I/O passes the volume's limits and those of the instance ([`gate`]), then the one thread that carries I/Os in rounds
//! ([`IoPath`]), then the store, where many are in service at a time and each takes a time of its own ([`Store`]). What has
//! been acknowledged is durable, as the clouds promise it: a flush waits for nothing but its turn, and a power cut takes
//! nothing.
//!
//! Leaves out: what the store is made of (its cache, its copies, a volume that is still read from a snapshot), neighbours
//! other than by pauses, merging of adjacent I/Os, endurance and watts, of which no cloud says anything. Sources: the
//! documents of Amazon EBS, Azure managed disks and Google Persistent Disk, for each figure in the catalogue;
//! `docs/decisions/0079-volumes.md`.

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
use crate::engine::{Events, Slab};
use crate::random::Stream;
use crate::time::{Span, Time};

use gate::Gate;
use thread::Thread;

/// A command inside.
#[derive(Clone, Copy, Debug)]
struct Inside {
    command: Command,
    status: Status,
    anatomy: Anatomy,
    /// Since when it waits for the path, or for the store.
    since: Time,
}

impl Inside {
    /// Whether anything is read or written for it.
    fn stores(&self) -> bool {
        let data = matches!(self.command.op, Op::Read | Op::Write | Op::WriteZeroes);
        data && self.status == Status::Success && self.command.bytes > 0
    }

    /// Bytes that travel.
    fn moved(&self) -> u32 {
        match self.stores() && self.command.op.transfers() {
            true => self.command.bytes,
            false => 0,
        }
    }
}

/// What falls due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
enum Event {
    /// The limits let the command in a slot through.
    Passed,
    /// The path has carried its first command.
    Carried,
    /// The store has served the command in a slot.
    Served,
}

const EVENTS: [Event; 3] = [Event::Passed, Event::Carried, Event::Served];

/// A volume.
#[derive(Clone, Debug)]
pub struct Volume {
    config: VolumeConfig,
    events: Events,
    inside: Slab<Inside>,
    depth: u32,
    limits: Gate,
    instance: Gate,
    /// Those that wait for the path, and the one that it carries.
    queue: VecDeque<u32>,
    /// How many of them are of the round that is on.
    in_round: usize,
    thread: Thread,
    /// Those that wait for the store.
    outside: VecDeque<u32>,
    serving: u32,
    services: Stream,
    read: u64,
    written: u64,
}

impl Volume {
    /// A volume with all its burst credits, or with none.
    pub fn new(config: VolumeConfig, credits: bool, seed: u64) -> Volume {
        Volume {
            limits: Gate::new(&config.limits, credits),
            instance: Gate::new(&config.instance, credits),
            events: Events::with_capacity(256),
            inside: Slab::default(),
            depth: 0,
            queue: VecDeque::with_capacity(64),
            in_round: 0,
            thread: Thread::new(&config.path, seed),
            outside: VecDeque::with_capacity(64),
            serving: 0,
            services: Stream::new(seed, "volume services"),
            read: 0,
            written: 0,
            config,
        }
    }

    #[inline]
    fn due(&mut self, at: Time, event: Event, slot: u32) {
        self.events.push(at, event as u32 | slot << 2);
    }

    /// A command has passed the limits and waits for the path.
    fn join(&mut self, now: Time, slot: u32) {
        self.inside[slot].since = now;
        self.queue.push_back(slot);
        if self.in_round == 0 {
            self.begin_round(now);
        }
    }

    /// Whoever waits is of the round.
    fn begin_round(&mut self, now: Time) {
        self.in_round = self.queue.len();
        if self.in_round > 0 {
            self.carry(now, self.config.path.round);
        }
    }

    /// The path carries the first of its queue, after what a round takes by itself.
    fn carry(&mut self, now: Time, first: Span) {
        let Some(&slot) = self.queue.front() else {
            unreachable!("a round goes on for as many as the queue had when it began");
        };
        let path = self.config.path;
        let transfer = self.transfer(slot, path.read_ps_per_byte, path.write_ps_per_byte);
        let work = first + path.each + transfer;
        let at = self.thread.work(now, work);
        // Its part of a time that is longer or shorter than the work.
        let share = transfer.ns() as f64 / work.ns().max(1) as f64;
        let span = at.since(now);
        self.inside[slot]
            .anatomy
            .add(Part::Transfer, span.scale(share).min(span));
        self.due(at, Event::Carried, slot);
    }

    /// How long the bytes of a command take.
    fn transfer(&self, slot: u32, read_ps_per_byte: u64, write_ps_per_byte: u64) -> Span {
        let inside = &self.inside[slot];
        let ps_per_byte = match inside.command.op {
            Op::Read => read_ps_per_byte,
            _ => write_ps_per_byte,
        };
        Span::per_bytes(ps_per_byte, inside.moved().into())
    }

    /// The path has carried the first of its queue.
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

    /// The store begins with a command.
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
        self.due(now + time + transfer, Event::Served, slot);
    }

    /// The store has served a command, and has a place for the next.
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
            Event::Passed => self.join(now, slot),
            Event::Carried => self.carried(now, slot, done),
            Event::Served => self.served(now, slot, done),
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
        let inside = Inside {
            command,
            status,
            anatomy: Anatomy::ZERO,
            since: now,
        };
        // What needs no store counts for no limit.
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
        self.due(passes, Event::Passed, slot);
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
        self.events = Events::with_capacity(256);
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
