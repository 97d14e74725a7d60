//! SNIA's tests: IOPS, throughput, latency and write saturation, with rounds until steady state.
//!
//! The steps are those of the plans of `drivelab measure` ([`crate::measure`]), in the same order.
//! [`crate::review::rounds`] runs them, and [`crate::review::cliff`] runs write saturation. Source: SNIA Solid State
//! Storage Performance Test Specification 2.0.2, from knowledge of it: its text was not available. Not included: its
//! optional tests (host idle recovery, cross stimulus, enterprise composite workload, demand intensity), and its
//! report forms.

use model::media::Precondition;

use super::sustained::ends_of_cliff;
use crate::measure::{Plan, PlanStep, StepPhase};
use crate::review::chapter::{Chapter, SummaryRow, Topic};
use crate::review::chart::{
    ALL_METRICS, ChapterSection, Chart, ChartAxis, ChartChoice, Draws, LATENCIES, LineChart,
};
use crate::review::measure::Keep;
use crate::review::results::{Measurement, Point, PointSettings, Review};
use crate::review::shape::Shape;
use crate::review::suite::{Effort, PointSpec, RunPolicy, Suite};
use crate::review::verdict::Seeds;
use text::digits::{count, megabytes_a_second, microseconds};
use workload::job::Mix;

const STEADY: &str = "snia-steady";
const IOPS: &str = "snia-iops";
const THROUGHPUT: &str = "snia-throughput";
const LATENCY: &str = "snia-latency";
const SATURATION: &str = "snia-saturation";

/// Plans, and the figure of each that determines steady state.
const TESTS: [(&str, &str); 4] = [
    ("snia", "IOPS: 4 KiB random write"),
    (
        "snia-throughput-128k",
        "Throughput: 128 KiB sequential write",
    ),
    ("snia-throughput-1m", "Throughput: 1 MiB sequential write"),
    ("snia-latency", "Latency: 4 KiB random write, QD1"),
];

/// Ratios of reads to writes.
const MIXES: [(u32, &str); 7] = [
    (100, "100/0"),
    (95, "95/5"),
    (65, "65/35"),
    (50, "50/50"),
    (35, "35/65"),
    (5, "5/95"),
    (0, "0/100"),
];

/// Returns a point for each step of a plan's rounds that `wanted` selects.
fn steps(
    chapter: &'static str,
    plan: &'static str,
    wanted: impl Fn(&PlanStep) -> bool,
) -> Vec<PointSpec> {
    let read = Plan::named(plan).unwrap_or_else(|wrong| panic!("{wrong}"));
    let steps = read.in_phase(StepPhase::Round).filter(|step| wanted(step));
    steps.map(|step| point(chapter, plan, step)).collect()
}

/// Returns the job of the plan's step, without its end.
fn point(chapter: &'static str, plan: &'static str, step: &PlanStep) -> PointSpec {
    let number = |key: &str| step.option(key).and_then(|it| it.parse::<u32>().ok());
    let rw = step.option("rw").unwrap_or("read");
    let (direction, reads) = match (rw, number("rwmixread")) {
        ("read" | "randread", _) => ("read", 100),
        ("randrw", Some(reads)) => ("mix", reads),
        _ => ("write", 0),
    };
    let mix = MIXES.iter().find(|(known, _)| *known == reads);
    let keys = ["rw", "rwmixread", "bs"];
    let options = keys
        .iter()
        .filter_map(|&key| Some((key, step.option(key)?.to_owned())));
    let (threads, depth) = (
        number("numjobs").unwrap_or(1),
        number("iodepth").unwrap_or(1),
    );
    let is_random = workload::fio::is_random(rw);
    PointSpec {
        name: format!("{chapter}/{plan}/{}", step.name),
        chapter,
        settings: PointSettings {
            direction: Some(direction),
            pattern: Some(if is_random { "random" } else { "sequential" }),
            block_bytes: step.block_bytes(),
            queue_depth: Some(threads * depth),
            threads: Some(threads),
            read_percent: Some(reads),
            profile: mix.map(|(_, name)| *name),
            ..PointSettings::default()
        },
        state: Precondition::Fresh,
        options: options.collect(),
        threads: vec![(threads, depth)],
        course: RunPolicy::Rounds(plan),
        keep: Keep { bands: false },
        begins_elsewhere: !is_random,
        ..PointSpec::default()
    }
}

/// Returns the settings of a point that runs the same workload, apart from the queue depth.
fn shown(shape: &Shape) -> Option<PointSettings> {
    let reads = match shape.mix {
        Mix::Read => 100,
        Mix::Write => 0,
        _ => shape.read_percent,
    };
    let (_, profile) = MIXES.iter().find(|(known, _)| *known == reads)?;
    Some(PointSettings {
        read_percent: Some(reads),
        profile: Some(profile),
        ..shape.settings()?
    })
}

