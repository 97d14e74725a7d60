//! All jobs of a run as one [`model::engine::Workload`]: phases separated by stonewalls, their threads, and the
//! results of each thread.
//!
//! Threads with a completion are due at once and wait in a list. The queue of timed events holds only starts,
//! rate-limited I/Os and pauses, so a closed loop never uses it.
//!
//! Threads of a phase start one after another, at most [`START_GAP`] apart: fio wakes each thread when all have been
//! created, and each thread then opens its files and allocates its buffers. Threads that started at the same
//! nanosecond would issue rate-limited I/Os at the same nanoseconds forever
//! (`docs/decisions/0108-latency-accounting.md`).

use core::hint::cold_path;

use model::engine::{EventQueue, Workload};
use model::{Capacity, Command, Completion, Part, Span, Stream, Time};

use super::in_flight::{InFlight, IoClass};
use super::job::Job;
use super::pacing::arrived;
use super::settings::{JobCopy, resolve};
use super::thread::{IssueState, Stage, Thread};
use statistics::{Measured, ThreadOutcome};
use text::problem::Problems;

/// Maximum gap between the starts of two consecutive threads; gaps are uniformly distributed up to this value.
const START_GAP: Span = Span::from_us(100);

/// Returns each thread's start delay after the first thread of its phase.
fn lags(settings: &[JobCopy], seed: u64) -> Vec<Span> {
    let mut random = Stream::new(seed, "thread starts");
    let (mut phase, mut lag) = (None, Span::ZERO);
    settings
        .iter()
        .map(|one| {
            let gap = Span::from_ns(random.uniform_below(START_GAP.ns()));
            lag = if phase == Some(one.phase) {
                lag + gap
            } else {
                Span::ZERO
            };
            phase = Some(one.phase);
            lag
        })
        .collect()
}

/// A thread with its settings and results.
#[derive(Clone, Debug)]
struct JobThread<'a> {
    job: &'a Job,
    settings: JobCopy,
    /// Delay of the start after its phase and its `startdelay`.
    lag: Span,
    thread: Thread,
    /// Results for reads, writes, trims, syncs.
    measured: [Measured; 4],
    /// Submission time beyond the part in the latency breakdown, if it is reported separately (asynchronous engines).
    submission: Option<Span>,
    /// Whether the thread is in the list of threads that are due at once.
    is_ready: bool,
    /// Due time of its timer.
    armed: Time,
}

/// The running jobs of a plan.
#[derive(Clone, Debug)]
pub struct Jobs<'a> {
    threads: Vec<JobThread<'a>>,
    slots: Vec<InFlight>,
    ready: Vec<u32>,
    ready_at: Time,
    timers: EventQueue,
    phase: u32,
    running: u32,
    series_every: Span,
}

