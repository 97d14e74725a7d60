//! Sensitivity of rows to a parameter: how much the figure of each row that could set the parameter changes with it.
//!
//! A recipe has the rows that its parameter is set from. It may name `others`, which also depend on the parameter and
//! are predictions. The figures of all these rows are computed with the parameter 10 % below and 10 % above the
//! catalogue's value, while every other figure is held. The published figures are not used. See docs/decisions/0023.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::ledger::{RecipeFilter, RefitBench, RefitProgress, TrialCallback, benches, in_turn};
use super::recipe::{AllowedValues, CatalogueKey, Recipe};
use crate::ledger::{LedgerFile, RowResult};
use text::problem::Problems;

/// Change of the parameter in either direction, as a share.
const STEP: f64 = 0.1;

/// Dependence of a row's figure on a recipe's parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// The recipe's first figure.
    pub spot: CatalogueKey,
    /// Id of the row.
    pub id: String,
    /// Subject of the row.
    pub what: String,
    /// Whether the parameter is set from this row.
    pub sets: bool,
    /// The least and the greatest value that were tried, as text.
    pub values: [String; 2],
    /// The model's figure with these values; NaN if it has none.
    pub figures: [f64; 2],
    /// |d ln figure / d ln parameter|; for a choice, the logarithm of the ratio of the figures. NaN if a figure is
    /// missing.
    pub slope: f64,
}

/// Computes how much the rows of the chosen recipes, and the `others` that they name, depend on their parameters, in
/// the order of recipes and rows. `progress` is called for each value that is tried, `done` for the rows of each
/// completed recipe.
///
/// # Errors
/// As [`super::ledger()`].
pub fn sensitivity(
    files: &[LedgerFile],
    recipes: &[Recipe],
    choice: &RecipeFilter,
    progress: &(dyn Fn(RefitProgress<'_>) + Sync),
    done: &mut dyn FnMut(&[Sensitivity]),
) -> Result<Vec<Sensitivity>, Problems> {
    let with_others: Vec<Recipe> = recipes
        .iter()
        .map(|recipe| Recipe {
            rows: [&recipe.rows[..], &recipe.others[..]].concat(),
            ..recipe.clone()
        })
        .collect();
    let benches = benches(files, &with_others, choice)?;
    let of_each = in_turn(&benches, progress, RefitBench::sensitivity, &mut |rows| {
        done(rows)
    })?;
    Ok(of_each.concat())
}

impl RefitBench<'_> {
    fn sensitivity(&self, progress: &TrialCallback<'_>) -> Result<Vec<Sensitivity>, Problems> {
        let rows = self.results(&self.catalogue(), false)?;
        let tried = AtomicUsize::new(0);
        let at = |words: &Vec<String>| -> Vec<f64> {
            progress(tried.fetch_add(1, Ordering::Relaxed) + 1);
            self.values_at(words, true, rows.len())
        };
        let trials = self.trials();
        let figures: Vec<Vec<f64>> = trials.par_iter().map(|(words, _)| at(words)).collect();
        let one = |(index, row): (usize, &RowResult)| {
            let known = trials.iter().zip(&figures);
            let mut known: Vec<(&str, f64, f64)> = known
                .map(|((words, place), figures)| (&*words[0], *place, figures[index]))
                .filter(|(_, _, figure)| figure.is_finite())
                .collect();
            // Choices have no order.
            if let AllowedValues::OneOf(_) = self.recipe.values {
                known.sort_by(|a, b| a.2.total_cmp(&b.2));
            }
            let ends = known.first().zip(known.last());
            let ends = ends.map(|(low, high)| {
                let by = if high.1 > low.1 { high.1 - low.1 } else { 1.0 };
                let slope = libm::log(high.2 / low.2) / by;
                ([low.0, high.0], [low.2, high.2], slope.abs())
            });
            let (values, figures, slope) = ends.unwrap_or((["-"; 2], [f64::NAN; 2], f64::NAN));
            Sensitivity {
                spot: self.recipe.figures[0].clone(),
                id: row.row.id.clone(),
                what: row.row.what.clone(),
                sets: !self.recipe.others.contains(&row.row.id),
                values: values.map(str::to_owned),
                figures,
                slope,
            }
        };
        Ok(rows.iter().enumerate().map(one).collect())
    }

    /// Returns the values to try, each with the logarithm of its number; choices have none. The catalogue's value is
    /// included, because an end of the range may not give a valid drive.
    fn trials(&self) -> Vec<(Vec<String>, f64)> {
        match &self.recipe.values {
            AllowedValues::Between { unit, .. } => {
                let held = self.first(unit);
                let (mut low, mut high) = (held * (1.0 - STEP), held * (1.0 + STEP));
                if unit.is_empty() {
                    low = low.round().min(held - 1.0);
                    high = high.round().max(held + 1.0);
                }
                let trial = |number: f64| (self.words_at(number, unit), libm::log(number));
                [low, held, high].map(trial).to_vec()
            }
            AllowedValues::OneOf(choices) => {
                let all = |words: &String| (vec![words.clone(); self.catalogue().len()], 0.0);
                choices.iter().map(all).collect()
            }
        }
    }
}
