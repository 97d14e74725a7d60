//! The running program: each thread is a seat with at most one outstanding I/O, so the number of a thread is also the
//! id of its command.

use std::collections::VecDeque;

use model::engine::{EventQueue, Workload};
use model::host::ProgramCosts;
use model::{Command, Completion, Op, Part, Span, Status, Stream, Time};

use super::config::{Config, Generation};
use super::counts::{Interval, RequestKind};
use statistics::{AnatomyBands, Histogram};

/// Maximum number of waiting requests before version 3 stops.
const MOST_QUEUED: u32 = 100_000;

/// Why a test ended early, in ACT's terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// More than 100,000 requests waited in the queues (version 3).
    TooManyQueued,
    /// A service thread was later than the maximum lag (version 6).
    RequestsLag,
    /// The thread of large reads was later than the maximum lag.
    LargeReadsLag,
    /// The thread of large writes was later than the maximum lag.
    LargeWritesLag,
}

#[derive(Clone, Copy, Debug)]
enum ThreadRole {
    /// Reads requests from this queue.
    Queue(u16),
    /// Makes its own requests.
    Service,
    LargeReads,
    LargeWrites {
        /// Whether the buffer has been filled; if so, the next step is the write.
        filled: bool,
    },
}

/// A thread with its I/O.
#[derive(Clone, Debug)]
struct ActThread {
    role: ThreadRole,
    /// I/Os completed.
    count: u64,
    /// Time when the thread started the I/O; time when the request entered its queue.
    issued: Time,
    enqueued: Time,
    writes: bool,
    stream: Stream,
}

#[derive(Clone, Copy, Debug)]
struct Transaction {
    at: Time,
    offset: u64,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    requests: VecDeque<Transaction>,
    /// Sleeping threads, the longest first.
    idle: VecDeque<u32>,
}

/// Offsets and lengths of I/Os.
#[derive(Clone, Copy, Debug)]
struct IoGeometry {
    /// Capacity of the drive in whole large blocks, bytes.
    large_blocks: u64,
    large_bytes: u32,
    /// Smallest I/O of the drive, bytes.
    unit: u32,
    smallest: u32,
    sizes: u32,
    offsets: u64,
}

/// An ACT run as a workload. Everything starts at [`Time::ZERO`]; completions at and after `count_from` are counted.
#[derive(Clone, Debug)]
pub struct Act<'a> {
    config: &'a Config,
    costs: ProgramCosts,
    places: IoGeometry,
    seats: Vec<ActThread>,
    queues: Vec<Queue>,
    queued: u32,
    /// Number of requests put into queues so far, and the random stream that selects queues.
    generated: u64,
    generator: Stream,
    timers: EventQueue,
    ready: Vec<u32>,
    now: Time,
    count_from: Time,
    end: Time,
    outstanding: u32,
    /// Time and reason of an early end.
    pub stopped: Option<(Time, StopReason)>,
    /// I/Os that failed.
    pub errors: u64,
    /// Requests generated, or service I/Os started, in the counted part.
    pub requests: u64,
    /// Report intervals.
    pub intervals: Vec<Interval>,
    /// Latencies by kind of I/O.
    pub latencies: [Histogram; super::KINDS],
    /// Latency breakdown of reads.
    pub bands: AnatomyBands,
}

