//! Answers as a page: the sentences, the main chart with the limit, the tables. It is one self-contained HTML file.

use maud::{Markup, html};
use study::decide::choose;
use study::decide::explain;
use study::decide::fill;
use study::decide::life;
use study::decide::max;
use study::decide::mix;
use study::decide::slo::{Limit, LimitMetric, LimitScope, Slo};
use text::words::listed;

use super::bars::{Bar, Bars};
use super::plot::{COLOURS, Plot, PlotAxis, PlotLine};
use super::table::{self, AnswerTable};
use crate::page::look;

const STYLE: &str = include_str!("page.css");
const COPY: &str = include_str!("copy.js");
const POINTS: &str = include_str!("points.js");
/// Start of the line with the command that repeats an answer.
const AGAIN: &str = "Repeat: ";

/// Texts of a page besides its chart.
pub struct PageText {
    /// The question, as the title.
    pub title: String,
    /// The answers, one or two sentences each.
    pub answers: Vec<String>,
    /// Tables below the charts.
    pub tables: Vec<AnswerTable>,
    /// Description of the method.
    pub method: String,
}

/// A chart of a page, with its caption.
pub(super) struct PageFigure {
    pub(super) label: String,
    pub(super) caption: String,
    pub(super) chart: Markup,
}

impl PageFigure {
    /// Returns a chart of lines or points.
    pub(super) fn from_plot(plot: &Plot, caption: impl Into<String>) -> PageFigure {
        PageFigure {
            label: plot.label.clone(),
            caption: caption.into(),
            chart: plot.svg(),
        }
    }
}

/// Returns the page with these charts above the tables.
pub(super) fn page(words: &PageText, figures: &[PageFigure]) -> String {
    let body: Markup = html! {
        a class="skip" href="#figures" { "Skip to the tables" }
        header class="masthead" {
            (look::top_line())
            h1 { (words.title) }
            @for answer in &words.answers { p class="standfirst" { (answer) } }
        }
        main {
            @for PageFigure { label, caption, chart } in figures {
                figure {
                    div class="drawing" tabindex="0" role="group" aria-label={ (label) ". Chart; arrow keys read its values." } { (chart) }
                    p class="hidden" aria-live="polite" {}
                    figcaption { (caption) }
                }
            }
            div id="figures" {
                @for table in &words.tables { (table.markup()) }
            }
            @for line in words.method.lines() { (method(line)) }
        }
        (look::scripts_of_theme())
        (look::script(COPY))
        (look::script(POINTS))
    };
    look::page(&words.title, &[STYLE, table::STYLE], &body)
}

/// Returns the sentence on drives or pools without a figure in a chart, if there are any.
pub(super) fn missing(what: &str, names: &[String]) -> String {
    match names.is_empty() {
        true => String::new(),
        false => format!(
            " Not in the chart, because {what} is not known: {}.",
            listed(names)
        ),
    }
}

/// Returns a line of the method; the command that repeats the answer has a button that copies it.
fn method(line: &str) -> Markup {
    match line.strip_prefix(AGAIN) {
        Some(command) => html! {
            p { (AGAIN) code class="again" { (command) } " " button type="button" class="quiet copy" hidden { "Copy" } }
        },
        None => html! { p { (line) } },
    }
}

/// Returns the lower limits on IOPS over all directions, which are lines across the axis of IOPS.
pub(super) fn floors(slo: &Slo) -> Vec<(f64, String)> {
    let floors = slo.limits.iter().filter(|limit| is_floor(limit));
    floors
        .map(|limit| (limit.bound, limit.text.clone()))
        .collect()
}

fn is_floor(limit: &Limit) -> bool {
    limit.figure == LimitMetric::Iops && limit.of == LimitScope::All
}

/// Returns the limits that are lines across the axis of a figure, each with its index; each has a chart of its own.
pub(super) fn charted(slo: &Slo) -> impl Iterator<Item = (usize, &Limit)> {
    let limits = slo.limits.iter().enumerate();
    limits.filter(|(_, limit)| !is_floor(limit))
}

