//! fio's think time: after a number of blocks, or after a given time, a thread waits for its outstanding I/Os and
//! then pauses.
//!
//! As in fio, the time is checked when an I/O could be issued. Source: fio's HOWTO, `thinktime` and
//! `thinktime_iotime`.

use model::{Span, Time};

use super::job::ThinkTime;

/// Think-time state of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pauses {
    /// Block count when the last pause started.
    at: u64,
    /// End of the current or last pause; initially the start of the thread.
    until: Time,
    /// CPU time used in pauses.
    pub(crate) spun: Span,
}

/// State of a thread that does not issue because of its think time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pause {
    /// Waits for outstanding I/Os.
    Quiesce,
    /// Pauses until this time.
    Until(Time),
}

impl Pauses {
    /// Starts counting at the start of the thread.
    pub(crate) fn begin(&mut self, now: Time) {
        self.until = now;
    }

    /// Returns whether a thread with `blocks` blocks so far and `in_flight` outstanding I/Os waits or pauses at
    /// `now`; `None`: it continues.
    pub(crate) fn pause(
        &mut self,
        now: Time,
        think: &ThinkTime,
        blocks: u64,
        in_flight: u32,
    ) -> Option<Pause> {
        if now < self.until {
            return Some(Pause::Until(self.until));
        }
        let in_time = think.iotime == Span::ZERO || now.since(self.until) < think.iotime;
        if in_time && blocks - self.at < u64::from(think.blocks.max(1)) {
            return None;
        }
        // fio reaps all completions before it pauses.
        if in_flight > 0 {
            return Some(Pause::Quiesce);
        }
        self.at = blocks;
        self.spun += think.spin;
        self.until = now + think.pause.max(think.spin);
        Some(Pause::Until(self.until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn a_pause_begins_when_nothing_is_in_flight() {
        let think = ThinkTime {
            pause: Span::from_us(10),
            spin: Span::from_us(3),
            blocks: 2,
            iotime: Span::ZERO,
            by_issue: false,
        };
        let mut pauses = Pauses::default();
        assert_eq!(pauses.pause(at(1), &think, 1, 1), None);
        assert_eq!(pauses.pause(at(2), &think, 2, 1), Some(Pause::Quiesce));
        assert_eq!(
            pauses.pause(at(3), &think, 3, 0),
            Some(Pause::Until(at(13)))
        );
        assert_eq!(
            pauses.pause(at(5), &think, 3, 0),
            Some(Pause::Until(at(13)))
        );
        assert_eq!(pauses.pause(at(13), &think, 3, 0), None);
        assert_eq!(
            pauses.pause(at(14), &think, 5, 0),
            Some(Pause::Until(at(24)))
        );
        assert_eq!(pauses.spun, Span::from_us(6));
    }

    #[test]
    fn a_pause_begins_after_a_time_of_io() {
        let think = ThinkTime {
            pause: Span::from_us(50),
            spin: Span::ZERO,
            blocks: u32::MAX,
            iotime: Span::from_us(10),
            by_issue: false,
        };
        let mut pauses = Pauses::default();
        pauses.begin(at(100));
        assert_eq!(pauses.pause(at(109), &think, 500, 1), None);
        assert_eq!(pauses.pause(at(111), &think, 600, 1), Some(Pause::Quiesce));
        assert_eq!(
            pauses.pause(at(112), &think, 601, 0),
            Some(Pause::Until(at(162)))
        );
        assert_eq!(pauses.pause(at(162), &think, 601, 0), None);
        assert_eq!(
            pauses.pause(at(172), &think, 700, 0),
            Some(Pause::Until(at(222)))
        );
    }

    #[test]
    fn it_lasts_as_long_as_it_spins_and_comes_after_each_block_at_the_most() {
        let think = ThinkTime {
            pause: Span::ZERO,
            spin: Span::from_us(3),
            blocks: 0,
            iotime: Span::ZERO,
            by_issue: true,
        };
        let mut pauses = Pauses::default();
        assert_eq!(pauses.pause(at(1), &think, 0, 0), None);
        assert_eq!(pauses.pause(at(1), &think, 1, 0), Some(Pause::Until(at(4))));
        assert_eq!(pauses.pause(at(4), &think, 1, 0), None);
        let none = ThinkTime {
            spin: Span::ZERO,
            ..think
        };
        assert_eq!(pauses.pause(at(5), &none, 2, 0), Some(Pause::Until(at(5))));
        assert_eq!(pauses.pause(at(5), &none, 2, 0), None);
    }
}
