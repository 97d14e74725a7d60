//! fio's normal text, line for line.

use std::fmt::Write;

use statistics::Histogram;
use workload::job::{BlockSizes, Job, Mix, SteadyMetric, Unified};

use super::bins;
use super::json::{classes, percent, seconds, share_of_group, shares, trend};
use super::number::{Unit, short};
use super::rows::{self, FioRow, GroupWay, RowDirection, Samples};
use super::{Report, VERSION, clock};
use crate::{guests, phases, rebuilds};

/// Appends the text that fio prints at the end of a run.
pub(super) fn body(out: &mut String, report: &Report) {
    let rows = rows::rows(report);
    let groups = rows::groups(&rows);
    out.push('\n');
    for row in &rows {
        job(out, row, &groups[row.group as usize], report);
    }
    for (index, group) in groups.iter().enumerate() {
        let shown = rows.iter().find(|row| row.group as usize == index);
        group_status(out, index, group, shown);
    }
    let disk = rows::disk(report);
    let _ = writeln!(
        out,
        "\nDisk stats (read/write):\n  {}: ios={}/{}, merge=0/0, ticks={}/{}, in_queue={}, util={:.2}%",
        report.drive,
        disk.ios[0],
        disk.ios[1],
        disk.ticks_ms[0],
        disk.ticks_ms[1],
        disk.ticks_ms[0] + disk.ticks_ms[1],
        disk.util
    );
    let members = rows::members(report);
    if members.len() > 1 {
        out.push_str("\nMembers (read/written):\n");
    }
    for (name, member) in members.iter().filter(|_| members.len() > 1) {
        let [read, written] = [member.bytes_read, member.bytes_written]
            .map(|bytes| short(bytes as u64, 4, true, Unit::Byte));
        let _ = write!(
            out,
            "  {name}: io={read}/{written}, busy={:.2}%",
            100.0 * member.busy
        );
        if let Some(amplification) = member.write_amplification {
            let _ = write!(out, ", wa={amplification:.2}");
        }
        out.push('\n');
    }
    between_faults(out, report);
    out.push_str(&guests::table(report.jobs, report.outcome));
}

/// Appends the results between faults, if any occurred.
fn between_faults(out: &mut String, report: &Report) {
    if !report.outcome.phases.is_empty() {
        let table = phases::table(&report.outcome.phases, None);
        let _ = write!(out, "\nFaults:\n{table}\n");
        out.push_str(&rebuilds::lines(&report.outcome.rebuilds));
    }
}

/// Appends a line for each job before the run, and the number that start.
pub(super) fn heads(out: &mut String, report: &Report) {
    let mut group = 0;
    let (mut threads, mut processes) = (0, 0);
    for (index, job) in report.jobs.iter().enumerate() {
        if index > 0 {
            group += u32::from(job.stonewall || job.new_group);
        }
        *(if job.thread {
            &mut threads
        } else {
            &mut processes
        }) += job.numjobs;
        let sizes: Vec<String> = job
            .block_sizes
            .iter()
            .map(|sizes| {
                let (min, max) = ends(sizes);
                let size = |bytes: u32| {
                    let reporting = &job.reporting;
                    short(
                        bytes.into(),
                        reporting.significant_figures,
                        reporting.kb_base == 1024,
                        Unit::Byte,
                    )
                };
                format!("{}-{}", size(min), size(max))
            })
            .collect();
        let _ = writeln!(
            out,
            "{}: (g={group}): rw={}, bs=(R) {}, (W) {}, (T) {}, ioengine={}, iodepth={}",
            job.name,
            mode(job),
            sizes[0],
            sizes[1],
            sizes[2],
            job.engine_name,
            job.iodepth
        );
        if job.numjobs > 1 {
            out.push_str("...\n");
        }
    }
    let threads = match threads {
        0 => None,
        1 => Some("1 thread".to_string()),
        many => Some(format!("{many} threads")),
    };
    let processes = match processes {
        0 => None,
        1 => Some("1 process".to_string()),
        many => Some(format!("{many} processes")),
    };
    let started: Vec<String> = threads.into_iter().chain(processes).collect();
    let _ = writeln!(out, "{VERSION}\nStarting {}", started.join(" and "));
}

