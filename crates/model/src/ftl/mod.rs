//! The translation layer of a NAND drive: which slot holds which page, without any notion of time.
//!
//! Page map of 4 bytes an entry both ways, lazy invalidation (a slot is valid if the map still points at it), one open
//! block for the host and one for collection on each die, greedy choice of the victim among a die's closed blocks.
//! `media::nand::Nand` asks it where things are and tells it what has been programmed; [`Replay`] writes
//! without time, for warm-up and as the brute-force way to precondition.
//!
//! Leaves out: separation of hot and cold data, wear levelling beyond taking erased blocks in turn, and the medium
//! traffic of the map itself (whole maps are in the DRAM of these drives).

mod account;
mod changed;
mod collecting;
mod divisors;
mod free;
mod geometry;
mod layout;
mod map;
mod numbers;
mod permutation;
mod place;
mod replay;
mod reset;
mod reverse;
mod scattered;
mod slc;
mod stale;

#[cfg(test)]
mod tests;

pub use collecting::{AHEAD_PAGES, Collecting, page_price};
pub(crate) use divisors::Divisors;
pub use geometry::{Geometry, GeometryError, Shape, UNIT};
pub use layout::{Layout, closed_form_write_amplification, victim_share};
pub use numbers::{Block, BufferSlot, Die, Page, Slot};
pub use permutation::Permutation;
pub use place::{Foreseen, Place};
pub use replay::{Replay, brute_force, warm_up};
pub use reset::Saved;

use alloc::vec;
use alloc::vec::Vec;

use account::Account;
pub use account::Traffic;
use changed::Changed;
use free::FreeBlocks;
use map::{INITIAL, Map};
use reset::Tables;
use reverse::Reverse;
use slc::SlcPool;
use stale::Stale;

/// A page that is nowhere: never written, or deallocated.
const UNMAPPED: u32 = u32::MAX;
/// In the reverse map: a slot that was programmed without data.
const PADDING: u32 = u32::MAX;
/// Bit of a block's count that says it must not be collected: free, open, or being collected.
const BUSY: u16 = 0x8000;
/// Free blocks of a die that only collection may open, so that it can always finish.
const COLLECTION_RESERVE: u32 = 1;

/// Who writes into an open block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Writer {
    /// The host, through the write buffer.
    Host = 0,
    /// Garbage collection.
    Collection = 1,
    /// The host, into blocks of one bit a cell.
    Slc = 2,
}

#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    block: Block,
    next: u32,
}

/// How many free blocks a die keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Watermark {
    /// A die with at most this many free blocks collects, as fast as the host writes; at least 2.
    pub low: u32,
}

impl Watermark {
    /// Blocks of a die that hold no data in the steady state: free ones and open ones.
    pub fn spare_blocks(self) -> u32 {
        self.low + 2
    }
}

/// The translation layer of one drive.
#[derive(Clone, Debug)]
pub struct Ftl {
    shape: Shape,
    by: Divisors,
    watermark: Watermark,
    /// `None` if nothing was written at the start.
    layout: Option<Layout>,
    map: Map,
    /// By slot: zero (as in the layout), [`PADDING`], or one more than the page programmed there.
    reverse: Reverse,
    /// Slots that were programmed and are not valid any more. Means nothing for erased slots.
    stale: Stale,
    /// By block: something may have been programmed there since the start, so `reverse` may have entries of it.
    opened: Vec<bool>,
    /// By block: valid slots, and [`BUSY`].
    valid: Vec<u16>,
    free: FreeBlocks,
    open: Vec<[OpenBlock; 3]>,
    slc: Option<SlcPool>,
    traffic: Traffic,
    account: Account,
    /// By block: whether its entries of `reverse` may have changed since a state was saved.
    changed: Changed,
    /// What is in the tables does not hold yet: all pages are where the layout put them.
    asleep: bool,
}

impl Ftl {
    /// A drive with this layout, or with nothing written.
    pub fn new(shape: Shape, watermark: Watermark, layout: Option<Layout>) -> Ftl {
        Ftl::with_tables(shape, watermark, layout, Tables::new(&shape))
    }

