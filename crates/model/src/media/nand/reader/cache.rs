//! The read-ahead cache of a drive, and the streams that it follows.
//!
//! The controller's DRAM holds the units of its last streams; a read finds its units there, on their way, or not at
//! all. Only their locations are stored, because the data is not modelled. The senses themselves belong to the reader.
//!
//! Each unit may be in one of a few entries, and the oldest of these is replaced. Streams do not evict each other's
//! units as long as there are no more streams than the controller follows.
//!
//! A read that continues where another ended is evidence of a stream only if it was submitted after the other had
//! completed. The pieces of one large I/O arrive back to back, whether the drive, a RAID or the host has split it, and
//! give no information about the next I/O. Not modelled: the stream detection of real firmware, which no manufacturer
//! publishes.

use alloc::vec;
use alloc::vec::Vec;

use super::super::array::SenseId;
use super::super::config::ReadAhead;
use super::super::front::CommandSegment;
use crate::command::CommandId;
use crate::ftl::{Page, Slot, UNIT};
use crate::time::Time;

/// Number of streams followed at a time; a new one replaces the least recently read.
const STREAMS: usize = 16;

/// Marks an empty entry.
const NOTHING: Slot = Slot(u32::MAX);

/// Number of entries in which a unit may be.
const WAYS: usize = 8;

/// The controller's memory of read-ahead data.
#[derive(Clone, Debug)]
pub(super) struct ReadAheadCache {
    ahead_units: u32,
    after: u32,
    /// Whether nothing has been read ahead yet.
    unused: bool,
    /// Sets, by [`ReadAheadCache::place`] of the logical page.
    sets: Vec<Set>,
    set_bits: u32,
    /// Offset in bytes at which each stream would continue.
    next: [u64; STREAMS],
    /// The lower halves of these, which are searched first: the processor compares four at a time.
    next_low: [u32; STREAMS],
    streams: [ReadStream; STREAMS],
    /// Streams, the most recently read first.
    order: [u8; STREAMS],
    /// Number of senses whose share of controller time is already booked: by commands that found all of their data
    /// here.
    booked: u32,
}

/// Units that have been or are being read ahead, the youngest first.
#[derive(Clone, Copy, Debug)]
struct Set {
    /// The slots of their data, or [`NOTHING`].
    slots: [Slot; WAYS],
    /// The senses that return them, until they have.
    senses: [Option<SenseId>; WAYS],
}

impl Set {
    const EMPTY: Set = Set {
        slots: [NOTHING; WAYS],
        senses: [None; WAYS],
    };

    /// Returns the entry of this slot's data. All entries are compared, because that is faster than stopping at the
    /// first match.
    #[inline]
    fn way(&self, slot: Slot) -> Option<usize> {
        let mut found = 0_u32;
        for (at, &held) in self.slots.iter().enumerate() {
            found |= u32::from(held == slot) << at;
        }
        (found != 0).then(|| found.trailing_zeros() as usize)
    }
}

#[derive(Clone, Copy, Debug)]
struct ReadStream {
    /// Number of reads that continued it after a completion.
    hits: u32,
    /// First page not read ahead yet.
    ahead: Page,
    /// The read that began it or was its last evidence, and when that was submitted.
    evidence: Option<(CommandId, Time)>,
}

impl ReadStream {
    const fn begun_by(evidence: Option<(CommandId, Time)>) -> ReadStream {
        ReadStream {
            hits: 0,
            ahead: Page(0),
            evidence,
        }
    }
}

/// Result of a look-up in the cache.
pub(super) enum CacheLookup {
    Nothing,
    Ready,
    Coming(SenseId),
}

impl ReadAheadCache {
    pub(super) fn new(config: &ReadAhead, max_transfer: u32) -> ReadAheadCache {
        let ahead_units = (config.bytes / UNIT).max(1);
        // Space for all streams and for the pages that outstanding commands still need of each, a quarter full so that
        // few sets overflow.
        let each = ahead_units + max_transfer / UNIT;
        let sets = (4 * STREAMS as u32 * each / WAYS as u32).next_power_of_two();
        ReadAheadCache {
            ahead_units,
            after: config.after,
            unused: true,
            sets: vec![Set::EMPTY; sets as usize],
            set_bits: sets.trailing_zeros(),
            next: [u64::MAX; STREAMS],
            next_low: [u32::MAX; STREAMS],
            streams: [ReadStream::begun_by(None); STREAMS],
            order: core::array::from_fn(|at| (STREAMS - 1 - at) as u8),
            booked: 0,
        }
    }

