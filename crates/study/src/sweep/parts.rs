//! Storage for a sweep's rows until all are complete: a folder next to the result, with one file for each completed
//! part.
//!
//! A part is written under a temporary name and renamed when it is on the disk, so that parts are complete whatever
//! ends the program. The folder contains the exact definition of its sweep, and the process that works on it locks it.
//! When all parts exist, their rows are written as one file, in the order of scenarios: its bytes do not depend on the
//! number of interruptions.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use lab::{Lab, ProgressCallback};
use text::problem::{Place, Problem, Problems};

use super::Sweep;
use super::table::{Cell, ParquetTable, SweepRow, column, description, read};

/// Scenarios of a part: the maximum that a killed program loses of each part in progress.
pub const PART: usize = 100;
/// Parts whose rows form one row group of the result; readers fetch a whole group.
const GROUP: usize = 80;
/// Name of the file with the definition of the folder's sweep.
const DEFINITION: &str = "definition";

/// Error that prevents a sweep from continuing.
#[derive(Debug)]
pub enum SweepError {
    /// Invalid input.
    Input(Problems),
    /// A failed operation: what failed, and the error.
    Failed(String),
}

impl SweepError {
    fn failed(doing: &str, path: &Path, error: impl Display) -> SweepError {
        SweepError::Failed(format!("{doing} {}: {error}", path.display()))
    }

    fn invalid_output(output: &Path, what: &str, help: String) -> SweepError {
        SweepError::Input(Problems(vec![Problem {
            origin: output.display().to_string(),
            place: Place::Whole,
            what: what.into(),
            help: Some(help),
        }]))
    }
}

/// The stored rows of a sweep.
#[derive(Debug)]
pub struct Parts<'a> {
    sweep: &'a Sweep,
    output: PathBuf,
    folder: PathBuf,
    /// Held while parts may be written; `None` once the result exists.
    lock: Option<File>,
}

/// Returns the file content of a part.
fn file_of(sweep: &Sweep, rows: &[SweepRow]) -> Result<Vec<u8>, String> {
    let written = ParquetTable::new(Vec::new(), sweep.columns(), "").and_then(|mut table| {
        table.add(rows)?;
        table.finish()
    });
    written.map_err(|error| error.to_string())
}

impl Sweep {
    /// Runs the scenarios of a part in sequence and returns its file content, for [`Parts::keep_file`], or `None` if
    /// it was stopped.
    ///
    /// # Errors
    /// The rows cannot be written.
    pub fn part_file(
        &self,
        part: usize,
        lab: &Lab,
        go_on: ProgressCallback<'_>,
    ) -> Result<Option<Vec<u8>>, SweepError> {
        let rows = self.part(part).map(|index| self.row(index, lab, go_on));
        let Some(rows) = rows.collect::<Option<Vec<SweepRow>>>() else {
            return Ok(None);
        };
        let doing = format!("part {part}: ");
        let file = file_of(self, &rows);
        file.map(Some)
            .map_err(|error| SweepError::Failed(doing + &error))
    }
}

