//! Results of a replay, as tables for a terminal and as JSON.
//!
//! A percentile with fewer than ten samples beyond it is not shown; a band of percentiles with fewer than ten samples
//! has no breakdown. Latencies are in microseconds and are measured from the arrival of a request.

use std::fmt::Write as _;

use model::{Gauge, Part, Span};
use serde_json::{Map, Value, json};

use lab::{Measured, Outcome, ReplayResult};
use statistics::{BAND_EDGES, Band, Histogram};
use text::digits;
use text::terminal::{Width, folded, paragraph, plain};
use workload::replay::{Pace, SingleLatencies};
use workload::trace::{Totals, Trace};

use crate::cells::{PERCENTILES, align, grouped, latencies, significant};
use crate::{phases, rebuilds};

/// Minimum number of samples of a band that is shown.
const FEWEST: u64 = 10;

/// A drive with the results of the trace.
#[derive(Clone, Debug)]
pub struct ReplayRow {
    /// Short name.
    pub drive: String,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Results that only a trace has.
    pub replayed: ReplayResult,
}

impl ReplayRow {
    /// Returns a drive's row; `None` if its work was not a trace.
    pub fn new(drive: &str, outcome: Outcome) -> Option<ReplayRow> {
        Some(ReplayRow {
            drive: drive.to_owned(),
            replayed: outcome.replayed()?.clone(),
            outcome,
        })
    }

    /// Returns the kinds of requests that occur, with the recorded figures of the trace.
    pub(super) fn kinds(
        &self,
    ) -> impl Iterator<Item = (&'static str, &Measured, Option<&Histogram>)> {
        let recorded = &self.replayed.recorded;
        self.outcome.threads.iter().flat_map(move |thread| {
            [
                ("read", &thread.read, Some(&recorded[0])),
                ("write", &thread.write, Some(&recorded[1])),
                ("trim", &thread.trim, None),
                ("flush", &thread.sync, None),
            ]
            .into_iter()
            .filter(|(_, measured, _)| measured.ios + measured.errors > 0)
        })
    }

    /// Returns the kinds of requests with recorded latencies, compared one by one.
    fn singles(&self) -> impl Iterator<Item = (&'static str, &SingleLatencies, &Histogram)> {
        let kinds = ["read", "write"].into_iter();
        let recorded = self.replayed.singles.iter().zip(&self.replayed.recorded);
        let all = kinds
            .zip(recorded)
            .map(|(kind, (single, recorded))| (kind, single, recorded));
        all.filter(|(_, single, _)| single.compared > 0)
    }
}

/// Returns a doubt about the unit of sizes: nearly all reads and writes are below 512 B, which no drive transfers.
fn small_sizes(trace: &Trace) -> Option<String> {
    /// Up to this many requests may be small by chance (assumed).
    const FEW: usize = 3;
    let sizes = trace.records.iter().map(|record| record.request().bytes);
    let sizes: Vec<u32> = sizes.filter(|&bytes| bytes > 0).collect();
    let small = sizes.iter().filter(|&&bytes| bytes < 512).count();
    (small > FEW && small * 10 >= sizes.len() * 9).then(|| {
        format!(
            "{} of {} requests are below 512 B, which is unusual for a drive: do their sizes count sectors of 512 B? With --columns, such a column is `sectors=N`, not `size=N`",
            grouped(small as u64),
            grouped(sizes.len() as u64)
        )
    })
}

/// Returns the content of the file, in a few lines.
pub fn trace_lines(trace: &Trace) -> String {
    let summary = trace.summary();
    let mut text = format!(
        "{}: {}, {} requests over {}",
        trace.origin,
        trace.format.title,
        grouped(trace.records.len() as u64),
        duration(summary.duration),
    );
    if let Some(grounds) = trace.grounds() {
        let _ = write!(text, "\n  {grounds}");
    }
    if let Some(small) = small_sizes(trace) {
        let _ = write!(text, "\n  {small}");
    }
    let mut line = |name: &str, totals: &Totals| {
        if totals.requests == 0 {
            return;
        }
        let mean = totals.bytes as f64 / totals.requests as f64;
        let _ = write!(
            text,
            "\n  {} {name}, mean {} B",
            grouped(totals.requests),
            mean.round()
        );
        if let Some(latency) = totals.mean_latency() {
            let _ = write!(text, ", recorded response {} us", significant(latency.us()));
        }
    };
    line("reads", &summary.read);
    line("writes", &summary.write);
    line("others (flush, trim)", &summary.other);
    let touched: Vec<u64> = summary
        .ends
        .iter()
        .copied()
        .filter(|&end| end > 0)
        .collect();
    let reach = touched.iter().sum::<u64>();
    let volumes = match touched.len() {
        0 | 1 => String::from("one volume"),
        many => format!("{many} volumes side by side"),
    };
    let _ = write!(text, "\n  {volumes}, reaching to byte {}", grouped(reach));
    for (what, count) in &trace.notes {
        let _ = write!(text, "\n  {} {what}", grouped(*count));
    }
    text
}

