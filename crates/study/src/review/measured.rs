//! A user's measurements compared with a review's model: points on the charts that show the same workload, and a
//! table.
//!
//! Compared are rate and mean latency from submission to completion, which both have. For rate-limited reads and
//! writes under a competing load, percentiles are compared too, because that plan makes fio measure them in this way.
//! Not compared: other percentiles, which fio measures from another start than a review; runs that no chapter of the
//! suite has; and sizes and states of the drive that fio's results do not contain.

use model::media::Precondition;
use text::digits::{count, digits, megabytes_a_second, microseconds};
use text::terminal::{self, Width};
use workload::job::BlockSizes;

use super::chapters::under_load;
use super::published::charts_of;
use super::results::{PointSettings, PublishedFigure, Review, rounded};
use super::shape::Shape;
use crate::fit::{MeasuredRun, Quantity};
use crate::measure::StepFigures;

/// Kind of measured figures among those of [`Review::published`].
pub const MEASURED: &str = "measured";

/// A figure of a run, measured and modelled.
#[derive(Clone, PartialEq, Debug)]
pub struct FigureComparison {
    /// Name of the file.
    pub source: String,
    /// Name of the run.
    pub run: String,
    /// Direction: `read` or `write`.
    pub of: &'static str,
    /// Metric: `iops`, `mb_s` or `mean`.
    pub metric: &'static str,
    /// Measured value, in IOPS, 10^6 bytes per second or microseconds.
    pub measured: f64,
    /// The model's value at the review's point.
    pub modelled: f64,
}

impl Review {
    /// Adds runs that were measured on a drive to its model's results; `origin` is the file. Returns the number of
    /// runs that the suite does not have.
    pub fn tell_measured(&mut self, drive: usize, origin: &str, runs: &[MeasuredRun]) -> usize {
        let has = |id: &str| self.chapters.iter().any(|chapter| chapter.id == id);
        let mut found = Vec::new();
        for run in runs {
            let shape = Shape::from_jobs(&run.jobs);
            let charts = shape.map(|shape| charts_of(&shape, Precondition::Steady, &has));
            let charts = charts.unwrap_or_default();
            for (chapter, settings) in charts {
                let conditions = match run.unlike.is_empty() {
                    true => String::from("fio"),
                    false => run.unlike.join("; "),
                };
                let place = (chapter.id(), &settings);
                found.extend(figures(run).map(|figure| {
                    measured_figure(drive, origin, (&run.name, &conditions), place, figure)
                }));
            }
        }
        self.published.extend(found);
        let beside = self.figure_comparisons();
        let is_there = |run: &&MeasuredRun| {
            let mut of_file = beside.iter().filter(|one| one.source == origin);
            of_file.any(|one| one.run == run.name)
        };
        runs.len() - runs.iter().filter(is_there).count()
    }

    /// Adds measured rate-limited reads and writes to the model's results, where the suite has them.
    pub fn tell_paced(&mut self, drive: usize, origin: &str, runs: &[StepFigures]) {
        if self.chapter(under_load::ID).is_none() {
            return;
        }
        for run in runs {
            let settings = under_load::settings(run.share);
            let place = (under_load::ID, &settings);
            let figures = run.figures.iter().copied();
            let told =
                figures.map(|one| measured_figure(drive, origin, (&run.step, "fio"), place, one));
            self.published.extend(told);
        }
    }

    /// Returns every measured figure for which there is a modelled one, each once.
    pub fn figure_comparisons(&self) -> Vec<FigureComparison> {
        let mut all: Vec<FigureComparison> = Vec::new();
        for one in self.published.iter().filter(|one| one.stands == MEASURED) {
            let same = |it: &FigureComparison| {
                (&it.source, &it.run, it.of, it.metric)
                    == (&one.source, &one.row, one.of, one.metric)
            };
            if all.iter().any(same) {
                continue;
            }
            if let (Some(measured), Some(modelled)) = (one.value, self.modelled(one)) {
                all.push(FigureComparison {
                    source: one.source.clone(),
                    run: one.row.clone(),
                    of: one.of,
                    metric: one.metric,
                    measured,
                    modelled,
                });
            }
        }
        all
    }

    fn modelled(&self, one: &PublishedFigure) -> Option<f64> {
        let points = self.chapter(one.chapter)?.points.iter();
        let mut results = points
            .filter(|point| point.settings.runs(&one.settings))
            .filter_map(|point| point.results.get(one.drive)?.as_ref());
        results.next()?.named(one.of, one.metric)
    }
}

