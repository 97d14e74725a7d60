//! The table of `drivelab prove`, and what is said where a promise is broken.

use std::io::{self, Write};

use study::prove::{Counterexample, Covered, Report, Row, Verdict};
use text::digits;
use text::terminal::{self, Width, paragraph};

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

/// The table of pools, each with its name. Where the terminal has no room for all columns, one table for each pool, with the
/// name above it: an expression may be as long as the rest.
///
/// # Errors
/// What `out` says.
pub fn table(pools: &[(String, Report)], width: Width, out: &mut dyn Write) -> io::Result<()> {
    let mut table = terminal::plain();
    table.set_header([&["pool"], &HEADER[..]].concat());
    for (name, report) in pools {
        for (index, row) in report.rows.iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            table.add_row([&[name.to_owned()], &cells(row)[..]].concat());
        }
    }
    terminal::right(&mut table, 2..3);
    terminal::right(&mut table, 4..6);
    let whole = table.trim_fmt();
    let fits = |width| {
        whole
            .lines()
            .all(|line| line.chars().count() <= usize::from(width))
    };
    if width.is_none_or(fits) {
        return writeln!(out, "{whole}");
    }
    for (index, (name, report)) in pools.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", paragraph("", name, width))?;
        let mut table = terminal::table(width);
        table.set_header(HEADER);
        for row in &report.rows {
            table.add_row(cells(row));
        }
        terminal::right(&mut table, 1..2);
        terminal::right(&mut table, 3..5);
        terminal::unbroken(&mut table, [1, 3, 4]);
        writeln!(out, "{}", table.trim_fmt())?;
    }
    Ok(())
}

const HEADER: [&str; 6] = ["fault", "points", "lost", "others'", "unstable", "verdict"];

fn cells(row: &Row) -> [String; 6] {
    let tally = &row.tally;
    [
        row.fault.clone(),
        digits::count(tally.points as f64),
        lost(row),
        digits::count(tally.others as f64),
        digits::count(tally.unstable as f64),
        verdict(row),
    ]
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

#[cfg(test)]
mod tests {
    use super::*;
    use study::prove::Tally;

    #[test]
    fn a_narrow_terminal_has_the_name_above_and_no_line_is_longer_than_it() {
        let row = |fault: &str, verdict| Row {
            fault: fault.into(),
            covered: Covered::Yes,
            tally: Tally::default(),
            verdict,
        };
        let rows = vec![
            row("a power cut", Verdict::Kept),
            row(
                "a power cut, with a member that is dead beforehand",
                Verdict::NoLossFound,
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
        assert_eq!(shown(None).lines().count(), 3);
        assert_eq!(shown(Some(400)), shown(None));
        let narrow = shown(Some(80));
        assert!(narrow.starts_with(&format!("{name}\n fault ")), "{narrow}");
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 80),
            "{narrow}"
        );
    }
}
