//! Decisions as people and programs read them: the answer in a sentence, tables, JSON, pages.

mod bars;
pub mod check;
pub mod choose;
pub mod explain;
pub mod life;
pub mod max;
pub mod page;
mod plot;
pub mod size;

use serde::Serialize;
use serde_json::{Value, json};
use study::decide::tally::Reading;
use text::digits::{count, digits, megabytes_a_second, microseconds};

/// A figure with its unit.
fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "us" => microseconds(value),
        "IOPS" => count(value),
        "MB/s" => megabytes_a_second(value),
        unit => format!("{} {unit}", digits(value)),
    }
}

/// A limit's figure, marked where it is outside.
fn reading(reading: &Reading) -> String {
    match reading.value {
        None => String::from("not known"),
        Some(value) => {
            let outside = if reading.met == Some(false) { " !" } else { "" };
            format!("{}{outside}", with_unit(value, reading.unit))
        }
    }
}

/// A share in whole percent.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(
        || String::from("-"),
        |share| format!("{:.0} %", share * 100.0),
    )
}

/// The seeds of an answer, in words.
fn seeds(first: u64, count: u32) -> String {
    match count {
        0 | 1 => format!("seed {first}"),
        more => format!("seeds {first} to {}", first + u64::from(more) - 1),
    }
}

/// A document of ours: what it is, of which program, from which seed, and how to repeat it.
fn document(schema: &str, command: &str, what: &impl Serialize, answers: &impl Serialize) -> Value {
    json!({
        "schema": schema,
        "version": 1,
        "program": concat!("drivelab ", env!("CARGO_PKG_VERSION")),
        "command": command,
        "asked": what,
        "answers": answers,
    })
}
