//! Writes: the DRAM buffer, acknowledgement, and pages of buffered units on their way to the dies.
//!
//! A write is acknowledged once all its units are in the buffer. Units leave it when the page they are in has been
//! programmed. With capacitors a flush costs nothing; without, it waits until everything acknowledged before is on the
//! medium, in half-full pages if need be, and so does a write with force unit access. Behind that a flush has the tables
//! saved in which the data are found; flushes that wait share the next save.
//!
//! While firmware pauses to save its tables it deals with no commands but reads; data that are on their way arrive.
//! Commands in the queue have not been looked at when the pause ends, so a deep queue does not make up for it.
//!
//! Leaves out: that saving tables keeps dies; tables after a write with force unit access; that a merge must end before its unit is programmed (it nearly always does, as it is queued first).

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::config::NandConfig;
use super::die::{Cause, Loading, Work};
use super::flush::PendingFlush;
use super::read::{SenseOp, add_sensing, add_way_down};
use super::{NONE, Nand, Segment};
use crate::anatomy::Part;
use crate::command::{CommandId, Op};
use crate::ftl::{Place, UNIT, Writer};
use crate::random::Stream;
use crate::time::{Span, Time};

/// In place of a page: a unit that was there at the start.
pub(super) const LEFT_OVER: u32 = NONE;

/// What a slot of the buffer holds.
#[derive(Clone, Copy, Debug)]
struct Buffered {
    page: u32,
    /// The command that completes when this is on the medium, or [`NONE`].
    owner: CommandId,
    /// Flushes that came before this unit.
    epoch: u32,
    /// Whether it is being programmed.
    leaving: bool,
}

/// A segment whose units wait for room.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    segment: Segment,
    next: u32,
}

/// The DRAM write buffer.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    slots: Vec<Buffered>,
    free: Vec<u32>,
    /// Units that no die has taken yet, oldest first.
    pending: VecDeque<u32>,
    waiting: VecDeque<Waiting>,
    pub(super) flushes: Vec<PendingFlush>,
    /// Flushes whose data are on the medium: those of the save under way, and those of the next one.
    pub(super) saving: Vec<PendingFlush>,
    pub(super) unsaved: Vec<PendingFlush>,
    /// Something has been written since tables were saved.
    pub(super) tables_changed: bool,
    epoch: u32,
    /// How many of `pending` must go even in a page that is not full.
    drain: u32,
    /// Units until firmware pauses.
    until_pause: u64,
    random: Stream,
    /// Of `pending`, how many were there at the start; draws their pages.
    left_over: (u32, Stream),
}

impl Buffer {
    pub(super) fn new(config: &NandConfig, random: &mut Stream) -> Buffer {
        let slots = (config.buffer.bytes / u64::from(UNIT)) as u32;
        let empty = Buffered {
            page: LEFT_OVER,
            owner: NONE,
            epoch: 0,
            leaving: false,
        };
        let pauses = config.housekeeping.as_ref();
        Buffer {
            slots: vec![empty; slots as usize],
            free: (0..slots).rev().collect(),
            pending: VecDeque::with_capacity(slots as usize),
            waiting: VecDeque::with_capacity(256),
            flushes: Vec::with_capacity(16),
            saving: Vec::with_capacity(16),
            unsaved: Vec::with_capacity(16),
            tables_changed: false,
            epoch: 0,
            drain: 0,
            until_pause: pauses.map_or(u64::MAX, |pauses| 1 + random.below(pauses.every_units)),
            random: Stream::new(random.bits(), "housekeeping"),
            left_over: (0, Stream::new(0, "none left over")),
        }
    }

