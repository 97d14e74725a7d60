//! What the tests of live drives stand on: servers, networks and guests that end with the test, and programs that end
//! in time.
//!
//! A test that lacks a program or the guest says so and passes; with `DRIVELAB_REQUIRE_TOOLS=1` (as in CI) it fails.

pub(crate) mod archive;
pub(crate) mod certificates;
pub(crate) mod guest;
pub(crate) mod network;
pub(crate) mod process;
pub(crate) mod server;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use assert_cmd::cargo::cargo_bin;

/// Says that a test is skipped, where the test harness does not catch it.
pub(crate) fn skipped(why: &str) {
    let required = std::env::var("DRIVELAB_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(!required, "{why}, and tools are required");
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// Where a program is.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Whether all these programs can be called; if not, that is said.
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

/// A file of what `cargo xtask TASK` keeps in `target/TASK`, if it is there; if not, that is said.
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

/// A file of the guest.
pub(crate) fn guest_file(name: &str) -> Option<PathBuf> {
    made_by("guest", name)
}

/// A file of libnbd's source.
pub(crate) fn libnbd_file(name: &str) -> Option<PathBuf> {
    made_by("interop", &format!("libnbd/{name}"))
}
