//! Garbage collection (GC) of the dies, one page at a time. A die senses a page of the victim, gathers its valid units,
//! programs a page of copies when one is full, and erases the block when all its copies are programmed.
//!
//! A die that is short of free blocks takes host pages only as fast as GC frees space for them
//! ([`crate::ftl::Collecting`]), and collects only a few pages further ahead. The work is therefore spread evenly, is
//! independent of the load, and cannot deadlock, because one block is reserved for copies.
//!
//! Each moved unit also costs firmware time, and one firmware serves all dies. With many dies the firmware, not the
//! dies, limits a drive's random write rate (`docs/decisions/0041-firmware-costs.md`).

mod bursts;
mod idle;

use alloc::vec;
use alloc::vec::Vec;

use super::Shared;
use super::array::{DieSet, DieWork, RegisterLoad};
use super::buffer::WaitingWrites;
use super::config::{Collection, NandConfig, NandTiming};
use super::events::NandEvent;
use super::timeline::Cause;
use crate::engine::Station;
use crate::ftl::{AHEAD_PAGES, Collecting, Die, Ftl, FtlGeometry, Slot, Writer, page_price};
use crate::time::{Span, Time};
use bursts::BurstCycle;
use idle::IdleDetector;

/// GC of one die.
#[derive(Clone, Debug)]
struct DieCollection {
    collecting: Collecting,
    /// When the firmware has processed the units that were sensed last.
    moved: Time,
}

/// GC of all dies.
#[derive(Clone, Debug)]
pub(super) struct Collector {
    shape: FtlGeometry,
    config: Collection,
    dies: Vec<DieCollection>,
    /// Dies that could not collect although they are short of blocks.
    starved: DieSet,
    /// Firmware time for moving units.
    mover: Station,
    idle: IdleDetector,
    /// State of bursts, if the firmware does not spread GC evenly.
    bursts: Option<BurstCycle>,
}

impl Collector {
    pub(super) fn new(config: &NandConfig, shape: &FtlGeometry) -> Collector {
        let bursts = config.collection.bursts.as_ref();
        let bursts = bursts.map(|bursts| BurstCycle::new(bursts, shape.dies, page_price(shape)));
        let die = DieCollection {
            collecting: Collecting::new(shape),
            moved: Time::ZERO,
        };
        let mut collector = Collector {
            shape: *shape,
            config: config.collection.clone(),
            dies: vec![die; shape.dies as usize],
            starved: DieSet::empty(shape.dies),
            mover: Station::default(),
            idle: IdleDetector::new(config),
            bursts,
        };
        collector.begin_bursts();
        collector
    }

    /// Initialises bursts with the earned budgets.
    fn begin_bursts(&mut self) {
        if let Some(bursts) = &mut self.bursts {
            bursts.begin(self.dies.iter().map(|die| die.collecting.budget));
        }
    }

    /// Returns whether a burst has begun or ended since the last call: all dies may then have other work.
    #[inline]
    pub(super) fn take_turn(&mut self) -> bool {
        let bursts = self.bursts.as_mut();
        bursts.is_some_and(BurstCycle::take_turn)
    }

    /// Makes each die continue GC where writing without time has stopped.
    pub(super) fn resume(&mut self, collecting: &[Collecting]) {
        for (die, at) in self.dies.iter_mut().zip(collecting) {
            die.collecting.copy_from(at);
        }
        self.begin_bursts();
    }

    // Budget of the host.

    /// Returns the price of a page of host data in a die's budget.
    #[inline]
    fn page_price(&self) -> i64 {
        page_price(&self.shape)
    }

    /// Whether a die may take a page of host data now, while these writes wait for the buffer. It must have a page
    /// and, if blocks are short, GC must have earned that page and must not have priority.
    #[inline]
    pub(super) fn may_program(&self, die: Die, waiting: WaitingWrites, ftl: &Ftl) -> bool {
        let budget = self.dies[die.index()].collecting.budget;
        let lets = |bursts: &BurstCycle| bursts.lets(die, budget, waiting);
        let earned = !ftl.wants_collection(die)
            || (budget >= ftl.host_price(die) && self.bursts.as_ref().is_none_or(lets));
        earned && ftl.host_writer(die).is_some()
    }

    /// A die takes a page of host data.
    #[inline]
    pub(super) fn pay(&mut self, die: Die, ftl: &Ftl) {
        if ftl.wants_collection(die) {
            let before = self.dies[die.index()].collecting.budget;
            let now = before - ftl.host_price(die);
            self.dies[die.index()].collecting.budget = now;
            if let Some(bursts) = &mut self.bursts
                && bursts.pay(die, before, now)
            {
                bursts.begin_if_spent(self.dies.iter().map(|die| die.collecting.budget));
            }
        }
    }

