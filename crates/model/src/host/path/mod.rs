//! A host around a device: the work of its cores for the commands of its threads, down to the device (`down`) and up
//! again (`up`).
//!
//! Each part with state has its own module, and none of these modules depends on another:
//! * `thread`: job threads
//! * `cores`: the cores in use
//! * `shares`: the order of threads that share a core
//! * `queues`: the queues that cores share
//! * `helpers`: helper threads
//! * `kernel_threads`: kernel threads that poll submission queues
//! * `guest`: a guest and its monitor
//! * `polling`: mean times for hybrid polling
//! * `timer`: timed events other than the end of a core's work
//! * `super::bridge`: a PCIe switch, and the link between two sockets

mod cores;
mod down;
mod guest;
mod helpers;
mod kernel_threads;
mod polling;
mod queues;
mod shares;
mod thread;
mod timer;
mod up;

use alloc::vec::Vec;
use core::hint::cold_path;

use self::cores::HostCores;
use self::guest::Guest;
use self::helpers::Helpers;
use self::kernel_threads::KernelThreads;
use self::polling::MeanTimes;
use self::queues::Queues;
use self::thread::{HostThread, SubmissionPath};
use self::timer::Timer;
use super::bridge::Crossings;
use super::coalescing::Coalescing;
use super::config::{CompletionMode, HostConfig, ThreadConfig, exit_latency};
use super::core::{Core, CoreWork, NOBODY};
use super::files::PageCacheConfig;
use crate::anatomy::Anatomy;
use crate::command::{Command, CommandId, Completion, Status};
use crate::device::{Capacity, Device, Gauge, Gauges, Range};
use crate::engine::TypedEventQueue;
use crate::random::Stream;
use crate::time::{Span, Time};

/// State of an outstanding command.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    command: Command,
    to: CompletionTarget,
    submitted: Time,
    /// When the thread began to issue it.
    issued: Time,
    /// Time spent in locks and helpers' queues.
    queued: Span,
    /// Time spent in the bridge, and between sockets, on the way down.
    bridged: Span,
    /// When the drive received the command; later, when polling begins.
    below: Time,
    poll_from: Time,
    /// The completion: the drive's, or the system's for a flush that ends there.
    answer: Completion,
}

/// The receiver of a command's completion, and how it waits.
#[derive(Clone, Copy, Debug)]
struct CompletionTarget {
    thread: u16,
    /// The thread's core, and the path by which its commands reach the system.
    core: u16,
    way: SubmissionPath,
    mode: CompletionMode,
}

/// A host in front of a device. `Command::queue` names the thread that issues it; ids pass through.
#[derive(Clone, Debug)]
pub struct HostPath<D> {
    device: D,
    config: HostConfig,
    threads: Vec<HostThread>,
    cores: HostCores,
    queues: Queues,
    helpers: Helpers,
    kernel_threads: KernelThreads,
    guest: Guest,
    learnt: MeanTimes,
    timers: TypedEventQueue<(Timer, CommandId)>,
    crossings: Crossings,
    /// Whether commands of any thread cross a bridge or the link between sockets.
    crosses: bool,
    /// Commands by id.
    outstanding: Vec<Outstanding>,
    /// Completions of the drive at one time; kept to reuse its memory.
    below: Vec<Completion>,
    /// The earliest next event of the drive, the cores and the timers.
    next: Time,
    /// Next event of the drive, updated whenever it may have changed.
    device_next: Time,
}

/// Returns how many commands the helpers of each thread may take; 0 if it has none.
fn helpers_of(threads: &[HostThread]) -> impl Iterator<Item = u16> {
    threads.iter().map(|thread| thread.costs.helpers)
}

