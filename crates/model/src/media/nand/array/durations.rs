//! Durations of die operations: means from the catalogue, with a random deviation for each operation.
//!
//! Senses of a drive whose kinds of pages are known (`read_thresholds`) take one of as many times: a fixed part, and a part
//! for each threshold that the cells are compared with. The first slots of a page are those of the first kind. Neighbours
//! of a fill in stripes are therefore in pages of one kind on different dies. For other drives, the difference between
//! lower and upper pages is a uniform spread.
//!
//! Not modelled: slots in several kinds of pages need several senses; here one sense of the slowest kind reads them. A
//! sense for garbage collection takes the mean, because it moves few slots of a page or all.

use alloc::vec::Vec;
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
    /// Factors of the mean, one for each kind of page; empty if the kinds are not known.
    read_factors: Vec<f64>,
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
            read_factors: factors(&timing.read_thresholds, timing.read_spread),
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

    /// Returns the duration of the next sense of this many slots of a page, from this one.
    #[inline]
    pub(super) fn sense(&mut self, slot: Slot, slots: u32, ftl: &Ftl) -> Span {
        let (mean, one_bit) = self.mean(slot, ftl);
        let factor = if one_bit {
            1.0
        } else {
            self.factor(slot, slots)
        };
        self.vary(mean, factor)
    }

    /// Returns the duration of the next sense of a page that garbage collection moves.
    pub(super) fn sense_to_move(&mut self, slot: Slot, ftl: &Ftl) -> Span {
        let mean = self.mean(slot, ftl).0;
        self.vary(mean, 1.0)
    }

    /// Returns the mean duration of a sense of the page at this slot, and whether its cells hold one bit.
    #[inline]
    fn mean(&self, slot: Slot, ftl: &Ftl) -> (Span, bool) {
        match &self.slc {
            Some(slc) if ftl.is_slc(slot) => (slc.read, true),
            _ => (self.read, false),
        }
    }

    /// Returns the factor of the mean for the slowest kind of page that these slots are in.
    #[inline]
    fn factor(&self, slot: Slot, slots: u32) -> f64 {
        let kinds = self.read_factors.len() as u32;
        if kinds == 0 {
            return 1.0;
        }
        let first = slot.0 % self.page_slots;
        let last = (first + slots.max(1) - 1).min(self.page_slots - 1);
        let kind = |at: u32| (at * kinds / self.page_slots) as usize;
        let met = self.read_factors[kind(first)..=kind(last)].iter();
        met.copied().fold(0.0, f64::max)
    }

    /// Returns the duration of the next sense of a page of the map.
    #[inline]
    pub(super) fn sense_of_map(&mut self) -> Span {
        self.vary(self.map_read, 1.0)
    }

    /// Returns the duration of a sense with this mean: with retries, and with the factor of its kind of page, if kinds are
    /// known, or with spread.
    #[inline]
    fn vary(&mut self, mean: Span, factor: f64) -> Span {
        let mut time = mean;
        if !self.read_factors.is_empty() {
            if factor != 1.0 {
                time = mean.scale(factor);
            }
        } else if self.read_spread > 0.0 {
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

/// Returns the factor of the mean for each kind of page: the slowest takes `spread` more than the mean, and the time of
/// the others follows from their thresholds.
fn factors(thresholds: &[u32], spread: f64) -> Vec<f64> {
    let Some(&most) = thresholds.iter().max() else {
        return Vec::new();
    };
    let mean = f64::from(thresholds.iter().sum::<u32>()) / thresholds.len() as f64;
    let step = spread / (f64::from(most) - mean);
    let factor = |&count: &u32| 1.0 + step * (f64::from(count) - mean);
    thresholds.iter().map(factor).collect()
}

#[cfg(test)]
mod tests {
    use super::factors;

    #[test]
    fn kinds_of_pages_keep_the_mean_and_their_steps() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(factors(&[], 0.5).is_empty());
        let kinds = factors(&[1, 2, 4], 0.5);
        assert!(close(kinds.iter().sum::<f64>(), 3.0), "{kinds:?}");
        assert!(close(kinds[2], 1.5));
        // Two thresholds from the middle to the upper page, one from the lower to the middle page.
        assert!(close(kinds[2] - kinds[1], 2.0 * (kinds[1] - kinds[0])));
    }
}
