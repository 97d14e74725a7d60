//! Results of a run of the ledger: tables for a terminal, JSON for programs, a page for people.

mod against_sheet;
mod chart;
pub mod page;

pub use against_sheet::{against_sheet, qos};

use comfy_table::CellAlignment;
use serde::Serialize;
use text::digits::significant;

use study::ledger::{
    Class, Errors, PublishedValue, Reproduction, RowResult, RowVerdict, SOURCES, Summary, number,
    source_of,
};
use study::review::results::rounded;
use text::terminal::{self, Width, paragraph};

/// Returns one table for each source, the rows that could not be reproduced by reason, and the summary. Notes on rows
/// that miss are below their table.
pub fn text(reproduction: &Reproduction, width: Width) -> String {
    let mut parts = Vec::new();
    for (source, title) in SOURCES {
        let rows = rows_of(reproduction, source);
        if rows.is_empty() {
            continue;
        }
        parts.push(format!("{source}: {title}\n\n{}\n", table(&rows, width)));
        let notes: Vec<String> = rows.iter().filter_map(|row| note(row, width)).collect();
        if !notes.is_empty() {
            parts.push(notes.join("\n") + "\n");
        }
    }
    parts.push(summary(reproduction, width));
    parts.join("\n")
}

/// Returns the results of one source.
fn rows_of<'a>(reproduction: &'a Reproduction, source: &str) -> Vec<&'a RowResult> {
    let of = |result: &&RowResult| source_of(&result.row.id) == Some(source);
    reproduction.results.iter().filter(of).collect()
}