fn ends(sizes: &BlockSizes) -> (u32, u32) {
    match sizes {
        BlockSizes::Fixed(bytes) => (*bytes, *bytes),
        BlockSizes::Range { min, max, .. } => (*min, *max),
        BlockSizes::Split(split) => {
            let sizes = || split.iter().map(|&(bytes, _)| bytes);
            (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
        }
    }
}

/// Returns fio's name of a job's directions.
fn mode(job: &Job) -> &'static str {
    match (job.mix, job.random) {
        (Mix::Read, false) => "read",
        (Mix::Read, true) => "randread",
        (Mix::Write, false) => "write",
        (Mix::Write, true) => "randwrite",
        (Mix::Trim, false) => "trim",
        (Mix::Trim, true) => "randtrim",
        (Mix::ReadWrite, false) => "rw",
        (Mix::ReadWrite, true) => "randrw",
        (Mix::TrimWrite, false) => "trimwrite",
        (Mix::TrimWrite, true) => "randtrimwrite",
    }
}

fn job(out: &mut String, row: &FioRow, group: &[GroupWay; 3], report: &Report) {
    if row.ios() == 0 {
        return;
    }
    let reporting = &row.job.reporting;
    let error = if row.errors() > 0 {
        format!(
            " 5 ({} I/Os failed, error=Input/output error)",
            row.errors()
        )
    } else {
        " 0".to_string()
    };
    let date = clock::date(report.outcome.end.ns() / 1_000_000_000);
    let _ = writeln!(
        out,
        "{}: (groupid={}, jobs={}): err={error}: pid=0: {date}",
        row.job.name, row.group, row.members
    );
    if let Some(description) = &reporting.description {
        let _ = writeln!(out, "  Description  : [{description}]");
    }
    let names: [&str; 3] = match reporting.unified {
        Unified::Mixed => ["mixed", "", ""],
        Unified::Separate | Unified::Both => ["read", "write", "trim"],
    };
    for ((name, way), group) in names.into_iter().zip(&row.ways).zip(group) {
        direction(out, name, way, group, row);
    }
    if reporting.unified == Unified::Both {
        direction(out, "mixed", &row.mixed(), &GroupWay::default(), row);
    }
    latency_classes(out, row);
    if row.sync.latency.count() > 0 {
        out.push_str("  fsync/fdatasync/sync_file_range:\n");
        latency(out, "sync", &row.sync.latency);
        percentiles(out, "sync", &row.sync.latency, row.last);
    }
    tail(out, row);
    steady_state(out, row, report);
}

fn direction(out: &mut String, name: &str, way: &RowDirection, group: &GroupWay, row: &FioRow) {
    if way.bytes == 0 {
        return;
    }
    let shown = row.last;
    let figures = Figures::for_job(row.job);
    let rate = way.bytes_per_second() as u64;
    let _ = writeln!(
        out,
        "  {name}: IOPS={}, BW={} ({})({}/{}msec){}",
        short(
            way.ios_per_second() as u64,
            figures.digits,
            false,
            Unit::None
        ),
        short(rate, figures.digits, figures.binary, figures.rate),
        short(rate, figures.digits, !figures.binary, figures.rate),
        short(way.bytes, figures.digits, figures.binary, Unit::Byte),
        way.runtime_ms(),
        if name == "write" {
            "; 0 zone resets"
        } else {
            ""
        }
    );
    latency(out, "slat", &way.submission);
    latency(out, "clat", &way.completion);
    latency(out, " lat", &way.latency);
    for (name, histogram, wanted) in [
        ("slat", &way.submission, shown.slat_percentiles),
        ("clat", &way.completion, shown.clat_percentiles),
        ("lat", &way.latency, shown.lat_percentiles),
    ] {
        if wanted {
            percentiles(out, name, histogram, shown);
        }
    }
    over_time(out, way, group, &figures);
}

/// Format of a job's rates.
struct Figures {
    digits: usize,
    binary: bool,
    rate: Unit,
}

impl Figures {
    fn for_job(job: &Job) -> Figures {
        Figures {
            digits: job.reporting.significant_figures,
            binary: job.reporting.kb_base == 1024,
            rate: if job.reporting.bits {
                Unit::BitPerSecond
            } else {
                Unit::BytePerSecond
            },
        }
    }
}

