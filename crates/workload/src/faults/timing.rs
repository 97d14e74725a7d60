//! Time or count at which a fault happens: at once, at a time, or by a count of commands.

use std::fmt;

use model::Span;
use model::data::{CommandKind, Moment, Trigger};

use super::{kind, number, time};

/// Time or count at which a fault happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timing {
    /// At once: at the start of the script, or when the control line is read.
    AtOnce,
    /// At this time after the start of the script or the control line.
    At(Span),
    /// At a command that reaches the drive or member, counted from the start of the script or the control line.
    Count(Trigger),
}

/// Times and counts as written before a drive's name and the fault, for help and messages.
pub const TIMINGS: &[&str] = &[
    "at TIME",
    "at write|read|flush N",
    "after N writes|reads|flushes",
];

/// Returns the first word of a line and the rest. A colon after the word is dropped.
fn word(line: &str) -> (&str, &str) {
    let end = line.find(|c: char| c == ':' || c.is_whitespace());
    let (word, rest) = line.split_at(end.unwrap_or(line.len()));
    (word, rest.trim_start())
}

/// Returns the rest of the line after a trigger and its colon.
fn after_colon(rest: &str) -> Result<&str, String> {
    let rest = rest.strip_prefix(':').unwrap_or(rest).trim_start();
    match rest {
        "" => Err("the fault is missing".into()),
        rest => Ok(rest),
    }
}

fn trigger(kind: CommandKind, moment: Moment, count: &str) -> Result<Timing, String> {
    let number = number(count)?;
    match number {
        0 => Err("commands are counted from 1".into()),
        _ => Ok(Timing::Count(Trigger {
            kind,
            moment,
            number,
        })),
    }
}

/// Splits a line into the time or count of its fault and the rest.
///
/// # Errors
/// The problem, and the allowed form.
pub(super) fn timing(line: &str) -> Result<(Timing, &str), String> {
    let missing = || format!("`{line}` should begin with {}", TIMINGS.join(", "));
    if let Some(rest) = line.strip_prefix("at ") {
        let (first, rest) = word(rest.trim_start());
        let Ok(kind) = kind(first) else {
            return Ok((Timing::At(time(first)?), after_colon(rest)?));
        };
        let (count, rest) = word(rest);
        if count.is_empty() {
            return Err(missing());
        }
        return Ok((trigger(kind, Moment::Arrival, count)?, after_colon(rest)?));
    }
    if let Some(rest) = line.strip_prefix("after ") {
        let (count, rest) = word(rest.trim_start());
        let (of, rest) = word(rest);
        if of.is_empty() {
            return Err(missing());
        }
        let when = trigger(kind(of)?, Moment::Completion, count)?;
        return Ok((when, after_colon(rest)?));
    }
    Ok((Timing::AtOnce, line))
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Timing::AtOnce => Ok(()),
            Timing::At(span) => write!(f, "at {}ns: ", span.ns()),
            Timing::Count(trigger) => {
                let (one, many) = match trigger.kind {
                    CommandKind::Reads => ("read", "reads"),
                    CommandKind::Writes => ("write", "writes"),
                    CommandKind::Flushes => ("flush", "flushes"),
                };
                match trigger.moment {
                    Moment::Arrival => write!(f, "at {one} {}: ", trigger.number),
                    Moment::Completion => write!(f, "after {} {many}: ", trigger.number),
                }
            }
        }
    }
}
