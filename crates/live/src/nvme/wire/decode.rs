//! Decoder: splits the bytes of a connection into PDUs as they arrive.
//!
//! The bytes may be split anywhere. Headers are collected and checked here (type, direction, lengths, alignment,
//! digests). Data is passed on in pieces without copying, so that it is copied at most once. The meaning of PDUs is
//! handled elsewhere. Source: NVM Express TCP Transport Specification 1.0, chapters 3.3 and 3.6.

use zerocopy::FromBytes;

use super::digest::Crc;
use super::pdu::{
    CapsuleCmd, CapsuleResp, Common, DataPdu, FLAG_DATA_DIGEST, FLAG_HEADER_DIGEST, Fatal, IcReq,
    IcResp, PduType, TermReq,
};

/// Maximum bytes of a header with its digest.
const HEADER_MOST: usize = 128 + 4;
/// Bytes of the common part of all headers.
const COMMON: usize = size_of::<Common>();
/// Maximum bytes of a termination request: its header and the header of the invalid PDU.
const TERM_MOST: u32 = 152;

/// A protocol violation that ends the connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PduFault {
    /// Fatal error status for the termination request.
    pub fatal: Fatal,
    /// Offset of the invalid field.
    pub detail: u32,
    /// Text for the log.
    pub reason: &'static str,
}

impl PduFault {
    /// Returns a fault without a field.
    pub const fn new(fatal: Fatal, reason: &'static str) -> PduFault {
        PduFault {
            fatal,
            detail: 0,
            reason,
        }
    }

    const fn field(detail: u32, reason: &'static str) -> PduFault {
        PduFault {
            fatal: Fatal::InvalidHeader,
            detail,
            reason,
        }
    }
}

/// The header of a PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// The host opens a connection.
    IcReq(IcReq),
    /// The controller's answer to ICReq.
    IcResp(IcResp),
    /// A command; its data may follow.
    Command(CapsuleCmd),
    /// A completion.
    Response(CapsuleResp),
    /// Data of a write, which follows.
    H2cData(DataPdu),
    /// Data of a read, which follows.
    C2hData(DataPdu),
    /// The controller requests data.
    R2t(DataPdu),
    /// The peer terminates the connection.
    Term(TermReq),
}

/// A decoded part of the input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PduEvent<'a> {
    /// A header, and the number of data bytes that follow. [`PduEvent::End`] follows too, at once if there is no data.
    Header(Header, u32),
    /// Data, in order.
    Data(&'a [u8]),
    /// The PDU is complete; `false` if the data does not match its digest.
    End(bool),
}

/// Rules for accepted PDUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Whether this side is the controller.
    pub controller: bool,
    /// Whether headers are followed by a digest.
    pub header_digest: bool,
    /// Whether data is followed by a digest.
    pub data_digest: bool,
    /// Maximum bytes of data in one PDU.
    pub most_data: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PduStage {
    /// Collecting the header.
    Header,
    /// Padding, then data, then its digest.
    Body,
}

/// Splits a connection's bytes into PDUs.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// Rules for accepted PDUs. Digests are enabled after the first exchange.
    pub rules: Rules,
    stage: PduStage,
    /// The received part of a header that arrived in pieces.
    gathered: [u8; HEADER_MOST],
    have: usize,
    /// Bytes of padding that have not arrived.
    padding: u32,
    /// Bytes of data that have not arrived.
    data: u32,
    /// Bytes of the data digest that have not arrived.
    trailer: u32,
    /// Digest of the data so far, if this PDU has one.
    crc: Option<Crc>,
    announced: [u8; 4],
}

impl Decoder {
    /// Returns a decoder for a new connection, without digests.
    pub fn new(controller: bool, most_data: u32) -> Decoder {
        Decoder {
            rules: Rules {
                controller,
                header_digest: false,
                data_digest: false,
                most_data,
            },
            stage: PduStage::Header,
            gathered: [0; HEADER_MOST],
            have: 0,
            padding: 0,
            data: 0,
            trailer: 0,
            crc: None,
            announced: [0; 4],
        }
    }