    /// The host has used what a die has earned, as it does when it waits for GC.
    pub(super) fn spend_budget(&mut self, die: Die) {
        let price = self.page_price();
        let budget = &mut self.dies[die.index()].collecting.budget;
        let before = *budget;
        *budget %= price;
        self.earn(die, before);
    }

    /// Returns the slots that collecting the last victim of a die frees.
    pub(super) fn gain(&self, die: Die) -> u64 {
        self.dies[die.index()].collecting.gain()
    }

    /// Returns the mean number of slots that a die has programmed when it ends its GC work at time zero. It programs,
    /// senses and erases in turn, and has programmed a page only in the first case.
    pub(super) fn share_programmed(&self, die: Die, timing: &NandTiming) -> u32 {
        let (slots, block) = (self.shape.page_slots, f64::from(self.shape.block_slots));
        let kept = (block - self.gain(die) as f64) / block;
        let programs = timing.program.ns() as f64 * kept;
        let erases = timing.erase.ns() as f64 * f64::from(slots) / block;
        let all = programs + timing.read.ns() as f64 + erases;
        libm::round(f64::from(slots) * programs / all) as u32
    }

    // Steps of GC.

    /// Whether GC should execute a step: it owes space to the host, is behind, or has idle time. Changes of this result
    /// by the die's own work are covered; for other changes, which are the first write and idle time, the array must be
    /// informed (`NandArray::forget_reads_only`).
    pub(super) fn should_collect(&self, die: Die, ftl: &Ftl) -> bool {
        let budget = self.dies[die.index()].collecting.budget;
        let owes = ftl.wants_collection(die)
            && match &self.bursts {
                None => budget < AHEAD_PAGES * ftl.host_price(die),
                Some(bursts) => bursts.collects(budget),
            };
        // For the space that the host has earned, there must also be a block.
        owes || ftl.host_waits(die) || self.idle.background()
    }

    /// Executes the next step on an idle die that has time, if possible; returns whether it is working now.
    pub(super) fn collect(&mut self, now: Time, die: Die, shared: &mut Shared) -> bool {
        loop {
            let state = &mut self.dies[die.index()];
            if let Some(block) = state.collecting.take_emptied(&shared.ftl) {
                shared.array.erase(now, die, block, &mut shared.events);
                return true;
            }
            if state.moved > now {
                return false;
            }
            if state.collecting.gathered.len() >= self.shape.page_slots as usize {
                return self.program_copies(now, die, shared);
            }
            if state.collecting.victim.is_none() && !self.next_victim(die, &mut shared.ftl) {
                // Nothing more to read: gathered units are programmed in a padded page.
                if self.dies[die.index()].collecting.gathered.is_empty() {
                    return false;
                }
                return self.program_copies(now, die, shared);
            }
            if self.sense_victim(now, die, shared) {
                return true;
            }
        }
    }

    fn next_victim(&mut self, die: Die, ftl: &mut Ftl) -> bool {
        let collecting = &mut self.dies[die.index()].collecting;
        let free = ftl.free_blocks(die) + collecting.emptied.len() as u32;
        let ahead = self.idle.background() && free < self.config.background_free;
        let short = ftl.wants_collection(die) || ahead;
        // pSLC blocks are emptied when there is time, or when the host waits for that.
        let fold =
            !short && ftl.slc_blocks(die) > 0 && (self.idle.background() || ftl.host_waits(die));
        if !short && !fold {
            return false;
        }
        let taken = if fold {
            ftl.take_slc_victim(die)
        } else {
            ftl.take_victim(die)
        };
        let Some((victim, valid)) = taken else {
            if fold {
                return false;
            }
            // Nothing to earn: the host may use the remaining space, and the die checks again when no other die can
            // take a page.
            self.starved.insert(die);
            let before = collecting.budget;
            collecting.give_up(ftl.host_price(die));
            if let Some(bursts) = &mut self.bursts {
                bursts.give_up(die);
            }
            self.earn(die, before);
            return false;
        };
        let before = collecting.budget;
        collecting.begin(ftl, victim, valid);
        self.earn(die, before);
        true
    }

    /// The budget of a die had this value, and may have changed.
    #[inline]
    fn earn(&mut self, die: Die, before: i64) {
        if let Some(bursts) = &mut self.bursts {
            bursts.earn(before, self.dies[die.index()].collecting.budget);
        }
    }

    /// Senses the next page of the victim that contains valid units; false if the victim has none left.
    fn sense_victim(&mut self, now: Time, die: Die, shared: &mut Shared) -> bool {
        shared.ftl.catch_up();
        let collecting = &mut self.dies[die.index()].collecting;
        let before = collecting.budget;
        let gathered = collecting.gather(&mut shared.ftl);
        if let Some((_, units)) = gathered {
            collecting.sensing = units;
        }
        self.earn(die, before);
        let Some((slot, units)) = gathered else {
            return false;
        };
        let (array, ftl) = (&mut shared.array, &shared.ftl);
        array.sense_for_collection(now, die, slot, units, ftl, &mut shared.events);
        true
    }

