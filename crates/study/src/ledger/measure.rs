//! From a measurement to runs: the jobs of each point of its sweep, bounded to as many I/Os as its figures need.

use std::path::Path;

use super::figure::RunFigure;
use super::{Measurement, Work};
use lab::{Machine, Scenario};
use text::problem::Problems;
use workload::fio::{self, Surroundings};
use workload::job::{BlockSizes, Job, Mix};

/// Bytes that a point moves where only throughput and means are asked for ...
const BYTES: u64 = 400_000_000;
/// ... but at least and at most so many I/Os, ...
const FEWEST: u64 = 600;
const MOST: u64 = 40_000;
/// ... and for each of a depth at least so many.
const FOR_EACH_OF_DEPTH: u64 = 400;
/// Samples beyond a percentile that is asked for: ten, and some to spare.
const BEYOND: f64 = 11.0;

/// Jobs at a point of a sweep (`None` without a sweep), as yet without a bound.
pub(super) type PointJobs = (Option<f64>, Vec<Job>);

/// The jobs of each point.
///
/// # Errors
/// Everything wrong with fio's options.
pub(super) fn jobs_of_points(measurement: &Measurement) -> Result<Vec<PointJobs>, Problems> {
    let Work::Fio {
        options,
        before,
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
    // What fio would do otherwise than the model must not hide in a ledger.
    let otherwise = set
        .warnings
        .iter()
        .find(|warning| warning.starts_with("not simulated"));
    if let Some(warning) = otherwise {
        return Err(Problems::whole("fio", warning.clone()));
    }
    Ok(set.jobs)
}

/// One job's depth as evenly as it goes over up to `threads` threads: a depth of 6 over 4 is 2, 2, 1 and 1.
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

/// One point with one seed, with `number_ios` where the jobs have no bound of their own.
pub(super) fn scenario(
    machine: &Machine,
    measurement: &Measurement,
    jobs: &[Job],
    ios: u64,
    seed: u64,
) -> Scenario {
    Scenario::jobs(machine.clone(), measurement.state, bounded(jobs, ios), seed)
}

/// How many of a point's jobs run before what is measured.
pub(super) fn uncounted(measurement: &Measurement) -> usize {
    match &measurement.work {
        Work::Fio { before, .. } => usize::from(!before.is_empty()),
        Work::Act(_) => 0,
    }
}

fn unbounded(job: &Job) -> bool {
    job.number_ios.is_none() && job.runtime.is_none() && job.size.is_none() && job.io_size.is_none()
}

/// All jobs without a bound together do `ios` I/Os, each in proportion to its depth.
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

/// I/Os that these figures need of these jobs.
pub(super) fn ios_for(measurement: &Measurement, jobs: &[Job], figures: &[RunFigure]) -> u64 {
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
    // Of a mix only a share is in the direction that is asked for.
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

/// The largest block of a job in a direction that it uses.
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
