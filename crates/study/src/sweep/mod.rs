//! Sweeps: thousands of scenarios from one file into one table.
//!
//! A [`Sweep`] is read from a TOML file (`docs/sweep.md`): a grid, a list or a Latin hypercube over drives, changed
//! figures, hosts, states, seeds and fio's options. [`run`] runs it on several threads into [`Parts`], which survive
//! any interruption of the program and become one Parquet file. Another scheduler can do the same: [`Sweep::part`]
//! returns the scenarios that belong together, [`Sweep::row`] runs one, [`Parts::keep`] stores the rows of a part, and
//! [`Parts::finish`] makes the file.
//!
//! Not supported: traces, Aerospike's test, and sums over seeds (readers of the table compute them).

mod cast;
mod file;
mod parts;
mod row;
mod sample;
mod space;
mod table;
mod work;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use lab::{Lab, ProgressCallback, Scenario};
use rayon::prelude::*;
use text::problem::Problems;
use text::toml::SourceFile;

pub use parts::{PART, Parts, SweepError, problems};
pub use table::{Cell, Column, ColumnType, SweepRow, read as read_table};
pub use work::{Watch, run};

use cast::ScenarioBuilder;
use row::VariedColumn;
use space::{Space, SweepSetting};

/// Maximum number of scenarios whose drives and jobs are checked before any runs. For larger sweeps, this number of
/// scenarios, spread over all, is checked.
const LOOKED_AT: usize = 10_000;

/// A sweep that has been read and checked.
#[derive(Debug)]
pub struct Sweep {
    space: Space,
    count: usize,
    warm_seed: Option<u64>,
    cast: ScenarioBuilder,
    varied: Vec<VariedColumn>,
    columns: Vec<Column>,
    definition: String,
    warnings: Vec<String>,
}

