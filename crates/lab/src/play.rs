//! From a drive and a workload to what came out: the one set-up of every kind of run.

use std::cell::Cell;
use std::ops::ControlFlow;

use model::engine::{self, Workload};
use model::host::{Engine, HostConfig, HostPath, ThreadConfig};
use model::media::{DriveConfig, Medium, MediumDrive, Precondition};
use model::{Device, Drive, Gauge, Span, Time};

use super::{growth, read_gauges};
use text::problem::Problems;

/// Virtual time between two reports of progress.
const SLICE: Span = Span::from_ms(20);

thread_local! {
    /// The drive of this thread's last run, for its memory.
    static SHELF: Cell<Option<Drive>> = const { Cell::new(None) };
}

/// Does something with a drive that is as [`Drive::new`] makes it. The next run of this thread has its memory: what
/// large tables ask of the operating system would take longer than many a run.
pub(super) fn with_drive<R>(
    config: &DriveConfig,
    state: Precondition,
    seed: u64,
    work: impl FnOnce(&mut Drive) -> R,
) -> R {
    let mut drive = match SHELF.take() {
        Some(used) => used.reset(config, state, seed),
        None => Drive::new(config, state, seed),
    };
    let result = work(&mut drive);
    SHELF.set(Some(drive));
    result
}

/// The host as it meets this drive: what has no volatile cache gets no flushes.
pub(super) fn host_of(host: &HostConfig, drive: &DriveConfig) -> HostConfig {
    HostConfig {
        write_through: !drive.volatile_write_cache(),
        ..host.clone()
    }
}

/// Threads with these interfaces (and whether they go before others), on the host's cores in turn.
pub(super) fn on_cores(
    host: &HostConfig,
    threads: impl Iterator<Item = (Engine, bool)>,
) -> Vec<ThreadConfig> {
    let cores = usize::from(host.cores.max(1));
    threads
        .enumerate()
        .map(|(index, (engine, high_priority))| ThreadConfig {
            core: (index % cores) as u16,
            engine,
            high_priority,
        })
        .collect()
}

/// A workload that has run to its end.
#[derive(Debug)]
pub(super) struct Played<W> {
    pub(super) workload: W,
    /// When its last I/O completed.
    pub(super) end: Time,
    /// Over the part from `count_from` on.
    pub(super) gauges: Vec<(Gauge, f64)>,
    /// By thread: CPU time in user and system mode.
    pub(super) cpu: Vec<[Span; 2]>,
    /// Whether it was stopped before.
    pub(super) stopped: bool,
}

/// Runs a workload, whose I/Os come from these threads of the host, to its end, or until `look`, which is called now and
/// then, breaks it off. Counted is from `count_from` on.
///
/// # Errors
/// The run stalls: a defect of the program.
pub(super) fn play<D: Device, W: Workload>(
    device: D,
    (host, threads, seed): (HostConfig, &[ThreadConfig], u64),
    mut workload: W,
    count_from: Time,
    look: &dyn Fn(&W, Time) -> ControlFlow<()>,
) -> Result<Played<W>, Problems> {
    let mut host = HostPath::new(host, threads, seed, device);
    let (mut now, mut until) = (Time::ZERO, Time::ZERO);
    // What is not counted is gone through in slices too, so that it can be broken off.
    let mut stopped = loop {
        until = (until + SLICE).min(count_from);
        now = engine::run(&mut host, &mut workload, now, until);
        let stopped = look(&workload, now).is_break();
        if stopped || until == count_from {
            break stopped;
        }
    };
    let before = read_gauges(&host, now);
    while !workload.finished() && !stopped {
        let next = host.next_event().min(workload.next_arrival());
        if next == Time::NEVER {
            let what = format!("the run stalled at {now:?} with I/O outstanding");
            return Err(Problems::defect("simulate", what));
        }
        until = next.max(until + SLICE);
        now = engine::run(&mut host, &mut workload, now, until);
        stopped = look(&workload, now).is_break();
    }
    let after = read_gauges(&host, now);
    Ok(Played {
        workload,
        end: now,
        gauges: growth(&before, after),
        cpu: (0..threads.len()).map(|index| host.cpu(index)).collect(),
        stopped,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Plan, simulate};
    use super::*;
    use workload::job::{Job, Mix};

    /// Plans after each other on one thread, where the drive is made of the last one, and each on a thread of its own.
    #[test]
    fn a_run_does_not_depend_on_the_one_before() {
        let plan = |drive: &str, mix, state, seed| Plan {
            drive: catalogue::drive(drive).expect("built in").config,
            state,
            host: HostConfig::default(),
            jobs: vec![Job {
                mix,
                random: true,
                norandommap: true,
                iodepth: 4,
                number_ios: Some(300),
                ..Job::default()
            }],
            seed,
            series_every: Span::ZERO,
        };
        let steady = Precondition::Steady;
        let plans = [
            plan("950pro-256", Mix::Write, steady, 1),
            plan("950pro-256", Mix::ReadWrite, steady, 1),
            plan("950pro-256", Mix::Read, steady, 1),
            plan("950pro-256", Mix::Write, steady, 1),
            plan("950pro-256", Mix::Write, Precondition::Fresh, 1),
            plan("optane-memory-16", Mix::Write, steady, 1),
            plan("950pro-256", Mix::Write, steady, 2),
        ];
        let run = |plan: &Plan| simulate(plan, &|_| {}).expect("it runs");
        let after_each_other: Vec<_> = plans.iter().map(run).collect();
        for (index, (plan, together)) in plans.iter().zip(after_each_other).enumerate() {
            let alone = std::thread::scope(|scope| scope.spawn(|| run(plan)).join());
            assert!(alone.expect("it ends") == together, "plan {index}");
        }
    }
}
