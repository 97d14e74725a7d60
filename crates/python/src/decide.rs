//! Answers to questions, and the question `choose`.

use std::path::{Path, PathBuf};

use lab::{Lab, Start, to_the_end};
use model::Span;
use pyo3::prelude::*;
use report::csv;
use report::decide::view::{self, AnswerView};
use study::ask::all;
use study::ask::load::{LoadSpec, NamedLoad};
use study::decide::choose::{self, Candidate, Measure, NO_LONGER_MADE, Unfit};
use study::decide::likeness::{self, Replacements};
use study::decide::memory_need::MachineMemory;
use study::decide::price_list::read_prices;
use study::decide::prices::Prices;
use study::decide::rate::OfferedRate;
use study::decide::slo::Slo;
use study::decide::work::{Conditions, Load, counted_for};
use study::decide::{feasibility, half_rate};
use text::problem::Problems;

use crate::drive::{Drive, host, sheets};
use crate::jobs::Jobs;
use crate::table::{Table, typed};
use crate::work::{away, collect_problems, of_argument, raised};

/// Answer to a question.
#[pyclass(frozen, module = "drivelab")]
pub(crate) struct Answer {
    pub(crate) sentences: Vec<String>,
    pub(crate) text: String,
    pub(crate) json: String,
    /// Page of `--output`.
    pub(crate) html: String,
    pub(crate) table: csv::Table,
    pub(crate) meets: bool,
}

#[pymethods]
impl Answer {
    /// Answer in sentences; for `max` and `life`, one for each drive.
    #[getter]
    fn sentences(&self) -> Vec<String> {
        self.sentences.clone()
    }

    /// Whether all limits are met (the program's exit code is 0, not 3).
    #[getter]
    fn meets(&self) -> bool {
        self.meets
    }

    /// Output of the program.
    fn text(&self) -> &str {
        &self.text
    }

    /// Output of `--json`.
    fn json(&self) -> &str {
        &self.json
    }

    /// Page of `--output`.
    fn html(&self) -> &str {
        &self.html
    }

    /// Table of `--csv`.
    fn table(&self) -> PyResult<Table> {
        typed(&self.table)
    }
}

impl Answer {
    /// Returns the answer of this view; `repeats` is the call that repeats it.
    pub(crate) fn new(view: &AnswerView<'_>, meets: bool, repeats: &str) -> Answer {
        Answer {
            sentences: view.sentences.clone(),
            text: view.text(repeats),
            json: view.json(repeats).to_string(),
            html: view.page(repeats),
            table: view.csv.clone(),
            meets,
        }
    }
}

/// Host, state and seeds of an answer.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AnswerConditions {
    host: String,
    state: String,
    seed: u64,
    seeds: u32,
}

impl AnswerConditions {
    pub(crate) fn read(&self, problems: &mut Problems) -> Conditions {
        if !(1..=20).contains(&self.seeds) {
            problems
                .0
                .extend(of_argument("seeds: too few or too many", "from 1 to 20").0);
        }
        Conditions {
            host: host(&self.host, problems),
            // Until the load is known: see `start`.
            state: Start::Auto.before(false),
            seed: self.seed,
            seeds: self.seeds,
        }
    }

    /// The state as it was named.
    pub(crate) fn state(&self) -> &str {
        &self.state
    }

    /// How these drives begin; the load may choose it.
    pub(crate) fn start(&self, drives: &[Drive], problems: &mut Problems) -> Start {
        crate::drive::start(&self.state, drives, problems)
    }
}

/// Returns the results of all drives, or the problems of all drives.
pub(crate) fn collect_results<T>(results: Vec<(String, Result<T, Problems>)>) -> PyResult<Vec<T>> {
    let named = results.iter().map(|(drive, _)| drive.clone());
    let named: Vec<String> = named.collect();
    let results = results.into_iter().map(|(_, result)| result);
    all(named.iter().map(|drive| &**drive).zip(results)).map_err(raised)
}