/// Returns the chart of a figure over IOPS, with its limit, if it has one, and the lower limits on IOPS. `x` is the name
/// of the axis of IOPS.
fn chart_over_iops(
    x: &str,
    y: (&str, &'static str),
    lines: Vec<PlotLine>,
    limit: Option<&Limit>,
    slo: &Slo,
) -> Plot {
    let (name, unit) = y;
    let floors = floors(slo);
    let bound = limit.map(|limit| (limit.bound, limit.text.clone()));
    let points = || lines.iter().flat_map(|line| &line.points);
    let across = points().map(|point| point.0);
    let up = points().map(|point| point.1);
    Plot {
        label: format!("{name} over IOPS"),
        x: PlotAxis::from_values(
            x,
            "IOPS",
            across.chain(floors.iter().map(|floor| floor.0)),
            true,
        ),
        y: PlotAxis::from_values(
            name,
            unit,
            up.chain(bound.iter().map(|bound| bound.0)),
            true,
        ),
        limits: bound.into_iter().collect(),
        floors,
        lines,
        legend: None,
    }
}

/// Returns the page on the highest load: a chart of each limited figure by IOPS, with all tried loads.
pub fn max(slo: &Slo, answers: &[max::MaxAnswer], words: &PageText) -> String {
    let lines = |index: usize| {
        let lines = answers.iter().map(|answer| {
            let points = answer.open.tried.iter();
            let points =
                points.filter_map(|tried| Some((tried.iops, tried.readings.get(index)?.value?)));
            PlotLine {
                name: answer.drive.clone(),
                points: points.collect(),
                remark: None,
            }
        });
        lines.collect()
    };
    const EACH: &str = "Each point is a load that was tried; a dashed line is a limit.";
    let figures = charted(slo).map(|(index, limit)| {
        let y = (limit.name(), limit.unit);
        let plot = chart_over_iops("IOPS, open loop", y, lines(index), Some(limit), slo);
        let caption = format!("{} by load. {EACH}", limit.name());
        PageFigure::from_plot(&plot, caption)
    });
    page(words, &figures.collect::<Vec<_>>())
}

/// Returns the page on mixes: IOPS by the share of reads.
pub fn mix(answers: &[mix::MixAnswer], words: &PageText) -> String {
    let lines = answers.iter().map(|answer| {
        let points = answer.points.iter();
        let points = points.map(|point| (f64::from(point.read_percent), point.iops[0]));
        PlotLine {
            name: answer.drive.clone(),
            points: points.collect(),
            remark: None,
        }
    });
    let lines: Vec<PlotLine> = lines.collect();
    let rates = lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|point| point.1);
    let plot = Plot {
        label: String::from("IOPS over the share of reads"),
        x: PlotAxis {
            name: String::from("share of reads"),
            unit: "%",
            ends: [0.0, 100.0],
            by_ratio: false,
        },
        y: PlotAxis::from_values("IOPS", "IOPS", rates, true),
        lines,
        limits: Vec::new(),
        floors: Vec::new(),
        legend: None,
    };
    let caption = "Each point is a mix, the mean of its seeds.";
    page(words, &[PageFigure::from_plot(&plot, caption)])
}

/// Returns the page on filling: the rate of writes by the bytes written.
pub fn fill(answers: &[fill::FillAnswer], words: &PageText) -> String {
    let curves = answers
        .iter()
        .flat_map(|answer| answer.at.iter().map(move |one| (answer, one)));
    let lines = curves.map(|(answer, one)| PlotLine {
        name: format!("{}, {} %", answer.drive, one.used_percent),
        points: one
            .curve
            .iter()
            .map(|piece| (piece.gb, piece.mb_s))
            .collect(),
        remark: None,
    });
    let lines: Vec<PlotLine> = lines.collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let plot = Plot {
        label: String::from("Write rate by written volume"),
        x: PlotAxis::from_values("written", "GB", points().map(|point| point.0), false),
        y: PlotAxis::from_values("write rate", "MB/s", points().map(|point| point.1), true),
        limits: Vec::new(),
        floors: Vec::new(),
        lines,
        legend: None,
    };
    let caption = "Each point is a quarter percent of the capacity, first seed. The share after a drive's name is in use at the start.";
    page(words, &[PageFigure::from_plot(&plot, caption)])
}

