//! One modelled drive with its data.
//!
//! Below no host path: the host is real. The drive decides when a command completes and how; the data stays where it is
//! until then. No clock and no socket here: the same calls with the same times give the same replies, which is how a
//! live run is compared with a simulation. What an administrator asks of it is in `administration`.

mod administration;
mod condition;
mod data;
mod disk;
mod division;
mod findings;
#[cfg(test)]
mod full;
mod held;
mod injected;
mod machine;
mod moving;
mod opening;
mod pool_opening;
mod pooled;
mod recorded;
mod resync;
mod room;
mod suffering;
mod trouble;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use model::data::{Moment, Verdict};
use model::media::Precondition;
use model::{Command, Completion, Op, Payload, Span, Status, Time};
use slab::Slab;
use statistics::Histogram;

use crate::clock::Wall;
use crate::setup::Setup;
use crate::store::{Mark, Share, no_room};
pub use administration::PowerLoss;
pub use condition::Condition;
use held::Held;
use injected::FaultInjection;
pub use injected::TriggeredFault;
use machine::Machine;
use recorded::Recorder;
pub use recorded::Recording;
use trouble::Trouble;

/// Most commands in one drive at a time; more are refused.
const SLOTS: usize = 1 << 16;

/// What is asked of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The front end's own name for it, given back in the reply.
    pub tag: u32,
    /// What to do.
    pub op: Op,
    /// A write completes only when it is durable.
    pub fua: bool,
    /// Submission queue it came through, from 0.
    pub queue: u16,
    /// First byte of the namespace, a multiple of 512.
    pub offset: u64,
    /// Length, a multiple of 512.
    pub bytes: u32,
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// As asked. A read's or write's data is to be moved now by the front end; everything else is done.
    Success,
    /// The range reaches beyond the namespace, or is not a multiple of 512 B.
    OutOfRange,
    /// The medium could not give the data back.
    UnrecoveredRead,
    /// The data could not be kept.
    WriteFault,
    /// The host has no room for the data.
    NoSpace,
    /// The drive is served read-only.
    ReadOnly,
    /// A FORMAT or sanitize is in progress.
    Formatting,
    /// Power went while it was in the drive: nobody knows whether it was done. Front ends end the connection.
    PowerLoss,
    /// More commands than the server takes.
    Busy,
    /// The front end could not move the data, or the drive does not answer.
    Failed,
}

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// As in the request.
    pub tag: u32,
    /// The endpoint that asked.
    pub endpoint: u32,
    /// As in the request.
    pub op: Op,
    /// As in the request.
    pub fua: bool,
    /// As in the request.
    pub offset: u64,
    /// As in the request.
    pub bytes: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// When, by the model.
    pub at: Time,
    /// How long it took, by the model.
    pub latency: Span,
    /// Its data, where members have them.
    payload: Payload,
}

/// A command inside the drive.
#[derive(Clone, Copy, Debug)]
struct Slot {
    token: u64,
    submitted: Time,
    op: Op,
    fua: bool,
    offset: u64,
    bytes: u32,
    /// Somebody waits for it.
    heard: bool,
    /// The writes before it: a flush makes these durable.
    before: Mark,
    /// Its data, where members have them.
    payload: Payload,
    /// Error and delay by range or rate.
    verdict: Verdict,
}

/// What has been done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Flushes, trims and write-zeroes completed.
    pub others: u64,
    /// Commands that failed.
    pub errors: u64,
    /// Sum of the model's latencies of reads and writes, in nanoseconds.
    pub latency_ns: u128,
}

/// Latencies by the model, of commands that succeeded since the start.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Of reads.
    pub reads: Histogram,
    /// Of writes.
    pub writes: Histogram,
    /// Of flushes.
    pub flushes: Histogram,
}

impl Latencies {
    /// All of them, with what a command of each kind is called.
    pub fn by_kind(&self) -> [(&'static str, &Histogram); 3] {
        [
            ("read", &self.reads),
            ("write", &self.writes),
            ("flush", &self.flushes),
        ]
    }
}

/// One drive and its data, or a pool and its members'.
#[derive(Debug)]
pub struct Served {
    setup: Setup,
    machine: Machine,
    /// What was put right before it was served.
    findings: Vec<String>,
    /// Bytes of the namespace.
    bytes: u64,
    state_file: Option<PathBuf>,
    serial: String,
    /// Protection information of the format in use.
    protection: u8,
    /// How hosts have divided it into namespaces, if they have.
    shares: Option<Vec<Share>>,
    /// What the FTL's map was like when it was begun, and bytes that hosts had written by then.
    ftl: (Precondition, u64),
    /// Last time at which the model was called.
    now: Time,
    slots: Slab<Slot>,
    done: Vec<Completion>,
    /// Replies that are ready to be taken.
    ready: Vec<Reply>,
    held: Held,
    /// Faults by count, range and rate, if there have been any.
    injected: Option<Box<FaultInjection>>,
    /// A drive alone that has failed: it answers nothing.
    dead: bool,
    /// A count has triggered a power cut: the model does not advance until the replies so far have been sent.
    power_fails: bool,
    counters: Counters,
    latencies: Latencies,
    /// With the store, and with the file of what the drive remembers.
    troubles: [Trouble; 2],
    /// Other lines to tell.
    news: VecDeque<String>,
    read_only: bool,
    recording: Option<Box<Recording>>,
    /// Commands that change data are logged, if that was asked for.
    recorder: Option<Box<Recorder>>,
}

impl Served {
    /// A drive or pool with its data; made by `Setup::open`.
    fn new(setup: Setup, machine: Machine, bytes: u64, serial: String) -> Served {
        Served {
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
            held: Held::default(),
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
        }
    }

