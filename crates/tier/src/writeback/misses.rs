//! Miss counts of units that were written and are not in the buffer, for admission of repeatedly written units: Open
//! CAS's nhit.
//!
//! Twice as many units are remembered as fit into the buffer; for an additional unit, the one that was seen first is
//! dropped. Source: OCF 0391fc1, `src/promotion/nhit`. Not modelled: read misses, which count there, too (here, reads
//! are not admitted).

use alloc::collections::VecDeque;

use crate::table::SparseTable;

/// Units remembered per unit of buffer capacity.
const REMEMBERED: u64 = 2;

/// Miss counts of units.
#[derive(Clone, Debug, Default)]
pub(super) struct Misses {
    counts: SparseTable,
    /// The remembered units, the one seen first at the front.
    met: VecDeque<u64>,
    most: usize,
}

impl Misses {
    /// Creates counts for `units` units, for a buffer with space for `room` units.
    pub(super) fn new(units: u64, room: u64) -> Misses {
        Misses {
            counts: SparseTable::new(units),
            met: VecDeque::new(),
            most: (REMEMBERED * room).max(1) as usize,
        }
    }

    /// Counts a miss of a unit; returns its number of misses, including this one.
    pub(super) fn count(&mut self, unit: u64) -> u32 {
        if let Some(known) = self.counts.get(unit) {
            let count = known.saturating_add(1).min(u32::MAX - 1);
            self.counts.set(unit, count);
            return count;
        }
        if self.met.len() == self.most
            && let Some(first) = self.met.pop_front()
        {
            self.counts.clear(first);
        }
        self.met.push_back(unit);
        self.counts.set(unit, 1);
        1
    }

    /// Resets the count of a unit that has been admitted.
    pub(super) fn taken_in(&mut self, unit: u64) {
        if self.counts.get(unit).is_some() {
            self.counts.set(unit, 0);
        }
    }

    /// Drops all counts.
    pub(super) fn power_cut(&mut self) {
        self.counts.reset();
        self.met.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_was_met_is_forgotten_first() {
        let mut misses = Misses::new(10_000, 2);
        assert_eq!(misses.count(7), 1);
        assert_eq!(misses.count(7), 2);
        for unit in [5000, 5001, 9999] {
            assert_eq!(misses.count(unit), 1);
        }
        assert_eq!(misses.count(7), 3, "four are remembered");
        // It was seen first, regardless of later misses.
        assert_eq!(misses.count(1), 1);
        assert_eq!(misses.count(7), 1);
        assert_eq!(misses.count(5000), 1, "forgotten for 7");
        misses.taken_in(9999);
        assert_eq!(misses.count(9999), 1);
        misses.taken_in(3);
        assert_eq!(misses.count(3), 1, "was never met");
        misses.power_cut();
        assert_eq!(misses.count(9999), 1);
    }
}