fn result<'a>(review: &'a Review, drive: usize, name: &str) -> Option<&'a Measurement> {
    let chapter = name.split('/').next()?;
    let point: &Point = review.find(chapter, |point| point.name == name)?;
    point.results[drive].as_ref()
}

fn mean_and_longest(review: &Review, drive: usize, name: &str, way: &str) -> Option<String> {
    let latency = &result(review, drive, name)?.direction(way)?.latency;
    Some(format!(
        "{}, {}",
        microseconds(latency.mean_us),
        microseconds(latency.max_us)
    ))
}

/// The chapter on the steady-state criterion by round.
pub(crate) struct Steady;

impl Chapter for Steady {
    fn id(&self) -> &'static str {
        STEADY
    }

    fn title(&self) -> &'static str {
        "Steady-state rounds"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: STEADY,
            title: "Steady-state rounds",
            about: "A new drive is written sequentially twice. Then all steps of a test are repeated in rounds on the same drive until \
                    five consecutive rounds are in steady state, or until 25 rounds. Steady state: the greatest and the least value \
                    are within 20 % of their mean, and the fitted line moves by at most 10 % of it. Each point is a round, at the \
                    time that it would have if each step lasted a minute. Simulated steps are shorter: a flash drive is scaled \
                    down and the minute with it, and a step measures about as many I/Os as the suite has for it. The first seed is \
                    shown. The tests follow SNIA's PTS 2.0.2, from memory.",
            charts: &[ROUNDS],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        if suite != Suite::Snia {
            return Vec::new();
        }
        let of = |&(plan, name): &(&'static str, &'static str)| {
            let mut points = steps(STEADY, plan, |step| step.is_tracked);
            points
                .iter_mut()
                .for_each(|point| point.settings.profile = Some(name));
            points
        };
        TESTS.iter().flat_map(of).collect()
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[SummaryRow {
            topic: Topic::OverTime,
            name: "4 KiB random write by round",
            value: |review, drive| {
                let found = result(review, drive, "snia-steady/snia/r0-4k")?;
                found.notes.first().cloned()
            },
        }]
    }
}

const ROUNDS: Chart = Chart {
    id: STEADY,
    title: "Steady-state criterion by round",
    draws: Draws::Gauged {
        caption: "By round",
        metrics: &["iops", "mb_s", "mean_us", "max_us"],
    },
};

/// The chapter on mixes and block sizes.
pub(crate) struct Iops;

impl Chapter for Iops {
    fn id(&self) -> &'static str {
        IOPS
    }

    fn title(&self) -> &'static str {
        "IOPS test"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: IOPS,
            title: "IOPS test",
            about: "Random I/O with seven mixes and eight block sizes, four threads with 32 in flight each, over the last five rounds of \
                    each seed.",
            charts: &[MATRIX, BY_SIZE],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        match suite {
            Suite::Snia => steps(IOPS, TESTS[0].0, |_| true),
            _ => Vec::new(),
        }
    }

    fn shows(&self, shape: &Shape) -> Option<PointSettings> {
        let is_here = shape.random && (shape.threads, shape.depth) == (4, 128);
        shown(shape).filter(|_| is_here)
    }

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        let facts = &seeds.all;
        let of = |drive: usize| {
            let rate = |name: &str| {
                let range = seeds.range(|facts| {
                    let point = facts.review.find(IOPS, |point| point.name == name)?;
                    Some(facts.result(point, drive)?.iops())
                });
                Some(range?.words(count))
            };
            Some(format!(
                "{} in SNIA's rounds: {} random 4 KiB writes per second, {} reads, {} of 65 % reads; {}.",
                facts.opening(drive),
                rate("snia-iops/snia/r0-4k")?,
                rate("snia-iops/snia/r100-4k")?,
                rate("snia-iops/snia/r65-4k")?,
                result(facts.review, drive, "snia-iops/snia/r0-4k")?
                    .notes
                    .first()?
            ))
        };
        (0..facts.drives()).filter_map(of).collect()
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[
            SummaryRow {
                topic: Topic::Most,
                name: "SNIA: 4 KiB random read",
                value: |review, drive| {
                    Some(format!(
                        "{} IOPS",
                        count(result(review, drive, "snia-iops/snia/r100-4k")?.iops())
                    ))
                },
            },
            SummaryRow {
                topic: Topic::Most,
                name: "SNIA: 4 KiB random write",
                value: |review, drive| {
                    Some(format!(
                        "{} IOPS",
                        count(result(review, drive, "snia-iops/snia/r0-4k")?.iops())
                    ))
                },
            },
        ]
    }
}

