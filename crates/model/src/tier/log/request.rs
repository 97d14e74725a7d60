//! The way of a client's command: the software works on it, a write waits for room, reads what it changes a part of, makes
//! records dirty and, if it must be durable, is committed.

use super::config::INDIRECT_FROM;
use super::records::NONE;
use super::{Due, IntentLog, Logbias, MAIN, SyncPolicy, Unlogged, Way, What, within};
use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, Completion, Op, Status};
use crate::time::{Span, Time};

/// Percent of what may be dirty above which writes are delayed.
const DELAY_FROM: u64 = 60;
/// What the delay is in the middle between that and full.
const DELAY_SCALE: Span = Span::from_us(500);
const LONGEST_DELAY: Span = Span::from_ms(100);
/// Most bytes that are read with one command.
const LARGEST_READ: u64 = 1 << 20;

/// A client's command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) command: Command,
    /// Up to when its anatomy says where the time went.
    pub(super) since: Time,
    pub(super) anatomy: Anatomy,
    pub(super) status: Status,
    /// Reads that it waits for.
    left: u32,
    /// It has been delayed, and is not again.
    delayed: bool,
}

/// One of those that wait for a record to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    request: u32,
    next: u32,
}

impl IntentLog {
    /// A command has come.
    pub(super) fn begin<W: Way>(&mut self, now: Time, command: &Command, way: &mut W) {
        let cpu = self.config.cpu;
        let disabled = self.config.sync == SyncPolicy::Disabled;
        if command.op == Op::Flush && disabled {
            return way.finish(command.id, Status::Success, Anatomy::ZERO);
        }
        let request = self.requests.insert(Request {
            command: *command,
            since: now,
            anatomy: Anatomy::ZERO,
            status: Status::Success,
            left: 0,
            delayed: false,
        });
        let copy = match command.op.transfers() {
            true => Span::per_bytes(cpu.copy_ps, u64::from(command.bytes)),
            false => Span::ZERO,
        };
        match command.op {
            Op::Read => self.work(now, cpu.read + copy, Due::Read(request)),
            Op::Flush => self.work(now, cpu.commit, Due::Commit(request)),
            _ => self.work(now, cpu.write + copy, Due::Enter(request)),
        }
    }

    /// The time up to now was of this.
    pub(super) fn spend(&mut self, now: Time, request: u32, part: Part) {
        let request = &mut self.requests[request];
        request.anatomy.add(part, now.since(request.since));
        request.since = now;
    }

    pub(super) fn finish<W: Way>(&mut self, request: u32, way: &mut W) {
        let done = &self.requests[request];
        way.finish(done.command.id, done.status, done.anatomy);
        self.requests.release(request);
    }

    /// The numbers of the records that a command touches.
    fn numbers(&self, command: &Command) -> core::ops::Range<u64> {
        command.offset / self.record..command.end().div_ceil(self.record)
    }

    /// A read has been looked at: what is not in memory is read from main, whole records.
    pub(super) fn read<W: Way>(&mut self, now: Time, request: u32, way: &mut W) {
        self.spend(now, request, Part::Tier);
        let command = self.requests[request].command;
        let numbers = self.numbers(&command);
        let mut number = numbers.start;
        while number < numbers.end {
            let first = number;
            number += 1;
            let in_memory = self.records.find(first);
            let bytes = self.covered(&command, first);
            if in_memory.is_some_and(|it| self.records.get(it).reading) {
                self.missed += bytes;
                self.wait_for(request, in_memory.unwrap_or(NONE));
                continue;
            }
            let Some(slot) = self.room.of(first).filter(|_| in_memory.is_none()) else {
                self.hit += bytes;
                continue;
            };
            self.missed += bytes;
            // What lies together is read together.
            while number < numbers.end
                && (number - first + 1) * self.record <= LARGEST_READ
                && self.records.find(number).is_none()
                && self.room.of(number) == Some(slot + (number - first) as u32)
            {
                self.missed += self.covered(&command, number);
                number += 1;
            }
            self.requests[request].left += 1;
            let bytes = ((number - first) * self.record) as u32;
            let read = Command::new(0, Op::Read, u64::from(slot) * self.record, bytes);
            self.send((MAIN, What::Read { request }), None, read, way);
        }
        if self.requests[request].left == 0 {
            self.finish(request, way);
        }
    }

    /// Bytes of a record that a command covers.
    fn covered(&self, command: &Command, number: u64) -> u64 {
        let begin = number * self.record;
        command.end().min(begin + self.record) - command.offset.max(begin)
    }

    /// A part of a read has come, or a record that a request waits for: whether it waits for nothing more.
    fn arrived(&mut self, now: Time, request: u32, done: &Completion) -> bool {
        let waiting = &mut self.requests[request];
        waiting.left -= 1;
        if waiting.status == Status::Success {
            waiting.status = done.status;
        }
        if waiting.left > 0 {
            return false;
        }
        let took = within(&done.anatomy, now.since(waiting.since));
        waiting.anatomy.append(&took);
        waiting.since = now;
        true
    }

    pub(super) fn part_read<W: Way>(
        &mut self,
        now: Time,
        request: u32,
        done: &Completion,
        way: &mut W,
    ) {
        if self.arrived(now, request, done) {
            self.finish(request, way);
        }
    }

    /// A write has been looked at: it waits behind others for room, or goes on.
    pub(super) fn enter<W: Way>(&mut self, now: Time, request: u32, way: &mut W) {
        self.spend(now, request, Part::Tier);
        if self.suspended {
            self.refuse(now, request, way);
        } else if self.requests[request].command.op != Op::Write {
            self.apply(now, request, way);
        } else if self.is_full() || !self.held.is_empty() {
            self.held.push_back(request);
        } else {
            self.admit(now, request, way);
        }
    }

