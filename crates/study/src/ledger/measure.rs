//! Conversion of a measurement into runs: the jobs of each point of its sweep, bounded to as many I/Os as its figures
//! need.

use std::path::Path;

use super::figure::RunFigure;
use super::{LedgerMeasurement, Work};
use lab::{Machine, Scenario};
use text::problem::Problems;
use workload::fio::{self, Surroundings};
use workload::job::{BlockSizes, Job, Mix};

/// Bytes of a point if only throughput and means are requested ...
const BYTES: u64 = 400_000_000;
/// ... but at least `FEWEST` and at most `MOST` I/Os, ...
const FEWEST: u64 = 600;
const MOST: u64 = 40_000;
/// ... and at least this number for each unit of queue depth.
const FOR_EACH_OF_DEPTH: u64 = 400;
/// Samples beyond a requested percentile: ten, and one to spare.
const BEYOND: f64 = 11.0;

/// The jobs at a point of a sweep (`None` without a sweep), without a bound.
pub(super) type PointJobs = (Option<f64>, Vec<Job>);

/// Returns the jobs of each point.
///
/// # Errors
/// All problems of fio's options.
pub(super) fn jobs_of_points(measurement: &LedgerMeasurement) -> Result<Vec<PointJobs>, Problems> {
    let Work::Fio {
        options,
        before,
        beside,
        sweep,
        spread,
    } = &measurement.work
    else {
        return Ok(vec![(None, Vec::new())]);
    };
    let processors = catalogue::host(&measurement.host)?.config.cores;
    let read = |options: &[String]| {
        let mut measured = jobs(options, processors.into())?;
        for job in &mut measured {
            job.filesystem = measurement.filesystem;
        }
        if let Some(threads) = spread {
            measured = spread_depth(measured, *threads)?;
        }
        measured.append(&mut jobs_beside(beside, processors.into())?);
        if before.is_empty() {
            return Ok(measured);
        }
        measured[0].stonewall = true;
        let mut all = jobs(before, processors.into())?;
        if all.len() != 1 || unbounded(&all[0]) {
            let what = "`before` is one job with an end, such as --size=1g";
            return Err(Problems::whole("fio", what));
        }
        all.append(&mut measured);
        Ok(all)
    };
    let Some(sweep) = sweep else {
        return Ok(vec![(None, read(options)?)]);
    };
    let point = |(written, x): &(String, f64)| {
        let mut options = options.clone();
        options.push(format!("--{}={written}", sweep.option));
        Ok((Some(*x), read(&options)?))
    };
    sweep.points.iter().map(point).collect()
}

/// Returns the jobs that run at the same time as the measured ones. They are a reporting group that ends by itself.
fn jobs_beside(options: &[String], processors: u32) -> Result<Vec<Job>, Problems> {
    if options.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = jobs(options, processors)?;
    if all.iter().any(|job| job.runtime.is_none()) {
        let what = "`beside` must run as long as the measured job: both need a --runtime";
        return Err(Problems::whole("fio", what));
    }
    all[0].new_group = true;
    Ok(all)
}

fn jobs(options: &[String], processors: u32) -> Result<Vec<Job>, Problems> {
    let surroundings = Surroundings {
        environment: &|_| None,
        read: &|path: &Path| {
            Err(std::io::Error::other(format!(
                "{} is not read",
                path.display()
            )))
        },
        processors,
    };
    let set = fio::read(options, &[], &[], &surroundings)?;
    // A difference between fio and the model must not be hidden in a ledger.
    let otherwise = set
        .warnings
        .iter()
        .find(|warning| warning.starts_with("not simulated"));
    if let Some(warning) = otherwise {
        return Err(Problems::whole("fio", warning.clone()));
    }
    Ok(set.jobs)
}

