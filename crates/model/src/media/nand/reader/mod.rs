//! Reads: looking units up, the senses that return them, and read-ahead of sequential streams.
//!
//! Units of one command in one multi-plane page are one sense. A unit that is in the write buffer or unmapped does not
//! need the medium. A drive with read-ahead keeps the units of its last streams in DRAM, in whole NAND pages at a time
//! if the data was written sequentially (`cache`).
//!
//! Read-ahead without a waiting command has the lowest priority. It uses the controller when no command needs it, and a
//! die when no read waits there and no operation is interrupted; it never interrupts an operation. Once a command waits
//! for it, it is like any other read. Units whose entry in the cache was taken by younger streams are no longer read.
//! If the number of waiting units equals the size of the cache, none are added. On the channel, read-ahead is in order
//! with other reads.
//!
//! If the drive has memory for only a part of its map, a read first waits until its part is available (`map_memory`).
//!
//! Not modelled: the priorities of reads in real firmware, which no manufacturer publishes.

mod cache;

use alloc::vec::Vec;
use core::hint::cold_path;

use super::Shared;
use super::array::{Purpose, Sense, SenseId, SenseQueue, Spare};
use super::config::NandConfig;
use super::events::NandEvent;
use super::front::CommandSegment;
use super::map_memory::{MapMemory, MapPage, MapPageLocation};
use super::timeline::Timeline;
use crate::command::CommandId;
use crate::engine::Slab;
use crate::ftl::{FtlGeometry, Page, PageLocation, Slot, UNIT};
use crate::time::{Span, Time};
use cache::{CacheLookup, ReadAheadCache};

/// A command that waits for data being read.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    id: CommandId,
    bytes: u32,
    dispatched: Time,
    looked_up: Span,
    arrived: Time,
    /// The next one that waits for the same sense.
    next: Option<u32>,
}

/// A segment that waits for a page of the map.
#[derive(Clone, Copy, Debug)]
struct MapWaiter {
    segment: CommandSegment,
    since: Time,
    /// The next one that waits for the same page.
    next: Option<u32>,
}

/// Consecutive slots of one page that a command or stream wants.
#[derive(Clone, Copy, Debug)]
struct SlotRun {
    purpose: Purpose,
    first: Slot,
    units: u32,
    host_bytes: u32,
}

/// Data that a segment wants, as far as it has been looked up.
#[derive(Clone, Copy, Debug, Default)]
struct SegmentLookup {
    /// Slots to be sensed.
    run: Option<SlotRun>,
    /// Bytes that need no sense.
    ready: u32,
    /// Whether any of the data has been read ahead.
    cached: bool,
}

/// State of reads and read-ahead.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    page_slots: u32,
    logical: u32,
    issue_interval: Span,
    cache: Option<ReadAheadCache>,
    waiters: Slab<Waiter>,
    parked: Slab<MapWaiter>,
    /// Read-ahead senses for which the controller has had no time, and whether an event will check again.
    put_off: SenseQueue,
    turn_due: bool,
    /// Locations of the pages of the current segment; kept to reuse its memory.
    places: Vec<PageLocation>,
    /// Number of senses that the current segment has started.
    issued: u32,
}

impl Reader {
    pub(super) fn new(config: &NandConfig, shape: &FtlGeometry) -> Reader {
        let controller = &config.controller;
        Reader {
            page_slots: shape.page_slots,
            logical: shape.logical,
            issue_interval: controller.issue_interval,
            cache: config
                .read_ahead
                .as_ref()
                .map(|ahead| ReadAheadCache::new(ahead, controller.max_transfer)),
            waiters: Slab::default(),
            parked: Slab::default(),
            put_off: SenseQueue::default(),
            turn_due: false,
            places: Vec::with_capacity(64),
            issued: 0,
        }
    }

