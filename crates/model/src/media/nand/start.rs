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

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Nand;
use super::array::Work;
use super::collector::Collector;
use super::config::{NandConfig, SlcCache};
use super::timeline::Cause;
use crate::ftl::{Collecting, Die, Ftl, Saved, Shape, Traffic, Watermark, Writer, warm_up};
use crate::random::Stream;
use crate::time::{Span, Time};

/// The state in which its first write finds a drive that has been overwritten for long.
#[derive(Debug)]
pub struct WarmState {
    seed: u64,
    shape: Shape,
    watermark: Watermark,
    slc: Option<SlcCache>,
    saved: Saved,
    collecting: Vec<Collecting>,
}

/// A warm-up that has been made, and what came of it once it was wanted a second time.
#[derive(Clone, Debug)]
pub(super) struct Warmed {
    seed: u64,
    saved: Option<Arc<WarmState>>,
    /// The tables are those of the saved state, and what has changed since is known.
    at_hand: bool,
}

impl Warmed {
    /// The saved state, if the tables are those of it but for what is known to have changed.
    pub(super) fn at_hand(&self) -> Option<&Saved> {
        let state = self.saved.as_ref().filter(|_| self.at_hand);
        state.map(|state| &state.saved)
    }
}

/// What is left to be done before the first change to the map, and what is counted from.
#[derive(Clone, Debug)]
pub(super) struct Start {
    /// The seed of a warm-up of the steady state that is due.
    cold: Option<u64>,
    /// The seed of what random writes before time zero have left over, if that is due.
    overwritten: Option<u64>,
    /// The warm-up of the drive this one is made of, if that is the same.
    warmed: Option<Warmed>,
    /// Counters of the translation layer when the run began, and what it had charged for collection.
    traffic: Traffic,
    charged: f64,
}

impl Start {
    /// With a translation layer as it is: `cold` is the seed of a steady state that has to be warmed up and of what was
    /// written last.
    pub(super) fn new(ftl: &Ftl, cold: Option<u64>) -> Start {
        Start {
            cold,
            overwritten: cold,
            warmed: None,
            traffic: *ftl.traffic(),
            charged: ftl.charged(),
        }
    }

    /// That of a drive which has really been overwritten.
    pub(super) fn overwritten(ftl: &Ftl, seed: u64) -> Start {
        let mut start = Start::new(ftl, None);
        start.overwritten = Some(seed);
        start
    }

    /// What it knows of the warm-up with this seed.
    pub(super) fn warmed(self, seed: u64) -> Option<Warmed> {
        self.warmed.filter(|warmed| warmed.seed == seed)
    }

    /// Remembers a warm-up; whether its tables are at hand, rewound.
    pub(super) fn remember(&mut self, warmed: Option<Warmed>, at_hand: bool) {
        self.warmed = warmed.map(|warmed| Warmed { at_hand, ..warmed });
    }

    /// See [`crate::media::MediumDrive::know`].
    pub(super) fn know(
        &mut self,
        states: &[Arc<WarmState>],
        again: bool,
        config: &NandConfig,
        shape: &Shape,
    ) {
        let Some(seed) = self.cold else {
            return;
        };
        if self.known().is_some() {
            return;
        }
        let fits = |state: &&Arc<WarmState>| {
            state.seed == seed
                && state.shape == *shape
                && state.watermark == config.collection.watermark
                && state.slc == config.slc
        };
        let saved = states.iter().find(fits).cloned();
        if saved.is_some() || again {
            self.warmed = Some(Warmed {
                seed,
                saved,
                at_hand: false,
            });
        }
    }

    /// The warm state that it knows.
    pub(super) fn known(&self) -> Option<&Arc<WarmState>> {
        self.warmed.as_ref()?.saved.as_ref()
    }

    /// Settles the computed steady state, once, before the first change to the map.
    fn warm(&mut self, ftl: &mut Ftl, collector: &mut Collector, config: &NandConfig) {
        let Some(seed) = self.cold.take() else {
            return;
        };
        match &mut self.warmed {
            Some(Warmed {
                saved: Some(state),
                at_hand,
                ..
            }) => {
                if *at_hand {
                    ftl.wake(&state.saved);
                } else {
                    ftl.restore(&state.saved);
                    *at_hand = true;
                }
                collector.go_on(&state.collecting);
            }
            Some(warmed) => {
                let collecting = warm_up(ftl, seed);
                collector.go_on(&collecting);
                let state = WarmState {
                    seed,
                    shape: *ftl.shape(),
                    watermark: config.collection.watermark,
                    slc: config.slc.clone(),
                    saved: ftl.save(),
                    collecting,
                };
                warmed.saved = Some(Arc::new(state));
                warmed.at_hand = true;
            }
            None => {
                collector.go_on(&warm_up(ftl, seed));
                self.warmed = Some(Warmed {
                    seed,
                    saved: None,
                    at_hand: false,
                });
            }
        }
        self.traffic = *ftl.traffic();
        self.charged = ftl.charged();
    }

