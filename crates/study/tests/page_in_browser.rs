//! The page in headless Chromium: runs `browser/page.test.mjs` on a page of paper drives.
//!
//! Needs node, chromium and `npm ci` in `tests/browser`; without them the test is skipped and says so.

mod sample;

use std::path::{Path, PathBuf};
use std::process::Command;

use study::report::page;

/// The first of these programs that can be called.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|candidate| candidate.is_file())
}

#[test]
fn the_page_works_in_a_browser() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let node = program(&["node"]);
    let chromium = program(&["chromium", "chromium-browser", "google-chrome"]);
    let (Some(node), Some(chromium)) = (node, chromium) else {
        println!("SKIPPED: needs node and chromium on the PATH");
        return;
    };
    if !folder.join("node_modules/playwright-core").is_dir() {
        println!("SKIPPED: run `npm ci` in {} first", folder.display());
        return;
    }
    let review = sample::paper_review(4_000);
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("review.html");
    std::fs::write(&file, page::html(&review)).unwrap();
    std::fs::write(target.path().join("review.json"), review.to_json()).unwrap();
    let run = Command::new(node)
        .args(["--test", "--test-reporter=spec", "page.test.mjs"])
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
