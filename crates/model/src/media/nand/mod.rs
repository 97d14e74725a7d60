//! A NAND drive: controller, link, channels, dies, DRAM write buffer and flash translation layer (FTL).
//!
//! Processing of a command: it passes the controller (one server). A write's data crosses the link into the buffer, the
//! write is acknowledged, and multi-plane pages of buffered units are programmed on the next idle die. A read looks its
//! units up, queues at the dies, is sensed, and crosses the channel and the link. Each die collects garbage
//! independently.
//!
//! Data moves in three ways: to the host (`reader`), from the host to the medium (`buffer`), and on the medium by the
//! drive itself (`collector`). Each of these modules has its own state and does not use the others. They use a
//! [shared](Shared) state: the front end to the host (`front`); dies and channels (`array`); the locations of all data
//! ([`crate::ftl`]); and scheduled events. The drive dispatches events, and selects which of the three modules an idle
//! die works for. Initial states are in `start`.
//!
//! If there is memory for only a part of the map, reads first look it up on the medium (`map_memory`).
//!
//! Not modelled: parity dies; temperature; the map's own writes, except for a share of each write; and what each module
//! lists. Reasons for this structure: `docs/decisions/0010-nand-structure.md`, `0039-media-are-traits.md`,
//! `0040-steady-from-the-start.md` and `0041-firmware-costs.md`.

mod array;
mod buffer;
mod collector;
mod config;
mod events;
mod front;
mod gauges;
mod map_memory;
mod medium;
mod pace;
mod power;
mod reader;
mod start;
mod timeline;

#[cfg(test)]
pub(crate) mod tests;

pub use config::{
    Bursts, Collection, Housekeeping, MapConfig, NandConfig, NandController, NandPower,
    NandRefresh, NandTiming, Pace, ReadAhead, ReadCoreConfig, SlcCache, Suspend, WriteBuffer,
};

use alloc::vec::Vec;

use crate::command::{Command, Completion, Op};
use crate::device::{Capacity, Device, Gauges, Range};
use crate::ftl::{
    Die, Ftl, FtlGeometry, InitialLayout, Page, PrecomputedSlot, UNIT, Writer, brute_force,
};
use crate::media::{Precondition, Seeds};
use crate::random::Stream;
use crate::time::Time;

use array::{DieWork, NandArray, RegisterLoad, SenseId, first_refreshes};
use buffer::NandBuffer;
use collector::Collector;
use events::{Events, NandEvent};
use front::Front;
use map_memory::MapMemory;
use reader::Reader;
pub use start::WarmState;
use start::{CompletedWarmUp, NandStart};
use timeline::Cause;

/// State shared by reader, buffer and collector.
#[derive(Clone, Debug)]
struct Shared {
    ftl: Ftl,
    front: Front,
    array: NandArray,
    events: Events,
    /// For a drive that cannot hold its whole map in memory.
    map: Option<MapMemory>,
}

impl Shared {
    /// A sense arrives at its die.
    #[inline]
    fn queue_sense(&mut self, now: Time, id: SenseId) {
        self.array.queue(now, id, &self.ftl, &mut self.events);
    }
}

/// A NAND drive.
#[derive(Clone, Debug)]
pub struct Nand {
    config: NandConfig,
    shape: FtlGeometry,
    shared: Shared,
    reader: Reader,
    buffer: NandBuffer,
    collector: Collector,
    start: NandStart,
    /// Dies take pages of host data in turn; the next one is this.
    next_die: Die,
}

impl Nand {
    /// Creates a drive in this state.
    ///
    /// # Panics
    /// If the configuration is invalid; the catalogue checks it with [`NandConfig::check`].
    pub fn new(config: NandConfig, state: Precondition, seeds: impl Into<Seeds>) -> Nand {
        Nand::made_of(None, config, state, seeds.into())
    }

    fn made_of(used: Option<Nand>, config: NandConfig, state: Precondition, seeds: Seeds) -> Nand {
        let shape = config.shape();
        let watermark = config.collection.watermark;
        let steady = state == Precondition::Steady;
        let mut warmed = None;
        let mut tables = None;
        if let Some(used) = used {
            let same = used.shape == shape
                && used.config.collection.watermark == watermark
                && used.config.slc == config.slc;
            if same {
                warmed = used.start.warmed(seeds.warm);
            }
            tables = Some(used.shared.ftl);
        }
        let at_hand = warmed.as_ref().and_then(CompletedWarmUp::at_hand);
        let at_hand = at_hand.filter(|_| steady);
        let is_rewound = at_hand.is_some();
        let ftl = match (at_hand, tables) {
            (Some(saved), Some(used)) => used.rewind(saved),
            (_, used) => {
                let layout = match state {
                    Precondition::Fresh => None,
                    Precondition::Filled => Some(InitialLayout::filled(shape)),
                    Precondition::Steady => {
                        Some(InitialLayout::steady(shape, watermark.low, seeds.warm))
                    }
                };
                let ftl = match used {
                    None => Ftl::new(shape, watermark, layout),
                    Some(used) => used.reset(shape, watermark, layout),
                };
                with_slc(ftl, &config)
            }
        };
        let cold = steady.then_some(seeds.warm);
        let mut start = NandStart::new(&ftl, cold);
        start.remember(warmed, is_rewound);
        Nand::from_parts(config, ftl, start, seeds.run)
    }

