//! Figures of a run for the page. Numbers are not rounded: JSON holds the shortest text that reads back as the same
//! number.

use lab::{Measured, Outcome, ThreadOutcome};
use model::{Gauge, Part};
use serde::Serialize;
use statistics::{AnatomyBands, Histogram, Total};

/// Figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Counted time in virtual seconds.
    pub seconds: f64,
    /// Results of reads; null if there were none.
    pub read: Option<Direction>,
    /// Results of writes; null if there were none.
    pub write: Option<Direction>,
    /// Mean power; null if the model has no power for the drive.
    pub watts: Option<f64>,
    /// Bytes programmed for each byte that the host wrote; null without writes.
    pub write_amplification: Option<f64>,
    /// Number of busy cores of the host.
    pub host_cores: Option<f64>,
}

/// One direction of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Direction {
    /// I/Os counted.
    pub ios: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// I/Os per second.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_s: f64,
    /// Mean latency.
    pub mean_us: f64,
    /// Median. As all percentiles, null if fewer than ten I/Os were slower.
    pub p50_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p99_9_us: Option<f64>,
    /// Maximum latency.
    pub max_us: f64,
    /// Breakdown of the mean: each part that took time, with its mean in microseconds.
    pub parts: Vec<(&'static str, f64)>,
}

impl Figures {
    /// Returns the figures of all threads together.
    pub fn from_outcome(outcome: &Outcome) -> Figures {
        let total = |of: fn(&ThreadOutcome) -> &Measured| {
            Direction::from_total(&Total::from_threads(outcome.threads.iter().map(of)))
        };
        Figures {
            seconds: outcome.counted.seconds(),
            read: total(|thread| &thread.read),
            write: total(|thread| &thread.write),
            watts: outcome.watts(),
            write_amplification: outcome.write_amplification(),
            host_cores: outcome.utilisation(Gauge::HostCpuSeconds),
        }
    }
}

impl Direction {
    pub(crate) fn from_total(total: &Total) -> Option<Direction> {
        let latency: &Histogram = &total.latency;
        let at = |percent| latency.percentile(percent).map(|span| span.us());
        (total.ios > 0).then(|| Direction {
            ios: total.ios,
            errors: total.errors,
            iops: total.iops,
            mb_s: total.bytes_per_second / 1e6,
            mean_us: latency.mean_ns() / 1e3,
            p50_us: at(50.0),
            p99_us: at(99.0),
            p99_9_us: at(99.9),
            max_us: latency.max().map_or(0.0, |span| span.us()),
            parts: parts(&total.bands),
        })
    }
}

/// Returns the mean of each part over all I/Os, without parts that fio does not count.
fn parts(bands: &AnatomyBands) -> Vec<(&'static str, f64)> {
    let all = bands.percentile_bands(&[0.0, 100.0]);
    let means = all
        .iter()
        .flat_map(|band| Part::ALL.iter().zip(band.mean_ns));
    let counted = means.filter(|&(part, ns)| Measured::counts(*part) && ns > 0.0);
    counted.map(|(part, ns)| (part.name(), ns / 1e3)).collect()
}
