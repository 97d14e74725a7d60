//! Recipes in `ledger/fits/*.toml`: how each fitted figure of the catalogue follows from published rows.
//!
//! A recipe names the figures that move together, their allowed values (with the physical reason), the rows that they
//! are set from, and the choice among equally good values. All other figures keep their catalogue values.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use include_dir::{Dir, include_dir};
use toml_edit::{TableLike, Value};

use super::unit;
use crate::ledger::expression::Expression;
use text::problem::{Place, Problems};
use text::quantity;
use text::toml::SourceFile;
use text::toml::{Cursor, Page};

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../ledger/fits");

/// A recipe: how a parameter follows from rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// File that contains the recipe, as messages name it.
    pub origin: String,
    /// Place in that file.
    pub place: Place,
    /// The figures. The search varies the first; the others keep their ratio to it.
    pub figures: Vec<CatalogueKey>,
    /// Allowed values of the first figure.
    pub values: AllowedValues,
    /// Choice among equally good values.
    pub take: TieBreak,
    /// Physical reason for the bounds or the choice.
    pub bounds: String,
    /// Ids of the rows that the parameter is set from.
    pub rows: Vec<String>,
    /// Ids of rows that also depend on the parameter but do not set it.
    pub others: Vec<String>,
    /// Figures that are in the remark of a row and have no row of their own.
    pub remarks: Vec<Remark>,
}

/// Place of a figure in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CatalogueKey {
    /// The file, such as `catalogue/xpoint/optane-ssd.family.toml`.
    pub file: String,
    /// The dotted key in that file, without `host.`.
    pub key: String,
}

impl CatalogueKey {
    /// Returns the key as rows name it in `fixes`: with `host.` before a figure of a host.
    pub fn fixed_as(&self) -> String {
        match self.file.starts_with("catalogue/host/") {
            true => format!("host.{}", self.key),
            false => self.key.clone(),
        }
    }
}

/// Allowed values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum AllowedValues {
    /// A range with a unit.
    Between {
        /// Lower bound.
        from: f64,
        /// Upper bound.
        to: f64,
        /// Unit of both bounds; empty for a whole number.
        unit: String,
    },
    /// One of these values, as text of a file.
    OneOf(Vec<String>),
}

/// Choice among equally good values. With a row that is a bound, all values on one side are equally good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// The middle value.
    Middle,
    /// The smallest value.
    Smallest,
    /// The largest value.
    Largest,
}

/// A figure in a row's remark.
#[derive(Clone, Debug, PartialEq)]
pub struct Remark {
    /// Id of the row.
    pub row: String,
    /// The published figure.
    pub published: f64,
    /// Metric as written, over measurements of `ledger`.
    pub metric: String,
    /// The parsed metric.
    pub expression: Expression,
    /// File of the ledger that has the measurements, such as `ledger/S1-flash.toml`.
    pub ledger: String,
}

/// Returns the recipes of the program, in the order of their files' names.
///
/// # Errors
/// All problems of the recipes (a test ensures that there are none).
pub fn recipes() -> Result<Vec<Recipe>, Problems> {
    let mut paths: Vec<&Path> = BUILT_IN.files().map(include_dir::File::path).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let mut problems = Problems::default();
    let mut all = Vec::new();
    for path in paths {
        let origin = format!("ledger/fits/{}", path.display());
        let text = BUILT_IN
            .get_file(path)
            .and_then(include_dir::File::contents_utf8);
        let read = match text {
            Some(text) => read(&origin, text),
            None => Err(Problems::whole(&*origin, "not UTF-8")),
        };
        match read {
            Ok(recipes) => all.extend(recipes),
            Err(found) => problems.0.extend(found.0),
        }
    }
    problems.or(all)
}

/// Reads the recipes of one file from its text; `origin` names the file in messages.
///
/// # Errors
/// All problems of the text.
pub fn read(origin: &str, text: &str) -> Result<Vec<Recipe>, Problems> {
    let source = SourceFile {
        origin: origin.to_owned(),
        text: Arc::from(text),
    };
    let document = text::toml::parse(&source)?;
    let page = Page::new(&source);
    let mut root = Cursor::new(&page, "the recipes", document.as_table(), None);
    let mut recipes = Vec::new();
    for (table, at) in root.tables("fit") {
        recipes.extend(recipe(&page, table, at));
    }
    drop(root);
    Problems(page.problems.into_inner()).or(recipes)
}

