//! Naming of drives in every subcommand that takes drives: as arguments, or by `--drive`.
//!
//! A name of the catalogue, a path that ends in `.toml` or the expression of a pool is a drive, whatever files the
//! folder contains. In subcommands that also read other files, an argument that is not a drive is such a file. A file
//! with a drive's name is written as `./NAME`.

use std::path::{Path, PathBuf};

use catalogue::{DriveSheet, Settings};
use study::ask::DriveSpec;
pub(crate) use study::ask::drive_spec::is_drive;
use text::problem::{Place, Problem, Problems, nearest};

use crate::failure::on_command_line;
use crate::output::remark;
use crate::setting::SettingArgs;

/// Drives of a subcommand that are given by an option, and the settings of all drives.
#[derive(clap::Args, Clone)]
pub(crate) struct DriveArgs {
    /// Drive, as an alternative to the argument DRIVE; may be given several times
    #[arg(long = "drive", value_name = "DRIVE")]
    drives: Vec<String>,
    #[command(flatten)]
    setting: SettingArgs,
}

impl DriveArgs {
    /// Returns the names of all drives, those of arguments first.
    pub(crate) fn names(&self, arguments: &[String]) -> Vec<String> {
        [arguments, &self.drives].concat()
    }

    /// Returns the names of all drives. If there are none, that is a problem, unless an argument with a problem may
    /// have been meant as a drive.
    pub(crate) fn named(&self, arguments: &[String], problems: &mut Problems) -> Vec<String> {
        let names = self.names(arguments);
        if names.is_empty() && problems.0.is_empty() {
            problems.0.push(on_command_line(
                "no drive is named",
                "add one of those that `drivelab drives` lists, or the path of a TOML file",
            ));
        }
        names
    }

    /// Returns the drives that load, with their settings; all errors of the others are problems.
    pub(crate) fn read(&self, arguments: &[String], problems: &mut Problems) -> Vec<DriveSheet> {
        self.read_as(arguments, &self.settings(), problems)
    }

    /// Returns the drives that load, with these settings.
    pub(crate) fn read_as(
        &self,
        arguments: &[String],
        settings: &Settings,
        problems: &mut Problems,
    ) -> Vec<DriveSheet> {
        let mut drives = Vec::new();
        for name in &self.named(arguments, problems) {
            match load(name, settings) {
                Ok(drive) => drives.push(drive),
                Err(more) => problems.0.extend(more.0),
            }
        }
        drives
    }

    /// Returns the drives with their settings.
    pub(crate) fn specs(&self, arguments: &[String]) -> Vec<DriveSpec> {
        let settings = self.settings();
        let spec = |name| DriveSpec {
            name,
            settings: settings.clone(),
        };
        self.names(arguments).into_iter().map(spec).collect()
    }

    /// Prints the notes on the settings of loaded drives.
    pub(crate) fn note_on(&self, arguments: &[String], drives: &[DriveSheet]) {
        let settings = self.settings();
        for (name, drive) in self.names(arguments).iter().zip(drives) {
            note_on_settings(name, &settings, drive);
        }
    }

    /// Prints, for an answer in years, how a part without data is treated.
    pub(crate) fn note_on_years(&self) {
        if self.settings().fill.is_some() {
            remark(
                "note",
                "--fill: the lifetime assumes that trimmed blocks stay trimmed; a load that writes to them fills them in time, and reads of them do not access the medium",
            );
        }
    }

    /// Returns the settings of the drives.
    pub(crate) fn settings(&self) -> Settings {
        Settings::from(&self.setting)
    }
}

/// Returns the drive with this name, or in the file at this path, with these settings.
///
/// # Errors
/// All problems of the drive, or that the file is of another kind.
pub(crate) fn load(name: &str, settings: &Settings) -> Result<DriveSheet, Problems> {
    let spec = DriveSpec {
        name: name.to_owned(),
        settings: settings.clone(),
    };
    let drive = spec.load()?;
    note_on_settings(name, settings, &drive);
    Ok(drive)
}

