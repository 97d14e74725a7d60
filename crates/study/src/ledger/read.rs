//! Reader of ledger files: returns a [`LedgerFile`]. Keys are strict, and all problems are reported at once, each with
//! its line.

mod row;
mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::host::Filesystem;
use model::media::Precondition;
use toml_edit::Value;

use super::{LedgerFile, LedgerMeasurement, OptionSweep, SEEDS, Work, act, measure, rows};
use catalogue::{Change, DriveSheet, HostSheet};
use text::problem::Problems;
use text::toml::SourceFile;
use text::toml::{Cursor, Page};

/// Defaults for all measurements of a file.
#[derive(Default)]
struct Common {
    state: Option<Precondition>,
    host: Option<String>,
    fio: Vec<String>,
}

/// Names that the metrics of a file can use, with their sheets.
#[derive(Default)]
struct MetricNames {
    drives: BTreeMap<String, Option<DriveSheet>>,
    measurements: BTreeMap<String, Option<(DriveSheet, HostSheet)>>,
    /// Measurements whose load is searched for, with the percentage of reads over 1 ms at that load.
    shares: BTreeMap<String, f64>,
}

/// Reads a ledger file from its text; `origin` names it in messages.
///
/// # Errors
/// All problems of the text.
pub fn file(origin: &str, text: &str) -> Result<LedgerFile, Problems> {
    let source = SourceFile {
        origin: origin.to_owned(),
        text: Arc::from(text),
    };
    let document = text::toml::parse(&source)?;
    let page = Page::new(&source);
    let mut root = Cursor::new(&page, "the ledger", document.as_table(), None);
    let mut file = LedgerFile {
        origin: origin.to_owned(),
        drives: Vec::new(),
        measurements: Vec::new(),
        rows: Vec::new(),
        not_reproduced: Vec::new(),
        pending: Vec::new(),
        may_set: Vec::new(),
    };
    let mut known = MetricNames::default();
    let common = root.table("common").map_or_else(Common::default, common);
    drives(&mut root, &mut file, &mut known);
    measurements(&page, &mut root, &common, &mut file, &mut known);
    for cursor in table::rows(&page, &mut root) {
        file.rows.extend(row::row(&page, &cursor, &known));
    }
    for (table, at) in root.tables("not-reproduced") {
        let mut cursor = Cursor::new(&page, "not-reproduced", table, at);
        let reason = cursor.text("reason");
        let ids = ids(&mut cursor, "rows");
        file.not_reproduced
            .extend(ids.into_iter().map(|id| (id, reason.clone())));
    }
    file.pending = ids(&mut root, "pending");
    file.may_set = ids(&mut root, "may-set");
    drop(root);
    Problems(page.problems.into_inner()).or(file)
}

/// Reads a list of ids and ranges of ids.
fn ids(cursor: &mut Cursor<'_>, key: &'static str) -> Vec<String> {
    let mut all = Vec::new();
    for written in cursor.texts(key) {
        match rows::ids(&written) {
            Some(ids) => all.extend(ids),
            None => cursor.add_problem(
                key,
                format!("`{written}` is not a row id"),
                "write ids as in figures.csv, such as \"S0-009\" or \"S0-009 to S0-012\"",
            ),
        }
    }
    all
}

fn common(mut cursor: Cursor<'_>) -> Common {
    Common {
        state: state(&mut cursor),
        host: cursor.maybe_text("host"),
        fio: cursor.words("fio"),
    }
}

fn state(cursor: &mut Cursor<'_>) -> Option<Precondition> {
    let word = cursor.maybe_text("state")?;
    let state = match &*word {
        "fresh" => Some(Precondition::Fresh),
        "filled" => Some(Precondition::Filled),
        "steady" => Some(Precondition::Steady),
        _ => None,
    };
    if state.is_none() {
        let what = format!("there is no state `{word}`");
        cursor.add_problem("state", what, "the states are fresh, filled, steady");
    }
    state
}

