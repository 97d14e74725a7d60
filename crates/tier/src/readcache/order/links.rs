//! Linked lists of numbered positions: each position is in one of the lists, or in none.

use alloc::vec;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;
/// Number of positions that are examined from the end of a list.
const LOOKED_AT: usize = 512;

/// Lists of positions, newest first. The two ends of list `n` are at position `count + n`.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// Positions after and before this one, towards the older and the newer end.
    older: Vec<u32>,
    newer: Vec<u32>,
    count: u32,
}

impl Links {
    /// Creates `lists` empty lists for `count` positions.
    pub(super) fn new(count: u32, lists: u32) -> Links {
        let mut older = vec![NONE; (count + lists) as usize];
        for end in count..count + lists {
            older[end as usize] = end;
        }
        Links {
            newer: older.clone(),
            older,
            count,
        }
    }

    fn end(&self, list: u32) -> u32 {
        self.count + list
    }

    /// Removes a position from its list, if it is in one.
    #[inline]
    pub(super) fn unlink(&mut self, place: u32) {
        let at = place as usize;
        let (older, newer) = (self.older[at], self.newer[at]);
        if older != NONE {
            self.newer[older as usize] = newer;
            self.older[newer as usize] = older;
            (self.older[at], self.newer[at]) = (NONE, NONE);
        }
    }

    /// Adds a position at the newest end of a list.
    #[inline]
    pub(super) fn put(&mut self, place: u32, list: u32) {
        let end = self.end(list);
        if self.newer[place as usize] == end {
            return;
        }
        self.unlink(place);
        let newest = self.older[end as usize];
        (self.older[place as usize], self.newer[place as usize]) = (newest, end);
        (self.newer[newest as usize], self.older[end as usize]) = (place, place);
    }

    /// Returns the oldest position of a list that satisfies a condition, among the oldest few hundred.
    pub(super) fn oldest(&self, list: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
        self.oldest_first(list)
            .take(LOOKED_AT)
            .find(|&it| holds(it))
    }

    /// Returns the positions of a list, the oldest first.
    pub(super) fn oldest_first(&self, list: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.end(list);
        let mut at = end;
        core::iter::from_fn(move || {
            at = self.newer[at as usize];
            (at != end).then_some(at)
        })
    }
}
