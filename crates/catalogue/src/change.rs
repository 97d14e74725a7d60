//! A drive or host of the catalogue with changed figures: a governor set to 12 W, a drive at the end of its
//! endurance, a parameter that is being fitted.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use toml_edit::{Document, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::{CatalogueFile, DriveRole, DriveSheet, HostSheet, locate, read_drive, read_host};
use text::problem::{Place, Problem, Problems};

/// A changed figure: its dotted key, and its new value as text: `12 W`, `7`, `["4096"]`.
pub type Change = (String, String);

/// Returns the drive of this file with changed figures.
pub(super) fn drive_of(located: CatalogueFile, changes: &[Change]) -> Result<DriveSheet, Problems> {
    let (of_members, own): (Vec<Change>, Vec<Change>) = changes
        .iter()
        .cloned()
        .partition(|(key, _)| key.starts_with("members."));
    let plain = (!own.is_empty()).then(|| located.clone());
    let read = read_drive(&changed(located, &own)?, DriveRole::Alone(&of_members));
    match (read, plain) {
        (Err(problems), Some(plain)) => Err(not_its_own(&plain, &own).unwrap_or(problems)),
        (read, _) => read,
    }
}

/// Returns problems of changed figures at the options that changed them, with the text that the user typed; other
/// problems as they are. Figures that a pool's file changes stay in that file.
pub(super) fn at_options(problems: Problems, changes: &[Change]) -> Problems {
    let at_option = |problem: Problem| {
        let found = changes.iter().find_map(|change| {
            let range = range_in_option(&problem, change)?;
            Some((range, format!("{}={}", change.0, change.1)))
        });
        let Some((range, text)) = found else {
            return problem;
        };
        let file = problem.origin.trim_end_matches(CHANGED_FILE);
        let drive = file.rsplit('/').next().unwrap_or(file);
        Problem {
            origin: format!("--set on {}", drive.trim_end_matches(".toml")),
            place: Place::Text {
                text: text.into(),
                range,
            },
            ..problem
        }
    };
    Problems(problems.0.into_iter().map(at_option).collect())
}

/// Returns the place of a problem in `KEY=VALUE`; `None` if the problem is not of this change.
fn range_in_option(problem: &Problem, (key, value): &Change) -> Option<Range<usize>> {
    let value_at = key.len() + 1..key.len() + 1 + value.len();
    match &problem.place {
        Place::Whole => problem
            .what
            .contains(&format!("`{key}`"))
            .then_some(0..key.len()),
        Place::Text { text, range } if problem.origin.ends_with(CHANGED_FILE) => {
            let document = Document::parse(&**text).ok()?;
            // A member's key is `members.NAME.KEY`, where the name may have dots.
            let dots = key.match_indices('.').map(|(at, _)| at + 1);
            let keys = [0].into_iter().chain(dots);
            let mut keys = keys.filter(|at| (*at == 0) != key.starts_with("members."));
            keys.find_map(|at| {
                let (key_span, item_span) = spans_of(document.as_table(), &key[at..])?;
                let is_in = |span: &Range<usize>| span.contains(&range.start);
                match (is_in(&key_span), item_span.filter(is_in)) {
                    (true, _) => Some(at..key.len()),
                    (false, Some(_)) => Some(value_at.clone()),
                    (false, None) => None,
                }
            })
        }
        _ => None,
    }
}

/// Returns the places of a dotted key's last part and of its item.
fn spans_of(table: &dyn TableLike, key: &str) -> Option<(Range<usize>, Option<Range<usize>>)> {
    if let Some((section, rest)) = key.split_once('.') {
        return spans_of(table.get(section)?.as_table_like()?, rest);
    }
    let (key, item) = table.get_key_value(key)?;
    Some((key.span()?, item.span()))
}

/// Returns the problems of changes that name a figure of another kind of drive; `None` if there are none. Without this
/// check, such a change would create a section that lacks all its other keys.
fn not_its_own(located: &CatalogueFile, changes: &[Change]) -> Option<Problems> {
    let sheet = read_drive(located, DriveRole::Alone(&[])).ok()?;
    let section = |key: &str| key.split_once('.').map(|(section, _)| section.to_owned());
    let its_own: BTreeSet<String> = sheet
        .figures
        .iter()
        .filter_map(|it| section(&it.key))
        .collect();
    let foreign = changes
        .iter()
        .filter(|(key, _)| section(key).is_some_and(|section| !its_own.contains(&section)));
    let problem = |(key, _): &Change| Problem {
        origin: sheet.id.clone(),
        place: Place::Whole,
        what: format!("it has no figure `{key}`"),
        help: Some(format!(
            "its figures are in {}; `drivelab show {}` lists them",
            its_own
                .iter()
                .map(|it| format!("`{it}`"))
                .collect::<Vec<_>>()
                .join(", "),
            sheet.id
        )),
    };
    let problems: Vec<Problem> = foreign.map(problem).collect();
    (!problems.is_empty()).then_some(Problems(problems))
}

/// Returns the host of this name with changed figures.
///
/// # Errors
/// As [`super::drive_with`].
pub fn host_with(name_or_path: &str, changes: &[Change]) -> Result<HostSheet, Problems> {
    let located = locate(name_or_path, "host", &super::Home::BuiltIn)?;
    read_host(&changed(located, changes)?)
}

