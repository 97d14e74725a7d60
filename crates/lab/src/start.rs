//! Initial state of drives: given, or selected by the load as in SNIA's tests.
//!
//! SNIA's Performance Test Specification preconditions a drive according to the load that follows: with sequential
//! writes before sequential loads, with random writes before random and mixed loads. A drive that was overwritten at
//! random reads and writes sequentially far below its rating. This is correct, but ratings and sequential benchmarks
//! do not refer to this state.
//!
//! Not distinguished: runs that mix sequential and random loads, and traces, start as random loads do.

use model::media::Precondition;
use workload::job::Job;

/// Initial state of drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// Selected by the load.
    #[default]
    Auto,
    /// Given explicitly.
    As(Precondition),
}

/// All initial states, in order.
const STATES: [Precondition; 3] = [
    Precondition::Fresh,
    Precondition::Filled,
    Precondition::Steady,
];

impl Start {
    /// Returns the initial state of this name: `auto`, `fresh`, `filled` or `steady`.
    pub fn named(name: &str) -> Option<Start> {
        let given = STATES.into_iter().find(|state| state.name() == name);
        match name {
            "auto" => Some(Start::Auto),
            _ => given.map(Start::As),
        }
    }

    /// Returns the state, if it was given.
    pub fn given(self) -> Option<Precondition> {
        match self {
            Start::Auto => None,
            Start::As(state) => Some(state),
        }
    }

    /// Returns the state before these jobs.
    pub fn before_jobs(self, jobs: &[Job]) -> Precondition {
        let all = !jobs.is_empty() && jobs.iter().all(in_order);
        self.before(all)
    }

    /// Returns the state before a load that is sequential or not.
    pub fn before(self, in_order: bool) -> Precondition {
        match (self, in_order) {
            (Start::As(state), _) => state,
            (Start::Auto, true) => Precondition::Filled,
            (Start::Auto, false) => Precondition::Steady,
        }
    }

    /// Returns a sentence with the selected state and its alternative; `None` if the state was given.
    pub fn words(self, chosen: Precondition) -> Option<&'static str> {
        match (self, chosen) {
            (Start::As(_), _) => None,
            (Start::Auto, Precondition::Filled) => Some(
                "drives are filled sequentially at the start, because the load is sequential (SNIA's preconditioning); --state steady starts after random writes",
            ),
            (Start::Auto, _) => Some(
                "drives start in the steady state of random writes, because the load is random or mixed (SNIA's preconditioning); --state \
                 filled starts with drives filled sequentially",
            ),
        }
    }
}

/// Checks whether all I/Os of a job are sequential.
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
