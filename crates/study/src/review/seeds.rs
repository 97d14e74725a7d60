//! Combination of several seeds of one workload: their figures, their ranges, and whether the mean is known.
//!
//! A mean is known under two conditions. First, half its 95 % interval, from slices of the runs, is within [`KNOWN`].
//! Second, the runs have lasted as long as a drive may take to settle, because a rate that has not yet begun to
//! change has a misleadingly narrow interval. A trace is replayed whole and its load changes over time, so its slices
//! are not comparable; for a trace, the means of the seeds must agree.

use lab::Outcome;
use model::Span;

use super::measure::{Keep, measurement};
use super::results::{DirectionResult, FigureRanges, Measurement, rounded};
use super::suite::Effort;

/// Maximum half-width of the 95 % interval of a known mean, as a share of it.
pub(super) const KNOWN: f64 = 0.05;

/// Certainty of a figure of a point that may continue. If there are several figures, the greatest variant decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Certainty {
    /// As precise as required.
    Known,
    /// Not precise enough; more I/Os may suffice.
    Open,
    /// Not precise enough, even after the maximum number of I/Os.
    OutOfReach,
}

/// Factor for doubt about the interval: with few slices, its width is known only to about a fifth.
const DOUBT: f64 = 1.25;

impl Certainty {
    /// Returns the certainty of a relative error after a share `1 / more` of the maximum number of I/Os. The error
    /// shrinks with the square root of the I/Os.
    fn from_error(error: f64, wanted: f64, more: f64) -> Certainty {
        match () {
            () if error <= wanted => Certainty::Known,
            () if error > wanted * DOUBT * more.sqrt() => Certainty::OutOfReach,
            () => Certainty::Open,
        }
    }
}

/// Checks whether the mean is known, for a drive that may take `settling` to settle.
pub(super) fn is_known(result: &Measurement, settling: Span) -> bool {
    mean_certainty(result, settling, 1.0) == Certainty::Known
}

/// Returns the certainty of the mean, for a drive that may take `settling` to settle. Before that time, the mean is
/// not known.
pub(super) fn mean_certainty(result: &Measurement, settling: Span, more: f64) -> Certainty {
    match result.mean_error {
        Some(error) if result.seconds >= settling.seconds() => {
            Certainty::from_error(error, KNOWN, more)
        }
        _ => Certainty::Open,
    }
}

/// Returns the certainty of the median and p99 in each direction, if half their intervals must be at most this share
/// of them.
pub(super) fn percentiles_certainty(result: &Measurement, share: f64, more: f64) -> Certainty {
    let of = |figures: &DirectionResult| {
        let latency = &figures.latency;
        let ends = [
            (latency.p50_us, latency.intervals_us[0]),
            (latency.p99_us, latency.intervals_us[1]),
        ];
        ends.map(|percentile| match percentile {
            (Some(value), Some([low, high])) => {
                Certainty::from_error((high - low) / (2.0 * value), share, more)
            }
            _ => Certainty::Open,
        })
    };
    let directions = [&result.read, &result.write];
    let each = directions.into_iter().flatten().flat_map(of);
    each.max().unwrap_or(Certainty::Known)
}

/// Notes whether the mean of a user's own job is known. Such a job runs for its own time. Drives settle sooner if they
/// are only read.
pub(super) fn tell_convergence_as_given(effort: Effort, result: &mut Measurement) {
    let settling = match result.write {
        None => effort.ramp,
        Some(_) => effort.write_ramp,
    };
    let known = is_known(result, settling);
    tell_convergence(known, result);
}

/// Notes whether the mean is known, and if not, its error.
pub(super) fn tell_convergence(known: bool, result: &mut Measurement) {
    result.converged = Some(known);
    if known {
        return;
    }
    let counted = counted(result);
    result.notes.push(match result.mean_error {
        Some(error) if error > KNOWN => format!(
            "the mean has not converged: ±{:.0} % after {counted} I/Os",
            error * 100.0
        ),
        _ => format!("too short to judge whether the mean has converged: {counted} I/Os"),
    });
}

