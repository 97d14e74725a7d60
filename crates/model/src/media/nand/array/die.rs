//! State of one die: its current work, waiting reads, and the attribution of its busy time.
//!
//! A die does one thing at a time. Reads have priority; a program or erase can be suspended for them.

use alloc::vec;
use alloc::vec::Vec;
use core::mem::offset_of;

use super::super::config::Suspend;
use super::super::timeline::{Cause, Causes};
use super::senses::{SenseId, SenseQueue};
use crate::ftl::{Block, Die, Slot};
use crate::time::{Span, Time};

/// Current work of a die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DieWork {
    Idle,
    Sense(SenseId),
    /// Holding the data of a sense until it has crossed the channel.
    Transfer(SenseId),
    /// The single register is being filled with a page that will be programmed.
    Load,
    /// Programming buffered units into the page at this slot.
    Program(Slot),
    /// Sensing a page of the victim.
    CollectSense,
    /// Holding the copies of that page until they have crossed the channel.
    CollectTransfer,
    /// Programming copies into the page at this slot.
    CollectProgram(Slot),
    Erase(Block),
    /// The work in progress when the run began.
    Begun,
    /// Stopping the operation in `suspended`.
    Suspending,
    Refresh,
}

impl DieWork {
    /// Whether it can be suspended for a read, if the drive supports that.
    fn interruptible(self) -> bool {
        matches!(
            self,
            DieWork::Program(_) | DieWork::CollectProgram(_) | DieWork::Erase(_) | DieWork::Begun
        )
    }

    /// Returns the distance between the moments at which it can stop, counted back from its end.
    fn step(self, suspend: &Suspend) -> Span {
        match self {
            DieWork::Erase(_) => suspend.erase_step,
            _ => suspend.step,
        }
    }
}

/// An operation that a read interrupted or preceded.
#[derive(Clone, Copy, Debug)]
pub(super) struct SuspendedOperation {
    pub(super) work: DieWork,
    pub(super) cause: Cause,
    pub(super) rest: Span,
    /// Whether the operation was in progress.
    pub(super) begun: bool,
}

/// A page on its way to the registers of a die.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegisterLoad {
    /// The work that follows.
    pub(crate) work: DieWork,
    pub(crate) cause: Cause,
    /// Duration of that work.
    pub(crate) program: Span,
}

/// State of a die. The fields that a read on an idle die needs are in the first cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct DieState {
    work: DieWork,
    /// Start and end of `work`. An event at another time is stale.
    since: Time,
    until: Time,
    /// Waiting reads.
    pub(super) reads: SenseQueue,
    /// When the die's next refresh is due.
    pub(super) next_refresh: Time,
    /// The page whose data the register holds for waiting reads.
    pub(super) register: Option<Slot>,
    cause: Cause,
    /// Whether the die had nothing to do except reads when it was last checked, and nothing has happened since that
    /// could have changed that.
    pub(super) reads_only: bool,
    busy: Causes,
    /// Read-ahead senses that have not found spare time.
    pub(super) ahead: SenseQueue,
    pub(super) suspended: Option<SuspendedOperation>,
    suspensions: u32,
    pub(super) loading: Option<RegisterLoad>,
}

const _: () = assert!(offset_of!(DieState, busy) < 64);

impl DieState {
    pub(super) fn new(next_refresh: Time) -> DieState {
        DieState {
            work: DieWork::Idle,
            since: Time::ZERO,
            until: Time::ZERO,
            reads: SenseQueue::default(),
            next_refresh,
            register: None,
            cause: Cause::Read,
            reads_only: false,
            busy: [0; 5],
            ahead: SenseQueue::default(),
            suspended: None,
            suspensions: 0,
            loading: None,
        }
    }

    #[inline]
    pub(super) fn work(&self) -> DieWork {
        self.work
    }

    #[inline]
    pub(super) fn idle(&self) -> bool {
        self.work == DieWork::Idle
    }

    /// Whether the die is idle and has no pending work.
    #[inline]
    pub(super) fn vacant(&self) -> bool {
        self.idle() && self.loading.is_none()
    }

    /// Returns the busy time by cause up to `now`.
    #[inline]
    pub(super) fn causes(&self, now: Time) -> Causes {
        let mut causes = self.busy;
        if self.work != DieWork::Idle {
            causes[self.cause as usize] += now.since(self.since).ns();
        }
        causes
    }

    pub(super) fn busy_seconds(&self, now: Time) -> f64 {
        self.causes(now).iter().sum::<u64>() as f64 * 1e-9
    }

