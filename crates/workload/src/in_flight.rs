//! State of an outstanding command: its thread, and the statistics that will count it.

use model::{Op, Time};

/// An outstanding command, indexed by its id.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InFlight {
    pub(crate) thread: u32,
    pub(crate) bytes: u32,
    pub(crate) kind: Counted,
    pub(crate) submitted: Time,
}

/// The statistics that count a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Counted {
    #[default]
    Read,
    Write,
    Trim,
    Sync,
}

impl Counted {
    /// Returns how a command with this operation is counted.
    #[inline]
    pub(crate) fn of(op: Op) -> Counted {
        match op {
            Op::Read => Counted::Read,
            Op::Write => Counted::Write,
            Op::Flush => Counted::Sync,
            Op::Deallocate | Op::WriteZeroes => Counted::Trim,
        }
    }
}
