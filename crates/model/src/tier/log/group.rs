//! Transaction groups: what is dirty goes to main, a group at a time.
//!
//! A group takes writes in until it is 5 s old or a fifth of what may be dirty is in it, or a fifth of what may be logged.
//! Then its records are written to free slots in the order of their numbers, and with them the tables that say where they
//! are: a tree of nodes of 4 KiB with 256 entries, of which each node above a changed one is written. Main is flushed, the
//! root written, main is flushed again; then the group's log blocks are given up, and the places where its records were
//! before. So main always has one group whole: what a root says is never written over before the next root is there. The
//! next group takes writes in meanwhile, and is written after it.

use alloc::vec::Vec;

use super::layout::{self, LARGEST_BLOCK, Onward, Root, UNIT};
use super::queue::Urgency;
use super::records::NONE;
use super::room::{Ring, Room};
use super::tables::{LEVEL, LEVELS};
use super::{Due, IntentLog, MAIN, Way, What};
use crate::command::{Command, Payload};
use crate::data::Buffers;
use crate::tier::planted::{self, Bug};
use crate::time::Time;

/// Percent of what may be dirty, or logged, at which a group is closed.
const CLOSES_AT: u64 = 20;

/// What is being done about the group that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    /// There is none.
    #[default]
    Idle,
    Data,
    Flush,
    Root,
    LastFlush,
}

/// The groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    /// The number of the open one, and of the last that is on main.
    pub(super) open: u64,
    pub(super) synced: u64,
    /// Since when the open one has something.
    opened: Option<Time>,
    /// Handles of what is changed in it.
    pub(super) records: Vec<u32>,
    /// Bytes logged for it, and slots of main that are given up with it: of its log blocks, and of records that commits
    /// have put there and that have changed since.
    logged: u64,
    pub(super) slots: Vec<u32>,
    /// Where on main the next log block goes, and where that room ends.
    next: u64,
    end: u64,
    /// Log blocks, and records that they name, which were sent while it is open and are in flight.
    placed: u32,
    /// It has waited long enough and is closed when the one before is written.
    ripe: bool,
    phase: Phase,
    /// Commands of the one that is written which are in flight or wait.
    left: u32,
    /// Its records by number with the slots they go to; none for those without data.
    writing: Vec<(u32, u32)>,
    writing_logged: u64,
    writing_slots: Vec<u32>,
    /// Where they were before.
    old: Vec<u32>,
    /// Where the log went on when it was closed.
    onward: Onward,
    /// How many slots had been taken when it was closed, and when the last that is on main was.
    takes: u64,
    synced_takes: u64,
}

impl Groups {
    /// Those after the one that is on main.
    pub(super) fn after(synced: u64) -> Groups {
        Groups {
            open: synced,
            synced,
            ..Groups::default()
        }
    }

    /// So many bytes are logged for the open group.
    pub(super) fn log(&mut self, bytes: u64) {
        self.logged += bytes;
    }

    /// Bytes that are logged and not given up.
    pub(super) fn logged(&self) -> u64 {
        self.logged + self.writing_logged
    }

    /// Where a log block goes on main: behind the last one in a slot, or into another, or as many as it needs.
    pub(super) fn place_on_main(
        &mut self,
        bytes: u64,
        record: u64,
        room: &mut Room,
    ) -> Option<u64> {
        if self.next + bytes > self.end {
            let count = bytes.div_ceil(record) as u32;
            let first = room.take_run(count)?;
            self.slots.extend(first..first + count);
            self.next = u64::from(first) * record;
            self.end = self.next + u64::from(count) * record;
        }
        let at = self.next;
        self.next += bytes;
        Some(at)
    }

    /// Where a short one would go without another slot; 0 if nowhere.
    pub(super) fn next_on_main(&self) -> u64 {
        if self.next < self.end { self.next } else { 0 }
    }

    /// A log block, or a record that one names, is sent: of which group it is.
    pub(super) fn sends(&mut self) -> u64 {
        self.placed += 1;
        self.open
    }
}

impl IntentLog {
    /// There is something in the open group.
    pub(super) fn open_group(&mut self, now: Time) {
        if self.groups.opened.is_none() {
            self.groups.opened = Some(now);
            self.groups.open = self.groups.open.max(self.groups.synced + 1);
            self.at(now + self.config.txg, Due::Group);
        }
    }

