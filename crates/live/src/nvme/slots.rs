//! The commands of a connection that are under way, in a flat table.

use super::wire::{Sqe, Status};

/// Where a command stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Stage {
    /// No command is here.
    #[default]
    Free,
    /// Its capsule is coming in.
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

/// The table.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// A bit for each identifier in use.
    identifiers: Vec<u64>,
}

impl Slots {
    /// Room for so many commands; whatever was in it must have ended.
    pub(super) fn resize(&mut self, entries: u16) {
        self.slots.truncate(usize::from(entries));
        self.free.retain(|&index| index < entries);
        self.identifiers.resize(1024, 0);
        let have = self.slots.len() as u16;
        self.slots.resize_with(usize::from(entries), Slot::default);
        // The lowest numbers are used first, so that little memory is touched.
        let mut fresh: Vec<u16> = (have..entries).rev().collect();
        fresh.append(&mut self.free);
        self.free = fresh;
    }

    /// Takes a free slot for this command; `Err(true)`: its identifier is in use; `Err(false)`: none is free.
    #[inline]
    pub(super) fn take(&mut self, sqe: &Sqe) -> Result<u16, bool> {
        let cid = sqe.cid.get();
        let (word, bit) = (usize::from(cid / 64), 1 << (cid % 64));
        if self
            .identifiers
            .get(word)
            .is_some_and(|word| word & bit != 0)
        {
            return Err(true);
        }
        let index = self.free.pop().ok_or(false)?;
        self.identifiers[word] |= bit;
        let slot = &mut self.slots[usize::from(index)];
        slot.stage = Stage::Arriving;
        slot.purpose = Purpose::Nothing;
        slot.sqe = *sqe;
        slot.early = Status::SUCCESS;
        slot.data.clear();
        slot.expected = 0;
        slot.damaged = false;
        slot.partner = None;
        slot.parts = 0;
        slot.range = 0;
        slot.done_in_range = 0;
        slot.copied = false;
        Ok(index)
    }

    /// The command has ended.
    #[inline]
    pub(super) fn release(&mut self, index: u16) {
        let slot = &mut self.slots[usize::from(index)];
        debug_assert_ne!(slot.stage, Stage::Free);
        slot.stage = Stage::Free;
        let cid = slot.sqe.cid.get();
        self.identifiers[usize::from(cid / 64)] &= !(1 << (cid % 64));
        self.free.push(index);
    }

    /// Gives back the memory of buffers that are not in use.
    pub(super) fn trim(&mut self) {
        for slot in &mut self.slots {
            if slot.stage == Stage::Free {
                slot.data = Vec::new();
            }
        }
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
