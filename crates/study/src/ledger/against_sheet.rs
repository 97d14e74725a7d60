//! Comparison of the models with a formula over three numbers of a maker's data sheet. For each direction, the numbers
//! are the latency at QD1, the random IOPS and the sequential bandwidth (`formula.rs`). A data sheet does not describe
//! the distribution of latencies, so the formula's latency is also used for percentiles.
//!
//! Compared are predicted rows that are judged by a number, on drives whose files have the three numbers (`[ratings]`).
//! Their runs have one kind of I/O, or rate-limited reads and writes together, without pauses or flushes. Rows are
//! grouped by load, because models and formula have different errors under a write load. No part of the formula is set
//! from any row. Not compared: the host, which a data sheet does not describe, and mixes without a rate.

mod formula;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::class::percentile;
use super::expression::{ExpressionError, Value};
use super::figure::{FigureQuantity, RunFigure, Statistic};
use super::{
    Evidence, LedgerFile, LedgerMeasurement, LedgerRow, Model, PublishedValue, Reproduction,
    RowResult, RowVerdict, Work, measure,
};
use catalogue::DriveSheet;
use formula::NO_SHEET;
use text::problem::Problems;

/// Kind of a row's figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// I/Os or bytes per second.
    Throughput,
    /// Mean and median latency.
    Middle,
    /// Percentiles above the median, up to 99.9.
    Tail,
    /// Percentiles at and above 99.99.
    DeepTail,
}

impl MetricKind {
    /// All kinds, in the order of tables.
    pub const ALL: [MetricKind; 4] = [
        MetricKind::Throughput,
        MetricKind::Middle,
        MetricKind::Tail,
        MetricKind::DeepTail,
    ];

    /// Returns the name of the kind for tables.
    pub const fn name(self) -> &'static str {
        match self {
            MetricKind::Throughput => "throughput",
            MetricKind::Middle => "mean and median latency",
            MetricKind::Tail => "p95 to p99.9",
            MetricKind::DeepTail => "p99.99 and beyond",
        }
    }

    /// Returns the kind of a figure; `None` if the formula has no value for it.
    fn of_figure(figure: RunFigure) -> Option<MetricKind> {
        match figure {
            RunFigure::Of(
                _,
                FigureQuantity::Iops | FigureQuantity::MbPerSecond | FigureQuantity::MibPerSecond,
            ) => Some(MetricKind::Throughput),
            RunFigure::Of(_, FigureQuantity::Latency(_, Statistic::Mean)) => {
                Some(MetricKind::Middle)
            }
            RunFigure::Of(_, FigureQuantity::Latency(_, Statistic::Percentile(percent))) => {
                Some(match percent {
                    _ if figure.is_deep_tail() => MetricKind::DeepTail,
                    above if above > 50.0 => MetricKind::Tail,
                    _ => MetricKind::Middle,
                })
            }
            _ => None,
        }
    }

    /// Returns the kind of a row: that of its deepest figure.
    fn from_row(row: &LedgerRow) -> Option<MetricKind> {
        let mut kinds = Vec::new();
        row.expression.figures(&mut |_, name| {
            kinds.push(RunFigure::named(name).ok().and_then(MetricKind::of_figure));
        });
        let kinds: Option<Vec<MetricKind>> = kinds.into_iter().collect();
        kinds?.into_iter().max_by_key(|kind| *kind as u8)
    }
}

/// Load of a row's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadKind {
    /// Nothing but reads.
    ReadsAlone,
    /// Nothing but writes.
    WritesAlone,
    /// Reads while the drive is also written.
    ReadsUnderLoad,
    /// Writes while other jobs also use the drive.
    WritesUnderLoad,
}

impl LoadKind {
    /// All kinds, in the order of tables.
    pub const ALL: [LoadKind; 4] = [
        LoadKind::ReadsAlone,
        LoadKind::WritesAlone,
        LoadKind::ReadsUnderLoad,
        LoadKind::WritesUnderLoad,
    ];

    /// Returns the name of the kind for tables.
    pub const fn name(self) -> &'static str {
        match self {
            LoadKind::ReadsAlone => "reads alone",
            LoadKind::WritesAlone => "writes alone",
            LoadKind::ReadsUnderLoad => "reads under a write load",
            LoadKind::WritesUnderLoad => "writes under load",
        }
    }
}

/// Errors of a set of figures.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorSummary {
    /// Median of the absolute errors, as a share of the published figure.
    pub median: f64,
    /// 90th percentile of the absolute errors.
    pub p90: f64,
    /// Median of the error factors in either direction, at least 1.
    pub factor: f64,
}

