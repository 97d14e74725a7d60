//! A catalogue file for a drive that somebody has measured: a base drive with its free parameters fitted.

use model::media::{DriveConfig, Precondition};
use toml_edit::DocumentMut;

use super::parameter::changes;
use super::{
    FURTHEST, MeasuredRun, Parameter, Quantity, STARTS, Target, loss_of, minimise, starts_in_words,
};
use crate::ledger::figure::RunFigure;
use catalogue::change::Stated;
use catalogue::{DriveSheet, Settings, change};
use lab::{Lab, Machine, Scenario, in_parallel, to_the_end};
use text::digits::microseconds;
use text::problem::{Place, Problem, Problems};
use workload::job::Mix;

/// What is to be fitted.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name or path of the drive to begin from.
    pub base: String,
    /// What was set on the drive when it was measured, and figures that are known to be others.
    pub settings: Settings,
    /// Name or path of the host it was measured in.
    pub host: String,
    /// The drive's state when it was measured.
    pub state: Precondition,
    /// Keys of the free parameters; those of the medium if empty.
    pub free: Vec<String>,
    /// What was measured.
    pub measured: Vec<MeasuredRun>,
    /// Every so many-th run is held out of the fit to judge it; 0 for none.
    pub hold_out: usize,
    /// Iterations of the search.
    pub iterations: u64,
    /// The file's name and the drive's full name in it.
    pub name: String,
}

/// What came of a fit.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The free parameters.
    pub parameters: Vec<Freed>,
    /// Parameters that would be free by default and cannot be on this base, each with the reason.
    pub left_out: Vec<String>,
    /// What a reader should know of the search, in words: that its starts ended in different places.
    pub local_optima: Vec<String>,
    /// Every measured figure.
    pub residuals: Vec<Residual>,
    /// The catalogue file.
    pub toml: String,
}

/// A free parameter after the search.
#[derive(Clone, Debug, PartialEq)]
pub struct Freed {
    /// As it was.
    pub parameter: Parameter,
    /// Its fitted value, in the words of a file.
    pub fitted: String,
    /// From where to where the measurements are met as well, with the other parameters held: 95 % if the errors that
    /// remain are those of measuring, and measuring is never better than one percent.
    pub interval: (String, String),
    /// Whether the search ended at its bound: the base drive is of another kind, or nothing measured depends on it.
    pub at_bound: bool,
}

/// A measured figure and the model's.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// The run.
    pub run: String,
    /// The figure, such as `read.iops`.
    pub figure: String,
    /// As measured.
    pub measured: f64,
    /// The base drive's.
    pub before: f64,
    /// The fitted drive's.
    pub after: f64,
    /// Whether it was held out of the fit.
    pub held_out: bool,
}

impl Residual {
    /// Error of the fitted drive as a share of what was measured.
    pub fn error(&self) -> f64 {
        self.after / self.measured - 1.0
    }
}

/// Median of the absolute errors of the figures that were held out, or of those that were not.
pub fn median_error(residuals: &[Residual], held_out: bool) -> Option<f64> {
    let chosen = residuals
        .iter()
        .filter(|residual| residual.held_out == held_out);
    let mut errors: Vec<f64> = chosen.map(|residual| residual.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    errors.get(errors.len() / 2).copied()
}

/// I/Os of each run of the search, for each of its depth and at least.
const IOS_FOR_EACH_OF_DEPTH: u64 = 300;
const FEWEST_IOS: u64 = 12_000;
/// Bytes of each run at most, so that large blocks do not take all the time.
const BYTES: u64 = 300_000_000;

/// The measured runs on a changed drive.
struct Bench<'a> {
    request: &'a Request,
    parameters: Vec<Parameter>,
    lab: Lab,
    /// Only a so manieth of the I/Os.
    part: u64,
}