    /// Starts work on an idle die, which ends at `until` or when that is changed.
    #[inline]
    pub(super) fn start(&mut self, now: Time, work: DieWork, cause: Cause, until: Time) {
        debug_assert_eq!(self.work, DieWork::Idle);
        self.work = work;
        self.cause = cause;
        self.reads_only &= cause == Cause::Read;
        self.since = now;
        self.until = until;
    }

    /// Stops the current work and accounts for it.
    #[inline]
    pub(super) fn stop(&mut self, now: Time) {
        self.busy[self.cause as usize] += (now - self.since).ns();
        self.work = DieWork::Idle;
    }

    /// Returns the work that ends at `now`, unless the end at this time belonged to an interrupted operation.
    #[inline]
    pub(super) fn end(&mut self, now: Time) -> Option<DieWork> {
        if self.until != now || self.work == DieWork::Idle {
            return None;
        }
        let work = self.work;
        self.stop(now);
        if work.interruptible() {
            self.suspensions = 0;
        }
        Some(work)
    }

    /// Interrupts the current work, if it may be interrupted (at most `by.most` times) and takes longer than stopping
    /// it. Returns its cause, and the time for stopping.
    pub(super) fn suspend(&mut self, now: Time, by: &Suspend) -> Option<(Cause, Span)> {
        if !self.work.interruptible() || self.suspensions >= by.most {
            return None;
        }
        let runs_on = self.runs_on(now, by);
        let rest = self.until.since(now);
        if rest <= runs_on + by.latency {
            return None;
        }
        self.suspensions += 1;
        self.suspended = Some(SuspendedOperation {
            work: self.work,
            cause: self.cause,
            rest: rest - runs_on,
            begun: true,
        });
        self.stop(now);
        Some((self.cause, runs_on + by.latency))
    }

    /// Returns the time until the next moment at which the current work can stop.
    fn runs_on(&self, now: Time, by: &Suspend) -> Span {
        let programs = matches!(self.work, DieWork::Program(_) | DieWork::CollectProgram(_));
        // An operation that has been interrupted before is past its beginning.
        if programs && self.suspensions == 0 {
            let blind = by.blind.saturating_sub(now.since(self.since));
            if blind > Span::ZERO {
                return blind;
            }
        }
        match self.work.step(by).ns() {
            0 => Span::ZERO,
            step => Span::from_ns(self.until.since(now).ns() % step),
        }
    }
}

/// A set of dies, as bits.
#[derive(Clone, Debug)]
pub(crate) struct DieSet {
    words: Vec<u64>,
}

impl DieSet {
    pub(crate) fn empty(dies: u32) -> DieSet {
        DieSet {
            words: vec![0; dies.div_ceil(64) as usize],
        }
    }

    pub(crate) fn full(dies: u32) -> DieSet {
        let mut set = DieSet::empty(dies);
        for die in 0..dies {
            set.insert(Die(die));
        }
        set
    }

