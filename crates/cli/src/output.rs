//! Writing results to files: problems are reported before the work, and files are written completely or not at all.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use text::problem::{Place, Problem, Problems};
use text::terminal::{Width, paragraph};

use crate::failure::{Failure, write_stderr};

/// Returns the columns of the terminal on standard output; `None` if output is redirected.
pub(crate) fn width() -> Width {
    let terminal = io::stdout().is_terminal();
    terminal.then(|| comfy_table::Table::new().width())?
}

/// Returns the columns of the terminal on standard error.
fn width_of_errors() -> Width {
    io::stderr().is_terminal().then(|| {
        let mut table = comfy_table::Table::new();
        table.use_stderr().width()
    })?
}

/// Writes a warning or a note to standard error, wrapped at words on a terminal.
pub(crate) fn remark(kind: &str, what: &str) {
    write_stderr(&paragraph(&format!("{kind}: "), what, width_of_errors()));
}

/// How results are printed; the names are fio's.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables
    #[value(alias = "table")]
    Normal,
    /// JSON for programs
    Json,
}

/// Returns everything that would prevent writing results, before the work begins: `outputs` with the arguments that
/// name them, and the `inputs` that they must not replace.
pub(crate) fn problems(outputs: &[(&str, &Path)], inputs: &[&Path]) -> Problems {
    let mut found = Problems::default();
    for (index, &(argument, path)) in outputs.iter().enumerate() {
        let twice = outputs[..index]
            .iter()
            .find(|(_, other)| same(other, path))
            .map(|(other, _)| (format!("is the file of {other} too"), "name two files"));
        let input = inputs
            .iter()
            .find(|input| input.is_file() && same(input, path))
            .map(|_| ("is one of the files that are read".into(), "name another"));
        if let Some((what, help)) = twice.or(input).or_else(|| unwritable(path)) {
            found.0.push(Problem {
                origin: "command line".into(),
                place: Place::Whole,
                what: format!("{argument} {}: {what}", path.display()),
                help: Some(help.into()),
            });
        }
    }
    found
}

/// Returns the requested files, with the arguments that name them.
pub(crate) fn requested_files<'a, const N: usize>(
    arguments: [(&'a str, &'a Option<PathBuf>); N],
) -> Vec<(&'a str, &'a Path)> {
    let asked = arguments.into_iter();
    asked
        .filter_map(|(argument, path)| Some((argument, path.as_deref()?)))
        .collect()
}

/// Returns why a file cannot be written there, and what would be right.
fn unwritable(path: &Path) -> Option<(String, &'static str)> {
    if path.file_name().is_none() || path.is_dir() {
        return Some(("names no file".into(), "a folder and a file's name"));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        let what = format!("there is no folder {}", folder.display());
        return Some((what, "make it first"));
    }
    if is_special(path) {
        return None;
    }
    let part = part_of(path);
    let tried = fs::File::create(&part).and_then(|_| fs::remove_file(&part));
    tried.err().map(|error| {
        let what = format!("cannot be written: {error}");
        (what, "a folder that you may write to")
    })
}

/// Checks whether two paths are one file; a device or a pipe may be named twice.
fn same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| {
        let folder = fs::canonicalize(folder_of(path)).ok();
        let beside = folder
            .zip(path.file_name())
            .map(|(folder, name)| folder.join(name));
        fs::canonicalize(path).ok().or(beside)
    };
    !is_special(one) && real(one).is_some_and(|one| real(other) == Some(one))
}

/// Checks for a device or a pipe (`--output /dev/stdout`), which is written to and never replaced.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Returns the temporary file next to it, for incomplete content.
fn part_of(path: &Path) -> PathBuf {
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Writes a file atomically: the previous content is kept until the new one is complete.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error| Failure::failed(format!("writing {}", path.display()), error);
    if is_special(path) {
        return fs::write(path, bytes).map_err(failed);
    }
    // The target of a symbolic link is replaced, not the link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let part = part_of(path);
    let written = fs::File::create(&part)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&part, path));
    written.map_err(|error| {
        // Best effort: the first error is the important one.
        let _ = fs::remove_file(&part);
        failed(error)
    })
}
