//! What a drive's data sheet says of a job's pattern: from `[ratings]` of its file, or from rows of the ledger that are ratings.
//!
//! Small random I/O is rated in I/Os a second, I/O in order in bytes a second. Left out: ratings of latency, which are of other
//! depths, and patterns that nobody rates (large random blocks); for those there is the most that the model does.

use catalogue::{DriveSheet, Rated};
use serde::Serialize;
use text::problem::Problems;
use workload::job::Mix;

use crate::ledger;
use crate::ledger::figure::{Direction, RunFigure, What};
use crate::review::shape::Shape;

/// What is rated for a pattern.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rating {
    /// As I/Os of this job's block a second.
    pub iops: f64,
    /// Whether it is rated in bytes.
    pub in_bytes: bool,
    /// Bytes of the block that is rated.
    pub block_bytes: u64,
    /// Where it is from.
    pub source: String,
    /// Whether it is of a new drive.
    pub of_new_drive: bool,
}

/// What is rated for jobs of this shape; `None` if nothing is.
///
/// # Errors
/// The ledger does not read (a test sees to it that it does).
pub(crate) fn rating(drive: &DriveSheet, shape: &Shape) -> Result<Option<Rating>, Problems> {
    match of_sheet(drive, shape) {
        Some(rating) => Ok(Some(rating)),
        None => of_ledger(drive, shape),
    }
}

fn of_sheet(drive: &DriveSheet, shape: &Shape) -> Option<Rating> {
    let ratings = drive.ratings.as_ref()?;
    let block = u64::from(ratings.random_write_block);
    let (rated, block) = match (shape.mix, shape.random) {
        (Mix::Read, true) => (Rated::RandomRead, 4096),
        (Mix::Write, true) => (Rated::RandomWrite, block),
        (Mix::Read, false) => (Rated::SequentialRead, u64::from(ratings.sequential_block)),
        (Mix::Write, false) => (Rated::SequentialWrite, u64::from(ratings.sequential_block)),
        _ => return None,
    };
    let value = ratings.of(rated)?;
    if shape.random && shape.bytes > block {
        return None;
    }
    Some(Rating {
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

/// The sheet that a drive's file names, or what the figure itself says that it is from.
fn source(drive: &DriveSheet, rated: Rated) -> String {
    let figure = drive.figure(&format!("ratings.{}", rated.key()));
    let said = figure.map(|figure| figure.source.clone());
    let named = drive.sheet.clone().or(said);
    named.unwrap_or_else(|| String::from("its data sheet"))
}

/// Rows whose conditions say that they are ratings.
fn is_rating(conditions: &str) -> bool {
    conditions.starts_with("specification") || conditions.starts_with("rated")
}

fn of_ledger(drive: &DriveSheet, shape: &Shape) -> Result<Option<Rating>, Problems> {
    // A drive of the user's own may have a name of the catalogue.
    if !ledger::support::is_built_in(drive) {
        return Ok(None);
    }
    let points = ledger::published::points(&ledger::built_in()?, &drive.id)?;
    let mut best: Option<Rating> = None;
    for point in points {
        if !is_rating(&point.conditions) {
            continue;
        }
        let (Some(value), [run]) = (point.number(), &point.of.runs[..]) else {
            continue;
        };
        let Some(rated) = Shape::of(run) else {
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
            best = Some(Rating {
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

/// A rated figure as I/Os of this shape's block a second; `None` if it is no rate.
fn as_iops(figure: RunFigure, value: f64, rated: &Shape, shape: &Shape) -> Option<f64> {
    let RunFigure::Of(direction, what) = figure else {
        return None;
    };
    let whole = match shape.mix {
        Mix::Read => direction == Direction::Read,
        Mix::Write => direction == Direction::Write,
        _ => direction == Direction::Total,
    } || direction == Direction::Total;
    let bytes = match what {
        What::Iops => value * rated.bytes as f64,
        What::MbPerSecond => value * 1e6,
        What::MibPerSecond => value * 1_048_576.0,
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