    /// As [`Ftl::new`], in tables of this shape that hold nothing.
    fn with_tables(
        shape: Shape,
        watermark: Watermark,
        layout: Option<Layout>,
        tables: Tables,
    ) -> Ftl {
        let blocks = (shape.dies * shape.blocks) as usize;
        let closed = OpenBlock {
            block: Block(u32::MAX),
            next: shape.block_slots,
        };
        let mut ftl = Ftl {
            by: Divisors::of(&shape),
            shape,
            watermark,
            map: tables.map,
            reverse: tables.reverse,
            stale: tables.stale,
            opened: vec![false; blocks],
            valid: vec![BUSY; blocks],
            free: FreeBlocks::none_of(shape.dies),
            open: vec![[closed; 3]; shape.dies as usize],
            slc: None,
            traffic: Traffic::default(),
            account: Account::default(),
            changed: Changed::default(),
            asleep: false,
            layout: None,
        };
        for die in shape.every_die() {
            for nth in 0..shape.blocks {
                let valid = layout.as_ref().map_or(0, |layout| layout.valid(die, nth));
                let block = shape.block(die, nth);
                if valid == 0 {
                    ftl.free.push(die, block);
                } else {
                    ftl.valid[block.index()] = valid as u16;
                }
            }
            if let Some((nth, written)) = layout.as_ref().and_then(Layout::open_block) {
                ftl.reopen(die, shape.block(die, nth), written);
            }
        }
        ftl.account = Account::opened(ftl.room());
        ftl.layout = layout;
        ftl
    }

    /// Slots that are erased and may be programmed.
    fn room(&self) -> u64 {
        let slots = u64::from(self.shape.block_slots);
        let open = self.open.iter().flatten();
        let rest: u64 = open.map(|open| slots - u64::from(open.next)).sum();
        u64::from(self.free.all()) * slots + rest
    }

    /// Lets up to `most` free blocks of each die be written with one bit a cell, of `bits` otherwise. Where there is no room for another,
    /// the host waits until one has been emptied if the drive `folds`, and writes other blocks if not.
    pub fn with_slc(self, most: u32, bits: u32, folds: bool) -> Ftl {
        let page = self.shape.page_slots;
        let slots = self.shape.block_slots / bits / page * page;
        self.with_slc_of(most, slots, folds)
    }

    /// As [`Ftl::with_slc`], with so many slots in such a block.
    fn with_slc_of(mut self, most: u32, slots: u32, folds: bool) -> Ftl {
        let blocks = self.valid.len();
        let dies = self.shape.dies;
        self.slc = Some(SlcPool::new(most, slots, folds, dies, blocks));
        self
    }

    /// The blocks of one bit a cell of a die whose host waits for them, as long as it has some.
    #[inline]
    fn folding(&self, die: Die) -> Option<&SlcPool> {
        let slc = self.slc.as_ref()?;
        (slc.folds && slc.used(die) > 0).then_some(slc)
    }

    /// Where the host's next page on a die goes; `None` if it has to wait for collection.
    #[inline]
    pub fn host_writer(&self, die: Die) -> Option<Writer> {
        if self.has_page(die, Writer::Slc) {
            return Some(Writer::Slc);
        }
        let other = self.folding(die).is_none() && self.has_page(die, Writer::Host);
        other.then_some(Writer::Host)
    }

    /// Whether collection has to make a block free before the host can have a page of a die.
    #[inline]
    pub fn host_waits(&self, die: Die) -> bool {
        match self.folding(die) {
            Some(_) => !self.has_page(die, Writer::Slc),
            None => !self.has_page(die, Writer::Host),
        }
    }

    /// What a page of the host's takes from a die's budget: the room that it uses up, which is more in blocks of one bit a cell.
    #[inline]
    pub fn host_price(&self, die: Die) -> i64 {
        let price = page_price(&self.shape);
        match self.folding(die) {
            Some(slc) => price * i64::from(self.shape.block_slots) / i64::from(slc.slots),
            None => price,
        }
    }

