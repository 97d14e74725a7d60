//! A host around a device: cores and what they do; the ways down and up are in `path/down.rs` and `path/up.rs`.

mod down;
mod queues;
mod up;

use alloc::vec;
use alloc::vec::Vec;

use self::queues::queues_of;
use super::bridge::Crossings;
use super::coalescing::Coalescing;
use super::config::{CompletionMode, HostConfig, ThreadConfig, exit_latency};
use super::core::{Core, NOBODY, Work};
use crate::anatomy::Anatomy;
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::device::{Capacity, Device, Gauge, Gauges};
use crate::engine::{Events, Station};
use crate::random::Stream;
use crate::time::{Span, Time};

/// Sizes told apart when the mean time of commands is learnt for hybrid polling: 512 B to 64 KiB and more.
const SIZES: usize = 8;

/// A job thread.
#[derive(Clone, Debug)]
struct Thread {
    config: ThreadConfig,
    /// Index among the cores in use.
    core: u16,
    /// Commands its helpers may still take (posixaio); those that wait for one.
    helpers_free: u16,
    waiting: alloc::collections::VecDeque<CommandId>,
    /// CPU time in user and system mode.
    cpu: [Span; 2],
    /// Whether it sleeps when it has nothing to do but wait.
    sleeps: bool,
    /// Mean time below the host by direction and size, for hybrid polling; 0 is not known.
    mean_ns: [u32; 2 * SIZES],
}

/// What is known of an outstanding command.
#[derive(Clone, Copy, Debug)]
struct Slot {
    command: Command,
    thread: u16,
    mode: CompletionMode,
    submitted: Time,
    /// When the thread began to issue it.
    issued: Time,
    /// Time in locks and helpers' queues.
    queued: Span,
    /// Time in the bridge on the way down.
    bridged: Span,
    /// When the drive got it; then, when polling begins.
    below: Time,
    poll_from: Time,
}

/// A timed event that no core brings about.
#[derive(Clone, Copy)]
enum Timer {
    /// A helper thread has taken the command from the job's thread.
    HandedDown = 0,
    /// A helper thread has told the job's thread.
    HandedUp = 1,
    /// A core that sleeps begins to poll.
    PollBegins = 2,
    /// The drive has a command from the bridge.
    BridgedDown = 3,
    /// The host sees a completion from the bridge.
    BridgedUp = 4,
}

impl Timer {
    /// The event's name and the command's.
    const fn of(self, id: CommandId) -> u32 {
        id << 3 | self as u32
    }
}

/// A host in front of a device. `Command::queue` names the thread that issues it; ids pass through.
#[derive(Clone, Debug)]
pub struct HostPath<D> {
    device: D,
    config: HostConfig,
    threads: Vec<Thread>,
    /// Cores in use; the monitor's thread, if there is one, is the last.
    cores: Vec<Core>,
    /// When each core's work ends, and the first of those.
    due: Vec<Time>,
    soonest: Time,
    /// By core in use: submission queue, and its lock if others use it.
    queues: Vec<u16>,
    locks: Vec<Option<u16>>,
    lock_stations: Vec<Station>,
    timers: Events,
    slots: Vec<Slot>,
    /// By id: what the drive said.
    answers: Vec<Completion>,
    below: Vec<Completion>,
    crossings: Crossings,
    /// The earliest of what the drive, the cores and the timers will do.
    next: Time,
    /// Commands the guest waits for, those of them the monitor has, what it has not told the guest, and how it decides.
    of_guest: u32,
    below_guest: u32,
    untold: Vec<CommandId>,
    coalescing: Coalescing,
    /// CPU time of helper threads, which have cores of their own.
    helper_cpu: Span,
}

