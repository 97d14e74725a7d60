//! What a drive has read ahead of sequential streams, and which streams it follows.
//!
//! The controller's DRAM holds the units of its last streams; a read finds them there, or on their way, or not. Only
//! their places are kept: the data are nobody's here. The senses themselves are the reader's.
//!
//! Each unit may be in one of a few entries, and the oldest of these gives way: streams do not push each other out as
//! long as there are no more of them than the controller follows.
//!
//! A read that goes on where another ended is evidence of a stream only if it was asked for after the other was
//! answered. The pieces of one large I/O come back to back, whether the drive, a RAID or the host has cut it, and say
//! nothing about the next one. Leaves out: what real firmware takes for a stream, which no maker publishes.

use alloc::vec;
use alloc::vec::Vec;

use super::super::array::SenseId;
use super::super::config::ReadAhead;
use super::super::front::Segment;
use crate::command::CommandId;
use crate::ftl::{Page, Slot, UNIT};
use crate::time::Time;

/// Streams that are followed at a time; a new one takes the place of that which was longest not read.
const STREAMS: usize = 16;

/// In place of a slot that holds nothing.
const NOTHING: Slot = Slot(u32::MAX);

/// Entries in which a unit may be.
const WAYS: usize = 8;

/// The controller's memory of what has been read ahead.
#[derive(Clone, Debug)]
pub(super) struct ReadCache {
    ahead_units: u32,
    after: u32,
    /// Nothing has been read ahead yet.
    unused: bool,
    /// By [`ReadCache::place`] of the logical page.
    sets: Vec<Set>,
    set_bits: u32,
    /// Where each stream would go on, in bytes.
    next: [u64; STREAMS],
    /// The lower halves of these, in which a stream is looked for first: the processor compares four at a time.
    next_low: [u32; STREAMS],
    streams: [ReadStream; STREAMS],
    /// The streams, that which was read last first.
    order: [u8; STREAMS],
    /// Senses whose share of the controller is booked already: by commands that found all of their data here.
    booked: u32,
}

/// Units that have been read ahead, or are being, the youngest first.
#[derive(Clone, Copy, Debug)]
struct Set {
    /// The slots whose data they are, or [`NOTHING`].
    slots: [Slot; WAYS],
    /// The senses that bring them, until they are there.
    senses: [Option<SenseId>; WAYS],
}

impl Set {
    const EMPTY: Set = Set {
        slots: [NOTHING; WAYS],
        senses: [None; WAYS],
    };

