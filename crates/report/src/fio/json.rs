//! fio's JSON: `--output-format=json` and `json+`, in fio 3.33's schema, order and number format.

use std::io;

use model::Span;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};
use serde_json::{Map, Value, json as value};

use lab::MemberOutcome;
use statistics::Histogram;
use study::review::results::rounded;
use workload::job::{SteadyMetric, Unified};

use super::bins::{self, CLASSES, Classes};
use super::rows::{self, FioRow, GroupWay, RowDirection};
use super::{Report, VERSION, clock};
use crate::over_time::columns;
use crate::{guests, phases, rebuilds};

/// Level of detail of each histogram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Detail {
    /// Percentiles (`json`).
    Percentiles,
    /// Percentiles and every bucket (`json+`).
    Bins,
}

/// Returns the run as fio's JSON, with a newline at its end.
pub(super) fn json(report: &Report, detail: Detail) -> String {
    print(&Value::Object(document(report, detail)))
}

/// Returns fio's document of the run.
pub(super) fn document(report: &Report, detail: Detail) -> Map<String, Value> {
    let rows = rows::rows(report);
    let groups = rows::groups(&rows);
    let end = report.outcome.end.ns();
    let mut root = Map::new();
    root.insert("fio version".into(), VERSION.into());
    root.insert("timestamp".into(), (end / 1_000_000_000).into());
    root.insert("timestamp_ms".into(), (end / 1_000_000).into());
    root.insert("time".into(), clock::date(end / 1_000_000_000).into());
    add_options(&mut root, "global options", report.globals);
    let jobs: Vec<Value> = rows
        .iter()
        .map(|row| job(row, &groups[row.group as usize], report, detail))
        .collect();
    root.insert("jobs".into(), jobs.into());
    root.insert("disk_util".into(), value!([disk(report)]));
    let members = rows::members(report);
    // fio has no such members, so programs that read its JSON need not support them.
    if detail == Detail::Bins && members.len() > 1 {
        let member = |(name, it): &(&str, MemberOutcome)| {
            value!({
                "name": name,
                "read_bytes": it.bytes_read as u64,
                "write_bytes": it.bytes_written as u64,
                "busy": 100.0 * it.busy,
                "write_amplification": it.write_amplification.map(rounded),
                "watts": it.watts.map(rounded),
                "percentage_used": it.percentage_used.map(rounded),
            })
        };
        let members: Vec<Value> = members.iter().map(member).collect();
        root.insert("members".into(), members.into());
        let columns = columns(report.outcome).into_iter();
        let columns = columns.map(|(name, values)| (name, values.into()));
        root.insert("over_time".into(), Value::Object(columns.collect()));
    }
    let spread = super::spread_starts(report.jobs, report.outcome);
    if detail == Detail::Bins && !spread.is_empty() {
        root.insert("notes".into(), spread.into());
    }
    if !report.outcome.phases.is_empty() {
        root.insert("phases".into(), phases::json(&report.outcome.phases));
    }
    if let Some(guests) = guests::json(report.jobs, report.outcome) {
        root.insert("guests".into(), guests);
    }
    if !report.outcome.rebuilds.is_empty() {
        let rebuilds = rebuilds::json(&report.outcome.rebuilds);
        root.insert("rebuilds".into(), rebuilds);
    }
    root
}

fn add_options(object: &mut Map<String, Value>, name: &str, options: &[(String, String)]) {
    if !options.is_empty() {
        let options: Map<String, Value> = options
            .iter()
            .map(|(key, value)| (key.clone(), value.as_str().into()))
            .collect();
        object.insert(name.into(), options.into());
    }
}

