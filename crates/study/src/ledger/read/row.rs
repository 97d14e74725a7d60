//! Reader of one row of a ledger file: the published value, the metric, how the two are compared, and the kind of
//! evidence.

use std::sync::Arc;

use super::MetricNames;
use super::table::RowCursor;
use crate::ledger::expression::Expression;
use crate::ledger::figure::{DEEP, RunFigure, of_drive};
use crate::ledger::{Evidence, Judgement, LedgerRow, PublishedValue, Tolerance, rows};
use catalogue::{Figure, FigureKind};
use text::problem::{Place, nearest};
use text::toml::Page;

/// Reads one row; `None` if it is invalid.
pub(super) fn row(
    page: &Page<'_>,
    cursor: &RowCursor<'_>,
    known: &MetricNames,
) -> Option<LedgerRow> {
    let id = cursor.text("id");
    if !id.is_empty() && !rows::is_id(id) {
        cursor.add_problem(
            "id",
            format!("`{id}` is not a row id"),
            "ids are as in figures.csv, such as `S0-073`",
        );
    }
    let what = cursor.text("what");
    let conditions = cursor.text("conditions");
    let published = published(cursor);
    let unit = cursor.text("unit");
    let metric = cursor.text("metric");
    let expression = match Expression::parse(metric) {
        Ok(expression) => Some(expression),
        Err(wrong) => {
            cursor.add_problem("metric", wrong.0, "see docs/ledger.md");
            None
        }
    };
    let uses = expression
        .as_ref()
        .map(|expression| check_metric(cursor, expression, known));
    let judgement = judgement(cursor, published.as_ref(), uses.as_ref());
    let evidence = evidence(cursor, uses.as_ref());
    let fixes: Vec<String> = cursor
        .maybe_text("fixes")
        .map(|keys| keys.split(',').map(|key| key.trim().to_owned()).collect())
        .unwrap_or_default();
    check_fixes(cursor, id, evidence, &fixes, uses.as_ref(), known);
    if let Some(expression) = &expression {
        check_load(cursor, published.as_ref(), &fixes, expression, known);
    }
    let note = cursor.maybe_text("note");
    let place = Place::Text {
        text: Arc::clone(&page.file.text),
        range: cursor.place("id"),
    };
    Some(LedgerRow {
        id: id.to_owned(),
        what: what.to_owned(),
        conditions: conditions.to_owned(),
        published: published?,
        unit: unit.to_owned(),
        metric: metric.to_owned(),
        expression: expression?,
        judgement: judgement?,
        evidence: evidence?,
        fixes,
        note: note.map(str::to_owned),
        place,
    })
}

/// Reads a published value: a number, `[two, numbers]`, or the text of a claim. A claim that looks like a number is in
/// quotes.
fn published(cursor: &RowCursor<'_>) -> Option<PublishedValue> {
    let text = cursor.text("published");
    if let Ok(number) = text.parse() {
        return Some(PublishedValue::Number(number));
    }
    let Some(list) = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    else {
        let words = text
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        return (!text.is_empty()).then(|| PublishedValue::Words(words.unwrap_or(text).to_owned()));
    };
    let numbers: Option<Vec<f64>> = list
        .split(',')
        .map(|number| number.trim().parse().ok())
        .collect();
    match numbers.as_deref() {
        Some([low, high]) if low < high => Some(PublishedValue::Range(*low, *high)),
        _ => {
            let help = "a number, two rising numbers in brackets, or the text of a claim";
            cursor.add_problem("published", "`published` has an invalid value", help);
            None
        }
    }
}

/// Names that a metric uses.
#[derive(Default)]
struct Uses {
    measurements: Vec<String>,
    /// The deepest percentile that the metric requests.
    percentile: f64,
}

