//! State of an outstanding command: its thread, and the statistics that will count it.

use model::{Op, Time};

/// An outstanding command, indexed by its id.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InFlight {
    pub(crate) thread: u32,
    pub(crate) bytes: u32,
    pub(crate) kind: IoClass,
    pub(crate) submitted: Time,
}

/// The statistics that count a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum IoClass {
    #[default]
    Read,
    Write,
    Trim,
    Sync,
}

impl IoClass {
    /// Returns how a command with this operation is counted.
    #[inline]
    pub(crate) fn from_op(op: Op) -> IoClass {
        match op {
            Op::Read => IoClass::Read,
            Op::Write => IoClass::Write,
            Op::Flush => IoClass::Sync,
            Op::Deallocate | Op::WriteZeroes => IoClass::Trim,
        }
    }
}
