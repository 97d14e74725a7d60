//! Ids of rows: `S0-073`, and ranges of them. Checks that no row occurs twice, and that none sets a parameter without
//! permission.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{self, is_collected, number};
use super::{Evidence, LedgerFile};
use text::problem::{Place, Problem, Problems};

/// Checks whether the text is the id of a row of one of the sources.
pub(super) fn is_id(text: &str) -> bool {
    number(text).is_some()
}

/// Returns the ids in `S0-009` or `S0-009 to S0-012`.
pub(super) fn ids(text: &str) -> Option<Vec<String>> {
    let (first, last) = text.split_once(" to ").unwrap_or((text, text));
    let ((prefix, from), (other, to)) = (number(first)?, number(last)?);
    (prefix == other && from <= to).then(|| {
        (from..=to)
            .map(|number| source::id(prefix, number))
            .collect()
    })
}

/// Returns the rows that a text, such as a figure's source, names: `S1-006, S2-054 to S2-060` names eight.
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

/// Checks whether a text names a row: `S1-006, S2-054 to S2-060` names `S2-055`.
pub(super) fn names(text: &str, id: &str) -> bool {
    rows_named(text).iter().any(|one| one == id)
}

/// Reports rows that occur more than once. A row is in one file, once: as a row or in the list of rows that are not
/// reproduced. (If another file lists it as pending, it is no longer pending.)
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
                    what: format!("{id} is defined twice, first in {earlier}"),
                    help: Some("a row has one entry in the whole ledger".into()),
                });
            }
        }
    }
}

/// Reports rows of collections that set a parameter without being on the list `may-set`. That list was made before
/// anyone looked at their figures.
pub(super) fn none_set_that_may_not(files: &[LedgerFile], problems: &mut Problems) {
    let may: BTreeSet<&str> = files
        .iter()
        .flat_map(|file| &file.may_set)
        .map(String::as_str)
        .collect();
    for file in files {
        let fitted = file
            .rows
            .iter()
            .filter(|row| row.evidence == Evidence::Fitted && is_collected(&row.id));
        for row in fitted.filter(|row| !may.contains(&*row.id)) {
            problems.0.push(Problem {
                origin: file.origin.clone(),
                place: row.place.clone(),
                what: format!("{} is not among the rows that may set a parameter", row.id),
                help: Some("`may-set` lists them; write `predicted` in `evidence`".into()),
            });
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
        assert_eq!(
            ids("P0009 to P0010").map(|all| all.join(" ")).as_deref(),
            Some("P0009 P0010")
        );
        for wrong in [
            "S6-001",
            "S0-9",
            "S0-009 to S1-010",
            "S0-010 to S0-009",
            "S0-009-010",
            "P0009 to S0-010",
            "P0519 to P0520",
            "",
        ] {
            assert_eq!(ids(wrong), None, "{wrong}");
        }
    }
}
