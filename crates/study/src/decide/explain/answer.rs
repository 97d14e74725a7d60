//! A measured run and its drive's model side by side: what bound it, which condition explains it, what each option costs.

use catalogue::{DriveSheet, HostSheet};
use lab::{Lab, Machine};
use model::Part;
use model::media::{DriveConfig, Precondition};
use serde::Serialize;
use text::problem::Problems;

use super::causes::{self, Cause};
use super::change::{self, Change};
use super::depth::{self, Advice};
use super::file::{Bound, Facts, Run};
use super::heat::Heat;
use super::pairs;
use super::rating::{self, Rating};
pub use super::runs::{AGREES, Trial};
use super::runs::{ALIKE, Case, Runs, Seen, SideAnatomy, agrees, trial};
use super::syncs;
use crate::decide::tally::{busiest, place};
use crate::ledger::support;
use crate::review::results::rounded;
use crate::review::shape::Shape;

/// The drive, and how its model runs.
#[derive(Clone, Debug)]
pub struct Request {
    /// The drive that was measured.
    pub drive: DriveSheet,
    /// The host.
    pub host: HostSheet,
    /// The state that the drive is taken to have been in.
    pub state: Precondition,
    /// The first seed.
    pub seed: u64,
    /// How many; at least 1.
    pub seeds: u32,
}

/// What is known of one run of the file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// Names of its jobs.
    pub run: String,
    /// What bound it.
    pub bound: Bound,
    /// What follows from that, in sentences; empty where that depends on more.
    pub follows: Vec<String>,
    /// What the file says.
    pub measured: Facts,
    /// In what it was measured otherwise than a model runs it.
    pub unlike: Vec<String>,
    /// What became slower or faster while it ran, and what it may have been; null if nothing says that anything did.
    pub change: Option<Change>,
    /// What the drive's model says; null if none was named.
    pub model: Option<Modelled>,
}

/// What the drive's model says of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Modelled {
    /// The drive.
    pub drive: String,
    /// How well its model is known.
    pub model: &'static str,
    /// The rows behind that.
    pub model_text: String,
    /// What the data sheet says of the pattern; null if nothing is rated.
    pub rating: Option<Rating>,
    /// Measured over rated.
    pub of_rating: Option<f64>,
    /// The run as the file says it was made.
    pub as_asked: Trial,
    /// Whether that agrees with what was measured.
    pub as_asked_agrees: bool,
    /// Under other conditions; of two at once only those that explain it.
    pub conditions: Vec<Trial>,
    /// Keys of the conditions that explain what was measured, the nearest first; empty where the run as asked is as near. They do
    /// alike: which of them it was, what was measured does not tell.
    pub explained_by: Vec<String>,
    /// Whether the model, so explained, agrees with what was measured.
    pub agrees: bool,
    /// Without each option that may hold it back, under the condition that explains it.
    pub options: Vec<Trial>,
    /// Where the time goes, under that condition.
    pub anatomy: Vec<SideAnatomy>,
    /// What reaches the rating.
    pub advice: Option<Advice>,
    /// How warm the drive becomes under that condition; null of a pool, and where no power is modelled.
    pub heat: Option<Heat>,
}

/// A model farther off than this says nothing of what bound the measured run.
const NEAR: f64 = 0.35;
/// A condition explains a difference if it takes away at least this share of it.
const TAKEN: f64 = 0.4;
/// What removes less than this does not hold a run back.
pub const GAIN: f64 = 1.1;
/// A part on which I/Os spend this share of their time bounds them.
const HELD_BACK: f64 = 0.2;

