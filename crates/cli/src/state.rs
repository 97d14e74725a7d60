//! The initial state of the drive, as an argument of the subcommands that run something.

use catalogue::Settings;
use clap::ValueEnum;
use lab::Start;
use model::media::Precondition;
use text::problem::Problems;

use crate::output::remark;

/// Initial state of the drive.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Nothing written
    Fresh,
    /// Written once sequentially
    Filled,
    /// Steady state, as after two fills with random 4 KiB writes
    Steady,
}

impl State {
    /// Reports why a drive with these settings cannot have this initial state.
    pub(crate) fn check(self, settings: &Settings, problems: &mut Problems) {
        problems.0.extend(settings.problem_from(self.into()));
    }
}

/// Initial state of the drive, if the load may select it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Begin {
    /// Selected by the load: filled before sequential loads, steady before random and mixed loads and traces
    Auto,
    /// Nothing written
    Fresh,
    /// Written once sequentially
    Filled,
    /// Steady state, as after two fills with random 4 KiB writes
    Steady,
}

impl Begin {
    /// Reports why a drive with these settings cannot have this initial state.
    pub(crate) fn check(self, settings: &Settings, problems: &mut Problems) {
        if let Start::As(state) = self.into() {
            problems.0.extend(settings.problem_from(state));
        }
        note_on_heat(settings);
    }

    /// Returns the initial state; if the load chooses it, `chosen` returns it and it is printed.
    pub(crate) fn chosen(self, chosen: impl FnOnce(Start) -> Precondition) -> Precondition {
        let start = Start::from(self);
        let state = chosen(start);
        if let Some(words) = start.words(state) {
            remark("note", words);
        }
        state
    }

    /// Returns the state as [`Begin::chosen`] does, for a subcommand whose answer contains the state: only a state
    /// other than that before random writes is printed.
    pub(crate) fn answered(self, chosen: impl FnOnce(Start) -> Precondition) -> Precondition {
        let state = chosen(self.into());
        match state {
            Precondition::Steady => state,
            _ => self.chosen(|_| state),
        }
    }
}

/// Returns the name of a value of an option.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    let name = value.to_possible_value();
    name.map_or_else(String::new, |name| name.get_name().to_owned())
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

/// Prints that a run does not model heat, if a thermal figure is set.
pub(crate) fn note_on_heat(settings: &Settings) {
    let mut keys = settings.figures.iter().map(|(key, _)| key);
    let thermal = |key: &&String| key.split('.').any(|part| part == "thermal");
    if let Some(key) = keys.find(thermal) {
        let what = format!(
            "--set {key} changes nothing here: no drive warms up or throttles here (`run --heat`, `serve` and `explain` have heat)"
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