fn job(row: &FioRow, group: &[GroupWay; 3], report: &Report, detail: Detail) -> Value {
    let job = row.job;
    let mut object = Map::new();
    object.insert("jobname".into(), job.name.as_str().into());
    object.insert("groupid".into(), row.group.into());
    // EIO, as in fio when a drive fails a command.
    object.insert(
        "error".into(),
        (if row.errors() > 0 { 5 } else { 0 }).into(),
    );
    object.insert("eta".into(), 0.into());
    let elapsed = report.outcome.end.ns().div_ceil(1_000_000_000);
    object.insert("elapsed".into(), elapsed.into());
    add_options(&mut object, "job options", &row.last.as_written);
    let names = match job.reporting.unified {
        Unified::Mixed => &["mixed"][..],
        Unified::Separate | Unified::Both => &["read", "write", "trim"],
    };
    for ((name, way), group) in names.iter().zip(&row.ways).zip(group) {
        object.insert((*name).into(), direction(way, group, row, detail));
    }
    if job.reporting.unified != Unified::Mixed {
        let percentiles = row.last.clat_percentiles || row.last.lat_percentiles;
        let sync = value!({
            "total_ios": row.sync.ios,
            "lat_ns": latency(&row.sync.latency, percentiles, row, detail),
        });
        object.insert("sync".into(), sync);
    }
    if job.reporting.unified == Unified::Both {
        object.insert(
            "mixed".into(),
            direction(&row.mixed(), &GroupWay::default(), row, detail),
        );
    }
    add_processor(&mut object, row);
    add_distributions(&mut object, row);
    object.insert("latency_depth".into(), row.latency_depth.into());
    let target = row.last.latency_target;
    let target_ns = target.map_or(0, |target| target.target.ns());
    object.insert("latency_target".into(), target_ns.into());
    let percentile = target.map_or(100.0, |target| target.percentile);
    object.insert("latency_percentile".into(), percentile.into());
    let window_us = target.map_or(0, |target| target.window.ns() / 1_000);
    object.insert("latency_window".into(), window_us.into());
    if let Some(description) = &job.reporting.description {
        object.insert("desc".into(), description.as_str().into());
    }
    if let Some(steady) = steady_state(row, report) {
        object.insert("steadystate".into(), steady);
    }
    Value::Object(object)
}

fn direction(way: &RowDirection, group: &GroupWay, row: &FioRow, detail: Detail) -> Value {
    let shown = row.last;
    let bytes_per_second = way.bytes_per_second() as u64;
    let (bandwidth, iops) = (&way.bandwidth, &way.iops);
    value!({
        "io_bytes": way.bytes,
        "io_kbytes": way.bytes >> 10,
        "bw_bytes": bytes_per_second,
        "bw": bytes_per_second / 1024,
        "iops": way.ios_per_second(),
        "runtime": way.runtime_ms(),
        "total_ios": way.ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": latency(&way.submission, shown.slat_percentiles, row, detail),
        "clat_ns": latency(&way.completion, shown.clat_percentiles, row, detail),
        "lat_ns": latency(&way.latency, shown.lat_percentiles, row, detail),
        "bw_min": bandwidth.min,
        "bw_max": bandwidth.max,
        "bw_agg": share_of_group(bandwidth.mean, bandwidth.count, group),
        "bw_mean": bandwidth.mean,
        "bw_dev": bandwidth.deviation(),
        "bw_samples": bandwidth.count,
        "iops_min": iops.min,
        "iops_max": iops.max,
        "iops_mean": iops.mean,
        "iops_stddev": iops.deviation(),
        "iops_samples": iops.count,
    })
}

/// Returns a row's mean bandwidth (KiB/s) in percent of its group's; 0 without samples.
pub(super) fn share_of_group(mean_kib: f64, samples: u64, group: &GroupWay) -> f64 {
    if samples == 0 {
        return 0.0;
    }
    let all = group.rate();
    if all > 1024.0 {
        (mean_kib.trunc() * 100.0 / (all / 1024.0)).min(100.0)
    } else {
        100.0
    }
}

