//! Drives of the catalogue as tables for a terminal, and as JSON.

mod json;
mod pool;

use comfy_table::CellAlignment;
use model::media::Medium;

use catalogue::{DriveSheet, Figure, FigureKind, HostSheet, SalesPeriod, Spare};
use model::management::LbaFormat;
use study::ledger::support;
use text::digits::digits;
use text::quantity::{Quantity, decimal};
use text::terminal::{self, Width, paragraph};

pub use json::json;

/// Number of columns at and above which a terminal has space for the media, and for the figures by kind.
const ROOM_FOR_MEDIA: u16 = 110;
const ROOM_FOR_KINDS: u16 = 150;

/// Returns the drives as a table, one per line; on a narrow terminal without their media and without the number of
/// figures by kind.
pub fn table(drives: &[DriveSheet], width: Width) -> String {
    let has = |least: u16| width.is_none_or(|width| width >= least);
    let mut table = terminal::table(width);
    let mut header = vec!["drive", "capacity", "endurance"];
    if has(ROOM_FOR_KINDS) {
        header.extend(FigureKind::ALL.map(FigureKind::name));
    }
    let figures = 1..header.len();
    header.extend(["name", "model"]);
    if has(ROOM_FOR_MEDIA) {
        header.extend(["medium", "sold"]);
    }
    table.set_header(header);
    for drive in drives {
        let mut row = vec![
            drive.id.clone(),
            decimal(drive.capacity),
            drive.endurance_bytes.map_or(String::from("-"), decimal),
        ];
        if has(ROOM_FOR_KINDS) {
            row.extend(FigureKind::ALL.map(|kind| count(&drive.figures, kind).to_string()));
        }
        row.push(drive.name.clone());
        row.push(support::statement(drive).grade.name().to_owned());
        if has(ROOM_FOR_MEDIA) {
            row.push(drive.medium.clone());
            row.push(drive.sold.as_ref().map_or_else(|| String::from("-"), sold));
        }
        table.add_row(row);
    }
    for column in figures.clone() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    terminal::unbroken(&mut table, 0..figures.end);
    table.trim_fmt()
}

/// Returns when a drive was sold new: "2017 to 2022", "since 2023".
fn sold(period: &SalesPeriod) -> String {
    match &period.until {
        Some(until) => format!("{} to {until}", period.from),
        None => format!("since {}", period.from),
    }
}

/// Returns the pools as a table, one per line.
pub fn pools(pools: &[DriveSheet], width: Width) -> String {
    let mut table = terminal::table(width);
    table.set_header(["pool", "capacity", "volumes", "drives", "name", "promise"]);
    for pool in pools {
        let Some(config) = pool.pool_config() else {
            continue;
        };
        let volumes: Vec<String> = config.volumes().into_iter().map(|it| it.name).collect();
        table.add_row([
            pool.id.clone(),
            decimal(pool.capacity),
            volumes.join(", "),
            config.members.len().to_string(),
            pool.name.clone(),
            config.words(),
        ]);
    }
    terminal::right(&mut table, 1..2);
    terminal::right(&mut table, 3..4);
    terminal::unbroken(&mut table, 0..2);
    table.trim_fmt()
}

/// Returns the hosts as a table, one per line with what it represents.
pub fn hosts(hosts: &[HostSheet], width: Width) -> String {
    let mut table = terminal::table(width);
    table.set_header(["host", "cores", "idle cores", "name"]);
    for host in hosts {
        let sleeps = match host.config.idle_states.last() {
            Some(state) => format!("sleep, {} us to wake", digits(state.exit.us())),
            None => String::from("awake"),
        };
        table.add_row([
            host.id.clone(),
            host.config.cores.to_string(),
            sleeps,
            host.name.clone(),
        ]);
    }
    terminal::right(&mut table, 1..2);
    terminal::unbroken(&mut table, 0..3);
    table.trim_fmt()
}

/// Returns one drive with every figure, its kind and its source; for a pool also those of its drives.
pub fn sheet(drive: &DriveSheet, width: Width) -> String {
    if let (Some(config), Some(pool)) = (drive.pool_config(), &drive.pool) {
        let mut parts = vec![pool::sheet(drive, config, pool, width)];
        if !drive.figures.is_empty() {
            parts.push(figures(drive, width));
        }
        parts.extend(drive.members.iter().map(|member| sheet(member, width)));
        return parts.join("\n\n");
    }
    let what = format!(
        "{}, {}, {}, {}",
        drive.maker, drive.medium, drive.form_factor, drive.interface
    );
    let mut lines = vec![
        format!("{}  ({})", drive.name, drive.id),
        paragraph("", &what, width),
    ];
    if let Some(family) = &drive.family {
        lines.push(format!("Family {family}."));
    }
    lines.push(String::from(
        "Figures marked * come from a file that it shares with other drives.",
    ));
    lines.push(String::new());
    lines.push(summary(drive, width));
    lines.push(String::new());
    lines.push(figures(drive, width));
    lines.join("\n")
}

/// Returns every figure, and the number of figures of each kind.
fn figures(drive: &DriveSheet, width: Width) -> String {
    let mut lines = Vec::new();
    let mut table = terminal::table(width);
    table.set_header(["figure", "value", "kind", "source"]);
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
    let counts =
        FigureKind::ALL.map(|kind| format!("{} {}", count(&drive.figures, kind), kind.name()));
    let counted = format!("{} figures: {}.", drive.figures.len(), counts.join(", "));
    lines.push(paragraph("", &counted, width));
    let mut files: Vec<&str> = drive.figures.iter().map(|figure| &*figure.file).collect();
    files.sort_unstable();
    files.dedup();
    lines.push(paragraph(
        "From ",
        &format!("{}.", files.join(" and ")),
        width,
    ));
    lines.join("\n")
}

