//! A scenario: everything that a run depends on, as a value. Equal scenarios give the same [`crate::Outcome`], to the
//! byte, on every machine.
//!
//! A scenario can be compared, hashed and serialised (serde). Its JSON is read back as an equal scenario; an
//! impossible drive is refused at that time.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use model::Span;
use model::host::Engine;
use model::management::Thermal;
use model::media::{Precondition, Seeds};
use serde::{Deserialize, Serialize};
use workload::job::Job;
use workload::replay::{OutOfRangePolicy, Pace};
use workload::trace::Trace;

use crate::act::tested::ActTest;
use crate::faults::RunFault;
use crate::machine::Machine;

/// Everything that a run depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// The drive and the host it is in.
    pub machine: Machine,
    /// The drive's state at the start.
    pub state: Precondition,
    /// Workload of the run.
    pub work: Work,
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// Seed for preconditioning; `None` means [`Scenario::seed`]. Runs of one drive with different seeds but a common
    /// preconditioning seed start in one state, which is computed once.
    pub warm_seed: Option<u64>,
    /// Interval of [`statistics::Measured::series`]; zero means no series.
    pub series_every: Span,
    /// Faults of the drive during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<RunFault>,
    /// Thermal model of the drive; `None`: the drive does not warm up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heat: Option<Thermal>,
}

/// Workload of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// Jobs, in order (`stonewall` separates phases).
    Jobs(Vec<Job>),
    /// Replay of a trace.
    Trace(TraceReplay),
    /// Aerospike's certification test (ACT).
    Act(ActTest),
}

/// Settings of a trace replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceReplay {
    /// Requests to replay.
    pub trace: Arc<Trace>,
    /// Host path that its threads use.
    pub engine: Engine,
    /// Number of threads that issue the requests in turn; `None` means one per core, but at most one per unit of
    /// queue depth.
    pub threads: Option<u16>,
    /// When requests are issued.
    pub pace: Pace,
    /// Treatment of addresses beyond the end of the drive.
    pub beyond: OutOfRangePolicy,
}

impl TraceReplay {
    /// Replays the trace at its recorded times, with libaio; addresses beyond the end of the drive are refused.
    pub fn new(trace: Arc<Trace>) -> TraceReplay {
        TraceReplay {
            engine: Engine::Libaio,
            threads: None,
            pace: Pace::for_trace(&trace),
            beyond: OutOfRangePolicy::Refuse,
            trace,
        }
    }
}

impl Scenario {
    /// Creates a scenario without series.
    pub fn new(machine: Machine, state: Precondition, work: Work, seed: u64) -> Scenario {
        Scenario {
            machine,
            state,
            work,
            seed,
            warm_seed: None,
            series_every: Span::ZERO,
            faults: Vec::new(),
            heat: None,
        }
    }

    /// Returns the seeds of the drive's random streams.
    pub fn seeds(&self) -> Seeds {
        Seeds {
            warm: self.warm_seed.unwrap_or(self.seed),
            run: self.seed,
        }
    }

    /// Creates a scenario with jobs on a machine.
    pub fn jobs(machine: Machine, state: Precondition, jobs: Vec<Job>, seed: u64) -> Scenario {
        Scenario::new(machine, state, Work::Jobs(jobs), seed)
    }

    /// Returns a key of everything that the outcome depends on: two scenarios with equal keys have equal outcomes,
    /// independent of the names of drives and jobs.
    pub fn key(&self) -> Key {
        let mut bare = self.clone();
        bare.warm_seed = Some(self.seeds().warm);
        bare.machine = bare.machine.named("");
        if let Work::Jobs(jobs) = &mut bare.work {
            for job in jobs {
                job.name.clear();
                job.as_written.clear();
            }
        }
        match serde_json::to_string(&bare) {
            Ok(key) => Key(key),
            // A default value here would be a common key for all scenarios.
            Err(error) => unreachable!("plain data are written into memory: {error}"),
        }
    }
}

/// Figures in a scenario are finite numbers: the catalogue and the readers of jobs ensure this.
impl Eq for Scenario {}

impl Hash for Scenario {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// Everything that the outcome of a scenario depends on; see [`Scenario::key`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(String);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use model::host::HostConfig;
    use workload::job::Mix;

    /// Returns a job with this number of random I/Os at QD4.
    pub(crate) fn at_random(mix: Mix, ios: u64) -> Job {
        Job {
            mix,
            random: true,
            norandommap: true,
            iodepth: 4,
            number_ios: Some(ios),
            ..Job::default()
        }
    }

    fn scenario(drive: &str) -> Scenario {
        let drive = catalogue::drive(drive).expect("built in");
        let host = catalogue::host("xeon-2017").expect("built in");
        let job = Job {
            mix: Mix::ReadWrite,
            read_percent: 37,
            number_ios: Some(300),
            ..Job::default()
        };
        let machine = Machine::new(&drive, &host);
        Scenario::jobs(machine, Precondition::Steady, vec![job], 7)
    }

    #[test]
    fn what_is_written_down_is_read_back() {
        for drive in catalogue::drive_names() {
            let scenario = scenario(drive);
            let text = serde_json::to_string(&scenario).expect("plain data");
            let read: Scenario = serde_json::from_str(&text).expect("as written");
            assert_eq!(read, scenario, "{drive}");
            assert_eq!(read.key(), scenario.key());
        }
    }

    #[test]
    fn a_drive_that_cannot_be_is_refused() {
        let scenario = scenario("p3700-1600");
        let mut text = serde_json::to_value(&scenario).expect("plain data");
        text["machine"]["drive"]["Nand"]["geometry"]["capacity"] = 0.into();
        let refused = serde_json::from_value::<Scenario>(text).expect_err("no capacity");
        assert!(
            refused.to_string().contains("impossible drive"),
            "{refused}"
        );
    }

    #[test]
    fn names_change_no_outcome_and_everything_else_may() {
        let one = scenario("p4800x-375");
        let mut other = one.clone();
        if let Work::Jobs(jobs) = &mut other.work {
            jobs[0].name = "another".into();
        }
        assert_ne!(one, other);
        assert_eq!(one.key(), other.key());
        other.seed += 1;
        assert_ne!(one.key(), other.key());
        let mut host = one.clone();
        host.machine =
            Machine::from_configs("", one.machine.drive().clone(), HostConfig::default());
        assert_ne!(one.key(), host.key());
    }
}
