//! Commands to a device, and their completions.
//!
//! Addresses are in bytes, so that one type serves formats of 512 B and 4 KiB. Every device rejects a range that is not
//! a multiple of 512 B, or that lies beyond its end, with a [`Status`]. It never panics.

use crate::anatomy::Anatomy;
use crate::time::Time;

/// Identifies a command among those outstanding at one device. The submitter chooses it (usually a slot index) and may
/// reuse it once the command has completed. Devices index flat tables with it, so ids should be small and dense.
pub type CommandId = u32;

/// Operation of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Op {
    /// Read `bytes` from `offset`.
    Read,
    /// Write `bytes` at `offset`.
    Write,
    /// Make acknowledged data durable. `offset` and `bytes` are ignored.
    Flush,
    /// Deallocate (trim) the range.
    Deallocate,
    /// Write zeroes to the range, without a data transfer.
    WriteZeroes,
}

impl Op {
    /// Whether the command moves data to or from the host.
    pub const fn transfers(self) -> bool {
        matches!(self, Op::Read | Op::Write)
    }
}

/// Location of the data, outside of all devices: a buffer and the position of the first byte in it. Devices never
/// access the data. A component that splits a command gives each piece its own part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Payload {
    /// The submitter's name for the buffer.
    pub buffer: u32,
    /// Position of the command's first byte in the buffer.
    pub at: u32,
}

impl Payload {
    /// Returns the part that begins `bytes` further on.
    #[must_use]
    pub const fn skip(self, bytes: u32) -> Payload {
        Payload {
            buffer: self.buffer,
            at: self.at + bytes,
        }
    }
}

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// The submitter's id for the command.
    pub id: CommandId,
    /// Operation.
    pub op: Op,
    /// Force unit access: a write completes only when it is durable.
    pub fua: bool,
    /// Above a host path: the job thread that issues the command. Below one: the submission queue that the command came
    /// through.
    pub queue: u16,
    /// Whether the host should poll for the completion (`RWF_HIPRI`); devices ignore this flag.
    pub high_priority: bool,
    /// Whether the command shares its system call with the previous command of the same thread (a batch).
    pub batched: bool,
    /// First byte, a multiple of 512.
    pub offset: u64,
    /// Length, a multiple of 512.
    pub bytes: u32,
    /// Location of the data, outside the device.
    pub payload: Payload,
}

impl Command {
    /// Creates a read on queue 0.
    pub const fn read(id: CommandId, offset: u64, bytes: u32) -> Command {
        Command::new(id, Op::Read, offset, bytes)
    }

    /// Creates a write on queue 0.
    pub const fn write(id: CommandId, offset: u64, bytes: u32) -> Command {
        Command::new(id, Op::Write, offset, bytes)
    }

    /// Creates a flush on queue 0.
    pub const fn flush(id: CommandId) -> Command {
        Command::new(id, Op::Flush, 0, 0)
    }

    /// Creates a command of any operation, on queue 0, without flags.
    pub const fn new(id: CommandId, op: Op, offset: u64, bytes: u32) -> Command {
        Command {
            id,
            op,
            fua: false,
            queue: 0,
            high_priority: false,
            batched: false,
            offset,
            bytes,
            payload: Payload { buffer: 0, at: 0 },
        }
    }

    /// Returns the offset after the last byte; an offset near 2^64 saturates.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes as u64)
    }

    /// Whether a device of `capacity` bytes accepts the command: a multiple of 512 B that does not extend beyond the
    /// end. A flush has no range and is always accepted.
    pub const fn fits(&self, capacity: u64) -> bool {
        let aligned = self.offset.is_multiple_of(512) && self.bytes.is_multiple_of(512);
        matches!(self.op, Op::Flush) || (aligned && self.end() <= capacity)
    }
}

const _: () = assert!(size_of::<Command>() == 32);
const _: () = assert!(size_of::<Completion>() == 192);

/// Result of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Status {
    /// The command succeeded.
    #[default]
    Success,
    /// The range extends beyond the device, or is not a multiple of 512 B.
    LbaOutOfRange,
    /// The medium could not return the data.
    UnrecoveredReadError,
    /// Data of a write, or data that a flush had to make durable, could not be written to the medium. The previous data
    /// may be lost.
    WriteFault,
    /// The medium is read-only: the command changed nothing.
    ReadOnly,
    /// The device does not respond. The outcome of the command is unknown, and the device accepts no commands until it
    /// returns.
    Gone,
}

/// Completion of one [`Command`]. It occupies whole cache lines, because it is copied from layer to layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(64))]
pub struct Completion {
    /// Id of the command.
    pub id: CommandId,
    /// Time of completion: the `now` of the `advance` that returned it.
    pub at: Time,
    /// Result of the command.
    pub status: Status,
    /// Breakdown of the time from submission to `at`; the parts sum to exactly that time.
    pub anatomy: Anatomy,
}
