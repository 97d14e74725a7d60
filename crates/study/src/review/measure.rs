//! From an [`Outcome`] to the figures a review shows.

use model::Gauge;

use super::member;
use super::results::{BandFigures, Figures, Latency, Measurement, percentile_grid, rounded};
use lab::{Measured, Outcome, ThreadOutcome};
use statistics::{AnatomyBands, BAND_EDGES, Histogram};

/// Fewest I/Os in a band that is shown.
const FEWEST: u64 = 10;

/// What to keep of an outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Keep {
    /// Latency taken apart by band.
    pub bands: bool,
}

/// The figures of all threads together, over these runs of the same workload.
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
        read: read.figures(keep),
        write: write.figures(keep),
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

/// Gauges and counted time of all runs: what is cumulative adds up, of levels the last counts.
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

/// One direction over all threads; `None` if it had no I/O.
pub fn figures<'a>(threads: impl Iterator<Item = &'a Measured>, keep: Keep) -> Option<Figures> {
    Sum::of(threads).figures(keep)
}

fn sum_of(runs: &[&Outcome], direction: fn(&ThreadOutcome) -> &Measured) -> Sum {
    let mut runs = runs.iter();
    let of = |run: &&Outcome| Sum::of(run.threads.iter().map(direction));
    let mut sum = runs.next().map_or_else(Sum::default, of);
    for run in runs {
        sum.follow(&of(run));
    }
    sum
}

/// One direction, added up.
#[derive(Default)]
struct Sum {
    latency: Histogram,
    bands: AnatomyBands,
    ios: u64,
    errors: u64,
    iops: f64,
    bytes_per_second: f64,
}

impl Sum {
    /// Of the threads of one run.
    fn of<'a>(threads: impl Iterator<Item = &'a Measured>) -> Sum {
        let mut sum = Sum::default();
        for thread in threads {
            sum.ios += thread.ios;
            sum.errors += thread.errors;
            sum.iops += thread.iops();
            sum.bytes_per_second += thread.bytes_per_second();
            sum.latency.merge(&thread.latency);
            sum.bands.merge(&thread.bands);
        }
        sum
    }

    /// Adds another run: rates are means over the time that both took.
    fn follow(&mut self, other: &Sum) {
        let seconds = |sum: &Sum| sum.ios as f64 / sum.iops.max(1e-9);
        let (mine, theirs) = (seconds(self), seconds(other));
        let mean = |mine_s: f64, theirs_s: f64| {
            (mine_s * mine + theirs_s * theirs) / (mine + theirs).max(1e-12)
        };
        self.iops = mean(self.iops, other.iops);
        self.bytes_per_second = mean(self.bytes_per_second, other.bytes_per_second);
        self.ios += other.ios;
        self.errors += other.errors;
        self.latency.follow(&other.latency);
        self.bands.merge(&other.bands);
    }

    fn figures(&self, keep: Keep) -> Option<Figures> {
        (self.ios > 0).then(|| Figures {
            ios: self.ios,
            errors: self.errors,
            iops: rounded(self.iops),
            mb_s: rounded(self.bytes_per_second / 1e6),
            latency: Latency::of(&self.latency, &percentile_grid()),
            across_seeds: None,
            bands: keep.bands.then(|| band_figures(&self.bands)),
        })
    }
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
