//! Questions on choosing, sizing and operating drives: `max`, `life`, `choose`.

use std::path::PathBuf;

use catalogue::HostSheet;
use lab::{Lab, Start, to_the_end};
use model::Span;
use pyo3::prelude::*;
use report::csv;
use report::decide;
use study::decide::choose::{self, Candidate, Measure, Unfit};
use study::decide::load::Pattern;
use study::decide::prices::Prices;
use study::decide::rate::Offered;
use study::decide::slo::Slo;
use study::decide::work::{Conditions, Load};
use study::decide::{life, max, named};
use text::problem::{Problem, Problems};

use crate::drive::{Drive, host, start};
use crate::jobs::Jobs;
use crate::table::{Table, typed};
use crate::work::{away, of_argument, raised, taken};

/// Maximum counted time of a job, as on the command line.
const AT_MOST: Span = Span::from_ms(500);

/// Answer to a question.
#[pyclass(frozen, module = "drivelab")]
pub(crate) struct Answer {
    sentences: Vec<String>,
    text: String,
    json: String,
    html: String,
    table: csv::Table,
    meets: bool,
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

fn whole(sentences: &[String], words: &decide::page::Words) -> String {
    format!(
        "{}\n\n{}\n\n{}",
        sentences.join("\n"),
        words.table,
        words.method
    )
}

/// Host, state and seeds of an answer.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Around {
    host: String,
    state: String,
    seed: u64,
    seeds: u32,
}

impl Around {
    fn read(&self, problems: &mut Problems) -> Conditions {
        if !(1..=20).contains(&self.seeds) {
            problems
                .0
                .extend(of_argument("seeds: too few or too many", "from 1 to 20").0);
        }
        Conditions {
            host: host(&self.host, problems),
            // Preliminary, until the load is known.
            state: self.start(problems).before(false),
            seed: self.seed,
            seeds: self.seeds,
        }
    }

    fn start(&self, problems: &mut Problems) -> Start {
        start(&self.state, problems)
    }

    /// Sets the state before this load; an invalid name has already been reported.
    fn before(&self, load: &Load, conditions: &mut Conditions) {
        conditions.state = load.begins(self.start(&mut Problems::default()));
    }
}

/// Returns the results of all drives, or the problems of all drives.
fn of_all<T>(results: Vec<(String, Result<T, Problems>)>) -> PyResult<Vec<T>> {
    let (mut done, mut problems) = (Vec::new(), Problems::default());
    for (drive, result) in results {
        match result {
            Ok(one) => done.push(one),
            Err(more) => problems.0.extend(more.0.into_iter().map(|problem| Problem {
                what: format!("on {drive}: {}", problem.what),
                ..problem
            })),
        }
    }
    problems.or(done).map_err(raised)
}

/// Returns the highest load within limits.
#[pyfunction]
#[pyo3(name = "max")]
#[expect(clippy::too_many_arguments, reason = "Python calls it by keywords")]
pub(crate) fn highest(
    py: Python<'_>,
    drives: Vec<Drive>,
    slo: &str,
    rw: String,
    read_percent: u32,
    options: Vec<(String, String)>,
    threads: Option<u32>,
    ios: Option<u64>,
    around: Around,
    repeats: &str,
) -> PyResult<Answer> {
    let mut problems = Problems::default();
    let Conditions {
        host, seed, seeds, ..
    } = around.read(&mut problems);
    let start = around.start(&mut Problems::default());
    let state = start.before(!workload::fio::is_random(&rw));
    let slo = taken(Slo::read(slo), &mut problems).unwrap_or_default();
    let pattern = Pattern {
        rw,
        read_percent,
        options,
        threads: threads.unwrap_or(host.config.cores.into()).max(1),
    };
    let request = max::Request {
        pattern,
        slo,
        host,
        state,
        ios,
        seed,
        seeds,
    };
    if problems.0.is_empty() {
        problems
            .0
            .extend(max::check(&request).err().unwrap_or_default().0);
    }
    problems.or(()).map_err(raised)?;
    let results = away(py, |stop| {
        let lab = Lab::new();
        let one = |drive: &Drive| {
            let found = max::highest(&request, &drive.sheet, &lab, &|_| stop.or_leave());
            (drive.sheet.id.clone(), found)
        };
        drives.iter().map(one).collect()
    })?;
    let answers = of_all(results)?;
    let sentences: Vec<String> = answers
        .iter()
        .map(|it| decide::max::answer(&request, it))
        .collect();
    let words = decide::page::Words {
        title: format!("The highest load within {}", request.slo.text()),
        answers: sentences.clone(),
        table: decide::max::table(&request, &answers, None),
        method: decide::max::method(&request, &answers, repeats, None),
    };
    Ok(Answer {
        text: whole(&sentences, &words),
        json: decide::max::json(&request, &answers, repeats).to_string(),
        html: decide::page::max(&request.slo, &answers, &words),
        table: csv::decide::max(&answers),
        meets: answers.iter().all(max::Answer::is_met),
        sentences,
    })
}

