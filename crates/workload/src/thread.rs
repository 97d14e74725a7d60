//! One job thread: which I/O it issues next, and when it may.
//!
//! The order of decisions is fio's: end of the run, due sync, depth, think time, direction, pace, size, offset.

use core::hint::cold_path;

use model::{Command, CommandId, Completion, Op, Payload, Span, Stream, Time};

use super::blocks::Blocks;
use super::in_flight::{Counted, InFlight};
use super::job::{Direction, Job, Mix, SyncMode, ThinkTime, whole_pages};
use super::offsets::Offsets;
use super::pacing::Pacer;
use super::passes::Passes;
use super::pauses::{Pause, Pauses};
use super::places::Places;
use super::settings::JobCopy;
use super::watch::{Advice, DepthSearch, SteadyWatch};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// An earlier phase runs, or `startdelay` has not passed.
    Waiting,
    Running,
    /// The range has been covered and will be again, when all I/Os in flight have been reaped.
    BetweenPasses,
    /// No new I/O; those in flight are awaited.
    Draining,
    /// The last fsync is in flight.
    LastSync,
    Finished,
}

/// What a thread says after it was let issue.
pub(crate) enum Next {
    /// It waits for a completion (or for nothing).
    Completion,
    /// It wants to be called at this time.
    At(Time),
    /// It has ended.
    Finished,
}

/// What a thread does in one round of its loop.
enum Step {
    /// Issues an I/O.
    Issue(Command),
    /// Issues a sync, and waits for it.
    Sync(Command),
    /// Issues nothing.
    Wait(Next),
}

