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
use super::plot::{Plot, PlotAxis, PlotLine};
use crate::page::look;

const STYLE: &str = include_str!("page.css");
const COPY: &str = include_str!("copy.js");
/// Start of the line with the command that repeats an answer.
const AGAIN: &str = "Repeat: ";

/// Texts of a page besides its chart.
pub struct PageText {
    /// The question, as the title.
    pub title: String,
    /// The answers, one or two sentences each.
    pub answers: Vec<String>,
    /// The table, as on the terminal.
    pub table: String,
    /// Description of the method.
    pub method: String,
}

fn page(words: &PageText, caption: &str, plot: &Plot) -> String {
    page_of(words, &[(caption, plot.svg())])
}

fn page_of(words: &PageText, figures: &[(&str, Markup)]) -> String {
    let body: Markup = html! {
        header class="masthead" {
            (look::top_line())
            h1 { (words.title) }
            @for answer in &words.answers { p class="standfirst" { (answer) } }
        }
        main {
            @for (caption, svg) in figures {
                figure {
                    div class="scroll wide" tabindex="0" role="region" aria-label="Chart" { (svg) }
                    figcaption { (caption) }
                }
            }
            div class="scroll wide" tabindex="0" role="region" aria-label="Table" {
                pre class="table" { (words.table) }
            }
            @for line in words.method.lines() { (method(line)) }
        }
        (look::scripts_of_theme())
        (look::script(COPY))
    };
    look::page(&words.title, &[STYLE], &body)
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

/// Returns the sentence on limits that the chart does not have, if there are any.
fn not_drawn<'a>(limits: impl Iterator<Item = &'a Limit>) -> String {
    let texts: Vec<String> = limits.map(|limit| limit.text.clone()).collect();
    match texts.is_empty() {
        true => String::new(),
        false => format!(
            " The table also has limits on other figures: {}.",
            listed(&texts)
        ),
    }
}

/// Returns the lower limits on IOPS over all directions, which are lines across the axis of IOPS.
fn floors(slo: &Slo) -> Vec<(f64, String)> {
    let floors = slo.limits.iter().filter(|limit| is_floor(limit));
    floors
        .map(|limit| (limit.bound, limit.text.clone()))
        .collect()
}

fn is_floor(limit: &Limit) -> bool {
    limit.figure == LimitMetric::Iops && limit.of == LimitScope::All
}

/// Returns the limits other than the one at this index and those that [`floors`] returns.
fn others(slo: &Slo, index: Option<usize>) -> impl Iterator<Item = &Limit> {
    let limits = slo.limits.iter().enumerate();
    limits
        .filter(move |(at, limit)| Some(*at) != index && !is_floor(limit))
        .map(|(_, limit)| limit)
}

/// Returns the first limit on a latency.
fn latency(slo: &Slo) -> Option<(usize, &Limit)> {
    let mut limits = slo.limits.iter().enumerate();
    limits.find(|(_, limit)| limit.figure.is_latency())
}

/// Returns the chart of the latency `name` over IOPS, with its limit and the lower limits on IOPS. `titles` are those of
/// the chart and of its x axis.
fn latency_chart(
    titles: [String; 2],
    name: &str,
    lines: Vec<PlotLine>,
    limit: Option<&Limit>,
    slo: &Slo,
) -> Plot {
    let [label, x] = titles;
    let floors = floors(slo);
    let bound = limit.map(|limit| (limit.bound, limit.text.clone()));
    let points = || lines.iter().flat_map(|line| &line.points);
    Plot {
        label,
        x: PlotAxis::from_values(
            &x,
            points()
                .map(|point| point.0)
                .chain(floors.iter().map(|floor| floor.0)),
            true,
        ),
        y: PlotAxis::from_values(
            &format!("{name}, microseconds"),
            points()
                .map(|point| point.1)
                .chain(bound.iter().map(|bound| bound.0)),
            true,
        ),
        limits: bound.into_iter().collect(),
        floors,
        lines,
    }
}

/// Returns the page on the highest load: latency by IOPS of all tried loads.
pub fn max(slo: &Slo, answers: &[max::MaxAnswer], words: &PageText) -> String {
    let (known, limit) = latency(slo).unzip();
    let index = known.unwrap_or(0);
    let lines = answers.iter().map(|answer| {
        let points = answer.open.tried.iter();
        let points =
            points.filter_map(|tried| Some((tried.iops, tried.readings.get(index)?.value?)));
        PlotLine {
            name: answer.drive.clone(),
            points: points.collect(),
        }
    });
    let name = limit.map_or("", Limit::name);
    let titles = [format!("{name} over load"), String::from("IOPS, open loop")];
    let plot = latency_chart(titles, name, lines.collect(), limit, slo);
    let caption = format!(
        "Each point is a load that was tried; dashed lines are the limits.{}",
        not_drawn(others(slo, known))
    );
    page(words, &caption, &plot)
}

