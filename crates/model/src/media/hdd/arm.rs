//! The arm and the rotating disk: the time until a position is under the head, and the selection of the access with the
//! shortest positioning time.
//!
//! A seek of d cylinders takes `track + root * sqrt(x) + line * x`, where x is the share of the stroke. The factors
//! follow from the average and the full-stroke seek. Not modelled: different times for inward and outward seeks, and
//! recalibration.

use super::access::Access;
use super::config::HddConfig;
use super::geometry::{DiskGeometry, DiskPosition};
use crate::time::{Span, Time};

/// Times of an access, from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Trip {
    /// Seek: the arm moves and settles.
    pub(super) seek: u64,
    /// Rotation: until the data is under the head.
    pub(super) turn: u64,
    /// Data transfer, over all revolutions that it takes.
    pub(super) transfer: u64,
    /// Position at the end.
    pub(super) end: DiskPosition,
}

impl Trip {
    pub(super) fn total(&self) -> Span {
        Span::from_ns(self.seek + self.turn + self.transfer)
    }
}

/// An arm with its heads over a rotating disk.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    track: u32,
    cylinder: u32,
    turn: u64,
    /// Nanoseconds to the next track, or to another one on the same cylinder.
    next_track: u64,
    /// Factors of the square root of the cylinders, and of the cylinders.
    root: f64,
    line: f64,
    write_settle: u64,
    oldest: u64,
    /// Cylinders on either side that count as the same place.
    place: u32,
}

impl Arm {
    pub(super) fn new(config: &HddConfig, geometry: &DiskGeometry) -> Arm {
        let stroke = (geometry.cylinders().max(2) - 1) as f64;
        let (root, line) = config.seek.factors();
        Arm {
            track: 0,
            cylinder: 0,
            turn: geometry.turn(),
            next_track: config.seek.track.ns(),
            root: root / libm::sqrt(stroke),
            line: line / stroke,
            write_settle: config.seek.write_settle.ns(),
            oldest: config.queue.oldest.ns(),
            place: 1 + (geometry.cylinders() / 1024) as u32,
        }
    }

    /// Sets the current position.
    #[inline]
    pub(super) fn be_at(&mut self, spot: DiskPosition) {
        self.track = spot.track;
        self.cylinder = spot.cylinder;
    }

    /// Returns the nanoseconds until the arm is at the track.
    #[inline]
    fn seek(&self, track: u32, cylinder: u32, writes: bool) -> u64 {
        let far = u64::from(self.cylinder.abs_diff(cylinder));
        let read = if far <= 1 {
            if track == self.track {
                return 0;
            }
            self.next_track
        } else {
            let far = far as f64;
            self.next_track + (self.root * libm::sqrt(far) + self.line * far) as u64
        };
        if writes {
            read + self.write_settle
        } else {
            read
        }
    }

    /// Returns the seek, and the rotation until the access's angle of the disk is under the head; `phase` is the
    /// current angle of the disk.
    #[inline]
    fn positioning(&self, phase: u64, access: &Access) -> (u64, u64) {
        let seek = self.seek(access.track, access.cylinder, access.writes);
        let there = phase + seek;
        // Nearly all seeks take less than four revolutions.
        let mut there = if there < 4 * self.turn {
            there
        } else {
            there % self.turn
        };
        for turns in [2 * self.turn, self.turn] {
            there -= if there >= turns { turns } else { 0 };
        }
        let angle = u64::from(access.angle);
        let ahead = if angle >= there {
            angle - there
        } else {
            angle + self.turn - there
        };
        (seek, ahead)
    }

    /// Whether the access is at the arm's current place: within about a thousandth of the stroke.
    #[inline]
    fn is_near(&self, access: &Access) -> bool {
        self.cylinder.abs_diff(access.cylinder) <= self.place
    }

    /// Returns the seek and rotation of an access that begins now, and its transfer with `turns` additional
    /// revolutions.
    pub(super) fn trip(
        &self,
        now: Time,
        access: &Access,
        geometry: &DiskGeometry,
        turns: u64,
    ) -> Trip {
        let (seek, turn) = self.positioning(geometry.phase(now.ns()), access);
        let (_, end) = access.sectors(geometry.sector());
        let end = geometry.end(end);
        Trip {
            seek,
            turn,
            transfer: end.time - access.starts + turns * self.turn,
            end,
        }
    }

    /// Whether an access is at another place than the previous one.
    pub(super) fn leaves_for(&self, access: &Access) -> bool {
        !self.is_near(access)
    }

    /// Returns the access with the lowest cost at this phase of the disk. The cost is the time until the access is
    /// under the head, multiplied by the time left until it has waited for the maximum time. Accesses that have waited
    /// for the maximum time have no cost; of these, the oldest is chosen. If the arm must `leave`, only accesses at
    /// other places are considered.
    #[inline]
    pub(super) fn soonest(
        &self,
        (now, phase): (Time, u64),
        accesses: &[Access],
        leave: bool,
    ) -> Option<(usize, u64)> {
        let mut best: Option<(usize, u64, Time)> = None;
        for (at, access) in accesses.iter().enumerate() {
            if leave && self.is_near(access) {
                continue;
            }
            let (seek, turn) = self.positioning(phase, access);
            let left = self.oldest.saturating_sub(now.since(access.since).ns());
            let cost = (seek + turn).saturating_mul(left);
            let better = best.is_none_or(|(_, least, since)| {
                cost < least || (cost == least && access.since < since)
            });
            if better {
                best = Some((at, cost, access.since));
            }
        }
        best.map(|(at, cost, _)| (at, cost))
    }

    /// Returns the cached write with the lowest cost, and that cost. Each write counts as if it had waited since `since`.
    /// Only writes up to flush `epoch` are considered; if the arm must `leave`, only those away from its place.
    #[inline]
    pub(super) fn soonest_cached(
        &self,
        (now, phase): (Time, u64),
        accesses: &[Access],
        (epoch, since): (u32, Time),
        leave: bool,
    ) -> Option<(usize, u64)> {
        let mut best: Option<(usize, u64)> = None;
        for (at, access) in accesses.iter().enumerate() {
            if access.epoch > epoch || (leave && self.is_near(access)) {
                continue;
            }
            let (seek, turn) = self.positioning(phase, access);
            if best.is_none_or(|(_, least)| seek + turn < least) {
                best = Some((at, seek + turn));
            }
        }
        let left = self.oldest.saturating_sub(now.since(since).ns());
        best.map(|(at, soon)| (at, soon.saturating_mul(left)))
    }
}
