//! The state in which drives begin: given, or chosen by the load as SNIA's tests choose it.
//!
//! SNIA's Performance Test Specification preconditions a drive by the load that follows: with writes in order before loads in
//! order, with random writes before random and mixed ones. A drive that was overwritten at random reads and writes in order far
//! below its rating, which is right and is not what a rating or a benchmark of loads in order means.
//!
//! Leaves out: mixes of loads in order and at random in one run, and traces, begin as random ones do.

use model::media::Precondition;
use workload::job::Job;

use crate::scenario::Work;

/// The state in which drives begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// By the load.
    #[default]
    Auto,
    /// In this state.
    As(Precondition),
}

/// All states.
const STATES: [Precondition; 3] = [
    Precondition::Fresh,
    Precondition::Filled,
    Precondition::Steady,
];

impl Start {
    /// The one of this name: `auto`, `fresh`, `filled` or `steady`.
    pub fn named(name: &str) -> Option<Start> {
        let given = STATES.into_iter().find(|state| state.name() == name);
        match name {
            "auto" => Some(Start::Auto),
            _ => given.map(Start::As),
        }
    }

    /// The state, if it is given.
    pub fn given(self) -> Option<Precondition> {
        match self {
            Start::Auto => None,
            Start::As(state) => Some(state),
        }
    }

    /// The state before these jobs.
    pub fn before_jobs(self, jobs: &[Job]) -> Precondition {
        let all = !jobs.is_empty() && jobs.iter().all(in_order);
        self.before(all)
    }

    /// The state before a load that is in order, or is not.
    pub fn before(self, in_order: bool) -> Precondition {
        match (self, in_order) {
            (Start::As(state), _) => state,
            (Start::Auto, true) => Precondition::Filled,
            (Start::Auto, false) => Precondition::Steady,
        }
    }

    /// The state before this work.
    pub fn before_work(self, work: &Work) -> Precondition {
        match work {
            Work::Jobs(jobs) => self.before_jobs(jobs),
            _ => self.before(false),
        }
    }

    /// A sentence that says which state was chosen, and what the other is; `None` if it was given.
    pub fn words(self, chosen: Precondition) -> Option<&'static str> {
        match (self, chosen) {
            (Start::As(_), _) => None,
            (Start::Auto, Precondition::Filled) => Some(
                "drives begin filled in order, as the load is in order (SNIA's preconditioning); --state steady begins after random writes",
            ),
            (Start::Auto, _) => Some(
                "drives begin in the steady state of random writes, as the load is random or mixed (SNIA's preconditioning); --state \
                 filled begins filled in order",
            ),
        }
    }
}

/// Whether all of a job's I/Os are in order.
fn in_order(job: &Job) -> bool {
    job.records.is_none() && (!job.random || job.percentage_random == [0; 3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_in_order_begin_filled_and_all_others_steady() {
        let in_order = Job::default();
        let random = Job {
            random: true,
            ..Job::default()
        };
        let before = |jobs: &[&Job]| {
            let jobs: Vec<Job> = jobs.iter().map(|&job| job.clone()).collect();
            Start::Auto.before_jobs(&jobs)
        };
        assert_eq!(before(&[&in_order, &in_order]), Precondition::Filled);
        assert_eq!(before(&[&random]), Precondition::Steady);
        assert_eq!(before(&[&in_order, &random]), Precondition::Steady);
        assert_eq!(before(&[]), Precondition::Steady);
        let given = Start::named("fresh").expect("a state");
        assert_eq!(given.before_jobs(&[in_order]), Precondition::Fresh);
        assert_eq!(Start::named("auto"), Some(Start::Auto));
        assert_eq!(Start::named("worn"), None);
    }
}
