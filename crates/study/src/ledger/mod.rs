//! The ledger: published figures and claims, each computed anew from the models and judged.
//!
//! `ledger/*.toml` holds *measurements* (a drive, its state, a host, fio's options), *rows* (a published figure, the
//! metric over measurements that is the model's answer, and how the two are compared), rows that are not reproduced, each
//! list with its reason, and rows not yet done. How to write a row: `docs/ledger.md`. [`reproduce()`] runs it.

mod act;
pub mod against_sheet;
mod class;
pub mod expression;
pub mod figure;
mod judge;
mod loss;
mod measure;
pub mod published;
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
pub use judge::{Judgement, Tolerance, Verdict, judge, judge_spread};
pub(crate) use measure::largest_block;
pub use read::file;
pub(crate) use reproduce::{Memory, reproduce_with};
pub use reproduce::{Model, Reproduction, RowResult, Selection, Summary, reproduce};
pub use rows::rows_named;
pub use source::{COLLECTIONS, Collection, SOURCES, is_collected, is_source, number, source_of};

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../ledger");

/// Random seeds of a measurement unless it says otherwise: enough for an interval.
pub const SEEDS: u64 = 3;

/// One file of the ledger, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerFile {
    /// Its path, as messages name it.
    pub origin: String,
    /// Names that metrics use for drives of the catalogue.
    pub drives: Vec<(String, String)>,
    /// What is run.
    pub measurements: Vec<Measurement>,
    /// What is compared.
    pub rows: Vec<Row>,
    /// Row ids that cannot be reproduced, with the reason.
    pub not_reproduced: Vec<(String, String)>,
    /// Row ids that nobody has looked at yet.
    pub pending: Vec<String>,
    /// Rows of the collections that may set a parameter (decisions 0059 and 0068).
    pub may_set: Vec<String>,
}

/// Something that is run, once for each seed and point of its sweep, however many rows need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// What metrics call it.
    pub name: String,
    /// Name of a drive of the catalogue.
    pub drive: String,
    /// What that drive only stands for, such as seven drives of which none is the limit: rows of it say nothing of the
    /// drive's own model.
    pub stands_for: Option<String>,
    /// Figures of the drive that are changed for it.
    pub set: Vec<Change>,
    /// The drive's state at the start.
    pub state: Precondition,
    /// Name of a host of the catalogue.
    pub host: String,
    /// Figures of the host that are changed for it.
    pub host_set: Vec<Change>,
    /// The file system that its files are in; `None`: it has the drive itself.
    pub filesystem: Option<Filesystem>,
    /// What is run.
    pub work: Work,
    /// I/Os at each point, where fio's options do not say; as many as the metrics need if `None`.
    pub ios: Option<u64>,
    /// Random seeds: 1 to this.
    pub seeds: u64,
}

/// What a measurement runs.
///
/// To add a kind: a variant here, its key in `read.rs`, its points in `measure.rs`.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// fio's options, as on its command line.
    Fio {
        /// Such as `--rw=randread`.
        options: Vec<String>,
        /// Options of a job that runs to its end before, and does not count; none if empty.
        before: Vec<String>,
        /// An option and its values, one run for each.
        sweep: Option<Sweep>,
        /// Spread the depth over up to this many threads, as evenly as it goes.
        spread: Option<u32>,
    },
    /// Aerospike's certification test.
    Act(Act),
}

/// Which of Aerospike's tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Act {
    /// Version 3 (as of 2017) or 6.
    pub version: u32,
    /// Multiples of 1x; the score is looked for if `None`.
    pub load: Option<u32>,
    /// Or the load at which this many percent of the reads take 1 ms or more.
    pub over_1ms_percent: Option<f64>,
    /// Length of a run after its warm-up, which is a third of that.
    pub seconds: u32,
    /// Judge latency alone, as version 3.0 did.
    pub latency_only: bool,
}

/// One option of fio at several values.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The option, such as `iodepth`.
    pub option: String,
    /// Its values as written, and as numbers (`4k` is 4096).
    pub points: Vec<(String, f64)>,
}

/// Where a model's figure stands as evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A parameter of the model was set from the row.
    Fitted,
    /// Nothing was set from it.
    Predicted,
    /// No run is behind it: the catalogue's own figures, or arithmetic on them.
    Catalogue,
}

impl Evidence {
    /// The word for it.
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
pub struct Row {
    /// Such as `S0-073`.
    pub id: String,
    /// What it is about: drive and quantity.
    pub what: String,
    /// Conditions of the test.
    pub conditions: String,
    /// As published.
    pub published: Published,
    /// Its unit, as in `figures.csv`.
    pub unit: String,
    /// The model's answer, as written.
    pub metric: String,
    /// The same, parsed.
    pub expression: Expression,
    /// How the two are compared.
    pub judgement: Judgement,
    /// Whether it is evidence.
    pub evidence: Evidence,
    /// Figures of drive or host files that were set from it.
    pub fixes: Vec<String>,
    /// A remark, such as why the model misses.
    pub note: Option<String>,
    /// Where it is in its file.
    pub place: Place,
}

/// A published value.
#[derive(Clone, Debug, PartialEq)]
pub enum Published {
    /// A number.
    Number(f64),
    /// From one number to another.
    Range(f64, f64),
    /// Words, where the figure is a claim.
    Words(String),
}

/// All files of the built-in ledger, by name.
///
/// # Errors
/// Everything wrong with all of them (a test sees to it that there is nothing).
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

/// Ledger files on disk, as one ledger.
///
/// # Errors
/// Everything wrong with all of them.
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

/// Files as one ledger, in which no row stands twice and none sets a parameter that may not.
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