impl ErrorSummary {
    /// Computes the errors from ratios of figures to published figures.
    fn from_ratios(ratios: &[f64]) -> ErrorSummary {
        let sorted = |of: fn(&f64) -> f64| {
            let mut all: Vec<f64> = ratios.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let errors = sorted(|ratio| (ratio - 1.0).abs());
        let factors = sorted(|ratio| ratio.max(1.0 / ratio));
        let at = |all: &[f64], share| percentile(all, share).unwrap_or_default();
        ErrorSummary {
            median: at(&errors, 0.5),
            p90: at(&errors, 0.9),
            factor: at(&factors, 0.5),
        }
    }

    fn rounded(self) -> ErrorSummary {
        let rounded = |value: f64| format!("{value:.4}").parse().unwrap_or(value);
        ErrorSummary {
            median: rounded(self.median),
            p90: rounded(self.p90),
            factor: rounded(self.factor),
        }
    }
}

/// Errors of the rows of one kind.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindErrors {
    /// Number of rows.
    pub rows: usize,
    /// Errors of the models.
    pub model: ErrorSummary,
    /// Errors of the formula.
    pub sheet: ErrorSummary,
}

/// Errors of the models and of the formula, and the predicted rows that the formula does not cover.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgainstSheet {
    /// Errors by load, in the order of [`LoadKind::ALL`], and by kind of figure, in the order of [`MetricKind::ALL`].
    pub loads: [[KindErrors; 4]; 4],
    /// Predicted rows with a number that are not compared, by reason.
    pub left_out: BTreeMap<String, usize>,
}

impl AgainstSheet {
    /// Compares models and formula for a run of these files.
    ///
    /// # Errors
    /// A drive of the ledger does not load.
    pub fn from_reproduction(
        files: &[LedgerFile],
        reproduction: &Reproduction,
    ) -> Result<AgainstSheet, Problems> {
        let sheets = sheets_of(files)?;
        let mut ratios: [[Vec<(f64, f64)>; 4]; 4] = Default::default();
        let mut left_out = BTreeMap::new();
        for result in &reproduction.results {
            let judged =
                result.row.evidence == Evidence::Predicted && result.row.judgement.has_error();
            let (PublishedValue::Number(published), true) = (&result.row.published, judged) else {
                continue;
            };
            match compared(files, &sheets, result) {
                Ok(row) => {
                    let found = (row.model / published, row.sheet / published);
                    ratios[row.load as usize][row.kind as usize].push(found);
                }
                Err(why) => *left_out.entry(why.0).or_default() += 1,
            }
        }
        let errors = |ratios: Vec<(f64, f64)>| {
            let (models, of_sheets): (Vec<f64>, Vec<f64>) = ratios.into_iter().unzip();
            KindErrors {
                rows: models.len(),
                model: ErrorSummary::from_ratios(&models),
                sheet: ErrorSummary::from_ratios(&of_sheets),
            }
        };
        Ok(AgainstSheet {
            loads: ratios.map(|kinds| kinds.map(errors)),
            left_out,
        })
    }

    /// Replaces the errors of each load if all its rows are in `ran`.
    pub(super) fn update(
        &mut self,
        new: AgainstSheet,
        files: &[LedgerFile],
        ran: &BTreeSet<&str>,
    ) -> Result<(), Problems> {
        let sheets = sheets_of(files)?;
        let mut partial = [false; 4];
        for row in files.iter().flat_map(|file| &file.rows) {
            let counts = row.evidence == Evidence::Predicted && row.judgement.has_error();
            if !counts || ran.contains(&*row.id) {
                continue;
            }
            // The load does not depend on the model's figure.
            let unknown = RowResult {
                row: row.clone(),
                model: Ok(Model {
                    value: 1.0,
                    interval: None,
                    seeds: 1,
                }),
                error: None,
                verdict: RowVerdict::Holds,
            };
            if let Ok(compared) = compared(files, &sheets, &unknown) {
                partial[compared.load as usize] = true;
            }
        }
        let loads = self
            .loads
            .iter_mut()
            .zip(new.loads.into_iter().zip(partial));
        for (old, (new, partial)) in loads {
            if !partial && new.iter().any(|errors| errors.rows > 0) {
                *old = new;
            }
        }
        Ok(())
    }

    /// Returns the kinds of figures that have rows, by load.
    pub fn groups(&self) -> impl Iterator<Item = (LoadKind, MetricKind, &KindErrors)> {
        LoadKind::ALL
            .iter()
            .zip(&self.loads)
            .flat_map(|(load, kinds)| {
                let kinds = MetricKind::ALL.iter().zip(kinds);
                let used = kinds.filter(|(_, errors)| errors.rows > 0);
                used.map(|(kind, errors)| (*load, *kind, errors))
            })
    }

