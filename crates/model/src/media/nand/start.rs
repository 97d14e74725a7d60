//! Initial state of a drive in steady state: its state at the moment at which the preconditioning writes stop.
//!
//! Dies are in the middle of a victim and of a program, and the buffer is full of acknowledged units that are not on
//! the medium yet. Random overwriting leaves this state and continues from it; under a load that writes less, these
//! units are programmed within about a tenth of a second. The state is created at the first change of the map, without
//! the units that would have been programmed by then. A drive that is only read never needs it, and behaves like one
//! that has been idle for a moment. A load with flushes never has a full buffer, so at the first flush the left-over
//! units are assumed to be on the medium. If firmware time for garbage collection limits the write rate, dies are also
//! in its queue. If the drive collects in bursts, the run begins at a random position between two bursts: each die has
//! collected for a number of pages that is drawn from the seed. The account of write amplification contains these copies.
//!
//! Not modelled: which unit was written when (the page of a left-over unit is drawn when a die takes it), reads of
//! these units from the buffer, and busy channels. Why: `docs/decisions/0040-steady-from-the-start.md`.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Nand;
use super::array::DieWork;
use super::collector::Collector;
use super::config::{NandConfig, SlcCache};
use super::timeline::Cause;
use crate::ftl::{
    Collecting, Die, Ftl, FtlGeometry, FtlSnapshot, Traffic, Watermark, Writer, warm_up,
};
use crate::random::Stream;
use crate::time::{Span, Time};

/// The state in which the first write finds a drive that has been overwritten for a long time.
#[derive(Debug)]
pub struct WarmState {
    seed: u64,
    shape: FtlGeometry,
    watermark: Watermark,
    slc: Option<SlcCache>,
    ahead: u32,
    saved: FtlSnapshot,
    collecting: Vec<Collecting>,
}

/// Returns the pages that a warm-up collects ahead on each die: it ends where a burst begins, and a run can begin anywhere
/// between two bursts.
fn ahead(seed: u64, config: &NandConfig) -> u32 {
    config.collection.bursts.as_ref().map_or(0, |bursts| {
        let pages = u64::from(bursts.pages.max(1));
        Stream::new(seed, "bursts").uniform_below(pages) as u32
    })
}

/// A completed warm-up, and its result once it was needed a second time.
#[derive(Clone, Debug)]
pub(super) struct CompletedWarmUp {
    seed: u64,
    saved: Option<Arc<WarmState>>,
    /// Whether the tables are those of the saved state, with all changes since then recorded.
    at_hand: bool,
}

impl CompletedWarmUp {
    /// Returns the saved state, if the tables equal it except for recorded changes.
    pub(super) fn at_hand(&self) -> Option<&FtlSnapshot> {
        let state = self.saved.as_ref().filter(|_| self.at_hand);
        state.map(|state| &state.saved)
    }
}

/// Work to be done before the first change of the map, and initial values of counters.
#[derive(Clone, Debug)]
pub(super) struct NandStart {
    /// Seed of a pending warm-up of the steady state.
    cold: Option<u64>,
    /// Seed of units left over by random writes before time zero, if pending.
    overwritten: Option<u64>,
    /// The warm-up of the drive whose memory this one reuses, if it is the same.
    warmed: Option<CompletedWarmUp>,
    /// Counters of the FTL when the run began, and the GC copies charged until then.
    traffic: Traffic,
    charged: f64,
}

impl NandStart {
    /// Creates the state for an FTL: `cold` is the seed of a steady state that must be warmed up, and of its left-over
    /// units.
    pub(super) fn new(ftl: &Ftl, cold: Option<u64>) -> NandStart {
        NandStart {
            cold,
            overwritten: cold,
            warmed: None,
            traffic: *ftl.traffic(),
            charged: ftl.charged(),
        }
    }

    /// Creates the state of a drive that has actually been overwritten.
    pub(super) fn overwritten(ftl: &Ftl, seed: u64) -> NandStart {
        let mut start = NandStart::new(ftl, None);
        start.overwritten = Some(seed);
        start
    }

    /// Returns its knowledge of the warm-up with this seed.
    pub(super) fn warmed(self, seed: u64) -> Option<CompletedWarmUp> {
        self.warmed.filter(|warmed| warmed.seed == seed)
    }

    /// Stores a warm-up; `at_hand`: whether its tables have been rewound.
    pub(super) fn remember(&mut self, warmed: Option<CompletedWarmUp>, at_hand: bool) {
        self.warmed = warmed.map(|warmed| CompletedWarmUp { at_hand, ..warmed });
    }

    /// See [`crate::media::MediumDrive::know`].
    pub(super) fn know(
        &mut self,
        states: &[Arc<WarmState>],
        again: bool,
        config: &NandConfig,
        shape: &FtlGeometry,
    ) {
        let Some(seed) = self.cold else {
            return;
        };
        if self.warm_state().is_some() {
            return;
        }
        let fits = |state: &&Arc<WarmState>| {
            state.seed == seed
                && state.shape == *shape
                && state.watermark == config.collection.watermark
                && state.slc == config.slc
                && state.ahead == ahead(seed, config)
        };
        let saved = states.iter().find(fits).cloned();
        if saved.is_some() || again {
            self.warmed = Some(CompletedWarmUp {
                seed,
                saved,
                at_hand: false,
            });
        }
    }

    /// Returns the warm state that it knows.
    pub(super) fn warm_state(&self) -> Option<&Arc<WarmState>> {
        self.warmed.as_ref()?.saved.as_ref()
    }