fn drives(root: &mut Cursor<'_>, file: &mut LedgerFile, known: &mut MetricNames) {
    for (name, value) in root.pairs("drives") {
        let id = value.as_str().unwrap_or_default().to_owned();
        let sheet = sheet(root, "drives", &id, &[]);
        known.drives.insert(name.clone(), sheet);
        file.drives.push((name, id));
    }
}

/// Returns the drive of the catalogue, or reports a problem at `key`.
fn sheet(cursor: &Cursor<'_>, key: &str, name: &str, changes: &[Change]) -> Option<DriveSheet> {
    catalogue::drive_with(name, changes)
        .map_err(|problems| adopt(cursor, key, problems))
        .ok()
}

fn adopt(cursor: &Cursor<'_>, key: &str, problems: Problems) {
    for problem in problems.0 {
        let what = format!("{}: {}", problem.origin, problem.what);
        cursor.add_problem(key, what, problem.help.unwrap_or_default());
    }
}

fn measurements<'a>(
    page: &Page<'a>,
    root: &mut Cursor<'a>,
    common: &Common,
    file: &mut LedgerFile,
    known: &mut MetricNames,
) {
    let Some(item) = root.item("measure") else {
        return;
    };
    const HELP: &str = "write [measure], then NAME = { drive = \"...\", fio = \"...\" }";
    let Some(table) = item.as_table_like() else {
        page.add_problem(item.span(), "`measure` is not a table", HELP);
        return;
    };
    for (name, item) in table.iter() {
        let Some(inner) = item.as_table_like() else {
            let what = format!("`measure.{name}` is not a table");
            page.add_problem(item.span(), what, HELP);
            continue;
        };
        let mut cursor = Cursor::new(page, format!("measure.{name}"), inner, item.span());
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !plain || known.drives.contains_key(name) {
            let help = "letters, digits and _, not the name of a drive";
            page.add_problem(
                item.span(),
                format!("`{name}` cannot name a measurement"),
                help,
            );
        }
        let (measurement, sheets) = measurement(&mut cursor, name, common);
        known.measurements.insert(name.to_owned(), sheets);
        if let Some(Work::Act(act)) = measurement.as_ref().map(|one| &one.work)
            && let Some(percent) = act.over_1ms_percent
        {
            known.shares.insert(name.to_owned(), percent);
        }
        file.measurements.extend(measurement);
    }
}

fn measurement(
    cursor: &mut Cursor<'_>,
    name: &str,
    common: &Common,
) -> (Option<LedgerMeasurement>, Option<(DriveSheet, HostSheet)>) {
    let drive = cursor.text("drive");
    let stands_for = cursor.maybe_text("stands_for");
    let set = changes(cursor, "set");
    let own_state = state(cursor);
    let state = own_state.or(common.state);
    if state.is_none() && !cursor.has("state") {
        cursor.add_problem(
            "state",
            "`state` is missing",
            "the states are fresh, filled, steady",
        );
    }
    let host = cursor.maybe_text("host").or_else(|| common.host.clone());
    let host_set = changes(cursor, "host_set");
    let at = if set.is_empty() { "drive" } else { "set" };
    let named = (!drive.is_empty()).then_some(&*drive);
    let sheet = named.and_then(|drive| sheet(cursor, at, drive, &set));
    let host_sheet = match &host {
        Some(host) => catalogue::host_with(host, &host_set)
            .map_err(|problems| {
                let at = if host_set.is_empty() {
                    "host"
                } else {
                    "host_set"
                };
                adopt(cursor, at, problems);
            })
            .ok(),
        None => {
            cursor.add_problem("host", "`host` is missing", "such as host = \"xeon-2017\"");
            None
        }
    };
    let filesystem = filesystem(cursor);
    let work = match act::read(cursor) {
        Some(act) => Work::Act(act),
        None => fio(cursor, common),
    };
    let ios = cursor.count("ios", 100..=100_000_000);
    let seeds = cursor.count("seeds", 1..=10).unwrap_or(SEEDS);
    let sheets = sheet.zip(host_sheet);
    let (Some(state), Some(host), Some(_)) = (state, host, &sheets) else {
        return (None, sheets);
    };
    let measurement = LedgerMeasurement {
        name: name.to_owned(),
        drive,
        stands_for,
        set,
        state,
        host,
        host_set,
        filesystem,
        work,
        ios,
        seeds,
    };
    let (key, runs) = match &measurement.work {
        Work::Act(_) => ("act", act::check(&measurement)),
        Work::Fio { .. } => ("fio", measure::jobs_of_points(&measurement).map(drop)),
    };
    if let Err(problems) = runs {
        for problem in problems.0 {
            cursor.add_problem(key, problem.what, problem.help.unwrap_or_default());
        }
    }
    (Some(measurement), sheets)
}

