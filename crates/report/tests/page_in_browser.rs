//! The page in headless Chromium: runs `browser/*.test.mjs` on a page of formula drives.
//!
//! Needs node, chromium and `npm ci` in `tests/browser`; without them the test is skipped with a message.

mod chromium;
mod sample;

use study::review::Review;
use study::review::results::{
    ChapterResults, DirectionResult, Measurement, Point, PointSettings, PublishedFigure,
};

/// Returns the review of formula drives, with two published figures: one under the same conditions, one outside the
/// axis.
fn published() -> Review {
    let mut review = sample::paper_review().clone();
    let figure = |drive, row: &str, depth, value, differs: &[&str]| PublishedFigure {
        drive,
        row: row.into(),
        source: "P0: a sheet of paper".into(),
        what: "paper".into(),
        conditions: format!("4 KiB random reads, QD{depth}"),
        stands: "predicted",
        chapter: "queue-depth",
        settings: PointSettings {
            direction: Some("read"),
            queue_depth: Some(depth),
            ..PointSettings::default()
        },
        of: "read",
        metric: "iops",
        form: "figure",
        value: Some(value),
        least: None,
        most: None,
        here: None,
        differs: differs.iter().map(|&word| word.into()).collect(),
    };
    review.published = vec![
        figure(0, "P0-001", 16, 420_000.0, &[]),
        figure(1, "P0-002", 128, 300_000.0, &["a new drive"]),
    ];
    review
        .published
        .extend(of_sweeps(&figure(0, "", 16, 0.0, &[])));
    review
}

/// Mean latencies: a range, a bound over all depths, a knee, and one drive as a multiple of the other.
fn of_sweeps(figure: &PublishedFigure) -> Vec<PublishedFigure> {
    let mean = |row: &str, form, ends: [Option<f64>; 2]| PublishedFigure {
        row: row.into(),
        metric: "mean",
        form,
        value: ends[0].filter(|_| ends[0] == ends[1]),
        least: ends[0],
        most: ends[1],
        ..figure.clone()
    };
    let of_all = |one: PublishedFigure| PublishedFigure {
        settings: PointSettings {
            queue_depth: None,
            ..one.settings.clone()
        },
        ..one
    };
    vec![
        mean("P0-003", "figure", [Some(20.0), Some(45.0)]),
        of_all(mean("P0-004", "greatest", [None, Some(60.0)])),
        of_all(mean("P0-005", "knee", [Some(8.0), Some(8.0)])),
        PublishedFigure {
            here: Some(1.5),
            ..mean("P0-006", "ratio", [Some(2.0), Some(2.0)])
        },
    ]
}

#[test]
fn the_page_works_in_a_browser() {
    chromium::run(&published(), &["page.test.mjs", "charts.test.mjs"], |_| ());
}

/// Returns figures with this factor of I/Os, with blocks of this size.
fn scaled(figures: &Option<DirectionResult>, by: f64, block: u64) -> Option<DirectionResult> {
    let mut figures = figures.clone()?;
    figures.ios = (figures.ios as f64 * by) as u64;
    figures.iops *= by;
    figures.mb_s = figures.iops * block as f64 / 1e6;
    figures.latency.mean_us /= by;
    Some(figures)
}

/// Returns the review with the chapter of SNIA's mixes and block sizes, its figures made from those of formula drives;
/// the first drive lacks one of them.
fn with_mixes() -> Review {
    let mut review = sample::paper_review().clone();
    let depths = review
        .chapter("queue-depth")
        .expect("a chapter of the suite");
    let of = |direction| {
        let mut points = depths.points.iter();
        let point = points.find(|point| point.settings.direction == Some(direction));
        point.expect("both directions").results.clone()
    };
    let (reads, writes) = (of("read"), of("write"));
    // In SNIA's order: the largest first.
    let blocks: [u64; 8] = [
        1 << 20,
        1 << 17,
        1 << 16,
        1 << 15,
        1 << 14,
        1 << 13,
        1 << 12,
        512,
    ];
    let mixes: [(u32, &str); 7] = [
        (100, "100/0"),
        (95, "95/5"),
        (65, "65/35"),
        (50, "50/50"),
        (35, "35/65"),
        (5, "5/95"),
        (0, "0/100"),
    ];
    let mut points = Vec::new();
    for (percent, profile) in mixes {
        for block in blocks {
            let by = 4096.0 / (block as f64 + 2000.0);
            let result = |drive: usize| {
                let (read, write) = (reads[drive].as_ref()?, writes[drive].as_ref()?);
                let share = f64::from(percent) / 100.0;
                let is_missing = drive == 0 && percent == 50 && block == 512;
                (!is_missing).then(|| Measurement {
                    read: scaled(&read.read, by * share, block).filter(|_| percent > 0),
                    write: scaled(&write.write, by * (1.0 - share), block)
                        .filter(|_| percent < 100),
                    notes: vec![String::from("steady after five rounds")],
                    ..read.clone()
                })
            };
            points.push(Point {
                name: format!("snia-iops/snia/r{percent}-{block}"),
                settings: PointSettings {
                    pattern: Some("random"),
                    block_bytes: Some(block),
                    read_percent: Some(percent),
                    profile: Some(profile),
                    ..PointSettings::default()
                },
                state: "fresh",
                seed: 1,
                results: (0..review.drives.len()).map(result).collect(),
            });
        }
    }
    review.chapters.push(ChapterResults {
        id: "snia-iops",
        title: "IOPS test",
        points,
    });
    review
}

#[test]
fn mixes_by_block_size_are_a_table_that_says_what_the_data_say() {
    chromium::run(&with_mixes(), &["matrix.test.mjs"], |_| ());
}