/// Returns the page on lifetime: Percentage Used over the requested years at the load.
pub fn life(answers: &[life::LifeAnswer], words: &PageText) -> String {
    let years = answers.first().map_or(5.0, |answer| answer.years);
    let lines = answers
        .iter()
        .flat_map(|answer| &answer.parts)
        .filter_map(|part| {
            let after = part.used_percent_a_year?;
            let at = |year: f64| part.used_percent + (after - part.used_percent) * year;
            Some(PlotLine {
                name: part.name.clone(),
                points: vec![(0.0, at(0.0)), (years, at(years))],
                remark: None,
            })
        });
    let lines: Vec<PlotLine> = lines.collect();
    // Beyond twice the end nothing more is shown.
    const MOST: f64 = 200.0;
    let plot = Plot {
        label: String::from("Percentage Used over years"),
        x: PlotAxis {
            name: String::from("years"),
            unit: "",
            ends: [0.0, years],
            by_ratio: false,
        },
        y: PlotAxis {
            name: String::from("Percentage Used, as the model counts it"),
            unit: "%",
            ends: [0.0, MOST],
            by_ratio: false,
        },
        lines: lines.into_iter().map(|line| clipped(line, MOST)).collect(),
        limits: vec![
            (100.0, String::new()),
            (105.0, String::from("100 and 105 %")),
        ],
        floors: Vec::new(),
        legend: None,
    };
    let mut caption = String::from("A line that ends early continues above the chart.");
    let parts = answers.iter().flat_map(|answer| &answer.parts);
    let unknown = parts.filter(|part| part.used_percent_a_year.is_none());
    let unknown: Vec<String> = unknown.map(|part| part.name.clone()).collect();
    caption.push_str(&missing("its wear", &unknown));
    page(words, &[PageFigure::from_plot(&plot, caption)])
}

/// Returns a line that ends where it reaches `most`.
fn clipped(mut line: PlotLine, most: f64) -> PlotLine {
    if let [(_, from), (x, to)] = &mut line.points[..]
        && *to > most
    {
        *x *= (most - *from).max(0.0) / (*to - *from);
        *to = most;
    }
    line
}

/// Text on a drive of which only a short run exists.
const SCREENED: &str = "short screening run";

/// Returns the page on candidates: a chart of each limited figure by IOPS; without limits, of the 99th percentile.
pub fn choose(slo: &Slo, answer: &choose::ChooseAnswer, words: &PageText) -> String {
    let figure = |figure: &dyn Fn(&choose::Candidate) -> Option<f64>, y, limit| {
        let all = || answer.candidates.iter();
        let known = all().filter_map(|one| {
            Some(PlotLine {
                name: one.drive.clone(),
                points: vec![(one.iops, figure(one)?)],
                remark: one.screened.then_some(SCREENED),
            })
        });
        let lines: Vec<PlotLine> = known.collect();
        let unknown = all().filter(|one| figure(one).is_none());
        let caption = caption_of_candidates(y, &lines, unknown.map(|one| one.drive.clone()));
        let mut plot = chart_over_iops("IOPS at this load", y, lines, limit, slo);
        plot.legend = all()
            .any(|one| one.screened)
            .then(|| ["full run", SCREENED].map(String::from));
        PageFigure::from_plot(&plot, caption)
    };
    let figures = charted(slo).map(|(index, limit)| {
        let value = move |one: &choose::Candidate| one.readings.get(index)?.value;
        figure(&value, (limit.name(), limit.unit), Some(limit))
    });
    let mut figures: Vec<PageFigure> = figures.collect();
    if figures.is_empty() {
        figures.push(figure(&|one| one.p99_us, ("p99", "us"), None));
    }
    page(words, &figures)
}

