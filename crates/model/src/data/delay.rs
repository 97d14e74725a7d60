//! A drive that has become slow: what it has done is told later.
//!
//! The data have moved when the drive says so; only the answer waits. Answers of a slow drive keep their order; an answer that a
//! rule delays ([`super::Rule`]) holds up no other.

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
    /// In the order of their times.
    waiting: VecDeque<Completion>,
    /// Time of the last answer that waits because the drive is slow.
    last: Time,
}

impl Default for Delay {
    fn default() -> Delay {
        Delay {
            by: Span::ZERO,
            until: Time::ZERO,
            waiting: VecDeque::new(),
            last: Time::ZERO,
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

    /// Whether an answer of `now` waits: because the drive is slow, or for answers of when it was.
    #[inline]
    pub(super) fn holds(&self, now: Time) -> bool {
        let slow = now < self.until && self.by > Span::ZERO;
        slow || (now <= self.last && !self.waiting.is_empty())
    }

    /// Holds an answer back: as the drive is slow, and `more` than that.
    pub(super) fn hold(&mut self, mut completion: Completion, more: Span) {
        let by = match completion.at < self.until {
            true => self.by,
            false => Span::ZERO,
        };
        let slow = (completion.at + by).max(self.last);
        if self.holds(completion.at) {
            self.last = slow;
        }
        let at = slow + more;
        completion
            .anatomy
            .add(Part::Controller, at.since(completion.at));
        completion.at = at;
        let behind = self.waiting.partition_point(|it| it.at <= at);
        self.waiting.insert(behind, completion);
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
        self.last = Time::ZERO;
        self.waiting.drain(..)
    }
}
