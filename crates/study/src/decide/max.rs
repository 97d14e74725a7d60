//! The highest load of a drive within limits: open loop (arrival rate) and closed loop (queue depth).
//!
//! The open loop answers the question of a service with many clients: the arrival rate at which a limit is exceeded.
//! The search is between a thousandth of the drive's rate at its deepest queue and slightly above that rate. Rates are
//! bisected by their ratio until two remain that differ by [`STEP`], for each seed separately. The least and the
//! greatest result of the seeds are the interval, and the answer is a rate at which every seed was observed to meet
//! all limits. A rate counts only if the drive keeps up with it. The closed loop bisects a list of depths in the same
//! way. The limit that is exceeded first is determined from runs slightly above, where all seeds together exceed a
//! limit.
//!
//! The search assumes that a limit exceeded at one height is exceeded at all greater heights. Not covered: changes
//! over longer times than a run (heat, caches of many gigabytes), which `review` and a longer `--ios` show.

mod check;

pub use check::check;

use std::collections::BTreeMap;

use catalogue::{DriveSheet, HostSheet};
use lab::{Lab, Machine, Outcome, Scenario, to_the_end};
use model::media::Precondition;
use model::{Gauge, Span};
use serde::Serialize;
use text::problem::Problems;

use super::life::{self, FirstEnd};
use super::load::{Height, Pattern, rates};
use super::pauses;
use super::slo::Slo;
use super::tally::{self, Reading, Tally, Wait};
use super::work;
use crate::review::results::{Measurement, rounded};

/// Ratio of two adjacent arrival rates.
const STEP: f64 = 1.02;
/// Lowest rate that is tried, as a share of the drive's maximum; if only the closed loop is within the limits, of it again.
const LOWEST: f64 = 1.0 / 1024.0;
/// Minimum share of the arrivals that a drive must complete within the run to keep up.
const KEPT_UP: f64 = 0.97;
/// Depths of the closed loop.
const LADDER: [u32; 23] = [
    1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
];
/// Minimum I/Os of the rarer direction beyond the deepest percentile that a run should have.
const BEYOND: f64 = 100.0;
/// Minimum and maximum I/Os of a run, unless the user sets the number.
const IOS: (f64, f64) = (20_000.0, 1_500_000.0);

/// Minimum I/Os beyond the percentile: ten are required for it to be known.
const FEWEST: f64 = 20.0;
/// How often a run is extended because fewer I/Os completed than planned, and the share of the plan at and above which
/// it is not.
const LONGER: (u32, f64) = (3, 0.7);

/// Input of a search.
#[derive(Clone, Debug)]
pub struct MaxRequest {
    /// Limits of the search.
    pub slo: Slo,
    /// Access pattern of the load.
    pub pattern: Pattern,
    /// Host of the drive.
    pub host: HostSheet,
    /// Initial state of the drive.
    pub state: Precondition,
    /// I/Os of a run; as many as the deepest percentile needs if `None`.
    pub ios: Option<u64>,
    /// First seed.
    pub seed: u64,
    /// Number of seeds; at least 1.
    pub seeds: u32,
}

/// Results of one drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MaxAnswer {
    /// Name of the drive.
    pub drive: String,
    /// Support level of its model.
    pub model: &'static str,
    /// The supporting rows.
    pub model_text: String,
    /// Highest load in open loop.
    pub open: Highest,
    /// Highest load in closed loop.
    pub closed: Highest,
    /// When its rated endurance is reached at the highest load in open loop; null without a rating, without writes, or
    /// if no load is within the limits.
    pub first_end: Option<FirstEnd>,
    /// For a pool with an intent log: the share of the writes that is still in memory at the end of the runs at that
    /// load.
    pub in_memory: Option<f64>,
}

impl MaxAnswer {
    /// Checks whether there is a load within all limits, in open loop.
    pub fn is_met(&self) -> bool {
        let readings = self.open.at.iter().flat_map(|at| &at.readings);
        self.open.at.is_some()
            && readings
                .into_iter()
                .all(|reading| reading.met == Some(true))
    }
}