/// Returns the page on mixes: IOPS by the share of reads.
pub fn mix(answers: &[mix::MixAnswer], words: &PageText) -> String {
    let lines = answers.iter().map(|answer| {
        let points = answer.points.iter();
        let points = points.map(|point| (f64::from(point.read_percent), point.iops[0]));
        PlotLine {
            name: answer.drive.clone(),
            points: points.collect(),
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
            name: String::from("reads, percent"),
            ends: [0.0, 100.0],
            by_ratio: false,
        },
        y: PlotAxis::from_values("IOPS", rates, true),
        lines,
        limits: Vec::new(),
        floors: Vec::new(),
    };
    page(words, "Each point is a mix, the mean of its seeds.", &plot)
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
    });
    let lines: Vec<PlotLine> = lines.collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let plot = Plot {
        label: String::from("Write rate by written volume"),
        x: PlotAxis::from_values("GB written", points().map(|point| point.0), false),
        y: PlotAxis::from_values("MB/s", points().map(|point| point.1), true),
        limits: Vec::new(),
        floors: Vec::new(),
        lines,
    };
    page(
        words,
        "Each point is a quarter percent of the capacity, first seed. After each drive's name is the share of it in use at the start.",
        &plot,
    )
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
            })
        });
    let lines: Vec<PlotLine> = lines.collect();
    // Beyond twice the end nothing more is shown.
    const MOST: f64 = 200.0;
    let plot = Plot {
        label: String::from("Percentage Used over years"),
        x: PlotAxis {
            name: String::from("years"),
            ends: [0.0, years],
            by_ratio: false,
        },
        y: PlotAxis {
            name: String::from("Percentage Used, as the model counts it"),
            ends: [0.0, MOST],
            by_ratio: false,
        },
        lines: lines.into_iter().map(|line| clipped(line, MOST)).collect(),
        limits: vec![
            (100.0, String::new()),
            (105.0, String::from("100 and 105 %")),
        ],
        floors: Vec::new(),
    };
    page(
        words,
        "A line that ends early continues above the chart.",
        &plot,
    )
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

/// Returns the page on candidates: the highest percentile by IOPS.
pub fn choose(slo: &Slo, answer: &choose::ChooseAnswer, words: &PageText) -> String {
    let limit = latency(slo);
    let figure = |one: &choose::Candidate| match limit {
        Some((index, _)) => one.readings.get(index)?.value,
        None => one.p99_us,
    };
    let lines = answer.candidates.iter().filter_map(|one| {
        Some(PlotLine {
            name: one.drive.clone(),
            points: vec![(one.iops, figure(one)?)],
        })
    });
    let name = limit.map_or("p99", |(_, limit)| limit.name());
    let without = answer.candidates.iter().filter(|one| figure(one).is_none());
    let without: Vec<String> = without.map(|one| one.drive.clone()).collect();
    let unknown = match without.is_empty() {
        true => String::new(),
        false => format!(" No {name} is known of {}.", listed(&without)),
    };
    let titles = [
        format!("{name} over IOPS"),
        String::from("IOPS at this load"),
    ];
    let bounded = limit.map(|(_, limit)| limit);
    let plot = latency_chart(titles, name, lines.collect(), bounded, slo);
    let caption = format!(
        "Each point is a drive; to the right and below is better. Dashed lines are the limits. If there are many drives, each has a number, counted from the top. A number is at its point if there is space.{unknown}{}",
        not_drawn(others(slo, limit.map(|(index, _)| index)))
    );
    page(words, &caption, &plot)
}

/// Returns the page on a measured run compared with its drive's model: the latency breakdown, and the rate under each
/// condition and without each option.
pub fn explain(answers: &[explain::answer::ExplainAnswer], words: &PageText) -> String {
    let mut figures = Vec::new();
    for answer in answers {
        let Some(model) = &answer.model else {
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
        figures.push((caption, rates.svg()));
        let times = Bars {
            label: format!("{}: latency breakdown", answer.run),
            unit: "µs",
            rows: times(answer, model),
            limit: None,
        };
        figures.push((
            "Mean latency: as fio measured it, and the parts of the model's latency.",
            times.svg(),
        ));
    }
    page_of(words, &figures)
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

fn times(
    answer: &explain::answer::ExplainAnswer,
    model: &explain::answer::ModelComparison,
) -> Vec<Bar> {
    let mut rows = Vec::new();
    for simulated in &model.anatomy {
        let sides = answer.measured.sides.iter();
        for side in sides.filter(|side| side.direction == simulated.direction) {
            let parts = [
                ("submission", side.submission_us),
                ("completion", side.completion_us),
            ];
            let parts = parts
                .into_iter()
                .filter_map(|(name, us)| Some((name.to_owned(), us?)));
            rows.push(Bar {
                name: format!("{}, measured", side.direction),
                parts: parts.collect(),
            });
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
        };
        assert_eq!(
            clipped(line(400.0), 200.0).points,
            [(0.0, 0.0), (2.5, 200.0)]
        );
        assert_eq!(clipped(line(50.0), 200.0).points, [(0.0, 0.0), (5.0, 50.0)]);
    }
}