/// Appends rates in samples over time.
fn over_time(out: &mut String, way: &RowDirection, group: &GroupWay, figures: &Figures) {
    let bandwidth = way.bandwidth;
    if bandwidth.count > 0 {
        let share = share_of_group(bandwidth.mean, bandwidth.count, group);
        let bits = figures.rate == Unit::BitPerSecond;
        let base: f64 = if figures.binary { 1024.0 } else { 1000.0 };
        let mut factor = if bits { 8.0 } else { 1.0 };
        let mut unit = match (bits, figures.binary) {
            (true, true) => "Kibit",
            (true, false) => "kbit",
            (false, true) => "KiB",
            (false, false) => "kB",
        };
        if bandwidth.mean * factor > base * base {
            factor /= base;
            unit = if bits { "Mibit" } else { "MiB" };
        }
        let Samples { min, max, mean, .. } = bandwidth;
        let _ = writeln!(
            out,
            "   bw ({unit:>5}/s): min={:>5}, max={:>5}, per={share:.2}%, avg={:5.2}, stdev={:5.2}, samples={}",
            (min as f64 * factor) as u64,
            (max as f64 * factor) as u64,
            mean * factor,
            bandwidth.deviation() * factor,
            bandwidth.count
        );
    }
    let iops = way.iops;
    if iops.count > 0 {
        let _ = writeln!(
            out,
            "   iops        : min={:>5}, max={:>5}, avg={:5.2}, stdev={:5.2}, samples={}",
            iops.min,
            iops.max,
            iops.mean,
            iops.deviation(),
            iops.count
        );
    }
}

/// Appends a line of minimum, maximum, mean and deviation, in a suitable unit.
fn latency(out: &mut String, name: &str, histogram: &Histogram) {
    let (Some(min), Some(max)) = (histogram.min(), histogram.max()) else {
        return;
    };
    let (min, max) = (min.ns(), max.ns());
    let (mean, deviation) = (histogram.mean_ns(), histogram.deviation_ns());
    let (unit, by) = if min > 2_000_000 && max > 99_999_999 && deviation > 1_000_000.0 {
        ("msec", 1_000_000)
    } else if min > 2_000 && max > 99_999 && deviation > 1_000.0 {
        ("usec", 1_000)
    } else {
        ("nsec", 1)
    };
    let _ = writeln!(
        out,
        "    {name} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        short(min / by, 6, false, Unit::None),
        short(max / by, 6, false, Unit::None),
        mean / by as f64,
        deviation / by as f64
    );
}

/// Appends the table of percentiles.
fn percentiles(out: &mut String, name: &str, histogram: &Histogram, job: &Job) {
    let found = bins::percentiles(&bins::bins(histogram), &job.percentile_list);
    let (Some(&(_, min)), Some(&(_, max))) = (found.first(), found.last()) else {
        return;
    };
    let (unit, by): (&str, u64) = if min > 2_000_000 && max > 99_999_999 {
        ("msec", 1_000_000)
    } else if min > 2_000 && max > 99_999 {
        ("usec", 1_000)
    } else {
        ("nsec", 1)
    };
    let _ = writeln!(out, "    {name} percentiles ({unit}):");
    let digits = job.reporting.percentile_digits;
    let width = (max / by).to_string().len().max(5);
    let a_line = (73 / (digits + 10 + width)).max(1);
    for (index, line) in found.chunks(a_line).enumerate() {
        let cells: Vec<String> = line
            .iter()
            .map(|&(percent, ns)| {
                format!(
                    " {percent:>wide$.digits$}th=[{:>width$}]",
                    ns.div_ceil(by),
                    wide = digits + 3
                )
            })
            .collect();
        let last = (index + 1) * a_line >= found.len();
        let _ = writeln!(
            out,
            "     |{}{}",
            cells.join(","),
            if last { "" } else { "," }
        );
    }
}

/// Appends shares of completion latencies by class, five per line.
fn latency_classes(out: &mut String, row: &FioRow) {
    let classes = classes(row);
    let names = [
        "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000",
    ];
    for (unit, counts) in [
        ("nsec", &classes.ns[..]),
        ("usec", &classes.us),
        ("msec", &classes.ms),
    ] {
        let shares = shares(counts, row.ios(), 0.01);
        let cells: Vec<String> = names
            .iter()
            .zip(shares)
            .filter(|&(_, share)| share > 0.0)
            .map(|(name, share)| format!("{name}={share:.2}%"))
            .collect();
        for line in cells.chunks(5) {
            let _ = writeln!(out, "  lat ({unit})   : {}", line.join(", "));
        }
    }
}

