//! Logs and checkers that are refused before a search: each message names the option and what would be right.

use crash::log::Command;
use crash::search::{Class, Counts};

use super::source::Source;
use super::{JudgeCommand, bad};
use crate::failure::Failure;

/// Checks that the log has writes.
///
/// # Errors
/// It has none.
pub(super) fn without_writes(source: &Source) -> Result<(), Failure> {
    if source.log.commands.iter().any(Command::writes) {
        return Ok(());
    }
    Err(bad(
        format!(
            "{}: the log has no writes, so there is nothing to check",
            source.arguments
        ),
        "name a log of a client that has written; one that was cut short before its first write is of no use",
    ))
}

/// Returns the failure of a checker that has judged no image, which says nothing about the program.
pub(super) fn without_judgement(command: JudgeCommand<'_>, counts: Counts) -> Option<Failure> {
    let failure = || {
        bad(
            format!(
                "{} has judged no image: {} of {} are `not judged` (exit code 77)",
                command.option(),
                counts.skipped,
                counts.checked
            ),
            "the checker must judge at least the image of the orderly end: exit code 0 if it is right; `--from LOG --image end` shows it",
        )
    };
    judged_nothing(counts).then(failure)
}

/// Checks whether a search has checked images, and the checker has judged none of them.
pub(super) fn judged_nothing(counts: Counts) -> bool {
    counts.checked > 0 && counts.skipped == counts.checked
}

/// Returns the failure of a checker that does not accept the last image.
pub(super) fn at_end(
    source: &Source,
    command: JudgeCommand<'_>,
    class: Class,
    line: &str,
) -> Failure {
    let option = command.option();
    let words = ::crashtest::report::words(class, line);
    // The exit codes of `sh` for a command that it cannot run or does not understand.
    let is_shell = |code: &str| line.contains(&format!("exit code {code}: sh: "));
    if is_shell("126") || is_shell("127") {
        return bad(
            format!("{option}: the checker cannot be started: {line}"),
            "name an executable file, by its path or in PATH, or the program that reads it: --check 'python3 check.py'",
        );
    }
    if is_shell("2") {
        return bad(
            format!("{option}: `sh -c` does not understand the command: {line}"),
            "quote the whole command once for your shell, such as --check 'python3 check.py \"$DRIVELAB_DIR\"'",
        );
    }
    let help = match class {
        Class::Unopenable if line.contains(" does not mount: ") => {
            "the log must be of a drive with this file system: name another with --fs and --mount, or --fs none"
        }
        _ if source.log.acks.is_empty() => {
            "the checker must accept the last image; DRIVELAB_ACKS is empty, because the program has acknowledged nothing"
        }
        _ => {
            "the checker must accept the last image (`--from LOG --image end`); correct it, or record again"
        }
    };
    bad(
        format!(
            "{option} fails on the image of the orderly end, with all that was written: {words}"
        ),
        help,
    )
}
