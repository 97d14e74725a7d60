//! Mixed reads and writes, from reads only to writes only. Reports IOPS and latency of each direction, where the rate
//! of a drive drops, and how much lower it is than alternation between the two ends would give.
//!
//! Every mix runs at the same queue depth (closed loop), each from the same state. A pilot run of each mix determines
//! its length. Not covered: changes over longer times than a run (heat, caches of many gigabytes; `fill` shows those).

use catalogue::{DriveSheet, HostSheet};
use lab::{Lab, Machine, Outcome, ProgressCallback, Scenario};
use model::Span;
use model::media::Precondition;
use serde::Serialize;
use text::problem::{Problem, Problems};

use super::load::{Height, Pattern};
use super::slo::{LimitMetric, LimitScope};
use super::tally::Tally;
use crate::ledger::support;
use crate::review::results::rounded;

/// Default percentage of reads between two mixes.
pub const STEP: u32 = 10;
/// Default number of I/Os in flight.
pub const DEPTH: u32 = 32;
/// Default number of I/Os of a run: at 10 % of the rarer direction, enough for sixty beyond its p99 in three seeds.
const IOS: u64 = 20_000;
/// IOPS for which the length of a pilot run is planned, and the number of its I/Os.
const PILOT: (f64, f64) = (10_000.0, 2_000.0);
/// The rate of a drive drops between adjacent mixes if the second keeps less than this share of the IOPS.
const KEPT: f64 = 0.75;

/// Input of a measurement.
#[derive(Clone, Debug)]
pub struct MixRequest {
    /// Load of the mixes; its share of reads is replaced by each of `percents`.
    pub pattern: Pattern,
    /// I/Os in flight.
    pub depth: u32,
    /// Percentage of reads of each mix, descending.
    pub percents: Vec<u32>,
    /// Host of the drive.
    pub host: HostSheet,
    /// Initial state of the drive.
    pub state: Precondition,
    /// I/Os of a run; [`IOS`] if `None`.
    pub ios: Option<u64>,
    /// First seed.
    pub seed: u64,
    /// Number of seeds; at least 1.
    pub seeds: u32,
}

/// Results of one drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MixAnswer {
    /// Name of the drive.
    pub drive: String,
    /// Support level of its model.
    pub model: &'static str,
    /// The supporting rows.
    pub model_text: String,
    /// Results by mix, in the requested order.
    pub points: Vec<MixPoint>,
    /// Where the rate drops; null if each step keeps three quarters of the IOPS.
    pub falls_off: Option<MixStep>,
    /// The mix with the smallest share of what the two ends would give in alternation; null if the ends were not
    /// requested.
    pub least_of_ends: Option<MixShare>,
}

/// Results of one mix.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MixPoint {
    /// Reads, in percent of the I/Os.
    pub read_percent: u32,
    /// IOPS of reads and writes: mean, least and greatest of the seeds.
    pub iops: [f64; 3],
    /// 10^6 bytes per second.
    pub mb_s: f64,
    /// Latency of reads; null if there are none.
    pub read: Option<DirectionLatency>,
    /// Latency of writes; null if there are none.
    pub write: Option<DirectionLatency>,
    /// IOPS as a share of what the two ends would give in alternation; null if the ends were not requested.
    pub of_ends: Option<f64>,
}

/// Latencies of one direction in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct DirectionLatency {
    /// Mean latency in microseconds.
    pub mean_us: f64,
    /// 99th percentile; null if there are too few I/Os.
    pub p99_us: Option<f64>,
    /// 99.9th percentile; null as above.
    pub p99_9_us: Option<f64>,
}

/// A step from one mix to the next.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct MixStep {
    /// Percentage of reads before and after.
    pub read_percent: [u32; 2],
    /// Ratio of IOPS after to IOPS before.
    pub kept: f64,
}

/// A mix, and its share of what the two ends would give.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct MixShare {
    /// Reads, in percent of the I/Os.
    pub read_percent: u32,
    /// Share of what the two ends would give.
    pub of_ends: f64,
}

