//! Comparison of the models with the quality of service of makers' sheets (`[[ratings.qos]]` of a drive): the latency
//! that a percentile of random 4 KiB I/Os does not exceed.
//!
//! Each bound is one run in the rated state, with as many I/Os as the percentile needs. A bound refers to the drive, so
//! the host's mean share is subtracted, as in the ledger's rows of ratings. A bound decides nothing about a model: it is
//! met or missed, and a miss is reported. Not modelled: the differences between the drives of a series; a bound that a
//! sheet gives for a whole series ("up to") is compared with the drive whose file has it.

use catalogue::{DriveSheet, FigureKind, QosBound};
use lab::{Lab, Machine, Outcome, ProgressCallback, Scenario};
use model::media::Precondition;
use text::problem::Problems;
use tier::DriveConfig;
use workload::job::{BlockSizes, Job, Mix};

use super::expression::ExpressionError;
use super::figure::RunFigure;
use crate::fit::small;

/// Host of the runs, as of the ledger's rows of ratings.
const HOST: &str = "xeon-2017";
/// I/Os beyond the percentile: ten, and one to spare.
const BEYOND: f64 = 11.0;
/// Minimum number of I/Os of a run.
const FEWEST: u64 = 20_000;
/// Seed of the runs.
const SEED: u64 = 1;

/// A bound of a maker's sheet, with the model's latency.
#[derive(Clone, PartialEq, Debug)]
pub struct QosResult {
    /// Id of the drive.
    pub drive: String,
    /// Bound of the drive's file.
    pub bound: QosBound,
    /// The least certain kind of the bound, its depth and its percentile: [`FigureKind::Assumed`] if one of them was not read in
    /// the maker's document.
    pub kind: FigureKind,
    /// Document with the bound.
    pub source: String,
    /// The model's latency at the percentile in microseconds, without the host's mean share.
    pub drive_us: f64,
    /// The model's latency at the percentile in microseconds, as a program on the host sees it.
    pub host_us: f64,
}

impl QosResult {
    /// Checks whether the model's drive stays within the bound.
    pub fn is_met(&self) -> bool {
        self.drive_us <= self.bound.bound.us()
    }
}

/// Compares these drives with the bounds in their files.
///
/// # Errors
/// A run is not possible, or `go_on` stopped it.
pub fn against_sheets(
    drives: &[DriveSheet],
    go_on: ProgressCallback<'_>,
) -> Result<Vec<QosResult>, Problems> {
    let host = catalogue::host(HOST)?;
    let mut bounds = Vec::new();
    let mut scenarios = Vec::new();
    for drive in drives {
        let Some(ratings) = &drive.ratings else {
            continue;
        };
        // Random I/O on a drive that was never written would not reach its medium.
        let state = match ratings.sustained {
            true => Precondition::Steady,
            false => Precondition::Filled,
        };
        let config = match drive.config {
            DriveConfig::Nand(_) => small(&drive.config),
            _ => drive.config.clone(),
        };
        for (number, bound) in (1..).zip(&ratings.qos) {
            let machine = Machine::new(drive, &host).with_drive(config.clone());
            scenarios.push(Scenario::jobs(machine, state, vec![job(bound)], SEED));
            bounds.push((drive, number, bound));
        }
    }
    let outcomes = Lab::new().run_all(&scenarios, go_on);
    let results = bounds.into_iter().zip(outcomes);
    results
        .map(|((drive, number, bound), outcome)| result(drive, number, bound, &outcome?))
        .collect()
}

/// Returns the number of threads that share a depth, with at least four I/Os each, as the ledger's rows of ratings have:
/// one thread with a deep queue would be bound by its core.
fn threads_of(depth: u32) -> u32 {
    (1..=16)
        .rev()
        .find(|threads| depth.is_multiple_of(*threads) && depth / threads >= 4)
        .unwrap_or(1)
}

/// Returns the job of a bound.
fn job(bound: &QosBound) -> Job {
    let beyond = BEYOND / (1.0 - bound.percentile / 100.0);
    let threads = threads_of(bound.depth);
    Job {
        mix: match bound.writes {
            true => Mix::Write,
            false => Mix::Read,
        },
        random: true,
        norandommap: true,
        numjobs: threads,
        iodepth: bound.depth / threads,
        block_sizes: [0; 3].map(|_| BlockSizes::Fixed(4096)),
        block_align: [4096; 3],
        number_ios: Some((beyond as u64).max(FEWEST).div_ceil(threads.into())),
        ..Job::default()
    }
}