impl Bench<'_> {
    /// The model's figures by run and target; NaN for what it does not have.
    fn figures(&self, at: &[f64], runs: &[usize]) -> Result<Vec<Vec<f64>>, Problems> {
        let (of_drive, of_host) = changes(&self.parameters, at);
        let mut settings = self.request.settings.clone();
        settings.figures.extend(of_drive);
        let drive = catalogue::drive_as(&self.request.base, &settings)?;
        let host = catalogue::host_with(&self.request.host, &of_host)?;
        let machine = Machine::new(&drive, &host);
        let results = in_parallel(runs, &to_the_end, |run, _| {
            let run = &self.request.measured[*run];
            let scenario = Scenario::jobs(
                machine.clone(),
                self.request.state,
                bounded(run, self.part),
                1,
            );
            let outcome = self.lab.run(&scenario)?;
            let figure = |target: &Target| {
                let figure = RunFigure::named(&target.figure()).ok();
                figure
                    .and_then(|figure| figure.of(&outcome).ok())
                    .unwrap_or(f64::NAN)
            };
            Ok(run.targets.iter().map(figure).collect())
        });
        results.into_iter().collect()
    }

    fn loss(&self, at: &[f64], runs: &[usize]) -> f64 {
        let Ok(figures) = self.figures(at, runs) else {
            // Values that contradict each other: no drive at all.
            return 9.0;
        };
        let (mut sum, mut weights) = (0.0, 0.0);
        for (run, figures) in runs.iter().zip(figures) {
            for (target, model) in self.request.measured[*run].targets.iter().zip(figures) {
                sum += target.weight * loss_of(model, target.value);
                weights += target.weight;
            }
        }
        sum / weights
    }
}

/// Its jobs with an end, or this part of it.
pub(super) fn bounded(run: &MeasuredRun, part: u64) -> Vec<workload::job::Job> {
    let depth = |job: &workload::job::Job| u64::from(job.iodepth);
    let all: u64 = run
        .jobs
        .iter()
        .map(|job| depth(job) * u64::from(job.numjobs))
        .sum();
    let largest = run
        .jobs
        .iter()
        .map(crate::ledger::largest_block)
        .max()
        .unwrap_or(4096);
    let most = (BYTES / u64::from(largest)).max(500);
    let ios = (all * IOS_FOR_EACH_OF_DEPTH).max(FEWEST_IOS).min(most) / part;
    let mut jobs = run.jobs.clone();
    for job in &mut jobs {
        let ios = (ios * depth(job)).div_ceil(all.max(1)).max(1);
        job.number_ios = Some(ios.div_ceil(job.loops.into()));
        // What ended by time is not ended by its range, nor is a pass of it, at which fio waits for all I/Os in flight.
        if job.runtime.is_some() {
            (job.time_based, job.io_size) = (false, Some(workload::job::Job::ROUND));
        }
    }
    jobs
}

/// The part of a fit's I/Os in which bases are compared.
const COMPARED: u64 = 5;

/// How far the base is off as it is, by the search's own measure, on the runs that are not held out.
///
/// # Errors
/// It cannot run what was measured.
pub(super) fn loss_as_it_is(request: &Request) -> Result<f64, Problems> {
    let base = catalogue::drive_as(&request.base, &request.settings)?;
    let runs = fitted_runs(request)?;
    let measured: Vec<&MeasuredRun> = runs.iter().map(|&run| &request.measured[run]).collect();
    let (begun, _) = super::volume::begun(request, &base, &measured);
    let bench = Bench {
        request: &begun,
        lab: Lab::new(),
        parameters: Vec::new(),
        part: COMPARED,
    };
    bench.figures(&[], &runs)?;
    Ok(bench.loss(&[], &runs))
}

/// The runs that are not held out.
fn fitted_runs(request: &Request) -> Result<Vec<usize>, Problems> {
    let all = 0..request.measured.len();
    let fitted: Vec<usize> = all.filter(|&run| !is_held(request, run)).collect();
    match fitted.is_empty() {
        true => {
            let what = "every measured run is held out: nothing is left to fit to";
            Err(Problems::whole("command line", what))
        }
        false => Ok(fitted),
    }
}

fn is_held(request: &Request, run: usize) -> bool {
    request.hold_out > 0 && (run + 1) % request.hold_out == 0
}

/// Fits the free parameters of the base drive to what was measured.
///
/// # Errors
/// The base drive, host or a parameter does not exist; the measured jobs do not fit the drive; the search fails.
pub fn drive(request: &Request, progress: &(dyn Fn(u64) + Sync)) -> Result<Fitted, Problems> {
    drive_from(STARTS, request, progress)
}