/// A load: jobs, one by its name, or a trace.
#[derive(FromPyObject)]
pub(crate) enum LoadArgument {
    Jobs(Jobs),
    Named(String),
    Trace(PathBuf),
}

impl LoadArgument {
    /// Returns the load as requests have it.
    pub(crate) fn spec(self, users: Option<u32>, runtime: Span) -> LoadSpec {
        let mut spec = LoadSpec {
            users,
            runtime: Some(runtime),
            ..LoadSpec::default()
        };
        match self {
            LoadArgument::Jobs(Jobs(jobs)) => spec.load = Some(NamedLoad::Jobs(jobs)),
            LoadArgument::Named(name) => spec.load = Some(NamedLoad::Name(name)),
            LoadArgument::Trace(path) => spec.trace = Some(path),
        }
        spec
    }
}

/// Returns the maximum measured time of a job: the requested time, or the program's default.
pub(crate) fn runtime(text: Option<&str>, usual: Span, problems: &mut Problems) -> Span {
    let read = text.map(text::quantity::quantity::<Span>);
    read.unwrap_or(Ok(usual)).unwrap_or_else(|what| {
        let help = "a time such as 500ms";
        problems
            .0
            .extend(of_argument(format!("runtime: {what}"), help).0);
        usual
    })
}

/// Checks a number of years.
fn check_years(years: f64, problems: &mut Problems) {
    if !(years > 0.0 && years <= 100.0) {
        let what = format!("years: {years}");
        problems
            .0
            .extend(of_argument(what, "a number above 0, at most 100").0);
    }
}

fn measure(name: &str) -> Result<Measure, Problems> {
    match name {
        "usd" => Ok(Measure::Usd),
        "watt" => Ok(Measure::Watt),
        "iops" => Ok(Measure::Iops),
        "p99" => Ok(Measure::P99),
        "years" => Ok(Measure::Years),
        _ => Err(of_argument(
            format!("by: there is no criterion `{name}`"),
            "usd, watt, iops, p99 or years",
        )),
    }
}

/// Reads the user's prices from a file.
fn prices_of(path: &Path, drives: &[Drive]) -> Result<Prices, Problems> {
    let origin = path.display().to_string();
    let text = text::bounded::text(path, text::bounded::WRITTEN)
        .map_err(|error| Problems::whole(&*origin, format!("cannot be read: {error}")))?;
    let also: Vec<&str> = drives.iter().map(|one| &*one.sheet.id).collect();
    read_prices(&origin, &text, &also)
}

/// Splits drives into those that can run the load, and the reasons why the others cannot; an error if none can.
fn parted(
    results: Vec<(String, Result<Candidate, Problems>)>,
) -> PyResult<(Vec<Candidate>, Vec<Unfit>)> {
    let (mut candidates, mut unfit) = (Vec::new(), Vec::new());
    for (drive, result) in results {
        match result {
            Ok(candidate) => candidates.push(candidate),
            Err(more) => {
                let why: Vec<String> = more.0.into_iter().map(|problem| problem.what).collect();
                unfit.push(Unfit {
                    drive,
                    why: why.join("; "),
                });
            }
        }
    }
    if candidates.is_empty() {
        let why = unfit
            .iter()
            .map(|one| format!("{}: {}", one.drive, one.why));
        let why: Vec<String> = why.collect();
        return Err(raised(of_argument(
            why.join("\n"),
            "another load, or other drives",
        )));
    }
    Ok((candidates, unfit))
}

/// Returns the expression of the pool that contains a drive at this place; clients of a log write new files, unless
/// they overwrite existing ones.
#[pyfunction]
#[pyo3(name = "in_place")]
pub(crate) fn placed(place: &str, drive: &str, behind: &str, overwrite: bool) -> PyResult<String> {
    match choose::PLACES.contains(&place) {
        true => Ok(choose::of_clients(place, drive, behind, overwrite)),
        false => Err(raised(of_argument(
            format!("place: there is no place `{place}`"),
            choose::PLACES.join(", "),
        ))),
    }
}

