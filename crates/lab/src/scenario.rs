//! A scenario: everything that a run depends on, as a value. The same scenario gives the same [`crate::Outcome`], to the
//! byte, on every machine.
//!
//! It can be compared, hashed and written down (serde): JSON of it is read back as the same scenario, and a drive that
//! cannot be is refused then.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use model::Span;
use model::host::Engine;
use model::media::{Precondition, Seeds};
use serde::{Deserialize, Serialize};
use workload::job::Job;
use workload::replay::{Beyond, Pace};
use workload::trace::Trace;

use crate::act::tested::ActTest;
use crate::faults::Befalls;
use crate::machine::Machine;

/// All that a run depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// The drive and the host it is in.
    pub machine: Machine,
    /// The drive's state at the start.
    pub state: Precondition,
    /// What is asked of it.
    pub work: Work,
    /// Feeds every random stream of the run.
    pub seed: u64,
    /// Feeds what the drive has been through before; [`Scenario::seed`] if `None`. Runs of one drive that differ in their
    /// seed and have one of these begin in one state, which is made once.
    pub warm_seed: Option<u64>,
    /// Interval of [`statistics::Measured::series`]; zero for none.
    pub series_every: Span,
    /// What befalls the drive in the course of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Befalls>,
}

/// What is asked of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// Jobs, in order (`stonewall` separates).
    Jobs(Vec<Job>),
    /// A trace.
    Trace(TraceReplay),
    /// Aerospike's certification test.
    Act(ActTest),
}

/// How a trace is replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceReplay {
    /// The trace.
    pub trace: Arc<Trace>,
    /// The interface its threads use.
    pub engine: Engine,
    /// Threads that issue the requests in turn; one for each core, at most one for each of a depth, if `None`.
    pub threads: Option<u16>,
    /// When requests are issued.
    pub pace: Pace,
    /// Addresses beyond the drive.
    pub beyond: Beyond,
}

impl TraceReplay {
    /// The trace at its own pace, by libaio; addresses beyond the drive are refused.
    pub fn new(trace: Arc<Trace>) -> TraceReplay {
        TraceReplay {
            engine: Engine::Libaio,
            threads: None,
            pace: Pace::of(&trace),
            beyond: Beyond::Refuse,
            trace,
        }
    }
}

impl Scenario {
    /// A scenario without series.
    pub fn new(machine: Machine, state: Precondition, work: Work, seed: u64) -> Scenario {
        Scenario {
            machine,
            state,
            work,
            seed,
            warm_seed: None,
            series_every: Span::ZERO,
            faults: Vec::new(),
        }
    }

    /// What feeds the random streams of the drive.
    pub fn seeds(&self) -> Seeds {
        Seeds {
            warm: self.warm_seed.unwrap_or(self.seed),
            run: self.seed,
        }
    }

    /// Jobs on a machine.
    pub fn jobs(machine: Machine, state: Precondition, jobs: Vec<Job>, seed: u64) -> Scenario {
        Scenario::new(machine, state, Work::Jobs(jobs), seed)
    }

    /// What the outcome depends on: two scenarios with one key have one outcome, whatever drives and jobs are called.
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
            // All of them would have one key.
            Err(error) => unreachable!("plain data are written into memory: {error}"),
        }
    }
}

/// Figures in a scenario are finite numbers: catalogue and readers of jobs see to it.
impl Eq for Scenario {}

impl Hash for Scenario {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// What the outcome of a scenario depends on; see [`Scenario::key`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(String);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use model::host::HostConfig;
    use workload::job::Mix;

    /// So many I/Os anywhere, four in flight.
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
        host.machine = Machine::of("", one.machine.drive().clone(), HostConfig::default());
        assert_ne!(one.key(), host.key());
    }
}
