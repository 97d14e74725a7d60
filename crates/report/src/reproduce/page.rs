//! The page of a reproduction: published figures and the model's side by side, one HTML file that needs nothing else.
//!
//! Its look is the review's. Charts are drawn here, as SVG with the style sheet's colours: they are there without
//! scripts, on paper and in both themes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::chart;
use super::{error, model, percent, published, rows_of, verdict};
use crate::page::look;
use crate::page::markup::escape;
use study::ledger::{Evidence, Reproduction, RowResult, SOURCES, Summary, Verdict};

const STYLE: &str = include_str!("page.css");

/// The bytes of the page.
pub fn html(reproduction: &Reproduction) -> String {
    let title = "Published against modelled";
    let mut page = look::head(title, &[STYLE]);
    let all = Summary::of(reproduction.results.iter());
    page.push_str("<header class=\"masthead\">\n");
    page.push_str(&look::top_line());
    let _ = write!(
        page,
        "<h1>{title}</h1>\n<p class=\"standfirst\">Figures that others measured on real drives, next to what the models \
         of the same drives do in virtual time under the same conditions. {} rows, {} runs, {}.</p>\n",
        all.rows,
        reproduction.runs,
        concat!("drivelab ", env!("CARGO_PKG_VERSION")),
    );
    page.push_str(&cards(&all));
    page.push_str("</header>\n<main>\n");
    page.push_str(&errors(reproduction));
    for (source, about) in SOURCES {
        let rows = rows_of(reproduction, source);
        if !rows.is_empty() {
            page.push_str(&section(source, about, &rows));
        }
    }
    page.push_str(&others(reproduction));
    page.push_str("</main>\n");
    page.push_str(&look::scripts_of_theme());
    page.push_str("</body>\n</html>\n");
    page
}

