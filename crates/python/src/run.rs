//! Runs of jobs and traces on drives.

use std::path::PathBuf;
use std::sync::Arc;

use catalogue::{DriveSheet, HostSheet};
use lab::faults::RunFault;
use lab::scripted::{befalling, scripted};
use lab::{Lab, Machine, Outcome, SPEEDS, Scenario, TraceReplay, Work};
use model::Span;
use model::media::Precondition;
use pyo3::prelude::*;
use report::csv;
use report::fio::{Formats, Report, print_drives};
use text::problem::{Problem, Problems};
use text::quantity::quantity;
use workload::fio::JobSet;
use workload::replay::{OutOfRangePolicy, Pace};
use workload::trace::{self, Options, Trace};

use crate::drive::{Drive, host, start};
use crate::jobs::Jobs;
use crate::table::{Table, typed};
use crate::work::{away, collect_problems, of_argument, raised};

/// Interval of a run over time.
const EVERY: Span = Span::from_ms(500);

/// Result of fio jobs.
#[pyclass(frozen, module = "drivelab")]
pub(crate) struct Run {
    drives: Vec<DriveSheet>,
    outcomes: Vec<Outcome>,
    host: HostSheet,
    state: Precondition,
    seed: u64,
    set: JobSet,
    every: Span,
}

/// Runs fio's jobs on drives.
#[pyfunction]
#[pyo3(signature = (drives, jobs, host, state, seed, every, fault, heat, guests))]
#[expect(clippy::too_many_arguments, reason = "Python calls it by keywords")]
pub(crate) fn run(
    py: Python<'_>,
    drives: Vec<Drive>,
    jobs: Jobs,
    host: &str,
    state: &str,
    seed: u64,
    every: Option<&str>,
    fault: Option<PathBuf>,
    heat: bool,
    guests: Option<u32>,
) -> PyResult<Run> {
    let mut problems = Problems::default();
    let host = self::host(host, &mut problems);
    let start = self::start(state, &drives, &mut problems);
    let every = every.map(quantity::<Span>);
    let every = every.unwrap_or(Ok(EVERY)).unwrap_or_else(|what| {
        let help = "a time such as 100ms";
        problems
            .0
            .extend(of_argument(format!("every: {what}"), help).0);
        EVERY
    });
    let set = collect_problems(jobs.read(host.config.cores), &mut problems).unwrap_or_default();
    let faults = faults(fault, &drives, &mut problems);
    let mut set = set;
    let smallest = drives.iter().map(|drive| drive.sheet.capacity).min();
    if let (Some(guests), Some(capacity)) = (guests, smallest) {
        match workload::guests::of_guests(&set.jobs, guests, capacity) {
            Ok(jobs) => set.jobs = jobs,
            Err(all) => problems.0.extend(all.into_iter().flat_map(|why| {
                of_argument(format!("guests: {why}"), "each guest has its own share").0
            })),
        }
    }
    problems.or(()).map_err(raised)?;
    let state = start.before_jobs(&set.jobs);
    let scenario = |(drive, faults): (&Drive, Vec<RunFault>)| Scenario {
        series_every: every,
        faults,
        heat: heat.then(|| drive.sheet.management.thermal.clone()),
        ..Scenario::jobs(
            Machine::new(&drive.sheet, &host),
            state,
            set.jobs.clone(),
            seed,
        )
    };
    let scenarios: Vec<Scenario> = drives.iter().zip(faults).map(scenario).collect();
    let results = away(py, |stop| Lab::new().run_all(&scenarios, &|_| stop.check()))?;
    Ok(Run {
        outcomes: all(&drives, results)?,
        drives: drives.into_iter().map(|drive| drive.sheet).collect(),
        host,
        state,
        seed,
        set,
        every,
    })
}

/// Returns each drive's faults by the script in this file; empty without a script.
fn faults(path: Option<PathBuf>, drives: &[Drive], problems: &mut Problems) -> Vec<Vec<RunFault>> {
    let Some(path) = path else {
        return vec![Vec::new(); drives.len()];
    };
    let origin = path.display().to_string();
    let text = text::bounded::text(&path, text::bounded::WRITTEN)
        .map_err(|error| Problems::whole(&origin, format!("cannot be read: {error}")));
    let sheets: Vec<DriveSheet> = drives.iter().map(|drive| drive.sheet.clone()).collect();
    let read = text
        .and_then(|text| scripted(&origin, &text))
        .and_then(|planned| befalling(&origin, &planned, &sheets));
    collect_problems(read, problems).unwrap_or_default()
}

