//! One die: what it does now, who waits for it, and which of its busy time was whose.
//!
//! A die does one thing at a time. Reads go first; a program or erase can be suspended for them. Cumulative busy time
//! by cause is kept so that a wait is split exactly: the counters at arrival are subtracted from those at the start.

use alloc::vec;
use alloc::vec::Vec;

use super::channel::{Due, Way};
use super::config::NandConfig;
use super::spare::ReadQueue;
use super::{CHANNEL, DIE_DONE, KIND_SHIFT, NONE, Nand};
use crate::anatomy::Part;
use crate::ftl::{AHEAD_PAGES, Collecting, Shape, Writer, page_price};
use crate::random::Stream;
use crate::time::{Span, Time};

/// Whose work a die does; the order of [`CAUSE_PARTS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(super) enum Cause {
    Read = 0,
    Program = 1,
    Erase = 2,
    Collection = 3,
    Refresh = 4,
}

/// The part of a waiting command's anatomy for each [`Cause`].
pub(super) const CAUSE_PARTS: [Part; 5] = [
    Part::BehindRead,
    Part::BehindProgram,
    Part::BehindErase,
    Part::BehindCollection,
    Part::BehindRefresh,
];

/// Busy nanoseconds by [`Cause`].
pub(super) type Causes = [u64; 5];

/// What a die is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    Idle,
    /// Sensing for this operation.
    Sense(u32),
    /// Holding this operation's data until they have crossed the channel.
    Transfer(u32),
    /// Its only register fills with a page that will be programmed.
    Load,
    /// Programming buffered units into the page at this slot.
    Program(u32),
    /// Sensing a page of the victim.
    CollectSense,
    /// Holding that page's copies until they have crossed the channel.
    CollectTransfer,
    /// Programming copies into the page at this slot.
    CollectProgram(u32),
    /// Erasing the block at this slot.
    Erase(u32),
    /// What it was doing when the run began.
    Begun,
    /// Stopping what is in `suspended`.
    Suspending,
    Refresh,
}

/// An operation that a read interrupted, or came before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspended {
    pub(super) work: Work,
    pub(super) cause: Cause,
    pub(super) rest: Span,
    /// It was under way.
    begun: bool,
}

/// A page on its way to the registers of a die.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loading {
    /// What follows.
    pub(super) work: Work,
    pub(super) cause: Cause,
    /// How long that takes.
    pub(super) program: Span,
}

/// A die.
#[derive(Clone, Debug)]
pub(super) struct Die {
    pub(super) work: Work,
    pub(super) cause: Cause,
    /// When `work` began and ends. An event of another time is stale.
    pub(super) since: Time,
    pub(super) until: Time,
    busy: Causes,
    /// Reads waiting.
    pub(super) reads: ReadQueue,
    /// Reads ahead, for which there has been no time to spare.
    pub(super) ahead: ReadQueue,
    /// The page whose data its register holds for reads that wait, or [`NONE`].
    pub(super) register: u32,
    pub(super) suspended: Option<Suspended>,
    suspensions: u32,
    loading: Option<Loading>,
    /// Buffer slots of the page being programmed.
    pub(super) page: Vec<u32>,
    /// When they were handed to the die.
    pub(super) page_since: Time,
    pub(super) collecting: Collecting,
    /// When the firmware has dealt with the units that collection sensed last.
    pub(super) moved: Time,
    next_refresh: Time,
}

impl Die {
    pub(super) fn new(config: &NandConfig, shape: &Shape, random: &mut Stream) -> Die {
        let slots = shape.page_slots as usize;
        Die {
            work: Work::Idle,
            cause: Cause::Read,
            since: Time::ZERO,
            until: Time::ZERO,
            busy: [0; 5],
            reads: ReadQueue::EMPTY,
            ahead: ReadQueue::EMPTY,
            register: NONE,
            suspended: None,
            suspensions: 0,
            loading: None,
            page: Vec::with_capacity(slots),
            page_since: Time::ZERO,
            collecting: Collecting::new(shape),
            moved: Time::ZERO,
            next_refresh: config.refresh.as_ref().map_or(Time::NEVER, |refresh| {
                Time::ZERO + random.exponential(refresh.every)
            }),
        }
    }

