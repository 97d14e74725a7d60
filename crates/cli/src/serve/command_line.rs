//! Problems of the command line itself, with what would be right.

use text::problem::{Place, Problem};

/// This is wrong with the command line; `help` says what would be right.
pub(super) fn on_command_line(what: impl Into<String>, help: &str) -> Problem {
    Problem {
        origin: "command line".into(),
        place: Place::Whole,
        what: what.into(),
        help: Some(help.into()),
    }
}
