//! From a device and a workload to what came out: the one set-up of every kind of work.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use model::engine::{self, Workload};
use model::host::{Engine, HostConfig, HostPath, ThreadConfig};
use model::{Device, Gauge, Gauges, Span, Time};
use text::problem::Problems;

/// Virtual time between two reports of progress.
const SLICE: Span = Span::from_ms(20);

/// Threads with these interfaces (and whether they go before others), on the host's cores in turn.
pub(crate) fn on_cores(
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
pub(crate) struct Played<W> {
    pub(crate) workload: W,
    /// When its last I/O completed.
    pub(crate) end: Time,
    /// Over the part from `count_from` on.
    pub(crate) gauges: Vec<(Gauge, f64)>,
    /// By thread: CPU time in user and system mode.
    pub(crate) cpu: Vec<[Span; 2]>,
    /// Whether it was stopped before.
    pub(crate) stopped: bool,
}

/// Runs a workload, whose I/Os come from these threads of the host, to its end, or until `look`, which is called now and
/// then, breaks it off. Counted is from `count_from` on.
///
/// # Errors
/// The run stalls: a defect of the program.
pub(crate) fn play<D: Device, W: Workload>(
    device: D,
    (host, threads, seed): (&HostConfig, &[ThreadConfig], u64),
    mut workload: W,
    count_from: Time,
    look: &dyn Fn(&W, Time) -> ControlFlow<()>,
) -> Result<Played<W>, Problems> {
    let mut host = HostPath::new(host.clone(), threads, seed, device);
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

/// Sums and means of what devices report, in order of [`Gauge`].
#[derive(Default)]
struct Readings(BTreeMap<Gauge, (f64, u32)>);

impl Gauges for Readings {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        let entry = self.0.entry(gauge).or_default();
        entry.0 += value;
        entry.1 += 1;
    }
}

fn read_gauges<D: Device>(device: &D, now: Time) -> Readings {
    let mut readings = Readings::default();
    device.inspect(now, &mut readings);
    readings
}

fn growth(before: &Readings, after: Readings) -> Vec<(Gauge, f64)> {
    after
        .0
        .into_iter()
        .map(|(gauge, (sum, count))| {
            let value = match gauge {
                _ if gauge.cumulative() => sum - before.0.get(&gauge).map_or(0.0, |&(sum, _)| sum),
                Gauge::PercentageUsed | Gauge::FreeShare => sum / f64::from(count),
                _ => sum,
            };
            (gauge, value)
        })
        .collect()
}
