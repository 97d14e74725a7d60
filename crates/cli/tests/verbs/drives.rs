//! `drivelab drives` and `drivelab show` as a user runs them: output and exit codes.

use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

use crate::rig::{drivelab, text};

/// A file without an end is refused after some mebibytes and does not fill the memory.
#[test]
fn files_without_an_end_are_refused() {
    for args in [
        &["show", "./../../../../../../../../dev/zero"][..],
        &["run", "/dev/zero", "p4800x-375"],
        &[
            "choose",
            "p4800x-375",
            "--load",
            "wal",
            "--usd",
            "/dev/zero",
        ],
        &[
            "run",
            "p4800x-375",
            "--rw=read",
            "--number_ios=10",
            "--fault",
            "/dev/zero",
        ],
    ] {
        let output = drivelab(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = text(&output.stderr);
        assert!(said.contains("larger than 16 MiB"), "{args:?}: {said}");
    }
}

#[test]
fn drives_lists_every_drive() {
    let output = drivelab(&["drives"]);
    assert_eq!(output.status.code(), Some(0));
    let names = drivelab(&["drives", "--names"]);
    let names: Vec<&str> = text(&names.stdout).lines().collect();
    assert!(names.contains(&"ram-disk"));
    let (table, pools) = text(&output.stdout)
        .split_once("\n\nPools of drives:\n")
        .expect("pools are listed apart");
    assert_eq!(table.lines().count(), names.len() + 1);
    for name in names {
        assert!(table.contains(name), "{name} is not in\n{table}");
    }
    insta::assert_snapshot!(pools);
}

#[test]
fn show_names_the_source_of_every_figure() {
    let output = drivelab(&["show", "ram-disk"]);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!(text(&output.stdout));
}

/// One document with one schema, whether drives are listed or shown; it includes settings and changed figures.
#[test]
fn drives_are_told_as_json() {
    let document = |args: &[&str]| -> Value {
        let output = drivelab(args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let listed = document(&["drives", "--json"]);
    let shown = document(&["show", "ram-disk", "p4800x-375", "--json"]);
    for drive in shown["drives"].as_array().expect("drives") {
        let mut drive = drive.as_object().expect("an object").clone();
        assert!(drive.remove("figures").is_some());
        let all = listed["drives"].as_array().expect("drives");
        assert!(all.contains(&Value::Object(drive)));
    }
    let limit = |args: &[&str]| {
        document(&[&["show", "p4800x-375", "--json"], args].concat())["drives"][0]["power_limit_watts"].as_f64()
    };
    assert_eq!(limit(&[]), Some(18.0));
    assert_eq!(limit(&["--power-limit", "14W"]), Some(14.0));
    assert_eq!(limit(&["--set", "xpoint.power.limit=12W"]), Some(12.0));
}

#[test]
fn bad_input_is_exit_code_2() {
    let output = drivelab(&["show", "ram-disc"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    insta::assert_snapshot!(text(&output.stderr));
}

#[test]
fn part_of_a_name_is_told_what_it_may_mean() {
    for (written, meant) in [
        ("p3700", "did you mean `p3700-1600` or `p3700-800`?"),
        (
            "p4800x",
            "did you mean `p4800x-1500` or `p4800x-375` or `p4800x-750`?",
        ),
        ("P3700-800", "did you mean `p3700-800`?"),
    ] {
        let output = drivelab(&["show", written]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains(meant),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn endurance_a_day_has_no_more_digits_than_its_rating() {
    let shown = drivelab(&["show", "p4800x-375"]);
    assert!(text(&shown.stdout).contains(", 30 drive writes per day\n"));
}

#[test]
fn bad_usage_is_exit_code_2() {
    assert_eq!(drivelab(&["show"]).status.code(), Some(2));
    assert_eq!(drivelab(&["shew"]).status.code(), Some(2));
    assert_eq!(drivelab(&[]).status.code(), Some(2));
}

#[test]
fn every_verb_has_examples_in_its_help() {
    let help = drivelab(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    let help = text(&help.stdout);
    assert!(help.contains("Examples:"));
    // In groups, by purpose.
    let commands = help
        .split("Simulate:")
        .nth(1)
        .and_then(|rest| rest.split("Options:").next());
    let verbs: Vec<&str> = commands
        .expect("help lists the commands")
        .lines()
        // Deeper lines continue a description.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|&verb| verb != "help")
        .collect();
    assert!(verbs.contains(&"show") && verbs.len() > 12, "{verbs:?}");
    for verb in verbs {
        let help = drivelab(&[verb, "--help"]);
        assert_eq!(help.status.code(), Some(0));
        assert!(
            text(&help.stdout).contains("Examples:"),
            "{verb} --help has no examples"
        );
    }
}

#[test]
fn messages_that_cannot_be_written_change_no_exit_code() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let mut command = Command::new(cargo_bin!("drivelab"));
    command
        .args(["show", "ram-disc"])
        .stderr(full.expect("Linux"));
    assert_eq!(command.status().expect("it runs").code(), Some(2));
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = Command::new(cargo_bin!("drivelab"))
        .arg("drives")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "");
}

/// A guest's Linux has a page cache and a journal as any other: checks that write files run on a cloud's volume as well.
#[test]
fn volumes_are_checked_in_a_guest() {
    let args = "check etcd gp3 --host virtual-machine --seeds 1 --json";
    let output = drivelab(&args.split(' ').collect::<Vec<&str>>());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["asked"]["host"], "virtual-machine", "{found}");
}
