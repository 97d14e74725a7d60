//! Who goes on when: tasks, and the journal.

use super::Owner;
use crate::engine::Events;
use crate::time::Time;

/// In place of a task's id, all of which are smaller.
const JOURNAL: u32 = u32::MAX;

/// Those who wait, in order of time and, at one time, of coming.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers(Events);

impl Timers {
    /// When the first is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.0.next()
    }

    pub(super) fn push(&mut self, at: Time, owner: Owner) {
        let packed = match owner {
            Owner::Task(id) => id,
            Owner::Journal => JOURNAL,
        };
        debug_assert!(owner == Owner::Journal || packed != JOURNAL);
        self.0.push(at, packed);
    }

    /// Takes the first if it is due at `now`.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<Owner> {
        Some(match self.0.pop_due(now)? {
            JOURNAL => Owner::Journal,
            id => Owner::Task(id),
        })
    }
}