impl<'a> Parts<'a> {
    /// Opens the parts of a sweep whose rows go to `output`; existing parts are kept.
    ///
    /// # Errors
    /// The file or the parts next to it belong to another sweep or version, another process works on them, or they
    /// cannot be written.
    pub fn open(sweep: &'a Sweep, output: &Path) -> Result<Parts<'a>, SweepError> {
        let mut folder = output.as_os_str().to_owned();
        folder.push(".parts");
        let mut parts = Parts {
            sweep,
            output: output.to_owned(),
            folder: folder.into(),
            lock: None,
        };
        if output.exists() {
            let file =
                File::open(output).map_err(|error| SweepError::failed("reading", output, error))?;
            if description(file).as_deref() != Some(sweep.definition()) {
                let help = "move it away, or name another file".to_owned();
                return Err(SweepError::invalid_output(
                    output,
                    "exists, and belongs to another sweep or version",
                    help,
                ));
            }
            return Ok(parts);
        }
        parts.lock = Some(parts.begin()?);
        Ok(parts)
    }

    /// Creates the folder, or checks that it belongs to this sweep, and returns its lock.
    fn begin(&self) -> Result<File, SweepError> {
        let failed = |error| SweepError::failed("writing", &self.folder, error);
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let path = self.folder.join(DEFINITION);
        if !path.exists() {
            write_whole(&path, self.sweep.definition().as_bytes())?;
        }
        let lock = File::open(&path).map_err(failed)?;
        if lock.try_lock().is_err() {
            let help = "wait for it, or name another file".to_owned();
            return Err(SweepError::invalid_output(
                &self.output,
                "another drivelab writes its parts",
                help,
            ));
        }
        let said = fs::read(&path).map_err(failed)?;
        if said != self.sweep.definition().as_bytes() {
            let help = format!("move {} away, or name another file", self.folder.display());
            let what = "its parts are those of another sweep, other drives or another version";
            return Err(SweepError::invalid_output(&self.output, what, help));
        }
        Ok(lock)
    }

    /// Checks whether the result already exists.
    pub fn is_complete(&self) -> bool {
        self.lock.is_none()
    }

    fn path(&self, part: usize) -> PathBuf {
        self.folder.join(format!("part-{part:08}.parquet"))
    }

    /// Returns the missing parts, in order; empty if the result exists.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn missing(&self) -> Result<Vec<usize>, SweepError> {
        if self.is_complete() {
            return Ok(Vec::new());
        }
        let failed = |error| SweepError::failed("reading", &self.folder, error);
        let mut there = BTreeSet::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            there.insert(entry.map_err(failed)?.path());
        }
        let all = 0..self.sweep.parts();
        Ok(all
            .filter(|part| !there.contains(&self.path(*part)))
            .collect())
    }

    /// Stores the rows of a part.
    ///
    /// # Errors
    /// The rows cannot be written.
    pub fn keep(&self, part: usize, rows: &[SweepRow]) -> Result<(), SweepError> {
        let path = self.path(part);
        let bytes = file_of(self.sweep, rows);
        let bytes = bytes.map_err(|error| SweepError::failed("writing", &path, error))?;
        write_whole(&path, &bytes)
    }

    /// Stores a part that was run elsewhere, as returned by [`Sweep::part_file`].
    ///
    /// # Errors
    /// The file is not a part of this sweep, or cannot be written.
    pub fn keep_file(&self, part: usize, file: Vec<u8>) -> Result<(), SweepError> {
        let path = self.path(part);
        let (columns, rows) = read(bytes::Bytes::from(file))
            .map_err(|error| SweepError::failed("reading what was run of", &path, error))?;
        if columns != self.sweep.columns() || rows.len() != self.sweep.part(part).len() {
            let error = "it is of another sweep, other drives or another version";
            return Err(SweepError::failed("keeping", &path, error));
        }
        self.keep(part, &rows)
    }

    /// Writes the result when no part is missing, and removes the parts.
    ///
    /// # Errors
    /// A part cannot be read, or the result cannot be written.
    pub fn finish(self) -> Result<(), SweepError> {
        if !self.is_complete() {
            let unfinished = self.folder.join("result");
            self.write(&unfinished)?;
            let renamed = fs::rename(&unfinished, &self.output);
            renamed.map_err(|error| SweepError::failed("writing", &self.output, error))?;
        }
        let said = fs::read(self.folder.join(DEFINITION)).unwrap_or_default();
        if said == self.sweep.definition().as_bytes() {
            let gone = fs::remove_dir_all(&self.folder);
            gone.map_err(|error| SweepError::failed("removing", &self.folder, error))?;
        }
        Ok(())
    }

    fn write(&self, path: &Path) -> Result<(), SweepError> {
        let failed = |error: &dyn Display| SweepError::failed("writing", path, error);
        let file = File::create(path).map_err(|error| failed(&error))?;
        let file = std::io::BufWriter::new(file);
        let table = ParquetTable::new(file, self.sweep.columns(), self.sweep.definition());
        let mut table = table.map_err(|error| failed(&error))?;
        let parts: Vec<usize> = (0..self.sweep.parts()).collect();
        for group in parts.chunks(GROUP) {
            let mut rows = Vec::new();
            for part in group {
                rows.extend(self.rows(*part)?);
            }
            table.add(&rows).map_err(|error| failed(&error))?;
        }
        let mut file = table.finish().map_err(|error| failed(&error))?;
        let flushed = file.flush().and_then(|()| file.get_ref().sync_all());
        flushed.map_err(|error| failed(&error))
    }

    fn rows(&self, part: usize) -> Result<Vec<SweepRow>, SweepError> {
        let path = self.path(part);
        let failed = |error: &dyn Display| SweepError::failed("reading", &path, error);
        let file = File::open(&path).map_err(|error| failed(&error))?;
        let (columns, rows) = read(file).map_err(|error| failed(&error))?;
        if columns != self.sweep.columns() || rows.len() != self.sweep.part(part).len() {
            return Err(failed(&"not the rows of this part"));
        }
        Ok(rows)
    }
}

/// Returns the number of rows of a result that have a problem, and the first such scenario with its problem.
///
/// # Errors
/// The result cannot be read.
pub fn problems(output: &Path) -> Result<(usize, Option<(usize, String)>), SweepError> {
    let failed = |error: &dyn Display| SweepError::failed("reading", output, error);
    let file = File::open(output).map_err(|error| failed(&error))?;
    let cells = column(file, "problem").map_err(|error| failed(&error))?;
    let mut said = (0..).zip(cells).filter_map(|(scenario, cell)| match cell {
        Cell::Text(text) => Some((scenario, text)),
        _ => None,
    });
    let first = said.next();
    Ok((usize::from(first.is_some()) + said.count(), first))
}

/// Writes a file atomically: completely or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), SweepError> {
    let unfinished = path.with_extension("unfinished");
    let written = File::create(&unfinished).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&unfinished, path));
    renamed.map_err(|error| SweepError::failed("writing", path, error))
}
