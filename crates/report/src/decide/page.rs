//! Answers as a page: the sentences, the lead chart with the limit drawn, the tables. One HTML file that needs nothing else.

use maud::{Markup, html};
use study::decide::choose;
use study::decide::life;
use study::decide::max;
use study::decide::slo::{Limit, Slo};

use super::plot::{Axis, Line, Plot};
use crate::page::look;

const STYLE: &str = include_str!("page.css");

/// What a page says beside its chart.
pub struct Words {
    /// The question, as its title.
    pub title: String,
    /// The answers, a sentence or two each.
    pub answers: Vec<String>,
    /// The table, as on the terminal.
    pub table: String,
    /// How it was found.
    pub method: String,
}

fn page(words: &Words, caption: &str, plot: &Plot) -> String {
    let body: Markup = html! {
        header class="masthead" {
            (look::top_line())
            h1 { (words.title) }
            @for answer in &words.answers { p class="standfirst" { (answer) } }
        }
        main {
            figure {
                div class="scroll wide" { (plot.svg()) }
                figcaption { (caption) }
            }
            div class="scroll wide" { pre class="table" { (words.table) } }
            @for line in words.method.lines() { p { (line) } }
        }
        (look::scripts_of_theme())
    };
    look::page(&words.title, &[STYLE], &body)
}

/// The first latency that is bounded.
fn latency(slo: &Slo) -> Option<(usize, &Limit)> {
    let mut limits = slo.limits.iter().enumerate();
    limits.find(|(_, limit)| limit.figure.is_latency())
}

/// What was tried on the way to the highest load: latency over I/Os a second.
pub fn max(slo: &Slo, answers: &[max::Answer], words: &Words) -> String {
    let (index, limit) = latency(slo).unzip();
    let index = index.unwrap_or(0);
    let lines = answers.iter().map(|answer| {
        let points = answer.open.tried.iter();
        let points =
            points.filter_map(|tried| Some((tried.iops, tried.readings.get(index)?.value?)));
        Line {
            name: answer.drive.clone(),
            points: points.collect(),
        }
    });
    let lines: Vec<Line> = lines.collect();
    let name = limit.map_or("", Limit::name);
    let points = || lines.iter().flat_map(|line| &line.points);
    let bound = limit.map(|limit| (limit.bound, limit.text.clone()));
    let plot = Plot {
        label: format!("{name} over load"),
        x: Axis::around(
            "I/Os a second, as they arrive",
            points().map(|point| point.0),
            true,
        ),
        y: Axis::around(
            &format!("{name}, microseconds"),
            points()
                .map(|point| point.1)
                .chain(bound.iter().map(|bound| bound.0)),
            true,
        ),
        limits: bound.into_iter().collect(),
        lines,
    };
    page(
        words,
        "Each point is a load that was tried; the dashed line is the limit.",
        &plot,
    )
}

/// Percentage Used over the years that were asked for, at the load.
pub fn life(answers: &[life::Answer], words: &Words) -> String {
    let years = answers.first().map_or(5.0, |answer| answer.years);
    let lines = answers
        .iter()
        .flat_map(|answer| &answer.parts)
        .filter_map(|part| {
            let after = part.used_percent_a_year?;
            let at = |year: f64| part.used_percent + (after - part.used_percent) * year;
            Some(Line {
                name: part.name.clone(),
                points: vec![(0.0, at(0.0)), (years, at(years))],
            })
        });
    let lines: Vec<Line> = lines.collect();
    // Beyond twice the end nothing more is to be seen.
    const MOST: f64 = 200.0;
    let plot = Plot {
        label: String::from("Percentage Used over years"),
        x: Axis {
            name: String::from("years"),
            ends: [0.0, years],
            by_ratio: false,
        },
        y: Axis {
            name: String::from("Percentage Used, as the model counts it"),
            ends: [0.0, MOST],
            by_ratio: false,
        },
        lines: lines.into_iter().map(|line| clipped(line, MOST)).collect(),
        limits: vec![
            (100.0, String::new()),
            (105.0, String::from("100 and 105 %")),
        ],
    };
    page(words, "A line that ends early goes on above.", &plot)
}

/// A line from the start that ends where it reaches `most`.
fn clipped(mut line: Line, most: f64) -> Line {
    if let [(_, from), (x, to)] = &mut line.points[..]
        && *to > most
    {
        *x *= (most - *from).max(0.0) / (*to - *from);
        *to = most;
    }
    line
}

/// Candidates: the slowest percentile over I/Os a second.
pub fn choose(slo: &Slo, answer: &choose::Answer, words: &Words) -> String {
    let limit = latency(slo);
    let figure = |one: &choose::Candidate| match limit {
        Some((index, _)) => one.readings.get(index)?.value,
        None => one.p99_us,
    };
    let lines = answer.candidates.iter().filter_map(|one| {
        Some(Line {
            name: one.drive.clone(),
            points: vec![(one.iops, figure(one)?)],
        })
    });
    let lines: Vec<Line> = lines.collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let name = limit.map_or("p99", |(_, limit)| limit.name());
    let bound = limit.map(|(_, limit)| (limit.bound, limit.text.clone()));
    let plot = Plot {
        label: format!("{name} over IOPS"),
        x: Axis::around("IOPS at this load", points().map(|point| point.0), true),
        y: Axis::around(
            &format!("{name}, microseconds"),
            points()
                .map(|point| point.1)
                .chain(bound.iter().map(|bound| bound.0)),
            true,
        ),
        limits: bound.into_iter().collect(),
        lines,
    };
    page(
        words,
        "Each point is a drive; to the right and below is better. The dashed line is the limit.",
        &plot,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_it_leaves_the_chart() {
        let line = |to: f64| Line {
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