pub(super) fn changed(
    mut located: CatalogueFile,
    changes: &[Change],
) -> Result<CatalogueFile, Problems> {
    if changes.is_empty() {
        return Ok(located);
    }
    // The reader itself reports errors in the text, with their places.
    let Ok(mut document) = located.file.text.parse::<DocumentMut>() else {
        return Ok(located);
    };
    for (key, value) in changes {
        if let Err(why) = set(document.as_table_mut(), key, as_value(value)) {
            let what = format!("`{key}` cannot be changed: {why}");
            return Err(Problems::whole(&located.file.origin, what));
        }
    }
    located.file.origin.push_str(CHANGED_FILE);
    located.file.text = Arc::from(document.to_string());
    Ok(located)
}

/// Returns the TOML value for a figure as text. If the text is not a number, list or flag, the value is a string.
pub fn as_value(words: &str) -> Value {
    words.parse().unwrap_or_else(|_| Value::from(words))
}

/// End of the origin of a file with changed figures.
const CHANGED_FILE: &str = " (changed)";

/// Kind and source of a changed figure.
pub(super) const CHANGED: (&str, &str) = ("assumed", "changed for this run");

/// Returns the text of the drive's own file with changed figures.
///
/// # Errors
/// The file does not exist, or a changed figure does not exist.
pub fn text_of(name_or_path: &str, changes: &[Change]) -> Result<String, Problems> {
    let located = locate(name_or_path, "drive", &super::Home::BuiltIn)?;
    Ok(changed(located, changes)?.file.text.to_string())
}

/// Returns the text of the host's file with changed figures.
///
/// # Errors
/// As [`text_of`].
pub fn host_text(name_or_path: &str, changes: &[Change]) -> Result<String, Problems> {
    let located = locate(name_or_path, "host", &super::Home::BuiltIn)?;
    Ok(changed(located, changes)?.file.text.to_string())
}

/// Sets the figure of a dotted key; returns why this is not possible.
fn set(root: &mut dyn TableLike, key: &str, value: Value) -> Result<(), &'static str> {
    const NOT_A_SECTION: &str = "part of its path is not a section";
    if let Some((section, rest)) = key.split_once('.') {
        let section = section_of(root, section).ok_or(NOT_A_SECTION)?;
        return set(section, rest, value);
    }
    if let Some(figure) = root.get_mut(key).and_then(Item::as_table_like_mut) {
        if !figure.contains_key("value") {
            return Err("it is a section; name one of its figures");
        }
        figure.insert("value", Item::Value(value));
        // The old source does not apply to the new value.
        figure.insert("kind", Item::Value(CHANGED.0.into()));
        figure.insert("source", Item::Value(CHANGED.1.into()));
        figure.remove("note");
        return Ok(());
    }
    let figure = NewFigure {
        value,
        kind: CHANGED.0,
        source: CHANGED.1,
        note: None,
    };
    set_as(root, key, &figure).ok_or(NOT_A_SECTION)
}

/// A figure to write into a file.
pub struct NewFigure<'a> {
    /// Value as TOML.
    pub value: Value,
    /// Kind, such as `fitted`.
    pub kind: &'static str,
    /// Source: row ids, or a reason.
    pub source: &'a str,
    /// Optional remark.
    pub note: Option<&'a str>,
}

/// Writes the figure of a dotted key; `None` if a part of the key is not a section.
pub fn set_as(root: &mut dyn TableLike, key: &str, stated: &NewFigure<'_>) -> Option<()> {
    if let Some((section, rest)) = key.split_once('.') {
        return set_as(section_of(root, section)?, rest, stated);
    }
    let mut figure = InlineTable::new();
    figure.insert("value", stated.value.clone());
    figure.insert("kind", stated.kind.into());
    figure.insert("source", stated.source.into());
    if let Some(note) = stated.note {
        figure.insert("note", note.into());
    }
    root.insert(key, Item::Value(Value::InlineTable(figure)));
    Some(())
}

/// Returns the section of this name; creates it if it does not exist.
fn section_of<'a>(root: &'a mut dyn TableLike, name: &str) -> Option<&'a mut dyn TableLike> {
    if !root.contains_key(name) {
        root.insert(name, Item::Table(Table::new()));
    }
    root.get_mut(name)?.as_table_like_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FigureKind, drive, drive_with};
    use tier::DriveConfig;

    fn limit(sheet: &DriveSheet) -> f64 {
        match &sheet.config {
            DriveConfig::XPoint(config) => config.power.limit_watts,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_change_wins_over_family_and_file() {
        let plain = drive("p4800x-375").expect("built in");
        // `limit` is the family's, `write` the drive's own.
        let changes = [
            ("xpoint.power.limit".to_owned(), "12 W".to_owned()),
            ("xpoint.power.write".to_owned(), "11 W".to_owned()),
        ];
        let governed = drive_with("p4800x-375", &changes).expect("fits");
        assert_eq!((limit(&plain), limit(&governed)), (18.0, 12.0));
        for (key, value) in &changes {
            let figure = governed.figure(key).expect("it has one");
            assert_eq!((&figure.value, figure.kind), (value, FigureKind::Assumed));
            assert_eq!(figure.source, "changed for this run");
        }
        assert_ne!(plain.config, governed.config);
        assert_eq!(drive_with("p4800x-375", &[]).as_ref(), Ok(&plain));
    }

    #[test]
    fn a_change_that_is_no_figure_is_refused() {
        for (key, said) in [
            ("xpoint.power.limits", "unknown key `xpoint.power.limits`"),
            ("name.first", "is not a section"),
            ("xpoint", "`xpoint` cannot be changed: it is a section"),
            (
                "xpoint.power",
                "`xpoint.power` cannot be changed: it is a section",
            ),
            ("nand.read", "it has no figure `nand.read`"),
        ] {
            let error = drive_with("p4800x-375", &[(key.to_owned(), "12 W".to_owned())]);
            let error = error.expect_err(key).to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
