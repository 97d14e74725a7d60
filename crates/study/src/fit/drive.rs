//! A catalogue file for a drive that a user has measured: a base drive with its free parameters fitted.

use model::media::Precondition;
use tier::DriveConfig;
use toml_edit::DocumentMut;

use super::parameter::changes;
use super::{
    FURTHEST, MeasuredFigure, MeasuredRun, Parameter, Quantity, STARTS, loss_of, minimise,
    starts_in_words,
};
use crate::ledger::figure::RunFigure;
use catalogue::change::NewFigure;
use catalogue::{DriveSheet, Settings, change};
use lab::{Lab, Machine, Scenario, in_parallel, to_the_end};
use text::digits::microseconds;
use text::problem::{Place, Problem, Problems};
use workload::job::Mix;

/// Input of a fit.
#[derive(Clone, Debug)]
pub struct FitRequest {
    /// Name or path of the base drive.
    pub base: String,
    /// Settings of the drive during the measurement, and figures that are known to differ from the base drive.
    pub settings: Settings,
    /// Name or path of the host that ran the measurement.
    pub host: String,
    /// State of the drive during the measurement.
    pub state: Precondition,
    /// Keys of the free parameters; if empty, those of the medium.
    pub free: Vec<String>,
    /// The measured runs.
    pub measured: Vec<MeasuredRun>,
    /// Every n-th run is held out of the fit to judge it; 0 for none.
    pub hold_out: usize,
    /// Maximum number of iterations of the search.
    pub iterations: u64,
    /// Name of the file, and full name of the drive in it.
    pub name: String,
}

/// Result of a fit.
#[derive(Clone, Debug)]
pub struct FitResult {
    /// The free parameters.
    pub parameters: Vec<FittedParameter>,
    /// Default parameters that cannot be free on this base drive, each with the reason.
    pub left_out: Vec<String>,
    /// Messages about the search for the user: its starts ended in different places.
    pub local_optima: Vec<String>,
    /// Every measured figure with the model's figures.
    pub residuals: Vec<Residual>,
    /// The catalogue file.
    pub toml: String,
}

/// A free parameter after the search.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedParameter {
    /// The parameter with its value before the search.
    pub parameter: Parameter,
    /// Fitted value, as text for a file.
    pub fitted: String,
    /// Range in which the measurements are met equally well, with the other parameters held. This is a 95 % interval
    /// if the remaining errors are measurement errors, and if measurements are never better than one percent.
    pub interval: (String, String),
    /// Whether the search ended at its bound: either the base drive is of another kind, or no measured figure depends
    /// on this parameter.
    pub at_bound: bool,
}

/// A measured figure and the model's figures for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// Name of the run.
    pub run: String,
    /// The figure, such as `read.iops`.
    pub figure: String,
    /// Measured value.
    pub measured: f64,
    /// The model's value with the base drive.
    pub before: f64,
    /// The model's value with the fitted drive.
    pub after: f64,
    /// Whether the figure was held out of the fit.
    pub held_out: bool,
}

impl Residual {
    /// Returns the error of the fitted drive as a share of the measured value.
    pub fn error(&self) -> f64 {
        self.after / self.measured - 1.0
    }
}

/// Returns the median absolute error of the held-out figures, or of the fitted figures.
pub fn median_error(residuals: &[Residual], held_out: bool) -> Option<f64> {
    let chosen = residuals
        .iter()
        .filter(|residual| residual.held_out == held_out);
    let mut errors: Vec<f64> = chosen.map(|residual| residual.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    errors.get(errors.len() / 2).copied()
}

/// Minimum number of I/Os of each run of the search, for each unit of queue depth.
const IOS_FOR_EACH_OF_DEPTH: u64 = 300;
const FEWEST_IOS: u64 = 12_000;
/// Maximum number of bytes of each run, so that runs with large blocks do not take most of the time.
const BYTES: u64 = 300_000_000;

/// Simulates the measured runs on a drive with changed figures.
struct FitBench<'a> {
    request: &'a FitRequest,
    parameters: Vec<Parameter>,
    lab: Lab,
    /// Divides the number of I/Os of each run.
    part: u64,
}

