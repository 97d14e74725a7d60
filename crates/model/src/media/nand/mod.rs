//! A NAND drive: controller, link, channels, dies, DRAM write buffer and translation layer.
//!
//! The life of a command: the controller takes it (one server); a write's data come over the link into the buffer, it is
//! acknowledged, and multi-plane pages of buffered units are programmed on the next idle die. A read looks its units up,
//! queues at the dies, is sensed, crosses the channel and the link. Reads go before everything else at a die and suspend
//! programs and erases where the drive can. Each die collects garbage for itself (see [`crate::ftl`]).
//!
//! Stations are booked when something arrives at them, so a channel is never held for data that are not there yet;
//! pages to be programmed cross it in pieces that reads go between (`channel`).
//! The link inwards is booked from the controller: its only feed is that first-in-first-out server, so order is kept.
//!
//! Leaves out: the difference between sensing lower and upper pages beyond a uniform spread; loading a page while the
//! last one is programmed (ONFI's cache program); parity dies; temperature; map traffic to the medium.
//! Why it is built so: `docs/decisions/0004-preconditioned-map.md`, `0010-nand-structure.md`, `0014-nand-times.md`,
//! `0025-nand-channels.md`, `0041-what-collection-costs-firmware.md` and `0042-tables-behind-a-flush.md`; how it begins:
//! `start`.

mod ahead;
mod channel;
mod collect;
mod config;
mod die;
mod flush;
mod gauges;
mod medium;
mod read;
mod spare;
mod start;
mod write;

#[cfg(test)]
mod tests;

pub use config::{
    Collection, Controller, Housekeeping, NandConfig, Power, ReadAhead, Refresh, SlcCache, Suspend,
    Timing, WriteBuffer,
};

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::anatomy::Anatomy;
#[cfg(test)]
use crate::anatomy::Part;
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::device::{Capacity, Device, Gauges};
use crate::engine::{Station, Wheel};
use crate::ftl::{Ftl, Layout, Place, Shape, Traffic, UNIT, brute_force};
#[cfg(test)]
use crate::ftl::{Geometry, Watermark};
use crate::media::Precondition;
use crate::random::Stream;
use crate::time::{Span, Time};

use ahead::ReadCache;
use channel::{Channel, Rate};
use die::{Die, DieSet};
use gauges::Tally;
use read::SenseOp;
use spare::ReadQueue;
use start::{Warmed, go_on};
use write::Buffer;

/// No index.
const NONE: u32 = u32::MAX;

/// Kinds of event, in the upper bits of a [`Wheel`] payload.
const DIE_DONE: u32 = 0;
const TRANSFERRED: u32 = 1;
const TIMER: u32 = 2;
const ISSUE: u32 = 3;
const CHANNEL: u32 = 4;
const AHEAD: u32 = 5;
const MOVED: u32 = 6;
const SAVED: u32 = 7;
const KIND_SHIFT: u32 = 29;
const INDEX_MASK: u32 = (1 << KIND_SHIFT) - 1;

/// A command inside the drive.
#[derive(Clone, Copy, Debug)]
struct Inside {
    command: Command,
    submitted: Time,
    /// When its last part was admitted to the buffer; for writes that wait for the medium.
    admitted: Time,
    /// Pieces that have not finished.
    left: u32,
    anatomy: Anatomy,
}

/// A part of a command (at most the largest transfer) that the controller has dealt with.
#[derive(Clone, Copy, Debug)]
struct Segment {
    at: Time,
    id: CommandId,
    offset: u64,
    bytes: u32,
    /// When it left the controller.
    dispatched: Time,
}

