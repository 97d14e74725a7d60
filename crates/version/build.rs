//! Finds the commit that the program is built from, for release builds. A development build says `dev` instead, so that
//! it is not rebuilt at each commit.

use std::path::Path;
use std::process::Command;

fn main() {
    let package = std::env::var("CARGO_PKG_VERSION").expect("set by Cargo");
    let release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    println!("cargo:rerun-if-changed=build.rs");
    let built_from = match release {
        true => commit(),
        false => Some("dev".to_owned()),
    };
    let version = match built_from {
        Some(commit) => format!("{package}+{commit}"),
        // Sources without their history, such as an archive.
        None => package,
    };
    println!("cargo:rustc-env=DRIVELAB_VERSION={version}");
}

/// The commit in eight digits, with `.changed` where files differ from it.
fn commit() -> Option<String> {
    let root = Path::new("../..").canonicalize().ok()?;
    // The archive of a release may lie in somebody else's repository.
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?) != root {
        return None;
    }
    // Not the index: each `git status` may write it, and everything above this crate would be built again.
    let commits = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo:rerun-if-changed={commits}");
    for folder in ["crates", "Cargo.lock", "ledger"] {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
    }
    let commit = git(&["rev-parse", "--short=8", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(match changes.is_empty() {
        true => commit,
        false => format!("{commit}.changed"),
    })
}

/// Returns the output of git without the final newline; `None` if git is missing or fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
