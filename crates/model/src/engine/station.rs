//! One server with a first-in-first-out queue, kept as arithmetic.
//!
//! A station must be booked when a command *arrives* at it, in time order: booking it ahead of time makes earlier
//! commands wait for later ones and loses up to half of the throughput at high queue depth.

use crate::time::{Span, Time};

/// A FIFO server. Its queue is implied by the time at which it falls free.
#[derive(Clone, Debug, Default)]
pub struct Station {
    free_at: Time,
    busy: Span,
    #[cfg(debug_assertions)]
    last_arrival: Time,
}

impl Station {
    /// Joins the queue at `now` for `service`; returns how long it waits and when it leaves.
    #[inline]
    pub fn book(&mut self, now: Time, service: Span) -> (Span, Time) {
        #[cfg(debug_assertions)]
        {
            debug_assert!(now >= self.last_arrival, "booked out of time order");
            self.last_arrival = now;
        }
        let start = self.free_at.max(now);
        self.free_at = start + service;
        self.busy += service;
        (start - now, self.free_at)
    }

    /// It stands still from `now` on, for `length`: whoever joins comes behind that. Those in its queue leave as much
    /// later than [`Station::book`] said, which is for the caller to tell them.
    pub fn stop(&mut self, now: Time, length: Span) {
        self.free_at = self.free_at.max(now) + length;
    }

    /// Whoever is in its queue at `now` is gone.
    pub fn clear(&mut self, now: Time) {
        self.busy = self.busy(now);
        self.free_at = self.free_at.min(now);
        #[cfg(debug_assertions)]
        {
            self.last_arrival = now;
        }
    }

    /// When the last booking leaves.
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// Time spent serving up to `now`.
    pub fn busy(&self, now: Time) -> Span {
        self.busy.saturating_sub(self.free_at.since(now))
    }
}