impl<D: Device> HostPath<D> {
    /// Puts a host with these threads in front of `device` (one default thread if there are none); `seed` feeds its
    /// scheduler noise.
    pub fn new(config: HostConfig, threads: &[ThreadConfig], seed: u64, device: D) -> HostPath<D> {
        let one = [ThreadConfig::default()];
        let threads = if threads.is_empty() { &one } else { threads };
        let mut used: Vec<u16> = threads
            .iter()
            .map(|one| one.core % config.cores.max(1))
            .collect();
        used.sort_unstable();
        used.dedup();
        let index_of = |core: u16| used.partition_point(|&one| one < core) as u16;
        let threads: Vec<Thread> = threads
            .iter()
            .map(|one| {
                let helpers = config.engines[one.engine as usize].helpers;
                Thread {
                    config: *one,
                    core: index_of(one.core % config.cores.max(1)),
                    helpers_free: if helpers == 0 { u16::MAX } else { helpers },
                    waiting: alloc::collections::VecDeque::new(),
                    cpu: [Span::ZERO; 2],
                    sleeps: config.mode(one.engine, one.high_priority) == CompletionMode::Interrupt,
                    mean_ns: [0; 2 * SIZES],
                }
            })
            .collect();
        let mut cores: Vec<Core> = used
            .iter()
            .map(|&core| {
                Core::new(
                    config.noise,
                    Stream::numbered(seed, "host noise", u64::from(core)),
                )
            })
            .collect();
        if let Some(monitor) = &config.hypervisor {
            cores.push(Core::new(monitor.noise, Stream::new(seed, "monitor noise")));
        }
        let (queues, locks, lock_count) = queues_of(&used, &config);
        let mut host = HostPath {
            device,
            threads,
            due: vec![Time::NEVER; cores.len()],
            cores,
            soonest: Time::NEVER,
            queues,
            locks,
            lock_stations: vec![Station::default(); lock_count],
            timers: Events::default(),
            slots: Vec::new(),
            answers: Vec::new(),
            next: Time::NEVER,
            below: Vec::new(),
            crossings: Crossings::default(),
            of_guest: 0,
            below_guest: 0,
            untold: Vec::new(),
            coalescing: Coalescing::new(
                config
                    .hypervisor
                    .as_ref()
                    .map_or(0, |monitor| monitor.coalesce_from),
            ),
            helper_cpu: Span::ZERO,
            config,
        };
        host.next = host.earliest();
        host
    }

    /// CPU time of a thread in user and system mode.
    pub fn cpu(&self, thread: usize) -> [Span; 2] {
        self.threads[thread].cpu
    }

    /// The device behind the host.
    pub fn device(&self) -> &D {
        &self.device
    }

    #[inline]
    fn earliest(&self) -> Time {
        self.device
            .next_event()
            .min(self.soonest)
            .min(self.timers.next())
    }

    /// Makes room for an id that was never used before.
    #[cold]
    fn grow(&mut self, id: CommandId) {
        let slot = Slot {
            command: Command::flush(0),
            thread: 0,
            mode: CompletionMode::Interrupt,
            submitted: Time::ZERO,
            issued: Time::ZERO,
            queued: Span::ZERO,
            bridged: Span::ZERO,
            below: Time::ZERO,
            poll_from: Time::ZERO,
        };
        let answer = Completion {
            id: 0,
            at: Time::ZERO,
            status: Status::Success,
            anatomy: Anatomy::ZERO,
        };
        self.slots.resize(id as usize + 1, slot);
        self.answers.resize(id as usize + 1, answer);
    }

    #[inline]
    fn set_due(&mut self, core: usize, at: Time) {
        let before = self.due[core];
        self.due[core] = at;
        if at <= self.soonest {
            self.soonest = at;
        } else if before == self.soonest {
            self.soonest = self.due.iter().copied().min().unwrap_or(Time::NEVER);
        }
    }

    /// Begins work on an idle core; returns whether it has ended already (it took no time).
    #[inline]
    fn begin(&mut self, core: usize, now: Time, work: Work, service: Span) -> bool {
        let one = &mut self.cores[core];
        let end = one.end_of(now, service);
        one.work = work;
        one.busy += end.since(now);
        if end == now {
            return true;
        }
        self.set_due(core, end);
        false
    }

