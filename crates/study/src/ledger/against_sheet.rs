//! Comparison of the models with a formula over three numbers of a maker's data sheet. For each direction, the numbers
//! are the latency at QD1, the random IOPS and the sequential bandwidth; the formula is
//! `x = min(depth / (L + (bs - 4 KiB) / W), M, W / bs)`. By Little's law the latency is then `depth / x`. A data sheet
//! does not describe the distribution of latencies, so this value is also used for percentiles.
//!
//! Compared are predicted rows that are judged by a number and whose runs have one kind of I/O without pauses or
//! flushes, on drives whose files have the three numbers (`[ratings]`). No part of the formula is set from any row.
//! Not compared: the host, which a data sheet does not describe, and mixes, for which no such formula is established.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::class::percentile;
use super::expression::{ExpressionError, Value};
use super::figure::{FigureDirection, FigureQuantity, RunFigure, Statistic};
use super::{
    Evidence, LedgerFile, LedgerMeasurement, LedgerRow, PublishedValue, Reproduction, RowResult,
    Work, measure,
};
use catalogue::{DriveSheet, RatedQuantity};
use text::problem::Problems;
use workload::job::{BlockSizes, Job, Mix, SyncMode};

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
    /// Errors by kind, in the order of [`MetricKind::ALL`].
    pub kinds: [KindErrors; 4],
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
        let mut sheets: BTreeMap<&str, DriveSheet> = BTreeMap::new();
        for measurement in files.iter().flat_map(|file| &file.measurements) {
            if !sheets.contains_key(&*measurement.drive) {
                let sheet = catalogue::drive(&measurement.drive)?;
                sheets.insert(&measurement.drive, sheet);
            }
        }
        let mut ratios: [Vec<(f64, f64)>; 4] = Default::default();
        let mut left_out = BTreeMap::new();
        for result in &reproduction.results {
            let judged =
                result.row.evidence == Evidence::Predicted && result.row.judgement.has_error();
            let (PublishedValue::Number(published), true) = (&result.row.published, judged) else {
                continue;
            };
            match compared(files, &sheets, result) {
                Ok((kind, model, sheet)) => {
                    ratios[kind as usize].push((model / published, sheet / published));
                }
                Err(why) => *left_out.entry(why.0).or_default() += 1,
            }
        }
        let kinds = ratios.map(|ratios| {
            let (models, of_sheets): (Vec<f64>, Vec<f64>) = ratios.into_iter().unzip();
            KindErrors {
                rows: models.len(),
                model: ErrorSummary::from_ratios(&models),
                sheet: ErrorSummary::from_ratios(&of_sheets),
            }
        });
        Ok(AgainstSheet { kinds, left_out })
    }

    /// Returns the errors rounded to a few digits, so that a file of them changes only when the errors do.
    pub(super) fn rounded(mut self) -> AgainstSheet {
        for compared in &mut self.kinds {
            compared.model = compared.model.rounded();
            compared.sheet = compared.sheet.rounded();
        }
        self
    }
}

/// Returns a row's kind, the model's figure and the formula's figure.
fn compared(
    files: &[LedgerFile],
    sheets: &BTreeMap<&str, DriveSheet>,
    result: &RowResult,
) -> Result<(MetricKind, f64, f64), ExpressionError> {
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
    let look_up = |owner: &str, name: &str| {
        let figure = RunFigure::named(name)?;
        let found = file.measurements.iter().find(|it| it.name == owner);
        let measurement = found.ok_or_else(|| no("the formula has no such figure"))?;
        let sheet = sheets.get(&*measurement.drive);
        of_measurement(measurement, sheet.ok_or_else(|| no(NO_SHEET))?, figure)
    };
    let sheet = row.expression.value(&look_up)?.number()?;
    Ok((kind, model.value, sheet))
}

const NO_SHEET: &str = "the drive's file has no latency, IOPS and bandwidth of a data sheet";

fn no(why: &str) -> ExpressionError {
    ExpressionError(why.to_owned())
}

