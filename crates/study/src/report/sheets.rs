//! Drives of the catalogue as tables for a terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::catalogue::quantity::decimal;
use crate::catalogue::{DriveSheet, Figure, Kind, LbaFormat};

/// The drives as a table, one a line.
pub fn table(drives: &[DriveSheet]) -> String {
    let mut table = plain();
    let mut header = vec!["drive", "name", "medium", "capacity", "endurance"];
    header.extend(Kind::ALL.map(Kind::name));
    table.set_header(header);
    for drive in drives {
        let mut row = vec![
            drive.id.clone(),
            drive.name.clone(),
            drive.medium.clone(),
            decimal(drive.capacity),
            drive.endurance_bytes.map_or(String::from("-"), decimal),
        ];
        row.extend(Kind::ALL.map(|kind| count(&drive.figures, kind).to_string()));
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// One drive with every figure, its kind and its source.
pub fn sheet(drive: &DriveSheet) -> String {
    let mut lines = vec![
        format!("{}  ({})", drive.name, drive.id),
        format!(
            "{}, {}, {}, {}",
            drive.maker, drive.medium, drive.form_factor, drive.interface
        ),
    ];
    if let Some(family) = &drive.family {
        lines.push(format!(
            "Family {family}: marked * below where its file says the figure."
        ));
    }
    lines.push(String::new());
    lines.push(summary(drive));
    lines.push(String::new());
    let mut table = plain();
    table.set_header(["figure", "value", "kind", "source"]);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    for figure in &drive.figures {
        let mark = if figure.inherited { "*" } else { "" };
        let date = figure.date.as_deref().map(|date| format!(" ({date})"));
        let note = figure.note.as_deref().map(|note| format!("; {note}"));
        table.add_row([
            format!("{}{mark}", figure.key),
            format!("{}{}", figure.value, date.unwrap_or_default()),
            figure.kind.name().to_owned(),
            format!("{}{}", figure.source, note.unwrap_or_default()),
        ]);
    }
    lines.push(table.trim_fmt());
    lines.push(String::new());
    let counts = Kind::ALL.map(|kind| format!("{} {}", count(&drive.figures, kind), kind.name()));
    lines.push(format!(
        "{} figures: {}.",
        drive.figures.len(),
        counts.join(", ")
    ));
    let mut files: Vec<&str> = drive.figures.iter().map(|figure| &*figure.file).collect();
    files.sort_unstable();
    files.dedup();
    lines.push(format!("From {}.", files.join(" and ")));
    lines.join("\n")
}

/// What follows from the figures: formats, endurance both ways, price per gigabyte.
fn summary(drive: &DriveSheet) -> String {
    let formats: Vec<String> = drive.lba_formats.iter().map(format_name).collect();
    let mut rows = vec![
        (
            "capacity",
            format!("{} ({} bytes)", decimal(drive.capacity), drive.capacity),
        ),
        (
            "LBA formats",
            format!("{} (the first is in use)", formats.join(", ")),
        ),
        ("I/O queues", drive.io_queues.to_string()),
    ];
    if let Some(bytes) = drive.endurance_bytes {
        let daily = drive.drive_writes_per_day();
        let daily = daily.map(|daily| format!(", {daily:.3} drive writes a day"));
        rows.push((
            "endurance",
            format!("{} written{}", decimal(bytes), daily.unwrap_or_default()),
        ));
    }
    if let Some(years) = drive.warranty_years {
        rows.push(("warranty", format!("{years} years")));
    }
    if let (Some(price), Some(per_gb)) = (drive.price_usd, drive.usd_per_gb()) {
        let date = drive.price_date.as_deref().unwrap_or("date unknown");
        rows.push(("price", format!("{price} USD ({date}), {per_gb:.2} USD/GB")));
    }
    let lines: Vec<String> = rows
        .into_iter()
        .map(|(name, value)| format!("{name:<12} {value}"))
        .collect();
    lines.join("\n")
}

fn format_name(format: &LbaFormat) -> String {
    match format.metadata {
        0 => format!("{} B", format.data),
        metadata => format!("{}+{metadata} B", format.data),
    }
}

fn count(figures: &[Figure], kind: Kind) -> usize {
    figures.iter().filter(|figure| figure.kind == kind).count()
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}