fn changes(cursor: &mut Cursor<'_>, key: &'static str) -> Vec<Change> {
    let pairs = cursor.pairs(key).into_iter();
    pairs
        .map(|(name, value)| {
            let words = match value.as_str() {
                Some(text) => text.to_owned(),
                None => value.to_string().trim().to_owned(),
            };
            (name, words)
        })
        .collect()
}

/// Reads the file system of a measurement's files.
fn filesystem(cursor: &mut Cursor<'_>) -> Option<Filesystem> {
    let word = cursor.maybe_text("filesystem")?;
    let found = Filesystem::ALL.into_iter().find(|one| one.name() == word);
    if found.is_none() {
        let what = format!("`filesystem` is {word:?}");
        cursor.add_problem(
            "filesystem",
            what,
            "ext4 or xfs; without it jobs have the drive itself",
        );
    }
    found
}

fn fio(cursor: &mut Cursor<'_>, common: &Common) -> Work {
    let mut options = common.fio.clone();
    let own = cursor.words("fio");
    if own.is_empty() {
        cursor.add_problem(
            "fio",
            "`fio` is missing",
            "fio's options, such as \"--rw=randread --bs=4k\"",
        );
    }
    options.extend(own);
    let mut further = |key| {
        let mut options = cursor.words(key);
        if !options.is_empty() {
            options.splice(..0, common.fio.clone());
        }
        options
    };
    let (before, beside) = (further("before"), further("beside"));
    let pairs = cursor.pairs("sweep");
    if pairs.len() > 1 {
        cursor.add_problem(
            "sweep",
            "a sweep has one option",
            "use a separate measurement for each further option",
        );
    }
    let sweep = pairs.into_iter().next().and_then(|(option, value)| {
        let points: Option<Vec<(String, f64)>> = value
            .as_array()
            .and_then(|list| list.iter().map(point).collect());
        let points = points.filter(|points| !points.is_empty());
        let Some(points) = points else {
            let help = "such as sweep = { iodepth = [1, 2, 4] } or { bs = [\"4k\", \"128k\"] }";
            cursor.add_problem(
                "sweep",
                format!("`sweep.{option}` must be a list of numbers or sizes"),
                help,
            );
            return None;
        };
        if points.windows(2).any(|pair| pair[0].1 >= pair[1].1) {
            cursor.add_problem(
                "sweep",
                format!("the values of `sweep.{option}` must increase"),
                "",
            );
        }
        Some(OptionSweep { option, points })
    });
    let spread = cursor
        .count("spread", 1..=1024)
        .map(|threads| threads as u32);
    Work::Fio {
        options,
        before,
        beside,
        sweep,
        spread,
    }
}

/// Returns a sweep's value as written and as a number: `4k` is 4096.
fn point(value: &Value) -> Option<(String, f64)> {
    if let Some(whole) = value.as_integer() {
        return Some((whole.to_string(), whole as f64));
    }
    let text = value.as_str()?;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1.0,
        "k" => 1024.0,
        "m" => 1_048_576.0,
        "g" => 1_073_741_824.0,
        _ => return None,
    };
    Some((text.to_owned(), digits.parse::<f64>().ok()? * factor))
}

#[cfg(test)]
mod tests {
    use super::file;
    use crate::ledger::table_of_rows;

