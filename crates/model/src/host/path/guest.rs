//! State shared by a guest and its monitor: commands in flight, and completions without a notification to the guest so
//! far.

use alloc::vec::Vec;

use crate::command::CommandId;
use crate::host::coalescing::Coalescing;

/// Commands of a guest. Not used if there is no monitor.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    /// Commands that the guest waits for, and those of them that the monitor or the drive has.
    waits_for: u32,
    below: u32,
    /// Completions that the monitor has ready, without a notification to the guest so far.
    untold: Vec<CommandId>,
    coalescing: Coalescing,
}

impl Guest {
    pub(super) fn new(coalescing: Coalescing) -> Guest {
        Guest {
            waits_for: 0,
            below: 0,
            untold: Vec::new(),
            coalescing,
        }
    }

    /// Resets the state: the guest waits for nothing, and no command is below it.
    pub(super) fn clear(&mut self) {
        (self.waits_for, self.below) = (0, 0);
        self.untold.clear();
    }

    /// The guest waits for a command that stays above the monitor.
    pub(super) fn begin_above(&mut self) {
        self.waits_for += 1;
    }

    /// The guest passes a command to the monitor.
    pub(super) fn begin(&mut self) {
        self.below += 1;
        self.waits_for += 1;
    }

    /// Like `begin`, through the ring. Returns whether a trap is needed; otherwise the monitor will check the ring by
    /// itself.
    pub(super) fn begin_in_ring(&mut self) -> bool {
        let traps = self.below == 0 || self.coalescing.traps(self.waits_for);
        self.begin();
        traps
    }

    /// The guest has taken a result.
    #[inline]
    pub(super) fn end(&mut self) {
        self.waits_for = self.waits_for.saturating_sub(1);
    }

    /// The monitor has a completion ready. If it notifies the guest now, returns this completion and all others that
    /// are waiting.
    pub(super) fn complete(&mut self, id: CommandId) -> Option<Vec<CommandId>> {
        self.below -= 1;
        self.untold.push(id);
        let told = self.coalescing.interrupts_guest(self.below);
        told.then(|| core::mem::take(&mut self.untold))
    }

    /// Reuses the memory of the result of [`Guest::complete`].
    pub(super) fn reuse(&mut self, mut told: Vec<CommandId>) {
        told.clear();
        self.untold = told;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_complete_stays_untold_when_nothing_is_below() {
        let mut guest = Guest::new(Coalescing::new(4));
        let mut told = Vec::new();
        for round in 0..100 {
            for id in 0..16 {
                assert_eq!(guest.begin_in_ring(), id < 4, "round {round}");
            }
            for id in 0..16 {
                if let Some(now) = guest.complete(id) {
                    told.extend_from_slice(&now);
                    guest.reuse(now);
                }
            }
            assert_eq!(told, (0..16).collect::<Vec<_>>());
            told.clear();
            for _ in 0..16 {
                guest.end();
            }
        }
    }
}