/// A NAND drive.
#[derive(Clone, Debug)]
pub struct Nand {
    config: NandConfig,
    shape: Shape,
    ftl: Ftl,
    /// A warm-up of the steady state that is due before the first change to the map.
    cold: Option<u64>,
    /// What random writes before time zero have left over is due before the first change to the map.
    overwritten: Option<u64>,
    /// That of the drive this one is made of, if it is the same.
    warmed: Option<Warmed>,
    /// Counters of the translation layer when the run began, and what it had charged for collection.
    baseline: Traffic,
    charged_before: f64,
    controller: Station,
    /// The same for what is no read; it falls behind the controller by the firmware's pauses.
    taking: Station,
    link_in: Station,
    link_out: Station,
    /// The firmware's part in collection.
    mover: Station,
    channels: Vec<Channel>,
    dies: Vec<Die>,
    /// Of lower pages and of upper ones.
    program_times: [Span; 2],
    idle: DieSet,
    /// Dies that have reads waiting, work or a suspended operation are not idle; these could not collect although short.
    starved: DieSet,
    next_die: u32,
    events: Wheel,
    /// Read segments on their way to the dies, write segments to the buffer, and completions, each in order of time.
    reads: VecDeque<Segment>,
    writes: VecDeque<Segment>,
    read_done: VecDeque<(Time, CommandId)>,
    write_done: VecDeque<(Time, CommandId)>,
    /// By command id.
    inside: Vec<Option<Inside>>,
    depth: u32,
    ops: Vec<SenseOp>,
    free_op: u32,
    /// Places of the pages of the read segment at hand; kept for its memory.
    places: Vec<Place>,
    /// Senses that the read segment at hand has started.
    issued: u32,
    cache: Option<ReadCache>,
    /// Operations ahead for which the controller has had no time, and whether an event will look again.
    ahead: ReadQueue,
    ahead_due: bool,
    buffer: Buffer,
    last_command: Time,
    /// An idle timer is among the events.
    timer_set: bool,
    /// It has been noticed that the drive is idle.
    rests: bool,
    /// Dies collect ahead of need until the next command.
    background: bool,
    random: Stream,
    tally: Tally,
}

impl Nand {
    /// A drive in this state.
    ///
    /// # Panics
    /// If the configuration is impossible; the catalogue checks it with [`NandConfig::check`].
    pub fn new(config: NandConfig, state: Precondition, seed: u64) -> Nand {
        Nand::made_of(None, config, state, seed)
    }

    fn made_of(used: Option<Nand>, config: NandConfig, state: Precondition, seed: u64) -> Nand {
        let shape = match config.check() {
            Ok(shape) => shape,
            Err(wrong) => panic!("impossible NAND drive: {}", wrong.join("; ")),
        };
        let watermark = config.collection.watermark;
        let layout = match state {
            Precondition::Fresh => None,
            Precondition::Filled => Some(Layout::filled(shape)),
            Precondition::Steady => Some(Layout::steady(shape, watermark.low, seed)),
        };
        let (ftl, warmed) = match used {
            None => (Ftl::new(shape, watermark, layout), None),
            Some(used) => {
                let same = used.shape == shape
                    && used.config.collection.watermark == watermark
                    && used.config.slc == config.slc;
                let warmed = used.warmed.filter(|warmed| same && warmed.seed == seed);
                (used.ftl.anew(shape, watermark, layout), warmed)
            }
        };
        let cold = (state == Precondition::Steady).then_some(seed);
        let mut nand = Nand::with_ftl(config, ftl, cold, seed);
        nand.warmed = warmed;
        nand
    }

    /// A drive that has really been written: everything in order, then `fills` times its capacity at random. Takes
    /// about half a microsecond for each page written and each page moved.
    ///
    /// # Panics
    /// As [`Nand::new`].
    pub fn replayed(config: NandConfig, fills: f64, seed: u64) -> Nand {
        let shape = match config.check() {
            Ok(shape) => shape,
            Err(wrong) => panic!("impossible NAND drive: {}", wrong.join("; ")),
        };
        let mut ftl = Ftl::new(shape, config.collection.watermark, None);
        let collecting = brute_force(&mut ftl, fills, seed);
        let mut nand = Nand::with_ftl(config, ftl, None, seed);
        go_on(&mut nand.dies, &collecting);
        nand.overwritten = Some(seed);
        nand
    }

