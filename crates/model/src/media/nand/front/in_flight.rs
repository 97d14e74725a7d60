//! Outstanding commands, by their ids, which are small and reused.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, CommandId, Completion, Status};
use crate::time::{Span, Time};

/// An outstanding command.
#[derive(Clone, Copy, Debug)]
pub(super) struct NandCommand {
    pub(super) command: Command,
    pub(super) submitted: Time,
    /// When its last segment was admitted to the buffer; for writes that wait for the medium.
    pub(super) admitted: Time,
    /// Number of pieces that have not finished.
    pub(super) left: u32,
    /// Completion of the command; its time is valid once it is known.
    pub(super) answer: Completion,
}

impl NandCommand {
    /// Counts a finished piece; returns whether it was the last.
    #[inline]
    pub(super) fn piece_done(&mut self) -> bool {
        debug_assert!(self.left > 0, "a piece too many of {:?}", self.command);
        self.left -= 1;
        self.left == 0
    }

    /// Attributes the time before its data arrived at the dies or the buffer, `link` of it to the link.
    #[inline]
    pub(super) fn explain_way_down(&mut self, link: Span, dispatched: Time, arrived: Time) {
        let anatomy = &mut self.answer.anatomy;
        anatomy.add(Part::Link, link);
        anatomy.add(Part::Controller, dispatched - self.submitted - link);
        anatomy.add(Part::Transfer, arrived - dispatched);
    }
}

/// Outstanding commands by id. Indexing an id that is not outstanding panics.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    entries: Vec<Option<NandCommand>>,
    depth: u32,
}

impl InFlight {
    #[inline]
    pub(super) fn insert(&mut self, now: Time, command: &Command, status: Status) {
        let index = command.id as usize;
        if index >= self.entries.len() {
            self.entries.resize(index + 1, None);
        }
        let entry = &mut self.entries[index];
        assert!(entry.is_none(), "id {index} is in use");
        *entry = Some(NandCommand {
            command: *command,
            submitted: now,
            admitted: now,
            left: 1,
            answer: Completion {
                id: command.id,
                at: now,
                status,
                anatomy: Anatomy::ZERO,
            },
        });
        self.depth += 1;
    }

    /// Removes a completed command.
    #[inline]
    pub(super) fn remove(&mut self, id: CommandId) {
        match self.entries.get_mut(id as usize) {
            Some(entry) if entry.is_some() => *entry = None,
            _ => not_in_flight(id),
        }
        self.depth -= 1;
    }

    #[inline]
    pub(super) fn get(&self, id: CommandId) -> Option<&NandCommand> {
        self.entries.get(id as usize)?.as_ref()
    }

    #[inline]
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }
}

#[cold]
#[inline(never)]
fn not_in_flight(id: CommandId) -> ! {
    panic!("command {id} is not in flight")
}

impl Index<CommandId> for InFlight {
    type Output = NandCommand;

    #[inline]
    fn index(&self, id: CommandId) -> &NandCommand {
        match self.get(id) {
            Some(entry) => entry,
            None => not_in_flight(id),
        }
    }
}

impl IndexMut<CommandId> for InFlight {
    #[inline]
    fn index_mut(&mut self, id: CommandId) -> &mut NandCommand {
        match self.entries.get_mut(id as usize) {
            Some(Some(entry)) => entry,
            _ => not_in_flight(id),
        }
    }
}
