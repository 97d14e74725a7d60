//! Why a verb did not succeed, and the exit code that says so.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use study::problem::Problems;

/// Why a verb did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input or the arguments are wrong: exit code 2.
    BadInput(Problems),
    /// Something that should have worked did not (a file could not be written, ...): exit code 1.
    Failed(String),
    /// The work was done and its verdict is negative: exit code 3.
    Verdict(String),
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
                eprintln!("{}", problems.render(io::stderr().is_terminal()));
                ExitCode::from(2)
            }
            Failure::Failed(what) => {
                eprintln!("error: {what}");
                ExitCode::from(1)
            }
            Failure::Verdict(what) => {
                eprintln!("verdict: {what}");
                ExitCode::from(3)
            }
            Failure::ClosedPipe => ExitCode::SUCCESS,
        }
    }
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
    fn a_defect_is_not_blamed_on_the_input() {
        let defect = Failure::from(Problems::defect("simulate", "the run stalled"));
        assert_eq!(defect.report(), ExitCode::from(1));
        let input = Failure::from(Problems::whole("job.fio", "is empty"));
        assert_eq!(input.report(), ExitCode::from(2));
    }
}
