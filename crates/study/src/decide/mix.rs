//! Reads and writes mixed, from reads alone to writes alone: I/Os a second and latency of each direction, where a drive falls off, and
//! how much less it does than its two ends would give in turn.
//!
//! Every mix runs with as many I/Os in flight (closed loop), each from the same state. A pilot of each mix says how long it has to
//! run. Left out: what changes over longer times than a run lasts (heat, caches of many gigabytes; `fill` shows those).

use catalogue::{DriveSheet, HostSheet};
use lab::{GoOn, Lab, Machine, Outcome, Scenario};
use model::Span;
use model::media::Precondition;
use serde::Serialize;
use text::problem::{Problem, Problems};

use super::load::{Height, Pattern};
use super::slo::{Figure, Of};
use super::tally::Tally;
use crate::ledger::support;
use crate::review::results::rounded;

/// I/Os of a run, unless the user says how many: of the rarer tenth as many as leave sixty beyond its 99th percentile in three seeds.
const IOS: u64 = 20_000;
/// I/Os a second that a pilot is made long enough for, and how many of them it does.
const PILOT: (f64, f64) = (10_000.0, 2_000.0);
/// A step between neighbouring mixes that keeps less than this share of the I/Os is where a drive falls off.
const KEPT: f64 = 0.75;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// The load; its share of reads is replaced by each of `percents`.
    pub pattern: Pattern,
    /// I/Os in flight.
    pub depth: u32,
    /// Percent of reads of each mix, falling.
    pub percents: Vec<u32>,
    /// The host.
    pub host: HostSheet,
    /// The state the drive begins in.
    pub state: Precondition,
    /// I/Os of a run; [`IOS`] if `None`.
    pub ios: Option<u64>,
    /// The first seed.
    pub seed: u64,
    /// How many seeds; at least 1.
    pub seeds: u32,
}

/// What was found of one drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// The drive.
    pub drive: String,
    /// How well its model is known.
    pub model: &'static str,
    /// The rows behind that.
    pub model_text: String,
    /// By mix, in the order that was asked for.
    pub points: Vec<Point>,
    /// Where it falls off; null if each step keeps three quarters of the I/Os.
    pub falls_off: Option<Step>,
    /// The mix that does the least of what the two ends would give in turn; null if the ends were not asked for.
    pub least_of_ends: Option<Share>,
}

/// One mix.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Point {
    /// Percent of reads.
    pub read_percent: u32,
    /// Reads and writes a second: mean, least and greatest of the seeds.
    pub iops: [f64; 3],
    /// 10^6 bytes a second.
    pub mb_s: f64,
    /// Of reads; null if there are none.
    pub read: Option<Latency>,
    /// Of writes.
    pub write: Option<Latency>,
    /// I/Os a second as a share of what the two ends would give in turn; null if the ends were not asked for.
    pub of_ends: Option<f64>,
}

/// Latencies of one direction in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Latency {
    /// Mean.
    pub mean_us: f64,
    /// 99th percentile; null if there are too few I/Os.
    pub p99_us: Option<f64>,
    /// The same, 99.9th.
    pub p99_9_us: Option<f64>,
}

/// From one mix to the next.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Step {
    /// Percent of reads before and after.
    pub read_percent: [u32; 2],
    /// I/Os a second after it as a share of those before.
    pub kept: f64,
}

/// A mix, and its share of what the two ends would give.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Share {
    /// Percent of reads.
    pub read_percent: u32,
    /// The share.
    pub of_ends: f64,
}

/// Percents of reads from 100 down to 0 in steps of `step`; 0 is always among them.
pub fn percents(step: u32) -> Vec<u32> {
    let steps = (0..100).step_by(step.max(1) as usize);
    let mut all: Vec<u32> = steps.map(|less| 100 - less).collect();
    all.push(0);
    all
}

/// Everything wrong with what is asked, whatever the drive.
///
/// # Errors
/// All of it at once.
pub fn check(request: &Request) -> Result<(), Problems> {
    let mut problems = request.pattern.check().err().unwrap_or_default();
    if !matches!(request.pattern.rw.as_str(), "randrw" | "rw" | "readwrite") {
        problems.0.push(Problem {
            origin: String::from("command line"),
            place: text::problem::Place::Whole,
            what: format!("--rw {}: is no mix of reads and writes", request.pattern.rw),
            help: Some(String::from("randrw, or rw for a mix in order")),
        });
    }
    problems.or(())
}

/// The mixes of a drive. `go_on` is told the share that is done; what is stopped is no answer.
///
/// # Errors
/// The load does not fit the drive.
pub fn measure(
    request: &Request,
    drive: &DriveSheet,
    lab: &Lab,
    go_on: GoOn<'_>,
) -> Result<Answer, Problems> {
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
    let mut points: Vec<Point> = points
        .map(|(&percent, runs)| point(percent, runs))
        .collect();
    share_of_ends(&mut points);
    let known = support::statement(drive);
    Ok(Answer {
        drive: drive.id.clone(),
        model: known.grade.name(),
        model_text: known.text,
        falls_off: falls_off(&points),
        least_of_ends: least_of_ends(&points),
        points,
    })
}

fn point(percent: u32, runs: &[Outcome]) -> Point {
    let all: Vec<&Outcome> = runs.iter().collect();
    let tally = Tally::of(&all);
    let latency = |of: Of| {
        Some(Latency {
            mean_us: tally.latency_us(of, Figure::Mean)?,
            p99_us: tally.latency_us(of, Figure::Percentile(99.0)),
            p99_9_us: tally.latency_us(of, Figure::Percentile(99.9)),
        })
    };
    let directions = [&tally.measurement.read, &tally.measurement.write];
    let mb_s = directions.into_iter().flatten().map(|one| one.mb_s).sum();
    Point {
        read_percent: percent,
        iops: super::spread(runs.iter().map(super::rate_of)),
        mb_s: rounded(mb_s),
        read: latency(Of::Read),
        write: latency(Of::Write),
        of_ends: None,
    }
}

/// Each point's share of what reads alone and writes alone give in turn: a read takes 1/(rate of reads alone) seconds, a write the same.
fn share_of_ends(points: &mut [Point]) {
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

/// The step between neighbours that keeps the least, if that is little.
fn falls_off(points: &[Point]) -> Option<Step> {
    let steps = points.windows(2).map(|pair| Step {
        read_percent: [pair[0].read_percent, pair[1].read_percent],
        kept: rounded(pair[1].iops[0] / pair[0].iops[0].max(1e-9)),
    });
    let steepest = steps.min_by(|one, other| one.kept.total_cmp(&other.kept))?;
    (steepest.kept < KEPT).then_some(steepest)
}

fn least_of_ends(points: &[Point]) -> Option<Share> {
    let shares = points.iter().filter_map(|point| {
        Some(Share {
            read_percent: point.read_percent,
            of_ends: point.of_ends?,
        })
    });
    shares.min_by(|one, other| one.of_ends.total_cmp(&other.of_ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(all: &[(u32, f64)]) -> Vec<Point> {
        let point = |&(read_percent, iops): &(u32, f64)| Point {
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

    /// A thousand reads a second alone and a hundred writes alone: half of each is 2 / (1/1000 + 1/100) = 181.8.
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