impl FitBench<'_> {
    /// Returns the model's figures by run and target; NaN where the model has none.
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
            let figure = |target: &MeasuredFigure| {
                let figure = RunFigure::named(&target.figure()).ok();
                figure
                    .and_then(|figure| figure.value(&outcome).ok())
                    .unwrap_or(f64::NAN)
            };
            Ok(run.targets.iter().map(figure).collect())
        });
        results.into_iter().collect()
    }

    fn loss(&self, at: &[f64], runs: &[usize]) -> f64 {
        let Ok(figures) = self.figures(at, runs) else {
            // These values contradict each other, so no drive can be built from them.
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

/// Returns the jobs of a run with a bound on their I/Os, divided by `part`.
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
        // A job that ended by time is not ended by its range. It also does not end a pass, at which fio waits for all
        // I/Os in flight.
        if job.runtime.is_some() {
            (job.time_based, job.io_size) = (false, Some(workload::job::Job::ROUND));
        }
    }
    jobs
}

/// Divisor of the I/Os of a fit in the comparison of base drives.
const COMPARED: u64 = 5;

/// Returns the loss of the unchanged base drive by the search's own measure, over the runs that are not held out.
///
/// # Errors
/// The base drive cannot run the measurements.
pub(super) fn loss_as_it_is(request: &FitRequest) -> Result<f64, Problems> {
    let base = catalogue::drive_as(&request.base, &request.settings)?;
    let runs = fitted_runs(request)?;
    let measured: Vec<&MeasuredRun> = runs.iter().map(|&run| &request.measured[run]).collect();
    let (begun, _) = super::volume::begun(request, &base, &measured);
    let bench = FitBench {
        request: &begun,
        lab: Lab::new(),
        parameters: Vec::new(),
        part: COMPARED,
    };
    bench.figures(&[], &runs)?;
    Ok(bench.loss(&[], &runs))
}

