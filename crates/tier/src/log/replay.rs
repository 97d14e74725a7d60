//! Replays the writes of a log on the main pool.
//!
//! Each record that they change is copied to a free slot and changed there. Slots of the log's own blocks, and of
//! records that it references, are not used. Source: the format of this tier ([`super::layout`]).

use alloc::collections::BTreeMap;
use alloc::vec;

use model::data::{Unreadable, Unwritable};

use super::IntentLog;
use super::MAIN;
use super::chain::{BlockLocation, Chain, UnreadBlock};
use super::layout::{HEADER, LogContent, LogEntry, SECTOR};
use super::room::SlotAllocator;
use crate::Child;
use crate::offline::{ChildImages, Damage};
use crate::planted::{self, Bug};

/// Returns the damage that this child cannot be written.
pub(super) fn unwritable(child: Child) -> impl Fn(Unwritable) -> Damage {
    move |Unwritable| Damage::Unwritable(child)
}

/// Writes to the main pool, including partial sectors.
fn write_main(at: u64, data: &[u8], below: &mut dyn ChildImages) -> Result<(), Damage> {
    let end = at + data.len() as u64;
    let (first, last) = (at / SECTOR * SECTOR, end.next_multiple_of(SECTOR));
    if (first, last) == (at, end) {
        return below.write(MAIN, at, data).map_err(unwritable(MAIN));
    }
    let mut whole = vec![0; (last - first) as usize];
    let read = below.read(MAIN, first, &mut whole);
    read.map_err(|Unreadable| Damage::Unfound(MAIN))?;
    whole[(at - first) as usize..(end - first) as usize].copy_from_slice(data);
    below.write(MAIN, first, &whole).map_err(unwritable(MAIN))
}

/// Replays the writes of the log.
pub(super) struct LogReplay {
    pub(super) room: SlotAllocator,
    record: u64,
    /// Records that it changes: their new slots, or `None` if they have no data any more.
    pub(super) changed: BTreeMap<u64, Option<u32>>,
    pub(super) writes: u64,
}

impl LogReplay {
    /// Replays all writes of these blocks; slots with `avoided` ranges of the main pool are not used.
    pub(super) fn run(
        chain: &mut Chain<'_>,
        places: &[BlockLocation],
        avoided: &[UnreadBlock],
    ) -> Result<LogReplay, Damage> {
        let mut replay = LogReplay::new(chain.tier, places);
        replay.avoid(avoided);
        if !planted::has(Bug::ReplaysOverTheLog) {
            replay.keep(chain, places);
        }
        for place in places {
            replay.block(chain, place)?;
        }
        Ok(replay)
    }

    fn new(tier: &IntentLog, places: &[BlockLocation]) -> LogReplay {
        let mut room = tier.room.clone();
        // The log's slots on the main pool are in use.
        for place in places.iter().filter(|it| it.child == MAIN) {
            if !planted::has(Bug::ReplaysOverTheLog) {
                let end = place.at + u64::from(place.header.bytes).max(HEADER);
                let slots = place.at / tier.record..end.div_ceil(tier.record);
                slots.for_each(|slot| room.mark(slot as u32));
            }
        }
        LogReplay {
            room,
            record: tier.record,
            changed: BTreeMap::new(),
            writes: 0,
        }
    }

    /// Slots of the main pool that cannot be read are not used: they may hold a block or record of the log.
    fn avoid(&mut self, unread: &[UnreadBlock]) {
        for it in unread.iter().filter(|it| it.child == MAIN) {
            let end = (it.at + it.bytes).div_ceil(self.record);
            let slots = it.at / self.record..end.min(self.room.slots().into());
            slots.for_each(|slot| self.room.mark(slot as u32));
        }
    }

    /// Records that the log references stay at their locations.
    fn keep(&mut self, chain: &mut Chain<'_>, places: &[BlockLocation]) {
        for place in places.iter().filter(|it| it.names) {
            let data = chain.read(place).unwrap_or_default();
            let writes = chain.writes(place, &data).unwrap_or_default();
            for (entry, _) in writes {
                if entry.content == LogContent::Named && !chain.is_on_main(&entry) {
                    self.room.mark(entry.slot);
                }
            }
        }
    }

    fn block(&mut self, chain: &mut Chain<'_>, place: &BlockLocation) -> Result<(), Damage> {
        if place.data.is_none() && planted::has(Bug::SkipsUnkept) {
            return Ok(());
        }
        let data = chain.read(place).ok_or(Damage::Unfound(place.child))?;
        let writes = chain.writes(place, &data).unwrap_or_default();
        for (entry, data) in writes {
            if chain.is_on_main(&entry) {
                continue;
            }
            self.writes += 1;
            match entry.content {
                LogContent::Data => self.put(&entry, data, chain.below)?,
                LogContent::Named => self.put_named(&entry, chain.below)?,
                LogContent::Zeroes => self.clear(&entry, chain.below)?,
            }
        }
        Ok(())
    }

    fn put_named(&mut self, entry: &LogEntry, below: &mut dyn ChildImages) -> Result<(), Damage> {
        let at = u64::from(entry.slot) * self.record + entry.offset % self.record;
        let mut data = vec![0; entry.bytes as usize];
        let read = below.read(MAIN, at, &mut data);
        read.map_err(|Unreadable| Damage::Unfound(MAIN))?;
        self.put(entry, &data, below)
    }

    fn put(
        &mut self,
        entry: &LogEntry,
        data: &[u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Damage> {
        let (mut at, end) = (entry.offset, entry.offset + data.len() as u64);
        while at < end {
            let number = at / self.record;
            let until = end.min((number + 1) * self.record);
            let part = &data[(at - entry.offset) as usize..(until - entry.offset) as usize];
            let slot = self.changeable(number, part.len() as u64 == self.record, below)?;
            let place = u64::from(slot) * self.record + at % self.record;
            write_main(place, part, below)?;
            at = until;
        }
        Ok(())
    }

    fn clear(&mut self, entry: &LogEntry, below: &mut dyn ChildImages) -> Result<(), Damage> {
        let (mut at, end) = (entry.offset, entry.offset + u64::from(entry.bytes));
        while at < end {
            let number = at / self.record;
            let until = end.min((number + 1) * self.record);
            if until - at == self.record {
                self.changed.insert(number, None);
            } else {
                let slot = self.changeable(number, false, below)?;
                let place = u64::from(slot) * self.record + at % self.record;
                let written = below.write(MAIN, place, &vec![0; (until - at) as usize]);
                written.map_err(unwritable(MAIN))?;
            }
            at = until;
        }
        Ok(())
    }

    /// Returns the slot in which a record can be changed, with its content, unless it is written as a whole.
    fn changeable(
        &mut self,
        number: u64,
        whole: bool,
        below: &mut dyn ChildImages,
    ) -> Result<u32, Damage> {
        let before = match self.changed.get(&number) {
            Some(&Some(slot)) => return Ok(slot),
            Some(None) => None,
            None => self.room.slot(number),
        };
        let slot = self.room.take().ok_or(Damage::Unwritable(MAIN))?;
        if !whole {
            let mut data = vec![0; self.record as usize];
            if let Some(before) = before {
                let read = below.read(MAIN, u64::from(before) * self.record, &mut data);
                read.map_err(|Unreadable| Damage::Unfound(MAIN))?;
            }
            let written = below.write(MAIN, u64::from(slot) * self.record, &data);
            written.map_err(unwritable(MAIN))?;
        }
        self.changed.insert(number, Some(slot));
        Ok(slot)
    }
}
