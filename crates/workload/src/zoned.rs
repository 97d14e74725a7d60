//! Zones of a job with `zonemode=zbd`, emulated on a drive without zones. A write goes to the write pointer of a zone. A
//! full zone is reset before it is written again. Reads stay below the write pointer, and a trim resets a zone.
//!
//! Source: fio's HOWTO (`zonemode`, `zonesize`, `zonecapacity`, `max_open_zones`, `job_max_open_zones`,
//! `read_beyond_wp`, `zone_reset_threshold`, `zone_reset_frequency`), and the rules of its `zbd.c` for regular block
//! devices. Zones begin at multiples of `zonesize`; the job uses those that lie whole in its range.
//!
//! Different from fio: all zones are full at the start (fio takes them as empty on a regular device, and reads nothing
//! there; on a zoned drive it asks the drive). Copies of a job (`numjobs`) write to zones of their own instead of
//! sharing them (if the range has a zone for each), and jobs do not see each other's write pointers. When a job has
//! trimmed all zones, they are full again (fio ends the job). A reset is a trim where the job trims, and otherwise
//! no command, as in fio on a regular device; the reset, open and finish commands of a zoned drive are not simulated.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::direction::Direction;

/// Zones of a job with `zonemode=zbd`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ZonedMode {
    /// Bytes from the start of a zone to the start of the next (`zonesize`).
    pub size: u64,
    /// Bytes of a zone that can be written (`zonecapacity`).
    pub capacity: u64,
    /// Zones that a copy of the job writes at a time; 0 means any number.
    pub max_open: u32,
    /// Whether reads ignore write pointers (`read_beyond_wp`).
    pub read_beyond_wp: bool,
    /// Written share of the range at and above which zones are reset (`zone_reset_threshold`).
    pub reset_threshold: f64,
    /// Writes between two such resets, by `zone_reset_frequency`; 0 means that there are none.
    pub reset_every: u32,
}

impl ZonedMode {
    /// Returns the first byte of the first zone that lies in `start..start + len`, and the number of such zones.
    pub(crate) fn whole_zones(&self, start: u64, len: u64) -> (u64, u64) {
        let size = self.size.max(1);
        let first = start.div_ceil(size);
        let end = (start + len) / size;
        (first * size, end.saturating_sub(first))
    }
}

/// State of the zones of one thread. Offsets are relative to the start of the job's range.
#[derive(Clone, Debug)]
pub(crate) struct ZonedWalk {
    mode: ZonedMode,
    /// Start of the first zone.
    first: u64,
    /// Number of zones in the range.
    zones: u64,
    /// This copy writes the zones `copy`, `copy + copies`, and so on.
    copy: u64,
    copies: u64,
    /// Write pointers, relative to the start of the zone, of zones that are not full.
    pointers: BTreeMap<u64, u64>,
    /// Zones that are being written.
    open: BTreeSet<u64>,
    /// Bytes below write pointers.
    valid: u64,
    /// Writes before the next reset by `zone_reset_frequency`.
    before_reset: u32,
    /// By direction: zone of the next sequential I/O. For reads also the position in it.
    at: [u64; 3],
    read_position: u64,
}

impl ZonedWalk {
    pub(crate) fn new(mode: ZonedMode, start: u64, len: u64, copy: u32, copies: u32) -> ZonedWalk {
        let (first, zones) = mode.whole_zones(start, len);
        debug_assert!(zones > 0, "checked with the job's range");
        let copies = u64::from(copies.max(1));
        let (copy, copies) = match copies <= zones {
            true => (u64::from(copy) % copies, copies),
            false => (0, 1),
        };
        ZonedWalk {
            mode,
            first: first - start,
            zones,
            copy,
            copies,
            pointers: BTreeMap::new(),
            open: BTreeSet::new(),
            valid: zones * mode.capacity,
            before_reset: mode.reset_every,
            at: [0, copy, 0],
            read_position: 0,
        }
    }

    /// Starts another pass; the zones keep their write pointers.
    pub(crate) fn rewind(&mut self) {
        (self.at, self.read_position) = ([0, self.copy, 0], 0);
    }

    /// Returns offset and length of the next I/O. `drawn` is a random offset relative to the start of the range, or
    /// `None` for a sequential I/O.
    pub(crate) fn next(
        &mut self,
        direction: Direction,
        drawn: Option<u64>,
        bytes: u64,
        smallest: u64,
    ) -> (u64, u64) {
        let drawn = drawn.map(|offset| (offset / self.mode.size % self.zones, offset));
        match direction {
            Direction::Read => self.read(drawn, bytes, smallest),
            Direction::Write => self.write(drawn.map(|(zone, _)| zone), bytes, smallest),
            Direction::Trim => (self.trim(drawn.map(|(zone, _)| zone)), bytes),
        }
    }

    fn start(&self, zone: u64) -> u64 {
        self.first + zone * self.mode.size
    }

    fn pointer(&self, zone: u64) -> u64 {
        *self.pointers.get(&zone).unwrap_or(&self.mode.capacity)
    }

