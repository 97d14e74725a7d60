//! The on-disk log: read block by block, from the position in a root to the first missing block.
//!
//! The next block is on a log device, at its head or at the beginning if it did not fit at the head. On the main pool
//! it is after the previous block, or in a slot of its own, among those that are free according to the tables. A block
//! that has moved from a failed log device is in a slot of its own. Program versions before December 2026 placed it
//! behind others, so the blocks behind a position are searched too. A block is accepted as the next one if it has the
//! next number, the checksum of the previous header, the epoch, and data with the stated checksum. The records that it
//! references must match as well.
//!
//! If a later block states that the missing one was durable, the missing block is lost. To find such blocks, 64 MiB of
//! each log device after the gap are searched, and on the main pool as many slots as are searched for a block.
//!
//! If a position cannot be read at which the missing block may be, it may have been durable, and nothing else may show
//! that. The chain then says so.

use alloc::vec;
use alloc::vec::Vec;

use model::data;

use super::layout::{
    self, HEADER, LARGEST_BLOCK, LogBlockHeader, LogContent, LogContinuation, LogEntry, Root,
    SECTOR, UNIT,
};
use super::tables::kept;
use super::{IntentLog, MAIN};
use crate::Child;
use crate::below::SliceState;
use crate::offline::ChildImages;
use crate::planted::{self, Bug};

/// Location of a block.
#[derive(Clone, Debug)]
pub(super) struct BlockLocation {
    pub(super) child: Child,
    pub(super) at: u64,
    pub(super) header: LogBlockHeader,
    /// Whether it references records on the main pool.
    pub(super) names: bool,
    /// Content, unless too much is in memory already.
    pub(super) data: Option<Vec<u8>>,
}

/// A write in a block, with its data if the block contains it.
pub(super) type Write<'a> = (LogEntry, &'a [u8]);

/// Blocks after the first gap.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LogTail {
    pub(super) blocks: u64,
    /// The highest block number that one of them states as durable.
    pub(super) durable: u64,
}

/// A range of a child that cannot be read, although the next block, or a record that it references, may be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct UnreadBlock {
    pub(super) child: Child,
    pub(super) at: u64,
    pub(super) bytes: u64,
}

/// The log of an offline volume.
pub(super) struct Chain<'a> {
    pub(super) tier: &'a IntentLog,
    pub(super) root: &'a Root,
    /// Bytes of the main pool, and of the ring of each log device.
    pub(super) bytes: Vec<u64>,
    pub(super) below: &'a mut dyn ChildImages,
    /// Ranges that could not be read in the search for the last block that was requested.
    pub(super) unread: Vec<UnreadBlock>,
}

