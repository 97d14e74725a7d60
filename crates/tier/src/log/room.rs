//! Space allocation: slots for records on the main pool, and rings for log blocks on log devices.
//!
//! The main pool is an array of slots that hold one record each. A record is written to the next free slot, wrapping
//! around, so that records written together are contiguous as long as there are gaps of that length. Freed slots can be
//! allocated again when no read uses them. A log device is a ring. Not modelled: ZFS's metaslabs and their selection by
//! free space.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::table::SparseTable;

/// Table value of a record that reads as zeroes: the first slot is reserved for roots.
const HOLE: u32 = 0;

/// Slots of the main pool, each for one record: which are allocated, and where the next allocation starts.
#[derive(Clone, Debug)]
pub(super) struct SlotAllocator {
    taken: Vec<u64>,
    slots: u32,
    roots: u32,
    free: u32,
    cursor: u32,
    /// Number of allocations so far.
    takes: u64,
    /// By record: its slot. In a volume that was filled, the slot follows from the record's number until it is written
    /// again.
    of: SparseTable,
    records: u64,
    filled: bool,
    /// Number of times that slots were freed; reads in progress by that number; and slots that wait for these reads.
    turn: u64,
    readers: VecDeque<(u64, u32)>,
    retired: VecDeque<(u64, u32)>,
}

impl SlotAllocator {
    /// Creates `slots` slots and `records` records. The first `roots` slots are reserved. The records exist in order if
    /// `filled`, and not at all otherwise.
    pub(super) fn new(slots: u32, roots: u32, records: u64, filled: bool) -> SlotAllocator {
        let mut room = SlotAllocator::empty(slots, roots, records, filled);
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

    /// Like `new`, with no slot allocated.
    pub(super) fn empty(slots: u32, roots: u32, records: u64, filled: bool) -> SlotAllocator {
        SlotAllocator {
            taken: alloc::vec![0; slots.div_ceil(64) as usize],
            slots,
            roots,
            free: slots,
            cursor: 0,
            takes: 0,
            of: SparseTable::new(records),
            records,
            filled,
            turn: 1,
            readers: VecDeque::new(),
            retired: VecDeque::new(),
        }
    }

    /// Returns the number of records.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Returns the number of slots.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the number of slots reserved for roots.
    pub(super) fn roots(&self) -> u32 {
        self.roots
    }

    /// Returns the number of free slots.
    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// Returns where the search for the next slot starts.
    pub(super) fn cursor(&self) -> u32 {
        self.cursor
    }

    /// Sets where the search for the next slot starts.
    pub(super) fn set_cursor(&mut self, cursor: u32) {
        self.cursor = cursor % self.slots.max(1);
    }

    /// Returns the number of allocations so far.
    pub(super) fn takes(&self) -> u64 {
        self.takes
    }

    /// Returns the number of allocated slots.
    #[cfg(test)]
    pub(super) fn taken_slots(&self) -> u64 {
        self.taken.iter().map(|it| u64::from(it.count_ones())).sum()
    }

    /// Returns the slot of a record, if it has data.
    #[inline]
    pub(super) fn slot(&self, record: u64) -> Option<u32> {
        match self.of.get(record) {
            Some(HOLE) => None,
            Some(slot) => Some(slot),
            None => self.filled.then(|| record as u32 + self.roots),
        }
    }

    /// Returns the on-disk table value of a record: 0 for none, 1 for a hole, otherwise the slot plus one.
    pub(super) fn table_entry(&self, record: u64) -> u32 {
        self.of.get(record).map_or(0, |slot| slot + 1)
    }

    /// Sets a record from its on-disk table value, see [`SlotAllocator::table_entry`].
    pub(super) fn set_table_entry(&mut self, record: u64, said: u32) {
        if let Some(slot) = said.checked_sub(1) {
            self.of.set(record, slot);
        }
    }

    /// Sets the slot of a record, or `None` if it has no data any more. Returns the previous slot, which stays
    /// allocated.
    pub(super) fn place(&mut self, record: u64, slot: Option<u32>) -> Option<u32> {
        let before = self.slot(record);
        self.of.set(record, slot.unwrap_or(HOLE));
        before
    }

    /// Allocates the next free slot, wrapping around, if there is one.
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

    /// Allocates the next `count` contiguous free slots, if there are any.
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

    /// Marks only the slots of roots and records as in use.
    pub(super) fn recount(&mut self) {
        self.taken.fill(0);
        (self.free, self.takes) = (self.slots, 0);
        (0..self.roots.min(self.slots)).for_each(|slot| self.mark(slot));
        for record in 0..self.records {
            if let Some(slot) = self.slot(record) {
                self.mark(slot);
            }
        }
    }

    /// Marks a slot as in use.
    pub(super) fn mark(&mut self, slot: u32) {
        if !self.is_taken(slot) {
            self.taken[slot as usize / 64] |= 1 << (slot % 64);
            self.free -= 1;
        }
    }

    /// Whether a slot is in use.
    pub(super) fn is_taken(&self, slot: u32) -> bool {
        self.taken[slot as usize / 64] & 1 << (slot % 64) != 0
    }

    fn release(&mut self, slot: u32) {
        if slot >= self.roots && self.is_taken(slot) {
            self.taken[slot as usize / 64] &= !(1 << (slot % 64));
            self.free += 1;
        }
    }

    /// A read of slots begins: returns the argument for [`SlotAllocator::has_read`] at its end.
    pub(super) fn reads(&mut self) -> u64 {
        match self.readers.back_mut() {
            Some((turn, count)) if *turn == self.turn => *count += 1,
            _ => self.readers.push_back((self.turn, 1)),
        }
        self.turn
    }

    /// A read of slots has ended.
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

    /// Frees a slot: it is reused when reads that may use it have ended.
    pub(super) fn retire(&mut self, slot: u32) {
        self.retired.push_back((self.turn, slot));
    }

    /// Ends a series of `retire` calls.
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

    /// Power cut: no read is in progress any more.
    pub(super) fn cut(&mut self) {
        self.readers.clear();
        self.have_retired();
    }
}

/// A log device: consecutive blocks, which are freed by transaction group.
#[derive(Clone, Debug)]
pub(super) struct BlockRing {
    bytes: u64,
    head: u64,
    /// Bytes of the open group, and of the group being written.
    open: u64,
    syncing: u64,
    /// Bytes of blocks in the ring, without those skipped at its end, and the maximum so far.
    held: [u64; 2],
    most_held: u64,
    /// Whether it failed to write a block: no more blocks are sent to it until it returns.
    pub(super) broken: bool,
    /// Whether it has returned, but no block has been written to it since then.
    pub(super) untried: bool,
}

impl BlockRing {
    /// Creates an empty log of `bytes` bytes.
    pub(super) fn new(bytes: u64) -> BlockRing {
        BlockRing {
            bytes: bytes / 4096 * 4096,
            head: 0,
            open: 0,
            syncing: 0,
            held: [0; 2],
            most_held: 0,
            broken: false,
            untried: false,
        }
    }