impl<'a> Act<'a> {
    /// Creates a run on a drive of `capacity` bytes whose smallest I/O has `block` bytes. The drive must hold at
    /// least one large block.
    pub fn new(
        config: &'a Config,
        costs: ProgramCosts,
        capacity: u64,
        block: u32,
        warm_up: Span,
        seed: u64,
    ) -> Act<'a> {
        let count_from = Time::ZERO + warm_up;
        let mut act = Act {
            config,
            costs,
            places: IoGeometry::from_config(config, capacity, block.max(512)),
            seats: seats(config, seed),
            queues: Vec::new(),
            queued: 0,
            generated: 0,
            generator: Stream::new(seed, "act requests"),
            timers: EventQueue::default(),
            ready: Vec::new(),
            now: Time::ZERO,
            count_from,
            end: count_from + config.duration,
            outstanding: 0,
            stopped: None,
            errors: 0,
            requests: 0,
            intervals: Vec::new(),
            latencies: Default::default(),
            bands: AnatomyBands::default(),
        };
        act.start();
        act
    }

    fn start(&mut self) {
        if let Generation::Queues { queues, .. } = self.config.generation {
            self.queues = vec![Queue::default(); usize::from(queues)];
            if self.config.reads_per_second > 0 {
                self.timers.push(Time::ZERO, self.seats.len() as u32);
            }
        }
        for (index, seat) in self.seats.iter().enumerate() {
            match seat.role {
                ThreadRole::Queue(queue) => {
                    self.queues[usize::from(queue)].idle.push_back(index as u32)
                }
                _ => self.timers.push(Time::ZERO, index as u32),
            }
        }
    }

    /// Returns the number of threads that do I/O.
    pub fn threads(&self) -> usize {
        self.seats.len()
    }

    /// Returns the elapsed share of the test time, 0 to 1.
    pub fn share(&self, now: Time) -> f64 {
        (now.seconds() / self.end.seconds().max(1e-9)).min(1.0)
    }

    /// Returns the length of the counted part.
    pub fn counted(&self) -> Span {
        self.end.since(self.count_from.min(self.end))
    }

    fn stop(&mut self, now: Time, why: StopReason) {
        if self.stopped.is_none() {
            self.stopped = Some((now, why));
            self.end = now;
        }
    }

    /// Makes all requests that are due, then sleeps.
    fn generate(&mut self, now: Time) {
        let rate = u64::from(self.config.reads_per_second);
        loop {
            if now >= self.end {
                return;
            }
            if self.queued >= MOST_QUEUED {
                return self.stop(now, StopReason::TooManyQueued);
            }
            let queue = self.generator.uniform_below(self.queues.len() as u64) as usize;
            let offset = self.places.record(&mut self.generator);
            self.queues[queue]
                .requests
                .push_back(Transaction { at: now, offset });
            self.queued += 1;
            self.generated += 1;
            self.requests += u64::from(now >= self.count_from);
            let mut next = now + self.costs.generate;
            if let Some(thread) = self.queues[queue].idle.pop_front() {
                next += self.costs.signal;
                self.timers.push(next + self.costs.wake, thread);
            }
            let at = self.sleep(next, due(self.generated, rate as f64));
            if at > now {
                return self.timers.push(at, self.seats.len() as u32);
            }
        }
    }

    /// Returns when a thread that has finished at `now` starts the I/O that is due at `due`.
    fn sleep(&self, now: Time, due: Time) -> Time {
        if due > now {
            due + self.costs.timer_slack
        } else {
            now
        }
    }

    /// Lets a thread look for work.
    fn call(&mut self, index: u32, now: Time, submit: &mut impl FnMut(Command)) {
        if now >= self.end {
            return;
        }
        match self.seats[index as usize].role {
            ThreadRole::Queue(queue) => {
                let queue = &mut self.queues[usize::from(queue)];
                match queue.requests.pop_front() {
                    None => queue.idle.push_back(index),
                    Some(request) => {
                        self.queued -= 1;
                        self.seats[index as usize].enqueued = request.at;
                        let bytes = self.places.smallest;
                        self.issue(index, now, Op::Read, request.offset, bytes, submit);
                    }
                }
            }
            ThreadRole::Service => self.serve(index, now, submit),
            ThreadRole::LargeReads => self.large(index, now, Op::Read, submit),
            ThreadRole::LargeWrites { filled: true } => self.large(index, now, Op::Write, submit),
            ThreadRole::LargeWrites { filled: false } => {
                let picoseconds = self.costs.fill_picoseconds_per_byte;
                let fill = Span::per_bytes(picoseconds, u64::from(self.places.large_bytes));
                self.seats[index as usize].role = ThreadRole::LargeWrites { filled: true };
                if fill == Span::ZERO {
                    self.large(index, now, Op::Write, submit);
                } else {
                    self.timers.push(now + fill, index);
                }
            }
        }
    }

    /// Starts the next read or write of a service thread.
    fn serve(&mut self, index: u32, now: Time, submit: &mut impl FnMut(Command)) {
        let reads = u64::from(self.config.record_reads_per_second());
        let writes = u64::from(self.config.record_writes_per_second());
        let stream = &mut self.seats[index as usize].stream;
        let op = if writes > 0 && stream.uniform_below(reads + writes) >= reads {
            Op::Write
        } else {
            Op::Read
        };
        let offset = self.places.record(stream);
        let bytes = self.places.record_bytes(stream);
        self.requests += u64::from(now >= self.count_from);
        self.seats[index as usize].enqueued = now;
        self.issue(index, now, op, offset, bytes, submit);
    }

    fn large(&mut self, index: u32, now: Time, op: Op, submit: &mut impl FnMut(Command)) {
        let bytes = self.places.large_bytes;
        let seat = &mut self.seats[index as usize];
        let offset = seat.stream.uniform_below(self.places.large_blocks) * u64::from(bytes);
        seat.enqueued = now;
        if op == Op::Write {
            seat.role = ThreadRole::LargeWrites { filled: false };
        }
        self.issue(index, now, op, offset, bytes, submit);
    }

    fn issue(
        &mut self,
        index: u32,
        now: Time,
        op: Op,
        offset: u64,
        bytes: u32,
        submit: &mut impl FnMut(Command),
    ) {
        let seat = &mut self.seats[index as usize];
        seat.issued = now;
        seat.writes = op == Op::Write;
        self.outstanding += 1;
        let mut command = Command::new(index, op, offset, bytes);
        command.queue = index as u16;
        command.fua = op == Op::Write && !self.config.has_queues() && !self.config.disable_odsync;
        submit(command);
    }

    /// Returns the rate of a paced thread in I/Os per second, and the reason for stopping if it is late.
    fn pace(&self, role: ThreadRole) -> (f64, StopReason) {
        match role {
            ThreadRole::LargeReads => (
                self.config.large_reads_per_second(),
                StopReason::LargeReadsLag,
            ),
            ThreadRole::LargeWrites { .. } => (
                self.config.large_writes_per_second(),
                StopReason::LargeWritesLag,
            ),
            ThreadRole::Queue(_) | ThreadRole::Service => {
                let each =
                    self.config.requests_per_second() / self.config.generation.readers().max(1);
                (f64::from(each.max(1)), StopReason::RequestsLag)
            }
        }
    }

    /// Schedules the next I/O of a paced thread after a completion.
    fn schedule_next(&mut self, index: u32, now: Time) {
        let seat = &mut self.seats[index as usize];
        seat.count += 1;
        let (count, role) = (seat.count, seat.role);
        let (rate, why) = self.pace(role);
        let due = due(count, rate);
        let lag = now.since(due.min(now));
        let most = self.config.max_lag;
        if !self.config.has_queues() && most != Span::ZERO && lag > most {
            return self.stop(now, why);
        }
        match self.sleep(now, due) {
            at if at > now => self.timers.push(at, index),
            _ => self.ready.push(index),
        }
    }

    fn count(&mut self, now: Time, index: u32, completion: &Completion) {
        if completion.status != Status::Success {
            self.errors += 1;
            return;
        }
        if now < self.count_from || now > self.end {
            return;
        }
        let seat = &self.seats[index as usize];
        // The measured time of a thread starts when the thread runs, not when it could have run.
        let from_issue = now.since(seat.issued) - completion.anatomy.get(Part::ThreadBusy);
        let (kind, latency) = match (seat.role, seat.writes) {
            (ThreadRole::Queue(_), _) => (RequestKind::Read, now.since(seat.enqueued)),
            (ThreadRole::Service, false) => (RequestKind::Read, from_issue),
            (ThreadRole::Service, true) => (RequestKind::Write, from_issue),
            (ThreadRole::LargeReads, _) => (RequestKind::LargeRead, from_issue),
            (ThreadRole::LargeWrites { .. }, _) => (RequestKind::LargeWrite, from_issue),
        };
        let waited = seat.issued.since(seat.enqueued);
        let every = self.config.report_interval.ns().max(1);
        let interval = (now.since(self.count_from).ns() / every) as usize;
        if self.intervals.len() <= interval {
            let queued = self.queued;
            let new = Interval {
                queued,
                ..Interval::default()
            };
            self.intervals.resize(interval + 1, new);
        }
        let into = &mut self.intervals[interval];
        into.queued = self.queued;
        into.kinds[kind as usize].record(latency);
        self.latencies[kind as usize].record_at(latency, now);
        if kind == RequestKind::Read {
            into.kinds[RequestKind::RawRead as usize].record(from_issue);
            self.latencies[RequestKind::RawRead as usize].record_at(from_issue, now);
            let mut anatomy = completion.anatomy;
            anatomy.add(Part::QueueSlot, waited);
            self.bands.record(latency, &anatomy);
        }
    }
}

