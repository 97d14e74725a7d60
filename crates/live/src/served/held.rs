//! Replies that a fault delays: those of a slow or a stuck drive.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::{Span, Time};

use super::Reply;

/// A delayed reply, and the time at which it may be sent.
#[derive(Clone, Copy, Debug)]
struct DelayedReply {
    until: Time,
    order: u64,
    submitted: Time,
    reply: Reply,
}

impl PartialEq for DelayedReply {
    fn eq(&self, other: &DelayedReply) -> bool {
        (self.until, self.order) == (other.until, other.order)
    }
}

impl Eq for DelayedReply {}

impl PartialOrd for DelayedReply {
    fn partial_cmp(&self, other: &DelayedReply) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DelayedReply {
    fn cmp(&self, other: &DelayedReply) -> std::cmp::Ordering {
        (self.until, self.order).cmp(&(other.until, other.order))
    }
}

/// Delayed replies, and the reasons.
#[derive(Debug, Default)]
pub(super) struct DelayedReplies {
    waiting: BinaryHeap<Reverse<DelayedReply>>,
    count: u64,
    slower: Span,
    slow_until: Time,
    stuck_until: Time,
}

impl DelayedReplies {
    /// Delays every command by `by` until this time.
    pub(super) fn slow(&mut self, by: Span, until: Time) {
        self.slower = by;
        self.slow_until = until;
    }

    /// Holds all completions until this time.
    pub(super) fn stick(&mut self, until: Time) {
        self.stuck_until = until;
        let waiting = std::mem::take(&mut self.waiting);
        for Reverse(mut one) in waiting {
            one.until = one.until.max(until);
            self.waiting.push(Reverse(one));
        }
    }

    /// Releases the replies of a stuck drive at `now`.
    pub(super) fn release(&mut self, now: Time) {
        self.stuck_until = Time::ZERO;
        let waiting = std::mem::take(&mut self.waiting);
        for Reverse(mut one) in waiting {
            one.until = one.until.min(now);
            self.waiting.push(Reverse(one));
        }
    }

    /// Checks whether replies may be delayed at `now`.
    #[inline]
    pub(super) fn holds(&self, now: Time) -> bool {
        now < self.stuck_until || now < self.slow_until
    }

    /// Delays a reply: by the drive's slowness or stuck time, and additionally by `more`.
    pub(super) fn hold(&mut self, now: Time, more: Span, submitted: Time, reply: Reply) {
        let slow = if now < self.slow_until {
            now + self.slower
        } else {
            now
        };
        self.count += 1;
        self.waiting.push(Reverse(DelayedReply {
            until: (slow + more).max(self.stuck_until),
            order: self.count,
            submitted,
            reply,
        }));
    }

    /// Returns the number of delayed replies.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the time at which the first reply may be sent.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.waiting.peek().map_or(Time::NEVER, |one| one.0.until)
    }

    /// Takes the first reply, if it may be sent at `now`, with its increased latency.
    pub(super) fn take(&mut self, now: Time) -> Option<Reply> {
        if self.next() > now || self.next() == Time::NEVER {
            return None;
        }
        let Reverse(one) = self.waiting.pop()?;
        Some(Reply {
            at: one.until,
            latency: one.until.since(one.submitted),
            ..one.reply
        })
    }

    /// Removes and returns all replies.
    pub(super) fn drop_all(&mut self) -> Vec<Reply> {
        let waiting = std::mem::take(&mut self.waiting);
        *self = DelayedReplies::default();
        waiting.into_iter().map(|one| one.0.reply).collect()
    }
}
