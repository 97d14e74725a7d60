//! The ledger against the published figures, and what its readers say about a file with mistakes.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use study::ledger::{self, Published};

/// Says that a test is skipped where the test harness does not catch it, as it does `eprintln!`.
macro_rules! skip {
    ($($what:tt)*) => {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {}", format_args!($($what)*));
    };
}

fn built_in() -> Vec<ledger::File> {
    ledger::built_in().unwrap_or_else(|problems| panic!("{}", problems.render(false)))
}

/// The rows of `figures.csv`: id to value and unit; `None` where the file is not there.
fn published() -> Option<BTreeMap<String, (String, String)>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/published/figures.csv");
    if !path.is_file() {
        skip!("there is no {}", path.display());
        return None;
    }
    let mut reader = csv::Reader::from_path(&path).expect("the file opens");
    let records = reader.records().map(|record| record.expect("a CSV record"));
    let rows: BTreeMap<_, _> = records
        .map(|record| {
            (
                record[0].to_owned(),
                (record[5].to_owned(), record[6].to_owned()),
            )
        })
        .collect();
    assert!(rows.len() > 400, "only {} rows", rows.len());
    Some(rows)
}

#[test]
fn every_published_row_stands_once_in_the_ledger() {
    let files = built_in();
    let Some(published) = published() else { return };
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for file in &files {
        let rows = file.rows.iter().map(|row| &row.id);
        for id in rows.chain(file.not_reproduced.iter().map(|(id, _)| id)) {
            *places.entry(id).or_default() += 1;
        }
    }
    let pending: Vec<&str> = files
        .iter()
        .flat_map(|file| &file.pending)
        .map(String::as_str)
        .collect();
    let unknown: Vec<&&str> = places
        .keys()
        .chain(&pending)
        .filter(|id| !published.contains_key(**id))
        .collect();
    assert!(unknown.is_empty(), "not in figures.csv: {unknown:?}");
    let twice: Vec<_> = places.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "more than once in the ledger: {twice:?}");
    let nowhere: Vec<&String> = published
        .keys()
        .filter(|id| !places.contains_key(id.as_str()) && !pending.contains(&id.as_str()))
        .collect();
    assert!(
        nowhere.is_empty(),
        "neither in the ledger nor pending: {nowhere:?}"
    );
    let still = pending
        .iter()
        .filter(|id| !places.contains_key(**id))
        .count();
    if still > 0 {
        skip!("{still} rows of the ledger are pending");
    }
}

#[test]
fn published_values_are_those_of_the_sources() {
    let files = built_in();
    let Some(published) = published() else { return };
    let mut wrong = Vec::new();
    for row in files.iter().flat_map(|file| &file.rows) {
        let Some((value, unit)) = published.get(&row.id) else {
            continue;
        };
        if let Ok(number) = value.parse::<f64>()
            && row.published != Published::Number(number)
        {
            wrong.push(format!(
                "{}: {:?}, published is {value}",
                row.id, row.published
            ));
        }
        if row.unit != *unit {
            wrong.push(format!(
                "{}: unit `{}`, published is `{unit}`",
                row.id, row.unit
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