    /// Busy time by cause up to `now`.
    pub(super) fn causes(&self, now: Time) -> Causes {
        let mut causes = self.busy;
        if self.work != Work::Idle {
            causes[self.cause as usize] += now.since(self.since).ns();
        }
        causes
    }

    pub(super) fn busy_seconds(&self, now: Time) -> f64 {
        self.causes(now).iter().sum::<u64>() as f64 * 1e-9
    }

    /// Neither at work nor about to be.
    pub(super) fn vacant(&self) -> bool {
        self.work == Work::Idle && self.loading.is_none()
    }

    /// Ends the accounting of what it did.
    fn stop(&mut self, now: Time) {
        self.busy[self.cause as usize] += now.since(self.since).ns();
        self.work = Work::Idle;
    }
}

/// A set of dies as bits.
#[derive(Clone, Debug)]
pub(super) struct DieSet {
    words: Vec<u64>,
}

impl DieSet {
    pub(super) fn empty(dies: u32) -> DieSet {
        DieSet {
            words: vec![0; dies.div_ceil(64) as usize],
        }
    }

    pub(super) fn full(dies: u32) -> DieSet {
        let mut set = DieSet::empty(dies);
        for die in 0..dies {
            set.insert(die);
        }
        set
    }

    #[inline]
    pub(super) fn insert(&mut self, die: u32) {
        self.words[(die / 64) as usize] |= 1 << (die % 64);
    }

    #[inline]
    pub(super) fn remove(&mut self, die: u32) {
        self.words[(die / 64) as usize] &= !(1 << (die % 64));
    }

    /// The first member at or after `from`, without wrapping.
    #[inline]
    pub(super) fn next(&self, from: u32) -> Option<u32> {
        let mut word = (from / 64) as usize;
        let mut bits = *self.words.get(word)? & (u64::MAX << (from % 64));
        loop {
            if bits != 0 {
                return Some(word as u32 * 64 + bits.trailing_zeros());
            }
            word += 1;
            bits = *self.words.get(word)?;
        }
    }
}

impl Nand {
    /// Puts an idle die to work until `until`.
    #[inline]
    pub(super) fn begin(&mut self, now: Time, die: u32, work: Work, cause: Cause, until: Time) {
        self.hold(now, die, work, cause);
        self.dies[die as usize].until = until;
        self.events.push(until, DIE_DONE << KIND_SHIFT | die);
    }

    /// Puts an idle die to work until its channel has moved a page.
    #[inline]
    pub(super) fn hold(&mut self, now: Time, die: u32, work: Work, cause: Cause) {
        let state = &mut self.dies[die as usize];
        debug_assert_eq!(state.work, Work::Idle);
        state.work = work;
        state.cause = cause;
        state.since = now;
        state.until = Time::NEVER;
        self.idle.remove(die);
    }

    /// Sends a page to a vacant die, which programs it when it is there. A die that can suspend a program for a read
    /// has registers for both, so it reads meanwhile; another one is taken.
    pub(super) fn load(&mut self, now: Time, die: u32, loading: Loading, units: u32) {
        let state = &mut self.dies[die as usize];
        debug_assert!(state.vacant());
        state.loading = Some(loading);
        self.tally.programs += 1;
        self.idle.remove(die);
        if self.one_register() {
            self.hold(now, die, Work::Load, loading.cause);
        }
        self.move_page(now, die, Way::In, units);
    }

    fn one_register(&self) -> bool {
        let suspend = self.config.timing.suspend.as_ref();
        suspend.is_none_or(|suspend| suspend.most == 0)
    }

    /// Puts a page on the channel of its die.
    pub(super) fn move_page(&mut self, now: Time, die: u32, way: Way, units: u32) {
        let index = die % self.shape.channels;
        if let Some(at) = self.channels[index as usize].page(now, die, way, units) {
            self.events.push(at, CHANNEL << KIND_SHIFT | index);
        }
    }