/// One copy of a job at work.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) index: u32,
    pub(crate) stage: Stage,
    pub(crate) started: Time,
    /// When statistics begin.
    pub(crate) count_from: Time,
    pub(crate) ended: Time,
    /// End of `runtime`.
    until: Time,
    places: Places,
    free: Vec<CommandId>,
    mix: Mix,
    read_percent: u32,
    blocks: [Blocks; 3],
    offsets: Offsets,
    pace: [Option<Pacer>; 3],
    stream: Stream,
    /// Completions of a batch that is not full.
    pub(crate) held: Vec<Completion>,
    /// I/Os issued.
    issued: u64,
    passes: Passes,
    limit: u64,
    /// Syncs.
    writes_since_sync: [u32; 2],
    sync_in_flight: bool,
    /// I/Os completed.
    completed: u64,
    pub(crate) pauses: Pauses,
    /// The second half of a trim and write.
    trimmed: Option<(u64, u32)>,
    /// Next of the recorded I/Os.
    record: usize,
    /// Depth classes of fio.
    pub(crate) depths: [u64; 7],
    /// What looks on, if anything does.
    search: Option<Box<DepthSearch>>,
    steady: Option<Box<SteadyWatch>>,
    /// When it was found to be steady.
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
            places: Places::new(job, settings.depth),
            free,
            mix: job.mix,
            read_percent: job.read_percent,
            blocks: std::array::from_fn(|d| Blocks::new(&job.block_sizes[d])),
            offsets: Offsets::new(
                job,
                settings.start,
                settings.len,
                settings.smallest,
                stream("offsets"),
            ),
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

    /// Begins to run.
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
            *pace = rate.map(|rate| Pacer::new(rate, job.rate_process, now));
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

    /// Whether the thread looks at the completions held: it waits for a batch only while its queue is full, or at the end
    /// of a pass for all.
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

    /// Shows a completion to what looks on.
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

    /// The depth that the search found; 0 if not even 1 meets the target.
    pub(crate) fn latency_depth(&self) -> Option<u32> {
        self.search.as_ref()?.found()
    }

    /// Share of its work done, for progress.
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

    /// Takes a completion; says whether the thread may have something to issue.
    #[inline]
    pub(crate) fn complete(&mut self, now: Time, id: CommandId, kind: Counted) -> bool {
        self.free.push(id);
        self.ended = now;
        if kind == Counted::Sync {
            self.sync_in_flight = false;
            return true;
        }
        self.completed += 1;
        self.places.release()
    }

    /// Issues what it may at `now`: nearly always one I/O, after one has completed.
    #[inline(always)]
    pub(crate) fn issue(
        &mut self,
        now: Time,
        settings: &JobCopy,
        job: &Job,
        slots: &mut [InFlight],
        submit: &mut impl FnMut(Command),
    ) -> Next {
        // Inlined here and in `issue_more`: a command stored for a call and loaded at once stalls (decision 0120).
        let mut in_batch = 0;
        match self.step(now, settings, job, slots, &mut in_batch) {
            Step::Issue(command) => submit(command),
            Step::Sync(flush) => {
                submit(flush);
                return Next::Completion;
            }
            Step::Wait(next) => return next,
        }
        if self.fills_up(settings, job) {
            return Next::Completion;
        }
        self.issue_more(now, settings, job, slots, in_batch, submit)
    }

    /// Whether the I/O just issued took the last place of the depth, and was not the last of a pass or of all: then the
    /// thread waits for completions, as the next step would say. Records end by their number, and may be flushes.
    #[inline]
    fn fills_up(&mut self, settings: &JobCopy, job: &Job) -> bool {
        debug_assert!(self.stage == Stage::Running && self.places.refilling());
        let last = self.issued >= self.limit || self.passes.is_over(settings.io_size);
        !last && job.records.is_none() && self.places.filled_up()
    }

    /// Goes on to issue.
    #[inline(never)]
    fn issue_more(
        &mut self,
        now: Time,
        settings: &JobCopy,
        job: &Job,
        slots: &mut [InFlight],
        mut in_batch: u32,
        submit: &mut impl FnMut(Command),
    ) -> Next {
        loop {
            match self.step(now, settings, job, slots, &mut in_batch) {
                Step::Issue(command) => submit(command),
                Step::Sync(flush) => {
                    submit(flush);
                    return Next::Completion;
                }
                Step::Wait(next) => return next,
            }
        }
    }

    /// Decides on what it issues next, or waits for.
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
                return Step::Wait(Next::Completion);
            }
            // As every I/O of fio's it needs a place in the depth: at depth 1 the write has completed.
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
                Err(due) => Step::Wait(Next::At(due)),
            };
        }
    }

    /// Whether nothing more is to be issued.
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

    /// Goes over the range from its beginning.
    fn begin_pass(&mut self, settings: &JobCopy) {
        self.passes.begin();
        if settings.io_size >= settings.len {
            self.offsets.rewind(settings.smallest.map(u64::from));
        }
    }

    /// After the last I/O: waits, syncs if asked, ends.
    fn drain(&mut self, now: Time, job: &Job, slots: &mut [InFlight]) -> Step {
        if self.places.in_flight() > 0 || self.sync_in_flight {
            return Step::Wait(Next::Completion);
        }
        match self.stage {
            Stage::Draining if job.end_fsync => {
                self.stage = Stage::LastSync;
                self.sync(now, slots)
            }
            Stage::Draining | Stage::LastSync => {
                self.stage = Stage::Finished;
                Step::Wait(Next::Finished)
            }
            Stage::Waiting | Stage::Running | Stage::BetweenPasses | Stage::Finished => {
                Step::Wait(Next::Completion)
            }
        }
    }

    #[inline]
    fn sync_due(&self, job: &Job) -> bool {
        (job.fsync > 0 && self.writes_since_sync[0] >= job.fsync)
            || (job.fdatasync > 0 && self.writes_since_sync[1] >= job.fdatasync)
    }

    /// Counts a sync as in flight, and makes its command.
    fn sync(&mut self, now: Time, slots: &mut [InFlight]) -> Step {
        let Some(id) = self.free.pop() else {
            return Step::Wait(Next::Completion);
        };
        self.writes_since_sync = [0; 2];
        self.sync_in_flight = true;
        slots[id as usize] = InFlight {
            thread: self.index,
            bytes: 0,
            kind: Counted::Sync,
            submitted: now,
        };
        let mut command = Command::flush(id);
        command.queue = self.index as u16;
        Step::Sync(command)
    }

    /// Pauses when it is time to; `None` if the thread may go on.
    fn think(&mut self, now: Time, think: &ThinkTime) -> Option<Next> {
        let blocks = match think.by_issue {
            true => self.issued,
            false => self.completed,
        };
        let in_flight = self.places.in_flight();
        let pause = self.pauses.pause(now, think, blocks, in_flight)?;
        Some(match pause {
            Pause::Until(at) => Next::At(at),
            Pause::Quiesce => {
                self.places.refill();
                Next::Completion
            }
        })
    }

    /// The next recorded I/O, or when it is due.
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

    /// The next I/O of the job's own making, or when it is due.
    #[inline(always)]
    fn generated(&mut self, now: Time) -> Result<(Op, u64, u32), Time> {
        if let Some((offset, bytes)) = self.trimmed {
            // Pace applies to the pair.
            self.trimmed = None;
            return Ok((Op::Write, offset, bytes));
        }
        let mut direction = match self.mix {
            Mix::Read => Direction::Read,
            Mix::Write => Direction::Write,
            Mix::Trim | Mix::TrimWrite => Direction::Trim,
            Mix::ReadWrite => {
                if self.stream.below(100) < u64::from(self.read_percent) {
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

    /// `direction` is ahead of its pace: the other one if that is behind its own, or has none, or when the first is due.
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

    /// Counts an I/O as in flight, and makes its command.
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
            return Step::Wait(Next::Completion);
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
            kind: Counted::of(op),
            submitted: now,
        };
        let (offset, bytes) = if job.whole_pages {
            whole_pages(offset, bytes)
        } else {
            (offset, bytes)
        };
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