    /// Takes bytes from the front of `bytes` and returns the next event; `None` if more bytes are needed (all are then
    /// taken).
    ///
    /// # Errors
    /// A protocol violation. The connection is then unusable.
    #[inline]
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<PduEvent<'a>>, PduFault> {
        match self.stage {
            PduStage::Header => self.header(bytes),
            PduStage::Body => Ok(self.body(bytes)),
        }
    }

    /// Returns the first bytes of the PDU that is being collected, for a termination request.
    pub fn gathered(&self) -> &[u8] {
        &self.gathered[..self.have]
    }

    fn header<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<PduEvent<'a>>, PduFault> {
        if self.have == 0 && bytes.len() >= COMMON {
            // Complete headers are read in place.
            let (layout, need) = self.rules.layout(bytes)?;
            if bytes.len() >= need {
                let (whole, rest) = bytes.split_at(need);
                *bytes = rest;
                return self.complete(layout, whole).map(Some);
            }
        }
        loop {
            let need = if self.have < COMMON {
                COMMON
            } else {
                self.rules.layout(&self.gathered)?.1
            };
            let take = (need - self.have).min(bytes.len());
            let (front, rest) = bytes.split_at(take);
            self.gathered[self.have..self.have + take].copy_from_slice(front);
            self.have += take;
            *bytes = rest;
            if self.have < need {
                return Ok(None);
            }
            if need > COMMON {
                let layout = self.rules.layout(&self.gathered)?.0;
                let whole = self.gathered;
                return self.complete(layout, &whole[..need]).map(Some);
            }
        }
    }

    fn complete<'a>(&mut self, layout: PduLayout, whole: &[u8]) -> Result<PduEvent<'a>, PduFault> {
        let header = layout.kind.header_bytes();
        if layout.header_digest && Crc::digest(&whole[..header]) != whole[header..header + 4] {
            self.gathered[..header].copy_from_slice(&whole[..header]);
            self.have = header;
            return Err(PduFault::new(
                Fatal::HeaderDigest,
                "the digest of a header does not match",
            ));
        }
        self.have = 0;
        self.stage = PduStage::Body;
        self.padding = layout.padding;
        self.data = layout.data;
        self.trailer = if layout.data_digest { 4 } else { 0 };
        self.crc = layout.data_digest.then(Crc::default);
        Ok(PduEvent::Header(read(layout.kind, whole), layout.data))
    }

    #[inline]
    fn body<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<PduEvent<'a>> {
        let skipped = (self.padding as usize).min(bytes.len());
        *bytes = &bytes[skipped..];
        self.padding -= skipped as u32;
        if self.padding > 0 {
            return None;
        }
        if self.data > 0 {
            if bytes.is_empty() {
                return None;
            }
            let (data, rest) = bytes.split_at((self.data as usize).min(bytes.len()));
            *bytes = rest;
            self.data -= data.len() as u32;
            if let Some(crc) = &mut self.crc {
                crc.add(data);
            }
            return Some(PduEvent::Data(data));
        }
        while self.trailer > 0 {
            let (&byte, rest) = bytes.split_first()?;
            *bytes = rest;
            self.announced[4 - self.trailer as usize] = byte;
            self.trailer -= 1;
        }
        self.stage = PduStage::Header;
        let intact = self
            .crc
            .take()
            .is_none_or(|crc| crc.bytes() == self.announced);
        Some(PduEvent::End(intact))
    }
}

/// Positions of the parts of a PDU.
#[derive(Clone, Copy, Debug)]
struct PduLayout {
    kind: PduType,
    header_digest: bool,
    padding: u32,
    data: u32,
    data_digest: bool,
}

