//! What is known of a command while it is outstanding: whose it is, and as what it will be counted.

use model::{Op, Time};

/// What an outstanding command is, by its id.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InFlight {
    pub(crate) thread: u32,
    pub(crate) bytes: u32,
    pub(crate) kind: Counted,
    pub(crate) submitted: Time,
}

/// What a command is counted as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Counted {
    #[default]
    Read,
    Write,
    Trim,
    Sync,
}

impl Counted {
    /// What a command that does this is counted as.
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