    /// Blocks of a die that hold one bit a cell.
    pub fn slc_blocks(&self, die: Die) -> u32 {
        self.slc.as_ref().map_or(0, |slc| slc.used(die))
    }

    /// Whether a slot is in a block of one bit a cell.
    #[inline]
    pub fn is_slc(&self, slot: Slot) -> bool {
        let block = self.by.block_of(slot).index();
        self.slc.as_ref().is_some_and(|slc| slc.is(block))
    }

    /// Makes a block of the layout the one that collection goes on writing.
    fn reopen(&mut self, die: Die, block: Block, written: u32) {
        if self.valid[block.index()] & !BUSY == 0 || written == self.shape.block_slots {
            return;
        }
        self.valid[block.index()] |= BUSY;
        self.opened[block.index()] = true;
        self.open[die.index()][Writer::Collection as usize] = OpenBlock {
            block,
            next: written,
        };
    }

    /// The shape of the array.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What has been done so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// A unit of host data, or of padding, will need a slot: it takes its part of what making room has cost.
    #[inline]
    pub fn charge(&mut self) {
        self.account.charge();
    }

    /// Copies that the next unit will be charged.
    pub fn price(&self) -> f64 {
        self.account.price()
    }

    /// Copies that collection has made for the room of all units charged.
    pub fn charged(&self) -> f64 {
        self.account.charged()
    }

    /// Erased blocks over all blocks.
    pub fn free_share(&self) -> f64 {
        f64::from(self.free.all()) / self.valid.len() as f64
    }

    /// Takes note that the newest version of `page` is in a slot of the write buffer; returns where the last one was.
    #[inline]
    pub fn stage(&mut self, page: Page, held: BufferSlot) -> Place {
        let value = self.buffer_base() + held.0;
        self.replace(page, value)
    }

    /// Forgets a page; returns where it was.
    pub fn deallocate(&mut self, page: Page) -> Place {
        self.replace(page, UNMAPPED)
    }

    #[inline]
    fn replace(&mut self, page: Page, value: u32) -> Place {
        let entry = core::mem::replace(self.map.entry(page), value);
        let old = self.place(self.resolve(entry, page));
        if let Place::Flash(slot) = old {
            self.invalidate(slot);
        }
        old
    }

    /// Takes note that a page of the write buffer has been programmed into `slot`. False if it was overwritten or
    /// deallocated meanwhile, so that the slot is stale.
    #[inline]
    pub fn settle(&mut self, page: Page, held: BufferSlot, slot: Slot) -> bool {
        self.traffic.host += 1;
        let expected = self.buffer_base() + held.0;
        let entry = self.map.entry(page);
        let newest = *entry == expected;
        if newest {
            *entry = slot.0 + 1;
        }
        self.programmed(slot, page, newest);
        newest
    }

    /// The logical page that is valid in `slot`, if one is. Collection asks for every slot of a victim.
    #[inline(always)]
    pub fn valid_page(&self, slot: Slot) -> Option<Page> {
        if self.asleep {
            return self.layout.as_ref()?.page_of(slot);
        }
        if self.stale.is(slot) {
            return None;
        }
        match self.reverse.get(slot) {
            PADDING => None,
            0 => self.layout.as_ref()?.page_of(slot),
            page => Some(Page(page - 1)),
        }
    }

    /// Takes note of what was programmed into `slot`, and whether it is still the page's newest version.
    #[inline]
    fn programmed(&mut self, slot: Slot, page: Page, newest: bool) {
        let block = self.by.block_of(slot).index();
        self.reverse.set(slot, page.0 + 1);
        self.changed.mark(block);
        if newest {
            self.stale.remove(slot);
            self.valid[block] += 1;
        } else {
            self.stale.insert(slot);
        }
    }

    /// Takes note that what is in `slot` is not valid any more.
    #[inline]
    fn invalidate(&mut self, slot: Slot) {
        self.stale.insert_later(slot);
        self.valid[self.by.block_of(slot).index()] -= 1;
    }

    /// To be called before many [`Ftl::valid_page`]s: sets what [`Ftl::stage`] has put off.
    #[inline]
    pub fn catch_up(&mut self) {
        self.stale.catch_up();
    }