    /// Returns the position of a block of `bytes` bytes, if it fits.
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

    /// The closed group is on the main pool: frees its blocks.
    pub(super) fn release(&mut self) {
        self.syncing = 0;
        self.held[1] = 0;
    }

    /// Returns the maximum bytes of blocks that it has held at once.
    pub(super) fn most_held(&self) -> u64 {
        self.most_held
    }

    /// Returns the head in units of 4 KiB: the next block begins there, or at the beginning of the ring if it does not
    /// fit.
    pub(super) fn head(&self) -> u32 {
        (self.head / 4096) as u32
    }

    /// Continues at this position.
    pub(super) fn set_head(&mut self, head: u64) {
        self.head = head % self.bytes.max(1);
    }

    /// Frees all blocks: their data is on the main pool.
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
        let mut room = SlotAllocator::new(200, 1, 100, true);
        assert_eq!(room.slot(0), Some(1));
        assert_eq!((room.take(), room.take()), (Some(101), Some(102)));
        assert_eq!(room.place(7, Some(101)), Some(8));
        assert_eq!(room.slot(7), Some(101));
        for slot in 103..200 {
            assert_eq!(room.take(), Some(slot));
        }
        assert_eq!(room.take(), None);
        // Wrap around to the slot that record 7 freed, after the read there has ended.
        let turn = room.reads();
        room.retire(8);
        room.have_retired();
        let later = room.reads();
        assert_eq!(room.take(), None);
        room.has_read(turn);
        assert_eq!(room.take(), Some(8));
        room.has_read(later);
        assert_eq!(room.place(7, None), Some(101));
        assert_eq!((room.slot(7), room.table_entry(7)), (None, 1));
        assert_eq!(SlotAllocator::new(200, 1, 100, false).slot(7), None);
    }

    #[test]
    fn slots_that_lie_together_are_found_between_others() {
        let mut room = SlotAllocator::new(40, 8, 16, false);
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
        let mut ring = BlockRing::new(10 * 4096);
        assert_eq!(ring.take(4 * 4096), Some(0));
        ring.close();
        assert_eq!(ring.take(4 * 4096), Some(4 * 4096));
        assert_eq!(ring.take(4 * 4096), None);
        ring.release();
        assert_eq!(ring.most_held(), 8 * 4096);
        // Two units at the end are skipped: they belong to no block.
        assert_eq!(ring.take(4 * 4096), Some(0));
        assert_eq!(ring.take(4096), None);
        assert_eq!(ring.most_held(), 8 * 4096);
        ring.broken = true;
        ring.clear();
        assert_eq!(ring.take(4096), None);
    }
}
