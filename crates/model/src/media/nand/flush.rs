//! The end of a flush: the data before it are on the medium, and the tables in which they are found are saved.
//!
//! Flushes that wait while tables are saved share the next save. Leaves out that saving them keeps dies.
//! Source: `docs/decisions/0042-tables-behind-a-flush.md`.

use super::{KIND_SHIFT, Nand, SAVED};
use crate::anatomy::Part;
use crate::command::CommandId;
use crate::time::{Span, Time};

/// A flush that waits for the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingFlush {
    pub(super) id: CommandId,
    pub(super) epoch: u32,
    pub(super) left: u32,
    /// Since when it waits for data or, with none left, for tables.
    pub(super) since: Time,
}

impl Nand {
    /// A unit of this epoch is on the medium: flushes that came after it wait for one less.
    pub(super) fn flushed(&mut self, now: Time, epoch: u32) {
        let mut at = 0;
        while at < self.buffer.flushes.len() {
            let flush = &mut self.buffer.flushes[at];
            // Epochs count flushes; the difference is small even when they wrap.
            if flush.epoch.wrapping_sub(epoch) < u32::MAX / 2 {
                flush.left -= 1;
                if flush.left == 0 {
                    let flush = self.buffer.flushes.remove(at);
                    self.data_flushed(now, flush);
                    continue;
                }
            }
            at += 1;
        }
    }

    /// What a flush waited for is on the medium: now the tables, with those of others that wait.
    pub(super) fn data_flushed(&mut self, now: Time, flush: PendingFlush) {
        if let Some(inside) = &mut self.inside[flush.id as usize] {
            let waited = now.since(flush.since);
            inside.anatomy.add(Part::BehindProgram, waited);
        }
        if self.config.buffer.save_tables == Span::ZERO {
            self.finish_write(now, flush.id);
            return;
        }
        let flush = PendingFlush {
            since: now,
            ..flush
        };
        self.buffer.unsaved.push(flush);
        if self.buffer.saving.is_empty() {
            self.save_tables(now);
        }
    }

    fn save_tables(&mut self, now: Time) {
        let buffer = &mut self.buffer;
        core::mem::swap(&mut buffer.saving, &mut buffer.unsaved);
        buffer.tables_changed = false;
        let until = now + self.config.buffer.save_tables;
        self.events.push(until, SAVED << KIND_SHIFT);
    }

    /// The tables are on the medium.
    pub(super) fn tables_saved(&mut self, now: Time) {
        let mut saved = core::mem::take(&mut self.buffer.saving);
        for flush in saved.drain(..) {
            if let Some(inside) = &mut self.inside[flush.id as usize] {
                let lasted = now.since(flush.since).min(self.config.buffer.save_tables);
                let waited = now.since(flush.since) - lasted;
                inside.anatomy.add(Part::BehindProgram, waited);
                inside.anatomy.add(Part::Medium, lasted);
            }
            self.finish_write(now, flush.id);
        }
        self.buffer.saving = saved;
        if !self.buffer.unsaved.is_empty() {
            self.save_tables(now);
        }
    }
}
