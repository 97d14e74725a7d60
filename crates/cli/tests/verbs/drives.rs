//! `drivelab drives` and `drivelab show` as a user runs them: output and exit codes.

use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use crate::rig::{drivelab, text};

#[test]
fn drives_lists_every_drive() {
    let output = drivelab(&["drives"]);
    assert_eq!(output.status.code(), Some(0));
    let names = drivelab(&["drives", "--names"]);
    let names: Vec<&str> = text(&names.stdout).lines().collect();
    assert!(names.contains(&"ram-disk"));
    let table = text(&output.stdout);
    assert_eq!(table.lines().count(), names.len() + 1);
    for name in names {
        assert!(table.contains(name), "{name} is not in\n{table}");
    }
}

#[test]
fn show_names_the_source_of_every_figure() {
    let output = drivelab(&["show", "ram-disk"]);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!(text(&output.stdout));
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
        ("p4800x", "did you mean `p4800x-375` or `p4800x-750`?"),
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
    assert!(text(&shown.stdout).contains(", 30 drive writes a day\n"));
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
    let commands = help
        .split("Commands:")
        .nth(1)
        .and_then(|rest| rest.split("\n\n").next());
    let verbs: Vec<&str> = commands
        .expect("help lists the commands")
        .lines()
        // Deeper lines go on with a description.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|&verb| verb != "help")
        .collect();
    assert!(verbs.contains(&"show"));
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