    /// A read segment arrives at the FTL.
    #[inline(always)]
    pub(super) fn segment_arrives(
        &mut self,
        now: Time,
        segment: &CommandSegment,
        shared: &mut Shared,
    ) {
        if shared.map.is_some() && self.waits_for_map(now, segment, shared) {
            return;
        }
        let (first, last) = segment.pages();
        self.issued = 0;
        let mut wanted = SegmentLookup::default();
        if first == last {
            let place = shared.ftl.locate_foreseen(first, segment.foreseen);
            self.look_up(now, segment, (first, place), &mut wanted, shared);
        } else {
            self.look_up_each(now, segment, first, last, &mut wanted, shared);
        }
        let SegmentLookup { run, ready, cached } = wanted;
        if let Some(run) = run {
            self.sense_run(now, segment, &run, shared);
        }
        if ready > 0 {
            let times = Timeline::new(segment, now);
            shared.front.deliver(now, segment.id, ready, &times);
        } else {
            // The segment itself counted as a piece; its senses are pieces now.
            let last = shared.front.piece_done(segment.id);
            debug_assert!(!last, "a read that waits for nothing");
        }
        let Some(cache) = &mut self.cache else { return };
        if cached && self.issued == 0 {
            // All streams may have the maximum of read-ahead data.
            cache.book();
        }
        let front = &shared.front;
        let submitted = front.submitted(segment.id);
        let answered = |id, at| front.answered(id, at);
        let window = cache.follow(segment, submitted, self.page_slots, answered);
        let lags = shared.array.senses().units_put_off() >= cache.most_units();
        if let (Some((from, to)), false) = (window, lags) {
            cold_path();
            self.read_ahead(now, segment, from.0..to.0.min(self.logical), shared);
        }
    }

    /// Looks up all pages of a segment together, so that the look-ups need not wait for each other.
    #[inline(never)]
    fn look_up_each(
        &mut self,
        now: Time,
        segment: &CommandSegment,
        first: Page,
        last: Page,
        wanted: &mut SegmentLookup,
        shared: &mut Shared,
    ) {
        let mut places = core::mem::take(&mut self.places);
        let pages = last.0 - first.0 + 1;
        shared.ftl.locate_each(first, pages, &mut places);
        for (page, place) in (first.0..=last.0).map(Page).zip(&places) {
            self.look_up(now, segment, (page, *place), wanted, shared);
        }
        self.places = places;
    }

    /// Adds a page with known location to the data that a segment wants.
    #[inline(always)]
    fn look_up(
        &mut self,
        now: Time,
        segment: &CommandSegment,
        (page, place): (Page, PageLocation),
        wanted: &mut SegmentLookup,
        shared: &mut Shared,
    ) {
        let unit = u64::from(UNIT);
        let begins = u64::from(page.0) * unit;
        let from = segment.offset.max(begins);
        let host_bytes = (segment.end().min(begins + unit) - from) as u32;
        let PageLocation::Flash(slot) = place else {
            wanted.ready += host_bytes;
            return;
        };
        if let Some(cache) = &self.cache {
            match cache.find(page, slot) {
                CacheLookup::Ready => {
                    wanted.ready += host_bytes;
                    wanted.cached = true;
                    return;
                }
                CacheLookup::Coming(sense) => {
                    wanted.cached = true;
                    return self.await_ahead(now, sense, segment, host_bytes, shared);
                }
                CacheLookup::Nothing => {}
            }
        }
        let purpose = Purpose::Read(segment.id);
        let slot = (slot, host_bytes);
        wanted.run = Some(self.extend_run(now, segment, wanted.run, slot, purpose, shared));
    }

    /// Whether a segment must wait for its part of the map; it returns here when the first missing part is available.
    #[inline(never)]
    fn waits_for_map(&mut self, now: Time, segment: &CommandSegment, shared: &mut Shared) -> bool {
        let Some(map) = &mut shared.map else {
            return false;
        };
        let (first, last) = segment.pages();
        for page in (map.page_of(first).0..=map.page_of(last).0).map(MapPage) {
            let sense = match map.look_up(page) {
                MapPageLocation::None | MapPageLocation::Held(_) => continue,
                MapPageLocation::Coming(sense) => sense,
                MapPageLocation::Away => {
                    let slot = MapMemory::slot(page, shared.ftl.shape());
                    let leaves = shared.front.book_sense(now);
                    let mut times = Timeline::new(segment, now);
                    times.leave_controller(leaves);
                    let sense = Sense::new(Purpose::Map(page), slot, 1, 0, times);
                    let id = shared.array.add_sense(sense);
                    map.comes(page, id);
                    if leaves == now {
                        shared.queue_sense(now, id);
                    } else {
                        shared.events.push(leaves, NandEvent::Issue(id));
                    }
                    id
                }
            };
            let first = &mut shared.array.senses()[sense].waiters;
            let parked = MapWaiter {
                segment: *segment,
                since: now,
                next: *first,
            };
            *first = Some(self.parked.insert(parked));
            return true;
        }
        false
    }

