//! The table of `drivelab prove`, and the report on a violated durability guarantee.

use std::io::{self, Write};

use study::prove::{Counterexample, FaultCoverage, FaultResult, FaultVerdict, Report};
use text::digits;
use text::terminal::{self, Width, paragraph};

/// Columns of a table that is stored and read together with other text.
const KEPT: u16 = 80;

fn verdict(row: &FaultResult) -> &'static str {
    match row.verdict {
        FaultVerdict::Kept => "kept",
        FaultVerdict::Broken => "BROKEN",
        FaultVerdict::AsDesigned => "as promised",
        FaultVerdict::NoLossFound => "TOO MODEST",
        FaultVerdict::NotPromised => "not promised",
    }
}

fn lost(row: &FaultResult) -> String {
    match row.covered {
        FaultCoverage::Yes if row.tally.failures() == 0 => "0".into(),
        _ if row.tally.worst.0 > 0 => format!("{}/{}", row.tally.worst.0, row.tally.worst.1),
        _ => "0".into(),
    }
}

/// Writes a table for each pool, with the pool above it: an expression may be as long as the rest.
///
/// # Errors
/// Errors of `out`.
pub fn table(pools: &[(String, Report)], width: Width, out: &mut dyn Write) -> io::Result<()> {
    let width = width.or(Some(KEPT));
    for (name, report) in pools {
        writeln!(out, "{}", paragraph("", name, width))?;
        let mut table = terminal::table(width);
        table.set_header(HEADER);
        for row in &report.rows {
            table.add_row(cells(row));
        }
        terminal::right(&mut table, 1..5);
        terminal::unbroken(&mut table, 1..HEADER.len());
        writeln!(out, "{}\n", table.trim_fmt())?;
    }
    // The verdicts are the table's words. plain-check: allow
    let words = "lost: sectors at the worst point, out of those written. as promised: data are lost, and the guarantee says so. TOO MODEST: the guarantee says so, but no data are lost. not promised: the guarantee does not cover this fault.";
    writeln!(out, "{}", paragraph("", words, width))
}

const HEADER: [&str; 6] = ["fault", "points", "lost", "others'", "unstable", "verdict"];

fn cells(row: &FaultResult) -> [String; 6] {
    let tally = &row.tally;
    [
        row.fault.clone(),
        digits::count(tally.points as f64),
        lost(row),
        digits::count(tally.others as f64),
        digits::count(tally.unstable as f64),
        verdict(row).into(),
    ]
}

/// Writes the details of a violated durability guarantee.
///
/// # Errors
/// Errors of `out`.
pub fn broken(pool: &str, it: &Counterexample, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{pool}, {}: {}", it.fault, it.what)?;
    for line in &it.program {
        writeln!(out, "  {line}")?;
    }
    writeln!(
        out,
        "repeat: drivelab prove '{pool}' --replay {}",
        it.replay
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::prove::SearchTally;

    #[test]
    fn no_line_is_wider_than_80_columns_or_the_terminal() {
        let row = |fault: &str, verdict| FaultResult {
            fault: fault.into(),
            covered: FaultCoverage::LostByPromise,
            tally: SearchTally {
                points: 28_756,
                worst: (1128, 1296),
                others: 4711,
                unstable: 1310,
                ..SearchTally::default()
            },
            verdict,
        };
        let rows = vec![
            row(
                "power cut, and again in recovery",
                FaultVerdict::NotPromised,
            ),
            row(
                "d7-p5510-3840.0 cannot read some, d7-p5510-3840.1 is away for a time",
                FaultVerdict::NoLossFound,
            ),
        ];
        let name = "stripe(2*mirror(2*950pro-256), mirror(2*p4800x-375); chunk=64k)";
        let report = Report { rows, broken: None };
        let pools = [(name.to_owned(), report)];
        let shown = |width| {
            let mut out = Vec::new();
            table(&pools, width, &mut out).expect("memory");
            String::from_utf8(out).expect("text")
        };
        assert_eq!(shown(None), shown(Some(80)));
        for width in [60, 80, 120] {
            let shown = shown(Some(width));
            assert!(shown.starts_with(&format!("{name}\n fault ")) || width < 64);
            assert!(shown.contains("1128/1296"), "{shown}");
            let widest = shown.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width.into()), "{shown}");
        }
        // A short text stays on one line.
        let line = shown(None);
        let line = line.lines().find(|it| it.contains("power cut"));
        assert!(line.is_some_and(|it| it.ends_with("not promised")));
    }
}
