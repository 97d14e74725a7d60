//! The ring of segments: which slots of the cache are in use, and by what.
//!
//! A position counts slots of 4 KiB since the beginning and never decreases; a slot is a position modulo the ring.
//! Records are put at the head and do not cross segments; the tail advances by whole segments. Between them are units
//! that the map points to (live), units that have been overwritten, and headers. Only the map distinguishes them: the
//! live units of the oldest segments are found by scanning the map, for many segments at a time ([`super::oldest`]).

use alloc::vec;
use alloc::vec::Vec;

use model::time::Time;

use crate::planted::{self, Bug};
use crate::record;

/// Bytes of a unit, a slot and a header.
pub(super) const UNIT: u32 = 4096;

/// State of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RingSegment {
    /// Number of units that the map points to.
    pub(super) live: u32,
    /// Number of commands that prevent it from being freed.
    pub(super) pins: u32,
    /// When a record was last put into it, if the policy needs that.
    pub(super) written: Time,
    /// Bytes of headers and entries of its records.
    log: u32,
    /// Number of its first record, and checksum of the record before it.
    pub(super) first: (u64, u32),
}

/// State of the ring.
#[derive(Clone, Debug)]
pub(super) struct SegmentRing {
    /// Slots per segment.
    pub(super) per: u32,
    /// Slots of all segments.
    slots: u64,
    pub(super) segments: Vec<RingSegment>,
    /// Position of the next record, its slot, and the slots from there to the segment's end.
    head: u64,
    head_slot: u32,
    left: u32,
    /// Position up to which records have been applied to the map.
    applied: u64,
    /// The first position in use: a segment's beginning.
    tail: u64,
    /// Bytes of headers and entries between tail and head, and their maximum.
    log: u64,
    log_limit: u64,
    /// Share of the whole that one slot, and one byte of the log, are.
    share: f64,
    log_share: f64,
}

impl SegmentRing {
    /// Creates an empty ring of `segments` segments of `per` slots.
    pub(super) fn new(segments: u32, per: u32, log_limit: u64) -> SegmentRing {
        let slots = segments as usize * per as usize;
        SegmentRing {
            per,
            head_slot: 0,
            left: per,
            share: 1.0 / slots.max(1) as f64,
            log_share: 1.0 / log_limit as f64,
            slots: slots as u64,
            segments: vec![RingSegment::default(); segments as usize],
            head: 0,
            applied: 0,
            tail: 0,
            log: 0,
            log_limit,
        }
    }

    /// Returns the number of slots.
    pub(super) fn slots(&self) -> u64 {
        self.slots
    }

    /// Returns the slot of a position.
    #[inline]
    pub(super) fn slot(&self, position: u64) -> u32 {
        (position % self.slots()) as u32
    }

    /// Returns the position of a slot that is in use.
    #[inline]
    pub(super) fn position(&self, slot: u32) -> u64 {
        let head = self.head_slot;
        let back = match slot < head {
            true => head - slot,
            false => head + (self.slots() as u32 - slot),
        };
        self.head - u64::from(back)
    }

    /// Returns the segment of a slot.
    #[inline]
    pub(super) fn segment(&self, slot: u32) -> u32 {
        slot / self.per
    }

    /// Returns the position of the next record.
    #[inline]
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Returns the slot of the next record.
    #[inline]
    pub(super) fn head_slot(&self) -> u32 {
        self.head_slot
    }

    /// Returns the position up to which records have been applied.
    pub(super) fn applied(&self) -> u64 {
        self.applied
    }

    /// Returns the first position in use.
    pub(super) fn tail(&self) -> u64 {
        self.tail
    }

    /// Returns the share in use, 0 to 1: of the slots, or of the maximum log bytes, whichever is larger.
    #[inline]
    pub(super) fn fill(&self) -> f64 {
        let slots = (self.head - self.tail) as f64 * self.share;
        let log = self.log as f64 * self.log_share;
        slots.max(log)
    }

    /// Returns the number of slots, starting at the head, that a record can use; 0 if it must wait for the tail.
    pub(super) fn room(&mut self) -> u32 {
        if self.left == 1 {
            // A header alone carries no data: the slot stays unused.
            self.go_to(self.head + 1);
        }
        let left = self.left;
        let border = left == self.per;
        let full = self.head + u64::from(self.per) > self.tail + self.slots();
        let log = self.log >= self.log_limit;
        if log || (border && full) { 0 } else { left }
    }

    /// Sets the position of the head.
    fn go_to(&mut self, position: u64) {
        self.head = position;
        self.head_slot = self.slot(position);
        self.left = self.per - self.head_slot % self.per;
    }