impl IoGeometry {
    fn from_config(config: &Config, capacity: u64, unit: u32) -> IoGeometry {
        let large_bytes = config.large_block_bytes;
        let large_blocks = (capacity / u64::from(large_bytes)).max(1);
        // Version 3 reads records at their own size, version 6 at their stored size.
        let (smallest, largest) = if config.has_queues() {
            (config.record_bytes, config.record_bytes)
        } else {
            config.stored_bytes()
        };
        let (smallest, largest) = (
            smallest.next_multiple_of(unit),
            largest.next_multiple_of(unit),
        );
        let units = large_blocks * u64::from(large_bytes) / u64::from(unit);
        IoGeometry {
            large_blocks,
            large_bytes,
            unit,
            smallest,
            sizes: (largest - smallest) / unit + 1,
            offsets: (units + 1).saturating_sub(u64::from(largest / unit)).max(1),
        }
    }

    /// Returns the first byte of a record: any multiple of the smallest I/O.
    fn record(&self, stream: &mut Stream) -> u64 {
        stream.uniform_below(self.offsets) * u64::from(self.unit)
    }

    fn record_bytes(&self, stream: &mut Stream) -> u32 {
        if self.sizes == 1 {
            return self.smallest;
        }
        self.smallest + stream.uniform_below(u64::from(self.sizes)) as u32 * self.unit
    }
}

