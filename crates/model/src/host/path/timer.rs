//! Timed events that no core brings about.

use crate::command::CommandId;
use crate::engine::Events;
use crate::time::Time;

/// What comes about for a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// A helper thread has taken it from the job's thread.
    HandedDown,
    /// A helper thread has told the job's thread.
    HandedUp,
    /// A core that sleeps begins to poll; or a flush that cost nothing is found done.
    PollBegins,
    /// The drive has it from the bridge.
    BridgedDown,
    /// The host sees its completion from the bridge.
    BridgedUp,
}

/// All kinds, by the number that stands for each.
const KINDS: [Timer; 5] = [
    Timer::HandedDown,
    Timer::HandedUp,
    Timer::PollBegins,
    Timer::BridgedDown,
    Timer::BridgedUp,
];
const KIND_BITS: u32 = 3;

/// Timers in order of time and, at one time, of insertion.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers(Events);

impl Timers {
    /// When the first is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.0.next()
    }

    #[inline]
    pub(super) fn push(&mut self, at: Time, timer: Timer, id: CommandId) {
        debug_assert!(id < 1 << (32 - KIND_BITS));
        self.0.push(at, id << KIND_BITS | timer as u32);
    }

    /// Takes the first if it is due at `now`.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Time) -> Option<(Timer, CommandId)> {
        let payload = self.0.pop_due(now)?;
        let kind = payload & ((1 << KIND_BITS) - 1);
        Some((KINDS[kind as usize], payload >> KIND_BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timer_comes_out_as_it_went_in() {
        let mut timers = Timers::default();
        for (index, timer) in KINDS.into_iter().enumerate() {
            timers.push(Time::from_ns(9), timer, index as u32 * 1000);
        }
        for (index, timer) in KINDS.into_iter().enumerate() {
            let popped = timers.pop_due(Time::from_ns(9));
            assert_eq!(popped, Some((timer, index as u32 * 1000)));
        }
        assert_eq!(timers.next(), Time::NEVER);
    }
}
