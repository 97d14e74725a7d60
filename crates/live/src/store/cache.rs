//! The volatile write cache of a drive without power-loss protection: acknowledged writes that a power cut loses.
//!
//! Pages of 4 KiB with a bit for each 512 B that is newer than the store. They go to the store oldest first, when the
//! cache is full, when the drive's model says that it holds less, on a flush, and around FUA writes. Only one power cut
//! can lose what is here: that of the modelled drive, or the death of the server, which is the same thing.

use std::collections::{HashMap, VecDeque};
use std::io;

use super::Store;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Bytes of a sector.
const SECTOR: u64 = 512;

/// Writes that the store does not have yet.
#[derive(Debug)]
pub struct WriteCache {
    /// Pages it may hold.
    capacity: usize,
    slots: Vec<Page>,
    free: Vec<u32>,
    /// Where a page is.
    places: HashMap<u64, u32>,
    /// Pages in the order in which they came in.
    order: VecDeque<u64>,
}

#[derive(Debug)]
struct Page {
    /// A bit for each sector that is newer than the store.
    newer: u8,
    data: Box<[u8; PAGE as usize]>,
}

/// A page that a range touches: its number, the range within it, and where that is in the range.
fn pages(offset: u64, bytes: u64) -> impl Iterator<Item = (u64, u64, u64, usize)> {
    let end = offset + bytes;
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let page = at / PAGE;
        let stop = end.min((page + 1) * PAGE);
        let item = (page, at % PAGE, stop - at, (at - offset) as usize);
        at = stop;
        Some(item)
    })
}

/// The bits of the sectors in a part of a page.
fn bits(start: u64, bytes: u64) -> u8 {
    let (first, count) = (start / SECTOR, bytes.div_ceil(SECTOR));
    (((1u32 << count) - 1) << first) as u8
}

impl WriteCache {
    /// An empty cache of this many bytes.
    pub fn new(bytes: u64) -> WriteCache {
        WriteCache {
            capacity: (bytes / PAGE).max(1) as usize,
            slots: Vec::new(),
            free: Vec::new(),
            places: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Bytes in it, in whole pages.
    pub fn bytes(&self) -> u64 {
        self.order.len() as u64 * PAGE
    }

    /// Takes a write.
    ///
    /// # Errors
    /// Those of the store, to which older pages may have to go.
    pub fn write(&mut self, store: &mut Store, offset: u64, data: &[u8]) -> io::Result<()> {
        for (page, start, bytes, at) in pages(offset, data.len() as u64) {
            let slot = match self.places.get(&page) {
                Some(&slot) => slot,
                None => {
                    self.drain(store, (self.capacity as u64 - 1) * PAGE)?;
                    self.insert(page)
                }
            };
            let page = &mut self.slots[slot as usize];
            page.newer |= bits(start, bytes);
            page.data[start as usize..(start + bytes) as usize]
                .copy_from_slice(&data[at..at + bytes as usize]);
        }
        Ok(())
    }

    fn insert(&mut self, page: u64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Page {
                newer: 0,
                data: Box::new([0; PAGE as usize]),
            });
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize].newer = 0;
        self.places.insert(page, slot);
        self.order.push_back(page);
        slot
    }

    /// Lays what is newer over data that was read from the store.
    pub fn overlay(&self, offset: u64, data: &mut [u8]) {
        if self.order.is_empty() {
            return;
        }
        for (page, start, bytes, at) in pages(offset, data.len() as u64) {
            let Some(&slot) = self.places.get(&page) else {
                continue;
            };
            let page = &self.slots[slot as usize];
            for sector in start / SECTOR..(start + bytes).div_ceil(SECTOR) {
                if page.newer >> sector & 1 == 1 {
                    let from = (sector * SECTOR).max(start);
                    let to = ((sector + 1) * SECTOR).min(start + bytes);
                    let out = at + (from - start) as usize;
                    data[out..out + (to - from) as usize]
                        .copy_from_slice(&page.data[from as usize..to as usize]);
                }
            }
        }
    }

    /// Forgets what is newer in a range that the store itself is given (FUA, trim, zeroes).
    pub fn forget(&mut self, offset: u64, bytes: u64) {
        if self.order.is_empty() {
            return;
        }
        // Over a long range it is quicker to look at what is cached than at what might be.
        if bytes / PAGE > self.order.len() as u64 {
            for index in 0..self.order.len() {
                let page = self.order[index];
                let start = (page * PAGE).max(offset);
                let end = ((page + 1) * PAGE).min(offset + bytes);
                if start < end {
                    self.clear(page, start % PAGE, end - start);
                }
            }
        } else {
            for (page, start, bytes, _) in pages(offset, bytes) {
                self.clear(page, start, bytes);
            }
        }
    }

    fn clear(&mut self, page: u64, start: u64, bytes: u64) {
        if let Some(&slot) = self.places.get(&page) {
            self.slots[slot as usize].newer &= !bits(start, bytes);
        }
    }

