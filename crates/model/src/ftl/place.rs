//! Where logical pages are: in the map, or where the layout had them.

use alloc::vec::Vec;

use super::map::INITIAL;
use super::numbers::{BufferSlot, Page, Slot};
use super::{Ftl, UNMAPPED};

/// Where a logical page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Nowhere: it reads as zeroes.
    Unmapped,
    /// In this slot of the write buffer.
    Buffer(BufferSlot),
    /// In this slot of the medium.
    Flash(Slot),
}

/// Where the layout has a page that has been asked for, if it tells where that is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Foreseen(u32);

impl Foreseen {
    /// Nothing has been foreseen.
    pub const NOTHING: Foreseen = Foreseen(INITIAL);
}

impl Ftl {
    /// One more than the physical slot, a buffer slot's number, or [`UNMAPPED`].
    #[inline]
    pub(super) fn resolve(&self, entry: u32, page: Page) -> u32 {
        if self.is_of_layout(entry) {
            return self.at_start(page);
        }
        entry
    }

    /// Whether the layout tells where a page is, and not its entry.
    #[inline]
    fn is_of_layout(&self, entry: u32) -> bool {
        entry == INITIAL || self.asleep
    }

    /// Where the layout has a page.
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
    pub(super) fn place(&self, resolved: u32) -> Place {
        if resolved < self.buffer_base() {
            Place::Flash(Slot(resolved - 1))
        } else if resolved == UNMAPPED {
            Place::Unmapped
        } else {
            Place::Buffer(BufferSlot(resolved - self.buffer_base()))
        }
    }

    /// Where a logical page is.
    #[inline]
    pub fn locate(&self, page: Page) -> Place {
        let resolved = self.resolve(self.map.get(page), page);
        self.place(resolved)
    }

    /// Brings the map's entry of a page into the cache, and computes where the layout had it, if that tells where it is:
    /// both take long, and what a command does before it asks need not wait for them.
    #[inline]
    pub fn foresee(&self, page: Page) -> Foreseen {
        match self.is_of_layout(self.map.get(page)) {
            true => Foreseen(self.at_start(page)),
            false => Foreseen::NOTHING,
        }
    }

    /// Where a logical page is of which this has been foreseen.
    #[inline]
    pub fn locate_foreseen(&self, page: Page, foreseen: Foreseen) -> Place {
        let entry = self.map.get(page);
        match foreseen != Foreseen::NOTHING && self.is_of_layout(entry) {
            true => self.place(foreseen.0),
            false => self.place(self.resolve(entry, page)),
        }
    }

    /// Where `count` logical pages from `first` on are.
    #[inline]
    pub fn locate_each(&self, first: Page, count: u32, places: &mut Vec<Place>) {
        places.clear();
        places.extend((0..count).map(|further| self.locate(first.plus(further))));
    }
}
