//! The NAND array: dies, their channels, and the senses that are requested of them.
//!
//! Reads have priority over all other work of a die, and suspend programs and erases if the drive supports that. Units
//! of one page come from one sense if their reads wait at the same time; a die that becomes idle releases its register.
//! Between controller and die, pages share the channel with the data of reads (`channel`).
//!
//! The work that a die starts when it has no reads is not selected here: [`NandArray::start_waiting_reads`] reports when a die has time
//! for it.
//!
//! Not modelled: loading a page while the previous one is programmed (ONFI's cache program).

pub(super) mod channel;
mod die;
mod durations;
mod resting;
pub(super) mod senses;

use alloc::vec;
use alloc::vec::Vec;
use core::hint::cold_path;

use channel::ChannelId;
pub(super) use channel::TransferDirection;
pub(super) use die::{DieSet, DieWork, RegisterLoad};
pub(super) use senses::{Purpose, Sense, SenseId, SenseQueue, Senses, Spare};

use super::config::{NandConfig, NandRefresh, NandTiming};
use super::events::{Events, NandEvent};
use super::timeline::Cause;
use crate::ftl::{Block, Die, Divisors, Ftl, FtlGeometry, Slot, UNIT};
use crate::random::Stream;
use crate::time::{Span, Time};
use channel::{Channel, ChannelResult, ChannelTiming};
use die::{DieState, SuspendedOperation};
use durations::Durations;
use resting::IdleDies;

/// Counters of die operations, for gauges.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArrayCounts {
    /// Pages sensed.
    pub(super) senses: u64,
    /// Pages programmed.
    pub(super) programs: u64,
    /// Bytes read from the medium.
    pub(super) bytes_read: u64,
}

/// Dies and channels.
#[derive(Clone, Debug)]
pub(super) struct NandArray {
    shape: FtlGeometry,
    by: Divisors,
    timing: NandTiming,
    durations: Durations,
    refresh: Option<NandRefresh>,
    /// Whether reads of the page in a die's register go first: if the first fill is striped in parts of pages, units
    /// of one page belong to many commands.
    page_first: bool,
    channels: Vec<Channel>,
    dies: Vec<DieState>,
    resting: IdleDies,
    senses: Senses,
    counts: ArrayCounts,
}

/// Number of waiting reads of a die that are searched for those of the page in its register (assumed).
const LOOKED_AT: usize = 64;

/// Returns when the first refresh of each die is due.
pub(super) fn first_refreshes(
    config: &NandConfig,
    shape: &FtlGeometry,
    random: &mut Stream,
) -> Vec<Time> {
    let mut first = || match &config.refresh {
        Some(refresh) => Time::ZERO + random.exponential(refresh.every),
        None => Time::NEVER,
    };
    shape.every_die().map(|_| first()).collect()
}

impl NandArray {
    /// Creates idle dies; `random` supplies sense times and refreshes.
    pub(super) fn new(
        config: &NandConfig,
        shape: &FtlGeometry,
        refreshes: &[Time],
        random: Stream,
    ) -> NandArray {
        let timing = &config.timing;
        let rate = ChannelTiming {
            command: timing.channel_command,
            ps_per_byte: timing.channel_ps_per_byte,
        };
        let channel = Channel::new(rate, shape.dies / shape.channels);
        NandArray {
            shape: *shape,
            by: Divisors::new(shape),
            timing: timing.clone(),
            durations: Durations::new(config, shape, random),
            refresh: config.refresh.clone(),
            page_first: config.geometry.stripe != 0,
            channels: vec![channel; shape.channels as usize],
            dies: refreshes.iter().map(|&at| DieState::new(at)).collect(),
            resting: IdleDies::all(shape.dies),
            senses: Senses::default(),
            counts: ArrayCounts::default(),
        }
    }

    /// Starts work on an idle die, until `until`.
    #[inline(always)]
    pub(super) fn begin(
        &mut self,
        now: Time,
        die: Die,
        work: DieWork,
        cause: Cause,
        until: Time,
        events: &mut Events,
    ) {
        self.dies[die.index()].start(now, work, cause, until);
        self.resting.remove(die);
        events.push(until, NandEvent::DieDone(die));
    }

