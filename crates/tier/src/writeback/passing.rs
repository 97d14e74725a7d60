//! Bypass: some writes go to the capacity tier instead of into the buffer.
//!
//! Three kinds of writes bypass. First, writes of sequential streams longer than a limit. Second, all writes while too
//! much of the buffer is dirty, except those with force unit access, which have their own limit. Third, writes of units
//! that are not in the buffer, until these have been missed a number of times. This follows bcache's
//! `sequential_cutoff` and its two write-back cutoffs, and Open CAS's sequential cutoff and nhit.
//!
//! Older data of these units in the ring must never reappear. The order of steps is therefore:
//! 1. Wait until no other request is at these addresses, in the buffer's queues or on the way to the capacity tier, and
//!    block later ones.
//! 2. Write to the capacity tier, durably.
//! 3. Unmap these units in the buffer.
//! 4. Put an entry without data into the ring that records the bypass ([`RecordContent::Passed`]).
//! 5. Acknowledge once the entry is written.
//!
//! After a crash before step 4, the older data in the ring counts, which is correct, because the newer data was not
//! acknowledged. After that step it does not count, and no earlier trim is replayed there.
//!
//! Not modelled: bypass of partial writes of a unit (these go into the buffer), reads (they are not admitted), read
//! streams (only writes count), and bcache's congestion thresholds. bcache also invalidates and writes at the same
//! time.

use model::anatomy::Part;
use model::command::{Command, Completion, Op, Status};
use model::time::Time;

use super::request::BypassState;
use super::ring::UNIT;
use super::{WriteBack, WriteBackPurpose};
use crate::TierContext;
use crate::planted::{self, Bug};

#[cfg(doc)]
use crate::record::RecordContent;

/// Conditions under which writes bypass the cache.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BypassPolicy {
    /// Sequential bytes after which a stream bypasses; `u64::MAX` is never.
    pub sequential: u64,
    /// Minimum share of the buffer in use for that, 0 to 1.
    pub sequential_from: f64,
    /// Share of dirty data above which all writes except those with force unit access bypass; 1 is never.
    pub from: f64,
    /// Share of dirty data above which those with force unit access bypass, too.
    pub fua_from: f64,
    /// Writes without any unit in the buffer bypass until each of their units has been missed this often; 1 for none.
    pub fill_at_miss: u8,
    /// Minimum share of the buffer in use for that.
    pub fill_from: f64,
}

impl BypassPolicy {
    /// No bypass.
    pub const NONE: BypassPolicy = BypassPolicy {
        sequential: u64::MAX,
        sequential_from: 0.0,
        from: 1.0,
        fua_from: 1.0,
        fill_at_miss: 1,
        fill_from: 0.0,
    };

    /// Whether no write bypasses.
    pub fn is_none(&self) -> bool {
        let never = |share: f64| share >= 1.0;
        self.sequential == u64::MAX
            && never(self.from)
            && never(self.fua_from)
            && self.fill_at_miss <= 1
    }
}

impl WriteBack {
    /// Whether a write that arrives now must bypass the buffer.
    #[inline]
    pub(super) fn is_to_pass(&mut self, command: &Command) -> bool {
        let Some(law) = self.config.passing else {
            return false;
        };
        let unit = u64::from(UNIT);
        if command.op != Op::Write {
            return false;
        }
        let in_order = self.streams.add(command.offset, command.bytes.into());
        let whole = command.offset.is_multiple_of(unit) && command.end().is_multiple_of(unit);
        // Dirty data, not space in use: entries of bypassing writes also take space, and would block all other writes.
        let dirty = self.dirty as f64 / (self.ring.slots() * unit) as f64;
        let full = dirty
            > match command.fua {
                true => law.fua_from,
                false => law.from,
            };
        let stream = in_order > law.sequential && self.ring.fill() >= law.sequential_from;
        whole && (full || stream || self.is_to_be_missed(law, command))
    }

