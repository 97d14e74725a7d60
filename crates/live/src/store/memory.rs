//! Data in anonymous memory: one mapping as large as the namespace, of which the kernel provides only what is touched.
//!
//! In small pages: the first touch of a huge one clears 2 MiB, for milliseconds in which nobody is served, and a random
//! 4 KiB write into a sparse namespace would take 2 MiB of memory.

use std::io;

use memmap2::{Advice, MmapMut, MmapOptions};

/// Granularity in which it is known what has been written.
const CHUNK: u64 = 64 << 10;

/// Data in memory.
#[derive(Debug)]
pub struct MemoryStore {
    bytes: MmapMut,
    /// A bit for each chunk that may hold something else than zeroes.
    touched: Vec<u64>,
}

impl MemoryStore {
    /// `bytes` of zeroes.
    ///
    /// # Errors
    /// When the address space does not suffice.
    pub fn new(bytes: u64) -> io::Result<MemoryStore> {
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        let map = MmapOptions::new()
            .len(length)
            .no_reserve_swap()
            .map_anon()?;
        // A kernel without huge pages refuses the advice, and does not need it.
        let _ = map.advise(Advice::NoHugePage);
        let chunks = bytes.div_ceil(CHUNK);
        Ok(MemoryStore {
            bytes: map,
            touched: vec![0; chunks.div_ceil(64) as usize],
        })
    }

    #[inline]
    pub(super) fn read(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        let start = offset as usize;
        data.copy_from_slice(&self.bytes[start..start + data.len()]);
        Ok(())
    }

    #[inline]
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let start = offset as usize;
        self.bytes[start..start + data.len()].copy_from_slice(data);
        if !data.is_empty() {
            for chunk in offset / CHUNK..=(offset + data.len() as u64 - 1) / CHUNK {
                self.touched[(chunk / 64) as usize] |= 1 << (chunk % 64);
            }
        }
        Ok(())
    }

    /// A new mapping is quicker than zeroes over all that was written.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        *self = MemoryStore::new(self.bytes.len() as u64)?;
        Ok(())
    }

    #[inline]
    fn is_touched(&self, chunk: u64) -> bool {
        self.touched[(chunk / 64) as usize] >> (chunk % 64) & 1 == 1
    }

    #[inline]
    pub(super) fn is_hole(&self, offset: u64, bytes: u64) -> bool {
        let last = (offset + bytes).div_ceil(CHUNK);
        (offset / CHUNK..last).all(|chunk| !self.is_touched(chunk))
    }

    pub(super) fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        let end = offset + bytes;
        let mut at = offset;
        while at < end {
            let chunk = at / CHUNK;
            let stop = end.min((chunk + 1) * CHUNK);
            if self.is_touched(chunk) {
                self.bytes[at as usize..stop as usize].fill(0);
                if stop - at == CHUNK {
                    self.touched[(chunk / 64) as usize] &= !(1 << (chunk % 64));
                }
            }
            at = stop;
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn extent(&self, offset: u64, limit: u64) -> (u64, bool) {
        let data = self.is_touched(offset / CHUNK);
        let mut end = (offset / CHUNK + 1) * CHUNK;
        while end < limit && self.is_touched(end / CHUNK) == data {
            end += CHUNK;
        }
        (end.min(limit), data)
    }
}