/// Returns a measured figure of a run with its conditions, at its place in the review.
fn measured_figure(
    drive: usize,
    origin: &str,
    (run, conditions): (&str, &str),
    (chapter, settings): (&'static str, &PointSettings),
    (of, metric, value): (&'static str, &'static str, f64),
) -> PublishedFigure {
    PublishedFigure {
        drive,
        row: run.to_owned(),
        source: origin.to_owned(),
        what: String::from("your measurement"),
        conditions: conditions.to_owned(),
        stands: MEASURED,
        chapter,
        settings: settings.clone(),
        of,
        metric,
        form: "figure",
        value: Some(rounded(value)),
        least: None,
        most: None,
        here: None,
        differs: Vec::new(),
    }
}

/// Returns rate and mean of each direction.
fn figures(run: &MeasuredRun) -> impl Iterator<Item = (&'static str, &'static str, f64)> {
    let bytes = |read: bool| {
        let sizes = run.jobs.first();
        match sizes.map(|job| &job.block_sizes[usize::from(!read)]) {
            Some(BlockSizes::Fixed(bytes)) => Some(f64::from(*bytes)),
            _ => None,
        }
    };
    run.targets.iter().flat_map(move |target| {
        let of = if target.read { "read" } else { "write" };
        let rate = |bytes: f64| (of, "mb_s", target.value * bytes / 1e6);
        let both = match target.quantity {
            Quantity::Iops => [
                Some((of, "iops", target.value)),
                bytes(target.read).map(rate),
            ],
            Quantity::Mean => [Some((of, "mean", target.value)), None],
            Quantity::Submission | Quantity::Percentile(_) => [None, None],
        };
        both.into_iter().flatten()
    })
}

/// Returns the table of measured and modelled figures; `None` if there is nothing to compare.
pub fn table(review: &Review, width: Width) -> Option<String> {
    let all = review.figure_comparisons();
    if all.is_empty() {
        return None;
    }
    let mut table = terminal::plain();
    table.set_header([
        "Run",
        "I/Os",
        "Figure",
        "Measured",
        "Model",
        "Model / measured",
    ]);
    for one in &all {
        let (figure, shown): (&str, fn(f64) -> String) = match one.metric {
            "iops" => ("IOPS", count),
            "mb_s" => ("bandwidth", megabytes_a_second),
            "p50" => ("p50", microseconds),
            "p99" => ("p99", microseconds),
            "p99_99" => ("p99.99", microseconds),
            "p99_999" => ("p99.999", microseconds),
            _ => ("mean latency", microseconds),
        };
        table.add_row([
            one.run.clone(),
            format!("{}s", one.of),
            String::from(figure),
            shown(one.measured),
            shown(one.modelled),
            digits(one.modelled / one.measured),
        ]);
    }
    terminal::right(&mut table, 3..usize::MAX);
    Some(terminal::folded(&table, 3, width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit;
    use crate::review::{ReviewRequest, Suite, review};
    use lab::Lab;

    /// fio's result: a random read of 4 KiB at QD1, and one of an odd size.
    const RESULTS: &str = r#"{"jobs": [
      {"jobname": "qd1", "groupid": 0, "job options": {"rw": "randread", "bs": "4k", "ioengine": "libaio", "direct": "1"},
       "read": {"iops": 50000.0, "total_ios": 500000, "lat_ns": {"mean": 20000.0}}, "write": {"total_ios": 0}},
      {"jobname": "odd", "groupid": 1, "job options": {"rw": "randread", "bs": "12k", "ioengine": "libaio", "direct": "1"},
       "read": {"iops": 9000.0, "total_ios": 90000, "lat_ns": {"mean": 110000.0}}, "write": {"total_ios": 0}}]}"#;

    /// fio's percentiles are shown with the model's, at the same share.
    #[test]
    fn paced_reads_stand_beside_those_of_the_suite() {
        let request = ReviewRequest {
            drives: vec![catalogue::drive("p4800x-375").expect("a drive")],
            settings: Default::default(),
            host: catalogue::host("linux").expect("a host"),
            suite: Suite::UnderLoad,
            effort: Suite::UnderLoad.effort().with_ios(200),
            seed: 1,
            yours: Vec::new(),
            only_yours: false,
        };
        let mut review = review(&request, &Lab::new(), &|_| ()).expect("it runs");
        let run = StepFigures {
            step: String::from("under-load-80"),
            share: 0.8,
            figures: vec![("read", "mean", 100.0), ("read", "p50", 90.0)],
        };
        review.tell_paced(0, "m.json", &[run]);
        let beside = review.figure_comparisons();
        let told: Vec<_> = beside.iter().map(|it| (it.metric, it.measured)).collect();
        assert_eq!(told, [("mean", 100.0), ("p50", 90.0)]);
        let point = review.find(under_load::ID, |it| it.name == "under-load/80%");
        let read = point.and_then(|it| it.results[0].as_ref()?.read.as_ref());
        assert_eq!(Some(beside[0].modelled), read.map(|it| it.latency.mean_us));
    }

    #[test]
    fn a_measured_run_stands_beside_the_point_that_runs_the_same() {
        let request = ReviewRequest {
            drives: vec![catalogue::drive("p4800x-375").expect("a drive")],
            settings: Default::default(),
            host: catalogue::host("linux").expect("a host"),
            suite: Suite::Quick,
            effort: Suite::Quick.effort().with_ios(200),
            seed: 1,
            yours: Vec::new(),
            only_yours: false,
        };
        let mut review = review(&request, &Lab::new(), &|_| ()).expect("it runs");
        let before = review.published.len();
        assert_eq!(table(&review, None), None);
        let runs = fit::read("r.json", RESULTS).expect("fio's");
        assert_eq!(review.tell_measured(0, "r.json", &runs), 1);
        let told = &review.published[before..];
        assert!(told.iter().all(|one| one.source == "r.json"));
        let depth = |one: &&PublishedFigure| one.chapter == "queue-depth" && one.metric == "iops";
        let depth = told.iter().find(depth).expect("it is on that chart");
        assert_eq!(
            (depth.value, depth.settings.queue_depth),
            (Some(50000.0), Some(1))
        );
        let beside = review.figure_comparisons();
        let metrics: Vec<&str> = beside.iter().map(|one| one.metric).collect();
        assert_eq!(metrics, ["iops", "mb_s", "mean"]);
        let chapter = review.chapter(told[0].chapter).expect("a chapter");
        let same = chapter
            .points
            .iter()
            .find(|it| it.settings.runs(&told[0].settings));
        let read = same.and_then(|it| it.results[0].as_ref()?.read.as_ref());
        assert_eq!(Some(beside[0].modelled), read.map(|it| it.iops));
        let table = table(&review, None).expect("three rows");
        assert!(
            table.contains("50 k") && table.lines().count() == 4,
            "{table}"
        );
    }
}
