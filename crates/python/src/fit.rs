//! Fit of a model for a user's own drive, from measurements with fio.

use std::path::PathBuf;

use pyo3::prelude::*;
use report::csv;
use study::fit::{self, FitRequest, FitResult};
use text::problem::Problems;

use crate::drive::{Drive, host, state};
use crate::table::{Table, typed};
use crate::work::{away, collect_problems, raised};

/// Result of a fit.
#[pyclass(frozen, module = "drivelab")]
pub(crate) struct Fit {
    fitted: FitResult,
}

/// Fits the parameters of a drive to measurements.
#[pyfunction]
#[pyo3(name = "fit", signature = (base, measured, host, state, free, hold_out, iterations, name))]
#[expect(clippy::too_many_arguments, reason = "Python calls it by keywords")]
pub(crate) fn fitted(
    py: Python<'_>,
    base: Drive,
    measured: Vec<PathBuf>,
    host: &str,
    state: &str,
    free: Vec<String>,
    hold_out: usize,
    iterations: u64,
    name: String,
) -> PyResult<Fit> {
    let mut problems = Problems::default();
    let host = self::host(host, &mut problems);
    let state = self::state(state, std::slice::from_ref(&base), &mut problems);
    let mut runs = Vec::new();
    for path in &measured {
        let origin = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Problems::whole(&*origin, format!("cannot be read: {error}")));
        let read = text.and_then(|text| fit::read(&origin, &text));
        runs.extend(collect_problems(read, &mut problems).unwrap_or_default());
    }
    problems.or(()).map_err(raised)?;
    let request = FitRequest {
        base: base.requested_name().to_owned(),
        settings: base.settings().clone(),
        host: host.id,
        state,
        free,
        measured: runs,
        hold_out,
        iterations,
        name,
    };
    let fitted = away(py, |stop| fit::drive(&request, &|_| stop.or_leave()))?;
    Ok(Fit {
        fitted: fitted.map_err(raised)?,
    })
}

#[pymethods]
impl Fit {
    /// Catalogue file of the drive.
    #[getter]
    fn toml(&self) -> &str {
        &self.fitted.toml
    }

    /// Output of the program.
    fn text(&self) -> String {
        report::fit::drive(&self.fitted, None)
    }

    /// Table with a line for each measured figure.
    fn table(&self) -> PyResult<Table> {
        typed(&csv::fit(&self.fitted))
    }
}
