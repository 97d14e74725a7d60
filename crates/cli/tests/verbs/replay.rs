//! `drivelab replay` as a user runs it: tables, JSON, messages and exit codes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Output;

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::rig::{drivelab, text};

/// 2,000 requests of MSR's kind, 100 µs apart, each with 250 µs of recorded response; every fourth a write.
fn trace() -> NamedTempFile {
    let mut rows = String::new();
    for index in 0..2_000u64 {
        let kind = if index % 4 == 3 { "Write" } else { "Read" };
        let ticks = 128_166_385_295_514_663 + index * 1_000;
        writeln!(rows, "{ticks},hm,0,{kind},{},4096,2500", index * 8_192).unwrap();
    }
    file(rows.as_bytes())
}

fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn replay(file: &NamedTempFile, more: &[&str]) -> Output {
    let path = file.path().to_str().unwrap();
    drivelab(&[&["replay", path][..], more].concat())
}

fn json(file: &NamedTempFile, more: &[&str]) -> Value {
    let output = replay(file, &[more, &["--output-format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the output is JSON")
}

#[test]
fn the_table_has_each_drive_and_what_was_recorded() {
    let output = replay(&trace(), &["--drive", "ram-disk", "--drive", "ram-disk"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    let starting = |start: &str| {
        table
            .lines()
            .filter(|line| line.trim_start().starts_with(start))
            .count()
    };
    assert_eq!(starting("ram-disk"), 4 + 2 + 4, "{table}");
    assert_eq!(starting("as recorded"), 4, "{table}");
    assert!(
        table.contains("MSR Cambridge CSV, 2,000 requests over 0.200 s"),
        "{table}"
    );
    // 1,500 reads have ten samples beyond p99 and not beyond p99.9.
    let recorded = table
        .lines()
        .find(|line| line.contains("as recorded"))
        .unwrap();
    let cells: Vec<&str> = recorded.split_whitespace().collect();
    assert_eq!(
        cells,
        [
            "as", "recorded", "1,500", "250", "250", "250", "-", "-", "-"
        ]
    );
    assert!(table.contains("where the time of a read went"), "{table}");
}

#[test]
fn json_has_what_the_table_has() {
    let result = json(&trace(), &["--drive", "ram-disk"]);
    assert_eq!(result["trace"]["format"], "msr");
    assert_eq!(result["pace"]["speed"], 1.0);
    let drive = &result["drives"][0];
    assert_eq!(drive["read"]["requests"], 1_500);
    assert_eq!(drive["write"]["requests"], 500);
    assert_eq!(drive["read"]["recorded_us"]["mean"], 250.0);
    assert!(drive["read"]["latency_us"]["p99.9"].is_null());
    let mean = drive["read"]["latency_us"]["mean"].as_f64().unwrap();
    let bands = drive["read"]["anatomy"].as_array().unwrap();
    let weighted: f64 = bands
        .iter()
        .map(|band| {
            let sum: f64 = band["parts_us"]
                .as_object()
                .unwrap()
                .values()
                .filter_map(Value::as_f64)
                .sum();
            sum * band["requests"].as_f64().unwrap()
        })
        .sum();
    let counted: f64 = bands
        .iter()
        .filter_map(|band| band["requests"].as_f64())
        .sum();
    assert_eq!(counted, 1_500.0);
    assert!(
        (weighted / counted / mean - 1.0).abs() < 1e-9,
        "the anatomy does not sum to the mean"
    );
}

#[test]
fn speed_and_depth_change_the_pace_and_runs_repeat() {
    let trace = trace();
    let seconds = |more: &[&str]| {
        let result = json(&trace, &[&["--drive", "ram-disk"], more].concat());
        result["drives"][0]["seconds"].as_f64().unwrap()
    };
    let recorded = seconds(&[]);
    assert!((recorded / 0.1999 - 1.0).abs() < 0.01, "{recorded}");
    assert!((seconds(&["--speed", "2"]) / recorded - 0.5).abs() < 0.01);
    assert!(seconds(&["--depth", "1"]) > seconds(&["--depth", "8"]));
    assert_eq!(
        json(&trace, &["--drive", "ram-disk"]),
        json(&trace, &["--drive", "ram-disk"])
    );
}

#[test]
fn addresses_beyond_the_drive_are_refused_unless_told() {
    let rows = b"128166385295514663,hm,0,Read,0,4096,1\n128166385295514664,hm,0,Read,90000000000000,4096,1\n";
    let trace = file(rows);
    let output = replay(&trace, &["--drive", "ram-disk"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    let message = text(&output.stderr);
    assert!(
        message.contains("1 of 2 requests: beyond the end of ram-disk"),
        "{message}"
    );
    assert!(
        message.contains(&format!("{}:2", trace.path().display())),
        "{message}"
    );
    assert!(message.contains("--beyond wrap"), "{message}");
    let output = replay(&trace, &["--drive", "ram-disk", "--beyond", "wrap"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("1 of 2 requests lay beyond the drive"));
}

#[test]
fn bad_input_is_exit_code_2() {
    let trace = trace();
    let told = |output: Output, expected: &str| {
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains(expected),
            "{}",
            text(&output.stderr)
        );
    };
    told(
        replay(&trace, &["--drive", "ram-dusk", "--format", "mrs"]),
        "did you mean `msr`?",
    );
    told(
        replay(&trace, &["--drive", "ram-dusk", "--format", "mrs"]),
        "did you mean `ram-disk`?",
    );
    told(
        replay(&trace, &["--drive", "ram-disk", "--format", "spc"]),
        ":1",
    );
    told(
        replay(&trace, &["--drive", "ram-disk", "--speed", "0"]),
        "must be from",
    );
    told(
        replay(
            &trace,
            &["--drive", "ram-disk", "--speed", "2", "--depth", "4"],
        ),
        "cannot be used with",
    );
    told(
        replay(&trace, &["--drive", "ram-disk", "--volume", "web_0"]),
        "its volumes are hm_0",
    );
    told(
        replay(&file(b"what is this?\n"), &["--drive", "ram-disk"]),
        "--format",
    );
    told(
        drivelab(&["replay", "no/such/file", "--drive", "ram-disk"]),
        "cannot be read",
    );
    told(replay(&trace, &[]), "--drive");
}

#[test]
fn help_names_every_format() {
    let help = drivelab(&["replay", "--help"]);
    for format in study::workload::trace::FORMATS {
        assert!(
            text(&help.stdout).contains(&format!("  {} ", format.name)),
            "{}",
            format.name
        );
    }
}
