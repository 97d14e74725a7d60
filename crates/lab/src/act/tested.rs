//! Configuration of an ACT run, its results, and its verdict by the rules of the test.
//!
//! The rules limit the share of slow reads in each slice: less than 5 % may take 1 ms or more, less than 1 % 8 ms or
//! more, and less than 0.1 % 64 ms or more. A run also fails if it does not reach its load: large reads, large writes
//! or requests at less than 99 % of their rate. The program itself detects this only when a thread is ten seconds
//! late, which cannot happen in a run of seconds. Version 3.0 did not check it.

use std::fmt;

use model::Span;
use serde::{Deserialize, Serialize};
use statistics::{AnatomyBands, Histogram};
use text::digits::digits;
use workload::act::{Buckets, Config, Interval, KINDS, RequestKind, StopReason};

/// Limits on slow reads: (n, percent). The share of reads that take 2^n milliseconds or more must be below this
/// percentage.
pub const LIMITS: [(usize, f64); 3] = [(0, 5.0), (3, 1.0), (6, 0.1)];

/// Minimum share of a rate that must be reached.
const KEPT_UP: f64 = 0.99;

/// An ACT test with the parameters of its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActTest {
    /// Configuration of the test program.
    pub config: Config,
    /// Time before counting starts.
    pub warm_up: Span,
    /// Length of the slices in the verdict; the whole run if it is shorter.
    pub slice: Span,
    /// Whether large blocks may fall below their rate: version 3.0, of 2017, did not check.
    pub latency_only: bool,
}

/// The part of an [`Outcome`](crate::Outcome) that only ACT has.
#[derive(Clone, Debug, PartialEq)]
pub struct ActResult {
    /// Configuration of the test.
    pub config: Config,
    /// Latencies by [`RequestKind`].
    pub latencies: [Histogram; KINDS],
    /// Latency breakdown of reads, by band of latency; time in ACT's queues is [`model::Part::QueueSlot`].
    pub bands: AnatomyBands,
    /// Report intervals; the last one may be incomplete.
    pub intervals: Vec<Interval>,
    /// Requests made in the counted time.
    pub requests: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// Length of the counted time.
    pub counted: Span,
    /// Reason of an early end by ACT itself, and its time after counting started.
    pub stopped: Option<(Span, StopReason)>,
    /// Time before counting started.
    pub warm_up: Span,
    /// Length of a slice.
    pub slice: Span,
    /// As in [`ActTest`].
    pub latency_only: bool,
}

/// Reason why a run fails.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reason {
    /// Too many reads of a slice were slow.
    Slow {
        /// Latency limit in milliseconds.
        ms: u64,
        /// Percentage of reads that took this long or longer.
        percent: f64,
    },
    /// I/Os of this kind fell below their rate.
    Behind {
        /// Kind of I/O.
        kind: RequestKind,
        /// Achieved rate per second.
        achieved: f64,
        /// Required rate per second.
        asked: f64,
    },
    /// Fewer requests were generated than required: ACT's host is too slow, not the drive.
    Generator {
        /// Achieved rate per second.
        achieved: f64,
        /// Required rate per second.
        asked: f64,
    },
    /// ACT ended the test.
    Stopped(StopReason),
    /// I/Os failed.
    Errors(u64),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Slow { ms, percent } => write!(f, "{percent:.2} % of reads over {ms} ms"),
            Reason::Behind {
                kind,
                achieved,
                asked,
            } => {
                let what = match kind {
                    RequestKind::LargeRead => "large reads",
                    RequestKind::LargeWrite => "large writes",
                    RequestKind::Write => "writes",
                    RequestKind::Read | RequestKind::RawRead => "reads",
                };
                let (achieved, asked) = (digits(*achieved), digits(*asked));
                write!(f, "{achieved} {what}/s of {asked}")
            }
            Reason::Generator { achieved, asked } => {
                let (achieved, asked) = (digits(*achieved), digits(*asked));
                write!(
                    f,
                    "ACT made {achieved} requests/s of {asked}: the host is the limit"
                )
            }
            Reason::Stopped(StopReason::TooManyQueued) => write!(f, "too many requests in queues"),
            Reason::Stopped(StopReason::RequestsLag) => write!(f, "service threads cannot keep up"),
            Reason::Stopped(StopReason::LargeReadsLag) => write!(f, "large reads cannot keep up"),
            Reason::Stopped(StopReason::LargeWritesLag) => write!(f, "large writes cannot keep up"),
            Reason::Errors(count) => write!(f, "{count} I/Os failed"),
        }
    }
}

