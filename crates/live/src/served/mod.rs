//! One modelled drive with its data.
//!
//! Below no host path: the host is real. The drive decides when a command completes and how; the data stays where it is
//! until then. No clock and no socket here: the same calls with the same times give the same replies, which is how a
//! live run is compared with a simulation. What an administrator asks of it is in `administration`.

mod administration;
mod data;
mod division;
mod held;
mod opening;
mod trouble;

use std::io;
use std::path::PathBuf;

use model::management::ManagedDrive;
use model::media::{Medium, Precondition};
use model::{Command, Completion, Device, Op, Span, Status, Time};
use slab::Slab;
use statistics::Histogram;

use crate::clock::Wall;
use crate::setup::Setup;
use crate::store::{Mark, Share, State, no_room};
pub use administration::PowerLoss;
use data::Data;
use held::Held;
use opening::Opened;
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
    /// The front end could not move the data.
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

/// What the model was asked and what it answered, to be compared with a simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Commands, and when they were submitted.
    pub arrivals: Vec<(Time, Command)>,
    /// Completions in their order.
    pub completions: Vec<Completion>,
}

/// One drive and its data.
#[derive(Debug)]
pub struct Served {
    setup: Setup,
    drive: ManagedDrive,
    data: Data,
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
    counters: Counters,
    latencies: Latencies,
    /// With the store, and with the file of what the drive remembers.
    troubles: [Trouble; 2],
    read_only: bool,
    recording: Option<Box<Recording>>,
}

impl Served {
    /// A drive with its data and what it remembers; made by `Setup::open`.
    fn new(setup: Setup, drive: ManagedDrive, store: Opened) -> io::Result<Served> {
        let state = store.state;
        let cache = setup.sheet.config.volatile_bytes();
        let cache = (cache > 0).then_some(cache);
        let mut data = Data::new(store.store, store.file, state.bytes, cache);
        for &(start, end) in &state.unreadable {
            data.spoil(start, end - start);
        }
        let format = drive.lba_format();
        let blocks = state.bytes / u64::from(format.data);
        data.set_metadata(blocks * u64::from(format.metadata), false)?;
        Ok(Served {
            setup,
            drive,
            data,
            bytes: state.bytes,
            state_file: store.state_file,
            serial: state.serial,
            protection: state.protection,
            shares: state.shares,
            ftl: (state.ftl, state.ftl_since_bytes),
            now: Time::ZERO,
            slots: Slab::with_capacity(1024),
            done: Vec::with_capacity(256),
            ready: Vec::with_capacity(256),
            held: Held::default(),
            counters: Counters::default(),
            latencies: Latencies::default(),
            troubles: Default::default(),
            read_only: false,
            recording: None,
        })
    }

    /// Computes what the drive would compute at its first write, up to a second in which nobody would be served: for
    /// who serves it against a clock, before anybody is let in.
    pub fn prepare(&mut self) {
        self.drive.prepare();
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

    /// Begins to record what the model is asked and what it answers; it grows without bound.
    pub fn record(&mut self) {
        self.recording = Some(Box::default());
    }

    /// What has been recorded; recording ends.
    pub fn take_recording(&mut self) -> Option<Recording> {
        self.recording.take().map(|recording| *recording)
    }

    /// Takes a command that arrived at `now` (or at the last event, if that was later). Every command gets a reply.
    #[inline]
    pub fn submit(&mut self, now: Time, token: u64, request: &Request) {
        let now = now.max(self.now);
        self.run_until(now);
        let slot = Slot {
            token,
            submitted: now,
            op: request.op,
            fua: request.fua,
            offset: request.offset,
            bytes: request.bytes,
            heard: true,
            before: self.data.mark(),
        };
        let command = Command {
            fua: request.fua || (self.data.has_cache() && !self.data.cache_enabled()),
            queue: request.queue,
            ..Command::new(0, request.op, request.offset, request.bytes)
        };
        if !command.fits(self.bytes) {
            self.end(&slot, Outcome::OutOfRange);
            return;
        }
        if self.drive.operation(now).is_some() {
            self.end(&slot, Outcome::Formatting);
            return;
        }
        if self.read_only && !matches!(request.op, Op::Read | Op::Flush) {
            self.end(&slot, Outcome::ReadOnly);
            return;
        }
        if self.slots.len() == SLOTS {
            self.end(&slot, Outcome::Busy);
            return;
        }
        let id = self.slots.insert(slot) as u32;
        let command = Command { id, ..command };
        if let Some(recording) = &mut self.recording {
            recording.arrivals.push((now, command));
        }
        self.now = now;
        self.drive.submit(now, command);
    }

    /// When replies may be ready, or the drive has an event while commands are inside; [`Time::NEVER`] when idle.
    #[inline]
    pub fn next_event(&self) -> Time {
        if !self.ready.is_empty() {
            self.now
        } else if self.in_flight() == 0 {
            Time::NEVER
        } else {
            self.drive.next_event().min(self.held.next())
        }
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
            let next = self.drive.next_event().min(self.held.next());
            if next == Time::NEVER {
                break;
            }
            self.run_until(next);
        }
        replies.append(&mut self.ready);
    }