/// A load: jobs, or a named load.
#[derive(FromPyObject)]
pub(crate) enum Asked {
    Jobs(Jobs),
    Named(String),
}

impl Asked {
    fn read(&self, host: &HostSheet, runtime: Span) -> Result<Load, Problems> {
        let load = match self {
            Asked::Jobs(jobs) => Load::new(jobs.load(host.config.cores)?),
            Asked::Named(name) => {
                let unknown = || {
                    let names: Vec<&str> = named::names().collect();
                    let what = format!("load: there is no load `{name}`");
                    of_argument(
                        what,
                        format!("drivelab.fio(...), or one of {}", names.join(", ")),
                    )
                };
                Load::of_text(name, named::text(name).ok_or_else(unknown)?.to_owned())?
            }
        };
        Ok(load.at_most(runtime))
    }

    /// The load at the rate of its users, or at this one: `50k` or `300MB/s`.
    fn at(&self, load: Load, users: Option<u32>, rate: Option<&str>) -> Result<Load, Problems> {
        let offered = match (self, users, rate) {
            (_, None, None) => return Ok(load),
            (_, Some(_), Some(_)) => {
                return Err(of_argument("users: rate is given too", "one of them"));
            }
            (_, None, Some(rate)) => {
                Offered::read(rate).map_err(|help| of_argument(format!("rate: `{rate}`"), help))?
            }
            (Asked::Named(name), Some(users), None) if users > 0 => {
                named::rate_of_users(name, f64::from(users))
                    .map_err(|what| of_argument(format!("users: {what}"), "leave users out"))?
            }
            (Asked::Named(_), Some(_), None) => {
                return Err(of_argument("users: 0 users have no load", "1 or more"));
            }
            (Asked::Jobs(_), Some(_), None) => {
                return Err(of_argument("users: the load has no name", "rate=\"50k\""));
            }
        };
        load.at_rate(offered)
    }
}

fn runtime(text: Option<&str>, problems: &mut Problems) -> Span {
    let read = text.map(text::quantity::quantity::<Span>);
    read.unwrap_or(Ok(AT_MOST)).unwrap_or_else(|what| {
        let help = "a time such as 500ms";
        problems
            .0
            .extend(of_argument(format!("runtime: {what}"), help).0);
        AT_MOST
    })
}

/// Returns the lifetime of drives.
#[pyfunction]
#[pyo3(name = "life", signature = (drives, load, users, years, runtime, around, repeats))]
#[expect(clippy::too_many_arguments, reason = "Python calls it by keywords")]
pub(crate) fn lasting(
    py: Python<'_>,
    drives: Vec<Drive>,
    load: Option<Asked>,
    users: Option<u32>,
    years: f64,
    runtime: Option<&str>,
    around: Around,
    repeats: &str,
) -> PyResult<Answer> {
    let mut problems = Problems::default();
    let mut conditions = around.read(&mut problems);
    let most = self::runtime(runtime, &mut problems);
    let load = load.and_then(|asked| {
        let load = asked.read(&conditions.host, most);
        taken(
            load.and_then(|load| asked.at(load, users, None)),
            &mut problems,
        )
    });
    if let Some(load) = &load {
        around.before(load, &mut conditions);
    }
    problems.or(()).map_err(raised)?;
    let results = away(py, |stop| {
        let lab = Lab::new();
        let one = |drive: &Drive| {
            stop.or_leave();
            let lasts = life::life(
                &drive.sheet,
                load.as_ref(),
                years,
                &conditions,
                &lab,
                &to_the_end,
            );
            (drive.sheet.id.clone(), lasts)
        };
        drives.iter().map(one).collect()
    })?;
    let answers = of_all(results)?;
    let sentences: Vec<String> = answers.iter().map(decide::life::answer).collect();
    let words = decide::page::Words {
        title: String::from("How long they last"),
        answers: sentences.clone(),
        table: decide::life::table(&answers, None),
        method: decide::life::method(&answers, &conditions, repeats, None),
    };
    Ok(Answer {
        text: whole(&sentences, &words),
        json: decide::life::json(&answers, &conditions, repeats).to_string(),
        html: decide::page::life(&answers, &words),
        table: csv::decide::life(&answers),
        meets: answers.iter().all(|answer| answer.lasts() != Some(false)),
        sentences,
    })
}

