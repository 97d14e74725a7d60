//! Two chapters with 128 KiB sequential reads and writes by queue depth from one thread. They differ in the initial
//! state of the drives: overwritten at random, as in all other chapters, and filled sequentially, as data sheets
//! assume. They share a file because one sentence and one line of a card report both.

use model::media::Precondition;

use super::queue_depth;
use crate::review::chapter::{Chapter, SummaryRow, Topic};
use crate::review::chart::{ChapterSection, Chart};
use crate::review::results::{Point, PointSettings, Review};
use crate::review::shape::Shape;
use crate::review::suite::{Effort, PointSpec, Suite};
use crate::review::verdict::crossing::CLEAR;
use crate::review::verdict::range::SeedRange;
use crate::review::verdict::{ReviewView, Seeds, peak};
use text::digits::megabytes_a_second;
use text::words::listed;

const SCATTERED: &str = "sequential";
const IN_ORDER: &str = "sequential-filled";

/// Depths that show the saturation of a drive.
const DEPTHS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];

/// Fewer depths, for a drive whose curve is known from the other chapter.
const FEWER_DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// The chapter on drives overwritten at random.
pub(crate) struct Sequential;

/// The chapter on drives filled sequentially.
pub(crate) struct SequentialFilled;

impl Chapter for Sequential {
    fn id(&self) -> &'static str {
        SCATTERED
    }

    fn title(&self) -> &'static str {
        "Sequential, on drives overwritten at random: 128 KiB by queue depth"
    }

    fn section(&self) -> ChapterSection {
        const CHARTS: [Chart; 1] = [Chart::by_depth(
            SCATTERED,
            "128 KiB sequential I/O by queue depth, overwritten at random before",
            "mb_s",
        )];
        ChapterSection {
            id: SCATTERED,
            title: "Sequential",
            about: "128 KiB sequential I/O from one thread: copies, scans, backups, logs. As in the chapters above, \
                    the drives were overwritten at random before, so data at consecutive addresses is scattered over the \
                    dies of a flash drive.",
            charts: &CHARTS,
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        let point = |direction, depth| point(SCATTERED, self.state(), direction, depth);
        if suite.is_ours() {
            both_ways(DEPTHS.into_iter(), point)
        } else if suite.sweeps() {
            both_ways(queue_depth::depths(), point)
        } else {
            Vec::new()
        }
    }

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        rates(seeds)
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[
            SummaryRow {
                topic: Topic::LargeReads,
                name: "128 KiB sequential read, overwritten at random: peak",
                value: |review, drive| most(review, SCATTERED, drive, "read"),
            },
            SummaryRow {
                topic: Topic::LargeWrites,
                name: "128 KiB sequential write, overwritten at random: peak",
                value: |review, drive| most(review, SCATTERED, drive, "write"),
            },
        ]
    }

    fn card(&self, review: &Review, drive: usize) -> Vec<(&'static str, Option<String>)> {
        let rate = |direction| {
            let scattered = most(review, SCATTERED, drive, direction)?;
            Some(match most(review, IN_ORDER, drive, direction) {
                Some(filled) if filled != scattered => {
                    format!("{scattered} ({filled} filled in order)")
                }
                _ => scattered,
            })
        };
        vec![
            ("Sequential read", rate("read")),
            ("Sequential write", rate("write")),
        ]
    }

    fn spreads(&self, point: &Point) -> Vec<(String, &'static str)> {
        let settings = &point.settings;
        match (settings.direction, settings.queue_depth) {
            (Some(direction), Some(depth @ (1 | 8))) => {
                vec![(
                    format!("128 KiB sequential {direction}, QD{depth}"),
                    direction,
                )]
            }
            _ => Vec::new(),
        }
    }

    fn shows(&self, shape: &Shape) -> Option<PointSettings> {
        shown(shape)
    }
}

