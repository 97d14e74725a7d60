//! How a drive in its steady state begins: as it is at the moment at which the writes that preconditioned it stop.
//!
//! Dies are somewhere within a victim and within a program, and the buffer is full of what has been acknowledged and
//! is not on the medium yet. That is what random overwriting leaves, and what it goes on as; a load that writes less
//! finds it programmed after a tenth of a second or so. It is made at the first change to the map, less what would have
//! been programmed by then: a drive that is only read never needs it, and is as one that has been left alone a moment.
//! A load that flushes never has a full buffer, so at the first flush what was left over is taken to be on the medium.
//! Where the firmware's part in collection bounds what is written, dies are in its queue besides.
//!
//! Leaves out: which unit was written when (what is left over has its page drawn when a die takes it), and reads of it
//! from the buffer; channels that are busy. Why: `docs/decisions/0040-steady-from-the-start.md`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Nand;
use super::die::{Cause, Work};
use super::write::LEFT_OVER;
use crate::ftl::{Collecting, Place, Saved, Writer, warm_up};
use crate::random::Stream;
use crate::time::{Span, Time};

/// A warm-up that has been made, and what came of it once it was wanted a second time.
#[derive(Clone, Debug)]
pub(super) struct Warmed {
    pub(super) seed: u64,
    pub(super) saved: Option<Box<(Saved, Vec<Collecting>)>>,
}

/// Where the firmware bounds collection: what a page of a victim takes, nanoseconds if not said otherwise.
#[derive(Clone, Copy, Debug)]
struct FirmwareBound {
    /// Of the firmware.
    service: Span,
    /// From one page of a die to its next: the firmware deals with one of each other die meanwhile.
    cycle: u64,
    /// Of it the die senses, programs copies and erases, and is not in the queue.
    collects: u64,
    /// Of it the die programs host pages, which it does in the queue.
    programs: u64,
}

impl Nand {
    /// Settles the computed steady state, once, before the first change to the map.
    pub(super) fn warm(&mut self) {
        let Some(seed) = self.cold.take() else {
            return;
        };
        match &mut self.warmed {
            Some(Warmed {
                saved: Some(saved), ..
            }) => {
                self.ftl.restore(&saved.0);
                go_on(&mut self.dies, &saved.1);
            }
            Some(Warmed { saved, .. }) => {
                let collecting = warm_up(&mut self.ftl, seed);
                go_on(&mut self.dies, &collecting);
                *saved = Some(Box::new((self.ftl.save(), collecting)));
            }
            None => {
                go_on(&mut self.dies, &warm_up(&mut self.ftl, seed));
                self.warmed = Some(Warmed { seed, saved: None });
            }
        }
        self.baseline = *self.ftl.traffic();
        self.charged_before = self.ftl.charged();
    }

    /// Lets dies and buffer be as random writes that stopped at time zero have left them, once.
    pub(super) fn go_on_writing(&mut self, now: Time) {
        let Some(seed) = self.overwritten.take() else {
            return;
        };
        let units = self.left_over_at(now);
        // Writes before the start take their part of what room has cost.
        for _ in 0..units {
            self.ftl.charge();
        }
        self.charged_before = self.ftl.charged();
        let mut random = Stream::new(seed, "begun");
        let bound = self.firmware_bound();
        self.buffer
            .leave_over(units, Stream::new(seed, "left over"));
        for die in 0..self.shape.dies {
            if !self.dies[die as usize].vacant() {
                continue;
            }
            if units == 0 {
                self.next_work(now, die);
                continue;
            }
            let step = (self.config.timing.program.ns() / 1000).max(1);
            let until = now + Span::from_ns(step * (1 + random.below(1000)));
            if let Some(bound) = &bound {
                self.go_on_behind_firmware(now, die, until, bound, &mut random);
                continue;
            }
            // Of the pages that are programmed, those of the host are as many as the slots that a block gains.
            let gain = self.dies[die as usize].collecting.gain();
            let host = random.below(u64::from(self.shape.block_slots)) < gain;
            if !(host && self.go_on_programming(now, die, until)) {
                self.begin(now, die, Work::Begun, Cause::Collection, until);
            }
        }
    }