fn measure(name: &str) -> Result<Measure, Problems> {
    match name {
        "usd" => Ok(Measure::Usd),
        "watt" => Ok(Measure::Watt),
        "iops" => Ok(Measure::Iops),
        "p99" => Ok(Measure::P99),
        "years" => Ok(Measure::Years),
        _ => Err(of_argument(
            format!("by: there is no measure `{name}`"),
            "usd, watt, iops, p99 or years",
        )),
    }
}

/// Reads the user's prices from a file.
fn prices(path: &PathBuf, drives: &[Drive]) -> Result<Prices, Problems> {
    let origin = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Problems::whole(&*origin, format!("cannot be read: {error}")))?;
    let also: Vec<&str> = drives.iter().map(|one| &*one.sheet.id).collect();
    Prices::read(&origin, &text, &also)
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

/// Returns the expression of the pool that contains a drive at this place.
#[pyfunction]
#[pyo3(name = "in_place")]
pub(crate) fn placed(place: &str, drive: &str, behind: &str) -> PyResult<String> {
    match choose::PLACES.contains(&place) {
        true => Ok(choose::in_place(place, drive, behind)),
        false => Err(raised(of_argument(
            format!("place: there is no place `{place}`"),
            choose::PLACES.join(", "),
        ))),
    }
}

/// Returns the drives that meet a load and limits.
#[pyfunction]
#[pyo3(name = "choose", signature = (drives, load, users, rate, slo, by, years, usd, runtime, around, repeats))]
#[expect(clippy::too_many_arguments, reason = "Python calls it by keywords")]
pub(crate) fn chosen(
    py: Python<'_>,
    drives: Vec<Drive>,
    load: Asked,
    users: Option<u32>,
    rate: Option<&str>,
    slo: Option<&str>,
    by: &str,
    years: f64,
    usd: Option<PathBuf>,
    runtime: Option<&str>,
    around: Around,
    repeats: &str,
) -> PyResult<Answer> {
    let mut problems = Problems::default();
    let mut conditions = around.read(&mut problems);
    let most = self::runtime(runtime, &mut problems);
    let asked = load.read(&conditions.host, most);
    let load = taken(
        asked.and_then(|read| load.at(read, users, rate)),
        &mut problems,
    );
    let slo = slo.and_then(|text| taken(Slo::read(text), &mut problems));
    let by = taken(measure(by), &mut problems).unwrap_or(Measure::Iops);
    if by == Measure::Usd && usd.is_none() {
        problems.0.extend(
            of_argument(
                "by: there are no prices",
                "usd=\"prices.toml\"; none is invented",
            )
            .0,
        );
    }
    let prices = usd.and_then(|path| taken(prices(&path, &drives), &mut problems));
    let Some(load) = load.filter(|_| problems.0.is_empty()) else {
        return Err(raised(problems));
    };
    around.before(&load, &mut conditions);
    let slo = slo.unwrap_or_default();
    let request = choose::Request {
        load: load.at_rate_of(&slo),
        slo,
        years,
        prices,
        conditions,
    };
    let results: Vec<_> = away(py, |stop| {
        let lab = Lab::new();
        let one = |drive: &Drive| {
            stop.or_leave();
            (
                drive.asked().to_owned(),
                choose::candidate(&request, &drive.sheet, &lab, &to_the_end),
            )
        };
        drives.iter().map(one).collect()
    })?;
    let (candidates, unfit) = parted(results)?;
    let answer = choose::answer(candidates, unfit, by);
    let sentences = decide::choose::answer(&request, &answer, by);
    let words = decide::page::Words {
        title: format!("Which drive for {}", request.load.facts().source),
        answers: sentences.clone(),
        table: decide::choose::table(&request, &answer, None),
        method: decide::choose::method(&request, &answer, repeats, None),
    };
    Ok(Answer {
        text: whole(&sentences, &words),
        json: decide::choose::json(&request, &answer, None, repeats).to_string(),
        html: decide::page::choose(&request.slo, &answer, &words),
        table: csv::decide::choose(&answer),
        meets: answer.candidates.iter().any(|one| one.meets),
        sentences,
    })
}