/// The highest load of one kind.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Highest {
    /// The runs at it; null if even the lowest load exceeds a limit.
    pub at: Option<LoadPoint>,
    /// Interval in IOPS: at the answer, at which every seed meets the limits, and at the greatest height at which some
    /// seed does.
    pub interval: Option<[f64; 2]>,
    /// The runs slightly above, where all seeds together exceed a limit; null if the greatest tried height meets the
    /// limits.
    pub beyond: Option<LoadPoint>,
    /// The failed condition there: a limit, or `keeps up`.
    pub broke: Option<String>,
    /// Main latency part of the failing I/Os.
    pub wait: Option<Wait>,
    /// All tried heights, ascending: offered IOPS or I/Os in flight, completed IOPS, and the figure of each limit
    /// (mean of all seeds).
    pub tried: Vec<TriedHeight>,
}

/// A tried height.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TriedHeight {
    /// Height of the load.
    pub height: Height,
    /// Completed IOPS, mean of its runs.
    pub iops: f64,
    /// Number of seeds that met all limits, and number of seeds that ran.
    pub within: [u32; 2],
    /// Figures of the limits, over all runs.
    pub readings: Vec<Reading>,
}

/// Runs at one height with every seed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LoadPoint {
    /// Height of the load.
    pub height: Height,
    /// I/Os per second.
    pub iops: f64,
    /// Figures of the limits.
    pub readings: Vec<Reading>,
    /// All figures of the runs.
    pub measurement: Measurement,
    /// Host threads that issue I/O.
    pub threads: u32,
}

/// Runs of one drive, each once.
struct LoadRunner<'a> {
    lab: &'a Lab,
    request: &'a MaxRequest,
    machine: Machine,
    /// Outcomes by height (as a sortable key) and seed.
    done: BTreeMap<(u64, u32), Outcome>,
    /// IOPS for which the length of a run was planned.
    planned: BTreeMap<(u64, u32), f64>,
    /// Maximum IOPS of the drive.
    most: f64,
}

fn key(height: Height) -> u64 {
    match height {
        Height::Arrivals(rate) => rate.to_bits(),
        Height::InFlight(depth) => u64::from(depth),
    }
}

