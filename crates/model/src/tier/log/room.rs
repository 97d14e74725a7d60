//! Room: where records are on main, and log blocks on logs.
//!
//! Main is a row of slots that hold a record each; a record that is written goes to the next free slot, going round, so
//! that what is written together lies together as long as there are holes of that length. A log is a ring. Leaves out ZFS's
//! metaslabs and their choice by free space.

use alloc::vec::Vec;

use crate::tier::table::Table;

/// Places of main that hold a record each: which are taken, and where the next one goes.
#[derive(Clone, Debug)]
pub(super) struct Room {
    taken: Vec<u64>,
    slots: u32,
    free: u32,
    cursor: u32,
    /// By record: its slot. Of a volume that was filled it is by its number until it is written again.
    of: Table,
    filled: bool,
}

impl Room {
    /// So many slots, of which the first is kept for the root; and so many records, which are there in order or not at all.
    pub(super) fn new(slots: u32, records: u64, filled: bool) -> Room {
        let mut room = Room {
            taken: alloc::vec![0; slots.div_ceil(64) as usize],
            slots,
            free: slots,
            cursor: 1,
            of: Table::new(records),
            filled,
        };
        let used = if filled { records as u32 + 1 } else { 1 };
        for slot in 0..used.min(slots) {
            room.taken[slot as usize / 64] |= 1 << (slot % 64);
        }
        room.free -= used.min(slots);
        room.cursor = used % slots;
        room
    }

    /// How many slots there are.
    pub(super) fn slots(&self) -> u64 {
        u64::from(self.slots)
    }

    /// How many are taken.
    #[cfg(test)]
    pub(super) fn taken_slots(&self) -> u64 {
        self.taken.iter().map(|it| u64::from(it.count_ones())).sum()
    }

    /// The slot of a record, if it was ever written.
    #[inline]
    pub(super) fn of(&self, record: u64) -> Option<u32> {
        let written = self.of.get(record);
        written.or_else(|| self.filled.then(|| record as u32 + 1))
    }

    /// A record is at another slot now; the one before is given up.
    pub(super) fn move_to(&mut self, record: u64, slot: u32) {
        if let Some(before) = self.of(record) {
            self.release(before);
        }
        self.of.set(record, slot);
    }

    /// The next free slot, going round. If there is none (more is in flight than the memory may hold), the one that it is
    /// at is written over: that takes as long.
    pub(super) fn take(&mut self) -> u32 {
        if self.free > 0 {
            while self.is_taken(self.cursor) {
                let full = self.cursor.is_multiple_of(64)
                    && self.taken[self.cursor as usize / 64] == u64::MAX;
                self.cursor += if full { 64 } else { 1 };
                if self.cursor >= self.slots {
                    self.cursor = 0;
                }
            }
            self.free -= 1;
        }
        let slot = self.cursor;
        self.taken[slot as usize / 64] |= 1 << (slot % 64);
        self.cursor = (slot + 1) % self.slots;
        slot
    }

    fn is_taken(&self, slot: u32) -> bool {
        self.taken[slot as usize / 64] & 1 << (slot % 64) != 0
    }

    /// A slot may be used again.
    pub(super) fn release(&mut self, slot: u32) {
        if slot != 0 && self.is_taken(slot) {
            self.taken[slot as usize / 64] &= !(1 << (slot % 64));
            self.free += 1;
        }
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
        self.head = (at + bytes) % self.bytes;
        Some(at)
    }

    /// The open group is being written.
    pub(super) fn close(&mut self) {
        self.syncing += core::mem::take(&mut self.open);
    }

    /// That group is on main.
    pub(super) fn release(&mut self) {
        self.syncing = 0;
    }

    /// All it has is on main.
    pub(super) fn clear(&mut self) {
        (self.open, self.syncing) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_given_in_order_and_again_once_given_up() {
        let mut room = Room::new(200, 100, true);
        assert_eq!(room.of(0), Some(1));
        assert_eq!((room.take(), room.take()), (101, 102));
        room.move_to(7, 101);
        assert_eq!(room.of(7), Some(101));
        for slot in 103..200 {
            assert_eq!(room.take(), slot);
        }
        // Round to what record 7 gave up; then there is none, and nothing breaks.
        assert_eq!(room.take(), 8);
        assert!(room.take() < 200);
        assert_eq!(Room::new(200, 100, false).of(7), None);
    }

    #[test]
    fn a_ring_is_full_until_a_group_is_on_main() {
        let mut ring = Ring::new(10 * 4096);
        assert_eq!(ring.take(4 * 4096), Some(0));
        ring.close();
        assert_eq!(ring.take(4 * 4096), Some(4 * 4096));
        assert_eq!(ring.take(4 * 4096), None);
        ring.release();
        // Two units at the end are skipped.
        assert_eq!(ring.take(4 * 4096), Some(0));
        assert_eq!(ring.take(4096), None);
        ring.broken = true;
        ring.clear();
        assert_eq!(ring.take(4096), None);
    }
}
