//! Records: writes that are combined into one write to a log, and acknowledged when it is durable.
//!
//! A log takes a limited number of records at a time. A log that fails a record is not used until it returns, and another
//! log takes the writes of the record. If no log is left, writes fail until one returns. Not modelled: the content of records.

use alloc::vec::Vec;

use model::anatomy::{Anatomy, Part};
use model::command::{Op, Status};
use model::time::Time;

use super::trip::TripPurpose;
use super::{BLOCK, LogStructured};
use crate::{Child, TierContext};

impl LogStructured {
    /// Returns the next log that can take a record.
    pub(super) fn next_log(&mut self) -> Option<usize> {
        let count = self.logs.len();
        let mut round = (0..count).map(|it| (self.turn + it) % count);
        let most = self.config.records_in_flight;
        let log = round.find(|&it| !self.logs[it].broken && self.logs[it].in_flight < most)?;
        self.turn = (log + 1) % count;
        Some(log)
    }

    /// Whether every log is broken: writes fail until one returns.
    pub(super) fn has_no_log(&self) -> bool {
        self.logs.iter().all(|log| log.broken)
    }

    /// Puts pending writes into records, as far as logs are available.
    pub(super) fn start_records<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if !self.pending.is_empty() && self.has_no_log() {
            return self.fail_pending(now, Status::WriteFault, way);
        }
        while !self.pending.is_empty() {
            let Some(log) = self.next_log() else {
                return;
            };
            let mut requests = self.spare.pop().unwrap_or_default();
            let mut bytes = 0;
            while let Some(&request) = self.pending.front() {
                let own = self.logged(&self.requests[request].command);
                if bytes > 0 && bytes + own > u64::from(self.config.record) {
                    break;
                }
                bytes += own;
                self.expected -= own;
                self.pending.pop_front();
                self.spend(now, request, Part::Tier);
                requests.push(request);
            }
            self.send_record(now, log, bytes, requests, way);
        }
    }

    pub(super) fn send_record<W: TierContext>(
        &mut self,
        now: Time,
        log: usize,
        bytes: u64,
        requests: Vec<u32>,
        way: &mut W,
    ) {
        let bytes = bytes.next_multiple_of(BLOCK);
        let from = self.head;
        self.head += bytes;
        self.counts.logged += bytes;
        self.positions.push(from);
        let device = &mut self.logs[log];
        let bytes = bytes.min(device.bytes);
        if device.next + bytes > device.bytes {
            device.next = 0;
        }
        let at = device.next;
        device.next += bytes;
        device.in_flight += 1;
        let what = TripPurpose::Record { from, requests };
        let crossings = self.config.nodes.log_crossings;
        self.travel(
            now,
            what,
            (log as Child + 1, Op::Write),
            (at, bytes),
            crossings,
            way,
        );
    }

    /// A trip has ended.
    pub(super) fn ended<W: TierContext>(&mut self, now: Time, index: u32, way: &mut W) {
        let trip = &mut self.trips[index];
        let what = core::mem::replace(&mut trip.what, TripPurpose::Clean(0));
        let (child, status, anatomy) = (trip.child, trip.status, trip.anatomy);
        self.trips.release(index);
        match what {
            TripPurpose::Record { from, requests } => {
                self.recorded(now, (child, from), requests, (status, anatomy), way);
            }
            TripPurpose::Stripe(entry) => self.stripe_written(now, entry, status, way),
            TripPurpose::Part(request) => {
                self.part_done(now, request, Some((status, anatomy)), way);
            }
            TripPurpose::Clean(stripe) => self.cleaned(now, stripe, status, way),
        }
    }

    /// A record is durable: its writes are acknowledged, and their blocks are in stripes from now on.
    pub(super) fn recorded<W: TierContext>(
        &mut self,
        now: Time,
        (child, from): (Child, u64),
        mut requests: Vec<u32>,
        (status, anatomy): (Status, Anatomy),
        way: &mut W,
    ) {
        let log = &mut self.logs[usize::from(child) - 1];
        log.in_flight -= 1;
        for &request in &requests {
            let own = &mut self.requests[request];
            own.anatomy.append(&anatomy);
            own.since = now;
        }
        if status != Status::Success {
            // Another log takes them.
            log.broken = true;
            for &request in requests.iter().rev() {
                self.expected += self.logged(&self.requests[request].command);
                self.pending.push_front(request);
            }
        } else {
            for &request in &requests {
                let (data, trimmed) = LogStructured::blocks(&self.requests[request].command);
                self.admitted -= data.end - data.start;
                for block in data {
                    if self.append(now, block, from, way).is_none() {
                        let status = self.failed.unwrap_or(Status::WriteFault);
                        self.requests[request].status = status;
                    }
                }
                trimmed.for_each(|block| self.space.trim(block));
                self.finish(request, way);
            }
        }
        self.forget_position(from);
        requests.clear();
        self.spare.push(requests);
        self.clean(now, way);
        self.start_records(now, way);
        self.admit(now, way);
    }

    pub(super) fn forget_position(&mut self, from: u64) {
        if let Some(index) = self.positions.iter().position(|&it| it == from) {
            self.positions.swap_remove(index);
        }
    }
}