fn check_metric(cursor: &RowCursor<'_>, expression: &Expression, known: &MetricNames) -> Uses {
    let mut uses = Uses::default();
    expression.figures(&mut |owner, name| {
        if known.measurements.contains_key(owner) {
            match RunFigure::named(name) {
                Ok(figure) => {
                    let percent = figure.percentile().unwrap_or_default();
                    uses.percentile = uses.percentile.max(percent);
                }
                Err(wrong) => cursor.add_problem("metric", wrong.0, "see docs/ledger.md"),
            }
            uses.measurements.push(owner.to_owned());
        } else if let Some(sheet) = known.drives.get(owner) {
            if let Some(Err(wrong)) = sheet.as_ref().map(|sheet| of_drive(sheet, name)) {
                cursor.add_problem("metric", wrong.0, "`drivelab show` lists a drive's figures");
            }
        } else {
            let names = known.measurements.keys().chain(known.drives.keys());
            let help = nearest(owner, names.map(String::as_str)).map_or_else(
                || "name it under [measure] or [drives]".into(),
                |near| format!("did you mean `{near}`?"),
            );
            cursor.add_problem(
                "metric",
                format!("there is no measurement or drive `{owner}`"),
                help,
            );
            // The unknown name is most likely a misspelt measurement, so no further problem is reported for the row's
            // evidence.
            uses.measurements.push(owner.to_owned());
        }
    });
    uses
}

fn judgement(
    cursor: &RowCursor<'_>,
    published: Option<&PublishedValue>,
    uses: Option<&Uses>,
) -> Option<Judgement> {
    const HELP: &str = "write `=`, `<`, `>`, `< 0.5`, `> 1` or `4 to 6`";
    let written = cursor.maybe_text("is").unwrap_or("=");
    let tolerance = tolerance(cursor);
    if tolerance.is_some() && written != "=" {
        cursor.add_problem(
            "tolerance",
            "a tolerance belongs to the comparison `=` only",
            "the limit itself is in `is`",
        );
    }
    let number = match published? {
        PublishedValue::Number(number) => Some(*number),
        _ => None,
    };
    let limit = |text: &str| match text.trim() {
        "" => number,
        text => text.parse().ok(),
    };
    let judgement = match written.split_at_checked(1) {
        Some(("=", "")) => {
            // Deep percentiles are judged by a factor unless the row states otherwise.
            let deep = uses.is_some_and(|uses| uses.percentile >= DEEP);
            let default = if deep {
                Tolerance::Factor(1.5)
            } else {
                Tolerance::Share(0.05)
            };
            number.map(|_| Judgement::Equals(tolerance.unwrap_or(default)))
        }
        Some(("<", rest)) => limit(rest).map(Judgement::Below),
        Some((">", rest)) => limit(rest).map(Judgement::Above),
        _ if written == "between" => match published? {
            PublishedValue::Range(low, high) => Some(Judgement::Between(*low, *high)),
            _ => None,
        },
        _ => written.split_once(" to ").and_then(|(low, high)| {
            let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
            (low < high).then_some(Judgement::Between(low, high))
        }),
    };
    if judgement.is_none() {
        let what = format!("`{written}` does not judge this published value");
        let help = format!(
            "{HELP}; `=` and a bare `<` or `>` need a published number, `between` needs two"
        );
        cursor.add_problem("is", what, help);
    }
    judgement
}

fn tolerance(cursor: &RowCursor<'_>) -> Option<Tolerance> {
    let text = cursor.maybe_text("tolerance")?;
    let share = text
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok());
    let factor = text
        .strip_prefix("factor ")
        .and_then(|number| number.trim().parse::<f64>().ok());
    let tolerance = match (share, factor) {
        (Some(share), _) if (0.0..=100.0).contains(&share) => Some(Tolerance::Share(share / 100.0)),
        (_, Some(factor)) if (1.0..=10.0).contains(&factor) => Some(Tolerance::Factor(factor)),
        _ => None,
    };
    if tolerance.is_none() {
        cursor.add_problem(
            "tolerance",
            format!("`{text}` is not a tolerance"),
            "write `5 %` or `factor 1.5`",
        );
    }
    tolerance
}

fn evidence(cursor: &RowCursor<'_>, uses: Option<&Uses>) -> Option<Evidence> {
    let word = cursor.text("evidence");
    let all = [Evidence::Fitted, Evidence::Predicted, Evidence::Catalogue];
    let evidence = all.into_iter().find(|evidence| evidence.name() == word);
    let Some(evidence) = evidence else {
        cursor.add_problem(
            "evidence",
            format!("`{word}` is not a kind of evidence"),
            "write fitted, predicted or catalogue",
        );
        return None;
    };
    if let Some(uses) = uses
        && uses.measurements.is_empty() != (evidence == Evidence::Catalogue)
    {
        let what = "`catalogue` is for metrics without a measurement, and only for those";
        cursor.add_problem(
            "evidence",
            what,
            "a row with a run must be fitted or predicted",
        );
    }
    Some(evidence)
}