    /// A page of the victim has been sensed: the firmware looks its units up and records their new locations. Until
    /// then the die executes no further GC step, but all other work.
    pub(super) fn sensed(&mut self, now: Time, die: Die, shared: &mut Shared) {
        let units = self.dies[die.index()].collecting.sensing;
        let service = self.config.per_unit * u64::from(units);
        if service > Span::ZERO {
            self.wait_for_firmware(now, die, service, shared);
        }
        let events = &mut shared.events;
        shared.array.move_out(now, die, units, events);
    }

    /// Puts a die into the firmware's queue.
    pub(super) fn wait_for_firmware(
        &mut self,
        now: Time,
        die: Die,
        service: Span,
        shared: &mut Shared,
    ) {
        let (_, moved) = self.mover.book(now, service);
        self.dies[die.index()].moved = moved;
        shared.events.push(moved, NandEvent::Moved(die));
    }

    fn program_copies(&mut self, now: Time, die: Die, shared: &mut Shared) -> bool {
        let Some(slot) = shared.ftl.take_page(die, Writer::Collection) else {
            unreachable!("a block is kept back for copies on {die:?}");
        };
        let collecting = &mut self.dies[die.index()].collecting;
        let page_slots = self.shape.page_slots as usize;
        let units = collecting.gathered.len().min(page_slots);
        if let Some(bursts) = &mut self.bursts {
            bursts.copies(die);
        }
        let copies = collecting.gathered.drain(..units);
        collecting.programming.extend(copies);
        let loading = RegisterLoad {
            work: DieWork::CollectProgram(slot),
            cause: Cause::Collection,
            program: shared.array.program_time(slot),
        };
        let (array, events) = (&mut shared.array, &mut shared.events);
        array.load(now, die, loading, units as u32, events);
        true
    }

    /// The page of copies that a die has programmed at `base` is on the medium.
    pub(super) fn programmed(&mut self, die: Die, base: Slot, ftl: &mut Ftl) {
        let collecting = &mut self.dies[die.index()].collecting;
        let mut slot = base;
        let pages = collecting.programming.iter().map(|copying| copying.page);
        ftl.touch_each(pages);
        for copying in collecting.programming.drain(..) {
            ftl.relocate(copying.page, copying.from, slot);
            slot = slot.plus(1);
        }
        for padded in (slot.0..base.0 + self.shape.page_slots).map(Slot) {
            ftl.pad(padded, Writer::Collection);
        }
        ftl.page_programmed(base);
    }

    /// Makes dies that found no victim check again.
    pub(super) fn retry_starved(&mut self, now: Time, shared: &mut Shared) {
        let mut from = Die(0);
        while let Some(die) = self.starved.next(from) {
            from = Die(die.0 + 1);
            self.starved.remove(die);
            // It collects now or has nothing to do, as before.
            if shared.array.vacant(die) {
                self.collect(now, die, shared);
                // It may use the budget that it has given up earning.
                shared.array.ask_again(die);
            }
        }
    }

    // Idle time.

    /// A command arrives: idle time ends.
    #[inline]
    pub(super) fn command_comes(&mut self) {
        self.idle.end();
    }

    /// Sets the timer that detects idleness, if it has not been detected since the last command. `buffered`: whether
    /// the buffer can use idle time.
    #[inline]
    pub(super) fn arm_timer(&mut self, now: Time, buffered: bool, shared: &mut Shared) {
        if let Some(at) = self.idle.arm(now, buffered, &shared.front) {
            shared.events.push(at, NandEvent::IdleTimer);
        }
    }

    /// The timer is due; returns whether the drive has been idle for long enough.
    pub(super) fn notices_idleness(&mut self, now: Time, shared: &Shared) -> bool {
        self.idle.notice(now, &shared.front)
    }

    /// Whether dies collect in the background in idle time.
    pub(super) fn collects_ahead(&self) -> bool {
        self.idle.collects_ahead()
    }

    /// Dies collect in the background until the next command.
    pub(super) fn begin_background(&mut self) {
        self.idle.begin_background();
    }
}

