//! The translation layer without time: no write is lost, and the maps agree with each other.

use alloc::vec;
use alloc::vec::Vec;

use super::*;
use proptest::prelude::*;

const LOW: Watermark = Watermark { low: 2 };

fn shape() -> FtlGeometry {
    NandGeometry {
        channels: 2,
        dies_per_channel: 1,
        planes: 1,
        blocks_per_plane: 12,
        pages_per_block: 4,
        page_bytes: 8192,
        reserved: 0.0,
        capacity: 80 * 4096,
        indirection: 4096,
        stripe: 0,
    }
    .shape(LOW.spare_blocks())
    .expect("valid")
}

/// Content that a medium and a buffer with real data would have: pages with the number of the write that put them
/// there.
struct Shadow {
    ftl: Ftl,
    medium: Vec<(Page, u32)>,
    buffer: Vec<(Page, u32)>,
    newest: Vec<u32>,
    stamp: u32,
}

impl Shadow {
    fn write(&mut self, page: Page) {
        self.stamp += 1;
        self.newest[page.index()] = self.stamp;
        self.buffer.push((page, self.stamp));
        let held = BufferSlot(self.buffer.len() as u32 - 1);
        self.ftl.stage(page, held);
    }

    /// Programs two buffered units, collecting first if necessary. Stale ones are programmed too, as a drive would.
    fn program(&mut self, die: Die, from: usize) {
        while self.ftl.wants_collection(die) && self.collect(die) {}
        let Some(base) = self.ftl.take_page(die, Writer::Host) else {
            return;
        };
        for unit in 0..2 {
            let held = from + unit as usize;
            let (page, stamp) = self.buffer[held];
            let slot = base.plus(unit);
            self.medium[slot.index()] = (page, stamp);
            self.ftl.settle(page, BufferSlot(held as u32), slot);
        }
        self.ftl.page_programmed(base);
    }

    fn collect(&mut self, die: Die) -> bool {
        let Some((victim, _)) = self.ftl.take_victim(die) else {
            return false;
        };
        let first = self.ftl.shape.first_slot(victim);
        let copies: Vec<_> = (0..self.ftl.shape.block_slots)
            .map(|further| first.plus(further))
            .filter_map(|slot| Some((self.ftl.valid_page(slot)?, slot)))
            .collect();
        for pair in copies.chunks(2) {
            let base = self
                .ftl
                .take_page(die, Writer::Collection)
                .expect("kept back");
            for unit in 0..2 {
                let to = base.plus(unit);
                if let Some(&(page, from)) = pair.get(unit as usize) {
                    self.medium[to.index()] = self.medium[from.index()];
                    self.ftl.relocate(page, from, to);
                } else {
                    self.ftl.pad(to, Writer::Collection);
                }
            }
            self.ftl.page_programmed(base);
        }
        self.ftl.erased(victim);
        true
    }

    fn check(&self) {
        self.ftl.check();
        for page in (0..self.ftl.shape.logical).map(Page) {
            let newest = self.newest[page.index()];
            match self.ftl.locate(page) {
                PageLocation::Unmapped => assert_eq!(newest, 0, "{page:?} is lost"),
                PageLocation::Buffer(held) => assert_eq!(self.buffer[held.index()], (page, newest)),
                PageLocation::Flash(slot) => assert_eq!(self.medium[slot.index()], (page, newest)),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn no_write_is_lost(
        layout in 0u8..3,
        actions in prop::collection::vec((0u8..8, 0u32..80, 0u32..2), 1..600),
    ) {
        let shape = shape();
        let layout = match layout {
            0 => None,
            1 => Some(InitialLayout::filled(shape)),
            _ => Some(InitialLayout::steady(shape, LOW.low, 9)),
        };
        let written = layout.is_some();
        let mut shadow = Shadow {
            ftl: Ftl::new(shape, LOW, layout),
            medium: vec![(Page(u32::MAX), 0); shape.slots() as usize],
            buffer: Vec::new(),
            newest: vec![u32::from(written); shape.logical as usize],
            stamp: 1,
        };
        for page in (0..shape.logical).map(Page) {
            if let PageLocation::Flash(slot) = shadow.ftl.locate(page) {
                shadow.medium[slot.index()] = (page, 1);
            }
        }
        let pages = || (0..shape.logical).map(Page);
        let foreseen: Vec<_> = pages().map(|page| shadow.ftl.foresee(page)).collect();
        let mut programmed = 0;
        for (action, page, die) in actions {
            let (page, die) = (Page(page), Die(die));
            match action {
                0 => {
                    shadow.ftl.deallocate(page);
                    shadow.newest[page.index()] = 0;
                }
                1 => {
                    shadow.collect(die);
                }
                2..6 => shadow.write(page),
                _ if programmed + 2 <= shadow.buffer.len() => {
                    shadow.program(die, programmed);
                    programmed += 2;
                }
                _ => {}
            }
        }
        shadow.check();
        for (page, foreseen) in pages().zip(foreseen) {
            let place = shadow.ftl.locate_foreseen(page, foreseen);
            prop_assert_eq!(place, shadow.ftl.locate(page));
        }
    }
}

/// A copy is read; then its whole block is overwritten, erased and programmed again before the copy is programmed.
#[test]
fn a_copy_whose_block_has_been_used_again_is_stale() {
    let mut ftl = Ftl::new(shape(), LOW, None);
    let program = |ftl: &mut Ftl, pages: [u32; 2]| {
        let base = ftl.take_page(Die(0), Writer::Host).expect("there is room");
        for (unit, page) in (0u32..).zip(pages) {
            let (page, held) = (Page(page), BufferSlot(unit));
            ftl.stage(page, held);
            ftl.settle(page, held, base.plus(unit));
        }
        ftl.page_programmed(base);
        base
    };
    for page in [0, 2, 4, 6] {
        program(&mut ftl, [page, page + 1]);
    }
    for page in 0..7 {
        ftl.stage(Page(page), BufferSlot(page));
    }
    let (victim, valid) = ftl.take_victim(Die(0)).expect("nearly empty");
    let first = ftl.shape.first_slot(victim);
    assert_eq!((valid, ftl.valid_page(first.plus(7))), (1, Some(Page(7))));
    ftl.stage(Page(7), BufferSlot(7));
    ftl.erased(victim);
    // Holds back another block, and fills all others: this block is then selected.
    for page in [8, 10, 12, 14] {
        program(&mut ftl, [page, page + 1]);
    }
    for page in 8..16 {
        ftl.stage(Page(page), BufferSlot(page));
    }
    let (empty, _) = ftl.take_victim(Die(0)).expect("empty");
    ftl.erased(empty);
    let mut pages = (16..80).step_by(2).cycle();
    let reused = pages.find(|&page| program(&mut ftl, [page, page + 1]) == first.plus(6));
    let page = reused.expect("its turn comes");
    let to = ftl
        .take_page(Die(0), Writer::Collection)
        .expect("kept back");
    assert!(!ftl.relocate(Page(7), first.plus(7), to));
    ftl.pad(to.plus(1), Writer::Collection);
    ftl.page_programmed(to);
    assert_eq!(ftl.valid_page(first.plus(7)), Some(Page(page + 1)));
    assert_eq!(ftl.locate(Page(7)), PageLocation::Buffer(BufferSlot(7)));
    ftl.check();
}
