//! What a run gives for each thread and direction: counts, latencies, anatomy, series.

use core::hint::cold_path;

use model::{Completion, Part, Span, Status, Time};

use crate::{AnatomyBands, Histogram};

/// What one direction of a thread (or of a group of threads) did, after the ramp.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// I/Os completed.
    pub ios: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// When counting began.
    pub from: Time,
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
    pub bands: AnatomyBands,
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
    /// Index into the jobs of the plan.
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

impl Interval {
    /// Adds another interval's I/Os.
    pub fn merge(&mut self, other: &Interval) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.latency_ns += other.latency_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

impl Measured {
    /// Counts a completed I/O. `submission` is the part of `latency` before it reached the drive, where it is told
    /// apart; `series_every` is the interval of the series, zero for none.
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