    /// Returns the set of a page. Consecutive pages have consecutive sets. Streams that begin at round distances do not
    /// collide: each part of the drive as long as the table is rotated by a different amount.
    #[inline]
    fn place(&self, page: Page) -> usize {
        let stretch = u64::from(page.0 >> self.set_bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let turned = (stretch >> (64 - self.set_bits)) as u32;
        (page.0.wrapping_add(turned) as usize) & (self.sets.len() - 1)
    }

    /// Looks up whether the data of this page, which is in this slot, has been read ahead.
    #[inline]
    pub(super) fn find(&self, page: Page, slot: Slot) -> CacheLookup {
        if self.unused {
            return CacheLookup::Nothing;
        }
        let set = &self.sets[self.place(page)];
        match set.way(slot) {
            None => CacheLookup::Nothing,
            Some(way) => set.senses[way].map_or(CacheLookup::Ready, CacheLookup::Coming),
        }
    }

    /// Records that this sense returns the data of this page, which is in this slot. Commands that wait for the
    /// replaced entry are attached to its sense and are still served.
    #[inline]
    pub(super) fn expect(&mut self, page: Page, slot: Slot, sense: SenseId) {
        self.unused = false;
        let place = self.place(page);
        let set = &mut self.sets[place];
        set.slots.copy_within(..WAYS - 1, 1);
        set.senses.copy_within(..WAYS - 1, 1);
        set.slots[0] = slot;
        set.senses[0] = Some(sense);
    }

    /// The sense has returned its data of this page.
    #[inline]
    pub(super) fn came(&mut self, page: Page, sense: SenseId) {
        let place = self.place(page);
        for bringing in &mut self.sets[place].senses {
            if *bringing == Some(sense) {
                *bringing = None;
            }
        }
    }

    /// Whether the sense will still return this page. It will not if younger streams have replaced its entry.
    #[inline]
    pub(super) fn expects(&self, page: Page, sense: SenseId) -> bool {
        self.sets[self.place(page)].senses.contains(&Some(sense))
    }

    /// Returns the number of units kept for all streams: if this number already waits, dies have no spare time, and
    /// more senses are useless.
    #[inline]
    pub(super) fn most_units(&self) -> u32 {
        STREAMS as u32 * self.ahead_units
    }

    /// Records a read that was submitted at this time; returns the pages to read ahead, if it continues a stream.
    /// `answered` returns for an earlier read, with its time of submission, whether it has completed.
    #[inline]
    pub(super) fn follow(
        &mut self,
        segment: &CommandSegment,
        submitted: Time,
        page_slots: u32,
        answered: impl Fn(CommandId, Time) -> bool,
    ) -> Option<(Page, Page)> {
        let end = segment.end();
        let Some(at) = self.stream_at(segment.offset) else {
            // With random reads, nearly every read reaches this point.
            let oldest = self.order[STREAMS - 1];
            self.order.copy_within(..STREAMS - 1, 1);
            self.order[0] = oldest;
            self.goes_on(oldest as usize, end);
            self.streams[oldest as usize] = ReadStream::begun_by(Some((segment.id, submitted)));
            return None;
        };
        self.read_last(at);
        self.goes_on(at, end);
        let stream = &mut self.streams[at];
        if stream.hits < self.after {
            if stream.evidence.is_some_and(|(id, at)| !answered(id, at)) {
                return None;
            }
            stream.hits += 1;
            stream.evidence = Some((segment.id, submitted));
            if stream.hits < self.after {
                return None;
            }
        }
        let behind = Page(end.div_ceil(u64::from(UNIT)) as u32);
        let from = stream.ahead.max(behind);
        let to = behind.plus(self.ahead_units);
        // Read-ahead is in whole NAND pages if possible, so most reads of a unit start none.
        if to.0 - from.0 < page_slots.min(self.ahead_units) {
            return None;
        }
        stream.ahead = to;
        Some((from, to))
    }

    /// Returns the stream that would continue at this offset. All lower halves are compared, because that is faster
    /// than stopping at the first match.
    #[inline]
    fn stream_at(&self, offset: u64) -> Option<usize> {
        let low = self.next_low.iter();
        let maybe = low.fold(false, |found, &low| found | (low == offset as u32));
        if !maybe {
            return None;
        }
        self.next.iter().position(|&next| next == offset)
    }

    /// Sets where a stream would continue.
    #[inline]
    fn goes_on(&mut self, stream: usize, offset: u64) {
        self.next[stream] = offset;
        self.next_low[stream] = offset as u32;
    }

    fn read_last(&mut self, stream: usize) {
        if let Some(place) = self.order.iter().position(|&at| at as usize == stream) {
            self.order.copy_within(..place, 1);
            self.order[0] = stream as u8;
        }
    }

    /// A command that found all of its data here has booked a share of controller time that a sense may use.
    #[inline]
    pub(super) fn book(&mut self) {
        self.booked = (self.booked + 1).min(self.most_units());
    }

    /// Uses such a share, if there is one.
    #[inline]
    pub(super) fn use_booked(&mut self) -> bool {
        let booked = self.booked > 0;
        self.booked -= u32::from(booked);
        booked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::PrecomputedSlot;
    use crate::random::Stream;
    use crate::time::Span;

    /// Streams at random offsets, each with its maximum of read-ahead data: hardly any of it is replaced by the others.
    #[test]
    fn sixteen_streams_leave_each_other_alone() {
        let config = ReadAhead {
            bytes: 512 << 10,
            after: 2,
        };
        let mut random = Stream::new(1, "streams");
        for round in 0..200 {
            let mut cache = ReadAheadCache::new(&config, 128 << 10);
            let distance = 1 << (round % 20);
            let starts: [u32; STREAMS] = core::array::from_fn(|at| match round < 20 {
                true => at as u32 * 128 * distance,
                false => random.uniform_below(1 << 27) as u32,
            });
            let pages = |start: u32| start..start + 128 + 32;
            for page in starts.into_iter().flat_map(pages) {
                cache.expect(Page(page), Slot(page), SenseId::from_number(7));
                cache.came(Page(page), SenseId::from_number(7));
            }
            let all = starts.into_iter().flat_map(pages);
            let lost = all
                .filter(|&page| !matches!(cache.find(Page(page), Slot(page)), CacheLookup::Ready));
            assert!(
                lost.count() < STREAMS * 160 / 100,
                "round {round}: {starts:?}"
            );
        }
    }

    /// Sequential I/Os in `pieces` pieces of 128 KiB; each I/O completes before the next one, or none completes at all.
    /// Returns how many are read before the drive reads ahead, or `None` if it never does.
    fn followed_after(pieces: u32, answered: bool) -> Option<u32> {
        let config = ReadAhead {
            bytes: 512 << 10,
            after: 2,
        };
        let mut cache = ReadAheadCache::new(&config, 128 << 10);
        for io in 0..8 {
            let submitted = Time::from_ns(1000 * u64::from(io));
            for piece in 0..pieces {
                let segment = CommandSegment {
                    at: submitted,
                    id: io * pieces + piece,
                    offset: u64::from(io * pieces + piece) * (128 << 10),
                    bytes: 128 << 10,
                    dispatched: submitted,
                    looked_up: Span::ZERO,
                    foreseen: PrecomputedSlot::NOTHING,
                };
                let before = |_, at| answered && at < submitted;
                if cache.follow(&segment, submitted, 8, before).is_some() {
                    return Some(io);
                }
            }
        }
        None
    }

    #[test]
    fn pieces_of_one_read_are_no_evidence_of_a_stream() {
        for pieces in [1, 2, 8] {
            assert_eq!(followed_after(pieces, true), Some(2), "{pieces} pieces");
            assert_eq!(followed_after(pieces, false), None, "{pieces} pieces");
        }
    }

    #[test]
    fn streams_4_gib_apart_are_told_apart() {
        let config = ReadAhead {
            bytes: 512 << 10,
            after: 2,
        };
        let mut cache = ReadAheadCache::new(&config, 128 << 10);
        let far = 1 << 32;
        for (stream, offset) in [(3, 4096), (5, 4096 + far), (9, 4096 + 2 * far)] {
            cache.goes_on(stream, offset);
        }
        assert_eq!(cache.stream_at(4096 + far), Some(5));
        assert_eq!(cache.stream_at(4096 + 2 * far), Some(9));
        assert_eq!(cache.stream_at(4096), Some(3));
        // Equal to some in its lower half, and to none as a whole.
        assert_eq!(cache.stream_at(4096 + 3 * far), None);
        assert_eq!(cache.stream_at(8192), None);
    }

    #[test]
    fn what_gives_way_is_the_oldest() {
        let config = ReadAhead {
            bytes: 4096,
            after: 1,
        };
        let mut cache = ReadAheadCache::new(&config, 4096);
        for slot in 0..=WAYS as u32 {
            cache.expect(Page(5), Slot(slot), SenseId::from_number(100 + slot));
        }
        assert!(matches!(cache.find(Page(5), Slot(0)), CacheLookup::Nothing));
        assert!(
            matches!(cache.find(Page(5), Slot(1)), CacheLookup::Coming(sense) if sense == SenseId::from_number(101))
        );
        cache.came(Page(5), SenseId::from_number(101));
        assert!(matches!(cache.find(Page(5), Slot(1)), CacheLookup::Ready));
        assert!(
            matches!(cache.find(Page(5), Slot(2)), CacheLookup::Coming(sense) if sense == SenseId::from_number(102))
        );
    }
}
