//! The controller's table of units that wait for its data path, and the arbiter that goes round it.
//!
//! A unit's place in the table is a hash of its number, one half for reads and one for writes. Reads of one place wait
//! in order, for the dies deliver what they read to that place; a write can have any, so it takes the next free one.
//! The arbiter takes the first unit of the next place that has one, from where it was: every place gets one unit in a
//! round. With N units waiting a round takes 2 N services, for places just passed fill up behind the arbiter as those
//! ahead empty; so a unit waits anything between nothing and twice the mean, and a read that finds its place taken
//! waits a round more. While no buffer is free for a write (path.rs), the arbiter goes round the half of reads only.

use std::ops::Range;

use super::group::Transit;
use crate::engine::Slab;

/// A unit that waits.
#[derive(Clone, Copy, Debug)]
struct Entry {
    transit: Transit,
    /// Bytes of the unit that its command does not want.
    unwanted: u16,
    /// The next of the same place.
    next: u32,
}

/// No entry.
const NONE: u32 = u32::MAX;

/// Waiting units by place.
#[derive(Clone, Debug)]
pub(super) struct Table {
    entries: Slab<Entry>,
    /// First entry of each place.
    firsts: Vec<u32>,
    /// Bit by place: not empty. Bit by word of those: not zero.
    taken: Vec<u64>,
    words: Vec<u64>,
    /// The place after the one served last.
    cursor: u32,
    waiting: u32,
}

impl Table {
    pub(super) fn new(places: u32) -> Table {
        let words = places.div_ceil(64) as usize;
        Table {
            entries: Slab::default(),
            firsts: vec![NONE; places as usize],
            taken: vec![0; words],
            words: vec![0; words.div_ceil(64)],
            cursor: 0,
            waiting: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// The arbiter has served `place` and goes on behind it.
    #[inline]
    pub(super) fn pass(&mut self, place: u32) {
        self.cursor = place + 1;
    }

    #[inline]
    pub(super) fn put(&mut self, place: u32, transit: Transit, unwanted: u16) {
        let entry = self.entries.insert(Entry {
            transit,
            unwanted,
            next: NONE,
        });
        self.waiting += 1;
        let mut last = self.firsts[place as usize];
        if last == NONE {
            self.firsts[place as usize] = entry;
            self.taken[place as usize / 64] |= 1 << (place % 64);
            self.words[place as usize / 4096] |= 1 << (place / 64 % 64);
            return;
        }
        while self.entries[last].next != NONE {
            last = self.entries[last].next;
        }
        self.entries[last].next = entry;
    }

    /// The first place without a unit, from the `place`th of `range` on and round its end; that place itself if there
    /// is none.
    #[inline]
    pub(super) fn free_place(&self, place: u32, range: Range<u32>) -> u32 {
        let wanted = range.start + place;
        let mut free = wanted;
        while self.firsts[free as usize] != NONE {
            free += 1;
            if free == range.end {
                free = range.start;
            }
            if free == wanted {
                break;
            }
        }
        free
    }

    /// The next unit in turn of those whose places are below `bound`.
    #[inline]
    pub(super) fn take(&mut self, bound: u32) -> Option<(Transit, u16)> {
        if self.waiting == 0 {
            return None;
        }
        let mut place = self.next_taken(self.cursor);
        if place >= bound {
            place = self.next_taken(0);
            if place >= bound {
                return None;
            }
        }
        let first = self.firsts[place as usize];
        let entry = self.entries[first];
        self.entries.release(first);
        self.waiting -= 1;
        self.firsts[place as usize] = entry.next;
        if entry.next == NONE {
            let word = &mut self.taken[place as usize / 64];
            *word &= !(1 << (place % 64));
            if *word == 0 {
                self.words[place as usize / 4096] &= !(1 << (place / 64 % 64));
            }
        }
        self.pass(place);
        Some((entry.transit, entry.unwanted))
    }

    /// The first place from `from` on that is not empty, round the end; there must be one.
    #[inline]
    fn next_taken(&self, from: u32) -> u32 {
        let (word, bit) = (from / 64, from % 64);
        if let Some(taken) = self.taken.get(word as usize) {
            let ahead = *taken & (u64::MAX << bit);
            if ahead != 0 {
                return word * 64 + ahead.trailing_zeros();
            }
        }
        let word = self.word_from(word + 1).or_else(|| self.word_from(0));
        let word = word.unwrap_or(0);
        word * 64 + self.taken[word as usize].trailing_zeros()
    }

    /// The first word from `from` on that is not zero.
    #[inline]
    fn word_from(&self, from: u32) -> Option<u32> {
        let start = from as usize / 64;
        let mut mask = u64::MAX << (from % 64);
        for (index, words) in self.words.iter().enumerate().skip(start) {
            let ahead = words & mask;
            if ahead != 0 {
                return Some(index as u32 * 64 + ahead.trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transit(piece: u32) -> Transit {
        Transit {
            piece,
            ..Transit::NONE
        }
    }

    #[test]
    fn writes_share_no_place_while_there_are_others() {
        let mut table = Table::new(8);
        for (wanted, expected) in [(2, 6), (2, 7), (2, 4), (0, 5), (3, 7)] {
            let place = table.free_place(wanted, 4..8);
            assert_eq!(place, expected);
            table.put(place, transit(0), 0);
        }
    }

    #[test]
    fn what_is_not_below_the_bound_waits() {
        let mut table = Table::new(8);
        table.put(5, transit(5), 0);
        assert!(table.take(4).is_none());
        table.put(1, transit(1), 0);
        table.pass(3);
        assert_eq!(table.take(4).map(|it| it.0.piece), Some(1));
        assert!(table.take(4).is_none());
        assert_eq!(table.take(8).map(|it| it.0.piece), Some(5));
        assert!(table.is_empty() && table.take(8).is_none());
    }

    #[test]
    fn every_place_gets_one_in_a_round() {
        for places in [1, 63, 64, 65, 4096, 16_384] {
            let mut table = Table::new(places);
            let wanted: Vec<u32> = [0, 1, 62, 63, 64, 4095, 9000, 16_383]
                .into_iter()
                .filter(|&place| place < places)
                .collect();
            for round in 0..2 {
                for &place in &wanted {
                    table.put(place, transit(round * places + place), 0);
                }
            }
            table.pass(62);
            let mut order = wanted.clone();
            order.sort_by_key(|&place| (place < 63, place));
            let expected = order.iter().chain(&order);
            let mut seen = 0;
            for (index, &place) in expected.enumerate() {
                let round = (index / order.len()) as u32;
                assert_eq!(
                    table.take(places).expect("waits").0.piece,
                    round * places + place,
                    "{places}"
                );
                seen += 1;
            }
            assert_eq!(seen, 2 * wanted.len());
            assert!(table.is_empty());
        }
    }
}
