//! Writes into the cache or through to the disk, and flushes.

use alloc::vec::Vec;

use super::{Hdd, HddEvent};
use crate::anatomy::Part;
use crate::command::{Completion, Op};
use crate::time::Time;

impl Hdd {
    /// Data of a write has arrived.
    pub(super) fn received(&mut self, now: Time, slot: u32, done: &mut Vec<Completion>) {
        let command = self.inside[slot].command;
        let fits = u64::from(command.bytes) <= self.config.buffer.write;
        if command.fua || !self.config.write_cache || !fits {
            return self.write_through(now, slot);
        }
        self.inside[slot].since = now;
        self.room.push_back(slot);
        self.let_in(now, done);
        self.use_head(now);
    }

    /// Lets writes that wait for space into the cache, in order.
    pub(super) fn let_in(&mut self, now: Time, done: &mut Vec<Completion>) {
        while let Some(&slot) = self.room.front() {
            let (offset, end) = self.range(slot);
            if !self.cache.has_room(end - offset) {
                return;
            }
            self.room.pop_front();
            if self.cache.waiting().is_empty() {
                self.drained = now;
            }
            self.forget_read(now, offset, end);
            self.cache.insert(now, offset, end, &self.geometry);
            let waited = now.since(self.inside[slot].since);
            self.explain(slot, Part::BufferFull, waited);
            self.finish(now, slot, done);
        }
    }

    /// Discards read data of a range that the disk will replace.
    fn forget_read(&mut self, now: Time, offset: u64, end: u64) {
        if self.ahead.is_some() {
            self.stop_ahead(now);
        }
        self.segments.clear(offset, end);
    }

    /// Starts a write that completes once it is on the disk.
    pub(super) fn write_through(&mut self, now: Time, slot: u32) {
        let (offset, end) = self.range(slot);
        debug_assert!(self.inside[slot].command.op != Op::Read);
        self.forget_read(now, offset, end);
        let access = self.config.controller.access;
        self.explain(slot, Part::Controller, access);
        self.due(now + access, HddEvent::Ready, slot);
    }

    /// Starts a flush: the content of the cache goes to the disk before it completes.
    pub(super) fn flush(&mut self, now: Time, slot: u32, done: &mut Vec<Completion>) {
        self.cache.flush(now, slot);
        self.end_flushes(now, done);
        self.use_head(now);
    }

    /// Completes flushes that have nothing left to write.
    pub(super) fn end_flushes(&mut self, now: Time, done: &mut Vec<Completion>) {
        while let Some(flush) = {
            let works = self.work.iter().map(|work| &work.access);
            self.cache.flushed(self.queue.iter().chain(works))
        } {
            self.explain(flush.slot, Part::BehindProgram, now.since(flush.since));
            self.finish(now, flush.slot, done);
        }
    }
}
