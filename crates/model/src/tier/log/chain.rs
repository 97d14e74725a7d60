//! The log as it is on the media: from where a root says that it goes on, block by block, up to the first that is missing.
//!
//! The next block is on a log at its head, or at the log's beginning if there was no room behind that; on main behind the
//! one before, or in a slot of its own, among those that are free by the tables. Where a log has failed meanwhile a block
//! may stand behind later ones. It is taken for the next if it has the next number, the checksum of the header before, the
//! epoch, and data with the sum that it says; and if the records that it names are as it says.
//!
//! A later block that says of the missing one that it was durable shows that it is lost. Beyond a gap 64 MiB of each log
//! are searched for such, and of main as many slots as are looked through for a block.

use alloc::vec;
use alloc::vec::Vec;

use super::layout::{
    self, Content, Entry, HEADER, Header, LARGEST_BLOCK, Onward, Root, SECTOR, UNIT,
};
use super::tables::kept;
use super::{IntentLog, MAIN};
use crate::data;
use crate::tier::Child;
use crate::tier::below::Standing;
use crate::tier::offline::Below;
use crate::tier::planted::{self, Bug};

/// Bytes of a log beyond a gap in which a block may begin: more than drives have in volatile buffers.
const SEARCHED: u64 = 64 << 20;

/// Bytes of blocks that are kept in memory until they are done again; more are read again.
const MOST_KEPT: u32 = 16 << 20;

/// Where a block is.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) child: Child,
    pub(super) at: u64,
    pub(super) header: Header,
    /// Whether it names records on main.
    pub(super) names: bool,
    /// What is in it, unless there is too much in memory already.
    data: Option<Vec<u8>>,
}

/// A write in a block, and its data if they are there.
pub(super) type Write<'a> = (Entry, &'a [u8]);

/// What lies beyond the first gap.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Beyond {
    pub(super) blocks: u64,
    /// The highest number of which one of them says that it was durable.
    pub(super) durable: u64,
}

/// The log of a volume that does not run.
pub(super) struct Chain<'a> {
    pub(super) tier: &'a IntentLog,
    pub(super) root: &'a Root,
    /// Bytes of main, and of the ring of each log.
    pub(super) bytes: Vec<u64>,
    pub(super) below: &'a mut dyn Below,
}

