//! Latency under write load, as a database sees it: the latency of rate-limited 4 KiB reads and writes, up to p99.999,
//! with competing random writes at 0 to 100 % of the drive's maximum rate.
//!
//! First the maximum rate of each drive is measured: random 4 KiB writes at QD32. Reads and writes then arrive at
//! random times from four threads, each at a tenth of that rate; only these are shown. Other threads write at the same
//! time: at shares of the remaining rate, also rate-limited, and finally without a limit at QD32. Not modelled: other
//! block sizes of the competing load, and competing reads.

use crate::measure::{DEPTH, PACED_DEPTH, PART, THREADS};
use crate::review::chapter::{Chapter, SummaryRow, Topic};
use crate::review::chart::{
    ChapterSection, Chart, ChartAxis, ChartChoice, Draws, LATENCIES, LineChart,
};
use crate::review::results::{LatencySummary, Point, PointSettings, Review};
use crate::review::run::PartialResults;
use crate::review::shape::Shape;
use crate::review::suite::{Effort, PointSpec, Suite};
use crate::review::verdict::Seeds;
use text::digits::{count, microseconds};
use workload::job::Mix;

pub(crate) const ID: &str = "under-load";
const TAKES: &str = "writes-taken";

/// Competing load as shares of the drive's maximum rate.
const SHARES: [u64; 6] = [0, 20, 40, 60, 80, 90];
/// Competing writes without a rate limit.
const FLAT_OUT: f64 = 1.0;

/// The chapter on the maximum write rate.
pub(crate) struct MaximumWriteRate;

impl Chapter for MaximumWriteRate {
    fn id(&self) -> &'static str {
        TAKES
    }

    fn title(&self) -> &'static str {
        "Maximum write rate"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: TAKES,
            title: "Maximum write rate",
            about: "Random 4 KiB writes, 32 in flight from four threads, on drives in steady state. Loads of the next chapter are \
                    shares of this rate. The rate is in the table and in the data.",
            charts: &[],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        if suite != Suite::UnderLoad {
            return Vec::new();
        }
        vec![PointSpec {
            name: format!("{TAKES}/random-write"),
            chapter: TAKES,
            settings: PointSettings {
                direction: Some("write"),
                pattern: Some("random"),
                block_bytes: Some(4096),
                queue_depth: Some(THREADS * DEPTH),
                threads: Some(THREADS),
                ..PointSettings::default()
            },
            options: vec![("rw", "randwrite".into()), ("bs", "4k".into())],
            threads: vec![(THREADS, DEPTH)],
            ..PointSpec::default()
        }]
    }

    fn shows(&self, shape: &Shape) -> Option<PointSettings> {
        let is_it = shape.mix == Mix::Write && shape.is_small();
        let settings = shape.settings().filter(|_| is_it)?;
        (shape.threads == THREADS && shape.depth == THREADS * DEPTH).then_some(settings)
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[SummaryRow {
            topic: Topic::Most,
            name: "4 KiB random write, 32 in flight",
            value: |review, drive| {
                let result = review.find(TAKES, |_| true)?.results[drive].as_ref()?;
                Some(format!("{} IOPS", count(result.iops())))
            },
        }]
    }
}

/// The chapter on latency under write load.
pub(crate) struct UnderLoad;

impl Chapter for UnderLoad {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "Latency under write load"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "Latency under write load",
            about: "Rate-limited 4 KiB reads and writes, each at a tenth of the drive's maximum rate of random writes, under a \
                    competing load of random writes. The competing load is given as a share of the remaining write rate; 0 is no \
                    competing load. At 100 %, it is a closed loop with 32 in flight. Its queue can then be shorter than in an open \
                    loop near saturation, because each write waits for an earlier one. Only the latencies of the rate-limited I/Os \
                    are shown, such as a database sees them when another program writes.",
            charts: &[CHART, ANATOMY],
        }
    }

    fn points_after(&self, suite: Suite, _: Effort, found: &PartialResults<'_>) -> Vec<PointSpec> {
        if suite != Suite::UnderLoad {
            return Vec::new();
        }
        let taken = |drive: usize| {
            let mut points = found.points(TAKES);
            let rate = points.next()?.results[drive].as_ref()?.iops();
            Some((drive, rate as u64))
        };
        let taken = (0..found.drives).filter_map(taken);
        taken
            .flat_map(|(drive, rate)| {
                let shares = SHARES.map(|percent| percent as f64 / 100.0);
                let shares = shares.into_iter().chain([FLAT_OUT]);
                shares.map(move |share| point(drive, rate, share))
            })
            .collect()
    }

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        let facts = &seeds.all;
        let of = |drive| {
            let tail = |share| {
                seeds.range(|facts| {
                    let point = find_point(facts.review, share)?;
                    facts.figures(point, drive, "read")?.latency.p99_9_us
                })
            };
            let (alone, beside, flat_out) = (tail(0.0)?, tail(0.8)?, tail(FLAT_OUT)?);
            Some(format!(
                "{}: p99.9 of rate-limited reads is {} without a competing load, {} with competing writes at 80 % of the \
                 maximum rate, {} with saturating writes.",
                facts.opening(drive),
                alone.words(microseconds),
                beside.words(microseconds),
                flat_out.words(microseconds)
            ))
        };
        (0..facts.drives()).filter_map(of).collect()
    }

    fn rows(&self) -> &'static [SummaryRow] {
        const {
            &[
                row::<0>("Reads without other load: p99.9, p99.99"),
                row::<80>("Reads under 80 % writes: p99.9, p99.99"),
                row::<100>("Reads under saturating writes: p99.9, p99.99"),
                SummaryRow {
                    topic: Topic::Tails,
                    name: "Writes under 80 % writes: p99.9, p99.99",
                    value: |review, drive| tails(review, drive, 0.8, "write"),
                },
            ]
        }
    }

    fn spreads(&self, point: &Point) -> Vec<(String, &'static str)> {
        let Some(share) = point.settings.share_of_saturation else {
            return Vec::new();
        };
        let beside = format!("beside {:.0} % writes", share * 100.0);
        vec![
            (format!("paced reads {beside}"), "read"),
            (format!("paced writes {beside}"), "write"),
        ]
    }
}