/// Returns the formula's figure of a measurement: a number, or a series along its sweep.
fn of_measurement(
    measurement: &LedgerMeasurement,
    sheet: &DriveSheet,
    figure: RunFigure,
) -> Result<Value, ExpressionError> {
    if measurement.stands_for.is_some() || matches!(measurement.work, Work::Act(_)) {
        return Err(no("not one kind of I/O on one drive"));
    }
    let points =
        measure::jobs_of_points(measurement).map_err(|found| ExpressionError(found.to_string()))?;
    let skipped = measure::uncounted(measurement);
    let values = points.iter().map(|(x, jobs)| {
        Ok((
            *x,
            of_jobs(&jobs[skipped.min(jobs.len())..], sheet, figure)?,
        ))
    });
    let values: Vec<(Option<f64>, f64)> = values.collect::<Result<_, ExpressionError>>()?;
    Ok(match values[..] {
        [(None, value)] => Value::Number(value),
        _ => Value::Series(
            values
                .into_iter()
                .map(|(x, value)| (x.unwrap_or_default(), value))
                .collect(),
        ),
    })
}

/// Returns a job's direction and block size if the formula applies to it.
fn plain(job: &Job) -> Option<(Mix, u32)> {
    let sizes = match job.mix {
        Mix::Read => &job.block_sizes[0],
        Mix::Write => &job.block_sizes[1],
        _ => return None,
    };
    let BlockSizes::Fixed(bytes) = *sizes else {
        return None;
    };
    let paced = job.rate.iter().any(Option::is_some) || job.think.is_some();
    let synced = job.fsync > 0 || job.fdatasync > 0 || job.sync != SyncMode::None;
    let other = job.records.is_some() || job.iolog.is_some() || !job.direct;
    let whole = (4096..).contains(&bytes);
    (!paced && !synced && !other && whole).then_some((job.mix, bytes))
}

/// Returns the formula's figure of jobs that run together.
fn of_jobs(jobs: &[Job], sheet: &DriveSheet, figure: RunFigure) -> Result<f64, ExpressionError> {
    let kinds: Option<Vec<(Mix, u32)>> = jobs.iter().map(plain).collect();
    let kind = kinds.and_then(|kinds| {
        let first = *kinds.first()?;
        kinds.iter().all(|kind| *kind == first).then_some(first)
    });
    let (mix, bytes) = kind.ok_or_else(|| no("not one kind of I/O on one drive"))?;
    let numbers = SheetNumbers::from_sheet(sheet, mix).ok_or_else(|| no(NO_SHEET))?;
    let depth: u32 = jobs
        .iter()
        .map(|job| {
            job.numjobs
                * if job.engine.asynchronous() {
                    job.iodepth
                } else {
                    1
                }
        })
        .sum();
    let asked = if mix == Mix::Read {
        FigureDirection::Read
    } else {
        FigureDirection::Write
    };
    let rate = numbers.rate(depth.into(), bytes.into());
    match figure {
        RunFigure::Of(of, what) if of == asked || of == FigureDirection::Total => match what {
            FigureQuantity::Iops => Ok(rate),
            FigureQuantity::MbPerSecond => Ok(rate * f64::from(bytes) / 1e6),
            FigureQuantity::MibPerSecond => Ok(rate * f64::from(bytes) / 1_048_576.0),
            FigureQuantity::Latency(..) => Ok(f64::from(depth) / rate * 1e6),
            _ => Err(no("the formula has no such figure")),
        },
        _ => Err(no("the formula has no such figure")),
    }
}

/// Three numbers of a data sheet, for one direction.
#[derive(Clone, Copy, PartialEq, Debug)]
struct SheetNumbers {
    /// Latency of a 4 KiB I/O at QD1, in seconds.
    latency: f64,
    /// Maximum random IOPS.
    most: f64,
    /// Sequential bandwidth in bytes per second.
    width: f64,
}

