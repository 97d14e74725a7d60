//! Garbage collection (GC) in bursts: all dies start when the space that they have earned is used up, and stop when
//! they have earned enough.
//!
//! During a burst, a die takes few pages of host data. It takes more of them the more writes wait, and the longer the
//! oldest of them has waited. A small buffer then fills, and writes stall for milliseconds. Between bursts a die takes the
//! pages that it has earned and copies nothing.
//!
//! Not modelled: drives near saturation throttle to the recent rate instead of stopping.

use alloc::vec;
use alloc::vec::Vec;

use super::super::buffer::WaitingWrites;
use super::super::config;
use crate::ftl::Die;

/// Position of the drive in the cycle of bursts.
#[derive(Clone, Debug)]
pub(super) struct BurstCycle {
    config: config::Bursts,
    /// Price of a page of host data in a die's budget.
    price: i64,
    /// Sum of the budgets of all dies: now, when a burst begins, and when it ends.
    earned: i64,
    least: i64,
    most: i64,
    active: bool,
    /// Whether a burst has begun or ended, and the dies have not been checked since.
    turned: bool,
    /// By die: number of pages of copies since its last page of host data.
    copied: Vec<u32>,
}

impl BurstCycle {
    pub(super) fn new(config: &config::Bursts, dies: u32, price: i64) -> BurstCycle {
        let all = i64::from(dies) * price;
        BurstCycle {
            config: config.clone(),
            price,
            earned: 0,
            least: all,
            most: all * i64::from(config.pages),
            active: false,
            turned: false,
            copied: vec![0; dies as usize],
        }
    }

    /// Restarts between two bursts, with the budgets of the dies.
    pub(super) fn begin(&mut self, budgets: impl Iterator<Item = i64>) {
        self.count(budgets);
        self.active = false;
        self.turned = false;
    }

    /// Whether a die with this budget collects.
    pub(super) fn collects(&self, budget: i64) -> bool {
        self.active && budget < 2 * i64::from(self.config.pages) * self.price
    }

    /// Whether a die with this budget takes a page of host data that it has earned, while these writes wait. A die
    /// that does not collect copies nothing, so its host pages need not wait for copies.
    pub(super) fn lets(&self, die: Die, budget: i64, waiting: WaitingWrites) -> bool {
        if !self.collects(budget) {
            return true;
        }
        let share = |value: u64, limit: u64| {
            u64::from(self.config.host_share) * limit.saturating_sub(value) / limit
        };
        let pages = share(waiting.number, u64::from(self.config.yield_at))
            .min(share(waiting.longest.ns(), self.config.yield_after.ns()));
        u64::from(self.copied[die.index()]) >= pages
    }

    /// Returns the part of a die's budget that counts: at most what a burst should earn. A die without a block for the
    /// host continues to earn, and must not prevent a burst.
    fn counts(&self, budget: i64) -> i64 {
        budget.min(i64::from(self.config.pages) * self.price)
    }

    /// A die's budget has changed, other than by a page of host data. Between bursts this does not count.
    pub(super) fn earn(&mut self, before: i64, now: i64) {
        if !self.active {
            return;
        }
        self.earned += self.counts(now) - self.counts(before);
        if self.earned >= self.most {
            self.active = false;
            self.turned = true;
        }
    }

    /// A die takes a page of host data, which changes its budget. Returns whether a burst may have to begin: the caller
    /// then calls [`BurstCycle::begin_if_spent`].
    pub(super) fn pay(&mut self, die: Die, before: i64, now: i64) -> bool {
        self.copied[die.index()] = 0;
        self.earned -= self.counts(before) - self.counts(now);
        !self.active && self.earned < self.least
    }

    /// Recomputes the earned budgets of the dies, including what they earned between bursts (in idle time, or because
    /// they found no victim), and begins a burst if these are used up.
    pub(super) fn begin_if_spent(&mut self, budgets: impl Iterator<Item = i64>) {
        self.count(budgets);
        if self.earned < self.least {
            self.active = true;
            self.turned = true;
            self.take_turns();
        }
    }

    /// Distributes the dies' next pages of host data over time, because they would all be due at once.
    fn take_turns(&mut self) {
        let dies = self.copied.len() as u64;
        for (die, copied) in (0..).zip(&mut self.copied) {
            *copied = (die * u64::from(self.config.host_share) / dies) as u32;
        }
    }

