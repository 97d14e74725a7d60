//! Conditions that requests share: host, initial state, seeds and ranges of numbers.

use std::fmt::Display;
use std::ops::RangeInclusive;

use catalogue::HostSheet;
use lab::Start;
use model::media::Precondition;
use text::problem::Problems;

use super::defaults;
use super::drive_spec::DriveSpec;
use super::problems::{collect_problems, of_option};

/// Adds a problem if a number is out of its range.
pub(super) fn check_range<T: PartialOrd + Display>(
    option: &str,
    number: Option<impl Into<T>>,
    range: &RangeInclusive<T>,
    problems: &mut Problems,
) {
    let Some(number) = number.map(Into::into) else {
        return;
    };
    if !range.contains(&number) {
        let help = format!("from {} to {}", range.start(), range.end());
        problems
            .0
            .push(of_option(format!("--{option}: {number}"), help));
    }
}

/// Adds problems of the seeds.
pub(super) fn check_seeds(seed: u64, seeds: u32, problems: &mut Problems) {
    check_range("seed", Some(seed), &defaults::SEED_RANGE, problems);
    check_range("seeds", Some(seeds), &defaults::SEEDS_RANGE, problems);
}

/// Returns the host with this name. An unknown host is a problem, and nothing runs.
pub(super) fn host(name: &str, problems: &mut Problems) -> HostSheet {
    collect_problems(catalogue::host(name), problems).unwrap_or_default()
}

/// Returns the initial state with this name; `auto` lets the load select it.
pub(super) fn start(name: &str, drives: &[DriveSpec], problems: &mut Problems) -> Start {
    let found = Start::named(name);
    match found {
        Some(start) => check_state(start.given(), drives, problems),
        None => problems.0.push(of_option(
            format!("--state: there is no state `{name}`"),
            "auto, fresh, filled or steady",
        )),
    }
    found.unwrap_or_default()
}

/// Returns the initial state with this name, where the load does not select it.
pub(super) fn state(name: &str, drives: &[DriveSpec], problems: &mut Problems) -> Precondition {
    let found = Start::named(name).and_then(Start::given);
    match found {
        Some(_) => check_state(found, drives, problems),
        None => problems.0.push(of_option(
            format!("--state: there is no state `{name}`"),
            "fresh, filled or steady",
        )),
    }
    found.unwrap_or(Precondition::Steady)
}

/// Adds the reason why a drive with its settings cannot have this initial state.
fn check_state(state: Option<Precondition>, drives: &[DriveSpec], problems: &mut Problems) {
    let mut settings = drives.iter().map(|drive| &drive.settings);
    let found = state.and_then(|state| settings.find_map(|it| it.problem_from(state)));
    problems.0.extend(found);
}
