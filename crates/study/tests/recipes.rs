//! Every fitted figure of the catalogue has its recipe, every recipe its rows, and the three are consistent.

use std::collections::{BTreeMap, BTreeSet};

use catalogue::FigureKind;
use study::fit::{self, CatalogueKey, Recipe};
use study::ledger::{self, Evidence, LedgerFile, LedgerRow};

fn recipes() -> Vec<Recipe> {
    fit::recipes().unwrap_or_else(|problems| panic!("{}", problems.render(false)))
}

/// Returns each row with its file.
fn rows(files: &[LedgerFile]) -> BTreeMap<&str, (&LedgerFile, &LedgerRow)> {
    let rows = files
        .iter()
        .flat_map(|file| file.rows.iter().map(move |row| (&*row.id, (file, row))));
    rows.collect()
}

/// Returns the figures of the measurements that a metric of this file uses.
fn reached(
    file: &LedgerFile,
    expression: &ledger::expression::Expression,
) -> BTreeSet<CatalogueKey> {
    let mut names = BTreeSet::new();
    expression.figures(&mut |owner, _| {
        names.insert(owner);
    });
    let measurements = file.measurements.iter();
    measurements
        .filter(|one| names.contains(&*one.name))
        .flat_map(|one| fit::spots_of(one).expect("it loads"))
        .collect()
}

#[test]
fn every_fitted_figure_has_exactly_one_recipe() {
    let figures = fit::figures().expect("the catalogue loads");
    let recipes = recipes();
    let mut counts: BTreeMap<&CatalogueKey, usize> = BTreeMap::new();
    for spot in recipes.iter().flat_map(|recipe| &recipe.figures) {
        *counts.entry(spot).or_default() += 1;
    }
    let mut wrong = Vec::new();
    for (spot, figure) in &figures {
        let count = counts.get(spot).copied().unwrap_or_default();
        let wanted = usize::from(figure.kind == FigureKind::Fitted);
        if count != wanted {
            let kind = figure.kind.name();
            wrong.push(format!(
                "{}: {} is {kind} and has {count} recipes in ledger/fits",
                spot.file, spot.key
            ));
        }
    }
    for spot in counts.keys().filter(|spot| !figures.contains_key(**spot)) {
        wrong.push(format!("{} has no figure {}", spot.file, spot.key));
    }
    assert!(wrong.is_empty(), "see docs/fit.md\n{}", wrong.join("\n"));
}

/// docs/decisions/0023. Rows that print one fact twice belong together, and so do two bounds that each limit one end.
#[test]
fn one_row_sets_one_figure() {
    const TOGETHER: [[&str; 2]; 12] = [
        ["S0-054", "S0-056"],
        ["S0-055", "S0-057"],
        ["S2-067", "S2-068"],
        ["P0321", "P0322"],
        ["M0939", "M0940"],
        ["P0325", "P0326"],
        ["P0331", "P0332"],
        ["P0339", "P0340"],
        ["P0343", "P0344"],
        ["P0372", "P0373"],
        ["P0392", "P0393"],
        ["P0436", "P0437"],
    ];
    let mut sets: BTreeMap<String, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    for recipe in recipes() {
        let key = &recipe.figures[0].key;
        let together = TOGETHER.iter().any(|rows| *rows == *recipe.rows);
        if recipe.rows.len() + recipe.remarks.len() != 1 && !together {
            wrong.push(format!("{key} is set from more than one row"));
        }
        for id in recipe.rows {
            if let Some(other) = sets.insert(id.clone(), key.clone()) {
                wrong.push(format!("{id} sets {other} and {key}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn recipes_and_rows_name_each_other() {
    let files = ledger::built_in().expect("the ledger loads");
    let rows = rows(&files);
    let mut wrong = Vec::new();
    // From the recipe: its rows are fitted, fix its figures and run a drive that has them.
    let recipes = recipes();
    for recipe in &recipes {
        let first = &recipe.figures[0];
        let remarks = recipe.remarks.iter().map(|remark| {
            let file = files.iter().find(|file| file.origin == remark.ledger);
            (
                &remark.row,
                file.map(|file| reached(file, &remark.expression)),
            )
        });
        let own = recipe.rows.iter().map(|id| {
            let row = rows.get(&**id);
            (id, row.map(|(file, row)| reached(file, &row.expression)))
        });
        for (id, reached) in own.chain(remarks) {
            let (Some((_, row)), Some(reached)) = (rows.get(&**id), reached) else {
                wrong.push(format!(
                    "{}: there is no {id}, or no ledger of its remark",
                    first.key
                ));
                continue;
            };
            if row.evidence != Evidence::Fitted {
                wrong.push(format!(
                    "{id} is {}, but {} is set from it",
                    row.evidence.name(),
                    first.key
                ));
            }
            for spot in &recipe.figures {
                if !row.fixes.contains(&spot.fixed_as()) {
                    wrong.push(format!("{id} does not have {} in `fixes`", spot.fixed_as()));
                }
            }
            if !recipe.figures.iter().any(|spot| reached.contains(spot)) {
                wrong.push(format!(
                    "{id} runs nothing that has {} of {}",
                    first.key, first.file
                ));
            }
        }
    }
    // From the row: every fitted figure that it fixes names it in its recipe.
    let figures = fit::figures().expect("the catalogue loads");
    for (id, (file, row)) in &rows {
        let reached = reached(file, &row.expression);
        for (spot, _) in figures.iter().filter(|(spot, figure)| {
            figure.kind == FigureKind::Fitted
                && row.fixes.contains(&spot.fixed_as())
                && reached.contains(spot)
        }) {
            let named = recipes.iter().any(|recipe| {
                let remarks = recipe.remarks.iter().map(|remark| &remark.row);
                let mut named = recipe.rows.iter().chain(&recipe.others).chain(remarks);
                recipe.figures.contains(spot) && named.any(|one| one == id)
            });
            if !named {
                wrong.push(format!(
                    "{id} fixes {} of {}, whose recipe does not name it",
                    spot.key, spot.file
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "see docs/fit.md\n{}", wrong.join("\n"));
}

#[test]
fn the_catalogue_names_the_rows_of_the_recipe() {
    let figures = fit::figures().expect("the catalogue loads");
    let mut wrong = Vec::new();
    for recipe in recipes() {
        let remarks = recipe.remarks.iter().map(|remark| &remark.row);
        let wanted: BTreeSet<&String> = recipe.rows.iter().chain(remarks).collect();
        for spot in &recipe.figures {
            let source = figures.get(spot).map_or("", |figure| &figure.source);
            let named = ledger::rows_named(source);
            if !named.iter().collect::<BTreeSet<_>>().eq(&wanted) {
                wrong.push(format!(
                    "{} {}: source \"{source}\", recipe {wanted:?}",
                    spot.file, spot.key
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn all_that_is_wrong_with_recipes_is_said_at_once() {
    let text = r#"
[[fit]]
files = "nand/9100max-2400"
figures = "nand.medium.read"
from = "90 us"
to = "30 us"
rows = "S1-007"

[[fit]]
figures = "nand.suspend.most"
one_of = ["0"]
take = "most"
bounds = "suspended or not"
remarks = [{ row = "S1-007", published = "many", metric = "at(", ledger = "S1-optane", leger = "" }]
"#;
    let problems = fit::read_recipes("wrong.toml", text).expect_err("much is wrong");
    insta::assert_snapshot!(problems.render(false));
}