impl Rules {
    /// Returns the positions of the parts of the PDU that begins with `bytes` (at least [`COMMON`]), and the bytes of
    /// its header with digest.
    #[inline]
    fn layout(&self, bytes: &[u8]) -> Result<(PduLayout, usize), PduFault> {
        let Ok((common, _)) = Common::ref_from_prefix(bytes) else {
            return Err(PduFault::new(Fatal::InvalidHeader, "a header is too short"));
        };
        let kind = PduType::from_code(common.kind)
            .filter(|kind| kind.from_host() == self.controller)
            .ok_or(PduFault::field(
                0,
                "a PDU type that is not valid in this direction",
            ))?;
        if usize::from(common.header_bytes) != kind.header_bytes() {
            return Err(PduFault::field(
                2,
                "the length of a header is not that of its type",
            ));
        }
        let digests = !kind.without_digests();
        let header_digest = digests && self.header_digest;
        if (common.flags & FLAG_HEADER_DIGEST != 0) != header_digest {
            return Err(PduFault::field(
                1,
                "a header digest is present or absent, contrary to the negotiation",
            ));
        }
        let header = kind.header_bytes() as u32 + if header_digest { 4 } else { 0 };
        let all = common.bytes.get();
        if all < header {
            return Err(PduFault::field(4, "a PDU is shorter than its header"));
        }
        let mut layout = PduLayout {
            kind,
            header_digest,
            padding: 0,
            data: 0,
            data_digest: false,
        };
        if kind.without_digests() {
            layout.data = all - header;
            let most = if kind.carries_data() {
                TERM_MOST
            } else {
                header
            };
            if all > most {
                return Err(PduFault::field(4, "a PDU is longer than its type allows"));
            }
        } else if all > header {
            self.body(common, header, &mut layout)?;
        } else if common.flags & FLAG_DATA_DIGEST != 0
            && !(kind == PduType::CapsuleCmd && self.data_digest)
        {
            return Err(PduFault::field(1, "a data digest without data"));
        }
        Ok((layout, header as usize))
    }

    fn body(&self, common: &Common, header: u32, layout: &mut PduLayout) -> Result<(), PduFault> {
        if !layout.kind.carries_data() {
            return Err(PduFault::field(4, "a PDU is longer than its type allows"));
        }
        if (common.flags & FLAG_DATA_DIGEST != 0) != self.data_digest {
            return Err(PduFault::field(
                1,
                "a data digest is present or absent, contrary to the negotiation",
            ));
        }
        layout.data_digest = self.data_digest;
        let offset = u32::from(common.data_offset);
        if offset < header || offset % 4 != 0 {
            return Err(PduFault::field(
                3,
                "data begins within the header or unaligned",
            ));
        }
        let digest = if self.data_digest { 4 } else { 0 };
        let data = common.bytes.get().checked_sub(offset + digest);
        let Some(data) = data.filter(|&data| data > 0) else {
            return Err(PduFault::field(4, "a PDU ends before its data"));
        };
        if data > self.most_data {
            return Err(PduFault {
                fatal: Fatal::LimitExceeded,
                detail: 4,
                reason: "more data in a PDU than was agreed",
            });
        }
        layout.padding = offset - header;
        layout.data = data;
        Ok(())
    }
}

/// Reads a header from a sufficient number of bytes.
#[inline]
fn read(kind: PduType, bytes: &[u8]) -> Header {
    fn read_header<T: FromBytes>(bytes: &[u8]) -> T {
        T::read_from_prefix(bytes)
            .unwrap_or_else(|_| unreachable!("the header is complete"))
            .0
    }
    match kind {
        PduType::IcReq => Header::IcReq(read_header(bytes)),
        PduType::IcResp => Header::IcResp(read_header(bytes)),
        PduType::H2cTermReq | PduType::C2hTermReq => Header::Term(read_header(bytes)),
        PduType::CapsuleCmd => Header::Command(read_header(bytes)),
        PduType::CapsuleResp => Header::Response(read_header(bytes)),
        PduType::H2cData => Header::H2cData(read_header(bytes)),
        PduType::C2hData => Header::C2hData(read_header(bytes)),
        PduType::R2t => Header::R2t(read_header(bytes)),
    }
}