    /// Starts work on an idle die, until its channel has transferred a page.
    #[inline]
    fn hold(&mut self, now: Time, die: Die, work: DieWork, cause: Cause) {
        self.dies[die.index()].start(now, work, cause, Time::NEVER);
        self.resting.remove(die);
    }

    /// Whether a die is working.
    #[inline]
    pub(super) fn works(&self, die: Die) -> bool {
        !self.dies[die.index()].idle()
    }

    /// Whether a die neither works nor has pending work.
    #[inline]
    pub(super) fn vacant(&self, die: Die) -> bool {
        self.dies[die.index()].vacant()
    }

    /// Returns the first die at or after `from` that is idle and has not been passed over.
    #[inline]
    pub(super) fn next_idle(&self, from: Die) -> Option<Die> {
        self.resting.next(from)
    }

    /// A vacant die has nothing to do; `reads_only`: this remains so until something other than reads happens to it.
    #[inline]
    pub(super) fn rest(&mut self, die: Die, reads_only: bool) {
        self.dies[die.index()].reads_only = reads_only;
        self.resting.insert(die);
    }

    /// Makes a die idle again that has finished a read, if it had nothing else to do and no read waits. Returns whether
    /// it did.
    #[inline]
    pub(super) fn rests_again(&mut self, die: Die) -> bool {
        let state = &mut self.dies[die.index()];
        if !state.reads_only || !state.reads.is_empty() {
            return false;
        }
        debug_assert!(state.vacant() && state.suspended.is_none() && state.ahead.is_empty());
        state.register = None;
        self.rest(die, true);
        true
    }

    /// All dies may have work other than reads again.
    pub(super) fn forget_reads_only(&mut self) {
        for state in &mut self.dies {
            state.reads_only = false;
        }
    }

    /// Marks an idle die as unable to take a page of host data, until its own work changes that.
    #[inline]
    pub(super) fn pass_over(&mut self, die: Die) {
        self.resting.pass_over(die);
    }

    /// A die may be able to take a page although it has done no work; has no effect unless it was passed over.
    pub(super) fn ask_again(&mut self, die: Die) {
        if self.resting.is_passed_over(die) {
            self.rest(die, false);
        }
    }

    // Transfers of pages in and out.

    /// Sends a page to a vacant die, which programs it after the transfer. A die that can suspend a program for a read
    /// has registers for both, so it can read meanwhile; any other die is busy.
    pub(super) fn load(
        &mut self,
        now: Time,
        die: Die,
        loading: RegisterLoad,
        units: u32,
        events: &mut Events,
    ) {
        let state = &mut self.dies[die.index()];
        debug_assert!(state.vacant());
        state.loading = Some(loading);
        state.reads_only = false;
        self.counts.programs += 1;
        self.resting.remove(die);
        if self.one_register() {
            self.hold(now, die, DieWork::Load, loading.cause);
        }
        self.move_page(now, die, TransferDirection::In, units, events);
    }

    fn one_register(&self) -> bool {
        let suspend = self.timing.suspend.as_ref();
        suspend.is_none_or(|suspend| suspend.most == 0)
    }

    /// Makes a vacant die program a page that was loaded before.
    pub(super) fn go_on_programming(
        &mut self,
        now: Time,
        die: Die,
        slot: Slot,
        until: Time,
        events: &mut Events,
    ) {
        self.counts.programs += 1;
        let work = DieWork::Program(slot);
        self.begin(now, die, work, Cause::Program, until, events);
    }

    /// Starts the transfer of a page on the channel of its die.
    fn move_page(
        &mut self,
        now: Time,
        die: Die,
        way: TransferDirection,
        units: u32,
        events: &mut Events,
    ) {
        let channel = self.channel_of(die);
        let queue = &mut self.channels[channel.0 as usize];
        if let Some(at) = queue.page(now, die, way, units) {
            events.push(at, NandEvent::Channel(channel));
        }
    }

