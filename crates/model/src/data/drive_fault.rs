//! Faults of one drive and its data, other than a power cut. They are those reported by studies of drive fleets: whole
//! drives fail; writes are acknowledged and lost or misdirected; sectors are corrupted; flushes are falsely
//! acknowledged.
//!
//! Errors and delays by range, rate or count are in [`super::Injector`].

use crate::time::{Span, Time};

/// Time after which a drive responds again that lost its own power. CAP.TO of NVMe drives is at most some seconds, and
/// most drives are ready sooner (assumed, 0.2 to 5 s; a hard disk takes 10 to 30 s).
pub const READY: Span = Span::from_ms(1000);

/// A fault of a drive, permanent or single.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DriveFault {
    /// The drive fails and does not respond: outstanding and later commands end with [`crate::Status::Gone`].
    Dies,
    /// The drive loses its power and does not respond until it returns. The content of its volatile cache and
    /// outstanding commands are lost as its model defines.
    LosesPower,
    /// The drive responds again, with the content of its medium. Every other write that was outstanding when it failed
    /// is done.
    Returns,
    /// Completions that the drive makes before `until` are delayed; data is transferred without delay.
    Slows {
        /// Additional delay.
        by: Span,
        /// End of the slow period.
        until: Time,
    },
    /// From now on the drive acknowledges flushes, and writes with force unit access, without making data durable.
    Lies,
    /// The next write ends with [`crate::Status::WriteFault`] and changes nothing.
    FailsWrite,
    /// The next write is acknowledged, but not written.
    LosesWrite,
    /// The data of the next write is written this many bytes further on (a multiple of 512; wraps around at the end).
    Misdirects {
        /// Distance in bytes.
        by: u64,
    },
    /// A bit of the sector at this byte flips without an error.
    Rots {
        /// Offset of any byte of the sector.
        at: u64,
    },
    /// The sectors of the range become unreadable until they are written.
    Unreadable {
        /// First byte.
        at: u64,
        /// Length.
        bytes: u64,
    },
    /// From now on commands end with errors, although the drive responds: see [`LastingErrors`].
    Fails(LastingErrors),
}

/// Errors of a store that do not end: the kernel answers each access with an input/output error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum LastingErrors {
    /// No data can be read; writes succeed.
    Reads,
    /// Reads, writes and flushes of the medium fail.
    All,
    /// As [`LastingErrors::All`], up to the next power cut.
    AllUntilPowerCut,
}