    /// Brings the oldest pages to the store until at most `bytes` are left; 0 is a flush.
    ///
    /// # Errors
    /// Those of the store; what it did not take is still here.
    pub fn drain(&mut self, store: &mut Store, bytes: u64) -> io::Result<()> {
        while self.bytes() > bytes {
            let Some(&page) = self.order.front() else {
                break;
            };
            let slot = self.places[&page];
            write_back(&self.slots[slot as usize], page * PAGE, store)?;
            self.order.pop_front();
            self.places.remove(&page);
            self.free.push(slot);
        }
        Ok(())
    }

    /// Power has gone: what is here is lost. Returns the bytes of the pages that were.
    pub fn lose(&mut self) -> u64 {
        let lost = self.bytes();
        self.order.clear();
        self.places.clear();
        self.slots.clear();
        self.free.clear();
        lost
    }
}

/// Writes each run of newer sectors.
fn write_back(page: &Page, at: u64, store: &mut Store) -> io::Result<()> {
    let sectors = PAGE / SECTOR;
    let mut sector = 0;
    while sector < sectors {
        let start = sector;
        while sector < sectors && page.newer >> sector & 1 == 1 {
            sector += 1;
        }
        if sector > start {
            let range = (start * SECTOR) as usize..(sector * SECTOR) as usize;
            store.write(at + start * SECTOR, &page.data[range])?;
        } else {
            sector += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::MemoryStore;

    const SECTORS: u64 = 128;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, u64, u8),
        Through(u64, u64, u8),
        Zero(u64, u64),
        Drain(u64),
        Flush,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let range = || {
            (0..SECTORS, 1..=24u64).prop_map(|(start, count)| (start, count.min(SECTORS - start)))
        };
        let step = prop_oneof![
            4 => (range(), 1..=255u8).prop_map(|((at, count), fill)| Step::Write(at, count, fill)),
            1 => (range(), 1..=255u8).prop_map(|((at, count), fill)| Step::Through(at, count, fill)),
            1 => range().prop_map(|(at, count)| Step::Zero(at, count)),
            1 => (0..10u64).prop_map(Step::Drain),
            1 => Just(Step::Flush),
        ];
        prop::collection::vec(step, 1..40)
    }

    fn store() -> Store {
        Store::Memory(MemoryStore::new(SECTORS * SECTOR).expect("memory"))
    }

    fn whole(store: &Store) -> Vec<u8> {
        let mut data = vec![0; (SECTORS * SECTOR) as usize];
        store.read(0, &mut data).expect("read");
        data
    }

    proptest! {
        /// Reads see every write; a power cut leaves each sector as it was flushed or as it was written since.
        #[test]
        fn reads_see_all_and_a_power_cut_leaves_old_or_new(steps in steps()) {
            let mut store = store();
            let mut cache = WriteCache::new(5 * PAGE);
            let mut now = vec![0u8; SECTORS as usize];
            let mut possible: Vec<Vec<u8>> = vec![vec![0]; SECTORS as usize];
            for step in steps {
                match step {
                    Step::Write(at, count, fill) => {
                        let data = vec![fill; (count * SECTOR) as usize];
                        cache.write(&mut store, at * SECTOR, &data).expect("write");
                        for sector in at..at + count {
                            now[sector as usize] = fill;
                            possible[sector as usize].push(fill);
                        }
                    }
                    Step::Through(at, count, fill) => {
                        let data = vec![fill; (count * SECTOR) as usize];
                        store.write(at * SECTOR, &data).expect("write");
                        cache.forget(at * SECTOR, count * SECTOR);
                        for sector in at..at + count {
                            now[sector as usize] = fill;
                            possible[sector as usize] = vec![fill];
                        }
                    }
                    Step::Zero(at, count) => {
                        store.zero(at * SECTOR, count * SECTOR).expect("zero");
                        cache.forget(at * SECTOR, count * SECTOR);
                        for sector in at..at + count {
                            now[sector as usize] = 0;
                            possible[sector as usize] = vec![0];
                        }
                    }
                    Step::Drain(left) => cache.drain(&mut store, left * PAGE).expect("drain"),
                    Step::Flush => {
                        cache.drain(&mut store, 0).expect("flush");
                        for sector in 0..SECTORS as usize {
                            possible[sector] = vec![now[sector]];
                        }
                    }
                }
                prop_assert!(cache.bytes() <= 5 * PAGE);
            }
            let mut seen = whole(&store);
            cache.overlay(0, &mut seen);
            for (sector, data) in seen.chunks(SECTOR as usize).enumerate() {
                prop_assert!(data.iter().all(|&byte| byte == now[sector]));
            }
            cache.lose();
            for (sector, data) in whole(&store).chunks(SECTOR as usize).enumerate() {
                prop_assert!(data.iter().all(|byte| byte == &data[0]), "a torn sector");
                prop_assert!(possible[sector].contains(&data[0]));
            }
        }
    }
}
