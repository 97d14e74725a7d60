//! A measured run compared with its drive's model: its bottleneck, the condition that explains it, and the cost of
//! each option.

use catalogue::{DriveSheet, HostSheet};
use lab::{Lab, Machine};
use model::Part;
use model::media::Precondition;
use serde::Serialize;
use text::digits::digits;
use text::problem::Problems;
use tier::DriveConfig;

use super::causes::{self, Cause};
use super::change::{self, Change};
use super::depth::{self, DepthAdvice};
use super::file::{Bound, ReportingGroup, RunFacts};
use super::gap::RateGap;
use super::heat::Heat;
use super::pairs;
use super::rating::{self, PerformanceRating};
pub use super::runs::{AGREES, Trial};
use super::runs::{ALIKE, CaseResult, CaseRunner, ExplainCase, SideAnatomy, agrees, trial};
use super::syncs;
use crate::decide::tally::{busiest, place};
use crate::ledger::support;
use crate::review::results::rounded;
use crate::review::shape::Shape;

/// The drive, and the conditions of its model's runs.
#[derive(Clone, Debug)]
pub struct ExplainRequest {
    /// The measured drive.
    pub drive: DriveSheet,
    /// Host of the drive.
    pub host: HostSheet,
    /// Assumed state of the drive during the measurement.
    pub state: Precondition,
    /// First seed.
    pub seed: u64,
    /// Number of seeds; at least 1.
    pub seeds: u32,
}

/// Results on one run of the file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ExplainAnswer {
    /// Names of its jobs.
    pub run: String,
    /// Bottleneck of the run.
    pub bound: Bound,
    /// Consequences, in sentences; empty if they depend on more information.
    pub follows: Vec<String>,
    /// Figures in the file.
    pub measured: RunFacts,
    /// Differences between the measurement and a model's run.
    pub unlike: Vec<String>,
    /// Contradictions between the results and their options; left out without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<String>,
    /// A change of rate during the run, with possible causes; null without any sign of a change.
    pub change: Option<Change>,
    /// Results of the drive's model; null if no drive was named.
    pub model: Option<ModelComparison>,
}

/// Results of a drive's model on a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ModelComparison {
    /// Name of the drive.
    pub drive: String,
    /// Assumed initial state of the drive.
    pub state: &'static str,
    /// Support level of its model.
    pub model: &'static str,
    /// The supporting rows.
    pub model_text: String,
    /// The data sheet's rating for the pattern; null if there is none.
    pub rating: Option<PerformanceRating>,
    /// Measured value divided by the rating.
    pub of_rating: Option<f64>,
    /// The run as the file describes it.
    pub as_asked: Trial,
    /// Distance of the measured rate from that.
    pub gap: RateGap,
    /// Whether that agrees with the measurement.
    pub as_asked_agrees: bool,
    /// Runs under other conditions; pairs of conditions only if they explain the run.
    pub conditions: Vec<Trial>,
    /// Keys of the conditions that explain the measurement, the closest first; empty if the run as described is as
    /// close. The measurement does not distinguish between these conditions.
    pub explained_by: Vec<String>,
    /// Whether the model agrees with the measurement under the explaining condition.
    pub agrees: bool,
    /// Runs without each option that may limit it, under the explaining condition.
    pub options: Vec<Trial>,
    /// Latency breakdown under that condition.
    pub anatomy: Vec<SideAnatomy>,
    /// Settings that reach the rating.
    pub advice: Option<DepthAdvice>,
    /// Temperature of the drive under that condition; null for a pool, and without a power model.
    pub heat: Option<Heat>,
}

/// Maximum error at which the model's bottleneck is assumed for the measured run.
pub const NEAR: f64 = 0.35;
/// Minimum share of a difference that a condition must remove to explain it.
const TAKEN: f64 = 0.4;
/// Minimum gain in rate at which a removed option counts as a limit.
pub const GAIN: f64 = 1.1;
/// Share of latency at and above which a part is the bottleneck.
const HELD_BACK: f64 = 0.2;