/// Returns the outcomes of all drives, or the problems of all drives.
fn all(drives: &[Drive], results: Vec<Result<Outcome, Problems>>) -> PyResult<Vec<Outcome>> {
    let (mut outcomes, mut problems) = (Vec::new(), Problems::default());
    for (drive, result) in drives.iter().zip(results) {
        match result {
            Ok(outcome) => outcomes.push(outcome),
            Err(more) => problems.0.extend(more.0.into_iter().map(|problem| Problem {
                origin: format!("{} on {}", problem.origin, drive.sheet.id),
                ..problem
            })),
        }
    }
    problems.or(outcomes).map_err(raised)
}

#[pymethods]
impl Run {
    /// Whether the run was stopped before its end.
    #[getter]
    fn stopped(&self) -> bool {
        self.outcomes.iter().any(|outcome| outcome.stopped)
    }

    /// Warnings on options that are ignored, not simulated, or treated differently from fio.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.set.warnings.clone()
    }

    /// Output of the program: normal, json or json+.
    fn text(&self, format: &str) -> PyResult<String> {
        let format: Formats = format
            .parse()
            .map_err(|what: String| raised(Problems::whole("format", what)))?;
        let members: Vec<Vec<String>> = self.drives.iter().map(members).collect();
        let with = self.drives.iter().zip(&self.outcomes).zip(&members);
        let reports = with.map(|((drive, outcome), members)| Report {
            members,
            jobs: &self.set.jobs,
            globals: &self.set.globals,
            outcome,
            drive: &drive.id,
            series_every: self.every,
        });
        let reports: Vec<Report<'_>> = reports.collect();
        Ok(match &reports[..] {
            [one] => report::fio::print(one, format),
            several => print_drives(several, format, None),
        })
    }

    /// Table with a line for each drive, job and direction.
    fn table(&self) -> PyResult<Table> {
        typed(&csv::run(&self.runs()))
    }

    /// Table with a line for each drive and interval.
    fn over_time(&self) -> PyResult<Table> {
        typed(&csv::over_time(&self.runs()))
    }
}

fn members(drive: &DriveSheet) -> Vec<String> {
    let members = drive.named_members().into_iter();
    let of_pool = members.filter(|_| drive.pool.is_some());
    of_pool.map(|(name, _)| name.to_owned()).collect()
}

impl Run {
    fn runs(&self) -> Vec<csv::Run<'_>> {
        let with = self.drives.iter().zip(&self.outcomes);
        with.map(|(drive, outcome)| csv::Run {
            drive: &drive.id,
            host: &self.host.id,
            state: self.state,
            seed: self.seed,
            jobs: &self.set.jobs,
            outcome,
        })
        .collect()
    }
}

/// Result of a trace.
#[pyclass(frozen, module = "drivelab")]
pub(crate) struct Replay {
    rows: Vec<report::replay::ReplayRow>,
    trace: Arc<Trace>,
    host: String,
    state: Precondition,
    pace: Pace,
    seed: u64,
    stopped: bool,
}

