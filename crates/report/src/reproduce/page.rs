//! The page of a reproduction: published figures compared with the model's, in one self-contained HTML file.
//!
//! Its style is the review's. Charts are drawn here, as SVG with the style sheet's colours: they work without scripts,
//! on paper and in both themes.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::chart;
use super::{error, model, percent, published, rows_of, verdict};
use crate::page::look;
use study::ledger::{Evidence, Reproduction, RowResult, RowVerdict, SOURCES, Summary};

const STYLE: &str = include_str!("page.css");

/// Returns the bytes of the page.
pub fn html(reproduction: &Reproduction) -> String {
    let title = "Published against modelled";
    let all = Summary::from_results(reproduction.results.iter());
    let body = html! {
        header class="masthead" {
            (look::top_line())
            h1 { (title) }
            p class="standfirst" {
                "Figures that others measured on real drives, next to what the models of the same drives do in virtual \
                 time under the same conditions. "
                (all.rows) " rows, " (reproduction.runs) " runs, " (version::PROGRAM) "."
            }
            (cards(&all))
        }
        main {
            (errors(reproduction))
            @for (source, about) in SOURCES {
                (section(source, about, &rows_of(reproduction, source)))
            }
            (others(reproduction))
        }
        (look::scripts_of_theme())
    };
    look::page(title, &[STYLE], &body)
}

/// Title, subject, and named figures of a card.
type SummaryCard = (&'static str, &'static str, [(&'static str, String); 3]);

fn cards(all: &Summary) -> Markup {
    let [usual, tail] = &all.classes;
    let cards: [SummaryCard; 5] = [
        (
            "Rows",
            "Origin of the model's figure",
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
                ("90th percentile", percent(all.errors.p90)),
            ],
        ),
        (
            "Throughput, mean, p99",
            "Predicted figures other than deep tails",
            [
                ("figures", usual.rows.to_string()),
                ("median error", percent(usual.median)),
                ("90th percentile", percent(usual.p90)),
            ],
        ),
        (
            "Deep tails",
            "Predicted p99.99 and above, and shares of slow I/Os",
            [
                ("figures", tail.rows.to_string()),
                ("median error", percent(tail.median)),
                ("within factor 1.5", tail.within_factor.to_string()),
            ],
        ),
        (
            "Claims",
            "Published statements, checked against runs",
            [
                ("computed from runs", all.claims.to_string()),
                ("held", all.claims_held.to_string()),
                ("rows out of tolerance", all.missed.to_string()),
            ],
        ),
    ];
    html! {
        div class="cards" {
            @for (title, kind, facts) in cards {
                article class="card" {
                    h2 { (title) }
                    p class="kind" { (kind) }
                    dl {
                        @for (name, value) in facts {
                            dt { (name) }
                            dd { (value) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the distribution of the errors of predicted figures.
fn errors(reproduction: &Reproduction) -> Markup {
    let predicted: Vec<f64> = reproduction
        .results
        .iter()
        .filter(|result| result.row.evidence == Evidence::Predicted)
        .filter_map(|result| result.error)
        .collect();
    if predicted.len() < 3 {
        return Markup::default();
    }
    html! {
        section class="chapter" id="errors" {
            h2 { "Errors of predictions" }
            p class="about" {
                "Each step is one predicted figure. A fitted row says nothing here: a parameter was set so that it agrees."
            }
            figure { div class="scroll wide" { (chart::distribution(&predicted)) } }
        }
    }
}

fn section(source: &str, about: &str, rows: &[&RowResult]) -> Markup {
    if rows.is_empty() {
        return Markup::default();
    }
    let mut by_unit: BTreeMap<&str, Vec<&RowResult>> = BTreeMap::new();
    // A figure without a run agrees by definition, so a chart of it would be meaningless.
    let of_runs =
        |result: &&&RowResult| result.error.is_some() && result.row.evidence != Evidence::Catalogue;
    for result in rows.iter().filter(of_runs) {
        by_unit.entry(&result.row.unit).or_default().push(result);
    }
    let missed: Vec<&RowResult> = rows
        .iter()
        .copied()
        .filter(|result| result.verdict != RowVerdict::Holds)
        .collect();
    html! {
        section class="chapter" id=(source) {
            h2 { (source) ": " (about) }
            (key())
            @for (unit, rows) in by_unit {
                figure {
                    figcaption { "Figures in " (unit) }
                    div class="scroll wide" { (chart::side_by_side(&rows)) }
                }
            }
            @if !missed.is_empty() {
                h3 class="missed" { "Out of tolerance" }
                (table(&missed))
            }
            details class="data" {
                summary { "All " (rows.len()) " rows, " (missed.len()) " out of tolerance" }
                (table(rows))
            }
        }
    }
}

fn key() -> Markup {
    let marks = [
        ("published", "published"),
        ("predicted", "model, predicted"),
        ("fitted", "model, fitted"),
    ];
    html! {
        p class="key-line soft" {
            @for (class, name) in marks {
                span { span class={ "mark " (class) } {} (name) } " "
            }
            span { "bars: 95 % intervals over seeds" }
        }
    }
}

fn table(rows: &[&RowResult]) -> Markup {
    let heads = [
        "row",
        "what",
        "conditions",
        "published",
        "model",
        "error",
        "evidence",
        "verdict",
    ];
    html! {
        div class="scroll wide" tabindex="0" {
            table class="ledger" {
                thead { tr { @for head in heads { th { (head) } } } }
                tbody {
                    @for result in rows {
                        tr class=(if result.verdict == RowVerdict::Holds { "holds" } else { "misses" }) {
                            th { (result.row.id) }
                            td { (result.row.what) }
                            td { (result.row.conditions) }
                            td { (published(result)) }
                            td { (model(result)) }
                            td { (error(result)) }
                            td { (result.row.evidence.name()) }
                            td { (verdict(result)) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the rows that are not reproduced, by reason, and the pending rows.
fn others(reproduction: &Reproduction) -> Markup {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (id, reason) in &reproduction.not_reproduced {
        by_reason.entry(reason).or_default().push(id.clone());
    }
    if by_reason.is_empty() && reproduction.pending.is_empty() {
        return Markup::default();
    }
    let pending =
        (!reproduction.pending.is_empty()).then_some(("not examined yet", &reproduction.pending));
    let by_reason = by_reason.iter().map(|(reason, ids)| (*reason, ids));
    html! {
        section class="chapter" id="others" {
            h2 { "Not reproduced" }
            div class="scroll" {
                table class="sheet" {
                    thead { tr { th { "reason" } th { "rows" } } }
                    tbody {
                        @for (reason, ids) in by_reason.chain(pending) {
                            tr { th { (reason) } td { (super::ranges(ids)) } }
                        }
                    }
                }
            }
        }
    }
}
