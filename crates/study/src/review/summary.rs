//! A review as a table on the terminal: the figures that most readers look for first.

use comfy_table::{Cell, CellAlignment, Table};

use super::results::{Figures, Measurement, Point, Review};
use text::digits::{count, megabytes_a_second, microseconds};
use text::terminal::{self, Width};

/// A row: what it is, and the figure of one drive's measurement.
struct Row {
    name: &'static str,
    value: fn(&Review, usize) -> Option<String>,
}

const ROWS: [Row; 17] = [
    Row {
        name: "4 KiB random read, QD1: mean",
        value: |review, drive| {
            depth(review, drive, "read", 1).map(|f| microseconds(f.latency.mean_us))
        },
    },
    Row {
        name: "4 KiB random write, QD1: mean",
        value: |review, drive| {
            depth(review, drive, "write", 1).map(|f| microseconds(f.latency.mean_us))
        },
    },
    Row {
        name: "4 KiB random read: peak IOPS (reached at)",
        value: |review, drive| iops_at(review, drive, "read"),
    },
    Row {
        name: "4 KiB random write: peak IOPS (reached at)",
        value: |review, drive| iops_at(review, drive, "write"),
    },
    Row {
        name: "4 KiB random read, QD16: 99th",
        value: |review, drive| {
            depth(review, drive, "read", 16)?
                .latency
                .p99_us
                .map(microseconds)
        },
    },
    Row {
        name: "4 KiB random read, QD16: 99.999th",
        value: |review, drive| {
            depth(review, drive, "read", 16)?
                .latency
                .p99_999_us
                .map(microseconds)
        },
    },
    Row {
        name: "4 KiB random write, QD16: 99.999th",
        value: |review, drive| {
            depth(review, drive, "write", 16)?
                .latency
                .p99_999_us
                .map(microseconds)
        },
    },
    Row {
        name: "70/30 mix, 16 threads",
        value: |review, drive| {
            let point = find(review, "mix", |point| {
                point.settings.read_percent == Some(70)
            })?;
            let total = super::run::total_iops(point.results[drive].as_ref()?);
            Some(format!("{} IOPS", count(total)))
        },
    },
    Row {
        name: "70/30 mix: 99th of reads",
        value: |review, drive| {
            let point = find(review, "mix", |point| {
                point.settings.read_percent == Some(70)
            })?;
            let read = point.results[drive].as_ref()?.read.as_ref()?;
            read.latency.p99_us.map(microseconds)
        },
    },
    Row {
        name: "128 KiB sequential read, overwritten at random: most",
        value: |review, drive| {
            most(review, "sequential", drive, "read").map(|(_, best)| megabytes_a_second(best.mb_s))
        },
    },
    Row {
        name: "128 KiB sequential read, filled in order: most",
        value: |review, drive| {
            most(review, "sequential-filled", drive, "read")
                .map(|(_, best)| megabytes_a_second(best.mb_s))
        },
    },
    Row {
        name: "128 KiB sequential write, overwritten at random: most",
        value: |review, drive| {
            most(review, "sequential", drive, "write")
                .map(|(_, best)| megabytes_a_second(best.mb_s))
        },
    },
    Row {
        name: "128 KiB sequential write, filled in order: most",
        value: |review, drive| {
            most(review, "sequential-filled", drive, "write")
                .map(|(_, best)| megabytes_a_second(best.mb_s))
        },
    },
    Row {
        name: "Random write: fresh, then steady",
        value: cliff,
    },
    Row {
        name: "Write amplification, steady",
        value: |review, drive| {
            let point = find(review, "queue-depth", |point| {
                point.settings.direction == Some("write") && point.settings.queue_depth == Some(16)
            })?;
            let factor = point.results[drive].as_ref()?.write_amplification?;
            Some(format!("{factor:.2}"))
        },
    },
    Row {
        name: "Model (see `drivelab show`)",
        value: |review, drive| Some(review.drives[drive].support.grade.to_owned()),
    },
    Row {
        name: "Figures of the model that are assumed",
        value: |review, drive| {
            let kinds = review.drives[drive].kinds;
            Some(format!("{} of {}", kinds.assumed, kinds.all()))
        },
    },
];

/// The first point of a chapter that has these settings.
pub(super) fn find<'a>(
    review: &'a Review,
    chapter: &str,
    wanted: impl Fn(&Point) -> bool,
) -> Option<&'a Point> {
    review
        .chapter(chapter)?
        .points
        .iter()
        .find(|point| wanted(point))
}

/// The figures of one direction.
pub(super) fn figures<'a>(result: &'a Measurement, direction: &str) -> Option<&'a Figures> {
    match direction {
        "read" => result.read.as_ref(),
        _ => result.write.as_ref(),
    }
}