const CHART: Chart = Chart {
    id: ID,
    title: "Latency of rate-limited I/O by competing write load",
    draws: Draws::Lines(LineChart {
        choices: &[ChartChoice {
            name: "direction",
            label: "Of",
            options: &[("read", "Paced reads"), ("write", "Paced writes")],
            selects: false,
        }],
        metrics: LATENCIES,
        metric: "p99",
        scale: "log10",
        axes: &[ChartAxis {
            setting: "share_of_saturation",
            choice: "",
            kind: "linear",
            label: "Competing random writes, share of the maximum write rate",
            name: "Competing writes:",
            column: "Competing writes",
            format: "share",
            range: Some([0.0, 1.0]),
        }],
        caption: "Latency of rate-limited {way}s under competing random writes",
        own_points: true,
    }),
};

const ANATOMY: Chart = Chart {
    id: "under-load-anatomy",
    title: "Latency breakdown by percentile",
    draws: Draws::Anatomy,
};

/// Returns the row with the tail latency of rate-limited reads under `PERCENT` % competing load.
const fn row<const PERCENT: u64>(name: &'static str) -> SummaryRow {
    SummaryRow {
        topic: Topic::Tails,
        name,
        value: |review, drive| tails(review, drive, PERCENT as f64 / 100.0, "read"),
    }
}

fn tails(review: &Review, drive: usize, share: f64, way: &str) -> Option<String> {
    let result = find_point(review, share)?.results[drive].as_ref()?;
    let latency: &LatencySummary = &result.direction(way)?.latency;
    let far = latency.p99_99_us.map_or("-".to_owned(), microseconds);
    Some(format!("{}, {far}", microseconds(latency.p99_9_us?)))
}

fn find_point(review: &Review, share: f64) -> Option<&Point> {
    review.find(ID, |point| {
        point.settings.share_of_saturation == Some(share)
    })
}

/// Returns the settings of the chapter's point at this share.
pub(crate) fn settings(share: f64) -> PointSettings {
    PointSettings {
        direction: Some("mix"),
        pattern: Some("random"),
        block_bytes: Some(4096),
        threads: Some(THREADS),
        read_percent: Some(50),
        share_of_saturation: Some(share),
        ..PointSettings::default()
    }
}

/// Returns the point for a drive with a maximum rate of `taken` writes per second. Its name is equal for all drives,
/// although their rates differ.
fn point(drive: usize, taken: u64, share: f64) -> PointSpec {
    let part = (taken / PART).max(1);
    let left = taken - part.min(taken);
    let beside = match share {
        0.0 => String::new(),
        FLAT_OUT => competing_job(DEPTH, None),
        share => competing_job(PACED_DEPTH, Some((left as f64 * share) as u64)),
    };
    PointSpec {
        name: format!("{ID}/{:.0}%", share * 100.0),
        chapter: ID,
        settings: settings(share),
        options: vec![
            ("rw", "randrw".into()),
            ("rwmixread", "50".into()),
            ("bs", "4k".into()),
        ],
        threads: vec![(THREADS, PACED_DEPTH)],
        rate_iops: Some(2 * part),
        more: beside,
        shows_first_group: true,
        only: Some(drive),
        is_deep: true,
        ..PointSpec::default()
    }
}

/// Returns the job of the competing writes: a reporting group of its own, which is not counted.
fn competing_job(depth: u32, rate: Option<u64>) -> String {
    let mut text =
        format!("\n[beside]\nnew_group=1\nrw=randwrite\niodepth={depth}\nnumjobs={THREADS}\n");
    if let Some(rate) = rate {
        let each = (rate / u64::from(THREADS)).max(1);
        text.push_str(&format!("rate_iops={each}\nrate_process=poisson\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Span;

    #[test]
    fn the_job_is_one_that_a_user_can_read() {
        let of = |share| point(0, 40_000, share).text(7, Span::from_ms(5), Span::from_ms(50));
        assert_eq!(
            of(0.8),
            "[global]\nioengine=libaio\ndirect=1\nnorandommap=1\nrw=randrw\nrwmixread=50\nbs=4k\ntime_based=1\n\
             ramp_time=5000us\nruntime=50000us\ngroup_reporting=1\n\n[depth-64]\niodepth=64\nnumjobs=4\nrandseed=7\n\
             rate_iops=1000,1000\nrate_process=poisson\n\n[beside]\nnew_group=1\nrw=randwrite\niodepth=64\nnumjobs=4\n\
             rate_iops=7200\nrate_process=poisson\n"
        );
        assert!(!of(0.0).contains("beside"));
        assert!(of(1.0).ends_with("rw=randwrite\niodepth=8\nnumjobs=4\n"));
    }
}
