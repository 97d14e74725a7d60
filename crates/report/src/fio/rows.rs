//! Rows of fio's report: a thread, or all threads of a group with `group_reporting`.

use model::Span;

use lab::{Interval, Measured, MemberOutcome, ThreadOutcome};
use statistics::{Histogram, Window};
use workload::job::{Job, Unified};

use super::Report;

/// Figures of a rate that was sampled over time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Samples {
    pub count: u64,
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    pub squares: f64,
}

impl Samples {
    fn from_values(values: impl Iterator<Item = u64>) -> Samples {
        let mut samples = Samples {
            min: u64::MAX,
            ..Samples::default()
        };
        for value in values {
            samples.count += 1;
            samples.min = samples.min.min(value);
            samples.max = samples.max.max(value);
            let difference = value as f64 - samples.mean;
            samples.mean += difference / samples.count as f64;
            samples.squares += difference * (value as f64 - samples.mean);
        }
        if samples.count == 0 {
            samples.min = 0;
        }
        samples
    }

    /// Adds rates of threads that report together, as fio does.
    fn add(&mut self, other: &Samples) {
        self.count += other.count;
        self.min += other.min;
        self.max += other.max;
        self.mean += other.mean;
        self.squares += other.squares;
    }

    pub(super) fn deviation(&self) -> f64 {
        if self.count > 1 {
            (self.squares / (self.count - 1) as f64).sqrt()
        } else {
            0.0
        }
    }
}

/// One direction of a row.
#[derive(Clone, Debug, Default)]
pub(super) struct RowDirection {
    pub ios: u64,
    pub bytes: u64,
    pub errors: u64,
    /// From the first start to the last completion; `None` without I/O.
    pub window: Option<Window>,
    pub submission: Histogram,
    pub completion: Histogram,
    pub latency: Histogram,
    /// Bandwidth in KiB/s.
    pub bandwidth: Samples,
    pub iops: Samples,
}

impl RowDirection {
    fn from_measured(
        measured: &Measured,
        thread: &ThreadOutcome,
        job: &Job,
        every: Span,
    ) -> RowDirection {
        let reporting = &job.reporting;
        let keep = |histogram: &Histogram, disabled: bool| {
            if disabled {
                Histogram::default()
            } else {
                histogram.clone()
            }
        };
        let (bandwidth, iops) = if reporting.disable_bw {
            Default::default()
        } else {
            samples(&measured.series, thread, job, every)
        };
        RowDirection {
            ios: measured.ios,
            bytes: measured.bytes,
            errors: measured.errors,
            window: Window::from_threads([measured].into_iter()),
            submission: keep(&measured.submission, reporting.disable_slat),
            completion: keep(&measured.completion, reporting.disable_clat),
            latency: keep(&measured.latency, reporting.disable_lat),
            bandwidth,
            iops,
        }
    }

    fn merge(&mut self, other: &RowDirection) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.window = joined(self.window, other.window);
        self.submission.merge(&other.submission);
        self.completion.merge(&other.completion);
        self.latency.merge(&other.latency);
        self.bandwidth.add(&other.bandwidth);
        self.iops.add(&other.iops);
    }

    /// Returns milliseconds as fio shows them: at least 1 if there was I/O.
    pub(super) fn runtime_ms(&self) -> u64 {
        self.over().ns().div_ceil(1_000_000)
    }

    /// Returns the counted time.
    fn over(&self) -> Span {
        self.window.map_or(Span::ZERO, Window::length)
    }

    pub(super) fn bytes_per_second(&self) -> f64 {
        per_second(self.bytes, self.over())
    }

    pub(super) fn ios_per_second(&self) -> f64 {
        per_second(self.ios, self.over())
    }
}

/// Returns the window from the first start of either to the last completion.
pub(super) fn joined(one: Option<Window>, other: Option<Window>) -> Option<Window> {
    one.into_iter().chain(other).reduce(Window::union)
}

/// Returns a count divided by a time; 0 for no time.
pub(super) fn per_second(count: u64, over: Span) -> f64 {
    if over == Span::ZERO {
        0.0
    } else {
        count as f64 / over.seconds()
    }
}

