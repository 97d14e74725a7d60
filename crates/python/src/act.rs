//! Aerospike's certification test: `act`.

use std::path::PathBuf;

use lab::{Lab, in_parallel};
use model::Span;
use pyo3::prelude::*;
use report::act::ActRow;
use report::csv;
use study::act::{self, ActOptions, Version};
use text::problem::Problems;

use crate::drive::{Drive, state};
use crate::table::{Table, typed};
use crate::work::{away, check_range, collect_problems, of_argument, raised};

/// Result of the test.
#[pyclass(frozen, module = "drivelab")]
pub(crate) struct Act {
    rows: Vec<ActRow>,
}

/// Parameters of the test as Python passes them; `None` selects the default.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    load: Option<f64>,
    config: Option<PathBuf>,
    version: Option<i64>,
    queues: Option<i64>,
    threads_per_queue: Option<i64>,
    service_threads: Option<i64>,
    duration: Option<i64>,
    warm_up: i64,
    slice: i64,
    latency_only: bool,
    cores: Option<i64>,
}

impl Options {
    fn read(&self, problems: &mut Problems) -> ActOptions {
        let mut wrong = |what: String, help: String| problems.0.extend(of_argument(what, help).0);
        if let Some(load) = self.load.filter(|load| !act::LOADS.contains(load)) {
            let help = format!("from {} to {}", act::LOADS.start(), act::LOADS.end());
            wrong(format!("load: {load}"), help);
        }
        if let Some(version) = self.version.filter(|it| ![3, 6].contains(it)) {
            wrong(format!("version: {version}"), "3 or 6".into());
        }
        if self.load.is_some() && self.config.is_some() {
            let what = "load and config are both given: the file sets the load";
            wrong(what.into(), "give one of them".into());
        }
        if self.version == Some(3) && self.service_threads.is_some() {
            let help = "queues and threads_per_queue";
            wrong("service_threads with version 3".into(), help.into());
        }
        if self.version != Some(3) && (self.queues.is_some() || self.threads_per_queue.is_some()) {
            let what = "queues and threads_per_queue require version 3";
            wrong(what.into(), "add version=3".into());
        }
        let mut seconds = |name, number, limits| {
            let read: Option<u32> = check_range(name, number, limits, problems);
            read.map(|seconds| Span::from_ms(u64::from(seconds) * 1_000))
        };
        let duration = seconds("duration", self.duration, act::DURATIONS);
        let warm_up = seconds("warm_up", Some(self.warm_up), act::WARM_UPS);
        let slice = seconds("slice", Some(self.slice), act::SLICES);
        ActOptions {
            load: self.load,
            config: self.config.clone(),
            version: self.version.map(|version| match version {
                3 => Version::Three,
                _ => Version::Six,
            }),
            queues: check_range("queues", self.queues, act::QUEUES, problems),
            threads_per_queue: check_range(
                "threads_per_queue",
                self.threads_per_queue,
                act::THREADS_PER_QUEUE,
                problems,
            ),
            service_threads: check_range(
                "service_threads",
                self.service_threads,
                act::SERVICE_THREADS,
                problems,
            ),
            duration,
            warm_up: warm_up.unwrap_or_default(),
            slice: slice.unwrap_or_default(),
            latency_only: self.latency_only,
            cores: check_range("cores", self.cores, act::CORES, problems),
        }
    }
}

/// Runs the test on drives: at one load, or for the score of each.
#[pyfunction]
#[pyo3(name = "act", signature = (drives, options, host, state, seed))]
pub(crate) fn tested(
    py: Python<'_>,
    drives: Vec<Drive>,
    options: Options,
    host: &str,
    state: &str,
    seed: u64,
) -> PyResult<Act> {
    let mut problems = Problems::default();
    let state = self::state(state, &drives, &mut problems);
    let asked = options.read(&mut problems);
    let host = collect_problems(asked.host(host), &mut problems).unwrap_or_default();
    let config = collect_problems(asked.config(host.config.cores), &mut problems);
    problems.or(()).map_err(raised)?;
    let plan = |drive: &Drive| {
        let config = config.as_ref()?;
        Some(asked.plan(&drive.sheet, &host, config, state, seed))
    };
    let plans: Vec<lab::Scenario> = drives.iter().filter_map(plan).collect();
    let results = away(py, |stop| {
        let lab = Lab::new();
        let go_on = |_: f64| {
            stop.or_leave();
            stop.check()
        };
        in_parallel(&plans, &go_on, |plan, go_on| {
            act::run(
                &lab,
                plan,
                asked.is_one_run(),
                &|_, _| stop.or_leave(),
                go_on,
            )
        })
    })?;
    let (mut rows, mut problems) = (Vec::new(), Problems::default());
    for (scenario, result) in plans.into_iter().zip(results) {
        if let Some((tested, score)) = collect_problems(result, &mut problems) {
            rows.push(ActRow {
                scenario,
                tested,
                score,
            });
        }
    }
    problems.or(Act { rows }).map_err(raised)
}

#[pymethods]
impl Act {
    /// Whether no given load failed (the program's exit code is 0, not 3).
    #[getter]
    fn passes(&self) -> bool {
        !self.rows.iter().any(ActRow::failed)
    }

    /// Output of the program.
    fn text(&self) -> String {
        let conditions = self.rows.first().map(report::act::conditions);
        let table = report::act::table(&self.rows, None);
        let verdicts = report::act::verdicts(&self.rows, None);
        let anatomy = report::act::anatomy(&self.rows, None);
        format!(
            "{}\n\n{table}\n\n{verdicts}\n{anatomy}",
            conditions.unwrap_or_default()
        )
    }

    /// Output of the program as JSON.
    fn json(&self) -> String {
        report::act::json(&self.rows).to_string()
    }

    /// Run of the first drive, or the run at its score, as a log of ACT.
    fn log(&self) -> String {
        let first = self.rows.first();
        first.map_or_else(String::new, |row| {
            report::act::log(&row.scenario, &row.tested)
        })
    }

    /// Table with a line for each drive and kind of request.
    fn table(&self) -> PyResult<Table> {
        typed(&csv::act(&self.rows))
    }
}