impl<D: Device> HostPath<D> {
    /// Puts a host with these threads in front of `device` (one default thread if there are none); `seed` feeds its
    /// scheduler noise.
    pub fn new(config: HostConfig, threads: &[ThreadConfig], seed: u64, device: D) -> HostPath<D> {
        let default = [ThreadConfig::default()];
        let threads = if threads.is_empty() {
            &default
        } else {
            threads
        };
        let core_of = |thread: &ThreadConfig| {
            let cores = config.cores.max(1);
            thread.core % cores + thread.socket * cores
        };
        let mut used: Vec<u16> = threads.iter().map(core_of).collect();
        used.sort_unstable();
        used.dedup();
        let index_of = |core: u16| used.partition_point(|&other| other < core) as u16;
        let threads: Vec<HostThread> = threads
            .iter()
            .map(|thread| HostThread::new(thread, index_of(core_of(thread)), &config))
            .collect();
        let new_core = |&core: &u16| {
            let stream = Stream::numbered(seed, "host noise", u64::from(core));
            Core::new(config.noise, stream)
        };
        let mut cores: Vec<Core> = used.iter().map(new_core).collect();
        for (index, core) in cores.iter_mut().enumerate() {
            let own = |thread: &&HostThread| usize::from(thread.core) == index;
            core.shared = threads.iter().filter(own).count() > 1;
        }
        let monitor = config.hypervisor.as_ref();
        if let Some(monitor) = monitor {
            cores.push(Core::new(monitor.noise, Stream::new(seed, "monitor noise")));
        }
        let coalescing = Coalescing::new(monitor.map_or(0, |monitor| monitor.coalesce_from));
        let mut host = HostPath {
            device,
            cores: HostCores::new(cores),
            queues: Queues::new(&used, &config),
            helpers: Helpers::new(helpers_of(&threads)),
            kernel_threads: KernelThreads::new(
                threads
                    .iter()
                    .map(|thread| thread.way == SubmissionPath::KernelThread),
            ),
            guest: Guest::new(coalescing),
            learnt: MeanTimes::new(threads.len()),
            timers: TypedEventQueue::default(),
            crossings: Crossings::default(),
            crosses: config.bridge.is_some() || threads.iter().any(HostThread::crosses_link),
            outstanding: Vec::new(),
            below: Vec::new(),
            next: Time::NEVER,
            device_next: Time::NEVER,
            threads,
            config,
        };
        host.device_next = host.device.next_event();
        host.next = host.earliest();
        host
    }

    /// Direct I/O of a thread is to a file: each submission looks up its extent map, which takes `takes`.
    pub(in crate::host) fn opens_file(&mut self, thread: usize, takes: Span) {
        self.threads[thread].opens_file(takes);
    }

    /// Returns the CPU time of a thread in user and system mode.
    pub fn cpu(&self, thread: usize) -> [Span; 2] {
        self.threads[thread].cpu
    }

    /// Whether the drive has no volatile cache, so that flushes end in the system.
    pub fn is_write_through(&self) -> bool {
        self.config.write_through
    }

    /// Returns memory and limits of the page cache, if they are known.
    pub(in crate::host) fn page_cache(&self) -> Option<PageCacheConfig> {
        self.config.page_cache
    }

    /// Returns the device behind the host.
    pub fn device(&self) -> &D {
        &self.device
    }

    #[inline]
    fn earliest(&self) -> Time {
        self.device_next
            .min(self.cores.soonest())
            .min(self.timers.next())
    }

    /// Allocates state for an id that was never used before.
    #[cold]
    fn grow(&mut self, id: CommandId) {
        let unused = Outstanding {
            command: Command::flush(0),
            to: CompletionTarget {
                thread: 0,
                core: 0,
                way: SubmissionPath::Direct,
                mode: CompletionMode::Interrupt,
            },
            submitted: Time::ZERO,
            issued: Time::ZERO,
            queued: Span::ZERO,
            bridged: Span::ZERO,
            below: Time::ZERO,
            poll_from: Time::ZERO,
            answer: Completion {
                id: 0,
                at: Time::ZERO,
                status: Status::Success,
                anatomy: Anatomy::ZERO,
            },
        };
        self.outstanding.resize(id as usize + 1, unused);
    }

    #[inline]
    fn thread(&self, thread: u16) -> &HostThread {
        &self.threads[usize::from(thread)]
    }

    #[inline]
    fn charge(&mut self, thread: u16, mode: usize, span: Span) {
        self.threads[usize::from(thread)].cpu[mode] += span;
    }

    // The path of nearly all events is compiled into `advance` without calls; rarer paths are called (decision 0120).

    /// A core's piece of work has ended: applies its effect, and the core continues.
    #[inline(always)]
    fn work_ended(&mut self, core: usize, now: Time, done: &mut Vec<Completion>) {
        if !self.finish(core, now, done) && self.begin_next(core, now) {
            cold_path();
            self.run_core(core, now, done, true);
        }
    }

