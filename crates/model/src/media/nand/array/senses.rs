//! Senses of pages, for a command or for read-ahead, and the queues in which they wait.

use core::num::NonZeroU32;
use core::ops::{Index, IndexMut};

use super::super::map_memory::MapPage;
use super::super::timeline::Timeline;
use crate::command::CommandId;
use crate::engine::Slab;
use crate::ftl::{Die, Page, Slot};

/// A sense in progress. Contains its number plus one, so that an `Option` of it has the same size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SenseId(NonZeroU32);

impl SenseId {
    /// Creates the id from the number of its slot.
    #[inline]
    pub(crate) const fn from_number(number: u32) -> SenseId {
        SenseId(NonZeroU32::MIN.saturating_add(number))
    }

    #[inline]
    pub(crate) const fn number(self) -> u32 {
        self.0.get() - 1
    }
}

/// Purpose of a sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A read command.
    Read(CommandId),
    /// A partial write of a unit, which is acknowledged when the rest has been read.
    Merge(CommandId),
    /// The rest of a unit whose write has been acknowledged: no command waits.
    MergeLater,
    /// Commands that wait for this page of the map.
    Map(MapPage),
    /// Read-ahead of this page and the following ones, for commands that may request them later.
    Ahead(Page),
}

/// Where a read-ahead sense waits for spare time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spare {
    /// Nowhere: the sense is in progress.
    UnderWay,
    Controller,
    Die,
}

/// A sense of one page.
#[derive(Clone, Debug)]
pub(crate) struct Sense {
    pub(crate) purpose: Purpose,
    /// First slot that it reads.
    pub(crate) slot: Slot,
    /// Number of units of 4 KiB that it returns.
    pub(crate) units: u32,
    /// Bytes of these units that the host wants.
    pub(crate) host_bytes: u32,
    /// First of the commands that wait for read-ahead data, or of the segments that wait for a page of the map.
    pub(crate) waiters: Option<u32>,
    /// Whether its share of controller time is booked.
    pub(crate) booked: bool,
    pub(super) die: Die,
    spare: Spare,
    /// The next sense in its queue.
    next: Option<SenseId>,
    pub(crate) times: Timeline,
}

impl Sense {
    /// Creates a sense of the units of one page, starting at `slot`; the host wants `host_bytes` bytes of them.
    #[inline]
    pub(crate) fn new(
        purpose: Purpose,
        slot: Slot,
        units: u32,
        host_bytes: u32,
        times: Timeline,
    ) -> Sense {
        Sense {
            purpose,
            slot,
            units,
            host_bytes,
            waiters: None,
            booked: true,
            die: Die(0),
            spare: Spare::UnderWay,
            next: None,
            times,
        }
    }

    /// Whether it is a read-ahead without a waiting command.
    #[inline]
    pub(crate) fn for_nobody(&self) -> bool {
        matches!(self.purpose, Purpose::Ahead(_)) && self.waiters.is_none()
    }
}

/// All senses in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Senses {
    kept: Slab<Sense>,
    /// Number of read-ahead units that wait for spare time.
    put_off: u32,
}

impl Senses {
    #[inline]
    pub(super) fn insert(&mut self, sense: Sense) -> SenseId {
        SenseId::from_number(self.kept.insert(sense))
    }

    /// Releases a sense: its number may be reused; the returned value remains until then.
    #[inline]
    pub(super) fn release(&mut self, id: SenseId) -> &Sense {
        self.kept.release(id.number());
        &self.kept[id.number()]
    }

    /// Makes a read-ahead sense wait for spare time.
    #[inline]
    pub(crate) fn put_off(&mut self, id: SenseId, spare: Spare, queue: &mut SenseQueue) {
        let sense = &mut self[id];
        debug_assert_eq!(sense.spare, Spare::UnderWay);
        sense.spare = spare;
        self.put_off += self[id].units;
        queue.push(self, id);
    }

    /// A read-ahead sense no longer waits; returns where it waited.
    #[inline]
    pub(crate) fn take_up(&mut self, id: SenseId) -> Spare {
        let sense = &mut self[id];
        let spare = core::mem::replace(&mut sense.spare, Spare::UnderWay);
        if spare != Spare::UnderWay {
            self.put_off -= self[id].units;
        }
        spare
    }

    /// Returns the number of read-ahead units that wait for spare time.
    #[inline]
    pub(crate) fn units_put_off(&self) -> u32 {
        self.put_off
    }

