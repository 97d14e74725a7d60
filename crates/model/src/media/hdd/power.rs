//! A power cut: the cache and all commands are gone, and the platters must come up to speed again.
//!
//! A sector that is being written is written whole or not at all: drives have the energy of the turning platters for that.
//! Leaves out: data that the host sent and that were on the platters before the cut although nobody was told.

use alloc::vec::Vec;

use super::{Events, Hdd};
use crate::device::Range;
use crate::time::Time;

impl Hdd {
    pub(super) fn lose_power(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.cache.at_risk(lost);
        self.stop_ahead(now);
        if let Some(work) = self.work.take() {
            self.counts.worked(&work, now);
        }
        self.cache.forget();
        self.segments.forget();
        self.queue.clear();
        self.room.clear();
        self.outside.clear();
        self.inside = Default::default();
        self.events = Events::with_capacity(256);
        self.taken = 0;
        self.controller.clear(now);
        self.link.clear(now);
        let back = now + self.config.spin_up;
        self.busy_until = back;
        self.wake_at = Time::NEVER;
        back
    }
}
