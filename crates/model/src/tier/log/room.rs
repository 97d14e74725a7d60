//! Room: where records are on main, and log blocks on logs.
//!
//! Main is a row of slots that hold a record each; a record that is written goes to the next free slot, going round, so
//! that what is written together lies together as long as there are holes of that length. What is given up is free again
//! once nobody reads it any more. A log is a ring. Leaves out ZFS's metaslabs and their choice by free space.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::tier::table::Table;

/// What the table says of a record that reads as zeroes: the first slot is the root's.
const HOLE: u32 = 0;

/// Places of main that hold a record each: which are taken, and where the next one goes.
#[derive(Clone, Debug)]
pub(super) struct Room {
    taken: Vec<u64>,
    slots: u32,
    roots: u32,
    free: u32,
    cursor: u32,
    /// How often one was taken.
    takes: u64,
    /// By record: its slot. Of a volume that was filled it is by its number until it is written again.
    of: Table,
    records: u64,
    filled: bool,
    /// How often slots were given up; reads under way by that number; and what waits for them to end.
    turn: u64,
    readers: VecDeque<(u64, u32)>,
    retired: VecDeque<(u64, u32)>,
}

impl Room {
    /// So many slots, of which the first are kept for roots; and so many records, which are there in order or not at all.
    pub(super) fn new(slots: u32, roots: u32, records: u64, filled: bool) -> Room {
        let mut room = Room::empty(slots, roots, records, filled);
        let used = if filled {
            records as u32 + roots
        } else {
            roots
        };
        for slot in 0..used.min(slots) {
            room.mark(slot);
        }
        room.cursor = used % slots.max(1);
        room
    }

    /// The same of which nothing is taken yet.
    pub(super) fn empty(slots: u32, roots: u32, records: u64, filled: bool) -> Room {
        Room {
            taken: alloc::vec![0; slots.div_ceil(64) as usize],
            slots,
            roots,
            free: slots,
            cursor: 0,
            takes: 0,
            of: Table::new(records),
            records,
            filled,
            turn: 1,
            readers: VecDeque::new(),
            retired: VecDeque::new(),
        }
    }

    /// How many records there are.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// How many slots there are.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// How many are kept for roots.
    pub(super) fn roots(&self) -> u32 {
        self.roots
    }

    /// How many are free.
    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// From where on the next one is looked for.
    pub(super) fn cursor(&self) -> u32 {
        self.cursor
    }

    /// The same from here on.
    pub(super) fn go_on_from(&mut self, cursor: u32) {
        self.cursor = cursor % self.slots.max(1);
    }

    /// How often one was taken.
    pub(super) fn takes(&self) -> u64 {
        self.takes
    }

    /// How many are taken.
    #[cfg(test)]
    pub(super) fn taken_slots(&self) -> u64 {
        self.taken.iter().map(|it| u64::from(it.count_ones())).sum()
    }

    /// The slot of a record, if it has data.
    #[inline]
    pub(super) fn of(&self, record: u64) -> Option<u32> {
        match self.of.get(record) {
            Some(HOLE) => None,
            Some(slot) => Some(slot),
            None => self.filled.then(|| record as u32 + self.roots),
        }
    }

    /// What the table says of it, for the medium: 0 for nothing, 1 for a hole, else one more than the slot.
    pub(super) fn said(&self, record: u64) -> u32 {
        self.of.get(record).map_or(0, |slot| slot + 1)
    }

    /// As a medium [said](Room::said).
    pub(super) fn hear(&mut self, record: u64, said: u32) {
        if let Some(slot) = said.checked_sub(1) {
            self.of.set(record, slot);
        }
    }

    /// A record is at another slot now, or has no data any more; where it was before, which stays taken.
    pub(super) fn place(&mut self, record: u64, slot: Option<u32>) -> Option<u32> {
        let before = self.of(record);
        self.of.set(record, slot.unwrap_or(HOLE));
        before
    }