    /// A group may have been open for long enough.
    pub(super) fn group_is_old<W: Way>(&mut self, now: Time, way: &mut W) {
        let old = |opened: Time| opened + self.config.txg <= now;
        if self.groups.opened.is_some_and(old) {
            self.groups.ripe = true;
            self.close_group(now, way);
        }
    }

    /// The open group is closed if enough is in it.
    pub(super) fn kick_group<W: Way>(&mut self, now: Time, way: &mut W) {
        let dirty = self.groups.records.len() as u64 * self.record;
        let enough = self.dirty_max * CLOSES_AT / 100;
        let churned = self.takes() > self.most_takes() || self.is_short();
        if dirty >= enough || self.groups.logged >= 2 * enough || churned {
            self.groups.ripe = true;
            self.close_group(now, way);
        }
    }

    /// The open group is written, unless the one before it still is.
    fn close_group<W: Way>(&mut self, now: Time, way: &mut W) {
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
        self.rings.iter_mut().for_each(Ring::close);
        if planted::has(Bug::LogFreedEarly) {
            self.rings.iter_mut().for_each(Ring::release);
        }
        let mut handles = core::mem::take(&mut self.groups.records);
        handles.sort_unstable_by_key(|&it| self.records.get(it).number);
        // One more than there are commands, until all are on their way; blocks that are still in flight are among them.
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

    /// Chooses slots for the records and writes those that lie together with one command.
    fn write_records<W: Way>(&mut self, handles: &[u32], way: &mut W) {
        let longest = (u64::from(self.config.run) / self.record).max(1) as u32;
        let mut run: Option<(u32, u32, u32)> = None;
        for &handle in handles {
            let index = self.groups.writing.len() as u32;
            let record = self.records.get_mut(handle);
            let number = u64::from(record.number);
            (record.open, record.syncing) = (false, true);
            let early = core::mem::replace(&mut record.early, NONE);
            let (hole, data, early_sum) = (record.hole, record.data, record.early_sum);
            if hole || early != NONE {
                // There is nothing to write, or a commit has put it there already.
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

    fn write_run<W: Way>(&mut self, run: Option<(u32, u32, u32)>, way: &mut W) {
        let Some((first, slot, count)) = run else {
            return;
        };
        let payload = match count {
            1 => self.records.lend(self.groups.writing[first as usize].0),
            _ => self.together(first, count, way),
        };
        let at = u64::from(slot) * self.record;
        let command = Command {
            payload,
            ..Command::write(0, at, count * self.config.record)
        };
        self.groups.left += 1;
        self.send(
            (MAIN, What::Run { first, count }),
            Some(Urgency::Bulk),
            command,
            way,
        );
    }

    /// The data of so many records of the group, in a buffer one after the other.
    fn together<W: Way>(&self, first: u32, count: u32, way: &mut W) -> Payload {
        let payload = way.buffers().take(count * self.config.record);
        for index in 0..count {
            let (handle, _) = self.groups.writing[(first + index) as usize];
            let data = self.records.get(handle).data;
            let to = payload.skip(index * self.config.record);
            way.buffers().copy(data, to, self.config.record);
        }
        payload
    }

    /// Writes each node of the tables that has changed, together.
    fn write_tables<W: Way>(&mut self, way: &mut W) {
        let (mut command, mut used) = (Command::write(0, 0, 0), self.tables.per());
        for level in 0..LEVELS {
            let mut last = None;
            for index in 0..self.groups.writing.len() {
                let handle = self.groups.writing[index].0;
                let node = self.records.get(handle).number >> (LEVEL * (level as u32 + 1));
                if last == Some(node) || self.suspended {
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
                        ..Command::write(0, u64::from(slot) * self.record, 0)
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

    fn send_tables<W: Way>(&mut self, command: Command, way: &mut W) {
        if command.bytes > 0 {
            self.groups.left += 1;
            self.send((MAIN, What::Group), Some(Urgency::Bulk), command, way);
        }
    }

    /// The root of the group that is being written.
    pub(super) fn root(&self, onward: Onward) -> Root {
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

    /// A log block, or a record that one names, has ended that was sent while this group was open.
    pub(super) fn has_sent<W: Way>(&mut self, now: Time, group: u64, good: bool, way: &mut W) {
        if group < self.groups.open && self.groups.phase != Phase::Idle {
            self.group_goes_on(now, good, way);
        } else {
            self.groups.placed -= 1;
        }
    }

    /// Slots that were taken since the last group that is on main was closed.
    pub(super) fn takes(&self) -> u64 {
        self.room.takes() - self.groups.synced_takes
    }

    /// Slots that one record and the tables above it may take.
    fn slots_of_record(&self) -> u64 {
        1 + (LEVELS as u64).div_ceil(self.tables.per())
    }

    /// How many slots are taken at most between two groups where no record is committed again and again: log blocks on
    /// main are looked for among these.
    pub(super) fn most_takes(&self) -> u64 {
        let dirty = self.dirty_max / self.record + 2;
        dirty * self.slots_of_record() + 2 * dirty + 64
    }

    /// There may be less free room on main than the open group needs; and there is a group that will give up some.
    pub(super) fn is_short(&self) -> bool {
        let groups = &self.groups;
        let records = groups.records.len() as u64 + 4;
        let needed = records * self.slots_of_record() + 2 * (LARGEST_BLOCK / self.record).max(1);
        let goes_on = groups.opened.is_some() || groups.phase != Phase::Idle;
        goes_on && u64::from(self.room.free()) < needed
    }

    /// Records of the group are on main.
    pub(super) fn run_written<W: Way>(
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
            _ => way.buffers().give_back(payload),
        }
        if good {
            self.dirty -= u64::from(count) * self.record;
            self.pump_all(way);
        }
    }

    /// A command of the group that is written has ended: what comes next, if it was the last.
    pub(super) fn group_goes_on<W: Way>(&mut self, now: Time, good: bool, way: &mut W) {
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
            self.send((MAIN, What::Group), None, command, way);
        }
        self.release_held(now, way);
    }

    fn write_root<W: Way>(&mut self, way: &mut W) -> Command {
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
            ..Command::write(0, layout::root_at(number, self.record), UNIT as u32)
        }
    }

    /// The group is on main: its log is given up, and the next one may have waited for it.
    fn end_group<W: Way>(&mut self, now: Time, way: &mut W) {
        self.groups.phase = Phase::Idle;
        self.groups.left = 0;
        self.groups.synced = self.groups.open - 1;
        self.groups.synced_takes = self.groups.takes;
        self.groups.writing_logged = 0;
        self.rings.iter_mut().for_each(Ring::release);
        let mut writing = core::mem::take(&mut self.groups.writing);
        for (handle, _) in writing.drain(..) {
            self.records.get_mut(handle).syncing = false;
            self.records.settle(handle, way.buffers());
        }
        self.groups.writing = writing;
        self.give_up_slots();
        let synced = self.groups.synced;
        while self.unlogged.front().is_some_and(|it| it.group <= synced) {
            self.unlogged.pop_front();
        }
        if self.groups.ripe {
            self.close_group(now, way);
        }
        self.release_held(now, way);
    }

    /// Slots of log blocks, and where records and tables were before, may be used again.
    fn give_up_slots(&mut self) {
        let groups = &mut self.groups;
        self.tables.take_empty(&mut groups.old);
        for slot in groups.writing_slots.drain(..).chain(groups.old.drain(..)) {
            self.room.retire(slot);
        }
        self.room.have_retired();
    }

    /// Power went, and the log has been read: what was dirty is where it would have gone.
    pub(super) fn settle_after_power_cut(&mut self) {
        for index in 0..self.groups.records.len() {
            let record = *self.records.get(self.groups.records[index]);
            let number = u64::from(record.number);
            let slot = match record.early {
                _ if record.hole => None,
                NONE => match self.room.of(number) {
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
        self.rings.iter_mut().for_each(Ring::clear);
        self.groups = Groups {
            takes: self.room.takes(),
            synced_takes: self.room.takes(),
            ..Groups::after(self.groups.open)
        };
        self.groups.open += 1;
    }
}
