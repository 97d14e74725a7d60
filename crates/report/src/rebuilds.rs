//! Rebuilds and resyncs of pool members in a run: sentences, and JSON.

use lab::Rebuild;
use serde_json::{Value, json};
use study::review::results::rounded;

/// Returns a line for each rebuild; empty without any.
pub(crate) fn lines(rebuilds: &[Rebuild]) -> String {
    let lines: String = rebuilds
        .iter()
        .map(|it| format!("  {}\n", it.words()))
        .collect();
    match lines.is_empty() {
        true => lines,
        false => format!("Rebuilds:\n{lines}"),
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
            began: Some(Time::ZERO + Span::from_ms(2000)),
            is_pending: false,
        };
        let rest = Rebuild {
            in_sync: false,
            left: 1_600_000_000_000,
            is_pending: true,
            ..done.clone()
        };
        let waits = Rebuild {
            written: 0,
            began: None,
            ..rest.clone()
        };
        let later = Rebuild {
            began: Some(Time::ZERO + Span::from_ms(4000)),
            ..rest.clone()
        };
        let stays = Rebuild {
            in_sync: false,
            written: 0,
            ..done.clone()
        };
        assert_eq!(
            lines(&[done, rest, waits, later, stays]),
            "Rebuilds:\n  \
             a.1: in sync after 2.50 s (from 2.00 s to 4.50 s); 5 GB written to it at 2 GB/s\n  \
             a.1: not in sync 2.50 s later (at 4.50 s); 5 GB written to it at 2 GB/s; 1.6 TB left: another 13.3 min at this rate\n  \
             a.1: not in sync 2.50 s later (at 4.50 s); 0 B written to it; 1.6 TB left: it waits for another rebuild\n  \
             a.1: not in sync 2.50 s later (at 4.50 s); 5 GB written to it at 10 GB/s; 1.6 TB left: another 2.67 min at this rate\n  \
             a.1: not in sync 2.50 s later (at 4.50 s); 0 B written to it; no rebuild is running\n"
        );
        assert_eq!(lines(&[]), "");
    }
}
