//! One trip of the arm: where it goes, and for how long data pass there.

use super::geometry::{Geometry, Spot};
use crate::time::Time;

/// What an access is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum For {
    /// The read in this slot.
    Read(u32),
    /// The write in this slot, which completes once it is on the disk.
    Write(u32),
    /// Writes in the cache.
    Cache,
}

/// Data that are to pass under the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// First byte.
    pub(super) offset: u64,
    /// The byte after the last.
    pub(super) end: u64,
    /// Media time of its first sector.
    pub(super) starts: u64,
    /// Where that is; of its media time what is left in a turn.
    pub(super) track: u32,
    pub(super) cylinder: u32,
    pub(super) angle: u32,
    /// Whether the head must be as steady as for a write.
    pub(super) writes: bool,
    /// For a write: flushes accepted before it.
    pub(super) epoch: u32,
    /// Since when it waits.
    pub(super) since: Time,
    /// What it is for.
    pub(super) whose: For,
}

impl Access {
    pub(super) fn new(
        geometry: &Geometry,
        (offset, end): (u64, u64),
        (since, epoch): (Time, u32),
        whose: For,
    ) -> Access {
        let Spot {
            track,
            cylinder,
            time,
        } = geometry.spot(offset & !(geometry.sector() - 1));
        Access {
            offset,
            end,
            starts: time,
            track,
            cylinder,
            angle: geometry.phase(time) as u32,
            writes: !matches!(whose, For::Read(_)),
            epoch,
            since,
            whose,
        }
    }

    /// Bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.end - self.offset
    }

    /// The range of whole sectors of the disk.
    pub(super) fn sectors(&self, sector: u64) -> (u64, u64) {
        let within = sector - 1;
        (self.offset & !within, (self.end + within) & !within)
    }

    /// Whether a sector of the disk is written in part: then it is read, and written a turn later.
    pub(super) fn in_part(&self, sector: u64) -> bool {
        self.writes && !(self.offset.is_multiple_of(sector) && self.end.is_multiple_of(sector))
    }

    /// Whether both have a byte.
    pub(super) fn overlaps(&self, offset: u64, end: u64) -> bool {
        self.offset < end && offset < self.end
    }
}