    /// Recomputes the earned budgets of the dies.
    fn count(&mut self, budgets: impl Iterator<Item = i64>) {
        self.earned = budgets.map(|budget| self.counts(budget)).sum();
    }

    /// A die programs a page of copies.
    pub(super) fn copies(&mut self, die: Die) {
        let copied = &mut self.copied[die.index()];
        *copied = copied.saturating_add(1);
    }

    /// A die has nothing to copy: its host pages need not wait for copies.
    pub(super) fn give_up(&mut self, die: Die) {
        self.copied[die.index()] = u32::MAX;
    }

    /// Returns whether a burst has begun or ended since the last call.
    pub(super) fn take_turn(&mut self) -> bool {
        core::mem::take(&mut self.turned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    /// Writes that have just arrived.
    fn new(number: u64) -> WaitingWrites {
        WaitingWrites {
            number,
            longest: Span::ZERO,
        }
    }

    #[test]
    fn a_burst_begins_when_little_is_left_and_ends_when_enough_is_earned() {
        let config = config::Bursts {
            pages: 3,
            host_share: 4,
            yield_at: 100,
            yield_after: Span::from_ms(20),
        };
        let mut bursts = BurstCycle::new(&config, 2, 10);
        // For a die that is far ahead, only three pages count.
        bursts.begin([10, 400].into_iter());
        assert!(!bursts.collects(0) && bursts.lets(Die(0), 0, new(0)));
        bursts.earn(0, 50);
        assert!(
            !bursts.pay(Die(1), 400, 390) && !bursts.pay(Die(1), 30, 20) && !bursts.take_turn()
        );
        assert!(!bursts.pay(Die(0), 10, 0) && bursts.pay(Die(1), 20, 10));
        bursts.begin_if_spent([0, 10].into_iter());
        assert!(bursts.take_turn() && !bursts.take_turn());
        assert_eq!(bursts.copied, [0, 2]);
        bursts.copied = vec![0, 0];
        // Now a die copies four pages per host page; two, while half of `yield_at` writes wait.
        assert!(bursts.collects(59) && !bursts.collects(60));
        for (copied, waiting) in [(0, 100), (1, 75), (2, 50), (4, 0)] {
            while bursts.copied[0] < copied {
                bursts.copies(Die(0));
            }
            assert!(bursts.lets(Die(0), 0, new(waiting)), "{copied}");
            assert!(
                copied == 0 || !bursts.lets(Die(1), 0, new(waiting)),
                "{copied}"
            );
        }
        // Or two, while the oldest of a few writes has waited for more than a quarter of `yield_after`.
        bursts.copied[0] = 2;
        for (ms, lets) in [(5, false), (6, true), (30, true)] {
            let waiting = WaitingWrites {
                number: 1,
                longest: Span::from_ms(ms),
            };
            assert_eq!(bursts.lets(Die(0), 0, waiting), lets, "{ms} ms");
        }
        bursts.give_up(Die(1));
        assert!(bursts.lets(Die(1), 0, new(0)));
        bursts.earn(0, 29);
        bursts.earn(10, 800);
        assert!(!bursts.take_turn());
        bursts.earn(29, 31);
        assert!(bursts.take_turn() && !bursts.collects(0));
    }
    #[test]
    fn dies_that_earned_in_idle_time_begin_no_burst_and_wait_for_no_copies() {
        let config = config::Bursts {
            pages: 3,
            host_share: 4,
            yield_at: 100,
            yield_after: Span::from_ms(20),
        };
        let mut bursts = BurstCycle::new(&config, 2, 10);
        bursts.begin([0, 0].into_iter());
        // Both have earned much since then; none would collect, so a burst would never end.
        assert!(bursts.pay(Die(0), 500, 490));
        bursts.begin_if_spent([490, 500].into_iter());
        assert!(!bursts.active && !bursts.take_turn());
        assert!(!bursts.pay(Die(0), 490, 480));
        // A burst that other dies need does not wait for one die that is far ahead, either.
        bursts.begin_if_spent([0, 10].into_iter());
        assert!(bursts.active && !bursts.lets(Die(0), 59, new(0)));
        assert!(!bursts.collects(60) && bursts.lets(Die(0), 60, new(0)));
    }
}
