//! A case (jobs on a drive in a state, in a host), its simulation, and the distance of the result from the
//! measurement.
//!
//! The distance is the weighted mean square of the logarithms of model over measured, with the weights that
//! `drivelab fit` gives to rates, mean latencies and percentiles. Not simulated: runs as long as the measured one; a
//! case runs for some ten thousand I/Os from its initial state.

use lab::{Lab, Machine, Outcome, Scenario, to_the_end};
use model::media::Precondition;
use model::{Part, Span};
use serde::Serialize;
use statistics::{AnatomyBands, Histogram};
use text::problem::Problems;
use workload::job::{Job, Mix};

use super::file::ReportingGroup;
use crate::decide::tally::{Tally, tell_busiest};
use crate::decide::{rate_of, spread};
use crate::fit::measured::MeasuredFigure;
use crate::ledger::figure::RunFigure;
use crate::review::results::{Measurement, rounded};

/// A simulated case.
#[derive(Clone, Debug)]
pub struct ExplainCase {
    /// Drive and host.
    pub machine: Machine,
    /// Jobs without a bound.
    pub jobs: Vec<Job>,
    /// Initial state of the drive.
    pub state: Precondition,
    /// Approximate expected IOPS.
    pub expected: f64,
}

/// Results of a case.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// Outcome of each seed.
    pub outcomes: Vec<Outcome>,
    /// All seeds together.
    pub measurement: Measurement,
    /// Number of threads that issued I/O.
    pub threads: u32,
}

/// Parameters of the runs.
pub struct CaseRunner<'a> {
    /// Laboratory in which cases run.
    pub lab: &'a Lab,
    /// First seed.
    pub seed: u64,
    /// Number of seeds.
    pub seeds: u32,
}

/// Latency breakdown of one direction of a simulated run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SideAnatomy {
    /// `reads` or `writes`.
    pub direction: &'static str,
    /// Mean latency as fio counts it.
    pub mean_us: f64,
    /// Mean submission latency; null if the engine does not distinguish it.
    pub submission_us: Option<f64>,
    /// Mean completion latency.
    pub completion_us: f64,
    /// Mean of each part that took time, in microseconds, in the order in which a command passes through them.
    pub parts: Vec<(&'static str, f64)>,
}

/// Results of one simulated case.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Trial {
    /// Identifier for programs.
    pub key: String,
    /// Difference from the run as described.
    pub what: String,
    /// For a condition: the text that follows "if".
    pub supposition: String,
    /// For a condition: the shortest check on the machine, one for each part of a pair.
    pub check: Vec<&'static str>,
    /// For a condition: how to find out on the machine whether it applied.
    pub to_tell: Vec<&'static str>,
    /// I/Os per second.
    pub iops: f64,
    /// Range of `iops` over seeds.
    pub iops_by_seed: [f64; 2],
    /// Mean latency in microseconds.
    pub mean_us: Option<f64>,
    /// Ratio of `iops` to that of the original case.
    pub factor: f64,
    /// Distance from the measurement (0.1: about 10 %).
    pub distance: Option<f64>,
    /// Mean power; null if the model has none.
    pub watts: Option<f64>,
}

#[cfg(test)]
impl Trial {
    /// Returns a trial with this rate and nothing else.
    pub(super) fn of_rate(iops: f64) -> Trial {
        Trial {
            key: String::new(),
            what: String::new(),
            supposition: String::new(),
            check: Vec::new(),
            to_tell: Vec::new(),
            iops,
            iops_by_seed: [iops; 2],
            mean_us: None,
            factor: 1.0,
            distance: None,
            watts: None,
        }
    }
}

/// A model agrees with the measurement if its rate is within this distance, and all figures together are within twice
/// this distance, because tails are noisier than rates.
pub const AGREES: f64 = 0.10;
/// Conditions whose distances differ by less than this cannot be distinguished.
pub(super) const ALIKE: f64 = 0.02;