    fn is_full(&self) -> bool {
        self.dirty >= self.dirty_max || self.groups.logged() >= 2 * self.dirty_max
    }

    /// There may be room again.
    pub(super) fn release_held<W: Way>(&mut self, now: Time, way: &mut W) {
        while !self.held.is_empty() && (self.suspended || !self.is_full()) {
            let Some(request) = self.held.pop_front() else {
                return;
            };
            if self.suspended {
                self.refuse(now, request, way);
            } else {
                self.admit(now, request, way);
            }
        }
    }

    /// A write is delayed by how full the memory is, one behind the other.
    fn admit<W: Way>(&mut self, now: Time, request: u32, way: &mut W) {
        let from = self.dirty_max * DELAY_FROM / 100;
        let delayed = core::mem::replace(&mut self.requests[request].delayed, true);
        if !delayed && self.dirty > from && self.dirty < self.dirty_max {
            let ratio = (self.dirty - from) as f64 / (self.dirty_max - self.dirty) as f64;
            let delay = DELAY_SCALE.scale(ratio).min(LONGEST_DELAY);
            let since = self.requests[request].since;
            let wakeup = (since + delay).max(self.wakeup + delay);
            if wakeup > now {
                self.wakeup = wakeup;
                return self.at(wakeup, Due::Delayed(request));
            }
        }
        self.fill(now, request, way);
    }

    /// A write has been delayed: others may have taken the room meanwhile.
    pub(super) fn delayed<W: Way>(&mut self, now: Time, request: u32, way: &mut W) {
        if self.suspended {
            self.refuse(now, request, way);
        } else if self.is_full() {
            self.held.push_back(request);
        } else {
            self.fill(now, request, way);
        }
    }

    /// Main takes nothing any more, and so nobody is promised anything.
    pub(super) fn refuse<W: Way>(&mut self, now: Time, request: u32, way: &mut W) {
        self.spend(now, request, Part::Congestion);
        self.requests[request].status = Status::WriteFault;
        self.finish(request, way);
    }

    /// Records of which a write changes a part must be in memory.
    fn fill<W: Way>(&mut self, now: Time, request: u32, way: &mut W) {
        self.spend(now, request, Part::Congestion);
        let command = self.requests[request].command;
        let numbers = self.numbers(&command);
        let ends = [numbers.start, numbers.end - 1];
        let count = if ends[0] == ends[1] { 1 } else { 2 };
        for &number in &ends[..count] {
            if self.covered(&command, number) == self.record {
                continue;
            }
            if let Some(handle) = self.records.find(number) {
                if self.records.get(handle).reading {
                    self.wait_for(request, handle);
                }
            } else if let Some(slot) = self.room.of(number) {
                let handle = self.records.take(number);
                self.records.get_mut(handle).reading = true;
                self.wait_for(request, handle);
                let at = u64::from(slot) * self.record;
                let read = Command::new(0, Op::Read, at, self.config.record);
                self.send((MAIN, What::Fill { handle }), None, read, way);
            }
        }
        if self.requests[request].left == 0 {
            self.apply(now, request, way);
        }
    }

    fn wait_for(&mut self, request: u32, handle: u32) {
        self.requests[request].left += 1;
        let next = self.records.get(handle).waiters;
        let wait = self.waits.insert(Wait { request, next });
        self.records.get_mut(handle).waiters = wait;
    }

    /// A record has been read: all that wait for it go on, in the order in which they came.
    pub(super) fn filled<W: Way>(
        &mut self,
        now: Time,
        handle: u32,
        done: &Completion,
        way: &mut W,
    ) {
        let record = self.records.get_mut(handle);
        record.reading = false;
        let mut last = core::mem::replace(&mut record.waiters, NONE);
        let mut first = NONE;
        while last != NONE {
            let before = core::mem::replace(&mut self.waits[last].next, first);
            first = core::mem::replace(&mut last, before);
        }
        while first != NONE {
            let Wait { request, next } = self.waits[first];
            self.waits.release(first);
            first = next;
            if !self.arrived(now, request, done) {
                continue;
            }
            let waiting = &self.requests[request];
            if waiting.command.op == Op::Read || waiting.status != Status::Success {
                self.finish(request, way);
            } else {
                self.apply(now, request, way);
            }
        }
        self.records.settle(handle);
    }

    /// A write is in memory: its records are dirty, and it is acknowledged unless it must be durable.
    fn apply<W: Way>(&mut self, now: Time, request: u32, way: &mut W) {
        let command = self.requests[request].command;
        let moves = command.op == Op::Write;
        self.open_group(now);
        if moves {
            for number in self.numbers(&command) {
                let handle = self.records.take(number);
                if self.records.dirty(handle) {
                    self.groups.records.push(handle);
                    self.dirty += self.record;
                }
                let early = &mut self.records.get_mut(handle).early;
                let early = core::mem::replace(early, NONE);
                if early != NONE {
                    self.room.release(early);
                }
            }
        }
        let large = self.rings.is_empty() && u64::from(command.bytes) > INDIRECT_FROM;
        let indirect = large || self.config.logbias == Logbias::Throughput;
        self.unlogged.push_back(Unlogged {
            offset: command.offset,
            bytes: if moves { command.bytes } else { 0 },
            indirect: indirect && moves,
            group: self.groups.open,
        });
        let commits = match self.config.sync {
            SyncPolicy::Standard => command.fua,
            SyncPolicy::Always => true,
            SyncPolicy::Disabled => false,
        };
        if commits {
            let takes = self.config.cpu.commit;
            self.work(now, takes, Due::Commit(request));
        } else {
            self.finish(request, way);
        }
        self.kick_group(now, way);
        self.pump_all(way);
    }
}
