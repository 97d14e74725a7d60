//! mq-deadline: requests in the order of their addresses, in batches of one direction, with deadlines.
//!
//! A batch has up to 16 requests. Reads come before writes, but a write batch comes after two read batches. A batch
//! continues from the last address; if nothing follows, or the oldest request of the direction is overdue (reads 500 ms,
//! writes 5 s), it begins at the oldest request.

use alloc::collections::{BTreeSet, VecDeque};

use super::BlockRequest;
use crate::engine::Slab;
use crate::time::{Span, Time};

/// Deadlines of reads and writes.
const EXPIRE: [Span; 2] = [Span::from_ms(500), Span::from_ms(5_000)];
/// Requests of a batch.
const BATCH: u32 = 16;
/// Read batches while writes wait.
const STARVED: u32 = 2;

/// Requests by direction, and the current batch.
#[derive(Clone, Debug, Default)]
pub(super) struct Deadline {
    sorted: [BTreeSet<(u64, u32)>; 2],
    /// Requests by time of arrival. An entry whose request has left, or was merged, is skipped.
    by_age: [VecDeque<(Time, u32)>; 2],
    /// Direction and position of the last request.
    last: Option<(usize, (u64, u32))>,
    batch: u32,
    starved: u32,
}

impl Deadline {
    pub(super) fn insert(&mut self, slot: u32, request: &BlockRequest) {
        let direction = request.direction();
        self.sorted[direction].insert((request.command.offset, slot));
        self.by_age[direction].push_back((request.arrived, slot));
    }

    pub(super) fn remove(&mut self, slot: u32, request: &BlockRequest) {
        let direction = request.direction();
        self.sorted[direction].remove(&(request.command.offset, slot));
        self.by_age[direction].retain(|entry| entry.1 != slot);
    }

    /// Returns the request after the last one, if it had this direction.
    fn following(&self, direction: usize) -> Option<u32> {
        let (last, position) = self.last.filter(|last| last.0 == direction)?;
        let after = (position.0, position.1.saturating_add(1));
        self.sorted[last].range(after..).next().map(|it| it.1)
    }

    /// Selects and removes the next request.
    pub(super) fn next(&mut self, now: Time, requests: &Slab<BlockRequest>) -> Option<u32> {
        let continued = self.following(1).or_else(|| self.following(0));
        let slot = match continued.filter(|_| self.batch < BATCH) {
            Some(slot) => slot,
            None => {
                let direction = self.direction()?;
                self.batch = 0;
                let &(arrived, oldest) = self.by_age[direction].front()?;
                let overdue = now.since(arrived) >= EXPIRE[direction];
                match self.following(direction) {
                    Some(next) if !overdue => next,
                    _ => oldest,
                }
            }
        };
        self.batch += 1;
        let request = &requests[slot];
        self.last = Some((request.direction(), (request.command.offset, slot)));
        self.remove(slot, request);
        Some(slot)
    }

    /// Returns the direction of the next batch.
    fn direction(&mut self) -> Option<usize> {
        let [reads, writes] = [0, 1].map(|direction| !self.by_age[direction].is_empty());
        if reads && writes {
            self.starved += 1;
            if self.starved <= STARVED {
                return Some(0);
            }
        }
        if reads && !writes {
            return Some(0);
        }
        self.starved = 0;
        writes.then_some(1)
    }
}
