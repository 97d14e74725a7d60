//! Fault scripts: what happens to a drive or to a member of a pool, and when.
//!
//! A script has a fault a line, `#` begins a comment:
//! ```text
//! at 10s p4800x-375: medium-error 2048 8      LBAs 2048 to 2055 cannot be read until they are written
//! at 12s slow 2ms for 5s                      every command takes 2 ms longer
//! at 15s nda.0: dies                          a member of a pool does not answer any more
//! at write 1234: power-cut                    power fails while the 1234th write of the first drive is in flight
//! after 10 flushes nda.0: dies                a member fails once it has completed ten flushes
//! nda.1: unrecovered-read range 1GiB..2GiB    reads of these addresses of a member fail
//! error-rate writes 1e-4 for 1000 commands    each of the next 1000 writes fails with this probability
//! ```
//! Without `at` or `after` it happens at once (at the start), without a name it happens to the first drive. `at TIME` counts from the
//! start: of a server in wall-clock time, of a run in virtual time; other times are the drive's own. `at write N` is the arrival of the
//! Nth write at the drive or member that is named, `after N writes` the completion of the Nth without an error; both count from
//! the start. A server's control socket takes the same lines; times and counts begin with the line there. A member of a pool is
//! named alone, or as `POOL/MEMBER` where several pools have one of that name.
//!
//! Left out: who can have which fault. Servers and runs say so themselves.

mod rules;
mod target;
mod timing;

use std::fmt;

use model::Span;
use model::data::{CommandKind, Rule};

pub use target::{Target, Whole};
pub use timing::{TIMINGS, Timing};

/// What happens to a drive, or to a member of a pool.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fault {
    /// These logical blocks cannot be read until they are written.
    MediumError {
        /// First block.
        lba: u64,
        /// How many.
        blocks: u64,
    },
    /// These logical blocks can be read again.
    Heal {
        /// First block.
        lba: u64,
        /// How many.
        blocks: u64,
    },
    /// Every command takes this much longer.
    Slow {
        /// How much.
        by: Span,
        /// For how long; until `slow 0us` if none.
        lasting: Option<Span>,
    },
    /// No command completes.
    Stuck {
        /// For how long; until `unstuck` if none.
        lasting: Option<Span>,
    },
    /// Commands complete again.
    Unstuck,
    /// Connections are cut.
    Drop,
    /// Percentage Used is this.
    Wear(f64),
    /// The air around the drive has this many degrees Celsius.
    Ambient(f64),
    /// What follows a power-on in the background begins again.
    Refresh,
    /// Power goes and comes back.
    PowerCut,
    /// Of a member: it answers nothing any more.
    Dies,
    /// Of a member: it answers again, with what is on its medium.
    Returns,
    /// Of a member: from now on it acknowledges flushes and forced writes, and does nothing about them.
    Lies,
    /// Of a member: its next write fails.
    FailsWrite,
    /// Of a member: its next write is acknowledged, and nothing is written.
    LosesWrite,
    /// Of a member: the data of its next write land elsewhere.
    Misdirects {
        /// So many logical blocks further on.
        blocks: u64,
    },
    /// Of a member: a bit of a logical block flips.
    Rots {
        /// The block.
        lba: u64,
    },
    /// Commands fail or are delayed, by kind, range of addresses or rate.
    Rule(Rule),
    /// All [`Fault::Rule`]s end.
    Clear,
}

/// A fault of a script, and the line it stands in, counted from 1.
pub type Scripted = (usize, Planned);

/// A fault, where and when.
#[derive(Clone, PartialEq, Debug)]
pub struct Planned {
    /// Time or count at which it happens.
    pub when: Timing,
    /// Name of the drive, or of a member; none for the first drive.
    pub drive: Option<String>,
    /// What happens.
    pub fault: Fault,
}

/// The faults there are, for help and messages.
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

/// The faults of a script with their lines.
///
/// # Errors
/// Line and reason of everything that is wrong.
pub fn script(text: &str) -> Result<Vec<Scripted>, Vec<(usize, String)>> {
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
    // Whole nanoseconds are kept exactly, so that what is shown is read as it was.
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
    // Ten years: far beyond any test, and far from the end of the clock.
    if (0.0..=3.2e8).contains(&seconds) {
        Ok(Span::from_seconds(seconds))
    } else {
        Err(wrong())
    }
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse()
        .map_err(|_| format!("`{word}` is not a number that fits here"))
}

/// The kind of commands that a word names, in singular or plural.
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

/// Why a line is no fault: its words, if the first of them is known, or that.
fn not_a_fault(line: &str, first: Option<&str>) -> String {
    let known = SYNTAX
        .iter()
        .find(|fault| fault.split_whitespace().next() == first);
    match known {
        Some(fault) => format!("`{line}` should be `{fault}`"),
        None => format!("`{line}` is no fault; there are: {}", SYNTAX.join(", ")),
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

impl std::str::FromStr for Planned {
    type Err = String;

    fn from_str(line: &str) -> Result<Planned, String> {
        let (when, mut rest) = timing::timing(line.trim())?;
        let mut drive = None;
        if let Some((name, after)) = rest.split_once(':') {
            if name.trim().is_empty() {
                return Err("the name before `:` is missing".into());
            }
            drive = Some(name.trim().to_owned());
            rest = after;
        }
        Ok(Planned {
            when,
            drive,
            fault: rest.parse()?,
        })
    }
}

impl fmt::Display for Planned {
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
