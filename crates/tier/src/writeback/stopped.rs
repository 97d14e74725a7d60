//! Offline writes to a write-back cache: into its ring, like a client's writes.
//!
//! Entries in the ring, data or trims, therefore do not replace a newer write. If the ring is full, its oldest segment
//! is destaged first. An empty ring has no entries: then writes go to the capacity tier.

use alloc::vec;
use alloc::vec::Vec;

use model::data::{Unreadable, Unwritable, sum as sum_of};
use model::time::Time;

use super::recover::{Next, replay};
use super::ring::UNIT;
use super::{CACHE, WriteBack};
use crate::Child;
use crate::offline::ChildImages;
use crate::record::{BLOCK, RecordContent, RecordEntry, RecordHeader};

impl WriteBack {
    /// Reads a range.
    pub(super) fn read_stopped(
        &self,
        at: u64,
        into: &mut [u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unreadable> {
        self.pieces(at, at + into.len() as u64)
            .try_for_each(|(slot, from, until)| {
                let (child, offset) = self.locate(slot, from);
                let part = (from - at) as usize..(until - at) as usize;
                below.read(child, offset, &mut into[part])
            })
    }

    /// Writes a range; all of it is durable afterwards.
    pub(super) fn write_stopped(
        &mut self,
        at: u64,
        data: &[u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unwritable> {
        if self.failed.is_some() {
            return Err(Unwritable);
        }
        let (mut from, end) = (at, at + data.len() as u64);
        while from < end {
            let unit = from / u64::from(UNIT);
            let first = unit * u64::from(UNIT);
            let until = end.min(first + u64::from(UNIT));
            let mut block = [0; BLOCK];
            if until - from < u64::from(UNIT) {
                let read = self.read_stopped(first, &mut block, below);
                read.map_err(|_| Unwritable)?;
            }
            let part = &data[(from - at) as usize..(until - at) as usize];
            block[(from - first) as usize..(until - first) as usize].copy_from_slice(part);
            if self.ring.head() == self.ring.tail() {
                let (child, offset) = self.home(first);
                below.write(child, offset, &block)?;
                below.sync(child)?;
            } else {
                self.append(unit, &block, below)?;
            }
            from = until;
        }
        let at = self.next_round(Time::ZERO);
        self.destaging.begin_at(at);
        Ok(())
    }

    /// Appends a record of one unit.
    fn append(
        &mut self,
        unit: u64,
        block: &[u8; BLOCK],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unwritable> {
        while self.ring.room() < 2 {
            self.destage_oldest(below)?;
        }
        let slot = self.ring.head_slot();
        let next = Next {
            number: self.first_record + 1,
            previous: self.previous,
        };
        let header = RecordHeader {
            epoch: self.life.epoch(),
            number: next.number,
            flushed_through: self.durable_through(),
            previous: next.previous,
            pool: self.life.pool,
            entries: vec![RecordEntry {
                unit,
                units: 1,
                content: RecordContent::Data,
                sum: sum_of(block),
            }],
        };
        let (encoded, sum) = header.encode();
        below.write(CACHE, WriteBack::place(slot + 1), block)?;
        below.write(CACHE, WriteBack::place(slot), &encoded)?;
        // The next record states that this one is durable.
        below.sync(CACHE)?;
        replay(self, next, &header, &mut Vec::new());
        (self.first_record, self.previous) = (next.number, sum);
        self.flushed = self.applied();
        Ok(())
    }

    /// Destages the live units of the oldest segment; the ring then begins after it.
    fn destage_oldest(&mut self, below: &mut dyn ChildImages) -> Result<(), Unwritable> {
        let until = self.ring.tail() + u64::from(self.ring.per);
        if until > self.ring.head() {
            return Err(Unwritable);
        }
        let mut units = Vec::new();
        self.map.each(|unit, slot| {
            if self.ring.position(slot) < until {
                units.push((unit, slot));
            }
        });
        let mut block = [0; BLOCK];
        for (unit, slot) in units {
            let read = below.read(CACHE, WriteBack::place(slot), &mut block);
            read.map_err(|_| Unwritable)?;
            let (child, offset) = self.home(unit * u64::from(UNIT));
            below.write(child, offset, &block)?;
            self.unmap(unit, slot);
        }
        (1..=self.striping.count as Child).try_for_each(|child| below.sync(child))?;
        let place = self.destaging.next_superblock();
        let superblock = self.superblock_from(until);
        below.write(CACHE, place, &superblock.encode())?;
        below.sync(CACHE)?;
        self.ring.free(until);
        Ok(())
    }
}
