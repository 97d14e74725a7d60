//! Runs a workload on a device: the common set-up of every kind of work.

use std::ops::ControlFlow;

use model::engine::Workload;
use model::host::{
    Engine, FileConfig, FileCosts, Files, HostConfig, HostPath, PowerManaged, Scheduler,
    SchedulerKind, ThreadConfig,
};
use model::{Device, Gauge, Span, Time};
use text::problem::Problems;

use crate::faults::{RunFault, TriggerLog};
use crate::gauges::{OverTime, Sampler, by_member, growth, read_gauges};
use crate::in_host::Host;
use crate::phases::{Phase, PhasedHost};

/// Virtual time between two progress reports.
const SLICE: Span = Span::from_ms(20);

/// Interface of a thread: its engine, flags for polled completions and for a polled submission queue, and its socket.
#[derive(Clone, Copy)]
pub(crate) struct ThreadInterface {
    pub(crate) engine: Engine,
    pub(crate) high_priority: bool,
    pub(crate) sq_poll: bool,
    pub(crate) socket: u16,
}

impl ThreadInterface {
    /// Returns a thread on the drive's socket that waits for interrupts.
    pub(crate) fn with_interrupts(engine: Engine) -> ThreadInterface {
        ThreadInterface {
            engine,
            high_priority: false,
            sq_poll: false,
            socket: 0,
        }
    }
}

/// Creates threads with these interfaces, on the cores of their sockets in turn.
pub(crate) fn on_cores(
    host: &HostConfig,
    threads: impl Iterator<Item = ThreadInterface>,
) -> Vec<ThreadConfig> {
    let cores = host.cores.max(1);
    let mut next: Vec<u16> = vec![0; usize::from(host.sockets.max(1))];
    let mut place = |socket: u16| {
        let core = &mut next[usize::from(socket)];
        let taken = *core;
        *core = (taken + 1) % cores;
        taken
    };
    threads
        .map(|thread| ThreadConfig {
            core: place(thread.socket),
            engine: thread.engine,
            high_priority: thread.high_priority,
            sq_poll: thread.sq_poll,
            socket: thread.socket,
        })
        .collect()
}

/// Files of the threads.
pub(crate) struct ThreadFiles {
    pub(crate) costs: FileCosts,
    /// File of each thread, if any.
    pub(crate) files: Vec<Option<FileConfig>>,
    /// Upper bound of the workload's command ids (exclusive).
    pub(crate) ids: u32,
}

/// Environment of a workload.
pub(crate) struct Surroundings<'a> {
    pub(crate) host: &'a HostConfig,
    /// Threads that issue its I/Os.
    pub(crate) threads: &'a [ThreadConfig],
    pub(crate) seed: u64,
    /// Interval between readings of the gauges; zero means only at start and end.
    pub(crate) gauges_every: Span,
    pub(crate) files: Option<&'a ThreadFiles>,
    /// Faults of the device.
    pub(crate) faults: &'a [RunFault],
    /// Log of faults that counts have triggered.
    pub(crate) struck: &'a TriggerLog,
}

/// A workload that has run to its end.
#[derive(Debug)]
pub(crate) struct RunResult<W> {
    pub(crate) workload: W,
    /// Completion time of the last I/O.
    pub(crate) end: Time,
    /// Gauges over the part after `count_from`.
    pub(crate) gauges: Vec<(Gauge, f64)>,
    /// Gauges by member of a pool; empty for other devices.
    pub(crate) members: Vec<Vec<(Gauge, f64)>>,
    /// Gauges over time, from the start.
    pub(crate) over_time: OverTime,
    /// By thread: CPU time in user and system mode.
    pub(crate) cpu: Vec<[Span; 2]>,
    /// Whether the run was stopped before its end.
    pub(crate) stopped: bool,
    /// Phases between faults; empty without faults.
    pub(crate) phases: Vec<Phase>,
}

/// Runs a workload to its end, or until `look`, which is called at intervals, stops it. Results count after
/// `count_from`.
///
/// # Errors
/// The run stalls, which is a defect of the program.
pub(crate) fn play<D: Device, W: Workload>(
    device: D,
    around: &Surroundings<'_>,
    workload: W,
    count_from: Time,
    look: &dyn Fn(&W, Time) -> ControlFlow<()>,
) -> Result<RunResult<W>, Problems> {
    let transitions = &around.host.power_transitions;
    if transitions.is_empty() {
        return play_scheduled(device, around, workload, count_from, look);
    }
    // Behind a pointer, so that the other runs are compiled once.
    let managed: Box<dyn Device + '_> = Box::new(PowerManaged::new(device, transitions.clone()));
    play_scheduled(managed, around, workload, count_from, look)
}

