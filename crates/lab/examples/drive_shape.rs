//! Prints the shape of a drive: random and sequential speeds by block size and queue depth, with tail latencies, as the
//! reviews measured them. Used to calibrate the catalogue.
//!
//! `cargo run --release -p drivelab-lab --example drive_shape -- p3700-1600 [host] [fresh|filled|steady]
//! [read|write|one|bs|seq|mix|long ...]`; the last column is simulated I/Os per wall-clock second.

use lab::{Lab, Machine, Measured, Outcome, Scenario, Work};
use model::media::Precondition;
use model::{Gauge, Span};
use workload::job::{BlockSizes, Job, Mix};

struct Bench {
    plan: Scenario,
}

impl Bench {
    fn run(&self, jobs: Vec<Job>) -> Outcome {
        let mut plan = self.plan.clone();
        plan.work = Work::Jobs(jobs);
        Lab::new()
            .run(&plan)
            .unwrap_or_else(|problems| panic!("{problems}"))
    }

    fn job(&self, mix: Mix, random: bool, bytes: u32, depth: u32, threads: u32, ios: u64) -> Job {
        Job {
            mix,
            random,
            block_sizes: [const { BlockSizes::Fixed(0) }; 3].map(|_| BlockSizes::Fixed(bytes)),
            block_align: [bytes; 3],
            iodepth: depth,
            numjobs: threads,
            number_ios: Some((ios / u64::from(threads)).max(1)),
            time_based: true,
            runtime: Some(Span::from_ms(100_000)),
            norandommap: true,
            ramp_time: Span::from_ms(40),
            ..Job::default()
        }
    }
}

fn total(outcome: &Outcome, pick: impl Fn(&lab::ThreadOutcome) -> &Measured) -> Measured {
    let mut sum = Measured::default();
    for thread in &outcome.threads {
        let one = pick(thread);
        sum.ios += one.ios;
        sum.bytes += one.bytes;
        sum.over = Span::from_ns(sum.over.ns().max(one.over.ns()));
        sum.latency.merge(&one.latency);
    }
    sum
}

fn line(label: &str, measured: &Measured, outcome: &Outcome, wall: std::time::Duration) {
    let us = |percent: f64| {
        measured
            .latency
            .quantile(percent)
            .map_or(f64::NAN, Span::us)
    };
    let gauge = |gauge| outcome.gauge(gauge).unwrap_or(0.0);
    let amplification = gauge(Gauge::CausedBytesWritten) / gauge(Gauge::HostBytesWritten);
    println!(
        "{label:<26} {:>9.1} kIOPS {:>8.1} MB/s  mean {:>8.1} p50 {:>8.1} p99 {:>8.1} p99.99 {:>9.1} p99.999 {:>9.1} us  WA {:.2}  {:>5.2} M/s",
        measured.iops() * 1e-3,
        measured.bytes_per_second() * 1e-6,
        measured.latency.mean_ns() * 1e-3,
        us(50.0),
        us(99.0),
        us(99.99),
        us(99.999),
        amplification,
        measured.ios as f64 / wall.as_secs_f64() * 1e-6,
    );
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let drive = args.first().map_or("p3700-1600", |s| s.as_str());
    let host = args.get(1).map_or("xeon-2017", |s| s.as_str());
    let state = match args.get(2).map_or("steady", |s| s.as_str()) {
        "fresh" => Precondition::Fresh,
        "filled" => Precondition::Filled,
        _ => Precondition::Steady,
    };
    let wanted = |what: &str| args.len() < 4 || args[3..].iter().any(|arg| arg == what);
    let sheet = catalogue::drive(drive).unwrap_or_else(|problems| panic!("{problems}"));
    let host = catalogue::host(host).unwrap_or_else(|problems| panic!("{problems}"));
    let bench = Bench {
        plan: Scenario::jobs(
            Machine::from_configs(
                "a drive",
                sheet.config.clone(),
                model::host::HostConfig {
                    io_queues: std::num::NonZeroU16::new(sheet.io_queues),
                    ..host.config.clone()
                },
            ),
            state,
            Vec::new(),
            1,
        ),
    };
    for (name, mix) in [("read", Mix::Read), ("write", Mix::Write)] {
        sweeps(&bench, name, mix, &wanted);
    }
    if args.iter().any(|arg| arg == "long") {
        for (name, mix) in [("read", Mix::Read), ("write", Mix::Write)] {
            let job = bench.job(mix, true, 4096, 16, 1, 4_000_000);
            show(&bench, &format!("long rand{name} QD16"), job);
        }
    }
    if wanted("mix") {
        for percent in [100, 90, 70, 50, 30, 10, 0] {
            let mut job = bench.job(Mix::ReadWrite, true, 4096, 1, 16, 600_000);
            job.read_percent = percent;
            show(&bench, &format!("mix {percent}"), job);
        }
    }
}

fn sweeps(bench: &Bench, name: &str, mix: Mix, wanted: &dyn Fn(&str) -> bool) {
    if wanted(name) {
        for depth in [1u32, 2, 4, 8, 16, 32, 64] {
            let threads = depth.min(4);
            let job = bench.job(mix, true, 4096, depth.div_ceil(threads), threads, 600_000);
            show(bench, &format!("4K rand{name} QD{depth} x{threads}"), job);
        }
    }
    if wanted("one") {
        for depth in [1, 4, 8, 16, 32, 64] {
            let job = bench.job(mix, true, 4096, depth, 1, 300_000);
            show(bench, &format!("4K rand{name} 1 thr QD{depth}"), job);
        }
    }
    if wanted("bs") {
        for bytes in [512, 4096, 8192, 16384, 32768, 65536, 131072, 1 << 20] {
            let ios = (6_000_000_000 / u64::from(bytes)).min(50_000);
            let job = bench.job(mix, true, bytes, 1, 1, ios);
            show(bench, &format!("rand{name} QD1 {bytes}"), job);
        }
    }
    if wanted("seq") {
        for bytes in [512, 4096, 16384, 65536, 131072, 1 << 20] {
            let ios = (6_000_000_000 / u64::from(bytes)).min(50_000);
            let job = bench.job(mix, false, bytes, 1, 1, ios);
            show(bench, &format!("seq{name} QD1 {bytes}"), job);
        }
        for depth in [2, 4, 8, 16, 32, 64] {
            let job = bench.job(mix, false, 131_072, depth, 1, 60_000);
            show(bench, &format!("seq{name} 128K QD{depth}"), job);
        }
        for depth in [1, 4, 32] {
            let job = bench.job(mix, false, 4 << 20, depth, 1, 3_000);
            show(bench, &format!("seq{name} 4M QD{depth}"), job);
        }
    }
}

fn show(bench: &Bench, label: &str, job: Job) {
    let began = std::time::Instant::now();
    let outcome = bench.run(vec![job]);
    let wall = began.elapsed();
    let read = total(&outcome, |thread| &thread.read);
    let write = total(&outcome, |thread| &thread.write);
    if read.ios > 0 {
        line(label, &read, &outcome, wall);
    }
    if write.ios > 0 {
        line(label, &write, &outcome, wall);
    }
}