/// Returns the least certain kind of a bound, its depth and its percentile.
fn least_certain(drive: &DriveSheet, number: usize) -> FigureKind {
    let kinds = ["bound", "depth", "percentile"].map(|key| {
        let figure = drive.figure(&format!("ratings.qos.{number}.{key}"));
        figure.map_or(FigureKind::Assumed, |figure| figure.kind)
    });
    let mut uncertain_first = FigureKind::ALL.into_iter().rev();
    let found = uncertain_first.find(|kind| kinds.contains(kind));
    found.unwrap_or(FigureKind::Assumed)
}

fn result(
    drive: &DriveSheet,
    number: usize,
    bound: &QosBound,
    outcome: &Outcome,
) -> Result<QosResult, Problems> {
    let direction = if bound.writes { "write" } else { "read" };
    let value = |figure: &str| {
        let figure = RunFigure::named(&format!("{direction}.{figure}"))?;
        figure.value(outcome)
    };
    let values = || -> Result<[f64; 3], ExpressionError> {
        Ok([
            value(&format!("p{}_us", bound.percentile))?,
            value("mean_us")?,
            value("drive_mean_us")?,
        ])
    };
    let [percentile, mean, in_drive] = values()
        .map_err(|found| Problems::whole(&*drive.id, format!("{}: {found}", bound.words())))?;
    let figure = drive.figure(&format!("ratings.qos.{number}.bound"));
    Ok(QosResult {
        drive: drive.id.clone(),
        bound: bound.clone(),
        kind: least_certain(drive, number),
        source: figure
            .map(|figure| figure.source.clone())
            .unwrap_or_default(),
        drive_us: percentile - mean + in_drive,
        host_us: percentile,
    })
}

/// Returns the table of `docs/fidelity.md`: misses first.
pub fn table(results: &[QosResult]) -> String {
    let mut text = String::from(
        "| drive | random 4 KiB | bound | model | with host | verdict | document |\n\
         | --- | --- | --: | --: | --: | --- | --- |\n",
    );
    let (met, missed): (Vec<_>, Vec<_>) = results.iter().partition(|one| one.is_met());
    for (one, verdict) in missed
        .iter()
        .map(|one| (one, "missed"))
        .chain(met.iter().map(|one| (one, "met")))
    {
        text.push_str(&format!(
            "| {} | {} | {:.0} us | {:.1} us | {:.1} us | {verdict} | {} ({}) |\n",
            one.drive,
            one.bound.words(),
            one.bound.bound.us(),
            one.drive_us,
            one.host_us,
            one.source,
            one.kind.name(),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the results of an S3700 with a bound of so many microseconds on reads, instead of its own.
    fn with_bound(us: u64) -> Vec<QosResult> {
        let mut drive = catalogue::drive("s3700-800").expect("built in");
        let ratings = drive.ratings.as_mut().expect("it has ratings");
        ratings.qos.truncate(1);
        ratings.qos[0].bound = model::Span::from_us(us);
        against_sheets(&[drive], &lab::to_the_end).expect("it runs")
    }

    #[test]
    fn a_bound_that_the_model_exceeds_is_missed() {
        let found = with_bound(1);
        let text = table(&found);
        assert!(!found[0].is_met() && text.contains("| missed |"), "{text}");
        let slower = found[0].drive_us as u64 + 1;
        let found = with_bound(slower);
        let text = table(&found);
        assert!(found[0].is_met() && text.contains("| met |"), "{text}");
        assert!(found[0].host_us > found[0].drive_us);
    }

    #[test]
    fn a_bound_is_as_certain_as_its_depth() {
        let drive = catalogue::drive("s3700-800").expect("built in");
        let kind = |key: &str| {
            let figure = drive.figure(&format!("ratings.qos.1.{key}"));
            figure.expect("it is in the file").kind
        };
        assert_eq!(
            ["bound", "depth", "percentile"].map(kind),
            [FigureKind::Spec, FigureKind::Assumed, FigureKind::Spec]
        );
        assert_eq!(least_certain(&drive, 1), FigureKind::Assumed);
        let drive = catalogue::drive("p4800x-375").expect("built in");
        assert_eq!(least_certain(&drive, 1), FigureKind::Spec);
    }

    #[test]
    fn drives_without_bounds_are_left_out() {
        let drives = ["ram-disk", "pm9a3-960"].map(|id| catalogue::drive(id).expect("built in"));
        let found = against_sheets(&drives, &lab::to_the_end);
        assert_eq!(found, Ok(Vec::new()));
    }
}
