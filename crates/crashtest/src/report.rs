//! Text of failures, for the command line and for tests.

use std::fmt::Write as _;

use crash::search::{Class, Failure};
use crash::{Log, Loss};

/// Returns class and text of a failure.
pub fn words(class: Class, line: &str) -> String {
    match line.strip_prefix(class.word()) {
        Some(rest) => format!("{}{rest}", class.word()),
        None => format!("{}: {line}", class.word()),
    }
}

/// Returns the heading of a failure: the first of its rule, or another cause of the same violation.
pub fn heading(rank: usize) -> &'static str {
    match rank {
        0 => "FAILED     ",
        _ => "also       ",
    }
}

/// Returns the verdict on a test in which this number of rules does not hold, and of failures did not repeat; not both
/// are 0.
pub fn verdict(rules: usize, flaky: u64) -> String {
    match (rules, flaky) {
        (0, 1) => "undecided: 1 failure did not repeat".into(),
        (0, flaky) => format!("undecided: {flaky} failures did not repeat"),
        (1, _) => "1 rule does not hold".into(),
        (rules, _) => format!("{rules} rules do not hold"),
    }
}

/// Returns class, text and number of images of a failure.
pub fn title(failure: &Failure) -> String {
    let line = words(failure.class, &failure.line);
    match failure.images {
        1 => format!("{line} (1 image)"),
        images => format!("{line} ({images} images)"),
    }
}

/// Returns the name of the smallest image of a failure, and its lost ranges.
pub fn smallest(log: &Log, failure: &Failure) -> String {
    let mut line = format!("image {}", failure.name);
    if let Some(ack) = failure.moment.acks.checked_sub(1) {
        let _ = write!(line, ", after `ack {}`", log.acks[ack]);
    }
    if failure.lost.is_empty() {
        line.push_str(": the drive lost nothing");
    }
    for (index, (number, ranges)) in failure.lost.iter().enumerate() {
        let command = &log.commands[*number as usize];
        let lead = if index == 0 { ": lost" } else { ";" };
        let ranges: Vec<String> = { ranges.iter() }
            .map(|(start, end)| format!("{} B at {start}", end - start))
            .collect();
        let ranges = ranges.join(", ");
        // Writing to a string does not fail.
        let _ = write!(
            line,
            "{lead} {ranges} of a {} of {} B",
            command.kind.word(),
            command.bytes
        );
    }
    line
}

/// Returns the needs of a failure, with an explanation, and those of its smallest image if this one needs more.
pub fn needs(failure: &Failure) -> String {
    let Failure {
        needs, image_needs, ..
    } = failure;
    let why = match needs.loss {
        Loss::Nothing => "power can fail before the program has sent the missing writes",
        Loss::InFlight => "the loss of writes that were not yet acknowledged",
        Loss::Volatile => "the loss of writes that were acknowledged and not flushed",
        Loss::LyingFlush => "a drive that violates its durability guarantee",
    };
    let mut text = format!("{needs}: {why}");
    // Writing to a string does not fail.
    if image_needs.loss != needs.loss {
        let _ = write!(text, " (the smallest image itself: {image_needs})");
    }
    if !failure.reduced {
        text.push_str(" (at most: the reduction was stopped, and a smaller image may need less)");
    }
    text
}
