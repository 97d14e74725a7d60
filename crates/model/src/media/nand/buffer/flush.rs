//! Flushes: each waits until all earlier data is on the medium, and until the tables that locate the data are saved.
//! Writes with force unit access wait for the tables in the same way, after their own data.
//!
//! Flushes and writes that wait while tables are being saved share the next save, which takes as long as the longest of
//! them. Those whose data reaches the medium during the first part of a save still join it, because firmware collects
//! the changed entries before it programs them. Not modelled: saving tables occupies dies. Sources: decisions 0041 and
//! 0156.

use alloc::vec::Vec;

use super::super::Shared;
use super::super::config::WriteBuffer;
use super::super::events::NandEvent;
use super::super::front::CommandSegment;
use crate::anatomy::Part;
use crate::command::CommandId;
use crate::time::{Span, Time};

/// Flushes and writes join a save during the first quarter of it. Assumed: a tenth to a half.
const JOIN: u64 = 4;

/// A flush, or a write with force unit access, that waits for the medium.
#[derive(Clone, Copy, Debug)]
struct NandFlush {
    id: CommandId,
    epoch: u32,
    /// Number of earlier units in the buffer that are not on the medium.
    left: u32,
    /// When it started to wait for data or, if `left` is 0, for tables.
    since: Time,
    /// Time to save the tables for it.
    tables: Span,
    /// When a flush arrived; of a write, the start: units may have arrived after it.
    arrived: Time,
}

/// State of a drive's flushes.
#[derive(Clone, Debug)]
pub(super) struct Flushes {
    /// Time to save the tables for a flush.
    save_tables: Span,
    /// Time to save the tables for a write with force unit access.
    fua_tables: Span,
    /// Flushes that wait for data.
    waiting: Vec<NandFlush>,
    /// Flushes whose data is on the medium: those of the save in progress, and those of the next one.
    saving: Vec<NandFlush>,
    unsaved: Vec<NandFlush>,
    /// Until when flushes join the save in progress, and how long it takes.
    open: (Time, Span),
    /// Whether units have been written since tables were saved.
    tables_changed: bool,
    /// When the last of these units arrived.
    last_change: Time,
    epoch: u32,
}

impl Flushes {
    pub(super) fn new(config: &WriteBuffer) -> Flushes {
        Flushes {
            save_tables: config.save_tables,
            fua_tables: config.fua_tables,
            waiting: Vec::with_capacity(16),
            saving: Vec::with_capacity(16),
            unsaved: Vec::with_capacity(16),
            open: (Time::ZERO, Span::ZERO),
            tables_changed: false,
            last_change: Time::ZERO,
            epoch: 0,
        }
    }

    /// Returns the number of flushes so far that had units to wait for. A unit that arrives now comes after all of
    /// them.
    #[inline]
    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// A unit has arrived, so that tables will change.
    #[inline]
    pub(super) fn tables_change(&mut self, now: Time) {
        self.tables_changed = true;
        self.last_change = now;
    }

    /// Whether a flush would have to wait, with `units` units in the buffer.
    pub(super) fn any_work(&self, units: usize) -> bool {
        let saves = self.save_tables > Span::ZERO;
        units > 0 || (saves && self.tables_changed)
    }

    /// A flush arrives, after `units` units in the buffer; returns whether it waits for them.
    pub(super) fn begin(
        &mut self,
        now: Time,
        segment: &CommandSegment,
        units: u32,
        shared: &mut Shared,
    ) -> bool {
        let front = &mut shared.front;
        front.explain_way_down(segment.id, segment.dispatched, segment.at);
        let flush = NandFlush {
            id: segment.id,
            epoch: self.epoch,
            left: units,
            since: now,
            tables: self.save_tables,
            arrived: now,
        };
        if units == 0 {
            self.data_flushed(now, flush, shared);
            return false;
        }
        self.waiting.push(flush);
        self.epoch = self.epoch.wrapping_add(1);
        true
    }

    /// A unit of this epoch is on the medium: later flushes wait for one unit less.
    #[inline]
    pub(super) fn unit_programmed(&mut self, now: Time, epoch: u32, shared: &mut Shared) {
        let mut at = 0;
        while at < self.waiting.len() {
            let flush = &mut self.waiting[at];
            // Epochs count flushes; the difference is small even after an overflow.
            if flush.epoch.wrapping_sub(epoch) < u32::MAX / 2 {
                flush.left -= 1;
                if flush.left == 0 {
                    let flush = self.waiting.remove(at);
                    self.data_flushed(now, flush, shared);
                    continue;
                }
            }
            at += 1;
        }
    }

    /// The data of a flush is on the medium: saves the tables, together with other waiting flushes.
    fn data_flushed(&mut self, now: Time, flush: NandFlush, shared: &mut Shared) {
        let waited = now.since(flush.since);
        shared.front.explain(flush.id, Part::BehindProgram, waited);
        self.save_for(
            now,
            NandFlush {
                since: now,
                ..flush
            },
            shared,
        );
    }

    /// The data of a write with force unit access is on the medium: saves the tables.
    pub(super) fn write_through(&mut self, now: Time, id: CommandId, shared: &mut Shared) {
        let write = NandFlush {
            id,
            epoch: self.epoch,
            left: 0,
            since: now,
            tables: self.fua_tables,
            arrived: Time::ZERO,
        };
        self.save_for(now, write, shared);
    }

    /// Completes a command after its tables are saved.
    fn save_for(&mut self, now: Time, flush: NandFlush, shared: &mut Shared) {
        if flush.tables == Span::ZERO {
            shared.front.finish_write(now, flush.id);
            return;
        }
        let (until, lasts) = self.open;
        if !self.saving.is_empty() && now < until && flush.tables <= lasts {
            self.saving.push(flush);
            // The save includes all that arrived before this flush.
            if self.last_change < flush.arrived {
                self.tables_changed = false;
            }
            return;
        }
        self.unsaved.push(flush);
        if self.saving.is_empty() {
            self.save(now, shared);
        }
    }

    fn save(&mut self, now: Time, shared: &mut Shared) {
        core::mem::swap(&mut self.saving, &mut self.unsaved);
        self.tables_changed = false;
        let lasts = self.saving.iter().map(|it| it.tables).max();
        let lasts = lasts.unwrap_or(Span::ZERO);
        self.open = (now + Span::from_ns(lasts.ns() / JOIN), lasts);
        shared.events.push(now + lasts, NandEvent::TablesSaved);
    }

    /// The tables are on the medium.
    pub(super) fn tables_saved(&mut self, now: Time, shared: &mut Shared) {
        for flush in self.saving.drain(..) {
            let lasted = now.since(flush.since).min(flush.tables);
            let waited = now.since(flush.since) - lasted;
            let front = &mut shared.front;
            front.explain(flush.id, Part::BehindProgram, waited);
            front.explain(flush.id, Part::Medium, lasted);
            front.finish_write(now, flush.id);
        }
        if !self.unsaved.is_empty() {
            self.save(now, shared);
        }
    }
}
