//! Helper threads that issue a job thread's I/O and wait for it (fio's posixaio), on cores of their own.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::command::CommandId;
use crate::time::Span;

/// The helpers of one job thread.
#[derive(Clone, Debug)]
struct HelperPool {
    /// Commands that the helpers can still take; `None` for any number, or if there are no helpers.
    free: Option<u16>,
    /// Commands that wait for a helper, in order.
    waiting: VecDeque<CommandId>,
}

/// The helpers of all job threads.
#[derive(Clone, Debug)]
pub(super) struct Helpers {
    /// Pools by thread.
    pools: Vec<HelperPool>,
    cpu: Span,
}

impl Helpers {
    /// Creates the helpers: `each` gives their number per thread; 0 for none or any number.
    pub(super) fn new(each: impl Iterator<Item = u16>) -> Helpers {
        let pool = |helpers| HelperPool {
            free: (helpers > 0).then_some(helpers),
            waiting: VecDeque::new(),
        };
        Helpers {
            pools: each.map(pool).collect(),
            cpu: Span::ZERO,
        }
    }

    /// Makes all helpers free, with no command waiting. `each` gives the number per thread, as for [`Helpers::new`].
    pub(super) fn clear(&mut self, each: impl Iterator<Item = u16>) {
        *self = Helpers {
            cpu: self.cpu,
            ..Helpers::new(each)
        };
    }

    /// Whether a command of this thread would have to wait for a helper.
    #[inline]
    pub(super) fn all_taken(&self, thread: u16) -> bool {
        self.pools[usize::from(thread)].free == Some(0)
    }

    /// A command of this thread waits for a helper.
    pub(super) fn wait(&mut self, thread: u16, id: CommandId) {
        self.pools[usize::from(thread)].waiting.push_back(id);
    }

    /// A helper takes a command of this thread.
    pub(super) fn take(&mut self, thread: u16) {
        if let Some(free) = &mut self.pools[usize::from(thread)].free {
            *free -= 1;
        }
    }

    /// A helper of this thread becomes free. Returns the command that has waited longest for one.
    pub(super) fn release(&mut self, thread: u16) -> Option<CommandId> {
        let pool = &mut self.pools[usize::from(thread)];
        *pool.free.as_mut()? += 1;
        pool.waiting.pop_front()
    }

    /// Adds CPU time of a helper.
    pub(super) fn charge(&mut self, span: Span) {
        self.cpu += span;
    }

    /// Returns the CPU time of all helpers.
    pub(super) fn cpu(&self) -> Span {
        self.cpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_waits_while_all_helpers_of_its_thread_are_taken() {
        let mut helpers = Helpers::new([2, 0].into_iter());
        helpers.take(0);
        assert!(!helpers.all_taken(0));
        helpers.take(0);
        assert!(helpers.all_taken(0) && !helpers.all_taken(1));
        helpers.wait(0, 7);
        helpers.wait(0, 8);
        assert_eq!(helpers.release(0), Some(7));
        helpers.take(0);
        assert_eq!(helpers.release(0), Some(8));
        assert_eq!(helpers.release(0), None);
        // A thread without helpers, or with any number of them, never waits.
        helpers.take(1);
        assert!(!helpers.all_taken(1));
        assert_eq!(helpers.release(1), None);
    }
}