/// The same with so many starts of the search: with one it may end in a local optimum, and does not know.
///
/// # Errors
/// As [`drive()`].
pub(super) fn drive_from(
    starts: usize,
    request: &Request,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Fitted, Problems> {
    let base = catalogue::drive_as(&request.base, &request.settings)?;
    let all: Vec<usize> = (0..request.measured.len()).collect();
    let fitted = fitted_runs(request)?;
    let runs: Vec<&MeasuredRun> = fitted.iter().map(|&run| &request.measured[run]).collect();
    let (begun, unseen) = super::volume::begun(request, &base, &runs);
    let (asked, request) = (request, &begun);
    let base = catalogue::drive_as(&request.base, &request.settings)?;
    let host = catalogue::host(&request.host)?;
    let (parameters, left_out) = parameters(request, &base, &host.figures, &unseen)?;
    let bench = Bench {
        request,
        lab: Lab::new(),
        parameters,
        part: 1,
    };
    let origin = vec![0.0; bench.parameters.len()];
    // What does not fit the drive is told before the search.
    let before = bench.figures(&origin, &all)?;
    another_medium(&base, &request.measured, &before)?;
    let evaluations = std::cell::Cell::new(0);
    let loss = |at: &[f64]| {
        evaluations.set(evaluations.get() + 1);
        progress(evaluations.get());
        bench.loss(at, &fitted)
    };
    let found = minimise(bench.parameters.len(), starts, request.iterations, &loss)
        .map_err(|what| Problems::whole("fit", what))?;
    let best = found.best.clone();
    let after = bench.figures(&best, &all)?;
    let mut residuals = Vec::new();
    for (index, run) in request.measured.iter().enumerate() {
        for (target, (before, after)) in run
            .targets
            .iter()
            .zip(before[index].iter().zip(&after[index]))
        {
            residuals.push(Residual {
                run: run.name.clone(),
                figure: target.figure(),
                measured: target.value,
                before: *before,
                after: *after,
                held_out: is_held(request, index),
            });
        }
    }
    let figures = fitted
        .iter()
        .map(|run| request.measured[*run].targets.len());
    let intervals = intervals(&best, figures.sum(), &loss);
    let freed = bench.parameters.iter().zip(&best).zip(intervals);
    let parameters: Vec<Freed> = freed
        .map(|((one, log), (low, high))| Freed {
            parameter: one.clone(),
            fitted: one.moved(*log),
            interval: (one.moved(low), one.moved(high)),
            at_bound: log.abs() > AT_BOUND * FURTHEST,
        })
        .collect();
    Ok(Fitted {
        toml: toml(asked, &base, &parameters, &residuals)?,
        parameters,
        left_out,
        local_optima: starts_in_words(&found).into_iter().collect(),
        residuals,
    })
}

/// Refuses results that no parameter can reach: random reads, a few at once at most, that take longer or shorter than the base's by more than
/// the factor that a parameter may move are of another medium, or of a page cache.
fn another_medium(
    base: &DriveSheet,
    measured: &[MeasuredRun],
    before: &[Vec<f64>],
) -> Result<(), Problems> {
    let mut problems = Problems::default();
    // A RAM disk has no medium: files and page caches are fitted from it.
    if matches!(base.config, DriveConfig::Ram(_)) {
        return Ok(());
    }
    for (run, figures) in measured.iter().zip(before) {
        let [job] = &run.jobs[..] else { continue };
        let few = job.iodepth * job.numjobs <= FEW && job.random && job.mix == Mix::Read;
        if !few || crate::ledger::largest_block(job) > SMALL {
            continue;
        }
        let mut means = run.targets.iter().zip(figures);
        let mean = means.find(|(target, _)| target.read && target.quantity == Quantity::Mean);
        let Some((target, model)) = mean else {
            continue;
        };
        if !(1.0 / FACTOR..=FACTOR).contains(&(target.value / model)) {
            problems.0.push(Problem {
                origin: "measured".into(),
                place: Place::Whole,
                what: format!(
                    "job {}: a random read takes {} where it takes {} of {}: results of another medium",
                    run.name,
                    microseconds(target.value),
                    microseconds(*model),
                    base.id
                ),
                help: Some(
                    "begin from a drive of its medium (`drivelab drives`); or a page cache answered: direct=1".into(),
                ),
            });
        }
    }
    problems.or(())
}

/// So many at once wait little for each other, on any medium.
const FEW: u32 = 4;
/// Blocks of such reads that tell a medium, at most.
const SMALL: u32 = 16 << 10;
/// [`FURTHEST`] as a factor.
const FACTOR: f64 = 5.0;

/// Nearer to the bound than this share of the way, a parameter has ended there.
pub(super) const AT_BOUND: f64 = 0.98;
/// What repeated measurements of one figure differ by at least.
const REPEATABILITY: f64 = 0.01;
/// Square of the normal distribution's two-sided 95 % quantile.
const NORMAL: f64 = 3.84;
/// Halvings on the way to the end of an interval.
const HALVINGS: u32 = 5;

/// For each parameter from where to where the loss of `figures` figures is not clearly more than the best, with the
/// others held; logarithms as the search has them.
pub(super) fn intervals(
    best: &[f64],
    figures: usize,
    loss: &dyn Fn(&[f64]) -> f64,
) -> Vec<(f64, f64)> {
    let least = loss(best);
    let free = figures.saturating_sub(best.len()).max(1) as f64;
    let variance = (least * figures as f64 / free).max(REPEATABILITY * REPEATABILITY);
    let limit = least + NORMAL * variance / figures.max(1) as f64;
    let end = |index: usize, sign: f64| {
        let at = |moved: f64| {
            let mut at = best.to_vec();
            at[index] = (at[index] + sign * moved).clamp(-FURTHEST, FURTHEST);
            at
        };
        let within = |moved: f64| loss(&at(moved)) <= limit;
        let (mut inside, mut outside) = (0.0, 0.01);
        while within(outside) {
            if at(outside)[index].abs() >= FURTHEST {
                return at(outside)[index];
            }
            inside = outside;
            outside *= 3.0;
        }
        for _ in 0..HALVINGS {
            let middle = (inside + outside) / 2.0;
            match within(middle) {
                true => inside = middle,
                false => outside = middle,
            }
        }
        at(inside)[index]
    };
    let all = 0..best.len();
    all.map(|index| (end(index, -1.0), end(index, 1.0)))
        .collect()
}

/// The free parameters, and what cannot be one of them of those that nobody asked for.
fn parameters(
    request: &Request,
    base: &DriveSheet,
    host: &[catalogue::Figure],
    unseen: &[&str],
) -> Result<(Vec<Parameter>, Vec<String>), Problems> {
    let by_default = request.free.is_empty();
    // What a drive of the medium may have, and this one does not, is none of its parameters.
    let has = |key: &&&str| base.figures.iter().any(|figure| figure.key == **key);
    let default = base.free.iter().filter(has).map(|key| (*key).to_owned());
    let keys: Vec<String> = match by_default {
        true => default.collect(),
        false => request.free.clone(),
    };
    let mut problems: Vec<Problem> = Vec::new();
    let (mut parameters, mut left_out) = (Vec::new(), Vec::new());
    for key in &keys {
        if by_default && unseen.contains(&&**key) {
            left_out.push(format!("nothing that was measured shows `{key}`"));
            continue;
        }
        match Parameter::named(key, &base.figures, host) {
            Ok(parameter) => parameters.push(parameter),
            // The base has 0 there.
            Err(problem) if by_default => left_out.push(problem.what),
            Err(problem) => problems.push(problem),
        }
    }
    if parameters.is_empty() && problems.is_empty() {
        problems.push(Problem {
            origin: "command line".into(),
            place: Place::Whole,
            what: format!("{} has no parameters of its own", base.id),
            help: Some("fit one of its members".into()),
        });
    }
    Problems(problems).or((parameters, left_out))
}

/// The base drive's file with the fitted figures in it: another drive, which is not what its base costs or is called.
fn toml(
    request: &Request,
    base: &DriveSheet,
    freed: &[Freed],
    residuals: &[Residual],
) -> Result<String, Problems> {
    let text = catalogue::change::text_of(&request.base, &request.settings.figures)?;
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error| Problems::whole(&*request.base, format!("not TOML: {error}")))?;
    document["name"] = toml_edit::value(&*request.name);
    document["maker"] = toml_edit::value("unknown");
    document["fit"] = toml_edit::value(how(base, &request.host, residuals));
    document.remove("price");
    let of_drive = freed
        .iter()
        .filter(|one| !one.parameter.key.starts_with("host."));
    for one in of_drive {
        let figure = Stated {
            value: change::as_value(&one.fitted),
            kind: "fitted",
            source: "fio's results, see the head of this file",
            note: Some(&format!("95 %: {} to {}", one.interval.0, one.interval.1)),
        };
        change::set_as(document.as_table_mut(), &one.parameter.key, &figure);
    }
    let text = format!("{}{document}", head(request, base, residuals));
    catalogue::drive_from_text(&request.name, &text)?;
    Ok(text)
}

