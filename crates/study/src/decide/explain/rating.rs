//! The data sheet's rating for a job's pattern: from `[ratings]` of the drive's file, or from rows of the ledger that
//! are ratings.
//!
//! Small random I/O is rated in IOPS, sequential I/O in bytes per second. Not used: ratings of latency, which refer to
//! other depths, and patterns without a rating (large random blocks); for those, the model's maximum is used.

use catalogue::{DriveSheet, RatedQuantity};
use serde::Serialize;
use text::problem::Problems;
use workload::job::Mix;

use crate::ledger;
use crate::ledger::figure::{FigureDirection, FigureQuantity, RunFigure};
use crate::review::shape::Shape;

/// Rating for a pattern.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PerformanceRating {
    /// Rating in IOPS with this job's block size.
    pub iops: f64,
    /// Whether it is rated in bytes.
    pub in_bytes: bool,
    /// Rated block size in bytes.
    pub block_bytes: u64,
    /// Source of the rating.
    pub source: String,
    /// Whether it applies to a new drive.
    pub of_new_drive: bool,
}

/// Returns the rating for jobs of this shape; `None` if there is none.
///
/// # Errors
/// The ledger cannot be read (a test ensures that it can).
pub(crate) fn rating(
    drive: &DriveSheet,
    shape: &Shape,
) -> Result<Option<PerformanceRating>, Problems> {
    match of_sheet(drive, shape) {
        Some(rating) => Ok(Some(rating)),
        None => of_ledger(drive, shape),
    }
}

fn of_sheet(drive: &DriveSheet, shape: &Shape) -> Option<PerformanceRating> {
    let ratings = drive.ratings.as_ref()?;
    let block = u64::from(ratings.random_write_block);
    let (rated, block) = match (shape.mix, shape.random) {
        (Mix::Read, true) => (RatedQuantity::RandomRead, 4096),
        (Mix::Write, true) => (RatedQuantity::RandomWrite, block),
        (Mix::Read, false) => (
            RatedQuantity::SequentialRead,
            u64::from(ratings.sequential_block),
        ),
        (Mix::Write, false) => (
            RatedQuantity::SequentialWrite,
            u64::from(ratings.sequential_block),
        ),
        _ => return None,
    };
    let value = ratings.value(rated)?;
    if shape.random && shape.bytes > block {
        return None;
    }
    Some(PerformanceRating {
        iops: match shape.random {
            true => value,
            false => value / shape.bytes as f64,
        },
        in_bytes: !shape.random,
        block_bytes: block,
        source: source(drive, rated),
        of_new_drive: !ratings.sustained && shape.mix == Mix::Write,
    })
}

/// Returns the data sheet that a drive's file names, or the source of the figure itself.
fn source(drive: &DriveSheet, rated: RatedQuantity) -> String {
    let figure = drive.figure(&format!("ratings.{}", rated.key()));
    let said = figure.map(|figure| figure.source.clone());
    let named = drive.sheet.clone().or(said);
    named.unwrap_or_else(|| String::from("its data sheet"))
}

/// Checks whether a row's conditions state that it is a rating.
fn is_rating(conditions: &str) -> bool {
    conditions.starts_with("specification") || conditions.starts_with("rated")
}

fn of_ledger(drive: &DriveSheet, shape: &Shape) -> Result<Option<PerformanceRating>, Problems> {
    // A user's own drive may have the name of a catalogue drive.
    if !ledger::support::is_built_in(drive) {
        return Ok(None);
    }
    let points = ledger::published::points(&ledger::built_in()?, &drive.id)?;
    let mut best: Option<PerformanceRating> = None;
    for point in points {
        if !is_rating(&point.conditions) {
            continue;
        }
        let (Some(value), [run]) = (point.number(), &point.of.runs[..]) else {
            continue;
        };
        let Some(rated) = Shape::from_jobs(run) else {
            continue;
        };
        let Some(iops) = as_iops(point.of.figure, value, &rated, shape) else {
            continue;
        };
        let like = rated.mix == shape.mix
            && rated.random == shape.random
            && (shape.mix != Mix::ReadWrite || rated.read_percent == shape.read_percent)
            && (!shape.random || shape.bytes <= rated.bytes);
        if like && best.as_ref().is_none_or(|best| iops > best.iops) {
            best = Some(PerformanceRating {
                iops,
                in_bytes: !shape.random,
                block_bytes: rated.bytes,
                source: point.row.clone(),
                of_new_drive: shape.mix == Mix::Write
                    && point.of.state == model::media::Precondition::Fresh,
            });
        }
    }
    Ok(best)
}

/// Returns a rated figure in IOPS with this shape's block size; `None` if it is not a rate.
fn as_iops(figure: RunFigure, value: f64, rated: &Shape, shape: &Shape) -> Option<f64> {
    let RunFigure::Of(direction, what) = figure else {
        return None;
    };
    let whole = match shape.mix {
        Mix::Read => direction == FigureDirection::Read,
        Mix::Write => direction == FigureDirection::Write,
        _ => direction == FigureDirection::Total,
    } || direction == FigureDirection::Total;
    let bytes = match what {
        FigureQuantity::Iops => value * rated.bytes as f64,
        FigureQuantity::MbPerSecond => value * 1e6,
        FigureQuantity::MibPerSecond => value * 1_048_576.0,
        _ => return None,
    };
    let block = match shape.random {
        true => rated.bytes,
        false => shape.bytes,
    };
    whole.then(|| bytes / block as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(mix: Mix, random: bool, bytes: u64) -> Shape {
        Shape {
            mix,
            random,
            bytes,
            align: bytes,
            read_percent: 70,
            depth: 1,
            threads: 1,
        }
    }

    fn of(drive: &str, shape: &Shape) -> Option<(f64, String)> {
        let sheet = catalogue::drive(drive).expect("built in");
        let rating = rating(&sheet, shape).expect("the ledger reads");
        rating.map(|it| (it.iops.round(), it.source))
    }

    #[test]
    fn ratings_are_those_of_the_sheet_or_of_the_ledger() {
        let small = shape(Mix::Read, true, 4096);
        let (iops, source) = of("p4800x-375", &small).expect("rated");
        assert_eq!(iops, 550_000.0);
        assert!(source.contains("S4"), "{source}");
        let mixed = shape(Mix::ReadWrite, true, 4096);
        assert_eq!(of("p4800x-375", &mixed), Some((500_000.0, "S4-008".into())));
        let (iops, _) = of("p4800x-375", &shape(Mix::Read, false, 131_072)).expect("rated");
        assert_eq!(iops, (2.4e9f64 / 131_072.0).round());
        assert!(of("980pro-1000", &small).is_some());
        assert_eq!(of("p4800x-375", &shape(Mix::Read, true, 65_536)), None);
        assert_eq!(of("ram-disk", &small), None);
    }
}
