//! Fitting: sets parameters of a catalogue file so that the model reproduces measurements.
//!
//! There are four uses. [`drive()`] makes a file for a drive that a user has measured with fio. [`host()`] makes one
//! for the host that ran fio. [`from_sheet()`] makes one for a drive with a data sheet. [`ledger()`] repeats the
//! catalogue's own fits by its recipes. The first two search over the logarithms of the parameters with Nelder and
//! Mead's simplex, from several starts. The other two search along one parameter, between values whose rows are known.
//! Reasons: simulations have no gradient, the scale of a parameter is its own size, and with fixed seeds the same
//! search gives the same figures.
//!
//! Not modelled: trade-offs between several parameters of the ledger (each is set while the others are held).

mod auto;
mod documents;
mod drive;
mod host;
mod ledger;
pub(crate) mod measured;
mod parameter;
mod recipe;
mod rows;
mod search;
mod sensitivity;
mod sheet;
pub(crate) mod sound;
mod unit;
mod volume;
mod write;

use argmin::core::{CostFunction, Error, Executor};
use argmin::solver::neldermead::NelderMead;

pub use auto::{BaseFit, from_any};
pub use drive::{FitRequest, FitResult, FittedParameter, Residual, drive, median_error};
pub use host::{HostRequest, HostRun, host, read_host};
pub use ledger::{RecipeFilter, Refit, RefitProgress, RefittedFigure, RowError, figures, ledger};
pub use measured::{MeasuredFigure, MeasuredRun, Quantity, read};
pub use parameter::Parameter;
pub use recipe::{
    AllowedValues, CatalogueKey, Recipe, Remark, TieBreak, read as read_recipes, recipes,
};
pub use rows::spots_of;
pub use sensitivity::{Sensitivity, sensitivity};
pub(crate) use sheet::small;
pub use sheet::{FromSheet, RatingResult, TOLERANCE, from_sheet, ratings};
pub use write::rewritten;

/// First step of each parameter, as a logarithm: 20 % up.
const STEP: f64 = 0.182;
/// Maximum distance of a parameter from its start, as a logarithm: a factor of five.
const FURTHEST: f64 = 1.609;
/// The search ends when the losses at the corners of the simplex differ by less than this.
const SAME: f64 = 1e-6;

/// The loss function that the search minimises, over logarithms of factors on the starting values.
struct Problem<'a> {
    loss: &'a (dyn Fn(&[f64]) -> f64 + 'a),
}

impl CostFunction for Problem<'_> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, at: &Vec<f64>) -> Result<f64, Error> {
        // Outside the bounds the loss grows with the distance, so that the simplex turns back.
        let outside: f64 = at.iter().map(|x| (x.abs() - FURTHEST).max(0.0)).sum();
        let inside: Vec<f64> = at.iter().map(|x| x.clamp(-FURTHEST, FURTHEST)).collect();
        Ok((self.loss)(&inside) + outside * outside)
    }
}

/// Number of starting points of a search.
const STARTS: usize = 3;
/// Distance of the second and later starts from the base, as a logarithm: at most a factor of 1.5.
const APART: f64 = 0.4;
/// Two searches end equally well if the typical error of one is at most this factor times the other's.
const ALIKE: f64 = 1.05;

/// Result of a search from several starts.
#[derive(Debug)]
struct SearchResult {
    /// The point with the least loss.
    best: Vec<f64>,
    /// Typical error at the end of each start, as the logarithm of a ratio.
    ends: Vec<f64>,
    /// Number of starts that had not converged when their iterations were used up.
    unfinished: usize,
}

/// Result of one descent.
struct Descent {
    least: f64,
    at: Vec<f64>,
    at_rest: bool,
}

/// Returns a starting point of the search: first the origin; then every other parameter up and the parameters between
/// down; then by twos, and so on. The signs are those of Hadamard matrices.
fn start(dimensions: usize, number: usize) -> Vec<f64> {
    let sign = |index: usize| match ((index + 1) & number).count_ones() % 2 {
        0 => 1.0,
        _ => -1.0,
    };
    let away = if number == 0 { 0.0 } else { APART };
    (0..dimensions).map(|index| away * sign(index)).collect()
}

