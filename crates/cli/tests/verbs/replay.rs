//! `drivelab replay` as a user runs it: tables, JSON, messages and exit codes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Output;

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::rig::{drivelab, text};

/// Returns 2,000 requests in MSR's format, 100 µs apart, each with 250 µs of recorded response time; every fourth is a
/// write.
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
    // Both drives: two kinds of requests, two shares of single latencies, one line of costs, two breakdowns.
    assert_eq!(starting("ram-disk"), 4 + 4 + 2 + 4, "{table}");
    assert_eq!(starting("as recorded"), 4, "{table}");
    assert!(
        table.contains("MSR Cambridge CSV, 2,000 requests over 0.200 s"),
        "{table}"
    );
    // 1,500 reads have ten samples beyond p99, but not beyond p99.9.
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
    assert!(
        table.contains("latency breakdown of a read by percentile"),
        "{table}"
    );
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

/// The disk of RAM takes 14 us at the most: all latencies are within 10 % of a trace that says so, none of one with
/// 250 us, and a constant is always within 10 % of itself.
#[test]
fn single_latencies_are_compared_one_by_one() {
    let shares = |file: &NamedTempFile| {
        let result = json(file, &["--drive", "ram-disk"]);
        let read = &result["drives"][0]["read"];
        let close = &read["within_10_percent"];
        assert_eq!(close["requests"], 1_500);
        assert_eq!(close["share_of_recorded_median"], 1.0);
        let median = read["latency_us"]["p50"].as_f64().unwrap();
        (close["share"].as_f64().unwrap(), median)
    };
    let (share, median) = shares(&trace());
    assert_eq!(share, 0.0);
    let ticks = format!(",{:.0}", median * 10.0);
    let rows = std::fs::read_to_string(trace().path()).unwrap();
    let near = file(rows.replace(",2500", &ticks).as_bytes());
    let (share, _) = shares(&near);
    assert!(share > 0.9, "{share} of latencies near {median} us");
    let table = replay(&near, &["--drive", "ram-disk"]);
    let table = text(&table.stdout);
    assert!(
        table.contains("recorded read latencies are reproduced within 10 %"),
        "{table}"
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
    assert!(text(&output.stdout).contains("1 of 2 requests began beyond the end of the drive"));
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
        "neither a trace nor a drive",
    );
    told(replay(&trace, &[]), "no drive is named");
}

#[test]
fn help_names_every_format() {
    let help = drivelab(&["replay", "--help"]);
    for format in workload::trace::FORMATS {
        assert!(
            text(&help.stdout).contains(&format!("  {} ", format.name)),
            "{}",
            format.name
        );
    }
}

#[test]
fn a_drive_that_is_too_small_says_so_and_the_others_go_on() {
    let beyond = file(b"128166385295514663,hm,0,Read,20000000000,4096,2500\n");
    let drives = ["--drive", "optane-memory-16", "--drive", "p4800x-375"];
    let output = replay(&beyond, &drives);
    assert_eq!(output.status.code(), Some(2));
    let (table, message) = (text(&output.stdout), text(&output.stderr));
    assert!(table.contains("p4800x-375  read"), "{table}");
    assert!(!table.contains("optane"), "{table}");
    assert!(
        message.contains("beyond the end of optane-memory-16"),
        "{message}"
    );
    // Nothing is printed if there is nothing.
    let output = replay(&beyond, &drives[..2]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn a_trace_without_times_goes_as_fast_as_the_depth_allows() {
    let log: String = (0..100)
        .map(|index| format!("/f read {} 4096\n", index * 4096))
        .collect();
    let log = file(format!("fio version 2 iolog\n/f add\n{log}").as_bytes());
    let paced = |more: &[&str]| {
        let root = json(&log, &[&["--drive", "p4800x-375"][..], more].concat());
        let mean = root["drives"][0]["read"]["latency_us"]["mean"].as_f64();
        (root["pace"]["depth"].clone(), mean.expect("reads"))
    };
    let (one, alone) = paced(&[]);
    let (eight, together) = paced(&["--depth", "8"]);
    assert_eq!((one, eight), (1.into(), 8.into()));
    // All at once, they would wait for each other.
    assert!(alone < 20.0 && alone < together, "{alone} {together}");
    let output = replay(&log, &["--drive", "p4800x-375"]);
    assert!(text(&output.stdout).contains("note: the trace has no times"));
    let output = replay(&log, &["--drive", "p4800x-375", "--speed", "2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--speed: the trace has no times"));
}

#[test]
fn columns_are_named_on_the_command_line() {
    let csv = file(b"t;kind;at;size\n0;r;0;8\n100;w;8;8\n300;r;16;8\n");
    let columns = ["--columns", "time=1,op=2,sector=3,sectors=4"];
    let root = json(
        &csv,
        &[&["--drive", "ram-disk", "--time-unit", "us"][..], &columns].concat(),
    );
    assert_eq!(root["trace"]["format"], "csv");
    assert_eq!(root["drives"][0]["read"]["requests"], 2);
    let output = replay(
        &csv,
        &[&["--drive", "ram-disk", "--format", "msr"][..], &columns].concat(),
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the format msr has fixed columns"));
    // A column of sectors that is read as bytes is questioned before the results.
    let drive = ["--drive", "ram-disk", "--time-unit", "us", "--columns"];
    for (columns, is_questioned) in [("sectors=4", false), ("size=4", true)] {
        let lines = "0;r;0;8\n".repeat(20);
        let columns = format!("time=1,op=2,sector=3,{columns}");
        let said = replay(&file(lines.as_bytes()), &[&drive[..], &[&columns]].concat());
        let said = text(&said.stdout);
        let first: String = said.lines().take(2).collect();
        let question = "20 of 20 requests are below 512 B";
        assert_eq!(first.contains(question), is_questioned, "{said}");
    }
}
