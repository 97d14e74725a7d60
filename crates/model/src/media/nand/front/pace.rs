//! Pacing of writes: a unit is admitted when the array time of the previous one has passed, or up to a few units
//! earlier.
//!
//! A bucket of `depth` units that fills at one unit per interval, stored as the time at which it would be full again
//! (the generic cell rate algorithm of ITU-T I.371). The interval depends on the cost of writing, and is set from
//! outside.

use super::super::config::Pace;
use crate::time::{Span, Time};

/// State of the pacer.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    depth: u32,
    interval: Span,
    /// When the array time of all admitted units will have passed.
    full: Time,
    /// When the last units were admitted.
    last: Time,
}

impl Pacer {
    /// Creates a pacer that admits everything at once until an interval is set.
    pub(super) fn new(config: &Pace) -> Pacer {
        Pacer {
            depth: config.depth,
            interval: Span::ZERO,
            full: Time::ZERO,
            last: Time::ZERO,
        }
    }

    /// Sets the array time per unit.
    pub(super) fn set_interval(&mut self, interval: Span) {
        self.interval = interval;
    }

    /// Returns when `units` units that arrive at `at` are admitted: in order, even if the interval has become longer,
    /// and with it the time by which they may be early.
    #[inline]
    pub(super) fn enter(&mut self, at: Time, units: u32) -> Time {
        let ahead = self.full.since(at);
        let may = self.interval * u64::from(self.depth);
        self.full = self.full.max(at) + self.interval * u64::from(units);
        self.last = self.last.max(at + ahead.saturating_sub(may));
        self.last
    }

    /// Returns when a command without data that arrives at `at` passes: it does not overtake delayed writes.
    #[inline]
    pub(super) fn follow(&self, at: Time) -> Time {
        self.last.max(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_come_at_once_and_the_others_at_their_interval() {
        let mut pacer = Pacer::new(&Pace { depth: 2 });
        let at = |us| Time::ZERO + Span::from_us(us);
        assert_eq!(pacer.enter(at(5), 100), at(5));
        pacer.set_interval(Span::from_us(10));
        let came = [(); 5].map(|()| pacer.enter(at(100), 1));
        assert_eq!(came, [at(100), at(100), at(100), at(110), at(120)]);
        // Lateness is compensated by at most the depth.
        assert_eq!(pacer.enter(at(1000), 1), at(1000));
        assert_eq!(pacer.enter(at(1000), 3), at(1000));
        assert_eq!(pacer.enter(at(1000), 1), at(1020));
    }

    #[test]
    fn writes_enter_in_order_when_the_interval_grows() {
        let mut pacer = Pacer::new(&Pace { depth: 4 });
        let at = |us| Time::ZERO + Span::from_us(us);
        pacer.set_interval(Span::from_us(10));
        let before = pacer.enter(at(0), 8).max(pacer.enter(at(0), 1));
        assert_eq!(before, at(40));
        pacer.set_interval(Span::from_us(20));
        assert_eq!(pacer.enter(at(0), 1), at(40));
        assert_eq!([1, 50].map(|us| pacer.follow(at(us))), [at(40), at(50)]);
    }
}
