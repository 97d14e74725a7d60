//! Text form of errors and delays of commands, for an address range or at a rate.

use std::fmt;

use model::data::{CommandKind, Effect, Lasting, Rule};
use text::quantity::{Bytes, quantity};

use super::{Fault, kind, number, time};

/// Parses a rule; `None` if the first word does not start a rule.
///
/// # Errors
/// The problem, and the allowed form.
pub(super) fn rule(words: &[&str]) -> Option<Result<Rule, String>> {
    let (fails, delays) = (Effect::Fails, Effect::Delays);
    let start = |kind, effect, rest| Ok((plain_rule(kind, effect), rest));
    let begun: Result<(Rule, &[&str]), String> = match words {
        ["unrecovered-read", rest @ ..] => start(Some(CommandKind::Reads), fails, rest),
        ["write-fault", rest @ ..] => start(Some(CommandKind::Writes), fails, rest),
        ["flush-fault", rest @ ..] => start(Some(CommandKind::Flushes), fails, rest),
        ["error-rate", of_kind, rate, rest @ ..] => kind(of_kind).and_then(|kind| {
            let rate = probability(rate)?;
            Ok((
                Rule {
                    rate,
                    ..plain_rule(Some(kind), fails)
                },
                rest,
            ))
        }),
        ["delay", by, rest @ ..] => time(by).and_then(|by| match rest {
            [word, rest @ ..] if kind(word).is_ok() => start(kind(word).ok(), delays(by), rest),
            rest => start(None, delays(by), rest),
        }),
        _ => return None,
    };
    let has_rate = words.first() == Some(&"error-rate");
    Some(begun.and_then(|(rule, rest)| options(rule, has_rate, rest)))
}

fn plain_rule(kind: Option<CommandKind>, effect: Effect) -> Rule {
    Rule {
        kind,
        effect,
        range: None,
        rate: 1.0,
        lasting: Lasting::Forever,
    }
}

/// Parses `range`, `rate` (unless the rule has one) and `for`, in any order.
fn options(mut rule: Rule, mut rate: bool, mut words: &[&str]) -> Result<Rule, String> {
    let (mut range, mut lasting) = (false, false);
    while let [name, rest @ ..] = words {
        let twice = match *name {
            "range" => &mut range,
            "rate" => &mut rate,
            "for" => &mut lasting,
            _ => {
                return Err(format!(
                    "`{name}` should be `range FROM..TO`, `rate RATE` or `for TIME|N commands`"
                ));
            }
        };
        if std::mem::replace(twice, true) {
            return Err(format!("`{name}` is given twice"));
        }
        words = match (*name, rest) {
            ("range", [range, rest @ ..]) => {
                rule.range = Some(addresses(range)?);
                rest
            }
            ("rate", [rate, rest @ ..]) => {
                rule.rate = probability(rate)?;
                rest
            }
            ("for", [count, "commands" | "command", rest @ ..]) => {
                let count = number(count)?;
                if count == 0 {
                    return Err("`for 0 commands` has no effect: give 1 or more".into());
                }
                rule.lasting = Lasting::Commands(count);
                rest
            }
            ("for", [span, rest @ ..]) => {
                rule.lasting = Lasting::Time(time(span)?);
                rest
            }
            _ => return Err(format!("the value of `{name}` is missing")),
        };
    }
    match (rule.kind, rule.range) {
        (Some(CommandKind::Flushes), Some(_)) => Err("a flush has no range of addresses".into()),
        _ => Ok(rule),
    }
}

fn probability(word: &str) -> Result<f64, String> {
    let rate: Option<f64> = word.parse().ok();
    rate.filter(|rate| *rate > 0.0 && *rate <= 1.0)
        .ok_or_else(|| format!("`{word}` is not a rate above 0 and up to 1, such as 1e-4"))
}

/// Returns the first byte of a range and the byte after its end.
fn addresses(word: &str) -> Result<(u64, u64), String> {
    let wrong = || {
        format!(
            "`{word}` is not a range FROM..TO of bytes, such as 1GiB..2GiB or 4096..8192 (TO is not part of it)"
        )
    };
    let bytes = |text: &str| match text.parse() {
        Ok(bytes) => Ok(bytes),
        Err(_) => quantity::<Bytes>(text).map(|it| it.0).map_err(|_| wrong()),
    };
    let (from, to) = word.split_once("..").ok_or_else(wrong)?;
    let (from, to) = (bytes(from)?, bytes(to)?);
    match from < to {
        true => Ok((from, to)),
        false => Err(wrong()),
    }
}

/// Writes a rule as its script line.
pub(super) fn show(rule: &Rule, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (rule.effect, rule.kind) {
        (Effect::Fails, Some(CommandKind::Reads)) => f.write_str("unrecovered-read")?,
        (Effect::Fails, Some(CommandKind::Writes)) => f.write_str("write-fault")?,
        // No line describes an error of all kinds.
        (Effect::Fails, Some(CommandKind::Flushes) | None) => f.write_str("flush-fault")?,
        (Effect::Delays(by), kind) => {
            write!(f, "delay {}ns", by.ns())?;
            f.write_str(match kind {
                None => "",
                Some(CommandKind::Reads) => " reads",
                Some(CommandKind::Writes) => " writes",
                Some(CommandKind::Flushes) => " flushes",
            })?;
        }
    }
    if let Some((from, to)) = rule.range {
        write!(f, " range {from}..{to}")?;
    }
    if rule.rate < 1.0 {
        write!(f, " rate {}", rule.rate)?;
    }
    match rule.lasting {
        Lasting::Forever => Ok(()),
        Lasting::Time(span) => write!(f, " for {}ns", span.ns()),
        Lasting::Commands(count) => write!(f, " for {count} commands"),
    }
}

impl Fault {
    /// Checks the addresses of a rule against the size of its device.
    ///
    /// # Errors
    /// The range extends beyond the end of the device.
    pub fn fits(&self, bytes: u64) -> Result<(), String> {
        match self {
            Fault::Rule(Rule {
                range: Some((_, to)),
                ..
            }) if *to > bytes => Err(format!(
                "the range extends beyond the end, which is at byte {bytes}"
            )),
            _ => Ok(()),
        }
    }
}
