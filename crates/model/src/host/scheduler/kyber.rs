//! Kyber: a limit of requests in flight by direction. Limits fall while the other direction misses its target latency.
//!
//! Targets are 2 ms for reads and 10 ms for writes, limits 256 and 128. When a request misses its target, mean latencies
//! of the next 10 ms decide about the limits, and of every 100 ms after that while a target is missed. Batches have 16
//! reads or 8 writes. This is the rule of Linux 4.12; later versions compare percentiles. Simplified: one queue for all
//! cores; all writes are synchronous.

use alloc::collections::VecDeque;

use super::BlockRequest;
use crate::time::{Span, Time};

const TARGETS: [Span; 2] = [Span::from_ms(2), Span::from_ms(10)];
const LIMITS: [u32; 2] = [256, 128];
const BATCHES: [u32; 2] = [16, 8];

/// Requests by direction, and their limits.
#[derive(Clone, Debug)]
pub(super) struct Kyber {
    waiting: [VecDeque<u32>; 2],
    limits: [u32; 2],
    in_flight: [u32; 2],
    direction: usize,
    batch: u32,
    /// End of the time in which latencies are collected, and their sum and number by direction.
    collects_until: Option<Time>,
    sums: [(Span, u64); 2],
}

impl Default for Kyber {
    fn default() -> Kyber {
        Kyber {
            waiting: Default::default(),
            limits: LIMITS,
            in_flight: [0; 2],
            direction: 0,
            batch: 0,
            collects_until: None,
            sums: [(Span::ZERO, 0); 2],
        }
    }
}

/// How mean latency compares with its target: -2 twice as long, -1 longer, 1 shorter, 2 at most half; 0 unknown.
fn judge((sum, count): (Span, u64), target: Span) -> i32 {
    if count == 0 {
        return 0;
    }
    let mean = Span::from_ns(sum.ns() / count);
    if mean >= target * 2 {
        -2
    } else if mean > target {
        -1
    } else if mean * 2 <= target {
        2
    } else {
        1
    }
}

/// Returns the next limit of a direction.
fn adjusted(limit: u32, this: i32, other: i32) -> u32 {
    if this == 0 || this > 0 && other > 0 || this < 0 && other < 0 {
        return limit;
    }
    match (this, other) {
        (_, 0) => limit + 1,
        (1, -2) | (2, -1) => limit - (limit / 4).max(1),
        (1, _) => limit - (limit / 8).max(1),
        (2, _) => limit / 2,
        (-2, 2) => limit + 2,
        _ => limit + 1,
    }
}

impl Kyber {
    pub(super) fn insert(&mut self, slot: u32, request: &BlockRequest) {
        self.waiting[request.direction()].push_back(slot);
    }

    /// Selects and removes the next request; `None` if the limits are reached.
    pub(super) fn next(&mut self) -> Option<u32> {
        if self.batch < BATCHES[self.direction]
            && let Some(slot) = self.take()
        {
            return Some(slot);
        }
        self.batch = 0;
        for _ in 0..2 {
            self.direction = 1 - self.direction;
            if let Some(slot) = self.take() {
                return Some(slot);
            }
        }
        None
    }

    fn take(&mut self) -> Option<u32> {
        let direction = self.direction;
        if self.in_flight[direction] >= self.limits[direction] {
            return None;
        }
        let slot = self.waiting[direction].pop_front()?;
        self.in_flight[direction] += 1;
        self.batch += 1;
        Some(slot)
    }

    pub(super) fn completed(&mut self, now: Time, request: &BlockRequest) {
        if !request.command.op.transfers() || self.in_flight[request.direction()] == 0 {
            return;
        }
        let direction = request.direction();
        self.in_flight[direction] -= 1;
        let latency = now.since(request.sent);
        if let Some(until) = self.collects_until {
            let (sum, count) = &mut self.sums[direction];
            *sum += latency;
            *count += 1;
            if now >= until {
                self.adjust(now);
            }
        } else if latency > TARGETS[direction] {
            self.collects_until = Some(now + Span::from_ms(10));
        }
    }

    fn adjust(&mut self, now: Time) {
        let sums = core::mem::take(&mut self.sums);
        let [reads, writes] = [0, 1].map(|it| judge(sums[it], TARGETS[it]));
        for (limit, most, this, other) in
            [(0, LIMITS[0], reads, writes), (1, LIMITS[1], writes, reads)]
        {
            let limit = &mut self.limits[limit];
            *limit = adjusted(*limit, this, other).clamp(1, most);
        }
        let misses = reads < 0 || writes < 0;
        self.collects_until = misses.then(|| now + Span::from_ms(100));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_in_time_gives_way_to_one_that_is_late() {
        assert_eq!(adjusted(128, 2, -2), 64);
        assert_eq!(adjusted(128, 2, -1), 96);
        assert_eq!(adjusted(128, 1, -1), 112);
        assert_eq!(adjusted(100, -1, 1), 101);
        assert_eq!(adjusted(100, 1, 2), 100);
        assert_eq!(adjusted(100, -1, -2), 100);
        let ms = Span::from_ms;
        assert_eq!(judge((ms(8), 2), ms(2)), -2);
        assert_eq!(judge((ms(3), 3), ms(2)), 2);
        assert_eq!(judge((ms(0), 0), ms(2)), 0);
    }
}
