//! Position of a byte on the disk: zones, tracks, and the moment of a revolution at which it passes under the head.
//!
//! Addresses run along the tracks of a cylinder and then to the next cylinder, outermost first. Each track begins later
//! than the previous one by the skew. Sequential reading therefore takes a time that is linear within a track. This is
//! the `media time`: the nanoseconds from address 0 to an address if everything is read sequentially. Its remainder
//! modulo one revolution is the angle. Not modelled: spare sectors, defects, servo wedges; many drives fill one surface
//! for a while before they switch heads (the switch takes the same time either way).

use alloc::vec::Vec;

use super::config::HddConfig;

/// A divisor, stored as its inverse: a product, and one correction step up or down. Exact for quotients below 2^50, and
/// much faster than a division.
#[derive(Clone, Copy, Debug)]
pub(super) struct Divisor {
    by: u64,
    inverse: f64,
}

impl Divisor {
    pub(super) fn new(by: u64) -> Divisor {
        Divisor {
            by,
            inverse: 1.0 / by as f64,
        }
    }

    /// Returns quotient and remainder.
    #[inline]
    pub(super) fn split(self, number: u64) -> (u64, u64) {
        let near = (number as f64 * self.inverse) as u64;
        let rest = number.wrapping_sub(near.wrapping_mul(self.by)) as i64;
        if rest < 0 {
            (near - 1, rest.wrapping_add(self.by as i64) as u64)
        } else if rest as u64 >= self.by {
            (near + 1, rest as u64 - self.by)
        } else {
            (near, rest as u64)
        }
    }
}

/// A range of tracks of one length.
#[derive(Clone, Copy, Debug)]
struct Zone {
    /// First byte.
    start: u64,
    /// Media time of the first byte.
    begins: u64,
    first_track: u64,
    track_bytes: u64,
    by_track: Divisor,
}

/// Zones and tracks of a disk.
#[derive(Clone, Debug)]
pub(super) struct DiskGeometry {
    zones: Vec<Zone>,
    turn: u64,
    skew: u64,
    by_turn: Divisor,
    by_pitch: Divisor,
    by_heads: Divisor,
    sector: u64,
    capacity: u64,
    cylinders: u64,
}

/// A position on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct DiskPosition {
    /// Track number over all surfaces.
    pub(super) track: u32,
    /// Cylinder at which the arm must be.
    pub(super) cylinder: u32,
    /// Media time of the position.
    pub(super) time: u64,
}

impl DiskGeometry {
    pub(super) fn new(config: &HddConfig) -> DiskGeometry {
        let (disk, skew) = (&config.disk, config.skew());
        let sector = u64::from(disk.sector);
        let pitch = (disk.turn + skew).seconds();
        let lengths: Vec<u64> = (0..disk.zones)
            .map(|zone| {
                let inward = f64::from(zone) / f64::from(disk.zones.max(2) - 1);
                let rate = disk.outer as f64 + (disk.inner as f64 - disk.outer as f64) * inward;
                ((rate * pitch) as u64 / sector).max(1) * sector
            })
            .collect();
        let (heads, count) = (u64::from(disk.heads), lengths.len() as u64);
        let one_cylinder_each: u64 = lengths.iter().sum::<u64>() * heads;
        let cylinders = (config.bytes * count).div_ceil(one_cylinder_each);
        let (turn, skew) = (disk.turn.ns(), skew.ns());
        let mut start = 0;
        let zones = lengths.iter().zip(0..).map(|(&track_bytes, index)| {
            // Zones have equal widths, rounded to whole cylinders.
            let first_track = index * cylinders / count * heads;
            let tracks = (index + 1) * cylinders / count * heads - first_track;
            let zone = Zone {
                start,
                begins: first_track * (turn + skew),
                first_track,
                track_bytes,
                by_track: Divisor::new(track_bytes),
            };
            start += tracks * track_bytes;
            zone
        });
        let mut geometry = DiskGeometry {
            zones: zones.collect(),
            turn,
            skew,
            by_turn: Divisor::new(turn),
            by_pitch: Divisor::new(turn + skew),
            by_heads: Divisor::new(heads),
            sector,
            capacity: config.bytes,
            cylinders: 0,
        };
        let innermost = geometry.spot(config.bytes - 1).cylinder;
        geometry.cylinders = u64::from(innermost) + 1;
        geometry
    }

    /// Returns the nanoseconds of one revolution.
    pub(super) fn turn(&self) -> u64 {
        self.turn
    }

    /// Returns a time modulo one revolution.
    #[inline]
    pub(super) fn phase(&self, time: u64) -> u64 {
        self.by_turn.split(time).1
    }

    /// Returns the bytes of a sector.
    pub(super) fn sector(&self) -> u64 {
        self.sector
    }

    /// Returns the bytes that a host can address.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the number of cylinders from the outermost to the innermost, both included.
    pub(super) fn cylinders(&self) -> u64 {
        self.cylinders
    }

