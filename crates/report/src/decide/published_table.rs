//! A published table of endurance, recalculated: `drivelab life --table s3`.

use study::decide::table_of_s3::TableRow;
use text::terminal::{Width, folded, paragraph, plain, right};

/// Returns S3's Table 1 as printed, by its own arithmetic, and with the arithmetic corrected.
pub fn table_of_s3(rows: &[TableRow], width: Width) -> String {
    let mut table = plain();
    table.set_header([
        "row",
        "what",
        "printed",
        "its own arithmetic",
        "right",
        "unit",
    ]);
    for row in rows {
        let figure = |value: f64| text::digits::significant(value, 5);
        table.add_row([
            row.id.clone(),
            row.what.clone(),
            figure(row.printed),
            figure(row.own),
            figure(row.right),
            row.unit.to_owned(),
        ]);
    }
    right(&mut table, 2..5);
    let slips = rows
        .iter()
        .map(|row| paragraph(&format!("{}: ", row.id), &row.slip, width));
    let slips: Vec<String> = slips.collect();
    format!("{}\n\n{}", folded(&table, 2, width), slips.join("\n"))
}