    #[inline]
    fn channel_of(&self, die: Die) -> ChannelId {
        ChannelId(self.by.channel_of(die))
    }

    /// Processes the event of a channel: the first of its pages may have been transferred. Returns a die that has
    /// waited for that and is idle now.
    pub(super) fn channel_due(
        &mut self,
        now: Time,
        channel: ChannelId,
        events: &mut Events,
    ) -> Option<Die> {
        let (die, way, next) = match self.channels[channel.0 as usize].due(now) {
            ChannelResult::Later(at) => {
                events.push(at, NandEvent::Channel(channel));
                return None;
            }
            ChannelResult::Moved(die, way, next) => (die, way, next),
        };
        if let Some(at) = next {
            events.push(at, NandEvent::Channel(channel));
        }
        let state = &mut self.dies[die.index()];
        match way {
            TransferDirection::In => self.loaded(now, die, events),
            TransferDirection::Out if state.work() == DieWork::CollectTransfer => {
                state.stop(now);
                return Some(die);
            }
            // If the next page is sensed meanwhile, no work waits for this one.
            TransferDirection::Out => {}
        }
        None
    }

    /// A page is in the registers of its die.
    fn loaded(&mut self, now: Time, die: Die, events: &mut Events) {
        let state = &mut self.dies[die.index()];
        let Some(loading) = state.loading.take() else {
            unreachable!("{die:?} was not being loaded");
        };
        if state.work() == DieWork::Load {
            state.stop(now);
        }
        if state.idle() {
            let until = now + loading.program;
            self.begin(now, die, loading.work, loading.cause, until, events);
            return;
        }
        // The die is reading: the program follows.
        state.suspended = Some(SuspendedOperation {
            work: loading.work,
            cause: loading.cause,
            rest: loading.program,
            begun: false,
        });
    }

    /// Returns the duration of the next program of the page at this slot, with all bits per cell.
    pub(super) fn program_time(&mut self, slot: Slot) -> Span {
        self.durations.program(slot)
    }

    /// Erases a block of an idle die.
    pub(super) fn erase(&mut self, now: Time, die: Die, block: Block, events: &mut Events) {
        let until = now + self.timing.erase;
        self.begin(now, die, DieWork::Erase(block), Cause::Erase, until, events);
    }

    // Reads of garbage collection.

    /// Makes an idle die sense the page at this slot, which contains `units` units to be moved.
    pub(super) fn sense_for_collection(
        &mut self,
        now: Time,
        die: Die,
        slot: Slot,
        units: u32,
        ftl: &Ftl,
        events: &mut Events,
    ) {
        self.counts.senses += 1;
        self.counts.bytes_read += u64::from(units) * u64::from(UNIT);
        let until = now + self.durations.sense_to_move(slot, ftl);
        let (work, cause) = (DieWork::CollectSense, Cause::Collection);
        self.begin(now, die, work, cause, until, events);
    }

    /// Starts the transfer of the sensed units. Their program uses the same channel later, and so comes after that.
    pub(super) fn move_out(&mut self, now: Time, die: Die, units: u32, events: &mut Events) {
        if !self.timing.cache_read {
            self.hold(now, die, DieWork::CollectTransfer, Cause::Collection);
        }
        self.move_page(now, die, TransferDirection::Out, units, events);
    }

    // Reads of the host.

    /// Returns the senses in progress.
    #[inline]
    pub(super) fn senses(&mut self) -> &mut Senses {
        &mut self.senses
    }

    /// Adds a sense that will go to its die.
    #[inline]
    pub(super) fn add_sense(&mut self, sense: Sense) -> SenseId {
        let die = self.by.die_of(sense.slot);
        let id = self.senses.insert(sense);
        self.senses[id].die = die;
        id
    }

    /// A read-ahead sense no longer waits for spare time; returns where it waited. At a die it is removed from the
    /// queue.
    pub(super) fn take_up(&mut self, id: SenseId) -> Spare {
        let spare = self.senses.take_up(id);
        if spare == Spare::Die {
            let die = self.senses[id].die;
            let queue = &mut self.dies[die.index()].ahead;
            queue.remove(&mut self.senses, id);
        }
        spare
    }

