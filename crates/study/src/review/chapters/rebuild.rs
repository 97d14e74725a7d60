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
use crate::review::results::{Measurement, PointSettings, Review};
use crate::review::suite::{Effort, PointSpec, RunPolicy, Suite};
use crate::review::verdict::Seeds;
use text::digits::{count, microseconds};

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

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        let facts = &seeds.all;
        let of = |drive: usize| {
            let rebuilds = [(RETURNS, "returns"), (REPLACED, "is replaced")];
            let rebuilds = rebuilds.into_iter().filter_map(move |(name, words)| {
                let note = found(facts.review, name, drive)?.notes.last()?;
                Some(format!(
                    "{}, a member {words}: {note}.",
                    facts.opening(drive)
                ))
            });
            let clients = clients(facts.review, drive, &facts.opening(drive));
            clients.into_iter().chain(rebuilds)
        };
        (0..facts.drives()).flat_map(of).collect()
    }

    fn rows(&self) -> &'static [SummaryRow] {
        const {
            &[
                row::<0>("Clients, no member fails: IOPS, mean"),
                row::<1>("Clients, a member returns: IOPS, mean"),
                row::<2>("Clients, a member is replaced: IOPS, mean"),
            ]
        }
    }
}

/// Seconds of a run.
const SECONDS: u64 = 8;

/// Ends of the names of the points.
const WHOLE: &str = "/whole";
const RETURNS: &str = "/returns";
const REPLACED: &str = "/replaced";

fn found<'a>(review: &'a Review, name: &str, drive: usize) -> Option<&'a Measurement> {
    let point = review.find(ID, |point| point.name.ends_with(name))?;
    point.results[drive].as_ref()
}

/// Returns the I/Os per second of clients over a run, and the mean latency of the slower direction in microseconds.
fn seen_by_clients(run: &Measurement) -> Option<(f64, f64)> {
    let both = || [&run.read, &run.write].into_iter().flatten();
    let slowest = both().map(|it| it.latency.mean_us).max_by(f64::total_cmp)?;
    Some((both().map(|it| it.iops).sum(), slowest))
}

/// Returns what clients see while a member is replaced, against the pool without a failure, as a sentence.
fn clients(review: &Review, drive: usize, opening: &str) -> Option<String> {
    let of = |name: &str| seen_by_clients(found(review, name, drive)?);
    let ((whole, before), (replaced, after)) = (of(WHOLE)?, of(REPLACED)?);
    Some(format!(
        "{opening}: over {SECONDS} s in which a member fails and is replaced, clients get {} IOPS with a mean of {}; without a failure {} IOPS, {}.",
        count(replaced),
        microseconds(after),
        count(whole),
        microseconds(before)
    ))
}

const fn row<const INDEX: usize>(name: &'static str) -> SummaryRow {
    SummaryRow {
        topic: Topic::OverTime,
        name,
        value: |review, drive| {
            let run = [WHOLE, RETURNS, REPLACED][INDEX];
            let (iops, mean) = seen_by_clients(found(review, run, drive)?)?;
            Some(format!("{} IOPS, {}", count(iops), microseconds(mean)))
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
            ends: StopCondition::After(Span::from_ms(SECONDS * 1000)),
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
