//! Fault scripts: faults of a drive or of a pool member, and their times.
//!
//! A script has one fault per line; `#` starts a comment:
//! ```text
//! at 10s p4800x-375: medium-error 2048 8      LBAs 2048 to 2055 cannot be read until they are written
//! at 12s slow 2ms for 5s                      every command takes 2 ms longer
//! at 15s nda.0: dies                          a member of a pool does not answer any more
//! at write 1234: power-cut                    power fails while the 1234th write of the first drive is in flight
//! after 10 flushes nda.0: dies                a member fails once it has completed ten flushes
//! nda.1: unrecovered-read range 1GiB..2GiB    reads of these addresses of a member fail
//! error-rate writes 1e-4 for 1000 commands    each of the next 1000 writes fails with this probability
//! ```
//! Without `at` or `after`, a fault happens at once (at the start); without a name, to the first drive. `at TIME`
//! counts from the start: in wall-clock time for a server, in virtual time for a run. Other times are in the drive's
//! own time. `at write N` is the arrival of the Nth write at the named drive or member. `after N writes` is the
//! completion of the Nth write without an error. Both count from the start. A server's control socket accepts the
//! same lines; their times and counts start when the line is read. A pool member is given by its name, or as
//! `POOL/MEMBER` if several pools have a member of this name.
//!
//! Not included: which device supports which fault. Servers and runs check this themselves.

mod rules;
mod target;
mod timing;

use std::fmt;

use model::Span;
use model::data::{CommandKind, Rule};

pub use target::{DriveNames, Target};
pub use timing::{TIMINGS, Timing};

/// A fault of a drive or of a pool member.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fault {
    /// Logical blocks cannot be read until they are written.
    MediumError {
        /// First block.
        lba: u64,
        /// Number of blocks.
        blocks: u64,
    },
    /// Logical blocks can be read again.
    Heal {
        /// First block.
        lba: u64,
        /// Number of blocks.
        blocks: u64,
    },
    /// Every command takes longer.
    Slow {
        /// Additional latency.
        by: Span,
        /// Duration; `None` means until `slow 0us`.
        lasting: Option<Span>,
    },
    /// No command completes.
    Stuck {
        /// Duration; `None` means until `unstuck`.
        lasting: Option<Span>,
    },
    /// Commands complete again.
    Unstuck,
    /// Connections are cut.
    Drop,
    /// Sets Percentage Used.
    Wear(f64),
    /// Sets the ambient temperature in degrees Celsius.
    Ambient(f64),
    /// The background work that follows a power-on starts again.
    Refresh,
    /// Power fails and returns.
    PowerCut,
    /// Member: no longer answers.
    Dies,
    /// Member: answers again, with the data on its medium.
    Returns,
    /// Member: an empty drive takes its place.
    Replaced,
    /// Member: acknowledges all later flushes and FUA writes without executing them.
    Lies,
    /// Member: the next write fails.
    FailsWrite,
    /// Member: the next write is acknowledged but not written.
    LosesWrite,
    /// Member: the data of the next write go to another address.
    Misdirects {
        /// Distance in logical blocks.
        blocks: u64,
    },
    /// Member: one bit of a logical block flips.
    Rots {
        /// Logical block.
        lba: u64,
    },
    /// Commands fail or are delayed, by kind, address range or rate.
    Rule(Rule),
    /// Ends all [`Fault::Rule`]s.
    Clear,
}

/// A fault of a script with its line number, counted from 1.
pub type FaultLine = (usize, ScheduledFault);

/// A fault with its time and target.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduledFault {
    /// Time or count at which the fault happens.
    pub when: Timing,
    /// Name of the drive or member; `None` means the first drive.
    pub drive: Option<String>,
    /// Fault to inject.
    pub fault: Fault,
}

/// Syntax of all faults, for help and messages.
pub const SYNTAX: &[&str] = &[
    "medium-error LBA BLOCKS",
    "heal LBA BLOCKS",
    "slow TIME [for TIME]",
    "stuck [for TIME]",
    "unstuck",
    "drop",
    "wear PERCENT",
    "ambient CELSIUS",
    "refresh",
    "power-cut",
    "dies",
    "returns",
    "replaced",
    "lies",
    "fails-write",
    "loses-write",
    "misdirects BLOCKS",
    "rots LBA",
    "unrecovered-read [range FROM..TO] [rate RATE] [for TIME|N commands]",
    "write-fault [range FROM..TO] [rate RATE] [for TIME|N commands]",
    "flush-fault [rate RATE] [for TIME|N commands]",
    "error-rate reads|writes|flushes RATE [range FROM..TO] [for TIME|N commands]",
    "delay TIME [reads|writes|flushes] [range FROM..TO] [rate RATE] [for TIME|N commands]",
    "clear",
];

/// Parses a script; returns its faults with their lines.
///
/// # Errors
/// Line and reason of each problem.
pub fn script(text: &str) -> Result<Vec<FaultLine>, Vec<(usize, String)>> {
    let mut planned = Vec::new();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        match line.parse() {
            Ok(fault) => planned.push((index + 1, fault)),
            Err(why) => problems.push((index + 1, why)),
        }
    }
    if problems.is_empty() {
        Ok(planned)
    } else {
        Err(problems)
    }
}

