//! The comparison of the models with a formula of three data-sheet numbers, as a table for a terminal.

use comfy_table::CellAlignment;

use super::percent;
use study::ledger::AgainstSheet;
use study::ledger::against_sheet::MetricKind;
use text::terminal::{self, Width, paragraph};

/// Returns a line for each kind of figure with the errors of the model and of the formula, and the rows that were not
/// compared.
pub fn against_sheet(found: &AgainstSheet, width: Width) -> String {
    let mut table = terminal::plain();
    table.set_header([
        "predicted rows of",
        "rows",
        "model: median error",
        "90 % within",
        "median factor",
        "data sheet: median error",
        "90 % within",
        "median factor",
    ]);
    for (kind, compared) in MetricKind::ALL.iter().zip(&found.kinds) {
        let mut cells = vec![kind.name().to_owned(), compared.rows.to_string()];
        for off in [compared.model, compared.sheet] {
            cells.extend(match compared.rows {
                0 => ["-", "-", "-"].map(str::to_owned),
                _ => [
                    percent(Some(off.median)),
                    percent(Some(off.p90)),
                    format!("{:.2}", off.factor),
                ],
            });
        }
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = terminal::folded(&table, 1, width);
    text.push_str("\n\n");
    let mut say = |head: &str, what: &str| {
        text.push_str(&paragraph(head, what, width));
        text.push('\n');
    };
    say(
        "Data sheet: ",
        "min(depth / (L + (bs - 4 KiB) / W), M, W / bs) of a drive's rated latency, random IOPS and bandwidth in order; \
         its latency stands for all percentiles, as sheets have none.",
    );
    let rows: usize = found.left_out.values().sum();
    if rows > 0 {
        let reasons = found.left_out.iter();
        let reasons: Vec<String> = reasons
            .map(|(why, rows)| format!("{rows}: {why}"))
            .collect();
        let what = format!("{rows} predicted rows ({})", reasons.join("; "));
        say("Not compared: ", &what);
    }
    text.truncate(text.trim_end().len());
    text
}
