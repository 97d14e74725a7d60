//! Limits of a volume or an instance: token buckets that all I/Os pass, in order.
//!
//! A limit with credits consists of two buckets. One fills at the rate and holds the credits; the other fills at the
//! burst rate and holds a short time of it. A burst therefore lasts credits / (burst - rate), as the clouds document.
//! An I/O proceeds when each bucket has its cost (or is full, if the cost exceeds the size of a bucket), and takes that
//! from all buckets. Levels are integers in units of 10^-9 tokens, so that a run accumulates no rounding errors.

use alloc::vec::Vec;

use super::config::{Limit, Limits};
use crate::time::{Span, Time};

/// Units per token: a rate of one token per second gives one unit per nanosecond.
const TOKEN: i128 = 1_000_000_000;

/// Tokens that arrive at a rate, up to a maximum.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Tokens per second, which equals units per nanosecond.
    rate: i128,
    capacity: i128,
    /// Level at `at`; negative after an I/O that costs more than the size of the bucket.
    level: i128,
    at: Time,
}

impl Bucket {
    fn new(rate: u64, tokens: u64) -> Bucket {
        let capacity = i128::from(tokens.max(1)) * TOKEN;
        Bucket {
            rate: i128::from(rate.max(1)),
            capacity,
            level: capacity,
            at: Time::ZERO,
        }
    }

    fn level(&self, now: Time) -> i128 {
        (self.level + self.rate * i128::from(now.since(self.at).ns())).min(self.capacity)
    }

    /// Returns when the bucket has this cost; not before `now`, which is not before the last withdrawal.
    fn ready(&self, now: Time, cost: i128) -> Time {
        let lacks = cost.min(self.capacity) - self.level(now);
        let wait = (lacks.max(0) + self.rate - 1) / self.rate;
        now + Span::from_ns(wait as u64)
    }

    fn take(&mut self, now: Time, cost: i128) {
        self.level = self.level(now) - cost;
        self.at = now;
    }

    /// Cancels withdrawals that were due after `now`.
    fn forget(&mut self, now: Time) {
        let ahead = i128::from(self.at.since(now).ns());
        if ahead > 0 {
            self.level = (self.level - self.rate * ahead).max(0);
            self.at = now;
        }
    }
}

/// All limits of a volume or of an instance.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    ios: Vec<Bucket>,
    bytes: Vec<Bucket>,
    io_size: u32,
    /// When the last I/O proceeds.
    last: Time,
}

impl Gate {
    /// Creates the limits, with all credits or with none.
    pub(super) fn new(limits: &Limits, credits: bool) -> Gate {
        let buckets = |limit: Option<Limit>| -> Vec<Bucket> {
            let Some(limit) = limit else {
                return Vec::new();
            };
            let shortly = |rate: u64| {
                let tokens = u128::from(rate) * u128::from(limits.window.ns()) / TOKEN as u128;
                Bucket::new(rate, tokens as u64)
            };
            match limit.burst {
                None => Vec::from([shortly(limit.rate)]),
                Some(burst) => {
                    let mut saved = Bucket::new(limit.rate, burst.credits);
                    if !credits {
                        saved.level = 0;
                    }
                    Vec::from([saved, shortly(burst.rate)])
                }
            }
        };
        Gate {
            ios: buckets(limits.iops),
            bytes: buckets(limits.bytes),
            io_size: limits.io_size.max(1),
            last: Time::ZERO,
        }
    }

    /// Returns when an I/O of `bytes` bytes that arrives at `now` proceeds; calls must be in the order of `now`.
    pub(super) fn pass(&mut self, now: Time, bytes: u32) -> Time {
        let ios = i128::from(bytes.div_ceil(self.io_size).max(1)) * TOKEN;
        let moved = i128::from(bytes) * TOKEN;
        let from = now.max(self.last);
        let of_ios = self.ios.iter().map(|it| it.ready(from, ios));
        let of_bytes = self.bytes.iter().map(|it| it.ready(from, moved));
        let at = of_ios.chain(of_bytes).fold(from, Time::max);
        for bucket in &mut self.ios {
            bucket.take(at, ios);
        }
        for bucket in &mut self.bytes {
            bucket.take(at, moved);
        }
        self.last = at;
        at
    }

    /// Removes all waiting I/Os.
    pub(super) fn forget(&mut self, now: Time) {
        for bucket in self.ios.iter_mut().chain(&mut self.bytes) {
            bucket.forget(now);
        }
        self.last = self.last.min(now);
    }
}