/// Returns throughput and latency by drive and kind of request, next to the recorded figures.
pub fn table(rows: &[ReplayRow], width: Width) -> String {
    let mut table = plain();
    let mut header = vec!["drive", "what", "requests", "IOPS", "MB/s", "mean us"];
    header.extend(PERCENTILES.map(|(_, name)| name));
    table.set_header(header);
    for row in rows {
        for (kind, measured, recorded) in row.kinds() {
            let mut cells = vec![
                row.drive.clone(),
                kind.into(),
                grouped(measured.ios),
                significant(measured.iops()),
                significant(measured.bytes_per_second() / 1e6),
            ];
            cells.extend(latencies(&measured.latency));
            table.add_row(cells);
            if let Some(recorded) = recorded.filter(|recorded| recorded.count() > 0) {
                let mut cells = vec![
                    String::new(),
                    String::from("  as recorded"),
                    grouped(recorded.count()),
                    String::new(),
                    String::new(),
                ];
                cells.extend(latencies(recorded));
                table.add_row(cells);
            }
        }
    }
    align(&mut table, 2);
    folded(&table, 2, width)
}

/// Returns, for each drive and kind of request with recorded latencies, the share of single latencies that are within
/// 10 % of the recorded ones, next to that of a constant, the recorded median. Empty if the trace has none.
pub fn single_latencies(rows: &[ReplayRow], width: Width) -> String {
    let mut text = String::new();
    for row in rows {
        for (kind, single, recorded) in row.singles() {
            let (Some(share), Some(constant)) = (single.share(), median_share(recorded)) else {
                continue;
            };
            let what = format!(
                "{:.1} % of {} recorded {kind} latencies are reproduced within 10 %, one by one. A constant, the \
                 recorded median, is that close to {:.1} %.",
                share * 100.0,
                grouped(single.compared),
                constant * 100.0
            );
            text.push_str(&paragraph(&format!("{}: ", row.drive), &what, width));
            text.push('\n');
        }
    }
    text
}

/// Returns the share of recorded latencies within 10 % of their median, at the resolution of the histogram. Latencies of
/// zero are left out, as by [`SingleLatencies`].
fn median_share(recorded: &Histogram) -> Option<f64> {
    let above_zero = || recorded.buckets().filter(|&(low, _, _)| low > 0);
    let compared: u64 = above_zero().map(|(_, _, count)| count).sum();
    if compared == 0 {
        return None;
    }
    // The rank of their median among all latencies, of which those of zero are the smallest.
    let all = recorded.count() as f64;
    let rank = all - compared as f64 / 2.0;
    let median = recorded.quantile(rank / all * 100.0)?.ns() as f64;
    let close = |middle: f64| (median - middle).abs() <= middle * SingleLatencies::CLOSE;
    let within = above_zero().filter(|&(low, width, _)| close(low as f64 + width as f64 / 2.0));
    let within: u64 = within.map(|(_, _, count)| count).sum();
    Some(within as f64 / compared as f64)
}

/// Returns the utilisation of each drive, and its costs.
pub fn drives_table(rows: &[ReplayRow], width: Width) -> String {
    let mut table = plain();
    table.set_header([
        "drive",
        "seconds",
        "controller",
        "link",
        "medium",
        "host cores",
        "write amp",
        "watts",
    ]);
    for row in rows {
        let outcome = &row.outcome;
        let percent = |gauge| {
            let share = outcome.utilisation(gauge);
            share.map_or(String::from("-"), |share| {
                format!("{} %", significant(share * 100.0))
            })
        };
        let number = |value: Option<f64>| value.map_or(String::from("-"), significant);
        table.add_row([
            row.drive.clone(),
            significant(outcome.counted.seconds()),
            percent(Gauge::ControllerBusySeconds),
            percent(Gauge::LinkBusySeconds),
            percent(Gauge::MediumBusySeconds),
            number(outcome.utilisation(Gauge::HostCpuSeconds)),
            number(outcome.write_amplification()),
            number(outcome.watts()),
        ]);
    }
    align(&mut table, 1);
    folded(&table, 1, width)
}

/// Returns bands of percentiles, each with enough samples. The last is the highest that has enough: a thousand
/// requests have a slowest percent, but no slowest thousandth.
fn bands(measured: &Measured) -> Vec<Band> {
    if measured.ios < FEWEST {
        return Vec::new();
    }
    let beyond = |edge: f64| measured.latency.samples_beyond(edge) > FEWEST as f64 - 0.5;
    let mut edges = BAND_EDGES.to_vec();
    edges.retain(|&edge| edge <= 0.0 || edge >= 100.0 || beyond(edge));
    measured.bands.percentile_bands(&edges)
}

