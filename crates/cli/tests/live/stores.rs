//! Crash tests of real stores: rows of docs/crashtest/stores/rows.csv with 150 images, which need about 2 s of CPU time
//! each. `cargo xtask stores` runs all rows.
//!
//! `load.py` writes, `check.py` is a resident checker. Each row names the class that must be found, the loss that it
//! needs, and a class that must not be found; or that no image fails.

use std::fs;
use std::path::Path;

use crate::programs::Place;
use crate::rig::{has, skipped};

/// Images of a row.
const IMAGES: &str = "150";

/// Checks whether the system's Python has a module; if not, reports that.
fn has_module(name: &str) -> bool {
    let import = std::process::Command::new("/usr/bin/python3")
        .args(["-c", &format!("import {name}")])
        .output();
    let found = import.is_ok_and(|it| it.status.success());
    if !found {
        skipped(&format!("/usr/bin/python3 has no {name}"));
    }
    found
}

/// Returns classes and needs of the failures of a report.
fn failures(said: &str) -> Vec<(&str, &str)> {
    let blocks = said.split("FAILED     ").skip(1);
    let failure = |block: &'_ str| -> Option<(usize, usize)> {
        let class = block.find([' ', ':'])?;
        Some((class, block.find("  needs      ")? + 13))
    };
    let found = blocks.map(|block| {
        let (class, needs) = failure(block).expect("a class and needs");
        let end = block[needs..].find([':', '\n']).expect("an end");
        (&block[..class], &block[needs..needs + end])
    });
    found.collect()
}

/// Runs the rows of a store.
fn run(store: &str) {
    let Some(place) = Place::new() else { return };
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/crashtest/stores");
    for name in ["load.py", "check.py"] {
        fs::copy(programs.join(name), place.path().join(name)).expect("copied");
    }
    let table = fs::read_to_string(programs.join("rows.csv")).expect("a table");
    let rows = table.lines().map(|it| it.split(',').collect::<Vec<&str>>());
    let own = rows.filter(|it| it[0] == store && it[9] == "test");
    let mut count = 0;
    for row in own {
        count += 1;
        let (setting, transactions, tool) = (row[1], row[3], row[5]);
        let (expected, needs, never) = (row[6], row[7], row[8]);
        if (tool.strip_prefix("python:")).is_some_and(|module| !has_module(module)) {
            continue;
        }
        let check = format!("/usr/bin/python3 check.py {store} {setting}");
        let load = format!(
            "STORES_COUNT={transactions} {}",
            check.replace("check", "load")
        );
        let mut args = vec!["950pro-256", "--images", IMAGES, "--limit", "60s"];
        args.extend(row[2].split_whitespace());
        args.extend(["--check-server", &check, "--", "sh", "-c", &load]);
        let (code, said) = place.run(&args);
        // Other causes of the same violation count as well.
        let listed = said.replace("\nalso       ", "\nFAILED     ");
        let found = failures(&listed);
        if expected == "held" {
            assert_eq!(code, 0, "{load}: {said}");
            assert!(found.is_empty(), "{load}: {said}");
        } else {
            assert_eq!(code, 3, "{load}: {said}");
            assert!(found.contains(&(expected, needs)), "{load}: {said}");
            assert!(found.iter().all(|it| it.0 != never), "{load}: {said}");
        }
    }
    assert!(count > 1, "{store}: rows that hold and rows that lose");
}

/// A `plyvel` whose stores cannot be opened.
const UNOPENABLE: &str =
    "class Error(Exception): pass\ndef DB(*_, **__): raise Error('no meta-nextfile')\n";

#[test]
fn a_leveldb_that_does_not_open_fails_after_the_first_acknowledgement_only() {
    if !has(&["/usr/bin/python3"]) {
        return;
    }
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for (name, text) in [("plyvel.py", UNOPENABLE), ("none", ""), ("one", "1\n")] {
        fs::write(path(name), text).expect("written");
    }
    let mut lines = String::new();
    for acks in ["none", "one"] {
        let (folder, acks) = (folder.path().display(), path(acks));
        lines += &format!("{folder}\t{}\t{}\tname\n", acks.display(), acks.display());
    }
    fs::write(path("lines"), lines).expect("written");
    let check = "../../docs/crashtest/stores/check.py";
    let output = std::process::Command::new("/usr/bin/python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(check))
        .args(["leveldb", "sync"])
        .env("PYTHONPATH", folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(fs::File::open(path("lines")).expect("a file"))
        .output()
        .expect("python starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "skip\nunopenable: no meta-nextfile\n", "{output:?}");
}

#[test]
fn sqlite_holds_where_its_manual_promises_it_and_loses_elsewhere() {
    run("sqlite");
}

#[test]
fn an_appended_log_holds_with_fsync_and_loses_without() {
    run("append");
}

#[test]
fn a_replaced_file_holds_with_fsync_of_file_and_folder() {
    run("rename");
}
