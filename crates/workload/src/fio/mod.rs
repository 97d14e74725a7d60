//! fio's job files and command lines, read into [`Job`]s.
//!
//! The source of all rules is fio 3.33: its HOWTO, and its observed behaviour for undocumented cases. Two tables
//! contain every option of fio up to version 3.42 ([`options`], [`newer`]). Options without meaning for a model
//! (processor affinity, buffer contents, logs) are accepted with one warning that lists them. Options that would
//! change fio's behaviour but are not simulated are listed in another warning. An unknown option is an error with its
//! line and the nearest name. The problems of all files are reported together.
//!
//! Not included: client and server, profiles, and drives with zones of their own.

mod apply;
mod command_line;
mod dd;
mod engines;
mod expression;
mod files;
mod ini;
mod layout;
mod newer;
mod options;
mod settings;
mod split;
mod table;
mod value;
mod zone_options;
mod zones;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::job::Job;
use text::problem::{Place, Problem, Problems, nearest};

pub use apply::is_random;
pub use command_line::{option_names, takes_value};
pub use dd::{Dd, dd};
pub use files::in_filesystem;

use ini::ExpandedOption;
use options::Meaning;
use settings::Settings;
use value::{OptionError, OptionValue};

/// Access to the system on which job files are read.
pub struct Surroundings<'a> {
    /// Returns the value of an environment variable (`${NAME}`).
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Returns the bytes of a file (job files and their includes).
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// Processors (`$ncpus`): those of the simulated host.
    pub processors: u32,
}

/// Jobs, with remarks about how they were read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobSet {
    /// The jobs in order; never empty.
    pub jobs: Vec<Job>,
    /// Options of the global sections, by fio's first names, for its JSON.
    pub globals: Vec<(String, String)>,
    /// Options that are ignored, not simulated, or handled differently from fio: one sentence each.
    pub warnings: Vec<String>,
    /// The warnings that mean that fio would measure something else on a real drive.
    pub unlike: Vec<String>,
}

/// Reads the options of a command line (`--rw=randread --name=a ...`), then job files, in fio's order.
///
/// Options before the first `--name` are global and also apply to the first file. Without `--name` and without files,
/// they form one job. If `sections` are given, only these are read (`--section`). The first job of every further file
/// waits for the jobs before it. Without files, jobs that give neither `direct` nor `buffered` are direct
/// (decision 0180).
///
/// # Errors
/// All problems in all inputs.
pub fn read(
    arguments: &[String],
    files: &[PathBuf],
    sections: &[String],
    surroundings: &Surroundings,
) -> Result<JobSet, Problems> {
    read_overridden(arguments, files, &[], sections, surroundings)
}

/// As [`read`], but adds the options `overriding` (`--runtime=5`) to each job of the files, where they take
/// precedence. (fio has no such feature: options after a job file on its command line are also defaults.)
///
/// # Errors
/// As [`read`].
pub fn read_overridden(
    arguments: &[String],
    files: &[PathBuf],
    overriding: &[String],
    sections: &[String],
    surroundings: &Surroundings,
) -> Result<JobSet, Problems> {
    let mut reader = JobReader::new(surroundings);
    reader.sections = sections.to_vec();
    reader.base.direct_by_default = files.is_empty();
    reader.command_line(arguments, files.is_empty());
    reader.overriding = command_line::options(overriding, true);
    for (index, path) in files.iter().enumerate() {
        if index > 0 {
            reader.base = Settings::default();
        }
        let origin = path.display().to_string();
        reader.files.push(origin.clone());
        match (surroundings.read)(path) {
            Ok(bytes) => {
                if let Some(encoding) = text::foreign::utf16(&bytes) {
                    let what = format!("is {encoding}, not UTF-8");
                    let help = Some(text::foreign::UTF16_HELP.to_owned());
                    reader.problem(&origin, Place::Whole, what, help);
                    continue;
                }
                let text = String::from_utf8_lossy(&bytes);
                reader.file(&origin, &text, index > 0);
            }
            Err(error) => reader.problem(
                &origin,
                Place::Whole,
                format!("cannot be read: {error}"),
                None,
            ),
        }
    }
    reader.finish()
}

/// Reads one job file from a text; `origin` names it in problems.
///
/// # Errors
/// All problems in it.
pub fn read_text(
    origin: &str,
    text: &str,
    surroundings: &Surroundings,
) -> Result<JobSet, Problems> {
    let mut reader = JobReader::new(surroundings);
    reader.files.push(origin.into());
    reader.file(origin, text, false);
    reader.finish()
}

/// One option as written: `key=value` or `key`, and its place.
#[derive(Clone, Debug)]
struct Line {
    origin: Arc<str>,
    text: Arc<str>,
    range: std::ops::Range<usize>,
    /// Whether the option takes precedence over the section.
    overriding: bool,
}

impl Line {
    fn place(&self) -> Place {
        Place::Text {
            text: self.text.clone(),
            range: self.range.clone(),
        }
    }

    fn written(&self) -> &str {
        &self.text[self.range.clone()]
    }
}

