//! A queue of timed events: a 4-ary heap of packed keys.
//!
//! Ties are broken by the order of insertion, so a run does not depend on the heap's shape. A node has four children
//! because their keys share a cache line: in measurements this takes about a third less time than a binary heap.

use alloc::vec::Vec;

use crate::time::Time;

const ARITY: usize = 4;

/// Events with a payload of 32 bits (an index, or a kind and an index packed by the device).
///
/// At most 2^32 insertions are possible between two moments at which the queue is empty of older ones. `push` and `pop`
/// are O(log n) and allocate only when the queue grows beyond its largest size so far.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// `time << 64 | sequence << 32 | payload`, smallest first.
    heap: Vec<u128>,
    /// When the first event is due; read after each event of any device.
    next: Time,
    sequence: u32,
}

impl Default for EventQueue {
    fn default() -> EventQueue {
        EventQueue::with_capacity(0)
    }
}

impl EventQueue {
    /// Creates an empty queue with capacity for `capacity` events.
    pub fn with_capacity(capacity: usize) -> EventQueue {
        EventQueue {
            heap: Vec::with_capacity(capacity),
            next: Time::NEVER,
            sequence: 0,
        }
    }

    /// Returns the number of pending events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Returns the time at which the first event is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: Time, payload: u32) {
        let sequence = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        self.next = self.next.min(at);
        let key = u128::from(at.ns()) << 64 | u128::from(sequence) << 32 | u128::from(payload);
        let mut hole = self.heap.len();
        self.heap.push(key);
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = key;
    }

    /// Removes and returns the first event if it is due at `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<u32> {
        if self.next != now {
            return None;
        }
        let first = *self.heap.first()?;
        self.remove_first();
        self.next = match self.heap.first() {
            Some(key) => Time::from_ns((key >> 64) as u64),
            None => Time::NEVER,
        };
        Some(first as u32)
    }

    #[inline]
    fn remove_first(&mut self) {
        let Some(last) = self.heap.pop() else { return };
        let len = self.heap.len();
        if len == 0 {
            return;
        }
        let mut hole = 0;
        loop {
            let first_child = hole * ARITY + 1;
            if first_child >= len {
                break;
            }
            let mut least = first_child;
            for child in first_child + 1..(first_child + ARITY).min(len) {
                if self.heap[child] < self.heap[least] {
                    least = child;
                }
            }
            if self.heap[least] >= last {
                break;
            }
            self.heap[hole] = self.heap[least];
            hole = least;
        }
        self.heap[hole] = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_in_order_of_time_then_insertion(times in prop::collection::vec(0u64..50, 0..200)) {
            let mut events = EventQueue::default();
            for (index, &time) in times.iter().enumerate() {
                events.push(Time::from_ns(time), index as u32);
            }
            let mut expected: Vec<(u64, u32)> = times.iter().enumerate().map(|(i, &t)| (t, i as u32)).collect();
            expected.sort();
            let mut got = Vec::new();
            while !events.is_empty() {
                let now = events.next();
                let payload = events.pop_due(now).expect("an event is due at next()");
                got.push((now.ns(), payload));
            }
            prop_assert_eq!(got, expected);
        }
    }
}
