//! `drivelab act` as a user runs it: verdicts, exit codes, logs and messages.

use std::io::Write as _;
use std::process::Output;

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::rig::{drivelab, text};

fn act(args: &[&str]) -> Output {
    drivelab(&[&["act"], args].concat())
}

/// Options for a short run.
const SHORT: [&str; 4] = ["--duration", "1", "--warm-up", "0"];

#[test]
fn a_load_that_passes_exits_with_0_and_one_that_fails_with_3() {
    let passes = act(&[&["p4800x-375", "--load", "10x"][..], &SHORT].concat());
    assert_eq!(passes.status.code(), Some(0), "{}", text(&passes.stderr));
    assert!(text(&passes.stdout).contains("p4800x-375: passes"));
    let fails = act(&[&["optane-memory-16", "--load", "200"][..], &SHORT].concat());
    assert_eq!(fails.status.code(), Some(3), "{}", text(&fails.stderr));
    assert!(text(&fails.stdout).contains("large writes/s of"));
    assert_eq!(text(&fails.stderr), "verdict: optane-memory-16 failed\n");
}

#[test]
fn json_is_asked_for_as_of_other_verbs() {
    let args = ["p4800x-375", "--load", "5"];
    let printed = |format: &[&str]| act(&[&args[..], &SHORT, format].concat());
    let json = printed(&["--json"]);
    assert_eq!(json.status.code(), Some(0), "{}", text(&json.stderr));
    assert_eq!(json.stdout, printed(&["--output-format", "json"]).stdout);
}

#[test]
fn json_says_what_was_asked_and_what_was_achieved() {
    let args = [
        "p4800x-375",
        "--act-version",
        "3",
        "--load",
        "5",
        "--output-format",
        "json",
    ];
    let output = act(&[&args[..], &SHORT].concat());
    let json: Value = serde_json::from_slice(&output.stdout).expect("the output is JSON");
    let drive = &json["drives"][0];
    assert_eq!(drive["act_version"], "3.0");
    assert_eq!(drive["passes"], true);
    assert_eq!(drive["score"], Value::Null);
    let near = |value: &Value, expected: f64| {
        let value = value.as_f64().expect("a number");
        assert!((value / expected - 1.0).abs() < 0.02, "{value} {expected}");
    };
    near(&drive["reads"]["per_second"], 10_000.0);
    near(&drive["large_writes"]["asked_per_second"], 5.0 * 23.53);
    near(&drive["large_writes"]["per_second"], 5.0 * 23.53);
    assert_eq!(drive["slices"][0]["percent_over_1_ms"], 0.0);
}

#[test]
fn a_configuration_file_is_run_and_its_log_written() {
    let mut config = NamedTempFile::new().unwrap();
    writeln!(
        config,
        "device-names: /dev/nvme0n1\ntest-duration-sec: 2\nread-reqs-per-sec: 4000\nwrite-reqs-per-sec: 2000\n\
         service-threads: 20\nmicrosecond-histograms: yes"
    )
    .unwrap();
    let log = NamedTempFile::new().unwrap();
    let (config, path) = (
        config.path().to_str().unwrap(),
        log.path().to_str().unwrap(),
    );
    let output = act(&[
        "p4800x-375",
        "--config",
        config,
        "--log",
        path,
        "--warm-up",
        "0",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let log = std::fs::read_to_string(path).unwrap();
    assert!(log.contains("\nservice-threads: 20\n"), "{log}");
    assert!(log.contains("\nafter 2 sec:\nreads ("), "{log}");
    assert!(!log.contains("after 3 sec"));
}

#[test]
fn seconds_of_a_log_are_whole() {
    let log = NamedTempFile::new().unwrap();
    let path = log.path().to_str().unwrap();
    // 15e9 ns times 1e-9 is not exactly 15.
    let args = [
        "ram-disk",
        "--load",
        "0.1",
        "--duration",
        "15",
        "--log",
        path,
    ];
    let output = act(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let log = std::fs::read_to_string(path).unwrap();
    assert!(log.contains("\ntest-duration-sec: 15\n"), "{log}");
    assert!(log.contains("\nafter 15 sec:\n"), "{log}");
}

#[test]
fn everything_wrong_with_the_arguments_is_said_at_once() {
    let output = act(&[
        "p4800x-357",
        "ram-disk",
        "--host",
        "esxi-nuc",
        "--log",
        "x",
        "--queues",
        "4",
    ]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(text(&output.stderr));
    let output = act(&["p4800x-375", "--load", "nought"]);
    assert_eq!(output.status.code(), Some(2));
}
