//! Tables whose first line names the columns: a [`Columns`] from these names, and the equal `--columns`.
//!
//! Tools export such tables (Windows Performance Analyzer's disk I/O, perf-tools' `iosnoop`), and people write them.
//! Names decide what a column means, and a suffix its unit: `(us)`, `_ms`. A file is
//! refused, with the options that read it, if its names state no unit of times, or no unit of lengths while places are
//! sectors. Sectors, LBAs and blocks count 512 B. Not included: tables without names, decimal commas, and sizes in KiB.
//! Sources: names in the exports of the tools above, in `iosnoop` of github.com/brendangregg/perf-tools, and common
//! names (assumed).

use super::csv::{Columns, NamedColumns, Separator};
use super::fields::Fields;
use super::{Head, TraceError};

/// Names of a property's column, the preferred ones first.
const TIME: &[&str] = &[
    "start",
    "starttime",
    "inittime",
    "issuetime",
    "arrival",
    "arrivaltime",
    "time",
    "timestamp",
    "ts",
    "t",
];
const LATENCY: &[&str] = &[
    "lat",
    "latency",
    "responsetime",
    "response",
    "iotime",
    "elapsedtime",
    "duration",
];
const OP: &[&str] = &[
    "op",
    "operation",
    "optype",
    "iotype",
    "type",
    "rw",
    "rwbs",
    "direction",
    "t",
];
const OFFSET: &[&str] = &["offset", "byteoffset", "startoffset"];
const SECTOR: &[&str] = &["sector", "lba", "startsector", "startlba", "block"];
const SIZE: &[&str] = &["size", "length", "len", "bytes", "iosize", "requestsize"];
const SECTORS: &[&str] = &["sectors", "nrsect", "nsect", "nsectors"];
const VOLUME: &[&str] = &["disk", "device", "dev", "volume", "disknum", "lun"];
const PROCESS: &[&str] = &["comm"];

const UNITS: [(&str, u64); 10] = [
    ("nanoseconds", 1),
    ("microseconds", 1_000),
    ("milliseconds", 1_000_000),
    ("seconds", 1_000_000_000),
    ("usec", 1_000),
    ("msec", 1_000_000),
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

/// Returns a column's name in lower-case letters and digits, without its unit, and the nanoseconds of its unit.
fn name_and_unit(column: &[u8]) -> (String, Option<u64>) {
    let written = String::from_utf8_lossy(column).replace('µ', "u");
    let name = written.to_ascii_lowercase();
    let plain = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect();
    for (unit, ns) in UNITS {
        for suffix in [format!("({unit})"), format!("[{unit}]"), format!("_{unit}")] {
            if let Some(before) = name.strip_suffix(&suffix) {
                return (plain(before), Some(ns));
            }
        }
        // perf-tools: STARTs, LATms.
        let before = written.strip_suffix(unit).unwrap_or_default();
        if before.len() > 1 && before.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return (plain(&before.to_ascii_lowercase()), Some(ns));
        }
    }
    for suffix in ["(b)", "(bytes)", "_bytes"] {
        if let Some(before) = name.strip_suffix(suffix) {
            return (plain(before), None);
        }
    }
    (plain(&name), None)
}

/// Returns the word of `--time-unit` for a unit with this number of nanoseconds.
fn unit_word(ns: u64) -> &'static str {
    let words = UNITS.iter().rev();
    let word = words.filter(|it| it.1 == ns).map(|it| it.0).next();
    word.unwrap_or("ns")
}

/// Checks whether a column has the name of a length, which may count bytes or sectors.
fn is_without_unit(column: &[u8]) -> bool {
    let name = column.trim_ascii().to_ascii_lowercase();
    matches!(&name[..], b"size" | b"length" | b"len")
}

/// Finds the line that names the columns, among the first three.
///
/// # Errors
/// The names suffice for a trace, but state no unit of times.
pub(super) fn named_columns(head: &Head) -> Result<Option<NamedColumns>, TraceError> {
    for line in head.lines.iter().take(3) {
        if let Some(named) = of_line(line)? {
            return Ok(Some(named));
        }
    }
    Ok(None)
}

