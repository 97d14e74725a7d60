//! Screening of many drives: one short run on each shows which of them cannot be the best by any criterion, so that only
//! the others run in full.
//!
//! A drive is a contender if its figures of the short run are close to the best by some criterion, and it does not
//! clearly miss a limit. The best is taken over drives that may meet all limits: of those that ran in full, the ones
//! that meet them; of the others, the ones that do not clearly miss one. Contenders are determined again after each
//! round of full runs, until none is left. A drive that is not as good in its full run as in its short one therefore
//! does not exclude others. The margins are wide, because a short run differs from long ones with several seeds, and
//! wider for drives with few I/Os. Not screened: traces, which run whole, and loads of sequential writes, whose short
//! runs do not leave an SLC cache. Not covered: a drive whose figures improve after [`BRIEF`] by more than the margins.

use model::Span;

use super::choose::{Candidate, ChooseRequest, Measure};
use super::likeness;
use super::work::{self, Conditions};

/// Minimum number of drives that are screened.
pub const MANY: usize = 17;
/// Maximum counted time of the short run.
const BRIEF: Span = Span::from_ms(100);
/// Factor by which a contender's rate, or years, of the short run may be lower than the best.
const NEAR: f64 = 1.3;
/// Factor by which a contender's latency or cost of the short run may be higher than the best. Drives are bought whole,
/// so at a slightly lower write rate one instead of two may be bought.
const NEAR_ABOVE: f64 = 2.0;
/// Share of its bound by which a limit is clearly missed, and share of arriving I/Os that clearly does not keep up.
const CLEAR: f64 = -0.5;
const LAGS: f64 = 0.8;
/// Minimum number of I/Os, arriving or else completed, for a clear miss.
const ENOUGH: f64 = work::BRIEF_IOS;
/// Drives closest to their limits that run in full if all of them clearly miss one.
const CLOSEST: usize = 8;