/// Number of I/Os of a run, and its shortest and longest time.
const IOS: f64 = 30_000.0;
const SHORTEST: Span = Span::from_ms(20);
const LONGEST: Span = Span::from_ms(2_000);
/// Longer for writes, which go through a buffer first.
const SHORTEST_WRITES: Span = Span::from_ms(250);

impl ExplainCase {
    /// Returns the jobs with their bounds.
    fn bounded(&self) -> Vec<Job> {
        let writes = self.jobs.iter().any(|job| job.mix != Mix::Read);
        let shortest = if writes { SHORTEST_WRITES } else { SHORTEST };
        let runtime = Span::from_seconds(IOS / self.expected.max(1.0)).clamp(shortest, LONGEST);
        let bounded = |job: &Job| Job {
            runtime: Some(runtime),
            time_based: true,
            ramp_time: Span::from_ns(runtime.ns() / 4),
            ..job.clone()
        };
        self.jobs.iter().map(bounded).collect()
    }
}

impl CaseRunner<'_> {
    /// Runs cases with every seed; an impossible case returns its reasons.
    pub fn run(&self, cases: &[ExplainCase]) -> Vec<Result<CaseResult, Problems>> {
        let scenario = |case: &ExplainCase, seed: u64| {
            let jobs = case.bounded();
            let mut scenario = Scenario::jobs(case.machine.clone(), case.state, jobs, seed);
            scenario.warm_seed = Some(self.seed);
            scenario
        };
        let seeds = || self.seed..self.seed + u64::from(self.seeds);
        let scenarios: Vec<Scenario> = cases
            .iter()
            .flat_map(|case| seeds().map(move |seed| scenario(case, seed)))
            .collect();
        let mut outcomes = self.lab.run_all(&scenarios, &to_the_end).into_iter();
        let mut all = Vec::new();
        for case in cases {
            let of_case: Vec<_> = outcomes.by_ref().take(self.seeds as usize).collect();
            let of_case: Result<Vec<Outcome>, Problems> = of_case.into_iter().collect();
            all.push(of_case.map(|outcomes| CaseResult::from_outcomes(outcomes, case)));
        }
        all
    }

    /// Runs one case.
    ///
    /// # Errors
    /// The case is impossible.
    pub fn run_one(&self, case: &ExplainCase) -> Result<CaseResult, Problems> {
        let mut seen = self.run(std::slice::from_ref(case));
        seen.remove(0)
    }
}

impl CaseResult {
    fn from_outcomes(outcomes: Vec<Outcome>, case: &ExplainCase) -> CaseResult {
        let all: Vec<&Outcome> = outcomes.iter().collect();
        let mut measurement = Tally::from_runs(&all).measurement;
        tell_busiest(&mut measurement, &all, case.machine.drive());
        CaseResult {
            threads: all.first().map_or(0, |one| one.threads.len() as u32),
            measurement,
            outcomes,
        }
    }

    /// Returns the IOPS of reads and writes.
    pub fn iops(&self) -> f64 {
        self.measurement.iops()
    }

    /// Returns the range of IOPS over seeds.
    pub fn iops_by_seed(&self) -> [f64; 2] {
        let [_, least, most] = spread(self.outcomes.iter().map(rate_of));
        [least, most]
    }

    /// Returns the distance from the measurement: 0.1 is about 10 %; `None` if the two have no figure in common.
    pub fn distance(&self, targets: &[MeasuredFigure]) -> Option<f64> {
        let (mut squares, mut weights) = (0.0, 0.0);
        for target in targets {
            let Some(model) = self.figure(&target.figure()).filter(|model| *model > 0.0) else {
                continue;
            };
            let off = libm::log(model / target.value);
            squares += target.weight * off * off;
            weights += target.weight;
        }
        (weights > 0.0).then(|| libm::sqrt(squares / weights))
    }

    /// Returns a figure of the ledger, as the mean of the seeds.
    fn figure(&self, name: &str) -> Option<f64> {
        let figure = RunFigure::named(name).ok()?;
        let each = self
            .outcomes
            .iter()
            .map(|outcome| figure.value(outcome).ok());
        let each: Vec<f64> = each.collect::<Option<_>>()?;
        Some(each.iter().sum::<f64>() / each.len().max(1) as f64)
    }