    #[inline]
    fn zone(&self, offset: u64) -> &Zone {
        // Binary search without branches, because they would be unpredictable for random addresses.
        let (mut at, mut left) = (0, self.zones.len());
        while left > 1 {
            let half = left / 2;
            at += if self.zones[at + half].start <= offset {
                half
            } else {
                0
            };
            left -= half;
        }
        &self.zones[at]
    }

    /// Returns the position at which this byte begins.
    #[inline]
    pub(super) fn spot(&self, offset: u64) -> DiskPosition {
        self.place(offset).0
    }

    /// Returns the position at which the previous byte ends: not yet on the next track. `offset` is not 0.
    #[inline]
    pub(super) fn end(&self, offset: u64) -> DiskPosition {
        let (next, is_first) = self.place(offset);
        if !is_first {
            return next;
        }
        let track = u64::from(next.track) - 1;
        DiskPosition {
            track: track as u32,
            cylinder: self.by_heads.split(track).0 as u32,
            time: next.time - self.skew,
        }
    }

    /// Returns the position of a byte, and whether the byte is the first of its track.
    #[inline]
    fn place(&self, offset: u64) -> (DiskPosition, bool) {
        let zone = self.zone(offset);
        let inside = offset - zone.start;
        let (track, rest) = zone.by_track.split(inside);
        let track_of_all = zone.first_track + track;
        let spot = DiskPosition {
            track: track_of_all as u32,
            cylinder: self.by_heads.split(track_of_all).0 as u32,
            time: zone.begins
                + track * (self.turn + self.skew)
                + zone.by_track.split(rest * self.turn).0,
        };
        (spot, rest == 0)
    }

    /// Returns the first byte whose whole sector has not passed at a media time.
    pub(super) fn reached(&self, time: u64) -> u64 {
        let at = self.zones.partition_point(|zone| zone.begins <= time);
        let zone = &self.zones[at.max(1) - 1];
        let (track, passed) = self.by_pitch.split(time - zone.begins);
        let passed = passed.min(self.turn) * zone.track_bytes;
        let bytes = self.by_turn.split(passed).0 & !(self.sector - 1);
        (zone.start + track * zone.track_bytes + bytes).min(self.capacity)
    }

    /// Returns the media time of the whole disk, in nanoseconds.
    pub(super) fn whole(&self) -> u64 {
        self.end(self.capacity).time
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small;
    use super::*;

    #[test]
    fn media_time_goes_on_without_gaps() {
        let config = small();
        let geometry = DiskGeometry::new(&config);
        let (turn, skew) = (geometry.turn(), config.skew().ns());
        let mut before = geometry.spot(0);
        assert_eq!(before, DiskPosition::default());
        let mut tracks = 0;
        for offset in (4096..config.bytes).step_by(4096) {
            let (end, next) = (geometry.end(offset), geometry.spot(offset));
            assert!(
                end.time > before.time && end.track == before.track,
                "{offset}"
            );
            if next.track != before.track {
                tracks += 1;
                assert_eq!(next.track, before.track + 1);
                assert_eq!(next.time, end.time + skew);
                assert_eq!(next.time, u64::from(next.track) * (turn + skew));
            } else {
                assert_eq!(next, end);
            }
            assert_eq!(next.cylinder, next.track / config.disk.heads);
            let reached = geometry.reached(next.time);
            assert!(
                reached <= offset && reached + 4096 >= offset,
                "{offset}: {reached}"
            );
            before = next;
        }
        assert!(tracks > 50, "{tracks}");
    }

    #[test]
    fn a_product_with_the_inverse_divides() {
        let mut stream = crate::random::Stream::new(1, "division");
        for _ in 0..200_000 {
            let (bits, more) = (stream.uniform_below(30), stream.uniform_below(33));
            let by = 1 + stream.uniform_below(2 << bits);
            // Below 2^50 times the divisor, and on both sides of its multiples.
            let times = stream.uniform_below(1 << more);
            for number in [
                times * by,
                (times * by).saturating_sub(1),
                times * by + by / 2,
            ] {
                let found = Divisor::new(by).split(number);
                assert_eq!(found, (number / by, number % by), "{number} by {by}");
            }
        }
    }

    #[test]
    fn zones_run_from_the_outer_rate_to_the_inner() {
        let config = small();
        let geometry = DiskGeometry::new(&config);
        let rate = |from: u64, bytes: u64| {
            let passed = geometry.spot(from + bytes).time - geometry.spot(from).time;
            bytes as f64 / (passed as f64 * 1e-9)
        };
        let (first, last) = (geometry.zones[0], geometry.zones[geometry.zones.len() - 1]);
        for (zone, expected) in [(first, config.disk.outer), (last, config.disk.inner)] {
            let found = rate(zone.start, zone.track_bytes);
            assert!((found / expected as f64 - 1.0).abs() < 0.01, "{found}");
        }
        let innermost = u64::from(geometry.spot(config.bytes - 4096).track);
        assert!(innermost >= last.first_track, "{innermost}");
    }
}
