//! Lines of a run of the ledger.

use serde::Serialize;

use super::Table;
use study::ledger::{PublishedValue, Reproduction, RowResult, RowVerdict, source_of};
use study::review::results::rounded;

/// A published row with the model's figure. For a published number, both ends have its value.
#[derive(Clone, Debug, Serialize)]
struct ReproductionRow<'a> {
    id: &'a str,
    source: &'a str,
    what: &'a str,
    conditions: &'a str,
    metric: &'a str,
    unit: &'a str,
    published: String,
    published_low: Option<f64>,
    published_high: Option<f64>,
    judgement: String,
    model: Option<f64>,
    model_low: Option<f64>,
    model_high: Option<f64>,
    seeds: Option<usize>,
    error: Option<f64>,
    evidence: &'static str,
    fixes: String,
    holds: bool,
    verdict: &'static str,
    why_no_figure: Option<&'a str>,
    note: Option<&'a str>,
}

/// Returns a line for each row that was judged.
pub fn reproduction(reproduction: &Reproduction) -> Table {
    Table::from_rows(reproduction.results.iter().map(columns))
}

fn columns(result: &RowResult) -> ReproductionRow<'_> {
    let row = &result.row;
    let model = result.model.as_ref().ok();
    let interval = model.and_then(|model| model.interval);
    let (published, ends) = match &row.published {
        PublishedValue::Number(number) => (number.to_string(), Some((*number, *number))),
        PublishedValue::Range(low, high) => (format!("{low} to {high}"), Some((*low, *high))),
        PublishedValue::Words(words) => (words.clone(), None),
    };
    ReproductionRow {
        id: &row.id,
        source: source_of(&row.id).unwrap_or_default(),
        what: &row.what,
        conditions: &row.conditions,
        metric: &row.metric,
        unit: &row.unit,
        published,
        published_low: ends.map(|ends| ends.0),
        published_high: ends.map(|ends| ends.1),
        judgement: row.judgement.words(),
        model: model.map(|model| rounded(model.value)),
        model_low: interval.map(|ends| rounded(ends.0)),
        model_high: interval.map(|ends| rounded(ends.1)),
        seeds: model.map(|model| model.seeds),
        error: result.error.map(rounded),
        evidence: row.evidence.name(),
        fixes: row.fixes.join(" "),
        holds: result.verdict == RowVerdict::Holds,
        verdict: result.verdict.name(),
        why_no_figure: result.model.as_ref().err().map(String::as_str),
        note: row.note.as_deref(),
    }
}