    fn set_pointer(&mut self, zone: u64, to: u64) {
        self.valid = self.valid - self.pointer(zone) + to;
        if to == self.mode.capacity {
            self.pointers.remove(&zone);
        } else {
            self.pointers.insert(zone, to);
        }
    }

    /// Returns the first zone at or after `zone` with `bytes` below its write pointer; after the last zone, the first
    /// follows.
    fn find_written(&self, zone: u64, bytes: u64) -> Option<u64> {
        let mut zones = (0..self.zones).map(|step| (zone + step) % self.zones);
        zones.find(|&zone| self.pointer(zone) >= bytes)
    }

    fn read(&mut self, drawn: Option<(u64, u64)>, bytes: u64, smallest: u64) -> (u64, u64) {
        let limit = |walk: &ZonedWalk, zone| match walk.mode.read_beyond_wp {
            true => walk.mode.capacity,
            false => walk.pointer(zone),
        };
        let find = |walk: &ZonedWalk, zone| match walk.mode.read_beyond_wp {
            true => zone,
            false => walk.find_written(zone, smallest).unwrap_or(zone),
        };
        let Some((zone, offset)) = drawn else {
            if self.read_position + smallest > limit(self, self.at[0]) {
                let next = match self.read_position {
                    0 => self.at[0],
                    _ => (self.at[0] + 1) % self.zones,
                };
                (self.at[0], self.read_position) = (find(self, next), 0);
            }
            let (zone, position) = (self.at[0], self.read_position);
            let left = limit(self, zone).max(smallest) - position;
            let moved = whole(bytes.min(left), smallest);
            self.read_position += moved;
            return (self.start(zone) + position, moved);
        };
        let zone = find(self, zone);
        let range = limit(self, zone).max(smallest);
        let within = match range > bytes {
            true => offset % self.mode.size % (range - bytes + 1) / smallest * smallest,
            false => 0,
        };
        let moved = whole(bytes.min(range - within), smallest);
        (self.start(zone) + within, moved)
    }

    /// Returns the zone of a write that is to go to `zone`: that one if it is open or may be opened, or one of those
    /// that are open.
    fn choose(&self, zone: u64) -> u64 {
        let own = zone / self.copies * self.copies + self.copy;
        let own = if own < self.zones { own } else { self.copy };
        let limit = self.mode.max_open as usize;
        if self.open.contains(&own) || limit == 0 || self.open.len() < limit {
            return own;
        }
        let index = zone as u128 * self.open.len() as u128 / u128::from(self.zones);
        // At most `limit` zones are open.
        *self.open.iter().nth(index as usize).unwrap_or(&own)
    }

    fn write(&mut self, drawn: Option<u64>, bytes: u64, smallest: u64) -> (u64, u64) {
        let zone = self.choose(drawn.unwrap_or(self.at[1]));
        let mut reset = !self.open.contains(&zone);
        if reset {
            self.open.insert(zone);
        }
        let range = (self.zones * self.mode.size) as f64;
        if self.mode.reset_every > 0 && self.valid as f64 >= range * self.mode.reset_threshold {
            self.before_reset -= 1;
            if self.before_reset == 0 {
                self.before_reset = self.mode.reset_every;
                reset = true;
            }
        }
        if reset {
            self.set_pointer(zone, 0);
        }
        let pointer = self.pointer(zone);
        let moved = whole(bytes.min(self.mode.capacity - pointer), smallest);
        let offset = self.start(zone) + pointer;
        if self.mode.capacity - pointer - moved < smallest {
            // fio finishes a zone whose remainder is shorter than a block.
            self.set_pointer(zone, self.mode.capacity);
            self.open.remove(&zone);
            let next = zone + self.copies;
            self.at[1] = if next < self.zones { next } else { self.copy };
        } else {
            self.set_pointer(zone, pointer + moved);
        }
        (offset, moved)
    }

    /// Resets a zone: a random one only if it is not empty. When all zones are empty, they are taken as full again.
    fn trim(&mut self, drawn: Option<u64>) -> u64 {
        let zone = match drawn {
            Some(zone) => match self.find_written(zone, 1) {
                Some(zone) => zone,
                None => {
                    self.pointers.clear();
                    self.valid = self.zones * self.mode.capacity;
                    zone
                }
            },
            None => {
                let zone = self.at[2];
                self.at[2] = (zone + 1) % self.zones;
                zone
            }
        };
        self.set_pointer(zone, 0);
        self.open.remove(&zone);
        self.start(zone)
    }
}

