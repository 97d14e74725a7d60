//! Memory for the map of a drive that cannot hold the whole map: DRAM of the host (NVMe's host memory buffer) or a few
//! megabytes of its own.
//!
//! The map is stored in pages of 4 KiB, each with the locations of 1024 units of 4 KiB (or of whole indirection units,
//! if those are larger). A read whose part of the map is not in memory waits until it has been sensed, on its die. The
//! least recently used page is replaced (CLOCK with one mark per page). A write leaves its part of the map in memory. A
//! drive that has been written holds a random part at the start, as after random reads; after a power loss, the memory
//! is empty.
//!
//! Not modelled: changed parts are programmed, and read before that (writes cost nothing here); units that the
//! controller reads ahead; compressed maps; a host that provides less memory than the drive requests. Source: NVMe base
//! specification 1.2 and later, host memory buffer. Four bytes per 4 KiB are the size of a map for less than 16 TiB.

use alloc::vec;
use alloc::vec::Vec;

use super::array::SenseId;
use super::config::NandConfig;
use crate::ftl::{Ftl, FtlGeometry, Page, PageLocation, Slot};
use crate::random::Stream;

/// Bytes per page of the map.
const MAP_PAGE: u64 = 4096;
/// Locations per page of the map.
const ENTRIES: u32 = 1024;

/// A page of the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MapPage(pub(super) u32);

/// Location of a page of the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MapPageLocation {
    /// None: no unit of its part of the drive has been written.
    None,
    /// In memory, at this index.
    Held(u32),
    /// Only on the medium.
    Away,
    /// Being sensed.
    Coming(SenseId),
}

/// State of the memory.
#[derive(Clone, Debug)]
pub(super) struct MapMemory {
    /// Number of 4 KiB pages of the drive per page of the map.
    each: u32,
    /// Location by page of the map.
    pages: Vec<MapPageLocation>,
    /// Pages in memory, and whether each has been used since the hand passed.
    held: Vec<(MapPage, bool)>,
    room: usize,
    hand: usize,
}

impl MapMemory {
    /// Creates the memory of a drive that cannot hold its whole map; `None` for others.
    pub(super) fn new(
        config: &NandConfig,
        shape: &FtlGeometry,
        ftl: &Ftl,
        seed: u64,
    ) -> Option<MapMemory> {
        let memory = config.map.as_ref()?;
        let each = ENTRIES * shape.together;
        let all = shape.logical.div_ceil(each);
        let room = (memory.bytes / MAP_PAGE).max(1) as usize;
        let written = |page: &u32| !matches!(ftl.locate(Page(page * each)), PageLocation::Unmapped);
        let mut map = MapMemory {
            each,
            pages: vec![MapPageLocation::None; all as usize],
            held: Vec::with_capacity(room.min(all as usize)),
            room,
            hand: 0,
        };
        // A random selection of the existing pages, with equal probability.
        let there: Vec<u32> = (0..all).filter(written).collect();
        let mut random = Stream::new(seed, "map");
        for (index, &page) in there.iter().enumerate() {
            let left = (there.len() - index) as u64;
            let wanted = (room - map.held.len()) as u64;
            if random.uniform_below(left) < wanted {
                map.take(MapPage(page));
            } else {
                map.pages[page as usize] = MapPageLocation::Away;
            }
        }
        Some(map)
    }

    /// Returns the page of the map that contains this page's location.
    #[inline]
    pub(super) fn page_of(&self, page: Page) -> MapPage {
        MapPage(page.0 / self.each)
    }

    /// Returns the location of a page of the map, and marks it as used.
    #[inline]
    pub(super) fn look_up(&mut self, page: MapPage) -> MapPageLocation {
        let found = self.pages[page.0 as usize];
        if let MapPageLocation::Held(at) = found {
            self.held[at as usize].1 = true;
        }
        found
    }

