//! A hard disk: platters that turn, an arm that moves, and what its firmware does about the time both take.
//!
//! Where the heads are follows from the time: an access waits for the arm (a seek by distance, a write settles longer), then
//! for the disk to turn, then for its data to pass ([`geometry`], [`arm`]). Commands that need the disk wait in a queue out
//! of which the one goes next that is soonest under the head, with ageing. Reads are remembered, and the head reads ahead as
//! long as nothing else is to be done ([`segments`]); writes are acknowledged in a volatile cache if that is on, and
//! written soonest first ([`cache`]). A write of a part of a sector (512e) takes a turn more, and so does a read that has to
//! be tried again.
//!
//! Leaves out: shingled tracks, defects and what replaces them, vibration, heat, several actuators, a cache on the medium
//! itself, and states of low power. A deallocate does nothing. Sources: makers' product manuals, for each figure in the
//! catalogue; `docs/decisions/0057-hard-disks.md`.

mod access;
mod arm;
mod cache;
mod config;
mod gauges;
mod geometry;
mod head;
mod medium;
mod power;
mod reads;
mod segments;
mod writes;

#[cfg(test)]
mod tests;

pub use config::{
    Buffer, Controller, Disk, HddConfig, Link, MOST_WRITES, MOST_ZONES, Power, Queue, Seek,
};

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, Completion, Op, Status};
use crate::device::{Capacity, Device, Gauges, Range};
use crate::engine::{Events, Slab, Station};
use crate::random::Stream;
use crate::time::{Span, Time};

use access::Access;
use arm::Arm;
use cache::Cache;
use gauges::Counts;
use geometry::Geometry;
use head::Work;
use reads::Ahead;
use segments::Segments;

/// A command inside.
#[derive(Clone, Copy, Debug)]
struct Inside {
    command: Command,
    status: Status,
    submitted: Time,
    anatomy: Anatomy,
    /// Since when it waits for the head, and what the head had spent on reads and on writes by then, in nanoseconds.
    since: Time,
    spent: (u64, u64),
}

/// What falls due, of the command in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
enum Event {
    /// The controller knows what it is.
    Arrived,
    /// Data of a write have come.
    Received,
    /// It is ready for the disk.
    Ready,
    /// Data of a read have been read ahead.
    Passed,
    /// It completes.
    Finish,
    /// The head has ended its work (no command's).
    HeadDone,
    /// The head may do something else (no command's).
    Wake,
}

const EVENTS: [Event; 7] = [
    Event::Arrived,
    Event::Received,
    Event::Ready,
    Event::Passed,
    Event::Finish,
    Event::HeadDone,
    Event::Wake,
];

/// A hard disk.
#[derive(Clone, Debug)]
pub struct Hdd {
    config: HddConfig,
    geometry: Geometry,
    arm: Arm,
    controller: Station,
    link: Station,
    events: Events,
    inside: Slab<Inside>,
    /// Commands that the drive has not taken yet.
    outside: VecDeque<u32>,
    /// Commands that it has taken.
    taken: u32,
    /// Those that wait for the head.
    queue: Vec<Access>,
    /// Writes that wait for room in the cache.
    room: VecDeque<u32>,
    cache: Cache,
    /// Since when the cache has written nothing, though there was something.
    drained: Time,
    segments: Segments,
    ahead: Option<Ahead>,
    work: Option<Work>,
    /// When the arm set out for where it is.
    came_at: Time,
    /// Until when the head is spoken for.
    busy_until: Time,
    /// When it will be looked at again.
    wake_at: Time,
    retries: Stream,
    counts: Counts,
}

impl Hdd {
    /// A disk whose heads stand at the outermost track.
    pub fn new(config: HddConfig, seed: u64) -> Hdd {
        let geometry = Geometry::new(&config);
        let (bytes, writes) = match config.write_cache {
            true => (config.buffer.write, config.buffer.writes),
            false => (0, 0),
        };
        Hdd {
            arm: Arm::new(&config, &geometry),
            controller: Station::default(),
            link: Station::default(),
            events: Events::with_capacity(256),
            inside: Slab::default(),
            outside: VecDeque::with_capacity(64),
            taken: 0,
            queue: Vec::with_capacity(config.queue.depth as usize),
            room: VecDeque::with_capacity(64),
            cache: Cache::new(bytes, writes),
            drained: Time::ZERO,
            segments: Segments::new(config.buffer.segments, config.buffer.segment),
            ahead: None,
            work: None,
            came_at: Time::ZERO,
            busy_until: Time::ZERO,
            wake_at: Time::NEVER,
            retries: Stream::new(seed, "disk retries"),
            counts: Counts::default(),
            geometry,
            config,
        }
    }

