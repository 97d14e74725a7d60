//! Data in memory: a page for each 4 KiB that is not all zeroes, if one check detects it.
//!
//! Zeroes that are written for the first time use no page. A record of 128 KiB with 4 KiB of content therefore uses
//! 4 KiB of memory. The empty tables of a new file system use only the memory of their content. Zeroing a range
//! releases its pages for other addresses.

use std::io;

use model::data::is_zero;

use super::pages::{PageNumber, PagePool};
use super::{PAGE, pages};

/// Pages of a leaf of the table.
const LEAF: usize = 1024;
const LEAF_BYTES: u64 = LEAF as u64 * PAGE;

/// Pages by address.
type Leaf = Box<[Option<PageNumber>; LEAF]>;

/// Data in memory.
#[derive(Debug)]
pub struct MemoryStore {
    /// For each [`LEAF_BYTES`], the number of the leaf with its pages, starting with 1; 0 before the first write. The
    /// table is allocated from the kernel as zeroes, so unused parts of it use no memory either.
    table: Vec<u32>,
    leaves: Vec<Leaf>,
    pages: PagePool,
}

impl MemoryStore {
    /// Returns a store of `bytes` zeroes.
    ///
    /// # Errors
    /// The table is larger than the address space.
    pub fn new(bytes: u64) -> io::Result<MemoryStore> {
        let leaves = usize::try_from(bytes.div_ceil(LEAF_BYTES)).map_err(io::Error::other)?;
        Ok(MemoryStore {
            table: vec![0; leaves],
            leaves: Vec::new(),
            pages: PagePool::default(),
        })
    }

    /// Returns the leaf of a page, and its entry there, if the leaf exists.
    #[inline]
    fn leaf(&self, page: u64) -> Option<(usize, usize)> {
        let leaf = self.table[(page / LEAF as u64) as usize].checked_sub(1)?;
        Some((leaf as usize, page as usize % LEAF))
    }

    /// Returns the memory of the page with this number, if it has any.
    #[inline]
    fn find(&self, page: u64) -> Option<PageNumber> {
        let (leaf, index) = self.leaf(page)?;
        self.leaves[leaf][index]
    }

    /// Sets the memory of the page with this number.
    fn put(&mut self, page: u64, place: PageNumber) {
        let (leaf, index) = self.leaf(page).unwrap_or_else(|| {
            self.leaves.push(Box::new([None; LEAF]));
            self.table[(page / LEAF as u64) as usize] = self.leaves.len() as u32;
            (self.leaves.len() - 1, page as usize % LEAF)
        });
        self.leaves[leaf][index] = Some(place);
    }

    #[inline]
    pub(super) fn read(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        for (page, start, bytes, at) in pages(offset, data.len() as u64) {
            let into = &mut data[at..at + bytes as usize];
            match self.find(page) {
                Some(page) => {
                    into.copy_from_slice(&self.pages.content(page)[start as usize..][..into.len()]);
                }
                None => into.fill(0),
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        for (page, start, bytes, at) in pages(offset, data.len() as u64) {
            let part = &data[at..at + bytes as usize];
            let place = match self.find(page) {
                Some(place) => place,
                None if is_zero(part) => continue,
                None => {
                    let place = match bytes {
                        PAGE => self.pages.take()?,
                        _ => self.pages.take_zeroed()?,
                    };
                    self.put(page, place);
                    place
                }
            };
            self.pages.of_mut(place)[start as usize..][..part.len()].copy_from_slice(part);
        }
        Ok(())
    }

    pub(super) fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        let end = offset + bytes;
        let mut from = offset;
        while from < end {
            let stop = end.min((from / LEAF_BYTES + 1) * LEAF_BYTES);
            // Most of a large trimmed range has no leaf.
            if self.leaf(from / PAGE).is_some() {
                for (page, start, bytes, _) in pages(from, stop - from) {
                    self.zero_in(page, start, bytes);
                }
            }
            from = stop;
        }
        Ok(())
    }

    /// Zeroes a range within one page.
    fn zero_in(&mut self, page: u64, start: u64, bytes: u64) {
        let Some((leaf, index)) = self.leaf(page) else {
            return;
        };
        let entry = &mut self.leaves[leaf][index];
        match *entry {
            Some(place) if bytes == PAGE => {
                self.pages.release(place);
                *entry = None;
            }
            Some(place) => self.pages.of_mut(place)[start as usize..][..bytes as usize].fill(0),
            None => {}
        }
    }

    /// Allocating new memory is faster than releasing pages one by one, and the kernel gets the old memory back.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.pages = PagePool::default();
        self.leaves.clear();
        self.table = vec![0; self.table.len()];
        Ok(())
    }

