//! One modelled drive with its data.
//!
//! The model contains no host path, because the host is real. The drive's model determines when and how a command
//! completes; the data is not moved until then. This module uses no clock and no socket: the same calls with the same
//! times give the same replies, so that a live run can be compared with a simulation. Administration is in
//! `administration`.

mod administration;
mod condition;
mod data;
mod disk;
mod division;
mod ending;
mod failing;
mod faults;
mod findings;
#[cfg(test)]
mod full;
mod held;
mod injected;
mod machine;
mod member_stores;
mod moving;
mod noted;
mod opening;
mod pool_opening;
mod pooled;
mod recorded;
mod recurring_error;
mod resync;
mod room;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use model::data::{Moment, Verdict};
use model::media::Precondition;
use model::{Command, Completion, Op, Payload, Span, Status, Time};
use slab::Slab;
use statistics::Histogram;

use crate::setup::Setup;
use crate::store::{Mark, Share, no_room};
pub use administration::PowerLoss;
pub use condition::Condition;
use held::DelayedReplies;
use injected::FaultInjection;
pub use injected::TriggeredFault;
use machine::Machine;
use recorded::Recorder;
pub use recorded::Recording;
use recurring_error::RecurringError;

/// Maximum number of commands in flight in one drive; more are rejected.
const SLOTS: usize = 1 << 16;

/// A request to a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoRequest {
    /// The front end's own identifier, returned in the reply.
    pub tag: u32,
    /// The operation.
    pub op: Op,
    /// Whether a write completes only when it is durable.
    pub fua: bool,
    /// Index of the submission queue, starting with 0.
    pub queue: u16,
    /// First byte in the namespace, a multiple of 512.
    pub offset: u64,
    /// Length in bytes, a multiple of 512.
    pub bytes: u32,
}

/// Outcome of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The command succeeded. The front end must now move the data of a read or write.
    Success,
    /// The range extends beyond the namespace, or is not a multiple of 512 B.
    OutOfRange,
    /// The medium could not return the data.
    UnrecoveredRead,
    /// The data could not be stored.
    WriteFault,
    /// The host has no space for the data.
    NoSpace,
    /// The drive is served read-only.
    ReadOnly,
    /// A FORMAT or sanitize is in progress.
    Formatting,
    /// Power failed while the command was in flight: it is unknown whether it was executed. Front ends close the
    /// connection.
    PowerLoss,
    /// Too many commands are in flight.
    Busy,
    /// The front end could not move the data, or the drive does not respond.
    Failed,
}

/// The completion of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Identifier from the request.
    pub tag: u32,
    /// The endpoint that sent the request.
    pub endpoint: u32,
    /// Operation from the request.
    pub op: Op,
    /// FUA from the request.
    pub fua: bool,
    /// Offset from the request.
    pub offset: u64,
    /// Length from the request.
    pub bytes: u32,
    /// Outcome of the command.
    pub outcome: Outcome,
    /// Completion time in the model.
    pub at: Time,
    /// Latency in the model.
    pub latency: Span,
    /// Data of the command, if members store the data.
    payload: Payload,
    /// Number in the log.
    logged: Option<u32>,
}

/// A command in flight in the drive.
#[derive(Clone, Copy, Debug)]
struct InFlightCommand {
    token: u64,
    submitted: Time,
    op: Op,
    fua: bool,
    offset: u64,
    bytes: u32,
    /// Whether a client waits for it.
    heard: bool,
    /// Mark of the writes before the command: a flush makes these durable.
    before: Mark,
    /// Data of the command, if members store the data.
    payload: Payload,
    /// Number in the log, if it is recorded.
    logged: Option<u32>,
    /// Error and delay that rules by range or rate cause.
    verdict: Verdict,
}

/// Counters of commands since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Completed reads.
    pub reads: u64,
    /// Bytes of completed reads.
    pub bytes_read: u64,
    /// Completed writes.
    pub writes: u64,
    /// Bytes of completed writes.
    pub bytes_written: u64,
    /// Completed flushes, trims and write-zeroes.
    pub others: u64,
    /// Failed commands.
    pub errors: u64,
    /// Sum of the model's latencies of reads and writes, in nanoseconds.
    pub latency_ns: u128,
}

