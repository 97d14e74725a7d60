//! Predicted runs, each counted once, however many of its figures are rows.
//!
//! A run that prints IOPS, a mean and percentiles is one piece of evidence. The throughput of each run is counted, or
//! else its mean latency; percentiles, shares and extremes are not. A metric that uses several runs counts as one run.

use std::collections::BTreeMap;

use super::expression::{Expression, Function};
use super::figure::{FigureQuantity, RunFigure, Statistic};
use super::{Errors, Evidence, LedgerRow, RowResult, source_of};

/// Figure by which a run is counted; the lower variant has precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counts {
    Throughput,
    Mean,
}

/// Returns the kind of figure by which a row counts. A metric with a percentile does not count.
fn counts(row: &LedgerRow) -> Option<Counts> {
    let mut found = Some(Counts::Throughput);
    row.expression.figures(&mut |_, name| {
        let one = match RunFigure::named(name) {
            Ok(RunFigure::Of(
                _,
                FigureQuantity::Iops | FigureQuantity::MbPerSecond | FigureQuantity::MibPerSecond,
            )) => Some(Counts::Throughput),
            Ok(RunFigure::Of(
                _,
                FigureQuantity::Latency(_, Statistic::Mean) | FigureQuantity::DriveMean,
            )) => Some(Counts::Mean),
            _ => None,
        };
        found = found.zip(one).map(|(a, b)| a.max(b));
    });
    found
}

/// Collects the runs that a metric uses: its measurements, with the points of their sweeps.
fn run_of(expression: &Expression, run: &mut Vec<String>) {
    match expression {
        Expression::Number(_) => {}
        Expression::Figure { owner, .. } => run.push(owner.clone()),
        Expression::Call(function, arguments) => {
            arguments.iter().for_each(|one| run_of(one, run));
            if let (Function::At, [_, Expression::Number(x)]) = (function, &arguments[..]) {
                run.push(format!("at {x}"));
            }
        }
        Expression::Binary(_, left, right) => {
            run_of(left, run);
            run_of(right, run);
        }
    }
}

impl Errors {
    /// Computes the errors of the predicted runs of these results, each run once.
    pub fn of_runs<'a>(results: impl Iterator<Item = &'a RowResult>) -> Errors {
        let mut runs: BTreeMap<_, (Counts, Option<f64>)> = BTreeMap::new();
        for result in results {
            let row = &result.row;
            let judged = row.evidence == Evidence::Predicted && row.judgement.has_error();
            let Some(counts) = counts(row).filter(|_| judged) else {
                continue;
            };
            let mut run = Vec::new();
            run_of(&row.expression, &mut run);
            run.sort();
            run.dedup();
            let found = (counts, result.error);
            let known = runs.entry((source_of(&row.id), run)).or_insert(found);
            if counts < known.0 {
                *known = found;
            }
        }
        Errors::over(runs.into_values().map(|(_, error)| error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{file, judge, table_of_rows};

    /// Returns rows with these metrics, each published as 100, their evidence and the model's figures.
    fn results(rows: &[(&str, Evidence, f64)]) -> Vec<RowResult> {
        let mut text = String::new();
        for name in ["a", "b"] {
            text.push_str(&format!(
                "[measure.{name}]\ndrive = \"ram-disk\"\nstate = \"fresh\"\nhost = \"xeon-2017\"\n\
                 fio = [\"--rw=write\"]\nsweep = {{ iodepth = [1, 2] }}\n"
            ));
        }
        let lines = (1..).zip(rows).map(|(number, (metric, ..))| {
            format!("P{number:04} | 100 | us | predicted | {metric}")
        });
        let text = table_of_rows(&text, lines);
        let file = file("test.toml", &text).unwrap_or_else(|problems| panic!("{problems}"));
        let rows = file.rows.into_iter().zip(rows);
        rows.map(|(mut row, (_, evidence, model))| {
            row.evidence = *evidence;
            let (verdict, error) = judge(row.judgement, &row.published, *model);
            RowResult {
                row,
                model: Err("not asked".into()),
                error,
                verdict,
            }
        })
        .collect()
    }

    #[test]
    fn a_run_counts_once_by_its_throughput_or_else_its_mean() {
        use Evidence::{Fitted, Predicted};
        let results = results(&[
            // One run: the mean comes first and is replaced by the throughput; the percentile does not count.
            ("at(a.write.mean_us, 1)", Predicted, 150.0),
            ("at(a.write.iops, 1)", Predicted, 110.0),
            ("at(a.write.p99_us, 1)", Predicted, 500.0),
            // Another point of the sweep is another run, which has only a mean.
            ("1000000 / at(a.write.mean_us, 2)", Predicted, 130.0),
            // Fitted rows do not count, nor does a percentile alone.
            ("at(b.write.iops, 1)", Fitted, 900.0),
            ("at(b.write.p50_us, 2)", Predicted, 900.0),
        ]);
        let runs = Errors::of_runs(results.iter());
        assert_eq!(runs.rows, 2);
        let median = runs.median.expect("two runs");
        assert!((median - 0.2).abs() < 1e-9, "{runs:?}");
    }
}