    /// How the dies spend their time if the firmware's part in collection, and not they, bounds random writes.
    fn firmware_bound(&self) -> Option<FirmwareBound> {
        let (shape, timing) = (&self.shape, &self.config.timing);
        let block = u64::from(shape.block_slots);
        let slots = u64::from(shape.page_slots);
        let dies = u64::from(shape.dies);
        let gain = self
            .dies
            .iter()
            .map(|die| die.collecting.gain())
            .sum::<u64>()
            / dies;
        let kept = block - gain;
        let service = self.config.collection.per_unit.ns() * slots * kept / block;
        let bound = FirmwareBound {
            service: Span::from_ns(service),
            cycle: dies * service,
            collects: timing.read.ns()
                + (timing.program.ns() * kept + timing.erase.ns() * slots) / block,
            programs: timing.program.ns() * gain / block,
        };
        (bound.cycle > bound.collects + bound.programs).then_some(bound)
    }

    /// Lets a die be in the firmware's queue, perhaps programming a page of the host meanwhile, or collecting.
    fn go_on_behind_firmware(
        &mut self,
        now: Time,
        die: u32,
        until: Time,
        bound: &FirmwareBound,
        random: &mut Stream,
    ) {
        // The host has taken what was earned: dies wait for the firmware, and it for none.
        let price = self.page_price();
        self.dies[die as usize].collecting.budget %= price;
        if random.below(bound.cycle) < bound.collects {
            self.begin(now, die, Work::Begun, Cause::Collection, until);
            return;
        }
        self.wait_for_mover(now, die, bound.service);
        if random.below(bound.cycle - bound.collects) < bound.programs {
            self.go_on_programming(now, die, until);
        }
    }

    /// Lets a die be programming a page of host data, which will be done then; false if there is none.
    fn go_on_programming(&mut self, now: Time, die: u32, until: Time) -> bool {
        if !self.buffer.page_ready(self.shape.page_slots) {
            return false;
        }
        let Some(slot) = self.ftl.take_page(die, Writer::Host) else {
            return false;
        };
        self.take_units(now, die);
        self.tally.programs += 1;
        self.begin(now, die, Work::Program(slot), Cause::Program, until);
        true
    }

    /// Units of a buffer that was full at time zero which no die has taken yet.
    fn left_over_at(&self, now: Time) -> u64 {
        let shape = &self.shape;
        let units = self.buffer.units();
        let gain: u64 = self.dies.iter().map(|die| die.collecting.gain()).sum();
        // Each page of host data takes the time of as many programs as a block has pages for each that it gains; or of
        // the firmware that of a page of each die.
        let programs = u128::from(units) * u128::from(shape.block_slots);
        let page = self.firmware_bound().map_or(0, |bound| bound.cycle);
        let page = page.max(self.config.timing.program.ns());
        let whole = programs * u128::from(page);
        let passed = u128::from(now.ns()) * u128::from(shape.page_slots) * u128::from(gain);
        if whole == 0 {
            return 0;
        }
        (u128::from(units) * whole.saturating_sub(passed) / whole) as u64
    }

    /// Gives a unit that was left over, and that a die takes now, its page.
    #[inline]
    pub(super) fn name_left_over(&mut self, held: u32) {
        if self.buffer.page_of(held) != LEFT_OVER {
            return;
        }
        let page = self.buffer.draw_left_over(held, self.shape.logical);
        // What has been written since is newer.
        if !matches!(self.ftl.locate(page), Place::Buffer(_)) {
            self.ftl.stage(page, held);
        }
    }
}

/// Lets each die go on collecting where the warm-up stopped.
pub(super) fn go_on(dies: &mut [super::Die], collecting: &[Collecting]) {
    for (die, at) in dies.iter_mut().zip(collecting) {
        die.collecting.go_on_from(at);
    }
}
