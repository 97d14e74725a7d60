//! Detection and use of idle time.
//!
//! A drive that has received no command for a while empties a volatile buffer, and its dies collect in the background
//! until the next command.

use super::super::config::NandConfig;
use super::super::front::Front;
use crate::time::{Span, Time};

/// State of the drive's idleness.
#[derive(Clone, Debug)]
pub(super) struct IdleDetector {
    /// Time without a command after which the drive is idle.
    after: Span,
    collects_ahead: bool,
    /// Whether a timer event is pending.
    timer_set: bool,
    noticed: bool,
    background: bool,
}

impl IdleDetector {
    pub(super) fn new(config: &NandConfig) -> IdleDetector {
        IdleDetector {
            after: config.collection.idle_after,
            collects_ahead: config.collection.background_free > 0 || config.slc.is_some(),
            timer_set: false,
            noticed: false,
            background: false,
        }
    }

    pub(super) fn collects_ahead(&self) -> bool {
        self.collects_ahead
    }

    /// Whether dies collect in the background.
    #[inline]
    pub(super) fn background(&self) -> bool {
        self.background
    }

    pub(super) fn begin_background(&mut self) {
        self.background = true;
    }

    /// A command arrives.
    #[inline]
    pub(super) fn end(&mut self) {
        self.noticed = false;
        self.background = false;
    }

    /// Returns the time for the timer, if it must be set now: no command is in flight, idleness has not been detected
    /// yet, and idle time can be used.
    #[inline]
    pub(super) fn arm(&mut self, now: Time, buffered: bool, front: &Front) -> Option<Time> {
        let used = self.collects_ahead || buffered;
        if self.noticed || self.timer_set || front.depth() > 0 || !used {
            return None;
        }
        self.timer_set = true;
        // Later than now: an event must not cause another one at its own time.
        Some((front.last_command() + self.after).max(now + Span::from_ns(1)))
    }

    /// The timer is due: returns whether the drive has been idle for long enough.
    pub(super) fn notice(&mut self, now: Time, front: &Front) -> bool {
        self.timer_set = false;
        if front.depth() > 0 || now.since(front.last_command()) < self.after {
            return false;
        }
        self.noticed = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use crate::media::nand::tests::small;

    #[test]
    fn idleness_is_noticed_once_after_each_command_and_only_where_it_is_of_use() {
        let mut config = small();
        let after = config.collection.idle_after;
        let front = Front::new(&config, 1);
        let mut idle = IdleDetector::new(&config);
        assert_eq!(idle.arm(Time::ZERO, false, &front), None);
        config.collection.background_free = 4;
        let mut idle_too = IdleDetector::new(&config);
        for (idle, buffered) in [(&mut idle, true), (&mut idle_too, false)] {
            let at = idle.arm(Time::ZERO, buffered, &front).expect("set");
            assert_eq!(at, Time::ZERO + after);
            assert_eq!(idle.arm(Time::ZERO, buffered, &front), None, "set already");
            assert!(!idle.notice(Time::from_ns(5), &front));
            assert!(idle.arm(Time::from_ns(5), buffered, &front).is_some());
            assert!(idle.notice(at, &front));
            assert_eq!(idle.arm(at, buffered, &front), None, "noticed already");
            idle.begin_background();
            idle.end();
            assert!(!idle.background());
            assert!(idle.arm(at, buffered, &front).is_some());
        }
    }

    #[test]
    fn a_drive_with_a_command_in_flight_is_not_idle() {
        let mut front = Front::new(&small(), 1);
        let mut idle = IdleDetector::new(&small());
        let at = idle.arm(Time::ZERO, true, &front).expect("set");
        front.accept(Time::ZERO, &Command::read(0, 0, 4096), false);
        assert!(!idle.notice(at, &front));
        assert_eq!(idle.arm(at, true, &front), None);
    }
}