    /// An idle core (or one whose piece of work has `ended`, taking no time) starts its next piece, until one takes
    /// time or there is none.
    #[inline(never)]
    fn run_core(&mut self, core: usize, now: Time, done: &mut Vec<Completion>, mut ended: bool) {
        loop {
            if ended && self.finish(core, now, done) {
                return;
            }
            if !self.begin_next(core, now) {
                return;
            }
            ended = true;
        }
    }

    /// Starts the next piece of work of a core; returns whether it has already ended.
    #[inline(always)]
    fn begin_next(&mut self, core: usize, now: Time) -> bool {
        let state = &mut self.cores[core];
        if let Some(id) = state.completions.first_announced() {
            self.begin_announced(core, now, id)
        } else if let Some(id) = state.to_submit.pop_front() {
            self.begin_submit(core, now, id)
        } else if let Some(id) = state.completions.reap() {
            self.leaves_queue(core, id);
            self.begin_reap(core, now, id, Span::ZERO)
        } else if self.goes_to_sleep(core) {
            self.cores[core].thread = NOBODY;
            self.cores
                .begin(core, now, CoreWork::Sleep, self.config.switch)
        } else {
            self.cores.rest(core, now);
            false
        }
    }

    /// Whether the core ran a thread that now sleeps: the core switches away from it, while the drive works.
    #[inline]
    fn goes_to_sleep(&self, core: usize) -> bool {
        let thread = self.cores[core].thread;
        thread != NOBODY && self.threads[usize::from(thread)].sleeps
    }

    #[inline(always)]
    fn begin_submit(&mut self, core: usize, now: Time, id: CommandId) -> bool {
        if self.is_monitor(core) {
            cold_path();
            let down = self.carry_down(&self.outstanding[id as usize].command);
            return self.cores.begin(core, now, CoreWork::Down(id), down);
        }
        let outstanding = &mut self.outstanding[id as usize];
        let thread = outstanding.to.thread;
        let state = &mut self.cores[core];
        let switch = if state.thread == thread || state.thread == NOBODY {
            Span::ZERO
        } else {
            self.config.switch
        };
        state.thread = thread;
        // Delays of the thread before it issues are not part of fio's latencies.
        let before = state.free_at(now) - now + switch;
        outstanding.issued = now + before;
        let command = &outstanding.command;
        let thread = &mut self.threads[usize::from(thread)];
        let service = thread.submission(pages(command), command.batched);
        thread.cpu[1] += service + switch;
        let work = CoreWork::Submit(id);
        self.cores.begin(core, now, work, before + service)
    }

    /// Returns the monitor's CPU time for a command on the way down.
    #[inline]
    fn carry_down(&self, command: &Command) -> Span {
        let hypervisor = self.config.hypervisor.as_ref();
        hypervisor.map_or(Span::ZERO, |monitor| {
            monitor.down + monitor.per_page * pages(command)
        })
    }

    /// Returns the time to wake a core that has been idle.
    #[inline]
    fn wake(&self, core: usize, now: Time) -> Span {
        let state = &self.cores[core];
        if state.work != CoreWork::Idle {
            return Span::ZERO;
        }
        let idle = now.since(state.idle_since);
        match &self.config.hypervisor {
            Some(hypervisor) if self.is_monitor(core) => {
                exit_latency(&hypervisor.idle_states, idle)
            }
            _ => exit_latency(&self.config.idle_states, idle),
        }
    }

    #[inline]
    fn is_monitor(&self, core: usize) -> bool {
        self.config.hypervisor.is_some() && core == self.cores.last()
    }

    /// A thread has a command to issue: immediately, if its core continues with it or has nothing else to do.
    #[inline(never)]
    fn take(&mut self, now: Time, thread: u16, id: CommandId) {
        let core = usize::from(self.thread(thread).core);
        let state = &mut self.cores[core];
        if state.work == CoreWork::Application(thread)
            && state.to_submit.is_empty()
            && state.completions.announced() == 0
        {
            // The thread continues directly: one event for both. A submission without cost ends at the same time.
            let issues = self.cores.due(core);
            self.begin_submit(core, issues, id);
            self.next = self.earliest();
            return;
        }
        state.to_submit.push_back(id);
        if state.work == CoreWork::Idle {
            // No command can complete here: only the drive completes commands, when it is advanced.
            let mut done = Vec::new();
            self.run_core(core, now, &mut done, false);
            debug_assert!(done.is_empty());
            self.next = self.earliest();
        }
    }

