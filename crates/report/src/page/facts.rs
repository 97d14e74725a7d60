//! The parts of the page that are text: header, verdict, drives, method.

use std::collections::BTreeMap;

use super::markup::{escape, tied};
use study::review::Review;
use study::review::results::{DriveFacts, Point};
use study::review::summary::{self, FirstFigures};
use text::digits::{bytes_decimal, count, megabytes_a_second, microseconds};
use text::words::listed;

/// Short names of the drives.
fn labels(review: &Review) -> Vec<String> {
    review
        .drives
        .iter()
        .map(|drive| drive.label.clone())
        .collect()
}

pub(super) fn title(review: &Review) -> String {
    match &review.drives[..] {
        // Nothing to tell it apart from.
        [one] => one.name.clone(),
        _ => listed(&labels(review)),
    }
}

fn swatch(drive: usize) -> String {
    format!(
        "<canvas class=\"swatch\" width=\"68\" height=\"24\" data-drive=\"{drive}\" aria-hidden=\"true\"></canvas>"
    )
}

/// What the page begins with; `lead` is its first chart.
pub(super) fn header(review: &Review, title: &str, lead: &str) -> String {
    let mut page = String::from(
        "<a class=\"skip\" href=\"#review\">Skip to the review</a>\n<header class=\"masthead\">\n",
    );
    page.push_str(&super::look::top_line());
    page.push_str(&format!("<h1>{}</h1>\n", escape(title)));
    page.push_str(&format!(
        "<p class=\"standfirst\">Simulated, not measured: every figure comes from a model of the drive. \
         {} suite, seed {}, {}.</p>\n",
        match review.suite.as_str() {
            "quick" => "Quick",
            "full" => "Full",
            other => other,
        },
        review.seed,
        escape(&review.program),
    ));
    if !review.settings.is_empty() {
        page.push_str(&format!(
            "<p class=\"standfirst\">Set on {}: {}.</p>\n",
            if review.drives.len() == 1 {
                "the drive"
            } else {
                "every drive"
            },
            escape(&review.settings.join(", ")),
        ));
    }
    page.push_str(lead);
    page.push_str("</header>\n");
    page
}

/// The first figures of each drive.
pub(super) fn cards(review: &Review) -> String {
    let headlines = summary::cards(review);
    let mut page = String::from("<div class=\"cards\">\n");
    for (drive, headlines) in headlines.iter().enumerate() {
        page.push_str(&card(review, drive, headlines));
    }
    page.push_str("</div>\n");
    page
}

fn card(review: &Review, drive: usize, headlines: &FirstFigures) -> String {
    let facts = &review.drives[drive];
    let capacity = bytes_decimal(facts.capacity_bytes as f64);
    let kind = [facts.medium.as_str(), &capacity, &facts.interface];
    let kind: Vec<&str> = kind.into_iter().filter(|text| !text.is_empty()).collect();
    let mut page = format!(
        "<article class=\"card\"><h2>{} {}</h2><p class=\"kind\">{}</p><dl>",
        swatch(drive),
        escape(&facts.name),
        escape(&kind.join(" · ")),
    );
    for (name, value) in headlines {
        let value = value.as_deref().unwrap_or("–");
        page.push_str(&format!("<dt>{name}</dt><dd>{value}</dd>"));
    }
    page.push_str(&format!(
        "<dt>Model</dt><dd>{}</dd></dl></article>\n",
        escape(facts.support.grade)
    ));
    page
}

pub(super) fn verdict(review: &Review, title_of: impl Fn(&str) -> &'static str) -> String {
    if review.verdict.is_empty() {
        return String::new();
    }
    let mut page =
        String::from("<section id=\"verdict\"><h2>Verdict</h2>\n<dl class=\"verdict\">\n");
    for group in review.verdict.chunk_by(|a, b| a.chapter == b.chapter) {
        let chapter = group[0].chapter;
        page.push_str(&format!(
            "<div><dt><a href=\"#{chapter}\">{}</a></dt>",
            title_of(chapter)
        ));
        for finding in group {
            page.push_str(&format!("<dd>{}</dd>", tied(&escape(&finding.text))));
        }
        page.push_str("</div>\n");
    }
    page.push_str("</dl></section>\n");
    page
}

/// A table of a chapter's workloads: a row for each workload, direction and drive.
pub(super) fn workloads(review: &Review, chapter: &str, title: &str) -> String {
    // Where there is one drive only its name in every row says nothing.
    let several = review.drives.len() > 1;
    let drive_head = if several {
        "<th scope=\"col\" class=\"words\">Drive</th>"
    } else {
        ""
    };
    let mut page = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table class=\"yours\"><thead><tr><th scope=\"col\" class=\"words\">Workload</th>\
         {drive_head}<th scope=\"col\" class=\"words\">Direction</th><th scope=\"col\">IOPS</th><th scope=\"col\">Throughput</th>\
         <th scope=\"col\">Mean</th><th scope=\"col\">99th</th><th scope=\"col\">99.99th</th></tr></thead><tbody>\n",
    );
    let labels = labels(review);
    for point in review
        .chapter(chapter)
        .into_iter()
        .flat_map(|chapter| &chapter.points)
    {
        for (drive, found) in point.results.iter().enumerate() {
            let Some(found) = found else { continue };
            let name = match several {
                true => format!(
                    "<td class=\"words\">{} {}</td>",
                    swatch(drive),
                    escape(&labels[drive])
                ),
                false => String::new(),
            };
            for (direction, figures) in [("read", &found.read), ("write", &found.write)] {
                let Some(figures) = figures else { continue };
                let percentile = |us: Option<f64>| us.map_or("–".to_owned(), microseconds);
                page.push_str(&format!(
                    "<tr><th scope=\"row\">{}</th>{name}<td class=\"words\">{direction}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                    escape(point.name.split_once('/').map_or("", |(_, name)| name)),
                    count(figures.iops),
                    megabytes_a_second(figures.mb_s),
                    microseconds(figures.latency.mean_us),
                    percentile(figures.latency.p99_us),
                    percentile(figures.latency.p99_99_us),
                ));
            }
        }
    }
    page.push_str("</tbody></table></div>\n");
    page
}