    /// A sense arrives at its die: starts it if the die is idle, and suspends the current work if possible. Read-ahead
    /// without a waiting command waits for spare time.
    #[inline(always)]
    pub(super) fn queue(&mut self, now: Time, id: SenseId, ftl: &Ftl, events: &mut Events) {
        let die = self.senses[id].die;
        let state = &mut self.dies[die.index()];
        let alone = state.reads.is_empty();
        // A die that only reads has nothing suspended: `reads_only`, in the first cache line, saves the access to
        // `suspended`.
        let rests = alone && state.idle() && (state.reads_only || state.suspended.is_none());
        if rests && state.next_refresh > now {
            self.start_sense(now, id, die, ftl, events);
        } else {
            self.wait_for_die(now, id, rests, ftl, events);
        }
    }

    /// A sense arrives at a die that is busy, has other reads waiting, or is idle and may have a refresh to do first.
    #[inline(never)]
    fn wait_for_die(
        &mut self,
        now: Time,
        id: SenseId,
        rests: bool,
        ftl: &Ftl,
        events: &mut Events,
    ) {
        let die = self.senses[id].die;
        if rests {
            self.refresh_if_due(now, die, events);
        }
        let state = &mut self.dies[die.index()];
        if state.idle() {
            // A refresh that was due has ended before now.
            self.start_sense(now, id, die, ftl, events);
            return;
        }
        let alone = state.reads.is_empty();
        let sense = &mut self.senses[id];
        if sense.for_nobody() {
            state.reads_only = false;
            self.senses.put_off(id, Spare::Die, &mut state.ahead);
            return;
        }
        sense.times.wait(state.causes(now));
        state.reads.push(&mut self.senses, id);
        if alone {
            self.try_suspend(now, die, events);
        }
    }

    /// Executes the refresh that was due while the die was idle, or has not ended yet.
    #[inline(never)]
    fn refresh_if_due(&mut self, now: Time, die: Die, events: &mut Events) {
        let Some(refresh) = &self.refresh else {
            return;
        };
        let (every, lasts) = (refresh.every, refresh.lasts);
        let state = &mut self.dies[die.index()];
        while state.next_refresh <= now {
            let ends = state.next_refresh + lasts;
            state.next_refresh = ends + self.durations.refresh_gap(every);
            if ends > now {
                self.begin(now, die, DieWork::Refresh, Cause::Refresh, ends, events);
                return;
            }
        }
    }

    #[inline(never)]
    fn try_suspend(&mut self, now: Time, die: Die, events: &mut Events) {
        let Some(suspend) = &self.timing.suspend else {
            return;
        };
        let state = &mut self.dies[die.index()];
        if let Some((cause, takes)) = state.suspend(now, suspend) {
            self.begin(now, die, DieWork::Suspending, cause, now + takes, events);
        }
    }

    /// Starts a sense on an idle die; data that is in the die's register need not be sensed again.
    #[inline(always)]
    fn start_sense(&mut self, now: Time, id: SenseId, die: Die, ftl: &Ftl, events: &mut Events) {
        let sense = &mut self.senses[id];
        sense.times.started = now;
        let (slot, units) = (sense.slot, sense.units);
        let of_map = matches!(sense.purpose, Purpose::Map(_));
        let page = (!of_map).then(|| self.by.page_at(slot));
        let register = &mut self.dies[die.index()].register;
        if *register == page && !of_map {
            cold_path();
            return self.sensed_already(now, id, die, events);
        }
        *register = page;
        self.counts.senses += 1;
        let until = now
            + match of_map {
                true => self.durations.sense_of_map(),
                false => self.durations.sense(slot, units, ftl),
            };
        self.begin(now, die, DieWork::Sense(id), Cause::Read, until, events);
    }

    /// The data of a sense is in the die's register.
    #[inline(never)]
    fn sensed_already(&mut self, now: Time, id: SenseId, die: Die, events: &mut Events) {
        self.sensed(now, id, die, events);
    }