    fn with_ftl(config: NandConfig, mut ftl: Ftl, cold: Option<u64>, seed: u64) -> Nand {
        let shape = *ftl.shape();
        if let Some(slc) = &config.slc {
            ftl = ftl.with_slc(slc.blocks_per_die, slc.bits);
        }
        let untidy = ftl.free_blocks(0) < config.collection.background_free;
        let mut random = Stream::new(seed, "nand");
        let dies = (0..shape.dies)
            .map(|_| Die::new(&config, &shape, &mut random))
            .collect();
        let buffer = Buffer::new(&config, &mut random);
        let timing = &config.timing;
        let rate = Rate {
            command: timing.channel_command,
            ps_per_byte: timing.channel_ps_per_byte,
        };
        let mut nand = Nand {
            shape,
            cold,
            overwritten: cold,
            warmed: None,
            baseline: *ftl.traffic(),
            charged_before: ftl.charged(),
            ftl,
            controller: Station::default(),
            taking: Station::default(),
            link_in: Station::default(),
            link_out: Station::default(),
            mover: Station::default(),
            channels: vec![
                Channel::new(rate, shape.dies / shape.channels);
                shape.channels as usize
            ],
            dies,
            program_times: [-1.0, 1.0]
                .map(|sign| timing.program.scale(1.0 + sign * timing.program_spread)),
            idle: DieSet::full(shape.dies),
            starved: DieSet::empty(shape.dies),
            next_die: 0,
            events: Wheel::with_capacity(4 * shape.dies as usize),
            reads: VecDeque::with_capacity(256),
            writes: VecDeque::with_capacity(256),
            read_done: VecDeque::with_capacity(256),
            write_done: VecDeque::with_capacity(256),
            inside: Vec::new(),
            depth: 0,
            ops: Vec::with_capacity(1024),
            free_op: NONE,
            places: Vec::with_capacity(64),
            issued: 0,
            cache: config
                .read_ahead
                .as_ref()
                .map(|ahead| ReadCache::new(ahead, config.controller.max_transfer)),
            ahead: ReadQueue::EMPTY,
            ahead_due: false,
            buffer,
            last_command: Time::ZERO,
            timer_set: false,
            rests: false,
            background: false,
            random,
            tally: Tally::default(),
            config,
        };
        if untidy {
            nand.arm_timer(Time::ZERO);
        }
        nand
    }

    /// The translation layer, for inspection by tests.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    fn refused(&self, command: &Command) -> bool {
        let block = u64::from(self.config.block);
        command.op != Op::Flush
            && (command.end() > self.config.geometry.capacity
                || command.offset % block != 0
                || u64::from(command.bytes) % block != 0)
    }

    /// The controller takes a command.
    fn take(&mut self, now: Time, command: &Command) {
        if !command.op.transfers() || command.bytes == 0 || self.refused(command) {
            self.dispatch_other(now, command.id);
            return;
        }
        match command.op {
            Op::Read => self.tally.host_read += u64::from(command.bytes),
            _ => self.tally.host_written += u64::from(command.bytes),
        }
        self.tally.link_bytes += u64::from(command.bytes);
        self.ftl.touch((command.offset / u64::from(UNIT)) as u32);
        self.dispatch(now, command);
    }

    /// Books the controller for a command's parts and sends them on.
    fn dispatch(&mut self, now: Time, command: &Command) {
        let write = command.op == Op::Write;
        let link = self.config.controller.link_latency;
        let mut offset = command.offset;
        let mut pieces = 0;
        while offset < command.end() {
            // Parts end where the drive's largest transfer would end, as a driver would cut them.
            let bytes =
                (command.end() - offset).min(u64::from(self.config.controller.max_transfer));
            let units = units_touched(offset, bytes);
            let controller = &self.config.controller;
            let service = if write {
                controller.per_write + controller.per_write_unit * u64::from(units - 1)
            } else {
                controller.per_read
            };
            let (waits, mut leaves) = self.controller.book(now, service);
            if write {
                leaves = self.taking.book(now + waits, service).1;
            }
            let mut segment = Segment {
                at: leaves + link,
                id: command.id,
                offset,
                bytes: bytes as u32,
                dispatched: leaves + link,
            };
            if write {
                let transfer = Span::per_bytes(controller.link_ps_per_byte, bytes);
                let taken_in = controller.write_issue_interval * u64::from(units - 1);
                let dispatched = segment.at;
                let came = self.link_in.book(dispatched, transfer).1;
                segment.at = came.max(dispatched + taken_in);
                self.push_write(segment);
            } else {
                self.reads.push_back(segment);
            }
            offset += bytes;
            pieces += 1;
        }
        if let Some(inside) = &mut self.inside[command.id as usize] {
            inside.left = pieces;
        }
    }

    /// A command that moves no data: flush, deallocation, or a refusal. It reaches the buffer in its turn as a write
    /// segment without bytes.
    fn dispatch_other(&mut self, now: Time, id: CommandId) {
        let controller = &self.config.controller;
        let service = controller.per_write;
        let (waits, _) = self.controller.book(now, service);
        let leaves = self.taking.book(now + waits, service).1;
        let dispatched = leaves + controller.link_latency;
        let (_, at) = self.link_in.book(dispatched, Span::ZERO);
        self.push_write(Segment {
            at,
            id,
            offset: 0,
            bytes: 0,
            dispatched,
        });
    }

    /// Keeps the writes in order of time: a small one may pass a large one that is still being taken in.
    fn push_write(&mut self, segment: Segment) {
        let after = self.writes.iter().rposition(|one| one.at <= segment.at);
        self.writes.insert(after.map_or(0, |at| at + 1), segment);
    }

    fn event(&mut self, now: Time, payload: u32) {
        let index = payload & INDEX_MASK;
        match payload >> KIND_SHIFT {
            DIE_DONE => self.die_done(now, index),
            TRANSFERRED => self.transferred(now, index),
            TIMER => self.idle_timer(now),
            ISSUE => self.issue(now, index),
            AHEAD => self.ahead_turn(now),
            MOVED => self.next_work(now, index),
            SAVED => self.tables_saved(now),
            _ => self.channel_due(now, index),
        }
    }

    fn complete(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let Some(inside) = self.inside[id as usize].take() else {
            debug_assert!(false, "completion of {id}, which is not inside");
            return;
        };
        self.depth -= 1;
        let refused = self.refused(&inside.command);
        debug_assert_eq!(
            inside.anatomy.total(),
            now.since(inside.submitted),
            "parts of {:?}: {:?}",
            inside.command,
            inside.anatomy
        );
        done.push(Completion {
            id,
            at: now,
            status: if refused {
                Status::LbaOutOfRange
            } else {
                Status::Success
            },
            anatomy: inside.anatomy,
        });
    }
}

