//! Requests in flight, recorded in memory that outlives the server: the frontend keeps it and passes it to the next
//! server.
//!
//! Layout and write order: vhost-user's "Inflight I/O tracking" for split rings.

use std::fs::File;
use std::io;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vm_memory::mmap::MmapRegion;
use vm_memory::{Bytes, FileOffset, VolatileMemory};

use super::guard::MappingGuard;

/// Bytes before the entries of a ring: features (8 bytes), version, number of entries, last head, used index (2 each).
const HEADER: usize = 16;
/// Bytes of an entry: in flight (1), padding (5), next (2), counter (8).
const ENTRY: usize = 16;
/// Alignment of each ring's part.
const ALIGNED: usize = 64;
const VERSION: u16 = 1;

const AT_VERSION: usize = 8;
const AT_ENTRIES: usize = 10;
const AT_LAST_HEAD: usize = 12;
const AT_USED: usize = 14;

/// The shared memory.
#[derive(Debug)]
pub(super) struct InFlightMemory {
    /// Dropped before the memory.
    guard: MappingGuard,
    memory: MmapRegion,
    file: File,
    offset: u64,
    rings: u16,
    size: u16,
    /// Number of requests taken so far, by ring: the order in which they are repeated.
    counters: Vec<u64>,
}

fn part(size: u16) -> usize {
    (HEADER + ENTRY * usize::from(size)).next_multiple_of(ALIGNED)
}

impl InFlightMemory {
    /// Returns new memory for this number of rings and entries, in which nothing is in flight.
    pub(super) fn new(rings: u16, size: u16) -> io::Result<InFlightMemory> {
        let file = File::from(memfd_create("drivelab-in-flight", MemfdFlags::CLOEXEC)?);
        ftruncate(&file, (part(size) * usize::from(rings)) as u64)?;
        InFlightMemory::open(file, 0, rings, size)
    }

    /// Opens the memory of an earlier server.
    pub(super) fn open(
        file: File,
        offset: u64,
        rings: u16,
        size: u16,
    ) -> io::Result<InFlightMemory> {
        let place = FileOffset::new(file.try_clone()?, offset);
        let memory = MmapRegion::from_file(place, part(size) * usize::from(rings));
        let memory: MmapRegion = memory.map_err(io::Error::other)?;
        Ok(InFlightMemory {
            guard: MappingGuard::new(memory.as_ptr(), memory.size())?,
            memory,
            file,
            offset,
            rings,
            size,
            counters: vec![0; usize::from(rings)],
        })
    }

    /// Checks whether the frontend has truncated it.
    pub(super) fn is_lost(&self) -> bool {
        self.guard.is_lost()
    }

    /// Returns its file, offset and length, for the frontend.
    pub(super) fn share(&self) -> io::Result<(File, u64, u64)> {
        let bytes = part(self.size) * usize::from(self.rings);
        Ok((self.file.try_clone()?, self.offset, bytes as u64))
    }

    fn get<T: vm_memory::ByteValued>(&self, ring: u16, at: usize) -> io::Result<T> {
        let at = part(self.size) * usize::from(ring) + at;
        let slice = self.memory.as_volatile_slice();
        slice.read_obj(at).map_err(io::Error::other)
    }

    fn put<T: vm_memory::ByteValued>(&self, ring: u16, at: usize, value: T) -> io::Result<()> {
        let at = part(self.size) * usize::from(ring) + at;
        let slice = self.memory.as_volatile_slice();
        slice.write_obj(value, at).map_err(io::Error::other)
    }

    fn entry(head: u16) -> usize {
        HEADER + ENTRY * usize::from(head)
    }

