//! The page map as the entries that were set, each of which takes 8 bytes and up to as much again; what has changed is put back from
//! notes of what was there before.

use alloc::vec::Vec;
#[cfg(not(target_pointer_width = "64"))]
use core::ops::Range;

use super::INITIAL;
use crate::ftl::numbers::Page;
use crate::ftl::scattered::Few;

/// The forward map, and what of it has changed.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Sparse {
    entries: Few<u32>,
    /// Whether any was set.
    touched: bool,
    /// Entries that may have changed since they were those of a saved state, in order, and what they were. Nothing while
    /// there is no such state.
    before: Option<Vec<(Page, u32)>>,
}

impl Sparse {
    pub(in crate::ftl) fn new(pages: u32) -> Sparse {
        Sparse {
            entries: Few::of(pages),
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

    /// The entry, to be read and changed. Memory grows when it is set for the first time.
    #[inline]
    pub(in crate::ftl) fn entry(&mut self, page: Page) -> &mut u32 {
        self.touched = true;
        let entry = self.entries.entry(page.0);
        if let Some(before) = &mut self.before {
            before.push((page, *entry));
        }
        entry
    }

    /// Brings the entries of these pages into the cache, beside each other.
    #[inline]
    pub(in crate::ftl) fn touch(&self, pages: impl Iterator<Item = Page> + Clone) {
        let sum = pages.fold(0, |sum: u32, page| sum.wrapping_add(self.get(page)));
        core::hint::black_box(sum);
    }

    /// Nowhere that stays.
    #[cfg(not(target_pointer_width = "64"))]
    pub(in crate::ftl) fn tables(&mut self) -> [Range<*const u8>; 1] {
        [self.entries.memory()]
    }

    /// Sets all entries back. False if none had been set.
    pub(in crate::ftl) fn clear(&mut self) -> bool {
        if self.touched {
            self.entries.clear(0..self.entries.len());
        }
        self.before = None;
        core::mem::take(&mut self.touched)
    }

    /// Whether it is as large as that of so many pages.
    pub(in crate::ftl) fn is_of(&self, pages: u32) -> bool {
        self.entries.len() == pages
    }

    /// What [`Sparse::restore`] needs to make these entries again.
    pub(in crate::ftl) fn save(&self) -> Saved {
        Saved(self.entries.clone())
    }

    /// Makes the entries that were saved; none may have been set yet.
    pub(in crate::ftl) fn restore(&mut self, saved: &Saved) {
        debug_assert!(!self.touched);
        self.entries.clone_from(&saved.0);
        self.touched = true;
    }

    /// From now on takes note of what changes, for [`Sparse::put_back`]: the entries are those of a saved state.
    pub(in crate::ftl) fn watch(&mut self) {
        self.before = Some(Vec::new());
    }

    /// Makes the entries those that were saved again; they have been since [`Sparse::watch`] or were once.
    pub(in crate::ftl) fn put_back(&mut self, _saved: &Saved) {
        for (page, entry) in self.before.iter_mut().flat_map(|all| all.drain(..).rev()) {
            self.entries.set(page.0, entry);
        }
    }
}

/// The entries of a map.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Saved(Few<u32>);
