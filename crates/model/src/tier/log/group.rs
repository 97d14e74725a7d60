//! Transaction groups: what is dirty goes to main, a group at a time.
//!
//! A group takes writes in until it is 5 s old or a fifth of what may be dirty is in it, or a fifth of what may be logged.
//! Then its records are written to free slots in the order of their numbers, and with them the tables that say where they
//! are: a tree of nodes of 4 KiB with 256 entries, of which each node above a changed one is written. Main is flushed, the
//! root written, main is flushed again; then the group's log blocks are given up. The next group takes writes in meanwhile,
//! and is written after it.

use alloc::vec::Vec;

use super::config::UNIT;
use super::queue::Urgency;
use super::records::NONE;
use super::room::{Ring, Room};
use super::{Due, IntentLog, MAIN, Way, What};
use crate::command::{Command, Op};
use crate::time::Time;

/// Percent of what may be dirty, or logged, at which a group is closed.
const CLOSES_AT: u64 = 20;
/// Bits of a record's number that one level of the tables takes, and how many levels there are.
const LEVEL: u32 = 8;
const LEVELS: u32 = 3;

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
    /// Handles of what is dirty in it.
    pub(super) records: Vec<u32>,
    /// Bytes logged for it, and slots of main that its log blocks are in, the last with so many bytes.
    logged: u64,
    slots: Vec<u32>,
    used: u64,
    /// It has waited long enough and is closed when the one before is written.
    ripe: bool,
    phase: Phase,
    /// Commands of the one that is written which are in flight or wait.
    left: u32,
    /// Its records by number with the slots they go to.
    writing: Vec<(u32, u32)>,
    writing_logged: u64,
    writing_slots: Vec<u32>,
    /// Slots of its tables, and of the last one's.
    tables: Vec<u32>,
    old_tables: Vec<u32>,
}

impl Groups {
    /// So many bytes are logged for the open group.
    pub(super) fn log(&mut self, bytes: u64) {
        self.logged += bytes;
    }

    /// Bytes that are logged and not given up.
    pub(super) fn logged(&self) -> u64 {
        self.logged + self.writing_logged
    }

    /// Slots that tables are in.
    #[cfg(test)]
    pub(super) fn table_slots(&self) -> u64 {
        (self.tables.len() + self.old_tables.len()) as u64
    }

