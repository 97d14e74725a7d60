//! Block sizes from 512 B to 1 MiB at queue depth 1: random and sequential, reads and writes. I/Os are aligned to the
//! block and to 512 B (which shows a read-modify-write or a second unit of the medium).

use super::queue_depth;
use crate::review::chapter::Chapter;
use crate::review::chart::{
    ChapterSection, Chart, ChartAxis, ChartChoice, DIRECTION, Draws, LineChart,
};
use crate::review::measure::Keep;
use crate::review::results::PointSettings;
use crate::review::shape::Shape;
use crate::review::suite::{Effort, PointSpec, Suite, size};
use crate::review::verdict::range::{percent, span};
use crate::review::verdict::{ReviewView, Seeds, overtakings, sentence};
use text::digits::{bytes_binary, microseconds};
use text::words::listed;

const ID: &str = "block-size";

/// The chapter.
pub(crate) struct BlockSize;

impl Chapter for BlockSize {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "Queue depth 1: latency by block size"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "Queue depth 1",
            about: "One I/O in flight, from 512 bytes to 1 MiB. This is the load of a program that waits for each \
                    I/O before it submits the next. The 512 B-aligned setting shows the cost of misaligned I/O.",
            charts: &[CHART],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        let mut points = Vec::new();
        if !suite.sweeps() {
            return points;
        }
        for pattern in ["random", "sequential"] {
            for direction in ["read", "write"] {
                for alignment in ["block", "sector"] {
                    for power in 9..=20 {
                        points.push(point(pattern, direction, alignment, 1 << power));
                    }
                }
            }
        }
        points
    }

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        [alone(seeds), crossings(seeds), unaligned(seeds)].concat()
    }

    fn shows(&self, shape: &Shape) -> Option<PointSettings> {
        let fits = shape.is_one_way() && shape.depth == 1;
        if !fits || !(512..=1 << 20).contains(&shape.bytes) {
            return None;
        }
        let alignment = match shape.align {
            align if align >= shape.bytes => "block",
            _ => "sector",
        };
        Some(PointSettings {
            alignment: Some(alignment),
            ..shape.settings()?
        })
    }
}

const CHART: Chart = Chart {
    id: ID,
    title: "Block sizes at queue depth 1",
    draws: Draws::Lines(LineChart {
        choices: &[
            ChartChoice {
                name: "pattern",
                label: "Access",
                options: &[("random", "Random"), ("sequential", "Sequential")],
                selects: true,
            },
            DIRECTION,
            ChartChoice {
                name: "alignment",
                label: "Offsets",
                options: &[("block", "Block-aligned"), ("sector", "512 B-aligned")],
                selects: true,
            },
        ],
        metrics: &["mb_s", "iops", "mean", "p50", "p99"],
        metric: "mb_s",
        scale: "log10",
        axes: &[ChartAxis {
            setting: "block_bytes",
            choice: "",
            kind: "log2",
            label: "Block size",
            name: "Block size",
            column: "Block size",
            format: "bytes",
            range: None,
        }],
        caption: "{pattern} {direction}s at queue depth 1",
        own_points: false,
    }),
};

fn point(
    pattern: &'static str,
    direction: &'static str,
    alignment: &'static str,
    bytes: u64,
) -> PointSpec {
    let random = pattern == "random";
    let sector = alignment == "sector";
    let rw = if random {
        format!("rand{direction}")
    } else {
        direction.to_owned()
    };
    let mut options = vec![("rw", rw), ("bs", size(bytes))];
    if sector && random {
        options.push(("blockalign", "512".into()));
    } else if sector {
        // Sequential blocks keep their initial misalignment.
        options.push(("blockalign", "512".into()));
        options.push(("offset", "512".into()));
    }
    PointSpec {
        name: format!("{ID}/{pattern}-{direction}/{alignment}/{}", size(bytes)),
        chapter: ID,
        settings: PointSettings {
            direction: Some(direction),
            pattern: Some(pattern),
            block_bytes: Some(bytes),
            align_bytes: Some(if sector { 512 } else { bytes }),
            alignment: Some(alignment),
            queue_depth: Some(1),
            threads: Some(1),
            ..PointSettings::default()
        },
        options,
        threads: vec![(1, 1)],
        keep: Keep { bands: false },
        begins_elsewhere: !random,
        ..PointSpec::default()
    }
}

/// States which drive has the lowest latency at QD1.
fn alone(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let one = |direction| {
        let order = seeds.ranked(|facts, drive| {
            Some(
                queue_depth::figures_at_depth(facts, drive, direction, 1)?
                    .latency
                    .mean_us,
            )
        })?;
        let (&(best, least), others) = order.split_first()?;
        let compared: Vec<String> = others
            .iter()
            .map(|&(drive, us)| format!("{} on {}", us.words(microseconds), facts.the(drive)))
            .collect();
        let mut text = format!(
            "At QD1 a 4 KiB random {direction} takes a mean of {} on {}",
            least.words(microseconds),
            facts.the(best)
        );
        if !compared.is_empty() {
            text.push_str(&format!("; {}", listed(&compared)));
        }
        Some(text + ".")
    };
    ["read", "write"].into_iter().filter_map(one).collect()
}

/// States where one drive overtakes another as the block size grows.
fn crossings(seeds: &Seeds<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for (pattern, direction) in [
        ("random", "read"),
        ("random", "write"),
        ("sequential", "read"),
        ("sequential", "write"),
    ] {
        let curve = |facts: &ReviewView<'_>, drive| {
            facts.curve(
                (ID, drive, direction),
                |point| {
                    point.settings.pattern == Some(pattern)
                        && point.settings.alignment == Some("block")
                },
                |point| point.settings.block_bytes,
                |figures| figures.mb_s,
            )
        };
        let above = |x| {
            format!(
                "at {} and above",
                span(x, |bytes| bytes_binary(bytes as f64))
            )
        };
        let clauses = overtakings(seeds, curve, above);
        if !clauses.is_empty() {
            let clauses = clauses.join("; ");
            sentences.push(format!(
                "{} {direction}s at QD1: {clauses}.",
                sentence(pattern)
            ));
        }
    }
    sentences
}

/// States the share of the 4 KiB rate that remains with alignment to 512 B only, if much is lost.
fn unaligned(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let at = |facts: &ReviewView<'_>, drive: usize, alignment: &str, direction: &str| {
        let point = facts.review.find(ID, |point| {
            point.settings.pattern == Some("random")
                && point.settings.direction == Some(direction)
                && point.settings.alignment == Some(alignment)
                && point.settings.block_bytes == Some(4096)
        })?;
        Some(facts.figures(point, drive, direction)?.iops)
    };
    let of_drive = |drive| {
        let left = |direction| {
            let share = seeds.range(|facts| {
                Some(at(facts, drive, "sector", direction)? / at(facts, drive, "block", direction)?)
            })?;
            (share.high < 0.95).then(|| format!("{direction}s at {}", percent(share)))
        };
        let left: Vec<String> = ["read", "write"].into_iter().filter_map(left).collect();
        (!left.is_empty()).then(|| format!("{} does {}", facts.the(drive), listed(&left)))
    };
    let all: Vec<String> = (0..facts.drives()).filter_map(of_drive).collect();
    if all.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "With offsets aligned to 512 B instead of 4 KiB, {} of the aligned rate (4 KiB random, QD1).",
        all.join("; ")
    )]
}
