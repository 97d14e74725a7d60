//! HCIBench's profiles by outstanding I/O, and a run in which the write buffer fills.
//!
//! The load of HCIBench's easy run on one disk group, from `easy-run.rb` of vmware-labs/hci-benchmark-appliance
//! (0e32fb9). Two virtual machines with eight disks cover 75 % of the cache, of which at most 600 GB count. There are
//! four threads per disk, a quarter of that for sequential 256 KiB; half an hour of warm-up and one hour of test.
//! Here one disk is one job with a region of its own. The times are shortened: five minutes of warm-up, and one
//! minute with each seed. The run in which the buffer fills covers half of the pool for half an hour. Not modelled:
//! hosts, network and replicas (the load is on a single group), checksums.

use model::Span;

use crate::review::chapter::{Chapter, SummaryRow, Topic};
use crate::review::chart::{
    ALL_METRICS, ChapterSection, Chart, ChartAxis, ChartChoice, Draws, LineChart,
};
use crate::review::course::{Condition, Long, StopCondition, WorkloadRange};
use crate::review::member::first_to_wear_out;
use crate::review::pressure::PressureFigures;
use crate::review::results::{Measurement, Point, PointSettings, Review};
use crate::review::slowest::Slowest;
use crate::review::suite::{Effort, PointSpec, RunPolicy, Suite};
use crate::review::verdict::Seeds;
use crate::review::verdict::range::percent;
use text::digits::{count, digits, duration, significant};

const ID: &str = "hcibench";
const FILLS: &str = "write-pressure";

/// Virtual disks of a disk group.
const DISKS: u32 = 16;
/// Outstanding I/Os over all disks; HCIBench uses 64 for random and 16 for sequential I/O.
const OUTSTANDING: [u32; 4] = [16, 64, 128, 256];