    /// The event of a channel: the first of its pages may have moved.
    pub(super) fn channel_due(&mut self, now: Time, index: u32) {
        let (die, way, next) = match self.channels[index as usize].due(now) {
            Due::Later(at) => {
                self.events.push(at, CHANNEL << KIND_SHIFT | index);
                return;
            }
            Due::Moved(die, way, next) => (die, way, next),
        };
        if let Some(at) = next {
            self.events.push(at, CHANNEL << KIND_SHIFT | index);
        }
        match way {
            Way::In => self.loaded(now, die),
            // Where the next page is sensed meanwhile, nobody waits for this one.
            Way::Out if self.dies[die as usize].work == Work::CollectTransfer => {
                self.dies[die as usize].stop(now);
                self.next_work(now, die);
            }
            Way::Out => {}
        }
    }

    /// A page is in the registers of its die.
    fn loaded(&mut self, now: Time, die: u32) {
        let state = &mut self.dies[die as usize];
        let Some(loading) = state.loading.take() else {
            debug_assert!(false, "die {die} was not being loaded");
            return;
        };
        if state.work == Work::Load {
            state.stop(now);
        }
        if state.work == Work::Idle {
            let until = now + loading.program;
            self.begin(now, die, loading.work, loading.cause, until);
            return;
        }
        // It reads: the program comes after that.
        state.suspended = Some(Suspended {
            work: loading.work,
            cause: loading.cause,
            rest: loading.program,
            begun: false,
        });
    }

    /// Queues a sense operation at its die, starts it if the die is idle, suspends what stands in its way if it can. What
    /// is read ahead for nobody waits for time to spare.
    #[inline]
    pub(super) fn queue_read(&mut self, now: Time, op: u32, die: u32) {
        let state = &mut self.dies[die as usize];
        let alone = state.reads.is_empty();
        if alone && state.work == Work::Idle && state.suspended.is_none() {
            if state.next_refresh > now {
                self.start_sense(now, op, die);
                return;
            }
            self.refresh_if_due(now, die);
        }
        let state = &mut self.dies[die as usize];
        if state.work == Work::Idle {
            // The refresh that was due ended before now.
            self.start_sense(now, op, die);
            return;
        }
        if self.ops[op as usize].for_nobody() {
            self.put_off(op, die);
            return;
        }
        self.ops[op as usize].behind = state.causes(now);
        self.ops[op as usize].waited = true;
        state.reads.push(&mut self.ops, op);
        if alone {
            self.try_suspend(now, die);
        }
    }

    /// Runs the refresh that fell due while the die was idle, or has not ended yet.
    fn refresh_if_due(&mut self, now: Time, die: u32) {
        let Some(refresh) = &self.config.refresh else {
            return;
        };
        let (every, lasts) = (refresh.every, refresh.lasts);
        let state = &mut self.dies[die as usize];
        while state.next_refresh <= now {
            let ends = state.next_refresh + lasts;
            state.next_refresh = ends + self.random.exponential(every);
            if ends > now {
                self.begin(now, die, Work::Refresh, Cause::Refresh, ends);
                return;
            }
        }
    }

    fn try_suspend(&mut self, now: Time, die: u32) {
        let Some(suspend) = &self.config.timing.suspend else {
            return;
        };
        let state = &mut self.dies[die as usize];
        let interruptible = matches!(
            state.work,
            Work::Program(_) | Work::CollectProgram(_) | Work::Erase(_) | Work::Begun
        );
        let rest = state.until.since(now);
        if !interruptible || state.suspensions >= suspend.most || rest <= suspend.latency {
            return;
        }
        state.suspensions += 1;
        state.suspended = Some(Suspended {
            work: state.work,
            cause: state.cause,
            rest,
            begun: true,
        });
        let cause = state.cause;
        state.stop(now);
        let until = now + suspend.latency;
        self.begin(now, die, Work::Suspending, cause, until);
    }