/// 4 KiB random I/O at a queue depth.
pub(super) fn depth<'a>(
    review: &'a Review,
    drive: usize,
    direction: &str,
    depth: u32,
) -> Option<&'a Figures> {
    let point = find(review, "queue-depth", |point| {
        point.settings.direction == Some(direction) && point.settings.queue_depth == Some(depth)
    })?;
    figures(point.results[drive].as_ref()?, direction)
}

/// The depth at which a drive did most, and its figures there.
fn most<'a>(
    review: &'a Review,
    chapter: &str,
    drive: usize,
    direction: &str,
) -> Option<(u32, &'a Figures)> {
    let points = &review.chapter(chapter)?.points;
    points
        .iter()
        .filter(|point| point.settings.direction == Some(direction))
        .filter_map(|point| {
            let figures = figures(point.results[drive].as_ref()?, direction)?;
            Some((point.settings.queue_depth?, figures))
        })
        .max_by(|a, b| a.1.iops.total_cmp(&b.1.iops))
}

/// The most I/Os a second, and the least depth that comes within 3 % of it.
fn iops_at(review: &Review, drive: usize, direction: &str) -> Option<String> {
    let (_, best) = most(review, "queue-depth", drive, direction)?;
    let points = &review.chapter("queue-depth")?.points;
    let enough = points.iter().find(|point| {
        let figures = point.results[drive]
            .as_ref()
            .and_then(|found| figures(found, direction));
        point.settings.direction == Some(direction)
            && figures.is_some_and(|figures| figures.iops >= 0.97 * best.iops)
    })?;
    let depth = enough.settings.queue_depth?;
    Some(format!("{} IOPS (QD{depth})", count(best.iops)))
}

/// The first and the last rate of the sustained-write chapter.
pub(super) fn ends_of_cliff(result: &Measurement) -> Option<(f64, f64)> {
    let series = result.series.as_ref()?;
    let count = series.iops.len();
    if count < 8 {
        return None;
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    Some((
        mean(&series.iops[..count / 8]),
        mean(&series.iops[count - count / 4..]),
    ))
}

fn cliff(review: &Review, drive: usize) -> Option<String> {
    let point = find(review, "sustained", |_| true)?;
    let (first, last) = ends_of_cliff(point.results[drive].as_ref()?)?;
    Some(format!("{} → {} IOPS", count(first), count(last)))
}

/// The table: a column for each drive.
pub fn table(review: &Review, width: Width) -> String {
    let mut table = terminal::table(width);
    let names = review
        .drives
        .iter()
        .map(|drive| Cell::new(&drive.id).set_alignment(CellAlignment::Right));
    table.set_header(std::iter::once(Cell::new("")).chain(names));
    for row in &ROWS {
        let values = (0..review.drives.len()).map(|drive| (row.value)(review, drive));
        let values: Vec<Option<String>> = values.collect();
        // A suite need not have every chapter.
        if values.iter().any(Option::is_some) {
            add(&mut table, row.name, values);
        }
    }
    for chapter in ["virten", "perftest"] {
        for point in review
            .chapter(chapter)
            .into_iter()
            .flat_map(|one| &one.points)
        {
            let name = point.name.split_once('/').map_or("", |(_, name)| name);
            let values = point
                .results
                .iter()
                .map(|result| headline(point, result.as_ref()?));
            add(&mut table, name, values.collect());
        }
    }
    add_yours(&mut table, review);
    // The names of the rows give way, figures do not.
    terminal::unbroken(&mut table, 1..=review.drives.len());
    table.trim_fmt()
}

/// Rows for each direction of each of the user's own workloads.
fn add_yours(table: &mut Table, review: &Review) {
    type Shown = fn(&Figures) -> Option<String>;
    let shown: [(&str, Shown); 3] = [
        ("", |figures| Some(format!("{} IOPS", count(figures.iops)))),
        (": mean", |figures| {
            Some(microseconds(figures.latency.mean_us))
        }),
        (": 99th", |figures| figures.latency.p99_us.map(microseconds)),
    ];
    let chapter = review.chapter("yours");
    for point in chapter.into_iter().flat_map(|one| &one.points) {
        let name = point.name.split_once('/').map_or("", |(_, name)| name);
        for direction in ["read", "write"] {
            for (what, value) in shown {
                let values = point
                    .results
                    .iter()
                    .map(|result| value(figures(result.as_ref()?, direction)?));
                let values: Vec<Option<String>> = values.collect();
                if values.iter().any(Option::is_some) {
                    let name = format!("{}, {direction}s{what}", shortened(name));
                    add(table, &name, values);
                }
            }
        }
    }
}

/// The end of a long name, where the job's own is.
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

/// What the source of a workload prints of it.
fn headline(point: &Point, result: &Measurement) -> Option<String> {
    let figures = figures(result, point.settings.direction?)?;
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