    /// Where the data of this slot are. All are looked at, as that takes less than to stop at the first.
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
    /// Reads that went on with it after an answer.
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

/// What a read finds in the cache.
pub(super) enum Found {
    Nothing,
    Ready,
    Coming(SenseId),
}

impl ReadCache {
    pub(super) fn new(config: &ReadAhead, max_transfer: u32) -> ReadCache {
        let ahead_units = (config.bytes / UNIT).max(1);
        // Room for all streams and for what commands in flight still need of each, a quarter full so that few sets are
        // asked for more than they hold.
        let each = ahead_units + max_transfer / UNIT;
        let sets = (4 * STREAMS as u32 * each / WAYS as u32).next_power_of_two();
        ReadCache {
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

    /// Pages that follow one another have places that do. Streams that begin at round distances do not meet: each
    /// stretch of the drive as long as the table is turned by another part of it.
    #[inline]
    fn place(&self, page: Page) -> usize {
        let stretch = u64::from(page.0 >> self.set_bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let turned = (stretch >> (64 - self.set_bits)) as u32;
        (page.0.wrapping_add(turned) as usize) & (self.sets.len() - 1)
    }

    /// Whether the data of this page, which are in this slot, have been read ahead.
    #[inline]
    pub(super) fn find(&self, page: Page, slot: Slot) -> Found {
        if self.unused {
            return Found::Nothing;
        }
        let set = &self.sets[self.place(page)];
        match set.way(slot) {
            None => Found::Nothing,
            Some(way) => set.senses[way].map_or(Found::Ready, Found::Coming),
        }
    }

    /// This sense brings the data of this page, which are in this slot. Commands that wait for what gives way hang
    /// on that sense and are served all the same.
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

    /// The sense has brought what it was to bring of this page.
    #[inline]
    pub(super) fn came(&mut self, page: Page, sense: SenseId) {
        let place = self.place(page);
        for bringing in &mut self.sets[place].senses {
            if *bringing == Some(sense) {
                *bringing = None;
            }
        }
    }

    /// Whether the sense is still to bring this page. It is not where younger streams have taken its place.
    #[inline]
    pub(super) fn expects(&self, page: Page, sense: SenseId) -> bool {
        self.sets[self.place(page)].senses.contains(&Some(sense))
    }

    /// Units that are kept for all streams: where as many wait already, dies have no time to spare, and more is no use.
    #[inline]
    pub(super) fn most_units(&self) -> u32 {
        STREAMS as u32 * self.ahead_units
    }

    /// Takes note of a read, submitted then; returns the pages to read ahead, if it continues a stream. `answered` tells
    /// of an earlier read and the time of its submission whether it has been completed.
    #[inline]
    pub(super) fn follow(
        &mut self,
        segment: &Segment,
        submitted: Time,
        page_slots: u32,
        answered: impl Fn(CommandId, Time) -> bool,
    ) -> Option<(Page, Page)> {
        let end = segment.end();
        let Some(at) = self.stream_at(segment.offset) else {
            // At random nearly every read comes here.
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
        // In whole NAND pages where possible, so not for every unit that is read.
        if to.0 - from.0 < page_slots.min(self.ahead_units) {
            return None;
        }
        stream.ahead = to;
        Some((from, to))
    }

    /// The stream that would go on there. All lower halves are looked at, as that takes less than to stop at the first.
    #[inline]
    fn stream_at(&self, offset: u64) -> Option<usize> {
        let low = self.next_low.iter();
        let maybe = low.fold(false, |found, &low| found | (low == offset as u32));
        if !maybe {
            return None;
        }
        self.next.iter().position(|&next| next == offset)
    }

    /// A stream would go on there.
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

    /// A command that found all of its data here has booked a share of the controller that a sense may use.
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
    use crate::ftl::Foreseen;
    use crate::random::Stream;
    use crate::time::Span;

    /// Streams anywhere, each with all that it may have in hand: hardly any of it is pushed out by the others.
    #[test]
    fn sixteen_streams_leave_each_other_alone() {
        let config = ReadAhead {
            bytes: 512 << 10,
            after: 2,
        };
        let mut random = Stream::new(1, "streams");
        for round in 0..200 {
            let mut cache = ReadCache::new(&config, 128 << 10);
            let distance = 1 << (round % 20);
            let starts: [u32; STREAMS] = core::array::from_fn(|at| match round < 20 {
                true => at as u32 * 128 * distance,
                false => random.below(1 << 27) as u32,
            });
            let pages = |start: u32| start..start + 128 + 32;
            for page in starts.into_iter().flat_map(pages) {
                cache.expect(Page(page), Slot(page), SenseId::of(7));
                cache.came(Page(page), SenseId::of(7));
            }
            let all = starts.into_iter().flat_map(pages);
            let lost =
                all.filter(|&page| !matches!(cache.find(Page(page), Slot(page)), Found::Ready));
            assert!(
                lost.count() < STREAMS * 160 / 100,
                "round {round}: {starts:?}"
            );
        }
    }

    /// I/Os in order, in so many pieces of 128 KiB, each I/O answered before the next one or none at all: how many are
    /// read before the drive reads ahead, or `None` if it never does.
    fn followed_after(pieces: u32, answered: bool) -> Option<u32> {
        let config = ReadAhead {
            bytes: 512 << 10,
            after: 2,
        };
        let mut cache = ReadCache::new(&config, 128 << 10);
        for io in 0..8 {
            let submitted = Time::from_ns(1000 * u64::from(io));
            for piece in 0..pieces {
                let segment = Segment {
                    at: submitted,
                    id: io * pieces + piece,
                    offset: u64::from(io * pieces + piece) * (128 << 10),
                    bytes: 128 << 10,
                    dispatched: submitted,
                    looked_up: Span::ZERO,
                    foreseen: Foreseen::NOTHING,
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
        let mut cache = ReadCache::new(&config, 128 << 10);
        let far = 1 << 32;
        for (stream, offset) in [(3, 4096), (5, 4096 + far), (9, 4096 + 2 * far)] {
            cache.goes_on(stream, offset);
        }
        assert_eq!(cache.stream_at(4096 + far), Some(5));
        assert_eq!(cache.stream_at(4096 + 2 * far), Some(9));
        assert_eq!(cache.stream_at(4096), Some(3));
        // As some in its lower half, and none in all.
        assert_eq!(cache.stream_at(4096 + 3 * far), None);
        assert_eq!(cache.stream_at(8192), None);
    }

    #[test]
    fn what_gives_way_is_the_oldest() {
        let config = ReadAhead {
            bytes: 4096,
            after: 1,
        };
        let mut cache = ReadCache::new(&config, 4096);
        for slot in 0..=WAYS as u32 {
            cache.expect(Page(5), Slot(slot), SenseId::of(100 + slot));
        }
        assert!(matches!(cache.find(Page(5), Slot(0)), Found::Nothing));
        assert!(
            matches!(cache.find(Page(5), Slot(1)), Found::Coming(sense) if sense == SenseId::of(101))
        );
        cache.came(Page(5), SenseId::of(101));
        assert!(matches!(cache.find(Page(5), Slot(1)), Found::Ready));
        assert!(
            matches!(cache.find(Page(5), Slot(2)), Found::Coming(sense) if sense == SenseId::of(102))
        );
    }
}
