//! fio's think time: after so many blocks, or so long a time, a thread waits for all it has in flight, and then pauses.
//!
//! As in fio, the time is looked at when an I/O could be issued. Source: fio's HOWTO, `thinktime` and `thinktime_iotime`.

use model::{Span, Time};

use super::job::ThinkTime;

/// The pauses of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pauses {
    /// Blocks gone through when the last one began.
    at: u64,
    /// End of the one under way, or of the last; at first when the thread began.
    until: Time,
    /// CPU time burnt in them.
    pub(crate) spun: Span,
}

/// What a thread that thinks does instead of issuing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pause {
    /// It awaits its I/Os in flight.
    Quiesce,
    /// It pauses.
    Until(Time),
}

impl Pauses {
    /// The thread begins to run.
    pub(crate) fn begin(&mut self, now: Time) {
        self.until = now;
    }

    /// What a thread does at `now` that has gone through `blocks` and has `in_flight` I/Os; `None`: it goes on.
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
        // fio reaps everything before it pauses.
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