impl Chain<'_> {
    /// Returns all blocks, in order, and the position after them.
    pub(super) fn walk(&mut self) -> (Vec<BlockLocation>, LogContinuation) {
        let mut places = Vec::new();
        let mut next = self.root.onward.clone();
        let (mut behind, mut kept) = (0, 0);
        while let Some((mut place, sum)) = self.next(&next, behind) {
            self.unread.clear();
            kept += place.header.bytes;
            if kept > self.tier.config.scale.kept {
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

    /// Returns the next block; the last block on the main pool ends at `behind`.
    fn next(&mut self, next: &LogContinuation, behind: u64) -> Option<(BlockLocation, u32)> {
        let heads: Vec<(Child, u64)> = self.heads(next).collect();
        let main = [next.main, behind].into_iter().filter(|it| *it != 0);
        let main = main.map(|at| (MAIN, at));
        for (child, at) in heads.iter().copied().chain(main) {
            let known = self.unread.len();
            let found = self.try_at(child, at, next);
            if found.is_some() {
                return found;
            }
            if !self.may_be_at(child, at, next) {
                self.unread.truncate(known);
            }
        }
        for (child, at) in heads {
            let known = self.unread.len();
            let found = self.search_from(child, at, next);
            if found.is_some() {
                return found;
            }
            if !self.may_be_at(child, at, next) {
                self.unread.truncate(known);
            }
        }
        let known = self.unread.len();
        // All slots are tried before the blocks behind their first ones are searched.
        let slots = self.free_slots(next.cursor);
        let found = slots.iter().find_map(|&at| self.try_at(MAIN, at, next));
        let found = match planted::has(Bug::MovesBehindOthers) {
            true => found,
            false => found.or_else(|| {
                slots
                    .iter()
                    .find_map(|&at| self.search_from(MAIN, at, next))
            }),
        };
        if found.is_some() {
            return found;
        }
        if self.logs_take_blocks() {
            self.unread.truncate(known);
        }
        match planted::has(Bug::ReplaysPastGaps) {
            true => self.past_the_gap(next),
            false => None,
        }
    }

    /// Whether the next block may be at this position. It is at the beginning of a log device only if it may not fit at
    /// the head, and never in a slot of the main pool that holds a record.
    fn may_be_at(&self, child: Child, at: u64, next: &LogContinuation) -> bool {
        if child == MAIN {
            let (room, slot) = (&self.tier.room, at / self.tier.record);
            return slot < u64::from(room.slots()) && !room.is_taken(slot as u32);
        }
        let log = usize::from(child);
        let head = u64::from(next.heads[log - 1]) * UNIT;
        at == head || head + LARGEST_BLOCK > self.bytes[log]
    }

    /// Whether all log devices are in use, so that blocks are on the main pool only if the devices are full.
    fn logs_take_blocks(&self) -> bool {
        let mut logs = 1..self.bytes.len() as Child;
        self.bytes.len() > 1 && logs.all(|child| self.is_used(child))
    }

    /// Whether a log device is present, and no old copy.
    fn is_used(&self, child: Child) -> bool {
        self.below.present(child) && self.below.standing(child) == SliceState::Current
    }

    /// Notes a range that cannot be read.
    fn cannot_read(&mut self, child: Child, at: u64, bytes: u64) {
        if !planted::has(Bug::EndsAtUnreadableBlock) {
            self.unread.push(UnreadBlock { child, at, bytes });
        }
    }

    /// Returns possible positions of the next block on the log devices that are present.
    fn heads(&self, next: &LogContinuation) -> impl Iterator<Item = (Child, u64)> + use<> {
        let there: Vec<bool> = (1..self.bytes.len() as Child)
            .map(|child| self.is_used(child))
            .collect();
        let heads = (1..).zip(next.heads.clone()).zip(there);
        heads
            .filter(|it| it.1)
            .flat_map(|((child, head), _)| [u64::from(head) * UNIT, 0].map(|at| (child, at)))
    }

    /// Returns the offsets of slots on the main pool that are free according to the tables, as many as may have been
    /// allocated since the root.
    fn free_slots(&self, cursor: u32) -> Vec<u64> {
        let (room, record) = (&self.tier.room, self.tier.record);
        let slots = room.slots();
        let round = (0..slots).map(|it| (cursor % slots + it) % slots);
        let free = round.filter(|&it| !room.is_taken(it));
        let most = 2 * self.tier.most_takes() as usize;
        free.take(most).map(|it| u64::from(it) * record).collect()
    }

    /// Reads a header of this epoch.
    fn header(&mut self, child: Child, at: u64) -> Option<(LogBlockHeader, u32)> {
        if at > self.bytes[usize::from(child)].saturating_sub(UNIT) {
            return None;
        }
        let mut block = [0; SECTOR as usize];
        if self.below.read(child, at, &mut block).is_err() {
            self.cannot_read(child, at, SECTOR);
            return None;
        }
        let (header, sum) = LogBlockHeader::decode(&block)?;
        let own = header.pool == layout::folded(self.root.pool)
            && header.onward.heads.len() + 1 == self.bytes.len()
            && (header.epoch == self.root.epoch || planted::has(Bug::ReplaysOtherLives));
        own.then_some((header, sum))
    }

    fn try_at(
        &mut self,
        child: Child,
        at: u64,
        next: &LogContinuation,
    ) -> Option<(BlockLocation, u32)> {
        let (header, sum) = self.header(child, at)?;
        let follows = header.onward.previous == next.previous
            || planted::has(Bug::ReplaysOtherLives)
            || planted::has(Bug::ReplaysPastGaps);
        if header.onward.number != next.number || !follows {
            return None;
        }
        let mut place = BlockLocation {
            child,
            at,
            header,
            names: false,
            data: None,
        };
        let data = self.read(&place)?;
        let writes = self.writes(&place, &data)?;
        let named = writes.iter().map(|it| it.0);
        let named: Vec<LogEntry> = named.filter(|it| it.content == LogContent::Named).collect();
        place.names = !named.is_empty();
        place.data = Some(data);
        named
            .iter()
            .all(|it| self.is_named(it))
            .then_some((place, sum))
    }

    /// Reads the content of a block; `None` if it cannot be read or does not match its header.
    pub(super) fn read(&mut self, place: &BlockLocation) -> Option<Vec<u8>> {
        if place.data.is_some() {
            return place.data.clone();
        }
        let used = u64::from(place.header.bytes);
        let bytes = used.next_multiple_of(UNIT);
        if bytes > LARGEST_BLOCK || place.at + bytes > self.bytes[usize::from(place.child)] {
            return None;
        }
        let mut data = vec![0; bytes as usize];
        if self.below.read(place.child, place.at, &mut data).is_err() {
            self.cannot_read(place.child, place.at, bytes);
            return None;
        }
        data.truncate(used as usize);
        let whole = data::sum(&data[HEADER as usize..]) == place.header.sum;
        (whole || planted::has(Bug::BelievesBlocks)).then_some(data)
    }

    /// Returns the writes in a block.
    pub(super) fn writes<'b>(
        &self,
        place: &BlockLocation,
        data: &'b [u8],
    ) -> Option<Vec<Write<'b>>> {
        let mut rest = data.get(HEADER as usize..)?;
        let mut writes = Vec::new();
        for _ in 0..place.header.count {
            let entry = LogEntry::decode(rest)?;
            rest = &rest[HEADER as usize..];
            let bytes = match entry.content {
                LogContent::Data => entry.bytes as usize,
                _ => 0,
            };
            let end = entry.offset.checked_add(entry.bytes.into())?;
            // Program versions before December 2026 split long writes at any byte.
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

    /// Whether a record on the main pool matches the entry that references it. Entries whose group is on the main pool
    /// are not checked.
    fn is_named(&mut self, entry: &LogEntry) -> bool {
        if entry.content != LogContent::Named || self.is_on_main(entry) {
            return true;
        }
        let record = self.tier.record;
        let within = entry.offset % record + u64::from(entry.bytes) <= record;
        if !within || entry.slot < self.tier.room.roots() || entry.slot >= self.tier.room.slots() {
            return false;
        }
        let mut data = vec![0; record as usize];
        let at = u64::from(entry.slot) * record;
        if self.below.read(MAIN, at, &mut data).is_err() {
            self.cannot_read(MAIN, at, record);
            return false;
        }
        kept(data::sum(&data)) == kept(entry.sum)
    }

    /// Whether the group of a write is on the main pool.
    pub(super) fn is_on_main(&self, entry: &LogEntry) -> bool {
        entry.group < self.root.number && !planted::has(Bug::ReplaysOldGroups)
    }

    /// Searches for the next block at a position and behind the blocks of this log that begin there.
    fn search_from(
        &mut self,
        child: Child,
        mut at: u64,
        next: &LogContinuation,
    ) -> Option<(BlockLocation, u32)> {
        loop {
            let (header, end) = self.header_of_log(child, at)?;
            if header.onward.number == next.number {
                let found = self.try_at(child, at, next);
                if found.is_some() {
                    return found;
                }
            }
            at = end;
        }
    }

    /// Reads a header of this epoch, unless its block is older than the root. Returns it and the position after its block.
    fn header_of_log(&mut self, child: Child, at: u64) -> Option<(LogBlockHeader, u64)> {
        let (header, _) = self.header(child, at)?;
        let end = at + u64::from(header.bytes).next_multiple_of(UNIT);
        (header.onward.number >= self.root.onward.number).then_some((header, end))
    }

    /// Returns headers after the end of the log, with their positions.
    fn later(&mut self, next: &LogContinuation) -> Vec<(Child, u64, LogBlockHeader)> {
        let mut places: Vec<(Child, u64)> = Vec::new();
        let mut heads: Vec<(Child, u64)> = self.heads(next).collect();
        heads.dedup();
        for (child, head) in heads {
            let end = self.bytes[usize::from(child)].min(head + self.tier.config.scale.searched);
            places.extend((head..end).step_by(UNIT as usize).map(|at| (child, at)));
        }
        places.sort_unstable();
        places.dedup();
        let mut later = Vec::new();
        for (child, at) in places {
            let header = self.header(child, at).map(|it| it.0);
            if let Some(header) = header.filter(|it| it.onward.number > next.number) {
                later.push((child, at, header));
            }
        }
        for mut at in self.free_slots(next.cursor) {
            while let Some((header, end)) = self.header_of_log(MAIN, at) {
                if header.onward.number > next.number {
                    later.push((MAIN, at, header));
                }
                at = end;
            }
        }
        later
    }

    /// Returns the blocks after the end of the log.
    pub(super) fn scan_tail(&mut self, next: &LogContinuation) -> LogTail {
        let later = self.later(next);
        LogTail {
            blocks: later.len() as u64,
            durable: later.iter().map(|it| it.2.durable).max().unwrap_or(0),
        }
    }

    /// A planted bug: the first block after the gap.
    fn past_the_gap(&mut self, next: &LogContinuation) -> Option<(BlockLocation, u32)> {
        let later = self.later(next).into_iter();
        let (child, at, header) = later.min_by_key(|it| it.2.onward.number)?;
        self.try_at(child, at, &header.onward)
    }
}