    /// Creates a drive by actually writing it: everything sequentially, then `fills` times its capacity at random.
    /// Takes about half a microsecond per page written and per page moved.
    ///
    /// # Panics
    /// As [`Nand::new`].
    pub fn replayed(config: NandConfig, fills: f64, seed: u64) -> Nand {
        let mut ftl = Ftl::new(config.shape(), config.collection.watermark, None);
        let collecting = brute_force(&mut ftl, fills, seed);
        let ftl = with_slc(ftl, &config);
        let start = NandStart::overwritten(&ftl, seed);
        let mut nand = Nand::from_parts(config, ftl, start, seed);
        nand.collector.resume(&collecting);
        nand
    }

    fn from_parts(config: NandConfig, ftl: Ftl, start: NandStart, seed: u64) -> Nand {
        let shape = *ftl.shape();
        let untidy = ftl.free_blocks(Die(0)) < config.collection.background_free;
        let mut random = Stream::new(seed, "nand");
        let refreshes = first_refreshes(&config, &shape, &mut random);
        let buffer = NandBuffer::new(&config, &shape, &mut random);
        let map = MapMemory::new(&config, &shape, &ftl, seed);
        let mut nand = Nand {
            shape,
            shared: Shared {
                ftl,
                front: Front::new(&config, seed),
                array: NandArray::new(&config, &shape, &refreshes, random),
                events: Events::with_capacity(4 * shape.dies as usize),
                map,
            },
            reader: Reader::new(&config, &shape),
            buffer,
            collector: Collector::new(&config, &shape),
            start,
            next_die: Die(0),
            config,
        };
        nand.pace_writes();
        if untidy {
            nand.arm_timer(Time::ZERO);
        }
        nand
    }

    /// Returns the FTL, for inspection by tests.
    pub fn ftl(&self) -> &Ftl {
        &self.shared.ftl
    }

    /// Processes an event. Events of reads are compiled into [`Nand::advance`]; the others are called (decision 0120).
    #[inline(always)]
    fn event(&mut self, now: Time, event: NandEvent) {
        match event {
            NandEvent::DieDone(die) => self.die_done(now, die),
            NandEvent::Transferred(id) => self.transferred(now, id),
            other => self.other_event(now, other),
        }
    }

    /// The data of a sense has crossed the channel.
    #[inline(never)]
    fn transferred(&mut self, now: Time, id: SenseId) {
        self.reader.sense_done(now, id, &mut self.shared);
    }

    #[inline(never)]
    fn other_event(&mut self, now: Time, event: NandEvent) {
        let shared = &mut self.shared;
        match event {
            NandEvent::DieDone(_) | NandEvent::Transferred(_) => {
                debug_assert!(false, "not another")
            }
            NandEvent::Issue(id) => self.reader.issue(now, id, shared),
            NandEvent::ReadAhead => self.reader.take_turn(now, shared),
            NandEvent::Channel(channel) => {
                let events = &mut shared.events;
                if let Some(die) = shared.array.channel_due(now, channel, events) {
                    self.next_work(now, die);
                }
            }
            NandEvent::Moved(die) => self.next_work(now, die),
            NandEvent::TablesSaved => self.buffer.tables_saved(now, shared),
            NandEvent::IdleTimer => self.idle_timer(now),
        }
    }

    /// Passes on the output of the front end: to the reader, to the buffer, to the host.
    #[inline(always)]
    fn pass_on(&mut self, now: Time, done: &mut Vec<Completion>) {
        while let Some(segment) = self.shared.front.pop_read(now) {
            self.reader.segment_arrives(now, &segment, &mut self.shared);
        }
        while let Some(segment) = self.shared.front.pop_write(now) {
            let shared = &mut self.shared;
            if self.buffer.segment_arrives(now, segment, shared) {
                self.dispatch_pages(now);
            }
        }
        self.shared.front.answer(now, done);
        while let Some(command) = self.shared.front.next_held() {
            let refused = self.shared.front.is_rejected(command.id);
            self.start_command(now, &command, refused);
        }
    }