impl LoadRunner<'_> {
    /// Returns the number of I/Os that a run counts.
    fn ios(&self) -> f64 {
        if let Some(ios) = self.request.ios {
            return ios as f64;
        }
        let one = ios_for_one_beyond(self.request);
        (BEYOND * one).clamp(IOS.0, IOS.1).max(FEWEST * one)
    }

    /// Returns ramp and runtime of a run at about this rate.
    fn times(&self, iops: f64) -> (Span, Span) {
        let runtime = Span::from_seconds((self.ios() / iops.max(1.0)).max(1e-3));
        let settling = Span::from_ms(if self.request.pattern.writes() {
            100
        } else {
            20
        });
        let whole = |span: Span| Span::from_us(span.ns().div_ceil(1000));
        (
            whole(settling.min(Span::from_ns(runtime.ns() / 4))),
            whole(runtime),
        )
    }

    /// Returns the approximate IOPS at a height.
    fn expected(&self, height: Height) -> f64 {
        match height {
            Height::Arrivals(rate) => rate,
            Height::InFlight(depth) => {
                let known = self.done.iter().filter_map(|((key, _), outcome)| {
                    let other = u32::try_from(*key).ok().filter(|other| *other <= 1024)?;
                    Some((other, super::rate_of(outcome)))
                });
                // A rate grows at most in proportion to the depth.
                let nearest = known.min_by_key(|(other, _)| other.abs_diff(depth));
                nearest.map_or(10_000.0, |(other, rate)| match other < depth {
                    true => rate,
                    false => rate * f64::from(depth) / f64::from(other),
                })
            }
        }
    }

    fn text(&self, height: Height) -> String {
        let planned = self.planned.get(&(key(height), 0)).copied();
        let (ramp, runtime) = self.times(planned.unwrap_or_else(|| self.expected(height)));
        self.request.pattern.text(height, ramp, runtime)
    }

    fn scenario(&self, height: Height, seed: u32, iops: f64) -> Result<Scenario, Problems> {
        let (ramp, runtime) = self.times(iops);
        let jobs = self.request.pattern.jobs(height, ramp, runtime)?;
        let first = self.request.seed;
        let mut scenario = Scenario::jobs(
            self.machine.clone(),
            self.request.state,
            jobs,
            first + u64::from(seed),
        );
        // One state for all seeds, so that it is computed once; the first seed's run is that of `drivelab run`.
        scenario.warm_seed = Some(first);
        Ok(scenario)
    }

    /// Runs what has not been run yet, on all cores; runs that were too short are repeated with a longer time.
    fn run(&mut self, wanted: &[(Height, u32)]) -> Result<(), Problems> {
        let new = wanted
            .iter()
            .filter(|(height, seed)| !self.done.contains_key(&(key(*height), *seed)));
        let mut new: Vec<(Height, u32, f64)> = new
            .map(|&(height, seed)| (height, seed, self.expected(height)))
            .collect();
        for round in 0..LONGER.0 {
            let scenarios = new
                .iter()
                .map(|&(height, seed, iops)| self.scenario(height, seed, iops));
            let scenarios: Vec<Scenario> = scenarios.collect::<Result<_, _>>()?;
            let outcomes = self.lab.run_all(&scenarios, &to_the_end);
            let mut again = Vec::new();
            for ((height, seed, planned), outcome) in new.into_iter().zip(outcomes) {
                let outcome = outcome?;
                let rate = super::rate_of(&outcome).max(planned / 1000.0).max(1.0);
                // For arrivals, the number is fixed: fewer complete if the drive cannot keep up.
                if matches!(height, Height::InFlight(_))
                    && rate < LONGER.1 * planned
                    && round + 1 < LONGER.0
                {
                    again.push((height, seed, rate));
                }
                self.planned.insert((key(height), seed), planned);
                self.done.insert((key(height), seed), outcome);
            }
            new = again;
        }
        Ok(())
    }

    fn outcome(&self, height: Height, seed: u32) -> &Outcome {
        &self.done[&(key(height), seed)]
    }

    /// Checks whether the drive keeps up and meets all limits that load can exceed.
    fn is_within(&self, height: Height, outcomes: &[&Outcome]) -> bool {
        self.broken(height, outcomes).is_none()
    }

    /// Returns the first limit that is exceeded.
    fn broken(&self, height: Height, outcomes: &[&Outcome]) -> Option<String> {
        let tally = Tally::from_runs(outcomes);
        let limits = self.request.slo.ceilings();
        let broken = limits
            .map(|limit| tally.reading(limit, None))
            .find(|reading| reading.met == Some(false));
        broken
            .map(|reading| reading.limit)
            .or_else(|| match height {
                Height::Arrivals(rate) if self.falls_behind(rate, outcomes) => {
                    Some(String::from("keeps up"))
                }
                _ => None,
            })
    }

    /// Checks whether fewer I/Os complete than arrive.
    fn falls_behind(&self, rate: f64, outcomes: &[&Outcome]) -> bool {
        let least = KEPT_UP - self.chance(outcomes.len());
        tally::own_rates(outcomes) < least * self.request.pattern.offered(rate)
    }

    /// Returns the share by which arrivals may fall short by chance: three standard deviations of a Poisson count, less
    /// those of a run of [`IOS`], for which [`KEPT_UP`] has room.
    fn chance(&self, runs: usize) -> f64 {
        let deviation = |ios: f64| 3.0 / libm::sqrt(ios * runs.max(1) as f64);
        (deviation(self.ios()) - deviation(IOS.0)).max(0.0)
    }

    fn point(&self, height: Height) -> LoadPoint {
        let outcomes = self.outcomes(height);
        let tally = Tally::from_runs(&outcomes);
        let limits = self.request.slo.limits.iter();
        let mut measurement = tally.measurement.clone();
        measurement.job = self.text(height);
        tally::tell_busiest(&mut measurement, &outcomes, self.machine.drive());
        LoadPoint {
            height,
            iops: rounded(tally::rate_at(height, &outcomes)),
            readings: limits.map(|limit| tally.reading(limit, None)).collect(),
            measurement,
            threads: outcomes
                .first()
                .map_or(0, |outcome| outcome.threads.len() as u32),
        }
    }

    /// Returns the share of the writes that is still in a pool's memory at the end of the runs at this height.
    fn in_memory(&self, height: Height) -> Option<f64> {
        let share = |outcome: &&Outcome| {
            let written =
                Tally::from_runs(&[*outcome]).written_bytes_a_second() * outcome.counted.seconds();
            let dirty = outcome.gauge(Gauge::DirtyBytes).filter(|_| written > 0.0)?;
            Some(rounded((dirty / written).min(1.0)))
        };
        let has_log = work::dirty_max_of(self.machine.drive()).is_some();
        let outcomes = self.outcomes(height);
        let shares = outcomes.iter().filter(|_| has_log).filter_map(share);
        shares.max_by(f64::total_cmp)
    }

    /// Returns the outcomes of all seeds that ran at this height.
    fn outcomes(&self, height: Height) -> Vec<&Outcome> {
        let of_seed = |seed| self.done.get(&(key(height), seed));
        (0..self.request.seeds).filter_map(of_seed).collect()
    }

    /// Returns for each seed, by bisection, the greatest of these heights at which it meets the limits; `None` if even
    /// the first exceeds one.
    fn search(
        &mut self,
        heights: &[Height],
        tell: &dyn Fn(String),
    ) -> Result<Vec<Option<usize>>, Problems> {
        // Limits are met below the first of the two, and exceeded at and above the second.
        let mut ends: Vec<(Option<usize>, usize)> =
            vec![(None, heights.len()); self.request.seeds as usize];
        loop {
            let mut wanted = Vec::new();
            for (seed, &(low, high)) in (0..).zip(&ends) {
                let next = low.map_or(0, |low| low + 1);
                if next < high {
                    // The lowest first: if it exceeds a limit, no other height need be tried.
                    let at = match low {
                        None => 0,
                        Some(low) => low + (high - low) / 2,
                    };
                    wanted.push((heights[at], at, seed));
                }
            }
            let Some(&(height, ..)) = wanted.first() else {
                break;
            };
            tell(match height {
                Height::Arrivals(rate) => {
                    format!("{} arrivals per second", text::digits::count(rate))
                }
                Height::InFlight(depth) => format!("{depth} in flight"),
            });
            let runs: Vec<(Height, u32)> = wanted
                .iter()
                .map(|&(height, _, seed)| (height, seed))
                .collect();
            self.run(&runs)?;
            for (height, at, seed) in wanted {
                let within = self.is_within(height, &[self.outcome(height, seed)]);
                let ends = &mut ends[seed as usize];
                match within {
                    true => ends.0 = Some(at),
                    false => ends.1 = at,
                }
            }
        }
        Ok(ends.into_iter().map(|(low, _)| low).collect())
    }

    /// Returns the greatest of these heights at which every seed meets the limits, and what fails above.
    fn highest(&mut self, heights: &[Height], tell: &dyn Fn(String)) -> Result<Highest, Problems> {
        let seeds = self.request.seeds;
        let all = |height: Height| {
            (0..seeds)
                .map(move |seed| (height, seed))
                .collect::<Vec<_>>()
        };
        let of_seed = self.search(heights, tell)?;
        let mut at = of_seed.iter().copied().min().flatten();
        // Every seed must be observed to meet the limits there.
        while let Some(index) = at {
            self.run(&all(heights[index]))?;
            let each = (0..seeds)
                .all(|seed| self.is_within(heights[index], &[self.outcome(heights[index], seed)]));
            if each {
                break;
            }
            at = index.checked_sub(1);
        }
        let beyond = self.first_over_limit(heights, at.map_or(0, |index| index + 1))?;
        let mut broke = None;
        let mut wait = None;
        if let Some(height) = beyond {
            let outcomes = self.outcomes(height);
            broke = self.broken(height, &outcomes);
            let mut limits = self.request.slo.ceilings();
            let limit = limits.find(|limit| Some(&limit.text) == broke.as_ref());
            let latency = || {
                self.request
                    .slo
                    .limits
                    .iter()
                    .find(|limit| limit.figure.is_latency())
            };
            wait = limit
                .filter(|limit| limit.figure.is_latency())
                .or_else(latency)
                .and_then(|limit| Tally::from_runs(&outcomes).wait(limit));
        }
        let rates: Option<Vec<f64>> = of_seed
            .iter()
            .zip(0..)
            .map(|(index, seed)| {
                let height = heights[(*index)?];
                Some(tally::rate_at(height, &[self.outcome(height, seed)]))
            })
            .collect();
        let point = at.map(|index| self.point(heights[index]));
        Ok(Highest {
            interval: point.as_ref().zip(rates).map(|(point, rates)| {
                [
                    point.iops,
                    rounded(rates.into_iter().fold(point.iops, f64::max)),
                ]
            }),
            at: point,
            beyond: beyond.map(|height| self.point(height)),
            broke,
            wait,
            tried: self.tried_heights(heights),
        })
    }

    /// Returns the first height at or above `first`, in steps that double, at which all seeds together exceed a limit.
    fn first_over_limit(
        &mut self,
        heights: &[Height],
        first: usize,
    ) -> Result<Option<Height>, Problems> {
        let (mut index, mut step) = (first, 1);
        while let Some(&height) = heights.get(index) {
            let seeds: Vec<(Height, u32)> =
                (0..self.request.seeds).map(|seed| (height, seed)).collect();
            self.run(&seeds)?;
            if !self.is_within(height, &self.outcomes(height)) {
                return Ok(Some(height));
            }
            index = match index + 1 == heights.len() {
                true => heights.len(),
                false => (index + step).min(heights.len() - 1),
            };
            step *= 2;
        }
        Ok(None)
    }

    fn tried_heights(&self, heights: &[Height]) -> Vec<TriedHeight> {
        let mut tried = Vec::new();
        for &height in heights {
            let outcomes = self.outcomes(height);
            if outcomes.is_empty() {
                continue;
            }
            let within = outcomes
                .iter()
                .filter(|one| self.is_within(height, &[one]))
                .count();
            let tally = Tally::from_runs(&outcomes);
            let limits = self.request.slo.limits.iter();
            tried.push(TriedHeight {
                height,
                iops: rounded(tally::rate_at(height, &outcomes)),
                within: [within as u32, outcomes.len() as u32],
                readings: limits.map(|limit| tally.reading(limit, None)).collect(),
            });
        }
        tried
    }
}