/// Replays a trace on drives.
#[pyfunction]
#[pyo3(signature = (trace, drives, host, state, seed, speed, depth, wrap, format, volume, first, threads, fault))]
#[expect(clippy::too_many_arguments, reason = "Python calls it by keywords")]
pub(crate) fn replay(
    py: Python<'_>,
    trace: PathBuf,
    drives: Vec<Drive>,
    host: &str,
    state: &str,
    seed: u64,
    speed: Option<f64>,
    depth: Option<u32>,
    wrap: bool,
    format: Option<&str>,
    volume: Option<String>,
    first: Option<u64>,
    threads: Option<u16>,
    fault: Option<PathBuf>,
) -> PyResult<Replay> {
    let mut problems = Problems::default();
    let host = self::host(host, &mut problems);
    let start = self::start(state, &drives, &mut problems);
    let named = format.and_then(trace::Format::named);
    if let Some(unknown) = format.filter(|_| named.is_none()) {
        let names: Vec<&str> = trace::FORMATS.iter().map(|format| format.name).collect();
        let what = format!("format: there is no trace format `{unknown}`");
        problems.0.extend(of_argument(what, names.join(", ")).0);
    }
    let faults = faults(fault, &drives, &mut problems);
    problems.or(()).map_err(raised)?;
    let options = Options {
        format: named,
        volume,
        first,
        ..Options::default()
    };
    let trace = py
        .detach(|| trace::read(&trace, &options))
        .map_err(raised)?;
    let trace = Arc::new(trace);
    let pace = pace(&trace, speed, depth).map_err(raised)?;
    let state = start.before(false);
    let scenario = |(drive, faults): (&Drive, Vec<RunFault>)| {
        let replay = TraceReplay {
            threads,
            pace,
            beyond: if wrap {
                OutOfRangePolicy::Wrap
            } else {
                OutOfRangePolicy::Refuse
            },
            ..TraceReplay::new(Arc::clone(&trace))
        };
        let machine = Machine::new(&drive.sheet, &host);
        Scenario {
            faults,
            ..Scenario::new(machine, state, Work::Trace(replay), seed)
        }
    };
    let scenarios: Vec<Scenario> = drives.iter().zip(faults).map(scenario).collect();
    let results = away(py, |stop| Lab::new().run_all(&scenarios, &|_| stop.check()))?;
    let outcomes = all(&drives, results)?;
    let stopped = outcomes.iter().any(|outcome| outcome.stopped);
    let with = scenarios.iter().zip(outcomes);
    let rows = with.filter_map(|(scenario, outcome)| {
        report::replay::ReplayRow::new(scenario.machine.name(), outcome)
    });
    Ok(Replay {
        rows: rows.collect(),
        trace,
        host: host.id,
        state,
        pace,
        seed,
        stopped,
    })
}

fn pace(trace: &Trace, speed: Option<f64>, depth: Option<u32>) -> Result<Pace, Problems> {
    match (depth, speed) {
        (Some(_), Some(_)) => Err(of_argument(
            "speed and depth are both given",
            "give one of them",
        )),
        (Some(depth), None) if (1..=65_535).contains(&depth) => Ok(Pace::Depth(depth)),
        (Some(_), None) => Err(of_argument("depth: no queue depth", "from 1 to 65535")),
        (None, Some(_)) if !trace.timed => Err(of_argument(
            "speed: the trace has no times",
            "use depth to set how fast it is replayed",
        )),
        (None, Some(speed)) if SPEEDS.contains(&speed) => Ok(Pace::Recorded(speed)),
        (None, Some(_)) => {
            let help = format!("from {:e} to {:e}", SPEEDS.start(), SPEEDS.end());
            Err(of_argument("speed: too low or too high", help))
        }
        (None, None) => Ok(Pace::for_trace(trace)),
    }
}

#[pymethods]
impl Replay {
    /// Whether the replay was stopped before its end.
    #[getter]
    fn stopped(&self) -> bool {
        self.stopped
    }

    /// Output of the program.
    fn text(&self) -> String {
        let lines = report::replay::trace_lines(&self.trace);
        let table = report::replay::table(&self.rows, None);
        let drives = report::replay::drives_table(&self.rows, None);
        let anatomy = report::replay::anatomy(&self.rows, None);
        let faults = report::replay::between_faults(&self.rows, None);
        format!("{lines}\n\n{table}\n\n{drives}\n{anatomy}{faults}")
    }

    /// Output of the program as JSON.
    fn json(&self) -> String {
        report::replay::json(&self.rows, &self.trace, self.pace, self.seed).to_string()
    }

    /// Table with a line for each drive and kind of request.
    fn table(&self) -> PyResult<Table> {
        typed(&csv::replay(&csv::ReplayTable {
            rows: &self.rows,
            source: &self.trace.origin,
            host: &self.host,
            state: self.state,
            pace: self.pace,
            seed: self.seed,
        }))
    }
}
