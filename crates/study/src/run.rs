//! One run: jobs on a drive behind a host path, in virtual time, and what came out.

use model::host::HostConfig;
use model::media::{DriveConfig, Precondition};
use model::{Gauge, Part, Span, Time};

use crate::problem::Problems;
use crate::statistics::Histogram;
use crate::workload::job::Job;

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

/// What one direction of a thread (or of a group of threads) did, after the ramp.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// I/Os completed.
    pub ios: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Time over which they were counted.
    pub over: Span,
    /// Latency as fio counts it: from the moment the thread begins to issue the I/O until it has reaped it (that is,
    /// the whole anatomy without [`Part::ThreadBusy`]).
    pub latency: Histogram,
    /// Submission latency (fio's slat).
    pub submission: Histogram,
    /// Completion latency (fio's clat): `latency` without submission.
    pub completion: Histogram,
    /// Where the time went, by band of latency.
    pub bands: crate::statistics::AnatomyBands,
    /// By interval of the run: I/Os, bytes, sum of latencies in ns.
    pub series: Vec<Interval>,
}

/// One interval of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// I/Os completed in it.
    pub ios: u64,
    /// Bytes moved in it.
    pub bytes: u64,
    /// Sum of their latencies in nanoseconds.
    pub latency_ns: u64,
    /// The longest of them in nanoseconds.
    pub max_ns: u64,
}

/// What one thread (copy of a job) did.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadOutcome {
    /// Index into [`Plan::jobs`].
    pub job: usize,
    /// Which copy of it, from 0.
    pub copy: u32,
    /// Reporting group, from 0.
    pub group: u32,
    /// When it started to issue (after `startdelay` and earlier stonewalls).
    pub started: Time,
    /// When its last I/O completed.
    pub ended: Time,
    /// Reads.
    pub read: Measured,
    /// Writes.
    pub write: Measured,
    /// Trims.
    pub trim: Measured,
    /// fsync, fdatasync and friends.
    pub sync: Measured,
    /// I/Os issued at each depth: fio's classes 1, 2, 4, 8, 16, 32, >=64.
    pub depths: [u64; 7],
    /// CPU time of the thread in user and system mode.
    pub cpu: [Span; 2],
    /// What the latency target search found: depth.
    pub latency_depth: Option<u32>,
    /// Whether the steady-state criterion was met, and when.
    pub steady_at: Option<Time>,
}

/// What came out of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// By thread, in the order of jobs and copies.
    pub threads: Vec<ThreadOutcome>,
    /// When the last I/O completed.
    pub end: Time,
    /// Cumulative gauges: growth over the counted part of the run. Levels: at its end.
    pub gauges: Vec<(Gauge, f64)>,
    /// Length of the counted part of the run.
    pub counted: Span,
}

impl Outcome {
    /// A gauge of the drive or host, if it was reported.
    pub fn gauge(&self, gauge: Gauge) -> Option<f64> {
        self.gauges
            .iter()
            .find(|(name, _)| *name == gauge)
            .map(|&(_, value)| value)
    }
}

impl Measured {
    /// I/Os a second.
    pub fn iops(&self) -> f64 {
        if self.over == Span::ZERO {
            0.0
        } else {
            self.ios as f64 / self.over.seconds()
        }
    }

    /// Bytes a second.
    pub fn bytes_per_second(&self) -> f64 {
        if self.over == Span::ZERO {
            0.0
        } else {
            self.bytes as f64 / self.over.seconds()
        }
    }

    /// Parts that count as latency in fio's sense.
    pub fn counts(part: Part) -> bool {
        part != Part::ThreadBusy
    }
}

/// Runs the plan; `progress` is called now and then with the share done, 0 to 1.
///
/// # Errors
/// Jobs that do not fit the drive (offset beyond its end, block larger than the range, ...).
pub fn simulate(plan: &Plan, progress: &(dyn Fn(f64) + Sync)) -> Result<Outcome, Problems> {
    let _ = (plan, progress);
    Err(Problems::whole("simulate", "not there yet"))
}