/// Returns properties that follow from the figures: formats, spare area, endurance in both units, administration.
fn summary(drive: &DriveSheet, width: Width) -> String {
    let mut rows = vec![(
        "capacity",
        format!("{} ({} bytes)", decimal(drive.capacity), drive.capacity),
    )];
    if let Some(spare) = drive.spare() {
        rows.push(("spare area", spare_area(&spare)));
    }
    if let Some(bytes) = drive.endurance_bytes {
        let daily = drive.drive_writes_per_day();
        let daily = daily.map(|daily| format!(", {} drive writes per day", digits(daily)));
        rows.push((
            "endurance",
            format!("{} written{}", decimal(bytes), daily.unwrap_or_default()),
        ));
    }
    if let Some(percent) = drive.config.write_protect_percent() {
        let at = format!("writes are permanently throttled at {percent} % of endurance used");
        rows.push(("end of life", at));
    }
    if let Some(percent) = drive.config.read_only_percent() {
        let at = format!("the medium is read-only at {percent} % of endurance used");
        rows.push(("end of life", at));
    }
    if let Some(retention) = drive.management.retention {
        let kept = format!("{} without power at the end of endurance", retention.show());
        rows.push(("retention", kept));
    }
    if let Some(years) = drive.warranty_years {
        rows.push(("warranty", format!("{years} years")));
    }
    if let Some(period) = &drive.sold {
        let made = match &period.until {
            Some(_) => "; no longer made",
            None => "",
        };
        rows.push(("sold", format!("{}{made}", sold(period))));
    }
    if let (Some(price), Some(per_gb)) = (drive.price_usd, drive.usd_per_gb()) {
        let date = drive.price_date.as_deref().unwrap_or("date unknown");
        rows.push(("price", format!("{price} USD ({date}), {per_gb:.2} USD/GB")));
    }
    rows.extend(administration(drive));
    let known = support::statement(drive);
    rows.push(("model", format!("{}: {}", known.grade.name(), known.text)));
    let lines: Vec<String> = rows
        .into_iter()
        .map(|(name, value)| paragraph(&format!("{name:<15} "), &value, width))
        .collect();
    lines.join("\n")
}

fn spare_area(spare: &Spare) -> String {
    let (raw, rest) = spare.nominal_gb();
    format!(
        "{} of {} raw ({:.1} %); with 2^30 bytes for a GB of dies: {rest:.0} of {raw:.0} GB ({:.1} %)",
        decimal(spare.bytes()),
        decimal(spare.raw_bytes),
        spare.share() * 100.0,
        rest / raw * 100.0,
    )
}

/// Returns what Identify, FORMAT and the governor show.
fn administration(drive: &DriveSheet) -> Vec<(&'static str, String)> {
    let management = &drive.management;
    let formats: Vec<String> = management.lba_formats.iter().map(format_name).collect();
    let cache = if drive.config.volatile_write_cache() {
        "volatile: what is not flushed is lost with power"
    } else {
        "not volatile: what is acknowledged is durable"
    };
    let protection = match drive.power_loss_protection {
        Some(true) => "; rated with power-loss protection",
        Some(false) => "; rated without power-loss protection",
        None => "",
    };
    let transfer = drive.config.max_transfer();
    let transfer = transfer.map_or(String::from("any"), |bytes| format!("{} KiB", bytes / 1024));
    let nvme = &drive.nvme;
    let mut rows = vec![
        (
            "LBA formats",
            format!("{} (the first is in use)", formats.join(", ")),
        ),
        ("FORMAT takes", drive.config.format_duration().show()),
        ("I/O queues", drive.io_queues.to_string()),
        ("largest command", transfer),
        ("write cache", format!("{cache}{protection}")),
        (
            "NVMe identity",
            format!("{}, firmware {}", nvme.model_number, nvme.firmware),
        ),
    ];
    if let Some(limit) = drive.config.power_limit_watts() {
        let settings = management.power_limits_watts.iter();
        let others = settings.filter(|&&watts| (watts - limit).abs() > 1e-9);
        let others: Vec<String> = others
            .map(|watts| format!(", can be set to {watts} W"))
            .collect();
        rows.push(("power governor", format!("{limit} W{}", others.concat())));
    }
    rows.push(("heat", heat(drive)));
    rows
}

/// Returns the drive's thermal behaviour, and whether it throttles.
fn heat(drive: &DriveSheet) -> String {
    let thermal = &drive.management.thermal;
    let (warning, critical) = (thermal.warning_celsius, thermal.critical_celsius);
    match drive.config.power_limit_watts() {
        Some(_) => format!(
            "warning at {warning} C; at {critical} C and above, its power governor reduces the power for writes to a quarter"
        ),
        None => format!(
            "warning at {warning} C; its model has no power governor, so heat does not slow it"
        ),
    }
}

fn format_name(format: &LbaFormat) -> String {
    format!("{format} B {}", format.performance.name())
}

fn count(figures: &[Figure], kind: FigureKind) -> usize {
    figures.iter().filter(|figure| figure.kind == kind).count()
}
