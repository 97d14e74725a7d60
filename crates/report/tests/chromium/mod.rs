//! Runs tests of `browser/` on the page of a review, in headless Chromium.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use report::page;
use study::review::Review;

/// Returns the first of these programs that can be called.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|candidate| candidate.is_file())
}

/// Reports a missing tool; if tools are required (as in CI), that is a failure.
fn missing(what: &str) {
    let required = std::env::var("DRIVELAB_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(!required, "{what}");
    skip(what);
}

/// Reports that a test is skipped, in a way that the test harness does not capture as it does `eprintln!`.
pub(crate) fn skip(what: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

/// Writes the review's page and data into a folder, runs the tests there and passes the folder to `look`. Without a
/// browser, reports that the test is skipped.
#[allow(dead_code, reason = "not every test of pages is of a review")]
pub(crate) fn run(review: &Review, tests: &[&str], look: impl FnOnce(&Path)) {
    run_on(&page::html(review), &review.to_json(), tests, look);
}

/// Runs tests on any page, with data for the tests as JSON.
pub(crate) fn run_on(html: &str, known: &str, tests: &[&str], look: impl FnOnce(&Path)) {
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
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("review.html");
    std::fs::write(&file, html).unwrap();
    std::fs::write(target.path().join("review.json"), known).unwrap();
    let run = Command::new(node)
        .args(["--test", "--test-reporter=spec"])
        .args(tests)
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
    look(target.path());
}
