//! Pages of `size`, `check`, `odds` and `life --smart`.
//!
//! A chart has every limit whose figure it shows. A limit that is only a yes or no is in the table alone.

use study::decide::check::{BySeed, Check, CheckAnswer};
use study::decide::fleet::{FleetAnswer, FleetDrive};
use study::decide::odds::OddsAnswer;
use study::decide::size::{SizeAnswer, SizeRequest, SizeResult};
use study::decide::slo::Limit;
use text::words::listed;

use super::bars::{Bar, Bars};
use super::fleet::full_name;
use super::page::{PageFigure, PageText, charted, floors, missing, page};
use super::plot::{BYTES, INTERVAL, Plot, PlotAxis, PlotLine};

/// Returns the value of a figure for a size.
type SizeValue<'a> = Box<dyn Fn(&SizeResult) -> Option<f64> + 'a>;

/// A figure of a size: its name, its unit, its limits and its value.
struct SizeFigure<'a> {
    name: &'a str,
    unit: &'static str,
    limits: Vec<(f64, String)>,
    value: SizeValue<'a>,
}

/// Returns the page on sizes: hits, IOPS and each limited figure by size.
pub(super) fn size(request: &SizeRequest, answers: &[SizeAnswer], words: &PageText) -> String {
    let mut all = vec![
        SizeFigure {
            name: "simulated hits",
            unit: "%",
            limits: Vec::new(),
            value: Box::new(|row| Some(row.hits?[0] * 100.0)),
        },
        SizeFigure {
            name: "IOPS",
            unit: "IOPS",
            limits: floors(&request.slo),
            value: Box::new(|row| Some(row.iops[0])),
        },
    ];
    let limited: Vec<SizeFigure<'_>> = charted(&request.slo).map(limited_figure).collect();
    if limited.is_empty() {
        all.push(SizeFigure {
            name: "p99",
            unit: "us",
            limits: Vec::new(),
            value: Box::new(|row| row.p99_us),
        });
    }
    all.extend(limited);
    let figures = all.iter().filter_map(|figure| of_sizes(figure, answers));
    page(words, &figures.collect::<Vec<_>>())
}

/// Returns the figure of a limit.
fn limited_figure((index, limit): (usize, &Limit)) -> SizeFigure<'_> {
    SizeFigure {
        name: limit.name(),
        unit: limit.unit,
        limits: vec![(limit.bound, limit.text.clone())],
        value: Box::new(move |row| row.readings.get(index)?.value),
    }
}

/// Returns the chart of a figure by size, if any size has it.
fn of_sizes(figure: &SizeFigure<'_>, answers: &[SizeAnswer]) -> Option<PageFigure> {
    let lines = answers.iter().map(|answer| {
        let rows = answer.rows.iter();
        let points = rows.filter_map(|row| Some((row.bytes as f64, (figure.value)(row)?)));
        PlotLine {
            name: answer.drive.clone(),
            points: points.collect(),
            remark: None,
        }
    });
    let (lines, without): (Vec<PlotLine>, Vec<PlotLine>) =
        lines.partition(|line| !line.points.is_empty());
    if lines.is_empty() {
        return None;
    }
    let points = || lines.iter().flat_map(|line| &line.points);
    let bounds = figure.limits.iter().map(|limit| limit.0);
    let name = figure.name;
    let plot = Plot {
        label: format!("{name} by size"),
        x: PlotAxis::from_values("size", BYTES, points().map(|point| point.0), true),
        y: match figure.unit {
            "%" => PlotAxis {
                name: name.to_owned(),
                unit: "%",
                ends: [0.0, 100.0],
                by_ratio: false,
            },
            unit => PlotAxis::from_values(
                name,
                unit,
                points().map(|point| point.1).chain(bounds),
                true,
            ),
        },
        limits: figure.limits.clone(),
        floors: Vec::new(),
        legend: None,
        lines,
    };
    let without: Vec<String> = without.into_iter().map(|line| line.name).collect();
    let caption = format!(
        "{name} by size. Each point is a size that was tried; a dashed line is a limit.{}",
        missing(name, &without)
    );
    Some(PageFigure::from_plot(&plot, caption))
}

/// Returns the figures of the minimum, and the others.
fn readings(answer: &CheckAnswer) -> impl Iterator<Item = &BySeed> {
    answer.minimum.iter().chain(&answer.figures)
}

