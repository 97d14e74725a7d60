//! One modelled drive with its data.
//!
//! Below no host path: the host is real. The drive decides when a command completes and how; the data stays where it is
//! until then. No clock and no socket here: the same calls with the same times give the same replies, which is how a
//! live run is compared with a simulation.

use std::io;
use std::path::PathBuf;

use model::media::Drive;
use model::{Command, Completion, Device, Gauge, Gauges, Op, Span, Status, Time};
use study::catalogue::DriveSheet;

use crate::setup::Setup;
use crate::store::{State, Store, save};

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
    /// More commands than the server takes.
    Busy,
    /// The drive failed in another way.
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
    /// Those of them that failed for the medium.
    pub media_errors: u64,
    /// Sum of the model's latencies of reads and writes, in nanoseconds.
    pub latency_ns: u128,
}

/// One drive and its data.
#[derive(Debug)]
pub struct Served {
    setup: Setup,
    drive: Drive,
    store: Store,
    bytes: u64,
    /// What the drive remembered when it was switched on.
    remembered: State,
    state_file: Option<PathBuf>,
    /// Last time at which the model was called.
    now: Time,
    slots: Vec<Slot>,
    free: Vec<u32>,
    done: Vec<Completion>,
    /// Replies that are ready to be taken.
    ready: Vec<Reply>,
    counters: Counters,
}

impl Served {
    /// A drive with its data and what it remembers; made by [`Setup::open`].
    pub(crate) fn new(
        setup: Setup,
        drive: Drive,
        store: Store,
        remembered: State,
        state_file: Option<PathBuf>,
    ) -> Served {
        Served {
            setup,
            drive,
            store,
            bytes: remembered.bytes,
            remembered,
            state_file,
            now: Time::ZERO,
            slots: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            done: Vec::with_capacity(256),
            ready: Vec::with_capacity(256),
            counters: Counters::default(),
        }
    }

    /// What the catalogue says of the drive.
    pub fn sheet(&self) -> &DriveSheet {
        &self.setup.sheet
    }

    /// Name under which it is exported.
    pub fn name(&self) -> &str {
        &self.setup.name
    }

    /// Its serial number.
    pub fn serial(&self) -> &str {
        &self.remembered.serial
    }

    /// Bytes of the namespace.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes in a logical block of the format in use.
    pub fn block(&self) -> u32 {
        self.setup
            .sheet
            .management
            .lba_formats
            .first()
            .map_or(512, |format| format.data)
    }