fn latency(histogram: &Histogram, percentiles: bool, row: &FioRow, detail: Detail) -> Value {
    let edge = |span: Option<Span>| span.map_or(0, Span::ns);
    let mut object = Map::new();
    object.insert("min".into(), edge(histogram.min()).into());
    object.insert("max".into(), edge(histogram.max()).into());
    object.insert("mean".into(), histogram.mean_ns().into());
    object.insert("stddev".into(), histogram.deviation_ns().into());
    object.insert("N".into(), histogram.count().into());
    if percentiles && histogram.count() > 0 {
        let bins = bins::bins(histogram);
        let list: Map<String, Value> = bins::percentiles(&bins, &row.last.percentile_list)
            .into_iter()
            .map(|(percent, ns)| (format!("{percent:.6}"), ns.into()))
            .collect();
        object.insert("percentile".into(), list.into());
        if detail == Detail::Bins {
            let bins: Map<String, Value> = bins
                .into_iter()
                .map(|(ns, count)| (ns.to_string(), count.into()))
                .collect();
            object.insert("bins".into(), bins.into());
        }
    }
    Value::Object(object)
}

/// Returns `part` in percent of `whole`; 0 if `whole` is 0.
pub(super) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        100.0 * part / whole
    } else {
        0.0
    }
}

fn add_processor(object: &mut Map<String, Value>, row: &FioRow) {
    let run = row.run.seconds();
    object.insert("job_runtime".into(), (row.run.ns() / 1_000_000).into());
    object.insert("usr_cpu".into(), percent(row.user.seconds(), run).into());
    object.insert("sys_cpu".into(), percent(row.system.seconds(), run).into());
    for key in ["ctx", "majf", "minf"] {
        object.insert(key.into(), 0.into());
    }
}

/// Returns shares in percent as fio shows them: a count above zero is at least `least`.
pub(super) fn shares(counts: &[u64], total: u64, least: f64) -> Vec<f64> {
    counts
        .iter()
        .map(|&count| match count {
            0 => 0.0,
            _ => percent(count as f64, total as f64).max(least),
        })
        .collect()
}

fn add_distributions(object: &mut Map<String, Value>, row: &FioRow) {
    let total = row.ios();
    let named = |names: &[&str], shares: Vec<f64>| -> Value {
        let shares = names.iter().zip(shares);
        shares
            .map(|(name, share)| ((*name).to_string(), Value::from(share)))
            .collect::<Map<_, _>>()
            .into()
    };
    let depths = ["1", "2", "4", "8", "16", "32", ">=64"];
    let sizes = ["0", "4", "8", "16", "32", "64", ">=64"];
    let all = |counts: &[u64; 7]| counts.iter().sum();
    object.insert(
        "iodepth_level".into(),
        named(&depths, shares(&row.depths, all(&row.depths), 0.1)),
    );
    object.insert(
        "iodepth_submit".into(),
        named(&sizes, shares(&row.submits, all(&row.submits), 0.1)),
    );
    object.insert(
        "iodepth_complete".into(),
        named(&sizes, shares(&row.completes, all(&row.completes), 0.1)),
    );
    let classes = classes(row);
    let ends = CLASSES.map(|end| end.to_string());
    let mut names: Vec<&str> = ends.iter().map(String::as_str).collect();
    object.insert(
        "latency_ns".into(),
        named(&names, shares(&classes.ns, total, 0.01)),
    );
    object.insert(
        "latency_us".into(),
        named(&names, shares(&classes.us, total, 0.01)),
    );
    names.extend(["2000", ">=2000"]);
    object.insert(
        "latency_ms".into(),
        named(&names, shares(&classes.ms, total, 0.01)),
    );
}

/// Returns completion latencies of all directions by class.
pub(super) fn classes(row: &FioRow) -> Classes {
    let mut classes = Classes::default();
    for way in &row.ways {
        classes.add(&way.completion);
    }
    classes
}

/// Data of a steady-state criterion, second by second.
pub(super) struct Seconds {
    pub bytes: Vec<u64>,
    pub ios: Vec<u64>,
}

