//! The client of NBD: fixed newstyle, simple replies.
//!
//! Source: the NBD protocol, <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>.

use super::{BenchJob, ClientSocket, Pipe, Session};
use crate::outbox::Outbox;

const MAGIC: u64 = 0x4e42_444d_4147_4943;
const HAVE_OPTION: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const SIMPLE_REPLY: u32 = 0x6744_6698;
const FIXED_NEWSTYLE: u16 = 1;
const GO: u32 = 7;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;
const INFO_EXPORT: u16 = 0;
const READ: u16 = 0;
const WRITE: u16 = 1;
/// Bytes of a simple reply.
const REPLY: usize = 16;

fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn be64(bytes: &[u8]) -> u64 {
    u64::from(be32(bytes)) << 32 | u64::from(be32(&bytes[4..]))
}

/// A connection in the transmission phase.
pub(super) struct Export {
    bytes: u64,
    length: u32,
    write: bool,
    /// The received part of a reply header.
    head: Vec<u8>,
    /// Data of the current reply: the bytes that have not arrived, and its tag.
    coming: u32,
    tag: u16,
}

/// Collects pieces of an answer until there are `bytes` bytes.
fn take(pipe: &mut Pipe, gathered: &mut Vec<u8>, bytes: usize) -> Result<Vec<u8>, String> {
    if gathered.len() < bytes {
        pipe.until(|came, _| {
            gathered.extend_from_slice(came);
            Ok((gathered.len() >= bytes).then_some(()))
        })?;
    }
    let rest = gathered.split_off(bytes);
    Ok(std::mem::replace(gathered, rest))
}

pub(super) fn connect(
    socket: ClientSocket,
    export: &str,
    job: &BenchJob,
) -> Result<(Pipe, Export), String> {
    let mut pipe = Pipe::new(socket)?;
    let mut gathered = Vec::new();
    let greeting = take(&mut pipe, &mut gathered, 18)?;
    if be64(&greeting) != MAGIC || be64(&greeting[8..]) != HAVE_OPTION {
        return Err("not an NBD server with newstyle negotiation".into());
    }
    if be16(&greeting[16..]) & FIXED_NEWSTYLE == 0 {
        return Err("the server does not support fixed newstyle negotiation".into());
    }
    pipe.out.push(&u32::from(FIXED_NEWSTYLE).to_be_bytes());
    let name = export.as_bytes();
    pipe.out.push(&HAVE_OPTION.to_be_bytes());
    pipe.out.push(&GO.to_be_bytes());
    pipe.out.push(&(name.len() as u32 + 6).to_be_bytes());
    pipe.out.push(&(name.len() as u32).to_be_bytes());
    pipe.out.push(name);
    pipe.out.push(&0u16.to_be_bytes());
    let mut bytes = None;
    loop {
        let head = take(&mut pipe, &mut gathered, 20)?;
        if be64(&head) != OPTION_REPLY {
            return Err("the server sent something other than an option reply".into());
        }
        let (kind, length) = (be32(&head[12..]), be32(&head[16..]));
        if length > 1 << 16 {
            return Err("the option reply is longer than 64 KiB".into());
        }
        let data = take(&mut pipe, &mut gathered, length as usize)?;
        match kind {
            REPLY_ACK => break,
            REPLY_INFO if data.len() >= 12 && be16(&data) == INFO_EXPORT => {
                bytes = Some(be64(&data[2..]));
            }
            REPLY_INFO => {}
            _ => return Err(format!("the server refuses export `{export}` ({kind:#x})")),
        }
    }
    let session = Export {
        bytes: bytes.ok_or("the server does not report the size of the export")?,
        length: job.block,
        write: job.pattern.writes(),
        head: Vec::with_capacity(REPLY),
        coming: 0,
        tag: 0,
    };
    Ok((pipe, session))
}

impl Session for Export {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn most(&self) -> u32 {
        32 << 20
    }

    #[inline]
    fn send(&mut self, tag: u16, write: bool, offset: u64, payload: &[u8], out: &mut Outbox) {
        let mut head = [0; 28];
        head[0..4].copy_from_slice(&REQUEST.to_be_bytes());
        head[6..8].copy_from_slice(&(if write { WRITE } else { READ }).to_be_bytes());
        head[8..16].copy_from_slice(&u64::from(tag).to_be_bytes());
        head[16..24].copy_from_slice(&offset.to_be_bytes());
        head[24..28].copy_from_slice(&self.length.to_be_bytes());
        out.push(&head);
        if write {
            out.push(payload);
        }
    }

    #[inline]
    fn input(
        &mut self,
        bytes: &[u8],
        _out: &mut Outbox,
        done: &mut dyn FnMut(u16, bool),
    ) -> Result<(), String> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.coming > 0 {
                let now = (self.coming as usize).min(rest.len());
                rest = &rest[now..];
                self.coming -= now as u32;
                if self.coming == 0 {
                    done(self.tag, true);
                }
                continue;
            }
            let now = (REPLY - self.head.len()).min(rest.len());
            self.head.extend_from_slice(&rest[..now]);
            rest = &rest[now..];
            if self.head.len() < REPLY {
                break;
            }
            if be32(&self.head) != SIMPLE_REPLY {
                return Err("the server sent something other than a simple reply".into());
            }
            let error = be32(&self.head[4..]);
            self.tag = be64(&self.head[8..]) as u16;
            self.head.clear();
            if error != 0 || self.write {
                done(self.tag, error == 0);
            } else {
                self.coming = self.length;
            }
        }
        Ok(())
    }
}
