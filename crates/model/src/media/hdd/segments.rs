//! Segments of the buffer: ranges of the disk that were read, read ahead, or written.
//!
//! The least recently used segment is replaced. A write clears the segments that it overlaps, as the manuals of the
//! drives state, and is stored as a segment itself. Not modelled: that segments share one memory and may vary in
//! number.

use alloc::vec;
use alloc::vec::Vec;

/// A range in the buffer; empty if it ends where it starts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CacheSegment {
    pub(super) start: u64,
    pub(super) end: u64,
    used: u64,
}

/// All segments, with the time of their last use.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    all: Vec<CacheSegment>,
    most: u64,
    clock: u64,
}

impl Segments {
    pub(super) fn new(count: u32, most: u64) -> Segments {
        Segments {
            all: vec![CacheSegment::default(); count as usize],
            most,
            clock: 0,
        }
    }

    /// Returns the segment that contains this range, and marks it as used.
    #[inline]
    pub(super) fn hit(&mut self, offset: u64, end: u64) -> Option<usize> {
        let at = self
            .all
            .iter()
            .position(|it| it.start <= offset && end <= it.end)?;
        self.touch(at);
        Some(at)
    }

    /// Returns the segment that contains this byte, or ends before it.
    #[inline]
    pub(super) fn meeting(&self, offset: u64) -> Option<usize> {
        let meets = |it: &CacheSegment| it.start <= offset && offset <= it.end && it.start < it.end;
        self.all.iter().position(meets)
    }

    pub(super) fn get(&self, at: usize) -> CacheSegment {
        self.all[at]
    }

    /// Stores a range that has passed under the head: in segment `behind`, which it continues, if that still ends
    /// there.
    pub(super) fn remember(&mut self, offset: u64, end: u64, behind: Option<usize>) -> usize {
        let still = |at: &usize| self.all[*at].end == offset && self.all[*at].start < offset;
        let at = behind.filter(still).unwrap_or_else(|| {
            let oldest = self.all.iter().enumerate().min_by_key(|(_, it)| it.used);
            let at = oldest.map_or(0, |(at, _)| at);
            self.all[at].start = offset;
            at
        });
        self.touch(at);
        self.grow(at, end);
        at
    }

    /// Extends a segment up to `end`; the oldest data is dropped if it exceeds the maximum.
    pub(super) fn grow(&mut self, at: usize, end: u64) {
        let segment = &mut self.all[at];
        segment.end = end;
        segment.start = segment.start.max(end.saturating_sub(self.most));
    }

    /// Removes these bytes, because the disk will have other data.
    #[inline]
    pub(super) fn clear(&mut self, offset: u64, end: u64) {
        for it in &mut self.all {
            if it.start < end && offset < it.end {
                *it = CacheSegment::default();
            }
        }
    }

    /// Empties all segments.
    pub(super) fn forget(&mut self) {
        self.all.fill(CacheSegment::default());
    }

    fn touch(&mut self, at: usize) {
        self.clock += 1;
        self.all[at].used = self.clock;
    }
}