    /// The event at the end of a die's work.
    pub(super) fn die_done(&mut self, now: Time, die: u32) {
        let state = &mut self.dies[die as usize];
        if state.until != now || state.work == Work::Idle {
            return;
        }
        let work = state.work;
        state.stop(now);
        if matches!(
            work,
            Work::Program(_) | Work::CollectProgram(_) | Work::Erase(_) | Work::Begun
        ) {
            state.suspensions = 0;
        }
        match work {
            Work::Sense(op) => self.sensed(now, op, die),
            Work::Transfer(op) => self.transferred(now, op),
            Work::Program(slot) => self.programmed(now, die, slot),
            Work::CollectProgram(slot) => self.copies_programmed(die, slot),
            Work::Erase(slot) => self.ftl.erased(slot),
            Work::CollectSense => self.copies_sensed(now, die),
            Work::Load
            | Work::CollectTransfer
            | Work::Begun
            | Work::Suspending
            | Work::Refresh
            | Work::Idle => {}
        }
        self.next_work(now, die);
        if matches!(
            work,
            Work::Program(_) | Work::Erase(_) | Work::CollectProgram(_)
        ) {
            self.dispatch_pages(now);
        }
    }

    /// Gives a die that has just fallen idle its next work.
    pub(super) fn next_work(&mut self, now: Time, die: u32) {
        let state = &mut self.dies[die as usize];
        if state.work != Work::Idle {
            return;
        }
        // Units of one page come from one sense, if reads of them wait beside each other.
        while let Some(op) = self.next_read(now, die) {
            self.start_sense(now, op, die);
            if self.dies[die as usize].work != Work::Idle {
                return;
            }
        }
        let state = &mut self.dies[die as usize];
        state.register = NONE;
        if let Some(suspended) = state.suspended.take() {
            let resume = match &self.config.timing.suspend {
                Some(suspend) if suspended.begun => suspend.resume,
                _ => Span::ZERO,
            };
            let until = now + suspended.rest + resume;
            self.begin(now, die, suspended.work, suspended.cause, until);
            return;
        }
        if state.loading.is_some() {
            return;
        }
        let host = self.buffer.page_ready(self.shape.page_slots) && self.may_program(die);
        if !host && self.should_collect(die) && self.collect(now, die) {
            return;
        }
        self.idle.insert(die);
        if host {
            self.dispatch_pages(now);
        }
    }

    /// Takes the read that has waited longest; if none does and nothing has been interrupted, the same of those ahead.
    fn next_read(&mut self, now: Time, die: u32) -> Option<u32> {
        let state = &mut self.dies[die as usize];
        if let Some(op) = state.reads.pop(&self.ops) {
            let causes = state.causes(now);
            let behind = &mut self.ops[op as usize].behind;
            for (part, until_now) in behind.iter_mut().zip(causes) {
                *part = until_now - *part;
            }
            return Some(op);
        }
        if state.suspended.is_some() {
            return None;
        }
        self.next_ahead(die)
    }

    /// Whether collection on an idle die should take a step: it owes some to the host, lags behind, or has time.
    fn should_collect(&self, die: u32) -> bool {
        let budget = self.dies[die as usize].collecting.budget;
        let owes = self.ftl.wants_collection(die) && budget < AHEAD_PAGES * self.page_price();
        // What the host has earned it must also find a block for.
        let late = !self.ftl.has_page(die, Writer::Host);
        owes || late || self.background
    }

    /// Whether a die may take a page of host data now: it has one, and if blocks are short collection has earned it.
    pub(super) fn may_program(&self, die: u32) -> bool {
        let earned = !self.ftl.wants_collection(die)
            || self.dies[die as usize].collecting.budget >= self.page_price();
        earned && (self.ftl.has_page(die, Writer::Host) || self.ftl.has_page(die, Writer::Slc))
    }

    /// What a page of host data takes from a die's budget.
    pub(super) fn page_price(&self) -> i64 {
        page_price(&self.shape)
    }
}