fn table(rows: &[&RowResult], width: Width) -> String {
    let mut table = terminal::table(width);
    table.set_header([
        "row",
        "what",
        "conditions",
        "published",
        "model",
        "error",
        "evidence",
        "verdict",
    ]);
    for result in rows {
        table.add_row([
            result.row.id.clone(),
            result.row.what.clone(),
            result.row.conditions.clone(),
            published(result),
            model(result),
            error(result),
            result.row.evidence.name().to_owned(),
            result.verdict.name().to_owned(),
        ]);
    }
    for column in table.column_iter_mut().skip(5).take(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    terminal::unbroken(&mut table, [0, 5, 6, 7]);
    table.trim_fmt()
}

/// Returns the published value with its unit; for a claim also its condition.
fn published(result: &RowResult) -> String {
    let row = &result.row;
    let value = match &row.published {
        PublishedValue::Number(number) => format!("{} {}", figure(*number), row.unit),
        PublishedValue::Range(low, high) => {
            format!("{} to {} {}", figure(*low), figure(*high), row.unit)
        }
        PublishedValue::Words(words) => words.clone(),
    };
    if row.judgement.has_error() {
        value
    } else {
        format!("{value} ({})", row.judgement.words())
    }
}

fn model(result: &RowResult) -> String {
    match &result.model {
        Ok(model) => {
            let spread = model.interval.map(|(low, high)| (high - low) / 2.0);
            match spread {
                Some(half) if half > 0.0 => format!("{} ±{}", figure(model.value), figure2(half)),
                _ => figure(model.value),
            }
        }
        Err(why) => format!("none: {why}"),
    }
}

fn error(result: &RowResult) -> String {
    let shown = |error: f64| match format!("{:+.1} %", error * 100.0) {
        zero if zero == "-0.0 %" || zero == "+0.0 %" => "0.0 %".to_owned(),
        error => error,
    };
    result.error.map_or(String::new(), shown)
}

/// Returns the verdict, with a reference to the note of a row that misses.
fn verdict(result: &RowResult) -> String {
    let name = result.verdict.name();
    missed(result).map_or(name.to_owned(), |note| format!("{name}: {note}"))
}

/// Returns the reason why a row misses.
fn missed(result: &RowResult) -> Option<&str> {
    let misses = result.verdict != RowVerdict::Holds;
    result.row.note.as_deref().filter(|_| misses)
}

/// Returns the reason as a line below the table.
fn note(result: &RowResult, width: Width) -> Option<String> {
    let head = format!(" {}  ", result.row.id);
    Some(paragraph(&head, missed(result)?, width))
}

/// Returns a number with four significant digits; whole at and above a thousand.
pub(super) fn figure(value: f64) -> String {
    significant(value, 4)
}

fn figure2(value: f64) -> String {
    significant(value, 2)
}

fn summary(reproduction: &Reproduction, width: Width) -> String {
    let at_words = width.filter(|&width| width >= WORDS_OF_SUMMARY);
    let mut table = terminal::table(at_words);
    table.set_header([
        "source",
        "rows",
        "fitted",
        "predicted",
        "catalogue",
        "median error",
        "90 % within",
        "claims held",
        "out of tolerance",
        "not reproduced",
        "pending",
    ]);
    for (source, _) in SOURCES {
        let others = reproduction
            .not_reproduced
            .iter()
            .filter(|(id, _)| source_of(id) == Some(source));
        let pending = reproduction
            .pending
            .iter()
            .filter(|id| source_of(id) == Some(source));
        let (others, pending) = (others.count(), pending.count());
        let rows = rows_of(reproduction, source);
        if rows.len() + others + pending > 0 {
            table.add_row(counts(
                source,
                &Summary::from_results(rows.into_iter()),
                others,
                pending,
            ));
        }
    }
    let all = Summary::from_results(reproduction.results.iter());
    let (others, pending) = (
        reproduction.not_reproduced.len(),
        reproduction.pending.len(),
    );
    table.add_row(counts("all", &all, others, pending));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = match at_words {
        Some(_) => table.trim_fmt(),
        // Otherwise it would be broken inside its words.
        None => terminal::folded(&table, 1, width),
    };
    text.push_str("\n\n");
    text.push_str(&by_class(&all, width));
    text.push_str("\n\n");
    let mut say = |head: &str, what: &str| {
        text.push_str(&paragraph(head, what, width));
        text.push('\n');
    };
    say(
        "",
        "Errors are absolute errors of predicted rows that are judged by a number. Fitted rows, and rows of the \
         catalogue alone (no run), are not included.",
    );
    say(
        "",
        "Model figures are means over independent seeds, with their 95 % interval.",
    );
    if !reproduction.pending.is_empty() {
        say("Pending: ", &ranges(&reproduction.pending));
    }
    text.truncate(text.trim_end().len());
    text
}

/// Columns of the summary's table with its header broken at words.
const WORDS_OF_SUMMARY: u16 = 102;

/// Returns the errors of predicted figures, by class.
fn by_class(all: &Summary, width: Width) -> String {
    let mut table = terminal::table(width);
    table.set_header([
        "predicted figures",
        "rows",
        "median error",
        "90 % within",
        "within a factor of 1.5",
    ]);
    let classes = Class::ALL.iter().zip(&all.classes);
    let classes = classes.map(|(class, errors)| (class.name(), errors));
    for (name, errors) in std::iter::once(("all", &all.errors)).chain(classes) {
        table.add_row([
            name.to_owned(),
            errors.rows.to_string(),
            percent(errors.median),
            percent(errors.p90),
            format!("{} of {}", errors.within_factor, errors.rows),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

fn percent(share: Option<f64>) -> String {
    text::digits::error(share)
}

fn counts(name: &str, summary: &Summary, others: usize, pending: usize) -> Vec<String> {
    vec![
        name.to_owned(),
        summary.rows.to_string(),
        summary.fitted.to_string(),
        summary.predicted.to_string(),
        summary.catalogue.to_string(),
        percent(summary.errors.median),
        percent(summary.errors.p90),
        format!("{} of {}", summary.claims_held, summary.claims),
        summary.missed.to_string(),
        others.to_string(),
        pending.to_string(),
    ]
}

/// Returns sorted ids with consecutive ones combined: `S0-009 to S0-012, S0-020`.
fn ranges(ids: &[String]) -> String {
    let split = |id: &str| {
        let (prefix, number) = number(id).unwrap_or((id, 0));
        (prefix.to_owned(), number)
    };
    let mut runs: Vec<(&str, &str)> = Vec::new();
    for id in ids {
        let (source, number) = split(id);
        match runs.last_mut() {
            Some((_, last)) if split(last) == (source, number.wrapping_sub(1)) => *last = id,
            _ => runs.push((id, id)),
        }
    }
    let words = runs.iter().map(|(first, last)| {
        if first == last {
            (*first).to_owned()
        } else {
            format!("{first} to {last}")
        }
    });
    words.collect::<Vec<String>>().join(", ")
}

#[derive(Serialize)]
struct JsonRow<'a> {
    id: &'a str,
    what: &'a str,
    conditions: &'a str,
    published: serde_json::Value,
    unit: &'a str,
    metric: &'a str,
    judgement: String,
    model: Option<f64>,
    interval: Option<[f64; 2]>,
    why_no_figure: Option<&'a str>,
    error: Option<f64>,
    evidence: &'static str,
    fixes: &'a [String],
    holds: bool,
    verdict: &'static str,
    note: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonSummary {
    rows: usize,
    fitted: usize,
    predicted: usize,
    catalogue: usize,
    out_of_tolerance: usize,
    predicted_with_error: usize,
    median_absolute_error: Option<f64>,
    p90_absolute_error: Option<f64>,
    throughput_mean_p99: JsonErrors,
    deep_tail: JsonErrors,
    claims: usize,
    claims_held: usize,
}

#[derive(Serialize)]
struct JsonErrors {
    rows: usize,
    median_absolute_error: Option<f64>,
    p90_absolute_error: Option<f64>,
    within_a_factor_of_1_5: usize,
}

impl JsonErrors {
    fn from_errors(errors: &Errors) -> JsonErrors {
        JsonErrors {
            rows: errors.rows,
            median_absolute_error: errors.median.map(rounded),
            p90_absolute_error: errors.p90.map(rounded),
            within_a_factor_of_1_5: errors.within_factor,
        }
    }
}

impl JsonSummary {
    fn from_summary(summary: &Summary) -> JsonSummary {
        JsonSummary {
            rows: summary.rows,
            fitted: summary.fitted,
            predicted: summary.predicted,
            catalogue: summary.catalogue,
            out_of_tolerance: summary.missed,
            predicted_with_error: summary.errors.rows,
            median_absolute_error: summary.errors.median.map(rounded),
            p90_absolute_error: summary.errors.p90.map(rounded),
            throughput_mean_p99: JsonErrors::from_errors(&summary.classes[0]),
            deep_tail: JsonErrors::from_errors(&summary.classes[1]),
            claims: summary.claims,
            claims_held: summary.claims_held,
        }
    }
}

fn json_row(result: &RowResult) -> JsonRow<'_> {
    let row = &result.row;
    let model = result.model.as_ref().ok();
    let interval = model.and_then(|model| model.interval);
    JsonRow {
        id: &row.id,
        what: &row.what,
        conditions: &row.conditions,
        published: match &row.published {
            PublishedValue::Number(number) => serde_json::json!(number),
            PublishedValue::Range(low, high) => serde_json::json!([low, high]),
            PublishedValue::Words(words) => serde_json::json!(words),
        },
        unit: &row.unit,
        metric: &row.metric,
        judgement: row.judgement.words(),
        model: model.map(|model| rounded(model.value)),
        interval: interval.map(|(low, high)| [rounded(low), rounded(high)]),
        why_no_figure: result.model.as_ref().err().map(String::as_str),
        error: result.error.map(rounded),
        evidence: row.evidence.name(),
        fixes: &row.fixes,
        holds: result.verdict == RowVerdict::Holds,
        verdict: result.verdict.name(),
        note: row.note.as_deref(),
    }
}

/// Returns everything as JSON, for programs.
pub fn json(reproduction: &Reproduction) -> serde_json::Value {
    let sources: serde_json::Map<String, serde_json::Value> = SOURCES
        .iter()
        .map(|(source, _)| (source, rows_of(reproduction, source)))
        .filter(|(_, rows)| !rows.is_empty())
        .map(|(source, rows)| {
            let summary = JsonSummary::from_summary(&Summary::from_results(rows.into_iter()));
            ((*source).to_owned(), serde_json::json!(summary))
        })
        .collect();
    let not_reproduced = reproduction.not_reproduced.iter();
    serde_json::json!({
        "schema": "drivelab reproduction",
        "version": 1,
        "program": version::PROGRAM,
        "summary": JsonSummary::from_summary(&Summary::from_results(reproduction.results.iter())),
        "sources": sources,
        "rows": reproduction.results.iter().map(json_row).collect::<Vec<_>>(),
        "not_reproduced": not_reproduced
            .map(|(id, reason)| serde_json::json!({ "id": id, "reason": reason }))
            .collect::<Vec<_>>(),
        "pending": reproduction.pending,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_they_are_worth() {
        let shown = [43.0, 108_300.0, 0.428_12, 2.5, 1520.4, 99.999, 0.0].map(figure);
        assert_eq!(shown, ["43", "108300", "0.4281", "2.5", "1520", "100", "0"]);
    }

    #[test]
    fn neighbours_are_drawn_together() {
        let ids = ["S0-001", "S0-002", "S0-003", "S0-009", "S1-010"].map(String::from);
        assert_eq!(ranges(&ids), "S0-001 to S0-003, S0-009, S1-010");
        let ids = ["P0009", "P0010", "P0012"].map(String::from);
        assert_eq!(ranges(&ids), "P0009 to P0010, P0012");
    }
}