/// A line of the table of drives.
type Cell = fn(&DriveFacts) -> Option<String>;

const SPECIFICATIONS: [(&str, Cell); 10] = [
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
    ("Drive writes a day", |drive| {
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
    ("How well the model is supported", |drive| {
        Some(format!("{}: {}", drive.support.grade, drive.support.text))
    }),
];

pub(super) fn drives(review: &Review) -> String {
    let mut page = String::from(
        "<section id=\"drives\" class=\"chapter\"><h2>The drives</h2>\n<p class=\"about\">What makers and measurements \
         say, and what had to be fitted or assumed. A dash: not in our sources.</p>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Specifications\"><table class=\"sheet\"><thead><tr><td></td>",
    );
    for (drive, facts) in review.drives.iter().enumerate() {
        page.push_str(&format!(
            "<th scope=\"col\">{} {}</th>",
            swatch(drive),
            escape(&facts.name)
        ));
    }
    page.push_str("</tr></thead><tbody>\n");
    for (name, cell) in SPECIFICATIONS {
        page.push_str(&format!("<tr><th scope=\"row\">{name}</th>"));
        for facts in &review.drives {
            let text = cell(facts).filter(|text| !text.is_empty());
            let text = text.map_or_else(|| "–".to_owned(), |text| escape(&text));
            page.push_str(&format!("<td>{text}</td>"));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
    for facts in &review.drives {
        let summary = format!("{}: every figure and its source", facts.name);
        page.push_str(&figures(&summary, &facts.figures));
    }
    let summary = format!("The host: {}", review.host.name);
    page.push_str(&figures(&summary, &review.host.figures));
    page.push_str("</section>\n");
    page
}

fn figures(summary: &str, figures: &[study::review::results::Figure]) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for figure in figures {
        *kinds.entry(figure.kind).or_default() += 1;
    }
    let kinds: Vec<String> = ["spec", "measured", "fitted", "assumed"]
        .iter()
        .filter_map(|kind| kinds.get(kind).map(|many| format!("{many} {kind}")))
        .collect();
    let mut page = format!(
        "<details class=\"data\"><summary>{} <span class=\"soft\">{}</span></summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\
         <table class=\"figures\"><thead><tr><th scope=\"col\">Figure</th><th scope=\"col\">Value</th><th scope=\"col\">Kind</th><th scope=\"col\">Source or reason</th></tr></thead><tbody>\n",
        escape(summary),
        kinds.join(", "),
        escape(summary),
    );
    for figure in figures {
        page.push_str(&format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td><span class=\"tag {}\">{}</span></td><td>{}</td></tr>\n",
            escape(&figure.key),
            escape(&figure.value),
            figure.kind,
            figure.kind,
            escape(&figure.source)
        ));
    }
    page.push_str("</tbody></table></div></details>\n");
    page
}

pub(super) fn method(review: &Review) -> String {
    let mut page = String::from("<section id=\"method\" class=\"chapter\"><h2>Method</h2>\n");
    page.push_str(
        "<p class=\"about\">Drives begin each chapter in the state named below, steady being that after two fills \
         with 4 KiB random writes, and run its jobs one after the other. A short pilot sets how long a job runs, so that \
         slow and fast drives give as many samples; I/Os of the first moments (<code>ramp_time</code>) are not counted. \
         Latency is what fio calls <i>lat</i>: from submission to completion. A percentile is shown only where at least ten \
         I/Os were slower: more of them with <code>--suite full</code>. The same seed gives the same page, byte for byte, on any machine.</p>\n",
    );
    page.push_str("<p class=\"about\">These are the jobs as fio reads them; <code>drivelab run</code> takes them as they are.</p>\n");
    let labels = labels(review);
    for chapter in &review.chapters {
        page.push_str(&format!(
            "<details class=\"data jobs\"><summary>{} <span class=\"soft\">{} {}</span></summary>\n",
            escape(chapter.title),
            chapter.points.len(),
            if chapter.points.len() == 1 { "job" } else { "jobs" },
        ));
        for point in &chapter.points {
            page.push_str(&job(point, &labels));
        }
        page.push_str("</details>\n");
    }
    page.push_str("</section>\n");
    page
}

/// A point's job: once if all drives ran the same, else the lines that differ by drive.
fn job(point: &Point, labels: &[String]) -> String {
    let mut by_text: Vec<(&str, Vec<&str>)> = Vec::new();
    for (found, label) in point.results.iter().zip(labels) {
        let Some(found) = found else { continue };
        match by_text.iter_mut().find(|(text, _)| *text == found.job) {
            Some((_, drives)) => drives.push(label),
            None => by_text.push((&found.job, vec![label])),
        }
    }
    let mut page = format!(
        "<details><summary><code>{}</code> <span class=\"soft\">{}, seed {}</span></summary>",
        escape(&point.name),
        point.state,
        point.seed
    );
    for (text, drives) in by_text {
        page.push_str(&format!(
            "<p class=\"soft\">{}</p><pre>{}</pre>",
            escape(&drives.join(", ")),
            escape(text)
        ));
    }
    page.push_str("</details>\n");
    page
}
