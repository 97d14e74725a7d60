//! Builds the [`Scenario`] from its textual description: the drive with changed figures, the host, the jobs. Problems
//! are reported at the line of the sweep's file that caused them.
//!
//! Paths are relative to the folder of the sweep's file. Job files see no environment variables, because a row must be
//! reproducible on other machines.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use catalogue::{Settings, drive_as};
use lab::{Machine, Scenario};
use model::media::Precondition;
use text::problem::{Place, Problem, Problems};
use text::toml::SourceFile;
use workload::fio::{JobSet, Surroundings, read_overridden};
use workload::replay::read_iologs;

use super::space::{ScenarioSettings, SettingValue, SweepSetting};

/// Allowed initial states of drives.
const STATES: [Precondition; 3] = [
    Precondition::Fresh,
    Precondition::Filled,
    Precondition::Steady,
];
/// Maximum number of cached machines: each takes a millisecond to read, and thousands of scenarios share one.
const AT_HAND: usize = 64;

/// A drive in a host, with their messages.
#[derive(Clone, Debug)]
struct CachedMachine {
    words: String,
    machine: Machine,
}

/// Builds scenarios from the description in their file.
#[derive(Debug)]
pub(super) struct ScenarioBuilder {
    file: SourceFile,
    folder: PathBuf,
    warm_seed: Option<u64>,
    machines: Mutex<Vec<CachedMachine>>,
    /// Job files and the files that they include, each read once.
    files: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
}

impl ScenarioBuilder {
    /// Returns a builder for the sweep in this file; paths are relative to this folder.
    pub(super) fn new(
        file: SourceFile,
        folder: PathBuf,
        warm_seed: Option<u64>,
    ) -> ScenarioBuilder {
        ScenarioBuilder {
            file,
            folder,
            warm_seed,
            machines: Mutex::default(),
            files: Mutex::default(),
        }
    }

    /// Returns the scenario.
    ///
    /// # Errors
    /// All problems of its drive, host, state and jobs.
    pub(super) fn scenario(&self, picked: &ScenarioSettings<'_>) -> Result<Scenario, Problems> {
        let machine = self.machine(picked);
        let cores = machine.as_ref().map_or(1, |machine| machine.host().cores);
        match (machine, self.jobs(picked, cores)) {
            (Ok(machine), Ok(set)) => {
                let state = state_of(picked).unwrap_or(Precondition::Steady);
                let seed = picked
                    .value(&SweepSetting::Seed)
                    .and_then(|it| it.words.parse().ok());
                let mut scenario = Scenario::jobs(machine, state, set.jobs, seed.unwrap_or(1));
                scenario.warm_seed = self.warm_seed;
                Ok(scenario)
            }
            (machine, set) => {
                let both = [machine.err(), set.err()].into_iter().flatten();
                Err(Problems(both.flat_map(|problems| problems.0).collect()))
            }
        }
    }

    /// Returns the drive in its host.
    ///
    /// # Errors
    /// All problems of both, and of the state's name.
    pub(super) fn machine(&self, picked: &ScenarioSettings<'_>) -> Result<Machine, Problems> {
        let words = |what: &SweepSetting| {
            picked
                .value(what)
                .map_or("", |choice| choice.words.as_str())
        };
        let figures: Vec<(String, String)> = picked
            .set()
            .map(|(key, choice)| (key.to_owned(), choice.words.clone()))
            .collect();
        let all = format!(
            "{}\n{}\n{figures:?}",
            words(&SweepSetting::Drive),
            words(&SweepSetting::Host)
        );
        let mut problems = Problems::default();
        if state_of(picked).is_none() {
            let names: Vec<&str> = STATES.iter().map(|state| state.name()).collect();
            let what = format!("there is no state `{}`", words(&SweepSetting::State));
            let at = picked.value(&SweepSetting::State);
            problems
                .0
                .push(self.problem_at(at, what, Some(names.join(", "))));
        }
        if let Some(machine) = self.at_hand(&all) {
            return problems.or(machine);
        }
        let settings = Settings {
            figures,
            ..Settings::default()
        };
        let drive = drive_as(&self.path_of(words(&SweepSetting::Drive)), &settings)
            .map_err(|more| problems.0.extend(self.of_drive(picked, more)));
        let host = catalogue::host(&self.path_of(words(&SweepSetting::Host))).map_err(|more| {
            let at = picked.value(&SweepSetting::Host);
            let more = more.0.into_iter();
            problems
                .0
                .extend(more.map(|it| self.problem_at(at, problem_text(&it, "host"), it.help)));
        });
        let (Ok(drive), Ok(host)) = (drive, host) else {
            return Err(problems);
        };
        let machine = Machine::new(&drive, &host);
        let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        if machines.len() >= AT_HAND {
            machines.remove(0);
        }
        machines.push(CachedMachine {
            words: all,
            machine: machine.clone(),
        });
        problems.or(machine)
    }

    fn at_hand(&self, words: &str) -> Option<Machine> {
        let machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        let known = machines.iter().find(|known| known.words == words);
        known.map(|known| known.machine.clone())
    }