/// Appends processor, depths, counts.
fn tail(out: &mut String, row: &FioRow) {
    let run = row.run.seconds();
    let _ = writeln!(
        out,
        "  cpu          : usr={:.2}%, sys={:.2}%, ctx=0, majf=0, minf=0",
        percent(row.user.seconds(), run),
        percent(row.system.seconds(), run)
    );
    let depths = ["1", "2", "4", "8", "16", "32", ">=64"];
    let sizes = ["0", "4", "8", "16", "32", "64", ">=64"];
    let sum = |counts: &[u64; 7]| counts.iter().sum();
    for (head, names, counts, total) in [
        ("  IO depths    ", depths, &row.depths, sum(&row.depths)),
        ("     submit    ", sizes, &row.submits, sum(&row.submits)),
        (
            "     complete  ",
            sizes,
            &row.completes,
            sum(&row.completes),
        ),
    ] {
        let cells: Vec<String> = names
            .iter()
            .zip(shares(counts, total, 0.1))
            .map(|(name, share)| format!("{name}={share:.1}%"))
            .collect();
        let _ = writeln!(out, "{head}: {}", cells.join(", "));
    }
    let ios = row.ways.each_ref().map(|way| way.ios);
    let _ = writeln!(
        out,
        "     issued rwts: total={},{},{},{} short=0,0,0,0 dropped=0,0,0,0",
        ios[0], ios[1], ios[2], row.sync.ios
    );
    let target = row.last.latency_target;
    let _ = writeln!(
        out,
        "     latency   : target={}, window={}, percentile={:.2}%, depth={}",
        target.map_or(0, |target| target.target.ns()),
        target.map_or(0, |target| target.window.ns() / 1_000),
        target.map_or(100.0, |target| target.percentile),
        row.latency_depth
    );
}

fn steady_state(out: &mut String, row: &FioRow, report: &Report) {
    let (Some(steady), Some(seconds)) = (row.last.steady_state, seconds(row, report)) else {
        return;
    };
    let figures = Figures::for_job(row.job);
    let mean = |values: &[u64]| values.iter().sum::<u64>() / (values.len() as u64).max(1);
    let (name, values) = match steady.metric {
        SteadyMetric::Bandwidth => ("bw", &seconds.bytes),
        SteadyMetric::Iops | SteadyMetric::Latency => ("iops", &seconds.ios),
    };
    let (deviation, slope) = trend(values);
    let seen = if steady.slope { slope.abs() } else { deviation };
    let attained = row.threads.iter().all(|thread| thread.steady_at.is_some());
    let rate = mean(&seconds.bytes);
    let _ = writeln!(
        out,
        "  steadystate  : attained={}, bw={} ({}), iops={}, {name}{}={:.3}{}",
        if attained { "yes" } else { "no" },
        short(rate, figures.digits, figures.binary, figures.rate),
        short(rate, figures.digits, !figures.binary, figures.rate),
        short(mean(&seconds.ios), figures.digits, false, Unit::None),
        if steady.slope { " slope" } else { " mean dev" },
        if steady.percent {
            percent(seen, mean(values) as f64)
        } else {
            seen
        },
        if steady.percent { "%" } else { "" }
    );
}

/// Appends the totals of a group's jobs.
fn group_status(out: &mut String, index: usize, group: &[GroupWay; 3], shown: Option<&FioRow>) {
    let _ = writeln!(out, "\nRun status group {index} (all jobs):");
    let Some(row) = shown else { return };
    let figures = Figures::for_job(row.job);
    let names = match row.job.reporting.unified {
        Unified::Mixed => ["  MIXED"; 3],
        Unified::Separate | Unified::Both => ["   READ", "  WRITE", "   TRIM"],
    };
    let line = |out: &mut String, name: &str, way: &GroupWay| {
        let rate = |rate: u64, binary: bool| short(rate, figures.digits, binary, figures.rate);
        let size = |binary: bool| short(way.bytes, figures.digits, binary, Unit::Byte);
        let all = way.rate() as u64;
        let (own, other) = (figures.binary, !figures.binary);
        let _ = writeln!(
            out,
            "{name}: bw={} ({}), {}-{} ({}-{}), io={} ({}), run={}-{}msec",
            rate(all, own),
            rate(all, other),
            rate(way.slowest, own),
            rate(way.fastest, own),
            rate(way.slowest, other),
            rate(way.fastest, other),
            size(own),
            size(other),
            way.shortest.ns().div_ceil(1_000_000),
            way.longest.ns().div_ceil(1_000_000)
        );
    };
    let used: Vec<&GroupWay> = group.iter().filter(|way| way.bytes > 0).collect();
    for (name, way) in names.iter().zip(group).filter(|(_, way)| way.bytes > 0) {
        line(out, name, way);
    }
    if row.job.reporting.unified == Unified::Both && !used.is_empty() {
        let mut all = GroupWay {
            slowest: u64::MAX,
            shortest: used[0].shortest,
            ..GroupWay::default()
        };
        for way in used {
            all.bytes += way.bytes;
            all.window = rows::joined(all.window, way.window);
            all.shortest = all.shortest.min(way.shortest);
            all.longest = all.longest.max(way.longest);
            all.slowest = all.slowest.min(way.slowest);
            all.fastest = all.fastest.max(way.fastest);
        }
        line(out, "  MIXED", &all);
    }
}