impl SheetNumbers {
    fn from_sheet(sheet: &DriveSheet, mix: Mix) -> Option<SheetNumbers> {
        let ratings = sheet.ratings.as_ref()?;
        let (latency, at_one, most, width) = match mix {
            Mix::Read => (
                RatedQuantity::ReadLatency,
                RatedQuantity::ReadsAtOne,
                RatedQuantity::RandomRead,
                RatedQuantity::SequentialRead,
            ),
            _ => (
                RatedQuantity::WriteLatency,
                RatedQuantity::WritesAtOne,
                RatedQuantity::RandomWrite,
                RatedQuantity::SequentialWrite,
            ),
        };
        let at_one = ratings.value(at_one).map(|rate| 1.0 / rate);
        Some(SheetNumbers {
            latency: ratings.value(latency).or(at_one)?,
            most: ratings.value(most)?,
            width: ratings.value(width)?,
        })
    }

    /// Returns IOPS for I/Os of `bytes` bytes at queue depth `depth`.
    fn rate(self, depth: f64, bytes: f64) -> f64 {
        let alone = self.latency + (bytes - 4096.0) / self.width;
        (depth / alone).min(self.most).min(self.width / bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Model, RowVerdict, Selection, file, reproduce};

    #[test]
    fn the_formula_is_bound_by_latency_then_iops_or_bandwidth() {
        let numbers = SheetNumbers {
            latency: 100e-6,
            most: 200e3,
            width: 1e9,
        };
        let near =
            |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found}");
        near(numbers.rate(1.0, 4096.0), 10e3);
        near(numbers.rate(64.0, 4096.0), 200e3);
        near(numbers.rate(64.0, 131_072.0), 1e9 / 131_072.0);
        near(numbers.rate(1.0, 131_072.0), 1.0 / (100e-6 + 126_976e-9));
    }

    /// Two rows of one run of a P4510 (rated 465 thousand reads, 77 us), one row of a mix, one of a drive without
    /// ratings.
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

[measure.unknown]
drive = "ram-disk"
fio = ["--ioengine=libaio", "--rw=randread", "--bs=4k"]
"#;

    fn row(id: u32, metric: &str, published: f64, evidence: &str) -> String {
        format!(
            "[[row]]\nid = \"S0-{id:03}\"\nwhat = \"w\"\nconditions = \"c\"\npublished = {published:?}\n\
             unit = \"x\"\nmetric = \"{metric}\"\nevidence = \"{evidence}\"\n"
        )
    }

    /// Returns the model's figures of the rows, as if they had run.
    fn ran(rows: &[(&str, f64, f64)]) -> (Vec<LedgerFile>, Reproduction) {
        let mut text = ROWS.to_owned();
        for (index, (metric, published, _)) in (1..).zip(rows) {
            text.push_str(&row(index, metric, *published, "predicted"));
        }
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
            ("unknown.read.iops", 1e3, 1e3),
            ("deep.watts", 10.0, 10.0),
        ];
        let (files, reproduction) = ran(&rows);
        let found = AgainstSheet::from_reproduction(&files, &reproduction)
            .expect("the drives load")
            .rounded();
        assert_eq!(found.kinds.map(|kind| kind.rows), [1, 1, 1, 1]);
        let [throughput, middle, tail, deep] = found.kinds;
        assert_eq!(
            (throughput.model.median, throughput.sheet.median),
            (0.1, 0.1625)
        );
        // 128 in flight at 465 thousand IOPS.
        assert_eq!((middle.model.median, middle.sheet.median), (0.2, 0.001));
        assert_eq!((tail.model.median, tail.sheet.median), (0.3506, 0.5));
        assert_eq!((deep.model.factor, deep.sheet.factor), (2.0, 1.998));
        let left_out: Vec<(&str, usize)> = found
            .left_out
            .iter()
            .map(|(why, rows)| (&**why, *rows))
            .collect();
        assert_eq!(
            left_out,
            [
                ("not one kind of I/O on one drive", 1),
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
        assert_eq!(found.kinds[1].rows, 1);
        assert!(found.kinds[1].model.median < 0.5, "{found:?}");
    }
}
