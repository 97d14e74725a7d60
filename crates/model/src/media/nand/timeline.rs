//! Breakdown of the time of a sense, from which the anatomy of the waiting command is computed.
//!
//! Dies count their busy time by cause, so that a wait is split exactly: the counters at arrival are subtracted from
//! those at the start.

use super::front::segment::CommandSegment;
use crate::anatomy::{Anatomy, Part};
use crate::time::{Span, Time};

/// Cause of a die's work; the order of [`CAUSE_PARTS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Cause {
    Read = 0,
    Program = 1,
    Erase = 2,
    Collection = 3,
    Refresh = 4,
}

/// The part of a waiting command's anatomy for each [`Cause`].
const CAUSE_PARTS: [Part; 5] = [
    Part::BehindRead,
    Part::BehindProgram,
    Part::BehindErase,
    Part::BehindCollection,
    Part::BehindRefresh,
];

/// Busy nanoseconds by [`Cause`].
pub(super) type Causes = [u64; 5];

/// When a sense passed its stations.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    /// When it left the controller, when its segment had crossed the link, and when it arrived at its die.
    pub(super) dispatched: Time,
    pub(super) entered: Time,
    pub(super) arrived: Time,
    pub(super) started: Time,
    pub(super) sensed: Time,
    /// How long its segment had waited for the map before.
    pub(super) looked_up: Span,
    /// Whether `behind` is valid.
    waited: bool,
    /// Until the start: the die's busy time by cause at arrival. From the start: the causes that the operation waited
    /// for.
    behind: Causes,
}

impl Timeline {
    /// Creates a timeline for a segment that has arrived at `now`.
    #[inline]
    pub(super) fn new(segment: &CommandSegment, now: Time) -> Timeline {
        Timeline {
            dispatched: segment.dispatched,
            entered: segment.at,
            arrived: now,
            started: now,
            sensed: now,
            looked_up: segment.looked_up,
            waited: false,
            behind: [0; 5],
        }
    }

    /// Delays leaving the controller, and arriving at the die, by this time.
    #[inline]
    pub(super) fn delay(&mut self, by: Span) {
        self.dispatched += by;
        self.arrived += by;
    }

    /// Sets when it leaves the controller and arrives at its die.
    #[inline]
    pub(super) fn leave_controller(&mut self, at: Time) {
        self.dispatched = at;
        self.arrived = at;
    }

    /// Returns the timeline of the same sense for a command that joined it later: the medium has been working for the
    /// command since then.
    pub(super) fn joined(
        &self,
        dispatched: Time,
        looked_up: Span,
        arrived: Time,
        sensed: Time,
    ) -> Timeline {
        Timeline {
            dispatched,
            entered: self.entered,
            arrived,
            started: arrived,
            sensed,
            looked_up,
            waited: false,
            behind: [0; 5],
        }
    }

    /// The sense starts to wait, at a die with this busy time by cause.
    #[inline]
    pub(super) fn wait(&mut self, busy: Causes) {
        self.behind = busy;
        self.waited = true;
    }

    /// The sense stops waiting.
    #[inline]
    pub(super) fn waited_until(&mut self, busy: Causes) {
        for (part, until_now) in self.behind.iter_mut().zip(busy) {
            *part = until_now - *part;
        }
    }

    /// Adds waiting, work and transfer up to `at`.
    #[inline]
    pub(super) fn explain(&self, anatomy: &mut Anatomy, at: Time) {
        if self.waited {
            for (part, ns) in CAUSE_PARTS.iter().zip(self.behind) {
                anatomy.add(*part, Span::from_ns(ns));
            }
        }
        anatomy.add(Part::Medium, self.sensed - self.started);
        anatomy.add(Part::Transfer, at - self.sensed);
    }
}
