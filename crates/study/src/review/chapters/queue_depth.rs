//! 4 KiB random reads and writes at 29 queue depths, spread over up to four threads, because one thread cannot
//! saturate a fast drive.

use crate::review::chapter::{Chapter, SummaryRow, Topic};
use crate::review::chart::{ChapterSection, Chart, DIRECTION, Draws, LoadCurve};
use crate::review::results::{DirectionResult, Point, PointSettings, Review};
use crate::review::shape::Shape;
use crate::review::suite::{Effort, PointSpec, Suite, spread};
use crate::review::verdict::crossing::{CLEAR, saturates};
use crate::review::verdict::range::{ends, span};
use crate::review::verdict::{Curve, ReviewView, Seeds, overtakings, peak, sentence};
use text::digits::{count, microseconds};

const ID: &str = "queue-depth";

/// Minimum number of I/Os of a seed, because tails are shown: ten beyond p99.99, and beyond p99.999 where a sentence
/// uses it.
const TAIL: u64 = 105_000;
const DEEP_TAIL: u64 = 1_050_000;

/// Share of its maximum rate at which a drive counts as saturated.
const SATURATED: f64 = 0.97;

/// The chapter.
pub(crate) struct QueueDepth;

impl Chapter for QueueDepth {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "Queue depth: 4 KiB random I/O"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "Queue depth",
            about: "4 KiB random I/O at 29 queue depths, spread over up to four threads. Beyond the depth at which a drive \
                    saturates, a greater depth only adds latency.",
            charts: &CHARTS,
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        let mut points = Vec::new();
        if !suite.sweeps() {
            return points;
        }
        for direction in ["read", "write"] {
            points.extend(depths().map(|depth| point(direction, depth)));
        }
        points
    }

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        [saturation(seeds), crossings(seeds)].concat()
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &ROWS
    }

    fn card(&self, review: &Review, drive: usize) -> Vec<(&'static str, Option<String>)> {
        let at = |direction, depth| of_review(review, drive, direction, depth);
        let iops = |direction| most_iops(review, drive, direction).map(iops_words);
        let mean = |figures: &DirectionResult| microseconds(figures.latency.mean_us);
        vec![
            ("Random read, QD1", at("read", 1).map(mean)),
            ("Random write, QD1", at("write", 1).map(mean)),
            (
                "99.999th of reads, QD16",
                at("read", 16)
                    .and_then(|figures| figures.latency.p99_999_us)
                    .map(microseconds),
            ),
            ("Random read, peak", iops("read")),
            ("Random write, peak", iops("write")),
        ]
    }

    fn sweeps(&self) -> &'static [LoadCurve] {
        &[
            LoadCurve {
                chapter: ID,
                direction: "read",
                label: "Random reads",
                along: "queue_depth",
            },
            LoadCurve {
                chapter: ID,
                direction: "write",
                label: "Random writes",
                along: "queue_depth",
            },
        ]
    }

    fn spreads(&self, point: &Point) -> Vec<(String, &'static str)> {
        let settings = &point.settings;
        match (settings.direction, settings.queue_depth) {
            (Some(direction), Some(depth @ (1 | 16 | 64))) => {
                vec![(format!("4 KiB random {direction}, QD{depth}"), direction)]
            }
            _ => Vec::new(),
        }
    }

    fn shows(&self, shape: &Shape) -> Option<PointSettings> {
        let fits = shape.is_one_way() && shape.is_small() && shape.threads >= shape.depth.min(4);
        fits.then(|| shape.settings())?
    }
}

const CHARTS: [Chart; 2] = [
    Chart::by_depth(ID, "4 KiB random I/O by queue depth", "iops"),
    Chart {
        id: "costs",
        title: "CPU time and power",
        draws: Draws::Costs {
            choices: &[DIRECTION],
            caption: "4 KiB random {direction}s",
        },
    },
];

/// Returns the depths 1 to 16, 18, 20, then every fourth up to 64.
pub(super) fn depths() -> impl Iterator<Item = u32> + Clone {
    (1..=16).chain([18, 20]).chain((24..=64).step_by(4))
}

