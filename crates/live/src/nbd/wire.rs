//! NBD on the wire: numbers, and the fixed-size messages.
//!
//! Source: the protocol's description in the NBD project's `doc/proto.md`. Everything is big-endian. Left out:
//! extended headers (64-bit lengths) and the oldstyle handshake.

/// First bytes of the server.
pub const MAGIC: &[u8; 8] = b"NBDMAGIC";
/// Magic of the newstyle handshake; also precedes each option.
pub const OPTION_MAGIC: &[u8; 8] = b"IHAVEOPT";
/// Magic that precedes each reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Magic that precedes each request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Magic that precedes each simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Magic that precedes each chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Handshake flags of the server and of the client: fixed newstyle, no zeroes after the export's size.
pub const FIXED_NEWSTYLE: u16 = 1;
/// See [`FIXED_NEWSTYLE`].
pub const NO_ZEROES: u16 = 2;

/// Options that a client may send.
pub mod option {
    #![allow(missing_docs, reason = "the names of the protocol")]
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options.
pub mod answer {
    #![allow(missing_docs, reason = "the names of the protocol")]
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    pub const ERR_TLS_REQD: u32 = 1 << 31 | 5;
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
}

/// Kinds of information about an export.
pub mod about {
    #![allow(missing_docs, reason = "the names of the protocol")]
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags of an export.
pub mod can {
    #![allow(missing_docs, reason = "the names of the protocol")]
    pub const HAS_FLAGS: u16 = 1;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const FLUSH: u16 = 1 << 2;
    pub const FUA: u16 = 1 << 3;
    pub const TRIM: u16 = 1 << 5;
    pub const WRITE_ZEROES: u16 = 1 << 6;
    pub const DF: u16 = 1 << 7;
    pub const MULTI_CONN: u16 = 1 << 8;
}

/// Command types.
pub mod command {
    #![allow(missing_docs, reason = "the names of the protocol")]
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of commands.
pub mod flag {
    #![allow(missing_docs, reason = "the names of the protocol")]
    pub const FUA: u16 = 1;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
}

/// Chunks of structured replies.
pub mod chunk {
    #![allow(missing_docs, reason = "the names of the protocol")]
    pub const DONE: u16 = 1;
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = 1 << 15 | 1;
}

/// Errors of commands.
pub mod error {
    #![allow(missing_docs, reason = "the names of the protocol")]
    pub const OK: u32 = 0;
    pub const EPERM: u32 = 1;
    pub const EIO: u32 = 5;
    pub const ENOMEM: u32 = 12;
    pub const EINVAL: u32 = 22;
    pub const ENOSPC: u32 = 28;
    pub const EOVERFLOW: u32 = 75;
}

/// Returns the big-endian number at `at`; the slice must be long enough.
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Returns the big-endian number at `at`; the slice must be long enough.
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from(be16(bytes, at)) << 16 | u32::from(be16(bytes, at + 2))
}

/// Returns the big-endian number at `at`; the slice must be long enough.
pub fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from(be32(bytes, at)) << 32 | u64::from(be32(bytes, at + 4))
}

/// A request, without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NbdRequest {
    /// Flags of the request; see [`flag`].
    pub flags: u16,
    /// Type of the request; see [`command`].
    pub command: u16,
    /// The client's identifier of the request.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
}

impl NbdRequest {
    /// Size of a request on the wire in bytes.
    pub const BYTES: usize = 28;

    /// Parses the request at the beginning of `bytes`, which has at least [`NbdRequest::BYTES`]; `None` without the
    /// magic.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<NbdRequest> {
        (be32(bytes, 0) == REQUEST_MAGIC).then(|| NbdRequest {
            flags: be16(bytes, 4),
            command: be16(bytes, 6),
            cookie: be64(bytes, 8),
            offset: be64(bytes, 16),
            length: be32(bytes, 24),
        })
    }

    /// Returns the request as bytes.
    pub fn emit(&self) -> [u8; NbdRequest::BYTES] {
        let mut bytes = [0; NbdRequest::BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }
}

/// Bytes of a simple reply.
pub const SIMPLE_REPLY: usize = 16;

/// Returns a simple reply, which the data of a read must follow.
#[inline]
pub fn simple_reply(cookie: u64, error: u32) -> [u8; SIMPLE_REPLY] {
    let mut bytes = [0; SIMPLE_REPLY];
    bytes[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    bytes
}

/// Bytes of the header of a chunk.
pub const CHUNK: usize = 20;

/// Returns the header of the last chunk of a structured reply, which `length` bytes must follow.
#[inline]
pub fn last_chunk(cookie: u64, kind: u16, length: u32) -> [u8; CHUNK] {
    let mut bytes = [0; CHUNK];
    bytes[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&chunk::DONE.to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Returns the header of a reply to an option, which `length` bytes must follow.
pub fn option_reply(option: u32, answer: u32, length: u32) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    bytes[8..12].copy_from_slice(&option.to_be_bytes());
    bytes[12..16].copy_from_slice(&answer.to_be_bytes());
    bytes[16..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Returns an option of the client: its number with its data.
pub fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_MAGIC.to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}
