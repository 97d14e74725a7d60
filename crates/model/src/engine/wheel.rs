//! A queue of timed events for devices with hundreds of events close together: a wheel of short time slots for the near
//! future, a heap for the rest.
//!
//! A NAND drive in the middle of a large command has one event for each 4 KiB unit, all within some tens of
//! microseconds. A heap of 256 events takes 40 ns for each. Here an event enters its slot and leaves it at a cost that
//! does not depend on their number. The order equals that of [`EventQueue`]: by time, then by insertion.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint::select_unpredictable;

use super::EventQueue;
use crate::time::Time;

/// A slot is 128 ns wide.
const WIDTH_BITS: u32 = 7;
/// Number of slots: the near future is 131 us.
const SLOTS: usize = 1024;
const WORDS: usize = SLOTS / 64;
/// Marks the absence of an event.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct WheelEntry {
    at: Time,
    payload: u32,
    next: u32,
}

/// Events with a payload of 32 bits, like [`EventQueue`].
///
/// If events in the heap and in the wheel are due at one time, those in the heap come first. They were inserted when
/// that time was not near yet, and a time stays near until it has come.
#[derive(Clone, Debug)]
pub struct Wheel {
    /// First event of each slot, in order.
    heads: Box<[u32; SLOTS]>,
    /// Slots that are not empty, and words of `used` that are not zero.
    used: [u64; WORDS],
    words: u32,
    nodes: Vec<WheelEntry>,
    free: u32,
    /// Number (time / width) of the slot before which the wheel has no event; up to [`SLOTS`] later slots are near. It
    /// never decreases.
    base: u64,
    far: EventQueue,
    /// When the first of all events is due.
    next: Time,
}

impl Wheel {
    /// Creates an empty queue with capacity for `capacity` events.
    pub fn with_capacity(capacity: usize) -> Wheel {
        Wheel {
            heads: Box::new([NONE; SLOTS]),
            used: [0; WORDS],
            words: 0,
            nodes: Vec::with_capacity(capacity),
            free: NONE,
            base: 0,
            far: EventQueue::with_capacity(capacity),
            next: Time::NEVER,
        }
    }

