//! What is asked of a device, and what it answers.
//!
//! Addresses are bytes so that one type serves 512 B and 4 KiB formats; every device refuses what is not a multiple of
//! 512 B or lies beyond its end with a [`Status`], never a panic.

use crate::anatomy::Anatomy;
use crate::time::Time;

/// Names a command among those outstanding at one device. The submitter chooses it (usually a slot index) and may use
/// it again once the command has completed. Devices index flat tables with it, so ids should be small and dense.
pub type CommandId = u32;

/// What a command does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Op {
    /// Read `bytes` from `offset`.
    Read,
    /// Write `bytes` at `offset`.
    Write,
    /// Make durable what has been acknowledged. `offset` and `bytes` mean nothing.
    Flush,
    /// Deallocate (trim) the range.
    Deallocate,
    /// Write zeroes over the range without a transfer.
    WriteZeroes,
}

impl Op {
    /// Whether the command moves data to or from the host.
    pub const fn transfers(self) -> bool {
        matches!(self, Op::Read | Op::Write)
    }
}

/// Where the data is, outside of all devices: a buffer, and the first byte in it. Devices never look inside; what cuts a
/// command into pieces gives each its own part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Payload {
    /// The submitter's name for the buffer.
    pub buffer: u32,
    /// The command's first byte in it.
    pub at: u32,
}

impl Payload {
    /// The part that begins so many bytes further on.
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
    /// The submitter's name for it.
    pub id: CommandId,
    /// What to do.
    pub op: Op,
    /// Force unit access: a write completes only when it is durable.
    pub fua: bool,
    /// Above a host path: the job thread that issues it. Below one: the submission queue it came through.
    pub queue: u16,
    /// Whether the host should poll for it (`RWF_HIPRI`); devices ignore it.
    pub high_priority: bool,
    /// Whether it shares its system call with the command submitted just before it by the same thread (a batch).
    pub batched: bool,
    /// First byte, a multiple of 512.
    pub offset: u64,
    /// Length, a multiple of 512.
    pub bytes: u32,
    /// The data, somewhere else.
    pub payload: Payload,
}

impl Command {
    /// A read on queue 0.
    pub const fn read(id: CommandId, offset: u64, bytes: u32) -> Command {
        Command::new(id, Op::Read, offset, bytes)
    }

    /// A write on queue 0.
    pub const fn write(id: CommandId, offset: u64, bytes: u32) -> Command {
        Command::new(id, Op::Write, offset, bytes)
    }

    /// A flush on queue 0.
    pub const fn flush(id: CommandId) -> Command {
        Command::new(id, Op::Flush, 0, 0)
    }

    /// Any operation, on queue 0, without flags.
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

    /// The byte after the last one; an offset near 2^64 saturates.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes as u64)
    }

    /// Whether a device of `capacity` bytes takes it: a multiple of 512 B that does not reach beyond the end. A flush
    /// has no range and is always taken.
    pub const fn fits(&self, capacity: u64) -> bool {
        let aligned = self.offset.is_multiple_of(512) && self.bytes.is_multiple_of(512);
        matches!(self.op, Op::Flush) || (aligned && self.end() <= capacity)
    }
}

const _: () = assert!(size_of::<Command>() == 32);
const _: () = assert!(size_of::<Completion>() == 192);

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Status {
    /// As asked.
    #[default]
    Success,
    /// The range reaches beyond the device, or is not a multiple of 512 B.
    LbaOutOfRange,
    /// The medium could not give the data back.
    UnrecoveredReadError,
    /// A write, or what a flush was to make durable, could not be put on the medium. What was there before may be gone.
    WriteFault,
    /// The device does not answer: nobody knows what became of the command, and it takes no others until it returns.
    Gone,
}

/// The answer to one [`Command`]. In whole lines of memory, as it is copied from layer to layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(64))]
pub struct Completion {
    /// The id of the command.
    pub id: CommandId,
    /// When it completed: the `now` of the `advance` that returned it.
    pub at: Time,
    /// How it ended.
    pub status: Status,
    /// Where the time from submission to `at` went; the parts sum to exactly that.
    pub anatomy: Anatomy,
}
