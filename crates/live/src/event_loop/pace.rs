//! Whether to spin for the next command at full speed, or to sleep.
//!
//! A client that polls sends its next command within microseconds: spinning until then costs less than going to sleep
//! and being woken. One that sleeps takes longer to send than a wake-up costs: spinning for it only burns CPU time. So
//! the loop spins if the commands it has found by spinning came soon, and tries now and then whether that has changed.
//! Where a drive's latency is imitated this is not asked: there the loop spins for accuracy.

use model::Span;

/// Spin if the next command comes within this time, on average: about what sleeping and waking costs.
const SOON: u64 = 12_000;

/// Give up spinning after this long.
const LIMIT: Span = Span::from_us(25);

/// After so many sleeps it is tried again.
const TRY_EVERY: u32 = 32;

/// What is known of the clients' pace.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    /// Mean time until the next command, in nanoseconds.
    gap_ns: u64,
    sleeps: u32,
    /// What was decided since the last command.
    decided: Option<bool>,
}

impl Pace {
    /// Whether to spin, so long after the last command.
    pub(super) fn spins(&mut self, since: Span) -> bool {
        let spins = match self.decided {
            Some(decided) => decided,
            None => self.decide(),
        };
        if spins && since > LIMIT {
            self.learn(LIMIT * 2);
            self.decided = Some(false);
            return false;
        }
        spins
    }

    fn decide(&mut self) -> bool {
        let mut spins = self.gap_ns < SOON;
        if !spins {
            self.sleeps += 1;
            spins = self.sleeps % TRY_EVERY == 0;
        }
        self.decided = Some(spins);
        spins
    }

    /// A command came, so long after the last.
    #[inline]
    pub(super) fn came(&mut self, since: Span) {
        // After a sleep the time of waking up is in it.
        if self.decided.take() == Some(true) {
            self.learn(since);
        }
    }

    fn learn(&mut self, gap: Span) {
        self.gap_ns = (self.gap_ns * 7 + gap.ns()) / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands this long apart; how many of the last hundred were waited for by spinning.
    fn spun(pace: &mut Pace, gap: Span) -> u32 {
        let mut spun = 0;
        for round in 0..1_000 {
            let spins = pace.spins(Span::ZERO);
            if spins && gap > LIMIT {
                assert!(!pace.spins(gap), "it gives up");
            }
            spun += u32::from(spins && round >= 900);
            pace.came(gap);
        }
        spun
    }

    #[test]
    fn it_spins_for_those_who_are_quick_and_sleeps_for_others() {
        let mut pace = Pace::default();
        assert_eq!(spun(&mut pace, Span::from_us(5)), 100);
        assert!(spun(&mut pace, Span::from_us(40)) < 10);
        assert!(spun(&mut pace, Span::from_us(20)) < 10);
        assert_eq!(spun(&mut pace, Span::from_us(3)), 100);
    }
}