/// Histograms of the model's latencies of successful commands since the start.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Time from arrival to reply of each read.
    pub reads: Histogram,
    /// Time from arrival to reply of each write.
    pub writes: Histogram,
    /// Time from arrival to reply of each flush.
    pub flushes: Histogram,
}

impl Latencies {
    /// Returns all histograms, each with the name of its kind of command.
    pub fn by_kind(&self) -> [(&'static str, &Histogram); 3] {
        [
            ("read", &self.reads),
            ("write", &self.writes),
            ("flush", &self.flushes),
        ]
    }
}

/// A drive with its data, or a pool with its members' data.
#[derive(Debug)]
pub struct ServedDevice {
    setup: Setup,
    machine: Machine,
    /// Messages on repairs before the drive was served.
    findings: Vec<String>,
    /// Bytes of the namespace.
    bytes: u64,
    state_file: Option<PathBuf>,
    serial: String,
    /// Protection information of the format in use.
    protection: u8,
    /// Division into namespaces by hosts; `None` if there is none.
    shares: Option<Vec<Share>>,
    /// State of the FTL's map at its creation, and bytes that hosts had written until then.
    ftl: (Precondition, u64),
    /// Time of the last call of the model.
    now: Time,
    slots: Slab<InFlightCommand>,
    done: Vec<Completion>,
    /// Replies that are ready to be taken.
    ready: Vec<Reply>,
    held: DelayedReplies,
    /// Fault injection by count, range and rate, if it was ever used.
    injected: Option<Box<FaultInjection>>,
    /// Whether a single drive has failed: it completes no commands.
    dead: bool,
    /// Whether a count has triggered a power cut: the model does not advance until the replies so far have been sent.
    power_fails: bool,
    counters: Counters,
    latencies: Latencies,
    /// Problems with the store, and with the file of the drive's state.
    troubles: [RecurringError; 2],
    /// Other messages to report.
    news: VecDeque<String>,
    read_only: bool,
    recording: Option<Box<Recording>>,
    /// Log of commands that change data, if requested.
    recorder: Option<Box<Recorder>>,
    /// Status of the flush at the end of service.
    last_flush: Option<Status>,
}

impl ServedDevice {
    /// Returns a drive or pool with its data; called by `Setup::open`.
    fn new(setup: Setup, machine: Machine, bytes: u64, serial: String) -> ServedDevice {
        ServedDevice {
            setup,
            machine,
            findings: Vec::new(),
            bytes,
            state_file: None,
            serial,
            protection: 0,
            shares: None,
            ftl: (Precondition::default(), 0),
            now: Time::ZERO,
            slots: Slab::with_capacity(1024),
            done: Vec::with_capacity(256),
            ready: Vec::with_capacity(256),
            held: DelayedReplies::default(),
            injected: None,
            dead: false,
            power_fails: false,
            counters: Counters::default(),
            latencies: Latencies::default(),
            troubles: Default::default(),
            news: VecDeque::new(),
            read_only: false,
            recording: None,
            recorder: None,
            last_flush: None,
        }
    }

    /// Computes in advance the state that the drive would otherwise compute at its first write. The computation can
    /// last one second, and no client is served meanwhile. If the drive is served in real time, call this function
    /// before clients are admitted.
    pub fn prepare(&mut self) {
        self.machine.each_drive(|drive| drive.prepare());
    }

    /// Returns messages on repairs of a pool's members before it was served, one per line.
    pub fn findings(&self) -> &[String] {
        &self.findings
    }

    /// Returns the bytes of the namespace.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the time of the last call of the model.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of commands in flight.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.slots.len() + self.held.len()
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the model's latencies of commands.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// Submits a command that arrived at `now` (or at the last event, if that was later). Every command gets a reply.
    /// The data of a write is moved at the reply. This is only for drives; for pools see [`ServedDevice::submit_with`].
    #[inline]
    pub fn submit(&mut self, now: Time, token: u64, request: &IoRequest) {
        self.submit_with(now, token, request, &mut |_| true);
    }

