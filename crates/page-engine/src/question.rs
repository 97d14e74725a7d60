//! A question: a drive with its settings, a host, a state, a seed, fio's options. Its scenario is that of
//! `drivelab run` with the same arguments.

use std::io::{Error, ErrorKind};

use catalogue::{Change, Settings, drive_as};
use lab::{Machine, Scenario, Start};
use serde::{Deserialize, Serialize};
use text::problem::{Place, Problem, Problems};
use workload::fio::{Surroundings, read};

/// One run, as arguments of the command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Name of a drive or pool of the catalogue, or a pool's expression.
    pub drive: String,
    /// Changed figures, as key and value of `--set`.
    pub set: Vec<Change>,
    /// Power limit of the governor in watts.
    pub power_limit_watts: Option<f64>,
    /// Name of a host of the catalogue.
    pub host: String,
    /// Initial state: `fresh`, `filled`, `steady`, or `auto` (chosen by the load).
    pub state: String,
    /// Seed of every random stream; below 2^53.
    pub seed: u64,
    /// fio's options, such as `--rw=randread`.
    pub options: Vec<String>,
}

impl Question {
    /// Returns the scenario of the question.
    ///
    /// # Errors
    /// All problems of its parts.
    pub fn scenario(&self) -> Result<Scenario, Problems> {
        let mut problems = Problems::default();
        let mut wrong = |more: Problems| problems.0.extend(more.0);
        let settings = Settings {
            figures: self.set.clone(),
            power_limit: self.power_limit_watts,
            ..Settings::default()
        };
        let drive = drive_as(&self.drive, &settings).map_err(&mut wrong).ok();
        let host = catalogue::host(&self.host).map_err(&mut wrong).ok();
        let state = state_named(&self.state).map_err(&mut wrong).ok();
        let processors = host.as_ref().map_or(1, |host| host.config.cores.into());
        let surroundings = without_files(processors);
        let set = read(&self.options, &[], &[], &surroundings);
        let set = set.map_err(&mut wrong).ok();
        match (drive, host, state, set) {
            (Some(drive), Some(host), Some(state), Some(set)) => problems.or(Scenario::jobs(
                Machine::new(&drive, &host),
                state.before_jobs(&set.jobs),
                set.jobs,
                self.seed,
            )),
            _ => Err(problems),
        }
    }
}

/// Returns the state with this name.
///
/// # Errors
/// No such state.
pub(crate) fn state_named(name: &str) -> Result<Start, Problems> {
    Start::named(name).ok_or_else(|| {
        Problems(vec![Problem {
            origin: String::from("--state"),
            place: Place::Whole,
            what: format!("there is no state `{name}`"),
            help: Some(String::from("auto, fresh, filled, steady")),
        }])
    })
}

/// Returns the surroundings of job files in a page: no environment variables, and no files.
pub(crate) fn without_files(processors: u32) -> Surroundings<'static> {
    Surroundings {
        environment: &|_| None,
        read: &|_| Err(Error::new(ErrorKind::Unsupported, "a page reads no files")),
        processors,
    }
}
