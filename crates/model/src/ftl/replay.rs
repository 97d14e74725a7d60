//! Writing without time: the same translation layer, die after die, as fast as memory allows.
//!
//! Used to warm up a computed steady state until its write amplification converges, and as the brute-force way of
//! preconditioning (write everything, twice), with which tests compare the computed way. Dies collect in the steps of
//! the drive (see [`Collecting`]), so that each stops in the middle of a victim, as at a random moment.

use alloc::vec;
use alloc::vec::Vec;

use super::collecting::{Collecting, page_price};
use super::{Die, Ftl, FtlGeometry, PADDING, Page, Slot, Writer};
use crate::random::Stream;

/// A page being filled slot by slot.
#[derive(Clone, Copy, Debug)]
struct PartialPage {
    base: Slot,
    used: u32,
}

/// Writes pages into a translation layer without time. It must be ended with [`UntimedWriter::finish`] or [`UntimedWriter::stop`].
#[derive(Debug)]
pub struct UntimedWriter<'a> {
    ftl: &'a mut Ftl,
    host: Option<PartialPage>,
    /// Garbage collection (GC) state by die.
    collecting: Vec<Collecting>,
    next_die: Die,
    victims: u64,
    /// Sum of the valid slots of all victims.
    kept: u64,
}

impl<'a> UntimedWriter<'a> {
    /// Starts to write.
    pub fn new(ftl: &'a mut Ftl) -> UntimedWriter<'a> {
        let mut collecting = Collecting::new(&ftl.shape);
        // A die under load has no budget left, because the host uses it at once.
        collecting.budget = 0;
        let dies = ftl.shape.dies as usize;
        UntimedWriter::resume(ftl, vec![collecting; dies])
    }

    /// Continues to write from this state of GC.
    pub fn resume(ftl: &'a mut Ftl, collecting: Vec<Collecting>) -> UntimedWriter<'a> {
        UntimedWriter {
            ftl,
            host: None,
            collecting,
            next_die: Die(0),
            victims: 0,
            kept: 0,
        }
    }

    /// Writes a page to the next die.
    pub fn write(&mut self, page: Page) {
        if self.host.is_none() {
            let die = self.next_die;
            self.next_die = self.die_after(die);
            self.open_page(die);
        }
        self.put(page);
    }

    /// Writes a page to this die, which must have space for it.
    fn write_to(&mut self, page: Page, die: Die) {
        if self.host.is_none() {
            self.open_page(die);
        }
        self.put(page);
    }

    fn open_page(&mut self, mut die: Die) {
        // A die whose blocks are all full of valid data cannot accept a page until data is overwritten.
        for _ in 0..self.ftl.shape.dies {
            let price = page_price(&self.ftl.shape);
            self.earn(die, price);
            if let Some(base) = self.ftl.take_page(die, Writer::Host) {
                if self.ftl.wants_collection(die) {
                    self.collecting[die.index()].budget -= price;
                }
                self.host = Some(PartialPage { base, used: 0 });
                return;
            }
            die = self.die_after(die);
        }
        unreachable!("validated geometry leaves every drive a page to write");
    }

    /// Returns the die that follows this one.
    fn die_after(&self, die: Die) -> Die {
        Die((die.0 + 1) % self.ftl.shape.dies)
    }

    fn put(&mut self, page: Page) {
        let Some(filling) = &mut self.host else {
            return;
        };
        let slot = filling.base.plus(filling.used);
        filling.used += 1;
        let full = filling.used == self.ftl.shape.page_slots;
        let base = filling.base;
        self.ftl.replace(page, slot.0 + 1);
        self.ftl.programmed(slot, page, true);
        self.ftl.traffic.host += 1;
        self.ftl.charge();
        if full {
            self.ftl.page_programmed(base);
            self.host = None;
        }
    }

    /// Collects on a die until the host has earned `budget` and has a block to write.
    fn earn(&mut self, die: Die, budget: i64) {
        loop {
            let wants = self.ftl.wants_collection(die);
            let earned = !wants || self.collecting[die.index()].budget >= budget;
            if (earned && self.ftl.has_page(die, Writer::Host)) || !self.collect(die) {
                return;
            }
        }
    }

    /// Executes the next step of GC on a die; false if there is none.
    fn collect(&mut self, die: Die) -> bool {
        let shape = self.ftl.shape;
        let index = die.index();
        if let Some(block) = self.collecting[index].take_emptied(self.ftl) {
            self.ftl.erased(block);
            return true;
        }
        let gathered = self.collecting[index].gathered.len();
        if gathered >= shape.page_slots as usize {
            self.program_copies(die);
            return true;
        }
        if self.collecting[index].victim.is_none() && !self.next_victim(die) {
            self.program_copies(die);
            return gathered > 0;
        }
        self.ftl.catch_up();
        self.collecting[index].gather(self.ftl);
        true
    }

    fn next_victim(&mut self, die: Die) -> bool {
        if !self.ftl.wants_collection(die) {
            return false;
        }
        let collecting = &mut self.collecting[die.index()];
        let Some((victim, valid)) = self.ftl.take_victim(die) else {
            collecting.give_up(page_price(&self.ftl.shape));
            return false;
        };
        self.victims += 1;
        self.kept += u64::from(valid);
        collecting.begin(self.ftl, victim, valid);
        true
    }

    /// Programs a page of copies, padded if there are too few; does nothing if there are none.
    fn program_copies(&mut self, die: Die) {
        let gathered = &mut self.collecting[die.index()].gathered;
        if gathered.is_empty() {
            return;
        }
        let Some(base) = self.ftl.take_page(die, Writer::Collection) else {
            unreachable!("a block is kept back for collection");
        };
        let mut slot = base;
        let units = gathered.len().min(self.ftl.shape.page_slots as usize);
        for copying in gathered.drain(..units) {
            self.ftl.relocate(copying.page, copying.from, slot);
            slot = slot.plus(1);
        }
        self.pad(base, slot);
    }

    /// Completes the page at `base`, from `slot`, with padding (which is not counted as traffic).
    fn pad(&mut self, base: Slot, slot: Slot) {
        for padded in slot.0..base.0 + self.ftl.shape.page_slots {
            self.ftl.reverse.set(Slot(padded), PADDING);
        }
        self.ftl.page_programmed(base);
    }

    /// Ends with no work in progress: victims are emptied, and partly filled pages are padded.
    pub fn finish(mut self) {
        for die in self.ftl.shape.every_die() {
            while self.collecting[die.index()].victim.is_some() {
                self.collect(die);
            }
            self.program_copies(die);
            self.program_copies(die);
            while let Some(block) = self.collecting[die.index()].take_emptied(self.ftl) {
                self.ftl.erased(block);
            }
        }
        self.end_host_page();
    }

    /// Ends as at a random moment of writing: each die is at a random position between two pages of the host, after
    /// those that it has collected `ahead` for.
    fn stop(mut self, random: &mut Stream, ahead: u32) -> Vec<Collecting> {
        self.end_host_page();
        let price = page_price(&self.ftl.shape);
        for die in self.ftl.shape.every_die() {
            let part = random.uniform_below(price as u64);
            self.earn(die, i64::from(ahead) * price + part as i64);
        }
        self.collecting
    }

    fn end_host_page(&mut self) {
        if let Some(filling) = self.host.take() {
            self.pad(filling.base, filling.base.plus(filling.used));
        }
    }
}

/// Maximum number of host writes of a warm-up, so that it takes well under a second.
const MOST_WRITES: u64 = 400_000;

/// Writes at random until the write amplification of one window is within half a percent of that of the previous
/// window, or for [`MOST_WRITES`]. A window is 32 victims. Its write amplification is computed from how full they were,
/// which has far less noise than counting writes.
///
/// At the start, each die gets a random number of writes, up to one collection's worth, because after long use, dies do
/// not all collect at the same moment. At the end, each die has collected until the host has earned `ahead` pages there:
/// the copies for these pages are made and counted. Returns the GC state of each die.
pub fn warm_up(ftl: &mut Ftl, seed: u64, ahead: u32) -> Vec<Collecting> {
    const WINDOW: u64 = 32;
    let mut random = Stream::new(seed, "warm-up");
    let shape = ftl.shape;
    let mut pages_at_random = RandomOverwrite::new(&shape);
    let victims: u64 = shape
        .every_die()
        .map(|die| u64::from(least_valid(ftl, die)))
        .sum();
    let freed = u64::from(shape.block_slots).saturating_sub(victims / u64::from(shape.dies));
    let pages = freed / u64::from(shape.page_slots);
    let mut replay = UntimedWriter::new(ftl);
    let mut written = 0;
    for die in shape.every_die() {
        for _ in 0..random.uniform_below(pages.max(1)) * u64::from(shape.page_slots) {
            replay.write_to(pages_at_random.next(&mut random), die);
            written += 1;
        }
    }
    let mut last = f64::INFINITY;
    let (mut before, mut recent);
    before = (replay.victims, replay.kept);
    recent = before;
    while written < MOST_WRITES {
        recent = before;
        before = (replay.victims, replay.kept);
        while replay.victims < before.0 + WINDOW && written < MOST_WRITES {
            replay.write(pages_at_random.next(&mut random));
            written += 1;
        }
        let mean = (replay.kept - before.1) as f64 / (replay.victims - before.0).max(1) as f64;
        let slots = f64::from(shape.block_slots);
        let now = slots / (slots - mean);
        if (now - last).abs() < 0.005 * now {
            break;
        }
        last = now;
    }
    let recent = (replay.victims - recent.0, replay.kept - recent.1);
    let collecting = replay.stop(&mut random, ahead);
    value_room(ftl, &collecting, recent);
    collecting
}

/// Values the free space of a warmed-up drive at its long-term cost: copies divided by slots freed, over the last
/// victims of all dies. If there are more `recent` victims, those are used (their number, and their valid slots).
fn value_room(ftl: &mut Ftl, collecting: &[Collecting], recent: (u64, u64)) {
    let slots = ftl.shape.block_slots;
    let gains = collecting.iter().map(Collecting::gain);
    let gains = gains.filter(|&gain| gain > 0);
    let (dies, freed) = gains.fold((0, 0), |(dies, freed), gain| (dies + 1, freed + gain));
    let (victims, freed) = match recent {
        (victims, kept) if victims > dies => (victims, victims * u64::from(slots) - kept),
        _ => (dies, freed),
    };
    if freed == 0 {
        return;
    }
    let copied = victims * u64::from(slots) - freed;
    ftl.account.value(copied as f64 / freed as f64);
}

/// Random overwriting of the pages that hold data, uniformly distributed: the pages of an indirection unit are written
/// in sequence.
struct RandomOverwrite {
    together: u32,
    units: u64,
    next: u32,
}

impl RandomOverwrite {
    fn new(shape: &FtlGeometry) -> RandomOverwrite {
        RandomOverwrite {
            together: shape.together,
            units: u64::from(shape.written / shape.together),
            next: 0,
        }
    }

    fn next(&mut self, random: &mut Stream) -> Page {
        if self.next % self.together == 0 {
            self.next = random.uniform_below(self.units) as u32 * self.together;
        }
        self.next += 1;
        Page(self.next - 1)
    }
}

fn least_valid(ftl: &Ftl, die: Die) -> u32 {
    let counts = &ftl.valid[ftl.shape.blocks_of(die)];
    u32::from(counts.iter().copied().min().unwrap_or(0)).min(ftl.shape.block_slots)
}

/// Writes every page that should hold data in sequence, then `fills` times as many pages at random, uniformly
/// distributed. Returns the GC state of each die.
pub fn brute_force(ftl: &mut Ftl, fills: f64, seed: u64) -> Vec<Collecting> {
    let mut random = Stream::new(seed, "brute force");
    let written = ftl.shape.written;
    let mut pages_at_random = RandomOverwrite::new(&ftl.shape);
    let mut replay = UntimedWriter::new(ftl);
    for page in (0..written).map(Page) {
        replay.write(page);
    }
    for _ in 0..(f64::from(written) * fills) as u64 {
        replay.write(pages_at_random.next(&mut random));
    }
    replay.stop(&mut random, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::{InitialLayout, NandGeometry, Watermark, closed_form_write_amplification};
    use proptest::prelude::*;

    const LOW: Watermark = Watermark { low: 3 };

    fn scaled(over_provisioning: f64) -> NandGeometry {
        let mut geometry = NandGeometry {
            channels: 4,
            dies_per_channel: 4,
            planes: 2,
            blocks_per_plane: 160,
            pages_per_block: 64,
            page_bytes: 16384,
            reserved: 0.0,
            capacity: 4096,
            indirection: 4096,
            stripe: 0,
        };
        let raw = geometry.raw_bytes() as f64;
        geometry.capacity = (raw / (1.0 + over_provisioning) / 4096.0) as u64 * 4096;
        geometry
    }

    /// Returns the write amplification of `writes` writes to the pages that hold data.
    fn measured(ftl: &mut Ftl, collecting: Vec<Collecting>, writes: u64) -> f64 {
        let written = ftl.shape.written;
        measured_below(written, ftl, collecting, writes)
    }

    /// Returns the write amplification of `writes` writes to the first `pages` pages.
    fn measured_below(pages: u32, ftl: &mut Ftl, collecting: Vec<Collecting>, writes: u64) -> f64 {
        let mut random = Stream::new(99, "measure");
        let before = *ftl.traffic();
        let mut replay = UntimedWriter::resume(ftl, collecting);
        for _ in 0..writes {
            replay.write(Page(random.uniform_below(u64::from(pages)) as u32));
        }
        replay.finish();
        ftl.traffic().write_amplification_since(&before)
    }

    fn shape_of(over_provisioning: f64, filled: f64) -> FtlGeometry {
        let shape = scaled(over_provisioning).shape(LOW.spare_blocks());
        shape.expect("valid").filled_to(filled)
    }

    /// Returns an FTL in the computed steady state.
    fn steady(shape: FtlGeometry, seed: u64) -> (Ftl, Vec<Collecting>) {
        let mut ftl = Ftl::new(
            shape,
            LOW,
            Some(InitialLayout::steady(shape, LOW.low, seed)),
        );
        let warm = warm_up(&mut ftl, seed, 0);
        (ftl, warm)
    }

    /// Returns the write amplification in the computed steady state.
    fn amplification(over_provisioning: f64, filled: f64, seed: u64) -> f64 {
        let (mut ftl, warm) = steady(shape_of(over_provisioning, filled), seed);
        let writes = u64::from(ftl.shape.written);
        measured(&mut ftl, warm, writes)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn what_is_not_written_lowers_write_amplification(
            over_provisioning in 0.1f64..0.4, more in 0.02f64..0.2,
            filled in 0.3f64..1.0, less in 0.05f64..0.2, seed: u64,
        ) {
            let as_it_is = amplification(over_provisioning, filled, seed);
            let with_more_spare = amplification(over_provisioning + more, filled, seed);
            let with_less_data = amplification(over_provisioning, filled - less, seed);
            // If almost nothing is copied, there is almost nothing to gain.
            let least = |gained: f64| (as_it_is - 0.1 * (as_it_is - 1.0) * gained).max(1.0) + 2e-3;
            prop_assert!(with_more_spare < least(more), "{as_it_is}, {with_more_spare}");
            prop_assert!(with_less_data < least(less), "{as_it_is}, {with_less_data}");
        }
    }

    /// A fifth of a drive that is never written has the same effect whether it is inaccessible or trimmed.
    #[test]
    fn out_of_reach_or_trimmed_is_the_same_spare_area() {
        let trimmed = amplification(0.1, 0.8, 3);
        let out_of_reach = amplification(1.1 / 0.8 - 1.0, 1.0, 3);
        assert!((trimmed / out_of_reach - 1.0).abs() < 0.01);
        assert!(trimmed < 0.5 * amplification(0.1, 1.0, 3));
    }

    /// Writes to trimmed pages remove that spare area: in the end the drive equals a full one.
    #[test]
    fn a_drive_that_fills_up_amplifies_as_a_full_one() {
        let (mut ftl, warm) = steady(shape_of(0.2, 0.7), 7);
        let logical = ftl.shape.logical;
        measured_below(logical, &mut ftl, warm, 4 * u64::from(logical));
        let idle = (0..ftl.shape.dies).map(|_| Collecting::new(&ftl.shape));
        let idle: Vec<_> = idle.collect();
        let filled_up = measured_below(logical, &mut ftl, idle, u64::from(logical));
        ftl.check();
        let full = amplification(0.2, 1.0, 7);
        assert!(
            (filled_up / full - 1.0).abs() < 0.03,
            "{filled_up:.3}, {full:.3}"
        );
    }

    #[test]
    fn computed_and_replayed_steady_states_amplify_alike() {
        for (over_provisioning, filled) in [
            (0.12, 1.0),
            (0.28, 1.0),
            (0.5, 1.0),
            (0.12, 0.85),
            (0.28, 0.6),
        ] {
            let shape = shape_of(over_provisioning, filled);
            let (mut computed, warm) = steady(shape, 5);
            let mut replayed = Ftl::new(shape, LOW, None);
            let forced = brute_force(&mut replayed, 2.0, 6);
            // Two fills long: after a fill, dies collect in step, and a shorter window would see part of a period.
            let writes = 2 * u64::from(shape.written);
            let a = measured(&mut computed, warm, writes);
            let b = measured(&mut replayed, forced, writes);
            computed.check();
            replayed.check();
            assert!(
                (a / b - 1.0).abs() < 0.02,
                "at {over_provisioning}, {filled}: computed {a:.4}, replayed {b:.4}"
            );
        }
    }

    #[test]
    fn write_amplification_is_that_of_the_closed_formula() {
        for (over_provisioning, filled) in [(0.2, 1.0), (0.4, 1.0), (0.1, 0.9), (0.2, 0.7)] {
            let shape = shape_of(over_provisioning, filled);
            let (mut ftl, warm) = steady(shape, 5);
            let got = measured(&mut ftl, warm, u64::from(shape.written));
            // Blocks that hold data: all except the free ones and half of each open one.
            let blocks = f64::from(shape.blocks) - f64::from(LOW.low) - 1.0;
            let share = f64::from(shape.written)
                / (f64::from(shape.dies) * blocks * f64::from(shape.block_slots));
            let expected = closed_form_write_amplification(share);
            assert!(
                (got / expected - 1.0).abs() < 0.03,
                "got {got:.3}, formula {expected:.3}"
            );
        }
    }
}
