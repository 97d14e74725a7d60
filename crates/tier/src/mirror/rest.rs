//! The idle mirror: without writes for five seconds, the members are flushed and all marks are cleared.

use model::command::{Command, Status};
use model::time::{Span, Time};

use super::{Child, Mirror, MirrorPurpose, REST};
use crate::TierContext;
use crate::planted::{self, Bug};

impl Mirror {
    /// Flushes the members if the mirror is idle and has marks; otherwise schedules the next check.
    pub(super) fn rest<W: TierContext>(&mut self, now: Time, way: &mut W) {
        self.rest_at = Time::NEVER;
        // Members that were stale at recovery.
        self.copy_next(now, way);
        let busy = !self.extents.is_empty() || !self.waiting.is_empty() || self.resting > 0;
        let whole = self.labels.is_whole() && self.copying.is_none();
        if busy || self.last_write + REST > now {
            self.rest_at = (self.last_write + REST).max(now + Span::from_ms(100));
        } else if whole && !self.labels.known.dirty.is_empty() {
            self.disturbed = false;
            if planted::has(Bug::UnmarksUnflushed) {
                self.labels.clean();
                self.pump(way);
                return;
            }
            for leg in self.legs() {
                self.resting += 1;
                self.send(leg, MirrorPurpose::Rest, &Command::flush(0), way);
            }
        }
    }

    /// A flush before marks are cleared has completed.
    pub(super) fn rested<W: TierContext>(
        &mut self,
        now: Time,
        leg: Child,
        status: Status,
        way: &mut W,
    ) {
        self.resting -= 1;
        if status != Status::Success {
            self.disturbed = true;
            self.leave(leg);
        }
        let quiet = !self.disturbed && self.extents.is_empty() && self.waiting.is_empty();
        if self.resting == 0 && quiet && self.labels.is_whole() {
            self.labels.clean();
            self.rest_at = Time::NEVER;
        } else if self.resting == 0 {
            self.rest_at = now + REST;
        }
        self.pump(way);
    }
}