    /// To be called before many [`Ftl::relocate`]s with the pages that will be moved: brings their entries into the
    /// cache.
    #[inline]
    pub fn touch_each(&self, pages: impl Iterator<Item = Page> + Clone) {
        self.map.touch(pages);
    }

    /// Tells where those tables are in memory that are looked up at random all over. (The reverse map is not: it is gone
    /// through block by block.) They stay there.
    pub fn scattered_tables(&mut self, tell: &mut dyn FnMut(core::ops::Range<*const u8>)) {
        self.map.tables().into_iter().for_each(&mut *tell);
        tell(self.stale.table());
    }

    /// Takes note that collection has programmed the copy of `page` from slot `from` into `to`. False if the page was
    /// written or deallocated meanwhile.
    #[inline]
    pub fn relocate(&mut self, page: Page, from: Slot, to: Slot) -> bool {
        self.traffic.moved += 1;
        self.account.copied();
        self.stale.catch_up();
        debug_assert!(!self.asleep);
        let entry = self.map.entry(page);
        // A page that has not been written since the start was read from where the layout put it.
        let newest = *entry == INITIAL || *entry == from.0 + 1;
        if newest {
            *entry = to.0 + 1;
        }
        debug_assert_eq!(newest, self.valid_page(from) == Some(page));
        if newest {
            self.stale.insert(from);
            self.valid[self.by.block_of(from).index()] -= 1;
        }
        self.programmed(to, page, newest);
        newest
    }

    /// Takes note of slots that collection has programmed and had begun before time zero: where their units are is known from
    /// the warm-up, and so is what room has cost.
    pub fn copies_programmed(&mut self, slots: u32) {
        self.traffic.moved += u64::from(slots);
    }

    /// Takes note that a slot was programmed without data, to complete a page of the host's or of collection's.
    #[inline]
    pub fn pad(&mut self, slot: Slot, writer: Writer) {
        self.traffic.padded += 1;
        if writer == Writer::Collection {
            self.account.copied();
        } else {
            self.account.charge();
        }
        self.reverse.set(slot, PADDING);
        self.changed.mark(self.by.block_of(slot).index());
    }

    /// The first slot of the next page of a die for this writer, opening a block if need be; `None` if the die has no
    /// block left that this writer may open.
    pub fn take_page(&mut self, die: Die, writer: Writer) -> Option<Slot> {
        if !self.has_page(die, writer) {
            return None;
        }
        let limit = self.block_limit(writer);
        let shape = self.shape;
        let open = &mut self.open[die.index()][writer as usize];
        if open.next >= limit {
            let block = self.free.pop(die)?;
            self.opened[block.index()] = true;
            *open = OpenBlock { block, next: 0 };
            if let (Writer::Slc, Some(slc)) = (writer, &mut self.slc) {
                slc.opened(die, block);
            }
        }
        let slot = shape.first_slot(open.block).plus(open.next);
        open.next += shape.page_slots;
        // The rest of a block with one bit a cell is no room.
        let last = open.next >= limit;
        let lost = if last { shape.block_slots - limit } else { 0 };
        self.account.taken(shape.page_slots + lost);
        Some(slot)
    }

    /// Slots that this writer puts into a block.
    #[inline]
    fn block_limit(&self, writer: Writer) -> u32 {
        match (writer, &self.slc) {
            (Writer::Slc, Some(slc)) => slc.slots,
            _ => self.shape.block_slots,
        }
    }

    /// Whether [`Ftl::take_page`] would give this writer a page.
    #[inline]
    pub fn has_page(&self, die: Die, writer: Writer) -> bool {
        let free = self.free.of(die);
        let may_open = match (writer, &self.slc) {
            (Writer::Host, _) => free > COLLECTION_RESERVE,
            (Writer::Collection, _) => free > 0,
            // Only from blocks that nobody will miss soon, unless others are emptied for it.
            (Writer::Slc, Some(slc)) => {
                let kept = match slc.folds && slc.used(die) > 0 {
                    true => COLLECTION_RESERVE,
                    false => self.watermark.low + 1,
                };
                free > kept && slc.may_open(die)
            }
            (Writer::Slc, None) => return false,
        };
        may_open || self.open[die.index()][writer as usize].next < self.block_limit(writer)
    }