/// Returns bandwidth (KiB/s) and IOPS in the whole intervals in which the thread was counted.
fn samples(
    series: &[Interval],
    thread: &ThreadOutcome,
    job: &Job,
    every: Span,
) -> (Samples, Samples) {
    if every == Span::ZERO {
        return Default::default();
    }
    let from = (thread.started + job.ramp_time).ns().div_ceil(every.ns()) as usize;
    let to = (thread.ended.ns() / every.ns()) as usize;
    let empty = Interval::default();
    let whole = || (from..to).map(|index| series.get(index).unwrap_or(&empty));
    if series.is_empty() {
        return Default::default();
    }
    let rate = |count: u64| (u128::from(count) * 1_000_000_000 / u128::from(every.ns())) as u64;
    (
        Samples::from_values(whole().map(|interval| rate(interval.bytes) / 1024)),
        Samples::from_values(whole().map(|interval| rate(interval.ios))),
    )
}

/// A row that fio shows as one job.
#[derive(Clone, Debug)]
pub(super) struct FioRow<'a> {
    /// The first job in it: its name, units, and separation of directions are shown.
    pub job: &'a Job,
    /// The last job in it: fio shows its options, percentiles, latency target and steady state.
    pub last: &'a Job,
    pub group: u32,
    pub members: u32,
    /// Reads, writes, trims; with unified reporting, everything is in the first.
    pub ways: [RowDirection; 3],
    pub sync: RowDirection,
    pub user: Span,
    pub system: Span,
    /// Sum of the threads' run times.
    pub run: Span,
    pub depths: [u64; 7],
    /// Submissions and reaps by size: none, up to 4, 8, 16, 32, 64, more.
    pub submits: [u64; 7],
    pub completes: [u64; 7],
    pub latency_depth: u32,
    /// Threads in it, for later look-ups.
    pub threads: Vec<&'a ThreadOutcome>,
}

/// Returns fio's class of a batch of `count`.
fn batch_class(count: u32) -> usize {
    match count {
        0 => 0,
        1..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        17..=32 => 4,
        33..=64 => 5,
        _ => 6,
    }
}

impl<'a> FioRow<'a> {
    fn new(job: &'a Job, thread: &'a ThreadOutcome, every: Span) -> FioRow<'a> {
        let mut ways = [&thread.read, &thread.write, &thread.trim]
            .map(|way| RowDirection::from_measured(way, thread, job, every));
        if job.reporting.unified == Unified::Mixed {
            ways = [
                mixed(&ways),
                RowDirection::default(),
                RowDirection::default(),
            ];
        }
        let total: u64 = ways.iter().map(|way| way.ios).sum();
        let refill = job
            .iodepth_batch_complete_min
            .max(job.iodepth.saturating_sub(job.iodepth_low));
        let mut submits = [0; 7];
        submits[batch_class(refill.clamp(1, job.iodepth_batch.max(1)))] = total;
        let mut completes = [0; 7];
        completes[batch_class(job.iodepth_batch_complete_min.clamp(1, job.iodepth))] = total;
        FioRow {
            job,
            last: job,
            group: thread.group,
            members: 1,
            ways,
            sync: RowDirection::from_measured(&thread.sync, thread, job, Span::ZERO),
            user: thread.cpu[0],
            system: thread.cpu[1],
            run: thread.ended.since(thread.started),
            depths: thread.depths,
            submits,
            completes,
            // fio prints 1 if no depth meets the target.
            latency_depth: thread
                .latency_depth
                .map_or(job.iodepth, |depth| depth.max(1)),
            threads: vec![thread],
        }
    }

    fn merge(&mut self, other: &FioRow<'a>) {
        self.members += 1;
        self.last = other.last;
        for (mine, theirs) in self.ways.iter_mut().zip(&other.ways) {
            mine.merge(theirs);
        }
        self.sync.merge(&other.sync);
        self.user += other.user;
        self.system += other.system;
        self.run += other.run;
        for (mine, theirs) in [
            (&mut self.depths, &other.depths),
            (&mut self.submits, &other.submits),
            (&mut self.completes, &other.completes),
        ] {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine += theirs;
            }
        }
        self.latency_depth = other.latency_depth;
        self.threads.extend(&other.threads);
    }

    /// Returns the I/Os in all directions.
    pub(super) fn ios(&self) -> u64 {
        self.ways.iter().map(|way| way.ios).sum()
    }

    /// Returns the failed I/Os in all directions.
    pub(super) fn errors(&self) -> u64 {
        self.ways.iter().map(|way| way.errors).sum()
    }

    /// Returns all directions as one.
    pub(super) fn mixed(&self) -> RowDirection {
        mixed(&self.ways)
    }
}

