//! Transaction groups: dirty records are written to the main pool, one group at a time.
//!
//! A group accepts writes until it is 5 s old, or contains a fifth of the maximum of dirty bytes, or a fifth of the
//! maximum of logged bytes. Then its records are written to free slots in the order of their numbers, together with the
//! tables that contain their locations. The tables are a tree of nodes of 4 KiB with 256 entries; each node above a
//! changed one is written. The main pool is flushed, the root is written, and the main pool is flushed again. Then the
//! group's log blocks and the previous locations of its records are freed. The main pool therefore always contains one
//! complete group: data referenced by a root is never overwritten before the next root is written. Meanwhile, the next
//! group accepts writes; it is written afterwards.

use alloc::vec::Vec;

use model::command::{Command, Payload};
use model::data::Buffers;
use model::time::{Span, Time};

use super::layout::{self, LARGEST_BLOCK, LogContinuation, Root, UNIT};
use super::queue::Urgency;
use super::records::NONE;
use super::room::{BlockRing, SlotAllocator};
use super::tables::LEVELS;
use super::{IntentLog, LogEvent, LogPurpose, MAIN, TierContext};
use crate::planted::{self, Bug};

/// Percentage of the maximum of dirty or logged bytes at which a group is closed.
const CLOSES_AT: u64 = 20;

/// Phase of the group that is being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    /// No group is being written.
    #[default]
    Idle,
    Data,
    Flush,
    Root,
    LastFlush,
}

/// State of the transaction groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    /// Number of the open group, and of the last one on the main pool.
    pub(super) open: u64,
    pub(super) synced: u64,
    /// When the open group received its first write.
    opened: Option<Time>,
    /// Handles of the records that are changed in it.
    pub(super) records: Vec<u32>,
    /// Bytes logged for it, and slots of the main pool that are freed with it: those of its log blocks, and of records
    /// that commits wrote there and that have changed since.
    logged: u64,
    pub(super) slots: Vec<u32>,
    /// Position of the next log block on the main pool, and the end of the space there.
    next: u64,
    end: u64,
    /// Number of log blocks, and of records that they reference, that were sent while it is open and are in flight.
    placed: u32,
    /// Whether the group is old enough, and will be closed when the previous one is written.
    ripe: bool,
    phase: Phase,
    /// Commands of the group being written that are in flight or waiting.
    left: u32,
    /// Records of the group being written, by number, with their new slots; no slot for records without data.
    writing: Vec<(u32, u32)>,
    writing_logged: u64,
    writing_slots: Vec<u32>,
    /// Previous slots of the records.
    old: Vec<u32>,
    /// Position of the log when the group was closed.
    onward: LogContinuation,
    /// Number of slots allocated until the group was closed, and until the last one on the main pool was closed.
    takes: u64,
    synced_takes: u64,
}

impl Groups {
    /// Creates the groups after the one that is on the main pool.
    pub(super) fn from_synced(synced: u64) -> Groups {
        Groups {
            open: synced,
            synced,
            ..Groups::default()
        }
    }

    /// Counts `bytes` bytes logged for the open group.
    pub(super) fn log(&mut self, bytes: u64) {
        self.logged += bytes;
    }

    /// Returns the bytes that are logged and not freed.
    pub(super) fn logged(&self) -> u64 {
        self.logged + self.writing_logged
    }

    /// Returns the position of a log block on the main pool: after the last one in its slot, in another slot, or in as
    /// many slots as it needs. A block that has moved from a log device has slots of its own. In every slot, numbers
    /// therefore rise, and all blocks are of one group. A block is durable before a later one in its slot is
    /// acknowledged. Recovery relies on both: it stops at the first position without a block of the group.
    pub(super) fn place_on_main(
        &mut self,
        bytes: u64,
        moved: bool,
        record: u64,
        room: &mut SlotAllocator,
    ) -> Option<u64> {
        let alone = moved && !planted::has(Bug::MovesBehindOthers);
        if !alone && self.next + bytes <= self.end {
            let at = self.next;
            self.next += bytes;
            return Some(at);
        }
        let count = bytes.div_ceil(record) as u32;
        let first = room.take_run(count)?;
        self.slots.extend(first..first + count);
        let at = u64::from(first) * record;
        if !alone {
            self.next = at + bytes;
            self.end = at + u64::from(count) * record;
        }
        Some(at)
    }

    /// Returns the position of a short block that needs no further slot; 0 if there is none.
    pub(super) fn next_on_main(&self) -> u64 {
        if self.next < self.end { self.next } else { 0 }
    }

