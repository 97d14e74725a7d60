//! Encoder: appends PDUs to the bytes that a connection sends.
//!
//! Source: NVM Express TCP Transport Specification 1.0, chapter 3.6.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{Immutable, IntoBytes};

use super::digest::Crc;
use super::entry::{Cqe, Sqe};
use super::pdu::{
    CapsuleCmd, CapsuleResp, Common, DataPdu, FLAG_DATA_DIGEST, FLAG_HEADER_DIGEST, Fatal, IcReq,
    IcResp, PduType, TermReq,
};
use crate::outbox::Outbox;

/// Parameters with which one side writes its PDUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encoder {
    /// Whether headers are followed by a digest.
    pub header_digest: bool,
    /// Whether data is followed by a digest.
    pub data_digest: bool,
    /// Alignment of data in bytes: a multiple of 4, at most 128.
    pub alignment: u32,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder {
            header_digest: false,
            data_digest: false,
            alignment: 4,
        }
    }
}

/// Fields of a data PDU or an R2T.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Identifier of the command.
    pub cid: u16,
    /// Tag of the controller; 0 in C2HData.
    pub tag: u16,
    /// First byte, within the data of the command.
    pub offset: u32,
    /// `FLAG_LAST` and `FLAG_SUCCESS`.
    pub flags: u8,
}

impl Encoder {
    /// Appends ICReq, with which the host opens a connection.
    pub fn ic_req(out: &mut Outbox, alignment: u8, digests: u8, max_r2t: u32) {
        let pdu = IcReq {
            common: plain(PduType::IcReq, 128),
            version: U16::new(0),
            alignment,
            digests,
            max_r2t: U32::new(max_r2t),
            reserved: [0; 112],
        };
        out.push(pdu.as_bytes());
    }

    /// Appends ICResp, the controller's answer.
    pub fn ic_resp(out: &mut Outbox, alignment: u8, digests: u8, max_h2c_data: u32) {
        let pdu = IcResp {
            common: plain(PduType::IcResp, 128),
            version: U16::new(0),
            alignment,
            digests,
            max_h2c_data: U32::new(max_h2c_data),
            reserved: [0; 112],
        };
        out.push(pdu.as_bytes());
    }

    /// Appends a termination request. `offending` is the known part of the header of the invalid PDU.
    pub fn term(out: &mut Outbox, kind: PduType, fatal: Fatal, detail: u32, offending: &[u8]) {
        let offending = &offending[..offending.len().min(128)];
        let pdu = TermReq {
            common: plain(kind, 24 + offending.len() as u32),
            fatal: U16::new(fatal as u16),
            detail: U32::new(detail),
            reserved: [0; 10],
        };
        out.push(pdu.as_bytes());
        out.push(offending);
    }

    /// Appends a command with the data in its capsule.
    pub fn command(&self, out: &mut Outbox, sqe: &Sqe, data: &[u8]) {
        let common = self.common(PduType::CapsuleCmd, 0, data.len() as u32);
        let pdu = CapsuleCmd { common, sqe: *sqe };
        self.body(self.put(out, &common, &pdu), |body| {
            body.copy_from_slice(data)
        });
    }

    /// Appends a completion.
    #[inline]
    pub fn response(&self, out: &mut Outbox, cqe: &Cqe) {
        let common = self.common(PduType::CapsuleResp, 0, 0);
        self.put(out, &common, &CapsuleResp { common, cqe: *cqe });
    }

    /// Appends an R2T for `length` bytes of the data of a command.
    pub fn r2t(&self, out: &mut Outbox, transfer: Transfer, length: u32) {
        let common = self.common(PduType::R2t, 0, 0);
        self.put(out, &common, &transfer.header(common, length));
    }

    /// Appends requested data of a write.
    pub fn h2c_data(&self, out: &mut Outbox, transfer: Transfer, data: &[u8]) {
        let length = data.len() as u32;
        let common = self.common(PduType::H2cData, transfer.flags, length);
        let rest = self.put(out, &common, &transfer.header(common, length));
        self.body(rest, |body| body.copy_from_slice(data));
    }

    /// Appends data of a read, of `length` bytes (not 0); `fill` writes them directly into the send buffer.
    ///
    /// # Errors
    /// An error of `fill`; nothing has been appended then.
    #[inline]
    pub fn c2h_data<E>(
        &self,
        out: &mut Outbox,
        transfer: Transfer,
        length: u32,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let common = self.common(PduType::C2hData, transfer.flags, length);
        let rest = self.put(out, &common, &transfer.header(common, length));
        let mut filled = Ok(());
        self.body(rest, |body| filled = fill(body));
        if filled.is_err() {
            out.shrink(common.bytes.get() as usize);
        }
        filled
    }

    #[inline]
    fn common(&self, kind: PduType, flags: u8, data: u32) -> Common {
        let mut flags = flags;
        let mut bytes = kind.header_bytes() as u32;
        if self.header_digest {
            flags |= FLAG_HEADER_DIGEST;
            bytes += 4;
        }
        let mut offset = 0;
        if data > 0 {
            offset = bytes.next_multiple_of(self.alignment);
            bytes = offset + data;
            if self.data_digest {
                flags |= FLAG_DATA_DIGEST;
                bytes += 4;
            }
        }
        Common {
            kind: kind as u8,
            flags,
            header_bytes: kind.header_bytes() as u8,
            data_offset: offset as u8,
            bytes: U32::new(bytes),
        }
    }

    /// Reserves space for the whole PDU and writes header, digest and padding; returns the space for data and digest.
    #[inline]
    fn put<'a, T: IntoBytes + Immutable>(
        &self,
        out: &'a mut Outbox,
        common: &Common,
        pdu: &T,
    ) -> &'a mut [u8] {
        let all = out.grow(common.bytes.get() as usize);
        let header = pdu.as_bytes();
        let (front, rest) = all.split_at_mut(header.len());
        front.copy_from_slice(header);
        let mut padding = usize::from(common.data_offset).saturating_sub(header.len());
        let mut rest = rest;
        if self.header_digest {
            let (digest, after) = rest.split_at_mut(4);
            digest.copy_from_slice(&Crc::digest(header));
            rest = after;
            padding = padding.saturating_sub(4);
        }
        let (pad, rest) = rest.split_at_mut(padding);
        pad.fill(0);
        rest
    }

    #[inline]
    fn body(&self, room: &mut [u8], fill: impl FnOnce(&mut [u8])) {
        if room.is_empty() {
            return;
        }
        let digest = if self.data_digest { 4 } else { 0 };
        let (data, trailer) = room.split_at_mut(room.len() - digest);
        fill(data);
        if self.data_digest {
            trailer.copy_from_slice(&Crc::digest(data));
        }
    }
}

impl Transfer {
    #[inline]
    fn header(self, common: Common, length: u32) -> DataPdu {
        DataPdu {
            common,
            cid: U16::new(self.cid),
            tag: U16::new(self.tag),
            offset: U32::new(self.offset),
            length: U32::new(length),
            reserved: U32::new(0),
        }
    }
}

fn plain(kind: PduType, bytes: u32) -> Common {
    Common {
        kind: kind as u8,
        flags: 0,
        header_bytes: kind.header_bytes() as u8,
        data_offset: 0,
        bytes: U32::new(bytes),
    }
}
