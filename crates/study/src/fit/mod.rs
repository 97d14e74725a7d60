//! Fitting: parameters of a catalogue file set so that the model does what was measured.
//!
//! Four uses share it. [`drive()`] makes a file for a drive that a user has measured with fio; [`host()`] one for the host
//! that fio ran on; [`from_sheet()`] one for a drive of which there is a data sheet; [`ledger()`] makes the catalogue's own
//! fits again, by its recipes. The first two search with Nelder and Mead's simplex over the logarithms of the parameters,
//! from several starts, the others along one of them, between values whose rows are known: simulations have no gradient, a parameter's scale is
//! its own size, and with fixed seeds the same search gives the same figures.
//!
//! Left out: what several parameters of the ledger could trade against each other (each is set with the others held).

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

pub use auto::{Tried, from_any};
pub use drive::{Fitted, Freed, Request, Residual, drive, median_error};
pub use host::{HostRequest, HostRun, host, read_host};
pub use ledger::{Choice, Moved, Refit, RowError, Step, figures, ledger};
pub use measured::{MeasuredRun, Quantity, Target, read};
pub use parameter::Parameter;
pub use recipe::{Recipe, Remark, Spot, Take, Values, read as read_recipes, recipes};
pub use rows::spots_of;
pub use sensitivity::{Sensitivity, sensitivity};
pub use sheet::{FromSheet, Met, TOLERANCE, from_sheet, ratings};
pub use write::rewritten;

/// First step of each parameter: a fifth up.
const STEP: f64 = 0.182;
/// How far from where it began a parameter may go, as a logarithm: a factor of five.
const FURTHEST: f64 = 1.609;
/// The search ends when the losses at the simplex's corners differ by less.
const SAME: f64 = 1e-6;

/// What the search minimises, over logarithms of factors on the starting values.
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

/// Places from which the search begins.
const STARTS: usize = 3;
/// How far from the base the second and further ones are, as a logarithm: half as much again or less.
const APART: f64 = 0.4;
/// A search has ended as well as another when its typical error is at most so many times the other's.
const ALIKE: f64 = 1.05;

/// What came of a search.
#[derive(Debug)]
struct Found {
    /// The point with the least loss.
    best: Vec<f64>,
    /// How far off figures are typically where each start ended, as the logarithm of a ratio.
    ends: Vec<f64>,
    /// How many starts had not come to rest when their iterations were spent.
    unfinished: usize,
}

/// What came of one descent.
struct Descent {
    least: f64,
    at: Vec<f64>,
    at_rest: bool,
}

/// Where a search begins: at the origin, then with every other parameter up and those between down, then by twos, and so on:
/// the signs of Hadamard's matrices.
fn start(dimensions: usize, number: usize) -> Vec<f64> {
    let sign = |index: usize| match ((index + 1) & number).count_ones() % 2 {
        0 => 1.0,
        _ => -1.0,
    };
    let away = if number == 0 { 0.0 } else { APART };
    (0..dimensions).map(|index| away * sign(index)).collect()
}

/// The point with the least loss that `evaluations` or so of it find from each of so many starts. The way to the bottom has corners and
/// side valleys, so one start may end beside it; from the best end a last search begins anew with a fresh simplex.
fn minimise(
    dimensions: usize,
    starts: usize,
    evaluations: u64,
    loss: &dyn Fn(&[f64]) -> f64,
) -> Result<Found, String> {
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
    Ok(Found {
        best: best.at,
        ends,
        unfinished,
    })
}

/// One search, from a place.
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

/// What the ends of several starts say: whether the search has found one bottom, in words.
fn starts_in_words(found: &Found) -> Option<String> {
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
        some => format!(" {some} of them had not come to rest: more `--iterations` may help."),
    };
    Some(format!(
        "Local optima: from {} starts the search ended {} off (typical figure); the best is taken.{rest}",
        ends.len(),
        text::words::listed(&each)
    ))
}

/// The loss of a figure that should be another: the square of the logarithm of their ratio while that is small, so that twice
/// as much and half as much are equally wrong, and in proportion to it beyond [`CLEARLY_OFF`]. With squares alone a 99.9th
/// percentile that no parameter reaches draws all means away from where they were measured. What cannot be computed is as
/// wrong as a factor of twenty.
fn loss_of(model: f64, wanted: f64) -> f64 {
    let ratio = model / wanted;
    let off = match ratio.is_finite() && ratio > 0.0 {
        true => libm::log(ratio).abs().min(3.0),
        false => 3.0,
    };
    // Pseudo-Huber: smooth, as a search by descent wants it.
    let scaled = off / CLEARLY_OFF;
    2.0 * CLEARLY_OFF * CLEARLY_OFF * (libm::sqrt(1.0 + scaled * scaled) - 1.0)
}

/// How far off, as a logarithm, a figure is of which the loss is this.
fn off_of(loss: f64) -> f64 {
    let root = 1.0 + loss.max(0.0) / (2.0 * CLEARLY_OFF * CLEARLY_OFF);
    CLEARLY_OFF * libm::sqrt(root * root - 1.0)
}

/// A figure that is further off than this, as a logarithm, is off for another reason than that a parameter is not quite right.
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
        let alike = Found {
            ends: vec![0.1, 0.102, 0.101],
            ..found
        };
        assert_eq!(starts_in_words(&alike), None);
        let found = minimise(3, STARTS, 5, &loss).expect("it ends");
        assert_eq!(found.unfinished, STARTS);
        assert!(starts_in_words(&found).is_some_and(|it| it.contains("3 of them had not come")));
    }

    #[test]
    fn the_search_keeps_within_its_bounds() {
        let found = minimise(1, STARTS, 100, &|at: &[f64]| -at[0]).expect("it converges");
        assert!((found.best[0] - FURTHEST).abs() < 0.05, "{:?}", found.best);
    }

    /// A valley of its own at the base, and a deeper one where the third start begins.
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
        let elsewhere = Found {
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
        // Twice as far costs four times as much where it is near, and twice as much where it is far.
        let far = |off: f64| loss_of(libm::exp(off), 1.0);
        assert!((off_of(far(0.7)) - 0.7).abs() < 1e-9);
        assert!((far(0.02) / far(0.01) - 4.0).abs() < 0.05);
        assert!((far(2.0) / far(1.0) - 2.0).abs() < 0.15);
    }
}
