//! Rebuilds and resyncs of pool members in a run: sentences, and JSON.

use std::fmt::Write as _;

use lab::Rebuild;
use serde_json::{Value, json};
use study::review::results::rounded;
use text::quantity::decimal;

use crate::cells::significant;

/// Returns a line for each rebuild; empty without any.
pub(crate) fn lines(rebuilds: &[Rebuild]) -> String {
    let mut out = String::new();
    for rebuild in rebuilds {
        let (from, to) = (rebuild.from.seconds(), rebuild.to.seconds());
        let length = duration(rebuild.length().seconds());
        let rate = rebuild.rate().map_or(String::new(), |rate| {
            format!(" at {}/s", decimal(rate as u64))
        });
        let written = decimal(rebuild.written);
        let member = &rebuild.member;
        let _ = match rebuild.in_sync {
            true => writeln!(
                out,
                "  {member}: in sync after {length} (from {} s to {} s); {written} written to it{rate}",
                significant(from),
                significant(to)
            ),
            false => writeln!(
                out,
                "  {member}: not in sync {length} later (at {} s); {written} written to it{rate}{}",
                significant(to),
                rest(rebuild)
            ),
        };
    }
    match out.is_empty() {
        true => out,
        false => format!("Rebuilds:\n{out}"),
    }
}

/// Returns what an unfinished rebuild still has to do.
fn rest(rebuild: &Rebuild) -> String {
    let left = decimal(rebuild.left);
    match rebuild.remaining_seconds() {
        Some(seconds) => format!("; {left} left: another {} at this rate", duration(seconds)),
        None if rebuild.left == 0 => "; no rebuild is running".into(),
        None => format!("; {left} left"),
    }
}

/// Formats a duration in the largest unit with a value of at least two.
fn duration(seconds: f64) -> String {
    let units = [(3600.0, "h"), (60.0, "min"), (1.0, "s")];
    let unit = units.iter().find(|(unit, _)| seconds >= 2.0 * unit);
    match unit {
        Some((unit, name)) => format!("{} {name}", significant(seconds / unit)),
        None => format!("{} ms", significant(seconds * 1e3)),
    }
}

/// Returns the rebuilds as JSON.
pub(crate) fn json(rebuilds: &[Rebuild]) -> Value {
    let rebuild = |it: &Rebuild| {
        json!({
            "member": it.member,
            "from_s": rounded(it.from.seconds()),
            "to_s": rounded(it.to.seconds()),
            "in_sync": it.in_sync,
            "bytes_written": it.written,
            "bytes_left": it.left,
            "bytes_per_s": it.rate().map(rounded),
            "remaining_s": it.remaining_seconds().map(rounded),
        })
    };
    rebuilds.iter().map(rebuild).collect()
}

#[cfg(test)]
mod tests {
    use model::{Span, Time};

    use super::*;

    #[test]
    fn a_rebuild_is_one_line() {
        let done = Rebuild {
            member: "a.1".into(),
            from: Time::ZERO + Span::from_ms(2000),
            to: Time::ZERO + Span::from_ms(4500),
            in_sync: true,
            written: 5_000_000_000,
            left: 0,
        };
        let rest = Rebuild {
            in_sync: false,
            left: 1_600_000_000_000,
            ..done.clone()
        };
        let stays = Rebuild {
            in_sync: false,
            written: 0,
            ..done.clone()
        };
        assert_eq!(
            lines(&[done, rest, stays]),
            "Rebuilds:\n  \
             a.1: in sync after 2.50 s (from 2.00 s to 4.50 s); 5 GB written to it at 2 GB/s\n  \
             a.1: not in sync 2.50 s later (at 4.50 s); 5 GB written to it at 2 GB/s; 1.6 TB left: another 13.3 min at this rate\n  \
             a.1: not in sync 2.50 s later (at 4.50 s); 0 B written to it; no rebuild is running\n"
        );
        assert_eq!(lines(&[]), "");
    }
}