    /// What the translation layer has done since the run began.
    pub(super) fn traffic_since(&self, ftl: &Ftl) -> Traffic {
        let now = ftl.traffic();
        Traffic {
            host: now.host - self.traffic.host,
            moved: now.moved - self.traffic.moved,
            padded: now.padded - self.traffic.padded,
            erased: now.erased - self.traffic.erased,
        }
    }

    /// Copies that had been charged to writes when the run began.
    pub(super) fn charged_before(&self) -> f64 {
        self.charged
    }
}

#[cfg(test)]
impl Start {
    /// Whether the result of a warm-up is remembered.
    pub(super) fn remembers(&self) -> bool {
        self.known().is_some()
    }
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
        let Some(seed) = self.start.cold else {
            return;
        };
        self.start
            .warm(&mut self.shared.ftl, &mut self.collector, &self.config);
        self.collector.draw_phase(seed);
        self.pace_writes();
        self.shared.array.forget_reads_only();
        for die in self.shape.every_die() {
            self.shared.array.ask_again(die);
        }
    }

    /// Lets dies and buffer be as random writes that stopped at time zero have left them, once.
    pub(super) fn go_on_writing(&mut self, now: Time) {
        let Some(seed) = self.start.overwritten.take() else {
            return;
        };
        let mut units = self.left_over_at(now);
        if self.shared.front.paces() {
            // The dies have kept up: no more than a page for each waits.
            let dies = u64::from(self.shape.dies);
            units = units.min(dies * u64::from(self.shape.page_slots));
        }
        self.shared.array.forget_reads_only();
        let mut random = Stream::new(seed, "begun");
        let bound = self.firmware_bound();
        self.buffer
            .leave_over(units, Stream::new(seed, "left over"));
        for die in self.shape.every_die() {
            if !self.shared.array.vacant(die) {
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
            let gain = self.collector.gain(die);
            let host = random.below(u64::from(self.shape.block_slots)) < gain;
            if !(host && self.go_on_programming(now, die, until)) {
                self.go_on_collecting(now, die, until);
            }
        }
    }

    /// How the dies spend their time if the firmware's part in collection, and not they, bounds random writes.
    fn firmware_bound(&self) -> Option<FirmwareBound> {
        let (shape, timing) = (&self.shape, &self.config.timing);
        let block = u64::from(shape.block_slots);
        let slots = u64::from(shape.page_slots);
        let dies = u64::from(shape.dies);
        let kept = block - self.gain_of_all() / dies;
        let gain = block - kept;
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

    /// Slots that collecting the last victims of all dies frees.
    fn gain_of_all(&self) -> u64 {
        let dies = self.shape.every_die();
        dies.map(|die| self.collector.gain(die)).sum()
    }

    /// Lets a die be in the firmware's queue, perhaps programming a page of the host meanwhile, or collecting.
    fn go_on_behind_firmware(
        &mut self,
        now: Time,
        die: Die,
        until: Time,
        bound: &FirmwareBound,
        random: &mut Stream,
    ) {
        // The host has taken what was earned: dies wait for the firmware, and it for none.
        self.collector.spend_budget(die);
        if random.below(bound.cycle) < bound.collects {
            self.go_on_collecting(now, die, until);
            return;
        }
        let shared = &mut self.shared;
        self.collector
            .wait_for_firmware(now, die, bound.service, shared);
        if random.below(bound.cycle - bound.collects) < bound.programs {
            self.go_on_programming(now, die, until);
        }
    }

    /// Lets a die be collecting, until then.
    fn go_on_collecting(&mut self, now: Time, die: Die, until: Time) {
        let (array, events) = (&mut self.shared.array, &mut self.shared.events);
        array.begin(now, die, Work::Begun, Cause::Collection, until, events);
    }

    /// Lets a die be programming a page of host data, which will be done then; false if there is none.
    fn go_on_programming(&mut self, now: Time, die: Die, until: Time) -> bool {
        let shared = &mut self.shared;
        if !self.buffer.page_ready() {
            return false;
        }
        let Some(slot) = shared.ftl.take_page(die, Writer::Host) else {
            return false;
        };
        self.buffer.take_page(now, die, shared);
        let (array, events) = (&mut shared.array, &mut shared.events);
        array.go_on_programming(now, die, slot, until, events);
        true
    }

    /// Units of a buffer that was full at time zero which no die has taken yet.
    fn left_over_at(&self, now: Time) -> u64 {
        let shape = &self.shape;
        let units = self.buffer.units();
        let gain = self.gain_of_all();
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
}
