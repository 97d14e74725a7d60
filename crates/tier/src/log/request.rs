//! Processing of a client's command: the software works on it, a write waits for free memory, reads records that it
//! changes partly, makes records dirty and, if it must be durable, is committed. A write larger than the maximum of
//! dirty bytes is carried out in parts, one after the other.
//!
//! A trim leaves records unchanged that it covers partly, and removes the data of the others. Write zeroes does the
//! same, but writes zeroes to the partly covered ones.

use model::anatomy::{Anatomy, Part};
use model::command::{Command, Completion, Op, Payload, Status};
use model::data::Buffers;
use model::time::{Span, Time};

use super::config::INDIRECT_FROM;
use super::layout::LogContent;
use super::records::NONE;
use super::tables;
use super::{
    IntentLog, LogEvent, LogPurpose, Logbias, MAIN, SyncPolicy, TierContext, UnloggedWrite,
    tier_anatomy,
};

/// Percentage of the maximum of dirty bytes above which writes are delayed.
const DELAY_FROM: u64 = 60;
/// Delay in the middle between that percentage and the maximum.
const DELAY_SCALE: Span = Span::from_us(500);
const LONGEST_DELAY: Span = Span::from_ms(100);
/// Maximum bytes read with one command.
const LARGEST_READ: u64 = 1 << 20;

/// A client's command.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogRequest {
    pub(super) command: Command,
    /// Time up to which its anatomy is complete.
    pub(super) since: Time,
    pub(super) anatomy: Anatomy,
    pub(super) status: Status,
    /// Number of reads that it waits for.
    left: u32,
    /// Whether it has been delayed already.
    delayed: bool,
    /// Bytes of a large write that follow those of `command`.
    rest: u32,
}

/// A request that waits for a record to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    request: u32,
    next: u32,
}

impl IntentLog {
    /// Starts a command.
    pub(super) fn begin<W: TierContext>(&mut self, now: Time, command: &Command, way: &mut W) {
        let cpu = self.config.cpu;
        let disabled = self.config.sync == SyncPolicy::Disabled;
        if command.op == Op::Flush && disabled {
            return way.finish(command.id, Status::Success, Anatomy::ZERO);
        }
        let request = self.requests.insert(LogRequest {
            command: *command,
            since: now,
            anatomy: Anatomy::ZERO,
            status: Status::Success,
            left: 0,
            delayed: false,
            rest: 0,
        });
        let copy = match command.op.transfers() {
            true => Span::per_bytes(cpu.copy_ps, u64::from(command.bytes)),
            false => Span::ZERO,
        };
        match command.op {
            Op::Read => {
                let records = self.numbers(command);
                let bytes = (records.end - records.start) * self.record;
                let decompress = Span::per_bytes(cpu.decompress_ps, bytes);
                self.work(now, cpu.read + copy + decompress, LogEvent::Read(request));
            }
            Op::Flush => self.work(now, cpu.commit, LogEvent::Commit(request)),
            _ => self.work(now, cpu.write + copy, LogEvent::Enter(request)),
        }
    }

    /// Attributes the time up to now to this part.
    pub(super) fn spend(&mut self, now: Time, request: u32, part: Part) {
        let request = &mut self.requests[request];
        request.anatomy.add(part, now.since(request.since));
        request.since = now;
    }

    pub(super) fn finish<W: TierContext>(&mut self, request: u32, way: &mut W) {
        let done = &self.requests[request];
        way.finish(done.command.id, done.status, done.anatomy);
        self.requests.release(request);
    }

    /// Returns the numbers of the records that a command overlaps.
    fn numbers(&self, command: &Command) -> core::ops::Range<u64> {
        command.offset / self.record..command.end().div_ceil(self.record)
    }