/// State of the reader while it reads the files in turn.
struct JobReader<'a> {
    surroundings: &'a Surroundings<'a>,
    /// Settings of the global sections so far.
    base: Settings,
    jobs: Vec<(Settings, Job)>,
    globals: Vec<(String, String)>,
    problems: Problems,
    /// Files included so far.
    includes: u32,
    /// Options without meaning, in the order of their appearance.
    ignored: Vec<&'static str>,
    /// Options that are not simulated, as written.
    not_simulated: Vec<String>,
    /// Sections to read; all if empty (`--section`).
    sections: Vec<String>,
    /// Sections that were not selected.
    passed_over: Vec<String>,
    /// Files as the user named them, without included files.
    files: Vec<String>,
    /// Options that take precedence over those of the jobs in files.
    overriding: Vec<Line>,
    /// Other remarks, each with the jobs that it concerns.
    notes: Vec<(String, Vec<String>)>,
    /// The remarks that mean that fio would measure something else.
    unlike: Vec<String>,
}

impl<'a> JobReader<'a> {
    fn new(surroundings: &'a Surroundings<'a>) -> JobReader<'a> {
        JobReader {
            surroundings,
            base: Settings::default(),
            jobs: Vec::new(),
            globals: Vec::new(),
            problems: Problems::default(),
            includes: 0,
            ignored: Vec::new(),
            not_simulated: Vec::new(),
            sections: Vec::new(),
            passed_over: Vec::new(),
            files: Vec::new(),
            overriding: Vec::new(),
            notes: Vec::new(),
            unlike: Vec::new(),
        }
    }

    fn problem(&mut self, origin: &str, place: Place, what: String, help: Option<String>) {
        self.problems.0.push(Problem {
            origin: origin.into(),
            place,
            what,
            help,
        });
    }

    fn note(&mut self, what: String, job: &str) {
        match self.notes.iter_mut().find(|(known, _)| *known == what) {
            Some((_, jobs)) if jobs.iter().any(|known| known == job) => {}
            Some((_, jobs)) => jobs.push(job.into()),
            None => self.notes.push((what, vec![job.into()])),
        }
    }

    fn wants(&mut self, section: &str) -> bool {
        let wanted = self.sections.is_empty() || self.sections.iter().any(|one| one == section);
        if !wanted {
            self.passed_over.push(section.into());
        }
        wanted
    }

    /// Reads a global section.
    fn global(&mut self, lines: &[Line]) {
        let mut base = self.base.clone();
        let written = self.apply(&mut base, lines, "global");
        base.engine_options.clear();
        self.base = base;
        for option in written {
            remember(&mut self.globals, option);
        }
    }

    /// Reads the section of a job; `header` is its first line.
    fn job(&mut self, name: &str, header: &Line, lines: &[Line], stonewall: bool) {
        let mut settings = self.base.clone();
        settings.job.name = name.into();
        settings.job.stonewall |= stonewall;
        let mut written = Vec::new();
        for option in self.apply(&mut settings, lines, name) {
            remember(&mut written, option);
        }
        settings.job.as_written = written;
        let finished = settings.clone().finish();
        for about in finished.wrong {
            let line = lines.iter().rev().find(|line| {
                let key = line.written().split('=').next().unwrap_or("").trim();
                table::find(key).is_some_and(|option| option.name == about.option)
            });
            let line = line.unwrap_or(header);
            let what = format!("{}: {}", about.option, about.what.what);
            self.problem(&line.origin.clone(), line.place(), what, about.what.help);
        }
        for note in finished.unlike {
            self.note(note.clone(), name);
            if !self.unlike.contains(&note) {
                self.unlike.push(note);
            }
        }
        for note in finished.notes {
            self.note(note, name);
        }
        let mut job = finished.job;
        // A terminal would execute control characters in a name.
        job.name = text::foreign::printable(&job.name).into_owned();
        if let Some(awaited) = &settings.wait_for {
            if self
                .jobs
                .iter()
                .any(|(_, earlier)| earlier.name == *awaited)
            {
                job.stonewall = true;
                let note =
                    format!("wait_for={awaited} waits for all earlier jobs, as stonewall does");
                self.note(note, name);
            } else {
                let help = Some("the name of a job further up".to_string());
                self.problem(
                    &header.origin,
                    header.place(),
                    format!("wait_for: there is no job `{awaited}` to wait for"),
                    help,
                );
            }
        }
        self.jobs.push((settings, job));
    }

    /// Applies options to `settings`; returns the options as fio would print them.
    fn apply(
        &mut self,
        settings: &mut Settings,
        lines: &[Line],
        job: &str,
    ) -> Vec<(String, Option<String>)> {
        let mut lines: Vec<(&Line, ExpandedOption)> = lines
            .iter()
            .map(|line| (line, self.substitute(line, job)))
            .collect();
        // The meaning of `k` must be known before any size is read.
        lines.sort_by_key(|(_, option)| !option.text.starts_with("kb_base"));
        let mut written = Vec::new();
        for (line, ExpandedOption { text, unset }) in lines {
            let (key, value) = match text.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim())),
                None => (text.trim(), None),
            };
            let given = OptionValue {
                text: value,
                kb_base: settings.job.reporting.kb_base,
            };
            if line.overriding {
                settings.give_way_to(key);
            }
            match self.apply_one(settings, key, &given) {
                Ok(name) => {
                    for variable in unset {
                        self.note(
                            format!("${{{variable}}} is not set and counts as empty"),
                            job,
                        );
                    }
                    written.push((name.to_string(), value.map(String::from)));
                }
                Err(_) if !unset.is_empty() => {
                    let what = format!("{key}: ${{{}}} is not set", unset.join("} or ${"));
                    let help = format!("set it, such as {}=... drivelab run ...", unset[0]);
                    self.problem(&line.origin, line.place(), what, Some(help));
                }
                Err(wrong) => {
                    let what = format!("{key}: {}", wrong.what);
                    self.problem(&line.origin, line.place(), what, wrong.help);
                }
            }
        }
        written
    }

    fn apply_one(
        &mut self,
        settings: &mut Settings,
        key: &str,
        given: &OptionValue,
    ) -> Result<&'static str, OptionError> {
        let Some(option) = table::find(key) else {
            let help = nearest(key, table::names()).map(|near| format!("did you mean `{near}`?"));
            return Err(OptionError {
                what: "fio has no such option".into(),
                help,
            });
        };
        if given.text.is_none() && !option.bare {
            return Err(OptionError::new("needs a value", format!("{key}=...")));
        }
        if !option.engines.is_empty() {
            settings.engine_options.push((option.name, option.engines));
        }
        match option.meaning {
            Meaning::Modelled(apply) => apply(settings, given)?,
            Meaning::Nothing if self.ignored.contains(&option.name) => {}
            Meaning::Nothing => self.ignored.push(option.name),
            Meaning::NotSimulated(neutral) => {
                let value = given.text.unwrap_or("1");
                if !neutral.contains(&value) {
                    let written = format!("{}={value}", option.name);
                    if !self.not_simulated.contains(&written) {
                        self.not_simulated.push(written);
                    }
                }
            }
            Meaning::Refused(neutral, why) => {
                let value = given.text.unwrap_or("1");
                if !neutral.contains(&value) {
                    let since = option.since.unwrap_or("3.33");
                    return Err(OptionError::new(
                        format!("an option of fio {since} that is not simulated: {why}"),
                        format!(
                            "leave it out, or give its default ({})",
                            neutral.join(" or ")
                        ),
                    ));
                }
            }
            Meaning::Withdrawn => {
                return Err(OptionError {
                    what: "fio no longer has this option".into(),
                    help: None,
                });
            }
        }
        Ok(option.name)
    }

    /// Returns why there is no job, and how to define one.
    fn no_job(&self) -> Problems {
        let (what, help) = if self.passed_over.is_empty() {
            let help = "a section such as [name]; options in [global] alone run nothing";
            ("holds no job".to_owned(), help.to_owned())
        } else {
            let asked = self.sections.join(", ");
            let help = format!("the sections are {}", self.passed_over.join(", "));
            (format!("--section {asked}: there is no such section"), help)
        };
        Problems(vec![Problem {
            origin: match self.files.is_empty() {
                true => "command line".into(),
                false => self.files.join(", "),
            },
            place: Place::Whole,
            what,
            help: Some(help),
        }])
    }

    fn finish(mut self) -> Result<JobSet, Problems> {
        if self.jobs.is_empty() && self.problems.0.is_empty() {
            self.problems = self.no_job();
        }
        let mut warnings = Vec::new();
        if !self.ignored.is_empty() {
            warnings.push(format!(
                "ignored (no effect on a simulated drive): {}",
                self.ignored.join(", ")
            ));
        }
        if !self.not_simulated.is_empty() {
            let options = self.not_simulated.join(", ");
            let what = format!("not simulated, though it would change what fio does: {options}");
            warnings.push(what.clone());
            self.unlike.push(what);
        }
        for note in layout::lay_out(&mut self.jobs) {
            self.notes.push((note, Vec::new()));
        }
        let all = self.jobs.len();
        for (note, jobs) in &self.notes {
            if all > 1 && !jobs.is_empty() && jobs.len() < all {
                warnings.push(format!("{note} ({})", jobs.join(", ")));
            } else {
                warnings.push(note.clone());
            }
        }
        self.problems.or(JobSet {
            jobs: self.jobs.into_iter().map(|(_, job)| job).collect(),
            globals: self.globals,
            warnings,
            unlike: self.unlike,
        })
    }
}

/// Adds an option to those that fio would print: the last value of a name counts, and options without a value are
/// left out.
fn remember(written: &mut Vec<(String, String)>, (name, value): (String, Option<String>)) {
    let Some(value) = value else { return };
    match written.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = value,
        None => written.push((name, value)),
    }
}

#[cfg(test)]
mod tests;
