//! Analyses of existing runs and pools: `explain`, `check`, `size`, `prove`.

use std::path::{Path, PathBuf};

use catalogue::DriveSheet;
use lab::Lab;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use report::decide::view;
use study::decide::explain::answer::{self, explain};
use study::decide::explain::{file, steadiness};
use study::decide::size::{self, SizeRequest};
use study::decide::slo::Slo;
use study::decide::work::{Conditions, OF_A_LOG};
use study::prove::{self, FaultVerdict};
use study::review::Workload;
use text::bounded;
use text::problem::Problems;
use text::quantity::{Rate, quantity};
use tier::{DriveConfig, PoolConfig};

use crate::decide::{Answer, AnswerConditions, LoadArgument, collect_results, runtime};
use crate::drive::{Drive, state};
use crate::work::{away, collect_problems, of_argument, raised};

/// A text of a file.
fn text_of(path: &Path) -> Result<(String, String), Problems> {
    let origin = path.display().to_string();
    match bounded::text(path, bounded::RESULTS) {
        Ok(text) => Ok((origin, text)),
        Err(error) => Err(Problems::whole(origin, format!("cannot be read: {error}"))),
    }
}

/// Analysis of a user's fio run.
#[pyfunction]
#[pyo3(name = "explain", signature = (results, drive, logs, around, repeats))]
pub(crate) fn explained(
    py: Python<'_>,
    results: PathBuf,
    drive: Option<Drive>,
    logs: Vec<PathBuf>,
    around: AnswerConditions,
    repeats: &str,
) -> PyResult<Answer> {
    let mut problems = Problems::default();
    let Conditions {
        host, seed, seeds, ..
    } = around.read(&mut problems);
    let state = state(around.state(), drive.as_slice(), &mut problems);
    let read = text_of(&results).and_then(|(origin, text)| file::read(&origin, &text));
    let mut runs = collect_problems(read, &mut problems).unwrap_or_default();
    let logs: Result<Vec<_>, Problems> = logs.iter().map(|path| text_of(path)).collect();
    if let Some(logs) = collect_problems(logs, &mut problems).filter(|logs| !logs.is_empty()) {
        let judged = collect_problems(steadiness::of_logs(&logs), &mut problems);
        match (&mut runs[..], judged) {
            ([one], Some(judged)) => one.facts.steadiness = judged,
            ([] | [_], _) => {}
            _ => problems.0.extend(
                of_argument(
                    "logs: a log belongs to one run, but the file has several runs",
                    "results of one run",
                )
                .0,
            ),
        }
    }
    problems.or(()).map_err(raised)?;
    let request = drive.map(|drive| answer::ExplainRequest {
        drive: drive.sheet,
        host,
        state,
        seed,
        seeds,
    });
    let answers = away(py, |stop| {
        let lab = Lab::new();
        let tell = |_: &str| stop.or_leave();
        let each = runs
            .iter()
            .map(|run| explain(run, request.as_ref(), &lab, &tell));
        each.collect::<Result<Vec<_>, Problems>>()
    })?
    .map_err(raised)?;
    Ok(Answer::new(
        &view::explain(request.as_ref(), &answers),
        true,
        repeats,
    ))
}

/// How large a log or a read cache should be.
#[pyfunction]
#[pyo3(name = "size", signature = (place, drives, pools, load, slo, inbound, runtime, around, repeats))]
#[expect(clippy::too_many_arguments, reason = "Python calls it by keywords")]
pub(crate) fn sized(
    py: Python<'_>,
    place: &str,
    drives: Vec<String>,
    pools: Vec<Drive>,
    load: LoadArgument,
    slo: Option<&str>,
    inbound: Option<&str>,
    runtime: Option<&str>,
    around: AnswerConditions,
    repeats: &str,
) -> PyResult<Answer> {
    let mut problems = Problems::default();
    let mut conditions = around.read(&mut problems);
    let most = self::runtime(runtime, OF_A_LOG, &mut problems);
    let start = around.start(&pools, &mut problems);
    let load = load.spec(None, most);
    let load = load.read(&conditions.host, most, &mut problems).load;
    let slo = slo.and_then(|text| collect_problems(Slo::read(text), &mut problems));
    let inbound = inbound.and_then(|text| {
        let rate = quantity::<Rate>(text);
        let wrong = |what| of_argument(format!("inbound: {what}"), "a rate such as 800MB/s");
        collect_problems(rate.map_err(wrong), &mut problems)
    });
    let Some(load) = load.filter(|_| problems.0.is_empty()) else {
        return Err(raised(problems));
    };
    conditions.state = load.begins(start);
    let request = SizeRequest {
        load,
        slo: slo.unwrap_or_default(),
        inbound: inbound.map(|rate| rate.0),
        conditions,
    };
    let results = away(py, |stop| {
        let lab = Lab::new();
        let tell = |_: f64| stop.check();
        let one = |(name, pool): (&String, &Drive)| {
            stop.or_leave();
            let found = match (place, &request.load.user_workload().workload) {
                ("slog", _) => size::log(name, &pool.sheet, &request, &lab, &tell),
                (_, Workload::Trace(trace)) => {
                    size::read_cache(name, &pool.sheet, (&request, trace), &lab, &tell)
                }
                _ => Err(of_argument(
                    "place: sizing a read cache requires a trace",
                    "trace=FILE, or place \"slog\"",
                )),
            };
            // What was broken off is no answer.
            stop.or_leave();
            (name.clone(), found)
        };
        drives.iter().zip(&pools).map(one).collect()
    })?;
    let answers = collect_results(results)?;
    let limited = !request.slo.limits.is_empty();
    let meets = !limited || answers.iter().all(|one| one.meets_bytes.is_some());
    Ok(Answer::new(&view::size(&request, &answers), meets, repeats))
}