/// Returns percentages of reads from 100 down to 0 in steps of `step`; 0 is always included.
pub fn percents(step: u32) -> Vec<u32> {
    let steps = (0..100).step_by(step.max(1) as usize);
    let mut all: Vec<u32> = steps.map(|less| 100 - less).collect();
    all.push(0);
    all
}

/// Checks the request, independently of the drive.
///
/// # Errors
/// All problems at once.
pub fn check(request: &MixRequest) -> Result<(), Problems> {
    let mut problems = request.pattern.check().err().unwrap_or_default();
    if !matches!(request.pattern.rw.as_str(), "randrw" | "rw" | "readwrite") {
        problems.0.push(Problem {
            origin: String::from("command line"),
            place: text::problem::Place::Whole,
            what: format!(
                "--rw {}: is not a mix of reads and writes",
                request.pattern.rw
            ),
            help: Some(String::from("randrw, or rw for a sequential mix")),
        });
    }
    problems.or(())
}

/// Measures the mixes of a drive. `go_on` is called with the completed share; a stopped run gives no answer.
///
/// # Errors
/// The load does not fit the drive.
pub fn measure(
    request: &MixRequest,
    drive: &DriveSheet,
    lab: &Lab,
    go_on: ProgressCallback<'_>,
) -> Result<MixAnswer, Problems> {
    let machine = Machine::new(drive, &request.host);
    let scenario = |percent: u32, seed: u64, runtime: Span| {
        let pattern = Pattern {
            read_percent: percent,
            ..request.pattern.clone()
        };
        let settling = Span::from_ms(if pattern.writes() { 100 } else { 20 });
        let ramp = settling.min(Span::from_ns(runtime.ns() / 4));
        let jobs = pattern.jobs(Height::InFlight(request.depth), ramp, runtime)?;
        let mut scenario = Scenario::jobs(machine.clone(), request.state, jobs, seed);
        scenario.warm_seed = Some(request.seed);
        Ok(scenario)
    };
    let long = |iops: f64, ios: f64| Span::from_us((ios / iops * 1e6).max(1e3) as u64);
    let pilots = request.percents.iter();
    let pilots = pilots.map(|&percent| scenario(percent, request.seed, long(PILOT.0, PILOT.1)));
    let pilots: Vec<Scenario> = pilots.collect::<Result<_, Problems>>()?;
    let pilots = lab.run_all(&pilots, &|share| go_on(0.1 * share));
    let ios = request.ios.unwrap_or(IOS) as f64;
    let mut plans = Vec::new();
    for (&percent, pilot) in request.percents.iter().zip(pilots) {
        let runtime = long(super::rate_of(&pilot?).max(1.0), ios);
        for seed in request.seed..request.seed + u64::from(request.seeds) {
            plans.push(scenario(percent, seed, runtime)?);
        }
    }
    let outcomes = lab.run_all(&plans, &|share| go_on(0.1 + 0.9 * share));
    let outcomes: Vec<Outcome> = outcomes.into_iter().collect::<Result<_, _>>()?;
    let runs = outcomes.chunks(request.seeds as usize);
    let points = request.percents.iter().zip(runs);
    let mut points: Vec<MixPoint> = points
        .map(|(&percent, runs)| point(percent, runs))
        .collect();
    share_of_ends(&mut points);
    let known = support::statement(drive);
    Ok(MixAnswer {
        drive: drive.id.clone(),
        model: known.grade.name(),
        model_text: known.text,
        falls_off: falls_off(&points),
        least_of_ends: least_of_ends(&points),
        points,
    })
}

fn point(percent: u32, runs: &[Outcome]) -> MixPoint {
    let all: Vec<&Outcome> = runs.iter().collect();
    let tally = Tally::from_runs(&all);
    let latency = |of: LimitScope| {
        Some(DirectionLatency {
            mean_us: tally.latency_us(of, LimitMetric::Mean)?,
            p99_us: tally.latency_us(of, LimitMetric::Percentile(99.0)),
            p99_9_us: tally.latency_us(of, LimitMetric::Percentile(99.9)),
        })
    };
    let directions = [&tally.measurement.read, &tally.measurement.write];
    let mb_s = directions.into_iter().flatten().map(|one| one.mb_s).sum();
    MixPoint {
        read_percent: percent,
        iops: super::spread(runs.iter().map(super::rate_of)),
        mb_s: rounded(mb_s),
        read: latency(LimitScope::Read),
        write: latency(LimitScope::Write),
        of_ends: None,
    }
}

