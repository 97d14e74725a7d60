//! How often units were written that the buffer does not hold, so that it takes in what comes again: Open CAS's nhit.
//!
//! As many units are remembered as twice the buffer has; for another the one that was met first is forgotten. Source: OCF
//! 0391fc1, `src/promotion/nhit`. Left out: misses of reads, which count there, too (nothing is taken in for a read here).

use alloc::collections::VecDeque;

use crate::tier::table::Table;

/// Units remembered for each that the buffer has room for.
const REMEMBERED: u64 = 2;

/// How often units were missed.
#[derive(Clone, Debug, Default)]
pub(super) struct Misses {
    counts: Table,
    /// The units that are remembered, from the one that was met first.
    met: VecDeque<u64>,
    most: usize,
}

impl Misses {
    /// Of so many units, for a buffer that has room for so many.
    pub(super) fn new(units: u64, room: u64) -> Misses {
        Misses {
            counts: Table::new(units),
            met: VecDeque::new(),
            most: (REMEMBERED * room).max(1) as usize,
        }
    }

    /// A unit is missed; how often it has been, with this time.
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

    /// It has been taken in: it begins anew.
    pub(super) fn taken_in(&mut self, unit: u64) {
        if self.counts.get(unit).is_some() {
            self.counts.set(unit, 0);
        }
    }

    /// Nothing is remembered any more.
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
        // It was met first, however often since.
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
