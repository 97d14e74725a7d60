//! Environment of the tests of live drives: servers, networks and guests that end with the test, and programs with a
//! time limit.
//!
//! A test that lacks a program or the guest reports that and passes; with `DRIVELAB_REQUIRE_TOOLS=1` (as in CI) it
//! fails.

pub(crate) mod archive;
pub(crate) mod certificates;
pub(crate) mod guest;
pub(crate) mod network;
pub(crate) mod process;
pub(crate) mod server;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use assert_cmd::cargo::cargo_bin;

/// Reports that a test is skipped, in a way that the test harness does not capture.
pub(crate) fn skipped(why: &str) {
    let required = std::env::var("DRIVELAB_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(!required, "{why}, and tools are required");
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// Returns the path of a program.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Checks whether all these programs can be called; if not, reports that.
pub(crate) fn has(programs: &[&str]) -> bool {
    let missing: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|name| find(name).is_none())
        .collect();
    if !missing.is_empty() {
        skipped(&format!("{} not installed", missing.join(", ")));
    }
    missing.is_empty()
}

/// Returns a file that `cargo xtask TASK` keeps in `target/TASK`, if it exists; if not, reports that.
fn made_by(task: &str, name: &str) -> Option<PathBuf> {
    let binary: &Path = cargo_bin!("drivelab");
    // The binary is in `target/PROFILE/`.
    let target = binary.parent()?.parent()?;
    let file = target.join(task).join(name);
    if file.is_file() {
        return Some(file);
    }
    skipped(&format!(
        "{} is not there (`cargo xtask {task}` makes it)",
        file.display()
    ));
    None
}

/// Returns a file of the guest.
pub(crate) fn guest_file(name: &str) -> Option<PathBuf> {
    made_by("guest", name)
}

/// Returns a file of libnbd's source.
pub(crate) fn libnbd_file(name: &str) -> Option<PathBuf> {
    made_by("interop", &format!("libnbd/{name}"))
}