    /// Computes what the drive would compute at its first write, up to a second in which nobody would be served: for
    /// who serves it against a clock, before anybody is let in.
    pub fn prepare(&mut self) {
        self.machine.each_drive(|drive| drive.prepare());
    }

    /// What was put right on a pool's members before it was served, a line each.
    pub fn findings(&self) -> &[String] {
        &self.findings
    }

    /// Bytes of the namespace.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Last time at which the model was called.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Commands inside.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.slots.len() + self.held.len()
    }

    /// What has been done since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How long commands have taken, by the model.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// Takes a command that arrived at `now` (or at the last event, if that was later). Every command gets a reply. Data of a
    /// write are moved at the reply: only for drives, see [`Served::submit_with`].
    #[inline]
    pub fn submit(&mut self, now: Time, token: u64, request: &Request) {
        self.submit_with(now, token, request, &mut |_| true);
    }

    /// The same; a pool whose members have the data asks for those of a write now. `fill` says whether it could give them.
    #[inline]
    pub fn submit_with(
        &mut self,
        now: Time,
        token: u64,
        request: &Request,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) {
        let now = now.max(self.now);
        self.run_until(now);
        let mut slot = Slot {
            token,
            submitted: now,
            op: request.op,
            fua: request.fua,
            offset: request.offset,
            bytes: request.bytes,
            heard: true,
            before: self.mark(),
            payload: Payload::default(),
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
        let payload = slot.payload;
        let id = self.slots.insert(slot) as u32;
        let command = Command {
            id,
            payload,
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

    /// Returns how a command ends that the drive does not take in its present state; `None` if it takes it.
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

    /// When replies may be ready, or the drive has an event while commands are inside; [`Time::NEVER`] when idle.
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

    /// Whether it has work of its own, without commands inside: a pool that copies, or waits to rest.
    pub fn works_alone(&self) -> bool {
        // What it writes without room for it is kept in memory, of which there is not much.
        matches!(&self.machine, Machine::Pool(pool) if !pool.is_full())
            && self.machine.next_event() != Time::NEVER
    }

    /// Runs the model up to `until`, each event at its own time, and appends the replies.
    #[inline]
    pub fn advance(&mut self, until: Time, replies: &mut Vec<Reply>) {
        self.run_until(until);
        replies.append(&mut self.ready);
    }

    /// Runs the model until nothing is in flight, however long that takes it, and appends the replies.
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
            while let Some(reply) = self.held.take(next) {
                self.ready.push(reply);
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
            Status::Gone => Outcome::Failed,
        };
        if outcome == Outcome::UnrecoveredRead {
            self.count_media_error();
        }
        if self.injected.is_some() && outcome == Outcome::Success {
            self.count(slot.op, Moment::Completion);
        }
        if self.recorder.is_some() {
            self.log_completion(completion.id, outcome, slot.fua || slot.op == Op::Flush);
        }
        self.end(&slot, outcome);
    }

    /// Whether the answer to a command of this kind promises that what members write reaches their stores.
    #[inline]
    fn counts_on_room(&self, op: Op) -> bool {
        match (&self.machine, op) {
            (Machine::Drive(_), _) | (_, Op::Read) => false,
            // What was acknowledged before there was no room is durable, or a flush has to make it so.
            (Machine::Pool(pool), Op::Flush) => {
                pool.is_full() && pool.needs_flushes() && !self.read_only
            }
            (Machine::Pool(pool), _) => pool.is_full(),
        }
    }

    /// What a command ends with for which a pool's stores have no room.
    #[cold]
    fn no_room(&mut self) -> Outcome {
        let error = match &self.machine {
            Machine::Pool(pool) => pool.no_room(),
            Machine::Drive(_) => io::ErrorKind::StorageFull.into(),
        };
        self.not_taken(&error)
    }

    /// What a command ends with that the store has refused.
    fn not_taken(&mut self, error: &io::Error) -> Outcome {
        let named = self.of_store(io::Error::new(error.kind(), error.to_string()));
        self.troubles[0].note(&named);
        if no_room(error) {
            Outcome::NoSpace
        } else {
            Outcome::WriteFault
        }
    }

    /// The same where it has been counted as done.
    fn failed_after_all(&mut self, error: &io::Error) -> Outcome {
        self.counters.errors += 1;
        self.not_taken(error)
    }

    /// What is wrong with the files of the store and was not told yet, a line; at `now`, since the server started.
    pub(crate) fn complaint(&mut self, now: Wall) -> Option<String> {
        self.save_log(true);
        let trouble = self.troubles.iter_mut().find_map(|it| it.tell(now));
        let what = match &mut self.machine {
            Machine::Pool(pool) => trouble.or_else(|| pool.progress(now)),
            Machine::Drive(_) => trouble,
        };
        let what = what.or_else(|| self.news.pop_front())?;
        Some(format!("{}: {what}", self.setup.name))
    }

    fn end(&mut self, slot: &Slot, outcome: Outcome) {
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
        let reply = Reply {
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
        };
        let more = slot.verdict.delay;
        if self.held.holds(self.now) || more > Span::ZERO {
            self.held.hold(self.now, more, slot.submitted, reply);
        } else {
            self.ready.push(reply);
        }
    }
}