    /// Returns the errors rounded to a few digits, so that a file of them changes only when the errors do.
    pub(super) fn rounded(mut self) -> AgainstSheet {
        for compared in self.loads.iter_mut().flatten() {
            compared.model = compared.model.rounded();
            compared.sheet = compared.sheet.rounded();
        }
        self
    }
}

/// Returns the drives that the ledger measures, by id.
fn sheets_of(files: &[LedgerFile]) -> Result<BTreeMap<&str, DriveSheet>, Problems> {
    let mut sheets: BTreeMap<&str, DriveSheet> = BTreeMap::new();
    for measurement in files.iter().flat_map(|file| &file.measurements) {
        if !sheets.contains_key(&*measurement.drive) {
            let sheet = catalogue::drive(&measurement.drive)?;
            sheets.insert(&measurement.drive, sheet);
        }
    }
    Ok(sheets)
}

/// A row that is compared.
struct ComparedRow {
    load: LoadKind,
    kind: MetricKind,
    /// The model's figure.
    model: f64,
    /// The formula's figure.
    sheet: f64,
}

/// Returns a row with the model's figure and the formula's figure.
fn compared(
    files: &[LedgerFile],
    sheets: &BTreeMap<&str, DriveSheet>,
    result: &RowResult,
) -> Result<ComparedRow, ExpressionError> {
    let row = &result.row;
    let kind = MetricKind::from_row(row).ok_or_else(|| no("the formula has no such figure"))?;
    let model = result
        .model
        .as_ref()
        .map_err(|_| no("the model has no figure"))?;
    let mut of_row = files.iter().filter(|file| {
        let same = |one: &LedgerRow| one.id == row.id && one.metric == row.metric;
        file.rows.iter().any(same)
    });
    let file = of_row
        .next()
        .ok_or_else(|| no("the row belongs to no file"))?;
    let load = Cell::new(LoadKind::ReadsAlone);
    let look_up = |owner: &str, name: &str| {
        let figure = RunFigure::named(name)?;
        let found = file.measurements.iter().find(|it| it.name == owner);
        let measurement = found.ok_or_else(|| no("the formula has no such figure"))?;
        let sheet = sheets.get(&*measurement.drive);
        let sheet = sheet.ok_or_else(|| no(NO_SHEET))?;
        let (of_figure, value) = of_measurement(measurement, sheet, figure)?;
        load.set(load.get().max(of_figure));
        Ok(value)
    };
    let sheet = row.expression.value(&look_up)?.number()?;
    Ok(ComparedRow {
        load: load.get(),
        kind,
        model: model.value,
        sheet,
    })
}

fn no(why: &str) -> ExpressionError {
    ExpressionError(why.to_owned())
}

