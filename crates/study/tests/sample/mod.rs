//! Drives of paper: a simulator that answers from a closed formula, so that tests of the page, the verdict and the
//! summary do not change when the model of a real drive does.
//!
//! The formula: a drive has a base latency, a number of servers and a service time for reads and for writes; latency
//! at depth n is what a closed network of that size would give, with a tail that differs between drives.

#![allow(dead_code)]

use model::media::ram::RamConfig;
use model::media::{DriveConfig, Precondition};
use model::{Anatomy, Gauge, Part, Span, Stream, Time};
use study::catalogue::{DriveSheet, Figure, HostSheet, Kind};
use study::problem::Problems;
use study::review::{Effort, OnBench, Request, Review, Simulator, Suite, Workload, Yours, review};
use study::run::replay::ReplayPlan;
use study::run::{Interval, Measured, Outcome, Plan, ThreadOutcome};
use study::workload::job::{BlockSizes, Job, Mix, Rate};
use study::workload::trace::Trace;

/// Base latency, parallelism, tail and cliff of a paper drive, for reads and writes.
#[derive(Clone, Copy)]
struct Paper {
    base_us: [f64; 2],
    servers: [f64; 2],
    mb_s: [f64; 2],
    tail: f64,
    fresh: f64,
    unaligned: f64,
    watts: [f64; 2],
}

const PAPERS: [Paper; 3] = [
    Paper {
        base_us: [9.2, 9.9],
        servers: [5.4, 5.0],
        mb_s: [2500.0, 2200.0],
        tail: 0.06,
        fresh: 1.0,
        unaligned: 0.6,
        watts: [5.0, 14.0],
    },
    Paper {
        base_us: [82.0, 19.0],
        servers: [36.0, 1.6],
        mb_s: [2800.0, 1900.0],
        tail: 1.1,
        fresh: 4.4,
        unaligned: 0.7,
        watts: [4.0, 22.0],
    },
    Paper {
        base_us: [104.0, 21.0],
        servers: [52.0, 4.9],
        mb_s: [3000.0, 2000.0],
        tail: 0.45,
        fresh: 2.1,
        unaligned: 0.5,
        watts: [6.0, 20.0],
    },
];

pub(crate) struct PaperDrives;

fn paper_of(plan: &Plan) -> (usize, Paper) {
    let DriveConfig::Ram(config) = &plan.drive else {
        panic!("paper drives only")
    };
    let index = config.per_command.ns() as usize;
    (index, PAPERS[index])
}

fn block(job: &Job, direction: usize) -> f64 {
    match job.block_sizes[direction] {
        BlockSizes::Fixed(bytes) => f64::from(bytes),
        _ => 4096.0,
    }
}

impl Simulator for PaperDrives {
    fn bench(&self, _: &DriveConfig, _: Precondition, _: u64) -> Box<dyn OnBench> {
        Box::new(PaperDrives)
    }

    fn replay(&self, _: &Trace, _: &ReplayPlan) -> Result<Outcome, Problems> {
        Err(Problems::whole("paper", "drives of paper replay nothing"))
    }
}

