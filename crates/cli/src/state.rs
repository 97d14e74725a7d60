//! The drive's state at the start, as an argument of the verbs that run something.

use catalogue::Settings;
use clap::ValueEnum;
use model::media::Precondition;
use text::problem::Problems;

use crate::failure::on_command_line;

/// The drive's state at the start.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// As it left the factory
    Fresh,
    /// Written once from end to end
    Filled,
    /// As after two fills with random 4 KiB writes
    Steady,
}

impl State {
    /// A drive on which nothing was written holds nothing, whatever share of it is said to.
    pub(crate) fn check(self, settings: &Settings, problems: &mut Problems) {
        if self == State::Fresh && settings.fill.is_some() {
            problems.0.push(on_command_line(
                "--fill with --state fresh, on which nothing has been written",
                "leave one of them out",
            ));
        }
    }
}

impl From<State> for Precondition {
    fn from(state: State) -> Precondition {
        match state {
            State::Fresh => Precondition::Fresh,
            State::Filled => Precondition::Filled,
            State::Steady => Precondition::Steady,
        }
    }
}