/// Reads one recipe; `None` if it is invalid.
fn recipe(page: &Page<'_>, table: &dyn TableLike, at: Option<Range<usize>>) -> Option<Recipe> {
    let name = table
        .get("figures")
        .and_then(|item| match item.as_value()? {
            Value::String(text) => Some(text.value().clone()),
            Value::Array(list) => list.get(0)?.as_str().map(str::to_owned),
            _ => None,
        });
    let name = name.unwrap_or_else(|| "fit".into());
    let mut cursor = Cursor::new(page, name, table, at);
    let files = required(&mut cursor, "files", "such as \"xpoint/optane-ssd.family\"");
    let keys = required(&mut cursor, "figures", "such as \"xpoint.medium.read\"");
    let mut figures = Vec::new();
    for file in &files {
        for key in &keys {
            figures.push(CatalogueKey {
                file: format!("catalogue/{file}.toml"),
                key: key.clone(),
            });
        }
    }
    let values = values(&mut cursor);
    let take = take(&mut cursor);
    let bounds = cursor.text("bounds");
    let rows = cursor.texts("rows");
    let others = cursor.texts("others");
    let remarks = remarks(page, &mut cursor);
    if rows.is_empty() && remarks.is_empty() {
        cursor.add_problem(
            "rows",
            "no rows to set this figure from",
            "such as rows = [\"S0-073\"]",
        );
    }
    let place = cursor
        .place("figures")
        .map_or(Place::Whole, |range| Place::Text {
            text: Arc::clone(&page.file.text),
            range,
        });
    Some(Recipe {
        origin: page.file.origin.clone(),
        place,
        figures,
        values: values?,
        take: take?,
        bounds,
        rows,
        others,
        remarks,
    })
}

fn required(cursor: &mut Cursor<'_>, key: &'static str, help: &str) -> Vec<String> {
    let texts = cursor.texts(key);
    if texts.is_empty() && !cursor.has(key) {
        cursor.add_problem(key, format!("`{key}` is missing"), help);
    }
    texts
}

fn values(cursor: &mut Cursor<'_>) -> Option<AllowedValues> {
    const HELP: &str =
        "write from = \"1 us\" and to = \"9 us\", whole numbers, or one_of = [\"true\", \"false\"]";
    let (from, to) = (bound(cursor, "from"), bound(cursor, "to"));
    let one_of = cursor.texts("one_of");
    let values = match (from, to, one_of.len()) {
        (Some((from, own)), Some((to, unit)), 0) => {
            let from = unit::number_in(&format!("{from} {own}"), &unit);
            let from = from.filter(|from| *from < to);
            from.map(|from| AllowedValues::Between { from, to, unit })
        }
        (None, None, 2..) => Some(AllowedValues::OneOf(one_of)),
        _ => None,
    };
    if values.is_none() {
        let at = if cursor.has("from") { "from" } else { "one_of" };
        cursor.add_problem(at, "its allowed values are invalid", HELP);
    }
    values
}

/// Reads a number with its unit, or a whole number.
fn bound(cursor: &mut Cursor<'_>, key: &'static str) -> Option<(f64, String)> {
    match cursor.value(key)? {
        Value::Integer(whole) => Some((*whole.value() as f64, String::new())),
        Value::String(text) => {
            let (number, unit) = quantity::split(text.value())?;
            quantity::is_unit(unit).then(|| (number, unit.to_owned()))
        }
        _ => None,
    }
}

fn take(cursor: &mut Cursor<'_>) -> Option<TieBreak> {
    let word = cursor.maybe_text("take").unwrap_or_else(|| "middle".into());
    let take = match &*word {
        "middle" => Some(TieBreak::Middle),
        "smallest" => Some(TieBreak::Smallest),
        "largest" => Some(TieBreak::Largest),
        _ => None,
    };
    if take.is_none() {
        let what = format!("`{word}` is not a valid choice");
        cursor.add_problem("take", what, "write smallest, largest or middle");
    }
    take
}

fn remarks(page: &Page<'_>, cursor: &mut Cursor<'_>) -> Vec<Remark> {
    const HELP: &str = "such as remarks = [{ row = \"S1-007\", published = 9200, metric = \"at(reads.read.iops, 1)\", ledger = \"S1-flash\" }]";
    let mut remarks = Vec::new();
    for (table, at) in cursor.tables("remarks") {
        let mut inner = Cursor::new(page, "remark", table, at);
        let published = inner.value("published").and_then(|value| {
            let whole = value.as_integer().map(|whole| whole as f64);
            value.as_float().or(whole)
        });
        let (row, metric, ledger) = (
            inner.text("row"),
            inner.text("metric"),
            inner.text("ledger"),
        );
        match (published, Expression::parse(&metric)) {
            (Some(published), Ok(expression)) => remarks.push(Remark {
                row,
                published,
                metric,
                expression,
                ledger: format!("ledger/{ledger}.toml"),
            }),
            (None, _) => inner.add_problem("published", "`published` is not a number", HELP),
            (_, Err(wrong)) => inner.add_problem("metric", wrong.0, "see docs/ledger.md"),
        }
    }
    remarks
}