    /// Advances the head within its segment, or to the next.
    #[inline]
    fn advance(&mut self, slots: u32) {
        self.head += u64::from(slots);
        self.head_slot += slots;
        self.left -= slots;
        if self.left == 0 {
            self.go_to(self.head);
        }
    }

    /// Puts the header of a record at the head; returns its position.
    #[inline]
    pub(super) fn begin(&mut self, number: u64, previous: u32) -> u64 {
        let (at, slot) = (self.head, self.head_slot);
        if self.left == self.per {
            let segment = self.segment(slot);
            self.segments[segment as usize].first = (number, previous);
        }
        self.account(slot, record::HEAD as u32);
        self.advance(1);
        at
    }

    /// Puts units after it, contiguously.
    #[inline]
    pub(super) fn put(&mut self, count: u32) {
        let slot = self.head_slot;
        self.account(slot, count * record::ENTRY as u32);
        self.advance(count);
    }

    /// Whether the next record begins a segment.
    pub(super) fn is_at_border(&self) -> bool {
        self.left == self.per
    }

    /// Fills up to `most` segments, starting at the head, which is at a border, with copies of the full segment `full`,
    /// and applies them; fewer if the log limit is reached. Returns how many.
    pub(super) fn repeat(&mut self, full: u32, most: u64) -> u64 {
        let full = self.segments[full as usize];
        let log = self.log_limit.saturating_sub(self.log);
        let times = most.min(log / u64::from(full.log.max(1)));
        let first = self.segment(self.head_slot) as usize;
        if times > 0 {
            self.segments[first..first + times as usize].fill(full);
        }
        self.log += times * u64::from(full.log);
        self.go_to(self.head + times * u64::from(self.per));
        self.apply(self.head);
        times
    }

    /// Counts an entry without data of the record that ends at the head.
    pub(super) fn note(&mut self) {
        let slot = self.slot(self.head - 1);
        self.account(slot, record::ENTRY as u32);
    }

    fn account(&mut self, slot: u32, bytes: u32) {
        let segment = self.segment(slot);
        self.segments[segment as usize].log += bytes;
        self.log += u64::from(bytes);
    }

    /// Returns the live count of a slot's segment, for changing.
    #[inline]
    pub(super) fn live(&mut self, slot: u32) -> &mut u32 {
        let segment = self.segment(slot);
        &mut self.segments[segment as usize].live
    }

    /// Returns when the segment at the tail was last written.
    pub(super) fn written(&self) -> Time {
        let segment = self.segment(self.slot(self.tail));
        self.segments[segment as usize].written
    }

    /// Marks all records up to this position as applied.
    pub(super) fn apply(&mut self, until: u64) {
        self.applied = until;
    }

    /// Power cut: discards everything that is not applied; no command needs a segment any more.
    pub(super) fn cut(&mut self) {
        self.go_to(self.applied);
        for segment in &mut self.segments {
            segment.pins = 0;
        }
    }

    /// Makes an empty ring continue at the beginning of a segment.
    pub(super) fn restart_at(&mut self, tail: u64) {
        (self.tail, self.applied) = (tail, tail);
        self.go_to(tail);
    }

    /// Returns the number of whole segments, starting at the tail, that are entirely applied.
    pub(super) fn complete(&self) -> u32 {
        ((self.applied - self.tail) / u64::from(self.per)) as u32
    }

    /// Returns the number of segments in use, including partly filled ones.
    pub(super) fn used(&self) -> u32 {
        (self.head - self.tail).div_ceil(u64::from(self.per)) as u32
    }

    /// Returns the segments from the tail up to this position.
    pub(super) fn oldest(&self, until: u64) -> impl Iterator<Item = usize> + use<> {
        let (per, count) = (u64::from(self.per), self.segments.len() as u64);
        (self.tail / per..until / per).map(move |index| (index % count) as usize)
    }

    /// Returns the number of the first record at or after a segment's beginning, and the checksum of the one before it;
    /// `None` if there is none yet.
    pub(super) fn first_record(&self, position: u64) -> Option<(u64, u32)> {
        let segment = self.segment(self.slot(position));
        (position < self.head).then(|| self.segments[segment as usize].first)
    }

    /// Frees segments up to this position, in which no unit is live.
    pub(super) fn free(&mut self, until: u64) {
        for index in self.oldest(until) {
            let segment = &mut self.segments[index];
            let pins = match planted::has(Bug::ReusesUnderReads) {
                true => 0,
                false => segment.pins,
            };
            debug_assert_eq!((segment.live, pins), (0, 0), "a segment in use is freed");
            self.log -= u64::from(core::mem::take(&mut segment.log));
        }
        self.tail = until;
    }
}