/// How many 4 KiB units a range touches.
#[inline]
fn units_touched(offset: u64, bytes: u64) -> u32 {
    let unit = u64::from(UNIT);
    ((offset + bytes).div_ceil(unit) - offset / unit) as u32
}

impl Device for Nand {
    fn capacity(&self) -> Capacity {
        Capacity {
            bytes: self.config.geometry.capacity,
            block: self.config.block,
        }
    }

    fn submit(&mut self, now: Time, command: Command) {
        let id = command.id as usize;
        if id >= self.inside.len() {
            self.inside.resize(id + 1, None);
        }
        debug_assert!(self.inside[id].is_none(), "id {id} is in use");
        self.inside[id] = Some(Inside {
            command,
            submitted: now,
            admitted: now,
            left: 1,
            anatomy: Anatomy::ZERO,
        });
        self.depth += 1;
        self.last_command = now;
        self.rests = false;
        self.background = false;
        if !matches!(command.op, Op::Read | Op::Flush) && !self.refused(&command) {
            self.warm();
            self.go_on_writing(now);
        }
        self.take(now, &command);
    }

    #[inline]
    fn next_event(&self) -> Time {
        let mut next = self.events.next();
        for segments in [&self.reads, &self.writes] {
            if let Some(segment) = segments.front() {
                next = next.min(segment.at);
            }
        }
        for done in [&self.read_done, &self.write_done] {
            if let Some(&(at, _)) = done.front() {
                next = next.min(at);
            }
        }
        next
    }

    fn advance(&mut self, mut now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        loop {
            while let Some(payload) = self.events.pop_due(now) {
                self.event(now, payload);
            }
            while let Some(segment) = self.reads.pop_front_if(|segment| segment.at == now) {
                self.read_arrives(now, &segment);
            }
            while let Some(segment) = self.writes.pop_front_if(|segment| segment.at == now) {
                self.write_arrives(now, &segment);
            }
            while let Some((_, id)) = self.read_done.pop_front_if(|&mut (at, _)| at == now) {
                self.complete(now, id, done);
            }
            while let Some((_, id)) = self.write_done.pop_front_if(|&mut (at, _)| at == now) {
                self.complete(now, id, done);
            }
            let next = self.next_event();
            debug_assert!(next >= now);
            if next > now {
                self.arm_timer(now);
                let next = self.next_event();
                if next >= horizon || !done.is_empty() {
                    return now;
                }
                now = next;
            }
        }
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.report(now, gauges);
    }
}
