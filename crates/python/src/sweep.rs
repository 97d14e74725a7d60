//! Sweeps: thousands of scenarios, here or by parts in other processes.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use lab::Lab;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use study::sweep::{self, Parts, SweepError, Watch};

use crate::work::{Error, away, not_forked, raised};

/// Returns the laboratory of a process that runs parts for others: preconditioned states are kept between parts.
fn laboratory() -> &'static Lab {
    static LAB: OnceLock<Lab> = OnceLock::new();
    LAB.get_or_init(Lab::new)
}

fn troubled(trouble: SweepError) -> PyErr {
    match trouble {
        SweepError::Input(problems) => raised(problems),
        SweepError::Failed(what) => Error::new_err(what),
    }
}

/// A sweep of scenarios.
#[pyclass(frozen, module = "drivelab")]
pub(crate) struct Sweep {
    sweep: sweep::Sweep,
}

#[pymethods]
impl Sweep {
    /// Sweep of this text. Messages call the text `origin`, and its paths are relative to `folder`.
    #[new]
    fn new(py: Python<'_>, origin: &str, text: &str, folder: PathBuf) -> PyResult<Sweep> {
        not_forked()?;
        let sweep = py.detach(|| sweep::Sweep::of_text(origin, text, &folder));
        Ok(Sweep {
            sweep: sweep.map_err(raised)?,
        })
    }

    /// Number of scenarios.
    #[getter]
    fn scenarios(&self) -> usize {
        self.sweep.scenarios()
    }

    /// Warnings on how jobs were read.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.sweep.warnings().to_vec()
    }

    /// Everything that the rows depend on, byte for byte.
    #[getter]
    fn definition(&self) -> &str {
        self.sweep.definition()
    }

    /// Command that repeats a scenario.
    fn command(&self, index: usize) -> String {
        self.sweep.command(index)
    }

    /// Missing parts, each with the number of its initial state.
    fn missing(&self, output: PathBuf) -> PyResult<Vec<(usize, (usize, usize))>> {
        let parts = self.parts(&output)?;
        let missing = parts.missing().map_err(troubled)?;
        let with = missing.into_iter();
        Ok(with
            .map(|part| (part, self.sweep.beginning(part)))
            .collect())
    }

    /// Runs the missing parts in this process; completed parts are kept if it is interrupted.
    fn run(&self, py: Python<'_>, output: PathBuf, threads: Option<usize>) -> PyResult<usize> {
        let parts = self.parts(&output)?;
        let cores = available_parallelism().map_or(1, usize::from);
        let done = AtomicUsize::new(0);
        let ran = away(py, |stop| {
            let watch = Watch {
                go_on: &|| stop.check(),
                done: &|| {
                    done.fetch_add(1, Ordering::Relaxed);
                },
            };
            sweep::run(&self.sweep, &parts, threads.unwrap_or(cores), &watch)
        })?;
        ran.map_err(troubled)?;
        match parts.missing().map_err(troubled)?.is_empty() {
            true => Ok(done.into_inner()),
            false => Err(PyKeyboardInterrupt::new_err(
                "interrupted: repeat the call to continue",
            )),
        }
    }

    /// Runs a part and returns its file.
    fn part(&self, py: Python<'_>, part: usize) -> PyResult<Vec<u8>> {
        let file = away(py, |stop| {
            self.sweep.part_file(part, laboratory(), &|_| stop.check())
        })?;
        let interrupted = || PyKeyboardInterrupt::new_err("a part was interrupted");
        file.map_err(troubled)?.ok_or_else(interrupted)
    }

    /// Stores a part that was run elsewhere.
    fn keep(&self, output: PathBuf, part: usize, file: Vec<u8>) -> PyResult<()> {
        let parts = self.parts(&output)?;
        parts.keep_file(part, file).map_err(troubled)
    }

    /// Writes the result when nothing is missing. Returns the number of scenarios that could not be run, and the first
    /// of them with the reason.
    fn finish(&self, output: PathBuf) -> PyResult<(usize, Option<String>)> {
        self.parts(&output)?.finish().map_err(troubled)?;
        let (count, first) = sweep::problems(&output).map_err(troubled)?;
        Ok((
            count,
            first.map(|(scenario, what)| format!("scenario {scenario}: {what}")),
        ))
    }
}

impl Sweep {
    fn parts(&self, output: &Path) -> PyResult<Parts<'_>> {
        Parts::open(&self.sweep, output).map_err(troubled)
    }
}