fn point(direction: &'static str, depth: u32) -> PointSpec {
    PointSpec {
        name: format!("{ID}/{direction}/{depth}"),
        chapter: ID,
        settings: PointSettings {
            direction: Some(direction),
            pattern: Some("random"),
            block_bytes: Some(4096),
            queue_depth: Some(depth),
            threads: Some(depth.min(4)),
            ..PointSettings::default()
        },
        options: vec![("rw", format!("rand{direction}")), ("bs", "4k".into())],
        threads: spread(depth, 4),
        is_deep: matches!(depth, 1 | 16 | 64),
        is_between: !depth.is_power_of_two(),
        fewest: if depth == 16 { DEEP_TAIL } else { TAIL },
        ..PointSpec::default()
    }
}

/// Checks whether the review has points of this chapter.
pub(super) fn is_in(review: &Review) -> bool {
    review.chapter(ID).is_some()
}

/// Returns the maximum IOPS over all depths.
pub(super) fn saturating(
    found: &crate::review::run::PartialResults<'_>,
    drive: usize,
    direction: &str,
) -> Option<f64> {
    let points = found.points(ID);
    let points = points.filter(|point| point.settings.direction == Some(direction));
    let results = points.filter_map(|point| point.results[drive].as_ref());
    results.map(|result| result.iops()).max_by(f64::total_cmp)
}

fn is_at(point: &Point, direction: &str, depth: u32) -> bool {
    point.settings.direction == Some(direction) && point.settings.queue_depth == Some(depth)
}

/// Returns the figures at a depth for these seeds.
pub(super) fn figures_at_depth<'a>(
    facts: &ReviewView<'a>,
    drive: usize,
    direction: &str,
    depth: u32,
) -> Option<&'a DirectionResult> {
    let point = facts
        .review
        .find(ID, |point| is_at(point, direction, depth))?;
    facts.figures(point, drive, direction)
}

fn of_review<'a>(
    review: &'a Review,
    drive: usize,
    direction: &str,
    depth: u32,
) -> Option<&'a DirectionResult> {
    let point = review.find(ID, |point| is_at(point, direction, depth))?;
    point.results[drive].as_ref()?.direction(direction)
}

fn most_iops(review: &Review, drive: usize, direction: &str) -> Option<f64> {
    review.most((ID, drive, direction), |figures| figures.iops)
}

fn iops_words(iops: f64) -> String {
    format!("{} IOPS", count(iops))
}

const ROWS: [SummaryRow; 8] = [
    SummaryRow {
        topic: Topic::Alone,
        name: "4 KiB random read, QD1: mean",
        value: |review, drive| {
            of_review(review, drive, "read", 1).map(|f| microseconds(f.latency.mean_us))
        },
    },
    SummaryRow {
        topic: Topic::Alone,
        name: "4 KiB random write, QD1: mean",
        value: |review, drive| {
            of_review(review, drive, "write", 1).map(|f| microseconds(f.latency.mean_us))
        },
    },
    SummaryRow {
        topic: Topic::Most,
        name: "4 KiB random read: peak IOPS (reached at)",
        value: |review, drive| peak_words(review, drive, "read"),
    },
    SummaryRow {
        topic: Topic::Most,
        name: "4 KiB random write: peak IOPS (reached at)",
        value: |review, drive| peak_words(review, drive, "write"),
    },
    SummaryRow {
        topic: Topic::Tails,
        name: "4 KiB random read, QD16: 99th",
        value: |review, drive| {
            let figures = of_review(review, drive, "read", 16)?;
            figures.latency.p99_us.map(microseconds)
        },
    },
    SummaryRow {
        topic: Topic::Tails,
        name: "4 KiB random read, QD16: 99.999th",
        value: |review, drive| {
            let figures = of_review(review, drive, "read", 16)?;
            figures.latency.p99_999_us.map(microseconds)
        },
    },
    SummaryRow {
        topic: Topic::Tails,
        name: "4 KiB random write, QD16: 99.999th",
        value: |review, drive| {
            let figures = of_review(review, drive, "write", 16)?;
            figures.latency.p99_999_us.map(microseconds)
        },
    },
    SummaryRow {
        topic: Topic::Wear,
        name: "Write amplification, steady",
        value: |review, drive| {
            let point = review.find(ID, |point| is_at(point, "write", 16))?;
            let factor = point.results[drive].as_ref()?.write_amplification?;
            Some(format!("{factor:.2}"))
        },
    },
];