/// Returns the latency breakdown by band of percentiles, for one kind of request of one drive; `None` if no band has
/// enough samples.
fn anatomy_table(measured: &Measured, width: Width) -> Option<String> {
    let bands = bands(measured);
    if bands.is_empty() {
        return None;
    }
    let mut table = plain();
    let mut header = vec![String::from("us")];
    header.extend(bands.iter().map(|band| match band.to {
        to if to >= 100.0 && band.from <= 0.0 => String::from("all requests"),
        to if to >= 100.0 => format!("slowest {} %", short(100.0 - band.from)),
        to => format!("p{} to p{}", short(band.from), short(to)),
    }));
    table.set_header(header);
    let mut counts = vec![String::from("requests")];
    counts.extend(bands.iter().map(|band| grouped(band.count)));
    table.add_row(counts);
    let sums: Vec<f64> = bands.iter().map(|band| band.mean_ns.iter().sum()).collect();
    for (index, part) in Part::ALL.iter().enumerate() {
        // A part that is below half a percent of the latency in every band is omitted.
        let matters = bands
            .iter()
            .zip(&sums)
            .any(|(band, &sum)| band.mean_ns[index] > sum * 0.005);
        if matters {
            let mut cells = vec![part.name().to_owned()];
            cells.extend(bands.iter().zip(&sums).map(|(band, &sum)| {
                let mean = band.mean_ns[index];
                format!("{} ({:.0} %)", significant(mean / 1e3), mean / sum * 100.0)
            }));
            table.add_row(cells);
        }
    }
    let mut cells = vec![String::from("all")];
    cells.extend(sums.iter().map(|sum| significant(sum / 1e3)));
    table.add_row(cells);
    align(&mut table, 1);
    Some(folded(&table, 1, width))
}

/// Returns the latency breakdown by drive and direction.
pub fn anatomy(rows: &[ReplayRow], width: Width) -> String {
    let mut text = String::new();
    for row in rows {
        for (kind, measured, _) in row.kinds() {
            if let Some(table) = anatomy_table(measured, width) {
                let _ = write!(
                    text,
                    "\n{}: latency breakdown of a {kind} by percentile\n{table}\n",
                    row.drive
                );
            }
        }
    }
    text
}

/// Returns notes on the replays for the reader, one per line.
pub fn notes(rows: &[ReplayRow], trace: &Trace) -> Vec<String> {
    let all = grouped(trace.records.len() as u64);
    let mut notes = Vec::new();
    if trace.other_volumes > 0 {
        let others = grouped(trace.other_volumes);
        notes.push(format!("{others} requests to other volumes were not read"));
    }
    if !trace.timed {
        let what = "the trace has no times: it is replayed as fast as the queue depth allows";
        notes.push(what.to_owned());
    }
    if rows.iter().any(|row| row.outcome.stopped) {
        notes.push("the replay was stopped before the end of the trace".to_owned());
    }
    for row in rows {
        let replayed = &row.replayed;
        let mut note = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!(
                    "{}: {} of {all} requests {what}",
                    row.drive,
                    grouped(count)
                ));
            }
        };
        note(
            replayed.wrapped,
            "began beyond the end of the drive; their addresses were wrapped",
        );
        note(replayed.widened, "were widened to whole blocks");
        note(replayed.empty, "had no length and were left out");
        let errors: u64 = row.kinds().map(|(_, measured, _)| measured.errors).sum();
        note(errors, "failed");
    }
    notes
}

/// Returns the results between faults, if any occurred.
pub fn between_faults(rows: &[ReplayRow], width: Width) -> String {
    let drives = rows.iter();
    phases::of_drives(drives.map(|row| (&*row.drive, &row.outcome)), width)
}

/// Returns everything as JSON; described in `docs/traces.md`.
pub fn json(rows: &[ReplayRow], trace: &Trace, pace: Pace, seed: u64) -> Value {
    let summary = trace.summary();
    let totals = |totals: &Totals| {
        json!({
            "requests": totals.requests,
            "bytes": totals.bytes,
            "recorded_mean_us": totals.mean_latency().map(Span::us),
        })
    };
    let pace = match pace {
        Pace::Recorded(speed) => json!({ "speed": speed }),
        Pace::Depth(depth) => json!({ "depth": depth }),
    };
    json!({
        "schema": "drivelab replay",
        "version": 1,
        "trace": {
            "file": trace.origin,
            "format": trace.format.name,
            "requests": trace.records.len(),
            "seconds": summary.duration.seconds(),
            "read": totals(&summary.read),
            "write": totals(&summary.write),
            "other": totals(&summary.other),
            "volumes": trace.volumes,
        },
        "pace": pace,
        "seed": seed,
        "notes": notes(rows, trace),
        "drives": rows.iter().map(drive_json).collect::<Vec<_>>(),
    })
}

