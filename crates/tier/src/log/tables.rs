//! Tables: the locations of records, as a tree of nodes of 4 KiB on the main pool.
//!
//! A node of the lowest level has 256 records; a node above has 256 nodes; the root references the topmost nodes
//! (fewer in small volumes of tests: [`LogScale::level_bits`](super::LogScale)). When
//! a group changes records, each node above them is rewritten, several nodes in a slot; a slot is freed when none of
//! its nodes is current any more. Not modelled: tables of a volume that was filled before the run; they are only in
//! memory (a node that was never written does not exist on the medium).

use alloc::vec::Vec;

use model::data;

use super::layout::{Root, UNIT};
use super::room::SlotAllocator;
use crate::record::{BLOCK, NumberWriter};
use crate::table::SparseTable;

/// Number of levels.
pub(super) const LEVELS: usize = 3;

/// Nodes of one level, by number.
#[derive(Clone, Debug)]
struct Level {
    /// Positions in units of 4 KiB; 0 for a node that was never written.
    places: Vec<u64>,
    sums: Vec<u32>,
}

/// All levels of the tree, and the use of slots.
#[derive(Clone, Debug)]
pub(super) struct RecordTables {
    levels: [Level; LEVELS],
    /// Bits of a record's number per level: at most 8.
    bits: u32,
    /// Nodes per slot.
    per: u64,
    /// By slot: number of current nodes.
    live: SparseTable,
    /// Slots without current nodes since the last group.
    empty: Vec<u32>,
    /// By record: checksum of its data. Used only if the pool has data.
    sums: SparseTable,
}

/// Returns a checksum in the form stored in a table.
pub(super) fn kept(sum: u32) -> u32 {
    sum & 0x7fff_ffff
}

impl RecordTables {
    /// Creates the tables for `records` records of `record` bytes, on `slots` slots, with `bits` bits of a record's number
    /// per level.
    pub(super) fn new(records: u64, record: u64, slots: u32, bits: u32) -> RecordTables {
        let level = |level: usize| {
            let nodes = records.div_ceil(1 << (bits * (level as u32 + 1))) as usize;
            Level {
                places: alloc::vec![0; nodes],
                sums: alloc::vec![0; nodes],
            }
        };
        RecordTables {
            levels: [level(0), level(1), level(2)],
            bits,
            per: (record / UNIT).max(1),
            live: SparseTable::new(slots.into()),
            empty: Vec::new(),
            sums: SparseTable::new(records),
        }
    }

    /// Returns the node of a level that a record is below.
    pub(super) fn node_of(&self, record: u64, level: usize) -> u32 {
        (record >> (self.bits * (level as u32 + 1))) as u32
    }

    /// Returns the nodes per slot.
    pub(super) fn per(&self) -> u64 {
        self.per
    }

    /// Returns the checksum of a record's data, if it is known.
    pub(super) fn sum(&self, record: u64) -> Option<u32> {
        self.sums.get(record)
    }

    /// Sets the checksum of a record's new data, or `None` if it has none.
    pub(super) fn set_sum(&mut self, record: u64, sum: Option<u32>) {
        match sum {
            Some(sum) => drop(self.sums.set(record, kept(sum))),
            None => self.sums.clear(record),
        }
    }

    /// Sets the position of a node.
    pub(super) fn place(&mut self, level: usize, node: u32, place: u64) {
        let before = core::mem::replace(&mut self.levels[level].places[node as usize], place);
        self.count(place, true);
        if before != 0 {
            self.count(before, false);
        }
    }

    fn count(&mut self, place: u64, more: bool) {
        let slot = place / self.per;
        let live = self.live.get(slot).unwrap_or(0);
        match (more, live) {
            (true, live) => drop(self.live.set(slot, live + 1)),
            (false, 0 | 1) => {
                self.live.clear(slot);
                self.empty.push(slot as u32);
            }
            (false, live) => drop(self.live.set(slot, live - 1)),
        }
    }

    /// Appends slots that have no current node any more.
    pub(super) fn take_empty(&mut self, into: &mut Vec<u32>) {
        into.append(&mut self.empty);
    }

