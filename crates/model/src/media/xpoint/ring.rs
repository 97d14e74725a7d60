//! Pieces that something happens to in the order in which they came: a queue of times that never fall, the first of them
//! at hand.

use alloc::collections::VecDeque;

use crate::time::Time;

/// Pieces by when something happens to them.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    next: Time,
    queue: VecDeque<(Time, u32)>,
}

impl Ring {
    /// With room for so many pieces.
    pub(super) fn with_capacity(capacity: usize) -> Ring {
        Ring {
            next: Time::NEVER,
            queue: VecDeque::with_capacity(capacity),
        }
    }

    /// When something happens to the first; [`Time::NEVER`] if there is none.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Something happens to a piece at `at`, not before that of the last one.
    #[inline]
    pub(super) fn push(&mut self, at: Time, piece: u32) {
        debug_assert!(self.queue.back().is_none_or(|last| last.0 <= at));
        if self.queue.is_empty() {
            self.next = at;
        }
        self.queue.push_back((at, piece));
    }

    /// Forgets all pieces.
    pub(super) fn clear(&mut self) {
        self.next = Time::NEVER;
        self.queue.clear();
    }

    /// Takes the first piece, if something happens to it at `now`.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Time) -> Option<u32> {
        if self.next != now {
            return None;
        }
        let (_, piece) = self.queue.pop_front()?;
        self.next = self.queue.front().map_or(Time::NEVER, |first| first.0);
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_at_hand() {
        let mut ring = Ring::with_capacity(2);
        let at = Time::from_ns;
        assert_eq!((ring.next(), ring.pop_due(at(0))), (Time::NEVER, None));
        for (ns, piece) in [(3, 30), (3, 31), (7, 70)] {
            ring.push(at(ns), piece);
        }
        assert_eq!((ring.next(), ring.pop_due(at(2))), (at(3), None));
        assert_eq!(ring.pop_due(at(3)), Some(30));
        assert_eq!(ring.pop_due(at(3)), Some(31));
        assert_eq!((ring.next(), ring.pop_due(at(3))), (at(7), None));
        assert_eq!(ring.pop_due(at(7)), Some(70));
        assert_eq!(ring.next(), Time::NEVER);
        ring.push(at(9), 90);
        ring.clear();
        assert_eq!((ring.next(), ring.pop_due(at(9))), (Time::NEVER, None));
    }
}
