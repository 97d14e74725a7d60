//! Leave one out: how well a recipe's other rows predict the one that was not fitted to.
//!
//! Of each recipe with more rows than the one number it is about, each row is left out once, the recipe is made again
//! from the others, and the model's figure for the row at that value is compared with the published one. All other
//! figures of the catalogue are held, and some of them were set from the row that is left out or from its neighbours:
//! so this tells whether the rows of a recipe agree with each other in the model, which is less than a prediction. What
//! is left must have a row that is judged by a number: bounds alone set nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::ledger::{Bench, Choice, RowsAt, Step, benches, wanted};
use super::recipe::{Recipe, Spot, Values};
use super::rows::{misfit, noise, noisy, value};
use super::search::Misfit;
use crate::ledger::{Class, Errors, File, Result as RowResult, Verdict};
use crate::problem::Problems;

/// A row, as the others of its recipe predict it.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Its id.
    pub id: String,
    /// What it is about.
    pub what: String,
    /// Whether its metric has a deep tail.
    pub class: Class,
    /// The recipe's first figure.
    pub spot: Spot,
    /// Its value in the catalogue, fitted to all rows.
    pub catalogue: String,
    /// Its value from the other rows.
    pub fitted: String,
    /// The published figure, or the condition of a claim, in words.
    pub wanted: String,
    /// The model's figure with the catalogue's value.
    pub with: f64,
    /// The model's figure at the value from the other rows; NaN if it has none.
    pub without: f64,
    /// Whether it is judged by a number; a claim holds or does not.
    pub judged: bool,
    /// That over the published figure less one; none of a claim.
    pub error: Option<f64>,
    /// Whether it is within the row's tolerance, or the claim holds.
    pub holds: bool,
}

impl LeftOut {
    /// How far off those are that are judged by a number: all, or those of a class.
    pub fn errors(rows: &[LeftOut], class: Option<Class>) -> Errors {
        let of_class = |row: &&LeftOut| class.is_none_or(|class| class == row.class);
        let judged = rows.iter().filter(|row| row.judged).filter(of_class);
        Errors::over(judged.map(|row| row.error))
    }
}

/// Leaves out each row of the chosen recipes in turn. Recipes of one row, and rows without which only bounds are left,
/// give nothing. `progress` is told of each value that is tried, `done` of each recipe's rows as they come.
///
/// # Errors
/// As [`super::ledger()`].
pub fn left_out(
    files: &[File],
    recipes: &[Recipe],
    choice: &Choice,
    progress: &(dyn Fn(Step<'_>) + Sync),
    done: &mut dyn FnMut(&[LeftOut]),
) -> Result<Vec<LeftOut>, Problems> {
    let mut benches = benches(files, recipes, choice)?;
    benches.retain(|bench| bench.recipe.rows.len() + bench.recipe.remarks.len() > 1);
    let mut all = Vec::new();
    for (index, bench) in benches.iter().enumerate() {
        let step = |tried| {
            progress(Step {
                done: index,
                of: benches.len(),
                at: &bench.recipe.figures[0],
                tried,
            });
        };
        let rows = bench.left_out(&step)?;
        done(&rows);
        all.extend(rows);
    }
    Ok(all)
}

impl Bench<'_> {
    fn left_out(&self, progress: &(dyn Fn(usize) + Sync)) -> Result<Vec<LeftOut>, Problems> {
        let held = self.results(&self.catalogue(), true)?;
        let noise: Vec<f64> = held.iter().map(noise).collect();
        let judged = |index: usize| held[index].row.judgement.has_error();
        let rest_is_judged = |out: &usize| (0..held.len()).any(|at| at != *out && judged(at));
        let outs: Vec<usize> = (0..held.len()).filter(rest_is_judged).collect();
        if outs.is_empty() {
            return Ok(Vec::new());
        }
        let all_seeds = (held.iter().zip(&noise)).any(|(one, noise)| noisy(&one.row, *noise));
        let tried = AtomicUsize::new(0);
        let values_at = |words: &[String]| -> Vec<f64> {
            progress(tried.fetch_add(1, Ordering::Relaxed) + 1);
            self.values_at(words, all_seeds, held.len())
        };
        let without = |out: usize| {
            let (held, noise) = (&held, &noise);
            move |values: &[f64]| -> f64 {
                let rest = (0..held.len()).filter(|at| *at != out);
                rest.map(|at| misfit(&held[at].row, values[at], noise[at]))
                    .sum()
            }
        };
        let misfits: Vec<_> = outs.iter().map(|out| without(*out)).collect();
        let misfits: Vec<&Misfit<'_>> = misfits.iter().map(|one| one as _).collect();
        let fitted = self.best_of(&values_at, &misfits);
        let predicted: Vec<Vec<RowResult>> = fitted
            .par_iter()
            .map(|words| self.results(words, true))
            .collect::<Result<_, _>>()?;
        let rows = outs.iter().zip(fitted.iter().zip(&predicted));
        Ok(rows
            .map(|(out, (words, results))| self.row(&held[*out], words, &results[*out]))
            .collect())
    }

    /// For each misfit the best words of all figures.
    fn best_of(&self, values_at: &RowsAt<'_>, misfits: &[&Misfit<'_>]) -> Vec<Vec<String>> {
        match &self.recipe.values {
            Values::Between { from, to, unit } => {
                let line = self.line(*from, *to, unit, values_at);
                let found = line.search_near(self.first(unit), self.recipe.take, misfits);
                let words = found.iter().map(|number| self.words_at(*number, unit));
                words.collect()
            }
            Values::OneOf(choices) => {
                let tried = self.try_all(choices, values_at);
                let best = |misfit: &&Misfit<'_>| {
                    let least = |(_, values): &&(_, Vec<f64>)| misfit(values);
                    let best = tried.iter().min_by(|a, b| least(a).total_cmp(&least(b)));
                    best.map_or_else(|| self.catalogue(), |(words, _)| words.clone())
                };
                misfits.iter().map(best).collect()
            }
        }
    }

    fn row(&self, held: &RowResult, words: &[String], predicted: &RowResult) -> LeftOut {
        let without = value(predicted);
        let row = &held.row;
        LeftOut {
            id: row.id.clone(),
            what: row.what.clone(),
            class: Class::of(row),
            spot: self.recipe.figures[0].clone(),
            catalogue: self.catalogue()[0].clone(),
            fitted: words[0].clone(),
            wanted: wanted(row),
            with: value(held),
            without,
            judged: row.judgement.has_error(),
            error: predicted.error,
            holds: predicted.verdict == Verdict::Holds,
        }
    }
}
