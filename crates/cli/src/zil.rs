//! `--zilstat FILE`: the rates of the intent log of a real pool, and the answer if nothing was logged.

use std::io::{self, Write};
use std::path::Path;

use study::decide::rate::OfferedRate;
use study::decide::work::Load;
use study::decide::zilstat::ZilStatistics;
use text::problem::Problems;

use crate::failure::on_command_line;

/// Reads the text of `zilstat -i 1`, which is about a log only.
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
    ZilStatistics::read(&origin, &text).map(Some)
}

/// Prints that the pool needs no log, if nothing was logged; returns whether that is the answer.
pub(crate) fn is_answer(zil: Option<&ZilStatistics>, json: bool) -> io::Result<bool> {
    let Some(zil) = zil.filter(|zil| zil.needs_no_log()) else {
        return Ok(false);
    };
    let mut out = io::stdout().lock();
    match json {
        true => writeln!(
            out,
            "{:#}",
            serde_json::json!({ "schema": "drivelab zilstat", "version": 1, "needs_log": false, "zilstat": zil })
        )?,
        false => writeln!(
            out,
            "You need no log by {}: nothing was written synchronously in {} intervals.",
            zil.source, zil.intervals
        )?,
    }
    Ok(true)
}

/// Returns the load at the rate of the busiest interval, if there is one.
pub(crate) fn paced(load: Load, zil: Option<&ZilStatistics>) -> Result<Load, Problems> {
    match zil {
        Some(zil) => load.at_rate(OfferedRate::Bytes(zil.most_mb_s * 1e6)),
        None => Ok(load),
    }
}