/// Spreads one job's depth over up to `threads` threads as evenly as possible: a depth of 6 over 4 threads is 2, 2, 1
/// and 1.
fn spread_depth(jobs: Vec<Job>, threads: u32) -> Result<Vec<Job>, Problems> {
    let [job] = &jobs[..] else {
        return Err(Problems::whole("fio", "`spread` needs exactly one job"));
    };
    let threads = threads.min(job.iodepth).max(1);
    let share = |thread| job.iodepth / threads + u32::from(thread < job.iodepth % threads);
    let copy = |thread| Job {
        iodepth: share(thread),
        ..job.clone()
    };
    Ok((0..threads).map(copy).collect())
}

/// Returns one point with one seed, with `number_ios` for jobs that have no bound of their own.
pub(super) fn scenario(
    machine: &Machine,
    measurement: &LedgerMeasurement,
    jobs: &[Job],
    ios: u64,
    seed: u64,
) -> Scenario {
    Scenario::jobs(machine.clone(), measurement.state, bounded(jobs, ios), seed)
}

/// Returns the number of a point's jobs that run before the measured jobs.
pub(super) fn uncounted(measurement: &LedgerMeasurement) -> usize {
    match &measurement.work {
        Work::Fio { before, .. } => usize::from(!before.is_empty()),
        Work::Act(_) => 0,
    }
}

fn unbounded(job: &Job) -> bool {
    job.number_ios.is_none() && job.runtime.is_none() && job.size.is_none() && job.io_size.is_none()
}

/// Bounds all jobs without a bound so that they do `ios` I/Os together, each in proportion to its depth.
fn bounded(jobs: &[Job], ios: u64) -> Vec<Job> {
    let depth = |job: &Job| u64::from(job.iodepth);
    let all: u64 = jobs
        .iter()
        .filter(|job| unbounded(job))
        .map(|job| depth(job) * u64::from(job.numjobs))
        .sum();
    let mut jobs = jobs.to_vec();
    for job in jobs.iter_mut().filter(|job| unbounded(job)) {
        job.number_ios = Some((ios * depth(job)).div_ceil(all.max(1)).max(1));
    }
    jobs
}

/// Returns the number of I/Os of these jobs that the figures need.
pub(super) fn ios_for(measurement: &LedgerMeasurement, jobs: &[Job], figures: &[RunFigure]) -> u64 {
    if let Some(ios) = measurement.ios {
        return ios;
    }
    let jobs = &jobs[uncounted(measurement)..];
    let bytes = jobs.iter().map(largest_block).max().unwrap_or(4096);
    let depth: u64 = jobs
        .iter()
        .map(|job| u64::from(job.iodepth) * u64::from(job.numjobs))
        .sum();
    let mut ios = (BYTES / u64::from(bytes.max(1))).clamp(FEWEST, MOST);
    ios = ios.max(depth * FOR_EACH_OF_DEPTH);
    // In a mix, only a share of the I/Os is in the requested direction.
    let share = jobs.iter().map(least_share).fold(1.0, f64::min);
    for percent in figures.iter().filter_map(|figure| figure.percentile()) {
        ios = ios.max((BEYOND / (1.0 - percent / 100.0) / share) as u64);
    }
    ios
}

fn least_share(job: &Job) -> f64 {
    let read = f64::from(job.read_percent) / 100.0;
    match job.mix {
        Mix::ReadWrite if read > 0.0 && read < 1.0 => read.min(1.0 - read),
        _ => 1.0,
    }
}

/// Returns the largest block size of a job in a direction that it uses.
pub(crate) fn largest_block(job: &Job) -> u32 {
    let of = |sizes: &BlockSizes| match sizes {
        BlockSizes::Fixed(bytes) => *bytes,
        BlockSizes::Range { max, .. } => *max,
        BlockSizes::Split(parts) => parts.iter().map(|&(bytes, _)| bytes).max().unwrap_or(4096),
    };
    let sizes = match job.mix {
        Mix::Read => &job.block_sizes[..1],
        Mix::Write => &job.block_sizes[1..2],
        _ => &job.block_sizes[..2],
    };
    sizes.iter().map(of).max().unwrap_or(4096)
}
