//! The page in headless Chromium: runs `browser/*.test.mjs` on a page of paper drives.
//!
//! Needs node, chromium and `npm ci` in `tests/browser`; without them the test is skipped and says so.

mod chromium;
mod sample;

use study::review::Review;
use study::review::results::{Published, Settings};

/// The review of paper drives, with two published figures: one under the same conditions, one beyond the axis.
fn published() -> Review {
    let mut review = sample::paper_review().clone();
    let figure = |drive, row: &str, depth, value, differs: &[&str]| Published {
        drive,
        row: row.into(),
        source: "P0: a sheet of paper".into(),
        what: "paper".into(),
        conditions: format!("4 KiB random reads, QD{depth}"),
        stands: "predicted",
        chapter: "queue-depth",
        settings: Settings {
            direction: Some("read"),
            queue_depth: Some(depth),
            ..Settings::default()
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
fn of_sweeps(figure: &Published) -> Vec<Published> {
    let mean = |row: &str, form, ends: [Option<f64>; 2]| Published {
        row: row.into(),
        metric: "mean",
        form,
        value: ends[0].filter(|_| ends[0] == ends[1]),
        least: ends[0],
        most: ends[1],
        ..figure.clone()
    };
    let of_all = |one: Published| Published {
        settings: Settings {
            queue_depth: None,
            ..one.settings.clone()
        },
        ..one
    };
    vec![
        mean("P0-003", "figure", [Some(20.0), Some(45.0)]),
        of_all(mean("P0-004", "greatest", [None, Some(60.0)])),
        of_all(mean("P0-005", "knee", [Some(8.0), Some(8.0)])),
        Published {
            here: Some(1.5),
            ..mean("P0-006", "ratio", [Some(2.0), Some(2.0)])
        },
    ]
}

#[test]
fn the_page_works_in_a_browser() {
    chromium::run(&published(), &["page.test.mjs", "charts.test.mjs"], |_| ());
}
