//! The controller's table of units that wait for its data path, and the arbiter that serves it round-robin.
//!
//! A unit's place in the table is a hash of its number; one half of the table is for reads and one for writes. Reads of
//! one place wait in order, because the dies deliver their data to that place. A write can use any place, so it takes
//! the next free one. The arbiter continues from its last position and takes the first unit of the next place that has
//! one: every place gets one unit per round. With N units waiting, a round takes 2 N services, because places that were
//! just passed fill up behind the arbiter while those ahead empty. A unit therefore waits between zero and twice the
//! mean, and a read whose place is taken waits one more round.
//!
//! Rounds of reads and rounds of writes alternate. If no buffer is free for the next write (path.rs), reads are served
//! in between until half of the buffers are free; then the round of writes continues from its position. Neither starves
//! the other.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::group::Transit;
use crate::engine::Slab;

/// A waiting unit.
#[derive(Clone, Copy, Debug)]
struct WaitingUnit {
    transit: Transit,
    /// Bytes of the unit that its command does not want.
    unwanted: u16,
    /// Next entry of the same place.
    next: u32,
}

/// Marks the absence of an entry.
const NONE: u32 = u32::MAX;

/// Waiting units by place.
#[derive(Clone, Debug)]
pub(super) struct UnitTable {
    entries: Slab<WaitingUnit>,
    /// First entry of each place.
    firsts: Vec<u32>,
    /// Bit per place: not empty. Bit per word of those: not zero.
    taken: Vec<u64>,
    words: Vec<u64>,
    /// First place of writes.
    half: u32,
    /// Positions of the rounds of reads and of writes: the place after the one served last.
    cursors: [u32; 2],
    round: Round,
    /// Number of waiting reads and writes.
    waiting: [u32; 2],
}

/// State of the arbiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Round {
    Reads,
    Writes,
    /// Reads, during a round of writes that waits for buffers.
    Between,
}

/// Availability of buffers for writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BufferAvailability {
    None,
    /// Less than half of them are free.
    Few,
    Many,
}

