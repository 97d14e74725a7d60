//! Costs of a program other than its I/O: Aerospike's certification test, which keeps time and fills buffers. Figures
//! and their rows are in `[act]` of `catalogue/host/*.toml`.

use crate::Span;

/// CPU time and delays on the host, outside of I/O, of a program with its own timers, queues and threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProgramCosts {
    /// Maximum delay of a sleeping thread's timer, which is always used in full.
    pub timer_slack: Span,
    /// Creating a request and putting it into a queue (version 3).
    pub generate: Span,
    /// Additional time if a thread must be woken: the system call.
    pub signal: Span,
    /// From then until the woken thread runs.
    pub wake: Span,
    /// A reading thread's own work for each request: taking it, counting it, and obtaining its file descriptor.
    pub transaction: Span,
    /// Filling a large block with random bytes before it is written, in picoseconds per byte.
    pub fill_picoseconds_per_byte: u64,
}