    fn charge(&mut self, thread: u16, mode: usize, span: Span) {
        self.threads[usize::from(thread)].cpu[mode] += span;
    }

    /// Gives an idle core its next piece of work, and the next while they take no time.
    fn dispatch(&mut self, core: usize, now: Time, done: &mut Vec<Completion>) {
        loop {
            let ended = if let Some(id) = self.cores[core].announced.front().copied() {
                self.begin_announced(core, now, id)
            } else if let Some(id) = self.cores[core].to_submit.pop_front() {
                self.begin_submit(core, now, id)
            } else if let Some(id) = self.cores[core].to_reap.pop_front() {
                self.begin_reap(core, now, id, Span::ZERO)
            } else if self.goes_to_sleep(core) {
                self.cores[core].thread = NOBODY;
                self.begin(core, now, Work::Sleep, self.config.switch)
            } else {
                let one = &mut self.cores[core];
                one.work = Work::Idle;
                one.thread = NOBODY;
                one.idle_since = now;
                self.set_due(core, Time::NEVER);
                return;
            };
            if !ended {
                return;
            }
            if self.finish(core, now, done) {
                return;
            }
        }
    }

    /// Whether the core ran a thread that now sleeps: it is switched away from, while the drive works.
    #[inline]
    fn goes_to_sleep(&self, core: usize) -> bool {
        let thread = self.cores[core].thread;
        thread != NOBODY && self.threads[usize::from(thread)].sleeps
    }

    fn begin_submit(&mut self, core: usize, now: Time, id: CommandId) -> bool {
        if self.is_monitor(core) {
            let down = self.carry_down(&self.slots[id as usize].command);
            return self.begin(core, now, Work::Down(id), down);
        }
        let thread = self.slots[id as usize].thread;
        let one = &mut self.cores[core];
        let switch = if one.thread == thread || one.thread == NOBODY {
            Span::ZERO
        } else {
            self.config.switch
        };
        one.thread = thread;
        // What holds the thread up before it issues is no part of fio's latencies.
        let before = one.free_at(now).since(now) + switch;
        let service = self.submission(&self.slots[id as usize]);
        self.charge(thread, 1, service + switch);
        self.slots[id as usize].issued = now + before;
        self.begin(core, now, Work::Submit(id), before + service)
    }

    /// CPU time of a submission.
    #[inline]
    fn submission(&self, slot: &Slot) -> Span {
        let costs =
            &self.config.engines[self.threads[usize::from(slot.thread)].config.engine as usize];
        let mut service = costs.submit + self.config.per_page * pages(&slot.command);
        if !slot.command.batched {
            service += costs.system_call;
        }
        service
    }

    /// The monitor's CPU time for a command on the way down.
    #[inline]
    fn carry_down(&self, command: &Command) -> Span {
        let hypervisor = self.config.hypervisor.as_ref();
        hypervisor.map_or(Span::ZERO, |one| one.down + one.per_page * pages(command))
    }

    /// Time to wake a core that has been idle.
    #[inline]
    fn wake(&self, core: usize, now: Time) -> Span {
        let one = &self.cores[core];
        if one.work != Work::Idle {
            return Span::ZERO;
        }
        let idle = now.since(one.idle_since);
        match &self.config.hypervisor {
            Some(hypervisor) if self.is_monitor(core) => {
                exit_latency(&hypervisor.idle_states, idle)
            }
            _ => exit_latency(&self.config.idle_states, idle),
        }
    }

    #[inline]
    fn is_monitor(&self, core: usize) -> bool {
        self.config.hypervisor.is_some() && core + 1 == self.cores.len()
    }

