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
}

#[test]
fn the_page_works_in_a_browser() {
    chromium::run(&published(), &["page.test.mjs", "charts.test.mjs"], |_| ());
}
