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
use crate::review::verdict::Seeds;
use text::digits::megabytes_a_second;

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

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        let facts = &seeds.all;
        let drives = 0..facts.drives();
        let words = drives.filter_map(|drive| words(facts.review, drive, &facts.opening(drive)));
        words.collect()
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[SummaryRow {
            topic: Topic::OverTime,
            name: "Sustained write: cool, with heat",
            value: |review, drive| {
                let [cool, hot] = rates(review, drive)?.map(megabytes_a_second);
                Some(format!("{cool}, {hot}"))
            },
        }]
    }
}

/// Returns the rates of a drive without and with heat, in 10^6 bytes per second.
fn rates(review: &Review, drive: usize) -> Option<[f64; 2]> {
    let rate = |name: &str| {
        let result = found(review, name)?.results[drive].as_ref()?;
        Some(result.write.as_ref()?.mb_s)
    };
    Some([rate("without-heat")?, rate("with-heat")?])
}

/// A rate with heat that is lower by a smaller share counts as the same.
const SAME: f64 = 0.01;

/// Returns what heat changes for a drive, as a sentence with its temperature.
fn words(review: &Review, drive: usize, opening: &str) -> Option<String> {
    let [cool, hot] = rates(review, drive)?;
    let hottest = found(review, "with-heat")?.results[drive].as_ref()?;
    let note = hottest.notes.iter().find(|note| note.contains("Celsius"));
    let note = note.map_or_else(String::new, |note| format!(" ({note})"));
    Some(match hot < cool * (1.0 - SAME) {
        true => format!(
            "{opening}: heat lowers ten minutes of sequential writes from {} to {}{note}.",
            megabytes_a_second(cool),
            megabytes_a_second(hot)
        ),
        false => format!(
            "{opening}: heat does not slow ten minutes of sequential writes ({}){note}.",
            megabytes_a_second(cool)
        ),
    })
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
