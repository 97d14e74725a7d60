//! The sources of the catalogue's figures: every named row exists.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use catalogue::{DriveSheet, Figure};

/// Reports that a test is skipped, in a way that the test harness does not capture as it does `eprintln!`.
macro_rules! skip {
    ($($what:tt)*) => {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {}", format_args!($($what)*));
    };
}

/// Returns all figures of the built-in catalogue, with the name of their drive or host.
fn built_in_figures() -> Vec<(String, Figure)> {
    let drives = catalogue::drives().expect("the built-in drives load");
    let of_drives = drives
        .into_iter()
        .flat_map(|DriveSheet { id, figures, .. }| {
            figures.into_iter().map(move |f| (id.clone(), f))
        });
    let of_hosts = catalogue::host_names().into_iter().flat_map(|name| {
        let host = catalogue::host(name).expect("the built-in hosts load");
        host.figures.into_iter().map(move |f| (name.to_owned(), f))
    });
    of_drives.chain(of_hosts).collect()
}

/// Returns words of a text that are ids of rows, or look like one: `S4-016`, `P0134`.
fn row_ids(text: &str) -> Vec<&str> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .filter(|word| {
            if let Some((seed, row)) = word.split_once('-') {
                let seed = seed.strip_prefix('S').unwrap_or_default();
                return seed.len() == 1 && digits(seed) && digits(row);
            }
            // The collections end at P0519, M1314 and U0189; a P3600 is a drive.
            let mut collected = ["P0", "M0", "M1", "U0"].iter();
            collected.any(|of| {
                let row = word.strip_prefix(of);
                row.is_some_and(|row| row.len() == 3 && digits(row))
            })
        })
        .collect()
}

#[test]
fn every_row_named_as_a_source_exists() {
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/published");
    let read = |name: &str| fs::read_to_string(published.join(name));
    let files = ["figures.csv", "pools.csv", "measured.csv", "underload.csv"].map(read);
    let [Ok(csv), Ok(pools), Ok(drives), Ok(load)] = &files else {
        skip!("{} lacks one of its files", published.display());
        return;
    };
    let rows: BTreeSet<&str> = csv
        .lines()
        .chain(pools.lines())
        .chain(drives.lines())
        .chain(load.lines())
        .filter_map(|line| line.split(',').next())
        .collect();
    let files = study::ledger::built_in().expect("the ledger loads");
    let ratings: BTreeSet<&str> = files
        .iter()
        .flat_map(|file| &file.rows)
        .map(|row| row.id.as_str())
        .filter(|id| id.starts_with("S5-"))
        .collect();
    let mut seen = 0;
    let mut unknown = Vec::new();
    for (owner, figure) in built_in_figures() {
        for id in row_ids(&figure.source) {
            seen += 1;
            if !rows.contains(id) && !ratings.contains(id) {
                unknown.push(format!("{owner}: {} names {id}", figure.key));
            }
        }
    }
    assert!(seen > 0, "no figure names a row");
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn what_the_model_is_set_by_names_its_rows() {
    use catalogue::FigureKind;
    let without: Vec<String> = built_in_figures()
        .into_iter()
        .filter(|(_, figure)| matches!(figure.kind, FigureKind::Fitted | FigureKind::Measured))
        .filter(|(_, figure)| row_ids(&figure.source).is_empty())
        .map(|(owner, figure)| format!("{owner}: {} from {:?}", figure.key, figure.source))
        .collect();
    assert!(without.is_empty(), "{}", without.join("\n"));
}

/// Only a figure that was read in a document is called specified (decision 0067).
#[test]
fn a_specified_figure_was_read_in_its_document() {
    use catalogue::FigureKind;
    let unread = |source: &str| source.contains("not checked") || source.contains("from memory");
    let (of_kind, others): (Vec<_>, Vec<_>) = built_in_figures()
        .into_iter()
        .filter(|(_, figure)| unread(&figure.source))
        .partition(|(_, figure)| figure.kind == FigureKind::Spec);
    let wrong: Vec<String> = of_kind
        .into_iter()
        .map(|(owner, figure)| format!("{owner}: {} from {:?}", figure.key, figure.source))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(others.len() > 100, "{} unread figures", others.len());
}
