//! The page map: 4 bytes an entry, logical to physical, in lines that exist only once one of their pages has moved.
//!
//! An entry of zero means "where the initial layout put it", so a preconditioned drive of any size costs nothing until
//! it is written: 0.25 bytes a logical page for the index of lines (and the operating system hands that out only when
//! touched), then 4 bytes a page for each line of 16 pages that has been written. Reads of pages that never moved touch
//! no table but the index.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::changed::Changed;
use super::numbers::{Page, Slot};

/// Pages of one line: 64 bytes, a cache line.
const LINE: u32 = 16;

/// The value of an entry that nobody has set.
pub(super) const INITIAL: u32 = 0;

/// The memory that a vector has, used or not.
fn bytes_of<T>(vec: &Vec<T>) -> Range<*const u8> {
    let start = vec.as_ptr().cast::<u8>();
    start..start.wrapping_add(vec.capacity() * size_of::<T>())
}

/// The forward map.
#[derive(Clone, Debug)]
pub(super) struct Map {
    /// By line: zero, or one more than its place in `lines`.
    index: Vec<u32>,
    lines: Vec<[u32; LINE as usize]>,
    /// Since the entries were those of a saved state: pieces of its lines that may have changed, and to what place of the
    /// index each further line belongs. Nothing while there is no such state.
    changed: Changed,
    further: Option<Vec<u32>>,
}

/// Lines to a piece of [`Map::changed`].
const LINES: usize = 16;

impl Map {
    pub(super) fn new(pages: u32) -> Map {
        Map {
            index: vec![0; pages.div_ceil(LINE) as usize],
            lines: Vec::new(),
            changed: Changed::default(),
            further: None,
        }
    }

    #[inline]
    pub(super) fn get(&self, page: Page) -> u32 {
        // Most drives that are only read: the index is not looked at.
        if self.lines.is_empty() {
            return INITIAL;
        }
        match self.index[(page.0 / LINE) as usize] {
            0 => INITIAL,
            line => self.lines[line as usize - 1][(page.0 % LINE) as usize],
        }
    }

    /// The entry, to be read and changed. Memory grows when a line is written for the first time.
    #[inline]
    pub(super) fn entry(&mut self, page: Page) -> &mut u32 {
        let line = &mut self.index[(page.0 / LINE) as usize];
        if *line == 0 {
            self.lines.push([INITIAL; LINE as usize]);
            *line = self.lines.len() as u32;
            if let Some(further) = &mut self.further {
                further.push(page.0 / LINE);
            }
        }
        let line = *line as usize - 1;
        self.changed.mark(line / LINES);
        &mut self.lines[line][(page.0 % LINE) as usize]
    }

    /// Brings the entries of these pages into the cache, beside each other.
    #[inline]
    pub(super) fn touch(&self, pages: impl Iterator<Item = Page> + Clone) {
        let line = |page: Page| self.index[(page.0 / LINE) as usize];
        let sum = pages
            .clone()
            .fold(0, |sum: u32, page| sum.wrapping_add(line(page)));
        core::hint::black_box(sum);
        let sum = pages.fold(0, |sum: u32, page| sum.wrapping_add(self.get(page)));
        core::hint::black_box(sum);
    }

    /// Where the index and the lines are in memory. They stay there, if there is address space for all lines.
    pub(super) fn tables(&mut self) -> [Range<*const u8>; 2] {
        let rest = self.index.len() - self.lines.len();
        // Without it lines move as they grow, as they do in any vector.
        let _ = self.lines.try_reserve_exact(rest);
        [bytes_of(&self.index), bytes_of(&self.lines)]
    }

    /// Sets all entries back, and keeps the memory. False if none had been set.
    pub(super) fn clear(&mut self) -> bool {
        let touched = !self.lines.is_empty();
        if touched {
            self.index.fill(0);
            self.lines.clear();
        }
        self.changed = Changed::default();
        self.further = None;
        touched
    }

    /// Whether it is as large as that of so many pages.
    pub(super) fn is_of(&self, pages: u32) -> bool {
        self.index.len() == pages.div_ceil(LINE) as usize
    }

    /// What [`Map::restore`] needs to make these entries again.
    pub(super) fn save(&self) -> SavedMap {
        let mut owners = vec![0; self.lines.len()];
        for (owner, &line) in self.index.iter().enumerate() {
            if line != 0 {
                owners[line as usize - 1] = owner as u32;
            }
        }
        SavedMap {
            owners,
            lines: self.lines.clone(),
        }
    }

    /// Makes the entries that were saved; none may have been set yet.
    pub(super) fn restore(&mut self, saved: &SavedMap) {
        debug_assert!(self.lines.is_empty());
        self.lines.extend_from_slice(&saved.lines);
        for (line, &owner) in saved.owners.iter().enumerate() {
            self.index[owner as usize] = line as u32 + 1;
        }
    }

    /// From now on takes note of what changes, for [`Map::put_back`]: the entries are those of a saved state.
    pub(super) fn watch(&mut self) {
        self.changed = Changed::none_of(self.lines.len().div_ceil(LINES));
        self.further = Some(Vec::new());
    }

