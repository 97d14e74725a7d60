//! Cache warm-up: hit ratio and latency over time.
//!
//! 4 KiB reads from one thread at QD16, over ranges of 0.5 to 4 times the cache. Addresses are uniform, or follow
//! Zipf's law around the middle of the range (so that each seed, and each job, has the same set of hot blocks). One
//! run has a scan in the middle that reads the whole range once, sequentially. Runs end by the number of reads: ten
//! for each cache line, times the ratio of range to cache. For a very large cache in front of hard disks the suite
//! shortens the run and reports that. Not modelled: restarts.

use crate::review::chapter::{Chapter, SummaryRow, Topic};
use crate::review::chart::{ChapterSection, Chart, Draws};
use crate::review::course::{Condition, Long, StopCondition, WorkloadRange};
use crate::review::results::{Measurement, PointSettings, Review};
use crate::review::suite::{Effort, PointSpec, RunPolicy, Suite};
use crate::review::verdict::Seeds;
use crate::review::verdict::range::percent;
use model::Span;
use text::words::listed;

const ID: &str = "cache-warmup";

/// Reads for each line of the cache.
const READS: f64 = 10.0;

/// Name, ratio of range to cache, Zipf's exponent, and whether a scan reads the whole range.
const POINTS: [(&str, f64, Option<&str>, bool); 7] = [
    ("uniform, 0.5 x cache", 0.5, None, false),
    ("uniform, 1 x cache", 1.0, None, false),
    ("uniform, 2 x cache", 2.0, None, false),
    ("uniform, 4 x cache", 4.0, None, false),
    (ZIPF_LOW, 4.0, Some("zipf:0.8:0.5"), false),
    (ZIPF_HIGH, 4.0, Some("zipf:1.2:0.5"), false),
    (SCAN, 2.0, Some("zipf:0.8:0.5"), true),
];

const ZIPF_LOW: &str = "Zipf 0.8, 4 x cache";
const ZIPF_HIGH: &str = "Zipf 1.2, 4 x cache";
const SCAN: &str = "Zipf 0.8, 2 x cache, with a scan";

/// The jobs of the second third, with the concurrent scan, and of the last third.
const AND_SCAN: &str = "
[during]
stonewall
iodepth=16

[scan]
rw=read
bs=1m
iodepth=4
loops=1

[after]
stonewall
iodepth=16
";

/// The chapter.
pub(crate) struct Warmup;

impl Chapter for Warmup {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "Cache warm-up"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "Cache warm-up",
            about: "4 KiB random reads, 16 outstanding, over ranges of half to four times the cache, which is empty at the start. \
                    Addresses are uniformly distributed, or a few blocks are read often (Zipf). In one run, the whole range is read \
                    once sequentially (a scan), halfway through the run. The blocks that are read often are in the middle of the \
                    range, where the scan reads them too. Each seed begins with an empty cache; the first seed is shown. Flash runs \
                    scaled, with times multiplied to match; pools with hard disks do not.",
            charts: &[CHART, MEMBERS],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        match suite {
            Suite::CacheWarmup => POINTS.map(point).into(),
            _ => Vec::new(),
        }
    }

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        let facts = &seeds.all;
        let mut all = Vec::new();
        for drive in 0..facts.drives() {
            let clauses: Vec<String> = [ZIPF_LOW, ZIPF_HIGH]
                .iter()
                .filter_map(|name| {
                    let range = seeds.range(|facts| {
                        let point = facts
                            .review
                            .find(ID, |it| it.settings.profile == Some(name))?;
                        hits_at_end(facts.result(point, drive)?)
                    })?;
                    Some(format!("{} of the reads hit ({name})", percent(range)))
                })
                .collect();
            if !clauses.is_empty() {
                all.push(format!(
                    "{}, at the end of the run: {}.",
                    facts.opening(drive),
                    listed(&clauses)
                ));
            }
        }
        all
    }

    fn rows(&self) -> &'static [SummaryRow] {
        const {
            &[
                row::<0>("Hits at the end: uniform, 0.5 x cache"),
                row::<1>("uniform, 1 x cache"),
                row::<2>("uniform, 2 x cache"),
                row::<3>("uniform, 4 x cache"),
                row::<4>("Zipf 0.8, 4 x cache"),
                row::<5>("Zipf 1.2, 4 x cache"),
                row::<6>("Zipf 0.8, 2 x cache, after a scan"),
            ]
        }
    }
}

const CHART: Chart = Chart {
    id: ID,
    title: "Hit rate and latency during warm-up",
    draws: Draws::Gauged {
        caption: "Cache warm-up",
        metrics: &["hit_ratio", "mean_us", "max_us", "iops", "mb_s"],
    },
};

const MEMBERS: Chart = Chart {
    id: "cache-warmup-members",
    title: "Load and lifetime of each member",
    draws: Draws::Members {
        caption: "Members by workload",
    },
};

const fn row<const POINT: usize>(name: &'static str) -> SummaryRow {
    SummaryRow {
        topic: Topic::OverTime,
        name,
        value: |review, drive| {
            let share = hits_at_end(of_point(review, drive, POINTS[POINT].0)?)?;
            Some(format!("{} %", text::digits::significant(share * 100.0, 3)))
        },
    }
}

fn of_point<'a>(review: &'a Review, drive: usize, name: &str) -> Option<&'a Measurement> {
    let point = review.find(ID, |it| it.settings.profile == Some(name))?;
    point.results[drive].as_ref()
}

/// Returns the mean hit ratio of the last quarter of a run.
fn hits_at_end(result: &Measurement) -> Option<f64> {
    let ratio = &result.series.as_ref()?.hit_ratio;
    let last: Vec<f64> = ratio[ratio.len() - ratio.len() / 4..]
        .iter()
        .flatten()
        .copied()
        .collect();
    (!last.is_empty()).then(|| last.iter().sum::<f64>() / last.len() as f64)
}

fn point((name, times, zipf, scan): (&'static str, f64, Option<&str>, bool)) -> PointSpec {
    let mut options = vec![("rw", "randread".to_owned()), ("bs", "4k".into())];
    if let Some(law) = zipf {
        options.push(("random_distribution", law.into()));
    }
    let reads = READS * f64::max(times, 1.0);
    PointSpec {
        name: format!("{ID}/{name}"),
        chapter: ID,
        settings: PointSettings {
            direction: Some("read"),
            pattern: Some("random"),
            block_bytes: Some(4096),
            queue_depth: Some(16),
            threads: Some(1),
            profile: Some(name),
            ..PointSettings::default()
        },
        options,
        threads: vec![(1, 16)],
        more: if scan {
            AND_SCAN.to_owned()
        } else {
            String::new()
        },
        course: RunPolicy::Long(Long {
            // The run with a scan has three parts.
            ends: StopCondition::AfterReads(if scan { reads / 3.0 } else { reads }),
            warm: Span::ZERO,
            filled: false,
            over_time: true,
            range: WorkloadRange::Cache(times),
            scaled: true,
            condition: Condition::None,
        }),
        ..PointSpec::default()
    }
}
