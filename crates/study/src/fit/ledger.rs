//! Repeats the catalogue's fits: sets the figures of each recipe from the rows that the recipe names.
//!
//! All other figures keep their catalogue values, so fits do not depend on each other: a fit gives the same result
//! alone as together with all others. The misfit of a row is its distance from the published figure (for a claim: from
//! holding), in units of the row's tolerance, squared. The spread between seeds is added to the tolerance. So an
//! interval is the range within one tolerance while every other figure is held. Intervals do not include trade-offs
//! between two parameters.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::recipe::{AllowedValues, CatalogueKey, Recipe, TieBreak};
use super::rows::{change, misfit, noise, noisy, reduced, value};
use super::search::{Line, MisfitFunction, WITHIN, as_well};
use super::unit::{self, UnitValues, numbers};
use crate::ledger::{
    Judgement, LedgerFile, LedgerRow, Memory, PublishedValue, RowResult, Selection, reproduce_with,
};
use catalogue::Figure;
use text::problem::{Problem, Problems, nearest};

/// Result of repeating one recipe.
#[derive(Clone, Debug)]
pub struct Refit {
    /// The figures of the recipe.
    pub figures: Vec<RefittedFigure>,
    /// Values of the first figure that are within a tolerance of the best; for choices, the choices within a
    /// tolerance. Empty if the catalogue's value was accepted at once and no search was made.
    pub interval: Vec<String>,
    /// Whether the interval ends at the lower and at the upper bound of the recipe.
    pub open: (bool, bool),
    /// Misfit in squared tolerances with the catalogue's values and with the fitted values, for one seed.
    pub misfit: [f64; 2],
    /// Whether the catalogue's value is within the interval.
    pub stands: bool,
    /// Number of values that were tried.
    pub tried: usize,
    /// The rows of the recipe, simulated with all seeds.
    pub rows: Vec<RowError>,
}

/// A figure of a recipe.
#[derive(Clone, Debug, PartialEq)]
pub struct RefittedFigure {
    /// Place of the figure in the catalogue.
    pub spot: CatalogueKey,
    /// The catalogue's value.
    pub catalogue: String,
    /// The fitted value.
    pub fitted: String,
    /// Fitted value divided by catalogue value, minus one; only for numbers.
    pub difference: Option<f64>,
}

/// A row of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct RowError {
    /// Id of the row.
    pub id: String,
    /// Subject of the row.
    pub what: String,
    /// The model's figure with the catalogue's values; NaN if it has none.
    pub before: f64,
    /// The model's figure with the fitted values.
    pub after: f64,
    /// The published figure, or the condition of a claim, as text.
    pub wanted: String,
}

/// Selects the recipes to repeat; all if nothing is named.
#[derive(Clone, Debug, Default)]
pub struct RecipeFilter {
    /// Keys of figures, as rows name them in `fixes`.
    pub free: Vec<String>,
    /// Drives: selects the recipes for figures in their files and in their families' files.
    pub drives: Vec<String>,
    /// Files of the catalogue, such as `nand/950pro-256` or `host/esxi-nuc`: selects the recipes for figures in these
    /// files.
    pub files: Vec<String>,
    /// Whether to search only where the catalogue's value is off by more than a tolerance.
    pub check: bool,
}

/// Progress of the fits.
#[derive(Clone, Copy, Debug)]
pub struct RefitProgress<'a> {
    /// Number of completed fits.
    pub done: usize,
    /// Total number of fits.
    pub of: usize,
    /// The first figure of the current recipe.
    pub at: &'a CatalogueKey,
    /// Number of its values that were tried.
    pub tried: usize,
}

