//! fio jobs: options as on its command line, and job files.

use std::path::PathBuf;

use pyo3::prelude::*;
use study::review::{UserWorkload, Workload};
use text::bounded;
use text::problem::Problems;
use workload::fio::{JobSet, Surroundings, read_overridden};
use workload::replay::read_iologs;

use crate::work::raised;

/// Jobs of fio.
#[pyclass(frozen, module = "drivelab", from_py_object)]
#[derive(Clone)]
pub(crate) struct Jobs {
    options: Vec<String>,
    files: Vec<PathBuf>,
    sections: Vec<String>,
}

#[pymethods]
impl Jobs {
    /// Options override those in the files.
    #[new]
    fn new(options: Vec<String>, files: Vec<PathBuf>, sections: Vec<String>) -> PyResult<Jobs> {
        let jobs = Jobs {
            options,
            files,
            sections,
        };
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
        let surroundings = Surroundings {
            environment: &|name| std::env::var(name).ok(),
            read: &|path| bounded::bytes(path, bounded::WRITTEN),
            processors: processors.into(),
        };
        let (options, overriding) = match self.files.is_empty() {
            true => (&self.options[..], &[][..]),
            false => (&[][..], &self.options[..]),
        };
        if options.is_empty() && self.files.is_empty() {
            let what =
                "there is no job: give options such as --rw=randread --bs=4k --size=1g, or a file";
            return Err(Problems::whole("jobs", what));
        }
        let mut set = read_overridden(
            options,
            &self.files,
            overriding,
            &self.sections,
            &surroundings,
        )?;
        read_iologs(&mut set.jobs)?;
        Ok(set)
    }

    /// Returns the jobs as a user's own load.
    pub(crate) fn load(&self, processors: u16) -> Result<UserWorkload, Problems> {
        let set = self.read(processors)?;
        let files = self.files.iter().map(|it| it.display().to_string());
        let words: Vec<String> = files.chain(self.options.iter().cloned()).collect();
        Ok(UserWorkload {
            source: words.join(" "),
            text: words.join("\n"),
            workload: Workload::Jobs(set.jobs),
        })
    }
}
