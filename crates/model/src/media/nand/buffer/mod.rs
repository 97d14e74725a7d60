//! The DRAM write buffer: admission of writes, acknowledgement, and the pages of its units on their way to the dies.
//!
//! A write is acknowledged once all its units are in the buffer. Units leave the buffer when their page has been
//! programmed. With power-loss protection (PLP, capacitors), a flush costs nothing. Without it, a flush waits until
//! everything acknowledged before is on the medium, in partly filled pages if necessary, and so does a write with force
//! unit access. After that, a flush saves the tables that locate the data (`flush`).
//!
//! While firmware pauses to save its tables, it processes only reads; data transfers in progress continue. Queued
//! commands have not been examined when the pause ends, so a deep queue does not compensate for it.
//!
//! A drive whose map has one entry for several units of 4 KiB (its indirection unit) admits all of them for a write of
//! one. The units that the write does not cover are read from the medium and written again.
//!
//! Tables change with each write. Sequential writes change the same part many times before it is programmed; each
//! random write adds a share of a table unit, which occupies space in the next page.
//!
//! Not modelled: saving tables occupies dies. It is not modelled either that a merge must end before its unit is
//! programmed (it nearly always does, because it is queued first).

mod flush;

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::Shared;
use super::array::{Purpose, Sense};
use super::config::{Housekeeping, NandConfig};
use super::front::CommandSegment;
use super::timeline::Timeline;
use crate::command::{CommandId, Op};
use crate::device::Range;
use crate::ftl::{BufferSlot, Die, Ftl, FtlGeometry, Page, PageLocation, Slot, UNIT, Writer};
use crate::random::Stream;
use crate::time::{Span, Time};
use flush::Flushes;

/// Content of a slot of the buffer.
#[derive(Clone, Copy, Debug)]
struct BufferedUnit {
    /// Logical page; `None` for a unit left over from before the start that has no page yet.
    page: Option<Page>,
    /// The command that completes when this unit is on the medium.
    owner: Option<CommandId>,
    /// Number of flushes that came before this unit.
    epoch: u32,
    /// Whether it is being programmed.
    leaving: bool,
    /// Whether it is left over from before the start: no command of this run waits for it.
    left_over: bool,
}

impl BufferedUnit {
    const LEFT_OVER: BufferedUnit = BufferedUnit {
        page: None,
        owner: None,
        epoch: 0,
        leaving: false,
        left_over: true,
    };
}

/// A segment whose units wait for space.
#[derive(Clone, Copy, Debug)]
struct WaitingSegment {
    segment: CommandSegment,
    next: Page,
}

/// Number of sequential write streams that are distinguished.
const STREAMS: usize = 16;

/// Units that a die has taken to program, and when.
#[derive(Clone, Debug)]
struct ProgramBatch {
    units: Vec<BufferSlot>,
    since: Time,
}

/// Writes that wait for space in the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WaitingWrites {
    pub(super) number: u64,
    /// How long the oldest of them has waited.
    pub(super) longest: Span,
}

/// Counters of units, for gauges.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BufferCounts {
    /// Units admitted to the buffer, without those that were overwritten in place.
    pub(super) taken_in: u64,
    /// Additional units programmed: tables, and padding of pages.
    pub(super) padded: u64,
}

/// The DRAM write buffer.
#[derive(Clone, Debug)]
pub(super) struct NandBuffer {
    page_slots: u32,
    written: u32,
    /// Pages per indirection unit.
    together: u32,
    /// Whether capacitors preserve it in a power loss.
    protected: bool,
    merge_before_ack: bool,
    pauses: Option<Housekeeping>,
    slots: Vec<BufferedUnit>,
    free: Vec<BufferSlot>,
    /// Units that no die has taken yet, oldest first.
    pending: VecDeque<BufferSlot>,
    /// Units taken by each die.
    taken: Vec<ProgramBatch>,
    waiting: VecDeque<WaitingSegment>,
    flushes: Flushes,
    /// Number of units in `pending` that must be programmed even in a page that is not full.
    drain: u32,
    /// Table units per random write, and their sum since the last whole unit.
    tables_per_write: f64,
    tables: f64,
    /// Where the last writes ended, in bytes, and which of these is the oldest.
    ends: [u64; STREAMS],
    oldest: usize,
    /// Number of units until firmware pauses.
    until_pause: u64,
    random: Stream,
    /// Number of units in `pending` that are left over from before the start; and the stream that draws their pages.
    left_over: (u32, Stream),
    counts: BufferCounts,
}

