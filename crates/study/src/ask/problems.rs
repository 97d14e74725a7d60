//! Problems of a request.
//!
//! Problems name the option of the command line; Python turns it into the name of its argument.

use text::problem::{Place, Problem, Problems};

/// Returns a problem of an option, with what would be right.
pub(super) fn of_option(what: impl Into<String>, help: impl Into<String>) -> Problem {
    Problem {
        origin: String::from("command line"),
        place: Place::Whole,
        what: what.into(),
        help: Some(help.into()),
    }
}

/// Returns the value that was read; its problems are added to the others.
pub fn collect_problems<T>(read: Result<T, Problems>, problems: &mut Problems) -> Option<T> {
    read.map_err(|more| problems.0.extend(more.0)).ok()
}