/// Returns bytes and I/Os in each of the last seconds of the criterion's window.
pub(super) fn seconds(row: &FioRow, report: &Report) -> Option<Seconds> {
    let steady = row.last.steady_state?;
    let every = report.series_every.ns();
    let each = 1_000_000_000u64.checked_div(every)? as usize;
    let last = row
        .threads
        .iter()
        .map(|thread| thread.steady_at.unwrap_or(thread.ended))
        .max()?;
    let end = (last.ns() / 1_000_000_000) as usize;
    let window = (steady.duration.ns() / 1_000_000_000) as usize;
    let mut seconds = Seconds {
        bytes: Vec::new(),
        ios: Vec::new(),
    };
    for second in end.saturating_sub(window)..end {
        let (mut bytes, mut ios) = (0, 0);
        for thread in &row.threads {
            for way in [&thread.read, &thread.write, &thread.trim] {
                let intervals = way.series.iter().skip(second * each).take(each);
                for interval in intervals {
                    bytes += interval.bytes;
                    ios += interval.ios;
                }
            }
        }
        seconds.bytes.push(bytes);
        seconds.ios.push(ios);
    }
    // fio has an entry for each second of the window, filled or not.
    seconds.bytes.resize(window, 0);
    seconds.ios.resize(window, 0);
    Some(seconds)
}

/// Returns the largest deviation from the mean, and the slope of the line through the values, one per second.
pub(super) fn trend(values: &[u64]) -> (f64, f64) {
    let count = values.len() as f64;
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let mean = values.iter().sum::<u64>() as f64 / count;
    let deviation = values
        .iter()
        .map(|&value| (value as f64 - mean).abs())
        .fold(0.0, f64::max);
    let middle = (count - 1.0) / 2.0;
    let (mut above, mut below) = (0.0, 0.0);
    for (second, &value) in values.iter().enumerate() {
        let x = second as f64 - middle;
        above += x * (value as f64 - mean);
        below += x * x;
    }
    (deviation, if below > 0.0 { above / below } else { 0.0 })
}

fn steady_state(row: &FioRow, report: &Report) -> Option<Value> {
    let steady = row.last.steady_state?;
    let seconds = seconds(row, report)?;
    let mean = |values: &[u64]| values.iter().sum::<u64>() / (values.len() as u64).max(1);
    let (name, values) = match steady.metric {
        SteadyMetric::Bandwidth => ("bw", &seconds.bytes),
        SteadyMetric::Iops | SteadyMetric::Latency => ("iops", &seconds.ios),
    };
    let (deviation, slope) = trend(values);
    let seen = if steady.slope { slope.abs() } else { deviation };
    let criterion = if steady.percent {
        percent(seen, mean(values) as f64)
    } else {
        seen
    };
    let sign = if steady.percent { "%" } else { "" };
    let kind = if steady.slope { "_slope" } else { "" };
    let attained = row.threads.iter().all(|thread| thread.steady_at.is_some());
    Some(value!({
        "ss": format!("{name}{kind}:{:.6}{sign}", steady.limit),
        "duration": steady.duration.ns() / 1_000_000_000,
        "attained": u8::from(attained),
        "criterion": format!("{criterion:.6}{sign}"),
        "max_deviation": deviation,
        "slope": slope,
        "data": {
            "bw_mean": mean(&seconds.bytes),
            "iops_mean": mean(&seconds.ios),
            "iops": seconds.ios,
            "bw": seconds.bytes,
        },
    }))
}

fn disk(report: &Report) -> Value {
    let disk = rows::disk(report);
    value!({
        "name": report.drive,
        "read_ios": disk.ios[0],
        "write_ios": disk.ios[1],
        "read_merges": 0,
        "write_merges": 0,
        "read_ticks": disk.ticks_ms[0],
        "write_ticks": disk.ticks_ms[1],
        "in_queue": disk.ticks_ms[0] + disk.ticks_ms[1],
        "util": disk.util,
    })
}

/// fio's layout: two blanks per level, ` : ` after a key, six decimals.
struct Layout(PrettyFormatter<'static>);

impl Formatter for Layout {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        write!(writer, "{value:.6}")
    }
    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" : ")
    }
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }
    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }
    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }
    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }
    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }
    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }
    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

pub(super) fn print(root: &Value) -> String {
    let mut bytes = Vec::new();
    let layout = Layout(PrettyFormatter::with_indent(b"  "));
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, layout);
    root.serialize(&mut serializer)
        .expect("strings and numbers into memory");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}
