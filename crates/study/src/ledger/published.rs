//! Published figures as points: rows whose metric is one figure of one run or of one sweep, with its jobs, and rows
//! that divide two such figures.
//!
//! A review shows these rows on its charts: a figure, a range or a bound at one point of a sweep. Other rows are the
//! greatest value of a sweep, the point at which a sweep stops rising, or one figure as a multiple of another. Not
//! included: rows with a more complex metric (the worst of several drives, times in the drive alone), claims without
//! a number, and runs on a drive or host with changed figures.

use model::media::Precondition;

use super::expression::{Expression, Function, KNEE, Operator};
use super::figure::RunFigure;
use super::{Evidence, LedgerFile, LedgerMeasurement, LedgerRow, PublishedValue, measure};
use text::problem::Problems;
use workload::job::Job;

/// A published figure, and the run that it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedPoint {
    /// Id of the row, such as `S4-002`.
    pub row: String,
    /// Subject of the row.
    pub what: String,
    /// Conditions of the test, as the ledger has them.
    pub conditions: String,
    /// Bounds as published: equal for a number, `None` for an open end.
    pub ends: Bounds,
    /// Whether the model was fitted to the figure.
    pub evidence: Evidence,
    /// The measured figure.
    pub of: FigureSource,
    /// The denominator, if the published figure is a ratio.
    pub over: Option<FigureSource>,
}

/// Lower and upper bound.
pub type Bounds = [Option<f64>; 2];

/// A figure of a run, or of all runs of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureSource {
    /// The figure of a run.
    pub figure: RunFigure,
    /// The run of a sweep.
    pub place: Place,
    /// Name of the drive in the catalogue.
    pub drive: String,
    /// Name of the host in the catalogue.
    pub host: String,
    /// State of the drive at the start.
    pub state: Precondition,
    /// The jobs of the one run, or of each run of the sweep.
    pub runs: Vec<Vec<Job>>,
}

/// Place of a figure in a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// The only run, or the run at this point of the sweep.
    One(Option<f64>),
    /// The greatest value of a sweep.
    Greatest,
    /// The first point of a sweep that reaches this share of the greatest value. The published figure is a value of
    /// the swept option.
    Knee(f64),
}

impl PublishedPoint {
    /// Returns the figure, if it is a number of one run.
    pub fn number(&self) -> Option<f64> {
        match (self.ends, self.of.place, &self.over) {
            ([Some(least), Some(most)], Place::One(_), None) if least == most => Some(least),
            _ => None,
        }
    }
}

/// Returns all points of a ledger for a drive of the catalogue, in the ledger's order.
///
/// # Errors
/// All problems of fio's options.
pub fn points(files: &[LedgerFile], drive: &str) -> Result<Vec<PublishedPoint>, Problems> {
    let mut found = Vec::new();
    for file in files {
        for row in &file.rows {
            found.extend(point(file, row, drive)?);
        }
    }
    Ok(found)
}