/// Value of `fixes` if the row's figure determines the load that is searched for in its ACT run.
const LOAD: &str = "act.load";

/// Checks that a load that is searched for is set from the row with its share of slow reads, and that this row says
/// so.
fn check_load(
    cursor: &RowCursor<'_>,
    published: Option<&PublishedValue>,
    fixes: &[String],
    expression: &Expression,
    known: &MetricNames,
) {
    let mut share = None;
    expression.figures(&mut |owner, name| {
        let of_share = name == "act_over_1ms_percent";
        share = share.or(known.shares.get(owner).filter(|_| of_share).copied());
    });
    let says = fixes.iter().any(|key| key == LOAD);
    match (share, says) {
        (Some(share), true) if published == Some(&PublishedValue::Number(share)) => {}
        (Some(share), _) => cursor.add_problem(
            "evidence",
            format!("the load of its run is the one at which {share} % of the reads take 1 ms"),
            format!("write {share} in `published`, `fitted` in `evidence` and `{LOAD}` in `fixes`"),
        ),
        (None, true) => cursor.add_problem(
            "fixes",
            "its metric has no share of reads over 1 ms that could determine the load",
            format!(
                "`{LOAD}` belongs to a row whose measurement has act = {{ over_1ms_percent = ... }}"
            ),
        ),
        (None, false) => {}
    }
}

/// Checks that a fitted row names the figures that were set from it, and that no fitted figure of a predicted row's
/// runs names that row.
fn check_fixes(
    cursor: &RowCursor<'_>,
    id: &str,
    evidence: Option<Evidence>,
    fixes: &[String],
    uses: Option<&Uses>,
    known: &MetricNames,
) {
    if evidence.is_some() && (evidence == Some(Evidence::Fitted)) == fixes.is_empty() {
        let help = "such as `xpoint.medium.read`, or `host.noise.mean` for one of the host";
        let what = "`fixes` belongs to fitted rows, and each of them has it";
        cursor.add_problem("fixes", what, help);
    }
    let Some(uses) = uses else { return };
    let figures: Vec<(String, &Figure)> = uses
        .measurements
        .iter()
        .filter_map(|name| known.measurements.get(name)?.as_ref())
        .flat_map(|(drive, host)| {
            let of_drive = drive
                .all_figures()
                .map(|figure| (figure.key.clone(), figure));
            let of_host = host.figures.iter();
            of_drive.chain(of_host.map(|figure| (format!("host.{}", figure.key), figure)))
        })
        .collect();
    if figures.is_empty() {
        return;
    }
    for key in fixes.iter().filter(|key| *key != LOAD) {
        let mut named = figures.iter().filter(|(known, _)| known == key).peekable();
        if named.peek().is_none() {
            let what = format!("the measured drives and hosts have no figure `{key}`");
            cursor.add_problem("fixes", what, "`drivelab show` lists those of a drive");
        } else if named.all(|(_, figure)| figure.kind == FigureKind::Assumed) {
            let what = format!("`{key}` is of the kind `assumed` in the catalogue");
            cursor.add_problem(
                "fixes",
                what,
                "what a row fixed is `fitted`, `spec` or `measured` there",
            );
        }
    }
    // A parameter taken from a specification counts as set from it, as a fitted one does.
    let set_from_it = figures
        .iter()
        .find(|(_, figure)| figure.kind != FigureKind::Assumed && rows::names(&figure.source, id));
    if let (Some(Evidence::Predicted), Some((key, figure))) = (evidence, set_from_it) {
        let what = format!(
            "it is called predicted, but `{key}` in {} was set from it",
            figure.file
        );
        let help = format!("write `fitted` in `evidence` and `{key}` in `fixes`");
        cursor.add_problem("evidence", what, help);
    }
}