/// Returns when the I/O number `count` is due, in whole microseconds as in the program.
fn due(count: u64, rate: f64) -> Time {
    Time::from_ns((count as f64 * 1e6 / rate) as u64 * 1_000)
}

fn seats(config: &Config, seed: u64) -> Vec<ActThread> {
    let mut roles = Vec::new();
    match config.generation {
        Generation::Queues {
            queues,
            threads_per_queue,
        } => roles.extend(
            (0..queues)
                .flat_map(|queue| (0..threads_per_queue).map(move |_| ThreadRole::Queue(queue))),
        ),
        Generation::Service { threads } => {
            if config.record_reads_per_second() + config.record_writes_per_second() > 0 {
                roles.extend((0..threads).map(|_| ThreadRole::Service));
            }
        }
    }
    if config.large_reads_per_second() > 0.0 {
        roles.push(ThreadRole::LargeReads);
    }
    if config.large_writes_per_second() > 0.0 {
        roles.push(ThreadRole::LargeWrites { filled: false });
    }
    let seat = |(index, role)| ActThread {
        role,
        count: 0,
        issued: Time::ZERO,
        enqueued: Time::ZERO,
        writes: false,
        stream: Stream::numbered(seed, "act thread", index as u64),
    };
    roles.into_iter().enumerate().map(seat).collect()
}

impl Workload for Act<'_> {
    #[inline]
    fn next_arrival(&self) -> Time {
        if self.ready.is_empty() {
            self.timers.next()
        } else {
            self.now
        }
    }

    fn arrive(&mut self, now: Time, submit: &mut impl FnMut(Command)) {
        self.now = now;
        loop {
            while let Some(index) = self.timers.pop_due(now) {
                if index as usize == self.seats.len() {
                    self.generate(now);
                } else {
                    self.call(index, now, submit);
                }
            }
            let mut next = 0;
            while next < self.ready.len() {
                self.call(self.ready[next], now, submit);
                next += 1;
            }
            self.ready.clear();
            // If waking and generating cost nothing, a thread is due at once.
            if self.timers.next() != now {
                return;
            }
        }
    }

    fn complete(&mut self, now: Time, completion: &Completion) {
        self.now = now;
        self.outstanding -= 1;
        self.count(now, completion.id, completion);
        match self.seats[completion.id as usize].role {
            ThreadRole::Queue(_) => self.ready.push(completion.id),
            _ => self.schedule_next(completion.id, now),
        }
    }

    fn finished(&self) -> bool {
        self.now >= self.end && self.outstanding == 0 && self.ready.is_empty()
    }
}