    /// A log block, or a record that it references, is sent: returns its group.
    pub(super) fn sends(&mut self) -> u64 {
        self.placed += 1;
        self.open
    }
}

impl IntentLog {
    /// The open group contains a change.
    pub(super) fn open_group(&mut self, now: Time) {
        if self.groups.opened.is_none() {
            self.groups.opened = Some(now);
            self.groups.open = self.groups.open.max(self.groups.synced + 1);
            self.schedule(now + self.config.txg, LogEvent::Group);
        }
    }

    /// A group may have reached its maximum age.
    pub(super) fn group_is_old<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let old = |opened: Time| opened + self.config.txg <= now;
        if self.groups.opened.is_some_and(old) {
            self.groups.ripe = true;
            self.close_group(now, way);
        }
    }

    /// Closes the open group if it contains enough.
    pub(super) fn kick_group<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let dirty = self.groups.records.len() as u64 * self.record;
        let enough = self.dirty_max * CLOSES_AT / 100;
        let churned = self.takes() > self.most_takes() || self.is_short();
        if dirty >= enough || self.groups.logged >= 2 * enough || churned {
            self.groups.ripe = true;
            self.close_group(now, way);
        }
    }

    /// Starts to write the open group, unless the previous one is still being written.
    fn close_group<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let groups = &mut self.groups;
        if groups.phase != Phase::Idle || groups.opened.is_none() || self.suspended {
            return;
        }
        groups.ripe = false;
        groups.opened = None;
        groups.open += 1;
        groups.phase = Phase::Data;
        groups.writing_logged = core::mem::take(&mut groups.logged);
        groups.writing_slots.append(&mut groups.slots);
        (groups.next, groups.end) = (0, 0);
        self.rings.iter_mut().for_each(BlockRing::close);
        if planted::has(Bug::LogFreedEarly) {
            self.rings.iter_mut().for_each(BlockRing::release);
        }
        let mut handles = core::mem::take(&mut self.groups.records);
        handles.sort_unstable_by_key(|&it| self.records.get(it).number);
        // One more than the number of commands, until all are sent; blocks that are still in flight are included.
        self.groups.left = 1 + core::mem::take(&mut self.groups.placed);
        self.write_records(&handles, way);
        handles.clear();
        self.groups.records = handles;
        self.write_tables(way);
        self.groups.onward = self.onward();
        self.groups.takes = self.room.takes();
        if planted::has(Bug::RecordsFreedEarly) {
            self.give_up_slots();
        }
        self.group_goes_on(now, true, way);
    }

    /// Allocates slots for the records and writes adjacent ones with one command.
    fn write_records<W: TierContext>(&mut self, handles: &[u32], way: &mut W) {
        let longest = (u64::from(self.config.run) / self.slot).max(1) as u32;
        let mut run: Option<(u32, u32, u32)> = None;
        for &handle in handles {
            let index = self.groups.writing.len() as u32;
            let record = self.records.get_mut(handle);
            let number = u64::from(record.number);
            (record.open, record.syncing) = (false, true);
            let early = core::mem::replace(&mut record.early, NONE);
            let (hole, data, early_sum) = (record.hole, record.data, record.early_sum);
            if hole || early != NONE {
                // There is nothing to write, or a commit has already written it there.
                self.groups.writing.push((handle, early));
                self.dirty -= if hole { 0 } else { self.record };
                self.tables
                    .set_sum(number, (!hole && W::Buffers::REAL).then_some(early_sum));
                let before = self.room.place(number, (!hole).then_some(early));
                self.groups.old.extend(before);
                continue;
            }
            let Some(slot) = self.room.take() else {
                self.suspended = true;
                break;
            };
            if W::Buffers::REAL {
                let sum = way.buffers().sum(data, self.config.record);
                self.tables.set_sum(number, Some(sum));
            }
            self.cpu += Span::per_bytes(self.config.cpu.compress_ps, self.record);
            self.groups.old.extend(self.room.place(number, Some(slot)));
            self.groups.writing.push((handle, slot));
            run = match run {
                Some((first, at, count))
                    if first + count == index && at + count == slot && count < longest =>
                {
                    Some((first, at, count + 1))
                }
                before => {
                    self.write_run(before, way);
                    Some((index, slot, 1))
                }
            };
        }
        self.write_run(run, way);
    }

    fn write_run<W: TierContext>(&mut self, run: Option<(u32, u32, u32)>, way: &mut W) {
        let Some((first, slot, count)) = run else {
            return;
        };
        let payload = match count {
            1 => self.records.lend(self.groups.writing[first as usize].0),
            _ => self.together(first, count, way),
        };
        let at = u64::from(slot) * self.slot;
        let command = Command {
            payload,
            ..Command::write(0, at, count * self.slot as u32)
        };
        self.groups.left += 1;
        self.send(
            (MAIN, LogPurpose::Run { first, count }),
            Some(Urgency::Bulk),
            command,
            way,
        );
    }

    /// Returns a buffer with the data of `count` records of the group, in sequence.
    fn together<W: TierContext>(&self, first: u32, count: u32, way: &mut W) -> Payload {
        let payload = way.buffers().take(count * self.config.record);
        for index in 0..count {
            let (handle, _) = self.groups.writing[(first + index) as usize];
            let data = self.records.get(handle).data;
            let to = payload.skip(index * self.config.record);
            way.buffers().copy(data, to, self.config.record);
        }
        payload
    }

    /// Writes each changed node of the tables, together.
    fn write_tables<W: TierContext>(&mut self, way: &mut W) {
        let (mut command, mut used) = (Command::write(0, 0, 0), self.tables.per());
        for level in 0..LEVELS {
            let mut last = None;
            for index in 0..self.groups.writing.len() {
                let handle = self.groups.writing[index].0;
                let number = u64::from(self.records.get(handle).number);
                let node = self.tables.node_of(number, level);
                let planted = last.is_some() && planted::has(Bug::WritesFirstNodes);
                if last == Some(node) || self.suspended || planted {
                    continue;
                }
                last = Some(node);
                if used == self.tables.per() {
                    self.send_tables(command, way);
                    let Some(slot) = self.room.take() else {
                        self.suspended = true;
                        return;
                    };
                    let payload = way.buffers().take(self.config.record);
                    command = Command {
                        payload,
                        ..Command::write(0, u64::from(slot) * self.slot, 0)
                    };
                    used = 0;
                }
                self.tables.place(level, node, command.offset / UNIT + used);
                if W::Buffers::REAL {
                    let block = self.tables.encode(level, node, &self.room);
                    way.buffers()
                        .put(command.payload.skip(command.bytes), &block);
                }
                command.bytes += UNIT as u32;
                used += 1;
            }
        }
        self.send_tables(command, way);
    }

    fn send_tables<W: TierContext>(&mut self, command: Command, way: &mut W) {
        if command.bytes > 0 {
            self.groups.left += 1;
            self.send((MAIN, LogPurpose::Group), Some(Urgency::Bulk), command, way);
        }
    }

    /// Returns the root of the group that is being written.
    pub(super) fn root(&self, onward: LogContinuation) -> Root {
        Root {
            pool: self.life.pool,
            epoch: self.life.epoch,
            number: self.groups.open,
            record: self.config.record,
            size: self.config.size,
            slots: self.room.slots(),
            filled: self.config.filled,
            onward,
            labelled: self.labelled.clone(),
            nodes: self.tables.top(),
        }
    }

    /// A log block, or a record that it references, has completed that was sent while this group was open.
    pub(super) fn has_sent<W: TierContext>(
        &mut self,
        now: Time,
        group: u64,
        good: bool,
        way: &mut W,
    ) {
        if group < self.groups.open && self.groups.phase != Phase::Idle {
            self.group_goes_on(now, good, way);
        } else {
            self.groups.placed -= 1;
        }
    }

    /// Returns the slots allocated since the last group on the main pool was closed.
    pub(super) fn takes(&self) -> u64 {
        self.room.takes() - self.groups.synced_takes
    }

    /// Returns the maximum number of slots for one record and the table nodes above it.
    fn slots_of_record(&self) -> u64 {
        1 + (LEVELS as u64).div_ceil(self.tables.per())
    }

    /// Returns the maximum number of slots allocated between two groups if no record is committed repeatedly: log
    /// blocks on the main pool are searched in these.
    pub(super) fn most_takes(&self) -> u64 {
        let dirty = self.dirty_max / self.record + 2;
        dirty * self.slots_of_record() + 2 * dirty + 64
    }

    /// Whether the main pool may have less free space than the open group needs, while another group will free some.
    pub(super) fn is_short(&self) -> bool {
        let groups = &self.groups;
        let records = groups.records.len() as u64 + 4;
        let needed = records * self.slots_of_record() + 2 * (LARGEST_BLOCK / self.slot).max(1);
        let goes_on = groups.opened.is_some() || groups.phase != Phase::Idle;
        goes_on && u64::from(self.room.free()) < needed
    }

    /// Records of the group are on the main pool.
    pub(super) fn run_written<W: TierContext>(
        &mut self,
        (first, count): (u32, u32),
        (good, payload): (bool, Payload),
        way: &mut W,
    ) {
        match count {
            1 => {
                let handle = self.groups.writing[first as usize].0;
                self.records.returned(handle, payload, way.buffers());
            }
            _ => way.buffers().release(payload),
        }
        if good {
            self.dirty -= u64::from(count) * self.record;
            self.pump_all(way);
        }
    }

    /// A command of the group being written has completed. If it was the last, starts the next phase.
    pub(super) fn group_goes_on<W: TierContext>(&mut self, now: Time, good: bool, way: &mut W) {
        if !good {
            self.suspended = true;
        }
        self.groups.left -= 1;
        if self.groups.left == 0 && !self.suspended {
            self.groups.left = 1;
            let next = match self.groups.phase {
                Phase::Idle => return,
                Phase::Data if planted::has(Bug::RootBeforeRecords) => Phase::Root,
                Phase::Data => Phase::Flush,
                Phase::Flush => Phase::Root,
                Phase::Root if planted::has(Bug::RootNotFlushed) => {
                    return self.end_group(now, way);
                }
                Phase::Root => Phase::LastFlush,
                Phase::LastFlush => return self.end_group(now, way),
            };
            self.groups.phase = next;
            let command = match next {
                Phase::Root => self.write_root(way),
                _ => Command::flush(0),
            };
            self.send((MAIN, LogPurpose::Group), None, command, way);
        }
        self.release_held(now, way);
    }

    fn write_root<W: TierContext>(&mut self, way: &mut W) -> Command {
        let number = match planted::has(Bug::RootInPlace) {
            true => 1,
            false => self.groups.open,
        };
        let payload = way.buffers().take(UNIT as u32);
        if W::Buffers::REAL {
            let root = self.root(self.groups.onward.clone());
            way.buffers().put(payload, &root.encode());
        }
        Command {
            payload,
            ..Command::write(0, layout::root_at(number, self.slot), UNIT as u32)
        }
    }

    /// The group is on the main pool: frees its log; the next group may have waited for that.
    fn end_group<W: TierContext>(&mut self, now: Time, way: &mut W) {
        self.groups.phase = Phase::Idle;
        self.groups.left = 0;
        self.groups.synced = self.groups.open - 1;
        self.groups.synced_takes = self.groups.takes;
        self.groups.writing_logged = 0;
        self.rings.iter_mut().for_each(BlockRing::release);
        let mut writing = core::mem::take(&mut self.groups.writing);
        for (handle, _) in writing.drain(..) {
            self.records.get_mut(handle).syncing = false;
            self.records.settle(handle, way.buffers());
        }
        self.groups.writing = writing;
        self.give_up_slots();
        self.trim_freed(way);
        let synced = self.groups.synced;
        while self.unlogged.front().is_some_and(|it| it.group <= synced) {
            self.unlogged.pop_front();
        }
        if self.groups.ripe {
            self.close_group(now, way);
        }
        self.release_held(now, way);
    }

    /// Frees the slots of log blocks, and the previous locations of records and tables.
    fn give_up_slots(&mut self) {
        let groups = &mut self.groups;
        self.tables.take_empty(&mut groups.old);
        for slot in groups.writing_slots.drain(..).chain(groups.old.drain(..)) {
            self.room.retire(slot);
            if self.config.autotrim.is_some() {
                self.trims.free(slot);
            }
        }
        self.room.have_retired();
    }

    /// Power was cut, and the log has been replayed: dirty data is at its final locations.
    pub(super) fn settle_after_power_cut(&mut self) {
        for index in 0..self.groups.records.len() {
            let record = *self.records.get(self.groups.records[index]);
            let number = u64::from(record.number);
            let slot = match record.early {
                _ if record.hole => None,
                NONE => match self.room.slot(number) {
                    Some(_) => continue,
                    None => self.room.take(),
                },
                early => Some(early),
            };
            self.groups.old.extend(self.room.place(number, slot));
        }
        let groups = &mut self.groups;
        groups.writing_slots.append(&mut groups.slots);
        self.give_up_slots();
        self.room.cut();
        self.rings.iter_mut().for_each(BlockRing::clear);
        self.groups = Groups {
            takes: self.room.takes(),
            synced_takes: self.room.takes(),
            ..Groups::from_synced(self.groups.open)
        };
        self.groups.open += 1;
    }
}