    /// A page of the map is available: segments that waited for it continue.
    #[inline(never)]
    fn map_came(&mut self, now: Time, page: MapPage, first: Option<u32>, shared: &mut Shared) {
        if let Some(map) = &mut shared.map {
            map.came(page);
        }
        let mut next = first;
        while let Some(at) = next {
            let parked = self.parked[at];
            self.parked.release(at);
            next = parked.next;
            let waited = now.since(parked.since);
            let mut segment = parked.segment;
            segment.at = now;
            segment.dispatched += waited;
            segment.looked_up += waited;
            self.segment_arrives(now, &segment, shared);
        }
    }

    /// Adds a slot to the run if it continues it within one page; otherwise senses the run and begins another.
    #[inline(always)]
    fn extend_run(
        &mut self,
        now: Time,
        segment: &CommandSegment,
        run: Option<SlotRun>,
        (slot, host_bytes): (Slot, u32),
        purpose: Purpose,
        shared: &mut Shared,
    ) -> SlotRun {
        if let Some(mut run) = run {
            if slot == run.first.plus(run.units) && slot.0 % self.page_slots != 0 {
                run.units += 1;
                run.host_bytes += host_bytes;
                return run;
            }
            self.sense_another(now, segment, &run, shared);
        }
        SlotRun {
            purpose,
            first: slot,
            units: 1,
            host_bytes,
        }
    }

    /// Creates a sense for a run and issues it.
    #[inline(always)]
    fn sense_run(
        &mut self,
        now: Time,
        segment: &CommandSegment,
        run: &SlotRun,
        shared: &mut Shared,
    ) {
        let times = Timeline::new(segment, now);
        let sense = Sense::new(run.purpose, run.first, run.units, run.host_bytes, times);
        let id = shared.array.add_sense(sense);
        // A sense's share of controller time was booked with a command: with its own, if it is the command's first, or
        // with one that found its data read ahead.
        let mut delay = self.issue_interval * u64::from(self.issued);
        if let Purpose::Ahead(first) = run.purpose {
            cold_path();
            if let Some(cache) = &mut self.cache {
                for unit in 0..run.units {
                    cache.expect(first.plus(unit), run.first.plus(unit), id);
                }
                shared.array.senses()[id].booked = cache.use_booked();
            }
        } else {
            shared.front.add_piece(segment.id);
            let leaves = match self.issued {
                0 => shared.front.book_core(now, segment),
                _ => shared.front.book_sense(now),
            };
            delay = delay.max(leaves.since(now));
        }
        self.issued += 1;
        if delay == Span::ZERO {
            self.issue(now, id, shared);
        } else {
            shared.array.senses()[id].times.delay(delay);
            shared.events.push(now + delay, NandEvent::Issue(id));
        }
    }

    /// Like `sense_run`, for one of several senses.
    #[inline(never)]
    fn sense_another(
        &mut self,
        now: Time,
        segment: &CommandSegment,
        run: &SlotRun,
        shared: &mut Shared,
    ) {
        self.sense_run(now, segment, run, shared);
    }

    /// A sense goes to its die; a read-ahead sense without a share of controller time goes to the controller.
    #[inline(always)]
    pub(super) fn issue(&mut self, now: Time, id: SenseId, shared: &mut Shared) {
        let sense = &shared.array.senses()[id];
        if sense.booked {
            return shared.queue_sense(now, id);
        }
        cold_path();
        if sense.for_nobody() {
            self.wait_for_controller(now, id, shared);
        } else {
            self.pass_controller(now, id, shared);
        }
    }

    /// A command wants a unit that is being read ahead. If that sense waits for spare time, it waits with the other
    /// reads from now.
    #[inline(never)]
    fn await_ahead(
        &mut self,
        now: Time,
        id: SenseId,
        segment: &CommandSegment,
        bytes: u32,
        shared: &mut Shared,
    ) {
        let sense = &mut shared.array.senses()[id];
        let waiter = self.waiters.insert(Waiter {
            id: segment.id,
            bytes,
            dispatched: segment.dispatched,
            looked_up: segment.looked_up,
            arrived: now,
            next: sense.waiters,
        });
        sense.waiters = Some(waiter);
        match shared.array.take_up(id) {
            Spare::UnderWay => {}
            Spare::Controller => {
                self.put_off.remove(shared.array.senses(), id);
                self.pass_controller(now, id, shared);
            }
            Spare::Die => shared.queue_sense(now, id),
        }
        shared.front.add_piece(segment.id);
    }

