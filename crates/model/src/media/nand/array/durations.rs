//! How long dies take: means of the catalogue, with their spread drawn each time.
//!
//! Leaves out: the difference between sensing lower and upper pages beyond a uniform spread.

use core::hint::cold_path;

use super::super::config::{NandConfig, SlcCache};
use crate::ftl::{Ftl, Shape, Slot};
use crate::random::Stream;
use crate::time::Span;

/// Times of senses, programs and refreshes.
#[derive(Clone, Debug)]
pub(super) struct Durations {
    block_slots: u32,
    page_slots: u32,
    /// Of a page, with one bit a cell if its block is so, and of one of the map.
    read: Span,
    slc: Option<SlcCache>,
    map_read: Span,
    /// A sense takes up to this share more or less, and is made once more with this probability, again and again.
    read_spread: f64,
    retry_probability: f64,
    /// Of lower pages and of upper ones, and the share that one takes more or less.
    program: [Span; 2],
    program_jitter: f64,
    random: Stream,
}

impl Durations {
    /// Of this drive; `random` draws all that varies.
    pub(super) fn new(config: &NandConfig, shape: &Shape, random: Stream) -> Durations {
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

    /// Of the next program, of the page at this slot with all the bits of its cells.
    pub(super) fn program(&mut self, slot: Slot) -> Span {
        let page = slot.0 % self.block_slots / self.page_slots;
        let mean = self.program[page as usize % 2];
        if self.program_jitter == 0.0 {
            return mean;
        }
        mean.scale(1.0 + self.program_jitter * (2.0 * self.random.unit() - 1.0))
    }

    /// Of the next sense of the page with this slot.
    #[inline]
    pub(super) fn sense(&mut self, slot: Slot, ftl: &Ftl) -> Span {
        let mean = match &self.slc {
            Some(slc) if ftl.is_slc(slot) => slc.read,
            _ => self.read,
        };
        self.vary(mean)
    }

    /// Of the next sense of a page of the map.
    #[inline]
    pub(super) fn sense_of_map(&mut self) -> Span {
        self.vary(self.map_read)
    }

    /// A sense that takes so long on average: with spread and retries.
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

    /// From the end of a refresh to the next, which come `every` so long.
    pub(super) fn refresh_gap(&mut self, every: Span) -> Span {
        self.random.exponential(every)
    }
}