struct EasyRunProfile {
    name: &'static str,
    rw: &'static str,
    size: (u64, &'static str),
    reads: u32,
}

const PROFILES: [EasyRunProfile; 6] = [
    profile("4k100r", "randread", (4 << 10, "4k"), 100),
    profile("4k70r", "randrw", (4 << 10, "4k"), 70),
    profile("4k0r", "randwrite", (4 << 10, "4k"), 0),
    profile("8k50r", "randrw", (8 << 10, "8k"), 50),
    profile("256k100r", "read", (256 << 10, "256k"), 100),
    profile("256k0r", "write", (256 << 10, "256k"), 0),
];

const fn profile(
    name: &'static str,
    rw: &'static str,
    size: (u64, &'static str),
    reads: u32,
) -> EasyRunProfile {
    EasyRunProfile {
        name,
        rw,
        size,
        reads,
    }
}

const CHOICE: ChartChoice = ChartChoice {
    name: "profile",
    label: "Profile",
    options: &[
        ("4k70r", "4 KiB, 70 % read"),
        ("4k100r", "4 KiB read"),
        ("4k0r", "4 KiB write"),
        ("8k50r", "8 KiB, 50 % read"),
        ("256k100r", "256 KiB in order, read"),
        ("256k0r", "256 KiB in order, write"),
    ],
    selects: true,
};

/// The chapter on outstanding I/O.
pub(crate) struct HciBench;

impl Chapter for HciBench {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "HCIBench's profiles"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "HCIBench\u{2019}s profiles",
            about: "The workloads of HCIBench\u{2019}s easy run for one disk group, by outstanding I/Os: 16 virtual disks over 75 % of the cache \
                    (at most 600 GB of the cache count). HCIBench itself uses 64 outstanding for random and 16 for sequential \
                    workloads. Workloads that write run five minutes before they are measured (HCIBench: 30), then one minute \
                    with each seed (HCIBench: an hour). Flash runs scaled, with times multiplied to match.",
            charts: &[CHART, COSTS, MEMBERS, ANATOMY],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        if suite != Suite::Hcibench {
            return Vec::new();
        }
        let of = |profile: &'static EasyRunProfile| {
            OUTSTANDING.map(|outstanding| {
                let long = Long {
                    ends: StopCondition::After(Span::from_ms(60_000)),
                    warm: match profile.reads {
                        100 => Span::ZERO,
                        _ => Span::from_ms(300_000),
                    },
                    filled: false,
                    over_time: false,
                    range: WorkloadRange::Buffer(0.75),
                    scaled: true,
                    condition: Condition::None,
                };
                point(ID, profile, outstanding, long)
            })
        };
        PROFILES.iter().flat_map(of).collect()
    }

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        let facts = &seeds.all;
        let mut all = Vec::new();
        for drive in 0..facts.drives() {
            let per_watt = seeds.range(|facts| {
                let point = find_point(facts.review, "4k70r", 64)?;
                iops_per_watt(facts.result(point, drive)?)
            });
            if let Some(range) = per_watt {
                all.push(format!(
                    "{}: {} IOPS per watt of its {} at 4 KiB, 70 % read, 64 outstanding.",
                    facts.opening(drive),
                    range.words(count),
                    match facts.review.drives[drive].clustered {
                        true => "nodes",
                        false => "drives",
                    }
                ));
            }
            let slowest = find_point(facts.review, "4k0r", 256)
                .and_then(|point| Slowest::from_measurement(facts.result(point, drive)?, "write"));
            if let Some(slowest) = slowest {
                all.push(format!(
                    "{}: with 256 outstanding, 4 KiB writes beyond the {}th percentile wait for: {}.",
                    facts.opening(drive),
                    significant(slowest.beyond, 5),
                    slowest.words()
                ));
            }
        }
        all
    }

    fn rows(&self) -> &'static [SummaryRow] {
        const {
            &[
                row::<0>(Topic::Most, "4k100r, 64 outstanding"),
                row::<1>(Topic::Mixes, "4k70r, 64 outstanding"),
                row::<2>(Topic::Most, "4k0r, 64 outstanding"),
                row::<3>(Topic::Mixes, "8k50r, 64 outstanding"),
                row::<4>(Topic::LargeReads, "256k100r, 16 outstanding"),
                row::<5>(Topic::LargeWrites, "256k0r, 16 outstanding"),
                SummaryRow {
                    topic: Topic::Mixes,
                    name: "4k70r: IOPS per watt",
                    value: |review, drive| {
                        let point = find_point(review, "4k70r", 64)?;
                        iops_per_watt(point.results[drive].as_ref()?).map(count)
                    },
                },
                SummaryRow {
                    topic: Topic::Tails,
                    name: "4k0r, 256 outstanding: latency breakdown of the slowest",
                    value: |review, drive| {
                        let result = find_point(review, "4k0r", 256)?.results[drive].as_ref()?;
                        Some(Slowest::from_measurement(result, "write")?.words())
                    },
                },
            ]
        }
    }

    fn spreads(&self, point: &Point) -> Vec<(String, &'static str)> {
        let (Some(name), Some(depth)) = (point.settings.profile, point.settings.queue_depth) else {
            return Vec::new();
        };
        let of = |way: &'static str| (format!("{name}, {depth} outstanding: {way}s"), way);
        match point.settings.direction {
            Some("mix") => vec![of("read"), of("write")],
            Some(way) => vec![of(way)],
            None => Vec::new(),
        }
    }
}

const CHART: Chart = Chart {
    id: ID,
    title: "Latency and throughput by outstanding I/Os",
    draws: Draws::Lines(LineChart {
        choices: &[
            CHOICE,
            ChartChoice {
                name: "direction",
                label: "Count",
                options: &[("total", "All"), ("read", "Reads"), ("write", "Writes")],
                selects: false,
            },
        ],
        metrics: ALL_METRICS,
        metric: "iops",
        scale: "linear",
        axes: &[ChartAxis {
            setting: "queue_depth",
            choice: "",
            kind: "depth",
            label: "Outstanding I/O",
            name: "Outstanding",
            column: "Outstanding I/O",
            format: "plain",
            range: None,
        }],
        caption: "HCIBench's profiles by outstanding I/O",
        own_points: false,
    }),
};