/// Returns the bytes of whole blocks, at least one.
fn whole(bytes: u64, block: u64) -> u64 {
    (bytes / block * block).max(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn walk(mode: ZonedMode, copy: u32, copies: u32) -> ZonedWalk {
        // The range begins in the middle of a zone and holds four whole zones.
        ZonedWalk::new(mode, 32 * KIB, 320 * KIB, copy, copies)
    }

    fn mode() -> ZonedMode {
        ZonedMode {
            size: 64 * KIB,
            capacity: 64 * KIB,
            ..ZonedMode::default()
        }
    }

    fn write(walk: &mut ZonedWalk, drawn: Option<u64>, kib: u64) -> (u64, u64) {
        let (offset, bytes) = walk.next(Direction::Write, drawn, kib * KIB, 4 * KIB);
        (offset / KIB, bytes / KIB)
    }

    #[test]
    fn writes_go_to_write_pointers_and_zones_begin_at_multiples_of_their_size() {
        let mut zones = walk(mode(), 0, 1);
        // The first zone begins 32 KiB after the start of the range, wherever in a zone the random offset lies.
        assert_eq!(write(&mut zones, Some(20 * KIB), 16), (32, 16));
        assert_eq!(write(&mut zones, Some(4 * KIB), 16), (48, 16));
        assert_eq!(write(&mut zones, Some(140 * KIB), 16), (160, 16));
        // The last write is shortened to the end of the zone; the next one resets the full zone.
        assert_eq!(write(&mut zones, Some(0), 24), (64, 24));
        assert_eq!(write(&mut zones, Some(0), 24), (88, 8));
        assert_eq!(write(&mut zones, Some(0), 24), (32, 24));
    }

    #[test]
    fn sequential_writes_go_from_zone_to_zone_of_their_copy() {
        let starts = |copy| {
            let mut zones = walk(mode(), copy, 2);
            let mut starts: Vec<u64> = (0..12).map(|_| write(&mut zones, None, 16).0).collect();
            starts.retain(|offset| offset % 64 == 32);
            starts
        };
        assert_eq!(starts(0), [32, 160, 32]);
        assert_eq!(starts(1), [96, 224, 96]);
        let capacity = ZonedMode {
            capacity: 40 * KIB,
            ..mode()
        };
        let mut zones = walk(capacity, 0, 1);
        let offsets: Vec<u64> = (0..5).map(|_| write(&mut zones, None, 16).0).collect();
        assert_eq!(offsets, [32, 48, 64, 96, 112], "8 KiB end the zone");
    }

    #[test]
    fn no_more_zones_are_open_than_allowed() {
        let limited = ZonedMode {
            max_open: 2,
            ..mode()
        };
        let mut zones = walk(limited, 0, 1);
        let mut draws = [0, 64, 128, 192, 250, 3, 70, 131].map(|kib| kib * KIB);
        for turn in 0..40 {
            draws.rotate_left(turn % 3);
            write(&mut zones, Some(draws[0]), 16);
            assert!(zones.open.len() <= 2, "{:?}", zones.open);
        }
        // Sequential writes in between (percentage_random).
        let mut zones = walk(limited, 0, 1);
        for turn in 0..40 {
            draws.rotate_left(turn % 3);
            let drawn = (turn % 4 != 3).then_some(draws[0]);
            write(&mut zones, drawn, 16);
            assert!(zones.open.len() <= 2, "{turn}: {:?}", zones.open);
        }
    }

    #[test]
    fn reads_stay_below_write_pointers() {
        let mut zones = walk(mode(), 0, 1);
        let read = |zones: &mut ZonedWalk, drawn: Option<u64>| {
            let (offset, bytes) = zones.next(Direction::Read, drawn, 16 * KIB, 4 * KIB);
            (offset / KIB, bytes / KIB)
        };
        // All zones are full at the start.
        assert_eq!(read(&mut zones, Some(200 * KIB)), (32 + 200, 16));
        write(&mut zones, Some(0), 8);
        assert_eq!(read(&mut zones, Some(48 * KIB)), (32, 8));
        assert_eq!(read(&mut zones, None), (32, 8));
        assert_eq!(read(&mut zones, None), (96, 16));
        // After its reset, a zone has nothing to read: the next one is read instead.
        assert_eq!(
            zones.next(Direction::Trim, Some(0), 64 * KIB, 64 * KIB),
            (32 * KIB, 64 * KIB)
        );
        assert_eq!(read(&mut zones, Some(0)).0, 96);
        let beyond = ZonedMode {
            read_beyond_wp: true,
            ..mode()
        };
        let mut zones = walk(beyond, 0, 1);
        write(&mut zones, Some(0), 8);
        assert_eq!(read(&mut zones, Some(44 * KIB)), (32 + 44, 16));
    }

    #[test]
    fn zones_are_reset_at_the_threshold() {
        let collected = ZonedMode {
            reset_threshold: 0.7,
            reset_every: 3,
            ..mode()
        };
        let mut zones = walk(collected, 0, 1);
        let offsets: Vec<u64> = (0..4).map(|_| write(&mut zones, Some(0), 4).0).collect();
        // The third write begins the zone again.
        assert_eq!(offsets, [32, 36, 32, 36]);
    }

    #[test]
    fn trims_reset_every_zone_before_they_begin_again() {
        let mut zones = walk(mode(), 0, 1);
        let mut seen: Vec<u64> = (0..4)
            .map(|_| zones.next(Direction::Trim, Some(70 * KIB), 512, 512).0 / KIB)
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, [32, 96, 160, 224]);
        assert_eq!(zones.valid, 0);
        assert_eq!(
            zones.next(Direction::Trim, Some(70 * KIB), 512, 512).0 / KIB,
            96
        );
    }
}
