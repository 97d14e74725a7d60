//! A load as a user names it: a name, a job file, fio's options, or a trace.

use std::path::{Path, PathBuf};

use catalogue::HostSheet;
use model::Span;
use serde::{Deserialize, Serialize};
use text::bounded;
use text::problem::Problems;
use workload::fio::{self, JobSet, Surroundings};
use workload::replay::read_iologs;
use workload::trace;

use super::conditions::check_range;
use super::defaults;
use super::problems::{collect_problems, of_option};
use crate::decide::named;
use crate::decide::work::Load;
use crate::review::{UserWorkload, Workload};

/// IOPS of one user in an example.
const OF_ONE: u64 = 30;

/// A load by its name, or jobs of fio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NamedLoad {
    /// Name of a built-in load, such as `oltp`.
    Name(String),
    /// Jobs that Python made.
    Jobs(JobSpec),
}

/// Jobs of fio: options as on its command line, and job files. Options override those of the files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobSpec {
    /// Options, such as `--rw=randread`.
    pub options: Vec<String>,
    /// Paths of job files.
    pub files: Vec<PathBuf>,
    /// Sections of the files to run; empty for all.
    pub sections: Vec<String>,
}

impl JobSpec {
    /// Returns the jobs on a host with this number of processors.
    ///
    /// # Errors
    /// All problems of the options and files.
    pub fn read(&self, processors: u16) -> Result<JobSet, Problems> {
        let (options, overriding) = match self.files.is_empty() {
            true => (&self.options[..], &[][..]),
            false => (&[][..], &self.options[..]),
        };
        if options.is_empty() && self.files.is_empty() {
            let what =
                "there is no job: give options such as --rw=randread --bs=4k --size=1g, or a file";
            return Err(Problems::whole("jobs", what));
        }
        let surroundings = surroundings(processors);
        let (files, sections) = (&self.files, &self.sections);
        let mut set = fio::read_overridden(options, files, overriding, sections, &surroundings)?;
        read_iologs(&mut set.jobs)?;
        Ok(set)
    }

    /// Returns the jobs as a load.
    ///
    /// # Errors
    /// All problems of the options and files.
    pub fn load(&self, processors: u16) -> Result<UserWorkload, Problems> {
        if let ([], [file], []) = (&self.options[..], &self.files[..], &self.sections[..]) {
            return job_file(file, processors).map(|(jobs, _)| jobs);
        }
        let set = self.read(processors)?;
        let files = self.files.iter().map(|it| it.display().to_string());
        let words: Vec<String> = files.chain(self.options.iter().cloned()).collect();
        Ok(UserWorkload {
            source: words.join(" "),
            text: words.join("\n"),
            workload: Workload::Jobs(set.jobs),
        })
    }
}

fn surroundings(processors: u16) -> Surroundings<'static> {
    Surroundings {
        environment: &|name| std::env::var(name).ok(),
        read: &|path| bounded::bytes(path, bounded::WRITTEN),
        processors: processors.into(),
    }
}

/// Returns the jobs of a file as a load, and the warnings on its options.
///
/// # Errors
/// All problems of the file.
pub fn job_file(path: &Path, processors: u16) -> Result<(UserWorkload, Vec<String>), Problems> {
    let origin = path.display().to_string();
    let text = bounded::text(path, bounded::WRITTEN)
        .map_err(|error| Problems::whole(&origin, format!("cannot be read: {error}")))?;
    let mut set = fio::read_text(&origin, &text, &surroundings(processors))?;
    read_iologs(&mut set.jobs)?;
    let warnings = set.warnings.iter();
    let warnings = warnings.map(|warning| format!("{origin}: {warning}"));
    let warnings = warnings.collect();
    let jobs = UserWorkload {
        source: origin,
        text,
        workload: Workload::Jobs(set.jobs),
    };
    Ok((jobs, warnings))
}

