//! docs/sources.md has a command for each thing that the five sources describe. Each command runs, with less load.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::rig::{shell_in, text};

/// Options that shorten commands: of the subcommand in the first word, if the command has the other words.
const SHORTER: [(&str, &[(&str, &str)]); 9] = [
    ("run", &[("--runtime", "10ms"), ("--ramp_time", "0")]),
    ("review", &[("--ios", "100")]),
    ("max", &[("--ios", "10000"), ("--seeds", "1")]),
    (
        "mix",
        &[("--ios", "1000"), ("--step", "50"), ("--seeds", "1")],
    ),
    (
        "act",
        &[("--load", "1"), ("--duration", "1"), ("--warm-up", "0")],
    ),
    ("choose --load", &[("--runtime", "10ms"), ("--seeds", "1")]),
    (
        "choose --profile",
        &[("--runtime", "10ms"), ("--seeds", "1")],
    ),
    ("life --load", &[("--runtime", "10ms"), ("--seeds", "1")]),
    ("size --load", &[("--runtime", "10ms"), ("--seeds", "1")]),
];

/// Sources whose ledger rows take up to a minute. The test only checks that the ledger has these rows.
const LONG: [&str; 2] = ["--row S1-", "--row S3-"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn docs() -> PathBuf {
    root().join("docs")
}

fn document() -> String {
    std::fs::read_to_string(docs().join("sources.md")).expect("a document")
}

/// Returns a folder with the files that the commands read.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    for file in files() {
        let copy = folder.path().join(&file);
        std::fs::copy(docs().join("sources").join(&file), copy).expect("a folder of our own");
    }
    folder
}

fn files() -> BTreeSet<String> {
    let folder = std::fs::read_dir(docs().join("sources")).expect("a folder");
    let names = folder.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.into_string().expect("a name"))
        .collect()
}

/// Returns the cells of the tables in this part of a document, without their heads.
fn rows(part: &str) -> Vec<Vec<&str>> {
    let lines = part.lines().filter(|line| line.starts_with('|')).skip(2);
    lines
        .map(|line| {
            let line = line.trim_matches('|');
            line.split(" | ").map(str::trim).collect()
        })
        .collect()
}

/// Returns the sections of a document, each with its title.
fn sections(document: &str) -> Vec<(&str, &str)> {
    let parts = document.split("\n## ").skip(1);
    parts
        .map(|part| part.split_once('\n').expect("a title"))
        .collect()
}

/// Returns the command of a row, or an error for a row that has none.
fn command<'a>(row: &[&'a str]) -> Result<&'a str, String> {
    let cell = match row {
        [_, cell] => cell.strip_prefix('`').and_then(|it| it.strip_suffix('`')),
        _ => None,
    };
    match cell {
        Some(command) if command.starts_with("drivelab ") => Ok(command),
        _ => Err(format!("a row without a command: {row:?}")),
    }
}

/// Returns the command with less load: a given option gets the lower value, a missing one is added.
fn shortened(command: &str) -> String {
    let mut words: Vec<&str> = command.split(' ').collect();
    for (needed, options) in SHORTER {
        let mut needed = needed.split(' ');
        if needed.next() != Some(words[1]) || !needed.all(|word| words.contains(&word)) {
            continue;
        }
        for &(option, value) in options {
            match words.iter().position(|word| *word == option) {
                Some(at) => words[at + 1] = value,
                None => words.extend([option, value]),
            }
        }
    }
    let command = words.join(" ");
    match words[1] {
        "serve" => format!("timeout --preserve-status --signal=INT 2 {command}"),
        _ => command,
    }
}

/// Returns an error for the first row of a `reproduce` command that is not in the ledger.
fn known_rows(command: &str) -> Result<String, String> {
    let ledger = std::fs::read_dir(root().join("ledger")).expect("a folder");
    let files = ledger.map(|entry| entry.expect("an entry").path());
    let files = files.filter(|path| path.extension().is_some_and(|it| it == "toml"));
    let ledger: String = files
        .map(|path| std::fs::read_to_string(path).expect("a ledger"))
        .collect();
    let words: Vec<&str> = command.split(' ').collect();
    let rows = words.windows(2).filter(|pair| pair[0] == "--row");
    for row in rows.map(|pair| pair[1]) {
        if !ledger.contains(&format!("\n{row} ")) {
            return Err(format!("{command}: the ledger has no row {row}"));
        }
    }
    Ok(String::new())
}

/// Runs a command with less load; returns what it printed, or why it was refused.
fn run(folder: &Path, command: &str) -> Result<String, String> {
    if LONG.iter().any(|part| command.contains(part)) {
        return known_rows(command);
    }
    let command = shortened(command);
    let output = shell_in(folder, &command);
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    match output.status.code() {
        // 3: a verdict, such as a drive that does not last; 130: a server that was interrupted.
        Some(0 | 3 | 130) if !printed.is_empty() || !said.is_empty() => Ok(printed.to_owned()),
        code => Err(format!("{command}: {code:?}: {said}")),
    }
}

#[test]
fn every_command_of_the_sources_runs() {
    let document = document();
    let folder = folder();
    let mut refused = Vec::new();
    for (title, part) in sections(&document) {
        if title == "Not available" {
            continue;
        }
        let rows = rows(part);
        assert!(rows.len() >= 10, "{title}: {} rows", rows.len());
        for row in rows {
            let ran = command(&row).and_then(|command| run(folder.path(), command));
            refused.extend(ran.err());
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn each_source_has_a_table_and_each_file_a_command() {
    let document = document();
    let titles: Vec<&str> = sections(&document).iter().map(|it| it.0).collect();
    assert_eq!(titles.len(), 6, "{titles:?}");
    for (index, title) in titles.iter().take(5).enumerate() {
        assert!(title.starts_with(&format!("S{index}: ")), "{title}");
    }
    assert_eq!(titles[5], "Not available");
    for file in files() {
        assert!(document.contains(&format!(" {file}")), "{file} is not used");
    }
}

/// The check above finds commands that are refused, and rows without a command.
#[test]
fn a_command_that_is_refused_is_found() {
    let folder = folder();
    let bad = [
        "drivelab run s0-test2.fio no-such-drive",
        "drivelab run no-such-file.fio p4800x-375",
        "drivelab run s0-test2.fio p4800x-375 --no-such-option=1",
        "drivelab reproduce --row S0-999",
        "drivelab reproduce --row S1-013 --row S1-999",
        "drivelab life --table s9",
        "drivelab no-such-subcommand",
    ];
    for command in bad {
        let refused = run(folder.path(), command);
        assert!(refused.is_err(), "{command}: {refused:?}");
    }
    let part = "\n| what | command |\n| --- | --- |\n| a test | later |\n| two | `fio job.fio` |\n";
    let rows = rows(part);
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| command(row).is_err()), "{rows:?}");
}
