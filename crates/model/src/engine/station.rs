//! One server with a first-in-first-out queue, computed arithmetically.
//!
//! A station must be booked when a command *arrives* at it, in order of time. If it were booked ahead of time, earlier
//! commands would wait for later ones, which loses up to half of the throughput at high queue depth.

use crate::time::{Span, Time};

/// A FIFO server. Its queue is implied by the time at which it becomes free.
#[derive(Clone, Debug, Default)]
pub struct Station {
    free_at: Time,
    busy: Span,
    #[cfg(debug_assertions)]
    last_arrival: Time,
}

impl Station {
    /// Joins the queue at `now` for `service`; returns the waiting time and the time of departure.
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

    /// Stops the server at `now` for `length`: later bookings are served after that. Commands in the queue leave later
    /// than [`Station::book`] returned, by the same length; the caller must delay them.
    pub fn stop(&mut self, now: Time, length: Span) {
        self.free_at = self.free_at.max(now) + length;
    }

    /// Removes all commands that are in the queue at `now`.
    pub fn clear(&mut self, now: Time) {
        self.busy = self.busy(now);
        self.free_at = self.free_at.min(now);
        #[cfg(debug_assertions)]
        {
            self.last_arrival = now;
        }
    }

    /// Returns the time at which the last booking leaves.
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// Returns the time spent serving, up to `now`.
    pub fn busy(&self, now: Time) -> Span {
        self.busy.saturating_sub(self.free_at.since(now))
    }
}