/// Options of `choose` other than the load, the limits and the conditions.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Choice {
    by: Option<String>,
    years: f64,
    usd: Option<PathBuf>,
    users: Option<u32>,
    rate: Option<String>,
    like: Option<String>,
    in_production: bool,
    writes: Option<String>,
}

impl Choice {
    /// Checks whether `in_production` leaves this drive out; the drive that is replaced need not be made.
    fn is_left_out(&self, drive: &Drive) -> bool {
        let name = drive.requested_name();
        let is_replaced = self.like.as_deref() == Some(name);
        self.in_production && !is_replaced && drive.sheet.no_longer_made(name).is_some()
    }

    /// Splits off the drives that `in_production` leaves out.
    fn made(&self, drives: Vec<Drive>, problems: &mut Problems) -> (Vec<Drive>, Vec<Unfit>) {
        let (old, made): (Vec<Drive>, Vec<Drive>) =
            drives.into_iter().partition(|one| self.is_left_out(one));
        if made.is_empty() && !old.is_empty() {
            let what = "in_production: none of these drives is still made";
            problems.0.extend(of_argument(what, "other drives").0);
        }
        let unfit = old.into_iter().map(|one| Unfit {
            drive: one.requested_name().to_owned(),
            why: String::from(NO_LONGER_MADE),
        });
        (made, unfit.collect())
    }

    /// Returns the load at the requested rate, or at the rate that the limits require.
    fn paced(&self, load: Load, slo: &Slo) -> Result<Load, Problems> {
        if let Some(writes) = self.writes.as_deref() {
            if self.users.is_some() || self.rate.is_some() {
                return Err(of_argument(
                    "writes: rate or users is given too",
                    "one of them",
                ));
            }
            let wrong = |help| of_argument(format!("writes: {writes}"), help);
            let load =
                load.at_rate_by("writes", OfferedRate::read_writes(writes).map_err(wrong)?)?;
            feasibility::check(&load, slo, Some("writes"))?;
            return Ok(load);
        }
        let (load, option) = match self.rate.as_deref() {
            Some(_) if self.users.is_some() => {
                return Err(of_argument("users: rate is given too", "one of them"));
            }
            Some("max") => (load, None),
            Some(rate) => {
                let wrong = |help| of_argument(format!("rate: {rate}"), help);
                let paced = load.at_rate(OfferedRate::read(rate).map_err(wrong)?)?;
                (paced, Some("rate"))
            }
            None if self.users.is_some() => (load, Some("users")),
            None => (feasibility::at_required_rate(load, slo), None),
        };
        feasibility::check(&load, slo, option)?;
        Ok(load)
    }

    /// Returns the request at half of the maximum of the drive that is replaced, if no rate is given.
    fn at_half_of_the_replaced(
        &self,
        drives: &[Drive],
        request: &choose::ChooseRequest,
    ) -> Option<half_rate::HalfRate> {
        let wanted = self
            .like
            .as_ref()
            .filter(|_| self.rate.is_none() && self.writes.is_none())?;
        let drive = drives.iter().find(|one| one.requested_name() == *wanted)?;
        half_rate::at_half_of(&drive.sheet, request, &Lab::new())
    }

    /// Returns the ranking criterion: the requested one, or the program's default.
    fn measure(&self, load: &Load) -> Result<Measure, Problems> {
        match (&self.by, &self.usd) {
            (Some(by), _) => measure(by),
            (None, Some(_)) => Ok(Measure::Usd),
            (None, None) if load.is_trace() || load.offered_iops().is_some() => Ok(Measure::P99),
            (None, None) => Ok(Measure::Iops),
        }
    }

