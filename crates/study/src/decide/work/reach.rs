//! Longest counted time of jobs whose first run completes few I/Os.
//!
//! A shortened job runs again for up to [`super::LONGER`] times its time, but not for longer than its file says. A job
//! that is not shortened runs once. At a given rate, a job that needs more time than this is extended from the start.

use model::Span;
use workload::job::Job;

use super::{LONGER, Load};
use crate::review::Workload;

/// Returns the longest counted time that all jobs reach; `None` if no job has a time.
pub(super) fn longest(jobs: &[Job], cut: Option<Span>) -> Option<Span> {
    let own = jobs.iter().filter_map(|job| job.runtime).min();
    match cut.map(|cut| cut * LONGER) {
        Some(again) => Some(own.map_or(again, |own| own.min(again))),
        None => own,
    }
}

impl Load {
    /// Checks whether an extended run is so long that it is mostly idle time: longer than any run that is not extended.
    pub(super) fn is_mostly_idle(&self, extended: Span) -> bool {
        let Workload::Jobs(jobs) = &self.yours.workload else {
            return false;
        };
        let own = || jobs.iter().filter_map(|job| job.runtime).max();
        let usual = self.cut.or_else(own);
        usual.is_some_and(|usual| extended > usual * LONGER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_does_not_run_for_longer_than_its_file_says() {
        let job = |ms: u64| Job {
            runtime: (ms > 0).then(|| Span::from_ms(ms)),
            ..Job::default()
        };
        let of = |jobs: &[Job], cut: Option<u64>| {
            longest(jobs, cut.map(Span::from_ms)).map(|span| span.seconds())
        };
        assert_eq!(of(&[job(2_000), job(2_000)], Some(500)), Some(2.0));
        assert_eq!(of(&[job(60_000), job(20_000)], Some(500)), Some(10.0));
        assert_eq!(of(&[job(0)], Some(500)), Some(10.0));
        assert_eq!(of(&[job(100)], None), Some(0.1));
        assert_eq!(of(&[job(0)], None), None);
    }
}
