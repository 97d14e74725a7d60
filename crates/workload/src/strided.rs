//! Zones of a job with `zonemode=strided`: the job stays in one part of its range until it has transferred
//! `zonesize` bytes, then skips to the next part.
//!
//! Source: fio's HOWTO (`zonemode`, `zonesize`, `zonerange`, `zoneskip`), and the offsets that fio 3.33 writes to
//! `write_iolog`. Zones begin at the job's offset and continue to the end of the file or drive, also beyond `size`.
//! After the last zone, the first one follows. Not modelled: fio ends a job at an I/O that would go beyond the end of
//! the file. Here sequential jobs with one direction and one block size end there, and other jobs continue with the
//! first zone.

use serde::{Deserialize, Serialize};

/// Strided zones, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StridedZones {
    /// Bytes transferred in a zone before the next zone (`zonesize`).
    pub size: u64,
    /// Length of a zone (`zonerange`).
    pub range: u64,
    /// Distance from the end of a zone to the next one (`zoneskip`).
    pub skip: u64,
}

impl StridedZones {
    /// Returns the bytes that a sequential job transfers in blocks of `block` bytes before an I/O would go beyond the
    /// end of the file; `None` if no I/O does. `reach` is the distance from the first zone to that end.
    pub(crate) fn bytes_before_end(&self, reach: u64, block: u64) -> Option<u64> {
        let step = self.range.saturating_add(self.skip).max(1);
        let zones = reach.div_ceil(step);
        let left = reach - zones.saturating_sub(1) * step;
        let in_zone = self.size.div_ceil(block) * block;
        let furthest = self.range.min(self.size).div_ceil(block) * block;
        (furthest > left).then(|| zones.saturating_sub(1) * in_zone + left / block * block)
    }
}

/// The zone of a thread. Places are relative to the start of the job's range.
#[derive(Clone, Debug)]
pub(crate) struct ZoneWalk {
    zones: StridedZones,
    /// Bytes from the start of the range to the end of the file or drive.
    reach: u64,
    start: u64,
    /// Bytes transferred in this zone.
    moved: u64,
}

impl ZoneWalk {
    pub(crate) fn new(zones: StridedZones, reach: u64) -> ZoneWalk {
        ZoneWalk {
            zones,
            reach,
            start: 0,
            moved: 0,
        }
    }

    /// Returns the start of the zone of the next I/O.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Returns the length of a zone, at most the file.
    pub(crate) fn range(&self) -> u64 {
        self.zones.range.min(self.reach)
    }

    /// Moves on to the next zone if this one has had its bytes. Zones of random jobs (`whole`) lie within the file.
    /// Returns whether positions and the random map of the zone start again.
    pub(crate) fn next_io(&mut self, whole: bool) -> bool {
        if self.moved >= self.zones.size {
            self.moved = 0;
            self.start = self
                .start
                .saturating_add(self.zones.range + self.zones.skip);
            let least = if whole { self.range() } else { 1 };
            if self.start.saturating_add(least) > self.reach {
                self.start = 0;
            }
        }
        self.moved.is_multiple_of(self.zones.range)
    }

    /// Checks whether an I/O of `bytes` at `position` in this zone ends within the file; otherwise returns to the
    /// first zone.
    pub(crate) fn fits(&mut self, position: u64, bytes: u64) -> bool {
        let fits = self.start + position + bytes <= self.reach;
        if !fits {
            (self.start, self.moved) = (0, 0);
        }
        fits
    }

    pub(crate) fn count(&mut self, bytes: u64) {
        self.moved += bytes;
    }
}
