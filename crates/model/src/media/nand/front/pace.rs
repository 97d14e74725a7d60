//! Pacing of writes: a unit is let in when the one before has had its time of the array, or up to a few units earlier.
//!
//! A bucket of `depth` units that fills at one unit an interval, kept as the time at which it would be full again
//! (the generic cell rate algorithm of ITU-T I.371). The interval follows what writing costs, and is told from outside.

use super::super::config::Pace;
use crate::time::{Span, Time};

/// When the next unit may come in.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    depth: u32,
    interval: Span,
    /// When all that has been let in will have had its time.
    full: Time,
    /// When the last units were let in.
    last: Time,
}

impl Pacer {
    /// Lets everything in at once until it is told an interval.
    pub(super) fn new(config: &Pace) -> Pacer {
        Pacer {
            depth: config.depth,
            interval: Span::ZERO,
            full: Time::ZERO,
            last: Time::ZERO,
        }
    }

    /// A unit's time of the array is so long from now on.
    pub(super) fn tell(&mut self, interval: Span) {
        self.interval = interval;
    }

    /// When so many units that are there at `at` are let in: in order, even if the interval has become longer, and with it
    /// the time by which they may be early.
    #[inline]
    pub(super) fn enter(&mut self, at: Time, units: u32) -> Time {
        let ahead = self.full.since(at);
        let may = self.interval * u64::from(self.depth);
        self.full = self.full.max(at) + self.interval * u64::from(units);
        self.last = self.last.max(at + ahead.saturating_sub(may));
        self.last
    }

    /// When a command without data that is there at `at` passes: it does not overtake writes that are held back.
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
        pacer.tell(Span::from_us(10));
        let came = [(); 5].map(|()| pacer.enter(at(100), 1));
        assert_eq!(came, [at(100), at(100), at(100), at(110), at(120)]);
        // What came late is not made good by more than the depth.
        assert_eq!(pacer.enter(at(1000), 1), at(1000));
        assert_eq!(pacer.enter(at(1000), 3), at(1000));
        assert_eq!(pacer.enter(at(1000), 1), at(1020));
    }

    #[test]
    fn writes_enter_in_order_when_the_interval_grows() {
        let mut pacer = Pacer::new(&Pace { depth: 4 });
        let at = |us| Time::ZERO + Span::from_us(us);
        pacer.tell(Span::from_us(10));
        let before = pacer.enter(at(0), 8).max(pacer.enter(at(0), 1));
        assert_eq!(before, at(40));
        pacer.tell(Span::from_us(20));
        assert_eq!(pacer.enter(at(0), 1), at(40));
        assert_eq!([1, 50].map(|us| pacer.follow(at(us))), [at(40), at(50)]);
    }
}
