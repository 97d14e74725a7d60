//! A descriptor chain as lists of segments of guest memory (virtio 1.2, 2.7).
//!
//! The walk is implemented here for two reasons. After a reconnect, a chain is entered by its head alone, which
//! virtio-queue does not offer; and a truncated chain must be an error instead of a shorter chain.

use std::fmt;

use virtio_queue::desc::split::Descriptor;
use vm_memory::{Address, Bytes, GuestAddress, GuestMemoryMmap};

/// Bytes of a descriptor.
const DESCRIPTOR: u64 = 16;

/// A violation of the ring's rules by the guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RingViolation(pub(super) &'static str);

impl fmt::Display for RingViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Consecutive segments.
#[derive(Debug, Default)]
pub(super) struct Segments {
    list: Vec<(GuestAddress, u32)>,
    bytes: u64,
}

impl Segments {
    fn clear(&mut self) {
        self.list.clear();
        self.bytes = 0;
    }

    fn push(&mut self, at: GuestAddress, bytes: u32) {
        self.list.push((at, bytes));
        self.bytes += u64::from(bytes);
    }

    /// Returns the total number of bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads all of `data` starting at offset `skip`.
    pub(super) fn read(
        &self,
        memory: &GuestMemoryMmap,
        skip: u64,
        data: &mut [u8],
    ) -> Result<(), RingViolation> {
        let mut done = 0;
        self.each(skip, data.len(), |at, bytes| {
            let part = &mut data[done..done + bytes];
            done += bytes;
            memory.read_slice(part, at).is_ok()
        })
    }

    /// Writes all of `data` starting at offset `skip`.
    pub(super) fn write(
        &self,
        memory: &GuestMemoryMmap,
        skip: u64,
        data: &[u8],
    ) -> Result<(), RingViolation> {
        let mut done = 0;
        self.each(skip, data.len(), |at, bytes| {
            let part = &data[done..done + bytes];
            done += bytes;
            memory.write_slice(part, at).is_ok()
        })
    }

    fn each(
        &self,
        mut skip: u64,
        mut left: usize,
        mut does: impl FnMut(GuestAddress, usize) -> bool,
    ) -> Result<(), RingViolation> {
        for &(at, bytes) in &self.list {
            if left == 0 {
                break;
            }
            let bytes = u64::from(bytes);
            if skip >= bytes {
                skip -= bytes;
                continue;
            }
            let part = left.min((bytes - skip) as usize);
            let at = at
                .checked_add(skip)
                .ok_or(RingViolation("an address overflows"))?;
            if !does(at, part) {
                return Err(RingViolation("a buffer is not in the shared memory"));
            }
            skip = 0;
            left -= part;
        }
        if left > 0 {
            return Err(RingViolation("a buffer is too short"));
        }
        Ok(())
    }
}

/// The segments of a request: those that the guest wrote, then those that it will read.
#[derive(Debug, Default)]
pub(super) struct Chain {
    pub(super) readable: Segments,
    pub(super) writable: Segments,
}

impl Chain {
    /// Follows the chain that begins at `head`.
    pub(super) fn walk(
        &mut self,
        memory: &GuestMemoryMmap,
        mut table: GuestAddress,
        mut size: u16,
        head: u16,
    ) -> Result<(), RingViolation> {
        self.readable.clear();
        self.writable.clear();
        let (mut next, mut is_indirect) = (head, false);
        let mut left = size;
        loop {
            if next >= size || left == 0 {
                return Err(RingViolation("a chain leaves its table or does not end"));
            }
            let descriptor: Descriptor = table
                .checked_add(u64::from(next) * DESCRIPTOR)
                .and_then(|at| memory.read_obj(at).ok())
                .ok_or(RingViolation("a descriptor is not in the shared memory"))?;
            if descriptor.refers_to_indirect_table() {
                let bytes = u64::from(descriptor.len());
                let entries = u16::try_from(bytes / DESCRIPTOR).unwrap_or(0);
                if is_indirect || descriptor.has_next() || bytes % DESCRIPTOR != 0 || entries == 0 {
                    return Err(RingViolation("an invalid indirect descriptor table"));
                }
                (table, size, left) = (descriptor.addr(), entries, entries);
                (next, is_indirect) = (0, true);
                continue;
            }
            if descriptor.is_write_only() {
                self.writable.push(descriptor.addr(), descriptor.len());
            } else if self.writable.bytes > 0 {
                return Err(RingViolation("a readable buffer after a writable one"));
            } else {
                self.readable.push(descriptor.addr(), descriptor.len());
            }
            if !descriptor.has_next() {
                return Ok(());
            }
            next = descriptor.next();
            left -= 1;
        }
    }
}