impl NandBuffer {
    pub(super) fn new(config: &NandConfig, shape: &FtlGeometry, random: &mut Stream) -> NandBuffer {
        let slots = (config.buffer.bytes / u64::from(UNIT)) as u32;
        let pauses = config.housekeeping.as_ref();
        let taken = ProgramBatch {
            units: Vec::with_capacity(shape.page_slots as usize),
            since: Time::ZERO,
        };
        NandBuffer {
            page_slots: shape.page_slots,
            written: shape.written,
            together: shape.together,
            protected: config.buffer.protected,
            merge_before_ack: config.controller.merge_before_ack,
            pauses: config.housekeeping.clone(),
            slots: vec![BufferedUnit::LEFT_OVER; slots as usize],
            free: (0..slots).rev().map(BufferSlot).collect(),
            pending: VecDeque::with_capacity(slots as usize),
            taken: vec![taken; shape.dies as usize],
            waiting: VecDeque::with_capacity(256),
            flushes: Flushes::new(&config.buffer),
            drain: 0,
            tables_per_write: config.buffer.tables_per_write,
            tables: 0.0,
            ends: [u64::MAX; STREAMS],
            oldest: 0,
            until_pause: pauses.map_or(u64::MAX, |pauses| {
                1 + random.uniform_below(pauses.every_units)
            }),
            random: Stream::new(random.bits(), "housekeeping"),
            left_over: (0, Stream::new(0, "none left over")),
            counts: BufferCounts::default(),
        }
    }

