//! The completions on a core, in the order in which their threads take them.
//!
//! First come the found completions: those that an interrupt has handled, or that a thread found itself. Then come
//! those that the drive has announced and that no thread or handler has seen. On a core that threads share, found
//! completions of threads that slept come before the others (`HostPath` decides which ones).

use alloc::collections::VecDeque;
use core::hint::cold_path;

use crate::command::CommandId;

/// Completions of one core, or of the monitor's thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Completions {
    queue: VecDeque<CommandId>,
    /// Number of found completions, which wait for their thread; the later ones are only announced.
    found: usize,
    /// Found completions that come before these.
    first: VecDeque<CommandId>,
}

impl Completions {
    /// Whether there are no completions.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.first.is_empty()
    }

    /// Whether no completion waits for its thread.
    #[inline]
    pub(super) fn none_found(&self) -> bool {
        self.found == 0 && self.first.is_empty()
    }

    /// Returns the first found completion that does not come before others.
    #[inline]
    pub(super) fn first_found(&self) -> Option<CommandId> {
        match self.found {
            0 => None,
            _ => self.queue.front().copied(),
        }
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

    /// Marks the first announced completion as found by an interrupt; it comes before others if `first`.
    pub(super) fn take_up_one(&mut self, first: bool) {
        if !first {
            return self.take_up(1);
        }
        if let Some(id) = self.queue.remove(self.found) {
            self.first.push_back(id);
        }
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
        if !self.first.is_empty() {
            cold_path();
            return self.first.pop_front();
        }
        if self.found == 0 {
            return None;
        }
        self.found -= 1;
        self.queue.pop_front()
    }

    /// Removes and returns the first announced completion, if none waits for its thread.
    #[inline]
    pub(super) fn take_announced(&mut self) -> Option<CommandId> {
        debug_assert!(self.none_found());
        self.queue.pop_front()
    }

    /// Removes all completions.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.found = 0;
        self.first.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The result equals that of three queues, where an interrupt moves completions from one to the other two.
        #[test]
        fn it_is_three_queues(steps in prop::collection::vec((0u8..6, 0usize..4), 0..200)) {
            let (mut completions, mut next) = (Completions::default(), 0);
            let (mut announced, mut found) = (VecDeque::new(), VecDeque::new());
            let mut first = VecDeque::new();
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
                    3 if !announced.is_empty() => {
                        completions.take_up_one(count > 1);
                        let to = if count > 1 { &mut first } else { &mut found };
                        to.extend(announced.pop_front());
                    }
                    4 => {
                        let wanted = first.pop_front().or_else(|| found.pop_front());
                        prop_assert_eq!(completions.reap(), wanted);
                    }
                    _ if found.is_empty() && first.is_empty() => {
                        prop_assert_eq!(completions.take_announced(), announced.pop_front());
                    }
                    _ => {}
                }
                prop_assert_eq!(completions.first_announced(), announced.front().copied());
                prop_assert_eq!(completions.first_found(), found.front().copied());
                prop_assert_eq!(completions.announced(), announced.len());
                let none_found = found.is_empty() && first.is_empty();
                prop_assert_eq!(completions.none_found(), none_found);
                prop_assert_eq!(completions.is_empty(), announced.is_empty() && none_found);
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