    /// Submits a command. A pool whose members store the data calls `fill` now, which returns whether it has the data.
    #[inline]
    pub fn submit_with(
        &mut self,
        now: Time,
        token: u64,
        request: &IoRequest,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) {
        let now = now.max(self.now);
        self.run_until(now);
        let mut slot = InFlightCommand {
            token,
            submitted: now,
            op: request.op,
            fua: request.fua,
            offset: request.offset,
            bytes: request.bytes,
            heard: true,
            before: self.mark(),
            payload: Payload::default(),
            logged: None,
            verdict: Verdict::default(),
        };
        let command = Command {
            fua: request.fua || (self.has_write_cache() && !self.write_cache_enabled()),
            queue: request.queue,
            ..Command::new(0, request.op, request.offset, request.bytes)
        };
        if !command.fits(self.bytes) {
            self.end(&slot, Outcome::OutOfRange);
            return;
        }
        if self.machine.operation(now).is_some() {
            self.end(&slot, Outcome::Formatting);
            return;
        }
        if let Some(outcome) = self.refusal(request.op) {
            self.end(&slot, outcome);
            return;
        }
        if self.counts_on_room(request.op) && !self.has_room() {
            let outcome = self.no_room();
            self.end(&slot, outcome);
            return;
        }
        if let Machine::Pool(pool) = &mut self.machine {
            let given = match pool.is_broken() {
                true => None,
                false => pool.payload(request.op, request.bytes, fill),
            };
            let Some(payload) = given else {
                self.end(&slot, Outcome::Failed);
                return;
            };
            slot.payload = payload;
        }
        if self.injected.is_some() {
            slot.verdict = self.judge(now, &command);
        }
        let command = Command {
            payload: slot.payload,
            id: self.slots.insert(slot) as u32,
            ..command
        };
        if let Some(recording) = &mut self.recording {
            recording.arrivals.push((now, command));
        }
        if self.recorder.is_some() {
            self.log_submission(now, &command, fill);
        }
        self.now = now;
        self.machine.submit(now, command);
        if self.injected.is_some() {
            self.strike();
        }
    }

    /// Returns the outcome of a command that the drive rejects in its present state; `None` if the command is
    /// accepted.
    #[inline]
    fn refusal(&self, op: Op) -> Option<Outcome> {
        if self.read_only && !matches!(op, Op::Read | Op::Flush) {
            return Some(Outcome::ReadOnly);
        }
        if self.power_fails || self.dead {
            return Some(self.unanswered());
        }
        (self.slots.len() == SLOTS).then_some(Outcome::Busy)
    }

    /// Returns the time at which replies may be ready, or of the drive's next event while commands are in flight;
    /// [`Time::NEVER`] when idle.
    #[inline]
    pub fn next_event(&self) -> Time {
        if !self.ready.is_empty() || self.power_fails {
            self.now
        } else if self.in_flight() == 0 {
            Time::NEVER
        } else {
            self.machine.next_event().min(self.held.next())
        }
    }

    /// Checks whether it has work of its own without commands in flight: a pool that resyncs, or waits to come to
    /// rest.
    pub fn works_alone(&self) -> bool {
        // Writes without space for them are kept in memory, which is limited.
        matches!(&self.machine, Machine::Pool(pool) if !pool.is_full())
            && self.machine.next_event() != Time::NEVER
    }

    /// Runs the model up to `until`, each event at its own time, and appends the replies.
    #[inline]
    pub fn advance(&mut self, until: Time, replies: &mut Vec<Reply>) {
        self.run_until(until);
        replies.append(&mut self.ready);
    }

    /// Runs the model until nothing is in flight, and appends the replies.
    pub fn complete_all(&mut self, replies: &mut Vec<Reply>) {
        while self.in_flight() > 0 {
            let next = self.machine.next_event().min(self.held.next());
            if next == Time::NEVER || self.power_fails {
                break;
            }
            self.run_until(next);
        }
        replies.append(&mut self.ready);
    }

    #[inline]
    fn run_until(&mut self, until: Time) {
        loop {
            let (event, release) = (self.machine.next_event(), self.held.next());
            let next = event.min(release);
            if next > until || next == Time::NEVER || self.power_fails {
                return;
            }
            self.now = self.now.max(next);
            if event == next {
                self.step(event);
            }
            while !self.power_fails
                && let Some(reply) = self.held.take(next)
            {
                self.release(reply);
            }
        }
    }

    #[inline]
    fn step(&mut self, now: Time) {
        self.machine.advance(now, &mut self.done);
        for index in 0..self.done.len() {
            let completion = self.done[index];
            self.completed(&completion);
        }
        self.done.clear();
        if self.injected.is_some() {
            self.strike();
        }
    }

