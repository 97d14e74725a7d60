//! Flash translation layer (FTL) of a NAND drive: the mapping between pages and slots, without any notion of time.
//!
//! The page map has 4 bytes per entry in both directions. Invalidation is lazy: a slot is valid if the map still points
//! to it. Each die has one open block for the host and one for garbage collection (GC). GC selects its victim greedily
//! among a die's closed blocks. `media::nand::Nand` looks up locations here and reports what has been programmed.
//! [`UntimedWriter`] writes without time, for warm-up and as the brute-force way of preconditioning.
//!
//! Not modelled: separation of hot and cold data, wear levelling beyond using erased blocks in order, and the medium
//! traffic of the map itself (the whole map is in the DRAM of these drives).

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
pub use geometry::{FtlGeometry, GeometryError, NandGeometry, UNIT};
pub use layout::{InitialLayout, closed_form_write_amplification, victim_share};
pub use numbers::{Block, BufferSlot, Die, Page, Slot};
pub use permutation::Permutation;
pub use place::{PageLocation, PrecomputedSlot};
pub use replay::{UntimedWriter, brute_force, warm_up};
pub use reset::FtlSnapshot;

use alloc::vec;
use alloc::vec::Vec;

use account::Account;
pub use account::Traffic;
use changed::ChangeTracker;
use free::FreeBlocks;
use map::{INITIAL, Map};
use reset::FtlTables;
use reverse::Reverse;
use slc::SlcPool;
use stale::Stale;

/// A page without a location: never written, or deallocated.
const UNMAPPED: u32 = u32::MAX;
/// In the reverse map: a slot that was programmed without data.
const PADDING: u32 = u32::MAX;
/// Bit of a block's count that marks it as excluded from GC: free, open, or being collected.
const BUSY: u16 = 0x8000;
/// Free blocks per die that only GC may open, so that GC can always finish.
const COLLECTION_RESERVE: u32 = 1;

/// The writer of an open block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Writer {
    /// The host, through the write buffer.
    Host = 0,
    /// Garbage collection.
    Collection = 1,
    /// The host, into blocks of one bit per cell (pSLC).
    Slc = 2,
}

#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    block: Block,
    next: u32,
}

/// Threshold of free blocks per die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Watermark {
    /// A die with at most this many free blocks collects as fast as the host writes; at least 2.
    pub low: u32,
}

impl Watermark {
    /// Returns the blocks of a die that hold no data in steady state: free ones and open ones.
    pub fn spare_blocks(self) -> u32 {
        self.low + 2
    }
}

/// The flash translation layer of one drive.
#[derive(Clone, Debug)]
pub struct Ftl {
    shape: FtlGeometry,
    by: Divisors,
    watermark: Watermark,
    /// Initial layout; `None` if nothing was written at the start.
    layout: Option<InitialLayout>,
    map: Map,
    /// By slot: zero (as in the layout), [`PADDING`], or one more than the page programmed there.
    reverse: Reverse,
    /// Slots that were programmed and are no longer valid. Undefined for erased slots.
    stale: Stale,
    /// By block: whether it may have been programmed since the start, so that `reverse` may have entries for it.
    opened: Vec<bool>,
    /// By block: valid slots, and [`BUSY`].
    valid: Vec<u16>,
    free: FreeBlocks,
    open: Vec<[OpenBlock; 3]>,
    slc: Option<SlcPool>,
    traffic: Traffic,
    account: Account,
    /// By block: whether its entries of `reverse` may have changed since a state was saved.
    changed: ChangeTracker,
    /// The content of the tables does not apply yet: all pages are at their initial locations.
    asleep: bool,
}

impl Ftl {
    /// Creates the FTL of a drive with this layout, or with nothing written.
    pub fn new(shape: FtlGeometry, watermark: Watermark, layout: Option<InitialLayout>) -> Ftl {
        Ftl::with_tables(shape, watermark, layout, FtlTables::new(&shape))
    }

    /// Like [`Ftl::new`], with tables of this shape that are empty.
    fn with_tables(
        shape: FtlGeometry,
        watermark: Watermark,
        layout: Option<InitialLayout>,
        tables: FtlTables,
    ) -> Ftl {
        let blocks = (shape.dies * shape.blocks) as usize;
        let closed = OpenBlock {
            block: Block(u32::MAX),
            next: shape.block_slots,
        };
        let mut ftl = Ftl {
            by: Divisors::new(&shape),
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
            changed: ChangeTracker::default(),
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
            if let Some((nth, written)) = layout.as_ref().and_then(InitialLayout::open_block) {
                ftl.reopen(die, shape.block(die, nth), written);
            }
        }
        ftl.account = Account::opened(ftl.room());
        ftl.layout = layout;
        ftl
    }