/// Returns the page on a check: each figure of each drive as a bar, with the minimum.
pub(super) fn check(check: &Check, answers: &[CheckAnswer], words: &PageText) -> String {
    let Some(first) = answers.first() else {
        return page(words, &[]);
    };
    let figures = readings(first).enumerate();
    let figures = figures.filter(|(_, one)| one.reading.unit != "yes/no");
    let figures = figures.map(|(index, one)| {
        let reading = &one.reading;
        let name = figure_name(&reading.limit);
        let values = answers.iter().map(|answer| {
            let value = readings(answer).nth(index);
            let value = value.and_then(|one| one.reading.value);
            (&answer.drive, value)
        });
        let values: Vec<(&String, Option<f64>)> = values.collect();
        let rows = values.iter().filter_map(|(drive, value)| {
            Some(Bar {
                name: (*drive).clone(),
                parts: vec![(reading.limit.clone(), (*value)?)],
            })
        });
        let limits = check.minimum.limits.iter();
        let limit = limits.filter(|limit| limit.text == reading.limit);
        let endurance = check.endurance_tb.filter(|_| reading.unit == "TB");
        let bound = limit.map(|limit| (limit.bound, limit.figure.is_from_above()));
        let bound = bound.chain(endurance.map(|least| (least, false))).next();
        let bars = Bars {
            label: format!("{name} of each drive"),
            unit: reading.unit,
            rows: rows.collect(),
            limit: bound.map(|(bound, from_above)| {
                let side = if from_above { "maximum" } else { "minimum" };
                (bound, format!("published {side}"))
            }),
        };
        let without = values.iter().filter(|(_, value)| value.is_none());
        let without: Vec<String> = without.map(|(drive, _)| (*drive).clone()).collect();
        let seeds = match index < first.minimum.len() {
            true => ", the seed with the smallest margin",
            false => "",
        };
        PageFigure {
            label: bars.label.clone(),
            caption: format!("{name} of each drive{seeds}.{}", missing("it", &without)),
            chart: bars.svg(),
        }
    });
    page(words, &figures.collect::<Vec<_>>())
}

/// Returns the name of a figure for a heading: `IOPS`, and other figures as they are written in limits.
fn figure_name(figure: &str) -> String {
    figure.replace("iops", "IOPS")
}

/// Returns the page on data loss: the time between losses of the pool, and of some blocks, by usable capacity.
pub(super) fn odds(answers: &[OddsAnswer], words: &PageText) -> String {
    let losses = of_odds("time between losses of the pool", answers, |one| {
        Some(one.losses[0])
    });
    let blocks = of_odds("time between losses of some blocks", answers, |one| {
        Some(one.some_blocks()?[0])
    });
    let figures: Vec<PageFigure> = [losses, blocks].into_iter().flatten().collect();
    page(words, &figures)
}

fn of_odds(
    name: &str,
    answers: &[OddsAnswer],
    rate: impl Fn(&OddsAnswer) -> Option<f64>,
) -> Option<PageFigure> {
    let (with, without): (Vec<&OddsAnswer>, Vec<&OddsAnswer>) = answers
        .iter()
        .partition(|one| rate(one).is_some_and(|rate| rate > 0.0));
    if with.is_empty() {
        return None;
    }
    let lines = with.iter().filter_map(|one| {
        Some(PlotLine {
            name: one.drive.clone(),
            points: vec![(one.usable_bytes as f64, 1.0 / rate(one)?)],
            remark: None,
        })
    });
    let lines: Vec<PlotLine> = lines.collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let plot = Plot {
        label: format!("{name} by usable capacity"),
        x: PlotAxis::from_values(
            "usable capacity",
            BYTES,
            points().map(|point| point.0),
            true,
        ),
        y: PlotAxis::from_values(name, INTERVAL, points().map(|point| point.1), true),
        limits: Vec::new(),
        floors: Vec::new(),
        legend: None,
        lines,
    };
    let never: Vec<String> = without.iter().map(|one| one.drive.clone()).collect();
    let never = match never.is_empty() {
        true => String::new(),
        false => format!(
            " Not in the chart, because it has none: {}.",
            listed(&never)
        ),
    };
    let caption = format!("{name} by usable capacity. Each point is a pool.{never}");
    Some(PageFigure::from_plot(&plot, caption))
}

/// Returns the page on real drives: Percentage Used by power-on hours.
pub(super) fn fleet(answer: &FleetAnswer, words: &PageText) -> String {
    let point = |one: &FleetDrive| {
        let used = one.health.used_percent.as_ref()?;
        Some((one.health.power_on_hours?, used.value))
    };
    let lines = answer.drives.iter().filter_map(|one| {
        Some(PlotLine {
            name: full_name(one),
            points: vec![point(one)?],
            remark: None,
        })
    });
    let lines: Vec<PlotLine> = lines.collect();
    if lines.is_empty() {
        return page(words, &[]);
    }
    let without = answer.drives.iter().filter(|one| point(one).is_none());
    let without: Vec<String> = without.map(full_name).collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let plot = Plot {
        label: String::from("Percentage Used by power-on hours"),
        x: PlotAxis::from_values("power-on hours", "", points().map(|point| point.0), false),
        y: PlotAxis::from_values(
            "Percentage Used",
            "%",
            points().map(|point| point.1).chain([100.0]),
            false,
        ),
        limits: vec![(100.0, String::from("100 %"))],
        floors: Vec::new(),
        legend: None,
        lines,
    };
    let caption = format!(
        "Percentage Used by power-on hours. Each point is a drive.{}",
        missing("one of the two", &without)
    );
    page(words, &[PageFigure::from_plot(&plot, caption)])
}