    fn completed(&mut self, completion: &Completion) {
        let slot = self.slots.remove(completion.id as usize);
        if let Some(recording) = &mut self.recording {
            recording.completions.push(*completion);
        }
        if !slot.heard {
            self.heard_last(&slot, completion.status);
            return;
        }
        debug_assert_eq!(
            completion.anatomy.total(),
            completion.at.since(slot.submitted)
        );
        let outcome = match completion.status {
            _ if self.counts_on_room(slot.op) => self.no_room(),
            Status::Success if slot.verdict.fails => match slot.op {
                Op::Read => Outcome::UnrecoveredRead,
                _ => Outcome::WriteFault,
            },
            Status::Success => self.carry_out(&slot),
            Status::LbaOutOfRange => Outcome::OutOfRange,
            Status::UnrecoveredReadError => Outcome::UnrecoveredRead,
            Status::WriteFault => Outcome::WriteFault,
            Status::ReadOnly => Outcome::ReadOnly,
            Status::Gone => Outcome::Failed,
        };
        if outcome == Outcome::UnrecoveredRead {
            self.count_media_error();
        }
        let is_delayed = || self.held.holds(self.now) || slot.verdict.delay > Span::ZERO;
        if self.injected.is_some() && outcome == Outcome::Success && !is_delayed() {
            self.count(slot.op, Moment::Completion);
        }
        self.end(&slot, outcome);
    }

    /// Checks whether the completion of a command of this kind guarantees that the members' writes reach their stores.
    #[inline]
    fn counts_on_room(&self, op: Op) -> bool {
        match (&self.machine, op) {
            (Machine::Drive(_), _) | (_, Op::Read) => false,
            // Data acknowledged before space ran out is either durable, or must be made durable by a flush.
            (Machine::Pool(pool), Op::Flush) => {
                pool.is_full() && pool.needs_flushes() && !self.read_only
            }
            (Machine::Pool(pool), _) => pool.is_full(),
        }
    }

    /// Returns the outcome of a command for which a pool's stores have no space.
    #[cold]
    fn no_room(&mut self) -> Outcome {
        let error = match &self.machine {
            Machine::Pool(pool) => pool.no_room(),
            Machine::Drive(_) => io::ErrorKind::StorageFull.into(),
        };
        self.not_taken(&error)
    }

    /// Returns the outcome of a command that the store rejected.
    fn not_taken(&mut self, error: &io::Error) -> Outcome {
        let named = self.of_store(io::Error::new(error.kind(), error.to_string()));
        self.troubles[0].note(&named);
        if no_room(error) {
            Outcome::NoSpace
        } else {
            Outcome::WriteFault
        }
    }

    /// Returns the outcome of a command that the store rejected after it was counted as done.
    fn failed_after_all(&mut self, error: &io::Error) -> Outcome {
        self.counters.errors += 1;
        self.not_taken(error)
    }

    fn end(&mut self, slot: &InFlightCommand, outcome: Outcome) {
        let latency = self.now.since(slot.submitted);
        let counters = &mut self.counters;
        match (outcome, slot.op) {
            (Outcome::Success, Op::Read) => {
                counters.reads += 1;
                counters.bytes_read += u64::from(slot.bytes);
                counters.latency_ns += u128::from(latency.ns());
                self.latencies.reads.record(latency);
            }
            (Outcome::Success, Op::Write) => {
                counters.writes += 1;
                counters.bytes_written += u64::from(slot.bytes);
                counters.latency_ns += u128::from(latency.ns());
                self.latencies.writes.record(latency);
            }
            (Outcome::Success, op) => {
                counters.others += 1;
                if op == Op::Flush {
                    self.latencies.flushes.record(latency);
                }
            }
            _ => counters.errors += 1,
        }
        let mut reply = Reply {
            tag: slot.token as u32,
            endpoint: (slot.token >> 32) as u32,
            op: slot.op,
            fua: slot.fua,
            offset: slot.offset,
            bytes: slot.bytes,
            outcome,
            at: self.now,
            latency,
            payload: slot.payload,
            logged: slot.logged,
        };
        self.log_moved(&mut reply);
        let (now, more) = (self.now, slot.verdict.delay);
        if self.held.holds(now) || more > Span::ZERO {
            self.held.hold(now, more, slot.submitted, reply);
        } else {
            self.ready.push(reply);
        }
    }
}
