//! Commits: writing client data into the ring.
//!
//! A record is sent immediately if none is in flight; otherwise when enough data waits to fill it, up to
//! [`WriteBackConfig::records_in_flight`](super::WriteBackConfig) records. Records are applied, and their writes
//! acknowledged, in order, because after a power cut the ring is replayed up to its first gap.
//!
//! A partial write of a unit first reads the rest of the unit. Meanwhile no other write at its addresses overtakes it,
//! and it waits for earlier ones, so that no acknowledged data is replaced by data that was read before.

use model::anatomy::{Anatomy, Part};
use model::command::{Command, Completion, Op, Payload, Status};
use model::data::Buffers;
use model::time::{Span, Time};

use super::cleaning::Cleaning;
use super::request::{BypassState, WriteBackRequest};
use super::ring::UNIT;
use super::{CACHE, Durability, WriteBack, WriteBackPurpose};
use crate::TierContext;
use crate::planted::{self, Bug};
use crate::record::{ENTRIES, RecordContent, RecordEntry, RecordHeader};

/// A record in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingRecord {
    /// Position of its header, and its slot.
    at: u64,
    first: u32,
    /// Number of slots, including the header.
    slots: u32,
    /// Number of runs of units in it.
    runs: u32,
    sent: Time,
    /// Value of the stall clock when it was sent.
    stalls: Span,
    /// Buffer with its bytes.
    payload: Payload,
    done: Option<(Time, Anatomy, Status)>,
}

impl WriteBack {
    /// A command that changes data arrives.
    pub(super) fn change<W: TierContext>(&mut self, now: Time, command: Command, way: &mut W) {
        if let Some(status) = self.failed {
            way.finish(command.id, status, Anatomy::ZERO);
            return;
        }
        let request = self.requests.insert(WriteBackRequest::new(&command, now));
        if self.is_to_pass(&command) {
            self.requests[request].past = BypassState::Waits;
        }
        let delay = self.held_back();
        if delay > Span::ZERO || !self.held.is_empty() {
            // In order: no request leaves before earlier ones.
            let last = self.held.back().map_or(now, |held| held.0);
            self.held.push_back((last.max(now + delay), request));
        } else {
            self.enter(now, request, way);
        }
    }