/// Takes a run apart; without a drive by the file alone.
///
/// # Errors
/// Its jobs cannot run on the drive, or the file does not have them.
pub fn explain(
    run: &Run,
    request: Option<&Request>,
    lab: &Lab,
    tell: &dyn Fn(&str),
) -> Result<Answer, Problems> {
    let mut answer = Answer {
        run: run.name.clone(),
        bound: run.bound(),
        follows: Vec::new(),
        measured: run.facts.clone(),
        unlike: run.unlike.clone(),
        change: None,
        model: None,
    };
    let Some(request) = request else {
        answer.change = change::of(run, None);
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
    answer.change = change::of(run, Some((&request.drive, &rates)));
    answer.model = Some(modelled);
    answer.bound = bound;
    answer.follow(run, Some(&request.drive));
    Ok(answer)
}

impl Answer {
    /// Adds what follows from the bound. What is bound by syncs is told of no deeper queues and no more threads.
    fn follow(&mut self, run: &Run, drive: Option<&DriveSheet>) {
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
    run: &Run,
    request: &Request,
    lab: &Lab,
    tell: &dyn Fn(&str),
) -> Result<(Modelled, Bound), Problems> {
    let runs = Runs {
        lab,
        seed: request.seed,
        seeds: request.seeds,
    };
    let base = Case {
        machine: Machine::new(&request.drive, &request.host),
        jobs: run.jobs.clone(),
        state: request.state,
        expected: run.facts.iops,
    };
    tell("the run as asked, and under other conditions");
    let as_asked = runs.one(&base)?;
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
    let bound = match (
        bound(run, &seen, &options, case.machine.drive()),
        run.bound(),
    ) {
        (model, _) if far <= NEAR => model,
        (model, by_file) if by_file.by == "unknown" => Bound {
            by: "unknown",
            text: format!(
                "something that the model does not have (the model would be bound by {})",
                model.text
            ),
        },
        (_, by_file) => by_file,
    };
    let modelled = Modelled {
        drive: request.drive.id.clone(),
        model: known.grade.name(),
        model_text: known.text,
        of_rating: rating.as_ref().map(|it| rounded(run.facts.iops / it.iops)),
        rating,
        as_asked: trial("as-asked", "as asked", &as_asked, as_asked.iops(), run),
        agrees: agrees(&seen, run),
        as_asked_agrees: agrees(&as_asked, run),
        conditions,
        explained_by: explained,
        options,
        anatomy: seen.anatomy(),
        heat: Heat::of(&request.drive, seen.measurement.watts),
        advice,
    };
    Ok((modelled, bound))
}

/// What is rated for the pattern, and what reaches it: of the drive and host as asked, in the state that explains the run.
fn rated(
    run: &Run,
    request: &Request,
    case: &Case,
    base: &Case,
    runs: &Runs<'_>,
) -> Result<(Option<Rating>, Option<Advice>), Problems> {
    let Some(shape) = Shape::of(&run.jobs).or_else(|| Shape::of(&unpaced(run))) else {
        return Ok((None, None));
    };
    let rating = rating::rating(&request.drive, &shape)?;
    let mut states = vec![case.state];
    let new = rating.as_ref().is_some_and(|rating| rating.of_new_drive);
    states.extend(new.then_some(Precondition::Fresh));
    states.dedup();
    // What is to be changed is not kept.
    let case = Case {
        state: case.state,
        ..base.clone()
    };
    let wanted = rating.as_ref().map(|it| it.iops);
    let advice = depth::smallest(&case, wanted, &states, &request.host, runs)?;
    Ok((rating, advice))
}

/// The jobs without rates, which say nothing of a pattern.
fn unpaced(run: &Run) -> Vec<workload::job::Job> {
    let bare = |job: &workload::job::Job| workload::job::Job {
        rate: [None; 3],
        think: None,
        size: None,
        ..job.clone()
    };
    run.jobs.iter().map(bare).collect()
}

/// Every condition, and those that explain what was measured, the nearest first; two at once where no single one does.
fn conditions(
    run: &Run,
    request: &Request,
    base: &Case,
    as_asked: &Seen,
    runs: &Runs<'_>,
) -> (Vec<Trial>, Vec<(Cause, Seen)>) {
    let causes = causes::conditions(base, &request.drive);
    let cases: Vec<Case> = causes.iter().map(|cause| cause.case.clone()).collect();
    // A condition that cannot be (512 B on a drive of 4 KiB blocks) is none.
    let seen = runs.run(&cases).into_iter().map(Result::ok);
    let seen: Vec<(Cause, Seen)> = causes
        .into_iter()
        .zip(seen)
        .filter_map(|(cause, seen)| Some((cause, seen?)))
        .collect();
    let tried = |(cause, seen): &(Cause, Seen)| Trial {
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
    let mut near: Vec<(f64, Cause, Seen)> = seen
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

/// Each option taken away.
fn options(run: &Run, case: &Case, seen: &Seen, runs: &Runs<'_>) -> Vec<Trial> {
    let causes = causes::options(case);
    let cases: Vec<Case> = causes.iter().map(|cause| cause.case.clone()).collect();
    let without = runs.run(&cases).into_iter().map(Result::ok);
    let trials = causes.iter().zip(without).filter_map(|(cause, without)| {
        Some(trial(&cause.key, &cause.what, &without?, seen.iops(), run))
    });
    trials.collect()
}

/// What bounds a run, by its model.
fn bound(run: &Run, seen: &Seen, options: &[Trial], drive: &DriveConfig) -> Bound {
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
                "{}: I/Os are held back for {:.0} % of their time",
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
                "{}: I/Os spend {:.0} % of their time on \"{}\" in the model, and more in flight do no more",
                named(place(part), drive),
                share * 100.0,
                part.name(),
            ),
        },
        None => by_file,
    }
}

/// Syncs that the file does not time, if the model does at least twice as much without them.
fn held_by_syncs(run: &Run, options: &[Trial]) -> Option<Bound> {
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

/// The queue or the threads, if more of them do more.
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

/// A place in words.
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
