//! The ledger: published figures and claims, each recomputed with the models and judged.
//!
//! A file in `ledger/*.toml` holds *measurements* (a drive, its state, a host, fio's options) and *rows* (a published
//! figure, the metric over measurements that gives the model's figure, and how the two are compared). It also lists
//! rows that are not reproduced, with the reason, and pending rows. `docs/ledger.md` explains how to write a row.
//! [`reproduce()`] runs the ledger.

mod act;
pub mod against_sheet;
mod class;
pub mod expression;
pub mod figure;
mod judge;
mod loss;
mod measure;
pub mod published;
pub mod qos;
mod read;
mod reproduce;
mod rows;
mod run;
mod source;
pub mod support;

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use model::host::Filesystem;
use model::media::Precondition;

use catalogue::Change;
use expression::Expression;
use text::problem::{Place, Problems};

pub use against_sheet::AgainstSheet;
pub use class::{Class, Errors};
pub use judge::{Judgement, RowVerdict, Tolerance, judge, judge_spread};
pub(crate) use measure::largest_block;
pub use read::file;
pub(crate) use reproduce::{Memory, reproduce_with};
pub use reproduce::{Model, Reproduction, RowResult, Selection, Summary, reproduce};
pub use rows::rows_named;
pub use source::{COLLECTIONS, Collection, SOURCES, is_collected, is_source, number, source_of};

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../ledger");

/// Default number of random seeds of a measurement: enough for an interval.
pub const SEEDS: u64 = 3;

/// A ledger file that has been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerFile {
    /// Path of the file, as messages name it.
    pub origin: String,
    /// Names that metrics use for drives of the catalogue.
    pub drives: Vec<(String, String)>,
    /// Measurements of the file.
    pub measurements: Vec<LedgerMeasurement>,
    /// Rows of the file.
    pub rows: Vec<LedgerRow>,
    /// Row ids that cannot be reproduced, with the reason.
    pub not_reproduced: Vec<(String, String)>,
    /// Ids of rows that are not yet done.
    pub pending: Vec<String>,
    /// Rows of the collections that may set a parameter (decision 0023).
    pub may_set: Vec<String>,
}

/// A measurement. It is run once for each seed and point of its sweep, however many rows need it.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerMeasurement {
    /// Name of the measurement in metrics.
    pub name: String,
    /// Name of a drive of the catalogue.
    pub drive: String,
    /// Set if the drive only represents something else, such as seven drives, none of which is the limit. Rows
    /// of this measurement are not evidence for the drive's own model.
    pub stands_for: Option<String>,
    /// Changed figures of the drive.
    pub set: Vec<Change>,
    /// State of the drive at the start.
    pub state: Precondition,
    /// Name of a host of the catalogue.
    pub host: String,
    /// Changed figures of the host.
    pub host_set: Vec<Change>,
    /// File system of the measurement's files; `None` if the jobs use the drive itself.
    pub filesystem: Option<Filesystem>,
    /// Work of the measurement.
    pub work: Work,
    /// I/Os at each point, if fio's options do not bound them. `None`: as many as the metrics need.
    pub ios: Option<u64>,
    /// Number of random seeds; they are 1 to this number.
    pub seeds: u64,
}

/// Work of a measurement.
///
/// To add a kind: a variant here, its key in `read.rs`, its points in `measure.rs`.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// fio's options, as on its command line.
    Fio {
        /// Options of the job, such as `--rw=randread`.
        options: Vec<String>,
        /// Options of a preceding job that runs to its end and is not counted; empty if there is none.
        before: Vec<String>,
        /// Options of further threads that run at the same time and are not counted; empty if there are none.
        beside: Vec<String>,
        /// An option and its values, with one run for each value.
        sweep: Option<OptionSweep>,
        /// Maximum number of threads over which the depth is spread as evenly as possible.
        spread: Option<u32>,
    },
    /// Aerospike's certification test.
    Act(ActRun),
}

/// Parameters of an ACT run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ActRun {
    /// Version of the test: 3 (as of 2017) or 6.
    pub version: u32,
    /// Load as a multiple of 1x; `None` searches for the score.
    pub load: Option<u32>,
    /// Alternatively, searches for the load at which this percentage of reads takes 1 ms or more.
    pub over_1ms_percent: Option<f64>,
    /// Length of a run after its warm-up, in seconds; the warm-up is a third of it.
    pub seconds: u32,
    /// Whether latency alone is judged, as in version 3.0.
    pub latency_only: bool,
}