    /// Sends a command to the controller.
    #[inline]
    fn start_command(&mut self, now: Time, command: &Command, refused: bool) {
        let (front, ftl) = (&mut self.shared.front, &self.shared.ftl);
        if refused || !command.op.transfers() || command.bytes == 0 {
            front.dispatch_without_data(now, command.id);
        } else {
            // Writes are looked up when they enter the buffer, several at a time.
            let unit = u64::from(UNIT);
            let within = command.offset % unit + u64::from(command.bytes) <= unit;
            let foreseen = match command.op == Op::Read && within {
                true => ftl.foresee(Page((command.offset / unit) as u32)),
                false => PrecomputedSlot::NOTHING,
            };
            front.dispatch(now, command, foreseen);
        }
    }

    /// The work of a die may have ended.
    #[inline(always)]
    fn die_done(&mut self, now: Time, die: Die) {
        let shared = &mut self.shared;
        let Some(work) = shared.array.die_done(now, die, &mut shared.events) else {
            return;
        };
        match work {
            DieWork::Sense(_) => {}
            DieWork::Transfer(id) => self.reader.sense_done(now, id, shared),
            _ => return self.other_work_done(now, die, work),
        }
        self.next_work(now, die);
    }

    /// A die's work other than a host read has ended.
    #[inline(never)]
    fn other_work_done(&mut self, now: Time, die: Die, work: DieWork) {
        let shared = &mut self.shared;
        // Whether dies may be able to take pages of host data now that could not before.
        let mut dispatch = false;
        match work {
            DieWork::Program(slot) => {
                self.buffer.programmed(now, die, slot, shared);
                dispatch = true;
            }
            DieWork::CollectSense => self.collector.sensed(now, die, shared),
            DieWork::CollectProgram(slot) => {
                self.collector.programmed(die, slot, &mut shared.ftl);
                dispatch = true;
            }
            DieWork::Erase(block) => {
                shared.ftl.erased(block);
                dispatch = true;
                self.pace_writes();
            }
            DieWork::Begun => {
                let slots = self.collector.share_programmed(die, &self.config.timing);
                shared.ftl.copies_programmed(slots);
            }
            DieWork::Sense(_)
            | DieWork::Transfer(_)
            | DieWork::Load
            | DieWork::CollectTransfer
            | DieWork::Suspending
            | DieWork::Refresh
            | DieWork::Idle => {}
        }
        self.next_work(now, die);
        if dispatch {
            self.dispatch_pages(now);
        }
        self.turn(now);
    }

    /// Checks all dies, if a burst of garbage collection has begun or ended.
    #[inline]
    fn turn(&mut self, now: Time) {
        if self.collector.take_turn() {
            self.ask_all(now);
        }
    }

    #[cold]
    fn ask_all(&mut self, now: Time) {
        self.shared.array.forget_reads_only();
        for die in self.shape.every_die() {
            self.shared.array.ask_again(die);
            self.next_work(now, die);
        }
    }

    /// Starts the next work of a die that may be idle.
    #[inline(always)]
    fn next_work(&mut self, now: Time, die: Die) {
        if self.shared.array.works(die) {
            return;
        }
        // A die that only reads is not checked again (decision 0120); debug builds check it.
        if self.buffer.page_ready() || !self.shared.array.rests_again(die) {
            return self.begin_next_work(now, die);
        }
        debug_assert!(!self.collector.should_collect(die, &self.shared.ftl));
    }

    /// Starts the next work of an idle die: reads, then the host's page, then garbage collection.
    #[inline(never)]
    fn begin_next_work(&mut self, now: Time, die: Die) {
        let (reader, shared) = (&self.reader, &mut self.shared);
        let wanted = |id, sense: &_| reader.wants(id, sense);
        let (array, events) = (&mut shared.array, &mut shared.events);
        if array.start_waiting_reads(now, die, wanted, &shared.ftl, events) {
            return;
        }
        let waiting = self.buffer.waiting(now);
        let host =
            self.buffer.page_ready() && self.collector.may_program(die, waiting, &shared.ftl);
        let collects = self.collector.should_collect(die, &shared.ftl);
        if !host && collects && self.collector.collect(now, die, shared) {
            return;
        }
        shared.array.rest(die, !collects);
        if host {
            self.dispatch_pages(now);
        }
    }