    /// Where a log block goes on main: behind the last one in a slot, or into another.
    pub(super) fn place_on_main(&mut self, bytes: u64, record: u64, room: &mut Room) -> u64 {
        if self.slots.is_empty() || self.used + bytes > record {
            // A block may be longer than a record: it takes the room from its slot on.
            self.slots.push(room.take());
            self.used = 0;
        }
        let slot = self.slots.last().copied().unwrap_or(1);
        let at = u64::from(slot) * record + self.used;
        self.used += bytes;
        at.min(room.slots() * record - bytes)
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
        if dirty >= enough || self.groups.logged >= 2 * enough {
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
        self.rings.iter_mut().for_each(Ring::close);
        let mut handles = core::mem::take(&mut self.groups.records);
        handles.sort_unstable_by_key(|&it| self.records.get(it).number);
        // One more than there are commands, until all are on their way.
        self.groups.left = 1;
        self.write_records(&handles, way);
        handles.clear();
        self.groups.records = handles;
        self.write_tables(way);
        self.group_goes_on(now, true, way);
    }

    /// Chooses slots for the records and writes those that lie together with one command.
    fn write_records<W: Way>(&mut self, handles: &[u32], way: &mut W) {
        let longest = (u64::from(self.config.run) / self.record).max(1) as u32;
        let mut run: Option<(u32, u32, u32)> = None;
        for &handle in handles {
            let index = self.groups.writing.len() as u32;
            let record = self.records.get_mut(handle);
            (record.open, record.syncing) = (false, true);
            let early = core::mem::replace(&mut record.early, NONE);
            if early != NONE {
                // A commit has put it there already.
                self.groups.writing.push((handle, early));
                self.dirty -= self.record;
                continue;
            }
            let slot = self.room.take();
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
        if let Some((_, slot, count)) = run {
            let what = What::Run { count };
            self.write_slot(slot, u64::from(count) * self.record, what, way);
        }
    }

    fn write_slot<W: Way>(&mut self, slot: u32, bytes: u64, what: What, way: &mut W) {
        self.groups.left += 1;
        let at = u64::from(slot) * self.record;
        let command = Command::new(0, Op::Write, at, bytes as u32);
        self.send((MAIN, what), Some(Urgency::Bulk), command, way);
    }

    /// Writes each node of the tables that has changed, together.
    fn write_tables<W: Way>(&mut self, way: &mut W) {
        let mut nodes = 0;
        for level in 1..=LEVELS {
            let mut last = None;
            for &(handle, _) in &self.groups.writing {
                let node = self.records.get(handle).number >> (LEVEL * level);
                nodes += u64::from(last != Some(node));
                last = Some(node);
            }
        }
        let mut bytes = nodes * UNIT;
        while bytes > 0 {
            let slot = self.room.take();
            self.groups.tables.push(slot);
            let part = bytes.min(self.record);
            self.write_slot(slot, part, What::Group, way);
            bytes -= part;
        }
    }

    /// Records of the group are on main.
    pub(super) fn run_written<W: Way>(&mut self, count: u32, good: bool, way: &mut W) {
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
            let groups = &mut self.groups;
            groups.left = 1;
            let command = match groups.phase {
                Phase::Idle => return,
                Phase::Data | Phase::Root => Command::flush(0),
                Phase::Flush => {
                    let at = groups.open % (self.record / UNIT) * UNIT;
                    Command::new(0, Op::Write, at, UNIT as u32)
                }
                Phase::LastFlush => return self.end_group(now, way),
            };
            groups.phase = match groups.phase {
                Phase::Data => Phase::Flush,
                Phase::Flush => Phase::Root,
                _ => Phase::LastFlush,
            };
            self.send((MAIN, What::Group), None, command, way);
        }
        self.release_held(now, way);
    }

    /// The group is on main: its log is given up, and the next one may have waited for it.
    fn end_group<W: Way>(&mut self, now: Time, way: &mut W) {
        self.groups.phase = Phase::Idle;
        self.groups.left = 0;
        self.groups.synced = self.groups.open - 1;
        self.groups.writing_logged = 0;
        self.rings.iter_mut().for_each(Ring::release);
        let mut writing = core::mem::take(&mut self.groups.writing);
        for (handle, slot) in writing.drain(..) {
            let record = self.records.get_mut(handle);
            record.syncing = false;
            let number = u64::from(record.number);
            self.room.move_to(number, slot);
            self.records.settle(handle);
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

    /// Slots of log blocks and of the tables before may be used again.
    fn give_up_slots(&mut self) {
        let groups = &mut self.groups;
        let old = groups.old_tables.drain(..);
        for slot in groups.writing_slots.drain(..).chain(old) {
            self.room.release(slot);
        }
        core::mem::swap(&mut groups.tables, &mut groups.old_tables);
    }

    /// Power went, and the log has been read: what was dirty is where it would have gone.
    pub(super) fn settle_after_power_cut(&mut self) {
        let writing = core::mem::take(&mut self.groups.writing);
        for (handle, slot) in writing {
            self.room
                .move_to(u64::from(self.records.get(handle).number), slot);
        }
        for &handle in &self.groups.records {
            let record = *self.records.get(handle);
            let number = u64::from(record.number);
            if record.early != NONE {
                self.room.move_to(number, record.early);
            } else if self.room.of(number).is_none() {
                let slot = self.room.take();
                self.room.move_to(number, slot);
            }
        }
        self.groups.writing_slots.append(&mut self.groups.slots);
        self.give_up_slots();
        self.rings.iter_mut().for_each(Ring::clear);
        let open = self.groups.open;
        let old_tables = core::mem::take(&mut self.groups.old_tables);
        self.groups = Groups {
            open: open + 1,
            synced: open,
            old_tables,
            ..Groups::default()
        };
    }
}
