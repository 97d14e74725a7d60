//! Published figures as points: the rows whose metric is one figure of one run, with the jobs of that run.
//!
//! A review shows them on its charts. Left out are rows whose metric is made of several figures (ratios, knees, times
//! in the drive alone), claims in words, and runs on a drive or host with changed figures.

use model::media::Precondition;

use super::expression::{Expression, Function};
use super::figure::RunFigure;
use super::{Evidence, LedgerFile, Measurement, Published, Row, measure};
use text::problem::Problems;
use workload::job::Job;

/// A published figure, and the run that it is a figure of.
#[derive(Clone, Debug)]
pub struct Point {
    /// Such as `S4-002`.
    pub row: String,
    /// What it is about.
    pub what: String,
    /// Conditions of the test, as the ledger has them.
    pub conditions: String,
    /// As published.
    pub value: f64,
    /// Which figure of the run.
    pub figure: RunFigure,
    /// Whether the model was fitted to it.
    pub evidence: Evidence,
    /// Name of the drive in the catalogue.
    pub drive: String,
    /// Name of the host in the catalogue.
    pub host: String,
    /// The drive's state at the start.
    pub state: Precondition,
    /// What ran.
    pub jobs: Vec<Job>,
}

/// All such points of a ledger, in its order.
///
/// # Errors
/// Everything wrong with fio's options.
pub fn points(files: &[LedgerFile]) -> Result<Vec<Point>, Problems> {
    let mut found = Vec::new();
    for file in files {
        for row in &file.rows {
            found.extend(point(file, row)?);
        }
    }
    Ok(found)
}

/// Of a metric that is one figure: whose, which, and at which point of a sweep.
fn single(metric: &Expression) -> Option<(&str, &str, Option<f64>)> {
    match metric {
        Expression::Figure { owner, name } => Some((owner, name, None)),
        Expression::Call(Function::At, arguments) => match &arguments[..] {
            [Expression::Figure { owner, name }, Expression::Number(x)] => {
                Some((owner, name, Some(*x)))
            }
            _ => None,
        },
        _ => None,
    }
}

fn point(file: &LedgerFile, row: &Row) -> Result<Option<Point>, Problems> {
    let (Published::Number(value), Some((owner, name, x))) =
        (&row.published, single(&row.expression))
    else {
        return Ok(None);
    };
    let is_owner = |one: &&Measurement| one.name == owner;
    let Some(measurement) = file.measurements.iter().find(is_owner) else {
        return Ok(None);
    };
    let Ok(figure) = RunFigure::named(name) else {
        return Ok(None);
    };
    if !measurement.set.is_empty() || !measurement.host_set.is_empty() {
        return Ok(None);
    }
    let at = measure::jobs_of_points(measurement)?;
    let jobs = at.into_iter().find(|(point, _)| *point == x);
    Ok(jobs.map(|(_, jobs)| Point {
        row: row.id.clone(),
        what: row.what.clone(),
        conditions: row.conditions.clone(),
        value: *value,
        figure,
        evidence: row.evidence,
        drive: measurement.drive.clone(),
        host: measurement.host.clone(),
        state: measurement.state,
        jobs: jobs[measure::uncounted(measurement)..].to_vec(),
    }))
}