    /// The next free slot, going round, if there is one.
    pub(super) fn take(&mut self) -> Option<u32> {
        if self.free == 0 {
            return None;
        }
        while self.is_taken(self.cursor) {
            let full =
                self.cursor.is_multiple_of(64) && self.taken[self.cursor as usize / 64] == u64::MAX;
            self.cursor += if full { 64 } else { 1 };
            if self.cursor >= self.slots {
                self.cursor = 0;
            }
        }
        let slot = self.cursor;
        self.takes += 1;
        self.mark(slot);
        self.cursor = (slot + 1) % self.slots;
        Some(slot)
    }

    /// The next so many free slots that lie together, if there are.
    pub(super) fn take_run(&mut self, count: u32) -> Option<u32> {
        if count == 1 {
            return self.take();
        }
        let mut first = self.cursor;
        for _ in 0..=self.slots {
            if first + count > self.slots {
                first = 0;
            }
            match (first..first + count).rev().find(|&it| self.is_taken(it)) {
                Some(taken) => first = taken + 1,
                None => {
                    (first..first + count).for_each(|it| self.mark(it));
                    self.takes += u64::from(count);
                    self.cursor = (first + count) % self.slots;
                    return Some(first);
                }
            }
        }
        None
    }

    /// Only roots and the slots of records are in use.
    pub(super) fn recount(&mut self) {
        self.taken.fill(0);
        (self.free, self.takes) = (self.slots, 0);
        (0..self.roots.min(self.slots)).for_each(|slot| self.mark(slot));
        for record in 0..self.records {
            if let Some(slot) = self.of(record) {
                self.mark(slot);
            }
        }
    }

    /// A slot is in use.
    pub(super) fn mark(&mut self, slot: u32) {
        if !self.is_taken(slot) {
            self.taken[slot as usize / 64] |= 1 << (slot % 64);
            self.free -= 1;
        }
    }

    /// Whether it is.
    pub(super) fn is_taken(&self, slot: u32) -> bool {
        self.taken[slot as usize / 64] & 1 << (slot % 64) != 0
    }

    fn release(&mut self, slot: u32) {
        if slot >= self.roots && self.is_taken(slot) {
            self.taken[slot as usize / 64] &= !(1 << (slot % 64));
            self.free += 1;
        }
    }

    /// A read of slots begins: what [`Room::has_read`] is told when it ends.
    pub(super) fn reads(&mut self) -> u64 {
        match self.readers.back_mut() {
            Some((turn, count)) if *turn == self.turn => *count += 1,
            _ => self.readers.push_back((self.turn, 1)),
        }
        self.turn
    }

    /// It has ended.
    pub(super) fn has_read(&mut self, turn: u64) {
        let mut readers = self.readers.iter_mut();
        if let Some(reader) = readers.find(|it| it.0 == turn) {
            reader.1 -= 1;
        }
        while self.readers.front().is_some_and(|it| it.1 == 0) {
            self.readers.pop_front();
        }
        self.reuse();
    }

    /// A slot is given up: it is used again when reads that may be of it have ended.
    pub(super) fn retire(&mut self, slot: u32) {
        self.retired.push_back((self.turn, slot));
    }

    /// That was all for now.
    pub(super) fn have_retired(&mut self) {
        self.turn += 1;
        self.reuse();
    }

    fn reuse(&mut self) {
        let reading = self.readers.front().map_or(self.turn, |it| it.0);
        while let Some(&(_, slot)) = self.retired.front().filter(|it| it.0 < reading) {
            self.retired.pop_front();
            self.release(slot);
        }
    }

    /// No read is under way any more.
    pub(super) fn cut(&mut self) {
        self.readers.clear();
        self.have_retired();
    }
}

/// A log: blocks one after the other, given up by transaction group.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    bytes: u64,
    head: u64,
    /// Bytes of the open group, and of the one that is being written.
    open: u64,
    syncing: u64,
    /// Bytes of blocks in it, without what is skipped at its end, and the most of them at once so far.
    held: [u64; 2],
    most_held: u64,
    /// It did not take a block: no more are sent to it until it returns.
    pub(super) broken: bool,
}

