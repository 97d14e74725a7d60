//! Cores (or lanes) of a controller, which share by address the work for reads from the medium.
//!
//! Outstanding commands are never spread evenly over the cores, so reads wait longer, and with more variation, than for
//! a single processor with the speed of all of them. A command is delayed once, before its first sense; commands can
//! overtake each other. Not modelled: writes, data that is in the controller's memory, and senses of a command beyond
//! its first. How firmware divides its work is not published; `docs/decisions/0100` gives the evidence.

use alloc::vec;
use alloc::vec::Vec;

use crate::engine::Station;
use crate::ftl::UNIT;
use crate::media::nand::config::ReadCoreConfig;
use crate::time::{Span, Time};

/// Returns the core for a command that begins at this offset. Multiples of the golden section spread neighbours and all
/// strides evenly over any number of cores.
#[inline]
fn core_of(offset: u64, cores: usize) -> usize {
    let spread = (offset / u64::from(UNIT)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((u128::from(spread) * cores as u128) >> 64) as usize
}

/// Cores, each first in, first out.
#[derive(Clone, Debug)]
pub(super) struct ReadCores {
    per_read: Span,
    cores: Vec<Station>,
}

impl ReadCores {
    pub(super) fn new(config: ReadCoreConfig) -> ReadCores {
        ReadCores {
            per_read: config.per_read,
            cores: vec![Station::default(); config.count as usize],
        }
    }

    /// A command that begins at `offset` arrives at its core at `now`; returns when it leaves.
    pub(super) fn book(&mut self, now: Time, offset: u64) -> Time {
        let core = core_of(offset, self.cores.len());
        self.cores[core].book(now, self.per_read).1
    }

    /// Returns the busy time of the busiest core.
    pub(super) fn busiest(&self, now: Time) -> Span {
        let busy = self.cores.iter().map(|core| core.busy(now));
        busy.max().unwrap_or(Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_stride_all_cores_have_work() {
        for cores in 1..=64_usize {
            for stride in [1, 2, 8, 16, 32, 12, 18, 1000] {
                let mut had = [0_u32; 64];
                for read in 0..cores as u64 * 64 {
                    had[core_of(read * stride * 4096, cores)] += 1;
                }
                let (had, none) = had.split_at(cores);
                assert!(none.iter().all(|reads| *reads == 0));
                let fair = had.iter().all(|reads| (32..=128).contains(reads));
                assert!(fair, "{cores} cores, every {stride}th unit: {had:?}");
            }
        }
    }

    #[test]
    fn one_address_waits_for_itself_and_another_does_not() {
        let work = Span::from_us(20);
        let mut cores = ReadCores::new(ReadCoreConfig {
            count: 4,
            per_read: work,
        });
        let elsewhere = (1..100).find(|unit| core_of(unit * 4096, 4) != core_of(0, 4));
        let elsewhere = elsewhere.expect("three in four") * 4096;
        let now = Time::ZERO;
        assert_eq!(cores.book(now, 0), now + work);
        assert_eq!(cores.book(now, 0), now + work * 2);
        assert_eq!(cores.book(now, elsewhere), now + work);
        assert_eq!(cores.busiest(now + work), work);
        assert_eq!(cores.busiest(now + work * 3), work * 2);
    }
}