    /// Whether no unit of a write is in the buffer and one of them has not been missed often enough; counts the miss.
    fn is_to_be_missed(&mut self, law: BypassPolicy, command: &Command) -> bool {
        if law.fill_at_miss <= 1 || self.ring.fill() < law.fill_from {
            return false;
        }
        let unit = u64::from(UNIT);
        let units = command.offset / unit..command.end() / unit;
        let held = |unit: &u64| self.map.get(*unit).is_some();
        let holds = units.clone().filter(held).count() as u64;
        if holds == units.end - units.start {
            return false;
        }
        let mut rare = false;
        for unit in units.clone() {
            rare |= self.misses.count(unit) < u32::from(law.fill_at_miss);
        }
        if holds > 0 || !rare {
            units.for_each(|unit| self.misses.taken_in(unit));
        }
        rare && holds == 0
    }

    /// No other request is at its addresses except, possibly, destaging.
    pub(super) fn begin_passing<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        self.passing.push(request);
        self.try_passing(now, request, way);
    }

    /// Writes it to the capacity tier, unless destaging writes to the same addresses.
    fn try_passing<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        if let Some(status) = self.failed {
            let own = &mut self.requests[request];
            own.account(now, Part::Tier);
            own.status = status;
            self.passing.retain(|&it| it != request);
            return self.end(request, way);
        }
        let units = self.requests[request].units();
        let (begin, end) = (first_byte(units.start), first_byte(units.end));
        let busy = (0..self.striping.count as usize).any(|index| {
            let run = self.striping.run(index, begin, end);
            run.is_some_and(|run| self.destaging.writes(index, run.offset, run.bytes))
        });
        if busy && !planted::has(Bug::PassesDestaging) {
            return;
        }
        let own = &mut self.requests[request];
        own.account(now, Part::Tier);
        let command = own.command;
        let mut from = begin;
        while from < end {
            let until = match self.striping.count {
                1 => end,
                _ => end.min(self.striping.border(from)),
            };
            let (child, offset) = self.home(from);
            self.destaging.touch(usize::from(child - 1));
            self.requests[request].left += 1;
            let piece = Command {
                // Data in the ring must not be dropped in favour of data that a power cut may lose.
                fua: !planted::has(Bug::PassesVolatile),
                offset,
                bytes: (until - from) as u32,
                payload: command.payload.skip((from - begin) as u32),
                ..command
            };
            way.send(child, WriteBackPurpose::Pass.token(request), piece);
            from = until;
        }
    }

    /// A part of it is on the capacity tier.
    pub(super) fn has_passed<W: TierContext>(
        &mut self,
        now: Time,
        request: u32,
        done: &Completion,
        way: &mut W,
    ) {
        let own = &mut self.requests[request];
        if !own.part_ended(done) {
            return;
        }
        own.since = now;
        own.past = BypassState::Written;
        let (status, units) = (own.status, own.units());
        if status == Status::Success {
            self.counts.passed += first_byte(units.end) - first_byte(units.start);
            self.forget_before(units, u64::MAX);
            if planted::has(Bug::PassesUnrecorded) {
                self.leave_passing(now, request, way);
                self.settle(now, request, way);
            } else {
                self.enqueue(now, request, way);
            }
        } else {
            // The capacity tier has older or newer data, as after a failed write to any drive.
            self.leave_passing(now, request, way);
            self.end(request, way);
        }
        // Destaging may have waited for it.
        self.start_runs(now, way);
    }

    /// Unblocks its addresses for other requests.
    pub(super) fn leave_passing<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        self.passing.retain(|&it| it != request);
        self.unblock(now, way);
    }

    /// Whether a bypassing write to a range of a drive of the capacity tier is in progress.
    pub(super) fn is_passed(&self, index: usize, offset: u64, bytes: u64) -> bool {
        self.passing.iter().any(|&request| {
            let own = &self.requests[request];
            let run = self.striping.run(
                index,
                first_byte(own.units().start),
                first_byte(own.units().end),
            );
            own.left > 0
                && run.is_some_and(|run| {
                    run.offset < offset + bytes && offset < run.offset + run.bytes
                })
        })
    }

    /// Continues requests that waited for destaging writes.
    pub(super) fn pass_waiting<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let mut index = 0;
        while let Some(&request) = self.passing.get(index) {
            let own = &self.requests[request];
            if own.past == BypassState::Waits && own.left == 0 {
                self.try_passing(now, request, way);
            }
            // It may have been removed.
            index += usize::from(self.passing.get(index) == Some(&request));
        }
    }
}

/// Returns the first byte of a unit.
fn first_byte(unit: u64) -> u64 {
    unit * u64::from(UNIT)
}
