//! Screening of many drives: one short run on each shows which of them cannot be the best by any criterion, so that only
//! the others run in full.
//!
//! A drive is a contender if its figures of the short run are close to the best by some criterion, and it does not
//! clearly miss a limit. The margins are wide, because a short run differs from long ones with several seeds. Not
//! screened: traces, which run whole, and loads of sequential writes, whose short runs do not leave an SLC cache. Not
//! covered: a drive whose rate rises after [`BRIEF`].

use model::Span;

use super::choose::{Candidate, ChooseRequest, Measure};
use super::slc;
use super::work::Conditions;

/// Minimum number of drives that are screened.
pub const MANY: usize = 17;
/// Maximum counted time of the short run.
const BRIEF: Span = Span::from_ms(100);
/// Factor by which a contender's figure of the short run may be worse than the best: of rates, years and costs, and of
/// latencies.
const NEAR: f64 = 1.3;
const NEAR_LATENCY: f64 = 2.0;
/// Share of its bound by which a limit is clearly missed, and share of arriving I/Os that clearly does not keep up.
const CLEAR: f64 = -0.5;
const LAGS: f64 = 0.8;
/// Drives closest to their limits that run in full if all of them clearly miss one.
const CLOSEST: usize = 8;

/// Returns the request for the short run of each drive: one seed, and a short time. `None` if the load cannot be
/// screened.
pub fn brief(request: &ChooseRequest) -> Option<ChooseRequest> {
    if slc::sequential_writes(&request.load).is_some() {
        return None;
    }
    let load = request.load.briefly(BRIEF)?;
    let conditions = Conditions {
        seeds: 1,
        ..request.conditions.clone()
    };
    Some(ChooseRequest {
        load,
        conditions,
        ..request.clone()
    })
}

/// Checks whether a limit is missed so clearly that longer runs do not change it.
fn misses(one: &Candidate) -> bool {
    let far = |room: Option<f64>| room.is_some_and(|room| room < CLEAR);
    let limits = one.readings.iter();
    let mut missed = limits.filter(|it| it.met == Some(false));
    missed.any(|it| far(it.room)) || one.completes.is_some_and(|share| share < LAGS)
}

/// Returns the larger mean latency of reads and writes in microseconds, or p99 if neither is known.
fn latency_us(one: &Candidate) -> Option<f64> {
    let measured = [&one.measurement.read, &one.measurement.write];
    let means = measured.into_iter().flatten().map(|it| it.latency.mean_us);
    means.max_by(f64::total_cmp).or(one.p99_us)
}

/// Returns for each candidate of the short runs whether it can be the best by some criterion.
pub fn contenders(candidates: &[Candidate]) -> Vec<bool> {
    let mut found: Vec<bool> = vec![false; candidates.len()];
    let open = |one: &&Candidate| !misses(one);
    // At a given rate, IOPS only show whether a drive keeps up.
    let is_paced = candidates.iter().any(|one| one.completes.is_some());
    let criteria = Measure::ALL.into_iter();
    for by in criteria.filter(|by| !is_paced || *by != Measure::Iops) {
        // Means are known even where a short run has too few I/Os for a percentile.
        let value = |one: &Candidate| match by {
            Measure::P99 => latency_us(one),
            _ => by.value(one),
        };
        let values = || candidates.iter().filter(open).filter_map(value);
        let (best, factor) = match by {
            Measure::P99 => (values().min_by(f64::total_cmp), NEAR_LATENCY),
            Measure::Usd => (values().min_by(f64::total_cmp), NEAR),
            _ => (values().max_by(f64::total_cmp), 1.0 / NEAR),
        };
        let Some(best) = best else { continue };
        let bound = best * factor;
        let is_near = |value: f64| match factor > 1.0 {
            true => value <= bound,
            false => value >= bound,
        };
        for (at, one) in candidates.iter().enumerate() {
            found[at] |= open(&one) && value(one).is_some_and(is_near);
        }
    }
    if !candidates.iter().any(|one| open(&one)) {
        closest(candidates, &mut found);
    }
    found
}

/// Marks the candidates with the largest margins to their limits.
fn closest(candidates: &[Candidate], found: &mut [bool]) {
    let key = |at: usize| {
        let one = &candidates[at];
        (one.room.unwrap_or(-1.0), one.completes.unwrap_or(0.0))
    };
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (key(a), key(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    for &at in order.iter().take(CLOSEST) {
        found[at] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::super::choose::tests::of;
    use super::super::tally::Reading;
    use super::*;

    fn ran(drive: &str, iops: f64, latency_us: f64, years: f64) -> Candidate {
        let mut one = of(drive, true, iops, latency_us, None);
        one.years = Some(years);
        one
    }

    fn with_room(mut one: Candidate, room: f64) -> Candidate {
        one.meets = room >= 0.0;
        one.room = Some(room);
        one.readings = vec![Reading {
            limit: "p99 < 1 ms".into(),
            unit: "us",
            value: Some(1.0),
            interval: None,
            met: Some(room >= 0.0),
            room: Some(room),
            is_latency: true,
            slowest: None,
            too_few: None,
        }];
        one
    }

    #[test]
    fn a_contender_is_near_the_best_by_some_criterion() {
        let all = [
            ran("most", 100.0, 50.0, 1.0),
            ran("near", 80.0, 500.0, 1.0),
            ran("quick", 10.0, 20.0, 1.0),
            ran("lasting", 10.0, 500.0, 9.0),
            ran("neither", 70.0, 500.0, 6.0),
        ];
        assert_eq!(contenders(&all), [true, true, true, true, false]);
    }

    /// A fast drive that clearly misses a limit does not keep slower ones from running in full.
    #[test]
    fn a_clear_miss_is_no_contender_and_sets_no_bound() {
        let all = [
            with_room(ran("fast", 1000.0, 5.0, 90.0), -0.9),
            with_room(ran("slightly over", 95.0, 50.0, 1.0), -0.1),
            with_room(ran("within", 100.0, 50.0, 1.0), 0.2),
        ];
        assert_eq!(contenders(&all), [false, true, true]);
    }

    /// At a given rate, equal IOPS make no contender.
    #[test]
    fn iops_are_no_criterion_at_a_given_rate() {
        let mut all = [
            ran("quick", 100.0, 10.0, 9.0),
            ran("slow and short-lived", 100.0, 900.0, 1.0),
        ];
        assert_eq!(contenders(&all), [true, true]);
        for one in &mut all {
            one.completes = Some(1.0);
        }
        assert_eq!(contenders(&all), [true, false]);
    }

    #[test]
    fn if_all_miss_clearly_the_closest_run() {
        let rooms: Vec<f64> = (0..12).map(|at| -1.0 - f64::from(at)).collect();
        let all: Vec<Candidate> = rooms
            .iter()
            .map(|room| with_room(ran("x", 10.0, 10.0, 1.0), *room))
            .collect();
        let found = contenders(&all);
        assert!(found[..CLOSEST].iter().all(|it| *it), "{found:?}");
        assert!(!found[CLOSEST..].iter().any(|it| *it), "{found:?}");
    }
}
