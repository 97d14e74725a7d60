//! The page of a review: one self-contained HTML file.
//!
//! Texts, facts and jobs are written here, escaped, so that they are visible without scripts. Charts and their tables
//! are drawn by the scripts in this folder, from the review's JSON and from the chapters' descriptions of their
//! charts, both embedded with every `<` escaped. The page loads nothing: its content security policy forbids it.

mod facts;
mod lab;
pub(crate) mod look;
mod markup;
mod simulate;

use maud::{Markup, PreEscaped, html};

pub use lab::{LabChoice, html as lab_html};
use markup::json_in_script;
pub(crate) use markup::tied;
pub use simulate::engine_bytes;
use study::review::chart::ChapterSection;
use study::review::{METHOD, Review, sections, spreads, sweeps};

const STYLES: [&str; 2] = [
    include_str!("vendor/uplot/uPlot.min.css"),
    include_str!("style/page.css"),
];

/// Scripts in the order of their dependencies.
const SCRIPTS: [&str; 20] = [
    include_str!("vendor/uplot/uPlot.iife.min.js"),
    include_str!("script/format.js"),
    include_str!("script/data.js"),
    include_str!("script/theme.js"),
    include_str!("script/controls.js"),
    include_str!("script/address.js"),
    include_str!("script/marks.js"),
    include_str!("script/shown.js"),
    include_str!("script/axes.js"),
    include_str!("script/tip.js"),
    include_str!("script/zoom.js"),
    include_str!("script/limit.js"),
    include_str!("script/plot.js"),
    include_str!("script/table.js"),
    include_str!("script/published.js"),
    include_str!("script/anatomy.js"),
    include_str!("script/gauged.js"),
    include_str!("script/matrix.js"),
    include_str!("script/lead.js"),
    include_str!("script/charts.js"),
];

/// Run last: inserts the charts into the page.
const START: &str = include_str!("script/start.js");

/// Run first, before anything is painted, so that the page does not flash before a chosen theme is applied.
const EARLY: &str = include_str!("script/early.js");

/// Returns the bytes of `review.html`.
pub fn html(review: &Review) -> String {
    let title = facts::title(review);
    let shown = sections(review);
    let simulates = simulate::is_possible(review);
    let body = html! {
        (facts::header(review, &title, &lead(review)))
        (contents(review, &shown))
        noscript {
            p class="standfirst noscript" { "Charts need JavaScript; text, facts and jobs do not." }
        }
        (chapters(review, &shown))
        (data("review-data", &page_json(review)))
        (data("chart-data", &charts_json(review, &shown)))
        @for script in SCRIPTS {
            (look::script(script))
        }
        @if simulates {
            (simulate::scripts(review))
        }
        (look::script(START))
    };
    match simulates {
        true => look::simulating_page(&title, &[], &body),
        false => look::page(&title, &[], &body),
    }
}

/// Returns data for the scripts.
fn data(id: &str, value: &serde_json::Value) -> Markup {
    html! { script type="application/json" id=(id) { (PreEscaped(json_in_script(value))) } }
}

/// Returns the review without its jobs and the drives' figures, which are in the page as text.
fn page_json(review: &Review) -> serde_json::Value {
    let mut value = serde_json::to_value(review).expect("a review has no maps with odd keys");
    for drive in value["drives"].as_array_mut().into_iter().flatten() {
        drive["figures"] = serde_json::Value::Null;
    }
    let chapters = value["chapters"].as_array_mut();
    let points = chapters
        .into_iter()
        .flatten()
        .filter_map(|chapter| chapter["points"].as_array_mut())
        .flatten();
    for point in points {
        for result in point["results"].as_array_mut().into_iter().flatten() {
            if let Some(fields) = result.as_object_mut() {
                fields.remove("job");
            }
        }
    }
    value
}

/// Returns the data from which scripts draw: the review's charts, each with its chapter, and their choices.
fn charts_json(review: &Review, shown: &[ChapterSection]) -> serde_json::Value {
    let charts = shown.iter().flat_map(|section| {
        section.charts.iter().map(|chart| {
            let mut chart = serde_json::to_value(chart).expect("a chart is plain data");
            chart["chapter"] = section.id.into();
            chart
        })
    });
    serde_json::json!({
        "charts": charts.collect::<Vec<_>>(),
        "sweeps": sweeps(review),
        "spreads": spreads(review),
    })
}

/// Returns the chart of the first screen, if the review has its points.
fn lead(review: &Review) -> Markup {
    let figure = html! {
        figure data-chart="lead" class="lead" {
            figcaption { "Throughput of each drive within a latency limit" }
        }
    };
    match sweeps(review)[..] {
        [] => Markup::default(),
        _ => figure,
    }
}

/// Returns links to the chapters, which remain visible; scripts add the choice of drives to them.
fn contents(review: &Review, shown: &[ChapterSection]) -> Markup {
    let chapters = shown.iter().map(|section| (section.id, section.title));
    let verdict = (!review.verdict.is_empty()).then_some(("verdict", "Verdict"));
    let simulated = simulate::is_possible(review).then_some((simulate::ID, simulate::TITLE));
    let last = [("drives", "The drives"), ("method", "Method")];
    let last = simulated.into_iter().chain(last);
    html! {
        nav class="contents" aria-label="Contents" {
            ol {
                @for (id, title) in verdict.into_iter().chain(chapters).chain(last) {
                    li { a href={ "#" (id) } { (title) } }
                }
            }
            div class="drives" role="group" aria-label="Drives in the charts" {}
        }
    }
}

fn chapters(review: &Review, shown: &[ChapterSection]) -> Markup {
    let title_of = |id: &str| {
        let section = shown.iter().find(|section| section.id == id);
        let other = if id == METHOD { "Method" } else { "The drives" };
        section.map_or(other, |section| section.title)
    };
    html! {
        main id="review" {
            (facts::cards(review))
            (facts::verdict(review, title_of))
            @for section in shown {
                section id=(section.id) class="chapter" {
                    h2 { (section.title) }
                    p class="about" { (section.about) }
                    @if section.charts.is_empty() {
                        (facts::workloads(review, section.id, section.title))
                    }
                    @for chart in section.charts {
                        figure data-chart=(chart.id) { figcaption { (chart.title) } }
                    }
                }
            }
            @if simulate::is_possible(review) {
                (simulate::chapter(review))
            }
            (facts::drives(review))
            (facts::method(review))
        }
    }
}