    /// A request is not delayed by congestion, or no longer.
    pub(super) fn enter<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let own = &self.requests[request];
        let whole = own.is_whole() && own.past == BypassState::No;
        let alone = self.blocked.is_empty() && self.merging.is_empty() && self.passing.is_empty();
        if whole && alone {
            self.enqueue(now, request, way);
        } else if self.conflicts(request, self.blocked.len()) {
            self.blocked.push(request);
        } else {
            self.proceed(now, request, way);
        }
    }

    /// Whether a request must wait for others at its addresses; among blocked requests, the first `before` are
    /// considered.
    fn conflicts(&self, request: u32, before: usize) -> bool {
        let own = &self.requests[request];
        let overlaps = |other: &u32| own.overlaps(&self.requests[*other]);
        if self
            .merging
            .iter()
            .chain(&self.passing)
            .chain(&self.blocked[..before])
            .any(overlaps)
        {
            return true;
        }
        // The part of a unit that it does not write must include all earlier writes; and bypassing writes are newer
        // than they are.
        let mut others = self
            .pending
            .iter()
            .chain(self.closing.iter().map(|it| &it.1));
        let waits = !own.is_whole() || own.past == BypassState::Waits;
        waits && (others.any(overlaps) || self.zeroing.iter().any(overlaps))
    }

    fn proceed<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let own = &mut self.requests[request];
        if own.past == BypassState::Waits {
            return self.begin_passing(now, request, way);
        }
        if own.is_whole() {
            self.enqueue(now, request, way);
            return;
        }
        own.account(now, Part::Tier);
        let parts = own.parts();
        self.merging.push(request);
        for (index, unit) in parts.into_iter().enumerate() {
            if let Some(unit) = unit {
                let rest = way.buffers().take(UNIT);
                let own = &mut self.requests[request];
                own.rest[index] = rest;
                own.left += 1;
                self.read_unit(request, unit, rest, way);
            }
        }
    }

    /// The rest of a unit has been read.
    pub(super) fn merged<W: TierContext>(
        &mut self,
        now: Time,
        piece: u32,
        done: &Completion,
        way: &mut W,
    ) {
        let request = self.let_go(now, piece, way);
        let own = &mut self.requests[request];
        if !own.part_ended(done) {
            return;
        }
        // All were sent at one time: the last one determines the latency.
        own.since = now;
        own.overlay(way.buffers());
        self.merging.retain(|&it| it != request);
        match self.requests[request].status {
            Status::Success => self.enqueue(now, request, way),
            _ => self.abandon(request, way),
        }
        self.unblock(now, way);
    }

    /// Cancels a request before it is in a record.
    fn abandon<W: TierContext>(&mut self, request: u32, way: &mut W) {
        let own = &self.requests[request];
        for (unit, rest) in own.parts().into_iter().zip(own.rest) {
            if unit.is_some_and(|unit| unit >= own.next) {
                way.buffers().release(rest);
            }
        }
        self.passing.retain(|&it| it != request);
        self.end(request, way);
    }

    /// Writing is no longer possible: completes the requests that wait for a record with an error.
    pub(super) fn give_up<W: TierContext>(&mut self, now: Time, status: Status, way: &mut W) {
        let status = *self.failed.get_or_insert(status);
        while let Some(request) = self.pending.pop_front() {
            let own = &mut self.requests[request];
            own.account(now, Part::Tier);
            own.status = status;
            self.abandon(request, way);
        }
        self.pending_units = 0;
        self.zero_waiting(now, way);
        self.pass_waiting(now, way);
        self.unblock(now, way);
    }

    /// Continues requests that waited for others at their addresses.
    pub(super) fn unblock<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let mut index = 0;
        while index < self.blocked.len() {
            let request = self.blocked[index];
            if self.conflicts(request, index) {
                index += 1;
            } else {
                self.blocked.remove(index);
                self.proceed(now, request, way);
            }
        }
    }

    /// A request waits only for earlier ones on its way to the ring.
    pub(super) fn enqueue<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let stalls = self.stalls.clock(now);
        let own = &mut self.requests[request];
        own.account(now, Part::Tier);
        own.stalls = stalls;
        self.pending_units += u64::from(data_units(own));
        self.pending.push_back(request);
        self.pump(now, way);
    }

    /// Sends as many records as are allowed.
    pub(super) fn pump<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if let Some(status) = self.failed {
            return self.give_up(now, status, way);
        }
        let most = self.config.record / UNIT - 1;
        if self.table.holds() {
            return;
        }
        while !self.pending.is_empty() {
            let beside = self.records.len() < usize::from(self.config.records_in_flight);
            let full = self.pending_units >= u64::from(most);
            let goes = self.records.is_empty() || (full && beside);
            if !goes {
                return;
            }
            let room = self.ring.room();
            if room == 0 {
                self.stalls.since.get_or_insert(now);
                return;
            }
            self.stalls.end(now);
            self.send_record(now, most.min(room - 1), way);
        }
    }

    /// Puts waiting requests into a record of at most `most` units, and sends it.
    fn send_record<W: TierContext>(&mut self, now: Time, most: u32, way: &mut W) {
        let number = self.first_record + self.records.len() as u64;
        let first = self.ring.head_slot();
        let at = self.ring.begin(number + 1, self.previous);
        let payload = way.buffers().take((most + 1) * UNIT);
        let mut header = RecordHeader::default();
        let (mut left, mut entries) = (most, ENTRIES as u32);
        let runs = self.runs.len();
        while let Some(&request) = self.pending.front() {
            let end = self.requests[request].units().end;
            while self.requests[request].next < end && entries > 0 {
                let Some(count) = self.put_run(request, at, left, payload, &mut header, way) else {
                    break;
                };
                left -= count;
                entries -= 1;
            }
            if self.requests[request].next < end {
                break;
            }
            self.pending.pop_front();
            self.closing.push_back((number, request));
        }
        let slots = (self.ring.head() - at) as u32;
        self.pending_units -= u64::from(slots - 1);
        self.records.push_back(PendingRecord {
            at,
            first,
            slots,
            runs: (self.runs.len() - runs) as u32,
            sent: now,
            stalls: self.stalls.clock(now),
            payload,
            done: None,
        });
        if W::Buffers::REAL {
            header.number = number + 1;
            header.previous = self.previous;
            header.flushed_through = self.durable_through();
            (header.pool, header.epoch) = (self.life.pool, self.life.epoch());
            let (block, sum) = header.encode();
            way.buffers().put(payload, &block);
            self.previous = sum;
        }
        let place = WriteBack::place(first);
        let command = Command {
            fua: self.config.durability == Durability::Ack && !planted::has(Bug::RecordsNotThrough),
            payload,
            ..Command::write(0, place, slots * UNIT)
        };
        way.send(
            CACHE,
            WriteBackPurpose::Record.token(number as u32),
            command,
        );
        if planted::has(Bug::AcknowledgesSent) {
            self.acknowledge_early(now, number, way);
        }
    }

    /// Puts the next run of a request, which is one entry, into the record that begins at `at` and has space for `left`
    /// more units. Returns the units that this took; `None` if it does not fit.
    #[inline]
    fn put_run<W: TierContext>(
        &mut self,
        request: u32,
        at: u64,
        left: u32,
        payload: Payload,
        header: &mut RecordHeader,
        way: &mut W,
    ) -> Option<u32> {
        let own = &mut self.requests[request];
        let (first, whole) = (own.next, own.whole());
        let op = own.command.op;
        if own.is_bare() && whole.contains(&first) {
            own.mark = Some(self.ring.head());
            own.next = whole.end;
            self.ring.note();
            if W::Buffers::REAL {
                header.entries.push(RecordEntry {
                    unit: first,
                    units: (whole.end - first) as u32,
                    content: match op {
                        Op::Write => RecordContent::Passed,
                        Op::Deallocate => RecordContent::Trimmed,
                        _ => RecordContent::Zeroes,
                    },
                    sum: 0,
                });
            }
            return Some(0);
        }
        let count = match whole.contains(&first) {
            true => (whole.end - first).min(left.into()) as u32,
            false => left.min(1),
        };
        if count == 0 {
            return None;
        }
        own.next += u64::from(count);
        if W::Buffers::REAL {
            let to = payload.skip((self.ring.head() - at) as u32 * UNIT);
            let bytes = count * UNIT;
            match own.source(first) {
                (from, false) => way.buffers().copy(from, to, bytes),
                (rest, true) => {
                    way.buffers().copy(rest, to, bytes);
                    way.buffers().release(rest);
                }
            }
            header.entries.push(RecordEntry {
                unit: first,
                units: count,
                content: RecordContent::Data,
                sum: way.buffers().sum(to, bytes),
            });
        }
        if self.config.table > 0 {
            self.note_entries(first, count);
        }
        self.ring.put(count);
        self.runs.push_back((first, count));
        Some(count)
    }

    /// A record has been written.
    pub(super) fn recorded<W: TierContext>(
        &mut self,
        now: Time,
        number: u32,
        done: &Completion,
        way: &mut W,
    ) {
        let index = number.wrapping_sub(self.first_record as u32) & WriteBackPurpose::MASK;
        let record = &mut self.records[index as usize];
        way.buffers().release(record.payload);
        if index > 0 {
            record.done = Some((now, done.anatomy, done.status));
            if planted::has(Bug::AcknowledgesOutOfOrder) {
                self.acknowledge_early(now, self.first_record + u64::from(index), way);
            }
            return;
        }
        self.end_record(now, (now, &done.anatomy, done.status), way);
        while let Some((at, anatomy, status)) = self.records.front().and_then(|it| it.done) {
            self.end_record(now, (at, &anatomy, status), way);
        }
        if !self.blocked.is_empty() {
            self.unblock(now, way);
        }
        self.consider(now, way);
        self.commit_if_much(now, way);
        self.go_on_with_table(now, way);
        self.pump(now, way);
    }

    /// The first record in flight has been written, and all earlier ones are applied: applies the record, and continues
    /// the requests that end in it.
    #[inline]
    fn end_record<W: TierContext>(
        &mut self,
        now: Time,
        done: (Time, &Anatomy, Status),
        way: &mut W,
    ) {
        let (at, anatomy, status) = done;
        let number = self.first_record;
        let PendingRecord {
            at: position,
            first,
            slots,
            runs,
            sent,
            stalls,
            ..
        } = self.records[0];
        self.records.pop_front();
        self.first_record += 1;
        if status == Status::Success && self.failed.is_none() {
            let mut slot = first + 1;
            for index in 0..runs as usize {
                let (unit, count) = self.runs[index];
                for unit in unit..unit + u64::from(count) {
                    self.map(unit, slot);
                    slot += 1;
                }
            }
            self.ring.apply(position + u64::from(slots));
            if matches!(self.config.destage.cleaning, Cleaning::Idle(_)) {
                let segment = self.ring.segment(first);
                self.ring.segments[segment as usize].written = now;
            }
            self.commits.expect(now, self.config.commit);
        } else {
            // There is a gap: later records would never be found.
            self.failed.get_or_insert(status);
        }
        self.runs.drain(..runs as usize);
        while let Some(&(_, request)) = self.closing.front().filter(|it| it.0 == number) {
            self.closing.pop_front();
            let own = &mut self.requests[request];
            let waited = sent.since(own.since);
            let stalled = stalls.saturating_sub(own.stalls);
            let own_time = waited.saturating_sub(stalled) + now.since(at);
            own.anatomy.add(Part::Congestion, stalled);
            own.anatomy.add(Part::Tier, own_time);
            own.anatomy.append(anatomy);
            own.since = now;
            own.status = self.failed.unwrap_or_default();
            self.close(now, request, way);
        }
    }

    /// A planted bug: the writes that end in this record are acknowledged before their turn.
    fn acknowledge_early<W: TierContext>(&mut self, now: Time, number: u64, way: &mut W) {
        let mut index = 0;
        while let Some(&(of, request)) = self.closing.get(index) {
            let own = &mut self.requests[request];
            if of == number && own.mark.is_none() {
                self.closing.remove(index);
                own.account(now, Part::Tier);
                self.end(request, way);
            } else {
                index += 1;
            }
        }
    }

    /// All data of a request is in the ring.
    #[inline]
    fn close<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let own = &self.requests[request];
        if own.past == BypassState::Written {
            self.leave_passing(now, request, way);
            self.settle(now, request, way);
        } else if own.status == Status::Success && own.mark.is_some() {
            self.zero(now, request, way);
        } else {
            self.settle(now, request, way);
        }
    }

    /// Completes a request, unless it must be durable and is not.
    pub(super) fn settle<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let applied = self.applied();
        let own = &mut self.requests[request];
        let fua = own.command.fua && self.config.durability == Durability::Flush;
        if fua && own.status == Status::Success && self.config.table > 0 {
            own.since = now;
            self.wait_for_table(now, request, way);
        } else if fua && own.status == Status::Success {
            // It is durable only if all earlier records are.
            own.flushes = applied;
            way.send(
                CACHE,
                WriteBackPurpose::Settle.token(request),
                Command::flush(0),
            );
        } else {
            self.end(request, way);
        }
    }

    /// The cache has been flushed for a write with force unit access.
    pub(super) fn settled<W: TierContext>(&mut self, request: u32, done: &Completion, way: &mut W) {
        let own = &mut self.requests[request];
        own.anatomy.append(&done.anatomy);
        own.status = done.status;
        if done.status == Status::Success {
            let flushes = own.flushes;
            self.has_committed(flushes);
        }
        self.end(request, way);
    }
}

/// Returns the units that a request puts into records: those with data.
fn data_units(request: &WriteBackRequest) -> u32 {
    let units = request.units();
    match request.is_bare() {
        false => (units.end - units.start) as u32,
        _ => request.parts().iter().flatten().count() as u32,
    }
}
