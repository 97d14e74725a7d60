//! The catalogue's fits, made again: each recipe's figures set from the rows it names.
//!
//! All else is as the catalogue has it, or as a recipe before found it where the catalogue's value did not stand. A
//! row's misfit is its distance from the published figure (of a claim: from holding) in units of the row's tolerance,
//! squared; how much seeds differ is added to the tolerance. So intervals are those of one tolerance, with everything
//! else held where it is: what two parameters could trade against each other is not in them.

use std::collections::BTreeMap;

use super::recipe::{Recipe, Spot, Take, Values};
use super::search::{Found, Line};
use super::unit;
use crate::catalogue::{self, Change, Figure};
use crate::ledger::{
    Evidence, File, Judgement, Measurement, Published, Result as RowResult, Row, Selection,
    Tolerance, Work, reproduce,
};
use crate::problem::{Problem, Problems, nearest};

/// One recipe, made again.
#[derive(Clone, Debug)]
pub struct Refit {
    /// Its figures.
    pub figures: Vec<Moved>,
    /// Values of the first figure that are within a tolerance of the best; of choices those that are.
    pub interval: Vec<String>,
    /// Whether the interval ends at a bound of the recipe: below, above.
    pub open: (bool, bool),
    /// Misfit in squared tolerances with the catalogue's values and with the fitted ones, with one seed.
    pub misfit: [f64; 2],
    /// Whether the catalogue's value is within the interval.
    pub stands: bool,
    /// The rows they were fitted to, with all seeds.
    pub rows: Vec<RowError>,
}

/// A figure of a recipe.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// Where it stands.
    pub spot: Spot,
    /// The catalogue's value.
    pub catalogue: String,
    /// The fitted one.
    pub fitted: String,
    /// Fitted over catalogue less one, of numbers.
    pub difference: Option<f64>,
}

/// A row of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct RowError {
    /// Its id.
    pub id: String,
    /// What it is about.
    pub what: String,
    /// The model's figure with the catalogue's values; NaN if it has none.
    pub before: f64,
    /// The same with the fitted ones.
    pub after: f64,
    /// The published figure, or the condition of a claim, in words.
    pub wanted: String,
}

/// Which recipes are made again: all if nothing is named.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Keys of figures, as rows name them in `fixes`.
    pub free: Vec<String>,
    /// Drives: the recipes of figures of their files and of their families'.
    pub drives: Vec<String>,
}

/// The misfit of values that make no drive, or of a row without a figure.
const HOPELESS: f64 = 400.0;
/// What a claim may be off by to count as one tolerance.
const CLAIM: f64 = 0.05;

/// Makes recipes again. `progress` is told the figure and the evaluations so far, `done` each fit as it comes.
///
/// # Errors
/// A recipe names what is not there, the choice takes none, a measurement does not load.
pub fn ledger(
    files: &[File],
    recipes: &[Recipe],
    choice: &Choice,
    progress: &(dyn Fn(&str, u64) + Sync),
    done: &mut dyn FnMut(&Refit),
) -> Result<Vec<Refit>, Problems> {
    let figures = figures()?;
    let chosen = chosen(recipes, choice)?;
    let mut moved: Vec<(Spot, String)> = Vec::new();
    let mut refits = Vec::new();
    for recipe in chosen {
        let bench = Bench::new(files, recipe, &figures, moved.clone())?;
        let refit = bench.refit(progress)?;
        done(&refit);
        if !refit.stands {
            let found = refit.figures.iter();
            moved.extend(found.map(|one| (one.spot.clone(), one.fitted.clone())));
        }
        refits.push(refit);
    }
    Ok(refits)
}

/// Every figure of the catalogue by its place.
///
/// # Errors
/// A file does not load.
pub fn figures() -> Result<BTreeMap<Spot, Figure>, Problems> {
    let mut all: Vec<Figure> = Vec::new();
    for sheet in catalogue::drives()? {
        all.extend(sheet.figures);
    }
    for name in catalogue::host_names() {
        all.extend(catalogue::host(name)?.figures);
    }
    let by_spot = all.into_iter().map(|figure| {
        let spot = Spot {
            file: figure.file.clone(),
            key: figure.key.clone(),
        };
        (spot, figure)
    });
    Ok(by_spot.collect())
}

fn chosen<'a>(recipes: &'a [Recipe], choice: &Choice) -> Result<Vec<&'a Recipe>, Problems> {
    let mut problems = Problems::default();
    let keys: Vec<String> = recipes
        .iter()
        .flat_map(|recipe| recipe.figures.iter().map(Spot::fixed_as))
        .collect();
    for key in choice.free.iter().filter(|key| !keys.contains(key)) {
        let mut problem =
            Problems::whole("command line", format!("no row of the ledger fixes {key}"));
        let near = nearest(key, keys.iter().map(String::as_str));
        problem.0[0].help = near.map(|near| format!("did you mean {near}?"));
        problems.0.extend(problem.0);
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
        })
    };
    let chosen: Vec<&Recipe> = recipes.iter().filter(taken).collect();
    if chosen.is_empty() && problems.0.is_empty() {
        let what = "nothing of what was named is fitted to the ledger";
        problems = Problems::whole("command line", what);
    }
    problems.or(chosen)
}

