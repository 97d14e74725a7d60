//! Decisions for people and programs: the answer in a sentence, tables, JSON, pages.

mod bars;
mod bottleneck;
pub mod check;
pub mod choose;
mod display;
mod ends;
pub mod explain;
pub mod fill;
pub mod fleet;
pub mod headline;
pub mod life;
pub mod max;
pub mod mix;
pub mod odds;
mod other_pages;
pub mod page;
mod phrases;
mod plot;
pub mod published_table;
mod replacement;
mod screen;
mod sentences;
pub mod size;
pub mod table;
mod tied;
pub mod view;

pub use display::AnswerDisplay;
pub use sentences::needs_no_log;

use serde::Serialize;
use serde_json::{Value, json};
use study::decide::tally::Reading;
use text::digits::{count, digits, megabytes_a_second, microseconds};
use text::terminal::{Width, paragraph};

/// Returns a figure with its unit.
fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "us" => microseconds(value),
        "IOPS" => count(value),
        "MB/s" => megabytes_a_second(value),
        "" => digits(value),
        "yes/no" if value > 0.0 => String::from("yes"),
        "yes/no" => String::from("no"),
        unit => format!("{} {unit}", digits(value)),
    }
}

/// Returns a limit's figure, marked if it exceeds the limit.
fn reading(reading: &Reading) -> String {
    match reading.value {
        None => String::from("not known"),
        Some(value) => {
            let outside = if reading.met == Some(false) { " !" } else { "" };
            format!("{}{outside}", with_unit(value, reading.unit))
        }
    }
}

/// Returns a limit's figure with its 95 % confidence interval.
fn reading_within(one: &Reading) -> String {
    let ends = one.value.zip(one.interval);
    let Some((value, [low, high])) = ends else {
        return reading(one);
    };
    let shown = range([value, low, high], |value| with_unit(value, one.unit));
    let outside = if one.met == Some(false) { " !" } else { "" };
    format!("{shown}{outside}")
}

/// Returns a mean with its range over seeds, if they differ; a common unit is printed once.
fn range([mean, least, most]: [f64; 3], show: impl Fn(f64) -> String) -> String {
    let [mean, least, most] = [mean, least, most].map(show);
    if least == most {
        return mean;
    }
    let unit = most.rfind(' ').map_or("", |at| &most[at..]);
    let bare = least.strip_suffix(unit).unwrap_or(&least);
    format!("{mean} ({bare} to {most})")
}

/// Returns a figure, or a dash if it is not known.
fn or_none(value: Option<f64>) -> String {
    value.map_or_else(|| String::from("-"), digits)
}

/// Returns a share in whole percent.
fn percent(share: Option<f64>) -> String {
    text::digits::percent(share, 0)
}

/// Returns the seeds of an answer, as text.
fn seeds(first: u64, count: u32) -> String {
    match count {
        0 | 1 => format!("seed {first}"),
        more => format!("seeds {first} to {}", first + u64::from(more) - 1),
    }
}

/// Returns the support level of a drive's model.
fn model(drive: &str, grade: &str, rows: &str, width: Width) -> String {
    let words = format!("model {grade}; {rows}");
    paragraph(&format!("{drive}: "), &words, width)
}

/// Returns the end of a method: the support level of each drive's model, and the command that repeats the answer.
fn known_and_again<'a>(
    mut lines: Vec<String>,
    drives: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>,
    command: &str,
    width: Width,
) -> String {
    let known = drives.into_iter();
    lines.extend(known.map(|(drive, grade, rows)| model(drive, grade, rows, width)));
    lines.push(format!("Repeat: {command}"));
    lines.join("\n")
}

/// Returns a JSON document: its schema, the program, the seed, and the command that repeats it.
fn document(schema: &str, command: &str, what: &impl Serialize, answers: &impl Serialize) -> Value {
    json!({
        "schema": schema,
        "version": 1,
        "program": version::PROGRAM,
        "command": command,
        "asked": what,
        "answers": answers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_stands_where_seeds_differ_with_one_unit() {
        assert_eq!(range([5.0, 5.0, 5.0], microseconds), "5 µs");
        assert_eq!(range([5.0, 4.0, 6.0], microseconds), "5 µs (4 to 6 µs)");
        assert_eq!(
            range([1000.0, 900.0, 1100.0], microseconds),
            "1 ms (900 µs to 1.1 ms)"
        );
    }
}