/// Returns the caption of a chart of candidates: how to read it, and the drives that are not in it.
fn caption_of_candidates(
    (name, _): (&str, &'static str),
    lines: &[PlotLine],
    unknown: impl Iterator<Item = String>,
) -> String {
    let mut caption = format!("{name} by IOPS. Each point is a drive; a dashed line is a limit.");
    if lines.len() > COLOURS {
        caption.push_str(
            " Drives are numbered from the top. A number is at its point if there is space.",
        );
    }
    let screened = lines.iter().filter(|line| line.remark.is_some());
    let screened: Vec<String> = screened.map(|line| line.name.clone()).collect();
    if !screened.is_empty() {
        caption.push_str(&format!(
            " Only a short screening run exists of {} (hollow points).",
            listed(&screened)
        ));
    }
    caption.push_str(&missing(name, &unknown.collect::<Vec<_>>()));
    caption
}

/// Returns the page on a measured run compared with its drive's model: the latency breakdown, and the rate under each
/// condition and without each option.
pub fn explain(answers: &[explain::answer::ExplainAnswer], words: &PageText) -> String {
    let mut figures = Vec::new();
    for answer in answers {
        let Some(model) = &answer.model else {
            figures.extend(measured(answer));
            continue;
        };
        let rates = Bars {
            label: format!("{}: IOPS", answer.run),
            unit: "IOPS",
            rows: rates(answer, model),
            limit: model
                .rating
                .as_ref()
                .map(|rating| (rating.iops, format!("rated, {}", rating.source))),
        };
        let caption = "IOPS: measured; simulated; simulated under each condition that explains the run (if); and with one option changed, under the best-fitting condition; dashed: the rating.";
        figures.push(PageFigure {
            label: rates.label.clone(),
            caption: caption.to_owned(),
            chart: rates.svg(),
        });
        let times = Bars {
            label: format!("{}: latency breakdown", answer.run),
            unit: "µs",
            rows: times(answer, model),
            limit: None,
        };
        figures.push(PageFigure {
            label: times.label.clone(),
            caption: String::from(
                "Mean latency: as fio measured it, and the parts of the model's latency.",
            ),
            chart: times.svg(),
        });
    }
    page(words, &figures)
}

/// Returns the chart of a run without a model: the measured latency, if the file has it.
fn measured(answer: &explain::answer::ExplainAnswer) -> Option<PageFigure> {
    let sides = answer.measured.sides.iter();
    let rows: Vec<Bar> = sides.map(measured_times).collect();
    if rows.iter().all(|row| row.parts.is_empty()) {
        return None;
    }
    let bars = Bars {
        label: format!("{}: mean latency", answer.run),
        unit: "µs",
        rows,
        limit: None,
    };
    Some(PageFigure {
        label: bars.label.clone(),
        caption: format!("{}: mean latency as fio measured it.", answer.run),
        chart: bars.svg(),
    })
}

fn rates(
    answer: &explain::answer::ExplainAnswer,
    model: &explain::answer::ModelComparison,
) -> Vec<Bar> {
    let bar = |name: &str, iops: f64| Bar {
        name: name.to_owned(),
        parts: vec![(String::from("IOPS"), iops)],
    };
    let mut rows = vec![
        bar("measured", answer.measured.iops),
        bar("model, as asked", model.as_asked.iops),
    ];
    let explains = || {
        let all = model.conditions.iter();
        all.filter(|trial| model.explained_by.contains(&trial.key))
    };
    rows.extend(explains().map(|trial| bar(&format!("model, if: {}", trial.what), trial.iops)));
    // Options are changed under the closest condition.
    let nearest = model.explained_by.first();
    let under = explains().find(|trial| Some(&trial.key) == nearest);
    let under = under.map_or_else(String::new, |trial| format!(", if: {}", trial.what));
    let options = model.options.iter();
    rows.extend(
        options.map(|trial| bar(&format!("model, with {}{under}", trial.what), trial.iops)),
    );
    rows
}

fn measured_times(side: &explain::file::Side) -> Bar {
    let parts = [
        ("submission", side.submission_us),
        ("completion", side.completion_us),
    ];
    let parts = parts
        .into_iter()
        .filter_map(|(name, us)| Some((name.to_owned(), us?)));
    Bar {
        name: format!("{}, measured", side.direction),
        parts: parts.collect(),
    }
}

fn times(
    answer: &explain::answer::ExplainAnswer,
    model: &explain::answer::ModelComparison,
) -> Vec<Bar> {
    let mut rows = Vec::new();
    for simulated in &model.anatomy {
        let sides = answer.measured.sides.iter();
        for side in sides.filter(|side| side.direction == simulated.direction) {
            rows.push(measured_times(side));
        }
        let parts = simulated.parts.iter();
        rows.push(Bar {
            name: format!("{}, model", simulated.direction),
            parts: parts.map(|(name, us)| ((*name).to_owned(), *us)).collect(),
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_it_leaves_the_chart() {
        let line = |to: f64| PlotLine {
            name: String::new(),
            points: vec![(0.0, 0.0), (5.0, to)],
            remark: None,
        };
        assert_eq!(
            clipped(line(400.0), 200.0).points,
            [(0.0, 0.0), (2.5, 200.0)]
        );
        assert_eq!(clipped(line(50.0), 200.0).points, [(0.0, 0.0), (5.0, 50.0)]);
    }
}
