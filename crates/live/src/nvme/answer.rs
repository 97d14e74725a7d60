//! Results of admin commands.

use super::wire::Status;

/// Failure of a command: its status, and dword 0.
pub(super) type StatusFailure = (Status, u32);

/// Result of a command that did not fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum AdminOutcome {
    /// Completed, with dwords 0 and 1.
    Done(u64),
    /// Completed, with this data.
    Page(Vec<u8>),
    /// Completes later.
    Later(WaitCondition),
    /// The command with this identifier in the queue with this number must be aborted.
    Abort { queue: u16, cid: u16 },
}

/// Event that a command waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum WaitCondition {
    /// An event that must be reported.
    Event,
    /// The end of the format of these namespaces.
    Format(Vec<u32>),
    /// The drive has no command in flight: the command is then tried again.
    EmptyDrive,
}
