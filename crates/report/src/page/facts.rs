//! The textual parts of the page: header, verdict, drives, method.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::look;
use super::markup::tied;
use study::review::Review;
use study::review::results::{DirectionResult, DriveFacts, Point, SheetFigure};
use study::review::summary::{self, FirstFigures};
use text::digits::{bytes_decimal, count, megabytes_a_second, microseconds};
use text::words::listed;

/// Returns the short names of the drives.
fn labels(review: &Review) -> Vec<String> {
    review
        .drives
        .iter()
        .map(|drive| drive.label.clone())
        .collect()
}

pub(super) fn title(review: &Review) -> String {
    match &review.drives[..] {
        // There is nothing to distinguish it from.
        [one] => one.name.clone(),
        _ => listed(&labels(review)),
    }
}

/// Returns a sample of a drive's line, which the scripts draw.
fn swatch(drive: usize) -> Markup {
    html! { canvas class="swatch" width="68" height="24" data-drive=(drive) aria-hidden="true" {} }
}

/// Returns a table that may be wider than the screen.
fn wide(name: &str, table: &Markup) -> Markup {
    html! { div class="scroll" tabindex="0" role="region" aria-label=(name) { (table) } }
}

/// Returns the beginning of the page; `lead` is its first chart.
pub(super) fn header(review: &Review, title: &str, lead: &Markup) -> Markup {
    let suite = match review.suite.as_str() {
        _ if review.is_of_own_work() => "Your jobs and traces",
        "quick" => "Quick suite",
        "full" => "Full suite",
        other => &format!("{other} suite"),
    };
    let drives = match review.drives.len() {
        1 => "the drive",
        _ => "every drive",
    };
    html! {
        a class="skip" href="#review" { "Skip to the review" }
        header class="masthead" {
            (look::top_line())
            h1 { (title) }
            p class="standfirst" {
                "Simulated, not measured: every figure comes from a model of the drive. "
                (suite) ", seed " (review.seed) ", " (review.program) "."
            }
            @if !review.settings.is_empty() {
                p class="standfirst" { "Set on " (drives) ": " (review.settings.join(", ")) "." }
            }
            (lead)
        }
    }
}

/// Returns the headline figures of each drive.
pub(super) fn cards(review: &Review) -> Markup {
    html! {
        div class="cards" {
            @for (drive, figures) in summary::cards(review).iter().enumerate() {
                (card(review, drive, figures))
            }
        }
    }
}

fn card(review: &Review, drive: usize, figures: &FirstFigures) -> Markup {
    let facts = &review.drives[drive];
    let capacity = bytes_decimal(facts.capacity_bytes as f64);
    let kind = [facts.medium.as_str(), &capacity, &facts.interface];
    let kind: Vec<&str> = kind.into_iter().filter(|text| !text.is_empty()).collect();
    html! {
        article class="card" style={ "--rows: " (figures.len() + 1) } {
            h2 { (swatch(drive)) " " (facts.name) }
            p class="kind" { (kind.join(" · ")) }
            dl {
                @for (name, value) in figures {
                    div {
                        dt { (name) }
                        dd { (first_figure(value.as_deref().unwrap_or("–"))) }
                    }
                }
                div {
                    dt { "Model" }
                    dd { (facts.support.grade) }
                }
            }
        }
    }
}

/// Returns a figure of a card. A remark in brackets has its own line, so that there is space for the name.
fn first_figure(value: &str) -> Markup {
    let remark = value
        .strip_suffix(')')
        .and_then(|text| text.split_once(" ("));
    html! {
        @match remark {
            Some((figure, remark)) => { (figure) " " span class="soft" { (remark) } }
            None => { (value) }
        }
    }
}