/// Analyses a run; without a drive, by the file alone.
///
/// # Errors
/// Its jobs cannot run on the drive, or the file does not contain them.
pub fn explain(
    run: &ReportingGroup,
    request: Option<&ExplainRequest>,
    lab: &Lab,
    tell: &dyn Fn(&str),
) -> Result<ExplainAnswer, Problems> {
    let mut answer = ExplainAnswer {
        run: run.name.clone(),
        bound: run.bound(),
        follows: Vec::new(),
        measured: run.facts.clone(),
        unlike: run.unlike.clone(),
        contradictions: run.contradictions.clone(),
        change: None,
        model: None,
    };
    let Some(request) = request else {
        answer.change = change::find_change(run, None);
        answer.follow(run, None);
        return Ok(answer);
    };
    if run.targets.is_empty() {
        let what = format!(
            "{}: reads and writes were reported as one (`mixed`), or there are only trims: a model cannot be compared",
            run.name
        );
        let mut problems = Problems::whole("--drive", what);
        problems.0[0].help = Some(String::from(
            "leave --drive out, or measure reads and writes without unified_rw_reporting",
        ));
        return Err(problems);
    }
    if run.jobs.is_empty() {
        let what = format!(
            "{}: the file has no options of the job, so a model cannot run it",
            run.name
        );
        let mut problems = Problems::whole("--drive", what);
        problems.0[0].help = Some(String::from(
            "leave --drive out, or measure with fio 3, which writes them as `job options`",
        ));
        return Err(problems);
    }
    let (modelled, bound) = modelled(run, request, lab, tell)?;
    let rates: Vec<&Trial> = std::iter::once(&modelled.as_asked)
        .chain(&modelled.conditions)
        .collect();
    answer.change = change::find_change(run, Some((&request.drive, &rates)));
    answer.model = Some(modelled);
    answer.bound = bound;
    answer.follow(run, Some(&request.drive));
    Ok(answer)
}

impl ExplainAnswer {
    /// Adds the consequences of the bottleneck. If syncs are the bottleneck, deeper queues and more threads are not
    /// recommended.
    fn follow(&mut self, run: &ReportingGroup, drive: Option<&DriveSheet>) {
        if self.bound.by != "sync" {
            return;
        }
        let protected = drive.and_then(|drive| drive.power_loss_protection);
        self.follows = syncs::follows(&run.jobs, protected);
        if let Some(model) = &mut self.model {
            model
                .options
                .retain(|it| it.key != "depth" && it.key != "threads");
            model.advice = None;
        }
    }
}

fn modelled(
    run: &ReportingGroup,
    request: &ExplainRequest,
    lab: &Lab,
    tell: &dyn Fn(&str),
) -> Result<(ModelComparison, Bound), Problems> {
    let runs = CaseRunner {
        lab,
        seed: request.seed,
        seeds: request.seeds,
    };
    let base = ExplainCase {
        machine: Machine::new(&request.drive, &request.host),
        jobs: run.jobs.clone(),
        state: request.state,
        expected: run.facts.iops,
    };
    tell("the run as asked, and under other conditions");
    let as_asked = runs.run_one(&base)?;
    let (conditions, nearest) = conditions(run, request, &base, &as_asked, &runs);
    let explained: Vec<String> = nearest.iter().map(|(cause, _)| cause.key.clone()).collect();
    let (case, seen) = match nearest.into_iter().next() {
        Some((cause, seen)) => (cause.case, seen),
        None => (base.clone(), as_asked.clone()),
    };
    tell("without each option");
    let options = options(run, &case, &seen, &runs);
    tell("what reaches the rating");
    let (rating, advice) = rated(run, request, &case, &base, &runs)?;
    let known = support::statement(&request.drive);
    let far = seen.distance(&run.targets).unwrap_or(f64::INFINITY);
    let asked = trial("as-asked", "as asked", &as_asked, as_asked.iops(), run);
    let trials: Vec<&Trial> = std::iter::once(&asked).chain(&conditions).collect();
    let gap = RateGap::new(
        &run.facts,
        &trials,
        (base.machine.drive(), &request.drive.interface),
    )
    .with_rating(run.facts.iops, rating.as_ref().map(|it| it.iops));
    let by_model = bound(run, &seen, &options, case.machine.drive());
    let bound = match run.bound() {
        _ if gap.beyond_model => unknown(&format!(
            "the run is {} times as fast as the model",
            digits(gap.of_model)
        )),
        _ if far <= NEAR => by_model,
        by_file if by_file.by == "unknown" => unknown(&format!(
            "the model is too far from the run; it is bound by {}",
            by_model.text
        )),
        by_file => by_file,
    };
    let modelled = ModelComparison {
        drive: request.drive.id.clone(),
        state: request.state.name(),
        gap,
        model: known.grade.name(),
        model_text: known.text,
        of_rating: rating.as_ref().map(|it| rounded(run.facts.iops / it.iops)),
        rating,
        as_asked: asked,
        agrees: agrees(&seen, run),
        as_asked_agrees: agrees(&as_asked, run),
        conditions,
        explained_by: explained,
        options,
        anatomy: seen.anatomy(),
        heat: Heat::from_power(&request.drive, seen.measurement.watts),
        advice,
    };
    Ok((modelled, bound))
}

