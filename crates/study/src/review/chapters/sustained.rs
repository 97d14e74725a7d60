//! 4 KiB random writes from a fresh drive to steady state: the write cliff, run on a drive with fewer blocks
//! ([`crate::review::cliff`]).

use model::media::Precondition;

use crate::review::chapter::{Chapter, SummaryRow, Topic};
use crate::review::chart::{ChapterSection, Chart, Draws};
use crate::review::measure::Keep;
use crate::review::results::{Measurement, PointSettings};
use crate::review::suite::{Effort, PointSpec, RunPolicy, Suite};
use crate::review::verdict::range::percent;
use crate::review::verdict::{ReviewView, Seeds};
use text::digits::count;

const THREADS: u32 = 4;
const DEPTH: u32 = 8;

const ID: &str = "sustained";

/// The chapter.
pub(crate) struct SteadyStateWrite;

impl Chapter for SteadyStateWrite {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "Steady-state write"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "Steady-state write",
            about: "4 KiB random writes from fresh, 32 in flight. A flash drive starts fast. Its rate drops when \
                    its spare area is used up and each write requires garbage collection.",
            charts: &[CHART],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        match suite {
            _ if suite.is_ours() => vec![point()],
            _ => Vec::new(),
        }
    }

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        falls_of(seeds)
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[SummaryRow {
            topic: Topic::OverTime,
            name: "Random write: fresh, then steady",
            value: |review, drive| {
                let point = review.find(ID, |_| true)?;
                let (first, last) = ends_of_cliff(point.results[drive].as_ref()?)?;
                Some(format!("{} → {} IOPS", count(first), count(last)))
            },
        }]
    }
}

const CHART: Chart = Chart {
    id: ID,
    title: "Random writes from fresh to steady state",
    draws: Draws::OverTime {
        caption: "4 KiB random writes from fresh",
    },
};

fn point() -> PointSpec {
    PointSpec {
        name: format!("{ID}/random-write"),
        chapter: ID,
        settings: PointSettings {
            direction: Some("write"),
            pattern: Some("random"),
            block_bytes: Some(4096),
            queue_depth: Some(THREADS * DEPTH),
            threads: Some(THREADS),
            ..PointSettings::default()
        },
        state: Precondition::Fresh,
        options: vec![("rw", "randwrite".into()), ("bs", "4k".into())],
        threads: vec![(THREADS, DEPTH)],
        course: RunPolicy::UntilSteady,
        keep: Keep { bands: false },
        ..PointSpec::default()
    }
}

/// Returns the first and the last rate.
pub(super) fn ends_of_cliff(result: &Measurement) -> Option<(f64, f64)> {
    let series = result.series.as_ref()?;
    let count = series.iops.len();
    if count < 8 {
        return None;
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    Some((
        mean(&series.iops[..count / 8]),
        mean(&series.iops[count - count / 4..]),
    ))
}

/// States the effect of sustained random writes on each drive.
fn falls_of(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let mut falls = Vec::new();
    let mut steady = Vec::new();
    for drive in 0..facts.drives() {
        let ends = |facts: &ReviewView<'_>| {
            let point = facts.review.find(ID, |_| true)?;
            ends_of_cliff(facts.result(point, drive)?)
        };
        let first = seeds.range(|facts| Some(ends(facts)?.0));
        let last = seeds.range(|facts| Some(ends(facts)?.1));
        let lost = seeds.range(|facts| ends(facts).map(|(first, last)| 1.0 - last / first));
        let (Some(first), Some(last), Some(lost)) = (first, last, lost) else {
            continue;
        };
        let name = facts.the(drive);
        if lost.low > 0.1 {
            falls.push(format!(
                "{name} drops by {}, from {} to {} IOPS",
                percent(lost),
                first.words(count),
                last.words(count)
            ));
        } else if lost.high <= 0.1 {
            steady.push(format!("{name} keeps its {} IOPS", last.words(count)));
        }
    }
    falls.extend(steady);
    if falls.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "Random writes to a fresh drive: {}.",
        falls.join("; ")
    )]
}