impl Chain<'_> {
    /// All blocks, in order, and where the log goes on behind them.
    pub(super) fn walk(&mut self) -> (Vec<Place>, Onward) {
        let mut places = Vec::new();
        let mut next = self.root.onward.clone();
        let (mut behind, mut kept) = (0, 0);
        while let Some((mut place, sum)) = self.next(&next, behind) {
            kept += place.header.bytes;
            if kept > MOST_KEPT {
                place.data = None;
            }
            next = place.header.onward.clone();
            next.number += 1;
            next.previous = sum;
            if place.child == MAIN {
                behind = place.at + u64::from(place.header.bytes).next_multiple_of(UNIT);
            }
            places.push(place);
        }
        (places, next)
    }

    /// The next block; the last one that was on main ends at `behind`.
    fn next(&mut self, next: &Onward, behind: u64) -> Option<(Place, u32)> {
        let heads: Vec<(Child, u64)> = self.heads(next).collect();
        let main = [next.main, behind].into_iter().filter(|it| *it != 0);
        let main = main.map(|at| (MAIN, at));
        for (child, at) in heads.iter().copied().chain(main) {
            let found = self.try_at(child, at, next);
            if found.is_some() {
                return found;
            }
        }
        for (child, at) in heads {
            let found = self.behind_others(child, at, next);
            if found.is_some() {
                return found;
            }
        }
        for at in self.free_slots(next.cursor) {
            let found = self.try_at(MAIN, at, next);
            if found.is_some() {
                return found;
            }
        }
        match planted::has(Bug::ReplaysPastGaps) {
            true => self.past_the_gap(next),
            false => None,
        }
    }

    /// Where the next block may be on the logs that are there.
    fn heads(&self, next: &Onward) -> impl Iterator<Item = (Child, u64)> + use<> {
        let there: Vec<bool> = (1..self.bytes.len() as Child)
            .map(|child| {
                let current = self.below.standing(child) == Standing::Current;
                self.below.present(child) && current
            })
            .collect();
        let heads = (1..).zip(next.heads.clone()).zip(there);
        heads
            .filter(|it| it.1)
            .flat_map(|((child, head), _)| [u64::from(head) * UNIT, 0].map(|at| (child, at)))
    }

    /// The first bytes of slots of main that are free by the tables, as many as may have been taken since the root.
    fn free_slots(&self, cursor: u32) -> Vec<u64> {
        let (room, record) = (&self.tier.room, self.tier.record);
        let slots = room.slots();
        let round = (0..slots).map(|it| (cursor % slots + it) % slots);
        let free = round.filter(|&it| !room.is_taken(it));
        let most = 2 * self.tier.most_takes() as usize;
        free.take(most).map(|it| u64::from(it) * record).collect()
    }

    /// A header of this life.
    fn header(&mut self, child: Child, at: u64) -> Option<(Header, u32)> {
        if at > self.bytes[usize::from(child)].saturating_sub(UNIT) {
            return None;
        }
        let mut block = [0; SECTOR as usize];
        self.below.read(child, at, &mut block).ok()?;
        let (header, sum) = Header::decode(&block)?;
        let own = header.pool == layout::folded(self.root.pool)
            && header.onward.heads.len() + 1 == self.bytes.len()
            && (header.epoch == self.root.epoch || planted::has(Bug::ReplaysOtherLives));
        own.then_some((header, sum))
    }

    fn try_at(&mut self, child: Child, at: u64, next: &Onward) -> Option<(Place, u32)> {
        let (header, sum) = self.header(child, at)?;
        let follows = header.onward.previous == next.previous
            || planted::has(Bug::ReplaysOtherLives)
            || planted::has(Bug::ReplaysPastGaps);
        if header.onward.number != next.number || !follows {
            return None;
        }
        let mut place = Place {
            child,
            at,
            header,
            names: false,
            data: None,
        };
        let data = self.read(&place)?;
        let writes = self.writes(&place, &data)?;
        let named = writes.iter().map(|it| it.0);
        let named: Vec<Entry> = named.filter(|it| it.content == Content::Named).collect();
        place.names = !named.is_empty();
        place.data = Some(data);
        named
            .iter()
            .all(|it| self.is_named(it))
            .then_some((place, sum))
    }

    /// All that is in a block; nothing if it cannot be read, or is not what the header says.
    pub(super) fn read(&mut self, place: &Place) -> Option<Vec<u8>> {
        if place.data.is_some() {
            return place.data.clone();
        }
        let used = u64::from(place.header.bytes);
        let bytes = used.next_multiple_of(UNIT);
        if bytes > LARGEST_BLOCK || place.at + bytes > self.bytes[usize::from(place.child)] {
            return None;
        }
        let mut data = vec![0; bytes as usize];
        self.below.read(place.child, place.at, &mut data).ok()?;
        data.truncate(used as usize);
        let whole = data::sum(&data[HEADER as usize..]) == place.header.sum;
        (whole || planted::has(Bug::BelievesBlocks)).then_some(data)
    }

    /// The writes in it.
    pub(super) fn writes<'b>(&self, place: &Place, data: &'b [u8]) -> Option<Vec<Write<'b>>> {
        let mut rest = data.get(HEADER as usize..)?;
        let mut writes = Vec::new();
        for _ in 0..place.header.count {
            let entry = Entry::decode(rest)?;
            rest = &rest[HEADER as usize..];
            let bytes = match entry.content {
                Content::Data => entry.bytes as usize,
                _ => 0,
            };
            let end = entry.offset.checked_add(entry.bytes.into())?;
            // Program versions before December 2026 cut long writes anywhere.
            let is_cut = !entry.offset.is_multiple_of(SECTOR) || !end.is_multiple_of(SECTOR);
            let refused = is_cut && planted::has(Bug::LogCutsSectors);
            if end > self.root.size || refused || rest.len() < bytes {
                return None;
            }
            let (own, others) = rest.split_at(bytes);
            writes.push((entry, own));
            rest = others;
        }
        Some(writes)
    }

    /// Whether what a write says of a record on main is so; of what is on main with its group nobody asks.
    fn is_named(&mut self, entry: &Entry) -> bool {
        if entry.content != Content::Named || self.is_on_main(entry) {
            return true;
        }
        let record = self.tier.record;
        let within = entry.offset % record + u64::from(entry.bytes) <= record;
        if !within || entry.slot < self.tier.room.roots() || entry.slot >= self.tier.room.slots() {
            return false;
        }
        let mut data = vec![0; record as usize];
        let read = self
            .below
            .read(MAIN, u64::from(entry.slot) * record, &mut data);
        read.is_ok() && kept(data::sum(&data)) == kept(entry.sum)
    }

    /// Whether a write is on main with its group.
    pub(super) fn is_on_main(&self, entry: &Entry) -> bool {
        entry.group < self.root.number && !planted::has(Bug::ReplaysOldGroups)
    }

    /// The next block where it stands behind later ones of this life.
    fn behind_others(&mut self, child: Child, mut at: u64, next: &Onward) -> Option<(Place, u32)> {
        let end = self.bytes[usize::from(child)];
        while at < end {
            let (header, _) = self.header(child, at)?;
            if header.onward.number < self.root.onward.number {
                return None;
            }
            at += u64::from(header.bytes).next_multiple_of(UNIT);
            let found = self.try_at(child, at, next);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Headers beyond the end of the log: where, and what they say.
    fn later(&mut self, next: &Onward) -> Vec<(Child, u64, Header)> {
        let mut places: Vec<(Child, u64)> = Vec::new();
        let mut heads: Vec<(Child, u64)> = self.heads(next).collect();
        heads.dedup();
        for (child, head) in heads {
            let end = self.bytes[usize::from(child)].min(head + SEARCHED);
            places.extend((head..end).step_by(UNIT as usize).map(|at| (child, at)));
        }
        places.extend(
            self.free_slots(next.cursor)
                .into_iter()
                .map(|at| (MAIN, at)),
        );
        places.sort_unstable();
        places.dedup();
        let mut later = Vec::new();
        for (child, at) in places {
            let header = self.header(child, at).map(|it| it.0);
            if let Some(header) = header.filter(|it| it.onward.number > next.number) {
                later.push((child, at, header));
            }
        }
        later
    }

    /// What lies beyond the end of the log.
    pub(super) fn beyond(&mut self, next: &Onward) -> Beyond {
        let later = self.later(next);
        Beyond {
            blocks: later.len() as u64,
            durable: later.iter().map(|it| it.2.durable).max().unwrap_or(0),
        }
    }

    /// A planted bug: the next of what lies beyond the gap.
    fn past_the_gap(&mut self, next: &Onward) -> Option<(Place, u32)> {
        let later = self.later(next).into_iter();
        let (child, at, header) = later.min_by_key(|it| it.2.onward.number)?;
        self.try_at(child, at, &header.onward)
    }
}
