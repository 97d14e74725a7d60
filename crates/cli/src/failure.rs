//! Failures of subcommands, and their exit codes.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use text::problem::{Place, Problem, Problems};

/// Reason why a subcommand failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Invalid input or arguments: exit code 2.
    BadInput(Problems),
    /// A failed operation (a file could not be written, ...): exit code 1.
    Failed(String),
    /// The work was done and its verdict is negative: exit code 3.
    Verdict(String),
    /// The user asked to stop, and partial results have been printed: this exit code.
    Stopped(u8),
    /// The reader of the output has closed it (`drivelab drives | head -1`), which is not an error of the program.
    ClosedPipe,
}

impl Failure {
    /// Returns a failure of the environment: the operation, and the error.
    pub(crate) fn failed(doing: impl Display, error: impl Display) -> Failure {
        Failure::Failed(format!("{doing}: {error}"))
    }

    /// Prints the failure on standard error and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Failure::BadInput(problems) => {
                let told = problems.render(coloured(
                    io::stderr().is_terminal(),
                    std::env::var_os("NO_COLOR"),
                    std::env::var_os("TERM"),
                ));
                write_stderr(&told);
                ExitCode::from(2)
            }
            Failure::Failed(what) => {
                write_stderr(&format!("error: {what}"));
                ExitCode::from(1)
            }
            Failure::Verdict(what) => {
                write_stderr(&format!("verdict: {what}"));
                ExitCode::from(3)
            }
            Failure::Stopped(code) => ExitCode::from(code),
            Failure::ClosedPipe => ExitCode::SUCCESS,
        }
    }
}

/// Returns a problem of the arguments, with what would be right.
pub(crate) fn on_command_line(what: impl Into<String>, help: impl Into<String>) -> Problem {
    Problem {
        origin: "command line".into(),
        place: Place::Whole,
        what: what.into(),
        help: Some(help.into()),
    }
}

/// Writes to standard error. If that is closed, or a file on a full disk, the text is lost: a server must not end for
/// that.
pub(crate) fn write_stderr(what: &str) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// Checks whether messages have colours: on a terminal that supports them, unless <https://no-color.org> disables
/// them.
fn coloured(terminal: bool, no_color: Option<OsString>, term: Option<OsString>) -> bool {
    terminal
        && no_color.is_none_or(|value| value.is_empty())
        && term.is_none_or(|term| term != "dumb")
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Failure {
        if problems.is_defect() {
            let said = problems.0.iter().map(ToString::to_string);
            Failure::Failed(said.collect::<Vec<_>>().join("\n"))
        } else {
            Failure::BadInput(problems)
        }
    }
}

/// Errors of writing to standard output; for files, [`Failure::failed`] adds the file name.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Failure::ClosedPipe
        } else {
            Failure::failed("writing to standard output", error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let said = |text: &str| Some(OsString::from(text));
        assert!(coloured(true, None, said("xterm")));
        assert!(coloured(true, said(""), None));
        assert!(!coloured(true, said("1"), said("xterm")));
        assert!(!coloured(true, None, said("dumb")));
        assert!(!coloured(false, None, said("xterm")));
    }

    #[test]
    fn a_defect_is_not_blamed_on_the_input() {
        let defect = Failure::from(Problems::defect("simulate", "the run stalled"));
        assert_eq!(defect.report(), ExitCode::from(1));
        let input = Failure::from(Problems::whole("job.fio", "is empty"));
        assert_eq!(input.report(), ExitCode::from(2));
    }
}