/// Runs a workload on a device behind the host's scheduler, if it has one.
fn play_scheduled<D: Device, W: Workload>(
    device: D,
    around: &Surroundings<'_>,
    workload: W,
    count_from: Time,
    look: &dyn Fn(&W, Time) -> ControlFlow<()>,
) -> Result<RunResult<W>, Problems> {
    if around.host.scheduler.kind != SchedulerKind::None {
        // Behind a pointer, so that the other runs are compiled once.
        let scheduled: Box<dyn Device + '_> =
            Box::new(Scheduler::new(around.host.scheduler, device));
        return play_behind(scheduled, around, workload, count_from, look);
    }
    play_behind(device, around, workload, count_from, look)
}

/// Runs a workload on a device behind the host path, and behind the threads' files.
fn play_behind<D: Device, W: Workload>(
    device: D,
    around: &Surroundings<'_>,
    workload: W,
    count_from: Time,
    look: &dyn Fn(&W, Time) -> ControlFlow<()>,
) -> Result<RunResult<W>, Problems> {
    let config = around.host.clone();
    let Some(of) = around.files else {
        let host = HostPath::new(config, around.threads, around.seed, device);
        return play_in(host, around, workload, count_from, look);
    };
    // The journal uses a system thread, on a core other than the first job's.
    let mut threads = around.threads.to_vec();
    threads.push(ThreadConfig {
        core: threads.len() as u16 % config.cores.max(1),
        engine: Engine::Sync,
        high_priority: false,
        sq_poll: false,
        socket: 0,
    });
    let host = HostPath::new(config, &threads, around.seed, device);
    let files = Files::new(of.costs, &of.files, of.ids, host);
    play_in(files, around, workload, count_from, look)
}

/// Runs in phases, if the device has faults.
fn play_in<H: Host, W: Workload>(
    mut host: H,
    around: &Surroundings<'_>,
    workload: W,
    count_from: Time,
    look: &dyn Fn(&W, Time) -> ControlFlow<()>,
) -> Result<RunResult<W>, Problems> {
    if around.faults.is_empty() {
        return play_on(&mut host, around, workload, count_from, look);
    }
    let any: &mut dyn Host = &mut host;
    let mut phased = PhasedHost::new(any, around.faults, around.struck);
    let played = play_on(&mut phased, around, workload, count_from, look)?;
    Ok(RunResult {
        phases: phased.ended(played.end),
        ..played
    })
}

fn play_on<H: Host, W: Workload>(
    host: &mut H,
    around: &Surroundings<'_>,
    mut workload: W,
    count_from: Time,
    look: &dyn Fn(&W, Time) -> ControlFlow<()>,
) -> Result<RunResult<W>, Problems> {
    let (mut now, mut until) = (Time::ZERO, Time::ZERO);
    let mut sampler = Sampler::new(around.gauges_every, host);
    // The uncounted part also runs in slices, so that it can be stopped.
    let mut stopped = loop {
        until = (until + SLICE).min(count_from);
        now = sampler.run(host, &mut workload, now, until);
        let stopped = look(&workload, now).is_break();
        if stopped || until == count_from {
            break stopped;
        }
    };
    let before = read_gauges(host, now);
    while !workload.finished() && !stopped {
        let next = host.next_event().min(workload.next_arrival());
        if next == Time::NEVER {
            let what = format!("the run stalled at {now:?} with I/O outstanding");
            return Err(Problems::defect("simulate", what));
        }
        until = next.max(until + SLICE);
        now = sampler.run(host, &mut workload, now, until);
        stopped = look(&workload, now).is_break();
    }
    let after = read_gauges(host, now);
    Ok(RunResult {
        workload,
        end: now,
        members: by_member(&before, &after),
        gauges: growth(before.whole(), after.whole()),
        over_time: sampler.end(&after),
        cpu: (0..around.threads.len())
            .map(|index| host.cpu(index))
            .collect(),
        stopped,
        phases: Vec::new(),
    })
}
