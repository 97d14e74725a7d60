//! Data that a drive without power-loss protection has acknowledged but not yet written to its medium: a power cut
//! loses it.
//!
//! The cache consists of pages of 4 KiB with a bit for each 512 B that is newer than the store. The drive's model
//! reports which pages are still in the drive's buffer: all others are moved to the store, and at a power cut the
//! pages in the buffer are lost. A flush moves to the store all data that was acknowledged before it. If a page is
//! written again while an earlier version is on its way to the medium, only the newer version is kept; a flush then
//! makes the newer version durable.

use std::collections::BTreeMap;
use std::io;

use model::Range;

use super::{PAGE, Store, pages};

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// Ranges of a drive that can be tested for an overlap with a page.
#[derive(Clone, Debug, Default)]
pub struct Ranges(Vec<Range>);

impl Ranges {
    /// Returns these ranges.
    pub fn new(mut ranges: Vec<Range>) -> Ranges {
        ranges.sort_unstable_by_key(|it| it.offset);
        Ranges(ranges)
    }

    /// Checks whether one of them overlaps these bytes. None of them is longer than a page, or overlaps another.
    fn meet(&self, offset: u64, bytes: u64) -> bool {
        let before = self.0.partition_point(|it| it.offset < offset + bytes);
        let last = before.checked_sub(1).map(|index| self.0[index]);
        last.is_some_and(|it| it.offset + it.bytes > offset)
    }
}

/// Writes that are not yet in the store.
#[derive(Debug, Default)]
pub struct WriteCache {
    pages: BTreeMap<u64, CachedPage>,
    /// Number of writes so far.
    writes: u64,
}

/// A position in the order of writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Mark(u64);

#[derive(Debug)]
struct CachedPage {
    /// One bit for each sector that is newer than the store.
    newer: u8,
    /// The first write since the whole page was in the store.
    since: Mark,
    data: Box<[u8; PAGE as usize]>,
}

/// Returns the bits of the sectors in a part of a page.
fn bits(start: u64, bytes: u64) -> u8 {
    let (first, count) = (start / SECTOR, bytes.div_ceil(SECTOR));
    (((1u32 << count) - 1) << first) as u8
}

impl WriteCache {
    /// Checks whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Returns the cached bytes, in whole pages.
    pub fn bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// Returns a mark of the writes so far, for [`WriteCache::flush`], when a flush begins.
    pub fn mark(&self) -> Mark {
        Mark(self.writes)
    }

    /// Stores a write.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        self.writes += 1;
        let since = Mark(self.writes);
        for (page, start, bytes, at) in pages(offset, data.len() as u64) {
            let page = self.pages.entry(page).or_insert_with(|| CachedPage {
                newer: 0,
                since,
                data: Box::new([0; PAGE as usize]),
            });
            page.newer |= bits(start, bytes);
            page.data[start as usize..(start + bytes) as usize]
                .copy_from_slice(&data[at..at + bytes as usize]);
        }
    }

    /// Copies newer data over data that was read from the store.
    pub fn overlay(&self, offset: u64, data: &mut [u8]) {
        if self.pages.is_empty() {
            return;
        }
        for (page, start, bytes, at) in pages(offset, data.len() as u64) {
            let Some(page) = self.pages.get(&page) else {
                continue;
            };
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

    /// Discards newer data in a range that is written directly to the store (FUA, trim, zeroes).
    pub fn forget(&mut self, offset: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let end = offset + bytes;
        for (&page, held) in self.pages.range_mut(offset / PAGE..end.div_ceil(PAGE)) {
            let start = (page * PAGE).max(offset);
            let stop = ((page + 1) * PAGE).min(end);
            held.newer &= !bits(start % PAGE, stop - start);
        }
    }

    /// Returns the start of the first page at or after this byte, if there is one.
    pub fn next(&self, offset: u64) -> Option<u64> {
        let mut from = self.pages.range(offset / PAGE..);
        from.next().map(|(page, _)| page * PAGE)
    }

    /// Moves to the store all data written before this mark.
    ///
    /// # Errors
    /// Errors of the store; data that it did not accept remains here.
    pub fn flush(&mut self, store: &mut Store, before: Mark) -> io::Result<()> {
        self.bring(store, |_, page| page.since <= before)
    }

    /// Moves to the store all data that the drive no longer has in its buffer.
    ///
    /// # Errors
    /// Errors of the store; data that it did not accept remains here.
    pub fn settle(&mut self, store: &mut Store, buffered: &Ranges) -> io::Result<()> {
        self.bring(store, |number, _| !buffered.meet(number * PAGE, PAGE))
    }

    fn bring(
        &mut self,
        store: &mut Store,
        which: impl Fn(u64, &CachedPage) -> bool,
    ) -> io::Result<()> {
        let mut result = Ok(());
        self.pages.retain(|&number, page| {
            if result.is_err() || !which(number, page) {
                return true;
            }
            result = write_back(page, number * PAGE, store);
            result.is_err()
        });
        result
    }

    /// Drops all data after a power failure. Returns the bytes of the lost pages.
    pub fn lose(&mut self) -> u64 {
        let lost = self.bytes();
        self.pages.clear();
        lost
    }
}

/// Writes each run of newer sectors.
fn write_back(page: &CachedPage, at: u64, store: &mut Store) -> io::Result<()> {
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
        Settle(u64),
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
            1 => (0..16u64).prop_map(Step::Settle),
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
            let mut cache = WriteCache::default();
            let mut now = vec![0u8; SECTORS as usize];
            let mut possible: Vec<Vec<u8>> = vec![vec![0]; SECTORS as usize];
            for step in steps {
                match step {
                    Step::Write(at, count, fill) => {
                        let data = vec![fill; (count * SECTOR) as usize];
                        cache.write(at * SECTOR, &data);
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
                    Step::Settle(held) => {
                        // The drive has one page in its buffer; all others are on the medium.
                        let held = Range { offset: held * PAGE, bytes: PAGE };
                        let buffered = Ranges::new(vec![held]);
                        cache.settle(&mut store, &buffered).expect("settle");
                        for sector in 0..SECTORS {
                            if sector * SECTOR / PAGE != held.offset / PAGE {
                                possible[sector as usize] = vec![now[sector as usize]];
                            }
                        }
                        prop_assert!(cache.bytes() <= PAGE);
                    }
                    Step::Flush => {
                        let mark = cache.mark();
                        cache.flush(&mut store, mark).expect("flush");
                        for sector in 0..SECTORS as usize {
                            possible[sector] = vec![now[sector]];
                        }
                    }
                }
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

    #[test]
    fn a_flush_brings_what_was_written_before_it() {
        let mut store = store();
        let mut cache = WriteCache::default();
        cache.write(0, &[1; 4096]);
        cache.write(8192, &[1; 512]);
        let mark = cache.mark();
        cache.write(4096, &[2; 512]);
        cache.flush(&mut store, mark).expect("memory");
        let seen = whole(&store);
        assert_eq!((seen[0], seen[4096], seen[8192]), (1, 0, 1));
        assert_eq!((cache.lose(), cache.next(0)), (4096, None));
    }
}