    /// Returns the number of slots.
    pub(super) fn units(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Returns the number of slots in use.
    #[inline]
    pub(super) fn used(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Appends the data that a power loss would lose: units of this run whose newest data is here, if the buffer is not
    /// protected.
    pub(super) fn at_risk(&self, ftl: &Ftl, ranges: &mut Vec<Range>) {
        if self.protected {
            return;
        }
        let unit = u64::from(UNIT);
        for (slot, buffered) in (0..).map(BufferSlot).zip(&self.slots) {
            if let Some(page) = buffered.page
                && !buffered.left_over
                && ftl.locate(page) == PageLocation::Buffer(slot)
            {
                ranges.push(Range {
                    offset: u64::from(page.0) * unit,
                    bytes: unit,
                });
            }
        }
    }

    /// Returns the writes that wait for space now.
    #[inline]
    pub(super) fn waiting(&self, now: Time) -> WaitingWrites {
        let oldest = self.waiting.front();
        WaitingWrites {
            number: self.waiting.len() as u64,
            longest: oldest.map_or(Span::ZERO, |waiting| now - waiting.segment.at),
        }
    }

    pub(super) fn protected(&self) -> bool {
        self.protected
    }

    pub(super) fn counts(&self) -> BufferCounts {
        self.counts
    }

    /// Whether there is a page to program.
    #[inline]
    pub(super) fn page_ready(&self) -> bool {
        let full = self.pending.len() >= self.host_units() as usize;
        full || (self.drain > 0 && !self.pending.is_empty())
    }

    /// Returns the units of host data in the next page: tables occupy a part of it.
    #[inline]
    fn host_units(&self) -> u32 {
        self.page_slots - (self.tables as u32).min(self.page_slots - 1)
    }

    /// All pending units must be programmed, in partly filled pages if necessary.
    pub(super) fn drain_all(&mut self) {
        self.drain = self.pending.len() as u32;
    }

    // Units left over from before the start.

    /// Adds `units` units of writes from before the start, if they fit; their pages are drawn from this stream.
    pub(super) fn leave_over(&mut self, units: u64, random: Stream) {
        let held = (self.free.len() as u64).min(units) as u32;
        for _ in 0..held {
            self.pending.extend(self.free.pop());
        }
        self.left_over = (held, random);
    }

    /// Draws the page of a left-over unit that a die takes now.
    #[inline]
    fn name_left_over(&mut self, held: BufferSlot, shared: &mut Shared) {
        let buffered = &mut self.slots[held.index()];
        if buffered.page.is_some() {
            return;
        }
        let (units, random) = &mut self.left_over;
        *units -= 1;
        let page = Page(random.uniform_below(u64::from(self.written)) as u32);
        buffered.page = Some(page);
        // Data that was written since is newer.
        if !matches!(shared.ftl.locate(page), PageLocation::Buffer(_)) {
            shared.ftl.stage(page, held);
        }
    }

    /// Removes left-over units that no die has taken.
    fn drop_left_over(&mut self) {
        if self.left_over.0 == 0 {
            return;
        }
        self.left_over.0 = 0;
        let (slots, free) = (&self.slots, &mut self.free);
        self.pending.retain(|&held| {
            let stays = slots[held.index()].page.is_some();
            if !stays {
                free.push(held);
            }
            stays
        });
        self.drain = self.drain.min(self.pending.len() as u32);
    }

    // Incoming data.

    /// A write segment's data, or a command without data, reaches the buffer; returns whether there may be pages to
    /// program now.
    pub(super) fn segment_arrives(
        &mut self,
        now: Time,
        segment: CommandSegment,
        shared: &mut Shared,
    ) -> bool {
        if segment.bytes == 0 {
            return self.other_arrives(now, &segment, shared);
        }
        let next = self.pages_of(&segment).0;
        self.waiting.push_back(WaitingSegment { segment, next });
        let first = self.waiting.len() == 1;
        if first {
            self.admit(now, shared);
        }
        first
    }

    /// Processes a flush, a deallocation, or a rejected command.
    fn other_arrives(&mut self, now: Time, segment: &CommandSegment, shared: &mut Shared) -> bool {
        let command = *shared.front.command(segment.id);
        if !shared.front.refuses(&command) {
            match command.op {
                Op::Deallocate | Op::WriteZeroes => {
                    // Indirection units that are entirely in the range.
                    let whole = u64::from(self.together);
                    let unit = u64::from(UNIT) * whole;
                    let units = command.offset.div_ceil(unit)..command.end() / unit;
                    for page in units.start * whole..units.end.max(units.start) * whole {
                        shared.ftl.deallocate(Page(page as u32));
                    }
                }
                Op::Flush if !self.protected => {
                    self.drop_left_over();
                    self.admit(now, shared);
                    if self.flushes.any_work(self.used()) {
                        return self.flush(now, segment, shared);
                    }
                }
                _ => {}
            }
        }
        shared.front.acknowledge(now, segment);
        false
    }

    fn flush(&mut self, now: Time, segment: &CommandSegment, shared: &mut Shared) -> bool {
        let used = self.used() as u32;
        let waits = self.flushes.begin(now, segment, used, shared);
        if waits {
            self.drain_all();
        }
        waits
    }

    /// Returns the first page and the last page that a segment writes: those of whole indirection units.
    #[inline]
    fn pages_of(&self, segment: &CommandSegment) -> (Page, Page) {
        let (first, last) = segment.pages();
        if self.together == 1 {
            return (first, last);
        }
        let beyond = last.0 % self.together;
        (
            Page(first.0 - first.0 % self.together),
            Page(last.0 - beyond + self.together - 1),
        )
    }

    /// Admits waiting units to the buffer while there is space.
    fn admit(&mut self, now: Time, shared: &mut Shared) {
        let enter = self.waiting.iter().take(self.free.len());
        shared.ftl.touch_each(enter.map(|waiting| waiting.next));
        while let Some(&waiting) = self.waiting.front() {
            let segment = waiting.segment;
            let unit = u64::from(UNIT);
            let last = self.pages_of(&segment).1;
            let mut page = waiting.next;
            while page <= last {
                let Some(slot) = self.free.pop() else {
                    self.waiting[0].next = page;
                    return;
                };
                let begins = u64::from(page.0) * unit;
                // Pages that are written only because of their indirection unit contain only old data.
                let partial = begins < segment.offset || begins + unit > segment.end();
                self.take_in(now, &segment, page, partial, slot, shared);
                page = page.plus(1);
            }
            self.waiting.pop_front();
            self.admitted(now, &segment, shared);
        }
    }

    /// Whether a command completes only when its data is on the medium.
    #[inline]
    fn writes_through(&self, id: CommandId, shared: &Shared) -> bool {
        !self.protected && shared.front.command(id).fua
    }

    /// Admits a unit to this free slot of the buffer.
    #[inline]
    fn take_in(
        &mut self,
        now: Time,
        segment: &CommandSegment,
        page: Page,
        partial: bool,
        slot: BufferSlot,
        shared: &mut Shared,
    ) {
        let through = self.writes_through(segment.id, shared);
        let old = shared.ftl.stage(page, slot);
        if let PageLocation::Buffer(held) = old {
            let unit = &self.slots[held.index()];
            if !through && unit.owner.is_none() && !unit.leaving {
                // Overwritten in place. It counts as written before the flushes that wait for it: they no longer wait.
                shared.ftl.stage(page, held);
                self.free.push(slot);
                self.count_to_pause(now, shared);
                return;
            }
        }
        self.slots[slot.index()] = BufferedUnit {
            page: Some(page),
            owner: through.then_some(segment.id),
            epoch: self.flushes.epoch(),
            leaving: false,
            left_over: false,
        };
        self.pending.push_back(slot);
        self.counts.taken_in += 1;
        shared.ftl.charge();
        if let Some(map) = &mut shared.map {
            map.wrote(page);
        }
        self.flushes.tables_change(now);
        if through {
            shared.front.add_piece(segment.id);
        }
        if let (true, PageLocation::Flash(from)) = (partial, old) {
            let waits = self.merge_before_ack && !through;
            merge(now, segment, from, waits, shared);
        }
        self.count_to_pause(now, shared);
    }

    #[inline]
    fn count_to_pause(&mut self, now: Time, shared: &mut Shared) {
        self.until_pause -= 1;
        if self.until_pause > 0 {
            return;
        }
        let Some(pauses) = &self.pauses else {
            self.until_pause = u64::MAX;
            return;
        };
        self.until_pause = pauses.every_units;
        let length = self.random.exponential(pauses.mean) + Span::from_ns(1);
        shared.front.pause(now, length);
    }

    /// A write that does not continue one of the last writes changes a separate part of the tables.
    fn book_tables(&mut self, segment: &CommandSegment) {
        if self.tables_per_write == 0.0 {
            return;
        }
        let begins = segment.offset;
        match self.ends.iter().position(|&end| end == begins) {
            Some(stream) => self.ends[stream] = segment.end(),
            None => {
                self.tables += self.tables_per_write;
                self.ends[self.oldest] = segment.end();
                self.oldest = (self.oldest + 1) % STREAMS;
            }
        }
    }

    /// All units of a segment are in the buffer.
    fn admitted(&mut self, now: Time, segment: &CommandSegment, shared: &mut Shared) {
        self.book_tables(segment);
        let last = shared.front.piece_done(segment.id);
        if self.writes_through(segment.id, shared) {
            shared.front.wait_for_medium(now, segment);
            self.drop_left_over();
            self.drain_all();
        } else if last {
            shared.front.acknowledge(now, segment);
        }
    }

    // Outgoing data.

    /// Gives a die the units that have waited longest, at most a page of them; returns how many.
    pub(super) fn take_page(&mut self, now: Time, die: Die, shared: &mut Shared) -> u32 {
        let room = self.host_units();
        self.tables -= f64::from(self.page_slots - room);
        let units = self.pending.len().min(room as usize);
        let taken = &mut self.taken[die.index()];
        debug_assert!(taken.units.is_empty(), "{die:?} programs a page already");
        for held in self.pending.drain(..units) {
            self.slots[held.index()].leaving = true;
            taken.units.push(held);
        }
        taken.since = now;
        if self.left_over.0 > 0 {
            for at in 0..units {
                self.name_left_over(self.taken[die.index()].units[at], shared);
            }
        }
        self.drain = self.drain.saturating_sub(units as u32);
        units as u32
    }

    /// The page of host data that a die has programmed at `base` is on the medium.
    pub(super) fn programmed(&mut self, now: Time, die: Die, base: Slot, shared: &mut Shared) {
        let since = self.taken[die.index()].since;
        let mut units = core::mem::take(&mut self.taken[die.index()].units);
        let pages = units
            .iter()
            .filter_map(|held| self.slots[held.index()].page);
        shared.ftl.touch_each(pages);
        let mut slot = base;
        for &held in &units {
            let unit = self.slots[held.index()];
            let Some(page) = unit.page else {
                unreachable!("{held:?} was programmed without a page");
            };
            shared.ftl.settle(page, held, slot);
            slot = slot.plus(1);
            self.free.push(held);
            if let Some(id) = unit.owner
                && shared.front.unit_durable(now, id, since)
            {
                self.flushes.write_through(now, id, shared);
            }
            self.flushes.unit_programmed(now, unit.epoch, shared);
        }
        units.clear();
        self.taken[die.index()].units = units;
        for padded in (slot.0..base.0 + self.page_slots).map(Slot) {
            shared.ftl.pad(padded, Writer::Host);
            self.counts.padded += 1;
        }
        shared.ftl.page_programmed(base);
        self.admit(now, shared);
    }

    /// The tables are on the medium.
    pub(super) fn tables_saved(&mut self, now: Time, shared: &mut Shared) {
        self.flushes.tables_saved(now, shared);
    }
}

/// Reads the old content of a unit that a write covers partly. If `waits`, the command waits for it.
fn merge(now: Time, segment: &CommandSegment, from: Slot, waits: bool, shared: &mut Shared) {
    let purpose = if waits {
        shared.front.add_piece(segment.id);
        Purpose::Merge(segment.id)
    } else {
        Purpose::MergeLater
    };
    let times = Timeline::new(segment, now);
    let sense = Sense::new(purpose, from, 1, 0, times);
    let id = shared.array.add_sense(sense);
    shared.queue_sense(now, id);
}

#[cfg(test)]
mod tests;