    /// Returns the jobs, with their warnings, on a host with this number of cores.
    ///
    /// # Errors
    /// All problems of the jobs.
    pub(super) fn jobs(
        &self,
        picked: &ScenarioSettings<'_>,
        cores: u16,
    ) -> Result<JobSet, Problems> {
        let surroundings = Surroundings {
            environment: &|_| None,
            read: &|path| self.bytes(path),
            processors: cores.into(),
        };
        let options = options(picked);
        let file = picked.value(&SweepSetting::JobFile);
        let set = match file {
            Some(file) => {
                let files = [PathBuf::from(self.path_of(&file.words))];
                read_overridden(&[], &files, &options, &[], &surroundings)
            }
            None => read_overridden(&options, &[], &[], &[], &surroundings),
        };
        let set = set.and_then(|mut set| read_iologs(&mut set.jobs).map(|()| set));
        set.map_err(|problems| {
            let placed = problems.0.into_iter().map(|it| self.of_job(picked, it));
            Problems(placed.collect())
        })
    }

    /// Returns the files that jobs have been read from so far, each with its text.
    pub(super) fn job_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let files = files.iter();
        files
            .map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect()
    }

    fn bytes(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = files.get(path) {
            return Ok(bytes.clone());
        }
        let bytes = fs::read(path)?;
        files.insert(path.to_owned(), bytes.clone());
        Ok(bytes)
    }

    /// Returns a path relative to the working directory; names of the catalogue are unchanged.
    fn path_of(&self, words: &str) -> String {
        let beside = self.folder.join(words);
        let is_path =
            words.contains('/') && !catalogue::is_expression(words) || words.ends_with(".toml");
        match is_path || beside.is_file() {
            true => beside.to_string_lossy().into_owned(),
            false => words.to_owned(),
        }
    }

    /// Returns a problem at the place of a value, or of the whole file if the value is a default.
    fn problem_at(
        &self,
        choice: Option<&SettingValue>,
        what: String,
        help: Option<String>,
    ) -> Problem {
        let at = choice.and_then(|choice| choice.at.clone());
        self.file.problem(at, what, help)
    }

    /// Returns problems of a drive's file, at the changed figure or otherwise at the drive's name.
    fn of_drive(&self, picked: &ScenarioSettings<'_>, problems: Problems) -> Vec<Problem> {
        let drive = picked.value(&SweepSetting::Drive);
        let name = drive.map_or("", |choice| choice.words.as_str());
        let problems = problems.0.into_iter().map(|problem| {
            let changed = picked.set().find(|(key, _)| problem.what.contains(*key));
            let single = picked.set().next();
            match changed.or(single.filter(|_| problem.origin.starts_with("--set"))) {
                Some((key, choice)) => {
                    let what = format!("set `{key}` on {name}: {}", problem.what);
                    self.problem_at(Some(choice), what, problem.help)
                }
                None => self.problem_at(drive, problem_text(&problem, "drive"), problem.help),
            }
        });
        problems.collect()
    }

    /// Returns a problem of a job, at the option that caused it; problems of job files keep their place.
    fn of_job(&self, picked: &ScenarioSettings<'_>, problem: Problem) -> Problem {
        if problem.origin != "command line" {
            let file = picked.value(&SweepSetting::JobFile);
            let is_missing = matches!(problem.place, Place::Whole) && file.is_some();
            return match is_missing {
                true => self.problem_at(file, problem_text(&problem, "job file"), problem.help),
                false => problem,
            };
        }
        let written = match &problem.place {
            Place::Text { text, range } => text.get(range.clone()).unwrap_or_default(),
            _ => "",
        };
        let about = |key: &str| written.split('=').next() == Some(key);
        let option = picked.job().find(|(key, _)| about(key));
        let option = option.or_else(|| {
            let begins = |key: &str| problem.what.starts_with(&format!("{key}:"));
            picked.job().find(|(key, _)| begins(key))
        });
        let (choice, what) = match option {
            Some((key, choice)) if problem.what.starts_with(key) => {
                (Some(choice), problem.what.clone())
            }
            Some((key, choice)) => (Some(choice), format!("{key}: {}", problem.what)),
            None => (None, problem.what.clone()),
        };
        self.problem_at(choice, format!("job: {what}"), problem.help)
    }
}

/// Returns the message for a problem in another file, with the kind of that file.
fn problem_text(problem: &Problem, kind: &str) -> String {
    let bare = Problem {
        help: None,
        ..problem.clone()
    };
    format!("{kind} {bare}")
}

/// Returns the initial state of the drive; `None` if there is no state with this name.
pub(super) fn state_of(picked: &ScenarioSettings<'_>) -> Option<Precondition> {
    let name = &picked.value(&SweepSetting::State)?.words;
    STATES.into_iter().find(|state| state.name() == name)
}

/// Returns the options of the jobs as on fio's command line.
pub(super) fn options(picked: &ScenarioSettings<'_>) -> Vec<String> {
    let options = picked.job();
    options
        .map(|(key, choice)| format!("--{key}={}", choice.words))
        .collect()
}
