//! What a drive has read ahead of sequential streams, and which streams it follows.
//!
//! The controller's DRAM holds the units of its last streams; a read finds them there, or on their way, or not. Only
//! their places are kept: the data are nobody's here. The senses themselves are made in `read`.
//!
//! Each unit may be in one of a few entries, and the oldest of these gives way: streams do not push each other out as
//! long as there are no more of them than the controller follows.
//!
//! A read that goes on where another ended is evidence of a stream only if it was asked for after the other was
//! answered. The pieces of one large I/O come back to back, whether the drive, a RAID or the host has cut it, and say
//! nothing about the next one. Leaves out: what real firmware takes for a stream, which no maker publishes.

use alloc::vec;
use alloc::vec::Vec;

use super::config::ReadAhead;
use super::{NONE, Segment};
use crate::command::CommandId;
use crate::ftl::UNIT;
use crate::time::Time;

/// Streams that are followed at a time; a new one takes the place of that which was longest not read.
const STREAMS: usize = 16;

/// Entries in which a unit may be.
const WAYS: usize = 8;

/// The controller's memory of what has been read ahead.
#[derive(Clone, Debug)]
pub(super) struct ReadCache {
    ahead_units: u32,
    after: u32,
    /// By [`ReadCache::place`] of the logical page.
    sets: Vec<Set>,
    set_bits: u32,
    /// Where each stream would go on, in bytes.
    next: [u64; STREAMS],
    streams: [ReadStream; STREAMS],
    /// The streams, that which was read last first.
    order: [u8; STREAMS],
    /// Senses whose share of the controller is booked already: by commands that found all of their data here.
    booked: u32,
    /// Units to be read ahead that wait for dies with time to spare.
    put_off: u32,
    waiters: Vec<Waiter>,
    free_waiter: u32,
}

/// Units that have been read ahead, or are being, the youngest first.
#[derive(Clone, Copy, Debug)]
struct Set {
    /// The slots whose data they are, or [`NONE`].
    slots: [u32; WAYS],
    /// The operations that bring them, or [`NONE`] once they are there.
    ops: [u32; WAYS],
}

impl Set {
    const EMPTY: Set = Set {
        slots: [NONE; WAYS],
        ops: [NONE; WAYS],
    };

    /// Where the data of this slot are. All are looked at, as that takes less than to stop at the first.
    #[inline]
    fn way(&self, slot: u32) -> Option<usize> {
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
    ahead: u32,
    /// The read that began it or was its last evidence, and when that was submitted.
    evidence: (CommandId, Time),
}

impl ReadStream {
    const fn begun_by(evidence: (CommandId, Time)) -> ReadStream {
        ReadStream {
            hits: 0,
            ahead: 0,
            evidence,
        }
    }
}

/// A command that waits for what is on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) id: CommandId,
    pub(super) bytes: u32,
    pub(super) dispatched: Time,
    pub(super) arrived: Time,
    /// The next that waits for the same sense.
    pub(super) next: u32,
}

