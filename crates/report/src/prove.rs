//! The table of `drivelab prove`, and what is said where a promise is broken.

use std::io::{self, Write};

use study::prove::{Counterexample, Covered, Report, Row, Verdict};
use text::{digits, terminal};

fn verdict(row: &Row) -> String {
    let any = row.tally.wrong() > 0;
    match row.verdict {
        Verdict::Kept => "kept".into(),
        Verdict::Broken => "BROKEN".into(),
        Verdict::AsDesigned => "as designed: the promise says so".into(),
        Verdict::NoLossFound => "NO LOSS FOUND: the promise is too modest".into(),
        Verdict::NotPromised if any => "nothing is promised".into(),
        Verdict::NotPromised => "nothing is promised, nothing was lost".into(),
    }
}

fn lost(row: &Row) -> String {
    match row.covered {
        Covered::Yes if row.tally.wrong() == 0 => "0".into(),
        _ if row.tally.worst.0 > 0 => {
            format!(
                "yes, up to {} of {} sectors",
                row.tally.worst.0, row.tally.worst.1
            )
        }
        _ => "0".into(),
    }
}

/// The table of pools, each with its name.
///
/// # Errors
/// What `out` says.
pub fn table(pools: &[(String, Report)], out: &mut dyn Write) -> io::Result<()> {
    let mut table = terminal::plain();
    table.set_header([
        "pool", "fault", "points", "lost", "others'", "unstable", "verdict",
    ]);
    for (name, report) in pools {
        for (index, row) in report.rows.iter().enumerate() {
            let tally = &row.tally;
            table.add_row([
                if index == 0 {
                    name.clone()
                } else {
                    String::new()
                },
                row.fault.clone(),
                digits::count(tally.points as f64),
                lost(row),
                digits::count(tally.others as f64),
                digits::count(tally.unstable as f64),
                verdict(row),
            ]);
        }
    }
    terminal::right(&mut table, 2..3);
    terminal::right(&mut table, 4..6);
    for line in table.to_string().lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// What is known of a broken promise.
///
/// # Errors
/// What `out` says.
pub fn broken(pool: &str, it: &Counterexample, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{pool}, {}: {}", it.fault, it.what)?;
    for line in &it.program {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "again: drivelab prove '{pool}' --replay {}", it.replay)
}
