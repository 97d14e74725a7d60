//! Past the cache: some writes go to the capacity tier instead of into the buffer.
//!
//! Those that go on where others ended, beyond some bytes in order; and all while too much of the buffer is dirty, unless they ask
//! for force unit access, for which there is a limit of its own; and what the buffer does not hold, until it has been missed
//! some times. As bcache's `sequential_cutoff` and its two cutoffs of writing back, and Open CAS's sequential cutoff and nhit.
//!
//! What the ring has of their units must never come back. So the order is: wait until nobody is at these addresses, in the
//! buffer's queues or on the way to the capacity tier, and keep others from them; write there, durably; forget what the
//! buffer has of them; put an entry without data into the ring that says so ([`Content::Passed`]); acknowledge once that is
//! written. After a crash before the entry the older data of the ring count, which is right: nobody was told of the newer
//! ones. After it they do not, and no trim from before it is done again there.
//!
//! Left out: writes that cover a unit in part (these go into the buffer), reads (nothing is taken in for them), what a
//! stream reads (only its writes count), bcache's congestion thresholds, and that it forgets and writes at one time.

use super::request::Past;
use super::ring::UNIT;
use super::{For, WriteBack};
use crate::anatomy::Part;
use crate::command::{Command, Completion, Op, Status};
use crate::tier::Way;
use crate::tier::planted::{self, Bug};
use crate::time::Time;

#[cfg(doc)]
use crate::tier::record::Content;

/// Which writes go past the cache.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Passing {
    /// Bytes written in order after which a stream goes past it; `u64::MAX` is never.
    pub sequential: u64,
    /// But only while this share of the buffer is in use, 0 to 1.
    pub sequential_from: f64,
    /// While more than this share is dirty all go past it but those with force unit access; 1 is never.
    pub from: f64,
    /// While more than this is dirty these, too.
    pub fua_from: f64,
    /// All go past it of which it holds nothing, until each of their units is missed this often; at 1 none do.
    pub fill_at_miss: u8,
    /// But only while this share of the buffer is in use.
    pub fill_from: f64,
}

impl Passing {
    /// None go past it.
    pub const NONE: Passing = Passing {
        sequential: u64::MAX,
        sequential_from: 0.0,
        from: 1.0,
        fua_from: 1.0,
        fill_at_miss: 1,
        fill_from: 0.0,
    };

    /// Whether none go past it.
    pub fn is_none(&self) -> bool {
        let never = |share: f64| share >= 1.0;
        self.sequential == u64::MAX
            && never(self.from)
            && never(self.fua_from)
            && self.fill_at_miss <= 1
    }
}

impl WriteBack {
    /// Whether a write that comes now is to go past the buffer.
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
        // Not what is in use: entries of what has passed take room, too, and would keep all others out.
        let dirty = self.dirty as f64 / (self.ring.slots() * unit) as f64;
        let full = dirty
            > match command.fua {
                true => law.fua_from,
                false => law.from,
            };
        let stream = in_order > law.sequential && self.ring.fill() >= law.sequential_from;
        whole && (full || stream || self.is_to_be_missed(law, command))
    }

    /// Whether nothing of a write is in the buffer and one of its units has not been missed often enough; counts the miss.
    fn is_to_be_missed(&mut self, law: Passing, command: &Command) -> bool {
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

    /// Nobody else is at its addresses but, perhaps, destaging.
    pub(super) fn begin_passing<W: Way>(&mut self, now: Time, request: u32, way: &mut W) {
        self.passing.push(request);
        self.try_passing(now, request, way);
    }

    /// Writes it to the capacity tier, unless that is being written there.
    fn try_passing<W: Way>(&mut self, now: Time, request: u32, way: &mut W) {
        if let Some(status) = self.failed {
            let own = &mut self.requests[request];
            own.account(now, Part::Tier);
            own.status = status;
            self.passing.retain(|&it| it != request);
            return self.end(request, way);
        }
        let units = self.requests[request].units();
        let (begin, end) = (at(units.start), at(units.end));
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
                // What the ring has must not be given up for what a power cut may lose.
                fua: !planted::has(Bug::PassesVolatile),
                offset,
                bytes: (until - from) as u32,
                payload: command.payload.skip((from - begin) as u32),
                ..command
            };
            way.send(child, For::Pass.token(request), piece);
            from = until;
        }
    }

    /// A part of it is on the capacity tier.
    pub(super) fn has_passed<W: Way>(
        &mut self,
        now: Time,
        request: u32,
        done: &Completion,
        way: &mut W,
    ) {
        let own = &mut self.requests[request];
        own.left -= 1;
        if own.status == Status::Success {
            own.status = done.status;
        }
        if own.left > 0 {
            return;
        }
        own.anatomy.append(&done.anatomy);
        own.since = now;
        own.past = Past::Written;
        let (status, units) = (own.status, own.units());
        if status == Status::Success {
            self.counts.passed += at(units.end) - at(units.start);
            self.forget_before(units, u64::MAX);
            if planted::has(Bug::PassesUnrecorded) {
                self.leave_passing(now, request, way);
                self.settle(now, request, way);
            } else {
                self.enqueue(now, request, way);
            }
        } else {
            // The capacity tier has the older data or the newer: as after a failed write to any drive.
            self.leave_passing(now, request, way);
            self.end(request, way);
        }
        // Destaging may have waited for it.
        self.go_on(now, way);
    }

    /// Others may be at its addresses again.
    pub(super) fn leave_passing<W: Way>(&mut self, now: Time, request: u32, way: &mut W) {
        self.passing.retain(|&it| it != request);
        self.unblock(now, way);
    }

    /// Whether a range of a drive of the capacity tier is being written past the buffer.
    pub(super) fn is_passed(&self, index: usize, offset: u64, bytes: u64) -> bool {
        self.passing.iter().any(|&request| {
            let own = &self.requests[request];
            let run = self
                .striping
                .run(index, at(own.units().start), at(own.units().end));
            own.left > 0
                && run.is_some_and(|run| {
                    run.offset < offset + bytes && offset < run.offset + run.bytes
                })
        })
    }

    /// Those that waited for writes of destaging may go on.
    pub(super) fn pass_waiting<W: Way>(&mut self, now: Time, way: &mut W) {
        let mut index = 0;
        while let Some(&request) = self.passing.get(index) {
            let own = &self.requests[request];
            if own.past == Past::Waits && own.left == 0 {
                self.try_passing(now, request, way);
            }
            // It may be gone.
            index += usize::from(self.passing.get(index) == Some(&request));
        }
    }
}

/// The first byte of a unit.
fn at(unit: u64) -> u64 {
    unit * u64::from(UNIT)
}