/// Returns the point with the least loss, found from each of the starts with about `evaluations` evaluations. The
/// surface has corners and side valleys, so one start may end next to the minimum. A last search therefore begins from
/// the best end with a new simplex.
fn minimise(
    dimensions: usize,
    starts: usize,
    evaluations: u64,
    loss: &dyn Fn(&[f64]) -> f64,
) -> Result<SearchResult, String> {
    let descents: Vec<Descent> = (0..starts)
        .map(|number| descend(&start(dimensions, number), evaluations, loss))
        .collect::<Result<_, _>>()?;
    let ends = descents.iter().map(|it| off_of(it.least)).collect();
    let unfinished = descents.iter().filter(|it| !it.at_rest).count();
    let lower = |one: Descent, other: Descent| if other.least < one.least { other } else { one };
    let best = descents.into_iter().reduce(lower);
    let mut best = best.ok_or("the search has no start")?;
    if starts > 1 {
        let again = descend(&best.at, evaluations, loss)?;
        best = lower(best, again);
    }
    Ok(SearchResult {
        best: best.at,
        ends,
        unfinished,
    })
}

/// Runs one descent from a starting point.
fn descend(
    from: &[f64],
    evaluations: u64,
    loss: &dyn Fn(&[f64]) -> f64,
) -> Result<Descent, String> {
    let corner = |moved: usize| {
        let mut at = from.to_vec();
        if let Some(x) = moved.checked_sub(1).and_then(|index| at.get_mut(index)) {
            *x += STEP;
        }
        at
    };
    let simplex = (0..=from.len()).map(corner).collect();
    let failed = |error: Error| format!("the search failed: {error}");
    let solver = NelderMead::new(simplex)
        .with_sd_tolerance(SAME)
        .map_err(failed)?;
    let found = Executor::new(Problem { loss }, solver)
        .configure(|state| state.max_iters(evaluations))
        .run()
        .map_err(failed)?;
    let best = found.state.best_param.unwrap_or_else(|| from.to_vec());
    let inside = best.iter().map(|x| x.clamp(-FURTHEST, FURTHEST));
    Ok(Descent {
        least: found.state.best_cost,
        at: inside.collect(),
        at_rest: found.state.iter < evaluations,
    })
}

/// Returns a message if the ends of several starts differ, so that the search has not found a single minimum.
fn starts_in_words(found: &SearchResult) -> Option<String> {
    let ends = &found.ends;
    let least = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let off = |end: &f64| format!("{:.1} %", (libm::exp(*end) - 1.0) * 100.0);
    let alike = ends.iter().filter(|end| **end <= least * ALIKE).count();
    if ends.len() < 2 || alike == ends.len() {
        return None;
    }
    let each: Vec<String> = ends.iter().map(off).collect();
    let rest = match found.unfinished {
        0 => String::new(),
        some => format!(" {some} of them had not converged: more `--iterations` may help."),
    };
    Some(format!(
        "Local optima: from {} starts the search ended {} off (typical figure); the best is taken.{rest}",
        ends.len(),
        text::words::listed(&each)
    ))
}

/// Returns the loss of a figure against the wanted value. While the logarithm of their ratio is small, the loss is its
/// square, so that twice and half the value are equally wrong. Beyond [`CLEARLY_OFF`], the loss grows linearly. With
/// squares alone, one p99.9 that no parameter reaches would draw all means away from their measured values. A figure
/// that cannot be computed counts as off by a factor of twenty.
fn loss_of(model: f64, wanted: f64) -> f64 {
    let ratio = model / wanted;
    let off = match ratio.is_finite() && ratio > 0.0 {
        true => libm::log(ratio).abs().min(3.0),
        false => 3.0,
    };
    // Pseudo-Huber loss: smooth, as a search by descent needs it.
    let scaled = off / CLEARLY_OFF;
    2.0 * CLEARLY_OFF * CLEARLY_OFF * (libm::sqrt(1.0 + scaled * scaled) - 1.0)
}