fn mixed(ways: &[RowDirection; 3]) -> RowDirection {
    let mut all = RowDirection::default();
    for way in ways {
        all.merge(way);
    }
    all
}

/// Returns the rows of a run, in fio's order.
pub(super) fn rows<'a>(report: &Report<'a>) -> Vec<FioRow<'a>> {
    let mut rows: Vec<FioRow> = Vec::new();
    for thread in &report.outcome.threads {
        let job = &report.jobs[thread.job];
        let row = FioRow::new(job, thread, report.series_every);
        match rows.last_mut() {
            Some(last) if job.group_reporting && last.group == thread.group => last.merge(&row),
            _ => rows.push(row),
        }
    }
    rows
}

/// One direction of all rows of a reporting group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupWay {
    pub bytes: u64,
    pub window: Option<Window>,
    pub shortest: Span,
    pub longest: Span,
    pub slowest: u64,
    pub fastest: u64,
}

impl GroupWay {
    fn add(&mut self, way: &RowDirection) {
        let over = way.over();
        if over == Span::ZERO {
            return;
        }
        self.window = joined(self.window, way.window);
        let rate = way.bytes_per_second() as u64;
        let first = self.longest == Span::ZERO;
        self.bytes += way.bytes;
        self.shortest = if first { over } else { self.shortest.min(over) };
        self.longest = self.longest.max(over);
        self.slowest = if first { rate } else { self.slowest.min(rate) };
        self.fastest = self.fastest.max(rate);
    }

    /// Returns the rate of the group in bytes per second.
    pub(super) fn rate(&self) -> f64 {
        per_second(self.bytes, self.window.map_or(Span::ZERO, Window::length))
    }
}

/// Returns the directions of each reporting group, by its number.
pub(super) fn groups(rows: &[FioRow]) -> Vec<[GroupWay; 3]> {
    let mut groups: Vec<[GroupWay; 3]> = Vec::new();
    for row in rows {
        let index = row.group as usize;
        if groups.len() <= index {
            groups.resize(index + 1, Default::default());
        }
        for (group, way) in groups[index].iter_mut().zip(&row.ways) {
            group.add(way);
        }
    }
    groups
}

/// Returns the members of a pool with their names, in order; empty for a drive.
pub(super) fn members<'a>(report: &'a Report) -> Vec<(&'a str, MemberOutcome)> {
    let names = report.members.iter().map(|name| &**name);
    names.zip(report.outcome.members()).collect()
}

/// Figures of the disk: by reads and writes, I/Os and milliseconds in queue; and the utilisation in percent.
pub(super) struct DiskUsage {
    pub ios: [u64; 2],
    pub ticks_ms: [u64; 2],
    pub util: f64,
}

/// Returns the disk's figures over the run.
pub(super) fn disk(report: &Report) -> DiskUsage {
    let mut disk = DiskUsage {
        ios: [0; 2],
        ticks_ms: [0; 2],
        util: 0.0,
    };
    let mut ns = [0.0; 2];
    for thread in &report.outcome.threads {
        for (index, way) in [&thread.read, &thread.write].into_iter().enumerate() {
            disk.ios[index] += way.ios;
            ns[index] += way.latency.mean_ns() * way.latency.count() as f64;
        }
    }
    disk.ticks_ms = ns.map(|ns| (ns / 1e6) as u64);
    let over = report.outcome.counted.ns() as f64;
    if over > 0.0 {
        disk.util = (100.0 * (ns[0] + ns[1]) / over).min(100.0);
    }
    disk
}
