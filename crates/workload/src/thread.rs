//! One job thread: its next I/O, and when it may be issued.
//!
//! The order of decisions is fio's: end of the run, due sync, depth, think time, direction, rate, size, offset.

use core::hint::cold_path;

use model::{Command, CommandId, Completion, Op, Payload, Span, Stream, Time};

use super::blocks::Blocks;
use super::commands;
use super::in_flight::{InFlight, IoClass};
use super::job::{Direction, Job, Mix, SyncMode, ThinkTime, whole_pages};
use super::offsets::Offsets;
use super::pacing::Pacer;
use super::passes::Passes;
use super::pauses::{Pause, Pauses};
use super::places::QueueSlots;
use super::settings::JobCopy;
use super::watch::{Advice, DepthSearch, SteadyWatch};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// An earlier phase is running, or `startdelay` has not elapsed.
    Waiting,
    Running,
    /// A pass is complete, and another will start when all outstanding I/Os have been reaped.
    BetweenPasses,
    /// Issues no new I/O and waits for the outstanding ones.
    Draining,
    /// The last fsync is in flight.
    LastSync,
    Finished,
}

/// State of a thread after it could issue.
pub(crate) enum IssueState {
    /// Waits for a completion (or for nothing).
    Completion,
    /// Must be called at this time.
    At(Time),
    /// The thread has ended.
    Finished,
}

/// Action of a thread in one round of its loop.
enum Step {
    Issue(Command),
    /// Issues a sync and waits for it.
    Sync(Command),
    Wait(IssueState),
}

/// A running copy of one job.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) index: u32,
    pub(crate) stage: Stage,
    pub(crate) started: Time,
    /// Time when statistics start.
    pub(crate) count_from: Time,
    pub(crate) ended: Time,
    /// End of `runtime`.
    pub(crate) until: Time,
    places: QueueSlots,
    free: Vec<CommandId>,
    mix: Mix,
    read_percent: u32,
    blocks: [Blocks; 3],
    offsets: Offsets,
    pub(crate) pace: [Option<Pacer>; 3],
    stream: Stream,
    /// Completions of a batch that is not yet full.
    pub(crate) held: Vec<Completion>,
    issued: u64,
    passes: Passes,
    limit: u64,
    /// Writes since the last sync, for the options `fsync` and `fdatasync`.
    writes_since_sync: [u32; 2],
    sync_in_flight: bool,
    completed: u64,
    pub(crate) pauses: Pauses,
    /// The write of a trim-and-write pair that is still due.
    trimmed: Option<(u64, u32)>,
    /// Index of the next recorded I/O.
    record: usize,
    /// I/Os by fio's depth classes.
    pub(crate) depths: [u64; 7],
    /// Search for a depth, if the job asks for one.
    search: Option<Box<DepthSearch>>,
    steady: Option<Box<SteadyWatch>>,
    /// Time when steady state was detected.
    pub(crate) steady_at: Option<Time>,
}

impl Thread {
    pub(crate) fn new(
        index: u32,
        settings: &JobCopy,
        job: &Job,
        first_id: CommandId,
        seed: u64,
    ) -> Thread {
        let name = format!("job {} copy {}", settings.job, settings.copy);
        let seed = job.randseed.unwrap_or(seed);
        let stream = |what: &str| Stream::new(seed, &format!("{name} {what}"));
        // One id more than the depth, for a sync.
        let free = (0..=settings.depth)
            .rev()
            .map(|slot| first_id + slot)
            .collect();
        Thread {
            index,
            stage: Stage::Waiting,
            started: Time::ZERO,
            count_from: Time::ZERO,
            ended: Time::ZERO,
            until: Time::NEVER,
            places: QueueSlots::new(job, settings.depth),
            free,
            mix: job.mix,
            read_percent: job.read_percent,
            blocks: std::array::from_fn(|d| Blocks::new(&job.block_sizes[d])),
            offsets: Offsets::new(
                job,
                settings.start,
                settings.len,
                settings.reach,
                settings.smallest,
                stream("offsets"),
            )
            .with_zones(job, settings.copy, settings.smallest),
            pace: [None, None, None],
            stream: stream("choices"),
            held: Vec::new(),
            issued: 0,
            passes: Passes::new(job.loops),
            limit: job.most_ios().unwrap_or(u64::MAX),
            writes_since_sync: [0; 2],
            sync_in_flight: false,
            completed: 0,
            pauses: Pauses::default(),
            trimmed: None,
            record: 0,
            depths: [0; 7],
            search: None,
            steady: None,
            steady_at: None,
        }
    }