impl Ring {
    /// An empty log of so many bytes.
    pub(super) fn new(bytes: u64) -> Ring {
        Ring {
            bytes: bytes / 4096 * 4096,
            head: 0,
            open: 0,
            syncing: 0,
            held: [0; 2],
            most_held: 0,
            broken: false,
        }
    }

    /// Where a block of so many bytes goes, if there is room for it.
    pub(super) fn take(&mut self, bytes: u64) -> Option<u64> {
        let skipped = match self.head + bytes > self.bytes {
            true => self.bytes - self.head,
            false => 0,
        };
        if self.broken || self.open + self.syncing + skipped + bytes > self.bytes {
            return None;
        }
        let at = (self.head + skipped) % self.bytes;
        self.open += skipped + bytes;
        self.held[0] += bytes;
        self.most_held = self.most_held.max(self.held[0] + self.held[1]);
        self.head = (at + bytes) % self.bytes;
        Some(at)
    }

    /// The open group is being written.
    pub(super) fn close(&mut self) {
        self.syncing += core::mem::take(&mut self.open);
        self.held[1] += core::mem::take(&mut self.held[0]);
    }

    /// That group is on main.
    pub(super) fn release(&mut self) {
        self.syncing = 0;
        self.held[1] = 0;
    }

    /// The most bytes of blocks that it has held at once.
    pub(super) fn most_held(&self) -> u64 {
        self.most_held
    }

    /// Where the next block goes, or the beginning if there is no room behind it: in units of 4 KiB.
    pub(super) fn head(&self) -> u32 {
        (self.head / 4096) as u32
    }

    /// Blocks go on from here.
    pub(super) fn go_on_from(&mut self, head: u64) {
        self.head = head % self.bytes.max(1);
    }

    /// All it has is on main.
    pub(super) fn clear(&mut self) {
        (self.open, self.syncing) = (0, 0);
        self.held = [0; 2];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_given_in_order_and_again_once_given_up() {
        let mut room = Room::new(200, 1, 100, true);
        assert_eq!(room.of(0), Some(1));
        assert_eq!((room.take(), room.take()), (Some(101), Some(102)));
        assert_eq!(room.place(7, Some(101)), Some(8));
        assert_eq!(room.of(7), Some(101));
        for slot in 103..200 {
            assert_eq!(room.take(), Some(slot));
        }
        assert_eq!(room.take(), None);
        // Round to what record 7 gave up, when who reads there has done so.
        let turn = room.reads();
        room.retire(8);
        room.have_retired();
        let later = room.reads();
        assert_eq!(room.take(), None);
        room.has_read(turn);
        assert_eq!(room.take(), Some(8));
        room.has_read(later);
        assert_eq!(room.place(7, None), Some(101));
        assert_eq!((room.of(7), room.said(7)), (None, 1));
        assert_eq!(Room::new(200, 1, 100, false).of(7), None);
    }

    #[test]
    fn slots_that_lie_together_are_found_between_others() {
        let mut room = Room::new(40, 8, 16, false);
        assert_eq!(room.take_run(4), Some(8));
        for _ in 12..40 {
            room.take();
        }
        for slot in [9, 10, 12, 13, 14, 15, 39, 38, 37] {
            room.retire(slot);
        }
        room.have_retired();
        assert_eq!(room.take_run(5), None);
        assert_eq!(room.take_run(4), Some(12));
        assert_eq!(room.free(), 5);
    }

    #[test]
    fn a_ring_is_full_until_a_group_is_on_main() {
        let mut ring = Ring::new(10 * 4096);
        assert_eq!(ring.take(4 * 4096), Some(0));
        ring.close();
        assert_eq!(ring.take(4 * 4096), Some(4 * 4096));
        assert_eq!(ring.take(4 * 4096), None);
        ring.release();
        assert_eq!(ring.most_held(), 8 * 4096);
        // Two units at the end are skipped: they are no block's.
        assert_eq!(ring.take(4 * 4096), Some(0));
        assert_eq!(ring.take(4096), None);
        assert_eq!(ring.most_held(), 8 * 4096);
        ring.broken = true;
        ring.clear();
        assert_eq!(ring.take(4096), None);
    }
}