    #[inline]
    pub(super) fn is_hole(&self, offset: u64, bytes: u64) -> bool {
        let mut touched = pages(offset, bytes);
        touched.all(|(page, ..)| self.find(page).is_none())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn extent(&self, offset: u64, limit: u64) -> (u64, bool) {
        let first = offset / PAGE;
        let data = self.find(first).is_some();
        let mut page = first + 1;
        while page * PAGE < limit {
            if !data && self.leaf(page).is_none() {
                page = (page / LEAF as u64 + 1) * LEAF as u64;
            } else if self.find(page).is_some() == data {
                page += 1;
            } else {
                break;
            }
        }
        ((page * PAGE).min(limit), data)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two leaves, the second incomplete.
    const BYTES: usize = LEAF_BYTES as usize + 5 * PAGE as usize;

    #[derive(Clone, Debug)]
    enum Step {
        Write { at: usize, bytes: usize, with: u8 },
        Zero { at: usize, bytes: usize },
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        // Around the border of the leaves and at the start, in sectors.
        let near = prop_oneof![0..64_usize, (LEAF * 8 - 32)..(LEAF * 8 + 32)];
        (near, 1..40_usize, 0_u8..12).prop_map(|(sector, sectors, what)| {
            let at = sector * 512;
            let bytes = (sectors * 512).min(BYTES - at);
            match what {
                0 => Step::Clear,
                1..=3 => Step::Zero { at, bytes },
                // A quarter of the writes are zeroes.
                _ => Step::Write {
                    at,
                    bytes,
                    with: what / 6,
                },
            }
        })
    }

    proptest! {
        #[test]
        fn it_keeps_what_is_written(steps in prop::collection::vec(step(), 1..60)) {
            let mut store = MemoryStore::new(BYTES as u64).expect("memory");
            let mut right = vec![0_u8; BYTES];
            for step in steps {
                match step {
                    Step::Write { at, bytes, with } => {
                        let data: Vec<u8> = (0..bytes).map(|it| with * (1 + it as u8 % 5)).collect();
                        store.write(at as u64, &data).expect("memory");
                        right[at..at + bytes].copy_from_slice(&data);
                    }
                    Step::Zero { at, bytes } => {
                        store.zero(at as u64, bytes as u64).expect("memory");
                        right[at..at + bytes].fill(0);
                    }
                    Step::Clear => {
                        store.clear().expect("memory");
                        right.fill(0);
                    }
                }
            }
            let mut read = vec![1; BYTES];
            store.read(0, &mut read).expect("memory");
            prop_assert!(read == right);
            // Extents cover the whole store, and a hole has only zeroes.
            let (mut at, mut kind) = (0, None);
            while at < BYTES as u64 {
                let (end, data) = store.extent(at, BYTES as u64);
                prop_assert!(end > at && kind != Some(data));
                prop_assert_eq!(store.is_hole(at, end - at), !data);
                let zeroes = is_zero(&right[at as usize..end as usize]);
                prop_assert!(data || zeroes);
                (at, kind) = (end, Some(data));
            }
        }
    }

    #[test]
    fn pages_that_are_given_back_are_used_again_and_zeroes_take_none() {
        let mut store = MemoryStore::new(64 << 30).expect("memory");
        let used = |store: &MemoryStore| store.pages.used();
        store.write(40 << 30, &[0; 1 << 16]).expect("memory");
        assert_eq!(used(&store), 0);
        // More than the first block, so that the next blocks are provided in advance.
        for round in 0..40_u64 {
            let at = round << 30;
            store.write(at, &[7; 1 << 20]).expect("memory");
            store.write(at + 512, &[9; 512]).expect("memory");
            assert_eq!(used(&store), 256);
            store.zero(at, 1 << 20).expect("memory");
        }
        assert_eq!(used(&store), 0);
        for place in 0..4096 {
            store.write(place << 23, &[1; 512]).expect("memory");
        }
        let mut page = [3; 4096];
        for place in 0..4096 {
            store.read(place << 23, &mut page).expect("memory");
            assert!(page[..512] == [1; 512] && is_zero(&page[512..]));
        }
    }
}
