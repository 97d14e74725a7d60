//! Synchronous writes as a log device receives them: by size and number of threads, and three server workloads.
//!
//! Each point first writes the first GiB sequentially, which then lies in the memory of devices that cache written
//! data. It is then counted for ten seconds with each seed, two transaction groups of ZFS. On pools with several
//! volumes, the load is on the first. An NFS client sends `COMMIT` after every eight writes, which are already stable.
//! A database's log is `fdatasync`ed after each page of 8 KiB (PostgreSQL's size). Not modelled: the file systems
//! above and the network below.

use model::Span;

use crate::review::chapter::{Chapter, SummaryRow, Topic};
use crate::review::chart::{
    ALL_METRICS, ChapterSection, Chart, ChartAxis, ChartChoice, Draws, LineChart,
};
use crate::review::course::{Condition, Long, StopCondition, WorkloadRange};
use crate::review::results::{Measurement, Point, PointSettings, Review};
use crate::review::slowest::Slowest;
use crate::review::suite::{Effort, PointSpec, RunPolicy, Suite};
use crate::review::verdict::Seeds;
use text::digits::{count, microseconds};

const ID: &str = "slog";
const LOADS: &str = "slog-loads";

const SIZES: [(u64, &str); 4] = [
    (4 << 10, "4k"),
    (8 << 10, "8k"),
    (32 << 10, "32k"),
    (128 << 10, "128k"),
];
const THREADS: [u32; 4] = [1, 4, 16, 64];

/// Counted time: two transaction groups.
const COUNTED: Span = Span::from_ms(10_000);
/// Counted time of the server workloads: four transaction groups. The memory of a pool is full within the first.
const OVER_TIME_COUNTED: Span = Span::from_ms(20_000);
const RANGE: WorkloadRange = WorkloadRange::Bytes(1 << 30);

const LONG: Long = Long {
    ends: StopCondition::After(COUNTED),
    warm: Span::from_ms(1_000),
    filled: true,
    over_time: false,
    range: RANGE,
    scaled: false,
    condition: Condition::None,
};

/// The chapter by size and number of threads.
pub(crate) struct Slog;

impl Chapter for Slog {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "Synchronous writes"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "Synchronous writes",
            about: "Random writes that must be durable before they are acknowledged (O_SYNC), one outstanding in each thread, \
                    over 1 GiB that was written before. In a pool with several volumes, the first one is used. Each seed runs \
                    ten seconds; a main pool that is too slow for a longer load does not show here.",
            charts: &[CHART, ANATOMY],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        if suite != Suite::Slog {
            return Vec::new();
        }
        let of = |(bytes, name): (u64, &'static str)| THREADS.map(|it| point(bytes, name, it));
        SIZES.into_iter().flat_map(of).collect()
    }

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        let facts = &seeds.all;
        let of = |drive| {
            let rate = |threads| {
                seeds.range(|facts| {
                    let point = find_point(facts.review, "4k", threads)?;
                    Some(facts.result(point, drive)?.iops())
                })
            };
            let (one, many) = (rate(1)?, rate(64)?);
            Some(format!(
                "{}: {} synchronous 4 KiB writes per second from one thread, {} from 64.",
                facts.opening(drive),
                one.words(count),
                many.words(count)
            ))
        };
        (0..facts.drives()).filter_map(of).collect()
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[
            SummaryRow {
                topic: Topic::Alone,
                name: "4 KiB sync write, 1 thread",
                value: |review, drive| {
                    let result = result(find_point(review, "4k", 1)?, drive)?;
                    let mean = result.write.as_ref()?.latency.mean_us;
                    Some(format!(
                        "{} IOPS, {}",
                        count(result.iops()),
                        microseconds(mean)
                    ))
                },
            },
            SummaryRow {
                topic: Topic::Most,
                name: "4 KiB sync write, 64 threads",
                value: |review, drive| {
                    let iops = result(find_point(review, "4k", 64)?, drive)?.iops();
                    Some(format!("{} IOPS", count(iops)))
                },
            },
            SummaryRow {
                topic: Topic::LargeWrites,
                name: "128 KiB sync write, 16 threads",
                value: |review, drive| {
                    let write = result(find_point(review, "128k", 16)?, drive)?
                        .write
                        .as_ref()?;
                    Some(text::digits::megabytes_a_second(write.mb_s))
                },
            },
            SummaryRow {
                topic: Topic::Tails,
                name: "4 KiB sync write, 16 threads: latency breakdown of the slowest",
                value: |review, drive| {
                    let result = result(find_point(review, "4k", 16)?, drive)?;
                    Some(Slowest::from_measurement(result, "write")?.words())
                },
            },
        ]
    }

    fn spreads(&self, point: &Point) -> Vec<(String, &'static str)> {
        let (Some(profile), Some(threads)) = (point.settings.profile, point.settings.threads)
        else {
            return Vec::new();
        };
        vec![(format!("{profile} sync writes, {threads} threads"), "write")]
    }
}

const CHART: Chart = Chart {
    id: ID,
    title: "Synchronous writes by threads",
    draws: Draws::Lines(LineChart {
        choices: &[ChartChoice {
            name: "profile",
            label: "Size",
            options: &[
                ("4k", "4 KiB"),
                ("8k", "8 KiB"),
                ("32k", "32 KiB"),
                ("128k", "128 KiB"),
            ],
            selects: true,
        }],
        metrics: ALL_METRICS,
        metric: "iops",
        scale: "linear",
        axes: &[ChartAxis {
            setting: "threads",
            choice: "",
            kind: "depth",
            label: "Threads",
            name: "Threads",
            column: "Threads",
            format: "plain",
            range: None,
        }],
        caption: "Synchronous writes by threads",
        own_points: false,
    }),
};