fn unknown(why: &str) -> Bound {
    Bound {
        by: "unknown",
        text: format!("unknown: {why}"),
    }
}

/// Returns the rating for the pattern, and settings that reach it, with the drive and host as described, in the state
/// that explains the run.
fn rated(
    run: &ReportingGroup,
    request: &ExplainRequest,
    case: &ExplainCase,
    base: &ExplainCase,
    runs: &CaseRunner<'_>,
) -> Result<(Option<PerformanceRating>, Option<DepthAdvice>), Problems> {
    let Some(shape) = Shape::from_jobs(&run.jobs).or_else(|| Shape::from_jobs(&unpaced(run)))
    else {
        return Ok((None, None));
    };
    let rating = rating::rating(&request.drive, &shape)?;
    let mut states = vec![case.state];
    let new = rating.as_ref().is_some_and(|rating| rating.of_new_drive);
    states.extend(new.then_some(Precondition::Fresh));
    states.dedup();
    // Settings that will be changed are not kept.
    let case = ExplainCase {
        state: case.state,
        ..base.clone()
    };
    let wanted = rating.as_ref().map(|it| it.iops);
    let advice = depth::smallest(&case, wanted, &states, &request.host, runs)?;
    Ok((rating, advice))
}

/// Returns the jobs without rate limits, which are not part of a pattern.
fn unpaced(run: &ReportingGroup) -> Vec<workload::job::Job> {
    let bare = |job: &workload::job::Job| workload::job::Job {
        rate: [None; 3],
        think: None,
        size: None,
        ..job.clone()
    };
    run.jobs.iter().map(bare).collect()
}

/// Runs every condition, and returns those that explain the measurement, the closest first; pairs of conditions if no
/// single one does.
fn conditions(
    run: &ReportingGroup,
    request: &ExplainRequest,
    base: &ExplainCase,
    as_asked: &CaseResult,
    runs: &CaseRunner<'_>,
) -> (Vec<Trial>, Vec<(Cause, CaseResult)>) {
    let causes = causes::conditions(base, &request.drive);
    let cases: Vec<ExplainCase> = causes.iter().map(|cause| cause.case.clone()).collect();
    // A condition that is impossible (512 B on a drive with 4 KiB blocks) is dropped.
    let seen = runs.run(&cases).into_iter().map(Result::ok);
    let seen: Vec<(Cause, CaseResult)> = causes
        .into_iter()
        .zip(seen)
        .filter_map(|(cause, seen)| Some((cause, seen?)))
        .collect();
    let tried = |(cause, seen): &(Cause, CaseResult)| Trial {
        supposition: cause.supposition.clone(),
        check: cause.check.clone(),
        to_tell: cause.to_tell.clone(),
        ..trial(&cause.key, &cause.what, seen, as_asked.iops(), run)
    };
    let mut trials: Vec<Trial> = seen.iter().map(tried).collect();
    let far = as_asked.distance(&run.targets);
    let Some(far) = far.filter(|_| !agrees(as_asked, run)) else {
        return (trials, Vec::new());
    };
    if !seen.iter().any(|(_, seen)| agrees(seen, run)) {
        let pairs = pairs::explaining(run, &request.drive, &seen, runs);
        if !pairs.is_empty() {
            trials.extend(pairs.iter().map(tried));
            return (trials, pairs);
        }
    }
    let mut near: Vec<(f64, Cause, CaseResult)> = seen
        .into_iter()
        .filter_map(|(cause, seen)| Some((seen.distance(&run.targets)?, cause, seen)))
        .filter(|(distance, ..)| *distance <= far * (1.0 - TAKEN))
        .collect();
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    let least = near.first().map_or(0.0, |one| one.0);
    near.retain(|one| one.0 <= least + ALIKE);
    let near = near.into_iter().map(|(_, cause, seen)| (cause, seen));
    (trials, near.collect())
}