/// Splits a metric that is one figure into owner, name and place in a sweep.
fn single(metric: &Expression) -> Option<(&str, &str, Place)> {
    match metric {
        Expression::Figure { owner, name } => Some((owner, name, Place::One(None))),
        Expression::Call(function, arguments) => match (function, &arguments[..]) {
            (Function::At, [Expression::Figure { owner, name }, Expression::Number(x)]) => {
                Some((owner, name, Place::One(Some(*x))))
            }
            (Function::Max, [Expression::Figure { owner, name }]) => {
                Some((owner, name, Place::Greatest))
            }
            (Function::Knee, [Expression::Figure { owner, name }]) => {
                Some((owner, name, Place::Knee(KNEE)))
            }
            (
                Function::Knee,
                [
                    Expression::Figure { owner, name },
                    Expression::Number(share),
                ],
            ) => Some((owner, name, Place::Knee(*share))),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the figure of a metric that only converts its unit, and the bounds in the figure's unit where the metric
/// has bounds.
fn scaled(metric: &Expression, ends: Bounds) -> Option<(&Expression, Bounds)> {
    let Expression::Binary(operator, left, right) = metric else {
        return Some((metric, ends));
    };
    let each = |back: &dyn Fn(f64) -> f64| ends.map(|end| end.map(back));
    match (operator, &**left, &**right) {
        (Operator::Divide, figure, Expression::Number(unit)) => {
            Some((figure, each(&|value| value * unit)))
        }
        (Operator::Multiply, figure, Expression::Number(unit)) => {
            Some((figure, each(&|value| value / unit)))
        }
        (Operator::Divide, Expression::Number(unit), figure) => {
            let [least, most] = each(&|value| unit / value);
            Some((figure, [most, least]))
        }
        _ => None,
    }
}

/// Returns the bounds of a published value: of a number, of a range, and of text such as `2.4-2.5`, `>2` or `<=60`.
fn ends(published: &PublishedValue) -> Option<Bounds> {
    match published {
        PublishedValue::Number(value) => Some([Some(*value); 2]),
        PublishedValue::Range(least, most) => Some([Some(*least), Some(*most)]),
        PublishedValue::Words(words) => {
            let number = |text: &str| text.trim_start_matches('=').parse::<f64>().ok();
            if let Some(least) = words.strip_prefix('>') {
                return number(least).map(|least| [Some(least), None]);
            }
            if let Some(most) = words.strip_prefix('<') {
                return number(most).map(|most| [None, Some(most)]);
            }
            let (least, most) = words.split_once('-')?;
            Some([Some(number(least)?), Some(number(most)?)])
        }
    }
}

fn point(
    file: &LedgerFile,
    row: &LedgerRow,
    drive: &str,
) -> Result<Option<PublishedPoint>, Problems> {
    let Some(ends) = ends(&row.published) else {
        return Ok(None);
    };
    // Only rows about this drive get jobs, because parsing jobs takes most of the time.
    let is_about = |(owner, ..): (&str, &str, Place)| {
        let mut all = file.measurements.iter();
        all.any(|one| one.name == owner && one.drive == drive)
    };
    let told = |ends, of, over| PublishedPoint {
        row: row.id.clone(),
        what: row.what.clone(),
        conditions: row.conditions.clone(),
        ends,
        evidence: row.evidence,
        of,
        over,
    };
    if let Expression::Binary(Operator::Divide, left, right) = &row.expression
        && let (Some(left), Some(right)) = (single(left), single(right))
    {
        // A difference of two figures is not a multiple.
        if row.unit != "x" || !is_about(left) {
            return Ok(None);
        }
        let both = (measured(file, left)?, measured(file, right)?);
        let (Some(of), Some(over)) = both else {
            return Ok(None);
        };
        let is_knee = |one: &FigureSource| matches!(one.place, Place::Knee(_));
        let levels = !is_knee(&of) && !is_knee(&over);
        return Ok(levels.then(|| told(ends, of, Some(over))));
    }
    let Some((figure, ends)) = scaled(&row.expression, ends) else {
        return Ok(None);
    };
    let is_in_unit = |place| !matches!(place, Place::Knee(_)) || row.unit == "QD";
    let shown = single(figure).filter(|one| is_about(*one) && is_in_unit(one.2));
    let Some(single) = shown else {
        return Ok(None);
    };
    let of = measured(file, single)?;
    Ok(of.map(|of| told(ends, of, None)))
}

fn measured(
    file: &LedgerFile,
    (owner, name, place): (&str, &str, Place),
) -> Result<Option<FigureSource>, Problems> {
    let is_owner = |one: &&LedgerMeasurement| one.name == owner;
    let Some(measurement) = file.measurements.iter().find(is_owner) else {
        return Ok(None);
    };
    let Ok(figure) = RunFigure::named(name) else {
        return Ok(None);
    };
    if !measurement.set.is_empty() || !measurement.host_set.is_empty() {
        return Ok(None);
    }
    let uncounted = measure::uncounted(measurement);
    let wanted = |point: Option<f64>| match place {
        Place::One(x) => point == x,
        Place::Greatest | Place::Knee(_) => true,
    };
    let runs: Vec<Vec<Job>> = measure::jobs_of_points(measurement)?
        .into_iter()
        .filter(|(point, _)| wanted(*point))
        .map(|(_, jobs)| jobs[uncounted..].to_vec())
        .collect();
    Ok((!runs.is_empty()).then(|| FigureSource {
        figure,
        place,
        drive: measurement.drive.clone(),
        host: measurement.host.clone(),
        state: measurement.state,
        runs,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::built_in;

    fn of(drive: &str, row: &str) -> PublishedPoint {
        let all = points(&built_in().unwrap(), drive).unwrap();
        let found = all.into_iter().find(|point| point.row == row);
        found.unwrap_or_else(|| panic!("{row} is no point of {drive}"))
    }

    #[test]
    fn units_are_taken_back() {
        // 35 thousand, printed as 35.
        assert_eq!(of("optane-memory-16", "S2-004").number(), Some(35_000.0));
        // 3 us for each I/O is 333 thousand I/Os per second.
        assert_eq!(of("960pro-512", "S0-053").number(), Some(1_000_000.0 / 3.0));
    }

    #[test]
    fn words_that_are_numbers_have_ends() {
        let range = of("p4800x-750", "S4-123");
        assert_eq!(range.ends, [Some(2400.0), Some(2500.0)]);
        assert_eq!((range.of.place, range.number()), (Place::Greatest, None));
        assert!(range.of.runs.len() > 3, "each of the sweep");
        assert_eq!(of("p4800x-750", "S4-128").ends, [Some(2000.0), None]);
        let words = |text: &str| ends(&PublishedValue::Words(text.to_owned()));
        assert_eq!(words("<=60"), Some([None, Some(60.0)]));
        assert_eq!(words(">>32"), None);
        assert_eq!(words("close to Optane"), None);
        assert_eq!(words("not much better, esp. <4K"), None);
    }

    #[test]
    fn knees_and_ratios_are_told_apart() {
        let knee = of("p4800x-375", "S1-013");
        assert_eq!(
            (knee.of.place, knee.ends),
            (Place::Knee(KNEE), [Some(8.0); 2])
        );
        let ratio = of("p4800x-375", "S1-011");
        let over = ratio.over.clone().unwrap();
        assert_eq!(
            (ratio.of.place, over.place),
            (Place::Greatest, Place::One(Some(64.0)))
        );
        // Reads of 64 KiB against 128 KiB: the published figure is a size.
        let all = points(&built_in().unwrap(), "p4800x-750").unwrap();
        assert!(all.iter().all(|point| point.row != "S4-105"));
        assert_eq!(ratio.number(), None);
        assert_ne!(ratio.of.drive, over.drive);
    }
}