/// Returns the indices of the runs that are not held out.
fn fitted_runs(request: &FitRequest) -> Result<Vec<usize>, Problems> {
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

fn is_held(request: &FitRequest, run: usize) -> bool {
    request.hold_out > 0 && (run + 1) % request.hold_out == 0
}

/// Fits the free parameters of the base drive to the measurements.
///
/// # Errors
/// The base drive, the host or a parameter does not exist; the measured jobs do not fit the drive; the search fails.
pub fn drive(request: &FitRequest, progress: &(dyn Fn(u64) + Sync)) -> Result<FitResult, Problems> {
    drive_from(STARTS, request, progress)
}

/// Fits a drive as [`drive()`] does, with this number of starts of the search. With one start, the search may end in a
/// local optimum without detecting it.
///
/// # Errors
/// As [`drive()`].
pub(super) fn drive_from(
    starts: usize,
    request: &FitRequest,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<FitResult, Problems> {
    let base = catalogue::drive_as(&request.base, &request.settings)?;
    let all: Vec<usize> = (0..request.measured.len()).collect();
    let fitted = fitted_runs(request)?;
    let runs: Vec<&MeasuredRun> = fitted.iter().map(|&run| &request.measured[run]).collect();
    let (begun, unseen) = super::volume::begun(request, &base, &runs);
    let (asked, request) = (request, &begun);
    let base = catalogue::drive_as(&request.base, &request.settings)?;
    let host = catalogue::host(&request.host)?;
    let (parameters, left_out) = parameters(request, &base, &host.figures, &unseen)?;
    let bench = FitBench {
        request,
        lab: Lab::new(),
        parameters,
        part: 1,
    };
    let origin = vec![0.0; bench.parameters.len()];
    // Jobs that do not fit the drive are reported before the search begins.
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
    let parameters: Vec<FittedParameter> = freed
        .map(|((one, log), (low, high))| FittedParameter {
            parameter: one.clone(),
            fitted: one.moved(*log),
            interval: (one.moved(low), one.moved(high)),
            at_bound: log.abs() > AT_BOUND * FURTHEST,
        })
        .collect();
    Ok(FitResult {
        toml: toml(asked, &base, &parameters, &residuals)?,
        parameters,
        left_out,
        local_optima: starts_in_words(&found).into_iter().collect(),
        residuals,
    })
}

/// Rejects results that no parameter can reach. Random reads at low queue depth may differ from the base drive by at
/// most the factor by which a parameter may move. Otherwise the results are of another medium or of a page cache.
fn another_medium(
    base: &DriveSheet,
    measured: &[MeasuredRun],
    before: &[Vec<f64>],
) -> Result<(), Problems> {
    let mut problems = Problems::default();
    // A RAM disk has no medium. Files and page caches are fitted from it.
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

/// Up to this queue depth, reads hardly wait for each other on any medium.
const FEW: u32 = 4;
/// Maximum block size in bytes of reads that identify a medium.
const SMALL: u32 = 16 << 10;
/// [`FURTHEST`] as a factor.
const FACTOR: f64 = 5.0;

/// A parameter has ended at its bound if it has moved at least this share of the way to it.
pub(super) const AT_BOUND: f64 = 0.98;
/// Repeated measurements of one figure differ by at least this share.
const REPEATABILITY: f64 = 0.01;
/// Square of the normal distribution's two-sided 95 % quantile.
const NORMAL: f64 = 3.84;
/// Halvings that locate the end of an interval.
const HALVINGS: u32 = 5;

/// Returns for each parameter the range in which the loss of `figures` figures is not clearly greater than the least
/// loss, with the other parameters held. Values are logarithms, as in the search.
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

/// Returns the free parameters, and the default parameters that cannot be free, unless the user asked for them.
fn parameters(
    request: &FitRequest,
    base: &DriveSheet,
    host: &[catalogue::Figure],
    unseen: &[&str],
) -> Result<(Vec<Parameter>, Vec<String>), Problems> {
    let by_default = request.free.is_empty();
    // A figure that drives of this medium may have, but this drive does not, cannot be a parameter.
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
            left_out.push(format!("no measured run depends on `{key}`"));
            continue;
        }
        match Parameter::named(key, &base.figures, host) {
            Ok(parameter) => parameters.push(parameter),
            // The base drive has the value 0 there.
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

/// Returns the base drive's file with the fitted figures. It describes another drive, so the price and names of the
/// base drive are not kept.
fn toml(
    request: &FitRequest,
    base: &DriveSheet,
    freed: &[FittedParameter],
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
        let figure = NewFigure {
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

/// Returns a sentence on how well the drive is known, and the host whose costs were subtracted from the measurements.
fn how(base: &DriveSheet, host: &str, residuals: &[Residual]) -> String {
    let part = |held_out: bool, what: &str| {
        let of = residuals.iter().filter(|one| one.held_out == held_out);
        let error = median_error(residuals, held_out)?;
        let (figures, error) = (of.count(), error * 100.0);
        Some(format!(
            "{figures} figures {what} (median error {error:.1} %)"
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

/// Returns the comment at the start of the file.
fn head(request: &FitRequest, base: &DriveSheet, residuals: &[Residual]) -> String {
    let runs = |held_out: bool| {
        let of = residuals.iter().filter(|one| one.held_out == held_out);
        let mut names: Vec<&str> = of.map(|one| &*one.run).collect();
        names.dedup();
        names.join(", ")
    };
    let mut head = format!(
        "# Made by drivelab fit from {}. The free figures have the kind fitted, from fio's results; all \
         others are that drive's.\n# Fitted to the runs {}.\n",
        base.id,
        runs(false)
    );
    let held_out = runs(true);
    if !held_out.is_empty() {
        // Runs that were held out did not set any parameter.
        head.push_str(&format!("# Held out: {held_out}.\n"));
    }
    if request.host != catalogue::TYPICAL_HOST {
        // The measurements include the host's time; the drive's figures do not.
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

    /// `fit DRIVE` works with every drive that has figures of its own, without named parameters. A parameter whose
    /// value is 0 on a drive (the read delay of the 950 PRO) is left out, unless the user asked for it.
    #[test]
    fn every_drive_of_the_catalogue_can_be_a_base() {
        let host = catalogue::host("xeon-2017").expect("built in");
        for base in catalogue::drives().expect("built in") {
            let asked = |free: &[&str]| FitRequest {
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
        // Four figures that depend on the first parameter and not on the second.
        let loss = |at: &[f64]| (at[0] - 0.3) * (at[0] - 0.3);
        let found = intervals(&[0.3, 0.0], 4, &loss);
        // 1.96 times one percent, divided by the square root of four.
        assert!((found[0].0 - (0.3 - 0.0098)).abs() < 5e-4, "{found:?}");
        assert!((found[0].1 - (0.3 + 0.0098)).abs() < 5e-4, "{found:?}");
        assert_eq!(found[1], (-FURTHEST, FURTHEST));
    }
}
