//! The completions on a core, in the order in which their threads take them.
//!
//! First come the found completions: those that an interrupt has handled, or that a thread found itself. Then come
//! those that the drive has announced and that no thread or handler has seen.

use alloc::collections::VecDeque;

use crate::command::CommandId;

/// Completions of one core, or of the monitor's thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Completions {
    queue: VecDeque<CommandId>,
    /// Number of found completions, which wait for their thread; the later ones are only announced.
    found: usize,
}

impl Completions {
    /// Whether there are no completions.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether no completion waits for its thread.
    #[inline]
    pub(super) fn none_found(&self) -> bool {
        self.found == 0
    }

    /// Returns how many completions are only announced.
    #[inline]
    pub(super) fn announced(&self) -> usize {
        self.queue.len() - self.found
    }

    /// Returns the first completion that is only announced.
    #[inline]
    pub(super) fn first_announced(&self) -> Option<CommandId> {
        match self.announced() {
            0 => None,
            _ => Some(self.queue[self.found]),
        }
    }

    /// Adds a completion that the drive announces.
    #[inline]
    pub(super) fn announce(&mut self, id: CommandId) {
        self.queue.push_back(id);
    }

    /// Marks the first `count` announced completions as found by an interrupt.
    #[inline]
    pub(super) fn take_up(&mut self, count: usize) {
        self.found = (self.found + count).min(self.queue.len());
    }

    /// Adds a completion that is found without an interrupt.
    #[inline]
    pub(super) fn find(&mut self, id: CommandId) {
        if self.announced() == 0 {
            self.queue.push_back(id);
        } else {
            self.queue.insert(self.found, id);
        }
        self.found += 1;
    }

    /// Removes and returns the first completion that waits for its thread.
    #[inline]
    pub(super) fn reap(&mut self) -> Option<CommandId> {
        if self.found == 0 {
            return None;
        }
        self.found -= 1;
        self.queue.pop_front()
    }

    /// Removes and returns the first announced completion, if none waits for its thread.
    #[inline]
    pub(super) fn take_announced(&mut self) -> Option<CommandId> {
        debug_assert_eq!(self.found, 0);
        self.queue.pop_front()
    }

    /// Removes all completions.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.found = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The result equals that of two queues, where an interrupt moves completions from one to the other.
        #[test]
        fn it_is_two_queues(steps in prop::collection::vec((0u8..5, 0usize..4), 0..200)) {
            let (mut completions, mut next) = (Completions::default(), 0);
            let (mut announced, mut found) = (VecDeque::new(), VecDeque::new());
            for (step, count) in steps {
                next += 1;
                match step {
                    0 => {
                        completions.announce(next);
                        announced.push_back(next);
                    }
                    1 => {
                        completions.find(next);
                        found.push_back(next);
                    }
                    2 => {
                        completions.take_up(count);
                        found.extend(announced.drain(..count.min(announced.len())));
                    }
                    3 => prop_assert_eq!(completions.reap(), found.pop_front()),
                    _ if found.is_empty() => {
                        prop_assert_eq!(completions.take_announced(), announced.pop_front());
                    }
                    _ => {}
                }
                prop_assert_eq!(completions.first_announced(), announced.front().copied());
                prop_assert_eq!(completions.announced(), announced.len());
                prop_assert_eq!(completions.none_found(), found.is_empty());
                let none = announced.is_empty() && found.is_empty();
                prop_assert_eq!(completions.is_empty(), none);
            }
        }
    }

    #[test]
    fn what_has_been_found_comes_before_what_is_announced() {
        let mut completions = Completions::default();
        for id in [1, 2, 3] {
            completions.announce(id);
        }
        assert_eq!(completions.reap(), None);
        completions.take_up(2);
        completions.find(9);
        assert_eq!(completions.announced(), 1);
        assert_eq!(completions.first_announced(), Some(3));
        let reaped = [(); 4].map(|()| completions.reap());
        assert_eq!(reaped, [Some(1), Some(2), Some(9), None]);
        assert!(completions.none_found() && !completions.is_empty());
        assert_eq!(completions.take_announced(), Some(3));
        completions.find(4);
        completions.clear();
        assert_eq!((completions.reap(), completions.announced()), (None, 0));
    }
}