/// One fio option at several values.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionSweep {
    /// The option, such as `iodepth`.
    pub option: String,
    /// Values as written, and as numbers (`4k` is 4096).
    pub points: Vec<(String, f64)>,
}

/// Role of a row as evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A parameter of the model was set from the row.
    Fitted,
    /// No parameter was set from the row.
    Predicted,
    /// The row needs no run: its metric uses the catalogue's own figures, or arithmetic on them.
    Catalogue,
}

impl Evidence {
    /// Returns the name of the kind of evidence.
    pub const fn name(self) -> &'static str {
        match self {
            Evidence::Fitted => "fitted",
            Evidence::Predicted => "predicted",
            Evidence::Catalogue => "catalogue",
        }
    }
}

/// A published figure or claim.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerRow {
    /// Id, such as `S0-073`.
    pub id: String,
    /// Subject: drive and quantity.
    pub what: String,
    /// Conditions of the test.
    pub conditions: String,
    /// Published value.
    pub published: PublishedValue,
    /// Unit, as in `figures.csv`.
    pub unit: String,
    /// Metric that gives the model's figure, as written.
    pub metric: String,
    /// The parsed metric.
    pub expression: Expression,
    /// How the model's figure and the published value are compared.
    pub judgement: Judgement,
    /// Role of the row as evidence.
    pub evidence: Evidence,
    /// Figures of drive or host files that were set from this row.
    pub fixes: Vec<String>,
    /// A remark, such as the reason why the model misses.
    pub note: Option<String>,
    /// Place in the file.
    pub place: Place,
}

/// A published value.
#[derive(Clone, Debug, PartialEq)]
pub enum PublishedValue {
    /// A single number.
    Number(f64),
    /// A range of numbers.
    Range(f64, f64),
    /// Text, if the row is a claim.
    Words(String),
}

/// Returns all files of the built-in ledger, by name.
///
/// # Errors
/// All problems of all files (a test ensures that there are none).
pub fn built_in() -> Result<Vec<LedgerFile>, Problems> {
    let mut paths: Vec<&Path> = BUILT_IN.files().map(include_dir::File::path).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    together(paths.into_iter().map(|path| {
        let origin = format!("ledger/{}", path.display());
        let text = BUILT_IN
            .get_file(path)
            .and_then(include_dir::File::contents_utf8);
        match text {
            Some(text) => file(&origin, text),
            None => Err(Problems::whole(&*origin, "not UTF-8")),
        }
    }))
}

/// Reads ledger files from disk, as one ledger.
///
/// # Errors
/// All problems of all files.
pub fn from_disk(paths: &[PathBuf]) -> Result<Vec<LedgerFile>, Problems> {
    together(paths.iter().map(|path| {
        let origin = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => file(&origin, &text),
            Err(error) => Err(Problems::whole(
                &*origin,
                format!("cannot be read: {error}"),
            )),
        }
    }))
}

/// Combines files into one ledger. No row may occur twice, and none may set a parameter without permission.
fn together(
    read: impl Iterator<Item = Result<LedgerFile, Problems>>,
) -> Result<Vec<LedgerFile>, Problems> {
    let mut problems = Problems::default();
    let mut files = Vec::new();
    for one in read {
        match one {
            Ok(file) => files.push(file),
            Err(found) => problems.0.extend(found.0),
        }
    }
    rows::no_row_twice(&files, &mut problems);
    rows::none_set_that_may_not(&files, &mut problems);
    problems.or(files)
}

/// Returns a ledger's text with a table of these rows: `id | published | unit | evidence | metric`.
#[cfg(test)]
fn table_of_rows(before: &str, rows: impl IntoIterator<Item = String>) -> String {
    let mut text = format!(
        "{before}[rows]\ntable = '''\nid | published | unit | evidence | metric | what | conditions\n"
    );
    for row in rows {
        text.push_str(&format!("{row} | w | c\n"));
    }
    text + "'''\n"
}
