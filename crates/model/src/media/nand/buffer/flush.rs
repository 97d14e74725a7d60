//! Flushes: each waits until the data before it are on the medium, and until the tables in which they are found are
//! saved.
//!
//! Flushes that wait while tables are saved share the next save. Leaves out that saving them keeps dies.
//! Source: `docs/decisions/0041-firmware-costs.md`.

use alloc::vec::Vec;

use super::super::Shared;
use super::super::events::Event;
use super::super::front::Segment;
use crate::anatomy::Part;
use crate::command::CommandId;
use crate::time::{Span, Time};

/// A flush that waits for the medium.
#[derive(Clone, Copy, Debug)]
struct Flush {
    id: CommandId,
    epoch: u32,
    /// Units in the buffer before it that are not on the medium.
    left: u32,
    /// Since when it waits for data or, with none left, for tables.
    since: Time,
}

/// The flushes of a drive.
#[derive(Clone, Debug)]
pub(super) struct Flushes {
    /// What saving the tables takes.
    save_tables: Span,
    /// Those that wait for data.
    waiting: Vec<Flush>,
    /// Those whose data are on the medium: of the save under way, and of the next one.
    saving: Vec<Flush>,
    unsaved: Vec<Flush>,
    /// Something has been written since tables were saved.
    tables_changed: bool,
    epoch: u32,
}

impl Flushes {
    pub(super) fn new(save_tables: Span) -> Flushes {
        Flushes {
            save_tables,
            waiting: Vec::with_capacity(16),
            saving: Vec::with_capacity(16),
            unsaved: Vec::with_capacity(16),
            tables_changed: false,
            epoch: 0,
        }
    }

    /// The number of flushes so far that had units to wait for. A unit that comes now is behind all of them.
    #[inline]
    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// A unit has come, so that tables will change.
    #[inline]
    pub(super) fn tables_change(&mut self) {
        self.tables_changed = true;
    }

    /// Whether a flush would have to wait, with so many units in the buffer.
    pub(super) fn any_work(&self, units: usize) -> bool {
        let saves = self.save_tables > Span::ZERO;
        units > 0 || (saves && self.tables_changed)
    }

    /// A flush comes, behind so many units in the buffer; whether it waits for them.
    pub(super) fn begin(
        &mut self,
        now: Time,
        segment: &Segment,
        units: u32,
        shared: &mut Shared,
    ) -> bool {
        let front = &mut shared.front;
        front.explain_way_down(segment.id, segment.dispatched, segment.at);
        let flush = Flush {
            id: segment.id,
            epoch: self.epoch,
            left: units,
            since: now,
        };
        if units == 0 {
            self.data_flushed(now, flush, shared);
            return false;
        }
        self.waiting.push(flush);
        self.epoch = self.epoch.wrapping_add(1);
        true
    }

    /// A unit of this epoch is on the medium: flushes that came after it wait for one less.
    #[inline]
    pub(super) fn unit_programmed(&mut self, now: Time, epoch: u32, shared: &mut Shared) {
        let mut at = 0;
        while at < self.waiting.len() {
            let flush = &mut self.waiting[at];
            // Epochs count flushes; the difference is small even when they wrap.
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

    /// What a flush waited for is on the medium: now the tables, with those of others that wait.
    fn data_flushed(&mut self, now: Time, flush: Flush, shared: &mut Shared) {
        let waited = now.since(flush.since);
        shared.front.explain(flush.id, Part::BehindProgram, waited);
        if self.save_tables == Span::ZERO {
            shared.front.finish_write(now, flush.id);
            return;
        }
        self.unsaved.push(Flush {
            since: now,
            ..flush
        });
        if self.saving.is_empty() {
            self.save(now, shared);
        }
    }

    fn save(&mut self, now: Time, shared: &mut Shared) {
        core::mem::swap(&mut self.saving, &mut self.unsaved);
        self.tables_changed = false;
        shared
            .events
            .push(now + self.save_tables, Event::TablesSaved);
    }

    /// The tables are on the medium.
    pub(super) fn tables_saved(&mut self, now: Time, shared: &mut Shared) {
        for flush in self.saving.drain(..) {
            let lasted = now.since(flush.since).min(self.save_tables);
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
