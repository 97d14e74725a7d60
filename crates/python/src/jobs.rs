//! fio jobs: options as on its command line, and job files.

use std::path::PathBuf;

use pyo3::prelude::*;
use study::ask::load::JobSpec;
use study::review::UserWorkload;
use text::problem::Problems;
use workload::fio::JobSet;

use crate::work::raised;

/// Jobs of fio.
#[pyclass(frozen, module = "drivelab", from_py_object)]
#[derive(Clone)]
pub(crate) struct Jobs(pub(crate) JobSpec);

#[pymethods]
impl Jobs {
    /// Options override those in the files.
    #[new]
    fn new(options: Vec<String>, files: Vec<PathBuf>, sections: Vec<String>) -> PyResult<Jobs> {
        let jobs = Jobs(JobSpec {
            options,
            files,
            sections,
        });
        jobs.read(1).map_err(raised)?;
        Ok(jobs)
    }

    /// Warnings on options that are ignored, not simulated, or treated differently from fio.
    fn warnings(&self) -> PyResult<Vec<String>> {
        Ok(self.read(1).map_err(raised)?.warnings)
    }

    /// Names of the jobs.
    fn names(&self) -> PyResult<Vec<String>> {
        let jobs = self.read(1).map_err(raised)?.jobs;
        Ok(jobs.into_iter().map(|job| job.name).collect())
    }
}

impl Jobs {
    /// Returns the jobs on a host with this number of processors.
    pub(crate) fn read(&self, processors: u16) -> Result<JobSet, Problems> {
        self.0.read(processors)
    }

    /// Returns the jobs as a user's own load.
    pub(crate) fn load(&self, processors: u16) -> Result<UserWorkload, Problems> {
        self.0.load(processors)
    }
}