/// Title, what it is about, and its figures by name.
type Card = (&'static str, &'static str, [(&'static str, String); 3]);

fn cards(all: &Summary) -> String {
    let [usual, tail] = &all.classes;
    let cards: [Card; 5] = [
        (
            "Rows",
            "What stands behind the model's figure",
            [
                ("predicted", all.predicted.to_string()),
                ("fitted", all.fitted.to_string()),
                ("catalogue alone", all.catalogue.to_string()),
            ],
        ),
        (
            "Predicted figures",
            "Absolute error against the published figure",
            [
                ("figures", all.errors.rows.to_string()),
                ("median error", percent(all.errors.median)),
                ("nine of ten within", percent(all.errors.p90)),
            ],
        ),
        (
            "Throughput, mean, p99",
            "Of the predicted figures those without a deep tail",
            [
                ("figures", usual.rows.to_string()),
                ("median error", percent(usual.median)),
                ("nine of ten within", percent(usual.p90)),
            ],
        ),
        (
            "Deep tails",
            "Of them p99.99 and beyond, and shares of slow I/Os",
            [
                ("figures", tail.rows.to_string()),
                ("median error", percent(tail.median)),
                ("within factor 1.5", tail.within_factor.to_string()),
            ],
        ),
        (
            "Claims",
            "Statements that hold or do not",
            [
                ("computed from runs", all.claims.to_string()),
                ("held", all.claims_held.to_string()),
                ("rows out of tolerance", all.missed.to_string()),
            ],
        ),
    ];
    let mut page = String::from("<div class=\"cards\">\n");
    for (title, kind, facts) in cards {
        let _ = write!(
            page,
            "<article class=\"card\"><h2>{title}</h2><p class=\"kind\">{kind}</p><dl>"
        );
        for (name, value) in facts {
            let _ = write!(page, "<dt>{name}</dt><dd>{value}</dd>");
        }
        page.push_str("</dl></article>\n");
    }
    page.push_str("</div>\n");
    page
}

/// How far predicted figures are off, as a distribution.
fn errors(reproduction: &Reproduction) -> String {
    let predicted: Vec<f64> = reproduction
        .results
        .iter()
        .filter(|result| result.row.evidence == Evidence::Predicted)
        .filter_map(|result| result.error)
        .collect();
    if predicted.len() < 3 {
        return String::new();
    }
    format!(
        "<section class=\"chapter\" id=\"errors\"><h2>How far predictions are off</h2>\n<p class=\"about\">Each step is \
         one predicted figure. A fitted row says nothing here: a parameter was set so that it agrees.</p>\n\
         <figure><div class=\"scroll wide\">{}</div></figure></section>\n",
        chart::distribution(&predicted)
    )
}

fn section(source: &str, about: &str, rows: &[&RowResult]) -> String {
    let mut page = format!(
        "<section class=\"chapter\" id=\"{source}\">\n<h2>{source}: {}</h2>\n{}",
        escape(about),
        KEY
    );
    let mut by_unit: BTreeMap<&str, Vec<&RowResult>> = BTreeMap::new();
    // What no run is behind agrees by itself: a chart of it would say nothing.
    let of_runs =
        |result: &&&RowResult| result.error.is_some() && result.row.evidence != Evidence::Catalogue;
    for result in rows.iter().filter(of_runs) {
        by_unit.entry(&result.row.unit).or_default().push(result);
    }
    for (unit, rows) in by_unit {
        let _ = writeln!(
            page,
            "<figure><figcaption>Figures in {}</figcaption><div class=\"scroll wide\">{}</div></figure>",
            escape(unit),
            chart::side_by_side(&rows)
        );
    }
    let missed: Vec<&RowResult> = rows
        .iter()
        .copied()
        .filter(|result| result.verdict != Verdict::Holds)
        .collect();
    if !missed.is_empty() {
        let _ = write!(
            page,
            "<h3 class=\"missed\">Out of tolerance</h3>\n{}",
            table(&missed)
        );
    }
    let _ = write!(
        page,
        "<details class=\"data\"><summary>All {} rows, {} out of tolerance</summary>\n{}</details>\n</section>\n",
        rows.len(),
        missed.len(),
        table(rows)
    );
    page
}

const KEY: &str = "<p class=\"key-line soft\"><span><span class=\"mark published\"></span>published</span> \
    <span><span class=\"mark predicted\"></span>model, predicted</span> \
    <span><span class=\"mark fitted\"></span>model, fitted</span> <span>bars: 95 % intervals over seeds</span></p>\n";

fn table(rows: &[&RowResult]) -> String {
    let mut page = String::from(
        "<div class=\"scroll wide\" tabindex=\"0\"><table class=\"ledger\"><thead><tr><th>row</th><th>what</th><th>conditions</th>\
         <th>published</th><th>model</th><th>error</th><th>evidence</th><th>verdict</th></tr></thead><tbody>\n",
    );
    for result in rows {
        let class = if result.verdict == Verdict::Holds {
            "holds"
        } else {
            "misses"
        };
        let _ = write!(
            page,
            "<tr class=\"{class}\"><th>{}</th>",
            escape(&result.row.id)
        );
        for cell in [
            result.row.what.clone(),
            result.row.conditions.clone(),
            published(result),
            model(result),
            error(result),
            result.row.evidence.name().to_owned(),
            verdict(result),
        ] {
            let _ = write!(page, "<td>{}</td>", escape(&cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
    page
}

/// Rows that are not reproduced, by reason, and those that are pending.
fn others(reproduction: &Reproduction) -> String {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (id, reason) in &reproduction.not_reproduced {
        by_reason.entry(reason).or_default().push(id.clone());
    }
    if by_reason.is_empty() && reproduction.pending.is_empty() {
        return String::new();
    }
    let mut page = String::from(
        "<section class=\"chapter\" id=\"others\"><h2>Not reproduced</h2>\n<div class=\"scroll\"><table class=\"sheet\">\
         <thead><tr><th>reason</th><th>rows</th></tr></thead><tbody>\n",
    );
    let pending = (!reproduction.pending.is_empty())
        .then_some(("nobody has looked at them yet", &reproduction.pending));
    for (reason, ids) in by_reason
        .iter()
        .map(|(reason, ids)| (*reason, ids))
        .chain(pending)
    {
        let _ = writeln!(
            page,
            "<tr><th>{}</th><td>{}</td></tr>",
            escape(reason),
            super::ranges(ids)
        );
    }
    page.push_str("</tbody></table></div></section>\n");
    page
}
