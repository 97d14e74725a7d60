//! One access of the arm: its target, and how long data passes there.

use super::geometry::{DiskGeometry, DiskPosition};
use crate::time::Time;

/// Purpose of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AccessPurpose {
    /// A read, by its slot.
    Read(u32),
    /// A write, by its slot, which completes once it is on the disk.
    Write(u32),
    /// Writes in the cache.
    Cache,
}

/// Data that must pass under the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// First byte.
    pub(super) offset: u64,
    /// The byte after the last.
    pub(super) end: u64,
    /// Media time of the first sector.
    pub(super) starts: u64,
    /// Track of the first sector, and media time modulo one revolution.
    pub(super) track: u32,
    pub(super) cylinder: u32,
    pub(super) angle: u32,
    /// Whether the head must settle as for a write.
    pub(super) writes: bool,
    /// For a write: number of flushes accepted before it.
    pub(super) epoch: u32,
    /// When it started to wait.
    pub(super) since: Time,
    /// Purpose of the access.
    pub(super) whose: AccessPurpose,
}

impl Access {
    pub(super) fn new(
        geometry: &DiskGeometry,
        (offset, end): (u64, u64),
        (since, epoch): (Time, u32),
        whose: AccessPurpose,
    ) -> Access {
        let DiskPosition {
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
            writes: !matches!(whose, AccessPurpose::Read(_)),
            epoch,
            since,
            whose,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.end - self.offset
    }

    /// Returns the range of whole sectors of the disk.
    pub(super) fn sectors(&self, sector: u64) -> (u64, u64) {
        let within = sector - 1;
        (self.offset & !within, (self.end + within) & !within)
    }

    /// Whether a sector of the disk is written partly: then the sector is read, and written one revolution later.
    pub(super) fn in_part(&self, sector: u64) -> bool {
        self.writes && !(self.offset.is_multiple_of(sector) && self.end.is_multiple_of(sector))
    }

    /// Whether the access overlaps this range.
    pub(super) fn overlaps(&self, offset: u64, end: u64) -> bool {
        self.offset < end && offset < self.end
    }
}
