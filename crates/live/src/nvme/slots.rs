//! The commands in progress of a connection, in a flat table.

use slab::Slab;

use super::wire::{Sqe, Status};

/// Progress of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum CommandStage {
    /// The command's capsule is being received.
    #[default]
    Arriving,
    /// The command waits for buffer space before its data is requested.
    WantsData,
    /// The command's data is being received.
    Receiving,
    /// The command waits for a free slot in the drive.
    WantsRoom,
    /// The drive processes the command.
    InDrive,
    /// Asynchronous event request, or a format in progress.
    Parked,
}

/// Action of an I/O command when the drive has completed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Purpose {
    /// Only the completion is sent.
    #[default]
    Nothing,
    /// Data is sent to the host.
    Read,
    /// Data is stored.
    Write,
    /// Data is compared with the stored data.
    Compare,
    /// The stored protection information is checked.
    Verify,
    /// Ranges are deallocated in sequence.
    Deallocate,
    /// Ranges are copied in sequence.
    Copy,
    /// Zeroes are written, optionally with protection information.
    Zeroes,
    /// Blocks are made unreadable.
    Uncorrectable,
    /// Data is compared, then the write in the slot of `partner` is executed.
    CompareAndWrite,
}

/// A command in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct CommandSlot {
    pub(super) stage: CommandStage,
    pub(super) purpose: Purpose,
    pub(super) sqe: Sqe,
    /// Reason for a failure that is known before the command begins.
    pub(super) early: Status,
    /// Data received from the host.
    pub(super) data: Vec<u8>,
    /// Bytes of data that the host must send.
    pub(super) expected: u32,
    /// Whether the data was damaged in transit.
    pub(super) damaged: bool,
    /// Index of the drive.
    pub(super) drive: u16,
    /// First byte and length in the drive, without metadata.
    pub(super) offset: u64,
    pub(super) bytes: u32,
    /// Slot of the other command of a fused pair.
    pub(super) partner: Option<u16>,
    /// Number of parts that are in the drive.
    pub(super) parts: u32,
    /// Index of the next range of a list, and the progress in it.
    pub(super) range: u32,
    pub(super) done_in_range: u64,
    /// Whether the range of a Copy is being written (false: read).
    pub(super) copied: bool,
}

/// Reason why a command is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RejectionReason {
    /// The identifier is in use.
    Identifier,
    /// The queue has no free entry.
    Full,
}

/// The table of commands. A released number is reused first, so that little memory is touched.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Slab<CommandSlot>,
    entries: u16,
    /// One bit for each identifier in use.
    identifiers: Vec<u64>,
    /// Unused buffers.
    spare: Vec<Vec<u8>>,
}

impl Slots {
    /// Returns a table for this number of commands.
    pub(super) fn new(entries: u16) -> Slots {
        Slots {
            slots: Slab::new(),
            entries,
            identifiers: vec![0; 1024],
            spare: Vec::new(),
        }
    }

    /// Changes the number of commands.
    pub(super) fn resize(&mut self, entries: u16) {
        self.entries = entries;
    }

    /// Allocates a free slot for this command.
    #[inline]
    pub(super) fn take(&mut self, sqe: &Sqe) -> Result<u16, RejectionReason> {
        let cid = usize::from(sqe.cid.get());
        let (word, bit) = (&mut self.identifiers[cid / 64], 1 << (cid % 64));
        if *word & bit != 0 {
            return Err(RejectionReason::Identifier);
        }
        if self.slots.len() >= usize::from(self.entries) {
            return Err(RejectionReason::Full);
        }
        *word |= bit;
        let slot = CommandSlot {
            sqe: *sqe,
            data: self.spare.pop().unwrap_or_default(),
            ..CommandSlot::default()
        };
        Ok(self.slots.insert(slot) as u16)
    }

    /// Releases the slot of a completed command.
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

    /// Frees the memory of unused buffers.
    pub(super) fn trim(&mut self) {
        self.spare = Vec::new();
    }

    pub(super) fn get(&self, index: u16) -> Option<&CommandSlot> {
        self.slots.get(usize::from(index))
    }
}

impl std::ops::Index<u16> for Slots {
    type Output = CommandSlot;
    #[inline]
    fn index(&self, index: u16) -> &CommandSlot {
        &self.slots[usize::from(index)]
    }
}

impl std::ops::IndexMut<u16> for Slots {
    #[inline]
    fn index_mut(&mut self, index: u16) -> &mut CommandSlot {
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
        assert_eq!(slots.take(&of(7)), Err(RejectionReason::Identifier));
        assert_eq!(slots.take(&of(65_535)), Ok(1));
        assert_eq!(slots.take(&of(3)), Err(RejectionReason::Full));
        slots[0].data.extend_from_slice(&[1; 100]);
        slots.release(0);
        assert_eq!(slots.take(&of(7)), Ok(0));
        assert!(slots[0].data.is_empty(), "a command begins without data");
        slots.resize(3);
        assert_eq!(slots.take(&of(3)), Ok(2));
    }
}