/// Returns the formula's figure of a measurement, a number or a series along its sweep, and the kind of its load.
fn of_measurement(
    measurement: &LedgerMeasurement,
    sheet: &DriveSheet,
    figure: RunFigure,
) -> Result<(LoadKind, Value), ExpressionError> {
    if measurement.stands_for.is_some() || matches!(measurement.work, Work::Act(_)) {
        return Err(no("not one kind of I/O on one drive"));
    }
    let points =
        measure::jobs_of_points(measurement).map_err(|found| ExpressionError(found.to_string()))?;
    let skipped = measure::uncounted(measurement);
    let mut load = LoadKind::ReadsAlone;
    let mut values = Vec::new();
    for (x, jobs) in &points {
        let counted = &jobs[skipped.min(jobs.len())..];
        let (of_point, value) = formula::of_jobs(counted, sheet, figure)?;
        load = load.max(of_point);
        values.push((*x, value));
    }
    let value = match values[..] {
        [(None, value)] => Value::Number(value),
        _ => Value::Series(
            values
                .into_iter()
                .map(|(x, value)| (x.unwrap_or_default(), value))
                .collect(),
        ),
    };
    Ok((load, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Model, RowVerdict, Selection, file, reproduce, table_of_rows};

    /// Runs of a P4510 (rated 465 thousand reads, 77 us), of a mix, of a mix with a rate, and of a drive without ratings.
    const ROWS: &str = r#"
[common]
state = "filled"
host = "xeon-2017"

[measure.deep]
drive = "p4510-1000"
fio = ["--ioengine=libaio", "--rw=randread", "--bs=4k", "--iodepth=64", "--numjobs=2"]

[measure.one]
drive = "p4510-1000"
fio = ["--ioengine=libaio", "--rw=randread", "--bs=4k"]
sweep = { iodepth = [1, 2] }

[measure.mixed]
drive = "p4510-1000"
fio = ["--ioengine=libaio", "--rw=randrw", "--bs=4k"]

[measure.probe]
drive = "p4510-1000"
fio = ["--ioengine=libaio", "--rw=randrw", "--bs=4k", "--rate_iops=5000,5000", "--runtime=1s"]
beside = ["--ioengine=libaio", "--rw=randwrite", "--bs=4k", "--rate_iops=,20000", "--runtime=1s"]

[measure.unknown]
drive = "ram-disk"
fio = ["--ioengine=libaio", "--rw=randread", "--bs=4k"]
"#;

    /// Returns the model's figures of the rows, as if they had run.
    fn ran(rows: &[(&str, f64, f64)]) -> (Vec<LedgerFile>, Reproduction) {
        let lines = (1..).zip(rows).map(|(id, (metric, published, _))| {
            format!("S0-{id:03} | {published:?} | x | predicted | {metric}")
        });
        let text = table_of_rows(ROWS, lines);
        let file = file("test.toml", &text).unwrap_or_else(|problems| panic!("{problems}"));
        let results = file
            .rows
            .iter()
            .zip(rows)
            .map(|(row, (.., value))| RowResult {
                row: row.clone(),
                model: Ok(Model {
                    value: *value,
                    interval: None,
                    seeds: 1,
                }),
                error: None,
                verdict: RowVerdict::Holds,
            });
        let reproduction = Reproduction {
            results: results.collect(),
            not_reproduced: Vec::new(),
            pending: Vec::new(),
            runs: 0,
        };
        (vec![file], reproduction)
    }

    #[test]
    fn rows_are_compared_by_kind_or_left_out_with_a_reason() {
        let rows = [
            ("deep.read.iops", 400e3, 440e3),
            ("deep.read.p50_us", 275.0, 330.0),
            ("at(one.read.p99_us, 2)", 154.0, 100.0),
            ("deep.read.p99.99_us", 550.0, 275.0),
            ("mixed.read.iops", 1e3, 1e3),
            ("probe.write.mean_us", 12.0, 9.0),
            ("unknown.read.iops", 1e3, 1e3),
            ("deep.watts", 10.0, 10.0),
        ];
        let (files, reproduction) = ran(&rows);
        let found = AgainstSheet::from_reproduction(&files, &reproduction)
            .expect("the drives load")
            .rounded();
        let rows = |load: LoadKind| found.loads[load as usize].map(|kind| kind.rows);
        assert_eq!(rows(LoadKind::ReadsAlone), [1, 1, 1, 1]);
        assert_eq!(rows(LoadKind::WritesUnderLoad), [0, 1, 0, 0]);
        let [throughput, middle, tail, deep] = found.loads[0];
        assert_eq!(
            (throughput.model.median, throughput.sheet.median),
            (0.1, 0.1625)
        );
        // 128 in flight at 465 thousand IOPS.
        assert_eq!((middle.model.median, middle.sheet.median), (0.2, 0.001));
        assert_eq!((tail.model.median, tail.sheet.median), (0.3506, 0.5));
        assert_eq!((deep.model.factor, deep.sheet.factor), (2.0, 1.998));
        // Rated 18 us at any load below the rated 70 thousand writes a second.
        let probe = found.loads[LoadKind::WritesUnderLoad as usize][1];
        assert_eq!((probe.model.median, probe.sheet.median), (0.25, 0.5));
        let left_out: Vec<(&str, usize)> = found
            .left_out
            .iter()
            .map(|(why, rows)| (&**why, *rows))
            .collect();
        assert_eq!(
            left_out,
            [
                (
                    "neither one kind of I/O nor rate-limited reads and writes",
                    1
                ),
                (NO_SHEET, 1),
                ("the formula has no such figure", 1)
            ]
        );
    }

    #[test]
    fn what_set_a_parameter_is_not_compared() {
        let (mut files, mut reproduction) = ran(&[("deep.read.iops", 400e3, 440e3)]);
        files[0].rows[0].evidence = Evidence::Fitted;
        reproduction.results[0].row.evidence = Evidence::Fitted;
        let found =
            AgainstSheet::from_reproduction(&files, &reproduction).expect("the drives load");
        assert_eq!(found, AgainstSheet::default());
    }

    #[test]
    fn a_run_of_the_ledger_can_be_compared() {
        let (files, _) = ran(&[("at(one.read.mean_us, 1)", 76.0, 0.0)]);
        let run = reproduce(&files, &Selection::default(), &lab::to_the_end).expect("it runs");
        let found = AgainstSheet::from_reproduction(&files, &run).expect("the drives load");
        let [_, middle, ..] = found.loads[LoadKind::ReadsAlone as usize];
        assert_eq!(middle.rows, 1);
        assert!(middle.model.median < 0.5, "{found:?}");
    }
}
