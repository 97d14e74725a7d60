//! One run: jobs on a drive behind a host path, in virtual time, and what came out.

pub mod act;
mod bench;
mod play;
pub mod replay;

pub use bench::Bench;
pub use statistics::{Interval, Measured, Outcome, ThreadOutcome};

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};

use model::host::HostConfig;
use model::media::{DriveConfig, Precondition};
use model::{Device, Gauge, Gauges, Span, Time};

use text::problem::Problems;
use workload::Jobs;
use workload::job::Job;

use play::{host_of, on_cores, play, with_drive};

/// All that a run depends on: the same plan gives the same [`Outcome`], to the byte, on every machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The drive.
    pub drive: DriveConfig,
    /// Its state at the start.
    pub state: Precondition,
    /// The host it is in.
    pub host: HostConfig,
    /// What runs, in order (`stonewall` separates).
    pub jobs: Vec<Job>,
    /// Feeds every random stream.
    pub seed: u64,
    /// Interval of [`Measured::series`]; zero for none.
    pub series_every: Span,
}

/// Is told the share that is done, 0 to 1, now and then, and says whether to go on. What is stopped gives what there is so
/// far; that depends on when it was, so nothing that must come out the same twice may be stopped.
pub type GoOn<'a> = &'a (dyn Fn(f64) -> ControlFlow<()> + Sync);

/// Goes on to the end, telling the share that is done.
fn to_the_end(progress: &(dyn Fn(f64) + Sync)) -> impl Fn(f64) -> ControlFlow<()> + Sync {
    move |share| {
        progress(share);
        ControlFlow::Continue(())
    }
}

/// Runs the plan; `progress` is called now and then with the share done, 0 to 1.
///
/// # Errors
/// Jobs that do not fit the drive (offset beyond its end, block larger than the range, ...), all of them at once.
pub fn simulate(plan: &Plan, progress: &(dyn Fn(f64) + Sync)) -> Result<Outcome, Problems> {
    simulate_until(plan, &to_the_end(progress))
}

/// [`simulate`] that can be stopped.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_until(plan: &Plan, go_on: GoOn<'_>) -> Result<Outcome, Problems> {
    with_drive(&plan.drive, plan.state, plan.seed, |drive| {
        simulate_on(drive, plan, go_on)
    })
}

/// Runs the jobs of the plan on a device that is at hand, whose clock begins at zero; of the plan's drive only the kind
/// of its cache counts.
fn simulate_on<D: Device>(device: D, plan: &Plan, go_on: GoOn<'_>) -> Result<Outcome, Problems> {
    let jobs = Jobs::new(&plan.jobs, device.capacity(), plan.seed, plan.series_every)?;
    let threads = on_cores(
        &plan.host,
        jobs.threads().map(|job| (job.engine, job.high_priority)),
    );
    let count_from = jobs.counts_from();
    let host = (host_of(&plan.host, &plan.drive), &*threads, plan.seed);
    let played = play(device, host, jobs, count_from, &|jobs, now| {
        go_on(jobs.share(now))
    })?;
    let mut outcomes = played.workload.outcomes();
    for (outcome, [user, system]) in outcomes.iter_mut().zip(played.cpu) {
        outcome.cpu[0] += user;
        outcome.cpu[1] += system;
    }
    Ok(Outcome {
        threads: outcomes,
        end: played.end,
        gauges: played.gauges,
        counted: played.end.since(count_from),
        stopped: played.stopped,
    })
}

/// Runs independent plans on all cores; each result is that of [`simulate`], in the order of the plans. `progress` is
/// called now and then with the share of all that is done.
pub fn sweep(plans: &[Plan], progress: &(dyn Fn(f64) + Sync)) -> Vec<Result<Outcome, Problems>> {
    sweep_until(plans, &to_the_end(progress))
}

/// [`sweep`] that can be stopped.
pub fn sweep_until(plans: &[Plan], go_on: GoOn<'_>) -> Vec<Result<Outcome, Problems>> {
    in_parallel_until(plans, go_on, simulate_until)
}

/// Does independent work on all cores, with the share of all that is done as progress; results in the order of `items`.
pub fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    progress: &(dyn Fn(f64) + Sync),
    work: impl Fn(&T, &(dyn Fn(f64) + Sync)) -> R + Sync,
) -> Vec<R> {
    in_parallel_until(items, &to_the_end(progress), |item, go_on| {
        work(item, &|share| {
            let _ = go_on(share);
        })
    })
}

/// [`in_parallel`] in which `go_on` stops each piece of work.
pub fn in_parallel_until<T: Sync, R: Send>(
    items: &[T],
    go_on: GoOn<'_>,
    work: impl Fn(&T, GoOn<'_>) -> R + Sync,
) -> Vec<R> {
    let shares: Vec<AtomicU32> = items.iter().map(|_| AtomicU32::new(0)).collect();
    let report = |index: usize, share: f64| {
        shares[index].store((share * 1e6) as u32, Ordering::Relaxed);
        let sum: f64 = shares
            .iter()
            .map(|share| f64::from(share.load(Ordering::Relaxed)))
            .sum();
        go_on(sum / 1e6 / items.len() as f64)
    };
    each(items, |index, item| {
        let result = work(item, &|share| report(index, share));
        // What it says matters to those that are not done.
        let _ = report(index, 1.0);
        result
    })
}

/// Something of each item, on all cores; in the order of the items.
#[cfg(feature = "threads")]
fn each<T: Sync, R: Send>(items: &[T], of: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    use rayon::prelude::*;
    let items = items.par_iter().enumerate();
    items.map(|(index, item)| of(index, item)).collect()
}

/// Something of each item, one after the other.
#[cfg(not(feature = "threads"))]
fn each<T: Sync, R: Send>(items: &[T], of: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let items = items.iter().enumerate();
    items.map(|(index, item)| of(index, item)).collect()
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
