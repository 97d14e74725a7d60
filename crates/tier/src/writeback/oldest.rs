//! Live units in the oldest segments.
//!
//! The map gives the slot of each unit; there is no reverse map, which would need the same amount of memory again.
//! Instead, the map is scanned for the oldest sixteenth of the dirty units at a time, and the result is kept by segment
//! until destaging has reached it: half a byte per dirty unit. Each dirty unit is therefore scanned about sixteen times
//! while it is dirty, at one or two nanoseconds each. Among units of the initial state, only those in the requested
//! segments are scanned, so while most units are of this kind, few are looked up at a time. Whether a unit found
//! earlier has been overwritten is determined by looking it up in the map. No units are added to these segments
//! meanwhile, because records are put at the head.

use alloc::vec::Vec;

use super::WriteBack;
use super::layout::{packed, unpacked};
use super::ring::UNIT;

/// One of this number of parts of the dirty units is looked up at a time.
const PARTS: u64 = 16;
/// Minimum number of units to look up.
const LEAST: u32 = 1 << 14;

/// Live units found by a scan.
#[derive(Clone, Debug, Default)]
pub(super) struct Oldest {
    /// Range of positions that was scanned: whole segments.
    from: u64,
    until: u64,
    /// Units segment by segment, each with its slot in the segment (below 2^20), packed into one number.
    found: Vec<u64>,
    /// Index in `found` at which each segment begins, and at which the last one ends.
    begins: Vec<u32>,
    /// Slots per segment.
    per: u64,
}

impl Oldest {
    /// Returns the slots and units found between the tail of the last scan and this position, in a ring of `slots`
    /// slots.
    pub(super) fn until(&self, until: u64, slots: u64) -> impl Iterator<Item = (u32, u64)> + '_ {
        let segments = (until - self.from) / self.per;
        (0..segments).flat_map(move |segment| {
            let base = ((self.from + segment * self.per) % slots) as u32;
            let of = &self.begins[segment as usize..];
            let found = &self.found[of[0] as usize..of[1] as usize];
            found.iter().map(move |&found| {
                let (slot, unit) = unpacked(found);
                (base + slot, unit)
            })
        })
    }

    /// Drops segments before the new tail.
    fn drop_before(&mut self, tail: u64) {
        let passed = ((tail - self.from) / self.per) as usize;
        self.begins.drain(..passed);
        self.from = tail;
    }
}

impl WriteBack {
    /// Finds the live units from the tail up to this position, which is the end of a segment that is entirely applied.
    pub(super) fn look_up_oldest(&mut self, until: u64) {
        let (tail, per) = (self.ring.tail(), u64::from(self.ring.per));
        let oldest = &mut self.oldest;
        if tail >= oldest.from && until <= oldest.until {
            return oldest.drop_before(tail);
        }
        let dirty = (self.dirty / u64::from(UNIT) / PARTS) as f64;
        let part = ((dirty * self.map.kept()) as u32).max(LEAST);
        let complete = tail + u64::from(self.ring.complete()) * per;
        (oldest.from, oldest.until, oldest.per) = (tail, tail, per);
        // The number of live units of each segment is known.
        let mut begins = core::mem::take(&mut oldest.begins);
        begins.clear();
        let mut sum = 0;
        for index in self.ring.oldest(complete.max(until)) {
            let live = self.ring.segments[index].live;
            if oldest.until >= until && sum + live > part {
                break;
            }
            begins.push(sum);
            sum += live;
            oldest.until += per;
        }
        begins.push(sum);
        let mut found = core::mem::take(&mut oldest.found);
        found.clear();
        found.resize(sum as usize, 0);
        let (first, slots) = (self.ring.slot(tail), self.ring.slots() as u32);
        let (span, per) = ((oldest.until - tail) as u32, self.ring.per);
        // Among units of the initial state only these; a range beyond the ring's end wraps around to its beginning.
        let near = match first.checked_add(span) {
            Some(end) if end <= slots => first..end,
            _ => 0..slots,
        };
        self.map.each_near(near, |unit, slot| {
            let into = match slot < first {
                true => slot + (slots - first),
                false => slot - first,
            };
            if into < span {
                let next = &mut begins[(into / per) as usize];
                found[*next as usize] = packed(into % per, unit);
                *next += 1;
            }
        });
        // Each value has become the beginning of the next segment.
        begins.rotate_right(1);
        begins[0] = 0;
        debug_assert_eq!(begins.last(), Some(&sum), "live is counted wrongly");
        (self.oldest.found, self.oldest.begins) = (found, begins);
    }
}
