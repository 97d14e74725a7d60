//! What came of a fit, as tables for a terminal.

use comfy_table::{CellAlignment, Table, presets};

use super::reproduce::figure;
use crate::fit::{Fitted, Refit, median_error};

fn plain(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}

fn right(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in table
        .column_iter_mut()
        .skip(columns.start)
        .take(columns.len())
    {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// A user's drive: parameters, every measured figure, and how well the fit holds where it did not look.
pub fn drive(fitted: &Fitted) -> String {
    let mut parameters = plain(&["parameter", "base", "fitted"]);
    for (parameter, words) in &fitted.parameters {
        parameters.add_row([parameter.key.clone(), parameter.moved(0.0), words.clone()]);
    }
    right(&mut parameters, 1..3);
    let mut residuals = plain(&["run", "figure", "measured", "base", "fitted", "error", ""]);
    for one in &fitted.residuals {
        residuals.add_row([
            one.run.clone(),
            one.figure.clone(),
            figure(one.measured),
            figure(one.before),
            figure(one.after),
            format!("{:+.1} %", one.error() * 100.0),
            if one.held_out { "held out" } else { "" }.to_owned(),
        ]);
    }
    right(&mut residuals, 2..6);
    let percent = |held_out| match median_error(&fitted.residuals, held_out) {
        Some(error) => format!("{:.1} %", error * 100.0),
        None => "none to tell by".into(),
    };
    format!(
        "{}\n\n{}\n\nMedian absolute error: {} of the figures fitted to, {} of those held out.",
        parameters.trim_fmt(),
        residuals.trim_fmt(),
        percent(false),
        percent(true)
    )
}

/// The catalogue's parameters, fitted to the rows that fix them once more.
pub fn ledger(refits: &[Refit]) -> String {
    let mut parts = Vec::new();
    for refit in refits {
        let mut parameters = plain(&["parameter", "catalogue", "fitted"]);
        for (parameter, words) in &refit.parameters {
            parameters.add_row([parameter.key.clone(), parameter.moved(0.0), words.clone()]);
        }
        right(&mut parameters, 1..3);
        let mut rows = plain(&["row", "what", "published", "catalogue", "fitted"]);
        for row in &refit.rows {
            rows.add_row([
                row.id.clone(),
                row.what.clone(),
                row.wanted.clone(),
                figure(row.before),
                figure(row.after),
            ]);
        }
        right(&mut rows, 3..5);
        parts.push(format!(
            "{}\n\n{}\n\n{}\n\nloss {:.2e} -> {:.2e}\n",
            refit.file,
            parameters.trim_fmt(),
            rows.trim_fmt(),
            refit.loss[0],
            refit.loss[1]
        ));
    }
    parts.join("\n")
}
