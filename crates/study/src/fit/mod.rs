//! Fitting: parameters of a catalogue file set so that the model does what was measured.
//!
//! Four uses share it. [`drive()`] makes a file for a drive that a user has measured with fio; [`host()`] one for the host
//! that fio ran on; [`from_sheet()`] one for a drive of which there is a data sheet; [`ledger()`] makes the catalogue's own
//! fits again, by its recipes. The first two search with Nelder and Mead's simplex over the logarithms of the parameters,
//! the others along one of them, between values whose rows are known: simulations have no gradient, a parameter's scale is
//! its own size, and with fixed seeds the same search gives the same figures.
//!
//! Left out: what several parameters of the ledger could trade against each other (each is set with the others held).

mod auto;
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
mod sound;
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

/// The point with the least loss that `evaluations` or so of it find, from the origin.
fn minimise(
    dimensions: usize,
    evaluations: u64,
    loss: &dyn Fn(&[f64]) -> f64,
) -> Result<Vec<f64>, String> {
    let corner = |moved: usize| {
        let mut at = vec![0.0; dimensions];
        if let Some(x) = moved.checked_sub(1).and_then(|index| at.get_mut(index)) {
            *x = STEP;
        }
        at
    };
    let simplex = (0..=dimensions).map(corner).collect();
    let failed = |error: Error| format!("the search failed: {error}");
    let solver = NelderMead::new(simplex)
        .with_sd_tolerance(SAME)
        .map_err(failed)?;
    let found = Executor::new(Problem { loss }, solver)
        .configure(|state| state.max_iters(evaluations))
        .run()
        .map_err(failed)?;
    let best = found
        .state
        .best_param
        .unwrap_or_else(|| vec![0.0; dimensions]);
    Ok(best.iter().map(|x| x.clamp(-FURTHEST, FURTHEST)).collect())
}

/// The loss of a figure that should be another: the square of the logarithm of their ratio, so that twice as much and
/// half as much are equally wrong. What cannot be computed is as wrong as a factor of twenty.
fn loss_of(model: f64, wanted: f64) -> f64 {
    let ratio = model / wanted;
    if ratio.is_finite() && ratio > 0.0 {
        let log = libm::log(ratio);
        (log * log).min(9.0)
    } else {
        9.0
    }
}

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
        let found = minimise(3, 200, &loss).expect("it converges");
        for (x, want) in found.iter().zip(wanted) {
            assert!((x - want).abs() < 0.01, "{found:?}");
        }
    }

    #[test]
    fn the_search_keeps_within_its_bounds() {
        let found = minimise(1, 100, &|at: &[f64]| -at[0]).expect("it converges");
        assert!((found[0] - FURTHEST).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn a_loss_is_symmetric_in_ratio() {
        assert!((loss_of(2.0, 1.0) - loss_of(1.0, 2.0)).abs() < 1e-12);
        assert_eq!(loss_of(3.0, 3.0), 0.0);
        assert_eq!(loss_of(f64::NAN, 1.0), 9.0);
    }
}