impl Chapter for SequentialFilled {
    fn id(&self) -> &'static str {
        IN_ORDER
    }

    fn title(&self) -> &'static str {
        "Sequential, on sequentially filled drives: 128 KiB by queue depth"
    }

    fn section(&self) -> ChapterSection {
        const CHARTS: [Chart; 1] = [Chart::by_depth(
            IN_ORDER,
            "128 KiB sequential I/O by queue depth, filled in order before",
            "mb_s",
        )];
        ChapterSection {
            id: IN_ORDER,
            title: "Sequential, on filled drives",
            about: "128 KiB sequential I/O on drives that were filled sequentially, the usual condition of data sheets.",
            charts: &CHARTS,
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        if !suite.is_ours() {
            return Vec::new();
        }
        let point = |direction, depth| point(IN_ORDER, self.state(), direction, depth);
        both_ways(FEWER_DEPTHS.into_iter(), point)
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[
            SummaryRow {
                topic: Topic::LargeReads,
                name: "128 KiB sequential read, filled in order: peak",
                value: |review, drive| most(review, IN_ORDER, drive, "read"),
            },
            SummaryRow {
                topic: Topic::LargeWrites,
                name: "128 KiB sequential write, filled in order: peak",
                value: |review, drive| most(review, IN_ORDER, drive, "write"),
            },
        ]
    }

    fn shows(&self, shape: &Shape) -> Option<PointSettings> {
        shown(shape)
    }

    fn state(&self) -> Precondition {
        Precondition::Filled
    }
}

fn both_ways(
    depths: impl Iterator<Item = u32> + Clone,
    point: impl Fn(&'static str, u32) -> PointSpec,
) -> Vec<PointSpec> {
    let mut points = Vec::new();
    for direction in ["read", "write"] {
        points.extend(depths.clone().map(|depth| point(direction, depth)));
    }
    points
}

fn point(
    chapter: &'static str,
    state: Precondition,
    direction: &'static str,
    depth: u32,
) -> PointSpec {
    PointSpec {
        name: format!("{chapter}/{direction}/{depth}"),
        chapter,
        settings: PointSettings {
            direction: Some(direction),
            pattern: Some("sequential"),
            block_bytes: Some(128 << 10),
            queue_depth: Some(depth),
            threads: Some(1),
            ..PointSettings::default()
        },
        state,
        options: vec![("rw", direction.into()), ("bs", "128k".into())],
        threads: vec![(1, depth)],
        begins_elsewhere: true,
        ..PointSpec::default()
    }
}

fn shown(shape: &Shape) -> Option<PointSettings> {
    let in_order = shape.is_one_way() && !shape.random;
    let fits = in_order && shape.bytes == 128 << 10 && shape.threads == 1;
    fits.then(|| shape.settings())?
}

fn most(review: &Review, chapter: &str, drive: usize, direction: &str) -> Option<String> {
    let most = review.most((chapter, drive, direction), |figures| figures.mb_s);
    most.map(megabytes_a_second)
}

/// States the maximum sequential bandwidth of each drive in both states.
fn rates(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let most = |facts: &ReviewView<'_>, chapter: &str, drive: usize, direction: &str| {
        peak(&facts.curve(
            (chapter, drive, direction),
            |_| true,
            |point| point.settings.queue_depth.map(u64::from),
            |figures| figures.mb_s,
        ))
    };
    let clause = |direction: &str| {
        let mut order = seeds.ranked(|facts, drive| most(facts, SCATTERED, drive, direction))?;
        order.reverse();
        let one = |&(drive, scattered): &(usize, SeedRange)| {
            let filled = seeds.range(|facts| most(facts, IN_ORDER, drive, direction));
            let in_order =
                filled.filter(|filled| (filled.value / scattered.value - 1.0).abs() > CLEAR);
            let in_order = in_order.map_or(String::new(), |filled| {
                format!(" ({} filled in order)", megabytes_a_second(filled.value))
            });
            let rate = scattered.words(megabytes_a_second);
            format!("{} {rate}{in_order}", facts.the(drive))
        };
        let drives: Vec<String> = order.iter().map(one).collect();
        Some(format!("{direction}s {}", listed(&drives)))
    };
    let clauses: Vec<String> = ["read", "write"].into_iter().filter_map(clause).collect();
    if clauses.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "128 KiB sequential, at the best queue depth, on drives overwritten at random: {}.",
        clauses.join("; ")
    )]
}