/// A recipe at work.
struct Bench<'a> {
    recipe: &'a Recipe,
    /// The catalogue's values of its figures, in their order: words, and the numbers in them.
    held: Vec<(String, Option<Numbers>)>,
    /// The rows with the measurements they need.
    files: Vec<File>,
    /// What recipes before have moved.
    moved: Vec<(Spot, String)>,
}

/// The numbers of a figure, with their units, and whether it is a list.
type Numbers = (Vec<(f64, String)>, bool);

fn numbers(words: &str) -> Option<Numbers> {
    let parts: Option<Vec<(f64, String)>> = words.split(',').map(unit::split).collect();
    Some((parts?, words.contains(',')))
}

/// Words of a list as a file has them.
fn as_written(words: &str) -> String {
    match numbers(words) {
        Some((_, true)) => format!("[\"{}\"]", words.replace(", ", "\", \"")),
        _ => words.to_owned(),
    }
}

impl<'a> Bench<'a> {
    fn new(
        files: &[File],
        recipe: &'a Recipe,
        figures: &BTreeMap<Spot, Figure>,
        moved: Vec<(Spot, String)>,
    ) -> Result<Bench<'a>, Problems> {
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
            let before = moved.iter().rev().find(|(known, _)| known == spot);
            let words = before.map_or(&figure.value, |(_, words)| words);
            held.push((words.clone(), numbers(words)));
        }
        if let (Values::Between { unit, .. }, Some((words, numbers))) =
            (&recipe.values, held.first())
        {
            let first = numbers.as_ref().and_then(|(numbers, _)| numbers.first());
            let same = first.is_some_and(|(number, own)| {
                unit::number_in(&unit::words(*number, own), unit).is_some()
            });
            if !same {
                wrong(format!("{words} is no number in `{unit}`"));
            }
        }
        let reduced = reduced(files, recipe, &mut wrong);
        problems.or(Bench {
            recipe,
            held,
            files: reduced,
            moved,
        })
    }

    /// The catalogue's number of the first figure, in the recipe's unit.
    fn first(&self, unit: &str) -> f64 {
        let numbers = self.held.first().and_then(|(_, numbers)| numbers.as_ref());
        let first = numbers.and_then(|(numbers, _)| numbers.first());
        first
            .and_then(|(number, own)| unit::number_in(&format!("{number} {own}"), unit))
            .unwrap_or(f64::NAN)
    }

    /// All figures in words, with the first at this number of the recipe's unit.
    fn words_at(&self, number: f64, unit: &str) -> Vec<String> {
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

    /// The rows with figures in these words; one seed, or all.
    fn results(&self, words: &[String], all_seeds: bool) -> Result<Vec<RowResult>, Problems> {
        let own = self
            .recipe
            .figures
            .iter()
            .cloned()
            .zip(words.iter().cloned());
        // The last of a figure's values holds.
        let mut changes: BTreeMap<Spot, String> = self.moved.iter().cloned().collect();
        changes.extend(own);
        let mut files = self.files.clone();
        for measurement in files.iter_mut().flat_map(|file| &mut file.measurements) {
            if !all_seeds {
                measurement.seeds = 1;
            }
            change(measurement, &changes)?;
        }
        Ok(reproduce(&files, &Selection::default(), &|_| {})?.results)
    }

    fn refit(&self, progress: &(dyn Fn(&str, u64) + Sync)) -> Result<Refit, Problems> {
        let name = self.recipe.figures.first().map_or("", |spot| &spot.key);
        let mut evaluations = 0;
        let catalogue: Vec<String> = self.held.iter().map(|(words, _)| words.clone()).collect();
        progress(name, 0);
        let before = self.results(&catalogue, true)?;
        let noise: Vec<f64> = before.iter().map(noise).collect();
        let mut misfit_of = |words: &[String]| {
            evaluations += 1;
            progress(name, evaluations);
            // Values that contradict each other are no drive at all.
            self.results(words, false).map_or(HOPELESS, |results| {
                let rows = results.iter().zip(&noise);
                rows.map(|(result, noise)| misfit(&result.row, value(result), *noise))
                    .sum()
            })
        };
        let held = misfit_of(&catalogue);
        let (fitted, interval, open, least, inside) = match &self.recipe.values {
            Values::Between { from, to, unit } => {
                let mut at = |number: f64| Ok(misfit_of(&self.words_at(number, unit)));
                let found = Line::new(*from, *to, unit.is_empty(), &mut at)
                    .search(self.recipe.take)
                    .map_err(|what| Problems::whole("fit", what))?;
                let Found {
                    value,
                    interval: (low, high),
                    misfit,
                } = found;
                let hair = 1e-3;
                let first = self.first(unit);
                let inside = low * (1.0 - hair) <= first && first <= high * (1.0 + hair);
                let ends = vec![unit::words(low, unit), unit::words(high, unit)];
                let open = (low <= from * (1.0 + hair), high >= to * (1.0 - hair));
                (self.words_at(value, unit), ends, open, misfit, inside)
            }
            Values::OneOf(choices) => {
                let all = |words: &String| vec![words.clone(); self.held.len()];
                let misfits: Vec<f64> = choices.iter().map(|one| misfit_of(&all(one))).collect();
                let (taken, least, within) = choose(&misfits, self.recipe.take);
                let within: Vec<String> = within.iter().map(|at| choices[*at].clone()).collect();
                let inside = catalogue
                    .first()
                    .is_some_and(|words| within.contains(words));
                (all(&choices[taken]), within, (false, false), least, inside)
            }
        };
        let misfit = [held, misfit_of(&fitted)];
        let after = self.results(&fitted, true)?;
        Ok(Refit {
            figures: self.moved_figures(&catalogue, &fitted),
            interval,
            open,
            stands: inside || held <= least + 1.0,
            misfit,
            rows: row_errors(&before, &after),
        })
    }

    fn moved_figures(&self, catalogue: &[String], fitted: &[String]) -> Vec<Moved> {
        let pairs = catalogue.iter().zip(fitted);
        let spots = self.recipe.figures.iter().zip(pairs);
        spots
            .map(|(spot, (catalogue, fitted))| {
                let first = |words: &str| Some(numbers(words)?.0.first()?.clone());
                let ratio = first(catalogue).zip(first(fitted)).and_then(|(was, is)| {
                    let is = unit::number_in(&format!("{} {}", is.0, is.1), &was.1)?;
                    (was.0 != 0.0).then_some(is / was.0 - 1.0)
                });
                Moved {
                    spot: spot.clone(),
                    catalogue: catalogue.clone(),
                    fitted: fitted.clone(),
                    difference: ratio,
                }
            })
            .collect()
    }
}

