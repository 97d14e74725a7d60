//! Timed events other than the end of a core's work.

use crate::command::CommandId;
use crate::engine::EventPayload;

/// Timed event of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// A helper thread has taken the command from the job's thread.
    HandedDown,
    /// A helper thread has notified the job's thread.
    HandedUp,
    /// A core that sleeps starts to poll; or a flush without cost completes.
    PollBegins,
    /// The drive receives the command from the bridge.
    BridgedDown,
    /// The host sees the completion from the bridge.
    BridgedUp,
}

/// All kinds, by number.
const KINDS: [Timer; 5] = [
    Timer::HandedDown,
    Timer::HandedUp,
    Timer::PollBegins,
    Timer::BridgedDown,
    Timer::BridgedUp,
];
const KIND_BITS: u32 = 3;

impl EventPayload for (Timer, CommandId) {
    #[inline]
    fn pack(self) -> u32 {
        let (timer, id) = self;
        debug_assert!(id < 1 << (32 - KIND_BITS));
        id << KIND_BITS | timer as u32
    }

    #[inline]
    fn unpack(packed: u32) -> (Timer, CommandId) {
        let kind = packed & ((1 << KIND_BITS) - 1);
        (KINDS[kind as usize], packed >> KIND_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::TypedEventQueue;
    use crate::time::Time;

    #[test]
    fn every_timer_comes_out_as_it_went_in() {
        let mut timers = TypedEventQueue::default();
        for (index, timer) in KINDS.into_iter().enumerate() {
            timers.push(Time::from_ns(9), (timer, index as u32 * 1000));
        }
        for (index, timer) in KINDS.into_iter().enumerate() {
            let popped = timers.pop_due(Time::from_ns(9));
            assert_eq!(popped, Some((timer, index as u32 * 1000)));
        }
        assert_eq!(timers.next(), Time::NEVER);
    }
}