    /// The software has worked on a read: reads records that are not in memory from the main pool, as a whole.
    pub(super) fn read<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        self.spend(now, request, Part::Tier);
        let command = self.requests[request].command;
        let numbers = self.numbers(&command);
        let mut number = numbers.start;
        while number < numbers.end {
            let first = number;
            number += 1;
            let in_memory = self.records.find(first);
            let bytes = self.covered(&command, first);
            if let Some(handle) = in_memory {
                if self.records.get(handle).reading {
                    self.missed += bytes;
                    self.wait_for(request, handle);
                } else {
                    self.hit += bytes;
                    self.give(&command, first, self.records.get(handle).data, way);
                }
                continue;
            }
            let Some(slot) = self.room.slot(first) else {
                self.hit += bytes;
                self.give(&command, first, Payload::default(), way);
                continue;
            };
            self.missed += bytes;
            // Adjacent records are read together.
            while number < numbers.end
                && (number - first + 1) * self.slot <= LARGEST_READ
                && self.records.find(number).is_none()
                && self.room.slot(number) == Some(slot + (number - first) as u32)
            {
                self.missed += self.covered(&command, number);
                number += 1;
            }
            self.requests[request].left += 1;
            let count = (number - first) as u32;
            let bytes = count * self.slot as u32;
            let read = Command {
                payload: way.buffers().take(bytes),
                ..Command::read(0, u64::from(slot) * self.slot, bytes)
            };
            let what = LogPurpose::Read {
                request,
                first: first as u32,
                slot,
                count,
            };
            self.send((MAIN, what), None, read, way);
        }
        if self.requests[request].left == 0 {
            self.finish(request, way);
        }
    }

    /// Returns the part of a record that a command covers: offset in the record, offset in the command's data, and
    /// number of bytes.
    fn part_of(&self, command: &Command, number: u64) -> (u32, u32, u32) {
        let begin = number * self.record;
        let from = command.offset.max(begin);
        let bytes = command.end().min(begin + self.record) - from;
        (
            (from - begin) as u32,
            (from - command.offset) as u32,
            bytes as u32,
        )
    }

    /// Copies a record's part to a read command.
    fn give<W: TierContext>(&self, command: &Command, number: u64, data: Payload, way: &mut W) {
        let (within, into, bytes) = self.part_of(command, number);
        let from = match data.buffer {
            0 => data,
            _ => data.skip(within),
        };
        way.buffers().copy(from, command.payload.skip(into), bytes);
    }

    /// Whether a record that was read has the checksum with which it was written.
    fn is_whole<W: TierContext>(&self, number: u64, data: Payload, way: &mut W) -> bool {
        if !W::Buffers::REAL || data.buffer == 0 {
            return true;
        }
        let sum = tables::kept(way.buffers().sum(data, self.config.record));
        self.tables.sum(number).is_none_or(|it| it == sum)
    }

    /// Returns the bytes of a record that a command covers.
    fn covered(&self, command: &Command, number: u64) -> u64 {
        u64::from(self.part_of(command, number).2)
    }

    /// A part of a read has completed, or a record that a request waits for. Returns whether the request waits for no
    /// more.
    fn arrived(&mut self, now: Time, request: u32, done: &Completion) -> bool {
        let waiting = &mut self.requests[request];
        waiting.left -= 1;
        if waiting.status == Status::Success {
            waiting.status = done.status;
        }
        if waiting.left > 0 {
            return false;
        }
        let took = tier_anatomy(&done.anatomy, now.since(waiting.since));
        waiting.anatomy.append(&took);
        waiting.since = now;
        true
    }

    pub(super) fn part_read<W: TierContext>(
        &mut self,
        now: Time,
        request: u32,
        (first, slot, count, data): (u32, u32, u32, Payload),
        done: &Completion,
        way: &mut W,
    ) {
        let command = self.requests[request].command;
        let mut done = *done;
        for index in 0..count {
            let number = u64::from(first + index);
            let data = data.skip(index * self.config.record);
            // It may have moved by now, with another checksum.
            let is_here = self.room.slot(number) == Some(slot + index);
            let good = done.status == Status::Success;
            if good && is_here && !self.is_whole(number, data, way) {
                done.status = Status::UnrecoveredReadError;
            }
            self.give(&command, number, data, way);
        }
        way.buffers().release(data);
        if self.arrived(now, request, &done) {
            self.finish(request, way);
        }
    }

    /// The software has worked on a write, or a part has been carried out: the write waits after others for free
    /// memory, or continues.
    pub(super) fn enter<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        self.spend(now, request, Part::Tier);
        if self.suspended {
            self.refuse(now, request, way);
        } else if self.is_bare(&self.requests[request].command) {
            self.apply(now, request, way);
        } else {
            self.cut(request);
            match self.is_full() || !self.held.is_empty() {
                true => self.held.push_back(request),
                false => self.admit(now, request, way),
            }
        }
    }

    /// Limits a large write to its first part: no group can have more records than the maximum of dirty bytes, or the
    /// main pool may lack free space for the group.
    fn cut(&mut self, request: u32) {
        let own = &mut self.requests[request];
        let begin = own.command.offset / self.record * self.record;
        let end = begin + self.most_bytes;
        if own.command.op == Op::Write && own.command.end() > end {
            let part = (end - own.command.offset) as u32;
            own.rest = own.command.bytes - part;
            own.command.bytes = part;
        }
    }

    /// Continues a large write with its next part.
    fn next_part<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let own = &mut self.requests[request];
        let done = own.command;
        own.command.offset = done.end();
        own.command.payload = done.payload.skip(done.bytes);
        own.command.bytes = core::mem::take(&mut own.rest);
        self.enter(now, request, way);
    }

    /// Whether a command writes no data, not even zeroes for a part of a record.
    fn is_bare(&self, command: &Command) -> bool {
        let whole = |at: u64| at.is_multiple_of(self.record);
        match command.op {
            Op::Write => false,
            Op::WriteZeroes => whole(command.offset) && whole(command.end()),
            _ => true,
        }
    }

    fn is_full(&self) -> bool {
        self.dirty >= self.dirty_max
            || self.groups.logged() >= 2 * self.dirty_max
            || self.takes() > self.most_takes() * 3 / 2
            || self.is_short()
    }

    /// There may be free memory again.
    pub(super) fn release_held<W: TierContext>(&mut self, now: Time, way: &mut W) {
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

    /// Delays a write by the share of dirty bytes, one write after another.
    fn admit<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let from = self.dirty_max * DELAY_FROM / 100;
        let delayed = core::mem::replace(&mut self.requests[request].delayed, true);
        if !delayed && self.dirty > from && self.dirty < self.dirty_max {
            let ratio = (self.dirty - from) as f64 / (self.dirty_max - self.dirty) as f64;
            let delay = DELAY_SCALE.scale(ratio).min(LONGEST_DELAY);
            let since = self.requests[request].since;
            let wakeup = (since + delay).max(self.wakeup + delay);
            if wakeup > now {
                self.wakeup = wakeup;
                return self.schedule(wakeup, LogEvent::Delayed(request));
            }
        }
        self.fill(now, request, way);
    }

    /// A write has been delayed: other writes may have used the memory meanwhile.
    pub(super) fn delayed<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        if self.suspended {
            self.refuse(now, request, way);
        } else if self.is_full() {
            self.held.push_back(request);
        } else {
            self.fill(now, request, way);
        }
    }

    /// The main pool cannot be written any more, so no write is acknowledged.
    pub(super) fn refuse<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        self.spend(now, request, Part::Congestion);
        self.requests[request].status = Status::WriteFault;
        self.finish(request, way);
    }

    /// Reads records that a write changes partly into memory.
    fn fill<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
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
            } else if let Some(slot) = self.room.slot(number) {
                let handle = self.records.take(number);
                self.records.get_mut(handle).reading = true;
                self.wait_for(request, handle);
                self.cpu += Span::per_bytes(self.config.cpu.decompress_ps, self.record);
                let at = u64::from(slot) * self.slot;
                let read = Command {
                    payload: way.buffers().take(self.config.record),
                    ..Command::read(0, at, self.slot as u32)
                };
                self.send((MAIN, LogPurpose::Fill { handle }), None, read, way);
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

    /// A record has been read: all requests that wait for it continue, in order of arrival.
    pub(super) fn filled<W: TierContext>(
        &mut self,
        now: Time,
        handle: u32,
        (done, data): (&Completion, Payload),
        way: &mut W,
    ) {
        let mut done = *done;
        let record = *self.records.get(handle);
        let number = u64::from(record.number);
        if done.status == Status::Success && !record.over && !self.is_whole(number, data, way) {
            done.status = Status::UnrecoveredReadError;
        }
        let record = self.records.get_mut(handle);
        let over = core::mem::take(&mut record.over);
        record.reading = false;
        match over {
            true => way.buffers().release(data),
            false => record.data = data,
        }
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
            let command = self.requests[request].command;
            if command.op == Op::Read {
                self.give(&command, number, self.records.get(handle).data, way);
            }
            if !self.arrived(now, request, &done) {
                continue;
            }
            let waiting = &self.requests[request];
            if waiting.command.op == Op::Read || waiting.status != Status::Success {
                self.finish(request, way);
            } else {
                // Records that it found in memory before may have been evicted since.
                self.fill(now, request, way);
            }
        }
        if done.status != Status::Success && !over && !self.records.is_changed(handle) {
            // Its content is unknown.
            self.records.forget(handle, way.buffers());
        } else {
            self.records.settle(handle, way.buffers());
        }
    }

    /// A write's records are in memory: makes them dirty, and acknowledges the write unless it must be durable.
    fn apply<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let command = self.requests[request].command;
        self.open_group(now);
        for number in self.numbers(&command) {
            let whole = self.covered(&command, number) == self.record;
            match command.op {
                Op::Write => self.put(&command, number, way),
                _ if whole => self.clear(number, way),
                Op::WriteZeroes => self.put(&command, number, way),
                _ => {}
            }
        }
        self.log(&command);
        if self.requests[request].rest > 0 {
            self.kick_group(now, way);
            self.next_part(now, request, way);
            return self.pump_all(way);
        }
        let commits = match self.config.sync {
            SyncPolicy::Standard => command.fua,
            SyncPolicy::Always => true,
            SyncPolicy::Disabled => false,
        };
        if commits {
            let takes = self.config.cpu.commit;
            self.work(now, takes, LogEvent::Commit(request));
        } else {
            self.finish(request, way);
        }
        self.kick_group(now, way);
        self.pump_all(way);
    }

    /// Copies a command's part of the data to a record.
    fn put<W: TierContext>(&mut self, command: &Command, number: u64, way: &mut W) {
        let handle = self.records.take(number);
        let is_new = self.records.dirty(handle);
        if is_new {
            self.groups.records.push(handle);
        }
        let (within, into, bytes) = self.part_of(command, number);
        let record = self.records.get_mut(handle);
        if is_new || record.hole {
            self.dirty += self.record;
        }
        record.hole = false;
        record.over |= record.reading;
        let early = core::mem::replace(&mut record.early, NONE);
        if early != NONE {
            // Log blocks reference it until the group is on the main pool.
            self.groups.slots.push(early);
        }
        let whole = self.config.record;
        let data = self.records.writable(handle, bytes, whole, way.buffers());
        let from = match command.op {
            Op::Write => command.payload.skip(into),
            _ => Payload::default(),
        };
        way.buffers().copy(from, data.skip(within), bytes);
    }

    /// Removes the data of a record.
    fn clear<W: TierContext>(&mut self, number: u64, way: &mut W) {
        let in_memory = self.records.find(number);
        if in_memory.is_none() && self.room.slot(number).is_none() {
            return;
        }
        let handle = self.records.take(number);
        if self.records.get(handle).hole {
            return;
        }
        let is_new = self.records.dirty(handle);
        if is_new {
            self.groups.records.push(handle);
        } else {
            self.dirty -= self.record;
        }
        let record = self.records.get_mut(handle);
        record.hole = true;
        record.over |= record.reading;
        let early = core::mem::replace(&mut record.early, NONE);
        if early != NONE {
            self.groups.slots.push(early);
        }
        self.records.empty(handle, way.buffers());
    }

    /// Records which part of a command a commit must log.
    fn log(&mut self, command: &Command) {
        let large = self.rings.is_empty() && u64::from(command.bytes) > INDIRECT_FROM;
        let named = large || self.config.logbias == Logbias::Throughput;
        let (mut offset, mut end) = (command.offset, command.end());
        if command.op == Op::Deallocate {
            // Records that are covered partly are not affected.
            offset = offset.next_multiple_of(self.record);
            end = (end / self.record * self.record).max(offset);
        }
        self.unlogged.push_back(UnloggedWrite {
            offset,
            bytes: (end - offset) as u32,
            content: match command.op {
                Op::Write if named => LogContent::Named,
                Op::Write => LogContent::Data,
                _ => LogContent::Zeroes,
            },
            group: self.groups.open,
            slot: NONE,
            sum: 0,
        });
    }

    /// A planted bug: commits that wait for a block complete although earlier blocks are not durable.
    pub(super) fn end_early<W: TierContext>(&mut self, now: Time, block: u32, way: &mut W) {
        for request in core::mem::take(&mut self.issuer.blocks[block].waiters) {
            self.spend(now, request, Part::Tier);
            self.finish(request, way);
        }
    }
}
