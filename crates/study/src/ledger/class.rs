//! Two classes of predicted rows, so that figures with thousands of samples are not mixed with figures of ten samples.
//!
//! The class follows from the metric alone, so a row cannot be moved to the class in which it looks better. Verdicts
//! do not depend on the class.

use serde::{Deserialize, Serialize};

use super::figure::RunFigure;
use super::{Evidence, LedgerRow, RowResult};

/// Class of a row's figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Throughput, means, percentiles below 99.99, and every other figure without a deep tail.
    Usual,
    /// The metric contains a percentile of 99.99 or above, a share of I/Os slower than a limit, or the slowest I/O.
    DeepTail,
}

impl Class {
    /// All classes, in the order of tables.
    pub const ALL: [Class; 2] = [Class::Usual, Class::DeepTail];

    /// Returns the class that follows from a row's metric.
    pub fn from_row(row: &LedgerRow) -> Class {
        let mut class = Class::Usual;
        row.expression.figures(&mut |_, name| {
            if RunFigure::named(name).is_ok_and(RunFigure::is_deep_tail) {
                class = Class::DeepTail;
            }
        });
        class
    }

    /// Returns the name of the class for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Usual => "throughput, mean, p99",
            Class::DeepTail => "deep tail: p99.99 and beyond, share of slow I/Os",
        }
    }
}

/// Errors of a set of predicted figures.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// Number of predicted rows that are judged by a number.
    pub rows: usize,
    /// Median of their absolute errors, as a share, without rows that have no figure.
    pub median: Option<f64>,
    /// 90th percentile of the absolute errors.
    pub p90: Option<f64>,
    /// Number of rows whose figure is within a factor of 1.5 of the published one; rows without a figure do not count.
    pub within_factor: usize,
}

/// Maximum error factor of a deep tail.
const FACTOR: f64 = 1.5;

impl Errors {
    /// Computes the errors of the predicted rows among these results.
    pub fn from_results<'a>(results: impl Iterator<Item = &'a RowResult>) -> Errors {
        let judged = results.filter(|result| {
            result.row.evidence == Evidence::Predicted && result.row.judgement.has_error()
        });
        Errors::over(judged.map(|result| result.error))
    }

    /// Computes the errors of these rows; `None` is a row without a figure.
    pub fn over(rows: impl Iterator<Item = Option<f64>>) -> Errors {
        let mut found = Errors::default();
        let mut errors = Vec::new();
        for error in rows {
            found.rows += 1;
            if let Some(error) = error {
                errors.push(error.abs());
                let ratio = 1.0 + error;
                found.within_factor += usize::from((1.0 / FACTOR..=FACTOR).contains(&ratio));
            }
        }
        errors.sort_by(f64::total_cmp);
        found.median = percentile(&errors, 0.5);
        found.p90 = percentile(&errors, 0.9);
        found
    }

    /// Computes the errors of the predicted rows of one class.
    pub fn of_class<'a>(class: Class, results: impl Iterator<Item = &'a RowResult>) -> Errors {
        Errors::from_results(results.filter(|result| Class::from_row(&result.row) == class))
    }
}

/// Returns a percentile of sorted values, with linear interpolation.
pub(super) fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = share * last as f64;
    let (low, high) = (at as usize, (at as usize + 1).min(last));
    Some(sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{file, judge, table_of_rows};

    /// Returns rows with these metrics, published figures and model figures.
    fn results(rows: &[(&str, f64, f64)]) -> Vec<RowResult> {
        let measure = "[measure.a]\ndrive = \"ram-disk\"\nstate = \"fresh\"\nhost = \"xeon-2017\"\n\
                       fio = [\"--rw=randread\"]\n";
        let lines = rows.iter().enumerate();
        let lines = lines.map(|(index, (metric, published, _))| {
            format!("S0-{index:03} | {published:?} | us | predicted | {metric}")
        });
        let text = table_of_rows(measure, lines);
        let file = file("test.toml", &text).unwrap_or_else(|problems| panic!("{problems}"));
        let rows = file.rows.into_iter().zip(rows);
        rows.map(|(row, (_, _, model))| {
            let (verdict, error) = judge(row.judgement, &row.published, *model);
            let interval = None;
            let model = match model.is_nan() {
                true => Err("none".to_owned()),
                false => Ok(crate::ledger::Model {
                    value: *model,
                    interval,
                    seeds: 1,
                }),
            };
            RowResult {
                row,
                model,
                error,
                verdict,
            }
        })
        .collect()
    }

    #[test]
    fn the_class_follows_from_the_metric() {
        for (metric, class) in [
            ("a.read.iops", Class::Usual),
            ("a.read.p99_us", Class::Usual),
            ("a.read.p99.9_us", Class::Usual),
            ("a.read.mean_us / a.read.p99.99_us", Class::DeepTail),
            ("a.read.p99.999_us", Class::DeepTail),
            ("a.read.over_1000us_percent", Class::DeepTail),
            ("a.read.max_us", Class::DeepTail),
        ] {
            assert_eq!(
                Class::from_row(&results(&[(metric, 1.0, 1.0)])[0].row),
                class,
                "{metric}"
            );
        }
    }

    #[test]
    fn errors_are_of_one_class_and_lack_no_row() {
        let results = results(&[
            ("a.read.iops", 100.0, 102.0),
            ("a.read.mean_us", 100.0, 90.0),
            ("a.read.p99.99_us", 100.0, 150.0),
            ("a.read.p99.999_us", 100.0, 40.0),
            ("a.read.max_us", 100.0, f64::NAN),
        ]);
        let usual = Errors::of_class(Class::Usual, results.iter());
        assert_eq!((usual.rows, usual.within_factor), (2, 2));
        assert!(
            (usual.median.expect("two") - 0.06).abs() < 1e-9,
            "{usual:?}"
        );
        let tail = Errors::of_class(Class::DeepTail, results.iter());
        assert_eq!((tail.rows, tail.within_factor), (3, 1));
        assert_eq!(Errors::from_results(results.iter()).rows, 5);
    }
}