/// Returns the value of `--columns` for these keys: columns count from 1.
fn column_words(keys: [&str; 6], columns: [Option<usize>; 6]) -> String {
    let words = keys.into_iter().zip(columns).filter_map(|(key, column)| {
        let column = column? + 1;
        Some(format!("{key}={column}"))
    });
    words.collect::<Vec<_>>().join(",")
}

/// Returns the option for the unit of times, which is unknown or has this number of nanoseconds, and a note on other
/// units; empty without times.
fn time_unit_option(unit: Option<Option<u64>>) -> (String, &'static str) {
    match unit {
        None => (String::new(), ""),
        Some(Some(ns)) => (format!(" --time-unit {}", unit_word(ns)), ""),
        Some(None) => (
            String::from(" --time-unit us"),
            ", or s, ms or ns instead of us",
        ),
    }
}

/// Returns the error of a heading with a length, in this column, that may count bytes or sectors.
fn length_without_unit(columns: &str, column: usize, option: &str, others: &str) -> TraceError {
    let what = "names sectors and a length whose unit is unknown: bytes or sectors of 512 B";
    let sectors = columns.replace(&format!("size={column}"), &format!("sectors={column}"));
    let help = format!(
        "--columns {columns}{option} for bytes, or --columns {sectors}{option} for sectors{others}"
    );
    TraceError::whole(what).help(help)
}

fn of_line(line: &[u8]) -> Result<Option<NamedColumns>, TraceError> {
    let (separator, fields) = match line {
        line if line.contains(&b',') => (Separator::Commas, Fields::commas(1, line)),
        line if line.contains(&b';') => (Separator::Semicolons, Fields::semicolons(1, line)),
        line => (Separator::Blanks, Fields::blanks(1, line)),
    };
    let held = fields.count().min(super::fields::MOST);
    let names: Vec<_> = (0..held)
        .map(|column| name_and_unit(fields.text(column)))
        .collect();
    let find = |wanted: &[&str]| {
        let mut wanted = wanted.iter();
        wanted.find_map(|name| names.iter().position(|(have, _)| have == name))
    };
    let place = |bytes, sectors| match find(bytes) {
        Some(column) => Some((column, 1)),
        None => find(sectors).map(|column| (column, 512)),
    };
    let (Some(op), Some(offset), Some(size)) =
        (find(OP), place(OFFSET, SECTOR), place(SIZE, SECTORS))
    else {
        return Ok(None);
    };
    let time = find(TIME).filter(|&column| column != op);
    let unit = |column: Option<usize>| column.and_then(|column| names[column].1);
    let (named_latency, volume) = (find(LATENCY), find(VOLUME));
    let latency = named_latency.filter(|_| unit(named_latency).is_some());
    let words = |latency: Option<usize>| {
        let place = if offset.1 == 1 { "offset" } else { "sector" };
        let length = if size.1 == 1 { "size" } else { "sectors" };
        column_words(
            ["time", "op", place, length, "volume", "latency"],
            [
                time,
                Some(op),
                Some(offset.0),
                Some(size.0),
                volume,
                latency,
            ],
        )
    };
    // `--time-unit` is the unit of both.
    let same_unit = named_latency.filter(|_| time.is_none() || unit(named_latency) == unit(time));
    let complete = words(same_unit);
    let timed = time.or(same_unit);
    let (option, others) = time_unit_option(timed.map(|_| unit(timed)));
    if offset.1 > 1 && size.1 == 1 && is_without_unit(fields.text(size.0)) {
        return Err(length_without_unit(&complete, size.0 + 1, &option, others));
    }
    if time.is_some() && unit(time).is_none() {
        let what = "names its columns, but not the unit of its times";
        let help = format!("--columns {complete} --time-unit UNIT, with s, ms, us or ns");
        return Err(TraceError::whole(what).help(help));
    }
    Ok(Some(NamedColumns {
        columns: Columns::of_names(
            [time, latency, volume],
            [unit(time), unit(latency)],
            op,
            offset,
            size,
        ),
        heading: line.trim_ascii().to_vec(),
        separator,
        process: find(PROCESS).filter(|_| separator == Separator::Blanks),
        count: fields.count(),
        option: words(latency),
    }))
}