/// Returns the maximum IOPS, and the smallest depth that comes within 3 % of it.
fn peak_words(review: &Review, drive: usize, direction: &str) -> Option<String> {
    let best = most_iops(review, drive, direction)?;
    let enough = review.find(ID, |point| {
        let figures = point.results[drive]
            .as_ref()
            .and_then(|found| found.direction(direction));
        point.settings.direction == Some(direction)
            && figures.is_some_and(|figures| figures.iops >= SATURATED * best)
    })?;
    let depth = enough.settings.queue_depth?;
    Some(format!("{} (QD{depth})", iops_words(best)))
}

fn by_depth(facts: &ReviewView<'_>, drive: usize, direction: &str) -> Curve {
    facts.curve(
        (ID, drive, direction),
        |_| true,
        |point| point.settings.queue_depth.map(u64::from),
        |figures| figures.iops,
    )
}

fn at_depth(ends: (u64, u64)) -> String {
    span(ends, |depth| format!("QD{depth}"))
}

/// States where each drive saturates.
fn saturation(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let of_drive = |drive: usize, direction: &str| {
        let most = seeds.range(|facts| peak(&by_depth(facts, drive, direction)))?;
        let curves: Vec<Curve> = seeds
            .each
            .iter()
            .map(|facts| by_depth(facts, drive, direction))
            .collect();
        let (name, most) = (facts.the(drive), most.words(count));
        let found = || curves.iter().map(|curve| saturates(curve, SATURATED));
        if let Some(at) = ends(found().map(|at| at.map(|(depth, _)| depth))) {
            return Some(format!(
                "{name} saturates at {} with {most} IOPS",
                at_depth(at)
            ));
        }
        let deepest = curves.first()?.last()?.0;
        // If the seeds do not agree, neither sentence is made.
        let grows = found().all(|at| at.is_none());
        grows.then(|| format!("{name} still grows at QD{deepest}, with {most} IOPS"))
    };
    let one = |direction| {
        let clauses: Vec<String> = (0..facts.drives())
            .filter_map(|drive| of_drive(drive, direction))
            .collect();
        (!clauses.is_empty()).then(|| format!("Random {direction}s: {}.", clauses.join("; ")))
    };
    ["read", "write"].into_iter().filter_map(one).collect()
}

/// States where one drive overtakes another as queue depth grows, and at which depth the leader exceeds the maximum of
/// all others.
fn crossings(seeds: &Seeds<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for direction in ["read", "write"] {
        sentences.extend(leader(seeds, direction));
        let curve = |facts: &ReviewView<'_>, drive| by_depth(facts, drive, direction);
        let at = |x| match x {
            (low, high) if low == high => format!("at QD{low}"),
            x => format!("between {}", at_depth(x).replace(" to ", " and ")),
        };
        let clauses = overtakings(seeds, curve, at);
        if !clauses.is_empty() {
            sentences.push(sentence(&format!(
                "in random {direction}s {}.",
                clauses.join("; ")
            )));
        }
    }
    sentences
}

/// States at which depth the fastest drive exceeds the maximum of each other drive at any depth.
fn leader(seeds: &Seeds<'_>, direction: &str) -> Option<String> {
    let facts = &seeds.all;
    let most = |facts: &ReviewView<'_>, drive| peak(&by_depth(facts, drive, direction));
    let order = seeds.ranked(most)?;
    let [.., (second, _), (leader, _)] = order[..] else {
        return None;
    };
    let from = seeds.each.iter().map(|facts| {
        let others = order.iter().filter(|(drive, _)| *drive != leader);
        let runner_up = others
            .filter_map(|&(drive, _)| most(facts, drive))
            .max_by(f64::total_cmp)?;
        let curve = by_depth(facts, leader, direction);
        let beats = curve
            .iter()
            .find(|&&(_, iops)| iops > runner_up * (1.0 + CLEAR));
        beats.map(|&(depth, _)| depth)
    });
    let from = ends(from).filter(|&(_, last)| last <= 32)?;
    let best = match order.len() {
        2 => format!("{}'s", facts.the(second)),
        _ => "the others'".to_owned(),
    };
    Some(format!(
        "At {} and above, {} has more IOPS than {best} best at any depth in random {direction}s.",
        at_depth(from),
        facts.the(leader)
    ))
}