    /// A piece of work has ended; returns whether the core has begun another.
    fn finish(&mut self, core: usize, now: Time, done: &mut Vec<Completion>) -> bool {
        match self.cores[core].work {
            Work::Idle | Work::Sleep | Work::Application(_) => {}
            Work::Submit(id) => return self.submitted(core, now, id),
            Work::Lock(id) | Work::Down(id) => self.reach_drive(now, id),
            Work::Interrupt(count) => {
                let one = &mut self.cores[core];
                for _ in 0..count {
                    one.to_reap.extend(one.announced.pop_front());
                }
            }
            Work::Reap(id) => return self.reaped(core, now, id, done),
            Work::Up(id) => self.tell_guest(now, id, done),
        }
        false
    }

    fn core_of(&self, id: CommandId) -> usize {
        usize::from(self.threads[usize::from(self.slots[id as usize].thread)].core)
    }
}

/// Pages of data that a command moves.
#[inline]
fn pages(command: &Command) -> u64 {
    if command.op.transfers() {
        u64::from(command.bytes).div_ceil(4096)
    } else {
        0
    }
}

fn size_class(command: &Command) -> usize {
    let size = (command.bytes >> 9).max(1).ilog2() as usize;
    size.min(SIZES - 1) + SIZES * usize::from(command.op != Op::Read)
}

impl<D: Device> Device for HostPath<D> {
    fn capacity(&self) -> Capacity {
        self.device.capacity()
    }

    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        let id = command.id;
        let thread = command.queue.min(self.threads.len() as u16 - 1);
        let config = self.threads[usize::from(thread)].config;
        if self.slots.len() <= id as usize {
            self.grow(id);
        }
        self.slots[id as usize] = Slot {
            command,
            thread,
            mode: self.config.mode(config.engine, command.high_priority),
            submitted: now,
            issued: now,
            queued: Span::ZERO,
            bridged: Span::ZERO,
            below: now,
            poll_from: now,
        };
        let core = usize::from(self.threads[usize::from(thread)].core);
        let one = &self.cores[core];
        if one.work == Work::Application(thread)
            && one.to_submit.is_empty()
            && one.announced.is_empty()
        {
            // The thread goes straight on: one event for both. A submission that costs nothing ends when this does.
            let issues = self.due[core];
            self.begin_submit(core, issues, id);
            self.next = self.earliest();
            return;
        }
        self.cores[core].to_submit.push_back(id);
        if self.cores[core].work == Work::Idle {
            // Nothing can complete here: only the drive brings completions about, when it is advanced.
            let mut done = Vec::new();
            self.dispatch(core, now, &mut done);
            debug_assert!(done.is_empty());
            self.next = self.earliest();
        }
    }

    #[inline]
    fn next_event(&self) -> Time {
        self.next
    }

    fn advance(&mut self, mut now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        loop {
            if self.device.next_event() == now {
                let mut below = core::mem::take(&mut self.below);
                // What the host does next may be a submission.
                let until = horizon.min(self.soonest).min(self.timers.next());
                now = self.device.advance(now, until, &mut below);
                for completion in &below {
                    if self.config.bridge.is_some() {
                        self.cross_up(now, completion);
                    } else {
                        self.answered(now, completion, done);
                    }
                }
                below.clear();
                self.below = below;
            }
            while self.soonest == now {
                for core in 0..self.due.len() {
                    if self.due[core] == now && !self.finish(core, now, done) {
                        self.dispatch(core, now, done);
                    }
                }
            }
            while let Some(payload) = self.timers.pop_due(now) {
                self.timer(now, payload, done);
            }
            self.next = self.earliest();
            if self.next > now {
                if self.next >= horizon || !done.is_empty() {
                    return now;
                }
                now = self.next;
            }
        }
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.device.inspect(now, gauges);
        let mut seconds = self.helper_cpu.seconds();
        for (core, due) in self.cores.iter().zip(&self.due) {
            let ahead = if *due == Time::NEVER {
                Span::ZERO
            } else {
                due.since(now)
            };
            seconds += core.busy.saturating_sub(ahead).seconds();
        }
        gauges.gauge(Gauge::HostCpuSeconds, seconds);
    }
}