/// How well the drive is known, in a sentence, and the host that was taken out of what was measured.
fn how(base: &DriveSheet, host: &str, residuals: &[Residual]) -> String {
    let part = |held_out: bool, what: &str| {
        let of = residuals.iter().filter(|one| one.held_out == held_out);
        let error = median_error(residuals, held_out)?;
        let (figures, error) = (of.count(), error * 100.0);
        Some(format!(
            "{figures} figures {what} (half within {error:.1} %)"
        ))
    };
    let parts = [part(false, "of fio fitted to"), part(true, "held out")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let mut how = format!("from {}: {}", base.id, parts.join(", "));
    if host != catalogue::TYPICAL_HOST {
        how.push_str(&format!("; measured in the host {host}"));
    }
    how
}

/// What the file says of itself first.
fn head(request: &Request, base: &DriveSheet, residuals: &[Residual]) -> String {
    let runs = |held_out: bool| {
        let of = residuals.iter().filter(|one| one.held_out == held_out);
        let mut names: Vec<&str> = of.map(|one| &*one.run).collect();
        names.dedup();
        names.join(", ")
    };
    let mut head = format!(
        "# Made by drivelab fit from {}. Of kind fitted from fio's results are the figures that were free; all \
         others are that drive's.\n# Fitted to the runs {}.\n",
        base.id,
        runs(false)
    );
    let held_out = runs(true);
    if !held_out.is_empty() {
        // Runs that were held out fixed nothing.
        head.push_str(&format!("# Held out: {held_out}.\n"));
    }
    if request.host != catalogue::TYPICAL_HOST {
        // What the host takes is in what was measured, and not in the drive.
        head.push_str(&format!(
            "# Measured in the host {0}: run it with --host {0}.\n",
            request.host
        ));
    }
    for set in request.settings.words() {
        head.push_str(&format!(
            "# Set on the drive when it was measured: {set}.\n"
        ));
    }
    let mut unlike: Vec<&str> = Vec::new();
    for what in request.measured.iter().flat_map(|run| &run.unlike) {
        if !unlike.contains(&&**what) {
            unlike.push(what);
            head.push_str(&format!("# As measured: {what}.\n"));
        }
    }
    head.push_str(
        "# Say what it costs: price = { value = \"900 USD\", kind = \"spec\", source = \"...\", date = \"2026-11\" }\n",
    );
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `fit DRIVE` works with every drive that has figures of its own, without naming parameters: what a drive
    /// has at 0 (the 950 PRO's delay of reads) is left out, unless it was asked for.
    #[test]
    fn every_drive_of_the_catalogue_can_be_a_base() {
        let host = catalogue::host("xeon-2017").expect("built in");
        for base in catalogue::drives().expect("built in") {
            let asked = |free: &[&str]| Request {
                base: base.id.clone(),
                settings: Settings::default(),
                host: "xeon-2017".into(),
                state: Precondition::Steady,
                free: free.iter().map(|&key| key.to_owned()).collect(),
                measured: Vec::new(),
                hold_out: 0,
                iterations: 1,
                name: "mine".into(),
            };
            let found = parameters(&asked(&[]), &base, &host.figures, &[]);
            let raid = !base.members.is_empty();
            assert_eq!(found.is_err(), raid, "{}", base.id);
            if base.id == "950pro-256" {
                let (free, left_out) = found.expect("the others");
                assert_eq!((free.len(), left_out.len()), (5, 1), "{left_out:?}");
                let named = asked(&["nand.controller.read_delay"]);
                parameters(&named, &base, &host.figures, &[]).expect_err("it is 0 and was named");
            }
        }
    }

    #[test]
    fn an_interval_is_as_wide_as_the_loss_allows() {
        // Four figures that follow the first parameter and not the second.
        let loss = |at: &[f64]| (at[0] - 0.3) * (at[0] - 0.3);
        let found = intervals(&[0.3, 0.0], 4, &loss);
        // 1.96 times one percent, over the root of four.
        assert!((found[0].0 - (0.3 - 0.0098)).abs() < 5e-4, "{found:?}");
        assert!((found[0].1 - (0.3 + 0.0098)).abs() < 5e-4, "{found:?}");
        assert_eq!(found[1], (-FURTHEST, FURTHEST));
    }
}
