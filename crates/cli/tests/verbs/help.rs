//! The first screens: help keeps its layout, and examples in documents work as described.

use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use crate::rig::drivelab;

fn help(of: &[&str]) -> String {
    let output = drivelab(&[of, &["--help"]].concat());
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).expect("help is UTF-8")
}

/// Lines wider than the 100 columns that clap wraps to would be wrapped within an example.
#[test]
fn no_example_is_broken_over_two_lines() {
    let verbs = [
        "act",
        "bench-target",
        "check",
        "choose",
        "completions",
        "crashtest",
        "drives",
        "explain",
        "fill",
        "fit",
        "lab",
        "life",
        "man",
        "max",
        "measure",
        "mix",
        "odds",
        "prove",
        "refit",
        "replay",
        "reproduce",
        "review",
        "run",
        "serve",
        "show",
        "size",
        "sweep",
    ];
    let screens = verbs.iter().map(|verb| vec![*verb]).chain([vec![]]);
    for screen in screens {
        let text = help(&screen);
        let (_, examples) = text.split_once("\nExamples:\n").expect("examples");
        let mut continued = false;
        // Examples may be separated by empty lines; the first non-empty line that does not begin with a space ends
        // them.
        let examples = examples.lines().take_while(|line| {
            let first = line.chars().next();
            first.is_none_or(|first| first == ' ')
        });
        for line in examples.filter(|line| !line.is_empty()) {
            let begins = ["  drivelab ", "  fio ", "  nbdcopy ", "  echo "];
            let begins = begins.iter().any(|start| line.starts_with(start));
            assert!(begins || continued, "{screen:?}: {line}");
            continued = line.ends_with('\\');
        }
    }
}

/// A line break within a paragraph leaves a line of one or two words after wrapping.
#[test]
fn paragraphs_after_the_examples_have_no_short_lines_within() {
    for verb in [
        "act",
        "choose",
        "crashtest",
        "explain",
        "fill",
        "fit",
        "life",
        "max",
        "measure",
        "mix",
        "odds",
        "replay",
        "reproduce",
        "review",
        "serve",
    ] {
        let text = help(&[verb]);
        let (_, after) = text.split_once("\nExamples:\n").expect("examples");
        for paragraph in after.split("\n\n").skip(1) {
            let lines: Vec<&str> = paragraph.lines().collect();
            if lines.iter().any(|line| line.starts_with("  ")) || lines.len() < 2 {
                continue;
            }
            for pair in lines.windows(2) {
                let next = pair[1].split(' ').next().unwrap_or("");
                let fits = pair[0].chars().count() + 1 + next.chars().count() <= 100;
                assert!(!fits || pair[0].ends_with('.'), "{verb}: {pair:?}");
            }
        }
    }
}

/// Without an end, such a job reads the whole drive once, which takes minutes.
#[test]
fn jobs_in_documents_are_read_without_a_warning() {
    let mut found = 0;
    for text in [
        include_str!("../../../../README.md"),
        include_str!("../../../../docs/fio.md"),
    ] {
        let lines = text.lines().flat_map(|line| line.split('`'));
        let runs = lines.filter_map(|line| line.split_once(" run "));
        // Those without a job file, which does not exist here.
        for job in runs.filter(|(_, words)| words.contains("--rw=")) {
            let mut command = Command::new(cargo_bin!("drivelab"));
            let words = job.1.split_whitespace();
            command.args(["run", "--parse-only"]).args(words);
            let output = command.output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), &*said), (Some(0), ""), "{}", job.1);
            found += 1;
        }
    }
    assert!(found >= 2, "{found}");
}

#[test]
fn completions_and_manual_pages_have_every_verb() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let pages = folder.path().join("new/man1");
    let made = drivelab(&["man", "--output", pages.to_str().expect("UTF-8")]);
    assert_eq!(made.status.code(), Some(0));
    let whole = std::fs::read_to_string(pages.join("drivelab.1")).expect("a page");
    let listed = help(&[]);
    let verbs = listed.lines().filter_map(|line| {
        let (verb, about) = line.strip_prefix("  ")?.split_once("  ")?;
        let is_verb = verb.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        (is_verb
            && !verb.is_empty()
            && !verb.starts_with('-')
            && verb != "help"
            && !about.is_empty())
        .then(|| verb.to_owned())
    });
    let verbs: Vec<String> = verbs.collect();
    assert!(verbs.len() > 15, "{verbs:?}");
    for verb in &verbs {
        let name = format!("drivelab-{verb}");
        let page = std::fs::read_to_string(pages.join(format!("{name}.1")));
        let page = page.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains(".SH OPTIONS"), "{name}");
        assert!(page.contains(".SH EXAMPLES"), "{name}");
        let escaped = name.replace('-', "\\-");
        assert!(whole.contains(&escaped), "{name} is not in drivelab.1");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let made = drivelab(&["completions", shell]);
        assert_eq!(made.status.code(), Some(0), "{shell}");
        let script = String::from_utf8(made.stdout).expect("UTF-8");
        for verb in &verbs {
            assert!(script.contains(verb.as_str()), "{shell}: {verb}");
        }
    }
}

/// bash accepts the script, and completes a subcommand and an option with it.
#[test]
fn bash_completes_verbs_and_options() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let script = folder.path().join("drivelab.bash");
    let made = drivelab(&["completions", "bash"]);
    std::fs::write(&script, made.stdout).expect("a folder of our own");
    let asked = "source \"$1\"; shift; COMP_WORDS=(drivelab \"$@\"); COMP_CWORD=$#; \
                 _drivelab drivelab \"${!#}\" \"\"; echo \"${COMPREPLY[@]}\"";
    for (words, expected) in [
        (&["compl"][..], "completions"),
        (&["sweep", "--dry"], "--dry-run"),
    ] {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", asked, "bash"]).arg(&script);
        let Ok(output) = bash.args(words).output() else {
            eprintln!("skipped: there is no bash");
            return;
        };
        let reply = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            reply.trim(),
            expected,
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