    /// Starts a ring with the used index `used`. Returns the requests that an earlier server took and did not
    /// complete, in the order in which they were taken.
    pub(super) fn recover(&mut self, ring: u16, used: u16) -> io::Result<Vec<u16>> {
        if ring >= self.rings {
            return Err(io::Error::other("the ring is not in the in-flight memory"));
        }
        let entries: u16 = self.get(ring, AT_ENTRIES)?;
        if self.get::<u16>(ring, AT_VERSION)? == 0 || entries == 0 {
            self.put(ring, AT_VERSION, VERSION)?;
            self.put(ring, AT_ENTRIES, self.size)?;
            self.put(ring, AT_USED, used)?;
            return Ok(Vec::new());
        }
        if self.get::<u16>(ring, AT_USED)? != used {
            // The earlier server ended between notifying the guest and recording that.
            let head: u16 = self.get(ring, AT_LAST_HEAD)?;
            self.put(ring, Self::entry(head.min(self.size - 1)), 0_u8)?;
            self.put(ring, AT_USED, used)?;
        }
        let mut left = Vec::new();
        for head in 0..self.size.min(entries) {
            let at = Self::entry(head);
            if self.get::<u8>(ring, at)? == 1 {
                left.push((self.get::<u64>(ring, at + 8)?, head));
            }
        }
        left.sort_unstable();
        if let Some(&(counter, _)) = left.last() {
            self.counters[usize::from(ring)] = counter.wrapping_add(1);
        }
        Ok(left.into_iter().map(|(_, head)| head).collect())
    }

    /// Records that a request has been taken.
    pub(super) fn mark_in_flight(&mut self, ring: u16, head: u16) -> io::Result<()> {
        let counter = &mut self.counters[usize::from(ring)];
        let value = *counter;
        *counter = counter.wrapping_add(1);
        self.put(ring, Self::entry(head) + 8, value)?;
        self.put(ring, Self::entry(head), 1_u8)
    }

    /// Records that the guest is about to be notified of a request's completion.
    pub(super) fn ending(&self, ring: u16, head: u16) -> io::Result<()> {
        let last: u16 = self.get(ring, AT_LAST_HEAD)?;
        self.put(ring, Self::entry(head) + 6, last)?;
        self.put(ring, AT_LAST_HEAD, head)
    }

    /// Records that the guest has been notified; the used index is now `used`.
    pub(super) fn ended(&self, ring: u16, head: u16, used: u16) -> io::Result<()> {
        self.put(ring, Self::entry(head), 0_u8)?;
        self.put(ring, AT_USED, used)
    }

    /// Checks whether it can record a request with this head.
    pub(super) fn covers(&self, ring: u16, size: u16) -> bool {
        ring < self.rings && size <= self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_server_finds_what_was_in_flight_in_order() {
        let mut first = InFlightMemory::new(2, 8).expect("memory");
        assert_eq!(first.recover(1, 40).expect("in range"), [0; 0]);
        for head in [3, 0, 7] {
            first.mark_in_flight(1, head).expect("in range");
        }
        first.ending(1, 0).expect("in range");
        first.ended(1, 0, 41).expect("in range");
        let (file, offset, bytes) = first.share().expect("a descriptor");
        assert_eq!((offset, bytes), (0, 2 * 192));
        let mut second = InFlightMemory::open(file, 0, 2, 8).expect("the same memory");
        assert_eq!(second.recover(1, 41).expect("in range"), [3, 7]);
    }

    #[test]
    fn one_that_was_told_but_not_noted_is_not_done_again() {
        let mut first = InFlightMemory::new(1, 4).expect("memory");
        first.recover(0, 0).expect("in range");
        first.mark_in_flight(0, 2).expect("in range");
        first.mark_in_flight(0, 1).expect("in range");
        first.ending(0, 2).expect("in range");
        // Killed here, after the used index had become 1.
        let (file, ..) = first.share().expect("a descriptor");
        let mut second = InFlightMemory::open(file, 0, 1, 4).expect("the same memory");
        assert_eq!(second.recover(0, 1).expect("in range"), [1]);
        // If it was killed before that, both are.
        first.mark_in_flight(0, 2).expect("in range");
        first.ending(0, 2).expect("in range");
        let (file, ..) = first.share().expect("a descriptor");
        let mut third = InFlightMemory::open(file, 0, 1, 4).expect("the same memory");
        assert_eq!(third.recover(0, 1).expect("in range"), [1, 2]);
    }
}
