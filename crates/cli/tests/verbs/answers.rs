//! docs/answers.md contains the output of its commands. Commands that take about a second are run and compared; for
//! the others, only the arguments are checked. `DRIVELAB_ANSWERS=all` runs and compares all of them (some ten
//! minutes), `=write` writes the output into the document.

use std::path::{Path, PathBuf};

use crate::rig::{shell_in as run, skipped, text};

/// Parts of commands that take long.
const SLOW: [&str; 6] = [" max ", "--trace", "slog", "vsan-cache", "--like", "review"];

/// A block without a language: a command with its output.
struct Asked<'a> {
    command: &'a str,
    printed: &'a str,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the blocks of this kind: `toml`, or none for a terminal.
fn blocks<'a>(document: &'a str, kind: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (index, block) in document.split("```").enumerate() {
        if index % 2 == 1
            && let Some((first, rest)) = block.split_once('\n')
            && first == kind
        {
            found.push(rest);
        }
    }
    found
}

fn asked(document: &str) -> Vec<Asked<'_>> {
    let all = blocks(document, "").into_iter();
    let commands = all.flat_map(|block| block.split("$ ").skip(1));
    let asked = commands.map(|one| {
        let (command, printed) = one.split_once('\n').expect("a line");
        Asked { command, printed }
    });
    asked.collect()
}

/// Returns a folder with the files that the commands read.
fn folder(document: &str) -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let prices = blocks(document, "toml");
    assert_eq!(prices.len(), 1, "prices");
    std::fs::write(folder.path().join("prices.toml"), prices[0]).expect("a folder of our own");
    for (seed, name) in [("smartctl-nvme", "nvme0"), ("fleet-array", "fleet")] {
        let seed = root().join(format!("fuzz/seeds/smart/{seed}.json"));
        let copy = folder.path().join(format!("{name}.json"));
        std::fs::copy(seed, copy).expect("a folder of our own");
    }
    let trace = root().join("../shared/traces/cloudphysics-sample.vscsi.xz");
    if std::fs::copy(trace, folder.path().join("vm.vscsi.xz")).is_err() {
        skipped("the trace of docs/answers.md is not here");
    }
    folder
}

/// Checks that everything except the folder of the table is valid.
fn is_read(folder: &Path, command: &str) {
    let output = run(folder, &format!("{command} --csv no/such/folder.csv"));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{command}: {said}");
    let errors: Vec<&str> = said.lines().filter(|it| it.starts_with("error")).collect();
    assert_eq!(errors.len(), 1, "{command}: {said}");
    assert!(errors[0].contains("no/such"), "{command}: {said}");
}

#[test]
fn the_document_prints_what_its_commands_print() {
    let path = root().join("docs/answers.md");
    let document = std::fs::read_to_string(&path).expect("a document");
    let folder = folder(&document);
    let mode = std::env::var("DRIVELAB_ANSWERS").unwrap_or_default();
    let mut new = document.clone();
    for one in asked(&document) {
        let is_slow = SLOW.iter().any(|part| one.command.contains(part));
        if one.command.contains("vm.vscsi.xz") && !folder.path().join("vm.vscsi.xz").exists() {
            continue;
        }
        if is_slow && mode.is_empty() {
            is_read(folder.path(), one.command);
            continue;
        }
        let output = run(folder.path(), one.command);
        let printed = text(&output.stdout);
        assert_ne!(output.status.code(), Some(2), "{}", text(&output.stderr));
        match mode == "write" {
            true => {
                let old = format!("$ {}\n{}", one.command, one.printed);
                let printed = printed.trim_end();
                let end = if printed.is_empty() { "" } else { "\n" };
                new = new.replace(&old, &format!("$ {}\n{printed}{end}", one.command));
            }
            false => assert_eq!(
                printed.trim_end(),
                one.printed.trim_end(),
                "{}",
                one.command
            ),
        }
    }
    if new != document {
        std::fs::write(&path, new).expect("the document");
    }
}

#[test]
fn there_are_sixteen_questions_each_with_its_command() {
    let document = std::fs::read_to_string(root().join("docs/answers.md")).expect("a document");
    let sections: Vec<&str> = document.split("\n## ").skip(1).collect();
    assert_eq!(sections.len(), 16);
    for (index, section) in sections.iter().enumerate() {
        assert!(
            section.starts_with(&format!("{}. ", index + 1)),
            "{section}"
        );
        let commands = section.split("```").skip(1).step_by(2);
        let has = |block: &str| block.contains("$ drivelab ") || block.contains("\ndrivelab ");
        assert!(commands.into_iter().any(has), "{section}");
    }
}

/// The first screen of the README has three of them, with the answers of the document.
#[test]
fn the_readme_leads_with_three_of_them() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("a document");
    let document = std::fs::read_to_string(root().join("docs/answers.md")).expect("a document");
    let known = asked(&document);
    let leads = asked(readme.split("\n## Start").next().expect("a beginning"));
    assert_eq!(leads.len(), 3);
    for lead in leads {
        let found = known.iter().find(|one| one.command == lead.command);
        let found = found.unwrap_or_else(|| panic!("{} is not in the document", lead.command));
        let first = lead.printed.lines().next().expect("an answer");
        assert_eq!(
            found.printed.lines().next(),
            Some(first),
            "{}",
            lead.command
        );
    }
}