/// Runs with each option removed.
fn options(
    run: &ReportingGroup,
    case: &ExplainCase,
    seen: &CaseResult,
    runs: &CaseRunner<'_>,
) -> Vec<Trial> {
    let causes = causes::options(case);
    let cases: Vec<ExplainCase> = causes.iter().map(|cause| cause.case.clone()).collect();
    let without = runs.run(&cases).into_iter().map(Result::ok);
    let trials = causes.iter().zip(without).filter_map(|(cause, without)| {
        Some(trial(&cause.key, &cause.what, &without?, seen.iops(), run))
    });
    trials.collect()
}

/// Returns the bottleneck of a run, by its model.
fn bound(run: &ReportingGroup, seen: &CaseResult, options: &[Trial], drive: &DriveConfig) -> Bound {
    let by_file = run.bound();
    if matches!(by_file.by, "rate" | "sync") {
        return by_file;
    }
    if let Some(bound) = held_by_syncs(run, options) {
        return bound;
    }
    let slowest = seen.slowest_part();
    if let Some((Part::Throttle, share)) = slowest.filter(|(_, share)| *share >= HELD_BACK) {
        return Bound {
            by: "limit",
            text: format!(
                "{}: I/Os are throttled for {:.0} % of their time",
                named("limit", drive),
                share * 100.0
            ),
        };
    }
    let threads = match seen.threads {
        1 => String::from("one thread"),
        many => format!("its {many} threads"),
    };
    match busiest(&seen.measurement, seen.threads) {
        Some(("host", busy)) => {
            return Bound {
                by: "thread",
                text: format!(
                    "{threads}: the cores compute for {:.0} % of the time",
                    busy.min(1.0) * 100.0
                ),
            };
        }
        Some((place, busy)) => {
            return Bound {
                by: place,
                text: format!(
                    "{}, {:.0} % busy in the model",
                    named(place, drive),
                    busy * 100.0
                ),
            };
        }
        None => {}
    }
    if let Some(bound) = held_by_its_jobs(&threads, options) {
        return bound;
    }
    match slowest {
        Some((part, share)) => Bound {
            by: place(part),
            text: format!(
                "{}: I/Os spend {:.0} % of their time on \"{}\" in the model, and a greater queue depth gives no more IOPS",
                named(place(part), drive),
                share * 100.0,
                part.name(),
            ),
        },
        None => by_file,
    }
}

/// Returns syncs as the bottleneck if the file does not time them and the model is at least twice as fast without
/// them.
fn held_by_syncs(run: &ReportingGroup, options: &[Trial]) -> Option<Bound> {
    let without = options.iter().find(|trial| trial.key == "sync")?;
    (without.factor >= 1.0 / syncs::BOUND).then(|| {
        let what = syncs::synchronous_writes(&run.jobs).unwrap_or("fsync or fdatasync");
        Bound {
            by: "sync",
            text: format!(
                "its {what}: without it the model does {} IOPS, {:.1} times as many",
                text::digits::count(without.iops),
                without.factor
            ),
        }
    })
}

/// Returns the queue or the threads as the bottleneck, if more of them are faster.
fn held_by_its_jobs(threads: &str, options: &[Trial]) -> Option<Bound> {
    let gain = |key: &str| {
        let found = options.iter().find(|trial| trial.key == key);
        found.filter(|trial| trial.factor >= GAIN)
    };
    let count = text::digits::count;
    if let Some(deeper) = gain("depth") {
        return Some(Bound {
            by: "queue",
            text: format!(
                "its queue: with {} the model does {} IOPS, {:.1} times as many",
                deeper.what,
                count(deeper.iops),
                deeper.factor
            ),
        });
    }
    if let Some(spread) = gain("threads") {
        return Some(Bound {
            by: "thread",
            text: format!(
                "{threads}: with {} the model does {} IOPS",
                spread.what,
                count(spread.iops)
            ),
        });
    }
    None
}

/// Returns a place as text.
fn named(place: &str, drive: &DriveConfig) -> &'static str {
    match (place, drive) {
        ("link", _) => "the link or data path",
        ("controller", _) => "the controller",
        ("limit", DriveConfig::Volume(_)) => "the volume's limit of IOPS or bytes",
        ("limit", _) => "the power or wear limit",
        ("pool", _) => "the pool's own work",
        ("host", _) => "the host",
        (_, DriveConfig::Hdd(_)) => "the medium (the disk's arm)",
        (_, DriveConfig::Volume(_)) => "the volume's store",
        _ => "the medium (dies)",
    }
}
