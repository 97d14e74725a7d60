//! Where the time of a sense went: it explains the time of the command that waited for it.
//!
//! Dies count their busy time by whose work it was, so that a wait is split exactly: the counters at arrival are
//! subtracted from those at the start.

use super::front::segment::Segment;
use crate::anatomy::{Anatomy, Part};
use crate::time::{Span, Time};

/// Whose work a die does; the order of [`CAUSE_PARTS`].
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
    /// When it left the controller, when its segment had come over the link, and when it came to its die.
    pub(super) dispatched: Time,
    pub(super) entered: Time,
    pub(super) arrived: Time,
    pub(super) started: Time,
    pub(super) sensed: Time,
    /// How long its segment had waited for the map before.
    pub(super) looked_up: Span,
    /// Whether `behind` means anything.
    waited: bool,
    /// The die's busy time by cause at arrival; from the start on, what the operation waited for.
    behind: Causes,
}

impl Timeline {
    /// Of what is there at `now`, for a segment.
    #[inline]
    pub(super) fn of(segment: &Segment, now: Time) -> Timeline {
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

    /// It leaves the controller and comes to its die so much later.
    #[inline]
    pub(super) fn delay(&mut self, by: Span) {
        self.dispatched += by;
        self.arrived += by;
    }

    /// It leaves the controller then, and is at its die.
    #[inline]
    pub(super) fn leave_controller(&mut self, at: Time) {
        self.dispatched = at;
        self.arrived = at;
    }

    /// The same work, for a command that came to it later: the medium has been working for the command since then.
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

    /// It waits from now on, at a die that has been busy for so long.
    #[inline]
    pub(super) fn wait(&mut self, busy: Causes) {
        self.behind = busy;
        self.waited = true;
    }

    /// It waits no longer.
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