const ANATOMY: Chart = Chart {
    id: "slog-anatomy",
    title: "Latency breakdown of these writes",
    draws: Draws::Anatomy,
};

fn point(bytes: u64, profile: &'static str, threads: u32) -> PointSpec {
    PointSpec {
        name: format!("{ID}/{profile}/{threads}"),
        chapter: ID,
        settings: PointSettings {
            direction: Some("write"),
            pattern: Some("random"),
            block_bytes: Some(bytes),
            queue_depth: Some(threads),
            threads: Some(threads),
            profile: Some(profile),
            ..PointSettings::default()
        },
        options: vec![
            ("rw", "randwrite".into()),
            ("bs", profile.into()),
            ("sync", "1".into()),
        ],
        threads: vec![(threads, 1)],
        course: RunPolicy::Long(LONG),
        ..PointSpec::default()
    }
}

fn find_point<'a>(review: &'a Review, profile: &str, threads: u32) -> Option<&'a Point> {
    review.find(ID, |point| {
        point.settings.profile == Some(profile) && point.settings.threads == Some(threads)
    })
}

fn result(point: &Point, drive: usize) -> Option<&Measurement> {
    point.results[drive].as_ref()
}

/// The chapter on server workloads.
pub(crate) struct SlogLoads;

impl Chapter for SlogLoads {
    fn id(&self) -> &'static str {
        LOADS
    }

    fn title(&self) -> &'static str {
        "Server workloads"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: LOADS,
            title: "Server workloads",
            about: "Three workloads. NFS: eight clients that write 32 KiB each time, every write stable, with a COMMIT after \
                    eight writes. Database log: writes of 8 KiB, each followed by fdatasync. Asynchronous: writes of 128 KiB \
                    that need not be durable, 32 outstanding over 16 GiB. Each runs 20 seconds, four transaction groups. In the chart over time, each seed begins \
                    with a drive without earlier load; the first seed is shown.",
            charts: &[OVER_TIME],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        if suite != Suite::Slog {
            return Vec::new();
        }
        let ends = StopCondition::After(OVER_TIME_COUNTED);
        let async_write = Long {
            ends,
            warm: Span::ZERO,
            filled: false,
            over_time: true,
            range: WorkloadRange::Bytes(16 << 30),
            scaled: false,
            condition: Condition::None,
        };
        let over_time = Long {
            over_time: true,
            filled: false,
            ends,
            warm: Span::ZERO,
            ..LONG
        };
        vec![
            load(
                "NFS, 8 clients",
                "32k",
                &[("sync", "1"), ("fsync", "8")],
                (8, 1),
                over_time,
            ),
            load(
                "database log",
                "8k",
                &[("fdatasync", "1")],
                (1, 1),
                over_time,
            ),
            load("asynchronous", "128k", &[], (1, 32), async_write),
        ]
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[
            SummaryRow {
                topic: Topic::OverTime,
                name: "NFS, 8 clients, 32 KiB",
                value: |review, drive| of_load(review, drive, "NFS, 8 clients"),
            },
            SummaryRow {
                topic: Topic::OverTime,
                name: "Database log, 8 KiB + fdatasync",
                value: |review, drive| of_load(review, drive, "database log"),
            },
            SummaryRow {
                topic: Topic::OverTime,
                name: "Asynchronous, 128 KiB, 20 seconds",
                value: |review, drive| of_load(review, drive, "asynchronous"),
            },
        ]
    }
}

const OVER_TIME: Chart = Chart {
    id: LOADS,
    title: "First 20 seconds",
    draws: Draws::Gauged {
        caption: "Server workloads over time",
        metrics: &["iops", "mb_s", "mean_us", "max_us", "dirty_gb"],
    },
};

fn load(
    name: &'static str,
    size: &'static str,
    more: &[(&'static str, &str)],
    threads: (u32, u32),
    long: Long,
) -> PointSpec {
    let mut options = vec![("rw", "write".to_owned()), ("bs", size.to_owned())];
    options.extend(more.iter().map(|(key, value)| (*key, (*value).to_owned())));
    let bytes = SIZES.iter().find(|(_, it)| *it == size);
    PointSpec {
        name: format!("{LOADS}/{name}"),
        chapter: LOADS,
        settings: PointSettings {
            direction: Some("write"),
            pattern: Some("sequential"),
            block_bytes: bytes.map(|it| it.0),
            queue_depth: Some(threads.0 * threads.1),
            threads: Some(threads.0),
            profile: Some(name),
            ..PointSettings::default()
        },
        options,
        threads: vec![threads],
        course: RunPolicy::Long(long),
        ..PointSpec::default()
    }
}

fn of_load(review: &Review, drive: usize, name: &str) -> Option<String> {
    let point = review.find(LOADS, |point| point.settings.profile == Some(name))?;
    let write = result(point, drive)?.write.as_ref()?;
    let rate = text::digits::megabytes_a_second(write.mb_s);
    Some(format!("{rate}, {} IOPS", count(write.iops)))
}