const COSTS: Chart = Chart {
    id: "hcibench-costs",
    title: "CPU time and power: IOPS per watt, watts, utilisation",
    draws: Draws::Costs {
        choices: &[CHOICE],
        caption: "Costs by outstanding I/O",
    },
};

const MEMBERS: Chart = Chart {
    id: "hcibench-members",
    title: "Load and lifetime of each member",
    draws: Draws::Members {
        caption: "Members by workload",
    },
};

const ANATOMY: Chart = Chart {
    id: "hcibench-anatomy",
    title: "Latency breakdown by percentile",
    draws: Draws::Anatomy,
};

/// Returns the row with the figure of a profile at HCIBench's depth.
const fn row<const PROFILE: usize>(topic: Topic, name: &'static str) -> SummaryRow {
    SummaryRow {
        topic,
        name,
        value: |review, drive| {
            let profile = &PROFILES[PROFILE];
            let in_order = profile.size.0 > 8192;
            let point = find_point(review, profile.name, if in_order { 16 } else { 64 })?;
            let result = point.results[drive].as_ref()?;
            let figures = [&result.read, &result.write];
            let rate: f64 = figures.into_iter().flatten().map(|it| it.mb_s).sum();
            Some(match in_order {
                true => text::digits::megabytes_a_second(rate),
                false => format!("{} IOPS", count(result.iops())),
            })
        },
    }
}

fn point(
    chapter: &'static str,
    profile: &'static EasyRunProfile,
    outstanding: u32,
    long: Long,
) -> PointSpec {
    let (direction, reads) = match profile.reads {
        100 => ("read", None),
        0 => ("write", None),
        percent => ("mix", Some(percent)),
    };
    let mut options = vec![("rw", profile.rw.to_owned()), ("bs", profile.size.1.into())];
    if let Some(percent) = reads {
        options.push(("rwmixread", percent.to_string()));
    }
    PointSpec {
        name: format!("{chapter}/{}/{outstanding}", profile.name),
        chapter,
        settings: PointSettings {
            direction: Some(direction),
            pattern: Some(match workload::fio::is_random(profile.rw) {
                true => "random",
                false => "sequential",
            }),
            block_bytes: Some(profile.size.0),
            queue_depth: Some(outstanding),
            threads: Some(DISKS),
            read_percent: reads,
            profile: Some(profile.name),
            ..PointSettings::default()
        },
        options,
        threads: vec![(DISKS, outstanding / DISKS)],
        course: RunPolicy::Long(long),
        ..PointSpec::default()
    }
}

fn find_point<'a>(review: &'a Review, profile: &str, outstanding: u32) -> Option<&'a Point> {
    review.find(ID, |point| {
        point.settings.profile == Some(profile) && point.settings.queue_depth == Some(outstanding)
    })
}

fn iops_per_watt(result: &Measurement) -> Option<f64> {
    let watts = result.watts.filter(|watts| *watts > 0.0)?;
    Some(result.iops() / watts)
}

/// The chapter on a run in which the write buffer fills.
pub(crate) struct WritePressure;

