//! `--zilstat FILE`: the rates of the intent log of a real pool, or the synchronous share of its writes by `zpool iostat`,
//! and the answer if nothing was logged.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use study::decide::rate::OfferedRate;
use study::decide::syncs;
use study::decide::work::Load;
use study::decide::zilstat::ZilStatistics;
use study::decide::zpool_iostat::read_statistics;
use text::digits;
use text::problem::Problems;

use crate::choose::no_log;
use crate::failure::{Failure, on_command_line};
use crate::output::remark;

/// Reads the text of `zilstat -i 1` or of `zpool iostat -w`, `-r` or `-q`, which is about a log only.
pub(crate) fn read(path: Option<&Path>, is_log: bool) -> Result<Option<ZilStatistics>, Problems> {
    let Some(path) = path else { return Ok(None) };
    if !is_log {
        let help = "use it with `choose slog DRIVE...` or `size slog DRIVE...`";
        return Err(Problems(vec![on_command_line(
            "--zilstat applies to a log only",
            help,
        )]));
    }
    let origin = path.display().to_string();
    let text = text::bounded::text(path, text::bounded::WRITTEN)
        .map_err(|error| Problems::whole(&origin, format!("cannot be read: {error}")))?;
    read_statistics(&origin, &text).map(Some)
}

/// Prints that the pool needs no log, if nothing was logged; returns whether that is the answer. If only metadata was
/// logged, prints a note.
///
/// # Errors
/// Files are requested, but without a run there is nothing to write to them.
pub(crate) fn is_answer(
    zil: Option<&ZilStatistics>,
    json: bool,
    files: &[(&str, &Option<PathBuf>)],
) -> Result<bool, Failure> {
    let Some(zil) = zil else { return Ok(false) };
    if zil.has_metadata_only() {
        let found = match (zil.synchronous_share, zil.is_iostat) {
            (Some(share), _) => {
                format!(
                    "{} of the writes are synchronous",
                    digits::percent(Some(share), 1)
                )
            }
            (None, true) => String::from("synchronous writes are queued in some samples"),
            (None, false) => String::from("it has log records of metadata only and no data"),
        };
        let then = match zil.is_decided {
            true => "the log is used, but the file gives no rate",
            false => "not decided whether the log is used; the runs assume that it is",
        };
        let what = format!("{}: {found}: {then}", zil.source);
        remark("note", &what);
    }
    if !zil.needs_no_log() {
        return Ok(false);
    }
    no_log::refuse_files(files, &format!("nothing was logged in {}", zil.source))?;
    let mut out = io::stdout().lock();
    match json {
        true => writeln!(
            out,
            "{:#}",
            serde_json::json!({ "schema": "drivelab zilstat", "version": 1, "needs_log": false, "zilstat": zil })
        )?,
        false => writeln!(out, "You need no log by {}: {}.", zil.source, reason(zil))?,
    }
    Ok(true)
}

/// Returns why a pool needs no log.
fn reason(zil: &ZilStatistics) -> String {
    match (zil.synchronous_share, zil.is_iostat) {
        (Some(share), _) => format!(
            "{} of the writes use the synchronous queue (count: {}), which labels alone may explain",
            digits::percent(Some(share), 2),
            digits::count(zil.synchronous_writes.unwrap_or_default())
        ),
        (None, true) => format!(
            "no synchronous write is queued in {} samples, which may miss a few short ones",
            zil.intervals
        ),
        (None, false) => format!(
            "nothing was written synchronously in {} intervals",
            zil.intervals
        ),
    }
}

/// Returns the load at this rate of a log, in bytes per second.
///
/// # Errors
/// The load reads, or writes asynchronously: its rate is not that of the log.
pub(crate) fn paced(load: Load, rate: f64) -> Result<Load, Problems> {
    if let Some(job) = syncs::unlogged_job(&load.user_workload().workload) {
        let what = format!(
            "--zilstat: job `{job}` reads, or writes asynchronously, and the file has the rate of synchronous writes only"
        );
        let help = "--load nfs-sync, --load wal, a job of synchronous writes only, or --rate for the rate of all I/Os";
        return Err(Problems(vec![on_command_line(what, help)]));
    }
    load.at_rate_by("--zilstat", OfferedRate::Bytes(rate))
}