    #[inline]
    pub(crate) fn insert(&mut self, die: Die) {
        self.words[die.index() / 64] |= 1 << (die.0 % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, die: Die) {
        self.words[die.index() / 64] &= !(1 << (die.0 % 64));
    }

    #[inline]
    pub(crate) fn contains(&self, die: Die) -> bool {
        self.words[die.index() / 64] >> (die.0 % 64) & 1 == 1
    }

    /// Returns the first member at or after `from`, without wrapping around.
    #[inline]
    pub(crate) fn next(&self, from: Die) -> Option<Die> {
        let mut word = from.index() / 64;
        let mut bits = *self.words.get(word)? & (u64::MAX << (from.0 % 64));
        loop {
            if bits != 0 {
                return Some(Die(word as u32 * 64 + bits.trailing_zeros()));
            }
            word += 1;
            bits = *self.words.get(word)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// Suspension at any moment, at most `most` times, with this latency.
    fn stopping(most: u32, latency_us: u64) -> Suspend {
        Suspend {
            latency: Span::from_us(latency_us),
            most,
            ..Suspend::default()
        }
    }

    #[test]
    fn busy_time_is_split_by_whose_work_it_was() {
        let mut die = DieState::new(Time::NEVER);
        die.start(at(10), DieWork::Erase(Block(0)), Cause::Erase, at(100));
        let by = stopping(1, 5);
        assert_eq!(die.suspend(at(30), &by), Some((Cause::Erase, by.latency)));
        die.start(at(30), DieWork::Suspending, Cause::Erase, at(35));
        // The operation that would have ended then has been interrupted.
        assert_eq!(die.end(at(100)), None);
        assert_eq!(die.end(at(35)), Some(DieWork::Suspending));
        die.start(at(35), DieWork::CollectSense, Cause::Read, at(95));
        assert_eq!(die.causes(at(65)), [30_000, 0, 25_000, 0, 0]);
        assert_eq!(die.end(at(95)), Some(DieWork::CollectSense));
        assert_eq!(die.causes(at(900)), [60_000, 0, 25_000, 0, 0]);
    }

    #[test]
    fn an_operation_is_interrupted_only_as_often_as_it_may_be_and_never_near_its_end() {
        let mut die = DieState::new(Time::NEVER);
        let by = stopping(2, 5);
        let program = DieWork::Program(Slot(0));
        let stopped = Some((Cause::Program, by.latency));
        for _ in 0..2 {
            die.start(at(0), program, Cause::Program, at(100));
            assert_eq!(die.suspend(at(95), &by), None);
            assert_eq!(die.suspend(at(94), &by), stopped);
        }
        die.start(at(94), program, Cause::Program, at(200));
        assert_eq!(die.suspend(at(94), &by), None);
        // Once it has ended, the next one may be interrupted.
        assert_eq!(die.end(at(200)), Some(program));
        die.start(at(200), program, Cause::Program, at(300));
        assert_eq!(die.suspend(at(210), &by), stopped);
        // A sense can never be interrupted.
        die.start(at(210), DieWork::CollectSense, Cause::Collection, at(300));
        assert_eq!(die.suspend(at(210), &by), None);
    }

    #[test]
    fn a_program_stops_at_its_steps_and_not_while_it_begins_and_an_erase_between_pulses() {
        let by = Suspend {
            step: Span::from_us(80),
            blind: Span::from_us(300),
            erase_step: Span::from_us(900),
            ..stopping(9, 25)
        };
        // Returns how long a read waits for the die, and the remaining work.
        let stops = |work, since: u64, until: u64, asked: u64| {
            let mut die = DieState::new(Time::NEVER);
            die.start(at(since), work, Cause::Program, at(until));
            let (_, takes) = die.suspend(at(asked), &by)?;
            let left = die.suspended.map(|it| it.rest.ns() / 1000)?;
            Some((takes.ns() / 1000, left))
        };
        let program = DieWork::CollectProgram(Slot(0));
        assert_eq!(stops(program, 1000, 3000, 1000), Some((300 + 25, 1700)));
        assert_eq!(stops(program, 1000, 3000, 1299), Some((1 + 25, 1700)));
        // Afterwards its steps are at multiples of 80 us before its end.
        assert_eq!(stops(program, 1000, 3000, 1300), Some((20 + 25, 1680)));
        assert_eq!(stops(program, 1000, 3000, 2000), Some((40 + 25, 960)));
        assert_eq!(stops(program, 1000, 3000, 2040), Some((25, 960)));
        // Nothing would remain at the next step.
        assert_eq!(stops(program, 1000, 3000, 2921), None);
        // The start of the work at the beginning of the run is unknown.
        assert_eq!(stops(DieWork::Begun, 1000, 3000, 1000), Some((25, 2000)));
        assert_eq!(
            stops(DieWork::Erase(Block(0)), 0, 2000, 100),
            Some((100 + 25, 1800))
        );
        assert_eq!(stops(DieWork::Erase(Block(0)), 0, 2000, 1200), None);
    }

    #[test]
    fn a_program_that_has_been_stopped_once_is_beyond_its_beginning() {
        let by = Suspend {
            blind: Span::from_us(300),
            ..stopping(9, 25)
        };
        let program = DieWork::Program(Slot(0));
        let mut die = DieState::new(Time::NEVER);
        die.start(at(0), program, Cause::Program, at(2000));
        assert_eq!(
            die.suspend(at(100), &by),
            Some((Cause::Program, Span::from_us(225)))
        );
        // It resumes, and the resume time is not a beginning.
        die.start(at(400), program, Cause::Program, at(5000));
        assert_eq!(
            die.suspend(at(401), &by),
            Some((Cause::Program, Span::from_us(25)))
        );
    }

    #[test]
    fn a_set_is_walked_over_the_ends_of_its_words() {
        let mut set = DieSet::empty(130);
        for die in [0, 63, 64, 129] {
            set.insert(Die(die));
        }
        assert!(set.contains(Die(63)) && !set.contains(Die(62)));
        set.remove(Die(63));
        assert!(!set.contains(Die(63)));
        assert_eq!(set.next(Die(0)), Some(Die(0)));
        assert_eq!(set.next(Die(1)), Some(Die(64)));
        assert_eq!(set.next(Die(65)), Some(Die(129)));
        assert_eq!(set.next(Die(130)), None);
        assert_eq!(DieSet::full(66).next(Die(65)), Some(Die(65)));
        assert_eq!(DieSet::full(66).next(Die(66)), None);
    }
}