/// Returns the number of I/Os needed for one beyond the deepest percentile, in the rarer direction.
fn ios_for_one_beyond(request: &MaxRequest) -> f64 {
    let beyond = 1.0 - request.slo.deepest().unwrap_or(99.0) / 100.0;
    1.0 / beyond / request.pattern.rarer()
}

/// Returns the highest load of a drive within the limits.
///
/// # Errors
/// The load does not fit the drive, or its options are invalid.
pub fn highest(
    request: &MaxRequest,
    drive: &DriveSheet,
    lab: &Lab,
    tell: &dyn Fn(String),
) -> Result<MaxAnswer, Problems> {
    let known = pauses::statement_for(drive, &request.slo, request.pattern.writes());
    let mut runs = LoadRunner {
        lab,
        request,
        machine: Machine::new(drive, &request.host),
        done: BTreeMap::new(),
        planned: BTreeMap::new(),
        most: 0.0,
    };
    // A pilot run, so that the first run has the right length.
    let deepest = LADDER[LADDER.len() - 1];
    tell(String::from("the drive's most"));
    let mut rate = 10_000.0;
    for _ in 0..3 {
        let scenario = runs.scenario(Height::InFlight(deepest), 0, rate * 10.0)?;
        rate = super::rate_of(&lab.run(&scenario)?).max(1.0);
    }
    runs.most = rate;
    let depths: Vec<Height> = LADDER
        .iter()
        .map(|&depth| Height::InFlight(depth))
        .collect();
    let closed = runs.highest(&depths, tell)?;
    // The pilot run may have been too short to find the drive's maximum.
    let done = closed.tried.iter().map(|tried| tried.iops);
    let found = done.fold(runs.most, f64::max);
    if found > runs.most * STEP {
        runs.most = found;
    }
    let mut open = runs.highest(&rates(runs.most, LOWEST, STEP), tell)?;
    if open.at.is_none() && closed.at.is_some() {
        // Some I/Os in flight stay within the limits, so a lower rate of arrivals may as well.
        open = runs.highest(&rates(runs.most * LOWEST, LOWEST, STEP), tell)?;
    }
    let first_end = open.at.as_ref().and_then(|at| {
        let outcomes: Vec<Outcome> = runs.outcomes(at.height).into_iter().cloned().collect();
        life::first_end(drive, &outcomes)
    });
    let in_memory = open.at.as_ref().and_then(|at| runs.in_memory(at.height));
    Ok(MaxAnswer {
        drive: drive.id.clone(),
        model: known.grade.name(),
        model_text: known.text,
        open,
        closed,
        first_end,
        in_memory,
    })
}