    /// Returns the slots that are erased and can be programmed.
    fn room(&self) -> u64 {
        let slots = u64::from(self.shape.block_slots);
        let open = self.open.iter().flatten();
        let rest: u64 = open.map(|open| slots - u64::from(open.next)).sum();
        u64::from(self.free.all()) * slots + rest
    }

    /// Allows up to `most` free blocks of each die to be written as pSLC (one bit per cell instead of `bits`). If
    /// another pSLC block does not fit, the host waits until one has been emptied if the drive `folds`, and writes
    /// normal blocks otherwise.
    pub fn with_slc(self, most: u32, bits: u32, folds: bool) -> Ftl {
        let page = self.shape.page_slots;
        let slots = self.shape.block_slots / bits / page * page;
        self.with_slc_of(most, slots, folds)
    }

    /// Like [`Ftl::with_slc`], with `slots` slots per pSLC block.
    fn with_slc_of(mut self, most: u32, slots: u32, folds: bool) -> Ftl {
        let blocks = self.valid.len();
        let dies = self.shape.dies;
        self.slc = Some(SlcPool::new(most, slots, folds, dies, blocks));
        self
    }

    /// Returns the pSLC blocks of a die whose host waits for them to be folded, if it has any.
    #[inline]
    fn folding(&self, die: Die) -> Option<&SlcPool> {
        let slc = self.slc.as_ref()?;
        (slc.folds && slc.used(die) > 0).then_some(slc)
    }

    /// Returns the block type of the host's next page on a die; `None` if it must wait for GC.
    #[inline]
    pub fn host_writer(&self, die: Die) -> Option<Writer> {
        if self.has_page(die, Writer::Slc) {
            return Some(Writer::Slc);
        }
        let other = self.folding(die).is_none() && self.has_page(die, Writer::Host);
        other.then_some(Writer::Host)
    }

    /// Whether GC must free a block before the host can get a page of a die.
    #[inline]
    pub fn host_waits(&self, die: Die) -> bool {
        match self.folding(die) {
            Some(_) => !self.has_page(die, Writer::Slc),
            None => !self.has_page(die, Writer::Host),
        }
    }

    /// Returns the price of a host page in a die's budget: the space that it uses, which is larger in pSLC blocks.
    #[inline]
    pub fn host_price(&self, die: Die) -> i64 {
        let price = page_price(&self.shape);
        match self.folding(die) {
            Some(slc) => price * i64::from(self.shape.block_slots) / i64::from(slc.slots),
            None => price,
        }
    }

    /// Returns the number of pSLC blocks of a die.
    pub fn slc_blocks(&self, die: Die) -> u32 {
        self.slc.as_ref().map_or(0, |slc| slc.used(die))
    }

    /// Whether a slot is in a pSLC block.
    #[inline]
    pub fn is_slc(&self, slot: Slot) -> bool {
        let block = self.by.block_of(slot).index();
        self.slc.as_ref().is_some_and(|slc| slc.is(block))
    }

    /// Makes a block of the layout the open block of GC.
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

    /// Returns the shape of the array.
    pub fn shape(&self) -> &FtlGeometry {
        &self.shape
    }

    /// Returns the counters so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Charges a unit of host data, or of padding, which will use a slot: it is charged its share of the cost of
    /// freeing space.
    #[inline]
    pub fn charge(&mut self) {
        self.account.charge();
    }

    /// Returns the GC copies that the next unit will be charged.
    pub fn price(&self) -> f64 {
        self.account.price()
    }

    /// Returns the GC copies charged to all units so far.
    pub fn charged(&self) -> f64 {
        self.account.charged()
    }

    /// Returns the number of erased blocks divided by that of all blocks.
    pub fn free_share(&self) -> f64 {
        f64::from(self.free.all()) / self.valid.len() as f64
    }

    /// Records that the newest version of `page` is in a slot of the write buffer; returns its previous location.
    #[inline]
    pub fn stage(&mut self, page: Page, held: BufferSlot) -> PageLocation {
        let value = self.buffer_base() + held.0;
        self.replace(page, value)
    }

    /// Deallocates a page; returns its previous location.
    pub fn deallocate(&mut self, page: Page) -> PageLocation {
        self.replace(page, UNMAPPED)
    }

    #[inline]
    fn replace(&mut self, page: Page, value: u32) -> PageLocation {
        let entry = core::mem::replace(self.map.entry(page), value);
        let old = self.place(self.resolve(entry, page));
        if let PageLocation::Flash(slot) = old {
            self.invalidate(slot);
        }
        old
    }

    /// Records that a page of the write buffer has been programmed into `slot`. Returns false if the page was
    /// overwritten or deallocated meanwhile, so that the slot is stale.
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

    /// Returns the logical page that is valid in `slot`, if any. GC calls this for every slot of a victim.
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

    /// Records what was programmed into `slot`, and whether it is still the page's newest version.
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

