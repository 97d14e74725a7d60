//! Two conditions at once, where no single one explains a run.
//!
//! Of the single conditions the few that come nearest are each tried with every condition about something else. Two have more freedom
//! to fit by chance than one, so they explain a run only if its model then agrees with it in rate and latencies. Left out: three at
//! once, and two that each lead away from what was measured.

use std::collections::BTreeSet;

use catalogue::DriveSheet;

use super::causes::{self, Cause};
use super::file::Run;
use super::runs::{ALIKE, Case, Runs, Seen, agrees};

/// Single conditions that are tried with others.
const FIRST: usize = 4;

/// The pairs that explain a run, the nearest first; those that are as near cannot be told apart.
pub(super) fn explaining(
    run: &Run,
    drive: &DriveSheet,
    singles: &[(Cause, Seen)],
    runs: &Runs<'_>,
) -> Vec<(Cause, Seen)> {
    let distance = |seen: &Seen| seen.distance(&run.targets).unwrap_or(f64::INFINITY);
    let mut nearest: Vec<&(Cause, Seen)> = singles.iter().collect();
    nearest.sort_by(|a, b| distance(&a.1).total_cmp(&distance(&b.1)));
    let mut pairs = Vec::new();
    let mut known = BTreeSet::new();
    for (first, _) in nearest.into_iter().take(FIRST) {
        let seconds = causes::conditions(&first.case, drive);
        for second in seconds.into_iter().filter(|it| it.about != first.about) {
            let mut keys = [first.key.clone(), second.key.clone()];
            keys.sort();
            if known.insert(keys) {
                pairs.push(both(first, second));
            }
        }
    }
    let cases: Vec<Case> = pairs.iter().map(|pair| pair.case.clone()).collect();
    let seen = runs.run(&cases).into_iter().map(Result::ok);
    let found = pairs.into_iter().zip(seen);
    let found = found.filter_map(|(cause, seen)| Some((cause, seen?)));
    let mut found: Vec<(Cause, Seen)> = found.filter(|(_, seen)| agrees(seen, run)).collect();
    found.sort_by(|a, b| distance(&a.1).total_cmp(&distance(&b.1)));
    let least = found.first().map_or(0.0, |(_, seen)| distance(seen));
    found.retain(|(_, seen)| distance(seen) <= least + ALIKE);
    found
}

/// The second was made of the first's case and has both.
fn both(first: &Cause, second: Cause) -> Cause {
    Cause {
        about: first.about,
        key: format!("{}+{}", first.key, second.key),
        what: format!("both {}, and {}", first.what, second.what),
        to_tell: first
            .to_tell
            .iter()
            .chain(&second.to_tell)
            .copied()
            .collect(),
        case: second.case,
    }
}
