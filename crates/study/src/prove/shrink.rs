//! Reduction to a shorter program with the same failure: steps are removed, many at first, while there is still a
//! failure.

use super::fail::Fail;
use super::fault::{Fault, FaultCoverage};
use super::search::{CrashCase, CrashSearch};
use super::world::TestPool;

/// Number of points in which a shorter program must fail.
const POINTS: u64 = 4000;

/// Returns the shortest program that is found, with its failure.
pub(super) fn shortest(
    world: &TestPool,
    fault: &Fault,
    case: CrashCase,
    fail: Fail,
) -> (CrashCase, Fail) {
    let again = *fault == Fault::SecondCut;
    let fails = |case: &CrashCase| {
        let mut search = CrashSearch::new(world, case.clone(), again);
        (search.to_the_first, search.most, search.share) = (true, POINTS, 64);
        search.told_is_right = fault.covered(&world.config) == FaultCoverage::MustBeTold;
        // An unreported loss must remain unreported: a reported loss may be allowed by the guarantee.
        let silent = |fail: &Fail| matches!(fail, Fail::Untold(_));
        let first = search.run().first;
        first.filter(|(_, shorter)| silent(shorter) || !silent(&fail))
    };
    let mut best = (case, fail.clone());
    let mut shorter = best.0.clone();
    shorter.program.depth = 1;
    best = fails(&shorter).unwrap_or(best);
    let mut size = best.0.program.steps.len() / 2;
    while size > 0 {
        let mut from = 0;
        while from < best.0.program.steps.len() {
            match fails(&without(&best.0, from, size)) {
                Some(shorter) => best = shorter,
                None => from += size,
            }
        }
        size /= 2;
    }
    best
}

/// Returns the case without some of its steps; faults before a removed step happen before the next step.
fn without(case: &CrashCase, from: usize, count: usize) -> CrashCase {
    let mut shorter = case.clone();
    let until = (from + count).min(case.program.steps.len());
    shorter.program.steps.drain(from..until);
    for blow in &mut shorter.blows {
        let before = usize::from(blow.before);
        let gone = before.clamp(from, until) - from;
        blow.before = (before - gone) as u8;
    }
    shorter
}
