//! `drivelab size`: an answer as JSON, a limit that is missed, and what it cannot size.

use serde_json::Value;

use crate::rig::{drivelab, text};

#[test]
fn a_log_is_sized_and_a_limit_that_no_size_is_within_is_told() {
    let log = ["size", "slog", "p4801x-100", "--main", "950pro-256"];
    let load = [
        "--load", "wal", "--seeds", "1", "--slo", "p99<1us", "--json",
    ];
    let output = drivelab(&[&log[..], &load[..]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = json["answers"][0]["rows"].as_array().expect("sizes");
    assert!(rows.len() > 2, "{json}");
    assert!(rows.iter().all(|row| row["meets"] == false), "{json}");
    // What is never full stays so with more.
    let full = |row: &Value| row["never_full"] == false;
    assert!(rows.is_sorted_by_key(|row| !full(row)), "{json}");
    assert!(full(&rows[0]) && !full(&rows[rows.len() - 1]), "{json}");
}

#[test]
fn what_it_cannot_size_is_refused() {
    let asked = [
        "size",
        "slog",
        "p4801x-100",
        "--main",
        "950pro-256",
        "--load",
        "nothing",
    ];
    let output = drivelab(&asked);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("nothing"),
        "{}",
        text(&output.stderr)
    );
}
