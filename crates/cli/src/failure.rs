//! Why a verb did not succeed, and the exit code that says so.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use text::problem::{Place, Problem, Problems};

/// Why a verb did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input or the arguments are wrong: exit code 2.
    BadInput(Problems),
    /// Something that should have worked did not (a file could not be written, ...): exit code 1.
    Failed(String),
    /// The work was done and its verdict is negative: exit code 3.
    Verdict(String),
    /// The user asked to end, and what there was has been printed: this exit code.
    Stopped(u8),
    /// Nobody reads the output any more (`drivelab drives | head -1`): not an error of ours.
    ClosedPipe,
}

impl Failure {
    /// A failure of the program's surroundings: what was being done, and the error.
    pub(crate) fn failed(doing: impl Display, error: impl Display) -> Failure {
        Failure::Failed(format!("{doing}: {error}"))
    }

    /// Says on standard error what went wrong; the exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Failure::BadInput(problems) => {
                let told = problems.render(coloured(
                    io::stderr().is_terminal(),
                    std::env::var_os("NO_COLOR"),
                    std::env::var_os("TERM"),
                ));
                tell(&told);
                ExitCode::from(2)
            }
            Failure::Failed(what) => {
                tell(&format!("error: {what}"));
                ExitCode::from(1)
            }
            Failure::Verdict(what) => {
                tell(&format!("verdict: {what}"));
                ExitCode::from(3)
            }
            Failure::Stopped(code) => ExitCode::from(code),
            Failure::ClosedPipe => ExitCode::SUCCESS,
        }
    }
}

/// A problem of the arguments, and what would be right.
pub(crate) fn on_command_line(what: impl Into<String>, help: impl Into<String>) -> Problem {
    Problem {
        origin: "command line".into(),
        place: Place::Whole,
        what: what.into(),
        help: Some(help.into()),
    }
}

/// Writes to standard error; the exit code speaks where nobody reads that.
pub(crate) fn tell(what: &str) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// Whether messages have colours: on a terminal that has them, unless <https://no-color.org> says otherwise.
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

/// Errors of writing to standard output; those of files should say which file, by [`Failure::failed`].
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
