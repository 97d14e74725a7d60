//! Sustained sequential writes with and without heat: how far a drive that warms up throttles itself.
//!
//! Each drive writes for ten minutes, first without a temperature, then with the drive's thermal figures
//! (`thermal.ambient`, `thermal.airflow`; [`lab::Scenario::heat`]). The length follows S4, which says of U.2 drives that
//! air must cool them. Not modelled: pools and RAID 0, as in a run with heat.

use model::Span;
use model::media::Precondition;

use crate::review::chapter::{Chapter, SummaryRow, Topic};
use crate::review::chart::{ChapterSection, Chart, Draws};
use crate::review::course::{Condition, Long, StopCondition, WorkloadRange};
use crate::review::measure::Keep;
use crate::review::results::{Point, PointSettings, Review};
use crate::review::suite::{Effort, PointSpec, RunPolicy, Suite};
use text::digits::count;

const ID: &str = "heat";
const DEPTH: u32 = 32;
const BLOCK: u64 = 128 << 10;

/// Sustained writes without and with heat.
pub(crate) struct HeatChapter;

impl Chapter for HeatChapter {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "Sustained writes with heat"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "Sustained writes with heat",
            about: "Ten minutes of sequential 128 KiB writes, 32 in flight, without a temperature and with the drive's \
                    thermal figures (`--ambient`, `--airflow`). A drive that reaches its critical temperature throttles \
                    itself. The thermal resistance, time constant and throttling of most drives are assumed.",
            charts: &[CHART],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        match suite {
            Suite::Heat => vec![
                point("without-heat", Condition::None),
                point("with-heat", Condition::Heat),
            ],
            _ => Vec::new(),
        }
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[SummaryRow {
            topic: Topic::OverTime,
            name: "Sustained write: without heat, with heat",
            value: |review, drive| {
                let rate = |name: &str| {
                    let result = found(review, name)?.results[drive].as_ref()?;
                    Some(result.write.as_ref()?.mb_s)
                };
                let (cool, hot) = (rate("without-heat")?, rate("with-heat")?);
                Some(format!("{}, {} MB/s", count(cool), count(hot)))
            },
        }]
    }
}

fn found<'a>(review: &'a Review, name: &str) -> Option<&'a Point> {
    review.find(ID, |point| point.name.ends_with(&format!("/{name}")))
}

const CHART: Chart = Chart {
    id: ID,
    title: "Ten minutes of sequential writes",
    draws: Draws::Gauged {
        caption: "Sequential 128 KiB writes without and with heat",
        metrics: &["mb_s", "iops", "mean_us", "max_us"],
    },
};

fn point(name: &'static str, condition: Condition) -> PointSpec {
    PointSpec {
        name: format!("{ID}/{name}"),
        chapter: ID,
        settings: PointSettings {
            direction: Some("write"),
            pattern: Some("sequential"),
            block_bytes: Some(BLOCK),
            queue_depth: Some(DEPTH),
            threads: Some(1),
            profile: Some(name),
            ..PointSettings::default()
        },
        state: Precondition::Filled,
        options: vec![("rw", "write".into()), ("bs", "128k".into())],
        threads: vec![(1, DEPTH)],
        course: RunPolicy::Long(Long {
            ends: StopCondition::After(Span::from_ms(600_000)),
            warm: Span::ZERO,
            filled: false,
            over_time: true,
            range: WorkloadRange::Share(1.0),
            scaled: false,
            condition,
        }),
        keep: Keep { bands: false },
        ..PointSpec::default()
    }
}