impl<'a> Jobs<'a> {
    /// Creates jobs on a drive of this capacity; the first thread starts at [`Time::ZERO`]. `series_every` is the
    /// interval of [`Measured::series`]; zero means no series.
    ///
    /// # Errors
    /// Everything that does not fit, for all jobs.
    pub fn new(
        jobs: &'a [Job],
        capacity: Capacity,
        seed: u64,
        series_every: Span,
    ) -> Result<Jobs<'a>, Problems> {
        let settings = resolve(jobs, capacity)?;
        let lags = lags(&settings, seed);
        let count = settings.len();
        let mut threads = Vec::with_capacity(count);
        let mut next_id = 0;
        for (settings, lag) in settings.into_iter().zip(lags) {
            let job = &jobs[settings.job];
            let index = threads.len() as u32;
            let thread = Thread::new(index, &settings, job, next_id, seed);
            next_id += settings.depth + 1;
            threads.push(JobThread {
                job,
                settings,
                lag,
                thread,
                measured: Default::default(),
                submission: job.engine.asynchronous().then_some(Span::ZERO),
                is_ready: false,
                armed: Time::NEVER,
            });
        }
        let mut all = Jobs {
            threads,
            slots: vec![InFlight::default(); next_id as usize],
            ready: Vec::with_capacity(count),
            ready_at: Time::ZERO,
            timers: EventQueue::with_capacity(count * 2),
            phase: 0,
            running: 0,
            series_every,
        };
        all.start_phase(Time::ZERO);
        Ok(all)
    }

    /// Includes the work of a job's thread after the doorbell in submission latency, as fio does; the drive works
    /// during this time. Applies to all later [`Measured`] results. Without this call, submission latency ends at the
    /// doorbell.
    pub fn with_after_doorbell(mut self, after: impl Fn(&Job) -> Span) -> Jobs<'a> {
        for one in &mut self.threads {
            if let Some(submission) = &mut one.submission {
                *submission = after(one.job);
            }
        }
        self
    }

    /// Returns the job of each thread.
    pub fn threads(&self) -> impl Iterator<Item = &'a Job> {
        self.threads.iter().map(|one| one.job)
    }

    /// Returns the copies of jobs that the threads run: the index of each copy in its job, and the job.
    pub fn copies(&self) -> impl Iterator<Item = (u32, &'a Job)> {
        self.threads.iter().map(|one| (one.settings.copy, one.job))
    }

    /// Returns the range of each thread on the drive: its first byte, and the byte after its last.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let settings = self.threads.iter().map(|one| &one.settings);
        settings.map(|it| (it.start, it.start + it.len))
    }

    /// Returns an upper bound of command ids (exclusive).
    pub fn ids(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns the time when the first thread starts to count.
    pub fn counts_from(&self) -> Time {
        self.threads
            .iter()
            .filter(|one| one.settings.phase == 0)
            .map(|one| Time::ZERO + one.job.startdelay + one.lag + one.job.ramp_time)
            .min()
            .unwrap_or(Time::ZERO)
    }

    /// Returns the completed share of the work, 0 to 1.
    pub fn share(&self, now: Time) -> f64 {
        let share = |one: &JobThread| one.thread.share(now, &one.settings, one.job);
        let sum: f64 = self.threads.iter().map(share).sum();
        sum / self.threads.len() as f64
    }

    fn start_phase(&mut self, now: Time) {
        for (index, one) in (0..).zip(&mut self.threads) {
            if one.settings.phase == self.phase {
                one.armed = now + one.job.startdelay + one.lag;
                self.running += 1;
                self.timers.push(one.armed, index);
            }
        }
    }

    #[inline]
    fn call(&mut self, index: u32, now: Time, submit: &mut impl FnMut(Command)) {
        let one = &mut self.threads[index as usize];
        one.is_ready = false;
        let (thread, settings, job) = (&mut one.thread, &one.settings, one.job);
        if thread.stage == Stage::Waiting {
            cold_path();
            thread.start(now, job);
        }
        match thread.issue(now, settings, job, &mut self.slots, submit) {
            IssueState::Completion => {}
            IssueState::At(at) => {
                if one.armed != at {
                    one.armed = at;
                    self.timers.push(at, index);
                }
            }
            IssueState::Finished => {
                self.running -= 1;
                if self.running == 0 {
                    self.phase += 1;
                    self.start_phase(now);
                }
            }
        }
    }

    /// Processes a completion that the thread has reaped.
    #[inline(always)]
    fn take(&mut self, now: Time, completion: &Completion, slot: InFlight) {
        let one = &mut self.threads[slot.thread as usize];
        let thread = &mut one.thread;
        let anatomy = &completion.anatomy;
        let latency = now - slot.submitted - anatomy.get(Part::ThreadBusy);
        debug_assert_eq!(anatomy.total(), now.since(slot.submitted));
        if now >= thread.count_from {
            let before = anatomy.get(Part::HostSubmission);
            let submission = one.submission.map(|after| (before + after).min(latency));
            one.measured[slot.kind as usize].count(
                completion,
                slot.bytes,
                latency,
                submission,
                self.series_every,
            );
        }
        if thread.is_watched() && slot.kind != IoClass::Sync {
            cold_path();
            thread.watch(now, &slot, latency);
        }
        if thread.complete(now, completion.id, slot.kind) {
            self.make_ready(slot.thread, now);
        }
    }

    #[inline]
    fn make_ready(&mut self, index: u32, now: Time) {
        self.ready_at = now;
        let one = &mut self.threads[index as usize];
        if !one.is_ready {
            one.is_ready = true;
            self.ready.push(index);
        }
    }

    /// Returns the result of each thread, in the order of jobs and copies.
    pub fn outcomes(self) -> Vec<ThreadOutcome> {
        self.threads
            .into_iter()
            .map(|one| {
                let thread = one.thread;
                let over = thread.ended.since(thread.count_from);
                let [read, write, trim, sync] = one.measured.map(|mut measured| {
                    measured.from = thread.count_from;
                    measured.over = over;
                    measured
                });
                ThreadOutcome {
                    job: one.settings.job,
                    copy: one.settings.copy,
                    group: one.settings.group,
                    started: thread.started,
                    ended: thread.ended,
                    read,
                    write,
                    trim,
                    sync,
                    depths: thread.depths,
                    cpu: [thread.pauses.spun, Span::ZERO],
                    latency_depth: thread.latency_depth(),
                    steady_at: thread.steady_at,
                    arrived: arrived(&thread.pace, thread.count_from, thread.until, thread.ended),
                }
            })
            .collect()
    }
}

impl Workload for Jobs<'_> {
    #[inline]
    fn next_arrival(&self) -> Time {
        if self.ready.is_empty() {
            self.timers.next()
        } else {
            self.ready_at
        }
    }

    #[inline]
    fn arrive(&mut self, now: Time, submit: &mut impl FnMut(Command)) {
        loop {
            while let Some(index) = self.timers.pop_due(now) {
                let armed = &mut self.threads[index as usize].armed;
                if *armed == now {
                    *armed = Time::NEVER;
                    self.make_ready(index, now);
                }
            }
            let mut next = 0;
            while next < self.ready.len() {
                let index = self.ready[next];
                next += 1;
                self.call(index, now, submit);
            }
            self.ready.clear();
            // A stonewall may have started the next phase at this time.
            if self.timers.next() != now {
                return;
            }
        }
    }

    #[inline(always)]
    fn complete(&mut self, now: Time, completion: &Completion) {
        let slot = self.slots[completion.id as usize];
        let thread = &mut self.threads[slot.thread as usize].thread;
        if !thread.reaps_batches() || slot.kind == IoClass::Sync {
            self.take(now, completion, slot);
            return;
        }
        cold_path();
        // The thread sleeps until the batch is full, and then sees all completions at once.
        thread.held.push(*completion);
        if thread.batch_is_full() {
            let mut held = std::mem::take(&mut thread.held);
            for mut completion in held.drain(..) {
                let slot = self.slots[completion.id as usize];
                let waited = now.since(completion.at);
                completion.anatomy.add(Part::HostCompletion, waited);
                completion.at = now;
                self.take(now, &completion, slot);
            }
            self.threads[slot.thread as usize].thread.held = held;
        }
    }

    #[inline]
    fn finished(&self) -> bool {
        self.running == 0
    }
}