/// Repeats the chosen recipes on all cores. `progress` is called for each value that is tried, `done` for each
/// completed fit.
///
/// # Errors
/// A recipe names an item that does not exist, the choice selects no recipe, or a measurement does not load.
pub fn ledger(
    files: &[LedgerFile],
    recipes: &[Recipe],
    choice: &RecipeFilter,
    progress: &(dyn Fn(RefitProgress<'_>) + Sync),
    done: &mut dyn FnMut(&Refit),
) -> Result<Vec<Refit>, Problems> {
    let benches = benches(files, recipes, choice)?;
    // One run with the catalogue's values is made for every recipe, all in parallel: it decides whether a search is
    // needed. A search keeps all cores busy by itself.
    let began = AtomicUsize::new(0);
    let now: Vec<Vec<RowResult>> = benches
        .par_iter()
        .with_max_len(1)
        .map(|bench| {
            let begun = began.fetch_add(1, Ordering::Relaxed);
            progress(bench.step(begun, benches.len(), 1));
            bench.results(&bench.catalogue(), false)
        })
        .collect::<Result<_, Problems>>()?;
    let mut now = now.into_iter();
    let refit = |bench: &RefitBench<'_>, tried: &TrialCallback<'_>| {
        bench.refit(now.next().unwrap_or_default(), choice.check, tried)
    };
    in_turn(&benches, progress, refit, done)
}

/// Called with the number of values that were tried.
pub(super) type TrialCallback<'a> = dyn Fn(usize) + Sync + 'a;

/// Runs the work on each bench in turn. `progress` is called for each value that is tried, `done` for each result.
pub(super) fn in_turn<'a, T>(
    benches: &[RefitBench<'a>],
    progress: &(dyn Fn(RefitProgress<'_>) + Sync),
    mut work: impl FnMut(&RefitBench<'a>, &TrialCallback<'_>) -> Result<T, Problems>,
    done: &mut dyn FnMut(&T),
) -> Result<Vec<T>, Problems> {
    let mut results = Vec::new();
    for (index, bench) in benches.iter().enumerate() {
        let tried = |tried| progress(bench.step(index, benches.len(), tried));
        let result = work(bench, &tried)?;
        done(&result);
        results.push(result);
    }
    Ok(results)
}

/// Returns the chosen recipes, prepared for work.
pub(super) fn benches<'a>(
    files: &[LedgerFile],
    recipes: &'a [Recipe],
    choice: &RecipeFilter,
) -> Result<Vec<RefitBench<'a>>, Problems> {
    let figures = figures()?;
    let mut problems = Problems::default();
    let mut benches = Vec::new();
    for recipe in chosen(recipes, choice)? {
        match RefitBench::new(files, recipe, &figures) {
            Ok(bench) => benches.push(bench),
            Err(found) => problems.0.extend(found.0),
        }
    }
    problems.or(benches)
}

/// Returns every figure of the catalogue by its place.
///
/// # Errors
/// A file does not load.
pub fn figures() -> Result<BTreeMap<CatalogueKey, Figure>, Problems> {
    let mut all: Vec<Figure> = Vec::new();
    for sheet in catalogue::drives()? {
        all.extend(sheet.figures);
    }
    for name in catalogue::host_names() {
        all.extend(catalogue::host(name)?.figures);
    }
    let by_spot = all.into_iter().map(|figure| {
        let spot = CatalogueKey {
            file: figure.file.clone(),
            key: figure.key.clone(),
        };
        (spot, figure)
    });
    Ok(by_spot.collect())
}

fn chosen<'a>(recipes: &'a [Recipe], choice: &RecipeFilter) -> Result<Vec<&'a Recipe>, Problems> {
    let mut problems = Problems::default();
    let keys: Vec<String> = recipes
        .iter()
        .flat_map(|recipe| recipe.figures.iter().map(CatalogueKey::fixed_as))
        .collect();
    for key in choice.free.iter().filter(|key| !keys.contains(key)) {
        let mut problem =
            Problems::whole("command line", format!("no row of the ledger fixes {key}"));
        let near = nearest(key, keys.iter().map(String::as_str));
        problem.0[0].help = near.map(|near| format!("did you mean {near}?"));
        problems.0.extend(problem.0);
    }
    let named: Vec<String> = choice.files.iter().map(|name| spot_file(name)).collect();
    let fitted = || recipes.iter().flat_map(|recipe| &recipe.figures);
    for name in named
        .iter()
        .filter(|name| fitted().all(|spot| spot.file != **name))
    {
        let what = format!("no row of the ledger fixes a figure of {name}");
        problems.0.extend(Problems::whole("command line", what).0);
    }
    let mut of_drives: Vec<String> = Vec::new();
    for drive in &choice.drives {
        match catalogue::drive(drive) {
            Ok(sheet) => of_drives.extend(sheet.figures.into_iter().map(|figure| figure.file)),
            Err(found) => problems.0.extend(found.0),
        }
    }
    let taken = |recipe: &&Recipe| {
        recipe.figures.iter().any(|spot| {
            (choice.free.is_empty() || choice.free.contains(&spot.fixed_as()))
                && (choice.drives.is_empty() || of_drives.contains(&spot.file))
                && (named.is_empty() || named.contains(&spot.file))
        })
    };
    let chosen: Vec<&Recipe> = recipes.iter().filter(taken).collect();
    if chosen.is_empty() && problems.0.is_empty() {
        let what = "none of the named figures is fitted to the ledger";
        problems = Problems::whole("command line", what);
    }
    problems.or(chosen)
}