/// Prints which settings have no effect on a drive, and how its wear is counted.
fn note_on_settings(name: &str, settings: &Settings, drive: &DriveSheet) {
    if let Some(note) = drive.note_on(settings) {
        remark("note", &note);
    }
    if let Some(factor) = settings.wear_factor {
        let what = format!(
            "{name}: each byte written counts {factor} times towards Percentage Used (--wear-factor)"
        );
        remark("note", &what);
    }
}

/// Arguments of a subcommand that reads files besides drives.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct DrivesAndFiles {
    pub(crate) drives: Vec<String>,
    pub(crate) files: Vec<PathBuf>,
}

/// Separates drives from files; `what` describes such a file, as in "a job file". Every argument that is neither is a
/// problem, with a suggestion.
pub(crate) fn sort(arguments: &[PathBuf], what: &str, problems: &mut Problems) -> DrivesAndFiles {
    let mut sorted = DrivesAndFiles::default();
    for argument in arguments {
        match argument.to_str().filter(|name| is_drive(name)) {
            Some(name) => sorted.drives.push(name.to_owned()),
            None if argument == Path::new("-") || argument.exists() => {
                sorted.files.push(argument.clone());
            }
            None => problems.0.push(neither(argument, what)),
        }
    }
    sorted
}

fn neither(argument: &Path, what: &str) -> Problem {
    let name = argument.to_string_lossy();
    let mut meant = Vec::new();
    let drives = catalogue::drives_like(&name);
    if !drives.is_empty() {
        meant.push(format!("the drive `{}`", drives.join("` or `")));
    }
    if let Some(file) = file_like(argument) {
        meant.push(format!("the file `{}`", file.display()));
    }
    Problem {
        origin: name.into_owned(),
        place: Place::Whole,
        what: format!("neither {what} nor a drive"),
        help: Some(match meant.is_empty() {
            false => format!("did you mean {}?", meant.join(" or ")),
            true => String::from("`drivelab drives` lists the drives"),
        }),
    }
}

/// Returns the file in the same folder with the closest name.
fn file_like(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let files = entries.filter_map(|entry| {
        let entry = entry.ok().filter(|entry| entry.path().is_file())?;
        entry.file_name().into_string().ok()
    });
    let mut files: Vec<String> = files.collect();
    // Sorted, so that the result for equal distances does not depend on the file system.
    files.sort_unstable();
    let near = nearest(
        path.file_name()?.to_str()?,
        files.iter().map(String::as_str),
    )?;
    Some(folder.map_or_else(|| PathBuf::from(near), |folder| folder.join(near)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(arguments: &[&str]) -> Result<DrivesAndFiles, Problems> {
        let arguments: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
        let mut problems = Problems::default();
        let sorted = sort(&arguments, "a job file", &mut problems);
        problems.or(sorted)
    }

    #[test]
    fn arguments_are_drives_or_files_in_any_order() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let file = folder.path().join("a.fio");
        std::fs::write(&file, "").expect("a folder of our own");
        let name = file.to_str().expect("UTF-8");
        let sorted = sorted(&["p4800x-375", name, "./mine.toml", "-"]).expect("all are known");
        assert_eq!(sorted.drives, ["p4800x-375", "./mine.toml"]);
        assert_eq!(sorted.files, [file, PathBuf::from("-")]);
    }

    #[test]
    fn what_is_neither_is_told_with_the_nearest_names() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        for name in ["p4800x-377", "other"] {
            std::fs::write(folder.path().join(name), "").expect("a folder of our own");
        }
        let wrong = folder.path().join("p4800x-376");
        let near = sorted(&[wrong.to_str().expect("UTF-8")]).expect_err("no such file");
        let help = near.0[0].help.as_deref().expect("a help");
        assert!(
            help.contains("the file `") && help.contains("p4800x-377"),
            "{help}"
        );
        let near = sorted(&["p4800x-357", "nothing-like-it"]).expect_err("neither");
        assert_eq!(near.0[0].what, "neither a job file nor a drive");
        let help: Vec<&str> = near
            .0
            .iter()
            .filter_map(|one| one.help.as_deref())
            .collect();
        assert_eq!(
            help,
            [
                "did you mean the drive `p4800x-375`?",
                "`drivelab drives` lists the drives"
            ]
        );
    }
}