impl OnBench for PaperDrives {
    fn simulate(&mut self, plan: &Plan) -> Result<Outcome, Problems> {
        let (index, paper) = paper_of(plan);
        let mut stream = Stream::new(plan.seed, &format!("paper {index}"));
        let depth: u32 = plan.jobs.iter().map(|job| job.iodepth * job.numjobs).sum();
        let mut outcome = Outcome::default();
        let (mut joules, mut written, mut busy) = (0.0, 0.0, 0.0);
        for (number, job) in plan.jobs.iter().enumerate() {
            let shares = match job.mix {
                Mix::Read => [1.0, 0.0],
                Mix::Write => [0.0, 1.0],
                _ => [
                    f64::from(job.read_percent) / 100.0,
                    1.0 - f64::from(job.read_percent) / 100.0,
                ],
            };
            let mut directions = [Measured::default(), Measured::default()];
            let mut counted = Span::from_ms(1);
            for direction in 0..2 {
                if shares[direction] == 0.0 {
                    continue;
                }
                let bytes = block(job, direction);
                let crooked = f64::from(job.block_align[direction]) < bytes.min(4096.0);
                let factor = if crooked || bytes < 4096.0 {
                    1.0 / paper.unaligned
                } else {
                    1.0
                };
                let interference = 1.0 + shares[1 - direction] * paper.tail * 2.0;
                let order = if job.random { 1.0 } else { 0.8 };
                let alone_us = order
                    * (paper.base_us[direction] * interference + bytes / paper.mb_s[direction])
                    * factor;
                let most =
                    (paper.servers[direction] * 1e6 / paper.base_us[direction] / interference)
                        .min(paper.mb_s[direction] * 1e6 / bytes)
                        / factor;
                // Asymptotic bounds of a closed network, joined smoothly.
                let free = f64::from(depth) * 1e6 / alone_us;
                let total = free / (1.0 + (free / most).powi(4)).powf(0.25);
                let (iops, mean_us) = match job.rate[direction] {
                    Some(Rate::Iops(rate)) => {
                        let load = (rate as f64 * f64::from(job.numjobs) / most).min(0.999);
                        (rate as f64, alone_us * (1.0 + 0.3 * load / (1.0 - load)))
                    }
                    _ => {
                        let mine = f64::from(job.iodepth * job.numjobs) / f64::from(depth);
                        (
                            total * mine * shares[direction],
                            f64::from(depth) * 1e6 / total,
                        )
                    }
                };
                let seconds = job.runtime.map_or(0.2, |runtime| runtime.seconds());
                counted = Span::from_seconds(seconds);
                let ios = (iops * seconds) as u64;
                directions[direction] = measured(
                    &mut stream,
                    ios,
                    bytes,
                    counted,
                    mean_us,
                    paper.tail,
                    direction,
                );
                if plan.series_every > Span::ZERO {
                    let length = job.number_ios.unwrap_or(0) * u64::from(job.numjobs);
                    directions[direction].series =
                        cliff(plan.series_every, total, paper.fresh, length);
                }
                let mine =
                    f64::from(job.iodepth * job.numjobs) / f64::from(depth) * shares[direction];
                joules += mine * seconds * (paper.watts[direction] * total / most + 4.0);
                busy += mine * seconds * total / most;
                written += if direction == 1 {
                    ios as f64 * bytes
                } else {
                    0.0
                };
            }
            let [read, write] = directions;
            outcome.counted = counted;
            outcome.threads.push(ThreadOutcome {
                job: number,
                copy: 0,
                group: if job.group_reporting {
                    0
                } else {
                    number as u32
                },
                started: Time::ZERO,
                ended: Time::ZERO + counted,
                read,
                write,
                trim: Measured::default(),
                sync: Measured::default(),
                depths: [0; 7],
                cpu: [Span::ZERO; 2],
                latency_depth: None,
                steady_at: None,
            });
        }
        outcome.gauges = vec![
            (Gauge::EnergyJoules, joules),
            (Gauge::HostBytesWritten, written),
            (Gauge::MediumBytesWritten, written * paper.fresh),
            (Gauge::ControllerBusySeconds, busy * 0.4),
            (Gauge::LinkBusySeconds, busy * 0.2),
            (Gauge::MediumBusySeconds, busy),
        ];
        Ok(outcome)
    }
}

fn measured(
    stream: &mut Stream,
    ios: u64,
    bytes: f64,
    over: Span,
    mean_us: f64,
    tail: f64,
    direction: usize,
) -> Measured {
    let mut measured = Measured {
        ios,
        bytes: ios * bytes as u64,
        over,
        ..Measured::default()
    };
    for _ in 0..ios {
        let mut anatomy = Anatomy::ZERO;
        let us = |us: f64| Span::from_ns((us * 1e3) as u64);
        anatomy.add(Part::HostSubmission, us(1.3));
        anatomy.add(Part::Link, us(0.4));
        anatomy.add(Part::HostCompletion, us(1.6));
        anatomy.add(Part::Transfer, us(bytes / 3000.0));
        let medium = mean_us * (0.55 + 0.1 * stream.unit());
        anatomy.add(Part::Controller, us(mean_us * 0.15));
        anatomy.add(
            if direction == 0 {
                Part::Medium
            } else {
                Part::BufferFull
            },
            us(medium),
        );
        if stream.chance(0.2) {
            anatomy.add(Part::BehindRead, stream.exponential(us(mean_us * 0.3)));
        }
        if stream.chance(0.01) {
            anatomy.add(
                Part::BehindProgram,
                stream.exponential(us(mean_us * 4.0 * tail + 5.0)),
            );
        }
        if stream.chance(0.001) {
            anatomy.add(
                Part::BehindCollection,
                stream.exponential(us(mean_us * 20.0 * tail + 8.0)),
            );
        }
        let latency = anatomy.total();
        measured.latency.record(latency);
        measured.bands.record(latency, &anatomy);
    }
    measured
}