pub(super) fn verdict(review: &Review, title_of: impl Fn(&str) -> &'static str) -> Markup {
    if review.verdict.is_empty() {
        return Markup::default();
    }
    html! {
        section id="verdict" {
            h2 { "Verdict" }
            dl class="verdict" {
                @for group in review.verdict.chunk_by(|a, b| a.chapter == b.chapter) {
                    div {
                        dt { a href={ "#" (group[0].chapter) } { (title_of(group[0].chapter)) } }
                        @for finding in group {
                            dd { (tied(&finding.text)) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns a table of a chapter's workloads: a row for each workload, direction and drive.
pub(super) fn workloads(review: &Review, chapter: &str, title: &str) -> Markup {
    // With a single drive, its name in every row is redundant.
    let several = review.drives.len() > 1;
    let table = html! {
        table class="yours" {
            thead {
                tr {
                    th scope="col" class="words" { "Workload" }
                    @if several {
                        th scope="col" class="words" { "Drive" }
                    }
                    th scope="col" class="words" { "Direction" }
                    @for name in ["IOPS", "Throughput", "Mean", "99th", "99.99th"] {
                        th scope="col" { (name) }
                    }
                }
            }
            tbody {
                @for point in review.points(chapter) {
                    @for (drive, found) in point.results.iter().enumerate() {
                        @for direction in ["read", "write"] {
                            @if let Some(figures) = found.as_ref().and_then(|found| found.direction(direction)) {
                                tr {
                                    th scope="row" { (point.name.split_once('/').map_or("", |(_, name)| name)) }
                                    @if several {
                                        td class="words" { (swatch(drive)) " " (review.drives[drive].label) }
                                    }
                                    td class="words" { (direction) }
                                    @for cell in cells(figures) {
                                        td { (cell) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    wide(title, &table)
}

/// Returns IOPS, throughput and latency.
fn cells(figures: &DirectionResult) -> [String; 5] {
    let percentile = |us: Option<f64>| us.map_or("–".to_owned(), microseconds);
    [
        count(figures.iops),
        megabytes_a_second(figures.mb_s),
        microseconds(figures.latency.mean_us),
        percentile(figures.latency.p99_us),
        percentile(figures.latency.p99_99_us),
    ]
}

/// A line of the table of drives.
type Cell = fn(&DriveFacts) -> Option<String>;

const SPECIFICATIONS: [(&str, Cell); 11] = [
    ("Medium", |drive| Some(drive.medium.clone())),
    ("Form and interface", |drive| {
        let words = [drive.form_factor.as_str(), &drive.interface];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        Some(words.join(", "))
    }),
    ("Capacity", |drive| {
        Some(bytes_decimal(drive.capacity_bytes as f64))
    }),
    ("I/O queues", |drive| Some(drive.io_queues.to_string())),
    ("Endurance", |drive| {
        let bytes = drive.endurance_bytes?;
        Some(format!("{} written", bytes_decimal(bytes as f64)))
    }),
    ("Drive writes per day", |drive| {
        drive
            .drive_writes_per_day
            .map(|writes| format!("{writes:.1}"))
    }),
    ("Warranty", |drive| {
        drive.warranty_years.map(|years| format!("{years} years"))
    }),
    ("Price", |drive| {
        let price = format!("${:.0}", drive.price_usd?);
        Some(match &drive.price_date {
            Some(date) => format!("{price} ({date})"),
            None => price,
        })
    }),
    ("Price per GB", |drive| {
        drive.usd_per_gb.map(|price| format!("${price:.2}"))
    }),
    ("Durability guarantee", |drive| drive.promise.clone()),
    ("Support level of the model", |drive| {
        Some(format!("{}: {}", drive.support.grade, drive.support.text))
    }),
];

pub(super) fn drives(review: &Review) -> Markup {
    let table = html! {
        table class="sheet" {
            thead {
                tr {
                    td {}
                    @for (drive, facts) in review.drives.iter().enumerate() {
                        th scope="col" { (swatch(drive)) " " (facts.name) }
                    }
                }
            }
            tbody {
                // Rows that only pools have are shown if there is a pool.
                @for (name, cell) in SPECIFICATIONS.iter().filter(|(name, cell)| {
                    *name != "Durability guarantee" || review.drives.iter().any(|it| cell(it).is_some())
                }) {
                    tr {
                        th scope="row" { (name) }
                        @for facts in &review.drives {
                            td { (cell(facts).filter(|text| !text.is_empty()).as_deref().unwrap_or("–")) }
                        }
                    }
                }
            }
        }
    };
    html! {
        section id="drives" class="chapter" {
            h2 { "The drives" }
            p class="about" {
                "Figures from makers and measurements, and figures that were fitted or assumed. A dash: not in our sources."
            }
            (wide("Specifications", &table))
            @for facts in &review.drives {
                (sheet(&format!("{}: every figure and its source", facts.name), &facts.figures))
            }
            (sheet(&format!("The host: {}", review.host.name), &review.host.figures))
        }
    }
}

fn sheet(summary: &str, figures: &[SheetFigure]) -> Markup {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for figure in figures {
        *kinds.entry(figure.kind).or_default() += 1;
    }
    let kinds: Vec<String> = ["spec", "measured", "fitted", "assumed"]
        .iter()
        .filter_map(|kind| kinds.get(kind).map(|many| format!("{many} {kind}")))
        .collect();
    let table = html! {
        table class="figures" {
            thead {
                tr {
                    @for name in ["Figure", "Value", "Kind", "Source or reason"] {
                        th scope="col" { (name) }
                    }
                }
            }
            tbody {
                @for figure in figures {
                    tr {
                        th scope="row" { (figure.key) }
                        td { (figure.value) }
                        td { span class={ "tag " (figure.kind) } { (figure.kind) } }
                        td { (figure.source) }
                    }
                }
            }
        }
    };
    html! {
        details class="data" {
            summary { (summary) " " span class="soft" { (kinds.join(", ")) } }
            (wide(summary, &table))
        }
    }
}

pub(super) fn method(review: &Review) -> Markup {
    let labels = labels(review);
    html! {
        section id="method" class="chapter" {
            h2 { "Method" }
            p class="about" {
                "Drives begin each chapter in the state named below, steady being that after two fills with 4 KiB random \
                 writes, and run its jobs one after the other. A short pilot sets how long a job runs, so that slow and \
                 fast drives give as many samples; I/Os of the first moments (" code { "ramp_time" } ") are not counted. \
                 Latency is what fio calls " i { "lat" } ": from submission to completion. A percentile is shown only \
                 where at least ten I/Os were slower: more of them with " code { "--suite full" } ". The same seed gives \
                 the same figures, byte for byte, on any machine."
            }
            p class="about" {
                "These are the jobs as fio reads them; " code { "drivelab run" } " takes them as they are."
            }
            @for chapter in &review.chapters {
                details class="data jobs" {
                    summary {
                        (chapter.title) " "
                        span class="soft" {
                            (chapter.points.len()) @if chapter.points.len() == 1 { " job" } @else { " jobs" }
                        }
                    }
                    @for point in &chapter.points {
                        (job(point, &labels))
                    }
                }
            }
        }
    }
}

/// Returns a point's job: once if all drives ran the same, otherwise the lines that differ by drive.
fn job(point: &Point, labels: &[String]) -> Markup {
    let mut by_text: Vec<(&str, Vec<&str>)> = Vec::new();
    for (found, label) in point.results.iter().zip(labels) {
        let Some(found) = found else { continue };
        match by_text.iter_mut().find(|(text, _)| *text == found.job) {
            Some((_, drives)) => drives.push(label),
            None => by_text.push((&found.job, vec![label])),
        }
    }
    html! {
        details {
            summary {
                code { (point.name) } " "
                span class="soft" { (point.state) ", seed " (point.seed) }
            }
            @for (text, drives) in by_text {
                p class="soft" { (drives.join(", ")) }
                pre { (text) }
            }
        }
    }
}
