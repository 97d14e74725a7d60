//! Reads and writes of clients while a pool member is rebuilt: a member fails, and returns or is replaced.
//!
//! The member fails after an eighth of the run and is back after a quarter. The run lasts eight seconds, which suffices
//! for a member that missed a second of writes. The rebuild of a replaced member does not end in that time; its note has
//! the time that is left at the rate of the run. The load, 4 KiB with 70 % reads and 16 in flight, is that of this program's
//! other reviews of pools. Not included: pools without a member that others can rebuild.

use model::Span;
use model::media::Precondition;

use crate::review::chapter::{Chapter, SummaryRow, Topic};
use crate::review::chart::{ChapterSection, Chart, Draws};
use crate::review::course::{Condition, Long, StopCondition, WorkloadRange};
use crate::review::measure::Keep;
use crate::review::results::PointSettings;
use crate::review::suite::{Effort, PointSpec, RunPolicy, Suite};

const ID: &str = "rebuild";
const DEPTH: u32 = 16;

/// I/O of clients while a pool member is rebuilt.
pub(crate) struct RebuildChapter;

impl Chapter for RebuildChapter {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "Rebuild under load"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "Rebuild under load",
            about: "4 KiB random I/O, 70 % reads, 16 in flight, while the pool's first member that others can rebuild fails \
                    (after 1 s) and returns or is replaced (after 2 s). The rebuild is a load on all members. Notes below the \
                    figures have its duration and rate.",
            charts: &[CHART],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        match suite {
            Suite::Rebuild => vec![
                point("whole", Condition::None),
                point("returns", Condition::Returns),
                point("replaced", Condition::Replaced),
            ],
            _ => Vec::new(),
        }
    }

    fn rows(&self) -> &'static [SummaryRow] {
        const {
            &[
                row::<0>("Rebuild: a member returns"),
                row::<1>("Rebuild: a member is replaced"),
            ]
        }
    }
}

const fn row<const INDEX: usize>(name: &'static str) -> SummaryRow {
    SummaryRow {
        topic: Topic::OverTime,
        name,
        value: |review, drive| {
            let name = ["/returns", "/replaced"][INDEX];
            let point = review.find(ID, |point| point.name.ends_with(name))?;
            point.results[drive].as_ref()?.notes.last().cloned()
        },
    }
}

const CHART: Chart = Chart {
    id: ID,
    title: "I/O while a member is rebuilt",
    draws: Draws::Gauged {
        caption: "4 KiB, 70 % reads, during a rebuild",
        metrics: &["iops", "mean_us", "max_us", "mb_s"],
    },
};

fn point(name: &'static str, condition: Condition) -> PointSpec {
    PointSpec {
        name: format!("{ID}/{name}"),
        chapter: ID,
        settings: PointSettings {
            direction: Some("mix"),
            pattern: Some("random"),
            block_bytes: Some(4096),
            queue_depth: Some(DEPTH),
            threads: Some(1),
            read_percent: Some(70),
            profile: Some(name),
            ..PointSettings::default()
        },
        state: Precondition::Steady,
        options: vec![
            ("rw", "randrw".into()),
            ("rwmixread", "70".into()),
            ("bs", "4k".into()),
            ("norandommap", "1".into()),
        ],
        threads: vec![(1, DEPTH)],
        course: RunPolicy::Long(Long {
            ends: StopCondition::After(Span::from_ms(8_000)),
            warm: Span::ZERO,
            filled: false,
            over_time: true,
            range: WorkloadRange::Bytes(4 << 30),
            scaled: false,
            condition,
        }),
        keep: Keep { bands: false },
        ..PointSpec::default()
    }
}
