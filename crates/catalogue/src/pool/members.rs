//! Drives of a pool: loaded by name or path, with the figures that the pool and the user of the run change.

use tier::DriveConfig;

use super::outline::{MemberEntry, ParsedPool, TextRange};
use crate::change::Change;
use crate::locate::{Home, locate};
use crate::section::Findings;
use crate::{DriveSheet, Settings, change};
use text::toml::SourceFile;

/// All members, in order.
#[derive(Default)]
pub(super) struct Drives {
    pub(super) names: Vec<String>,
    /// Place of each member in the text.
    pub(super) places: Vec<TextRange>,
    /// Configuration of each member; `None` if it has a problem.
    pub(super) configs: Vec<Option<DriveConfig>>,
    /// Index of each member's sheet: equal drives share one.
    pub(super) sheets: Vec<Option<usize>>,
}

/// Loads the members in the given condition; `changes` are changed figures of members, as `members.NAME.KEY`.
pub(super) fn load(
    (findings, file): (&Findings, &SourceFile),
    outline: &ParsedPool,
    home: &Home,
    (settings, changes): (&Settings, &[Change]),
) -> Drives {
    let mut drives = Drives::default();
    let mut used = vec![false; changes.len()];
    for entry in &outline.members {
        // Members of this entry that have been read, each with its changes.
        let mut known: Vec<(Vec<Change>, Option<usize>)> = Vec::new();
        let mut failed = false;
        for name in names(entry) {
            let mut own = entry.set.clone();
            for ((key, value), used) in changes.iter().zip(&mut used) {
                let of = |name: &str| of_member(key, name);
                // The name of an entry applies to all its members; no key of a figure begins with a digit.
                let all =
                    of(&entry.name.text).filter(|it| !it.starts_with(|c: char| c.is_ascii_digit()));
                // In a cluster, the name in the file applies to each copy.
                let plain = of(&name[entry.scope.len()..]);
                let plain = plain.or_else(|| {
                    of(entry.plain()).filter(|it| !it.starts_with(|c: char| c.is_ascii_digit()))
                });
                if let Some(rest) = of(&name).or(all).or(plain) {
                    own.push((rest.to_owned(), value.clone()));
                    *used = true;
                }
            }
            let found = known.iter().find(|(changes, _)| *changes == own);
            let sheet = match found {
                Some((_, sheet)) => *sheet,
                None => {
                    // If several members differ in a figure, a problem with them is reported once.
                    let settings = settings_of(findings, settings, &own).filter(|_| !failed);
                    let sheet = settings.and_then(|settings| {
                        let sheet = read((findings, file), entry, home, &settings.figures)?;
                        in_condition(findings, sheet, &settings)
                    });
                    failed |= sheet.is_none();
                    let sheet = sheet.map(|sheet| kept(findings, sheet));
                    known.push((own, sheet));
                    sheet
                }
            };
            let sheets = findings.members.borrow();
            let config = sheet.map(|sheet| sheets[sheet].config.clone());
            drives.names.push(name);
            drives.places.push(entry.name.at.clone());
            drives.configs.push(config);
            drives.sheets.push(sheet);
        }
    }
    for ((key, _), used) in changes.iter().zip(used) {
        if !used {
            let what = format!("`{key}` cannot be changed: it names none of the members");
            let all = drives.names.join("`, `");
            let help = format!("write `members.NAME.KEY`; the members are `{all}`");
            let problem = file.problem(None, what, Some(help));
            findings.problems.borrow_mut().push(problem);
        }
    }
    drives
}

/// Returns NAME, or NAME.0 and so on.
fn names(entry: &MemberEntry) -> Vec<String> {
    let name = &entry.name.text;
    match entry.count {
        None => vec![name.clone()],
        Some(count) => (0..count).map(|index| format!("{name}.{index}")).collect(),
    }
}

/// Returns the key inside the member, from a key `members.NAME.KEY`.
fn of_member<'a>(key: &'a str, name: &str) -> Option<&'a str> {
    let rest = key.strip_prefix("members.")?.strip_prefix(name)?;
    rest.strip_prefix('.')
}

/// Returns the settings of a member with these changes.
fn settings_of(findings: &Findings, settings: &Settings, own: &[Change]) -> Option<Settings> {
    let settings = settings.of_member(own);
    settings
        .map_err(|problems| findings.problems.borrow_mut().extend(problems.0))
        .ok()
}

/// Returns the member in the given condition, unless this is impossible.
fn in_condition(
    findings: &Findings,
    mut sheet: DriveSheet,
    settings: &Settings,
) -> Option<DriveSheet> {
    let problems = sheet.bring_into_condition(settings);
    let fine = problems.is_empty();
    findings.problems.borrow_mut().extend(problems);
    fine.then_some(sheet)
}

/// Stores a sheet, or finds an equal one; returns its index.
fn kept(findings: &Findings, sheet: DriveSheet) -> usize {
    let mut sheets = findings.members.borrow_mut();
    let known = sheets.iter().position(|known| *known == sheet);
    known.unwrap_or_else(|| {
        sheets.push(sheet);
        sheets.len() - 1
    })
}

fn read(
    (findings, file): (&Findings, &SourceFile),
    entry: &MemberEntry,
    home: &Home,
    changes: &[Change],
) -> Option<DriveSheet> {
    let drive = &entry.drive;
    if drive.text.is_empty() {
        return None;
    }
    let record = |what: String, help: Option<String>| {
        let problem = file.problem(drive.at.clone(), what, help);
        findings.problems.borrow_mut().push(problem);
    };
    let located = match locate(&drive.text, "drive", home) {
        Ok(located) => located,
        Err(problems) => {
            let help = problems.0.into_iter().find_map(|problem| problem.help);
            record(format!("there is no drive `{}`", drive.text), help);
            return None;
        }
    };
    if super::is_pool(&located.file) {
        let help = "write its members and tiers here";
        record(
            format!("`{}` is a pool, not a drive", drive.text),
            Some(help.into()),
        );
        return None;
    }
    match change::drive_of(located, changes) {
        Ok(sheet) => Some(sheet),
        Err(problems) => {
            findings.problems.borrow_mut().extend(problems.0);
            None
        }
    }
}