/// Computes each point's share of what reads alone and writes alone give in alternation: a read takes 1/(rate of reads
/// alone) seconds, and a write likewise.
fn share_of_ends(points: &mut [MixPoint]) {
    let end = |percent: u32| {
        let found = points.iter().find(|point| point.read_percent == percent);
        found.map(|point| point.iops[0]).filter(|iops| *iops > 0.0)
    };
    let (Some(reads), Some(writes)) = (end(100), end(0)) else {
        return;
    };
    for point in points {
        let share = f64::from(point.read_percent) / 100.0;
        let in_turn = 1.0 / (share / reads + (1.0 - share) / writes);
        point.of_ends = Some(rounded(point.iops[0] / in_turn));
    }
}

/// Returns the step between adjacent mixes that keeps the least, if it is below the bound.
fn falls_off(points: &[MixPoint]) -> Option<MixStep> {
    let steps = points.windows(2).map(|pair| MixStep {
        read_percent: [pair[0].read_percent, pair[1].read_percent],
        kept: rounded(pair[1].iops[0] / pair[0].iops[0].max(1e-9)),
    });
    let steepest = steps.min_by(|one, other| one.kept.total_cmp(&other.kept))?;
    (steepest.kept < KEPT).then_some(steepest)
}

fn least_of_ends(points: &[MixPoint]) -> Option<MixShare> {
    let shares = points.iter().filter_map(|point| {
        Some(MixShare {
            read_percent: point.read_percent,
            of_ends: point.of_ends?,
        })
    });
    shares.min_by(|one, other| one.of_ends.total_cmp(&other.of_ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(all: &[(u32, f64)]) -> Vec<MixPoint> {
        let point = |&(read_percent, iops): &(u32, f64)| MixPoint {
            read_percent,
            iops: [iops; 3],
            mb_s: 0.0,
            read: None,
            write: None,
            of_ends: None,
        };
        all.iter().map(point).collect()
    }

    #[test]
    fn mixes_go_down_to_writes_alone_whatever_the_step() {
        assert_eq!(percents(25), [100, 75, 50, 25, 0]);
        assert_eq!(percents(30), [100, 70, 40, 10, 0]);
        assert_eq!(percents(100), [100, 0]);
    }

    #[test]
    fn the_steepest_step_is_named_if_it_is_steep() {
        let steep = points(&[(100, 600.0), (90, 200.0), (50, 150.0), (0, 140.0)]);
        let found = falls_off(&steep).expect("a third is left");
        assert_eq!(found.read_percent, [100, 90]);
        assert_eq!(
            falls_off(&points(&[(100, 600.0), (50, 460.0), (0, 350.0)])),
            None
        );
    }

    /// A thousand reads per second alone and a hundred writes alone: half of each is 2 / (1/1000 + 1/100) = 181.8.
    #[test]
    fn a_drive_that_does_both_in_turn_has_all_of_its_ends() {
        let mut all = points(&[(100, 1000.0), (50, 181.818_18), (0, 100.0)]);
        share_of_ends(&mut all);
        assert!(
            all.iter().all(|point| point.of_ends == Some(1.0)),
            "{all:?}"
        );
        let mut half = points(&[(100, 1000.0), (50, 90.909_09), (0, 100.0)]);
        share_of_ends(&mut half);
        let least = least_of_ends(&half).expect("both ends");
        assert_eq!((least.read_percent, least.of_ends), (50, 0.5));
        let mut without = points(&[(100, 1000.0), (50, 90.0)]);
        share_of_ends(&mut without);
        assert_eq!(least_of_ends(&without), None);
    }
}