/// Returns a trace as a load.
///
/// # Errors
/// The trace cannot be read.
pub fn trace_file(path: &Path) -> Result<UserWorkload, Problems> {
    let trace = trace::read(path, &trace::Options::default())?;
    let times = match trace.timed {
        true => "at their recorded times",
        false => "in sequence, because the trace has no times",
    };
    Ok(UserWorkload {
        source: path.display().to_string(),
        text: format!(
            "{} requests ({}), {times}; addresses beyond the end of a drive are wrapped",
            trace.records.len(),
            trace.format.name,
        ),
        workload: Workload::Trace(trace.into()),
    })
}

/// A load with its length, as the fields of a request or the arguments of a subcommand name it. At most one of
/// `load`, `job` and `trace` is given.
#[derive(Clone, Debug, Default)]
pub struct LoadSpec {
    /// A built-in load, or jobs.
    pub load: Option<NamedLoad>,
    /// Path of a job file.
    pub job: Option<PathBuf>,
    /// Path of a trace.
    pub trace: Option<PathBuf>,
    /// Number of users of a named load.
    pub users: Option<u32>,
    /// Maximum counted time of a job; `None`: the default for the drives.
    pub runtime: Option<Span>,
}

/// A load that was read.
#[derive(Debug, Default)]
pub struct LoadRead {
    /// The load; `None` if none is named, or if it has problems.
    pub load: Option<Load>,
    /// Warnings on options of a job file.
    pub warnings: Vec<String>,
}

impl LoadSpec {
    /// Reads the load, with the counted time `usual` unless another is given; problems are added to the others.
    pub fn read(&self, host: &HostSheet, usual: Span, problems: &mut Problems) -> LoadRead {
        let most = self.runtime.unwrap_or(usual);
        if most < Span::from_ms(1) {
            problems.0.push(of_option(
                "--runtime: too short to measure anything",
                "at least a millisecond, such as 500ms",
            ));
        }
        check_range("users", self.users, &defaults::USERS_RANGE, problems);
        let is_named = matches!(self.load, Some(NamedLoad::Name(_)));
        if let (Some(users), false) = (self.users, is_named) {
            let what =
                "--users: a profile, a job file or a trace does not define the load of one user";
            let with = named::with_users().join(", ");
            let help = format!(
                "give the total rate: --rate {} if each of {users} users (or virtual machines) makes {OF_ONE} IOPS, where \
                 the subcommand has --rate; with --load, {with} define users",
                u64::from(users) * OF_ONE
            );
            problems.0.push(of_option(what, help));
        }
        let mut read = LoadRead::default();
        let load = collect_problems(self.file(host, most, &mut read.warnings), problems).flatten();
        let load = load.and_then(|load| self.with_users(load, problems));
        read.load = load.map(|load| load.at_most(most));
        read
    }

    fn file(
        &self,
        host: &HostSheet,
        most: Span,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Load>, Problems> {
        let cores = host.config.cores;
        if let Some(path) = &self.job {
            let (jobs, of_options) = job_file(path, cores)?;
            warnings.extend(of_options);
            return Ok(Some(Load::new(jobs)));
        }
        if let Some(path) = &self.trace {
            return Ok(Some(Load::new(trace_file(path)?)));
        }
        match &self.load {
            None => Ok(None),
            Some(NamedLoad::Jobs(jobs)) => Ok(Some(Load::new(jobs.load(cores)?))),
            Some(NamedLoad::Name(name)) => {
                let load = named::load(name).unwrap_or_else(|| {
                    let names: Vec<&str> = named::names().collect();
                    Err(Problems(vec![of_option(
                        format!("--load: there is no load `{name}`"),
                        format!("one of {}", names.join(", ")),
                    )]))
                })?;
                Ok(Some(load.counted_longer(most)))
            }
        }
    }

    /// Returns the load at the rate of its users, if their number is given.
    fn with_users(&self, load: Load, problems: &mut Problems) -> Option<Load> {
        let (Some(users), Some(NamedLoad::Name(name))) = (self.users, &self.load) else {
            return Some(load);
        };
        match named::rate_of_users(name, f64::from(users)) {
            Ok(rate) => collect_problems(load.at_rate(rate), problems),
            Err(what) => {
                let help = "leave --users out, or give --rate where the subcommand has it";
                let what = format!("--users: {what}");
                problems.0.push(of_option(what, help));
                None
            }
        }
    }
}