fn time(word: &str) -> Result<Span, String> {
    let wrong = || format!("`{word}` is not a time such as 10us, 2ms or 1.5s");
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    // Whole nanoseconds are kept exactly, so that the output reads back as the same value.
    if let (Ok(ns), "ns") = (digits.parse::<u64>(), &word[digits.len()..]) {
        let valid = ns <= 320_000_000_000_000_000;
        return valid.then_some(Span::from_ns(ns)).ok_or_else(wrong);
    }
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let unit = match &word[digits.len()..] {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let seconds = number * unit;
    // Ten years: longer than any test, and far below the end of the clock.
    if (0.0..=3.2e8).contains(&seconds) {
        Ok(Span::from_seconds(seconds))
    } else {
        Err(wrong())
    }
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse()
        .map_err(|_| format!("`{word}` is not a valid number here"))
}

/// Returns the kind of commands that a word names, in singular or plural.
fn kind(word: &str) -> Result<CommandKind, String> {
    match word {
        "read" | "reads" => Ok(CommandKind::Reads),
        "write" | "writes" => Ok(CommandKind::Writes),
        "flush" | "flushes" => Ok(CommandKind::Flushes),
        _ => Err(format!("`{word}` should be reads, writes or flushes")),
    }
}

fn lasting(words: &[&str]) -> Result<Option<Span>, String> {
    match words {
        [] => Ok(None),
        ["for", word] => Ok(Some(time(word)?)),
        _ => Err(format!("`{}` should be `for TIME`", words.join(" "))),
    }
}

/// Returns why a line is not a fault: the syntax of the fault if its first word is known, otherwise that the word is
/// unknown.
fn not_a_fault(line: &str, first: Option<&str>) -> String {
    let known = SYNTAX
        .iter()
        .find(|fault| fault.split_whitespace().next() == first);
    match known {
        Some(fault) => format!("`{line}` should be `{fault}`"),
        None => format!(
            "`{line}` is not a fault; the faults are: {}",
            SYNTAX.join(", ")
        ),
    }
}

impl std::str::FromStr for Fault {
    type Err = String;

    fn from_str(line: &str) -> Result<Fault, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(rule) = rules::rule(&words) {
            return rule.map(Fault::Rule);
        }
        Ok(match words[..] {
            ["medium-error", lba, blocks] => Fault::MediumError {
                lba: number(lba)?,
                blocks: number(blocks)?,
            },
            ["heal", lba, blocks] => Fault::Heal {
                lba: number(lba)?,
                blocks: number(blocks)?,
            },
            ["slow", by, ref rest @ ..] => Fault::Slow {
                by: time(by)?,
                lasting: lasting(rest)?,
            },
            ["stuck", ref rest @ ..] => Fault::Stuck {
                lasting: lasting(rest)?,
            },
            ["unstuck"] => Fault::Unstuck,
            ["drop"] => Fault::Drop,
            ["wear", percent] => Fault::Wear(number(percent)?),
            ["ambient", celsius] => Fault::Ambient(number(celsius)?),
            ["refresh"] => Fault::Refresh,
            ["power-cut"] => Fault::PowerCut,
            ["dies"] => Fault::Dies,
            ["returns"] => Fault::Returns,
            ["replaced"] => Fault::Replaced,
            ["lies"] => Fault::Lies,
            ["fails-write"] => Fault::FailsWrite,
            ["loses-write"] => Fault::LosesWrite,
            ["misdirects", blocks] => Fault::Misdirects {
                blocks: number(blocks)?,
            },
            ["rots", lba] => Fault::Rots { lba: number(lba)? },
            ["clear"] => Fault::Clear,
            _ => return Err(not_a_fault(line, words.first().copied())),
        })
    }
}

impl std::str::FromStr for ScheduledFault {
    type Err = String;

    fn from_str(line: &str) -> Result<ScheduledFault, String> {
        let (when, mut rest) = timing::timing(line.trim())?;
        let mut drive = None;
        if let Some((name, after)) = rest.split_once(':') {
            if name.trim().is_empty() {
                return Err("the name before `:` is missing".into());
            }
            drive = Some(name.trim().to_owned());
            rest = after;
        }
        Ok(ScheduledFault {
            when,
            drive,
            fault: rest.parse()?,
        })
    }
}

impl fmt::Display for ScheduledFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.when)?;
        if let Some(drive) = &self.drive {
            write!(f, "{drive}: ")?;
        }
        write!(f, "{}", self.fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lasting = |lasting: &Option<Span>| {
            lasting.map_or(String::new(), |span| format!(" for {}ns", span.ns()))
        };
        match self {
            Fault::MediumError { lba, blocks } => write!(f, "medium-error {lba} {blocks}"),
            Fault::Heal { lba, blocks } => write!(f, "heal {lba} {blocks}"),
            Fault::Slow { by, lasting: span } => {
                write!(f, "slow {}ns{}", by.ns(), lasting(span))
            }
            Fault::Stuck { lasting: span } => write!(f, "stuck{}", lasting(span)),
            Fault::Unstuck => f.write_str("unstuck"),
            Fault::Drop => f.write_str("drop"),
            Fault::Wear(percent) => write!(f, "wear {percent}"),
            Fault::Ambient(celsius) => write!(f, "ambient {celsius}"),
            Fault::Refresh => f.write_str("refresh"),
            Fault::PowerCut => f.write_str("power-cut"),
            Fault::Dies => f.write_str("dies"),
            Fault::Returns => f.write_str("returns"),
            Fault::Replaced => f.write_str("replaced"),
            Fault::Lies => f.write_str("lies"),
            Fault::FailsWrite => f.write_str("fails-write"),
            Fault::LosesWrite => f.write_str("loses-write"),
            Fault::Misdirects { blocks } => write!(f, "misdirects {blocks}"),
            Fault::Rots { lba } => write!(f, "rots {lba}"),
            Fault::Rule(rule) => rules::show(rule, f),
            Fault::Clear => f.write_str("clear"),
        }
    }
}

#[cfg(test)]
mod tests;
