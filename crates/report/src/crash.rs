//! The page of a crash test: the images of each crash point, the failures, and the files that they concern.
//!
//! It is one self-contained HTML file. The chart is SVG: it works without scripts, on paper and in both themes.

use maud::{Markup, html};
use text::digits;

use crate::decide::table::{self, AnswerColumn, AnswerTable};
use crate::page::look;

const STYLE: &str = include_str!("crash.css");
const COPY: &str = include_str!("decide/copy.js");

const WIDTH: f64 = 1040.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 44.0;

/// Maximum number of columns of the chart; crash points beyond it share one.
const COLUMNS: usize = 240;

/// Texts and figures of a page.
pub struct CrashPage {
    /// Name of the test.
    pub title: String,
    /// The verdict, in one or two sentences.
    pub verdict: Vec<String>,
    /// Recording, assumptions and number of images: heading and text.
    pub facts: Vec<(String, String)>,
    /// Crash points in order.
    pub points: Vec<Point>,
    /// Failures, the one with the fewest conditions first.
    pub failures: Vec<FailureText>,
    /// Files and structures that the failures concern.
    pub files: Vec<FileRow>,
    /// Description of the method.
    pub method: String,
}

/// Counts of a crash point.
#[derive(Clone, Copy, Debug, Default)]
pub struct Point {
    /// Images that were tried.
    pub tried: u64,
    /// Images that failed.
    pub failed: u64,
    /// Number of acknowledgements before it.
    pub acks: u64,
    /// Whether all images of this crash point were tried.
    pub exhausted: bool,
}

/// Texts of a failure.
pub struct FailureText {
    /// Class, text and number of images.
    pub title: String,
    /// Heading and text.
    pub facts: Vec<(String, String)>,
    /// Command that repeats the failure.
    pub again: String,
}

/// A range of the drive that failures concern.
pub struct FileRow {
    /// File or structure.
    pub owner: String,
    /// Range on the drive.
    pub range: String,
    /// Whether the range was lost, or not sent.
    pub state: &'static str,
    /// Number of the failure, starting with 1.
    pub failure: usize,
}

/// Returns the bytes of the page.
pub fn html(page: &CrashPage) -> String {
    let body = html! {
        header class="masthead" {
            (look::top_line())
            h1 { (page.title) }
            @for line in &page.verdict { p class="standfirst" { (line) } }
        }
        main {
            (list(&page.facts))
            figure {
                figcaption { "Images by crash point" }
                div class="scroll wide" tabindex="0" role="region" aria-label="Chart" { (chart(&page.points)) }
                (key())
            }
            @for (number, failure) in (1..).zip(&page.failures) {
                section class="failure" {
                    h2 { (number) ". " (failure.title) }
                    (list(&failure.facts))
                    p { "Repeat: " code class="again" { (failure.again) } " "
                        button type="button" class="quiet copy" hidden { "Copy" } }
                }
            }
            (files(&page.files))
            h2 { "Method" }
            p class="about" { (page.method) }
        }
        (look::scripts_of_theme())
        (look::script(COPY))
    };
    look::page(&page.title, &[STYLE, table::STYLE], &body)
}

fn list(facts: &[(String, String)]) -> Markup {
    html! {
        dl class="verdict" {
            @for (heading, text) in facts {
                div { dt { (heading) } dd { (text) } }
            }
        }
    }
}

fn key() -> Markup {
    html! {
        p class="soft key-line" {
            span { i class="mark held" {} "images that pass" }
            span { i class="mark failed" {} "images that fail" }
            span { i class="mark sampled" {} "not all images were tried" }
            span { i class="mark ack" {} "acknowledgement" }
        }
    }
}

fn files(rows: &[FileRow]) -> Markup {
    if rows.is_empty() {
        return Markup::default();
    }
    let columns = vec![
        AnswerColumn::words("file or structure"),
        AnswerColumn::words("on the drive"),
        AnswerColumn::words("state"),
        AnswerColumn::figures("failure"),
    ];
    let caption = "Ranges of the drive that the failures concern";
    let mut table = AnswerTable::new(caption, 1, columns);
    for row in rows {
        table.add([
            row.owner.clone(),
            row.range.clone(),
            row.state.to_owned(),
            row.failure.to_string(),
        ]);
    }
    html! {
        h2 { "Files" }
        (table.markup())
    }
}

/// A column of the chart: several crash points if there are many.
struct ChartColumn {
    first: usize,
    last: usize,
    sum: Point,
    has_ack: bool,
}

fn columns(points: &[Point]) -> Vec<ChartColumn> {
    let size = points.len().div_ceil(COLUMNS).max(1);
    let mut acks = 0;
    let chunks = points.chunks(size).enumerate();
    chunks
        .map(|(index, chunk)| {
            let last = chunk.last().map_or(acks, |it| it.acks);
            let has_ack = last > std::mem::replace(&mut acks, last);
            ChartColumn {
                first: index * size + 1,
                last: index * size + chunk.len(),
                sum: Point {
                    tried: chunk.iter().map(|it| it.tried).sum(),
                    failed: chunk.iter().map(|it| it.failed).sum(),
                    acks: last,
                    exhausted: chunk.iter().all(|it| it.exhausted),
                },
                has_ack,
            }
        })
        .collect()
}