    /// A sense has ended: its data joins the queue for the channel.
    #[inline(always)]
    fn sensed(&mut self, now: Time, id: SenseId, die: Die, events: &mut Events) {
        let channel = self.channel_of(die);
        let sense = &mut self.senses[id];
        sense.times.sensed = now;
        self.counts.bytes_read += u64::from(sense.units * UNIT);
        let at = self.channels[channel.0 as usize].read(now, sense.units);
        if self.timing.cache_read {
            events.push(at, NandEvent::Transferred(id));
        } else {
            self.begin(now, die, DieWork::Transfer(id), Cause::Read, at, events);
        }
    }

    /// The data of a sense is in the controller: removes it.
    #[inline]
    pub(super) fn end_sense(&mut self, id: SenseId) -> &Sense {
        self.senses.release(id)
    }

    /// Processes the end of a die's work. Returns the work, unless it has been interrupted.
    #[inline(always)]
    pub(super) fn die_done(&mut self, now: Time, die: Die, events: &mut Events) -> Option<DieWork> {
        let work = self.dies[die.index()].end(now)?;
        if let DieWork::Sense(id) = work {
            self.sensed(now, id, die, events);
        }
        Some(work)
    }

    /// Starts waiting reads on an idle die, or resumes the operation that they have interrupted. Returns false if the
    /// die has time for other work. `wanted` returns whether a read-ahead sense is still wanted.
    #[inline]
    pub(super) fn start_waiting_reads(
        &mut self,
        now: Time,
        die: Die,
        wanted: impl Fn(SenseId, &Sense) -> bool,
        ftl: &Ftl,
        events: &mut Events,
    ) -> bool {
        while let Some(id) = self.next_read(now, die, &wanted) {
            self.start_sense(now, id, die, ftl, events);
            if !self.dies[die.index()].idle() {
                return true;
            }
        }
        let state = &mut self.dies[die.index()];
        state.register = None;
        if let Some(suspended) = state.suspended.take() {
            let resume = match &self.timing.suspend {
                Some(suspend) if suspended.begun => suspend.resume,
                _ => Span::ZERO,
            };
            let until = now + suspended.rest + resume;
            let (work, cause) = (suspended.work, suspended.cause);
            self.begin(now, die, work, cause, until, events);
            return true;
        }
        state.loading.is_some()
    }

    /// Removes and returns the read that has waited longest, or one of the page in the register if those go first. If
    /// there is none and no operation is interrupted, takes a read-ahead sense.
    fn next_read(
        &mut self,
        now: Time,
        die: Die,
        wanted: impl Fn(SenseId, &Sense) -> bool,
    ) -> Option<SenseId> {
        let same_page = match self.page_first {
            true => self.waits_for_register(die),
            false => None,
        };
        let state = &mut self.dies[die.index()];
        if let Some(id) = same_page {
            state.reads.remove(&mut self.senses, id);
            self.senses[id].times.waited_until(state.causes(now));
            return Some(id);
        }
        if let Some(id) = state.reads.pop(&self.senses) {
            self.senses[id].times.waited_until(state.causes(now));
            return Some(id);
        }
        if state.suspended.is_some() {
            return None;
        }
        self.senses.pop_wanted(&mut state.ahead, wanted)
    }

    /// Returns a waiting read of the page in the die's register, among those that have waited longest.
    #[inline(never)]
    fn waits_for_register(&self, die: Die) -> Option<SenseId> {
        let state = &self.dies[die.index()];
        let page = state.register?;
        let mut waiting = state.reads.iter(&self.senses).take(LOOKED_AT);
        waiting.find(|&id| {
            let sense = &self.senses[id];
            !matches!(sense.purpose, Purpose::Map(_)) && self.by.page_at(sense.slot) == page
        })
    }

    pub(super) fn counts(&self) -> ArrayCounts {
        self.counts
    }

    /// Returns the busy time in die-seconds, divided by the number of dies.
    pub(super) fn busy_seconds(&self, now: Time) -> f64 {
        let busy: f64 = self.dies.iter().map(|die| die.busy_seconds(now)).sum();
        busy / f64::from(self.shape.dies)
    }
}
