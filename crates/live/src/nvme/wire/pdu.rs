//! Headers of NVMe/TCP's protocol data units, byte for byte.
//!
//! Every PDU begins with eight bytes that contain its type and length; the rest depends on the type. All numbers are
//! little endian. Not supported: TLS and in-band authentication (AUTH PDUs do not exist; they are fabrics commands).
//! Source: NVM Express TCP Transport Specification 1.0, chapter 3.6.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::entry::{Cqe, Sqe};

/// A digest (CRC32C) of the header follows it.
pub const FLAG_HEADER_DIGEST: u8 = 1 << 0;
/// A digest of the data follows it.
pub const FLAG_DATA_DIGEST: u8 = 1 << 1;
/// Data PDUs: the last one of the command (C2H) or of the R2T (H2C).
pub const FLAG_LAST: u8 = 1 << 2;
/// C2HData: the command succeeded and no response capsule follows.
pub const FLAG_SUCCESS: u8 = 1 << 3;

/// Type of a PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PduType {
    /// The host opens a connection.
    IcReq = 0x00,
    /// The controller's answer to ICReq.
    IcResp = 0x01,
    /// The host terminates the connection, with a reason.
    H2cTermReq = 0x02,
    /// The controller terminates the connection, with a reason.
    C2hTermReq = 0x03,
    /// A command, optionally with data.
    CapsuleCmd = 0x04,
    /// A completion.
    CapsuleResp = 0x05,
    /// Data of a write that the controller requested.
    H2cData = 0x06,
    /// Data of a read.
    C2hData = 0x07,
    /// The controller requests data of a write ("ready to transfer").
    R2t = 0x09,
}

impl PduType {
    /// Returns the type with this code, if there is one.
    pub const fn from_code(code: u8) -> Option<PduType> {
        Some(match code {
            0x00 => PduType::IcReq,
            0x01 => PduType::IcResp,
            0x02 => PduType::H2cTermReq,
            0x03 => PduType::C2hTermReq,
            0x04 => PduType::CapsuleCmd,
            0x05 => PduType::CapsuleResp,
            0x06 => PduType::H2cData,
            0x07 => PduType::C2hData,
            0x09 => PduType::R2t,
            _ => return None,
        })
    }

    /// Returns the bytes of the header, without digest and padding.
    pub const fn header_bytes(self) -> usize {
        match self {
            PduType::IcReq | PduType::IcResp => 128,
            PduType::CapsuleCmd => 72,
            PduType::H2cTermReq
            | PduType::C2hTermReq
            | PduType::CapsuleResp
            | PduType::H2cData
            | PduType::C2hData
            | PduType::R2t => 24,
        }
    }

    /// Checks whether data may follow the header.
    pub const fn carries_data(self) -> bool {
        matches!(
            self,
            PduType::CapsuleCmd
                | PduType::H2cData
                | PduType::C2hData
                | PduType::H2cTermReq
                | PduType::C2hTermReq
        )
    }

    /// Checks whether the type never has digests: they are agreed in the first exchange, and a termination request
    /// must be readable after any error.
    pub const fn without_digests(self) -> bool {
        matches!(
            self,
            PduType::IcReq | PduType::IcResp | PduType::H2cTermReq | PduType::C2hTermReq
        )
    }

    /// Checks whether the host sends it.
    pub const fn from_host(self) -> bool {
        matches!(
            self,
            PduType::IcReq | PduType::H2cTermReq | PduType::CapsuleCmd | PduType::H2cData
        )
    }
}

/// The eight bytes at the beginning of every PDU.
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
pub struct Common {
    /// Type; see [`PduType`].
    pub kind: u8,
    /// Flags, `FLAG_...`.
    pub flags: u8,
    /// Bytes of the header, including this part.
    pub header_bytes: u8,
    /// Offset of the data from the first byte of the PDU; 0 without data.
    pub data_offset: u8,
    /// Bytes of the whole PDU, including digests and padding.
    pub bytes: U32,
}

/// The host opens a connection (ICReq).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct IcReq {
    /// Common part of the header.
    pub common: Common,
    /// Version of the format of PDUs: 0.
    pub version: U16,
    /// Alignment of data that the host requires: (value + 1) x 4 bytes.
    pub alignment: u8,
    /// Bit 0: header digests; bit 1: data digests.
    pub digests: u8,
    /// Maximum number of simultaneous R2Ts of a command, less one.
    pub max_r2t: U32,
    /// Zero.
    pub reserved: [u8; 112],
}

/// The controller's answer (ICResp).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct IcResp {
    /// Common part of the header.
    pub common: Common,
    /// Version of the format of PDUs: 0.
    pub version: U16,
    /// Alignment of data that the controller requires: (value + 1) x 4 bytes.
    pub alignment: u8,
    /// Bit 0: header digests; bit 1: data digests.
    pub digests: u8,
    /// Maximum bytes of data in one H2CData.
    pub max_h2c_data: U32,
    /// Zero.
    pub reserved: [u8; 112],
}

/// A command capsule without its data.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct CapsuleCmd {
    /// Common part of the header.
    pub common: Common,
    /// The command.
    pub sqe: Sqe,
}

/// A response capsule.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct CapsuleResp {
    /// Common part of the header.
    pub common: Common,
    /// The completion.
    pub cqe: Cqe,
}

/// The header of data in either direction, and of an R2T, which has the same fields.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct DataPdu {
    /// Common part of the header.
    pub common: Common,
    /// Identifier of the command.
    pub cid: U16,
    /// The controller's tag of the transfer (H2CData, R2T).
    pub tag: U16,
    /// First byte, within the data of the command.
    pub offset: U32,
    /// Number of bytes.
    pub length: U32,
    /// Zero.
    pub reserved: U32,
}

/// A termination request of either side. The header of the invalid PDU follows.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct TermReq {
    /// Common part of the header.
    pub common: Common,
    /// Fatal error status; see [`super::Fatal`].
    pub fatal: U16,
    /// Offset of the invalid field.
    pub detail: U32,
    /// Zero.
    pub reserved: [u8; 10],
}

/// Reason for the end of a connection: the fatal error status of a termination request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Fatal {
    /// A field of a header is invalid.
    InvalidHeader = 1,
    /// The PDU is not allowed now.
    Sequence = 2,
    /// The digest of a header does not match.
    HeaderDigest = 3,
    /// Data is outside the requested range.
    OutOfRange = 4,
    /// More data or commands than agreed.
    LimitExceeded = 5,
    /// An unsupported function.
    Unsupported = 6,
}
