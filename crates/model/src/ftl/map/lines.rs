//! The page map, in lines that are allocated when one of their pages first moves.
//!
//! An entry of zero means "at its location in the initial layout", so a preconditioned drive of any size uses little
//! memory until it is written. The index of lines takes 0.25 bytes per logical page (and the operating system allocates
//! that only when touched). Each line of 16 pages that has been written takes 4 bytes per page. Reads of pages that
//! never moved access no table except the index.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::INITIAL;
use crate::ftl::changed::ChangeTracker;
use crate::ftl::numbers::Page;

/// Pages per line: 64 bytes, a cache line.
const LINE: u32 = 16;

/// Returns the memory range of a vector, including its unused capacity.
fn bytes_of<T>(vec: &Vec<T>) -> Range<*const u8> {
    let start = vec.as_ptr().cast::<u8>();
    start..start.wrapping_add(vec.capacity() * size_of::<T>())
}

/// The forward map, and a record of its changes.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Lines {
    /// By line: zero, or one more than its index in `lines`.
    index: Vec<u32>,
    lines: Vec<[u32; LINE as usize]>,
    /// Changes since the entries were those of a saved state: pieces of its lines that may have changed, and the index
    /// position of each additional line. Empty while there is no such state.
    changed: ChangeTracker,
    further: Option<Vec<u32>>,
}

/// Lines per piece of [`Lines::changed`].
const PIECE: usize = 16;

impl Lines {
    pub(in crate::ftl) fn new(pages: u32) -> Lines {
        Lines {
            index: vec![0; pages.div_ceil(LINE) as usize],
            lines: Vec::new(),
            changed: ChangeTracker::default(),
            further: None,
        }
    }

    #[inline]
    pub(in crate::ftl) fn get(&self, page: Page) -> u32 {
        // The usual case for drives that are only read: the index is not accessed.
        if self.lines.is_empty() {
            return INITIAL;
        }
        match self.index[(page.0 / LINE) as usize] {
            0 => INITIAL,
            line => self.lines[line as usize - 1][(page.0 % LINE) as usize],
        }
    }

    /// Returns the entry for reading and changing. Memory grows when a line is written for the first time.
    #[inline]
    pub(in crate::ftl) fn entry(&mut self, page: Page) -> &mut u32 {
        let line = &mut self.index[(page.0 / LINE) as usize];
        if *line == 0 {
            self.lines.push([INITIAL; LINE as usize]);
            *line = self.lines.len() as u32;
            if let Some(further) = &mut self.further {
                further.push(page.0 / LINE);
            }
        }
        let line = *line as usize - 1;
        self.changed.mark(line / PIECE);
        &mut self.lines[line][(page.0 % LINE) as usize]
    }

    /// Brings the entries of these pages into the cache, with overlapping cache misses.
    #[inline]
    pub(in crate::ftl) fn touch(&self, pages: impl Iterator<Item = Page> + Clone) {
        let line = |page: Page| self.index[(page.0 / LINE) as usize];
        let sum = pages
            .clone()
            .fold(0, |sum: u32, page| sum.wrapping_add(line(page)));
        core::hint::black_box(sum);
        let sum = pages.fold(0, |sum: u32, page| sum.wrapping_add(self.get(page)));
        core::hint::black_box(sum);
    }

    /// Returns the memory ranges of the index and the lines. They do not move if there is address space for all lines.
    pub(in crate::ftl) fn tables(&mut self) -> [Range<*const u8>; 2] {
        let rest = self.index.len() - self.lines.len();
        // Otherwise lines move as they grow, as in any vector.
        let _ = self.lines.try_reserve_exact(rest);
        [bytes_of(&self.index), bytes_of(&self.lines)]
    }

    /// Resets all entries, and keeps the memory. Returns false if no entry had been set.
    pub(in crate::ftl) fn clear(&mut self) -> bool {
        let touched = !self.lines.is_empty();
        if touched {
            self.index.fill(0);
            self.lines.clear();
        }
        self.changed = ChangeTracker::default();
        self.further = None;
        touched
    }

    /// Whether it has the size of a map of `pages` pages.
    pub(in crate::ftl) fn is_of(&self, pages: u32) -> bool {
        self.index.len() == pages.div_ceil(LINE) as usize
    }

    /// Returns the data that [`Lines::restore`] needs to restore these entries.
    pub(in crate::ftl) fn save(&self) -> Saved {
        let mut owners = vec![0; self.lines.len()];
        for (owner, &line) in self.index.iter().enumerate() {
            if line != 0 {
                owners[line as usize - 1] = owner as u32;
            }
        }
        Saved {
            owners,
            lines: self.lines.clone(),
        }
    }

    /// Restores the saved entries; no entry may have been set before.
    pub(in crate::ftl) fn restore(&mut self, saved: &Saved) {
        debug_assert!(self.lines.is_empty());
        self.lines.extend_from_slice(&saved.lines);
        for (line, &owner) in saved.owners.iter().enumerate() {
            self.index[owner as usize] = line as u32 + 1;
        }
    }

    /// Starts to record changes, for [`Lines::put_back`]: the current entries are those of a saved state.
    pub(in crate::ftl) fn watch(&mut self) {
        self.changed = ChangeTracker::none_of(self.lines.len().div_ceil(PIECE));
        self.further = Some(Vec::new());
    }

    /// Restores the saved entries again; they were current at [`Lines::watch`] or at an earlier time.
    pub(in crate::ftl) fn put_back(&mut self, saved: &Saved) {
        let all = saved.lines.len();
        let lines = &mut self.lines;
        self.changed.drain(|piece| {
            let piece = piece * PIECE..((piece + 1) * PIECE).min(all);
            // The last bits belong to lines that were added later.
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

/// The lines of a map, and the index position of each.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Saved {
    owners: Vec<u32>,
    lines: Vec<[u32; LINE as usize]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_stay_where_they_were_said_to_be() {
        let mut map = Lines::new(40_000);
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
