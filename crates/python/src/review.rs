//! Reviews: comparison of drives.

use lab::Lab;
use pyo3::prelude::*;
use report::{csv, page};
use study::review::{self, ReviewRequest, Suite};
use text::problem::Problems;

use crate::drive::{Drive, host};
use crate::jobs::Jobs;
use crate::table::{Table, typed};
use crate::work::{away, collect_problems, of_argument, raised};

/// Result of a review.
#[pyclass(frozen, module = "drivelab")]
pub(crate) struct Review {
    review: review::Review,
}

/// Compares drives.
#[pyfunction]
#[pyo3(name = "review", signature = (drives, suite, host, ios, seed, jobs))]
pub(crate) fn reviewed(
    py: Python<'_>,
    drives: Vec<Drive>,
    suite: &str,
    host: Option<&str>,
    ios: Option<u64>,
    seed: u64,
    jobs: Option<Jobs>,
) -> PyResult<Review> {
    let mut problems = Problems::default();
    let known = Suite::named(suite);
    if known.is_none() {
        let names: Vec<&str> = Suite::ALL.iter().map(|suite| suite.name()).collect();
        let what = format!("suite: there is no suite `{suite}`");
        problems.0.extend(of_argument(what, names.join(", ")).0);
    }
    let suite = known.unwrap_or_default();
    let host = self::host(host.unwrap_or(suite.host()), &mut problems);
    let yours = jobs.and_then(|jobs| collect_problems(jobs.load(host.config.cores), &mut problems));
    problems.or(()).map_err(raised)?;
    let settings = drives.first().map(|drive| drive.settings().clone());
    let request = ReviewRequest {
        settings: settings.unwrap_or_default(),
        drives: drives.into_iter().map(|drive| drive.sheet).collect(),
        host,
        suite,
        effort: match ios {
            Some(ios) => suite.effort().with_ios(ios),
            None => suite.effort(),
        },
        seed,
        yours: yours.into_iter().collect(),
        only_yours: false,
    };
    let lab = Lab::new();
    let review = away(py, |stop| {
        review::review(&request, &lab, &|_| stop.or_leave())
    })?;
    Ok(Review {
        review: review.map_err(raised)?,
    })
}

#[pymethods]
impl Review {
    /// Verdict, as sentences.
    #[getter]
    fn verdict(&self) -> Vec<String> {
        let verdict = self.review.verdict.iter();
        verdict.map(|finding| finding.text.clone()).collect()
    }

    /// Page of the review, as HTML.
    fn html(&self) -> String {
        page::html(&self.review)
    }

    /// Data of the review, as JSON.
    fn json(&self) -> String {
        self.review.to_json()
    }

    /// Table with a line for each drive, point and direction.
    fn table(&self) -> PyResult<Table> {
        typed(&csv::review(&self.review))
    }
}
