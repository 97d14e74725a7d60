//! A queue of due items, in order of time, for items that are nearly always added in that order. The time of the first
//! item is cached, because it is read after each event.

use alloc::collections::VecDeque;

use crate::time::Time;

/// Items in order of time; items of one time are in order of insertion.
#[derive(Clone, Debug)]
pub struct Agenda<T> {
    items: VecDeque<(Time, T)>,
    /// When the first item is due.
    next: Time,
}

impl<T> Agenda<T> {
    /// Creates an empty queue for `capacity` items. It is a ring buffer, and a small one stays in the processor's
    /// cache.
    pub fn with_capacity(capacity: usize) -> Agenda<T> {
        Agenda {
            items: VecDeque::with_capacity(capacity),
            next: Time::NEVER,
        }
    }

    /// Returns the time at which the first item is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Adds an item that is due no earlier than all others.
    #[inline]
    pub fn push(&mut self, at: Time, item: T) {
        debug_assert!(self.items.back().is_none_or(|last| last.0 <= at));
        self.next = self.next.min(at);
        self.items.push_back((at, item));
    }

    /// Adds an item before those that are due later.
    #[inline]
    pub fn insert(&mut self, at: Time, item: T) {
        self.next = self.next.min(at);
        let later = self.items.iter().rev();
        match later.take_while(|other| other.0 > at).count() {
            0 => self.items.push_back((at, item)),
            later => self.items.insert(self.items.len() - later, (at, item)),
        }
    }

    /// Removes and returns the first item if it is due at `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<T> {
        if self.next != now {
            return None;
        }
        let (_, first) = self.items.pop_front()?;
        self.find_next();
        Some(first)
    }

    /// Changes items and the times at which they are due.
    pub fn change(&mut self, mut change: impl FnMut(&mut Time, &mut T)) {
        let items = self.items.make_contiguous();
        for (at, item) in items.iter_mut() {
            change(at, item);
        }
        items.sort_by_key(|item| item.0);
        self.find_next();
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        self.items.clear();
        self.find_next();
    }

    #[inline]
    fn find_next(&mut self) {
        self.next = self.items.front().map_or(Time::NEVER, |first| first.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    fn all(mut agenda: Agenda<u32>) -> Vec<(u64, u32)> {
        let mut all = Vec::new();
        while agenda.next() != Time::NEVER {
            let next = agenda.next();
            assert_eq!(agenda.pop_due(at(next.ns() - 1)), None);
            all.push((next.ns(), agenda.pop_due(next).expect("it is due")));
        }
        assert_eq!(agenda.pop_due(Time::NEVER), None);
        all
    }

    #[test]
    fn what_is_due_at_one_time_comes_as_it_went_in() {
        let mut agenda = Agenda::with_capacity(2);
        for (ns, item) in [(9, 0), (5, 1), (5, 2), (7, 3), (5, 4)] {
            agenda.insert(at(ns), item);
        }
        agenda.push(at(9), 5);
        let order = [(5, 1), (5, 2), (5, 4), (7, 3), (9, 0), (9, 5)];
        assert_eq!(all(agenda), order);
    }

    #[test]
    fn what_has_been_changed_is_in_order_again() {
        let mut agenda = Agenda::with_capacity(2);
        for item in 0..40 {
            agenda.push(at(1 + u64::from(item)), item);
        }
        // Every other item is due at one time; those keep the order of insertion.
        agenda.change(|due, item| *due = if *item % 2 == 0 { at(8) } else { *due });
        assert_eq!(agenda.next(), at(2));
        let odd = |items: core::ops::Range<u32>| {
            let odd = items.filter(|item| item % 2 == 1);
            odd.map(|item| (1 + u64::from(item), item))
        };
        let even = (0..40).step_by(2).map(|item| (8, item));
        // One item was already due at that time.
        let (before, after) = even.partition::<Vec<_>, _>(|even| even.1 < 7);
        let expected = odd(0..7).chain(before).chain([(8, 7)]).chain(after);
        assert_eq!(all(agenda), expected.chain(odd(8..40)).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_forgotten_is_not_due() {
        let mut agenda = Agenda::with_capacity(2);
        agenda.push(at(9), 90);
        agenda.clear();
        assert_eq!((agenda.next(), agenda.pop_due(at(9))), (Time::NEVER, None));
        agenda.push(at(12), 120);
        assert_eq!(all(agenda), [(12, 120)]);
    }
}
