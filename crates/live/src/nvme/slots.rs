//! The commands of a connection that are under way, in a flat table.

use slab::Slab;

use super::wire::{Sqe, Status};

/// Where a command stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Stage {
    /// Its capsule is coming in.
    #[default]
    Arriving,
    /// It waits for room to ask for its data.
    WantsData,
    /// Its data is coming.
    Receiving,
    /// It waits for room in the drive.
    WantsRoom,
    /// The drive has it.
    InDrive,
    /// Asynchronous event request, or a format in progress.
    Parked,
}

/// What an I/O command does when the drive has done its part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Purpose {
    /// Nothing but the completion.
    #[default]
    Nothing,
    /// Data to the host.
    Read,
    /// Data to the store.
    Write,
    /// Data against the store's.
    Compare,
    /// The store's protection information is checked.
    Verify,
    /// Ranges, one after the other.
    Deallocate,
    /// Ranges, one after the other, from one place to another.
    Copy,
    /// Zeroes, perhaps with protection information.
    Zeroes,
    /// Blocks are made unreadable.
    Uncorrectable,
    /// Compare, then the write in the slot of `partner`.
    CompareAndWrite,
}

/// A command.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    pub(super) stage: Stage,
    pub(super) purpose: Purpose,
    pub(super) sqe: Sqe,
    /// Why it fails, known before it begins.
    pub(super) early: Status,
    /// Its data as it comes from the host.
    pub(super) data: Vec<u8>,
    /// Bytes of data that the host is to send.
    pub(super) expected: u32,
    /// The data was damaged on the way.
    pub(super) damaged: bool,
    /// The drive it is for.
    pub(super) drive: u16,
    /// In the drive: first byte and length, metadata not counted.
    pub(super) offset: u64,
    pub(super) bytes: u32,
    /// The other one of two fused commands.
    pub(super) partner: Option<u16>,
    /// Parts that are in the drive.
    pub(super) parts: u32,
    /// Of a list of ranges: the one that is next, and how far it has gone.
    pub(super) range: u32,
    pub(super) done_in_range: u64,
    /// Of a Copy: the range is being written, not read.
    pub(super) copied: bool,
}

/// Why a command is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// Its identifier is in use.
    Identifier,
    /// The queue has no more entries.
    Full,
}

/// The table. A number that was given back is used again first, so that little memory is touched.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Slab<Slot>,
    entries: u16,
    /// A bit for each identifier in use.
    identifiers: Vec<u64>,
    /// Buffers that are not in use.
    spare: Vec<Vec<u8>>,
}

impl Slots {
    /// Room for so many commands.
    pub(super) fn new(entries: u16) -> Slots {
        Slots {
            slots: Slab::new(),
            entries,
            identifiers: vec![0; 1024],
            spare: Vec::new(),
        }
    }

    /// Room for so many commands from now on.
    pub(super) fn resize(&mut self, entries: u16) {
        self.entries = entries;
    }

    /// Takes a free slot for this command.
    #[inline]
    pub(super) fn take(&mut self, sqe: &Sqe) -> Result<u16, Refused> {
        let cid = usize::from(sqe.cid.get());
        let (word, bit) = (&mut self.identifiers[cid / 64], 1 << (cid % 64));
        if *word & bit != 0 {
            return Err(Refused::Identifier);
        }
        if self.slots.len() >= usize::from(self.entries) {
            return Err(Refused::Full);
        }
        *word |= bit;
        let slot = Slot {
            sqe: *sqe,
            data: self.spare.pop().unwrap_or_default(),
            ..Slot::default()
        };
        Ok(self.slots.insert(slot) as u16)
    }

    /// The command has ended.
    #[inline]
    pub(super) fn release(&mut self, index: u16) {
        let mut slot = self.slots.remove(usize::from(index));
        let cid = usize::from(slot.sqe.cid.get());
        self.identifiers[cid / 64] &= !(1 << (cid % 64));
        if slot.data.capacity() > 0 {
            slot.data.clear();
            self.spare.push(slot.data);
        }
    }

    /// Gives back the memory of buffers that are not in use.
    pub(super) fn trim(&mut self) {
        self.spare = Vec::new();
    }

    pub(super) fn get(&self, index: u16) -> Option<&Slot> {
        self.slots.get(usize::from(index))
    }
}

impl std::ops::Index<u16> for Slots {
    type Output = Slot;
    #[inline]
    fn index(&self, index: u16) -> &Slot {
        &self.slots[usize::from(index)]
    }
}

impl std::ops::IndexMut<u16> for Slots {
    #[inline]
    fn index_mut(&mut self, index: u16) -> &mut Slot {
        &mut self.slots[usize::from(index)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_in_use_once_and_the_queue_has_an_end() {
        let of = |cid: u16| Sqe {
            cid: cid.into(),
            ..Sqe::default()
        };
        let mut slots = Slots::new(2);
        assert_eq!(slots.take(&of(7)), Ok(0));
        assert_eq!(slots.take(&of(7)), Err(Refused::Identifier));
        assert_eq!(slots.take(&of(65_535)), Ok(1));
        assert_eq!(slots.take(&of(3)), Err(Refused::Full));
        slots[0].data.extend_from_slice(&[1; 100]);
        slots.release(0);
        assert_eq!(slots.take(&of(7)), Ok(0));
        assert!(slots[0].data.is_empty(), "a command begins without data");
        slots.resize(3);
        assert_eq!(slots.take(&of(3)), Ok(2));
    }
}
