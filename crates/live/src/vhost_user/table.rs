//! A memory table as user-mode Linux sends it: with space for more regions than there are.
//!
//! The crate `vhost` accepts only tables of exactly the right length, so this message is parsed here.

use std::fs::File;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use vhost::vhost_user::VhostUserBackendReqHandlerMut;
use vhost::vhost_user::message::{FrontendReq, VhostUserMemoryRegion};

use super::device::VirtioDevice;
use super::{HEADER, LONGEST};
use crate::port::ConnectionEnd;

/// Bytes before the regions: their number, and padding.
const COUNT: usize = 8;
/// Bytes of a region: guest's address, size, frontend's address, offset in the file.
const REGION: usize = 32;
/// Maximum number of regions.
const REGIONS: usize = 8;
/// Flags of a message: an answer is requested; this is an answer.
const WANTS_ANSWER: u32 = 1 << 3;
const IS_ANSWER: u32 = 1 << 2;
const VERSION: u32 = 1;

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn double_word(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// Checks whether a complete message is a table that is longer than its regions.
pub(super) fn is_padded(message: &[u8]) -> bool {
    let is_table = word(message, 0) == FrontendReq::SET_MEM_TABLE as u32;
    is_table && message.len() >= HEADER + COUNT && {
        let regions = word(message, HEADER) as usize;
        regions <= REGIONS && message.len() > HEADER + COUNT + regions * REGION
    }
}

/// Takes such a complete message of `length` bytes from the socket.
pub(super) fn take(
    socket: impl AsFd,
    length: usize,
    device: &mut VirtioDevice,
) -> Result<(), ConnectionEnd> {
    let mut bytes = [0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(REGIONS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut got = 0;
    let mut files = Vec::new();
    // Descriptors arrive with the first bytes, which are received separately.
    while got < length {
        let mut parts = [IoSliceMut::new(&mut bytes[got..length])];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        got += match recvmsg(&socket, &mut parts, &mut ancillary, flags) {
            Ok(received) if received.bytes == 0 => return Err(ConnectionEnd::Left),
            Ok(received) => received.bytes,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                files.extend(descriptors.map(File::from));
            }
        }
    }
    let count = word(&bytes, HEADER) as usize;
    let regions: Vec<VhostUserMemoryRegion> = (0..count)
        .map(|index| HEADER + COUNT + index * REGION)
        .map(|at| {
            let [guest, size, frontend, offset] =
                [0, 8, 16, 24].map(|field| double_word(&bytes, at + field));
            VhostUserMemoryRegion::new(guest, size, frontend, offset)
        })
        .collect();
    let ends = |from: u64, size: u64| from.checked_add(size).is_some() && size > 0;
    let sane = regions.iter().all(|region| {
        let (size, guest) = (region.memory_size, region.guest_phys_addr);
        ends(guest, size) && ends(region.user_addr, size) && ends(region.mmap_offset, size)
    });
    if count == 0 || files.len() != count || !sane {
        return Err(ConnectionEnd::broke("an invalid memory table"));
    }
    device
        .set_mem_table(&regions, files, None)
        .map_err(|error| ConnectionEnd::broke(error.to_string()))?;
    let flags = word(&bytes, 4);
    if flags & WANTS_ANSWER != 0 {
        let header = [
            FrontendReq::SET_MEM_TABLE as u32,
            VERSION | IS_ANSWER,
            8,
            0,
            0,
        ];
        let answer = header.map(u32::to_le_bytes).concat();
        send(&socket, &answer, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    }
    Ok(())
}
