//! Hard disk: rotating platters, a moving arm, and firmware that reduces the time of both.
//!
//! The position of the heads follows from time. An access waits for the arm (a seek by distance; a write settles
//! longer), then for rotation, then for its data to pass ([`geometry`], [`arm`]). Commands that need the disk wait in a
//! queue; the next one is the command with the shortest positioning time, with ageing. Read data is cached, and the
//! head reads ahead while there is no other work ([`segments`]). Writes are acknowledged in a volatile cache if it is
//! on, and written in order of positioning time ([`cache`]). A write of part of a sector (512e) takes one more
//! revolution, and so does a read that must be retried.
//!
//! Not modelled: shingled tracks, defects and their replacement, vibration, heat, several actuators, a cache on the
//! medium itself, and low-power states. A deallocate does nothing. Sources: manufacturers' product manuals, for each
//! figure in the catalogue; `docs/decisions/0057-hard-disks.md`.

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
    Disk, HddBuffer, HddConfig, HddController, HddPower, HddQueue, Link, MOST_WRITES, MOST_ZONES,
    Seek,
};

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, Completion, Op, Status};
use crate::device::{Capacity, Device, Gauges, Range};
use crate::engine::{EventQueue, Slab, Station};
use crate::random::Stream;
use crate::time::{Span, Time};

use access::Access;
use arm::Arm;
use cache::Cache;
use gauges::HddCounts;
use geometry::DiskGeometry;
use head::HeadWork;
use reads::ReadAheadState;
use segments::Segments;

/// An outstanding command.
#[derive(Clone, Copy, Debug)]
struct HddCommand {
    command: Command,
    status: Status,
    submitted: Time,
    anatomy: Anatomy,
    /// When it started to wait for the head, and the head time spent on reads and on writes until then, in nanoseconds.
    since: Time,
    spent: (u64, u64),
}

/// Scheduled event, for the command in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
enum HddEvent {
    /// The controller has decoded the command.
    Arrived,
    /// Data of a write has arrived.
    Received,
    /// The command is ready for the disk.
    Ready,
    /// Data of a read has been read ahead.
    Passed,
    /// The command completes.
    Finish,
    /// The head has finished its work (no command).
    HeadDone,
    /// The head may start other work (no command).
    Wake,
}

const EVENTS: [HddEvent; 7] = [
    HddEvent::Arrived,
    HddEvent::Received,
    HddEvent::Ready,
    HddEvent::Passed,
    HddEvent::Finish,
    HddEvent::HeadDone,
    HddEvent::Wake,
];

/// A hard disk.
#[derive(Clone, Debug)]
pub struct Hdd {
    config: HddConfig,
    geometry: DiskGeometry,
    arm: Arm,
    controller: Station,
    link: Station,
    events: EventQueue,
    inside: Slab<HddCommand>,
    /// Commands that the drive has not accepted yet.
    outside: VecDeque<u32>,
    /// Number of commands that it has accepted.
    taken: u32,
    /// Accesses that wait for the head.
    queue: Vec<Access>,
    /// Writes that wait for space in the cache.
    room: VecDeque<u32>,
    cache: Cache,
    /// Since when the cache has written nothing although it was not empty.
    drained: Time,
    segments: Segments,
    ahead: Option<ReadAheadState>,
    work: Option<HeadWork>,
    /// When the arm started to move to its current place.
    came_at: Time,
    /// Until when the head is busy.
    busy_until: Time,
    /// When the head will be checked again.
    wake_at: Time,
    retries: Stream,
    counts: HddCounts,
}

impl Hdd {
    /// Creates a disk whose heads are at the outermost track.
    pub fn new(config: HddConfig, seed: u64) -> Hdd {
        let geometry = DiskGeometry::new(&config);
        let (bytes, writes) = match config.write_cache {
            true => (config.buffer.write, config.buffer.writes),
            false => (0, 0),
        };
        Hdd {
            arm: Arm::new(&config, &geometry),
            controller: Station::default(),
            link: Station::default(),
            events: EventQueue::with_capacity(256),
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
            counts: HddCounts::default(),
            geometry,
            config,
        }
    }

    #[inline]
    fn due(&mut self, at: Time, event: HddEvent, slot: u32) {
        self.events.push(at, event as u32 | slot << 3);
    }

    /// Returns the range of a command.
    #[inline]
    fn range(&self, slot: u32) -> (u64, u64) {
        let command = &self.inside[slot].command;
        (command.offset, command.end())
    }

    #[inline]
    fn explain(&mut self, slot: u32, part: Part, span: Span) {
        self.inside[slot].anatomy.add(part, span);
    }

    /// The drive accepts a command.
    fn take(&mut self, now: Time, slot: u32) {
        self.taken += 1;
        let delay = self.config.link.delay;
        let command = self.config.controller.command;
        let (waited, at) = self.controller.book(now, command);
        self.explain(slot, Part::Link, delay);
        self.explain(slot, Part::Controller, waited + command);
        self.due(at + delay, HddEvent::Arrived, slot);
    }

    /// The controller has decoded a command.
    fn arrived(&mut self, now: Time, slot: u32, done: &mut Vec<Completion>) {
        let HddCommand {
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
                self.due(at, HddEvent::Received, slot);
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
            HddEvent::Arrived => self.arrived(now, slot, done),
            HddEvent::Received => self.received(now, slot, done),
            HddEvent::Ready => self.ready(now, slot),
            HddEvent::Passed => {
                self.send(now, slot);
                self.use_head(now);
            }
            HddEvent::Finish => self.finish(now, slot, done),
            HddEvent::HeadDone => self.head_done(now, done),
            HddEvent::Wake => {
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
        let slot = self.inside.insert(HddCommand {
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
