//! Entries of submission and completion queues, and data pointers of commands.
//!
//! Source: NVM Express Base Specification 1.4, chapters 4.2, 4.4 and 4.6; NVMe over Fabrics 1.1, chapter 2.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::status::Status;

/// Data pointer of a command (an SGL descriptor).
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Debug,
    Default,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(C)]
pub struct Sgl {
    /// For data in a capsule: offset within the capsule.
    pub address: U64,
    /// Number of bytes.
    pub length: U32,
    /// Zero.
    pub reserved: [u8; 3],
    /// Descriptor and its subtype: [`Sgl::IN_CAPSULE`] or [`Sgl::TRANSPORT`].
    pub kind: u8,
}

impl Sgl {
    /// The data is in the capsule.
    pub const IN_CAPSULE: u8 = 0x01;
    /// The transport moves the data: C2HData, or R2T and H2CData.
    pub const TRANSPORT: u8 = 0x5a;

    /// Returns a descriptor for data at the first byte of the capsule.
    pub const fn in_capsule(length: u32) -> Sgl {
        Sgl::new(Sgl::IN_CAPSULE, length)
    }

    /// Returns a descriptor for data that the transport moves.
    pub const fn transport(length: u32) -> Sgl {
        Sgl::new(Sgl::TRANSPORT, length)
    }

    const fn new(kind: u8, length: u32) -> Sgl {
        Sgl {
            address: U64::new(0),
            length: U32::new(length),
            reserved: [0; 3],
            kind,
        }
    }
}

/// A submission queue entry.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Debug,
    Default,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(C)]
pub struct Sqe {
    /// Opcode of the command.
    pub opcode: u8,
    /// Bits 1:0 fused operation; bits 7:6 how `sgl` is interpreted (1 over fabrics).
    pub flags: u8,
    /// Command identifier, chosen by the host.
    pub cid: U16,
    /// Namespace; for fabrics commands, the first byte is their type.
    pub nsid: U32,
    /// Dword 2.
    pub cdw2: U32,
    /// Dword 3.
    pub cdw3: U32,
    /// Metadata pointer: unused over fabrics.
    pub metadata: U64,
    /// Data pointer.
    pub sgl: Sgl,
    /// Dword 10.
    pub cdw10: U32,
    /// Dword 11.
    pub cdw11: U32,
    /// Dword 12.
    pub cdw12: U32,
    /// Dword 13.
    pub cdw13: U32,
    /// Dword 14.
    pub cdw14: U32,
    /// Dword 15.
    pub cdw15: U32,
}

impl Sqe {
    /// First of two fused commands.
    pub const FUSED_FIRST: u8 = 1;
    /// Second of two fused commands.
    pub const FUSED_SECOND: u8 = 2;

    /// Returns the fused operation: 0, [`Sqe::FUSED_FIRST`] or [`Sqe::FUSED_SECOND`]; 3 is reserved.
    pub const fn fused(&self) -> u8 {
        self.flags & 3
    }

    /// Returns the first logical block (dwords 10 and 11).
    pub const fn slba(&self) -> u64 {
        self.cdw10.get() as u64 | (self.cdw11.get() as u64) << 32
    }

    /// Returns a command with the descriptor `sgl`, for fabrics.
    pub const fn fabric(opcode: u8, cid: u16, nsid: u32, sgl: Sgl) -> Sqe {
        const NONE: U32 = U32::new(0);
        Sqe {
            opcode,
            flags: 1 << 6,
            cid: U16::new(cid),
            nsid: U32::new(nsid),
            cdw2: NONE,
            cdw3: NONE,
            metadata: U64::new(0),
            sgl,
            cdw10: NONE,
            cdw11: NONE,
            cdw12: NONE,
            cdw13: NONE,
            cdw14: NONE,
            cdw15: NONE,
        }
    }
}

/// A completion queue entry.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Debug,
    Default,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(C)]
pub struct Cqe {
    /// Dword 0: depends on the command.
    pub dw0: U32,
    /// Dword 1: depends on the command.
    pub dw1: U32,
    /// Head of the submission queue.
    pub sq_head: U16,
    /// Unused over fabrics.
    pub sq_id: U16,
    /// Identifier of the completed command.
    pub cid: U16,
    /// Status, shifted left by one.
    pub status: U16,
}

impl Cqe {
    /// Returns the status.
    pub const fn status(&self) -> Status {
        Status::from_field(self.status.get() >> 1)
    }
}
