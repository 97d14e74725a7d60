//! The page in headless Chromium: runs `browser/*.test.mjs` on a page of paper drives.
//!
//! Needs node, chromium and `npm ci` in `tests/browser`; without them the test is skipped and says so.

mod sample;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use report::page;
use study::review::Review;
use study::review::results::{Published, Settings};

/// Says that a test is skipped where the test harness does not catch it, as it does `eprintln!`.
macro_rules! skip {
    ($($what:tt)*) => {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {}", format_args!($($what)*));
    };
}

/// The first of these programs that can be called.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|candidate| candidate.is_file())
}

/// Says what is missing; where tools are required (as in CI) that is a failure.
fn missing(what: &str) {
    let required = std::env::var("DRIVELAB_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(!required, "{what}");
    skip!("{what}");
}

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
        value,
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let node = program(&["node"]);
    let chromium = program(&["chromium", "chromium-browser", "google-chrome"]);
    let (Some(node), Some(chromium)) = (node, chromium) else {
        missing("needs node and chromium on the PATH");
        return;
    };
    if !folder.join("node_modules/playwright-core").is_dir() {
        missing(&format!("run `npm ci` in {} first", folder.display()));
        return;
    }
    let review = published();
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("review.html");
    std::fs::write(&file, page::html(&review)).unwrap();
    std::fs::write(target.path().join("review.json"), review.to_json()).unwrap();
    let run = Command::new(node)
        .args([
            "--test",
            "--test-reporter=spec",
            "page.test.mjs",
            "charts.test.mjs",
        ])
        .current_dir(&folder)
        .env("PAGE", &file)
        .env("CHROMIUM", chromium)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    println!("{said}");
    assert!(
        run.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&run.stderr)
    );
}