impl UnitTable {
    /// Creates a table with `half` places for reads and `half` for writes.
    pub(super) fn new(half: u32) -> UnitTable {
        let places = 2 * half;
        let words = places.div_ceil(64) as usize;
        UnitTable {
            entries: Slab::default(),
            firsts: vec![NONE; places as usize],
            taken: vec![0; words],
            words: vec![0; words.div_ceil(64)],
            half,
            cursors: [0, half],
            round: Round::Reads,
            waiting: [0; 2],
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting == [0; 2]
    }

    /// The arbiter has served `place` and continues with the next one.
    #[inline]
    pub(super) fn pass(&mut self, place: u32) {
        let write = place >= self.half;
        self.cursors[usize::from(write)] = place + 1;
        self.round = if write { Round::Writes } else { Round::Reads };
    }

    #[inline]
    pub(super) fn put(&mut self, place: u32, transit: Transit, unwanted: u16) {
        let entry = self.entries.insert(WaitingUnit {
            transit,
            unwanted,
            next: NONE,
        });
        self.waiting[usize::from(place >= self.half)] += 1;
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

    /// Returns the first place without a unit, starting at the `place`th of `range` and wrapping around; that place
    /// itself if there is none.
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

    /// Removes and returns the next unit in turn, if one may proceed.
    #[inline(always)]
    pub(super) fn take(&mut self, buffers: BufferAvailability) -> Option<(Transit, u16)> {
        let write = self.turn(buffers)?;
        let place = self.next_place(write);
        self.cursors[usize::from(write)] = place + 1;
        self.waiting[usize::from(write)] -= 1;
        let first = self.firsts[place as usize];
        let entry = self.entries[first];
        self.entries.release(first);
        self.firsts[place as usize] = entry.next;
        if entry.next == NONE {
            let word = &mut self.taken[place as usize / 64];
            *word &= !(1 << (place % 64));
            if *word == 0 {
                self.words[place as usize / 4096] &= !(1 << (place / 64 % 64));
            }
        }
        Some((entry.transit, entry.unwanted))
    }

    /// Returns whether a write is next, or a read; `None` if no unit may proceed.
    #[inline]
    fn turn(&mut self, buffers: BufferAvailability) -> Option<bool> {
        let [reads, writes] = self.waiting;
        if writes == 0 || (buffers == BufferAvailability::None && reads > 0) {
            // An unfinished round of writes is resumed later.
            let unfinished = writes > 0 && self.round != Round::Reads;
            self.round = if unfinished {
                Round::Between
            } else {
                Round::Reads
            };
            return (reads > 0).then_some(false);
        }
        if reads == 0 {
            self.round = Round::Writes;
            return (buffers != BufferAvailability::None).then_some(true);
        }
        match self.round {
            Round::Reads if !self.ahead(false) => {
                self.round = Round::Writes;
                self.cursors = [0, self.half];
            }
            Round::Writes if !self.ahead(true) => {
                self.round = Round::Reads;
                self.cursors = [0, self.half];
            }
            Round::Between if buffers == BufferAvailability::Many => {
                self.round = Round::Writes;
                return self.turn(buffers);
            }
            _ => {}
        }
        Some(self.round == Round::Writes)
    }

    /// Whether the current round of reads, or of writes, continues.
    #[inline]
    fn ahead(&self, write: bool) -> bool {
        let cursor = self.cursors[usize::from(write)];
        let found = self.next_taken(cursor);
        let end = if write { 2 * self.half } else { self.half };
        (cursor..end).contains(&found)
    }

    /// Returns the place of the next read or write, wrapping around in its half; at least one must wait.
    #[inline]
    fn next_place(&self, write: bool) -> u32 {
        let found = self.next_taken(self.cursors[usize::from(write)]);
        if (found >= self.half) == write {
            return found;
        }
        self.next_taken(if write { self.half } else { 0 })
    }

    /// Returns the first place at or after `from` that is not empty, wrapping around; there must be one.
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

    /// Returns the first word at or after `from` that is not zero.
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
        let mut table = UnitTable::new(4);
        for (wanted, expected) in [(2, 6), (2, 7), (2, 4), (0, 5), (3, 7)] {
            let place = table.free_place(wanted, 4..8);
            assert_eq!(place, expected);
            table.put(place, transit(0), 0);
        }
    }

    /// Returns the pieces that are served, in order, with these states of the buffers.
    fn served<const N: usize>(
        table: &mut UnitTable,
        buffers: [BufferAvailability; N],
    ) -> [Option<u32>; N] {
        buffers.map(|buffer| table.take(buffer).map(|it| it.0.piece))
    }

    #[test]
    fn writes_wait_for_buffers() {
        use BufferAvailability::{Few, None as Full};
        let mut table = UnitTable::new(4);
        table.put(5, transit(5), 0);
        assert!(table.take(Full).is_none());
        table.put(1, transit(1), 0);
        table.pass(3);
        assert_eq!(
            served(&mut table, [Full, Full, Few]),
            [Some(1), None, Some(5)]
        );
        assert!(table.is_empty() && table.take(Few).is_none());
    }

    #[test]
    fn a_round_of_writes_goes_on_where_it_was_broken_off() {
        use BufferAvailability::{Few, Many, None as Full};
        let mut table = UnitTable::new(4);
        for place in [0, 2, 4, 5, 6] {
            table.put(place, transit(place), 0);
        }
        let before = served(&mut table, [Many, Many, Many, Full]);
        assert_eq!(before, [Some(0), Some(2), Some(4), None]);
        // A later write does not overtake earlier ones.
        for place in [4, 0, 1, 2] {
            table.put(place, transit(10 + place), 0);
        }
        // Reads are served in between until many buffers are free, and do not get a whole round before.
        let after = served(&mut table, [Full, Few, Many, Few]);
        assert_eq!(after, [Some(10), Some(11), Some(5), Some(6)]);
        assert_eq!(served(&mut table, [Few, Few]), [Some(12), Some(14)]);
        assert!(table.is_empty());
    }

    #[test]
    fn every_place_gets_one_in_a_round() {
        for half in [1, 63, 64, 65, 4096, 16_384] {
            let places = 2 * half;
            let mut table = UnitTable::new(half);
            let wanted: Vec<u32> = [0, 1, 62, 63, 64, 4095, 9000, 16_383, 32_767]
                .into_iter()
                .filter(|&place| place < places)
                .collect();
            for round in 0..2 {
                for &place in &wanted {
                    table.put(place, transit(round * places + place), 0);
                }
            }
            table.pass(62.min(places - 1));
            let mut order = wanted.clone();
            order.sort_by_key(|&place| (place < 63, place));
            let expected = order.iter().chain(&order);
            let mut seen = 0;
            for (index, &place) in expected.enumerate() {
                let round = (index / order.len()) as u32;
                assert_eq!(
                    table.take(BufferAvailability::Many).expect("waits").0.piece,
                    round * places + place,
                    "{half}"
                );
                seen += 1;
            }
            assert_eq!(seen, 2 * wanted.len());
            assert!(table.is_empty());
        }
    }
}