    fn read(
        &self,
        (load, slo): (Load, Slo),
        conditions: Conditions,
        drives: &[Drive],
        problems: &mut Problems,
    ) -> Option<(choose::ChooseRequest, Measure)> {
        let by = self.by.as_deref();
        if by == Some("usd") && self.usd.is_none() {
            let help = "usd=\"prices.toml\"; none is invented";
            problems
                .0
                .extend(of_argument("by: there are no prices", help).0);
        }
        let prices = self.usd.as_ref();
        let prices = prices.and_then(|path| collect_problems(prices_of(path, drives), problems));
        let load = collect_problems(self.paced(load, &slo), problems)?;
        let measure = collect_problems(self.measure(&load), problems)?;
        let request = choose::ChooseRequest {
            load,
            slo,
            years: self.years,
            prices,
            conditions,
        };
        Some((request, measure))
    }
}

/// Returns the drives that meet a load and limits.
#[pyfunction]
#[pyo3(name = "choose", signature = (drives, load, slo, choice, runtime, around, repeats))]
#[expect(clippy::too_many_arguments, reason = "Python calls it by keywords")]
pub(crate) fn chosen(
    py: Python<'_>,
    drives: Vec<Drive>,
    load: LoadArgument,
    slo: Option<&str>,
    choice: Choice,
    runtime: Option<&str>,
    around: AnswerConditions,
    repeats: &str,
) -> PyResult<Answer> {
    let mut problems = Problems::default();
    let (drives, old) = choice.made(drives, &mut problems);
    let mut conditions = around.read(&mut problems);
    check_years(choice.years, &mut problems);
    let usual = counted_for(sheets(&drives));
    let most = self::runtime(runtime, usual, &mut problems);
    let load = load.spec(choice.users, most);
    let load = load.read(&conditions.host, usual, &mut problems).load;
    let slo = slo.and_then(|text| collect_problems(Slo::read(text), &mut problems));
    let start = around.start(&drives, &mut problems);
    let asked = load.and_then(|load| {
        conditions.state = load.begins(start);
        let asked = (load, slo.unwrap_or_default());
        choice.read(asked, conditions, &drives, &mut problems)
    });
    let Some((request, by)) = asked.filter(|_| problems.0.is_empty()) else {
        return Err(raised(problems));
    };
    let halved = away(py, |_| choice.at_half_of_the_replaced(&drives, &request))?;
    let at_half_of_its_maximum = halved.as_ref().is_some_and(|halved| halved.is_half);
    let request = halved.map_or(request, |halved| halved.request);
    let by = collect_problems(choice.measure(&request.load), &mut problems).unwrap_or(by);
    let results: Vec<_> = away(py, |stop| {
        let lab = Lab::new();
        let (memory, seeds) = (MachineMemory::read(), request.conditions.seeds);
        let one = |drive: &Drive| {
            stop.or_leave();
            let checked = memory.check(&drive.sheet, seeds);
            let run = |()| choose::candidate(&request, &drive.sheet, &lab, &to_the_end);
            (drive.requested_name().to_owned(), checked.and_then(run))
        };
        drives.iter().map(one).collect()
    })?;
    let (candidates, mut unfit) = parted(results)?;
    unfit.extend(old);
    likeness::check_replaced(choice.like.as_deref(), &unfit).map_err(raised)?;
    let like = choice.like.as_ref().and_then(|wanted| {
        let (all, years) = (&candidates, request.years);
        Replacements::from_candidates(wanted, at_half_of_its_maximum, all, years)
    });
    let (answer, by) = match choice.by.is_none() && choice.like.is_none() {
        true => choose::answer_by_default(&request, candidates, unfit, by),
        false => (choose::answer(candidates, unfit, by), by),
    };
    let view = view::choose(&request, &answer, like.as_ref(), by);
    Ok(Answer::new(
        &view,
        likeness::is_met(&answer.candidates, like.as_ref()),
        repeats,
    ))
}
