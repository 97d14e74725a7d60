//! Ids of rows: `S0-073`, ranges of them, and that none stands twice.

use std::collections::BTreeMap;

use super::{LedgerFile, SOURCES};
use text::problem::{Place, Problem, Problems};

/// Whether this is the id of a row of one of the sources.
pub(super) fn is_id(text: &str) -> bool {
    number(text).is_some()
}

fn number(id: &str) -> Option<(&str, u32)> {
    let (source, digits) = id.split_once('-')?;
    let known = SOURCES.iter().any(|(prefix, _)| *prefix == source);
    let three = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    (known && three).then(|| Some((source, digits.parse().ok()?)))?
}

/// The ids in `S0-009` or `S0-009 to S0-012`.
pub(super) fn ids(text: &str) -> Option<Vec<String>> {
    let (first, last) = text.split_once(" to ").unwrap_or((text, text));
    let ((source, from), (other, to)) = (number(first)?, number(last)?);
    (source == other && from <= to).then(|| {
        (from..=to)
            .map(|number| format!("{source}-{number:03}"))
            .collect()
    })
}

/// The rows that a text such as a figure's source names: of `S1-006, S2-054 to S2-060` eight.
pub fn rows_named(text: &str) -> Vec<String> {
    let words: Vec<&str> = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .filter(|word| !word.is_empty())
        .collect();
    let range = |at: usize| {
        let word = words[at];
        match words.get(at + 1..at + 3) {
            Some(["to", last]) => ids(&format!("{word} to {last}")),
            _ => ids(word),
        }
    };
    let mut named: Vec<String> = (0..words.len()).filter_map(range).flatten().collect();
    named.sort();
    named.dedup();
    named
}

/// Whether a text names a row: `S2-055` is in `S1-006, S2-054 to S2-060`.
pub(super) fn names(text: &str, id: &str) -> bool {
    rows_named(text).iter().any(|one| one == id)
}

/// A row stands in one file, once: as a row or among those that are not reproduced. (One that is pending elsewhere is
/// no longer pending.)
pub(super) fn no_row_twice(files: &[LedgerFile], problems: &mut Problems) {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for file in files {
        let rows = file.rows.iter().map(|row| (&*row.id, row.place.clone()));
        let others = file
            .not_reproduced
            .iter()
            .map(|(id, _)| (&**id, Place::Whole));
        for (id, place) in rows.chain(others) {
            if let Some(earlier) = seen.insert(id, &file.origin) {
                problems.0.push(Problem {
                    origin: file.origin.clone(),
                    place,
                    what: format!("{id} stands twice, the first time in {earlier}"),
                    help: Some("a row has one entry in the whole ledger".into()),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_names_rows_and_ranges() {
        let source = "S1-006, S2-054 to S2-060; as (S4-013)";
        for id in ["S1-006", "S2-054", "S2-057", "S2-060", "S4-013"] {
            assert!(names(source, id), "{id}");
        }
        for id in ["S1-007", "S2-061", "S2-053"] {
            assert!(!names(source, id), "{id}");
        }
    }

    #[test]
    fn ids_come_alone_or_as_ranges() {
        assert_eq!(ids("S0-009"), Some(vec!["S0-009".to_owned()]));
        assert_eq!(
            ids("S4-098 to S4-100").map(|all| all.join(" ")).as_deref(),
            Some("S4-098 S4-099 S4-100")
        );
        for wrong in [
            "S6-001",
            "S0-9",
            "S0-009 to S1-010",
            "S0-010 to S0-009",
            "S0-009-010",
            "",
        ] {
            assert_eq!(ids(wrong), None, "{wrong}");
        }
    }
}
