//! The recording of a served drive: `--record`.

use std::fs::File;
use std::io;
use std::path::Path;

use live::ServedDevice;
use text::problem::{Problem, Problems};

use super::Args;
use crate::failure::{Failure, on_command_line};

/// Checks the arguments before anything is opened.
pub(super) fn check(args: &Args, drives: usize, problems: &mut Problems) {
    let Some(path) = &args.record else {
        return;
    };
    if drives > 1 {
        problems.0.push(on_command_line(
            format!("--record {}: {drives} drives", path.display()),
            "serve one drive: a log records one drive",
        ));
    }
    if path.exists() {
        problems.0.push(exists(path));
    }
}

fn exists(path: &Path) -> Problem {
    on_command_line(
        format!("--record {}: the file exists", path.display()),
        "name a file that does not exist, or remove it",
    )
}

/// Begins the recording.
///
/// # Errors
/// The file exists by now, or cannot be written.
pub(super) fn begin(args: &Args, drives: &mut [ServedDevice]) -> Result<(), Failure> {
    let (Some(path), [drive]) = (&args.record, drives) else {
        return Ok(());
    };
    let file = File::create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::BadInput(Problems(vec![exists(path)])),
        _ => failed(path, &error),
    })?;
    let begun = drive.record_to(file, args.log_limit);
    begun.map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("--record {}", path.display()), error)
}