    /// Removes and returns the first sense that is still wanted from a queue of deferred ones. Unwanted ones before it
    /// end here.
    pub(crate) fn pop_wanted(
        &mut self,
        queue: &mut SenseQueue,
        wanted: impl Fn(SenseId, &Sense) -> bool,
    ) -> Option<SenseId> {
        loop {
            let id = queue.pop(self)?;
            self.take_up(id);
            if wanted(id, &self[id]) {
                return Some(id);
            }
            self.release(id);
        }
    }
}

impl Index<SenseId> for Senses {
    type Output = Sense;

    #[inline]
    fn index(&self, id: SenseId) -> &Sense {
        &self.kept[id.number()]
    }
}

impl IndexMut<SenseId> for Senses {
    #[inline]
    fn index_mut(&mut self, id: SenseId) -> &mut Sense {
        &mut self.kept[id.number()]
    }
}

/// A queue of waiting senses, first in, first out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenseQueue {
    first: Option<SenseId>,
    last: Option<SenseId>,
}

impl SenseQueue {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub(super) fn push(&mut self, senses: &mut Senses, id: SenseId) {
        senses[id].next = None;
        match self.last {
            Some(last) if self.first.is_some() => senses[last].next = Some(id),
            _ => self.first = Some(id),
        }
        self.last = Some(id);
    }

    #[inline]
    pub(super) fn pop(&mut self, senses: &Senses) -> Option<SenseId> {
        let id = self.first?;
        self.first = senses[id].next;
        Some(id)
    }

    /// Returns the waiting senses, the first to be served first.
    pub(super) fn iter<'a>(&self, senses: &'a Senses) -> impl Iterator<Item = SenseId> + 'a {
        core::iter::successors(self.first, |&id| senses[id].next)
    }

    /// Removes a sense at any position: the number of read-ahead senses of a stream at one die is small.
    pub(crate) fn remove(&mut self, senses: &mut Senses, id: SenseId) {
        let (mut before, mut at) = (None, self.first);
        while let Some(other) = at
            && other != id
        {
            (before, at) = (at, senses[other].next);
        }
        debug_assert_eq!(at, Some(id), "the sense does not wait here");
        let next = senses[id].next;
        match before {
            None => self.first = next,
            Some(before) => senses[before].next = next,
        }
        if self.last == Some(id) {
            self.last = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::ftl::PrecomputedSlot;
    use crate::media::nand::front::CommandSegment;
    use crate::time::{Span, Time};

    fn ahead(senses: &mut Senses, units: u32) -> SenseId {
        let segment = CommandSegment {
            at: Time::ZERO,
            id: 0,
            offset: 0,
            bytes: 4096,
            dispatched: Time::ZERO,
            looked_up: Span::ZERO,
            foreseen: PrecomputedSlot::NOTHING,
        };
        let times = Timeline::new(&segment, Time::ZERO);
        let sense = Sense::new(Purpose::Ahead(Page(0)), Slot(0), units, 0, times);
        senses.insert(sense)
    }

    #[test]
    fn a_queue_gives_in_order_what_was_not_taken_out_of_it() {
        let mut senses = Senses::default();
        let all: Vec<SenseId> = (0..5).map(|_| ahead(&mut senses, 1)).collect();
        for taken in 0..5 {
            let mut queue = SenseQueue::default();
            for &id in &all {
                queue.push(&mut senses, id);
            }
            queue.remove(&mut senses, all[taken]);
            // A sense after the last remaining one is found too.
            let mut expected = all.clone();
            let again = expected.remove(taken);
            queue.push(&mut senses, again);
            expected.push(again);
            let got: Vec<SenseId> = core::iter::from_fn(|| queue.pop(&senses)).collect();
            assert_eq!(got, expected);
            assert!(queue.is_empty());
        }
    }

    #[test]
    fn what_nobody_wants_any_more_ends_in_the_queue() {
        let mut senses = Senses::default();
        let mut queue = SenseQueue::default();
        let all: Vec<SenseId> = (1..=4).map(|units| ahead(&mut senses, units)).collect();
        for &id in &all {
            senses.put_off(id, Spare::Die, &mut queue);
        }
        assert_eq!(senses.units_put_off(), 10);
        let wanted = |id, _: &Sense| id == all[2];
        assert_eq!(senses.pop_wanted(&mut queue, wanted), Some(all[2]));
        assert_eq!(senses.units_put_off(), 4);
        assert_eq!(senses.pop_wanted(&mut queue, wanted), None);
        assert_eq!(senses.units_put_off(), 0);
        // The numbers of the three that ended are free again, the last first.
        assert_eq!(ahead(&mut senses, 1), all[3]);
    }
}
