//! Formula drives: a simulator with closed formulas, so that tests of the page, the verdict and the summary do not
//! change when the model of a real drive does.
//!
//! The formula: a drive has a base latency, a number of servers and a service time for reads and for writes; latency
//! at depth n is that of a closed network of that size, with a tail that differs between drives.

#![allow(dead_code)]

use std::sync::LazyLock;

use catalogue::{DriveSheet, Figure, FigureKind, HostSheet, NvmeIdentity};
use lab::{Interval, Lab, Measured, Outcome, Scenario, ThreadOutcome, Work};
use model::management::{Management, Thermal};
use model::media::ram::RamConfig;
use model::{Anatomy, Gauge, Part, Span, Stream, Time};
use study::review::{Effort, Review, ReviewRequest, Suite, UserWorkload, Workload, review};
use text::problem::Problems;
use tier::DriveConfig;
use workload::job::{BlockSizes, Job, Mix, Rate};

/// Base latency, parallelism, tail and cliff of a formula drive, for reads and writes.
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

/// Returns a laboratory of formula drives.
pub(crate) fn paper_drives() -> Lab {
    Lab::with_stand_in(|scenario, _, _| match &scenario.work {
        Work::Jobs(jobs) => Ok(written_down(scenario, jobs)),
        Work::Trace(_) | Work::Act(_) => {
            Err(Problems::whole("paper", "drives of paper replay nothing"))
        }
    })
}

fn paper_of(scenario: &Scenario) -> (usize, Paper) {
    let DriveConfig::Ram(config) = scenario.machine.drive() else {
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

/// Resource use of the drive during a run.
#[derive(Default)]
struct Spent {
    joules: f64,
    written: f64,
    busy: f64,
}

/// Load on a formula drive.
struct Asked<'a> {
    jobs: &'a [Job],
    series_every: Span,
}

fn written_down(scenario: &Scenario, jobs: &[Job]) -> Outcome {
    let asked = Asked {
        jobs,
        series_every: scenario.series_every,
    };
    let (index, paper) = paper_of(scenario);
    let mut stream = Stream::new(scenario.seed, &format!("paper {index}"));
    let mut outcome = Outcome::default();
    let mut spent = Spent::default();
    for (number, job) in jobs.iter().enumerate() {
        let counted = paper.counted(&asked, job);
        let [read, write] = [0, 1].map(|way| paper.run(&asked, job, way, &mut stream, &mut spent));
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
            arrived: None,
        });
    }
    outcome.gauges = vec![
        (Gauge::EnergyJoules, spent.joules),
        (Gauge::HostBytesWritten, spent.written),
        (Gauge::CausedBytesWritten, spent.written * paper.fresh),
        (Gauge::ControllerBusySeconds, spent.busy * 0.4),
        (Gauge::LinkBusySeconds, spent.busy * 0.2),
        (Gauge::MediumBusySeconds, spent.busy),
    ];
    outcome
}

/// Returns the shares of reads and writes in a job.
fn shares(job: &Job) -> [f64; 2] {
    match job.mix {
        Mix::Read => [1.0, 0.0],
        Mix::Write => [0.0, 1.0],
        _ => {
            let reads = f64::from(job.read_percent) / 100.0;
            [reads, 1.0 - reads]
        }
    }
}

impl Paper {
    /// Returns latency at QD1, and maximum IOPS.
    fn limits(&self, job: &Job, way: usize) -> (f64, f64) {
        let bytes = block(job, way);
        let crooked = f64::from(job.block_align[way]) < bytes.min(4096.0) || bytes < 4096.0;
        let factor = if crooked { 1.0 / self.unaligned } else { 1.0 };
        let order = if job.random { 1.0 } else { 0.8 };
        let interference = 1.0 + shares(job)[1 - way] * self.tail * 2.0;
        let base_us = self.base_us[way] * interference;
        let alone_us = order * (base_us + bytes / self.mb_s[way]) * factor;
        let most = (self.servers[way] * 1e6 / base_us).min(self.mb_s[way] * 1e6 / bytes) / factor;
        (alone_us, most)
    }

    /// Returns the IOPS of all jobs together: asymptotic bounds of a closed network, joined smoothly.
    fn total(&self, asked: &Asked<'_>, job: &Job, way: usize) -> f64 {
        let (alone_us, most) = self.limits(job, way);
        let free = depth(asked) * 1e6 / alone_us;
        free / (1.0 + (free / most).powi(4)).powf(0.25)
    }

    /// Returns the counted time of a job: its own time, or that of its number of I/Os.
    fn counted(&self, asked: &Asked<'_>, job: &Job) -> Span {
        match (job.runtime, job.number_ios) {
            (Some(runtime), _) => runtime,
            (None, Some(each)) if asked.series_every == Span::ZERO => {
                let way = usize::from(shares(job)[0] == 0.0);
                let whole = each as f64 * f64::from(job.numjobs) / self.total(asked, job, way);
                Span::from_seconds((whole - job.ramp_time.seconds()).max(1e-3))
            }
            _ => Span::from_ms(200),
        }
    }

