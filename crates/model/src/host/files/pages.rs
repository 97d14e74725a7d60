//! Pages of a page cache: which are in memory, and in which state.
//!
//! Clean pages form one list by the time of their last use; the least recently used one is evicted when memory is full.
//! Dirty pages, and pages that are being read or written, are never evicted. Not modelled: Linux' second list for pages
//! that are used more than once (mm/workingset.c), huge pages, memory that programs use.

use alloc::vec::Vec;

use super::PAGE;

/// Pages per leaf of the index.
const LEAF: usize = 512;

/// Used in place of a slot, for none.
const NONE: u32 = u32::MAX;

/// PageState of a page in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PageState {
    /// Equal to the data on the drive.
    Clean,
    /// Changed, and not on its way to the drive.
    Dirty,
    /// On its way to the drive, and not changed since.
    Writing,
    /// On its way from the drive, with this request.
    Reading(u32),
}

/// A page in memory.
#[derive(Clone, Copy, Debug)]
struct CachedPage {
    page: u64,
    state: PageState,
    /// Neighbours in the list of clean pages.
    newer: u32,
    older: u32,
}

/// The pages in memory.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    /// Number of pages that memory holds.
    most: usize,
    /// Leaf by page number divided by [`LEAF`], plus one; 0 for none.
    index: Vec<u32>,
    /// Slots by the rest of that division.
    leaves: Vec<[u32; LEAF]>,
    slots: Vec<CachedPage>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    dirty: u64,
    writing: u64,
}

impl Pages {
    /// Creates an empty cache with `memory` bytes for the pages of a drive.
    pub(super) fn new(memory: u64, capacity: u64) -> Pages {
        let pages = capacity.div_ceil(PAGE) as usize;
        Pages {
            most: (memory / PAGE).max(1) as usize,
            index: alloc::vec![0; pages.div_ceil(LEAF)],
            leaves: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            dirty: 0,
            writing: 0,
        }
    }

    /// Returns the bytes of dirty pages.
    pub(super) fn dirty(&self) -> u64 {
        self.dirty * PAGE
    }

    /// Returns the bytes of dirty pages and of pages that are being written.
    pub(super) fn unwritten(&self) -> u64 {
        (self.dirty + self.writing) * PAGE
    }

    /// Removes all pages.
    pub(super) fn clear(&mut self) {
        self.index.fill(0);
        self.leaves.clear();
        self.slots.clear();
        self.free.clear();
        (self.newest, self.oldest) = (NONE, NONE);
        (self.dirty, self.writing) = (0, 0);
    }

    fn slot(&self, page: u64) -> Option<u32> {
        let (leaf, at) = (page as usize / LEAF, page as usize % LEAF);
        let leaf = *self.index.get(leaf)?;
        let slot = self.leaves[leaf.checked_sub(1)? as usize][at];
        (slot != NONE).then_some(slot)
    }

    /// Returns the state of a page; `None` if it is not in memory.
    pub(super) fn state(&self, page: u64) -> Option<PageState> {
        let slot = self.slot(page)?;
        Some(self.slots[slot as usize].state)
    }

    /// A page in memory is used: it becomes the most recently used one.
    pub(super) fn touch(&mut self, page: u64) {
        if let Some(slot) = self.slot(page)
            && self.slots[slot as usize].state == PageState::Clean
        {
            self.unlink(slot);
            self.link(slot);
        }
    }

    /// A page is changed in memory. Returns whether it was not dirty before.
    pub(super) fn change(&mut self, page: u64) -> bool {
        self.set(page, PageState::Dirty) != PageState::Dirty
    }

    /// A page that is not in memory is read from the drive by this request.
    pub(super) fn read(&mut self, page: u64, request: u32) {
        self.set(page, PageState::Reading(request));
    }

    /// A request has brought a page, or has failed to. A page that was changed meanwhile stays dirty.
    pub(super) fn arrived(&mut self, page: u64, request: u32, failed: bool) {
        if self.state(page) != Some(PageState::Reading(request)) {
            return;
        }
        if failed {
            self.remove(page);
        } else {
            self.set(page, PageState::Clean);
        }
    }

    /// A dirty page is on its way to the drive.
    pub(super) fn leaves(&mut self, page: u64) {
        if self.state(page) == Some(PageState::Dirty) {
            self.set(page, PageState::Writing);
        }
    }

    /// A page has been written. A page that was changed meanwhile stays dirty.
    pub(super) fn written(&mut self, page: u64) {
        if self.state(page) == Some(PageState::Writing) {
            self.set(page, PageState::Clean);
        }
    }

    /// Removes the clean pages from `start` up to `end`.
    pub(super) fn drop_clean(&mut self, start: u64, end: u64) {
        let end = end.min((self.index.len() * LEAF) as u64);
        let mut page = start;
        while page < end {
            let leaf = page as usize / LEAF;
            let next = (leaf as u64 + 1) * LEAF as u64;
            if self.index[leaf] == 0 {
                page = next;
                continue;
            }
            for page in page..next.min(end) {
                if self.state(page) == Some(PageState::Clean) {
                    self.remove(page);
                }
            }
            page = next;
        }
    }

