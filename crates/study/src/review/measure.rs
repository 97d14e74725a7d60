//! From an [`Outcome`] to the figures a review shows.

use model::{Gauge, Span};

use super::results::{
    BAND_EDGES, BandFigures, Figures, Latency, Measurement, Series, percentile_grid, rounded,
};
use crate::run::{Interval, Measured, Outcome};
use crate::statistics::{AnatomyBands, Histogram};

/// Fewest I/Os in a band that is shown.
const FEWEST: u64 = 10;

/// What to keep of an outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Keep {
    /// Latency taken apart by band.
    pub(crate) bands: bool,
}

/// The figures of all threads together.
pub(crate) fn measurement(outcome: &Outcome, keep: Keep) -> Measurement {
    let share = |busy: Gauge| outcome.utilisation(busy).map(rounded);
    Measurement {
        job: String::new(),
        seconds: rounded(outcome.counted.seconds()),
        read: figures(outcome.threads.iter().map(|thread| &thread.read), keep),
        write: figures(outcome.threads.iter().map(|thread| &thread.write), keep),
        watts: outcome.watts().map(rounded),
        write_amplification: outcome.write_amplification().map(rounded),
        controller_busy: share(Gauge::ControllerBusySeconds),
        link_busy: share(Gauge::LinkBusySeconds),
        medium_busy: share(Gauge::MediumBusySeconds),
        host_cores: share(Gauge::HostCpuSeconds),
        series: None,
        notes: Vec::new(),
    }
}

/// One direction over all threads; `None` if it had no I/O.
pub(crate) fn figures<'a>(
    threads: impl Iterator<Item = &'a Measured>,
    keep: Keep,
) -> Option<Figures> {
    let mut latency = Histogram::default();
    let mut bands = AnatomyBands::default();
    let (mut ios, mut errors, mut iops, mut bytes_per_second) = (0, 0, 0.0, 0.0);
    for thread in threads {
        ios += thread.ios;
        errors += thread.errors;
        iops += thread.iops();
        bytes_per_second += thread.bytes_per_second();
        latency.merge(&thread.latency);
        if keep.bands {
            bands.merge(&thread.bands);
        }
    }
    if ios == 0 {
        return None;
    }
    Some(Figures {
        ios,
        errors,
        iops: rounded(iops),
        mb_s: rounded(bytes_per_second / 1e6),
        latency: Latency::of(&latency, &percentile_grid()),
        bands: keep.bands.then(|| band_figures(&bands)),
    })
}

fn band_figures(bands: &AnatomyBands) -> Vec<Option<BandFigures>> {
    bands
        .between(&BAND_EDGES)
        .iter()
        .map(|band| {
            (band.count >= FEWEST).then(|| BandFigures {
                ios: band.count,
                parts_us: band.mean_ns.map(|ns| rounded(ns / 1e3)),
            })
        })
        .collect()
}

/// Writes (or reads) over time, with at most `most` intervals: neighbours are merged until it fits.
pub(crate) fn series<'a>(
    threads: impl Iterator<Item = &'a Measured>,
    every: Span,
    stretch: f64,
    most: usize,
) -> Series {
    let mut sums: Vec<Interval> = Vec::new();
    for thread in threads {
        if sums.len() < thread.series.len() {
            sums.resize(thread.series.len(), Interval::default());
        }
        for (sum, interval) in sums.iter_mut().zip(&thread.series) {
            merge(sum, interval);
        }
    }
    // The last interval is cut short by the end of the run.
    if sums.len() > 2 {
        sums.pop();
    }
    let group = sums.len().div_ceil(most).max(1);
    let seconds = every.seconds() * group as f64;
    let mut series = Series {
        every_seconds: rounded(seconds * stretch),
        ..Series::default()
    };
    for chunk in sums.chunks_exact(group) {
        let mut sum = Interval::default();
        chunk.iter().for_each(|interval| merge(&mut sum, interval));
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

fn merge(sum: &mut Interval, other: &Interval) {
    sum.ios += other.ios;
    sum.bytes += other.bytes;
    sum.latency_ns += other.latency_ns;
    sum.max_ns = sum.max_ns.max(other.max_ns);
}