    /// Last time at which the model was called.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Commands inside.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// What has been done since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The model, for its gauges.
    pub fn model(&self) -> &Drive {
        &self.drive
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
        };
        let command = Command {
            fua: request.fua,
            queue: request.queue,
            ..Command::new(0, request.op, request.offset, request.bytes)
        };
        if !command.fits(self.bytes) {
            self.refuse(&slot, Outcome::OutOfRange);
            return;
        }
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = slot;
                id
            }
            None if self.slots.len() < SLOTS => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
            None => {
                self.refuse(&slot, Outcome::Busy);
                return;
            }
        };
        self.drive.submit(now, Command { id, ..command });
    }

    /// When replies may be ready, or the drive has an event while commands are inside; [`Time::NEVER`] when idle.
    #[inline]
    pub fn next_event(&self) -> Time {
        if !self.ready.is_empty() {
            self.now
        } else if self.in_flight() == 0 {
            Time::NEVER
        } else {
            self.drive.next_event()
        }
    }

    /// Runs the model up to `until`, each event at its own time, and appends the replies.
    pub fn advance(&mut self, until: Time, replies: &mut Vec<Reply>) {
        self.run_until(until);
        replies.append(&mut self.ready);
    }

    /// Runs the model until nothing is in flight, however long that takes it, and appends the replies.
    pub fn complete_all(&mut self, replies: &mut Vec<Reply>) {
        while self.in_flight() > 0 && self.drive.next_event() != Time::NEVER {
            self.step();
        }
        replies.append(&mut self.ready);
    }

    #[inline]
    fn run_until(&mut self, until: Time) {
        while self.drive.next_event() <= until && self.drive.next_event() != Time::NEVER {
            self.step();
        }
    }

    #[inline]
    fn step(&mut self) {
        self.now = self.drive.next_event();
        self.drive.advance(self.now, &mut self.done);
        for index in 0..self.done.len() {
            let completion = self.done[index];
            self.completed(&completion);
        }
        self.done.clear();
    }

    fn completed(&mut self, completion: &Completion) {
        let slot = self.slots[completion.id as usize];
        self.free.push(completion.id);
        let mut outcome = match completion.status {
            Status::Success => Outcome::Success,
            Status::LbaOutOfRange => Outcome::OutOfRange,
            Status::UnrecoveredReadError => Outcome::UnrecoveredRead,
        };
        if outcome == Outcome::Success && self.carry_out(&slot).is_err() {
            outcome = Outcome::WriteFault;
        }
        debug_assert_eq!(
            completion.anatomy.total(),
            completion.at.since(slot.submitted)
        );
        self.end(&slot, outcome);
    }

    /// What a command does that has no payload.
    fn carry_out(&mut self, slot: &Slot) -> io::Result<()> {
        match slot.op {
            Op::Deallocate | Op::WriteZeroes => self.store.zero(slot.offset, slot.bytes.into()),
            Op::Read | Op::Write | Op::Flush => Ok(()),
        }
    }

    fn refuse(&mut self, slot: &Slot, outcome: Outcome) {
        self.end(slot, outcome);
    }

    fn end(&mut self, slot: &Slot, outcome: Outcome) {
        let latency = self.now.since(slot.submitted);
        let counters = &mut self.counters;
        match (outcome, slot.op) {
            (Outcome::Success, Op::Read) => {
                counters.reads += 1;
                counters.bytes_read += u64::from(slot.bytes);
                counters.latency_ns += u128::from(latency.ns());
            }
            (Outcome::Success, Op::Write) => {
                counters.writes += 1;
                counters.bytes_written += u64::from(slot.bytes);
                counters.latency_ns += u128::from(latency.ns());
            }
            (Outcome::Success, _) => counters.others += 1,
            (Outcome::UnrecoveredRead | Outcome::WriteFault, _) => {
                counters.errors += 1;
                counters.media_errors += 1;
            }
            _ => counters.errors += 1,
        }
        self.ready.push(Reply {
            tag: slot.token as u32,
            endpoint: (slot.token >> 32) as u32,
            op: slot.op,
            fua: slot.fua,
            offset: slot.offset,
            bytes: slot.bytes,
            outcome,
            at: self.now,
            latency,
        });
    }

    /// Data of a read that has succeeded, or a part of it.
    ///
    /// # Errors
    /// [`Outcome::UnrecoveredRead`] if the store fails; `data` then has no meaning but is zeroed.
    #[inline]
    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Outcome> {
        self.store.read(offset, data).map_err(|_| {
            data.fill(0);
            Outcome::UnrecoveredRead
        })
    }

    /// Data of a write that has succeeded, or a part of it.
    ///
    /// # Errors
    /// [`Outcome::WriteFault`] if the store fails.
    #[inline]
    pub fn write(&mut self, offset: u64, data: &[u8], _fua: bool) -> Result<(), Outcome> {
        self.store
            .write(offset, data)
            .map_err(|_| Outcome::WriteFault)
    }

    /// What the drive remembers as of now: totals over all the times it was switched on.
    pub fn state(&self) -> State {
        let mut gauges = Remembered::default();
        self.drive.inspect(self.now, &mut gauges);
        let before = &self.remembered;
        State {
            seconds_on: before.seconds_on + self.now.seconds() as u64,
            reads: before.reads + self.counters.reads,
            writes: before.writes + self.counters.writes,
            bytes_read: before.bytes_read + self.counters.bytes_read,
            bytes_written: before.bytes_written + self.counters.bytes_written,
            medium_bytes_written: before.medium_bytes_written + gauges.medium_written as u64,
            media_errors: before.media_errors + self.counters.media_errors,
            percentage_used: before.percentage_used + gauges.percentage_used,
            ..before.clone()
        }
    }

    /// Writes down what the drive remembers, if it has a file for it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn save(&self, clean: bool) -> io::Result<()> {
        match &self.state_file {
            Some(path) => save(
                path,
                &State {
                    clean,
                    ..self.state()
                },
            ),
            None => Ok(()),
        }
    }

    /// Brings data and state to the host's disk: the end of orderly service.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn shut_down(&mut self) -> io::Result<()> {
        self.store.sync()?;
        self.save(true)
    }

    /// The end of the run of data, or of the hole, that `offset` is in, and whether it is data; at most `limit`.
    pub fn extent(&self, offset: u64, limit: u64) -> (u64, bool) {
        self.store.extent(offset, limit)
    }
}

/// What of the model's gauges is remembered.
#[derive(Default)]
struct Remembered {
    medium_written: f64,
    percentage_used: f64,
}

impl Gauges for Remembered {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        match gauge {
            Gauge::MediumBytesWritten => self.medium_written += value,
            Gauge::PercentageUsed => self.percentage_used = value,
            _ => {}
        }
    }
}
