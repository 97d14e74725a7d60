//! What the buffer remembers of the disk: stretches that were read, read ahead, or written.
//!
//! The one that was used least recently makes room. A write clears those that it touches, as the manuals of the drives say,
//! and is remembered itself. Leaves out: that segments share one memory and may be of any number.

use alloc::vec;
use alloc::vec::Vec;

/// A stretch in memory; empty if it ends where it starts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) end: u64,
    used: u64,
}

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    all: Vec<Segment>,
    most: u64,
    clock: u64,
}

impl Segments {
    pub(super) fn new(count: u32, most: u64) -> Segments {
        Segments {
            all: vec![Segment::default(); count as usize],
            most,
            clock: 0,
        }
    }

    /// The one in which this range lies, which is used now.
    #[inline]
    pub(super) fn hit(&mut self, offset: u64, end: u64) -> Option<usize> {
        let at = self
            .all
            .iter()
            .position(|it| it.start <= offset && end <= it.end)?;
        self.touch(at);
        Some(at)
    }

    /// The one that has this byte, or ends before it.
    #[inline]
    pub(super) fn meeting(&self, offset: u64) -> Option<usize> {
        let meets = |it: &Segment| it.start <= offset && offset <= it.end && it.start < it.end;
        self.all.iter().position(meets)
    }

    pub(super) fn get(&self, at: usize) -> Segment {
        self.all[at]
    }

    /// Remembers a range that has passed under the head, in the segment `behind` which it came if that still ends there.
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

    /// Data up to here have come; the oldest give way where there are too many.
    pub(super) fn grow(&mut self, at: usize, end: u64) {
        let segment = &mut self.all[at];
        segment.end = end;
        segment.start = segment.start.max(end.saturating_sub(self.most));
    }

    /// These bytes are no longer what the disk has.
    #[inline]
    pub(super) fn clear(&mut self, offset: u64, end: u64) {
        for it in &mut self.all {
            if it.start < end && offset < it.end {
                *it = Segment::default();
            }
        }
    }

    /// All is forgotten.
    pub(super) fn forget(&mut self) {
        self.all.fill(Segment::default());
    }

    fn touch(&mut self, at: usize) {
        self.clock += 1;
        self.all[at].used = self.clock;
    }
}
