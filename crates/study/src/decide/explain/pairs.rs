//! Pairs of conditions, for runs that no single condition explains.
//!
//! Each of the few single conditions that come closest is tried with every condition on another subject. A pair can
//! fit by chance more easily than a single condition, so a pair explains a run only if its model agrees with the run
//! in rate and latencies. Not tried: three at once, and pairs whose conditions each increase the distance from the
//! measurement.

use std::collections::BTreeSet;

use catalogue::DriveSheet;

use super::causes::{self, Cause};
use super::file::ReportingGroup;
use super::runs::{ALIKE, CaseResult, CaseRunner, ExplainCase, agrees};

/// Number of single conditions that are tried in pairs.
const FIRST: usize = 4;

/// Returns the pairs that explain a run, the closest first; pairs that are equally close cannot be distinguished.
pub(super) fn explaining(
    run: &ReportingGroup,
    drive: &DriveSheet,
    singles: &[(Cause, CaseResult)],
    runs: &CaseRunner<'_>,
) -> Vec<(Cause, CaseResult)> {
    let distance = |seen: &CaseResult| seen.distance(&run.targets).unwrap_or(f64::INFINITY);
    let mut nearest: Vec<&(Cause, CaseResult)> = singles.iter().collect();
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
    let cases: Vec<ExplainCase> = pairs.iter().map(|pair| pair.case.clone()).collect();
    let seen = runs.run(&cases).into_iter().map(Result::ok);
    let found = pairs.into_iter().zip(seen);
    let found = found.filter_map(|(cause, seen)| Some((cause, seen?)));
    let mut found: Vec<(Cause, CaseResult)> = found.filter(|(_, seen)| agrees(seen, run)).collect();
    found.sort_by(|a, b| distance(&a.1).total_cmp(&distance(&b.1)));
    let least = found.first().map_or(0.0, |(_, seen)| distance(seen));
    found.retain(|(_, seen)| distance(seen) <= least + ALIKE);
    found
}

/// Returns the combined cause. The second was derived from the first's case and contains both.
fn both(first: &Cause, second: Cause) -> Cause {
    Cause {
        about: first.about,
        key: format!("{}+{}", first.key, second.key),
        what: format!("both {}, and {}", first.what, second.what),
        supposition: format!("{} and {}", first.supposition, second.supposition),
        check: first.check.iter().chain(&second.check).copied().collect(),
        to_tell: first
            .to_tell
            .iter()
            .chain(&second.to_tell)
            .copied()
            .collect(),
        case: second.case,
    }
}