    /// A measurement on one line is the measurement of a section of its own, and a text the list of its words.
    #[test]
    fn a_line_says_what_a_section_says() {
        let section = r#"[common]
state = "fresh"
host = "xeon-2017"
fio = ["--direct=1", "--ioengine=libaio"]
[measure.a]
drive = "ram-disk"
set = { "ram.rate" = "2 GB/s" }
beside = ["--rw=randwrite", "--rate_iops=10", "--runtime=1s"]
fio = ["--rw=randread", "--size=1m", "--runtime=1s"]
sweep = { iodepth = [1, 2] }
"#;
        let line = r#"[common]
state = "fresh"
host = "xeon-2017"
fio = "--direct=1  --ioengine=libaio"
[measure]
a = { drive = "ram-disk", set = { "ram.rate" = "2 GB/s" }, beside = "--rw=randwrite --rate_iops=10 --runtime=1s", fio = "--rw=randread --size=1m --runtime=1s", sweep = { iodepth = [1, 2] } }
"#;
        let read = |text: &str| {
            let row = ["S0-001 | 1 | IOPS | predicted | mean(a.read.iops)".to_owned()];
            let read = file("test.toml", &table_of_rows(text, row));
            read.unwrap_or_else(|problems| panic!("{text}\n{problems}"))
        };
        assert_eq!(read(section).measurements, read(line).measurements);
    }

    /// Problems of a measurement on one line have the place of their key.
    #[test]
    fn problems_of_a_line_name_the_key() {
        let measure = "[common]\nstate = \"fresh\"\nhost = \"xeon-2017\"\n[measure]\n\
                       a = { drive = \"ram-disk\", fio = \"--rw=randread --bs=4z\", seed = 3 }\n\
                       b = { fio = \"--rw=randread\" }\nc = 3\n";
        let row = ["S0-001 | 1 | IOPS | predicted | a.read.iops".to_owned()];
        let said = file("test.toml", &table_of_rows(measure, row)).expect_err("problems");
        let said = said.render(false);
        let problems: Vec<&str> = said.split("error: ").skip(1).collect();
        let expected = [
            ("test.toml:5:33", "measure.a: bs: `4z`"),
            ("test.toml:5:58", "measure.a: unknown key `seed`"),
            ("test.toml:6:5", "measure.b: `drive` is missing"),
            ("test.toml:7:5", "`measure.c` is not a table"),
        ];
        assert_eq!(problems.len(), expected.len(), "{said}");
        for (problem, (place, what)) in problems.into_iter().zip(expected) {
            assert!(problem.contains(&format!("--> {place}\n")), "{said}");
            assert!(problem.starts_with(what), "{said}");
        }
    }

    /// A point that is not a size is an error, and is not left out of a mean.
    #[test]
    fn every_point_of_a_sweep_is_a_number_or_a_size() {
        let text = |points: &str| {
            let measure = format!(
                "[measure.a]\ndrive = \"ram-disk\"\nstate = \"fresh\"\nhost = \"xeon-2017\"\n\
                 fio = [\"--rw=randread\", \"--size=1m\"]\nsweep = {{ offset = [{points}] }}\n"
            );
            let row = "S0-001 | 1 | IOPS | predicted | mean(a.read.iops)".to_owned();
            table_of_rows(&measure, [row])
        };
        let right = file("test.toml", &text("\"64k\", \"1m\", \"2g\""));
        let right = right.unwrap_or_else(|problems| panic!("{problems}"));
        let super::Work::Fio { sweep, .. } = &right.measurements[0].work else {
            panic!("it is fio's work");
        };
        let points = &sweep.as_ref().expect("it has a sweep").points;
        assert_eq!(points[2], ("2g".into(), 2_147_483_648.0));
        let wrong = file("test.toml", &text("\"64k\", \"1x\"")).expect_err("no size");
        let said = wrong.to_string();
        assert!(
            said.contains("must be a list of numbers or sizes"),
            "{said}"
        );
    }
}