/// Returns the request for the short run of each drive: one seed, and a short time. `None` if the load cannot be
/// screened.
pub fn brief(request: &ChooseRequest) -> Option<ChooseRequest> {
    if request.load.sequential_writes().is_some() {
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

/// Returns the number of completed I/Os.
fn completed(one: &Candidate) -> f64 {
    one.iops * one.measurement.seconds
}

/// Checks whether a run completed enough I/Os for its rate to be that of a long run.
pub(super) fn has_enough_ios(one: &Candidate) -> bool {
    completed(one) >= ENOUGH
}

/// Returns three standard deviations of a number of independent I/Os, as a share of it.
fn variation(ios: f64) -> f64 {
    3.0 / libm::sqrt(ios.max(1.0))
}

/// Checks whether a limit is missed so clearly that longer runs do not change it. No run changes the capacity. With
/// fewer than [`ENOUGH`] I/Os, no miss of another limit is clear. `offered` is the arrival rate in I/Os per second, if
/// the load has one.
pub fn misses(one: &Candidate, offered: Option<f64>) -> bool {
    let limits = one.readings.iter();
    let mut missed = limits.filter(|it| it.met == Some(false));
    if missed.clone().any(|it| it.is_exact) {
        return true;
    }
    let arrive = offered.map(|rate| rate * one.measurement.seconds);
    let ios = arrive.unwrap_or_else(|| completed(one));
    if ios < ENOUGH {
        return false;
    }
    let far = |room: Option<f64>| room.is_some_and(|room| room < CLEAR);
    let lags = |share: f64| share < LAGS - variation(ios);
    missed.any(|it| far(it.room)) || one.completes.is_some_and(lags)
}

/// A figure by which a drive may be the best.
struct ScreeningFigure {
    value: fn(&Candidate) -> Option<f64>,
    /// Factor from the best to the bound: above 1 if the lowest is the best.
    factor: f64,
}

impl ScreeningFigure {
    /// Returns all figures except p99. At a given rate, IOPS only show whether a drive keeps up.
    fn all(is_paced: bool) -> Vec<ScreeningFigure> {
        let of = |value: fn(&Candidate) -> Option<f64>, factor| ScreeningFigure { value, factor };
        let mut all = vec![
            of(|one| Measure::Usd.value(one), NEAR_ABOVE),
            of(|one| Measure::Watt.value(one), 1.0 / NEAR),
            of(|one| Measure::Years.value(one), 1.0 / NEAR),
            // The mean is known even where a short run has too few I/Os for p99.
            of(|one| one.mean_us, NEAR_ABOVE),
        ];
        if !is_paced {
            all.push(of(|one| Measure::Iops.value(one), 1.0 / NEAR));
        }
        all
    }

    /// Returns the bound between contenders and others; `None` if the figure is known of no candidate.
    fn bound<'a>(&self, open: impl Iterator<Item = &'a Candidate>) -> Option<f64> {
        let values = open.filter_map(self.value);
        let best = match self.factor > 1.0 {
            true => values.min_by(f64::total_cmp),
            false => values.max_by(f64::total_cmp),
        };
        best.map(|best| best * self.factor)
    }

    fn is_near(&self, one: &Candidate, bound: f64) -> bool {
        let more = 1.0 + variation(completed(one));
        (self.value)(one).is_some_and(|value| match self.factor > 1.0 {
            true => value <= bound * more,
            false => value * more >= bound,
        })
    }
}

/// Checks whether p99 can be close to the best: it is known and near, or it is unknown and the mean is not above the
/// best p99.
fn may_have_best_p99(one: &Candidate, best: f64) -> bool {
    let more = 1.0 + variation(completed(one));
    match (one.p99_us, one.mean_us) {
        (Some(p99), _) => p99 <= best * NEAR_ABOVE * more,
        (None, Some(mean)) => mean <= best * more,
        (None, None) => true,
    }
}

/// Checks whether the short run has no years only because it wrote nothing.
fn wrote_nothing(one: &Candidate) -> bool {
    one.years.is_none() && one.parts.iter().any(|part| part.rating.is_some())
}

/// Returns for each candidate whether it was screened and must run in full, because it can be the best by some
/// criterion. Candidates that ran in full set bounds if they meet all limits. `offered` is the arrival rate in I/Os per
/// second, if the load has one.
pub fn contenders(candidates: &[Candidate], offered: Option<f64>) -> Vec<bool> {
    let may_meet = |one: &&Candidate| match one.screened {
        true => !misses(one, offered),
        false => one.is_met(),
    };
    let open = || candidates.iter().filter(may_meet);
    if open().next().is_none() && candidates.iter().all(|one| one.screened) {
        return closest(candidates);
    }
    let figures = ScreeningFigure::all(offered.is_some()).into_iter();
    let bounds: Vec<(ScreeningFigure, f64)> = figures
        .filter_map(|figure| {
            let bound = figure.bound(open())?;
            Some((figure, bound))
        })
        .collect();
    let p99 = open().filter_map(|one| one.p99_us).min_by(f64::total_cmp);
    let have_years = open().any(|one| one.years.is_some());
    let can_win = |one: &Candidate| {
        completed(one) < 1.0
            || bounds
                .iter()
                .any(|(figure, bound)| figure.is_near(one, *bound))
            || p99.is_some_and(|best| may_have_best_p99(one, best))
            || (have_years && wrote_nothing(one))
    };
    let wanted = |one: &Candidate| one.screened && may_meet(&one) && can_win(one);
    candidates.iter().map(wanted).collect()
}

/// Returns for each candidate whether it was screened and must run in full to find the replacement of `wanted`.
///
/// The drive `wanted` itself runs, and first the drives with the smallest deficits. If some of them meet the limits,
/// each other drive runs whose deficit is at most [`NEAR`] times that of the best of them. That is the deficit if both
/// latencies are [`NEAR_ABOVE`] times too high in the short run; the other figures hardly change. `shorts` are the short
/// runs of all drives, since only deficits of short runs are comparable. Drives that clearly miss a limit run only if
/// all do.
pub fn replacements(
    candidates: &[Candidate],
    shorts: &[Candidate],
    wanted: &str,
    offered: Option<f64>,
) -> Vec<bool> {
    let of = |all: &'_ [Candidate], name: &str| all.iter().position(|one| one.drive == name);
    let (Some(replaced), Some(briefly)) = (of(candidates, wanted), of(shorts, wanted)) else {
        return contenders(candidates, offered);
    };
    let in_full = |at: usize| likeness::deficit(&candidates[replaced], &candidates[at]);
    let deficit = |at: usize| {
        let short = of(shorts, &candidates[at].drive).map(|at| &shorts[at]);
        likeness::deficit(&shorts[briefly], short.unwrap_or(&candidates[at]))
    };
    let others = (0..candidates.len()).filter(|&at| candidates[at].drive != wanted);
    let (screened, full): (Vec<usize>, Vec<usize>) =
        others.partition(|&at| candidates[at].screened);
    let open = screened.iter().copied();
    let mut open: Vec<usize> = open
        .filter(|&at| !misses(&candidates[at], offered))
        .collect();
    if open.is_empty() && full.is_empty() {
        open = screened;
    }
    open.sort_by(|&a, &b| deficit(a).total_cmp(&deficit(b)));
    let met = full.into_iter().filter(|&at| candidates[at].is_met());
    match met.min_by(|&a, &b| in_full(a).total_cmp(&in_full(b))) {
        Some(best) => {
            let bound = in_full(best).max(deficit(best)) * NEAR;
            let more = |at: usize| 1.0 + variation(completed(&candidates[at]));
            open.retain(|&at| deficit(at) <= bound * more(at));
        }
        None => open.truncate(CLOSEST),
    }
    let runs = |at: usize| {
        open.contains(&at) || (candidates[at].screened && candidates[at].drive == wanted)
    };
    (0..candidates.len()).map(runs).collect()
}

/// Selects the candidates with the largest margins to their limits.
fn closest(candidates: &[Candidate]) -> Vec<bool> {
    let key = |at: usize| {
        let one = &candidates[at];
        (one.room.unwrap_or(-1.0), one.completes.unwrap_or(0.0))
    };
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (key(a), key(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    let mut found = vec![false; candidates.len()];
    for &at in order.iter().take(CLOSEST) {
        found[at] = true;
    }
    found
}

#[cfg(test)]
mod tests;