/// Notes for a trace whether its seeds agree on the mean.
pub(super) fn tell_scatter(result: &mut Measurement) {
    let mean = |one: &Measurement| {
        let of = |figures: &Option<DirectionResult>| {
            let figures = figures.as_ref();
            figures.map_or((0.0, 0.0), |figures| {
                (
                    figures.ios as f64,
                    figures.ios as f64 * figures.latency.mean_us,
                )
            })
        };
        let (reads, writes) = (of(&one.read), of(&one.write));
        (reads.1 + writes.1) / (reads.0 + writes.0).max(1.0)
    };
    let means: Vec<f64> = result.each.iter().map(mean).collect();
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    let most = means.iter().copied().fold(0.0, f64::max);
    let error = (most - least) / 2.0 / mean(result).max(1e-9);
    result.mean_error = Some(rounded(error));
    result.converged = Some(error <= KNOWN);
    if error > KNOWN {
        result.notes.push(format!(
            "seeds differ: a mean of {} to {} us over {} I/Os",
            rounded(least),
            rounded(most),
            counted(result)
        ));
    }
}

/// Returns the number of reads and writes.
fn counted(result: &Measurement) -> u64 {
    let ios = |of: &Option<DirectionResult>| of.as_ref().map_or(0, |figures| figures.ios);
    ios(&result.read) + ios(&result.write)
}

/// Returns the combined figures of all seeds, those of each seed, and their ranges; `whole` includes the whole
/// distribution.
pub(super) fn of_seeds(of_seed: &[Vec<Outcome>], keep: Keep, whole: bool) -> Measurement {
    let all: Vec<&Outcome> = of_seed.iter().flatten().collect();
    let mut result = measurement(&all, keep);
    if of_seed.len() > 1 {
        result.each = of_seed
            .iter()
            .map(|outcomes| measurement(&outcomes.iter().collect::<Vec<_>>(), keep))
            .collect();
        result.tell_across(whole);
    }
    result
}

impl Measurement {
    /// Stores the ranges over seeds in each direction.
    pub(super) fn tell_across(&mut self, whole: bool) {
        let of = |direction: fn(&Measurement) -> &Option<DirectionResult>| {
            let each: Option<Vec<&DirectionResult>> = self
                .each
                .iter()
                .map(|one| direction(one).as_ref())
                .collect();
            each.and_then(|each| FigureRanges::from_seeds(&each, whole))
        };
        let (read, write) = (of(|one| &one.read), of(|one| &one.write));
        if let Some(figures) = &mut self.read {
            figures.across_seeds = read;
        }
        if let Some(figures) = &mut self.write {
            figures.across_seeds = write;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::LatencySummary;
    use super::*;
    use statistics::Histogram;

    #[test]
    fn what_the_root_of_all_ios_cannot_reach_is_given_up() {
        // A quarter of all I/Os: the error is halved at the end.
        assert_eq!(Certainty::from_error(0.05, 0.05, 4.0), Certainty::Known);
        assert_eq!(Certainty::from_error(0.12, 0.05, 4.0), Certainty::Open);
        assert_eq!(
            Certainty::from_error(0.13, 0.05, 4.0),
            Certainty::OutOfReach
        );
        let short = Measurement {
            mean_error: Some(0.9),
            seconds: 0.1,
            ..Measurement::default()
        };
        assert_eq!(
            mean_certainty(&short, Span::from_ms(500), 4.0),
            Certainty::Open,
            "it has not settled"
        );
        assert_eq!(
            mean_certainty(&short, Span::from_ms(50), 4.0),
            Certainty::OutOfReach
        );
    }

    #[test]
    fn percentiles_are_known_when_median_and_99th_are() {
        let of = |samples: u64, spread: u64| {
            let mut histogram = Histogram::default();
            for index in 0..samples {
                histogram.record(Span::from_ns(100_000 + index * 7919 % 1000 * spread));
            }
            Measurement {
                read: Some(DirectionResult {
                    ios: samples,
                    errors: 0,
                    iops: 1.0,
                    mb_s: 1.0,
                    latency: LatencySummary::from_histogram(&histogram, &[]),
                    across_seeds: None,
                    bands: None,
                }),
                ..Measurement::default()
            }
        };
        // All within 1 %, and evenly between 100 us and 1.1 ms.
        let certainty =
            |samples, spread, more| percentiles_certainty(&of(samples, spread), 0.02, more);
        assert_eq!(certainty(2_000, 1, 1.0), Certainty::Known);
        assert_eq!(certainty(2_000, 1_000, 8.0), Certainty::Open);
        assert_eq!(certainty(35_000, 1_000, 1.0), Certainty::Known);
        assert_eq!(
            certainty(900, 1, 8.0),
            Certainty::Open,
            "nine beyond the 99th"
        );
    }
}
