//! The drive's state at the start, as an argument of the verbs that run something.

use catalogue::Settings;
use clap::ValueEnum;
use lab::Start;
use model::media::Precondition;
use text::problem::Problems;

use crate::output::remark;

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

/// The drive's state at the start, where the load may choose it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Begin {
    /// By the load: filled before loads in order, steady before random and mixed ones and traces
    Auto,
    /// As it left the factory
    Fresh,
    /// Written once from end to end
    Filled,
    /// As after two fills with random 4 KiB writes
    Steady,
}

impl Begin {
    /// Notes why a drive with these settings cannot begin so.
    pub(crate) fn check(self, settings: &Settings, problems: &mut Problems) {
        if let Start::As(state) = self.into() {
            problems.0.extend(settings.problem_from(state));
        }
        note_on_heat(settings);
    }

    /// The state before a load for which it is this if the load chooses; says which it is.
    pub(crate) fn chosen(self, chosen: impl FnOnce(Start) -> Precondition) -> Precondition {
        let start = Start::from(self);
        let state = chosen(start);
        if let Some(words) = start.words(state) {
            remark("note", words);
        }
        state
    }

    /// As [`Begin::chosen`], of a verb whose answer says the state: only that it is not the one before random writes.
    pub(crate) fn answered(self, chosen: impl FnOnce(Start) -> Precondition) -> Precondition {
        let state = chosen(self.into());
        match state {
            Precondition::Steady => state,
            _ => self.chosen(|_| state),
        }
    }
}

impl From<Begin> for Start {
    fn from(begin: Begin) -> Start {
        match begin {
            Begin::Auto => Start::Auto,
            Begin::Fresh => Start::As(Precondition::Fresh),
            Begin::Filled => Start::As(Precondition::Filled),
            Begin::Steady => Start::As(Precondition::Steady),
        }
    }
}

/// Says that a run leaves heat out, if a figure of it is set.
pub(crate) fn note_on_heat(settings: &Settings) {
    let mut keys = settings.figures.iter().map(|(key, _)| key);
    let thermal = |key: &&String| key.split('.').any(|part| part == "thermal");
    if let Some(key) = keys.find(thermal) {
        let what = format!(
            "--set {key} changes nothing here: runs leave heat out, no drive warms up or throttles (`serve` and `explain` have it)"
        );
        remark("warning", &what);
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
