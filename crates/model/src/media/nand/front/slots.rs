//! Command slots of a link that has few: SATA's native command queuing has 32 (Serial ATA revision 3, NCQ).
//!
//! Commands without a free slot wait in the host's adapter, in order. A command without data transfer (a flush, a
//! deallocation) is not queued: it starts when no other command is in the drive, and until it has completed, none
//! follows. Not modelled: deallocation as a queued command; FUA as a write and a flush, as some drivers have it; data
//! in one direction at a time.

use alloc::collections::VecDeque;

use super::FEW;
use crate::command::Command;

/// State of the slots.
#[derive(Clone, Debug)]
pub(super) struct CommandSlots {
    limit: u32,
    /// Commands in the drive.
    taken: u32,
    /// Whether the command in the drive is not queued.
    alone: bool,
    waiting: VecDeque<Command>,
}

impl CommandSlots {
    pub(super) fn new(limit: u32) -> CommandSlots {
        CommandSlots {
            limit,
            taken: 0,
            alone: false,
            waiting: VecDeque::with_capacity(FEW),
        }
    }

    /// Whether a command that has arrived may enter the drive; otherwise it waits.
    pub(super) fn admit_or_hold(&mut self, command: &Command) -> bool {
        let admitted = self.waiting.is_empty() && self.admits(command);
        match admitted {
            true => self.enter(command),
            false => self.waiting.push_back(*command),
        }
        admitted
    }

    fn admits(&self, command: &Command) -> bool {
        match command.op.transfers() {
            true => !self.alone && self.taken < self.limit,
            false => self.taken == 0,
        }
    }

    fn enter(&mut self, command: &Command) {
        self.taken += 1;
        self.alone = !command.op.transfers();
    }

    /// A command has completed.
    pub(super) fn leave(&mut self) {
        self.taken -= 1;
        self.alone = false;
    }

    /// Removes and returns the next waiting command that may enter the drive.
    pub(super) fn next(&mut self) -> Option<Command> {
        let command = *self.waiting.front()?;
        if !self.admits(&command) {
            return None;
        }
        self.waiting.pop_front();
        self.enter(&command);
        Some(command)
    }
}