    /// Returns the time at which the first event is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: Time, payload: u32) {
        let slot = at.ns() >> WIDTH_BITS;
        if self.words == 0 {
            // Leave space on both sides: the next event may be earlier.
            self.base = self.base.max(slot.saturating_sub(SLOTS as u64 / 4));
        }
        // One comparison for both sides: a slot before the base wraps to the largest distance.
        if slot.wrapping_sub(self.base) < SLOTS as u64 {
            self.push_near(at, slot as usize % SLOTS, payload);
        } else {
            self.push_far(at, payload);
        }
        self.next = self.next.min(at);
    }

    #[inline(never)]
    fn push_far(&mut self, at: Time, payload: u32) {
        self.far.push(at, payload);
    }

    #[inline]
    fn push_near(&mut self, at: Time, slot: usize, payload: u32) {
        // After events that are due earlier or at this time: they were inserted before.
        let mut before = NONE;
        let mut after = self.heads[slot];
        while let Some(other) = self.nodes.get(after as usize)
            && other.at <= at
        {
            (before, after) = (after, other.next);
        }
        let node = WheelEntry {
            at,
            payload,
            next: after,
        };
        let index = self.free;
        let index = match self.nodes.get_mut(index as usize) {
            Some(free) => {
                self.free = free.next;
                *free = node;
                index
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        match self.nodes.get_mut(before as usize) {
            Some(before) => before.next = index,
            None => self.heads[slot] = index,
        }
        self.used[slot / 64] |= 1 << (slot % 64);
        self.words |= 1 << (slot / 64);
    }

    /// Removes and returns the first event if it is due at `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<u32> {
        // An event due at NEVER does not exist.
        if self.next != now || now == Time::NEVER {
            return None;
        }
        // No later event is earlier than this.
        let number = now.ns() >> WIDTH_BITS;
        self.base = self.base.max(number);
        if self.far.next() == now {
            return self.pop_far(now);
        }
        let slot = number as usize % SLOTS;
        let index = self.heads[slot];
        let node = &mut self.nodes[index as usize];
        let (payload, mut following) = (node.payload, node.next);
        node.next = self.free;
        self.free = index;
        self.heads[slot] = following;
        if following == NONE {
            let word = &mut self.used[slot / 64];
            *word &= !(1 << (slot % 64));
            let emptied = u32::from(*word == 0);
            self.words &= !(emptied << (slot / 64));
            following = self.first_from(slot);
        }
        self.next = self.due_time(following).min(self.far.next());
        Some(payload)
    }

    #[inline(never)]
    fn pop_far(&mut self, now: Time) -> Option<u32> {
        let payload = self.far.pop_due(now);
        let slot = self.base as usize % SLOTS;
        self.next = self.due_time(self.first_from(slot)).min(self.far.next());
        payload
    }

    /// Returns the time at which an event of the wheel is due.
    #[inline]
    fn due_time(&self, index: u32) -> Time {
        self.nodes
            .get(index as usize)
            .map_or(Time::NEVER, |node| node.at)
    }

    /// Returns the first event of the first used slot at or after `slot`, wrapping around once. The processor cannot
    /// predict whether that slot is in the same word, so both results are computed.
    #[inline]
    fn first_from(&self, slot: usize) -> u32 {
        let word = slot / 64;
        let same = self.used[word] & (u64::MAX << (slot % 64));
        // Words after this one come first, then those before it, and this word's lower bits last.
        let later = self.words & (u32::MAX << word << 1);
        let words = select_unpredictable(later != 0, later, self.words);
        let other = words.trailing_zeros() as usize % WORDS;
        let at = select_unpredictable(same != 0, word, other);
        let bits = select_unpredictable(same != 0, same, self.used[other]);
        // If no slot is in use, the slot found here is empty too.
        self.heads[at * 64 + bits.trailing_zeros() as usize % 64]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;
    use proptest::prelude::*;

    /// Removes the first event and returns it with its time.
    fn pop(wheel: &mut Wheel, events: &mut EventQueue) -> Option<(Time, u32)> {
        let now = wheel.next();
        assert_eq!(now, events.next());
        let popped = wheel.pop_due(now);
        assert_eq!(popped, events.pop_due(now));
        popped.map(|payload| (now, payload))
    }

    #[test]
    fn nothing_is_due_but_at_the_time_of_the_first() {
        let mut wheel = Wheel::with_capacity(4);
        let at = Time::from_ns;
        assert_eq!(wheel.pop_due(Time::NEVER), None);
        // One near event, one far event.
        wheel.push(at(1_000), 1);
        wheel.push(at(9_000_000), 2);
        for ns in [0, 999, 1_001, 9_000_000] {
            assert_eq!(wheel.pop_due(at(ns)), None, "{ns}");
        }
        assert_eq!(wheel.pop_due(at(1_000)), Some(1));
        assert_eq!(wheel.next(), at(9_000_000));
        assert_eq!(wheel.pop_due(at(8_999_999)), None);
        assert_eq!(wheel.pop_due(at(9_000_000)), Some(2));
        assert_eq!(
            (wheel.next(), wheel.pop_due(Time::NEVER)),
            (Time::NEVER, None)
        );
    }

    #[test]
    fn what_was_far_when_it_came_is_before_what_is_near_at_that_time() {
        let mut wheel = Wheel::with_capacity(4);
        let at = Time::from_ns;
        wheel.push(at(1_000), 0);
        wheel.push(at(200_000), 1);
        wheel.push(at(100_000), 2);
        assert_eq!(wheel.pop_due(at(1_000)), Some(0));
        assert_eq!(wheel.pop_due(at(100_000)), Some(2));
        wheel.push(at(200_000), 3);
        let last = [(); 3].map(|()| wheel.pop_due(at(200_000)));
        assert_eq!(last, [Some(1), Some(3), None]);
    }

    proptest! {
        #[test]
        fn it_orders_as_the_heap_does(
            steps in prop::collection::vec((0u64..5, prop::collection::vec((0u32..24, 0u64..1 << 22), 0..12)), 1..80),
        ) {
            let (mut wheel, mut events) = (Wheel::with_capacity(4), EventQueue::default());
            let (mut now, mut payload) = (Time::ZERO, 0);
            for (pops, pushes) in steps {
                for (scale, delay) in pushes {
                    // Delays of all orders of magnitude, many of them equal.
                    let at = now + Span::from_ns(delay >> scale << (scale / 2));
                    wheel.push(at, payload);
                    events.push(at, payload);
                    payload += 1;
                }
                for _ in 0..pops {
                    now = pop(&mut wheel, &mut events).map_or(now, |(at, _)| at);
                }
            }
            while pop(&mut wheel, &mut events).is_some() {}
            prop_assert_eq!(wheel.next(), Time::NEVER);
            prop_assert!(events.is_empty());
        }
    }
}
