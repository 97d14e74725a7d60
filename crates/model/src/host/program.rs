//! What a program costs beside its I/O: Aerospike's certification test, which keeps time and fills buffers. Figures and
//! their rows stand in `[act]` of `catalogue/host/*.toml`.

use crate::Span;

/// What a program with timers, queues and threads of its own costs on its host outside its I/O: CPU time and delays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProgramCosts {
    /// How late a sleeping thread's timer may fire, and does.
    pub timer_slack: Span,
    /// Making a request and putting it into a queue (version 3).
    pub generate: Span,
    /// Added to that where a thread must be woken: the system call.
    pub signal: Span,
    /// From then until the woken thread runs.
    pub wake: Span,
    /// A reading thread's own work on each request: taking it, counting it, and its file descriptor.
    pub transaction: Span,
    /// Filling a large block with random bytes before it is written, picoseconds a byte.
    pub fill_picoseconds_per_byte: u64,
}