impl Sweep {
    /// Reads the sweep in this file; paths in it are relative to its folder.
    ///
    /// # Errors
    /// All problems of the file, and of the drives, hosts and jobs that it names. Up to 10,000 scenarios, all are
    /// checked. For more scenarios, a selection is checked in which each value of a list occurs at least once.
    pub fn read(path: &Path) -> Result<Sweep, Problems> {
        let origin = path.display().to_string();
        let text = text::bounded::text(path, text::bounded::WRITTEN)
            .map_err(|error| Problems::whole(&origin, format!("cannot be read: {error}")))?;
        Sweep::of_text(&origin, &text, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads the sweep in this text, which messages call `origin`; paths in it are relative to `folder`.
    ///
    /// # Errors
    /// As [`Sweep::read`].
    pub fn of_text(origin: &str, text: &str, folder: &Path) -> Result<Sweep, Problems> {
        let file = SourceFile {
            origin: origin.to_owned(),
            text: Arc::from(text),
        };
        let written = file::read(&file)?;
        let varied = row::varied(&written.space);
        let mut sweep = Sweep {
            count: written.space.count().unwrap_or(0),
            columns: row::columns(&varied),
            varied,
            space: written.space,
            warm_seed: written.warm_seed,
            cast: ScenarioBuilder::new(file, folder.to_owned(), written.warm_seed),
            definition: String::new(),
            warnings: Vec::new(),
        };
        sweep.look()?;
        sweep.definition = sweep.defined(text, folder);
        Ok(sweep)
    }

    /// Checks drives and jobs, and collects warnings.
    fn look(&mut self) -> Result<(), Problems> {
        let (mut machines, mut jobs) = (Vec::new(), Vec::new());
        let (mut machines_known, mut jobs_known) = (BTreeSet::new(), BTreeSet::new());
        for index in self.space.probes(LOOKED_AT) {
            let picked = self.space.scenario_settings(index);
            let words = |of_jobs: bool| -> Vec<(SweepSetting, String)> {
                let values = picked.values.iter();
                let own = values.filter(|(what, _)| {
                    matches!(what, SweepSetting::JobFile | SweepSetting::Job(_)) == of_jobs
                        && **what != SweepSetting::Seed
                });
                own.map(|(what, it)| ((*what).clone(), it.words.clone()))
                    .collect()
            };
            if machines_known.insert(words(false)) {
                machines.push(index);
            }
            if jobs_known.insert(words(true)) {
                jobs.push(index);
            }
        }
        let at = |index: &usize| self.space.scenario_settings(*index);
        let machines = machines
            .par_iter()
            .map(|index| self.cast.machine(&at(index)).err());
        let mut found: Vec<Problems> = machines.flatten().collect();
        let sets: Vec<_> = jobs
            .par_iter()
            .map(|index| self.cast.jobs(&at(index), 1))
            .collect();
        let mut warnings = Vec::new();
        for set in sets {
            match set {
                Ok(set) => warnings.extend(set.warnings),
                Err(problems) => found.push(problems),
            }
        }
        let mut known = BTreeSet::new();
        let mut problems: Vec<_> = found.into_iter().flat_map(|problems| problems.0).collect();
        problems.retain(|problem| known.insert(problem.to_string()));
        warnings.retain(|warning| known.insert(warning.clone()));
        self.warnings = warnings;
        Problems(problems).or(())
    }

    /// Returns everything that the rows depend on, as text: version, files, drives and hosts.
    fn defined(&self, text: &str, folder: &Path) -> String {
        let mut said = format!("{}\n\n{text}\n", version::PROGRAM);
        for (path, bytes) in self.cast.job_files() {
            let path = path.strip_prefix(folder).unwrap_or(&path);
            let text = String::from_utf8_lossy(&bytes);
            said.push_str(&format!("\njob file {}:\n{text}\n", path.display()));
        }
        let mut known = BTreeSet::new();
        for index in self.space.probes(LOOKED_AT) {
            let picked = self.space.scenario_settings(index);
            let words = |what: &SweepSetting| picked.value(what).map_or("", |it| it.words.as_str());
            let (drive, host) = (words(&SweepSetting::Drive), words(&SweepSetting::Host));
            if known.insert((drive.to_owned(), host.to_owned()))
                && let Ok(machine) = self.cast.machine(&picked)
            {
                // Serialising plain data into memory does not fail.
                let json = serde_json::to_string(&machine).unwrap_or_default();
                said.push_str(&format!("\n{drive} in {host}: {json}\n"));
            }
        }
        said
    }

    /// Returns the number of scenarios.
    pub fn scenarios(&self) -> usize {
        self.count
    }

    /// Returns warnings for the user on how jobs were read.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns name and number of values for each axis that has several; points first.
    pub fn axes(&self) -> Vec<(String, usize)> {
        let points = Some(("point".to_owned(), self.space.points().len()));
        let axes = self.space.axes();
        let axes = axes.map(|axis| (axis.what.name(), axis.choices.len()));
        let points = points.filter(|(_, count)| *count > 0);
        points
            .into_iter()
            .chain(axes.filter(|(_, count)| *count > 1))
            .collect()
    }

    /// Returns everything that the rows depend on, byte for byte. Parts and results of two sweeps that differ in it
    /// must not be mixed.
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// Returns the columns of the table.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the number of parts.
    pub fn parts(&self) -> usize {
        self.count.div_ceil(PART)
    }

    /// Returns the scenarios of a part.
    pub fn part(&self, part: usize) -> Range<usize> {
        let start = (part * PART).min(self.count);
        start..(start + PART).min(self.count)
    }

    /// Returns the initial state of the part's first scenario, as numbers. Parts with equal numbers are best run by
    /// one process, which then prepares the drive's state once.
    pub fn beginning(&self, part: usize) -> (usize, usize) {
        self.space.beginning(self.part(part).start)
    }

    /// Returns the command that repeats a scenario, in the folder of the sweep's file.
    pub fn command(&self, index: usize) -> String {
        row::command(&self.space.scenario_settings(index), self.warm_seed)
    }

    /// Returns a scenario.
    ///
    /// # Errors
    /// All problems of its drive, host and jobs.
    pub fn scenario(&self, index: usize) -> Result<Scenario, Problems> {
        self.cast.scenario(&self.space.scenario_settings(index))
    }

    /// Runs a scenario and returns its row, or `None` if it was stopped. Problems are reported in the row's column
    /// `problem`.
    pub fn row(&self, index: usize, lab: &Lab, go_on: ProgressCallback<'_>) -> Option<SweepRow> {
        let picked = self.space.scenario_settings(index);
        let outcome =
            self.cast
                .scenario(&picked)
                .and_then(|scenario| match self.has_neighbour(index) {
                    true => lab.run_among(&scenario, go_on),
                    false => lab.run_until(&scenario, go_on),
                });
        if outcome.as_ref().is_ok_and(|outcome| outcome.stopped) {
            return None;
        }
        Some(row::row(
            index,
            &picked,
            self.warm_seed,
            &self.varied,
            &outcome,
        ))
    }

    /// Checks whether the previous or the next scenario begins in the same state.
    fn has_neighbour(&self, index: usize) -> bool {
        let own = self.space.beginning(index);
        let same = |other: usize| other < self.count && self.space.beginning(other) == own;
        index.checked_sub(1).is_some_and(same) || same(index + 1)
    }
}