    /// Records that the content of `slot` is no longer valid.
    #[inline]
    fn invalidate(&mut self, slot: Slot) {
        self.stale.insert_later(slot);
        self.valid[self.by.block_of(slot).index()] -= 1;
    }

    /// Must be called before a series of [`Ftl::valid_page`] calls: applies the updates that [`Ftl::stage`] has
    /// deferred.
    #[inline]
    pub fn catch_up(&mut self) {
        self.stale.catch_up();
    }

    /// Should be called before a series of [`Ftl::relocate`] calls, with the pages that will be moved: brings their
    /// entries into the cache.
    #[inline]
    pub fn touch_each(&self, pages: impl Iterator<Item = Page> + Clone) {
        self.map.touch(pages);
    }

    /// Reports the memory ranges of the tables that are accessed at random. (The reverse map is not: it is accessed
    /// block by block.) They do not move.
    pub fn scattered_tables(&mut self, tell: &mut dyn FnMut(core::ops::Range<*const u8>)) {
        self.map.tables().into_iter().for_each(&mut *tell);
        tell(self.stale.table());
    }

    /// Records that GC has programmed the copy of `page` from slot `from` into `to`. Returns false if the page was
    /// written or deallocated meanwhile.
    #[inline]
    pub fn relocate(&mut self, page: Page, from: Slot, to: Slot) -> bool {
        self.traffic.moved += 1;
        self.account.copied();
        self.stale.catch_up();
        debug_assert!(!self.asleep);
        let entry = self.map.entry(page);
        // A page that has not been written since the start was read from its initial location.
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

    /// Records slots that GC has programmed after it began before time zero: the locations of their units are known
    /// from the warm-up, and so is the cost of space.
    pub fn copies_programmed(&mut self, slots: u32) {
        self.traffic.moved += u64::from(slots);
    }

    /// Records that a slot was programmed without data, to complete a page of the host or of GC.
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

    /// Returns the first slot of the next page of a die for this writer, opening a block if necessary; `None` if the
    /// die has no block left that this writer may open.
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
        // The rest of a pSLC block is not usable space.
        let last = open.next >= limit;
        let lost = if last { shape.block_slots - limit } else { 0 };
        self.account.use_slots(shape.page_slots + lost);
        Some(slot)
    }

    /// Returns the slots that this writer puts into a block.
    #[inline]
    fn block_limit(&self, writer: Writer) -> u32 {
        match (writer, &self.slc) {
            (Writer::Slc, Some(slc)) => slc.slots,
            _ => self.shape.block_slots,
        }
    }

    /// Whether [`Ftl::take_page`] would return a page for this writer.
    #[inline]
    pub fn has_page(&self, die: Die, writer: Writer) -> bool {
        let free = self.free.count(die);
        let may_open = match (writer, &self.slc) {
            (Writer::Host, _) => free > COLLECTION_RESERVE,
            (Writer::Collection, _) => free > 0,
            // Only from blocks that will not be needed soon, unless others are emptied for it.
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

    /// Must be called when the program of the page at `slot` has ended: a full block can then be collected.
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

    /// Whether the number of a die's free blocks is low enough that it should collect.
    #[inline]
    pub fn wants_collection(&self, die: Die) -> bool {
        self.free.count(die) <= self.watermark.low
    }

    /// Returns the number of free blocks of a die.
    pub fn free_blocks(&self, die: Die) -> u32 {
        self.free.count(die)
    }

    /// Removes and returns the closed block of a die with the fewest valid slots, and its valid count, if collecting it
    /// frees at least a page.
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

    /// Like [`Ftl::take_victim`], but only among pSLC blocks, however full they are.
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

    /// Returns the number of valid slots in a block.
    #[inline]
    pub fn valid_in(&self, block: Block) -> u32 {
        u32::from(self.valid[block.index()] & !BUSY)
    }

    /// GC has examined `slots` slots of a victim.
    #[inline]
    fn collected(&mut self, slots: u32) {
        self.account.collected(slots);
    }

    /// Records that a block, all of whose pages have moved, has been erased.
    pub fn erased(&mut self, block: Block) {
        debug_assert_eq!(
            self.valid[block.index()],
            BUSY,
            "erased a block with data in it"
        );
        self.traffic.erased += 1;
        // Deferred updates must be applied before the block's slots are programmed again.
        self.stale.catch_up();
        let die = self.shape.die_of_block(block);
        if let Some(slc) = &mut self.slc {
            slc.erased(die, block);
        }
        self.free.push(die, block);
    }

    /// Checks the invariants; for tests, because it examines every slot and page.
    ///
    /// # Panics
    /// If a page on the medium is not in the slot that the reverse map names, or a valid count is not the number of
    /// valid slots.
    pub fn check(&self) {
        let mut counted = vec![0u16; self.valid.len()];
        for page in (0..self.shape.logical).map(Page) {
            if let PageLocation::Flash(slot) = self.locate(page) {
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