    /// Sets the state of a page, which is brought into memory if necessary. Returns its previous state; that of a new
    /// page is clean.
    fn set(&mut self, page: u64, state: PageState) -> PageState {
        let slot = self.slot(page);
        let slot = slot.unwrap_or_else(|| self.insert(page));
        let before = self.slots[slot as usize].state;
        self.count(before, false);
        self.count(state, true);
        if before == PageState::Clean {
            self.unlink(slot);
        }
        self.slots[slot as usize].state = state;
        if state == PageState::Clean {
            self.link(slot);
        }
        before
    }

    /// Counts a page in, or out, by its state.
    fn count(&mut self, state: PageState, comes: bool) {
        let count = match state {
            PageState::Dirty => &mut self.dirty,
            PageState::Writing => &mut self.writing,
            PageState::Clean | PageState::Reading(_) => return,
        };
        if comes { *count += 1 } else { *count -= 1 }
    }

    /// Puts a clean page into memory, after evicting another if memory is full.
    fn insert(&mut self, page: u64) -> u32 {
        if self.slots.len() - self.free.len() >= self.most && self.oldest != NONE {
            self.remove(self.slots[self.oldest as usize].page);
        }
        let new = CachedPage {
            page,
            state: PageState::Clean,
            newer: NONE,
            older: NONE,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = new;
                slot
            }
            None => {
                self.slots.push(new);
                (self.slots.len() - 1) as u32
            }
        };
        let (leaf, at) = (page as usize / LEAF, page as usize % LEAF);
        if self.index[leaf] == 0 {
            self.leaves.push([NONE; LEAF]);
            self.index[leaf] = self.leaves.len() as u32;
        }
        self.leaves[self.index[leaf] as usize - 1][at] = slot;
        self.link(slot);
        slot
    }

    /// Removes a page from memory.
    fn remove(&mut self, page: u64) {
        let Some(slot) = self.slot(page) else { return };
        let state = self.slots[slot as usize].state;
        self.count(state, false);
        if state == PageState::Clean {
            self.unlink(slot);
        }
        let leaf = self.index[page as usize / LEAF] as usize - 1;
        self.leaves[leaf][page as usize % LEAF] = NONE;
        self.free.push(slot);
    }

    /// Makes a page the most recently used one.
    fn link(&mut self, slot: u32) {
        let older = self.newest;
        let it = &mut self.slots[slot as usize];
        (it.newer, it.older) = (NONE, older);
        match older {
            NONE => self.oldest = slot,
            older => self.slots[older as usize].newer = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let CachedPage { newer, older, .. } = self.slots[slot as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> Pages {
        Pages::new(4 * PAGE, 1 << 30)
    }

    fn held(pages: &Pages) -> Vec<u64> {
        (0..2000)
            .filter(|&page| pages.state(page).is_some())
            .collect()
    }

    #[test]
    fn the_least_recently_used_clean_page_is_evicted() {
        let mut pages = cache();
        for page in [1, 1000, 3, 4] {
            pages.read(page, 7);
            pages.arrived(page, 7, false);
        }
        pages.touch(1);
        pages.read(5, 8);
        assert_eq!(held(&pages), [1, 3, 4, 5], "1000 was used least recently");
        pages.arrived(5, 8, true);
        assert_eq!(held(&pages), [1, 3, 4], "a failed read leaves no page");
    }

    #[test]
    fn dirty_pages_stay_until_they_are_written() {
        let mut pages = cache();
        assert!((0..4).all(|page| pages.change(page)));
        assert!(!pages.change(0), "dirty before");
        pages.read(9, 1);
        assert_eq!(held(&pages), [0, 1, 2, 3, 9], "nothing can be evicted");
        assert_eq!((pages.dirty(), pages.unwritten()), (4 * PAGE, 4 * PAGE));
        pages.leaves(0);
        pages.leaves(1);
        assert_eq!((pages.dirty(), pages.unwritten()), (2 * PAGE, 4 * PAGE));
        assert!(pages.change(1), "changed while it is written");
        pages.written(0);
        pages.written(1);
        assert_eq!((pages.dirty(), pages.unwritten()), (3 * PAGE, 3 * PAGE));
        assert_eq!(pages.state(0), Some(PageState::Clean));
        assert_eq!(pages.state(1), Some(PageState::Dirty));
    }

    #[test]
    fn clean_pages_of_a_range_are_dropped() {
        let mut pages = Pages::new(1 << 20, 1 << 30);
        for page in [10, 600, 700, 1300] {
            pages.change(page);
            if page != 700 {
                pages.leaves(page);
                pages.written(page);
            }
        }
        pages.drop_clean(11, 1300);
        assert_eq!(held(&pages), [10, 700, 1300]);
        pages.clear();
        assert_eq!(held(&pages), []);
        assert_eq!(pages.unwritten(), 0);
    }
}
