//! The drive's state at the start, as an argument of the verbs that run something.

use clap::ValueEnum;
use model::media::Precondition;

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

impl From<State> for Precondition {
    fn from(state: State) -> Precondition {
        match state {
            State::Fresh => Precondition::Fresh,
            State::Filled => Precondition::Filled,
            State::Steady => Precondition::Steady,
        }
    }
}