    /// Programs pages of buffered units on idle dies, in turn.
    fn dispatch_pages(&mut self, now: Time) {
        while self.buffer.page_ready() {
            let Some(die) = self.die_to_program(now) else {
                self.collector.retry_starved(now, &mut self.shared);
                break;
            };
            self.program_page(now, die);
        }
        self.turn(now);
    }

    fn die_to_program(&mut self, now: Time) -> Option<Die> {
        let shared = &mut self.shared;
        let waiting = self.buffer.waiting(now);
        let mut from = self.next_die;
        let mut wrapped = false;
        loop {
            match shared.array.next_idle(from) {
                Some(die) if wrapped && die >= self.next_die => return None,
                Some(die) if self.collector.may_program(die, waiting, &shared.ftl) => {
                    return Some(die);
                }
                Some(die) => {
                    shared.array.pass_over(die);
                    from = Die(die.0 + 1);
                }
                None if wrapped => return None,
                None => {
                    wrapped = true;
                    from = Die(0);
                }
            }
        }
    }

    fn program_page(&mut self, now: Time, die: Die) {
        let shared = &mut self.shared;
        let writer = shared.ftl.host_writer(die);
        let page = writer.and_then(|writer| shared.ftl.take_page(die, writer));
        let (Some(writer), Some(slot)) = (writer, page) else {
            unreachable!("{die:?} may program and has no page");
        };
        self.collector.pay(die, &shared.ftl);
        let units = self.buffer.take_page(now, die, shared);
        let program = match (writer, &self.config.slc) {
            (Writer::Slc, Some(slc)) => slc.program_time(units, self.shape.page_slots),
            _ => shared.array.program_time(slot),
        };
        self.next_die = Die((die.0 + 1) % self.shape.dies);
        let loading = RegisterLoad {
            work: DieWork::Program(slot),
            cause: Cause::Program,
            program,
        };
        let (array, events) = (&mut shared.array, &mut shared.events);
        array.load(now, die, loading, units, events);
    }

    #[inline(never)]
    fn arm_timer(&mut self, now: Time) {
        // A volatile buffer is emptied when there is time.
        let buffered = !self.buffer.protected() && self.buffer.used() > 0;
        self.collector.arm_timer(now, buffered, &mut self.shared);
    }

    /// The drive may have been idle for long enough: a volatile buffer is emptied, and dies collect in the background.
    fn idle_timer(&mut self, now: Time) {
        if !self.collector.notices_idleness(now, &self.shared) {
            return;
        }
        let collects_ahead = self.collector.collects_ahead();
        if collects_ahead {
            self.warm();
            self.go_on_writing(now);
        }
        if !self.buffer.protected() {
            self.buffer.drain_all();
            self.dispatch_pages(now);
        }
        if collects_ahead {
            self.collector.begin_background();
            self.shared.array.forget_reads_only();
            for die in self.shape.every_die() {
                self.next_work(now, die);
            }
        }
    }
}

/// Lets the host write free blocks as pSLC, if the drive does that.
fn with_slc(ftl: Ftl, config: &NandConfig) -> Ftl {
    match &config.slc {
        Some(slc) => ftl.with_slc(slc.blocks_per_die, slc.bits, slc.folds),
        None => ftl,
    }
}

impl Device for Nand {
    fn capacity(&self) -> Capacity {
        self.shared.front.capacity()
    }

    fn submit(&mut self, now: Time, command: Command) {
        let changes = !matches!(command.op, Op::Read | Op::Flush);
        let read_only = changes && self.is_read_only();
        let refused = self.shared.front.accept(now, &command, read_only);
        self.collector.command_comes();
        if changes && !refused {
            self.warm();
            self.go_on_writing(now);
        }
        if !self.shared.front.holds(&command) {
            self.start_command(now, &command, refused);
        }
    }

    #[inline]
    fn next_event(&self) -> Time {
        self.shared.events.next().min(self.shared.front.next())
    }

    #[inline(always)]
    fn advance(&mut self, mut now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        loop {
            if let Some(event) = self.shared.events.pop_due(now) {
                self.event(now, event);
                continue;
            }
            if self.shared.front.next() == now {
                self.pass_on(now, done);
            }
            let mut next = self.next_event();
            debug_assert!(next >= now);
            if next > now {
                // The drive is not idle while a command is outstanding, which is nearly always the case.
                if self.shared.front.depth() == 0 {
                    self.arm_timer(now);
                    next = self.next_event();
                }
                if next >= horizon || !done.is_empty() {
                    return now;
                }
                now = next;
            }
        }
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        self.buffer.at_risk(&self.shared.ftl, ranges);
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.lose_power(now, lost)
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.report(now, gauges);
    }
}
