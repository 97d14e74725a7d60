//! The headline figures of a review: as a table on the terminal, and on its drives' cards.

use comfy_table::{Cell, CellAlignment, Table};

use super::chapter::SummaryRow;
use super::chapters::CHAPTERS;
use super::results::{DirectionResult, Measurement, Point, Review};
use text::digits::{count, megabytes_a_second, microseconds};
use text::terminal::{self, Width};

/// Rows about the support of the drives' models.
type SupportText = fn(&Review, usize) -> String;

const MODEL: [(&str, SupportText); 2] = [
    ("Model (see `drivelab show`)", |review, drive| {
        review.drives[drive].support.grade.to_owned()
    }),
    ("Figures of the model that are assumed", |review, drive| {
        let kinds = review.drives[drive].kinds;
        format!("{} of {}", kinds.assumed, kinds.all())
    }),
];

/// Returns the table with a column for each drive.
pub fn table(review: &Review, width: Width) -> String {
    let mut table = terminal::table(width);
    let names = review
        .drives
        .iter()
        .map(|drive| Cell::new(&drive.id).set_alignment(CellAlignment::Right));
    table.set_header(std::iter::once(Cell::new("")).chain(names));
    let mut rows: Vec<&SummaryRow> = CHAPTERS.iter().flat_map(|chapter| chapter.rows()).collect();
    rows.sort_by_key(|row| row.topic);
    for row in rows {
        let values = (0..review.drives.len()).map(|drive| (row.value)(review, drive));
        let values: Vec<Option<String>> = values.collect();
        // A suite need not have every chapter.
        if values.iter().any(Option::is_some) {
            add(&mut table, row.name, values);
        }
    }
    for (name, value) in MODEL {
        let values = (0..review.drives.len()).map(|drive| Some(value(review, drive)));
        add(&mut table, name, values.collect());
    }
    for point in review.chapters.iter().flat_map(|one| &one.points) {
        if point.settings.headline.is_empty() {
            continue;
        }
        let values = point
            .results
            .iter()
            .map(|result| headline(point, result.as_ref()?));
        add(&mut table, own_name(point), values.collect());
    }
    add_yours(&mut table, review);
    // The names of the rows may be wrapped, figures may not.
    terminal::unbroken(&mut table, 1..=review.drives.len());
    table.trim_fmt()
}

/// Adds rows for each direction of each of the user's own workloads.
fn add_yours(table: &mut Table, review: &Review) {
    type Shown = fn(&DirectionResult) -> Option<String>;
    let shown: [(&str, Shown); 3] = [
        ("", |figures| Some(format!("{} IOPS", count(figures.iops)))),
        (": mean", |figures| {
            Some(microseconds(figures.latency.mean_us))
        }),
        (": 99th", |figures| figures.latency.p99_us.map(microseconds)),
    ];
    let points = review.chapters.iter().flat_map(|one| &one.points);
    for point in points.filter(|point| point.settings.source.is_some()) {
        let name = own_name(point);
        for direction in ["read", "write"] {
            for (what, value) in shown {
                let values = point
                    .results
                    .iter()
                    .map(|result| value(result.as_ref()?.direction(direction)?));
                let values: Vec<Option<String>> = values.collect();
                if values.iter().any(Option::is_some) {
                    let name = format!("{}, {direction}s{what}", shortened(name));
                    add(table, &name, values);
                }
            }
        }
    }
}

/// Returns the name of a point within its chapter.
fn own_name(point: &Point) -> &str {
    point.name.split_once('/').map_or("", |(_, name)| name)
}

/// Returns the end of a long name, which contains the job's own name.
fn shortened(name: &str) -> String {
    const LONGEST: usize = 32;
    let length = name.chars().count();
    if length <= LONGEST {
        return name.to_owned();
    }
    let end: String = name.chars().skip(length - LONGEST + 1).collect();
    format!("…{end}")
}

fn add(table: &mut Table, name: &str, values: Vec<Option<String>>) {
    let cells = values.into_iter().map(|value| {
        let text = value.unwrap_or_else(|| "–".to_owned());
        Cell::new(text).set_alignment(CellAlignment::Right)
    });
    table.add_row(std::iter::once(Cell::new(name)).chain(cells));
}

/// Returns the figures that the source of a workload prints.
fn headline(point: &Point, result: &Measurement) -> Option<String> {
    let figures = result.direction(point.settings.direction?)?;
    let shown = point.settings.headline.iter().map(|name| match *name {
        "mb_s" => Some(megabytes_a_second(figures.mb_s)),
        "p99_us" => figures
            .latency
            .p99_us
            .map(|us| format!("p99 {}", microseconds(us))),
        "p99_99_us" => figures
            .latency
            .p99_99_us
            .map(|us| format!("p99.99 {}", microseconds(us))),
        _ => Some(format!("{} IOPS", count(figures.iops))),
    });
    let shown: Vec<String> = shown.flatten().collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// The headline figures of a drive: the name, and the value if it was measured.
pub type FirstFigures = Vec<(&'static str, Option<String>)>;

/// Returns the headline figures of every drive, without those that no drive has. The suites of articles have no
/// chapters with such figures, so the extremes of all measurements replace them.
pub fn cards(review: &Review) -> Vec<FirstFigures> {
    let drives = 0..review.drives.len();
    let of_chapters = |drive| -> FirstFigures {
        let chapters = CHAPTERS.iter();
        chapters
            .flat_map(|chapter| chapter.card(review, drive))
            .collect()
    };
    let mut all: Vec<FirstFigures> = drives.clone().map(of_chapters).collect();
    if !all.iter().flatten().any(|(_, value)| value.is_some()) {
        all = drives.map(|drive| extremes(review, drive)).collect();
    }
    let count = all.first().map_or(0, Vec::len);
    let kept: Vec<bool> = (0..count)
        .map(|row| all.iter().any(|one| one[row].1.is_some()))
        .collect();
    for one in &mut all {
        let mut kept = kept.iter();
        one.retain(|_| kept.next().copied().unwrap_or(true));
    }
    all
}

/// Returns the best figures of all chapters.
fn extremes(review: &Review, drive: usize) -> FirstFigures {
    let best = |direction: &str, of: fn(&DirectionResult) -> f64| {
        let points = review.chapters.iter().flat_map(|chapter| &chapter.points);
        points
            .filter_map(|point| point.results[drive].as_ref()?.direction(direction).map(of))
            .max_by(f64::total_cmp)
    };
    let iops =
        |direction| best(direction, |one| one.iops).map(|most| format!("{} IOPS", count(most)));
    let rate = |direction| best(direction, |one| one.mb_s).map(megabytes_a_second);
    let mean = |direction| {
        let least = best(direction, |one| -one.latency.mean_us);
        least.map(|least| microseconds(-least))
    };
    vec![
        ("Reads, shortest mean", mean("read")),
        ("Writes, shortest mean", mean("write")),
        ("Reads, peak", iops("read")),
        ("Writes, peak", iops("write")),
        ("Reads, fastest", rate("read")),
        ("Writes, fastest", rate("write")),
    ]
}