    /// Makes the entries those that were saved again; they have been since [`Map::watch`] or were once.
    pub(super) fn put_back(&mut self, saved: &SavedMap) {
        let all = saved.lines.len();
        let lines = &mut self.lines;
        self.changed.drain(|piece| {
            let piece = piece * LINES..((piece + 1) * LINES).min(all);
            // The last bits stand for lines that came later.
            if !piece.is_empty() {
                lines[piece.clone()].copy_from_slice(&saved.lines[piece]);
            }
        });
        self.lines.truncate(all);
        for at in self
            .further
            .iter_mut()
            .flat_map(|further| further.drain(..))
        {
            self.index[at as usize] = 0;
        }
    }
}

/// The lines of a map, and where in its index each belongs.
#[derive(Clone, Debug)]
pub(super) struct SavedMap {
    owners: Vec<u32>,
    lines: Vec<[u32; LINE as usize]>,
}

/// Slots that fell stale and whose bits are not set yet.
const LATER: usize = 32;

/// One bit for each slot: its data have been overwritten, moved or forgotten since it was programmed. So collection
/// reads a victim's bits in order instead of looking each of its pages up in the map.
///
/// The slots that host writes make stale are anywhere, and each bit costs a miss of the caches. They are set some at a
/// time, so that the misses run beside each other.
#[derive(Clone, Debug)]
pub(super) struct Stale {
    words: Vec<u64>,
    later: [Slot; LATER],
    count: usize,
    /// Pieces that may have changed since a state was saved.
    changed: Changed,
}

/// Words to a piece of [`Stale::changed`].
const WORDS: usize = 64;

impl Stale {
    pub(super) fn none(slots: u32) -> Stale {
        Stale {
            words: vec![0; slots.div_ceil(64) as usize],
            later: [Slot(0); LATER],
            count: 0,
            changed: Changed::default(),
        }
    }

    #[inline]
    pub(super) fn is(&self, slot: Slot) -> bool {
        self.words[(slot.0 / 64) as usize] >> (slot.0 % 64) & 1 != 0
            || self.later[..self.count].contains(&slot)
    }

    #[inline]
    pub(super) fn insert(&mut self, slot: Slot) {
        let word = (slot.0 / 64) as usize;
        self.words[word] |= 1 << (slot.0 % 64);
        self.changed.mark(word / WORDS);
    }

    /// As [`Stale::insert`], when there are more.
    #[inline]
    pub(super) fn insert_later(&mut self, slot: Slot) {
        if self.count == LATER {
            self.catch_up();
        }
        self.later[self.count] = slot;
        self.count += 1;
    }

    #[inline]
    pub(super) fn catch_up(&mut self) {
        for slot in &self.later[..self.count] {
            let word = (slot.0 / 64) as usize;
            self.words[word] |= 1 << (slot.0 % 64);
            self.changed.mark(word / WORDS);
        }
        self.count = 0;
    }

    /// The slot, whose block was erased, is being programmed again.
    #[inline]
    pub(super) fn remove(&mut self, slot: Slot) {
        let word = (slot.0 / 64) as usize;
        self.words[word] &= !(1 << (slot.0 % 64));
        self.changed.mark(word / WORDS);
    }

    /// Forgets all of them, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.count = 0;
        self.changed = Changed::default();
    }

    /// Where the bits are in memory.
    pub(super) fn table(&self) -> Range<*const u8> {
        bytes_of(&self.words)
    }

    /// The words that are not zero, and their places.
    pub(super) fn save(&self) -> Vec<(u32, u64)> {
        debug_assert_eq!(self.count, 0, "something was put off");
        let words = self.words.iter().enumerate();
        let set = words.filter(|&(_, &word)| word != 0);
        set.map(|(at, &word)| (at as u32, word)).collect()
    }

    /// Sets what was saved; nothing may be set yet.
    pub(super) fn restore(&mut self, saved: &[(u32, u64)]) {
        for &(at, word) in saved {
            self.words[at as usize] = word;
        }
    }

    /// From now on takes note of what changes, for [`Stale::put_back`]: the bits are those of a saved state.
    pub(super) fn watch(&mut self) {
        self.changed = Changed::none_of(self.words.len().div_ceil(WORDS));
    }

    /// Sets what was saved again, and nothing else; it has been since [`Stale::watch`].
    pub(super) fn put_back(&mut self, saved: &[(u32, u64)]) {
        self.count = 0;
        let words = &mut self.words;
        self.changed.drain(|piece| {
            let piece = piece * WORDS..((piece + 1) * WORDS).min(words.len());
            if piece.is_empty() {
                return;
            }
            words[piece.clone()].fill(0);
            let first = saved.partition_point(|&(at, _)| (at as usize) < piece.start);
            for &(at, word) in &saved[first..] {
                if at as usize >= piece.end {
                    break;
                }
                words[at as usize] = word;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_stay_where_they_were_said_to_be() {
        let mut map = Map::new(40_000);
        let told = map.tables();
        assert_eq!(map.get(Page(39_999)), INITIAL);
        for page in (0..40_000).rev().step_by(7) {
            *map.entry(Page(page)) = page + 1;
        }
        let now = (map.index.as_ptr_range(), map.lines.as_ptr_range());
        assert_eq!(now.0.start.cast(), told[0].start);
        assert_eq!(now.0.end.cast(), told[0].end);
        assert_eq!(now.1.start.cast(), told[1].start);
        assert!(now.1.end.cast() <= told[1].end);
        let last = [39_999, 39_998].map(|page| map.get(Page(page)));
        assert_eq!(last, [40_000, INITIAL]);
        assert_eq!(map.tables(), told);
    }
}
