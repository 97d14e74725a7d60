//! fio 3.33's own output from a simulated run: its normal text and its JSON (`json`, `json+`), so that programs which
//! read fio's output can read ours.
//!
//! The schema and the wording are fio's; the figures are the model's. Differences from a real run:
//! - time: a run begins on 1 January 1970, and virtual seconds are counted from there (the same run gives the same
//!   bytes);
//! - `pid`, context switches and page faults are 0;
//! - sizes of submissions and reaps follow from the batch options, because the simulation batches accordingly;
//! - the disk's `util` is time in queue divided by time, at most 100 %: an upper bound if more than one I/O is in
//!   flight.
//!
//! Rates are computed over nanoseconds, not over fio's milliseconds, which would be inaccurate for short runs.

mod bins;
mod clock;
mod drives;
mod heat;
mod json;
mod number;
mod rows;
mod text;
mod wear;

use std::str::FromStr;

use ::text::quantity::Quantity;
use model::{Gauge, Span};
use statistics::Window;

use lab::Outcome;
use workload::job::Job;

pub use drives::print_drives;
pub use heat::heat;
pub use wear::end_of_life;

use json::Detail;

/// Version of the output, as fio names it.
const VERSION: &str = "fio-3.33";

/// A run with the surroundings that fio's output shows.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The jobs that ran.
    pub jobs: &'a [Job],
    /// Options of global sections.
    pub globals: &'a [(String, String)],
    /// Outcome of the run.
    pub outcome: &'a Outcome,
    /// The drive's short name, shown as the disk.
    pub drive: &'a str,
    /// Names of a pool's members; empty for a drive.
    pub members: &'a [String],
    /// Interval of the outcome's series; zero without a series.
    pub series_every: Span,
}

/// Forms of output, as `--output-format` names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Formats {
    normal: bool,
    json: Option<Detail>,
}

impl Default for Formats {
    /// Returns fio's default: normal text.
    fn default() -> Formats {
        Formats {
            normal: true,
            json: None,
        }
    }
}

impl FromStr for Formats {
    type Err = String;

    /// Parses a list such as `json` or `normal,json+`.
    fn from_str(list: &str) -> Result<Formats, String> {
        let mut formats = Formats {
            normal: false,
            json: None,
        };
        for name in list.split(',') {
            match name {
                "normal" => formats.normal = true,
                "json" => formats.json = formats.json.or(Some(Detail::Percentiles)),
                "json+" => formats.json = Some(Detail::Bins),
                "terse" | "minimal" | "csv" => {
                    return Err(format!(
                        "fio's `{name}` is not written; normal, json and json+ are"
                    ));
                }
                _ => {
                    return Err(format!(
                        "there is no `{name}`; there are normal, json and json+"
                    ));
                }
            }
        }
        Ok(formats)
    }
}

/// Returns the run in these formats: what the page cache did, then in fio's order: the jobs, JSON, the text.
pub fn print(report: &Report, formats: Formats) -> String {
    let mut out = String::new();
    if formats.normal {
        for line in page_cache(report.outcome) {
            out.push_str(&line);
            out.push('\n');
        }
        text::heads(&mut out, report);
    }
    if let Some(detail) = formats.json {
        out.push_str(&json::json(report, detail));
    }
    if formats.normal {
        text::body(&mut out, report);
    }
    out
}

/// Returns a sentence for each job whose threads start over a large part of its run, so that its rate is that of fewer
/// threads.
pub fn spread_starts(jobs: &[Job], outcome: &Outcome) -> Vec<String> {
    let of_job = |(job, threads, window): (usize, usize, Window)| {
        format!(
            "job {}: its {threads} threads start over {} of a run of {}, so its rate is not that of {threads} threads at \
             work together; run it longer",
            jobs[job].name,
            window.spread().show(),
            window.length().show(),
        )
    };
    let spread = statistics::spread_starts(&outcome.threads);
    spread.into_iter().map(of_job).collect()
}

/// Returns, for each job with a `latency_target` that depth 1 exceeds, a note; each job runs to its end at depth 1, as
/// in fio.
pub fn unmet_latency_targets(jobs: &[Job], outcome: &Outcome) -> Vec<String> {
    let exceeds = |index: usize| {
        let mut threads = outcome.threads.iter().filter(|it| it.job == index);
        threads.any(|it| it.latency_depth == Some(0))
    };
    let unmet = (0..).zip(jobs).filter(|(index, _)| exceeds(*index));
    let note = |(_, job): (usize, &Job)| {
        let target = job.latency_target?.target.show();
        let name = &job.name;
        Some(format!(
            "job {name}: no depth meets its latency_target of {target}; it ran at depth 1"
        ))
    };
    unmet.filter_map(note).collect()
}

/// Returns what the host's page cache did in a run, in a line for reads and one for writes; empty for runs without it.
pub fn page_cache(outcome: &Outcome) -> Vec<String> {
    let gauge = |gauge| outcome.gauge(gauge).unwrap_or(0.0);
    let mib = |bytes: f64| format!("{:.1} MiB", bytes / f64::from(1 << 20));
    let mut lines = Vec::new();
    let read = gauge(Gauge::PageCacheBytesRead);
    if read > 0.0 {
        let fetched = gauge(Gauge::PageCacheBytesFetched);
        lines.push(format!(
            "page cache: {} read by the jobs, {} from the drive, {:.1} % served from memory",
            mib(read),
            mib(fetched),
            ((1.0 - fetched / read) * 100.0).max(0.0),
        ));
    }
    let written = gauge(Gauge::PageCacheBytesWritten);
    if written > 0.0 {
        lines.push(format!(
            "page cache: {} written by the jobs, {} not yet on the drive at the end, writers waited {:.3} s",
            mib(written),
            mib(gauge(Gauge::PageCacheDirtyBytes)),
            gauge(Gauge::PageCacheThrottledSeconds),
        ));
    }
    lines
}

/// Returns the lines that `dd` prints at its end, with blocks of `block` bytes.
pub fn dd(outcome: &Outcome, block: u64) -> Vec<String> {
    let thread = &outcome.threads[0];
    let bytes = thread.read.bytes + thread.write.bytes;
    let (whole, rest) = (
        bytes / block.max(1),
        u8::from(!bytes.is_multiple_of(block.max(1))),
    );
    let seconds = thread.ended.since(thread.started).seconds();
    let scaled = |base: f64, units: [&str; 4]| {
        let (mut value, mut unit) = (bytes as f64, "B");
        for larger in units {
            if value < base {
                break;
            }
            (value, unit) = (value / base, larger);
        }
        format!("{value:.1} {unit}")
    };
    vec![
        format!("{whole}+{rest} records in"),
        format!("{whole}+{rest} records out"),
        format!(
            "{bytes} bytes ({}, {}) copied, {seconds:.6} s, {:.1} MB/s",
            scaled(1e3, ["kB", "MB", "GB", "TB"]),
            scaled(1024.0, ["KiB", "MiB", "GiB", "TiB"]),
            bytes as f64 / seconds.max(1e-9) / 1e6,
        ),
    ]
}

#[cfg(test)]
mod tests;