#[cfg(test)]
impl Collector {
    /// Returns the state of each die, for tests.
    pub(super) fn progress(&self) -> impl Iterator<Item = &Collecting> {
        self.dies.iter().map(|die| &die.collecting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::{Page, PageLocation};
    use crate::media::Precondition;
    use crate::media::nand::Nand;
    use crate::media::nand::tests::small;

    /// The collector of a steady drive whose dies are all short of blocks and have earned nothing, with the state that
    /// it needs.
    fn steady() -> (Collector, Shared) {
        let config = small();
        let Nand { shared, .. } = Nand::new(config.clone(), Precondition::Steady, 1);
        let mut collector = Collector::new(&config, shared.ftl.shape());
        for die in &mut collector.dies {
            die.collecting.budget = 0;
        }
        (collector, shared)
    }

    /// Executes the next step if the die should.
    fn work(collector: &mut Collector, now: Time, die: Die, shared: &mut Shared) -> bool {
        collector.should_collect(die, &shared.ftl) && collector.collect(now, die, shared)
    }

    /// Executes steps of a die without other work while it should; returns when it has nothing to do.
    fn collect(collector: &mut Collector, shared: &mut Shared, die: Die, mut now: Time) -> Time {
        loop {
            let idle = shared.array.vacant(die) && !work(collector, now, die, shared);
            if idle && shared.events.next() == Time::NEVER {
                return now;
            }
            now = shared.events.next();
            assert_ne!(now, Time::NEVER, "it stands still");
            while let Some(event) = shared.events.pop_due(now) {
                match event {
                    NandEvent::Channel(channel) => {
                        shared.array.channel_due(now, channel, &mut shared.events);
                    }
                    NandEvent::DieDone(die) => {
                        match shared.array.die_done(now, die, &mut shared.events) {
                            Some(DieWork::CollectSense) => collector.sensed(now, die, shared),
                            Some(DieWork::CollectProgram(slot)) => {
                                collector.programmed(die, slot, &mut shared.ftl);
                            }
                            Some(DieWork::Erase(block)) => shared.ftl.erased(block),
                            other => panic!("{other:?} is no step of collection"),
                        }
                    }
                    NandEvent::Moved(_) => {}
                    other => panic!("{other:?} is none of collection's"),
                }
            }
        }
    }

    #[test]
    fn a_die_short_of_blocks_takes_no_page_that_collection_has_not_earned() {
        let (mut collector, mut shared) = steady();
        let die = Die(2);
        assert!(shared.ftl.wants_collection(die));
        assert!(!collector.may_program(die, WaitingWrites::default(), &shared.ftl));
        collect(&mut collector, &mut shared, die, Time::ZERO);
        let mut taken = 0;
        while collector.may_program(die, WaitingWrites::default(), &shared.ftl) {
            collector.pay(die, &shared.ftl);
            taken += 1;
        }
        // A few pages are kept ready, and the page examined last may have earned more.
        let ahead = AHEAD_PAGES..AHEAD_PAGES + 2;
        assert!(ahead.contains(&taken), "{taken} pages");
        // No other die has earned anything by that.
        assert!(!collector.may_program(Die(3), WaitingWrites::default(), &shared.ftl));
    }

    #[test]
    fn what_is_collected_is_what_has_been_paid_for_and_no_page_is_lost() {
        let (mut collector, mut shared) = steady();
        let (die, before) = (Die(0), *shared.ftl.traffic());
        let mut now = Time::ZERO;
        let mut paid = 0_u64;
        while shared.ftl.traffic().erased < before.erased + 6 {
            now = collect(&mut collector, &mut shared, die, now);
            assert!(
                collector.may_program(die, WaitingWrites::default(), &shared.ftl),
                "it stands still"
            );
            collector.pay(die, &shared.ftl);
            paid += 1;
            // The host's page is padding here: only the space that it uses matters.
            let page = shared.ftl.take_page(die, Writer::Host);
            let first = page.expect("it may be programmed");
            for further in 0..shared.ftl.shape().page_slots {
                shared.ftl.pad(first.plus(further), Writer::Host);
            }
            shared.ftl.page_programmed(first);
        }
        let shape = *shared.ftl.shape();
        let moved = shared.ftl.traffic().moved - before.moved;
        let freed = 6 * u64::from(shape.block_slots) - moved;
        let used = paid * u64::from(shape.page_slots);
        // Both sides differ by at most one block, which the die is processing.
        let apart = freed.abs_diff(used);
        assert!(apart < u64::from(shape.block_slots), "{freed} and {used}");
        shared.ftl.check();
        for page in (0..shape.logical).map(Page) {
            assert!(matches!(shared.ftl.locate(page), PageLocation::Flash(_)));
        }
    }

    #[test]
    fn a_die_waits_for_the_firmware_and_others_behind_it() {
        let (mut collector, mut shared) = steady();
        let service = Span::from_us(100);
        for die in [Die(0), Die(1)] {
            collector.wait_for_firmware(Time::ZERO, die, service, &mut shared);
        }
        let at = Time::from_ns(150_000);
        assert!(work(&mut collector, at, Die(0), &mut shared));
        assert!(!work(&mut collector, at, Die(1), &mut shared));
        let later = Time::from_ns(200_000);
        assert!(work(&mut collector, later, Die(1), &mut shared));
    }
}