    /// Advances the drive from `now`, until an event of the host is due or commands complete; returns the time of that.
    fn device_acts(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        // The host's next event may be a submission.
        let until = horizon.min(self.cores.soonest()).min(self.timers.next());
        let now = self.device.advance(now, until, &mut self.below);
        self.device_next = self.device.next_event();
        if self.below.is_empty() {
            return now;
        }
        for index in 0..self.below.len() {
            let answer = &self.below[index];
            let id = answer.id;
            let outstanding = &mut self.outstanding[id as usize];
            let to = outstanding.to;
            outstanding.answer = *answer;
            if self.crosses {
                cold_path();
                self.cross_up(now, id, to, done);
            } else {
                self.answered(now, id, to, done);
            }
        }
        self.below.clear();
        now
    }

    /// A piece of work has ended; returns whether the core has started another.
    #[inline(always)]
    fn finish(&mut self, core: usize, now: Time, done: &mut Vec<Completion>) -> bool {
        match self.cores[core].work {
            CoreWork::Idle | CoreWork::Sleep | CoreWork::Return | CoreWork::Application(_) => {}
            CoreWork::Submit(id) => return self.submitted(core, now, id),
            CoreWork::Lock(id) => return self.submitted_behind_lock(core, now, id),
            CoreWork::Down(id) => self.carried_down(now, id),
            CoreWork::Interrupt(count) => self.interrupt_ended(core, count as usize),
            CoreWork::Reap(id) => return self.reaped(core, now, id, done),
            CoreWork::Up(id) => self.tell_guest(now, id, done),
        }
        false
    }

    fn core_of(&self, id: CommandId) -> usize {
        usize::from(self.outstanding[id as usize].to.core)
    }
}

/// Returns the pages of data that a command moves.
#[inline]
fn pages(command: &Command) -> u64 {
    if command.op.transfers() {
        u64::from(command.bytes).div_ceil(4096)
    } else {
        0
    }
}

impl<D: Device> Device for HostPath<D> {
    fn capacity(&self) -> Capacity {
        self.device.capacity()
    }

    // Kept short so that it is inlined: a command that is stored field by field for a call and loaded immediately
    // causes a stall (decision 0120).
    #[inline(always)]
    fn submit(&mut self, now: Time, command: Command) {
        let id = command.id;
        let thread = command.queue.min(self.threads.len() as u16 - 1);
        if self.outstanding.len() <= id as usize {
            cold_path();
            self.grow(id);
        }
        let issuer = self.thread(thread);
        let to = CompletionTarget {
            thread,
            core: issuer.core,
            way: issuer.way,
            mode: issuer.mode(command.high_priority),
        };
        let outstanding = &mut self.outstanding[id as usize];
        *outstanding = Outstanding {
            command,
            to,
            submitted: now,
            issued: now,
            queued: Span::ZERO,
            bridged: Span::ZERO,
            below: now,
            poll_from: now,
            ..*outstanding
        };
        self.take(now, thread, id);
    }

    #[inline]
    fn next_event(&self) -> Time {
        self.next
    }

    fn advance(&mut self, mut now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        loop {
            if self.device_next == now {
                // The drive may not continue beyond the time of a completion that is in `done` already.
                let until = if done.is_empty() { horizon } else { now };
                now = self.device_acts(now, until, done);
            }
            while self.cores.soonest() == now {
                self.work_ended(self.cores.first(), now, done);
            }
            while let Some((timer, id)) = self.timers.pop_due(now) {
                cold_path();
                self.timer(now, timer, id, done);
            }
            let next = self.earliest();
            if next > now {
                if next >= horizon || !done.is_empty() {
                    self.next = next;
                    return now;
                }
                now = next;
            }
        }
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        self.device.at_risk(ranges);
    }

    /// The whole machine loses power: all work of the host is discarded too.
    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        let back = self.device.power_cut(now, lost);
        self.device_next = self.device.next_event();
        self.cores.clear(now, back);
        self.forget_found();
        self.queues.clear(now);
        self.helpers.clear(helpers_of(&self.threads));
        self.kernel_threads.clear(now);
        self.guest.clear();
        self.timers = TypedEventQueue::default();
        self.crossings = Crossings::default();
        self.next = self.earliest();
        back
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.device.inspect(now, gauges);
        let helpers = self.helpers.cpu().seconds();
        let kernel = self.kernel_threads.cores() * now.seconds();
        let seconds = self.cores.add_busy_seconds(now, helpers + kernel);
        gauges.gauge(Gauge::HostCpuSeconds, seconds);
    }
}
