//! Loads that use no log: the answer is known from the load, and nothing is run.

use std::io::{self, Write};
use std::path::PathBuf;

use catalogue::DriveSheet;
use report::decide::needs_no_log;
use study::decide::syncs::{self, Syncs};
use study::decide::work::Load;
use text::problem::Problems;

use crate::failure::{Failure, on_command_line};

/// Returns the synchronous share of a load on these pools with a log; `None` if a pool logs all writes.
pub(crate) fn of_load<'a>(
    load: &Load,
    mut pools: impl Iterator<Item = &'a DriveSheet>,
) -> Option<Syncs> {
    let logs_all = pools.any(|sheet| sheet.pool_config().is_some_and(syncs::logs_all));
    (!logs_all).then(|| Syncs::count(&load.user_workload().workload))
}

/// Checks that no file is requested where nothing is run.
///
/// # Errors
/// Files are requested; `because` says why nothing is run.
pub(crate) fn refuse_files(
    files: &[(&str, &Option<PathBuf>)],
    because: &str,
) -> Result<(), Problems> {
    let requested = files.iter().filter(|(_, path)| path.is_some());
    let problems = requested.map(|(option, _)| {
        let what = format!("{option}: nothing is run, because {because}");
        on_command_line(what, format!("leave out {option}"))
    });
    Problems(problems.collect()).or(())
}

/// Prints that a load uses no log, if it does not; returns whether that is the answer.
///
/// # Errors
/// Files are requested, but without a run there is nothing to write to them.
pub(crate) fn is_answer(
    load: &Load,
    syncs: Option<Syncs>,
    json: bool,
    files: &[(&str, &Option<PathBuf>)],
) -> Result<bool, Failure> {
    let source = &load.user_workload().source;
    let Some((said, share)) = syncs.and_then(|syncs| needs_no_log(source, syncs)) else {
        return Ok(false);
    };
    refuse_files(files, &format!("{source} uses no log"))?;
    let mut out = io::stdout().lock();
    match json {
        true => writeln!(
            out,
            "{:#}",
            serde_json::json!({
                "schema": "drivelab log", "version": 1, "needs_log": false, "load": source, "synchronous_share": share
            })
        )?,
        false => writeln!(
            out,
            "{said}\nNothing was run. `drivelab choose` without slog compares drives and pools with this load."
        )?,
    }
    Ok(true)
}
