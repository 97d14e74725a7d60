//! The fixed structures of XFS: its log, and the headers of allocation groups.
//!
//! Files are not read: the inodes of a mounted XFS are mostly in its log, whose format is not read here. A mount of the
//! image lists them.
//!
//! Source: the kernel's `fs/xfs/libxfs/xfs_format.h` (Linux 6.12).

use crate::image::Fork;
use crate::places::Owner;

/// Number of sectors at the start of an allocation group that have its headers.
const HEADERS: u64 = 4;

/// Places of the fixed structures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Structures {
    /// Range of the log in bytes.
    log: (u64, u64),
    group: u64,
    sector: u64,
    bytes: u64,
}

fn be(bytes: &[u8; 512], at: usize, count: usize) -> u64 {
    bytes[at..at + count]
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

impl Structures {
    /// Reads the superblock of an image; `None` if it has no XFS.
    pub fn read(image: &Fork) -> Option<Structures> {
        let mut sb = [0; 512];
        image.read(0, &mut sb);
        let (block, group_blocks) = (be(&sb, 4, 4), be(&sb, 84, 4));
        let blocks = be(&sb, 8, 8);
        let is_valid = sb.starts_with(b"XFSB")
            && (512..=65536).contains(&block)
            && group_blocks > 0
            && blocks < 1 << 40;
        if !is_valid {
            return None;
        }
        // A block's number has the group in its upper bits.
        let (number, shift) = (be(&sb, 48, 8), be(&sb, 124, 1).min(32));
        let (group, within) = (number >> shift, number & ((1 << shift) - 1));
        let first = group.checked_mul(group_blocks)?.checked_add(within)?;
        let log = first.checked_mul(block)?;
        Some(Structures {
            log: (log, log.checked_add(be(&sb, 96, 4) * block)?),
            group: group_blocks * block,
            sector: be(&sb, 102, 2),
            bytes: blocks * block,
        })
    }

    /// Returns the owner of a byte, if a fixed structure has it.
    pub fn owner(&self, at: u64) -> Option<Owner> {
        if (self.log.0..self.log.1).contains(&at) {
            return Some(Owner::Structure("log of XFS"));
        }
        let is_header = at < self.bytes && at % self.group < HEADERS * self.sector;
        is_header.then_some(Owner::Structure("headers of an allocation group"))
    }
}