fn drive_json(row: &ReplayRow) -> Value {
    let outcome = &row.outcome;
    let mut drive = Map::new();
    drive.insert("drive".into(), json!(row.drive));
    drive.insert("seconds".into(), json!(outcome.counted.seconds()));
    for (kind, measured, recorded) in row.kinds() {
        let mut figures = json!({
            "requests": measured.ios,
            "errors": measured.errors,
            "iops": measured.iops(),
            "mb_s": measured.bytes_per_second() / 1e6,
            "latency_us": latency_json(&measured.latency),
            "anatomy": anatomy_json(measured),
        });
        if let Some(recorded) = recorded.filter(|recorded| recorded.count() > 0) {
            figures["recorded_us"] = latency_json(recorded);
        }
        if let Some((_, single, recorded)) = row.singles().find(|(one, ..)| *one == kind) {
            figures["within_10_percent"] = json!({
                "requests": single.compared,
                "share": single.share(),
                "share_of_recorded_median": median_share(recorded),
            });
        }
        drive.insert(kind.into(), figures);
    }
    for (name, gauge) in [
        ("controller_busy", Gauge::ControllerBusySeconds),
        ("link_busy", Gauge::LinkBusySeconds),
        ("medium_busy", Gauge::MediumBusySeconds),
        ("host_cores", Gauge::HostCpuSeconds),
    ] {
        drive.insert(name.into(), json!(outcome.utilisation(gauge)));
    }
    drive.insert("watts".into(), json!(outcome.watts()));
    drive.insert(
        "write_amplification".into(),
        json!(outcome.write_amplification()),
    );
    if !outcome.phases.is_empty() {
        drive.insert("phases".into(), phases::json(&outcome.phases));
    }
    if !outcome.rebuilds.is_empty() {
        drive.insert("rebuilds".into(), rebuilds::json(&outcome.rebuilds));
    }
    Value::Object(drive)
}

fn latency_json(histogram: &Histogram) -> Value {
    let mut object = Map::new();
    object.insert("mean".into(), json!(histogram.mean_ns() / 1e3));
    object.insert("min".into(), json!(histogram.min().map(Span::us)));
    object.insert("max".into(), json!(histogram.max().map(Span::us)));
    for (percent, name) in PERCENTILES {
        object.insert(
            name.into(),
            json!(histogram.percentile(percent).map(Span::us)),
        );
    }
    Value::Object(object)
}

fn anatomy_json(measured: &Measured) -> Value {
    let bands: Vec<Value> = bands(measured)
        .iter()
        .map(|band| {
            let parts = Part::ALL
                .iter()
                .zip(band.mean_ns)
                .filter(|(_, ns)| *ns > 0.0);
            let parts: Map<String, Value> = parts
                .map(|(part, ns)| (part.name().into(), json!(ns / 1e3)))
                .collect();
            json!({ "from": band.from, "to": band.to, "requests": band.count, "parts_us": parts })
        })
        .collect();
    Value::Array(bands)
}

/// Returns a percentile without unnecessary zeros, whatever its binary fraction is.
fn short(percent: f64) -> String {
    digits::trimmed(&format!("{percent:.3}")).to_owned()
}

fn duration(span: Span) -> String {
    let seconds = span.seconds();
    match seconds {
        s if s >= 7_200.0 => format!("{} h", significant(s / 3_600.0)),
        s if s >= 120.0 => format!("{} min", significant(s / 60.0)),
        s => format!("{} s", significant(s)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_a_constant_is_of_latencies_above_zero() {
        let share = |all: &[u64]| {
            let mut recorded = Histogram::default();
            all.iter()
                .for_each(|&us| recorded.record(Span::from_us(us)));
            median_share(&recorded)
        };
        assert_eq!(share(&[0, 0, 0, 200]), Some(1.0));
        assert_eq!(share(&[0, 200, 201, 400, 401, 201]), Some(0.6));
        assert_eq!(share(&[200, 200, 200, 400]), Some(0.75));
        assert_eq!((share(&[0, 0]), share(&[])), (None, None));
    }

    #[test]
    fn numbers_are_short_and_plain() {
        let shown: Vec<String> = [0.0, 0.012_34, 1.0, 9.876, 55.93, 99.97, 123.4, 1_234_567.8]
            .map(significant)
            .into();
        assert_eq!(
            shown,
            [
                "0.00",
                "0.012",
                "1.00",
                "9.88",
                "55.9",
                "100",
                "123",
                "1,234,568"
            ]
        );
        assert_eq!(
            [100.0 - 99.999, 99.9, 50.0].map(short),
            ["0.001", "99.9", "50"]
        );
    }
}
