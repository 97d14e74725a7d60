//! Longest counted time of jobs whose first run completes few I/Os.
//!
//! A shortened job runs again for up to [`super::LONGER`] times its time, but not for longer than its file says. A job
//! that is not shortened runs once. At a given rate, a job that needs more time than this is extended from the start.

use lab::Outcome;
use model::Span;
use workload::job::Job;

use super::{LONGER, Load, MOST_BYTES, VARIES};
use crate::review::Workload;

/// Returns the longest counted time that all jobs reach; `None` if no job has a time.
pub(super) fn longest(jobs: &[Job], cut: Option<Span>) -> Option<Span> {
    let own = jobs.iter().filter_map(|job| job.runtime).min();
    match cut.map(|cut| cut * LONGER) {
        Some(again) => Some(own.map_or(again, |own| own.min(again))),
        None => own,
    }
}

/// Returns the factor by which a job must run longer to complete `fewest` reads, writes and syncs; `None` if these runs
/// did.
pub(super) fn longer(outcomes: &[Outcome], fewest: f64) -> Option<u64> {
    let threads = || outcomes.iter().flat_map(|one| &one.threads);
    let counts: [u64; 3] = [
        threads().map(|it| it.read.ios).sum(),
        threads().map(|it| it.write.ios).sum(),
        threads().map(|it| it.sync.ios).sum(),
    ];
    let some = counts.into_iter().filter(|count| *count > 0);
    let Some(least) = some.min() else {
        return Some(LONGER);
    };
    let factor = libm::ceil(VARIES * fewest / least as f64);
    let within = (MOST_BYTES / most_bytes(outcomes).max(1.0)) as u64;
    ((least as f64) < fewest).then_some((factor as u64).min(within).clamp(2, LONGER))
}

/// Returns the bytes that the threads of the largest of these runs read and wrote in the counted time.
fn most_bytes(outcomes: &[Outcome]) -> f64 {
    let of = |outcome: &Outcome| {
        let threads = outcome.threads.iter();
        threads
            .map(|it| (it.read.bytes + it.write.bytes) as f64)
            .sum::<f64>()
    };
    outcomes.iter().map(of).fold(0.0, f64::max)
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
