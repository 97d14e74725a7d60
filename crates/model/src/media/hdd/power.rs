//! Power cut: the cache and all outstanding commands are lost, and the platters must spin up again.
//!
//! A sector that is being written is written entirely or not at all: drives use the energy of the rotating platters for
//! that. Not modelled: data that reached the platters before the power cut although its write was not acknowledged.

use alloc::vec::Vec;

use super::{EventQueue, Hdd};
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
        self.events = EventQueue::with_capacity(256);
        self.taken = 0;
        self.controller.clear(now);
        self.link.clear(now);
        let back = now + self.config.spin_up;
        self.busy_until = back;
        self.wake_at = Time::NEVER;
        back
    }
}
