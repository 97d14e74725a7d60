//! `cargo xtask vendor`: copies uPlot, with its licence, from npm into the page's sources.
//!
//! The version and its checksum are in `crates/report/tests/browser/package-lock.json`; npm verifies it, and a test of
//! the page compares the copy with the package.

use std::fs;

use crate::shell::root;
use crate::tools;

const FILES: [(&str, &str); 3] = [
    ("dist/uPlot.iife.min.js", "uPlot.iife.min.js"),
    ("dist/uPlot.min.css", "uPlot.min.css"),
    ("LICENSE", "LICENSE"),
];

/// Downloads the package and copies its files.
pub(crate) fn run() -> Result<(), String> {
    tools::browser_tests()?;
    let package = root().join("crates/report/tests/browser/node_modules/uplot");
    let vendored = root().join("crates/report/src/page/vendor/uplot");
    fs::create_dir_all(&vendored).map_err(|error| format!("{}: {error}", vendored.display()))?;
    for (from, to) in FILES {
        let (from, to) = (package.join(from), vendored.join(to));
        fs::copy(&from, &to)
            .map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))?;
        println!("{}", to.display());
    }
    Ok(())
}