    #[inline(never)]
    fn read_ahead(
        &mut self,
        now: Time,
        segment: &CommandSegment,
        pages: core::ops::Range<u32>,
        shared: &mut Shared,
    ) {
        let mut run: Option<SlotRun> = None;
        for page in pages.map(Page) {
            let PageLocation::Flash(slot) = shared.ftl.locate(page) else {
                continue;
            };
            let cache = self.cache.as_ref();
            let known = cache.map(|cache| cache.find(page, slot));
            if !matches!(known, Some(CacheLookup::Nothing)) {
                if let Some(run) = run.take() {
                    self.sense_another(now, segment, &run, shared);
                }
                continue;
            }
            let purpose = Purpose::Ahead(page);
            run = Some(self.extend_run(now, segment, run, (slot, 0), purpose, shared));
        }
        if let Some(run) = run {
            self.sense_another(now, segment, &run, shared);
        }
    }

    /// A read-ahead sense waits until nothing else needs the controller.
    #[inline(never)]
    fn wait_for_controller(&mut self, now: Time, id: SenseId, shared: &mut Shared) {
        let senses = shared.array.senses();
        senses.put_off(id, Spare::Controller, &mut self.put_off);
        if !self.turn_due {
            self.take_turn(now, shared);
        }
    }

    /// The controller may be free for a read-ahead sense.
    pub(super) fn take_turn(&mut self, now: Time, shared: &mut Shared) {
        self.turn_due = false;
        if shared.front.controller_free_at() <= now {
            let mut waiting = self.put_off;
            let wanted = |id, sense: &Sense| self.wants(id, sense);
            let id = shared.array.senses().pop_wanted(&mut waiting, wanted);
            self.put_off = waiting;
            if let Some(id) = id {
                self.pass_controller(now, id, shared);
            }
        }
        if !self.put_off.is_empty() {
            self.turn_due = true;
            let free = shared.front.controller_free_at();
            let next = free.max(now + Span::from_ns(1));
            shared.events.push(next, NandEvent::ReadAhead);
        }
    }

    /// Books the controller for a read-ahead sense, which then goes to its die.
    #[inline(never)]
    fn pass_controller(&mut self, now: Time, id: SenseId, shared: &mut Shared) {
        let leaves = shared.front.book_sense(now);
        let sense = &mut shared.array.senses()[id];
        sense.booked = true;
        sense.times.leave_controller(leaves);
        if leaves == now {
            shared.queue_sense(now, id);
        } else {
            shared.events.push(leaves, NandEvent::Issue(id));
        }
    }

    /// Whether the cache still has an entry for the data of a read-ahead sense.
    #[inline]
    pub(super) fn wants(&self, id: SenseId, sense: &Sense) -> bool {
        let (Purpose::Ahead(first), Some(cache)) = (sense.purpose, &self.cache) else {
            return true;
        };
        (0..sense.units).any(|unit| cache.expects(first.plus(unit), id))
    }

    /// The data of a sense is in the controller: it goes to the host, or was wanted by a write or a stream.
    #[inline(always)]
    pub(super) fn sense_done(&mut self, now: Time, id: SenseId, shared: &mut Shared) {
        let sense = shared.array.end_sense(id);
        match sense.purpose {
            Purpose::Read(command) => {
                let front = &mut shared.front;
                front.deliver(now, command, sense.host_bytes, &sense.times);
            }
            Purpose::Merge(command) => shared.front.merged(now, command, &sense.times),
            Purpose::MergeLater => {}
            Purpose::Map(page) => {
                let first = sense.waiters;
                self.map_came(now, page, first, shared);
            }
            Purpose::Ahead(first) => {
                if let Some(cache) = &mut self.cache {
                    for unit in 0..sense.units {
                        cache.came(first.plus(unit), id);
                    }
                }
                let mut next = sense.waiters;
                while let Some(at) = next {
                    let waiter = self.waiters[at];
                    self.waiters.release(at);
                    next = waiter.next;
                    let times = sense.times.joined(
                        waiter.dispatched,
                        waiter.looked_up,
                        waiter.arrived,
                        now,
                    );
                    shared.front.deliver(now, waiter.id, waiter.bytes, &times);
                }
            }
        }
    }
}