/// Returns the path of a catalogue file from its short name.
fn spot_file(name: &str) -> String {
    let name = name.strip_prefix("catalogue/").unwrap_or(name);
    format!("catalogue/{}.toml", name.trim_end_matches(".toml"))
}

/// Returns the figures of the rows for these values of the recipe's figures; NaN where a row has none.
pub(super) type RowsAt<'a> = dyn Fn(&[String]) -> Vec<f64> + Sync + 'a;

/// A recipe with all that its search needs.
pub(super) struct RefitBench<'a> {
    pub(super) recipe: &'a Recipe,
    /// The catalogue's values of the recipe's figures, in their order: the text, and the numbers in it.
    held: Vec<(String, Option<UnitValues>)>,
    /// The rows, with the measurements that they need.
    files: Vec<LedgerFile>,
    /// Completed runs, reused where a value changes nothing or is tried with more seeds.
    memory: Memory,
}

impl<'a> RefitBench<'a> {
    fn new(
        files: &[LedgerFile],
        recipe: &'a Recipe,
        figures: &BTreeMap<CatalogueKey, Figure>,
    ) -> Result<RefitBench<'a>, Problems> {
        let mut problems = Problems::default();
        let mut wrong = |what: String| {
            problems.0.push(Problem {
                origin: recipe.origin.clone(),
                place: recipe.place.clone(),
                what,
                help: None,
            });
        };
        let mut held = Vec::new();
        for spot in &recipe.figures {
            let Some(figure) = figures.get(spot) else {
                wrong(format!("{} has no figure `{}`", spot.file, spot.key));
                continue;
            };
            held.push((figure.value.clone(), numbers(&figure.value)));
        }
        if let (AllowedValues::Between { unit, .. }, Some((words, numbers))) =
            (&recipe.values, held.first())
        {
            let first = numbers.as_ref().and_then(|(numbers, _)| numbers.first());
            let same = first.is_some_and(|(number, own)| {
                unit::number_in(&unit::words(*number, own), unit).is_some()
            });
            if !same {
                wrong(format!("{words} is not a number in `{unit}`"));
            }
        }
        let reduced = reduced(files, recipe, &mut wrong);
        problems.or(RefitBench {
            recipe,
            held,
            files: reduced,
            memory: Memory::default(),
        })
    }

    /// Returns the progress of the fits while this recipe is being fitted.
    fn step(&self, done: usize, of: usize, tried: usize) -> RefitProgress<'_> {
        RefitProgress {
            done,
            of,
            at: &self.recipe.figures[0],
            tried,
        }
    }

    /// Returns the catalogue's number of the first figure, in the recipe's unit.
    pub(super) fn first(&self, unit: &str) -> f64 {
        let numbers = self.held.first().and_then(|(_, numbers)| numbers.as_ref());
        let first = numbers.and_then(|(numbers, _)| numbers.first());
        first
            .and_then(|(number, own)| unit::number_in(&format!("{number} {own}"), unit))
            .unwrap_or(f64::NAN)
    }

    /// Returns all figures as text, with the first set to this number in the recipe's unit.
    pub(super) fn words_at(&self, number: f64, unit: &str) -> Vec<String> {
        let factor = number / self.first(unit);
        let all = self.held.iter().enumerate();
        all.map(|(index, (words, numbers))| match numbers {
            Some((parts, _)) => {
                let one = |(at, (held, own)): (usize, &(f64, String))| match index + at {
                    0 => unit::words(number, unit),
                    _ => unit::words(held * factor, own),
                };
                let parts: Vec<String> = parts.iter().enumerate().map(one).collect();
                parts.join(", ")
            }
            None => words.clone(),
        })
        .collect()
    }

    /// Returns the results of the rows with these values of the figures, for one seed or for all.
    pub(super) fn results(
        &self,
        words: &[String],
        all_seeds: bool,
    ) -> Result<Vec<RowResult>, Problems> {
        let own = self.recipe.figures.iter().cloned();
        let changes: BTreeMap<CatalogueKey, String> = own.zip(words.iter().cloned()).collect();
        let mut files = self.files.clone();
        for measurement in files.iter_mut().flat_map(|file| &mut file.measurements) {
            if !all_seeds {
                measurement.seeds = 1;
            }
            change(measurement, &changes)?;
        }
        Ok(reproduce_with(
            &files,
            &Selection::default(),
            &self.memory,
            &lab::to_the_end,
        )?
        .results)
    }

    /// Returns the figures of all `rows` with these values; none if the values contradict each other, so that no drive
    /// can be built.
    pub(super) fn values_at(&self, words: &[String], all_seeds: bool, rows: usize) -> Vec<f64> {
        let results = self.results(words, all_seeds);
        let none = vec![f64::NAN; rows];
        results.map_or(none, |results| results.iter().map(value).collect())
    }

    /// Returns the catalogue's values.
    pub(super) fn catalogue(&self) -> Vec<String> {
        self.held.iter().map(|(words, _)| words.clone()).collect()
    }

    /// Repeats the recipe. `once` is the result of one seed with the catalogue's values.
    fn refit(
        &self,
        once: Vec<RowResult>,
        check: bool,
        progress: &TrialCallback<'_>,
    ) -> Result<Refit, Problems> {
        let catalogue = self.catalogue();
        let rows = once.iter();
        let held: f64 = rows.map(|one| misfit(&one.row, value(one), 0.0)).sum();
        // No value is better than one without misfit, and more seeds only widen tolerances.
        if check && held <= WITHIN {
            return Ok(Refit {
                figures: self.moved_figures(&catalogue, &catalogue),
                interval: Vec::new(),
                open: (false, false),
                stands: true,
                misfit: [held, held],
                tried: 1,
                rows: row_errors(&once, &once),
            });
        }
        let before = self.results(&catalogue, true)?;
        let noise: Vec<f64> = before.iter().map(noise).collect();
        let misfit_of = |values: &[f64]| -> f64 {
            let rows = before.iter().zip(values).zip(&noise);
            rows.map(|((row, value), noise)| misfit(&row.row, *value, *noise))
                .sum()
        };
        let mut pairs = before.iter().zip(&noise);
        let all_seeds = pairs.any(|(row, noise)| noisy(&row.row, *noise));
        let tried = AtomicUsize::new(1);
        let values_at = |words: &[String]| -> Vec<f64> {
            progress(tried.fetch_add(1, Ordering::Relaxed) + 1);
            self.values_at(words, all_seeds, before.len())
        };
        let there = if all_seeds { &before } else { &once };
        let held = misfit_of(&there.iter().map(value).collect::<Vec<f64>>());
        let best = self.best(&values_at, &misfit_of);
        let least = misfit_of(&values_at(&best.words));
        let after = self.results(&best.words, true)?;
        Ok(Refit {
            figures: self.moved_figures(&catalogue, &best.words),
            interval: best.interval,
            open: best.open,
            stands: best.holds || held <= best.misfit + WITHIN,
            misfit: [held, least],
            tried: tried.into_inner(),
            rows: row_errors(&before, &after),
        })
    }

    /// Returns the search line of the first figure's numbers, in the recipe's unit.
    fn line<'b>(
        &'b self,
        from: f64,
        to: f64,
        unit: &'b str,
        values_at: &'b RowsAt<'b>,
    ) -> Line<'b> {
        Line {
            from,
            to,
            whole: unit.is_empty(),
            figures: Box::new(|number| values_at(&self.words_at(number, unit))),
        }
    }

    /// Returns each choice as the text of all figures, with the figures of the rows.
    fn try_all(&self, choices: &[String], values_at: &RowsAt<'_>) -> Vec<(Vec<String>, Vec<f64>)> {
        let all = |words: &String| vec![words.clone(); self.held.len()];
        let tried = choices.par_iter().map(|one| {
            let words = all(one);
            let values = values_at(&words);
            (words, values)
        });
        tried.collect()
    }

    /// Searches for the best values.
    fn best(&self, values_at: &RowsAt<'_>, misfit_of: &MisfitFunction<'_>) -> BestFit {
        match &self.recipe.values {
            AllowedValues::Between { from, to, unit } => {
                let line = self.line(*from, *to, unit, values_at);
                let found = line.search(self.recipe.take, misfit_of);
                let (low, high) = found.interval;
                let hair = 1e-3;
                let first = self.first(unit);
                BestFit {
                    words: self.words_at(found.value, unit),
                    interval: vec![unit::words(low, unit), unit::words(high, unit)],
                    open: (low <= from * (1.0 + hair), high >= to * (1.0 - hair)),
                    misfit: found.misfit,
                    holds: low * (1.0 - hair) <= first && first <= high * (1.0 + hair),
                }
            }
            AllowedValues::OneOf(choices) => {
                let tried = self.try_all(choices, values_at);
                let misfits: Vec<f64> = tried.iter().map(|(_, values)| misfit_of(values)).collect();
                let (taken, least, within) = choose(&misfits, self.recipe.take);
                let within: Vec<String> = within.iter().map(|at| choices[*at].clone()).collect();
                let held = self.held.first();
                BestFit {
                    words: tried[taken].0.clone(),
                    holds: held.is_some_and(|(words, _)| within.contains(words)),
                    interval: within,
                    open: (false, false),
                    misfit: least,
                }
            }
        }
    }

    fn moved_figures(&self, catalogue: &[String], fitted: &[String]) -> Vec<RefittedFigure> {
        let pairs = catalogue.iter().zip(fitted);
        let spots = self.recipe.figures.iter().zip(pairs);
        spots
            .map(|(spot, (catalogue, fitted))| {
                let first = |words: &str| Some(numbers(words)?.0.first()?.clone());
                let ratio = first(catalogue).zip(first(fitted)).and_then(|(was, is)| {
                    let is = unit::number_in(&format!("{} {}", is.0, is.1), &was.1)?;
                    (was.0 != 0.0).then_some(is / was.0 - 1.0)
                });
                RefittedFigure {
                    spot: spot.clone(),
                    catalogue: catalogue.clone(),
                    fitted: fitted.clone(),
                    difference: ratio,
                }
            })
            .collect()
    }
}

