//! The drive's state at the start, as an argument of the verbs that run something.

use catalogue::Settings;
use clap::ValueEnum;
use model::media::Precondition;
use text::problem::Problems;

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
    /// Notes why a drive with these settings cannot begin so.
    pub(crate) fn check(self, settings: &Settings, problems: &mut Problems) {
        problems.0.extend(settings.problem_from(self.into()));
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