impl Chapter for WritePressure {
    fn id(&self) -> &'static str {
        FILLS
    }

    fn title(&self) -> &'static str {
        "Write buffer full"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: FILLS,
            title: "Write buffer full",
            about: "Half an hour of writes over half of the pool: 64 outstanding for random writes, 16 for sequential writes. The write \
                    buffer accepts writes faster than it can destage them. When the buffer is nearly full, writes are throttled to \
                    the rate of destaging. Each seed begins with a pool without earlier load; the first seed is shown. Flash runs \
                    scaled, with times multiplied to match.",
            charts: &[FILLING, FILLING_MEMBERS],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        if suite != Suite::Hcibench {
            return Vec::new();
        }
        let long = Long {
            ends: StopCondition::After(Span::from_ms(1_800_000)),
            warm: Span::ZERO,
            filled: false,
            over_time: true,
            range: WorkloadRange::Share(0.5),
            scaled: true,
            condition: Condition::None,
        };
        vec![
            point(FILLS, &PROFILES[2], 64, long),
            point(FILLS, &PROFILES[5], 16, long),
        ]
    }

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        let facts = &seeds.all;
        let mut all = Vec::new();
        for drive in 0..facts.drives() {
            for name in ["4k0r", "256k0r"] {
                let said = pressure_words(seeds, drive, name);
                all.extend(said.map(|it| format!("{}, {name}: {it}.", facts.opening(drive))));
            }
            let wears = of_profile(facts.review, "4k0r")
                .and_then(|point| first_to_wear_out(&facts.result(point, drive)?.members));
            if let Some((member, years)) = wears {
                all.push(format!(
                    "{}, 4k0r without pause: {member} reaches its rated endurance first, after {} years.",
                    facts.opening(drive),
                    significant(years, 2)
                ));
            }
        }
        all
    }

    fn rows(&self) -> &'static [SummaryRow] {
        &[
            SummaryRow {
                topic: Topic::OverTime,
                name: "4k0r over half an hour",
                value: |review, drive| pressure_row(review, drive, "4k0r"),
            },
            SummaryRow {
                topic: Topic::OverTime,
                name: "256k0r over half an hour",
                value: |review, drive| pressure_row(review, drive, "256k0r"),
            },
            SummaryRow {
                topic: Topic::Wear,
                name: "4k0r without pause: first member at its rated endurance",
                value: |review, drive| {
                    let result = of_profile(review, "4k0r")?.results[drive].as_ref()?;
                    let (member, years) = first_to_wear_out(&result.members)?;
                    Some(format!("{member}: {} years", significant(years, 2)))
                },
            },
        ]
    }
}

const FILLING: Chart = Chart {
    id: FILLS,
    title: "Half an hour of writes",
    draws: Draws::Gauged {
        caption: "Half an hour of writes",
        metrics: &[
            "iops",
            "mb_s",
            "mean_us",
            "max_us",
            "dirty_gb",
            "congestion",
            "freed_mb_s",
        ],
    },
};

const FILLING_MEMBERS: Chart = Chart {
    id: "write-pressure-members",
    title: "Load and lifetime of each member",
    draws: Draws::Members {
        caption: "Members by workload",
    },
};

fn of_profile<'a>(review: &'a Review, profile: &str) -> Option<&'a Point> {
    review.find(FILLS, |point| point.settings.profile == Some(profile))
}

/// Returns text such as `write pressure from 214 s; then 71 % of the rate; congestion 96`, with ranges over the seeds.
fn pressure_words(seeds: &Seeds<'_>, drive: usize, profile: &str) -> Option<String> {
    let range = |of: &dyn Fn(&PressureFigures) -> Option<f64>| {
        seeds.range(|facts| {
            let point = of_profile(facts.review, profile)?;
            of(&PressureFigures::from_measurement(
                facts.result(point, drive)?,
            )?)
        })
    };
    let from = range(&|it| Some(it.from_seconds))?.words(duration);
    let level = range(&|it| Some(it.congestion))?.words(|it| format!("{it:.0}"));
    let then = match range(&|it| it.share()) {
        Some(share) => format!("{} of the rate", percent(share)),
        None => format!("{} IOPS", range(&|it| Some(it.iops))?.words(count)),
    };
    Some(format!(
        "write pressure from {from}; then {then}; congestion {level}"
    ))
}

fn pressure_row(review: &Review, drive: usize, profile: &str) -> Option<String> {
    let result = of_profile(review, profile)?.results[drive].as_ref()?;
    Some(match PressureFigures::from_measurement(result) {
        Some(found) => {
            let before = found
                .before_iops
                .map_or(String::new(), |it| format!("{} → ", count(it)));
            format!(
                "{before}{} IOPS after {}",
                count(found.iops),
                duration(found.from_seconds)
            )
        }
        None => format!("{} IOPS, no pressure", digits(result.iops())),
    })
}
