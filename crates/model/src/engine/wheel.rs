//! A queue of timed events for devices with hundreds of them close together: a wheel of short time slots for the near
//! future, a heap for the rest.
//!
//! A NAND drive in the middle of a large command has one event for each 4 KiB unit, all within some tens of
//! microseconds. A heap of 256 takes 40 ns for each; here one goes into its slot and out again, 10 ns, whatever their
//! number. Order is that of [`Events`]: by time, then by insertion.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Events;
use crate::time::Time;

/// A slot is 64 ns wide.
const WIDTH_BITS: u32 = 6;
/// Slots: the near future is 131 us.
const SLOTS: usize = 2048;
const WORDS: usize = SLOTS / 64;
/// No event.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    at: u64,
    payload: u32,
    sequence: u32,
    next: u32,
}

/// Events with a payload of 32 bits, as [`Events`].
#[derive(Clone, Debug)]
pub struct Wheel {
    /// By slot: the first of its events, in order.
    heads: Box<[u32; SLOTS]>,
    /// Slots that are not empty, and words of those that are not zero.
    used: [u64; WORDS],
    words: u32,
    nodes: Vec<Node>,
    free: u32,
    /// The number (time / width) of the slot before which nothing in the wheel can be; slots up to [`SLOTS`] later are
    /// near.
    base: u64,
    near: usize,
    far: Events,
    /// When the first event of all is due.
    next: Time,
    /// The first event of the wheel: time, and its number of insertion.
    first_near: (u64, u32),
    sequence: u32,
}

impl Wheel {
    /// An empty queue with room for `capacity` events.
    pub fn with_capacity(capacity: usize) -> Wheel {
        Wheel {
            heads: Box::new([NONE; SLOTS]),
            used: [0; WORDS],
            words: 0,
            nodes: Vec::with_capacity(capacity),
            free: NONE,
            base: 0,
            near: 0,
            far: Events::with_capacity(capacity),
            next: Time::NEVER,
            first_near: (u64::MAX, 0),
            sequence: 0,
        }
    }

    /// When the first event is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: Time, payload: u32) {
        let slot = at.ns() >> WIDTH_BITS;
        if self.near == 0 {
            // Room on both sides: what comes next may be earlier.
            self.base = slot.saturating_sub(SLOTS as u64 / 4);
        }
        if slot < self.base || slot >= self.base + SLOTS as u64 {
            self.far.push_numbered(at, self.sequence, payload);
        } else {
            self.push_near(at.ns(), slot as usize % SLOTS, payload);
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.next = self.next.min(at);
    }

    #[inline]
    fn push_near(&mut self, at: u64, slot: usize, payload: u32) {
        let node = Node {
            at,
            payload,
            sequence: self.sequence,
            next: NONE,
        };
        let index = if self.free == NONE {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        } else {
            let index = self.free;
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            index
        };
        // After those that are earlier or as early: they were inserted before.
        let mut before = NONE;
        let mut after = self.heads[slot];
        while after != NONE && self.nodes[after as usize].at <= at {
            before = after;
            after = self.nodes[after as usize].next;
        }
        self.nodes[index as usize].next = after;
        if before == NONE {
            self.heads[slot] = index;
        } else {
            self.nodes[before as usize].next = index;
        }
        self.used[slot / 64] |= 1 << (slot % 64);
        self.words |= 1 << (slot / 64);
        self.near += 1;
        if at < self.first_near.0 {
            self.first_near = (at, self.sequence);
        }
    }

    /// Takes the first event if it is due at `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<u32> {
        // At NEVER there is none.
        if self.next != now || now == Time::NEVER {
            return None;
        }
        let far = self.far.next() == now;
        let near = self.first_near.0 == now.ns();
        // Nothing is earlier than this any more.
        self.base = self.base.max(now.ns() >> WIDTH_BITS);
        if far && (!near || self.far.next_number() < self.first_near.1) {
            let payload = self.far.pop_due(now);
            self.find_next();
            return payload;
        }
        let slot = (now.ns() >> WIDTH_BITS) as usize % SLOTS;
        let index = self.heads[slot];
        let node = self.nodes[index as usize];
        self.heads[slot] = node.next;
        self.nodes[index as usize].next = self.free;
        self.free = index;
        self.near -= 1;
        let following = if node.next == NONE {
            self.used[slot / 64] &= !(1 << (slot % 64));
            if self.used[slot / 64] == 0 {
                self.words &= !(1 << (slot / 64));
            }
            self.first_from(slot)
        } else {
            node.next
        };
        self.first_near = match self.nodes.get(following as usize) {
            Some(next) => (next.at, next.sequence),
            None => (u64::MAX, 0),
        };
        self.find_next();
        Some(node.payload)
    }

    #[inline]
    fn find_next(&mut self) {
        self.next = Time::from_ns(self.first_near.0).min(self.far.next());
    }

    /// The first event of the first slot in use from `slot` on, going round once.
    #[inline]
    fn first_from(&self, slot: usize) -> u32 {
        let word = slot / 64;
        let mut bits = self.used[word] & (u64::MAX << (slot % 64));
        let mut at = word;
        if bits == 0 {
            // Words after this one come first, then those before it, and this one's lower bits last.
            let later = self.words & !(u32::MAX >> (31 - word));
            at = if later != 0 {
                later.trailing_zeros() as usize
            } else if self.words != 0 {
                self.words.trailing_zeros() as usize
            } else {
                return NONE;
            };
            bits = self.used[at];
        }
        self.heads[at * 64 + bits.trailing_zeros() as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;
    use proptest::prelude::*;

    /// Takes out what is due first, and its time.
    fn pop(wheel: &mut Wheel, events: &mut Events) -> Option<(Time, u32)> {
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
        // One near, one far.
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

    proptest! {
        #[test]
        fn it_orders_as_the_heap_does(
            steps in prop::collection::vec((0u64..5, prop::collection::vec((0u32..24, 0u64..1 << 22), 0..12)), 1..80),
        ) {
            let (mut wheel, mut events) = (Wheel::with_capacity(4), Events::default());
            let (mut now, mut payload) = (Time::ZERO, 0);
            for (pops, pushes) in steps {
                for (scale, delay) in pushes {
                    // Delays of all orders of magnitude, and many that are equal.
                    let at = now + Span::from_ns(delay >> scale);
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
