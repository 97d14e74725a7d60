//! The comparison of the models with a formula of three data-sheet numbers, and with the quality of service that data
//! sheets guarantee, as tables for a terminal.

use comfy_table::CellAlignment;

use super::percent;
use study::ledger::AgainstSheet;
use study::ledger::qos::QosResult;
use text::terminal::{self, Width, paragraph};

/// Returns a line for each load and kind of figure with the errors of the model and of the formula, and the rows that
/// were not compared.
pub fn against_sheet(found: &AgainstSheet, width: Width) -> String {
    let mut table = terminal::plain();
    table.set_header([
        "load",
        "predicted rows of",
        "rows",
        "model: median error",
        "90 % within",
        "median factor",
        "data sheet: median error",
        "90 % within",
        "median factor",
    ]);
    for (load, kind, compared) in found.groups() {
        let mut cells = vec![
            load.name().into(),
            kind.name().into(),
            compared.rows.to_string(),
        ];
        for off in [compared.model, compared.sheet] {
            cells.extend([
                percent(Some(off.median)),
                percent(Some(off.p90)),
                format!("{:.2}", off.factor),
            ]);
        }
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = match found.groups().next() {
        Some(_) => terminal::folded(&table, 2, width),
        None => String::from("No predicted row can be compared."),
    };
    text.push_str("\n\n");
    let mut say = |head: &str, what: &str| {
        text.push_str(&paragraph(head, what, width));
        text.push('\n');
    };
    say(
        "Data sheet: ",
        "min(depth / (L + (bs - 4 KiB) / W), M, W / bs) of a drive's rated latency, random IOPS and bandwidth in order; \
         its latency stands for all percentiles, as sheets have none. Under load, it is the rated latency below the rated IOPS, \
         and outstanding I/Os / IOPS above.",
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

/// Returns a line for each bound of a data sheet, with the model's latency; misses are marked.
pub fn qos(found: &[QosResult], width: Width) -> String {
    if found.is_empty() {
        return String::from(
            "None of these drives' files has a bound on a percentile ([[ratings.qos]]).",
        );
    }
    let mut table = terminal::plain();
    table.set_header([
        "drive",
        "random 4 KiB",
        "bound",
        "model",
        "with host",
        "verdict",
        "document",
    ]);
    for one in found {
        let verdict = if one.is_met() { "met" } else { "missed" };
        table.add_row([
            one.drive.clone(),
            one.bound.words(),
            format!("{:.0} us", one.bound.bound.us()),
            format!("{:.1} us", one.drive_us),
            format!("{:.1} us", one.host_us),
            verdict.to_owned(),
            format!("{} ({})", one.source, one.kind.name()),
        ]);
    }
    for column in table.column_iter_mut().skip(2).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let missed = found.iter().filter(|one| !one.is_met()).count();
    let what = format!(
        "{missed} of {} bounds are missed. A bound refers to the drive: the host's mean share is subtracted from `with \
         host`.",
        found.len()
    );
    format!(
        "{}\n\n{}",
        terminal::folded(&table, 2, width),
        paragraph("Quality of service of data sheets: ", &what, width)
    )
}
