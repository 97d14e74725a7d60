//! Delayed completions of a slow drive.
//!
//! Data is transferred when the drive completes a command; only the completion is delayed. Completions of a slow drive
//! keep their order. A completion that is delayed by a rule ([`super::Rule`]) does not delay others.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::anatomy::Part;
use crate::command::Completion;
use crate::time::{Span, Time};

/// Delayed completions, and the current delay.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    by: Span,
    until: Time,
    /// Completions in order of time.
    waiting: VecDeque<Completion>,
    /// Time of the last completion that is delayed because the drive is slow.
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
    /// Delays completions that the drive makes before `until` by this time.
    pub(super) fn set(&mut self, by: Span, until: Time) {
        (self.by, self.until) = (by, until);
    }

    /// Returns the number of delayed completions.
    pub(super) fn count(&self) -> usize {
        self.waiting.len()
    }

    /// Returns when the next completion is released.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.waiting.front().map_or(Time::NEVER, |it| it.at)
    }

    /// Whether a completion at `now` is delayed: because the drive is slow, or to keep the order with earlier delayed
    /// ones.
    #[inline]
    pub(super) fn holds(&self, now: Time) -> bool {
        let slow = now < self.until && self.by > Span::ZERO;
        slow || (now <= self.last && !self.waiting.is_empty())
    }

    /// Delays a completion: by the delay of a slow drive, and by `more` in addition.
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

    /// Appends the completions that are released at `now`.
    #[inline]
    pub(super) fn take(&mut self, now: Time, done: &mut Vec<Completion>) {
        while self.next() == now {
            done.extend(self.waiting.pop_front());
        }
    }

    /// Removes and returns all delayed completions.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Completion> {
        self.last = Time::ZERO;
        self.waiting.drain(..)
    }
}
