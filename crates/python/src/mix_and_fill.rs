//! Analyses of mixed reads and writes, of sustained writes, and of data loss: `mix`, `fill`, `odds`.

use lab::{Lab, in_parallel};
use pyo3::prelude::*;
use report::decide::view;
use study::decide::load::Pattern;
use study::decide::work::Conditions;
use study::decide::{fill, mix, odds};
use text::problem::Problems;

use crate::decide::{Answer, AnswerConditions, collect_results};
use crate::drive::{Drive, host, settings_of, sheets};
use crate::work::{away, check_range, collect_problems, of_argument, raised};

/// Options of `mix` other than the drives and the conditions.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Mixes {
    rw: String,
    step: i64,
    bs: String,
    iodepth: i64,
    numjobs: Option<i64>,
    options: Vec<(String, String)>,
    ios: Option<i64>,
}

impl Mixes {
    fn read(
        &self,
        drives: &[Drive],
        around: &AnswerConditions,
        problems: &mut Problems,
    ) -> mix::MixRequest {
        let Conditions {
            host, seed, seeds, ..
        } = around.read(problems);
        let start = around.start(drives, problems);
        let threads = check_range("numjobs", self.numjobs, 1..=256, problems);
        let pattern = Pattern::new((&self.rw, 50), &self.bs, &self.options, threads, &host);
        let step = check_range("step", Some(self.step), 1..=100, problems);
        let depth = check_range("iodepth", Some(self.iodepth), 2..=1024, problems);
        let request = mix::MixRequest {
            state: start.before(pattern.is_in_order()),
            pattern,
            // If they are beyond their limits there is a problem, and nothing runs.
            depth: depth.unwrap_or(mix::DEPTH),
            percents: mix::percents(step.unwrap_or(mix::STEP)),
            host,
            ios: check_range("ios", self.ios, 1_000..=100_000_000, problems),
            seed,
            seeds,
        };
        problems
            .0
            .extend(mix::check(&request).err().unwrap_or_default().0);
        request
    }
}

/// Returns what drives do from reads alone to writes alone.
#[pyfunction]
#[pyo3(name = "mix")]
pub(crate) fn mixed(
    py: Python<'_>,
    drives: Vec<Drive>,
    mixes: Mixes,
    around: AnswerConditions,
    repeats: &str,
) -> PyResult<Answer> {
    let mut problems = Problems::default();
    let request = mixes.read(&drives, &around, &mut problems);
    problems.or(()).map_err(raised)?;
    let results = away(py, |stop| {
        let lab = Lab::new();
        let tell = |_: f64| stop.check();
        let results = in_parallel(&drives, &tell, |drive, go_on| {
            let found = mix::measure(&request, &drive.sheet, &lab, go_on);
            (drive.sheet.id.clone(), found)
        });
        // What was broken off is no answer.
        stop.or_leave();
        results
    })?;
    let answers = collect_results(results)?;
    Ok(Answer::new(&view::mix(&request, &answers), true, repeats))
}

/// Options of `fill` other than the drives and the conditions.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Writes {
    used: Vec<i64>,
    random: bool,
    bs: Option<String>,
    iodepth: Option<i64>,
}

impl Writes {
    fn read(
        &self,
        drives: &[Drive],
        around: &AnswerConditions,
        problems: &mut Problems,
    ) -> fill::FillRequest {
        let Conditions {
            host, seed, seeds, ..
        } = around.read(problems);
        let depth = check_range("iodepth", self.iodepth, 1..=1024, problems);
        let writes = fill::writes(self.random, self.bs.as_deref(), depth);
        // If they cannot be read there is a problem, and nothing runs.
        let (block, depth) = collect_problems(writes, problems).unwrap_or((4096, 1));
        if self.used.is_empty() {
            let nothing = of_argument("used: the list is empty", "percentages, such as [50, 90]");
            problems.0.extend(nothing.0);
        }
        let used = self.used.iter();
        let used = used.filter_map(|&used| check_range("used", Some(used), 0..=100, problems));
        let used: Vec<u32> = used.collect();
        let set = settings_of(drives).find_map(fill::problem_of);
        problems.0.extend(set);
        let request = fill::FillRequest {
            random: self.random,
            block,
            depth,
            used,
            host,
            seed,
            seeds,
        };
        let of_each = sheets(drives).filter_map(|drive| fill::check(&request, drive).err());
        problems.0.extend(of_each.flat_map(|more| more.0));
        request
    }
}

/// Returns how long writes stay fast.
#[pyfunction]
#[pyo3(name = "fill")]
pub(crate) fn filled(
    py: Python<'_>,
    drives: Vec<Drive>,
    writes: Writes,
    around: AnswerConditions,
    repeats: &str,
) -> PyResult<Answer> {
    let mut problems = Problems::default();
    let request = writes.read(&drives, &around, &mut problems);
    problems.or(()).map_err(raised)?;
    let results = away(py, |stop| {
        let lab = Lab::new();
        let one = |drive: &Drive| {
            let found = fill::measure(&request, &drive.sheet, &lab, &|_| stop.or_leave());
            (drive.sheet.id.clone(), found)
        };
        drives.iter().map(one).collect()
    })?;
    let answers = collect_results(results)?;
    Ok(Answer::new(&view::fill(&request, &answers), true, repeats))
}

/// Options of `odds` other than the drives.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Failures {
    replace_after: String,
    afr: Vec<String>,
    crashes: String,
    host: String,
    seed: u64,
}

impl Failures {
    fn read(&self, drives: &[Drive], problems: &mut Problems) -> odds::OddsRequest {
        let mut read = |name: &str, text: &str, read: Result<f64, String>| {
            let wrong = |help| of_argument(format!("{name}: {text}"), help);
            collect_problems(read.map_err(wrong), problems).unwrap_or_default()
        };
        let replace_hours = read(
            "replace_after",
            &self.replace_after,
            odds::hours(&self.replace_after),
        );
        let crashes = read("crashes", &self.crashes, odds::crashes(&self.crashes));
        let failures = self.afr.iter().filter_map(|text| {
            let wrong = |help| of_argument(format!("afr: {text}"), help);
            collect_problems(odds::share_of_drives(text).map_err(wrong), problems)
        });
        let request = odds::OddsRequest {
            replace_hours,
            crashes,
            failures: failures.collect(),
            host: host(&self.host, problems),
            seed: self.seed,
        };
        let checked = odds::check(&request, sheets(drives));
        problems.0.extend(checked.err().unwrap_or_default().0);
        request
    }
}

/// Returns how often pools lose data.
#[pyfunction]
#[pyo3(name = "odds")]
pub(crate) fn lost(
    py: Python<'_>,
    drives: Vec<Drive>,
    failures: Failures,
    repeats: &str,
) -> PyResult<Answer> {
    let mut problems = Problems::default();
    let request = failures.read(&drives, &mut problems);
    problems.or(()).map_err(raised)?;
    let results = away(py, |stop| {
        let lab = Lab::new();
        let one = |drive: &Drive| {
            let found = odds::measure(&request, &drive.sheet, &lab, &|_| stop.or_leave());
            (drive.sheet.id.clone(), found)
        };
        drives.iter().map(one).collect()
    })?;
    let answers = collect_results(results)?;
    Ok(Answer::new(
        &view::odds(&request, &answers, None),
        true,
        repeats,
    ))
}
