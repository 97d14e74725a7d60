//! A drive that has become slow: what it has done is told later.
//!
//! The data have moved when the drive says so; only the answer waits. Answers keep their order. Left out: a drive that is
//! slow with some commands only.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::anatomy::Part;
use crate::command::Completion;
use crate::time::{Span, Time};

/// Answers that are held back, and for how long.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    by: Span,
    until: Time,
    waiting: VecDeque<Completion>,
}

impl Default for Delay {
    fn default() -> Delay {
        Delay {
            by: Span::ZERO,
            until: Time::ZERO,
            waiting: VecDeque::new(),
        }
    }
}

impl Delay {
    /// What the drive completes before `until` is told this much later.
    pub(super) fn set(&mut self, by: Span, until: Time) {
        (self.by, self.until) = (by, until);
    }

    /// Answers that wait.
    pub(super) fn count(&self) -> usize {
        self.waiting.len()
    }

    /// When the next answer leaves.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.waiting.front().map_or(Time::NEVER, |it| it.at)
    }

    /// Whether an answer of `now` waits: because the drive is slow, or behind others.
    #[inline]
    pub(super) fn holds(&self, now: Time) -> bool {
        (now < self.until && self.by > Span::ZERO) || !self.waiting.is_empty()
    }

    /// Holds an answer back.
    pub(super) fn hold(&mut self, mut completion: Completion) {
        let by = match completion.at < self.until {
            true => self.by,
            false => Span::ZERO,
        };
        let last = self.waiting.back().map_or(Time::ZERO, |it| it.at);
        let at = (completion.at + by).max(last);
        completion
            .anatomy
            .add(Part::Controller, at.since(completion.at));
        completion.at = at;
        self.waiting.push_back(completion);
    }

    /// Appends what leaves at `now`.
    #[inline]
    pub(super) fn take(&mut self, now: Time, done: &mut Vec<Completion>) {
        while self.next() == now {
            done.extend(self.waiting.pop_front());
        }
    }

    /// All that waits; nothing does any more.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Completion> {
        self.waiting.drain(..)
    }
}