/// Result of a search.
struct BestFit {
    words: Vec<String>,
    interval: Vec<String>,
    open: (bool, bool),
    misfit: f64,
    /// Whether the catalogue's value is within the interval.
    holds: bool,
}

/// Returns the choice that is taken, the least misfit, and the choices within a tolerance of it.
fn choose(misfits: &[f64], take: TieBreak) -> (usize, f64, Vec<usize>) {
    let least = misfits.iter().copied().fold(f64::INFINITY, f64::min);
    let within = |limit: f64| -> Vec<usize> {
        (0..misfits.len())
            .filter(|at| misfits[*at] <= limit)
            .collect()
    };
    let best = within(as_well(least));
    let taken = match take {
        TieBreak::Largest => best.last(),
        TieBreak::Smallest | TieBreak::Middle => best.first(),
    };
    (
        taken.copied().unwrap_or_default(),
        least,
        within(least + WITHIN),
    )
}

fn row_errors(before: &[RowResult], after: &[RowResult]) -> Vec<RowError> {
    let both = before.iter().zip(after);
    both.map(|(before, after)| RowError {
        id: before.row.id.clone(),
        what: before.row.what.clone(),
        before: value(before),
        after: value(after),
        wanted: wanted(&before.row),
    })
    .collect()
}

/// Returns the published figure, or the condition of a claim, as text.
fn wanted(row: &LedgerRow) -> String {
    match (row.judgement, &row.published) {
        (Judgement::Equals(_), PublishedValue::Number(number)) => number.to_string(),
        (judgement, _) => judgement.words(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_within_a_tolerance_are_told() {
        assert_eq!(
            choose(&[9.0, 0.3, 0.305, 1.2], TieBreak::Smallest),
            (1, 0.3, vec![1, 2, 3])
        );
        assert_eq!(
            choose(&[9.0, 0.3, 0.305, 1.4], TieBreak::Largest),
            (2, 0.3, vec![1, 2])
        );
    }
}
