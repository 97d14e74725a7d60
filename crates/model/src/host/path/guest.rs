//! What a guest and its monitor have between them: commands in flight, and completions that have not been told.

use alloc::vec::Vec;

use crate::command::CommandId;
use crate::host::coalescing::Coalescing;

/// Commands of a guest. Where there is no monitor nothing of this is asked for.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    /// Those the guest waits for, and those of them that the monitor or the drive has.
    waits_for: u32,
    below: u32,
    /// What the monitor has ready and has not told the guest.
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

    /// It waits for nothing, and nothing is below.
    pub(super) fn clear(&mut self) {
        (self.waits_for, self.below) = (0, 0);
        self.untold.clear();
    }

    /// The guest waits for a command that stays above the monitor.
    pub(super) fn begin_above(&mut self) {
        self.waits_for += 1;
    }

    /// The guest hands the monitor a command.
    pub(super) fn begin(&mut self) {
        self.below += 1;
        self.waits_for += 1;
    }

    /// The same; returns whether that takes a trap, or the monitor will look into the ring by itself.
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

    /// The monitor has a completion ready; returns it and all others that have not been told, if the guest is told now.
    pub(super) fn complete(&mut self, id: CommandId) -> Option<Vec<CommandId>> {
        self.below -= 1;
        self.untold.push(id);
        let told = self.coalescing.tells(self.below);
        told.then(|| core::mem::take(&mut self.untold))
    }

    /// Takes the memory of what [`Guest::complete`] gave back.
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