impl ActResult {
    /// Returns the latencies of one kind.
    pub fn latency(&self, kind: RequestKind) -> &Histogram {
        &self.latencies[kind as usize]
    }

    /// Returns the I/Os per second of one kind.
    pub fn rate(&self, kind: RequestKind) -> f64 {
        self.latency(kind).count() as f64 / self.counted.seconds().max(1e-9)
    }

    /// Returns the I/Os per second of one kind that the configuration requires.
    pub fn required_rate(&self, kind: RequestKind) -> f64 {
        match kind {
            RequestKind::Read | RequestKind::RawRead => {
                f64::from(self.config.record_reads_per_second())
            }
            RequestKind::LargeRead => self.config.large_reads_per_second(),
            RequestKind::LargeWrite => self.config.large_writes_per_second(),
            RequestKind::Write => f64::from(self.config.record_writes_per_second()),
        }
    }

    /// Returns the percentage of all reads that took 2^`power` milliseconds or more.
    pub fn percent_over(&self, power: usize) -> f64 {
        let mut all = Buckets::default();
        for interval in &self.intervals {
            all.merge(&interval.kinds[RequestKind::Read as usize]);
        }
        percent(&all, power)
    }

    /// Returns, for each whole slice, the percentage of reads that took 2^n milliseconds or more, for n from 0 to 6.
    pub fn slices(&self) -> Vec<[f64; 7]> {
        let every = self.config.report_interval.ns().max(1);
        let whole = (self.counted.ns() / every).max(1) as usize;
        let in_slice = (self.slice.ns().div_ceil(every) as usize).clamp(1, whole);
        let intervals = &self.intervals[..self.intervals.len().min(whole)];
        let slices = intervals.chunks(in_slice);
        // As in ACT's analysis, an incomplete slice at the end is omitted.
        let slices = slices.filter(|slice| slice.len() == in_slice || whole < in_slice);
        slices
            .map(|slice| {
                let mut sum = Buckets::default();
                for interval in slice {
                    sum.merge(&interval.kinds[RequestKind::Read as usize]);
                }
                std::array::from_fn(|power| percent(&sum, power))
            })
            .collect()
    }

    /// Returns the worst values over all slices.
    pub fn worst(&self) -> [f64; 7] {
        let mut worst = [0.0; 7];
        for slice in self.slices() {
            for (worst, percent) in worst.iter_mut().zip(slice) {
                *worst = f64::max(*worst, percent);
            }
        }
        worst
    }

    /// Returns the reasons for a failure; the run passes if there are none.
    pub fn fails(&self) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if let Some((_, stop)) = self.stopped {
            reasons.push(Reason::Stopped(stop));
        }
        let worst = self.worst();
        for (power, limit) in LIMITS {
            if worst[power] >= limit {
                reasons.push(Reason::Slow {
                    ms: 1 << power,
                    percent: worst[power],
                });
            }
        }
        let seconds = self.counted.seconds().max(1e-9);
        // A difference of one I/O at each end does not count.
        let behind =
            |achieved: f64, asked: f64| (achieved * seconds + 2.0) < KEPT_UP * asked * seconds;
        for kind in [RequestKind::LargeRead, RequestKind::LargeWrite] {
            let (achieved, asked) = (self.rate(kind), self.required_rate(kind));
            if !self.latency_only && behind(achieved, asked) {
                reasons.push(Reason::Behind {
                    kind,
                    achieved,
                    asked,
                });
            }
        }
        let asked = f64::from(self.config.requests_per_second());
        let made = self.requests as f64 / seconds;
        if behind(made, asked) {
            reasons.push(if self.config.has_queues() {
                Reason::Generator {
                    achieved: made,
                    asked,
                }
            } else {
                Reason::Behind {
                    kind: RequestKind::Read,
                    achieved: made,
                    asked,
                }
            });
        }
        if self.errors > 0 {
            reasons.push(Reason::Errors(self.errors));
        }
        reasons
    }

    /// Checks whether the run passes.
    pub fn passes(&self) -> bool {
        self.fails().is_empty()
    }
}

fn percent(buckets: &Buckets, power: usize) -> f64 {
    match buckets.total() {
        0 => 0.0,
        total => buckets.over(power) as f64 * 100.0 / total as f64,
    }
}