    /// To be called when the program of the page at `slot` has ended: a block that is full may be collected from now.
    #[inline]
    pub fn page_programmed(&mut self, slot: Slot) {
        let block = self.by.block_of(slot);
        let limit = match &self.slc {
            Some(slc) if slc.is(block.index()) => slc.slots,
            _ => self.shape.block_slots,
        };
        let within = slot.0 - block.0 * self.shape.block_slots;
        if within + self.shape.page_slots == limit {
            self.valid[block.index()] &= !BUSY;
        }
    }

    /// Whether a die is so short of free blocks that it should collect.
    #[inline]
    pub fn wants_collection(&self, die: Die) -> bool {
        self.free.of(die) <= self.watermark.low
    }

    /// Free blocks of a die.
    pub fn free_blocks(&self, die: Die) -> u32 {
        self.free.of(die)
    }

    /// Takes the closed block of a die with the fewest valid slots, if collecting it frees at least a page; returns
    /// it and its valid count.
    pub fn take_victim(&mut self, die: Die) -> Option<(Block, u32)> {
        let counts = &mut self.valid[self.shape.blocks_of(die)];
        let least = counts.iter().copied().min()?;
        if u32::from(least) + self.shape.page_slots > self.shape.block_slots {
            return None;
        }
        let at = counts.iter().position(|&count| count == least)?;
        counts[at] |= BUSY;
        Some((self.shape.block(die, at as u32), u32::from(least)))
    }

    /// As [`Ftl::take_victim`], but among the blocks of one bit a cell only, however full they are.
    pub fn take_slc_victim(&mut self, die: Die) -> Option<(Block, u32)> {
        let slc = self.slc.as_ref()?;
        let blocks = self.shape.blocks_of(die);
        let block = blocks
            .filter(|&block| slc.is(block) && self.valid[block] & BUSY == 0)
            .min_by_key(|&block| self.valid[block])?;
        let valid = u32::from(self.valid[block]);
        self.valid[block] |= BUSY;
        Some((Block(block as u32), valid))
    }

    /// Valid slots in a block.
    #[inline]
    pub fn valid_in(&self, block: Block) -> u32 {
        u32::from(self.valid[block.index()] & !BUSY)
    }

    /// Collection has looked at so many slots of a victim.
    #[inline]
    fn collected(&mut self, slots: u32) {
        self.account.collected(slots);
    }

    /// Takes note that a block, all of whose pages have moved, has been erased.
    pub fn erased(&mut self, block: Block) {
        debug_assert_eq!(
            self.valid[block.index()],
            BUSY,
            "erased a block with data in it"
        );
        self.traffic.erased += 1;
        // Nothing put off may come true after the block's slots have been programmed again.
        self.stale.catch_up();
        let die = self.shape.die_of_block(block);
        if let Some(slc) = &mut self.slc {
            slc.erased(die, block);
        }
        self.free.push(die, block);
    }

    /// Checks what must always hold; for tests, as it looks at every slot and page.
    ///
    /// # Panics
    /// If a page on the medium is not where the reverse map says, or a valid count is not the number of valid slots.
    pub fn check(&self) {
        let mut counted = vec![0u16; self.valid.len()];
        for page in (0..self.shape.logical).map(Page) {
            if let Place::Flash(slot) = self.locate(page) {
                assert_eq!(self.valid_page(slot), Some(page), "{page:?} in {slot:?}");
                counted[self.by.block_of(slot).index()] += 1;
            }
        }
        for (block, &count) in self.valid.iter().enumerate() {
            assert_eq!(
                count & !BUSY,
                counted[block],
                "valid count of block {block}"
            );
        }
        assert_eq!(self.free.each().count(), self.free.all() as usize);
        for block in self.free.each() {
            assert_eq!(self.valid[block.index()], BUSY, "free {block:?} holds data");
        }
    }
}