    /// Returns the mean latency over both directions in microseconds.
    pub fn mean_us(&self) -> Option<f64> {
        let sides = [&self.measurement.read, &self.measurement.write];
        let sides = || sides.into_iter().flatten();
        let ios: f64 = sides().map(|side| side.ios as f64).sum();
        let sum: f64 = sides()
            .map(|side| side.ios as f64 * side.latency.mean_us)
            .sum();
        (ios > 0.0).then(|| rounded(sum / ios))
    }

    /// Returns the latency breakdown of reads and of writes.
    pub fn anatomy(&self) -> Vec<SideAnatomy> {
        type Direction = fn(&lab::ThreadOutcome) -> &lab::Measured;
        let ways: [(&'static str, Direction); 2] =
            [("reads", |it| &it.read), ("writes", |it| &it.write)];
        let side = |(direction, way): (&'static str, Direction)| {
            let mut bands = AnatomyBands::default();
            let [mut all, mut submission, mut completion] = [(); 3].map(|()| Histogram::default());
            for one in self.outcomes.iter().flat_map(|it| &it.threads).map(way) {
                bands.merge(&one.bands);
                all.merge(&one.latency);
                submission.merge(&one.submission);
                completion.merge(&one.completion);
            }
            let band = bands.percentile_bands(&[0.0, 100.0]);
            let band = band.first().filter(|band| band.count > 0)?;
            let us = |ns: f64| rounded(ns / 1e3);
            let parts = Part::ALL.iter().zip(band.mean_ns);
            // Submission and waiting for it are part of the latency; the thread's own work is not.
            let parts = parts.filter(|(part, ns)| lab::Measured::counts(**part) && *ns > 0.0);
            Some(SideAnatomy {
                direction,
                mean_us: us(all.mean_ns()),
                submission_us: (submission.count() > 0).then(|| us(submission.mean_ns())),
                completion_us: us(completion.mean_ns()),
                parts: parts.map(|(part, ns)| (part.name(), us(ns))).collect(),
            })
        };
        ways.into_iter().filter_map(side).collect()
    }

    /// Returns the part with the largest share of the latency, and the share.
    pub(crate) fn slowest_part(&self) -> Option<(Part, f64)> {
        let mut sums = [0.0; Part::COUNT];
        for thread in self.outcomes.iter().flat_map(|it| &it.threads) {
            for side in [&thread.read, &thread.write] {
                if let Some(band) = side.bands.percentile_bands(&[0.0, 100.0]).first() {
                    for (sum, ns) in sums.iter_mut().zip(band.mean_ns) {
                        *sum += ns * band.count as f64;
                    }
                }
            }
        }
        let all: f64 = sums.iter().sum();
        let parts = Part::ALL.into_iter().zip(sums);
        let (part, most) = parts.max_by(|a, b| a.1.total_cmp(&b.1))?;
        (all > 0.0).then(|| (part, most / all))
    }
}

/// Returns a case for output; `base` is the rate of the original case.
pub(super) fn trial(
    key: &str,
    what: &str,
    seen: &CaseResult,
    base: f64,
    run: &ReportingGroup,
) -> Trial {
    Trial {
        key: key.to_owned(),
        what: what.to_owned(),
        supposition: String::new(),
        check: Vec::new(),
        to_tell: Vec::new(),
        iops: rounded(seen.iops()),
        iops_by_seed: seen.iops_by_seed(),
        mean_us: seen.mean_us(),
        factor: rounded(seen.iops() / base.max(1e-9)),
        distance: seen.distance(&run.targets).map(rounded),
        watts: seen.measurement.watts,
    }
}

/// Checks whether a simulated run agrees with the measured one.
pub(super) fn agrees(seen: &CaseResult, run: &ReportingGroup) -> bool {
    let rate = libm::log(seen.iops().max(1e-9) / run.facts.iops.max(1e-9));
    let all = seen.distance(&run.targets);
    rate.abs() <= AGREES && all.is_some_and(|far| far <= 2.0 * AGREES)
}