/// What a read finds in the cache.
pub(super) enum Found {
    Nothing,
    Ready,
    Coming(u32),
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
            sets: vec![Set::EMPTY; sets as usize],
            set_bits: sets.trailing_zeros(),
            next: [u64::MAX; STREAMS],
            streams: [ReadStream::begun_by((NONE, Time::ZERO)); STREAMS],
            order: core::array::from_fn(|at| (STREAMS - 1 - at) as u8),
            booked: 0,
            put_off: 0,
            waiters: Vec::with_capacity(64),
            free_waiter: NONE,
        }
    }

    /// Pages that follow one another have places that do. Streams that begin at round distances do not meet: each
    /// stretch of the drive as long as the table is turned by another part of it.
    #[inline]
    fn place(&self, page: u32) -> usize {
        let stretch = u64::from(page >> self.set_bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let turned = (stretch >> (64 - self.set_bits)) as u32;
        (page.wrapping_add(turned) as usize) & (self.sets.len() - 1)
    }

    /// Whether the data of this page, which are in this slot, have been read ahead.
    #[inline]
    pub(super) fn find(&self, page: u32, slot: u32) -> Found {
        let set = &self.sets[self.place(page)];
        match set.way(slot) {
            None => Found::Nothing,
            Some(way) if set.ops[way] == NONE => Found::Ready,
            Some(way) => Found::Coming(set.ops[way]),
        }
    }

    /// This operation brings the data of this page, which are in this slot. Commands that wait for what gives way hang
    /// on its operation and are served all the same.
    #[inline]
    pub(super) fn expect(&mut self, page: u32, slot: u32, op: u32) {
        let place = self.place(page);
        let set = &mut self.sets[place];
        set.slots.copy_within(..WAYS - 1, 1);
        set.ops.copy_within(..WAYS - 1, 1);
        set.slots[0] = slot;
        set.ops[0] = op;
    }

    /// The operation has brought what it was to bring of this page.
    #[inline]
    pub(super) fn came(&mut self, page: u32, op: u32) {
        let place = self.place(page);
        for held in &mut self.sets[place].ops {
            if *held == op {
                *held = NONE;
            }
        }
    }

    /// Whether the operation is still to bring this page. It is not where younger streams have taken its place.
    #[inline]
    pub(super) fn expects(&self, page: u32, op: u32) -> bool {
        self.sets[self.place(page)].ops.contains(&op)
    }

    /// Whether as much as is kept for all streams waits already: dies have no time to spare, and more is no use.
    #[inline]
    pub(super) fn lags(&self) -> bool {
        self.put_off >= STREAMS as u32 * self.ahead_units
    }

    /// So many units to be read ahead wait at a die.
    #[inline]
    pub(super) fn put_off(&mut self, units: u32) {
        self.put_off += units;
    }

    /// So many of them wait no longer.
    #[inline]
    pub(super) fn taken_up(&mut self, units: u32) {
        self.put_off -= units;
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
    ) -> Option<(u32, u32)> {
        let end = segment.offset + u64::from(segment.bytes);
        let Some(at) = self.stream_at(segment.offset) else {
            // At random nearly every read comes here.
            let oldest = self.order[STREAMS - 1];
            self.order.copy_within(..STREAMS - 1, 1);
            self.order[0] = oldest;
            self.next[oldest as usize] = end;
            self.streams[oldest as usize] = ReadStream::begun_by((segment.id, submitted));
            return None;
        };
        self.read_last(at);
        self.next[at] = end;
        let stream = &mut self.streams[at];
        if stream.hits < self.after {
            let (id, at) = stream.evidence;
            if !answered(id, at) {
                return None;
            }
            stream.hits += 1;
            stream.evidence = (segment.id, submitted);
            if stream.hits < self.after {
                return None;
            }
        }
        let behind = end.div_ceil(u64::from(UNIT)) as u32;
        let from = stream.ahead.max(behind);
        let to = behind + self.ahead_units;
        // In whole NAND pages where possible, so not for every unit that is read.
        if to - from < page_slots.min(self.ahead_units) {
            return None;
        }
        stream.ahead = to;
        Some((from, to))
    }

    /// The stream that would go on there. All are looked at, as that takes less than to stop at the first.
    #[inline]
    fn stream_at(&self, offset: u64) -> Option<usize> {
        let mut found = 0_u32;
        for (at, &next) in self.next.iter().enumerate() {
            found |= u32::from(next == offset) << at;
        }
        (found != 0).then(|| found.trailing_zeros() as usize)
    }

    fn read_last(&mut self, stream: usize) {
        if let Some(place) = self.order.iter().position(|&at| at as usize == stream) {
            self.order.copy_within(..place, 1);
            self.order[0] = stream as u8;
        }
    }

    pub(super) fn wait(&mut self, waiter: Waiter) -> u32 {
        if self.free_waiter == NONE {
            self.waiters.push(waiter);
            return self.waiters.len() as u32 - 1;
        }
        let at = self.free_waiter;
        self.free_waiter = self.waiters[at as usize].next;
        self.waiters[at as usize] = waiter;
        at
    }

    /// Takes a waiter off its list: it, and its place is free.
    pub(super) fn woken(&mut self, at: u32) -> Waiter {
        let waiter = self.waiters[at as usize];
        self.waiters[at as usize].next = self.free_waiter;
        self.free_waiter = at;
        waiter
    }

    /// A command that found all of its data here has booked a share of the controller that a sense may use.
    #[inline]
    pub(super) fn book(&mut self) {
        self.booked = (self.booked + 1).min(STREAMS as u32 * self.ahead_units);
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
    use crate::random::Stream;

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
                cache.expect(page, page, 7);
                cache.came(page, 7);
            }
            let all = starts.into_iter().flat_map(pages);
            let lost = all.filter(|&page| !matches!(cache.find(page, page), Found::Ready));
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
    fn what_gives_way_is_the_oldest() {
        let config = ReadAhead {
            bytes: 4096,
            after: 1,
        };
        let mut cache = ReadCache::new(&config, 4096);
        for slot in 0..=WAYS as u32 {
            cache.expect(5, slot, 100 + slot);
        }
        assert!(matches!(cache.find(5, 0), Found::Nothing));
        assert!(matches!(cache.find(5, 1), Found::Coming(101)));
        cache.came(5, 101);
        assert!(matches!(cache.find(5, 1), Found::Ready));
        assert!(matches!(cache.find(5, 2), Found::Coming(102)));
    }
}