    /// Starts to run at `now`.
    pub(crate) fn start(&mut self, now: Time, job: &Job) {
        self.stage = Stage::Running;
        self.started = now;
        self.ended = now;
        self.count_from = now + job.ramp_time;
        if let Some(runtime) = job.runtime {
            self.until = self.count_from + runtime;
        }
        self.pauses.begin(now);
        for (pace, rate) in self.pace.iter_mut().zip(job.rate) {
            *pace = rate.map(|rate| Pacer::new(rate, job.rate_process, now, self.count_from));
        }
        if let Some(target) = job.latency_target {
            let search = DepthSearch::new(target, self.places.depth(), self.count_from);
            self.places.change_depth(search.depth());
            self.search = Some(Box::new(search));
        }
        self.steady = job
            .steady_state
            .map(|criterion| Box::new(SteadyWatch::new(criterion, self.count_from)));
    }

    #[inline]
    pub(crate) fn reaps_batches(&self) -> bool {
        self.places.reaps_batches() || self.passes.reaps_all()
    }

    /// Checks whether the thread reaps the held completions. It waits for a batch only while its queue is full, or
    /// for all completions at the end of a pass.
    pub(crate) fn batch_is_full(&self) -> bool {
        let held = self.held.len() as u32;
        if self.passes.reaps_all() {
            return held >= self.places.in_flight();
        }
        self.places.refilling() || self.stage != Stage::Running || self.places.is_batch(held)
    }

    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.search.is_some() || self.steady.is_some()
    }

    /// Passes a completion to the depth search and the steady-state test.
    pub(crate) fn watch(&mut self, now: Time, slot: &InFlight, latency: Span) {
        let runs = matches!(self.stage, Stage::Running | Stage::BetweenPasses);
        if !runs || now < self.count_from {
            return;
        }
        let search = self.search.as_mut();
        let depth = search.map(|search| search.complete(now, slot.submitted, latency));
        let steady = self.steady.as_mut();
        let steadiness = steady.map(|steady| steady.complete(now, slot.bytes, latency));
        for advice in [depth, steadiness].into_iter().flatten() {
            match advice {
                Advice::Nothing => {}
                Advice::Depth(depth) => self.places.change_depth(depth),
                Advice::Found(_) => self.stage = Stage::Draining,
                Advice::Steady => {
                    self.steady_at = Some(now);
                    self.stage = Stage::Draining;
                }
            }
        }
    }

    /// Returns the depth that the search found; 0 if depth 1 does not meet the target.
    pub(crate) fn latency_depth(&self) -> Option<u32> {
        self.search.as_ref()?.found()
    }

    /// Returns the completed share of the thread's work, for progress.
    pub(crate) fn share(&self, now: Time, settings: &JobCopy, job: &Job) -> f64 {
        match self.stage {
            Stage::Waiting => 0.0,
            Stage::Finished => 1.0,
            _ => {
                let by_time = job.runtime.map_or(0.0, |_| {
                    now.since(self.started).seconds() / self.until.since(self.started).seconds()
                });
                let by_bytes = self.passes.share(settings.io_size, job.loops);
                let by_count = self.issued as f64 / self.limit as f64;
                let by_record = job
                    .records
                    .as_ref()
                    .map_or(0.0, |records| self.record as f64 / records.len() as f64);
                let work = if job.time_based || job.records.is_some() {
                    0.0
                } else {
                    by_bytes
                };
                by_time.max(work).max(by_count).max(by_record).min(1.0)
            }
        }
    }

    /// Processes a completion; returns whether the thread may have an I/O to issue.
    #[inline]
    pub(crate) fn complete(&mut self, now: Time, id: CommandId, kind: IoClass) -> bool {
        self.free.push(id);
        self.ended = now;
        if kind == IoClass::Sync {
            self.sync_in_flight = false;
            return true;
        }
        self.completed += 1;
        self.places.release()
    }

    /// Issues all I/Os that may start at `now`: nearly always one I/O, after a completion.
    #[inline(always)]
    pub(crate) fn issue(
        &mut self,
        now: Time,
        settings: &JobCopy,
        job: &Job,
        slots: &mut [InFlight],
        submit: &mut impl FnMut(Command),
    ) -> IssueState {
        // Inlined here and in `issue_more`: a command that is stored for a call and loaded at once stalls (decision
        // 0120).
        let mut in_batch = 0;
        match self.step(now, settings, job, slots, &mut in_batch) {
            Step::Issue(command) => submit(command),
            Step::Sync(flush) => {
                submit(flush);
                return IssueState::Completion;
            }
            Step::Wait(next) => return next,
        }
        if self.fills_up(settings, job) {
            return IssueState::Completion;
        }
        self.issue_more(now, settings, job, slots, in_batch, submit)
    }

    /// Checks whether the last issued I/O took the last free slot and was not the last of a pass or of all passes.
    /// The thread then waits for completions, as the next step would decide. Records end by their number, and may be
    /// flushes.
    #[inline]
    fn fills_up(&mut self, settings: &JobCopy, job: &Job) -> bool {
        debug_assert!(self.stage == Stage::Running && self.places.refilling());
        let last = self.issued >= self.limit || self.passes.is_over(settings.io_size);
        !last && job.records.is_none() && self.places.filled_up()
    }

    /// Continues to issue.
    #[inline(never)]
    fn issue_more(
        &mut self,
        now: Time,
        settings: &JobCopy,
        job: &Job,
        slots: &mut [InFlight],
        mut in_batch: u32,
        submit: &mut impl FnMut(Command),
    ) -> IssueState {
        loop {
            match self.step(now, settings, job, slots, &mut in_batch) {
                Step::Issue(command) => submit(command),
                Step::Sync(flush) => {
                    submit(flush);
                    return IssueState::Completion;
                }
                Step::Wait(next) => return next,
            }
        }
    }

    /// Decides what the thread issues next, or waits for.
    #[inline(always)]
    fn step(
        &mut self,
        now: Time,
        settings: &JobCopy,
        job: &Job,
        slots: &mut [InFlight],
        in_batch: &mut u32,
    ) -> Step {
        loop {
            if self.stage != Stage::Running {
                cold_path();
                let waits = self.places.in_flight() > 0 || self.sync_in_flight;
                if self.stage != Stage::BetweenPasses || waits {
                    return self.drain(now, job, slots);
                }
                self.stage = Stage::Running;
                self.places.refill();
                self.begin_pass(settings);
            }
            if self.ends(now, settings, job) {
                cold_path();
                self.stage = Stage::Draining;
                continue;
            }
            if self.stage == Stage::BetweenPasses {
                continue;
            }
            if self.sync_in_flight || !self.places.refilling() || self.places.filled_up() {
                return Step::Wait(IssueState::Completion);
            }
            // A sync needs a free slot, as every I/O in fio does: at depth 1 the write has completed.
            if self.sync_due(job) {
                return self.sync(now, slots);
            }
            if let Some(think) = &job.think
                && let Some(next) = self.think(now, think)
            {
                return Step::Wait(next);
            }
            let io = if job.records.is_some() {
                self.recorded(now, job)
            } else {
                self.generated(now)
            };
            return match io {
                Ok(io) => {
                    let batched = self.places.joins(in_batch);
                    self.command(now, io, batched, job, slots)
                }
                Err(due) => Step::Wait(IssueState::At(due)),
            };
        }
    }

    /// Checks whether the thread issues no more I/Os.
    #[inline]
    fn ends(&mut self, now: Time, settings: &JobCopy, job: &Job) -> bool {
        if now >= self.until || self.issued >= self.limit {
            return true;
        }
        if let Some(records) = &job.records {
            return self.record >= records.len();
        }
        if !self.passes.is_over(settings.io_size) || self.trimmed.is_some() {
            return false;
        }
        if job.time_based {
            self.begin_pass(settings);
            return false;
        }
        if self.passes.end(self.places.in_flight()) {
            return true;
        }
        self.stage = Stage::BetweenPasses;
        false
    }

    /// Starts another pass over the range.
    fn begin_pass(&mut self, settings: &JobCopy) {
        self.passes.begin();
        if settings.io_size >= settings.len {
            self.offsets.rewind(settings.smallest.map(u64::from));
        }
    }

    /// Handles the end of the job: waits for outstanding I/Os, then syncs if the job asks for it, then ends.
    fn drain(&mut self, now: Time, job: &Job, slots: &mut [InFlight]) -> Step {
        if self.places.in_flight() > 0 || self.sync_in_flight {
            return Step::Wait(IssueState::Completion);
        }
        match self.stage {
            Stage::Draining if job.end_fsync => {
                self.stage = Stage::LastSync;
                self.sync(now, slots)
            }
            Stage::Draining | Stage::LastSync => {
                self.stage = Stage::Finished;
                Step::Wait(IssueState::Finished)
            }
            Stage::Waiting | Stage::Running | Stage::BetweenPasses | Stage::Finished => {
                Step::Wait(IssueState::Completion)
            }
        }
    }

    #[inline]
    fn sync_due(&self, job: &Job) -> bool {
        (job.fsync > 0 && self.writes_since_sync[0] >= job.fsync)
            || (job.fdatasync > 0 && self.writes_since_sync[1] >= job.fdatasync)
    }

    /// Counts a sync as outstanding, and returns its command.
    fn sync(&mut self, now: Time, slots: &mut [InFlight]) -> Step {
        let Some(id) = self.free.pop() else {
            return Step::Wait(IssueState::Completion);
        };
        self.writes_since_sync = [0; 2];
        self.sync_in_flight = true;
        slots[id as usize] = InFlight {
            thread: self.index,
            bytes: 0,
            kind: IoClass::Sync,
            submitted: now,
        };
        let mut command = Command::flush(id);
        command.queue = self.index as u16;
        Step::Sync(command)
    }

    /// Returns the pause that is due; `None` if the thread may continue.
    fn think(&mut self, now: Time, think: &ThinkTime) -> Option<IssueState> {
        let blocks = match think.by_issue {
            true => self.issued,
            false => self.completed,
        };
        let in_flight = self.places.in_flight();
        let pause = self.pauses.pause(now, think, blocks, in_flight)?;
        Some(match pause {
            Pause::Until(at) => IssueState::At(at),
            Pause::Quiesce => {
                self.places.refill();
                IssueState::Completion
            }
        })
    }

    /// Returns the next recorded I/O, or its due time.
    fn recorded(&mut self, now: Time, job: &Job) -> Result<(Op, u64, u32), Time> {
        let Some(record) = job
            .records
            .as_ref()
            .and_then(|records| records.get(self.record))
        else {
            return Err(Time::NEVER);
        };
        if let Some(log) = &job.iolog
            && !log.no_stall
        {
            let scaled = u128::from(record.at.ns()) * 100 / u128::from(log.time_scale.max(1));
            let due = self.started + Span::from_ns(u64::try_from(scaled).unwrap_or(u64::MAX / 2));
            if due > now {
                return Err(due);
            }
        }
        self.record += 1;
        Ok((record.op, record.offset, record.bytes))
    }

    /// Returns the next generated I/O, or its due time.
    #[inline(always)]
    fn generated(&mut self, now: Time) -> Result<(Op, u64, u32), Time> {
        if let Some((offset, bytes)) = self.trimmed {
            // The rate limit applies to the pair.
            self.trimmed = None;
            return Ok((Op::Write, offset, bytes));
        }
        let mut direction = match self.mix {
            Mix::Read => Direction::Read,
            Mix::Write => Direction::Write,
            Mix::Trim | Mix::TrimWrite => Direction::Trim,
            Mix::ReadWrite => {
                if self.stream.uniform_below(100) < u64::from(self.read_percent) {
                    Direction::Read
                } else {
                    Direction::Write
                }
            }
        };
        if let Some(pace) = &self.pace[direction as usize]
            && pace.due() > now
        {
            direction = self.instead(direction, now)?;
        }
        let d = direction as usize;
        let asked = self.blocks[d].draw(&mut self.stream);
        let (offset, bytes) = self.offsets.next(direction, asked);
        if let Some(pace) = &mut self.pace[d] {
            pace.issue(bytes, &mut self.stream);
        }
        let op = match direction {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
            Direction::Trim => {
                if self.mix == Mix::TrimWrite {
                    self.trimmed = Some((offset, bytes));
                }
                Op::Deallocate
            }
        };
        Ok((op, offset, bytes))
    }

    /// `direction` is ahead of its rate. Returns the other direction if it is behind its rate or has no limit;
    /// otherwise the earliest due time.
    fn instead(&self, direction: Direction, now: Time) -> Result<Direction, Time> {
        let due = |direction: Direction| self.pace[direction as usize].as_ref().map(Pacer::due);
        let mine = due(direction).unwrap_or(now);
        let other = match (self.mix, direction) {
            (Mix::ReadWrite, Direction::Read) if self.read_percent < 100 => Direction::Write,
            (Mix::ReadWrite, Direction::Write) if self.read_percent > 0 => Direction::Read,
            _ => return Err(mine),
        };
        match due(other) {
            Some(theirs) if theirs <= now => Ok(other),
            Some(theirs) => Err(theirs.min(mine)),
            None => Ok(other),
        }
    }

    /// Counts an I/O as outstanding, and returns its command.
    #[inline(always)]
    fn command(
        &mut self,
        now: Time,
        (op, offset, bytes): (Op, u64, u32),
        batched: bool,
        job: &Job,
        slots: &mut [InFlight],
    ) -> Step {
        let Some(id) = self.free.pop() else {
            return Step::Wait(IssueState::Completion);
        };
        self.issued += 1;
        self.passes.issue(bytes);
        if op == Op::Flush {
            self.sync_in_flight = true;
        } else {
            self.places.take();
        }
        if op == Op::Write {
            self.writes_since_sync[0] += 1;
            self.writes_since_sync[1] += 1;
        }
        let class = (u32::BITS - 1 - self.places.in_flight().max(1).leading_zeros()).min(6);
        self.depths[class as usize] += 1;
        slots[id as usize] = InFlight {
            thread: self.index,
            bytes,
            kind: IoClass::from_op(op),
            submitted: now,
        };
        let (offset, bytes) = match job.whole_pages {
            true => whole_pages(offset, bytes),
            false => (offset, bytes),
        };
        let op = commands::sent_op(op, &job.write_modes, &mut self.stream);
        Step::Issue(Command {
            id,
            op,
            fua: op == Op::Write && job.sync != SyncMode::None,
            queue: self.index as u16,
            high_priority: job.high_priority,
            batched,
            offset,
            bytes,
            payload: Payload::default(),
        })
    }
}