const SIZES: ChartAxis = ChartAxis {
    setting: "block_bytes",
    choice: "",
    kind: "log2",
    label: "Block size",
    name: "Block size",
    column: "Block size",
    format: "bytes",
    range: None,
};

const WHOSE: ChartChoice = ChartChoice {
    name: "direction",
    label: "Count",
    options: &[("total", "All"), ("read", "Reads"), ("write", "Writes")],
    selects: false,
};

/// The chart that the specification draws as a 3D surface.
const MATRIX: Chart = Chart {
    id: "snia-matrix",
    title: "Every block size with every mix of reads and writes",
    draws: Draws::Matrix {
        rows: "block_bytes",
        columns: "profile",
        metrics: &["iops", "mb_s", "mean"],
        caption: "Block sizes by mixes of reads and writes",
    },
};

const BY_SIZE: Chart = Chart {
    id: IOPS,
    title: "One mix by block size",
    draws: Draws::Lines(LineChart {
        choices: &[
            ChartChoice {
                name: "profile",
                label: "Reads/writes",
                options: &[
                    ("0/100", "0/100"),
                    ("5/95", "5/95"),
                    ("35/65", "35/65"),
                    ("50/50", "50/50"),
                    ("65/35", "65/35"),
                    ("95/5", "95/5"),
                    ("100/0", "100/0"),
                ],
                selects: true,
            },
            WHOSE,
        ],
        metrics: ALL_METRICS,
        metric: "iops",
        scale: "log10",
        axes: &[SIZES],
        caption: "{profile} reads and writes by block size",
        own_points: false,
    }),
};

/// The chapter on large sequential I/O.
pub(crate) struct Throughput;

impl Chapter for Throughput {
    fn id(&self) -> &'static str {
        THROUGHPUT
    }

    fn title(&self) -> &'static str {
        "Throughput test"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: THROUGHPUT,
            title: "Throughput test",
            about: "Sequential reads and writes, 32 in flight, over the last five rounds: 128 KiB on a new drive filled with these \
                    blocks, and 1 MiB on another. Each round begins at another address.",
            charts: &[],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        if suite != Suite::Snia {
            return Vec::new();
        }
        let plans = TESTS[1..3].iter();
        plans
            .flat_map(|(plan, _)| steps(THROUGHPUT, plan, |_| true))
            .collect()
    }

    fn shows(&self, shape: &Shape) -> Option<PointSettings> {
        let is_here = !shape.random && (shape.threads, shape.depth) == (1, 32);
        shown(shape).filter(|_| is_here)
    }

    fn rows(&self) -> &'static [SummaryRow] {
        const {
            &[
                row::<0>(Topic::LargeReads, "SNIA: 128 KiB sequential read"),
                row::<1>(Topic::LargeReads, "SNIA: 1 MiB sequential read"),
                row::<2>(Topic::LargeWrites, "SNIA: 128 KiB sequential write"),
                row::<3>(Topic::LargeWrites, "SNIA: 1 MiB sequential write"),
            ]
        }
    }
}

const LARGE: [(&str, &str); 4] = [
    ("snia-throughput/snia-throughput-128k/r100-128k", "read"),
    ("snia-throughput/snia-throughput-1m/r100-1024k", "read"),
    ("snia-throughput/snia-throughput-128k/r0-128k", "write"),
    ("snia-throughput/snia-throughput-1m/r0-1024k", "write"),
];

const fn row<const WHICH: usize>(topic: Topic, name: &'static str) -> SummaryRow {
    SummaryRow {
        topic,
        name,
        value: |review, drive| {
            let (name, way) = LARGE[WHICH];
            let figures = result(review, drive, name)?.direction(way)?;
            Some(megabytes_a_second(figures.mb_s))
        },
    }
}

/// The chapter on latency at QD1.
pub(crate) struct LatencyTest;

impl Chapter for LatencyTest {
    fn id(&self) -> &'static str {
        LATENCY
    }

    fn title(&self) -> &'static str {
        "Latency test"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: LATENCY,
            title: "Latency test",
            about: "Random I/O from one thread at QD1, over the last five rounds. Maximum latencies are in the table on \
                    the terminal and in the data. They are maxima of far fewer I/Os than five minutes would have.",
            charts: &[ALONE],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        match suite {
            Suite::Snia => steps(LATENCY, TESTS[3].0, |_| true),
            _ => Vec::new(),
        }
    }

    fn shows(&self, shape: &Shape) -> Option<PointSettings> {
        let is_here = shape.random && shape.depth == 1;
        shown(shape).filter(|_| is_here)
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[
            SummaryRow {
                topic: Topic::Alone,
                name: "SNIA: 4 KiB read, mean and longest",
                value: |review, drive| {
                    mean_and_longest(review, drive, "snia-latency/snia-latency/r100-4k", "read")
                },
            },
            SummaryRow {
                topic: Topic::Alone,
                name: "SNIA: 4 KiB write, mean and longest",
                value: |review, drive| {
                    mean_and_longest(review, drive, "snia-latency/snia-latency/r0-4k", "write")
                },
            },
        ]
    }
}

