//! The chapter that simulates, in headless Chromium: the page's answers equal this machine's answers to the same
//! questions, byte for byte, and the commands that it shows ask the same questions.
//!
//! It needs the same tools as the other tests of the page, and a build with the engine (`DRIVELAB_PAGE_ENGINE=1`);
//! without them, the test is skipped with a message.

mod chromium;
mod sample;

use std::path::Path;

use catalogue::Settings;
use page_engine::{Engine, Question};
use study::review::Review;
use study::review::again::DriveArguments;

/// Maximum bytes of a page of three drives.
const WHOLE: usize = 4_000_000;
/// Maximum bytes of the compressed engine.
const ENGINE: usize = 1_000_000;

/// Returns the review of formula drives, whose chapter simulates real ones.
fn review(names: [&str; 3]) -> Review {
    let mut review = sample::paper_review().clone();
    for (drive, name) in review.drives.iter_mut().zip(names) {
        let sheet = catalogue::drive(name).expect("built in");
        drive.again = DriveArguments::from_sheet(&sheet, &Settings::default());
    }
    assert_eq!(review.drives.len(), names.len());
    review.host.id = catalogue::TYPICAL_HOST.into();
    review
}

/// Splits a line into words as a shell does, if it uses only single quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words
}

/// Returns the question of a command.
fn asked(line: &str) -> Question {
    let words = words(line);
    assert_eq!(words[..2], ["drivelab", "run"]);
    let mut question = Question {
        drive: words[2].clone(),
        set: Vec::new(),
        power_limit_watts: None,
        host: String::new(),
        state: String::new(),
        seed: 0,
        options: Vec::new(),
    };
    for word in &words[3..] {
        match word.split_once('=').unwrap_or((word, "")) {
            ("--set", change) => {
                let (key, value) = change.split_once('=').expect("a key and a value");
                question.set.push((key.into(), value.into()));
            }
            ("--power-limit", watts) => {
                let watts = watts.trim_end_matches('W').parse().expect("watts");
                question.power_limit_watts = Some(watts);
            }
            ("--host", host) => question.host = host.into(),
            ("--state", state) => question.state = state.into(),
            ("--seed", seed) => question.seed = seed.parse().expect("a number"),
            _ => question.options.push(word.clone()),
        }
    }
    question
}

/// Checks whether pages simulate; otherwise reports that the test is skipped.
fn simulates() -> bool {
    if report::page::engine_bytes() > 0 {
        return true;
    }
    assert_ne!(option_env!("DRIVELAB_PAGE_ENGINE"), Some("1"));
    chromium::skip("built without the page's engine (DRIVELAB_PAGE_ENGINE=1)");
    false
}

/// Checks that the page's questions have the answers of this machine, and that its commands ask the same questions.
/// Returns both.
fn agree(folder: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(folder.join("said.json")).expect("the tests wrote it");
    let (mut said, commands): (Vec<(String, String)>, Vec<String>) =
        serde_json::from_str(&text).expect("JSON");
    // Drive by drive, because an engine keeps the last one.
    let drive = |text: &str| {
        serde_json::from_str::<Question>(text)
            .map(|it| it.drive)
            .ok()
    };
    said.sort_by_key(|(asked, _)| drive(asked));
    let engine = Engine::default();
    let mut refused = 0;
    for (question, answer) in &said {
        assert_eq!(&engine.answer(question.as_bytes()), answer, "{question}");
        refused += usize::from(answer.contains("problems"));
    }
    assert!(refused < said.len() / 4, "{refused} refused");
    assert_eq!(commands.len(), 3);
    for command in &commands {
        let asked = asked(command);
        let read = |text: &str| serde_json::from_str::<Question>(text).expect("a question");
        assert!(
            said.iter().any(|(text, _)| read(text) == asked),
            "{command}"
        );
    }
    said
}

#[test]
fn the_page_answers_what_this_machine_answers() {
    if !simulates() {
        return;
    }
    let review = review(["p4800x-375", "p3700-1600", "9100max-2400"]);
    let whole = report::page::html(&review).len();
    assert!(whole <= WHOLE, "{whole} bytes");
    assert!(report::page::engine_bytes() <= ENGINE);
    chromium::run(&review, &["what-if.test.mjs"], |folder| {
        let said = agree(folder);
        assert!(said.len() > 100, "{} answers", said.len());
    });
}

#[test]
fn pools_are_turned_on_the_page() {
    if !simulates() {
        return;
    }
    // Twelve terabytes of flash, whose tables would not fit into a page's memory in one piece.
    let review = review(["p4800x-375", "slog-mirror", "group"]);
    chromium::run(&review, &["what-if-pools.test.mjs"], |folder| {
        let said = agree(folder);
        let turned = said.iter().filter(|(asked, _)| asked.contains("tier."));
        assert!(turned.count() > 20);
    });
}
