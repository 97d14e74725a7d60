//! From what a scenario is made of, in words, to the [`Scenario`]: the drive with its figures changed, the host, the jobs.
//! What is wrong with them is told at the line of the sweep's file that says so.
//!
//! Paths are from the folder of the sweep's file. Job files see no environment: a row must come out the same elsewhere.

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

use super::space::{Choice, Picked, What};

/// The states of drives.
const STATES: [Precondition; 3] = [
    Precondition::Fresh,
    Precondition::Filled,
    Precondition::Steady,
];
/// Machines that are kept at hand: each takes a millisecond to read, and thousands of scenarios have the same.
const AT_HAND: usize = 64;

/// A drive in a host, and what is said of them.
#[derive(Clone, Debug)]
struct Known {
    words: String,
    machine: Machine,
}

/// Makes scenarios of what their file says.
#[derive(Debug)]
pub(super) struct Cast {
    file: SourceFile,
    folder: PathBuf,
    warm_seed: Option<u64>,
    machines: Mutex<Vec<Known>>,
    /// Job files and what they include, read once.
    files: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
}

impl Cast {
    /// For the sweep in this file, whose paths are from this folder.
    pub(super) fn new(file: SourceFile, folder: PathBuf, warm_seed: Option<u64>) -> Cast {
        Cast {
            file,
            folder,
            warm_seed,
            machines: Mutex::default(),
            files: Mutex::default(),
        }
    }

    /// The scenario.
    ///
    /// # Errors
    /// Everything wrong with its drive, host, state and jobs.
    pub(super) fn scenario(&self, picked: &Picked<'_>) -> Result<Scenario, Problems> {
        let machine = self.machine(picked);
        let cores = machine.as_ref().map_or(1, |machine| machine.host().cores);
        match (machine, self.jobs(picked, cores)) {
            (Ok(machine), Ok(set)) => {
                let state = state_of(picked).unwrap_or(Precondition::Steady);
                let seed = picked.of(&What::Seed).and_then(|it| it.words.parse().ok());
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

    /// The drive in its host.
    ///
    /// # Errors
    /// Everything wrong with both, and with the state's name.
    pub(super) fn machine(&self, picked: &Picked<'_>) -> Result<Machine, Problems> {
        let words = |what: &What| picked.of(what).map_or("", |choice| choice.words.as_str());
        let figures: Vec<(String, String)> = picked
            .set()
            .map(|(key, choice)| (key.to_owned(), choice.words.clone()))
            .collect();
        let all = format!(
            "{}\n{}\n{figures:?}",
            words(&What::Drive),
            words(&What::Host)
        );
        let mut problems = Problems::default();
        if state_of(picked).is_none() {
            let names: Vec<&str> = STATES.iter().map(|state| state.name()).collect();
            let what = format!("there is no state `{}`", words(&What::State));
            let at = picked.of(&What::State);
            problems.0.push(self.at(at, what, Some(names.join(", "))));
        }
        if let Some(machine) = self.at_hand(&all) {
            return problems.or(machine);
        }
        let settings = Settings {
            figures,
            ..Settings::default()
        };
        let drive = drive_as(&self.path_of(words(&What::Drive)), &settings)
            .map_err(|more| problems.0.extend(self.of_drive(picked, more)));
        let host = catalogue::host(&self.path_of(words(&What::Host))).map_err(|more| {
            let at = picked.of(&What::Host);
            let more = more.0.into_iter();
            problems
                .0
                .extend(more.map(|it| self.at(at, told(&it, "host"), it.help)));
        });
        let (Ok(drive), Ok(host)) = (drive, host) else {
            return Err(problems);
        };
        let machine = Machine::new(&drive, &host);
        let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        if machines.len() >= AT_HAND {
            machines.remove(0);
        }
        machines.push(Known {
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

    /// The jobs, with what is to be said of them, on a host with so many cores.
    ///
    /// # Errors
    /// Everything wrong with them.
    pub(super) fn jobs(&self, picked: &Picked<'_>, cores: u16) -> Result<JobSet, Problems> {
        let surroundings = Surroundings {
            environment: &|_| None,
            read: &|path| self.bytes(path),
            processors: cores.into(),
        };
        let options = options(picked);
        let file = picked.of(&What::JobFile);
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

    /// The files that jobs were read from so far, each with its text.
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

    /// A path as from the folder that the program was called in; names of the catalogue stay.
    fn path_of(&self, words: &str) -> String {
        let beside = self.folder.join(words);
        let is_path =
            words.contains('/') && !catalogue::is_expression(words) || words.ends_with(".toml");
        match is_path || beside.is_file() {
            true => beside.to_string_lossy().into_owned(),
            false => words.to_owned(),
        }
    }

    /// A problem at the place of a value, or of the whole file if nobody wrote it there.
    fn at(&self, choice: Option<&Choice>, what: String, help: Option<String>) -> Problem {
        let at = choice.and_then(|choice| choice.at.clone());
        self.file.problem(at, what, help)
    }

    /// Problems of a drive's file, at the figure that was changed or else at the drive's name.
    fn of_drive(&self, picked: &Picked<'_>, problems: Problems) -> Vec<Problem> {
        let drive = picked.of(&What::Drive);
        let name = drive.map_or("", |choice| choice.words.as_str());
        let problems = problems.0.into_iter().map(|problem| {
            let changed = picked.set().find(|(key, _)| problem.what.contains(*key));
            let single = picked.set().next();
            match changed.or(single.filter(|_| problem.origin.ends_with("(changed)"))) {
                Some((key, choice)) => {
                    let what = format!("set `{key}` on {name}: {}", problem.what);
                    self.at(Some(choice), what, problem.help)
                }
                None => self.at(drive, told(&problem, "drive"), problem.help),
            }
        });
        problems.collect()
    }

    /// A problem of a job, at the option that it is about; those of job files stay where they are.
    fn of_job(&self, picked: &Picked<'_>, problem: Problem) -> Problem {
        if problem.origin != "command line" {
            let file = picked.of(&What::JobFile);
            let is_missing = matches!(problem.place, Place::Whole) && file.is_some();
            return match is_missing {
                true => self.at(file, told(&problem, "job file"), problem.help),
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
        self.at(choice, format!("job: {what}"), problem.help)
    }
}

/// A problem of another file, with what kind of file that is.
fn told(problem: &Problem, kind: &str) -> String {
    let bare = Problem {
        help: None,
        ..problem.clone()
    };
    format!("{kind} {bare}")
}

/// The state of the drive at the start; `None` if it has no such name.
pub(super) fn state_of(picked: &Picked<'_>) -> Option<Precondition> {
    let name = &picked.of(&What::State)?.words;
    STATES.into_iter().find(|state| state.name() == name)
}

/// The options of the jobs as on fio's command line.
pub(super) fn options(picked: &Picked<'_>) -> Vec<String> {
    let options = picked.job();
    options
        .map(|(key, choice)| format!("--{key}={}", choice.words))
        .collect()
}