    /// Warms up the computed steady state, once, before the first change of the map.
    fn warm(&mut self, ftl: &mut Ftl, collector: &mut Collector, config: &NandConfig) {
        let Some(seed) = self.cold.take() else {
            return;
        };
        let ahead = ahead(seed, config);
        match &mut self.warmed {
            Some(CompletedWarmUp {
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
                collector.resume(&state.collecting);
            }
            Some(warmed) => {
                let collecting = warm_up(ftl, seed, ahead);
                collector.resume(&collecting);
                let state = WarmState {
                    seed,
                    shape: *ftl.shape(),
                    watermark: config.collection.watermark,
                    slc: config.slc.clone(),
                    ahead,
                    saved: ftl.save(),
                    collecting,
                };
                warmed.saved = Some(Arc::new(state));
                warmed.at_hand = true;
            }
            None => {
                collector.resume(&warm_up(ftl, seed, ahead));
                self.warmed = Some(CompletedWarmUp {
                    seed,
                    saved: None,
                    at_hand: false,
                });
            }
        }
        self.traffic = *ftl.traffic();
        self.charged = ftl.charged();
    }

    /// Returns the counters of the FTL since the run began.
    pub(super) fn traffic_since(&self, ftl: &Ftl) -> Traffic {
        let now = ftl.traffic();
        Traffic {
            host: now.host - self.traffic.host,
            moved: now.moved - self.traffic.moved,
            padded: now.padded - self.traffic.padded,
            erased: now.erased - self.traffic.erased,
        }
    }

    /// Returns the copies that had been charged to writes when the run began.
    pub(super) fn charged_before(&self) -> f64 {
        self.charged
    }
}

#[cfg(test)]
impl NandStart {
    /// Whether the result of a warm-up is stored.
    pub(super) fn remembers(&self) -> bool {
        self.warm_state().is_some()
    }
}

/// If the firmware limits garbage collection: times per page of a victim, in nanoseconds if not stated otherwise.
#[derive(Clone, Copy, Debug)]
struct FirmwareBound {
    /// Firmware time per page.
    service: Span,
    /// From one page of a die to its next: the firmware processes one page of each other die meanwhile.
    cycle: u64,
    /// Part of the cycle in which the die senses, programs copies and erases, and is not in the queue.
    collects: u64,
    /// Part of the cycle in which the die programs host pages, while it is in the queue.
    programs: u64,
}

impl Nand {
    /// Warms up the computed steady state, once, before the first change of the map.
    pub(super) fn warm(&mut self) {
        if self.start.cold.is_none() {
            return;
        }
        self.start
            .warm(&mut self.shared.ftl, &mut self.collector, &self.config);
        self.pace_writes();
        self.shared.array.forget_reads_only();
        for die in self.shape.every_die() {
            self.shared.array.ask_again(die);
        }
    }

    /// Puts dies and buffer into the state after random writes that stopped at time zero, once.
    pub(super) fn go_on_writing(&mut self, now: Time) {
        let Some(seed) = self.start.overwritten.take() else {
            return;
        };
        let mut units = self.left_over_at(now);
        if self.shared.front.paces() {
            // The dies have kept up: at most one page per die waits.
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
            let until = now + Span::from_ns(step * (1 + random.uniform_below(1000)));
            if let Some(bound) = &bound {
                self.go_on_behind_firmware(now, die, until, bound, &mut random);
                continue;
            }
            // The share of host pages among the programmed pages is the gain of a block divided by its slots.
            let gain = self.collector.gain(die);
            let host = random.uniform_below(u64::from(self.shape.block_slots)) < gain;
            if !(host && self.go_on_programming(now, die, until)) {
                self.go_on_collecting(now, die, until);
            }
        }
    }

    /// Returns the times of the dies if the firmware's part in garbage collection, and not the dies, limits random
    /// writes.
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

    /// Returns the slots that collecting the last victims of all dies frees.
    fn gain_of_all(&self) -> u64 {
        let dies = self.shape.every_die();
        dies.map(|die| self.collector.gain(die)).sum()
    }

    /// Puts a die into the firmware's queue, possibly programming a host page meanwhile, or into garbage collection.
    fn go_on_behind_firmware(
        &mut self,
        now: Time,
        die: Die,
        until: Time,
        bound: &FirmwareBound,
        random: &mut Stream,
    ) {
        // The host has used what was earned: dies wait for the firmware, and the firmware for none.
        self.collector.spend_budget(die);
        if random.uniform_below(bound.cycle) < bound.collects {
            self.go_on_collecting(now, die, until);
            return;
        }
        let shared = &mut self.shared;
        self.collector
            .wait_for_firmware(now, die, bound.service, shared);
        if random.uniform_below(bound.cycle - bound.collects) < bound.programs {
            self.go_on_programming(now, die, until);
        }
    }

    /// Makes a die collect until `until`.
    fn go_on_collecting(&mut self, now: Time, die: Die, until: Time) {
        let (array, events) = (&mut self.shared.array, &mut self.shared.events);
        array.begin(now, die, DieWork::Begun, Cause::Collection, until, events);
    }

    /// Makes a die program a page of host data until `until`; returns false if there is none.
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

    /// Returns the units of a buffer that was full at time zero which no die has taken yet.
    fn left_over_at(&self, now: Time) -> u64 {
        let shape = &self.shape;
        let units = self.buffer.units();
        let gain = self.gain_of_all();
        // Each page of host data takes as many program times as a block has pages per page that it gains; or the
        // firmware time of one page per die.
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
