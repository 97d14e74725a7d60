//! Look-up of the location of logical pages: in the map, or in the initial layout.

use alloc::vec::Vec;

use super::map::INITIAL;
use super::numbers::{BufferSlot, Page, Slot};
use super::{Ftl, UNMAPPED};

/// Location of a logical page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageLocation {
    /// No location: it reads as zeroes.
    Unmapped,
    /// In this slot of the write buffer.
    Buffer(BufferSlot),
    /// In this slot of the medium.
    Flash(Slot),
}

/// Location of a page in the layout, computed in advance, if the layout determines the page's location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrecomputedSlot(u32);

impl PrecomputedSlot {
    /// No location was computed in advance.
    pub const NOTHING: PrecomputedSlot = PrecomputedSlot(INITIAL);
}

impl Ftl {
    /// Returns one more than the physical slot, a buffer slot's number, or [`UNMAPPED`].
    #[inline]
    pub(super) fn resolve(&self, entry: u32, page: Page) -> u32 {
        if self.is_of_layout(entry) {
            return self.at_start(page);
        }
        entry
    }

    /// Whether the layout, and not its entry, determines a page's location.
    #[inline]
    fn is_of_layout(&self, entry: u32) -> bool {
        entry == INITIAL || self.asleep
    }

    /// Returns the location of a page in the layout.
    #[inline]
    fn at_start(&self, page: Page) -> u32 {
        let layout = self.layout.as_ref();
        layout
            .and_then(|layout| layout.slot_of(page))
            .map_or(UNMAPPED, |slot| slot.0 + 1)
    }

    #[inline]
    pub(super) fn buffer_base(&self) -> u32 {
        self.reverse.slots() + 1
    }

    #[inline]
    pub(super) fn place(&self, resolved: u32) -> PageLocation {
        if resolved < self.buffer_base() {
            PageLocation::Flash(Slot(resolved - 1))
        } else if resolved == UNMAPPED {
            PageLocation::Unmapped
        } else {
            PageLocation::Buffer(BufferSlot(resolved - self.buffer_base()))
        }
    }

    /// Returns the location of a logical page.
    #[inline]
    pub fn locate(&self, page: Page) -> PageLocation {
        let resolved = self.resolve(self.map.get(page), page);
        self.place(resolved)
    }

    /// Brings the map entry of a page into the cache. If the layout determines the page's location, computes it. Both
    /// take long, and the work of a command before its look-up need not wait for them.
    #[inline]
    pub fn foresee(&self, page: Page) -> PrecomputedSlot {
        match self.is_of_layout(self.map.get(page)) {
            true => PrecomputedSlot(self.at_start(page)),
            false => PrecomputedSlot::NOTHING,
        }
    }

    /// Returns the location of a logical page, with the result of [`Ftl::foresee`] for it.
    #[inline]
    pub fn locate_foreseen(&self, page: Page, foreseen: PrecomputedSlot) -> PageLocation {
        let entry = self.map.get(page);
        match foreseen != PrecomputedSlot::NOTHING && self.is_of_layout(entry) {
            true => self.place(foreseen.0),
            false => self.place(self.resolve(entry, page)),
        }
    }

    /// Appends the locations of `count` logical pages, starting at `first`.
    #[inline]
    pub fn locate_each(&self, first: Page, count: u32, places: &mut Vec<PageLocation>) {
        places.clear();
        places.extend((0..count).map(|further| self.locate(first.plus(further))));
    }
}