const ALONE: Chart = Chart {
    id: LATENCY,
    title: "Latency at queue depth 1",
    draws: Draws::Lines(LineChart {
        choices: &[
            ChartChoice {
                name: "profile",
                label: "Reads/writes",
                options: &[("100/0", "100/0"), ("65/35", "65/35"), ("0/100", "0/100")],
                selects: true,
            },
            WHOSE,
        ],
        metrics: LATENCIES,
        metric: "mean",
        scale: "linear",
        axes: &[SIZES],
        caption: "Queue depth 1, {profile} reads and writes",
        own_points: false,
    }),
};

/// The chapter on random writes that begin on a new drive.
pub(crate) struct WriteSaturation;

impl Chapter for WriteSaturation {
    fn id(&self) -> &'static str {
        SATURATION
    }

    fn title(&self) -> &'static str {
        "Write saturation test"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: SATURATION,
            title: "Write saturation test",
            about: "4 KiB random writes on a new drive, four threads with 32 in flight each, until five times the capacity has been \
                    written (SNIA's test ends after four times, or after a day). Drives run scaled down.",
            charts: &[WRITES],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        if suite != Suite::Snia {
            return Vec::new();
        }
        let mut points = steps(SATURATION, TESTS[0].0, |step| step.is_tracked);
        for point in &mut points {
            point.name = format!("{SATURATION}/random-write");
            point.course = RunPolicy::UntilSteady;
            point.settings.profile = None;
        }
        points
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[SummaryRow {
            topic: Topic::OverTime,
            name: "SNIA write saturation: fresh, then at the end",
            value: |review, drive| {
                let found = result(review, drive, "snia-saturation/random-write")?;
                let (first, last) = ends_of_cliff(found)?;
                Some(format!("{} → {} IOPS", count(first), count(last)))
            },
        }]
    }
}

const WRITES: Chart = Chart {
    id: SATURATION,
    title: "Random writes from fresh",
    draws: Draws::OverTime {
        caption: "4 KiB random writes from fresh",
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use model::Span;

    #[test]
    fn a_point_runs_the_plans_job() {
        let points = Iops.points(Suite::Snia, Suite::Snia.effort());
        assert_eq!(points.len(), 56);
        let mixes = BY_SIZE.draws;
        let Draws::Lines(lines) = mixes else {
            panic!("lines")
        };
        for point in &points {
            let profile = point.settings.profile.expect("a mix");
            let mut options = lines.choices[0].options.iter();
            assert!(options.any(|(name, _)| *name == profile), "{profile}");
        }
        let mixed = points.iter().find(|it| it.name == "snia-iops/snia/r65-16k");
        let mixed = mixed.expect("it is in the plan");
        assert_eq!(
            mixed.text(7, Span::ZERO, Span::from_ms(5)),
            "[global]\nioengine=libaio\ndirect=1\nnorandommap=1\nrw=randrw\nrwmixread=65\nbs=16k\ntime_based=1\n\
             runtime=5000us\ngroup_reporting=1\n\n[depth-32]\niodepth=32\nnumjobs=4\nrandseed=7\n"
        );
    }

    #[test]
    fn a_measured_step_stands_at_the_point_that_runs_it() {
        let chapters: [(&dyn Chapter, usize); 3] =
            [(&Iops, 56), (&Throughput, 4), (&LatencyTest, 9)];
        for (chapter, count) in chapters {
            let points = chapter.points(Suite::Snia, Suite::Snia.effort());
            assert_eq!(points.len(), count, "{}", chapter.id());
            for point in points {
                let text = point.text(7, Span::ZERO, Span::from_ms(5));
                let jobs = crate::review::run::jobs("step", &text).expect("a job");
                let shape = Shape::from_jobs(&jobs).expect("one workload");
                let shown = |of: &dyn Chapter| of.shows(&shape);
                assert_eq!(shown(chapter), Some(point.settings), "{}", point.name);
                let others = chapters.iter().filter(|(of, _)| shown(*of).is_some());
                assert_eq!(others.count(), 1, "{}", point.name);
            }
        }
    }
}