    #[inline]
    fn due(&mut self, at: Time, event: Event, slot: u32) {
        self.events.push(at, event as u32 | slot << 3);
    }

    /// The range of a command.
    #[inline]
    fn range(&self, slot: u32) -> (u64, u64) {
        let command = &self.inside[slot].command;
        (command.offset, command.end())
    }

    #[inline]
    fn explain(&mut self, slot: u32, part: Part, span: Span) {
        self.inside[slot].anatomy.add(part, span);
    }

    /// The drive takes a command.
    fn take(&mut self, now: Time, slot: u32) {
        self.taken += 1;
        let delay = self.config.link.delay;
        let command = self.config.controller.command;
        let (waited, at) = self.controller.book(now, command);
        self.explain(slot, Part::Link, delay);
        self.explain(slot, Part::Controller, waited + command);
        self.due(at + delay, Event::Arrived, slot);
    }

    /// The controller knows what it is.
    fn arrived(&mut self, now: Time, slot: u32, done: &mut Vec<Completion>) {
        let Inside {
            command, status, ..
        } = self.inside[slot];
        let empty = command.bytes == 0 && command.op != Op::Flush;
        if status != Status::Success || empty {
            return self.finish(now, slot, done);
        }
        match command.op {
            Op::Read => self.read(now, slot),
            Op::Write => {
                let service = Span::per_bytes(self.config.link.ps_per_byte, command.bytes.into());
                let (waited, at) = self.link.book(now, service);
                self.explain(slot, Part::Transfer, waited + service);
                self.due(at, Event::Received, slot);
            }
            Op::WriteZeroes => self.write_through(now, slot),
            Op::Flush => self.flush(now, slot, done),
            Op::Deallocate => self.finish(now, slot, done),
        }
    }

    /// A command completes.
    fn finish(&mut self, now: Time, slot: u32, done: &mut Vec<Completion>) {
        let inside = &self.inside[slot];
        let command = &inside.command;
        if inside.status == Status::Success {
            match command.op {
                Op::Read => self.counts.host_read += u64::from(command.bytes),
                Op::Write => self.counts.host_written += u64::from(command.bytes),
                _ => {}
            }
        }
        done.push(Completion {
            id: command.id,
            at: now,
            status: inside.status,
            anatomy: inside.anatomy,
        });
        self.inside.release(slot);
        self.taken -= 1;
        if let Some(next) = self.outside.pop_front() {
            let waited = now.since(self.inside[next].submitted);
            self.explain(next, Part::QueueSlot, waited);
            self.take(now, next);
        }
    }

    fn happen(&mut self, now: Time, event: u32, done: &mut Vec<Completion>) {
        let slot = event >> 3;
        match EVENTS[(event & 7) as usize] {
            Event::Arrived => self.arrived(now, slot, done),
            Event::Received => self.received(now, slot, done),
            Event::Ready => self.ready(now, slot),
            Event::Passed => {
                self.send(now, slot);
                self.use_head(now);
            }
            Event::Finish => self.finish(now, slot, done),
            Event::HeadDone => self.head_done(now, done),
            Event::Wake => {
                self.wake_at = Time::NEVER;
                self.use_head(now);
            }
        }
    }
}

impl Device for Hdd {
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
        let slot = self.inside.insert(Inside {
            command,
            status,
            submitted: now,
            anatomy: Anatomy::ZERO,
            since: now,
            spent: (0, 0),
        });
        if self.taken < self.config.queue.depth {
            self.take(now, slot);
        } else {
            self.outside.push_back(slot);
        }
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

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        self.cache.at_risk(ranges);
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.lose_power(now, lost)
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.report(now, gauges);
    }
}