    /// Returns a slot of its die: pages of the map are spread over all dies.
    pub(super) fn slot(page: MapPage, shape: &FtlGeometry) -> Slot {
        let (die, nth) = (page.0 % shape.dies, page.0 / shape.dies);
        Slot(die * shape.die_slots + nth % shape.die_slots)
    }

    /// The page is being sensed.
    pub(super) fn comes(&mut self, page: MapPage, sense: SenseId) {
        self.pages[page.0 as usize] = MapPageLocation::Coming(sense);
    }

    /// The page has been sensed.
    pub(super) fn came(&mut self, page: MapPage) {
        self.take(page);
    }

    /// A unit has been written, and its part of the map with it. A sense of that part in progress still completes.
    #[inline]
    pub(super) fn wrote(&mut self, page: Page) {
        let page = self.page_of(page);
        match self.look_up(page) {
            MapPageLocation::None | MapPageLocation::Away => self.take(page),
            MapPageLocation::Held(_) | MapPageLocation::Coming(_) => {}
        }
    }

    /// Power loss: the memory is empty, and all pages are on the medium.
    pub(super) fn forget(&mut self) {
        for (page, _) in self.held.drain(..) {
            self.pages[page.0 as usize] = MapPageLocation::Away;
        }
        self.hand = 0;
    }

    /// Puts a page into memory, replacing one that has not been used for a revolution of the hand if there is no free
    /// space.
    fn take(&mut self, page: MapPage) {
        let at = if self.held.len() < self.room {
            self.held.push((page, true));
            self.held.len() - 1
        } else {
            loop {
                let at = self.hand;
                self.hand = (self.hand + 1) % self.held.len();
                let (old, used) = &mut self.held[at];
                if core::mem::take(used) {
                    continue;
                }
                self.pages[old.0 as usize] = MapPageLocation::Away;
                self.held[at] = (page, true);
                break at;
            }
        };
        self.pages[page.0 as usize] = MapPageLocation::Held(at as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::Precondition;
    use crate::media::nand::tests::small;
    use crate::media::nand::{MapConfig, Nand};
    use crate::time::Span;

    fn memory(bytes: u64, state: Precondition) -> MapMemory {
        let mut config = small();
        config.map = Some(MapConfig {
            bytes,
            read: Span::from_us(30),
        });
        let drive = Nand::new(config, state, 1);
        drive.shared.map.expect("it has one")
    }

    fn held(map: &MapMemory) -> usize {
        let held = |page: &&MapPageLocation| matches!(page, MapPageLocation::Held(_));
        map.pages.iter().filter(held).count()
    }

    #[test]
    fn what_was_used_last_stays() {
        let mut map = memory(3 * MAP_PAGE, Precondition::Filled);
        let all = map.pages.len() as u32;
        assert!(all > 100, "{all}");
        assert_eq!(held(&map), 3);
        for page in [3, 50, 70] {
            map.came(MapPage(page));
        }
        // The hand has cleared every mark to find a place for the first one.
        map.came(MapPage(90));
        assert_eq!(held(&map), 3);
        assert!(matches!(map.look_up(MapPage(90)), MapPageLocation::Held(_)));
        let kept = map.held.clone();
        for (page, _) in &kept {
            assert!(matches!(map.look_up(*page), MapPageLocation::Held(_)));
        }
        map.forget();
        assert_eq!(held(&map), 0);
        assert_eq!(map.look_up(MapPage(90)), MapPageLocation::Away);
    }

    #[test]
    fn a_new_drive_has_no_map_but_of_what_is_written() {
        let mut map = memory(2 * MAP_PAGE, Precondition::Fresh);
        assert_eq!(map.look_up(MapPage(7)), MapPageLocation::None);
        map.wrote(Page(7 * ENTRIES + 5));
        assert!(matches!(map.look_up(MapPage(7)), MapPageLocation::Held(_)));
        map.wrote(Page(0));
        map.wrote(Page(20 * ENTRIES));
        assert_eq!(held(&map), 2);
    }
}