/// The choice that is taken, the least misfit, and the choices that are within a tolerance of it.
fn choose(misfits: &[f64], take: Take) -> (usize, f64, Vec<usize>) {
    let least = misfits.iter().copied().fold(f64::INFINITY, f64::min);
    let within = |over: f64| -> Vec<usize> {
        (0..misfits.len())
            .filter(|at| misfits[*at] <= least + over)
            .collect()
    };
    let best = within(0.01);
    let taken = match take {
        Take::Largest => best.last(),
        Take::Smallest | Take::Middle => best.first(),
    };
    (taken.copied().unwrap_or_default(), least, within(1.0))
}

/// The files with the recipe's rows, remarks as rows, and the measurements these need.
fn reduced(files: &[File], recipe: &Recipe, wrong: &mut dyn FnMut(String)) -> Vec<File> {
    let known = |id: &str| {
        files
            .iter()
            .flat_map(|file| &file.rows)
            .find(|row| row.id == id)
    };
    for id in recipe.rows.iter().filter(|id| known(id).is_none()) {
        wrong(format!("the ledger has no row {id}"));
    }
    let mut reduced = files.to_vec();
    for file in &mut reduced {
        file.rows.retain(|row| recipe.rows.contains(&row.id));
    }
    for remark in &recipe.remarks {
        let row = known(&remark.row);
        let home = reduced.iter_mut().find(|file| file.origin == remark.ledger);
        let (Some(row), Some(home)) = (row, home) else {
            wrong(format!(
                "there is no row {} or no {}",
                remark.row, remark.ledger
            ));
            continue;
        };
        home.rows.push(Row {
            what: format!("{} (remark)", remark.metric),
            published: Published::Number(remark.published),
            metric: remark.metric.clone(),
            expression: remark.expression.clone(),
            judgement: Judgement::Equals(Tolerance::Share(CLAIM)),
            evidence: Evidence::Fitted,
            ..row.clone()
        });
    }
    for file in &mut reduced {
        let mut needed: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for row in &file.rows {
            row.expression.points(&mut |owner, points| {
                needed.entry(owner.to_owned()).or_default().push(points);
            });
        }
        file.measurements
            .retain(|one| needed.contains_key(&one.name));
        for measurement in &mut file.measurements {
            // Points of a sweep that no row looks at need not run.
            if let Work::Fio {
                sweep: Some(sweep), ..
            } = &mut measurement.work
            {
                let ranges = &needed[&measurement.name];
                let looked_at =
                    |x: f64| ranges.iter().any(|(low, high)| (*low..=*high).contains(&x));
                sweep.points.retain(|(_, x)| looked_at(*x));
            }
        }
        file.drives.retain(|(name, _)| needed.contains_key(name));
        file.not_reproduced.clear();
        file.pending.clear();
    }
    reduced.retain(|file| !file.rows.is_empty());
    reduced
}

