//! Garbage collection of a die, one page at a time: sense a page of the victim, gather its valid units, program a page
//! of copies when one is full, erase the block when all its copies are safe.
//!
//! A die short of free blocks takes host pages only as fast as collection earns them ([`crate::ftl::Collecting`]), and
//! collects no further ahead than a few pages. So the work is spread evenly, is the same at light and at heavy load, and
//! cannot deadlock, because one block is kept back for copies.
//!
//! Each unit that is moved also costs the firmware time, and there is one firmware for all dies: with many dies that,
//! and not they, bounds how much a drive can write at random (`docs/decisions/0041-what-collection-costs-firmware.md`).

use super::channel::Way;
use super::die::{Cause, Loading, Work};
use super::{KIND_SHIFT, MOVED, NONE, Nand, TIMER};
use crate::ftl::{UNIT, Writer};
use crate::time::{Span, Time};

impl Nand {
    /// Does the next step of collection on an idle die; false if there is nothing to do.
    pub(super) fn collect(&mut self, now: Time, die: u32) -> bool {
        loop {
            if self.erase_emptied(now, die) {
                return true;
            }
            if self.dies[die as usize].moved > now {
                return false;
            }
            let page_slots = self.shape.page_slots as usize;
            let collecting = &self.dies[die as usize].collecting;
            if collecting.gathered.len() >= page_slots {
                return self.program_copies(now, die);
            }
            if collecting.victim == NONE && !self.next_victim(die) {
                // Nothing more to read: what has been gathered goes out as a padded page.
                if self.dies[die as usize].collecting.gathered.is_empty() {
                    return false;
                }
                return self.program_copies(now, die);
            }
            if self.sense_victim(now, die) {
                return true;
            }
        }
    }

    fn next_victim(&mut self, die: u32) -> bool {
        let free = self.ftl.free_blocks(die);
        let pending = self.dies[die as usize].collecting.emptied.len() as u32;
        let background = self.background && free + pending < self.config.collection.background_free;
        let short = self.ftl.wants_collection(die) || background;
        // Blocks of one bit a cell are emptied when there is time.
        let fold = self.background && !short && self.ftl.slc_blocks(die) > 0;
        if !short && !fold {
            return false;
        }
        let taken = if fold {
            self.ftl.take_slc_victim(die)
        } else {
            self.ftl.take_victim(die)
        };
        let Some((victim, valid)) = taken else {
            if fold {
                return false;
            }
            // Nothing to earn: the host may use what is left, and the die looks again when no other can take a page.
            self.starved.insert(die);
            self.dies[die as usize].collecting.give_up(&self.shape);
            return false;
        };
        self.dies[die as usize]
            .collecting
            .begin(&self.shape, victim, valid);
        true
    }

    /// Starts the erase of a block whose copies are all programmed, if there is one.
    fn erase_emptied(&mut self, now: Time, die: u32) -> bool {
        let collecting = &mut self.dies[die as usize].collecting;
        let Some(slot) = collecting.take_emptied(&self.ftl) else {
            return false;
        };
        let until = now + self.config.timing.erase;
        self.begin(now, die, Work::Erase(slot), Cause::Erase, until);
        true
    }

    /// Senses the next page of the victim that holds valid units; false if the victim has none left.
    fn sense_victim(&mut self, now: Time, die: u32) -> bool {
        self.ftl.catch_up();
        let collecting = &mut self.dies[die as usize].collecting;
        let Some((first, found)) = collecting.gather(&self.ftl) else {
            return false;
        };
        collecting.sensing = found;
        self.tally.senses += 1;
        self.tally.medium_read += u64::from(found) * u64::from(UNIT);
        let until = now + self.sense_time(first);
        self.begin(now, die, Work::CollectSense, Cause::Collection, until);
        true
    }

    /// The sensed units cross the channel; programming them comes later on the same channel, so after them.
    pub(super) fn copies_sensed(&mut self, now: Time, die: u32) {
        let units = self.dies[die as usize].collecting.sensing;
        self.book_move(now, die, units);
        if !self.config.timing.cache_read {
            self.hold(now, die, Work::CollectTransfer, Cause::Collection);
        }
        self.move_page(now, die, Way::Out, units);
    }

    /// The firmware looks the sensed units up and books their new places. Until then the die collects no further; it
    /// does all else.
    fn book_move(&mut self, now: Time, die: u32, units: u32) {
        let service = self.config.collection.per_unit * u64::from(units);
        if service > Span::ZERO {
            self.wait_for_mover(now, die, service);
        }
    }

    /// Puts a die into the firmware's queue.
    pub(super) fn wait_for_mover(&mut self, now: Time, die: u32, service: Span) {
        let (_, moved) = self.mover.book(now, service);
        self.dies[die as usize].moved = moved;
        self.events.push(moved, MOVED << KIND_SHIFT | die);
    }

    fn program_copies(&mut self, now: Time, die: u32) -> bool {
        let Some(slot) = self.ftl.take_page(die, Writer::Collection) else {
            debug_assert!(false, "no page for collection on die {die}");
            return false;
        };
        let collecting = &mut self.dies[die as usize].collecting;
        let units = collecting
            .gathered
            .len()
            .min(self.shape.page_slots as usize);
        collecting
            .programming
            .extend(collecting.gathered.drain(..units));
        let loading = Loading {
            work: Work::CollectProgram(slot),
            cause: Cause::Collection,
            program: self.program_time(slot),
        };
        self.load(now, die, loading, units as u32);
        true
    }

    pub(super) fn copies_programmed(&mut self, die: u32, base: u32) {
        let collecting = &mut self.dies[die as usize].collecting;
        let mut slot = base;
        let pages = collecting.programming.iter().map(|copying| copying.page);
        self.ftl.touch_each(pages);
        for copying in collecting.programming.drain(..) {
            self.ftl.relocate(copying.page, copying.from, slot);
            slot += 1;
        }
        for padded in slot..base + self.shape.page_slots {
            self.ftl.pad(padded, Writer::Collection);
        }
        self.ftl.page_programmed(base);
    }

    /// Whether the drive has a use for idle time.
    fn tidies(&self) -> bool {
        let buffered = !self.config.buffer.protected && self.buffer.used() > 0;
        self.collects_ahead() || buffered
    }

    fn collects_ahead(&self) -> bool {
        self.config.collection.background_free > 0 || self.config.slc.is_some()
    }

    /// Sets the timer that notices idleness, if it has not been noticed since the last command.
    #[inline]
    pub(super) fn arm_timer(&mut self, now: Time) {
        if self.rests || self.timer_set || self.depth > 0 || !self.tidies() {
            return;
        }
        self.timer_set = true;
        // Later than now: an event must not cause one at its own time.
        let at =
            (self.last_command + self.config.collection.idle_after).max(now + Span::from_ns(1));
        self.events.push(at, TIMER << KIND_SHIFT);
    }

    /// The drive may have been idle for long enough: a volatile buffer is emptied, and dies collect ahead of need.
    pub(super) fn idle_timer(&mut self, now: Time) {
        self.timer_set = false;
        if self.depth > 0 || now.since(self.last_command) < self.config.collection.idle_after {
            return;
        }
        self.rests = true;
        if self.collects_ahead() {
            self.warm();
            self.go_on_writing(now);
        }
        if !self.config.buffer.protected {
            self.buffer.drain_all();
            self.dispatch_pages(now);
        }
        if self.collects_ahead() {
            self.background = true;
            for die in 0..self.shape.dies {
                self.next_work(now, die);
            }
        }
    }
}