/// Results of the crash-consistency tests of pools.
#[pyclass(frozen, module = "drivelab")]
pub(crate) struct Proof {
    reports: Vec<(String, prove::Report)>,
}

#[pymethods]
impl Proof {
    /// Whether no durability guarantee is violated, and none is weaker than necessary.
    #[getter]
    fn holds(&self) -> bool {
        self.reports.iter().all(|(_, report)| report.is_kept())
    }

    /// Returns the text that the program prints.
    fn text(&self) -> PyResult<String> {
        let mut out = Vec::new();
        let mut write = || {
            report::prove::table(&self.reports, None, &mut out)?;
            for (name, report) in &self.reports {
                if let Some(broken) = &report.broken {
                    report::prove::broken(name, broken, &mut out)?;
                }
            }
            Ok::<(), std::io::Error>(())
        };
        write()?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// A dictionary for each pool and fault.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for (pool, report) in &self.reports {
            for one in &report.rows {
                let row = PyDict::new(py);
                row.set_item("pool", pool)?;
                row.set_item("fault", &one.fault)?;
                row.set_item("verdict", verdict(one.verdict))?;
                row.set_item("points", one.tally.points)?;
                rows.append(row)?;
            }
        }
        Ok(rows)
    }
}

fn verdict(verdict: FaultVerdict) -> &'static str {
    match verdict {
        FaultVerdict::Kept => "kept",
        FaultVerdict::Broken => "broken",
        FaultVerdict::AsDesigned => "as designed",
        FaultVerdict::NoLossFound => "no loss found",
        FaultVerdict::NotPromised => "not promised",
    }
}

/// Tests whether pools meet their durability guarantees.
#[pyfunction]
#[pyo3(name = "prove")]
pub(crate) fn proved(
    py: Python<'_>,
    pools: Vec<Drive>,
    points: u64,
    fault: String,
    seed: u64,
) -> PyResult<Proof> {
    let config = |drive: &Drive| -> Result<(String, PoolConfig<DriveConfig>), Problems> {
        let sheet: &DriveSheet = &drive.sheet;
        match sheet.pool_config() {
            Some(config) => Ok((sheet.id.clone(), config.clone())),
            None => Err(of_argument(
                format!("{}: is a single drive, not a pool", sheet.id),
                "name a pool, such as \"mirror(2*950pro-256)\"",
            )),
        }
    };
    let mut problems = Problems::default();
    let pools: Vec<_> = pools
        .iter()
        .filter_map(|drive| collect_problems(config(drive), &mut problems))
        .collect();
    if points == 0 {
        problems
            .0
            .extend(of_argument("points: nothing would be tried", "1 or more").0);
    }
    problems.or(()).map_err(raised)?;
    let settings = prove::ProveSettings {
        points,
        seed,
        only: fault,
        to_the_first: false,
    };
    let reports = away(py, |stop| {
        let hear = |_: u64, _: u64| {
            stop.or_leave();
            true
        };
        let each = pools.into_iter().map(|(name, config)| {
            let report = prove::prove(&config, &settings, &hear).map_err(|why| {
                of_argument(
                    format!("{name}: {why}"),
                    "mirrors, stripes, concatenations, write-back caches and intent logs can be tried",
                )
            })?;
            Ok((name, report))
        });
        each.collect::<Result<Vec<_>, Problems>>()
    })?;
    Ok(Proof {
        reports: reports.map_err(raised)?,
    })
}
