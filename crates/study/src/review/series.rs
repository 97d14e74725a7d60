//! Figures of a run over time: those of its I/Os and, for a pool, the gauges of its tiers.

use serde::Serialize;

use super::rounding::rounded;
use lab::{Interval, Measured, OverTime};
use model::{Gauge, Span};
use statistics::series::merged;

/// Figures over time, with one entry per interval in each list.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct TimeSeries {
    /// Length of an interval in virtual seconds.
    pub every_seconds: f64,
    /// Factor by which the simulated drive is smaller than the whole one; times are multiplied by it.
    pub scale: f64,
    /// I/Os of each interval; the maximum latency of an interval is the worst of these.
    pub ios_an_interval: f64,
    /// I/Os per second.
    pub iops: Vec<f64>,
    /// 10^6 bytes per second.
    pub mb_s: Vec<f64>,
    /// Mean latency; null in an interval without I/O.
    pub mean_us: Vec<Option<f64>>,
    /// Maximum latency; null in an interval without I/O.
    pub max_us: Vec<Option<f64>>,
    /// 10^9 bytes that tiers have acknowledged but not yet destaged, at the end of each interval; empty if no tier
    /// reports it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dirty_gb: Vec<f64>,
    /// Congestion at the end of each interval, 0 to 255: how strongly a tier delays writes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub congestion: Vec<f64>,
    /// 10^6 bytes per second that a write-back cache frees: bytes that are destaged, or overwritten before destaging.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub freed_mb_s: Vec<f64>,
    /// Share of the read bytes that the cache served; null in an interval without reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hit_ratio: Vec<Option<f64>>,
    /// Time at which the run met the steady-state criterion; null if it never did.
    pub steady_at_seconds: Option<f64>,
}

/// Returns writes (or reads, or both) over time, in at most `most` intervals: adjacent intervals are merged until they
/// fit. Times are multiplied by `stretch`.
pub fn series<'a>(
    threads: impl Iterator<Item = &'a Measured>,
    every: Span,
    stretch: f64,
    most: usize,
) -> TimeSeries {
    let mut sums = merged(threads.map(|thread| &thread.series[..]));
    // The end of the run shortens the last interval.
    if sums.len() > 2 {
        sums.pop();
    }
    let group = sums.len().div_ceil(most).max(1);
    let seconds = every.seconds() * group as f64;
    let mut series = TimeSeries {
        every_seconds: rounded(seconds * stretch),
        scale: rounded(stretch),
        ..TimeSeries::default()
    };
    for chunk in sums.chunks_exact(group) {
        let mut sum = Interval::default();
        chunk.iter().for_each(|interval| sum.merge(interval));
        let some = sum.ios > 0;
        let mean_us = sum.latency_ns as f64 / sum.ios.max(1) as f64 / 1e3;
        series.iops.push(rounded(sum.ios as f64 / seconds));
        series.mb_s.push(rounded(sum.bytes as f64 / seconds / 1e6));
        series.mean_us.push(some.then(|| rounded(mean_us)));
        series
            .max_us
            .push(some.then(|| rounded(sum.max_ns as f64 / 1e3)));
    }
    series
}

impl TimeSeries {
    /// Adds the gauges of the tiers in the same run, from its beginning.
    pub(super) fn tell_tiers(&mut self, told: &OverTime) {
        let count = self.iops.len();
        let seconds = self.every_seconds / self.scale.max(1.0);
        let group = (seconds / told.every.seconds().max(1e-12)).round().max(1.0) as usize;
        // For cumulative gauges, the increase in each interval of the series; for levels, the value at the end of
        // each.
        let sums = |gauge: Gauge| -> Option<Vec<f64>> {
            let chunks = told.series(gauge)?.chunks(group);
            Some(chunks.take(count).map(|chunk| chunk.iter().sum()).collect())
        };
        let levels = |gauge: Gauge| -> Vec<f64> {
            let chunks = told.series(gauge).unwrap_or(&[]).chunks(group);
            let last = chunks.filter_map(|chunk| chunk.last().copied());
            last.take(count).collect()
        };
        let bytes = levels(Gauge::DirtyBytes).into_iter();
        self.dirty_gb = bytes.map(|it| rounded(it * self.scale / 1e9)).collect();
        self.congestion = levels(Gauge::Congestion).into_iter().map(rounded).collect();
        if let (Some(moved), Some(absorbed)) =
            (sums(Gauge::DestagedBytes), sums(Gauge::AbsorbedBytes))
        {
            let both = moved.iter().zip(absorbed);
            let rates = both.map(|(moved, absorbed)| rounded((moved + absorbed) / seconds / 1e6));
            self.freed_mb_s = rates.collect();
        }
        if let (Some(hits), Some(misses)) = (sums(Gauge::HitBytes), sums(Gauge::MissBytes)) {
            let both = hits.iter().zip(misses);
            let share = |(hit, miss): (&f64, f64)| {
                let all = hit + miss;
                (all > 0.0).then(|| rounded(hit / all))
            };
            self.hit_ratio = both.map(share).collect();
            if self.hit_ratio.iter().all(Option::is_none) {
                self.hit_ratio.clear();
            }
        }
    }
}