    /// Slots.
    pub(super) fn units(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Holds so many units of writes before the start, if there is room; pages come from this stream.
    pub(super) fn leave_over(&mut self, units: u64, random: Stream) {
        let held = (self.free.len() as u64).min(units) as u32;
        for _ in 0..held {
            self.pending.extend(self.free.pop());
        }
        self.left_over = (held, random);
    }

    /// The page of a unit.
    #[inline]
    pub(super) fn page_of(&self, held: u32) -> u32 {
        self.slots[held as usize].page
    }

    /// Whether any unit waits that was there at the start.
    #[inline]
    fn any_left_over(&self) -> bool {
        self.left_over.0 > 0
    }

    /// Gives a unit that was left over a page.
    pub(super) fn draw_left_over(&mut self, held: u32, logical: u32) -> u32 {
        let (units, random) = &mut self.left_over;
        *units -= 1;
        let page = random.below(u64::from(logical)) as u32;
        self.slots[held as usize].page = page;
        page
    }

    /// Lets go of what was left over and no die has taken.
    fn drop_left_over(&mut self) {
        if self.left_over.0 == 0 {
            return;
        }
        self.left_over.0 = 0;
        let (slots, free) = (&self.slots, &mut self.free);
        self.pending.retain(|&held| {
            let stays = slots[held as usize].page != LEFT_OVER;
            if !stays {
                free.push(held);
            }
            stays
        });
        self.drain = self.drain.min(self.pending.len() as u32);
    }

    /// Slots in use.
    pub(super) fn used(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there is a page to program.
    #[inline]
    pub(super) fn page_ready(&self, page_slots: u32) -> bool {
        self.pending.len() >= page_slots as usize || (self.drain > 0 && !self.pending.is_empty())
    }

    /// Everything pending is to go out, in half-full pages if need be.
    pub(super) fn drain_all(&mut self) {
        self.drain = self.pending.len() as u32;
    }
}

impl Nand {
    /// A write segment's data, or a command without data, reach the buffer.
    pub(super) fn write_arrives(&mut self, now: Time, segment: &Segment) {
        if segment.bytes == 0 {
            self.other_arrives(now, segment);
            return;
        }
        let rate = self.config.controller.link_ps_per_byte;
        self.tally.link_in += Span::per_bytes(rate, u64::from(segment.bytes));
        self.buffer.waiting.push_back(Waiting {
            segment: *segment,
            next: (segment.offset / u64::from(UNIT)) as u32,
        });
        if self.buffer.waiting.len() == 1 {
            self.admit(now);
            self.dispatch_pages(now);
        }
    }

    fn other_arrives(&mut self, now: Time, segment: &Segment) {
        let Some(inside) = self.inside[segment.id as usize] else {
            return;
        };
        let command = inside.command;
        if !self.refused(&command) {
            match command.op {
                Op::Deallocate | Op::WriteZeroes => self.deallocate(command.offset, command.end()),
                Op::Flush if !self.config.buffer.protected => {
                    self.buffer.drop_left_over();
                    self.admit(now);
                    if self.to_be_flushed() {
                        self.flush(now, segment);
                        return;
                    }
                }
                _ => {}
            }
        }
        self.acknowledge(now, segment.id, (segment.dispatched, segment.at));
    }

    /// Forgets the units that lie wholly in the range.
    fn deallocate(&mut self, from: u64, to: u64) {
        let unit = u64::from(UNIT);
        for page in from.div_ceil(unit)..to / unit {
            self.ftl.deallocate(page as u32);
        }
    }

    fn to_be_flushed(&self) -> bool {
        let saves = self.config.buffer.save_tables > Span::ZERO;
        self.buffer.used() > 0 || (saves && self.buffer.tables_changed)
    }

    fn flush(&mut self, now: Time, segment: &Segment) {
        if let Some(inside) = &mut self.inside[segment.id as usize] {
            let way = (segment.dispatched, segment.at);
            add_way_down(&mut inside.anatomy, &self.config, inside.submitted, way);
        }
        let buffer = &mut self.buffer;
        let flush = PendingFlush {
            id: segment.id,
            epoch: buffer.epoch,
            left: buffer.used() as u32,
            since: now,
        };
        if flush.left == 0 {
            self.data_flushed(now, flush);
            return;
        }
        buffer.flushes.push(flush);
        buffer.epoch = buffer.epoch.wrapping_add(1);
        buffer.drain_all();
        self.dispatch_pages(now);
    }

    /// Lets waiting units into the buffer while there is room.
    pub(super) fn admit(&mut self, now: Time) {
        while let Some(&waiting) = self.buffer.waiting.front() {
            let segment = waiting.segment;
            let unit = u64::from(UNIT);
            let end = segment.offset + u64::from(segment.bytes);
            let last = ((end - 1) / unit) as u32;
            let mut page = waiting.next;
            while page <= last {
                if self.buffer.free.is_empty() {
                    self.buffer.waiting[0].next = page;
                    return;
                }
                let begins = u64::from(page) * unit;
                let partial = begins < segment.offset || begins + unit > end;
                self.buffer_unit(now, &segment, page, partial);
                page += 1;
            }
            self.buffer.waiting.pop_front();
            self.admitted(now, &waiting);
        }
    }

    #[inline]
    fn buffer_unit(&mut self, now: Time, segment: &Segment, page: u32, partial: bool) {
        let fua = !self.config.buffer.protected
            && self.inside[segment.id as usize].is_some_and(|inside| inside.command.fua);
        let Some(slot) = self.buffer.free.pop() else {
            return;
        };
        let old = self.ftl.stage(page, slot);
        if let Place::Buffer(held) = old {
            let held_unit = &self.buffer.slots[held as usize];
            if !fua && held_unit.owner == NONE && !held_unit.leaving {
                // Overwritten where it is. It counts as before the flushes that wait for it: they wait no longer.
                self.ftl.stage(page, held);
                self.buffer.free.push(slot);
                self.count_to_pause(now);
                return;
            }
        }
        self.buffer.slots[slot as usize] = Buffered {
            page,
            owner: if fua { segment.id } else { NONE },
            epoch: self.buffer.epoch,
            leaving: false,
        };
        self.buffer.pending.push_back(slot);
        self.tally.units_taken += 1;
        self.ftl.charge();
        self.buffer.tables_changed = true;
        if fua && let Some(inside) = &mut self.inside[segment.id as usize] {
            inside.left += 1;
        }
        if let (true, Place::Flash(held)) = (partial, old) {
            let owned = self.config.controller.merge_before_ack && !fua;
            self.read_for_merge(now, segment, held, owned);
        }
        self.count_to_pause(now);
    }

    #[inline]
    fn count_to_pause(&mut self, now: Time) {
        self.buffer.until_pause -= 1;
        if self.buffer.until_pause > 0 {
            return;
        }
        let Some(pauses) = &self.config.housekeeping else {
            self.buffer.until_pause = u64::MAX;
            return;
        };
        self.buffer.until_pause = pauses.every_units;
        let length = self.buffer.random.exponential(pauses.mean) + Span::from_ns(1);
        self.pause(now, length);
    }

    /// The firmware saves its tables: what has not left the controller waits, and so does what comes.
    fn pause(&mut self, now: Time, length: Span) {
        self.taking.stop(now, length);
        self.link_in.stop(now, length);
        let left = now + self.config.controller.link_latency;
        for segment in &mut self.writes {
            if segment.dispatched > left {
                segment.dispatched += length;
                segment.at += length;
            }
        }
        // A large one that has left may now come before small ones that would have passed it.
        let writes = self.writes.make_contiguous();
        writes.sort_by_key(|segment| segment.at);
    }

    /// All units of a segment are in the buffer.
    fn admitted(&mut self, now: Time, waiting: &Waiting) {
        let segment = &waiting.segment;
        let Some(inside) = &mut self.inside[segment.id as usize] else {
            return;
        };
        inside.left -= 1;
        let fua = inside.command.fua && !self.config.buffer.protected;
        let way = (segment.dispatched, segment.at);
        if fua {
            // The last segment's way down explains the time until here; the medium's part comes later.
            inside.admitted = now;
            inside.anatomy = crate::anatomy::Anatomy::ZERO;
            add_way_down(&mut inside.anatomy, &self.config, inside.submitted, way);
            inside.anatomy.add(Part::BufferFull, now.since(segment.at));
            self.buffer.drop_left_over();
            self.buffer.drain_all();
        } else if inside.left == 0 {
            self.acknowledge(now, segment.id, way);
        }
    }

    /// Completes a command whose last step was to be let into the buffer.
    fn acknowledge(&mut self, now: Time, id: CommandId, way: (Time, Time)) {
        let Some(inside) = &mut self.inside[id as usize] else {
            return;
        };
        add_way_down(&mut inside.anatomy, &self.config, inside.submitted, way);
        inside.anatomy.add(Part::BufferFull, now.since(way.1));
        self.finish_write(now, id);
    }

    pub(super) fn finish_write(&mut self, now: Time, id: CommandId) {
        let latency = self.config.controller.write_latency;
        if let Some(inside) = &mut self.inside[id as usize] {
            inside.anatomy.add(Part::Controller, latency);
        }
        self.write_done.push_back((now + latency, id));
    }

    /// The old contents of a partly written unit are there.
    pub(super) fn merged(&mut self, now: Time, id: CommandId, op: &SenseOp) {
        let Some(inside) = &mut self.inside[id as usize] else {
            return;
        };
        inside.left -= 1;
        if inside.left > 0 {
            return;
        }
        // The unit waited for room from its arrival at the buffer until the sense was queued.
        let (dispatched, entered, arrived) = op.way_down();
        let way = (dispatched, entered);
        add_way_down(&mut inside.anatomy, &self.config, inside.submitted, way);
        inside.anatomy.add(Part::BufferFull, arrived.since(entered));
        add_sensing(&mut inside.anatomy, op, now);
        self.finish_write(now, id);
    }

    /// Programs pages of buffered units on idle dies, in turn.
    pub(super) fn dispatch_pages(&mut self, now: Time) {
        while self.buffer.page_ready(self.shape.page_slots) {
            match self.die_to_program() {
                Some(die) => self.program_page(now, die),
                None => {
                    if !self.retry_starved(now) {
                        return;
                    }
                }
            }
        }
    }

    fn die_to_program(&self) -> Option<u32> {
        let mut from = self.next_die;
        let mut wrapped = false;
        loop {
            match self.idle.next(from) {
                Some(die) if wrapped && die >= self.next_die => return None,
                Some(die) if self.may_program(die) => return Some(die),
                Some(die) => from = die + 1,
                None if wrapped => return None,
                None => {
                    wrapped = true;
                    from = 0;
                }
            }
        }
    }

    /// Lets dies that found no victim look again; true if one went to work.
    fn retry_starved(&mut self, now: Time) -> bool {
        let mut from = 0;
        while let Some(die) = self.starved.next(from) {
            from = die + 1;
            self.starved.remove(die);
            if self.dies[die as usize].vacant() {
                self.idle.remove(die);
                if self.collect(now, die) {
                    continue;
                }
                self.idle.insert(die);
            }
        }
        false
    }

    /// How long the page at this slot takes to be programmed with all the bits of its cells.
    pub(super) fn program_time(&self, slot: u32) -> Span {
        let page = slot % self.shape.block_slots / self.shape.page_slots;
        self.program_times[page as usize % 2]
    }

    fn program_page(&mut self, now: Time, die: u32) {
        let (slc, ordinary) = (Writer::Slc, Writer::Host);
        let writer = if self.ftl.has_page(die, slc) {
            slc
        } else {
            ordinary
        };
        let Some(slot) = self.ftl.take_page(die, writer) else {
            debug_assert!(false, "no page for the host on die {die}");
            return;
        };
        let program = match (writer, &self.config.slc) {
            (Writer::Slc, Some(slc)) => slc.program,
            _ => self.program_time(slot),
        };
        if self.ftl.wants_collection(die) {
            self.dies[die as usize].collecting.budget -= self.page_price();
        }
        let units = self.take_units(now, die);
        self.next_die = (die + 1) % self.shape.dies;
        let loading = Loading {
            work: Work::Program(slot),
            cause: Cause::Program,
            program,
        };
        self.load(now, die, loading, units as u32);
    }

    /// Gives a die the units that have waited longest, a page of them if there are so many; returns how many.
    pub(super) fn take_units(&mut self, now: Time, die: u32) -> usize {
        let page_slots = self.shape.page_slots as usize;
        let units = self.buffer.pending.len().min(page_slots);
        let state = &mut self.dies[die as usize];
        for held in self.buffer.pending.drain(..units) {
            self.buffer.slots[held as usize].leaving = true;
            state.page.push(held);
        }
        state.page_since = now;
        if self.buffer.any_left_over() {
            for at in 0..units {
                self.name_left_over(self.dies[die as usize].page[at]);
            }
        }
        self.buffer.drain = self.buffer.drain.saturating_sub(units as u32);
        units
    }

    /// A page of host data is on the medium.
    pub(super) fn programmed(&mut self, now: Time, die: u32, base: u32) {
        let mut page = core::mem::take(&mut self.dies[die as usize].page);
        let since = self.dies[die as usize].page_since;
        let mut slot = base;
        for &held in &page {
            let unit = self.buffer.slots[held as usize];
            self.ftl.settle(unit.page, held, slot);
            slot += 1;
            self.buffer.free.push(held);
            if unit.owner != NONE {
                self.unit_durable(now, unit.owner, since);
            }
            if !self.buffer.flushes.is_empty() {
                self.flushed(now, unit.epoch);
            }
        }
        page.clear();
        self.dies[die as usize].page = page;
        for padded in slot..base + self.shape.page_slots {
            self.ftl.pad(padded, Writer::Host);
            self.tally.units_padded += 1;
        }
        self.ftl.page_programmed(base);
        self.admit(now);
    }

    /// A unit of a write with force unit access is on the medium.
    fn unit_durable(&mut self, now: Time, id: CommandId, since: Time) {
        let Some(inside) = &mut self.inside[id as usize] else {
            return;
        };
        inside.left -= 1;
        if inside.left > 0 {
            return;
        }
        let began = since.max(inside.admitted);
        inside
            .anatomy
            .add(Part::BehindProgram, began.since(inside.admitted));
        inside.anatomy.add(Part::Medium, now.since(began));
        self.finish_write(now, id);
    }
}
