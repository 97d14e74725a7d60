//! Results of a run for each thread and direction: counts, latencies, latency breakdown, series.

use core::hint::cold_path;

use model::{Completion, Part, Span, Status, Time};

use crate::{AnatomyBands, Histogram};

/// Results of one direction of a thread (or of a group of threads), after the ramp.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// I/Os completed.
    pub ios: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Start of the counted time.
    pub from: Time,
    /// Length of the counted time.
    pub over: Span,
    /// Latency as fio counts it: from the time when the thread begins to issue the I/O until it has reaped it (the
    /// whole latency breakdown without [`Part::ThreadBusy`]).
    pub latency: Histogram,
    /// Submission latency (fio's slat).
    pub submission: Histogram,
    /// Completion latency (fio's clat): `latency` without submission.
    pub completion: Histogram,
    /// Latency breakdown, by band of latency.
    pub bands: AnatomyBands,
    /// I/Os, bytes and sum of latencies in ns, by interval of the run.
    pub series: Vec<Interval>,
}

/// One interval of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// I/Os completed in the interval.
    pub ios: u64,
    /// Bytes transferred in the interval.
    pub bytes: u64,
    /// Sum of their latencies in nanoseconds.
    pub latency_ns: u64,
    /// Longest latency in nanoseconds.
    pub max_ns: u64,
}

/// Results of one thread (copy of a job).
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadOutcome {
    /// Index into the jobs of the plan.
    pub job: usize,
    /// Index of the copy, from 0.
    pub copy: u32,
    /// Reporting group, from 0.
    pub group: u32,
    /// Time of the first issue (after `startdelay` and earlier stonewalls).
    pub started: Time,
    /// Time of the last completion.
    pub ended: Time,
    /// Results of the reads.
    pub read: Measured,
    /// Results of the writes.
    pub write: Measured,
    /// Results of the trims.
    pub trim: Measured,
    /// Results of fsync, fdatasync and similar calls.
    pub sync: Measured,
    /// I/Os issued at each depth: fio's classes 1, 2, 4, 8, 16, 32, >=64.
    pub depths: [u64; 7],
    /// CPU time of the thread in user and system mode.
    pub cpu: [Span; 2],
    /// Depth that the latency target search found.
    pub latency_depth: Option<u32>,
    /// Time when the steady-state criterion was met, if it was.
    pub steady_at: Option<Time>,
    /// I/Os that were due from the start of the counted time to the last completion, issued or not; `None` for a thread
    /// without a rate.
    pub arrived: Option<f64>,
}

impl Interval {
    /// Adds the I/Os of another interval.
    pub fn merge(&mut self, other: &Interval) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.latency_ns += other.latency_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

impl Measured {
    /// Counts a completed I/O. `submission` is the part of `latency` before the I/O reached the drive, if it is
    /// reported separately. `series_every` is the interval of the series; zero means no series.
    #[inline(always)]
    pub fn count(
        &mut self,
        completion: &Completion,
        bytes: u32,
        latency: Span,
        submission: Option<Span>,
        series_every: Span,
    ) {
        if completion.status != Status::Success {
            cold_path();
            self.errors += 1;
            return;
        }
        let bucket = self.latency.count_at(latency, completion.at);
        if let Some(submission) = submission {
            self.submission.record(submission);
        }
        let before = submission.unwrap_or(Span::ZERO);
        self.completion.record(latency - before);
        self.bands.count(bucket, &completion.anatomy);
        self.ios += 1;
        self.bytes += u64::from(bytes);
        if series_every != Span::ZERO {
            cold_path();
            self.count_interval(completion.at, series_every, bytes, latency);
        }
    }

    /// Counts an I/O in the series.
    fn count_interval(&mut self, at: Time, every: Span, bytes: u32, latency: Span) {
        let index = (at.ns() / every.ns()) as usize;
        if self.series.len() <= index {
            self.series.resize(index + 1, Interval::default());
        }
        let interval = &mut self.series[index];
        interval.ios += 1;
        interval.bytes += u64::from(bytes);
        interval.latency_ns += latency.ns();
        interval.max_ns = interval.max_ns.max(latency.ns());
    }

    /// Returns the I/Os per second.
    pub fn iops(&self) -> f64 {
        if self.over == Span::ZERO {
            0.0
        } else {
            self.ios as f64 / self.over.seconds()
        }
    }

    /// Returns the transfer rate in bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        if self.over == Span::ZERO {
            0.0
        } else {
            self.bytes as f64 / self.over.seconds()
        }
    }

    /// Checks whether a part counts as latency in fio's definition.
    pub fn counts(part: Part) -> bool {
        part != Part::ThreadBusy
    }
}
