//! 4 KiB random mixes from reads only to writes only, in steps of 10 %, with 16 threads at QD1 each.

use crate::review::chapter::{Chapter, SummaryRow, Topic};
use crate::review::chart::{
    ALL_METRICS, ChapterSection, Chart, ChartAxis, ChartChoice, Draws, LineChart,
};
use crate::review::results::{Point, PointSettings, Review};
use crate::review::run::PartialResults;
use crate::review::shape::Shape;
use crate::review::suite::{Effort, PointSpec, Suite};
use crate::review::verdict::range::percent;
use crate::review::verdict::{ReviewView, Seeds};
use text::digits::{count, microseconds};
use text::words::listed;
use workload::job::Mix as Ways;

const ID: &str = "mix";

/// The chapter.
pub(crate) struct MixChapter;

impl Chapter for MixChapter {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "Mixed reads and writes"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "Mixed reads and writes",
            about: "4 KiB random I/O from 16 threads, each with one in flight, from writes only to reads only. On flash, \
                    reads are blocked by programs and erases.",
            charts: &[CHART],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        match suite.sweeps() {
            true => (0..=10).rev().map(|tens| point(tens * 10)).collect(),
            false => Vec::new(),
        }
    }

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        shares(seeds)
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[
            SummaryRow {
                topic: Topic::Mixes,
                name: "70/30 mix, 16 threads",
                value: |review, drive| {
                    let total = of_70(review)?.results[drive].as_ref()?.iops();
                    Some(format!("{} IOPS", count(total)))
                },
            },
            SummaryRow {
                topic: Topic::Mixes,
                name: "70/30 mix: 99th of reads",
                value: |review, drive| {
                    let read = of_70(review)?.results[drive].as_ref()?.read.as_ref()?;
                    read.latency.p99_us.map(microseconds)
                },
            },
        ]
    }

    fn spreads(&self, point: &Point) -> Vec<(String, &'static str)> {
        let Some(percent @ (70 | 30)) = point.settings.read_percent else {
            return Vec::new();
        };
        let of = |ways| format!("{ways} of a {percent}/{} mix", 100 - percent);
        vec![(of("Reads"), "read"), (of("Writes"), "write")]
    }

    fn shows(&self, shape: &Shape) -> Option<PointSettings> {
        let fits = shape.mix == Ways::ReadWrite && shape.is_small() && shape.depth == 16;
        fits.then(|| {
            Some(PointSettings {
                read_percent: Some(shape.read_percent),
                ..shape.settings()?
            })
        })?
    }
}

const CHART: Chart = Chart {
    id: ID,
    title: "Mixes of reads and writes",
    draws: Draws::Lines(LineChart {
        choices: &[ChartChoice {
            name: "direction",
            label: "Count",
            options: &[("total", "All"), ("read", "Reads"), ("write", "Writes")],
            selects: false,
        }],
        metrics: ALL_METRICS,
        metric: "iops",
        scale: "linear",
        axes: &[ChartAxis {
            setting: "read_percent",
            choice: "",
            kind: "linear",
            label: "Share of reads",
            name: "Reads",
            column: "Share of reads",
            format: "percent",
            range: Some([0.0, 100.0]),
        }],
        caption: "Mixes of 4 KiB random reads and writes",
        own_points: false,
    }),
};

fn point(read_percent: u32) -> PointSpec {
    PointSpec {
        name: format!("{ID}/{read_percent}"),
        chapter: ID,
        settings: PointSettings {
            direction: Some("mix"),
            pattern: Some("random"),
            block_bytes: Some(4096),
            queue_depth: Some(16),
            threads: Some(16),
            read_percent: Some(read_percent),
            ..PointSettings::default()
        },
        options: vec![
            ("rw", "randrw".into()),
            ("rwmixread", read_percent.to_string()),
            ("bs", "4k".into()),
        ],
        threads: vec![(16, 1)],
        is_deep: read_percent == 70,
        is_between: !matches!(read_percent, 0 | 50 | 70 | 100),
        ..PointSpec::default()
    }
}

fn with_reads(review: &Review, percent: u32) -> Option<&Point> {
    review.find(ID, |point| point.settings.read_percent == Some(percent))
}

/// Returns the point with 70 % reads.
pub(super) fn of_70(review: &Review) -> Option<&Point> {
    with_reads(review, 70)
}

/// Returns the IOPS of a drive in a 70/30 mix.
pub(super) fn saturating(found: &PartialResults<'_>, drive: usize) -> Option<f64> {
    let mut points = found.points(ID);
    let point = points.find(|point| point.settings.read_percent == Some(70))?;
    Some(point.results[drive].as_ref()?.iops())
}

/// Compares the 70/30 mix with reads alone.
fn shares(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let total = |facts: &ReviewView<'_>, drive: usize, percent: u32| {
        Some(
            facts
                .result(with_reads(facts.review, percent)?, drive)?
                .iops(),
        )
    };
    let share =
        |facts: &ReviewView<'_>, drive| Some(total(facts, drive, 70)? / total(facts, drive, 100)?);
    let Some(mut order) = seeds.ranked(share) else {
        return Vec::new();
    };
    order.reverse();
    let clauses: Vec<String> = order
        .iter()
        .map(|&(drive, share)| format!("{} {}", facts.the(drive), percent(share)))
        .collect();
    vec![format!(
        "A 70/30 mix (4 KiB random, 16 threads at QD1) has this share of the IOPS of reads alone: {}.",
        listed(&clauses)
    )]
}