    /// Returns the number of slots with current nodes.
    #[cfg(test)]
    pub(super) fn slots(&self) -> usize {
        let places = self.levels.iter().flat_map(|it| &it.places);
        let slots: alloc::collections::BTreeSet<u64> = places
            .filter(|it| **it != 0)
            .map(|it| it / self.per)
            .collect();
        slots.len()
    }

    /// Returns the on-disk form of a node, with its current references; its checksum is stored.
    pub(super) fn encode(&mut self, level: usize, node: u32, room: &SlotAllocator) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let mut pen = NumberWriter {
            bytes: &mut block,
            at: 0,
        };
        for index in 0..1 << self.bits {
            let below = u64::from(node) << self.bits | index;
            let (place, sum) = match level.checked_sub(1) {
                None if below < room.records() => {
                    let sum = self.sums.get(below).map_or(0, |sum| sum + 1);
                    (room.table_entry(below).into(), sum)
                }
                None => (0, 0),
                Some(level) => {
                    let level = &self.levels[level];
                    let at = below as usize;
                    let place = level.places.get(at).copied().unwrap_or(0);
                    (place, level.sums.get(at).copied().unwrap_or(0))
                }
            };
            pen.put(&place.to_le_bytes());
            pen.put(&sum.to_le_bytes());
            pen.put(&[0; 4]);
        }
        self.levels[level].sums[node as usize] = data::sum(&block);
        block
    }

    /// Returns the topmost nodes, for the root.
    pub(super) fn top(&self) -> Vec<(u64, u32)> {
        let top = &self.levels[LEVELS - 1];
        let each = top.places.iter().zip(&top.sums);
        each.map(|(&place, &sum)| (place, sum)).collect()
    }

    /// Reads all tables, starting with a root's nodes: `node` returns a node by its position. `None` if a node does not
    /// match its checksum, or contains invalid values.
    pub(super) fn read(
        &mut self,
        root: &Root,
        room: &mut SlotAllocator,
        mut node: impl FnMut(u64) -> Option<[u8; BLOCK]>,
    ) -> Option<()> {
        for (index, &(place, sum)) in root.nodes.iter().enumerate() {
            self.hear(LEVELS - 1, index as u64, (place, sum), room)?;
        }
        for level in (0..LEVELS).rev() {
            for index in 0..self.levels[level].places.len() {
                let place = self.levels[level].places[index];
                if place == 0 {
                    continue;
                }
                let block = node(place)?;
                if data::sum(&block) != self.levels[level].sums[index] {
                    return None;
                }
                for (below, entry) in (0..1 << self.bits).zip(block.chunks_exact(16)) {
                    let below = (index as u64) << self.bits | below;
                    let place = u64::from_le_bytes(entry[..8].try_into().ok()?);
                    let sum = u32::from_le_bytes(entry[8..12].try_into().ok()?);
                    match level.checked_sub(1) {
                        Some(level) => self.hear(level, below, (place, sum), room)?,
                        None => self.hear_record(below, (place, sum), room)?,
                    }
                }
            }
        }
        Some(())
    }

    fn hear(
        &mut self,
        level: usize,
        node: u64,
        (place, sum): (u64, u32),
        room: &SlotAllocator,
    ) -> Option<()> {
        if place == 0 {
            return Some(());
        }
        let slot = place / self.per;
        let within = slot >= u64::from(room.roots()) && slot < u64::from(room.slots());
        *self.levels[level].sums.get_mut(node as usize)? = sum;
        within.then(|| self.place(level, node as u32, place))
    }

    fn hear_record(
        &mut self,
        record: u64,
        (said, sum): (u64, u32),
        room: &mut SlotAllocator,
    ) -> Option<()> {
        if said == 0 {
            return Some(());
        }
        let slot = said - 1;
        let is_hole = slot == 0;
        let within = slot >= u64::from(room.roots()) && slot < u64::from(room.slots());
        if record >= room.records() || !(is_hole || within) {
            return None;
        }
        room.set_table_entry(record, said as u32);
        if let Some(sum) = sum.checked_sub(1) {
            self.sums.set(record, kept(sum));
        }
        Some(())
    }

    /// Marks the slots of all nodes.
    pub(super) fn mark(&self, room: &mut SlotAllocator) {
        for &place in self.levels.iter().flat_map(|it| &it.places) {
            if place != 0 {
                room.mark((place / self.per) as u32);
            }
        }
    }
}