/// The figures of the files behind a measurement: those of its drive and of its host.
///
/// # Errors
/// Drive or host does not load.
pub fn spots_of(measurement: &Measurement) -> Result<Vec<Spot>, Problems> {
    let drive = catalogue::drive(&measurement.drive)?;
    let host = catalogue::host(&measurement.host)?;
    let both = drive.figures.into_iter().chain(host.figures);
    Ok(both
        .map(|figure| Spot {
            file: figure.file,
            key: figure.key,
        })
        .collect())
}

/// Changes the figures of a measurement's drive and host.
fn change(measurement: &mut Measurement, changes: &BTreeMap<Spot, String>) -> Result<(), Problems> {
    let there = spots_of(measurement)?;
    for (spot, words) in changes.iter().filter(|(spot, _)| there.contains(spot)) {
        let set: &mut Vec<Change> = match spot.file.starts_with("catalogue/host/") {
            true => &mut measurement.host_set,
            false => &mut measurement.set,
        };
        // What the measurement itself sets is its condition, not the drive's parameter.
        if !set.iter().any(|(known, _)| *known == spot.key) {
            set.push((spot.key.clone(), as_written(words)));
        }
    }
    Ok(())
}

fn value(result: &RowResult) -> f64 {
    result.model.as_ref().map_or(f64::NAN, |model| model.value)
}

/// Half of the interval that seeds give a row's figure, as a share of it.
fn noise(result: &RowResult) -> f64 {
    let model = result.model.as_ref().ok();
    let interval = model.and_then(|model| Some((model.interval?, model.value)));
    let half = interval.map_or(0.0, |((low, high), value)| (high - low) / 2.0 / value.abs());
    if half.is_finite() { half } else { 0.0 }
}

/// How far a figure is from where it should be, in squared tolerances.
fn misfit(row: &Row, model: f64, noise: f64) -> f64 {
    let (wanted, tolerance) = match (row.judgement, &row.published) {
        (Judgement::Equals(tolerance), Published::Number(published)) => {
            let tolerance = match tolerance {
                Tolerance::Share(share) => libm::log1p(share),
                Tolerance::Factor(factor) => libm::log(factor),
            };
            (*published, tolerance)
        }
        (Judgement::Below(limit), _) if model < limit => return 0.0,
        (Judgement::Above(limit), _) if model > limit => return 0.0,
        (Judgement::Between(low, high), _) if (low..=high).contains(&model) => return 0.0,
        (Judgement::Below(limit) | Judgement::Above(limit), _) => (limit, CLAIM),
        (Judgement::Between(_, high), _) if model > high => (high, CLAIM),
        (Judgement::Between(low, _), _) => (low, CLAIM),
        (Judgement::Equals(_), _) => return 0.0,
    };
    let off = match model / wanted {
        ratio if ratio > 0.0 => libm::log(ratio),
        // Where a ratio says nothing: a difference that should be near zero.
        _ => (model - wanted) / wanted.abs(),
    };
    let squares = off * off / (tolerance * tolerance + noise * noise);
    if squares.is_finite() {
        squares.min(HOPELESS)
    } else {
        HOPELESS
    }
}

fn row_errors(before: &[RowResult], after: &[RowResult]) -> Vec<RowError> {
    let both = before.iter().zip(after);
    both.map(|(before, after)| RowError {
        id: before.row.id.clone(),
        what: before.row.what.clone(),
        before: value(before),
        after: value(after),
        wanted: match (before.row.judgement, &before.row.published) {
            (Judgement::Equals(_), Published::Number(number)) => number.to_string(),
            (judgement, _) => judgement.words(),
        },
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_within_a_tolerance_are_told() {
        assert_eq!(
            choose(&[9.0, 0.3, 0.305, 1.2], Take::Smallest),
            (1, 0.3, vec![1, 2, 3])
        );
        assert_eq!(
            choose(&[9.0, 0.3, 0.305, 1.4], Take::Largest),
            (2, 0.3, vec![1, 2])
        );
    }

    #[test]
    fn lists_are_numbers_too() {
        let (parts, list) = numbers("3 us, 8 us").expect("two times");
        assert!(list);
        assert_eq!(parts, [(3.0, "us".to_owned()), (8.0, "us".to_owned())]);
        assert_eq!(as_written("3 us, 8 us"), "[\"3 us\", \"8 us\"]");
        assert_eq!(as_written("3 us"), "3 us");
        assert_eq!(numbers("true"), None);
    }
}
