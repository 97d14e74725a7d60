//! Durations of die operations: means from the catalogue, with a random deviation for each operation.
//!
//! Not modelled: the difference between sensing lower and upper pages, except as a uniform spread.

use core::hint::cold_path;

use super::super::config::{NandConfig, SlcCache};
use crate::ftl::{Ftl, FtlGeometry, Slot};
use crate::random::Stream;
use crate::time::Span;

/// Durations of senses, programs and refreshes.
#[derive(Clone, Debug)]
pub(super) struct Durations {
    block_slots: u32,
    page_slots: u32,
    /// Mean sense time of a page, of a pSLC page, and of a page of the map.
    read: Span,
    slc: Option<SlcCache>,
    map_read: Span,
    /// A sense deviates by up to this share, and is repeated with this probability, any number of times.
    read_spread: f64,
    retry_probability: f64,
    /// Program times of lower and of upper pages, and the share by which one deviates.
    program: [Span; 2],
    program_jitter: f64,
    random: Stream,
}

impl Durations {
    /// Creates the durations of a drive; `random` supplies all deviations.
    pub(super) fn new(config: &NandConfig, shape: &FtlGeometry, random: Stream) -> Durations {
        let timing = &config.timing;
        Durations {
            block_slots: shape.block_slots,
            page_slots: shape.page_slots,
            read: timing.read,
            slc: config.slc.clone(),
            map_read: config.map.as_ref().map_or(timing.read, |map| map.read),
            read_spread: timing.read_spread,
            retry_probability: timing.retry_probability,
            program: [-1.0, 1.0]
                .map(|sign| timing.program.scale(1.0 + sign * timing.program_spread)),
            program_jitter: timing.program_jitter,
            random,
        }
    }

    /// Returns the duration of the next program of the page at this slot, with all bits per cell.
    pub(super) fn program(&mut self, slot: Slot) -> Span {
        let page = slot.0 % self.block_slots / self.page_slots;
        let mean = self.program[page as usize % 2];
        if self.program_jitter == 0.0 {
            return mean;
        }
        mean.scale(1.0 + self.program_jitter * (2.0 * self.random.unit() - 1.0))
    }

    /// Returns the duration of the next sense of the page at this slot.
    #[inline]
    pub(super) fn sense(&mut self, slot: Slot, ftl: &Ftl) -> Span {
        let mean = match &self.slc {
            Some(slc) if ftl.is_slc(slot) => slc.read,
            _ => self.read,
        };
        self.vary(mean)
    }

    /// Returns the duration of the next sense of a page of the map.
    #[inline]
    pub(super) fn sense_of_map(&mut self) -> Span {
        self.vary(self.map_read)
    }

    /// Returns the duration of a sense with this mean: with spread and retries.
    #[inline]
    fn vary(&mut self, mean: Span) -> Span {
        let mut time = mean;
        if self.read_spread > 0.0 {
            let factor = 1.0 + self.read_spread * (2.0 * self.random.unit() - 1.0);
            time = Span::from_ns((time.ns() as f64 * factor) as u64);
        }
        if self.retry_probability > 0.0 {
            cold_path();
            while self.random.chance(self.retry_probability) {
                time += mean;
            }
        }
        time
    }

    /// Returns the time from the end of a refresh to the next, for refreshes with mean interval `every`.
    pub(super) fn refresh_gap(&mut self, every: Span) -> Span {
        self.random.exponential(every)
    }
}
