//! Converts an [`Outcome`] into the figures of a review.

use model::Gauge;

use super::member;
use super::results::{
    BandFigures, DirectionResult, LatencySummary, Measurement, percentile_grid, rounded,
};
use lab::{Measured, Outcome, ThreadOutcome};
use statistics::{AnatomyBands, BAND_EDGES, Total};

/// Minimum number of I/Os in a band that is shown.
const FEWEST: u64 = 10;

/// Selects which results of an outcome are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Keep {
    /// Whether the latency breakdown by band is kept.
    pub bands: bool,
}

/// Returns the figures of all threads together, over these runs of one workload.
pub fn measurement(runs: &[&Outcome], keep: Keep) -> Measurement {
    let all = together(runs);
    let share = |busy: Gauge| all.utilisation(busy).map(rounded);
    let read = sum_of(runs, |thread| &thread.read);
    let write = sum_of(runs, |thread| &thread.write);
    let mut both = read.latency.clone();
    both.merge(&write.latency);
    Measurement {
        job: String::new(),
        seconds: rounded(all.counted.seconds()),
        read: figures_of(&read, keep),
        write: figures_of(&write, keep),
        mean_error: both.mean_error().map(rounded),
        converged: None,
        watts: all.watts().map(rounded),
        write_amplification: all.write_amplification().map(rounded),
        controller_busy: share(Gauge::ControllerBusySeconds),
        link_busy: share(Gauge::LinkBusySeconds),
        medium_busy: share(Gauge::MediumBusySeconds),
        host_cores: share(Gauge::HostCpuSeconds),
        members: member::figures(&all),
        series: None,
        notes: Vec::new(),
        each: Vec::new(),
    }
}

/// Combines gauges and counted time of all runs: cumulative gauges are added; for levels, the last value counts.
fn together(runs: &[&Outcome]) -> Outcome {
    let mut all = Outcome::default();
    for run in runs {
        all.counted += run.counted;
        add(&mut all.gauges, &run.gauges);
        all.members.resize(run.members.len(), Vec::new());
        for (all, one) in all.members.iter_mut().zip(&run.members) {
            add(all, one);
        }
    }
    all
}

fn add(all: &mut Vec<(Gauge, f64)>, one: &[(Gauge, f64)]) {
    for &(gauge, value) in one {
        match all.iter_mut().find(|(known, _)| *known == gauge) {
            Some((_, sum)) if gauge.cumulative() => *sum += value,
            Some((_, level)) => *level = value,
            None => all.push((gauge, value)),
        }
    }
}

/// Returns one direction over all threads; `None` if it had no I/O.
pub fn figures<'a>(
    threads: impl Iterator<Item = &'a Measured>,
    keep: Keep,
) -> Option<DirectionResult> {
    figures_of(&Total::from_threads(threads), keep)
}

fn sum_of(runs: &[&Outcome], direction: fn(&ThreadOutcome) -> &Measured) -> Total {
    let mut runs = runs.iter();
    let of = |run: &&Outcome| Total::from_threads(run.threads.iter().map(direction));
    let mut sum = runs.next().map_or_else(Total::default, of);
    for run in runs {
        sum.follow(&of(run));
    }
    sum
}

fn figures_of(sum: &Total, keep: Keep) -> Option<DirectionResult> {
    (sum.ios > 0).then(|| DirectionResult {
        ios: sum.ios,
        errors: sum.errors,
        iops: rounded(sum.iops),
        mb_s: rounded(sum.bytes_per_second / 1e6),
        latency: LatencySummary::from_histogram(&sum.latency, &percentile_grid()),
        across_seeds: None,
        bands: keep.bands.then(|| band_figures(&sum.bands)),
    })
}

fn band_figures(bands: &AnatomyBands) -> Vec<Option<BandFigures>> {
    bands
        .percentile_bands(&BAND_EDGES)
        .iter()
        .map(|band| {
            (band.count >= FEWEST).then(|| BandFigures {
                ios: band.count,
                parts_us: band.mean_ns.map(|ns| rounded(ns / 1e3)),
            })
        })
        .collect()
}
