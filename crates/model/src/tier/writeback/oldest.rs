//! What is live in the oldest segments.
//!
//! The map says where a unit is, and nothing says what is in a slot: that would take as much memory again. So the map is gone
//! through for the oldest sixteenth of what is dirty at a time, and what is found is kept by segment until destaging has come
//! there: half a byte for each that is dirty. All of it is looked at some sixteen times while it is dirty, a nanosecond or
//! two each. Of what the start put there only what is asked for is looked at, so while most is, little is looked up at a
//! time. What has been overwritten since it was found is known by asking the map. Nothing comes to these segments meanwhile:
//! records are put at the head.

use alloc::vec::Vec;

use super::WriteBack;
use super::layout::{packed, unpacked};
use super::ring::UNIT;

/// Parts of what is dirty of which one is looked up at a time.
const PARTS: u64 = 16;
/// As many are looked up at least.
const LEAST: u32 = 1 << 14;

/// What was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Oldest {
    /// The positions that it is of: whole segments.
    from: u64,
    until: u64,
    /// Segment by segment, each by its slot in that (of less than 2^20) and its unit, packed into one number.
    found: Vec<u64>,
    /// Where each segment begins in it, and where the last ends.
    begins: Vec<u32>,
    /// Slots of a segment.
    per: u64,
}

impl Oldest {
    /// What was found in the segments from the tail that was asked for last up to this position, in a ring of so many
    /// slots: slots and units.
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

    /// The tail has moved on.
    fn go_on_from(&mut self, tail: u64) {
        let passed = ((tail - self.from) / self.per) as usize;
        self.begins.drain(..passed);
        self.from = tail;
    }
}

impl WriteBack {
    /// Finds what is live from the tail up to this position, the end of a segment in which all is applied.
    pub(super) fn look_up_oldest(&mut self, until: u64) {
        let (tail, per) = (self.ring.tail(), u64::from(self.ring.per));
        let oldest = &mut self.oldest;
        if tail >= oldest.from && until <= oldest.until {
            return oldest.go_on_from(tail);
        }
        let dirty = (self.dirty / u64::from(UNIT) / PARTS) as f64;
        let part = ((dirty * self.map.kept()) as u32).max(LEAST);
        let complete = tail + u64::from(self.ring.complete()) * per;
        (oldest.from, oldest.until, oldest.per) = (tail, tail, per);
        // Each segment knows how much is live in it.
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
        // Of what the start put there only these; beyond the ring's end from its beginning.
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
        // Each has come to where the next began.
        begins.rotate_right(1);
        begins[0] = 0;
        debug_assert_eq!(begins.last(), Some(&sum), "live is counted wrongly");
        (self.oldest.found, self.oldest.begins) = (found, begins);
    }
}