/// Returns the error of a figure, as a logarithm, from its loss.
fn off_of(loss: f64) -> f64 {
    let root = 1.0 + loss.max(0.0) / (2.0 * CLEARLY_OFF * CLEARLY_OFF);
    CLEARLY_OFF * libm::sqrt(root * root - 1.0)
}

/// Error, as a logarithm, above which a figure is off for another reason than a slightly wrong parameter.
const CLEARLY_OFF: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_the_bottom_of_a_bowl() {
        let wanted = [0.7, -0.3, 0.05];
        let loss = |at: &[f64]| {
            let squares = at
                .iter()
                .zip(wanted)
                .map(|(x, want)| (x - want) * (x - want));
            squares.sum::<f64>()
        };
        let found = minimise(3, STARTS, 200, &loss).expect("it converges");
        assert_eq!(found.ends.len(), STARTS);
        for (x, want) in found.best.iter().zip(wanted) {
            assert!((x - want).abs() < 0.01, "{found:?}");
        }
        assert_eq!(found.unfinished, 0);
        let alike = SearchResult {
            ends: vec![0.1, 0.102, 0.101],
            ..found
        };
        assert_eq!(starts_in_words(&alike), None);
        let found = minimise(3, STARTS, 5, &loss).expect("it ends");
        assert_eq!(found.unfinished, STARTS);
        assert!(
            starts_in_words(&found).is_some_and(|it| it.contains("3 of them had not converged"))
        );
    }

    #[test]
    fn the_search_keeps_within_its_bounds() {
        let found = minimise(1, STARTS, 100, &|at: &[f64]| -at[0]).expect("it converges");
        assert!((found.best[0] - FURTHEST).abs() < 0.05, "{:?}", found.best);
    }

    /// A local minimum at the base, and a deeper minimum where the third start begins.
    #[test]
    fn the_search_leaves_a_local_optimum_and_says_so() {
        let to = |at: &[f64], place: [f64; 2]| {
            let squares = at.iter().zip(place).map(|(x, to)| (x - to) * (x - to));
            squares.sum::<f64>()
        };
        let loss = |at: &[f64]| (0.04 + to(at, [0.0, 0.0])).min(to(at, [0.5, -0.5]));
        let found = minimise(2, STARTS, 100, &loss).expect("it converges");
        assert!((found.best[0] - 0.5).abs() < 0.01, "{:?}", found.best);
        assert!(
            (found.ends[0] - off_of(0.04)).abs() < 0.01,
            "{:?}",
            found.ends
        );
        let elsewhere = SearchResult {
            ends: vec![0.2, 0.1, 0.101],
            ..found
        };
        let told = starts_in_words(&elsewhere).expect("one ended elsewhere");
        assert_eq!(
            told,
            "Local optima: from 3 starts the search ended 22.1 %, 10.5 % and 10.6 % off (typical figure); the best is taken."
        );
    }

    #[test]
    fn a_loss_is_symmetric_in_ratio() {
        assert!((loss_of(2.0, 1.0) - loss_of(1.0, 2.0)).abs() < 1e-12);
        assert_eq!(loss_of(3.0, 3.0), 0.0);
        assert_eq!(loss_of(f64::NAN, 1.0), loss_of(1e9, 1.0));
        // Twice the error costs four times as much if the error is small, and twice as much if it is large.
        let far = |off: f64| loss_of(libm::exp(off), 1.0);
        assert!((off_of(far(0.7)) - 0.7).abs() < 1e-9);
        assert!((far(0.02) / far(0.01) - 4.0).abs() < 0.05);
        assert!((far(2.0) / far(1.0) - 2.0).abs() < 0.15);
    }
}