    /// Runs one direction of a job.
    fn run(
        &self,
        asked: &Asked<'_>,
        job: &Job,
        way: usize,
        stream: &mut Stream,
        spent: &mut Spent,
    ) -> Measured {
        let share = shares(job)[way];
        if share == 0.0 {
            return Measured::default();
        }
        let depth = depth(asked);
        let (alone_us, most) = self.limits(job, way);
        let total = self.total(asked, job, way);
        let mine = f64::from(job.iodepth * job.numjobs) / depth * share;
        let (iops, mean_us) = match job.rate[way] {
            Some(Rate::Iops(rate)) => {
                let load = (rate as f64 * f64::from(job.numjobs) / most).min(0.999);
                (rate as f64, alone_us * (1.0 + 0.3 * load / (1.0 - load)))
            }
            _ => (total * mine, depth * 1e6 / total),
        };
        let counted = self.counted(asked, job);
        let ios = (iops * counted.seconds()) as u64;
        let bytes = block(job, way);
        let mut result = measured(stream, ios, bytes, counted, mean_us, self.tail, way);
        if asked.series_every > Span::ZERO {
            let length = job.number_ios.unwrap_or(0) * u64::from(job.numjobs);
            result.series = cliff(asked.series_every, total, self.fresh, length);
        }
        let seconds = mine * counted.seconds();
        spent.joules += seconds * (self.watts[way] * total / most + 4.0);
        spent.busy += seconds * total / most;
        spent.written += if way == 1 { ios as f64 * bytes } else { 0.0 };
        result
    }
}

/// Returns the I/Os in flight over all jobs.
fn depth(asked: &Asked<'_>) -> f64 {
    let depth: u32 = asked.jobs.iter().map(|job| job.iodepth * job.numjobs).sum();
    f64::from(depth)
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
    for index in 0..ios {
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
        let at = Time::ZERO + over.scale(index as f64 / ios as f64);
        measured.latency.record_at(latency, at);
        measured.bands.record(latency, &anatomy);
    }
    measured
}

/// Returns full speed for one fill, then a drop to the steady rate.
fn cliff(every: Span, steady: f64, fresh: f64, ios: u64) -> Vec<Interval> {
    let mut series = Vec::new();
    let mut done = 0.0;
    while done < ios as f64 {
        let fills = done / ios as f64 * 5.0;
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

fn figure(key: &str, value: &str, kind: FigureKind, source: &str) -> Figure {
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
        management: Management {
            lba_formats: Vec::new(),
            power_limits_watts: Vec::new(),
            thermal: Thermal {
                ambient_celsius: 30.0,
                kelvin_per_watt: 0.0,
                time_constant: Span::ZERO,
                warning_celsius: 70.0,
                critical_celsius: 85.0,
            },
            retention: None,
        },
        nvme: NvmeIdentity {
            model_number: "Paper".into(),
            serial_prefix: "PAPER".into(),
            firmware: "1.0".into(),
            vendor_id: 0,
            log_pages: Default::default(),
        },
        power_loss_protection: None,
        power_states: Vec::new(),
        fit: None,
        sheet: None,
        sold: None,
        ratings: None,
        price_date: (index == 0).then(|| "2017-11".into()),
        config: DriveConfig::Ram(RamConfig {
            bytes: gigabytes * 1_000_000_000 / 4096 * 4096,
            per_command: Span::from_ns(index),
            picoseconds_per_byte: 0,
            memory_bus: None,
            spread: 0.0,
        }),
        io_queues: 31,
        endurance_bytes: (index != 2).then_some((index + 1) * 12_300_000_000_000_000),
        warranty_years: (index != 2).then_some(5.0),
        price_usd: (index == 0).then_some(1520.0),
        members: Vec::new(),
        pool: None,
        free: &[],
        figures: vec![
            figure(
                "capacity",
                &format!("{gigabytes} GB"),
                FigureKind::Spec,
                "paper",
            ),
            figure("read.base", "9.2 us", FigureKind::Fitted, "a formula"),
            figure(
                "tail",
                "0.06",
                FigureKind::Assumed,
                "nobody has published it",
            ),
        ],
    }
}

/// Returns a review of three formula drives; small unless `ios` is large.
pub(crate) fn request(ios: u64) -> ReviewRequest {
    let trap = "</script><img src=x onerror=\"document.title='hurt'\">";
    ReviewRequest {
        drives: vec![
            sheet(0, "paper-x", "Paper X 375 GB", 375),
            sheet(1, "paper-n", "Paper N 1.6 TB", 1600),
            sheet(2, "paper-m", "Paper M 2.4 TB", 2400),
        ],
        settings: Default::default(),
        host: HostSheet {
            id: "paper-host".into(),
            name: "Paper host".into(),
            config: model::host::HostConfig::default(),
            sockets: 1,
            act: None,
            figures: vec![figure("cores", "16", FigureKind::Assumed, "paper")],
        },
        suite: Suite::Quick,
        effort: Effort {
            ios,
            // With 4,000, as many as in the quick suite: seeds share them, and together have ten beyond p99.999.
            deep_ios: 263 * ios,
            ..Suite::Quick.effort()
        },
        seed: 42,
        only_yours: false,
        yours: vec![UserWorkload {
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

/// Returns the review of [`request`] with 4,000 I/Os per point, made once for all tests of a file.
pub(crate) fn paper_review() -> &'static Review {
    static MADE: LazyLock<Review> = LazyLock::new(|| {
        review(&request(4_000), &paper_drives(), &|_| {}).expect("paper drives take every job")
    });
    &MADE
}