/// Full speed for one fill, then a fall to the steady rate.
fn cliff(every: Span, steady: f64, fresh: f64, ios: u64) -> Vec<Interval> {
    let mut series = Vec::new();
    let mut done = 0.0;
    while done < ios as f64 {
        let fills = done / ios as f64 * 3.5;
        let rate = if fills < 1.1 {
            steady * fresh
        } else {
            steady * (1.0 + (fresh - 1.0) * (-(fills - 1.1) * 5.0).exp())
        };
        let count = rate * every.seconds();
        done += count;
        series.push(Interval {
            ios: count as u64,
            bytes: count as u64 * 4096,
            latency_ns: (32.0 / rate * 1e9 * count) as u64,
            max_ns: (320.0 / rate * 1e9) as u64,
        });
    }
    series
}

fn figure(key: &str, value: &str, kind: Kind, source: &str) -> Figure {
    Figure {
        key: key.into(),
        value: value.into(),
        kind,
        source: source.into(),
        note: None,
        date: None,
        file: "paper.toml".into(),
        inherited: false,
    }
}

fn sheet(index: u64, id: &str, name: &str, gigabytes: u64) -> DriveSheet {
    DriveSheet {
        id: id.into(),
        name: name.into(),
        maker: "Nobody".into(),
        medium: "Paper".into(),
        family: None,
        form_factor: "sheet".into(),
        interface: "PCIe 3.0 x4, NVMe".into(),
        capacity: gigabytes * 1_000_000_000 / 4096 * 4096,
        lba_formats: Vec::new(),
        price_date: (index == 0).then(|| "2017-11".into()),
        config: DriveConfig::Ram(RamConfig {
            bytes: gigabytes * 1_000_000_000 / 4096 * 4096,
            per_command: Span::from_ns(index),
            picoseconds_per_byte: 0,
        }),
        io_queues: 31,
        endurance_bytes: (index != 2).then_some((index + 1) * 12_300_000_000_000_000),
        warranty_years: (index != 2).then_some(5.0),
        price_usd: (index == 0).then_some(1520.0),
        figures: vec![
            figure("capacity", &format!("{gigabytes} GB"), Kind::Spec, "paper"),
            figure("read.base", "9.2 us", Kind::Fitted, "a formula"),
            figure("tail", "0.06", Kind::Assumed, "nobody has published it"),
        ],
    }
}

/// A review of three paper drives; small unless `ios` is large.
pub(crate) fn request(ios: u64) -> Request {
    let trap = "</script><img src=x onerror=\"document.title='hurt'\">";
    Request {
        drives: vec![
            sheet(0, "paper-x", "Paper X 375 GB", 375),
            sheet(1, "paper-n", "Paper N 1.6 TB", 1600),
            sheet(2, "paper-m", "Paper M 2.4 TB", 2400),
        ],
        host: HostSheet {
            id: "paper-host".into(),
            name: "Paper host".into(),
            config: model::host::HostConfig::default(),
            figures: vec![figure("cores", "16", Kind::Assumed, "paper")],
        },
        suite: Suite::Quick,
        effort: Effort {
            ios,
            deep_ios: 263 * ios,
            ..Suite::Quick.effort()
        },
        seed: 42,
        yours: vec![Yours {
            source: format!("database.fio {trap}"),
            text: format!("[{trap}]\nrw=randrw\n[log]\nrw=write\n"),
            workload: Workload::Jobs(vec![
                Job {
                    name: trap.into(),
                    mix: Mix::ReadWrite,
                    random: true,
                    iodepth: 8,
                    ..Job::default()
                },
                Job {
                    name: "log".into(),
                    mix: Mix::Write,
                    stonewall: true,
                    ..Job::default()
                },
            ]),
        }],
    }
}

/// The review of [`request`].
pub(crate) fn paper_review(ios: u64) -> Review {
    review(&request(ios), &PaperDrives, &|_| {}).expect("paper drives take every job")
}
