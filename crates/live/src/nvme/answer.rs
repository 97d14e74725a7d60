//! What comes of an admin command.

use super::wire::Status;

/// Why a command failed: its status, and dword 0.
pub(super) type Failure = (Status, u32);

/// What comes of a command that did not fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// Done; dwords 0 and 1.
    Done(u64),
    /// Done, with this data.
    Page(Vec<u8>),
    /// Its completion comes later.
    Later(Later),
    /// The command with this identifier in the queue of this number is to be aborted.
    Abort { queue: u16, cid: u16 },
}

/// What a command waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Later {
    /// That there is an event to tell.
    Event,
    /// That these namespaces are formatted.
    Format(Vec<u32>),
    /// That its drive is empty: the same command is then tried again.
    EmptyDrive,
}
