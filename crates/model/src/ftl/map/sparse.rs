//! The page map, stored as the entries that were set; each takes 8 to 16 bytes. Changes are reverted from a record of
//! the previous values.

use alloc::vec::Vec;
#[cfg(not(target_pointer_width = "64"))]
use core::ops::Range;

use super::INITIAL;
use crate::ftl::numbers::Page;
use crate::ftl::scattered::HashedTable;

/// The forward map, and a record of its changes.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Sparse {
    entries: HashedTable<u32>,
    /// Whether any entry was set.
    touched: bool,
    /// Entries that may have changed since a saved state, in order, with their previous values. `None` while there is
    /// no such state.
    before: Option<Vec<(Page, u32)>>,
}

impl Sparse {
    pub(in crate::ftl) fn new(pages: u32) -> Sparse {
        Sparse {
            entries: HashedTable::zeroed(pages),
            touched: false,
            before: None,
        }
    }

    #[inline]
    pub(in crate::ftl) fn get(&self, page: Page) -> u32 {
        match self.touched {
            true => self.entries.get(page.0),
            false => INITIAL,
        }
    }

    /// Returns the entry for reading and changing. Memory grows when an entry is set for the first time.
    #[inline]
    pub(in crate::ftl) fn entry(&mut self, page: Page) -> &mut u32 {
        self.touched = true;
        let entry = self.entries.entry(page.0);
        if let Some(before) = &mut self.before {
            before.push((page, *entry));
        }
        entry
    }

    /// Brings the entries of these pages into the cache, with overlapping cache misses.
    #[inline]
    pub(in crate::ftl) fn touch(&self, pages: impl Iterator<Item = Page> + Clone) {
        let sum = pages.fold(0, |sum: u32, page| sum.wrapping_add(self.get(page)));
        core::hint::black_box(sum);
    }

    /// Has no fixed memory range.
    #[cfg(not(target_pointer_width = "64"))]
    pub(in crate::ftl) fn tables(&mut self) -> [Range<*const u8>; 1] {
        [self.entries.memory()]
    }

    /// Resets all entries. Returns false if no entry had been set.
    pub(in crate::ftl) fn clear(&mut self) -> bool {
        if self.touched {
            self.entries.clear(0..self.entries.len());
        }
        self.before = None;
        core::mem::take(&mut self.touched)
    }

    /// Whether it has the size of a map of `pages` pages.
    pub(in crate::ftl) fn is_of(&self, pages: u32) -> bool {
        self.entries.len() == pages
    }

    /// Returns the data that [`Sparse::restore`] needs to restore these entries.
    pub(in crate::ftl) fn save(&self) -> Saved {
        Saved(self.entries.clone())
    }

    /// Restores the saved entries; no entry may have been set before.
    pub(in crate::ftl) fn restore(&mut self, saved: &Saved) {
        debug_assert!(!self.touched);
        self.entries.clone_from(&saved.0);
        self.touched = true;
    }

    /// Starts to record changes, for [`Sparse::put_back`]: the current entries are those of a saved state.
    pub(in crate::ftl) fn watch(&mut self) {
        self.before = Some(Vec::new());
    }

    /// Restores the saved entries again; they were current at [`Sparse::watch`] or at an earlier time.
    pub(in crate::ftl) fn put_back(&mut self, _saved: &Saved) {
        for (page, entry) in self.before.iter_mut().flat_map(|all| all.drain(..).rev()) {
            self.entries.set(page.0, entry);
        }
    }
}

/// The entries of a map.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Saved(HashedTable<u32>);