/// Returns round values up to `most`: 1, 2 and 5 times powers of ten, on an axis by ratio.
fn ticks(most: f64) -> Vec<f64> {
    let decades = 0..=libm::ceil(libm::log10(most)) as i32;
    let steps: &[f64] = if most > 100.0 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let all = decades.flat_map(|it| steps.iter().map(move |step| step * libm::exp10(it.into())));
    all.filter(|it| *it <= most).collect()
}

fn chart(points: &[Point]) -> Markup {
    let columns = columns(points);
    let most = columns.iter().map(|it| it.sum.tried).max().unwrap_or(0);
    let top = (most as f64).max(2.0);
    // One image is above the axis, so that it is visible.
    let height = |count: u64| match count {
        0 => 0.0,
        count => {
            let share = (libm::log10(count as f64) + 0.25) / (libm::log10(top) + 0.25);
            share * (HEIGHT - TOP - BOTTOM)
        }
    };
    let base = HEIGHT - BOTTOM;
    let width = (WIDTH - LEFT - RIGHT) / columns.len().max(1) as f64;
    let x = |index: usize| LEFT + index as f64 * width;
    let bar = libm::fmax(width - 1.0, 1.0).min(24.0);
    let label = format!("Images tried at {} crash points", points.len());
    html! {
        svg class="chart" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(label) {
            @for tick in ticks(top) {
                @let y = base - height(tick as u64);
                line class="grid" x1=(LEFT) x2=(WIDTH - RIGHT) y1=(round(y)) y2=(round(y)) {}
                text class="soft" x=(LEFT - 8.0) y=(round(y + 4.0)) text-anchor="end" { (digits::count(tick)) }
            }
            @for (index, column) in columns.iter().enumerate() {
                @let (all, failed) = (height(column.sum.tried), height(column.sum.failed));
                @let class = if column.sum.exhausted { "held" } else { "held sampled" };
                g {
                    title { (tip(column)) }
                    rect class=(class) x=(round(x(index))) width=(round(bar)) y=(round(base - all)) height=(round(all)) {}
                    rect class="failed" x=(round(x(index))) width=(round(bar)) y=(round(base - failed)) height=(round(failed)) {}
                    @if column.has_ack {
                        rect class="ack" x=(round(x(index))) width=(round(bar.min(3.0))) y=(base + 3.0) height="6" {}
                    }
                }
            }
            line class="axis" x1=(LEFT) x2=(WIDTH - RIGHT) y1=(base) y2=(base) {}
            text class="soft" x=(LEFT) y=(HEIGHT - 16.0) { "1" }
            text class="soft" x=(WIDTH - RIGHT) y=(HEIGHT - 16.0) text-anchor="end" { (digits::count(points.len() as f64)) }
            text class="soft" x=((WIDTH + LEFT) / 2.0) y=(HEIGHT - 16.0) text-anchor="middle" { "crash point, in order" }
            text class="soft" transform={ "translate(12 " (round((TOP + base) / 2.0)) ") rotate(-90)" } text-anchor="middle" { "images tried" }
        }
    }
}

fn round(value: f64) -> f64 {
    libm::round(value * 100.0) / 100.0
}

fn tip(column: &ChartColumn) -> String {
    let name = match column.first == column.last {
        true => format!("crash point {}", column.first),
        false => format!("crash points {} to {}", column.first, column.last),
    };
    let Point {
        tried,
        failed,
        acks,
        exhausted,
    } = column.sum;
    let all = if exhausted { "all images" } else { "a sample" };
    format!("{name}: {tried} tried ({all}), {failed} failed, {acks} acknowledgements before")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(tried: u64, failed: u64, acks: u64) -> Point {
        Point {
            tried,
            failed,
            acks,
            exhausted: true,
        }
    }

    #[test]
    fn many_crash_points_share_columns_and_none_is_left_out() {
        for count in [0, 1, 239, 240, 241, 5000] {
            let points: Vec<Point> = (0..count).map(|it| point(it + 1, it % 2, it / 3)).collect();
            let columns = columns(&points);
            assert!(columns.len() <= COLUMNS);
            let tried: u64 = columns.iter().map(|it| it.sum.tried).sum();
            assert_eq!(tried, (1..=count).sum::<u64>());
            assert_eq!(columns.last().map_or(0, |it| it.last as u64), count);
        }
    }

    #[test]
    fn what_a_checker_says_is_escaped() {
        let page = html(&CrashPage {
            title: "<b>".into(),
            verdict: vec!["<i>".into()],
            facts: vec![("a".into(), "<u>".into())],
            points: vec![point(4, 1, 1)],
            failures: vec![FailureText {
                title: "<script>alert(1)</script>".into(),
                facts: Vec::new(),
                again: "drivelab '<x>'".into(),
            }],
            files: vec![FileRow {
                owner: "<em>".into(),
                range: "0 to 4095".into(),
                state: "lost",
                failure: 1,
            }],
            method: String::new(),
        });
        for tag in ["<b>", "<i>", "<u>", "<script>alert", "<x>", "<em>"] {
            assert!(!page.contains(tag), "{tag}");
        }
        assert!(page.contains("4 tried (all images), 1 failed"));
        assert!(page.contains("<th scope=\"row\">&lt;em&gt;</th>"));
    }
}