    #[inline]
    fn run_until(&mut self, until: Time) {
        loop {
            let (event, release) = (self.drive.next_event(), self.held.next());
            let next = event.min(release);
            if next > until || next == Time::NEVER {
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
        self.drive.advance(now, now, &mut self.done);
        for index in 0..self.done.len() {
            let completion = self.done[index];
            self.completed(&completion);
        }
        self.done.clear();
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
            Status::Success => self.carry_out(&slot),
            Status::LbaOutOfRange => Outcome::OutOfRange,
            Status::UnrecoveredReadError => Outcome::UnrecoveredRead,
        };
        if outcome == Outcome::UnrecoveredRead {
            self.drive.count_media_error();
        }
        self.end(&slot, outcome);
    }

    /// What a command does that has no payload, and whether the medium can do the rest.
    fn carry_out(&mut self, slot: &Slot) -> Outcome {
        let done = match slot.op {
            Op::Read if !self.data.readable(slot.offset, slot.bytes.into()) => {
                return Outcome::UnrecoveredRead;
            }
            Op::Deallocate | Op::WriteZeroes => self.zero(slot.offset, slot.bytes.into()),
            Op::Flush => self.data.flush(slot.before),
            Op::Read | Op::Write => Ok(()),
        };
        match done {
            Ok(()) => Outcome::Success,
            Err(error) => self.not_taken(&error),
        }
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
        let what = self.troubles.iter_mut().find_map(|it| it.tell(now))?;
        Some(format!("{}: {what}", self.setup.name))
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        self.data.zero(offset, bytes)?;
        let format = self.drive.lba_format();
        let (block, metadata) = (u64::from(format.data), u64::from(format.metadata));
        self.data
            .zero_metadata(offset / block * metadata, bytes / block * metadata)
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
        };
        if self.held.holds(self.now) {
            self.held.hold(self.now, slot.submitted, reply);
        } else {
            self.ready.push(reply);
        }
    }

    /// Data of a read that has succeeded, or a part of it.
    ///
    /// # Errors
    /// [`Outcome::UnrecoveredRead`] if the store fails; `data` is then zeroes.
    #[inline]
    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Outcome> {
        self.data.read(offset, data).map_err(|error| {
            data.fill(0);
            self.failed_after_all(&error);
            Outcome::UnrecoveredRead
        })
    }

    /// Whether a range that may be read is known to be zeroes because it was never written. A file is not asked.
    #[inline]
    pub fn is_hole(&self, offset: u64, bytes: u64) -> bool {
        self.data.is_hole(offset, bytes)
    }

    /// Data of a write that has succeeded, or a part of it in whole blocks.
    ///
    /// # Errors
    /// [`Outcome::NoSpace`] if the host has no room, [`Outcome::WriteFault`] if the store fails otherwise.
    #[inline]
    pub fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), Outcome> {
        let mut written = self.data.write(offset, data, fua);
        if self.data.crowded() {
            written = written.and_then(|()| self.settle_data());
        }
        written.map_err(|error| self.failed_after_all(&error))
    }

    /// Whether no block of the range is unreadable.
    pub fn readable(&self, offset: u64, bytes: u64) -> bool {
        self.data.readable(offset, bytes)
    }

    /// Makes the range unreadable until it is written (NVMe's Write Uncorrectable, a medium error).
    pub fn spoil(&mut self, offset: u64, bytes: u64) {
        let bytes = bytes.min(self.bytes.saturating_sub(offset));
        self.data.spoil(offset, bytes);
    }

    /// The end of the run of data, or of the hole, that `offset` is in, and whether it is data; at most `limit`.
    pub fn extent(&mut self, offset: u64, limit: u64) -> (u64, bool) {
        self.data.extent(offset, limit)
    }

    /// Metadata of the blocks from `lba` on, on a format that has some.
    ///
    /// # Errors
    /// [`Outcome::UnrecoveredRead`] if the store fails, or the format has no metadata.
    pub fn read_metadata(&mut self, lba: u64, metadata: &mut [u8]) -> Result<(), Outcome> {
        let each = u64::from(self.drive.lba_format().metadata);
        self.data
            .read_metadata(lba * each, metadata)
            .map_err(|error| {
                self.failed_after_all(&error);
                Outcome::UnrecoveredRead
            })
    }

    /// Metadata of the blocks from `lba` on, on a format that has some. A crash of the server between this and the
    /// data leaves one without the other.
    ///
    /// # Errors
    /// As [`Served::write`]; [`Outcome::WriteFault`] if the format has no metadata.
    pub fn write_metadata(&mut self, lba: u64, metadata: &[u8]) -> Result<(), Outcome> {
        let each = u64::from(self.drive.lba_format().metadata);
        let written = self.data.write_metadata(lba * each, metadata);
        written.map_err(|error| self.failed_after_all(&error))
    }

    /// What the drive remembers as of now.
    pub fn state(&self) -> State {
        State {
            drive: self.setup.sheet.id.clone(),
            serial: self.serial.clone(),
            bytes: self.bytes,
            clean: false,
            protection: self.protection,
            lifetime: self.drive.lifetime(self.now),
            ftl: self.ftl.0,
            ftl_since_bytes: self.ftl.1,
            unreadable: self.data.unreadable(),
            shares: self.shares.clone(),
        }
    }
}
