//! Pools of drives as written: in a TOML file of their own, or as an expression on a command line.
//!
//! Both become an outline (`outline.rs`) and then follow the same path: members are loaded (`members.rs`), names
//! looked up and tiers read (`assembly.rs`), each by the reader of its kind. To add a kind, add a file here with a
//! [`KindReader`], and its line in [`KINDS`]. A file's `[cluster]` copies all other parts of the file (`cluster.rs`).

mod array;
mod assembly;
mod cluster;
mod concat;
mod dial;
mod expression;
mod file;
mod intent_log;
mod keys;
mod log_structured;
mod members;
mod mirror;
mod outline;
mod raidz;
mod read_cache;
mod sheet;
mod stripe;
mod write_back_cache;
mod written;

use std::sync::Arc;

use tier::Kind;

use self::assembly::TierReader;
use self::outline::{Key, ParsedPool};
use crate::change::{Change, as_value};
use crate::locate::{CatalogueFile, Home};
use crate::section::Findings;
use crate::{DriveSheet, Settings};
use text::problem::{Problem, Problems};
use text::toml::{SourceFile, quoted};

pub use self::dial::TunableSetting;
pub use self::sheet::{ChildRole, PoolSheet, TierSheet};
pub use self::written::text_of_expression;

/// Reader of one kind of tier.
struct KindReader {
    /// Word in files and expressions.
    word: &'static str,
    /// Reads the roles, in the order in which the model numbers its children, and the settings. The result after a
    /// problem is discarded.
    read: fn(&mut TierReader<'_, '_>) -> Kind,
}

/// Readers of all kinds of tiers.
const KINDS: &[KindReader] = &[
    mirror::READER,
    stripe::READER,
    concat::READER,
    raidz::READER,
    array::RAID5,
    array::RAID6,
    intent_log::READER,
    read_cache::READER,
    write_back_cache::READER,
    log_structured::READER,
    cluster::READER,
];

fn kind_words() -> String {
    let words: Vec<&str> = KINDS.iter().map(|kind| kind.word).collect();
    quoted(&words)
}

/// Checks whether the text is an expression and not a name or a path.
pub(super) fn is_expression(words: &str) -> bool {
    expression::is_expression(words)
}

/// Checks whether a file describes a pool and not a drive.
pub(super) fn is_pool(file: &SourceFile) -> bool {
    file::is_pool(file)
}

/// Returns the pool of an expression, with changed figures and its members in the given condition.
///
/// # Errors
/// All problems in it.
pub(super) fn of_expression(words: &str, settings: &Settings) -> Result<DriveSheet, Problems> {
    let (file, outline) = outlined(words)?;
    let located = CatalogueFile {
        id: words.to_owned(),
        file,
        home: Home::BuiltIn,
    };
    read(&located, outline, Vec::new(), settings)
}

/// Parses an expression; returns its text and its outline.
fn outlined(words: &str) -> Result<(SourceFile, ParsedPool), Problems> {
    let file = SourceFile {
        origin: String::from("pool"),
        text: Arc::from(words),
    };
    let outline = expression::read(&file).map_err(|problem| Problems(vec![problem]))?;
    Ok((file, outline))
}

/// Returns the pool in a file, with changed figures and its members in the given condition.
///
/// # Errors
/// All problems in it.
pub(super) fn of_file(
    located: &CatalogueFile,
    settings: &Settings,
) -> Result<DriveSheet, Problems> {
    let (outline, problems) = file::read(&located.file);
    read(located, outline, problems, settings)
}

fn read(
    located: &CatalogueFile,
    mut outline: ParsedPool,
    problems: Vec<Problem>,
    settings: &Settings,
) -> Result<DriveSheet, Problems> {
    let findings = Findings::default();
    findings.problems.borrow_mut().extend(problems);
    let (of_members, own): (Vec<Change>, Vec<Change>) = settings
        .figures
        .iter()
        .cloned()
        .partition(|(key, _)| key.starts_with("members."));
    for (key, value) in own {
        if set(&mut outline, &key, &value).is_none() {
            let what = format!("`{key}` cannot be changed: this pool has no such part");
            let help = "write `members.NAME.KEY` or `tier.NAME.KEY`";
            let problem = located.file.problem(None, what, Some(help.into()));
            findings.problems.borrow_mut().push(problem);
        }
    }
    let scopes = cluster::spread(&mut outline, &located.file, &findings);
    let drives = members::load(
        (&findings, &located.file),
        &outline,
        &located.home,
        (settings, &of_members),
    );
    let assembled = assembly::assemble(&findings, &located.file, &outline, &drives);
    let as_written = |mut problem: Problem| {
        for scope in &scopes {
            problem.what = problem.what.replace(scope, "");
        }
        problem
    };
    let problems = findings.problems.take().into_iter().map(as_written);
    let problems = Problems(told_once(problems));
    let figures = told_once(findings.figures.take().into_iter());
    findings.figures.replace(figures);
    match (assembled, problems.0.is_empty()) {
        (Some((config, pool)), true) => {
            sheet::pool_sheet(located, &outline, config, pool, &findings)
        }
        _ => Err(problems),
    }
}

/// Removes duplicates: all copies of a cluster report the same problems and figures.
fn told_once<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut told: Vec<T> = Vec::new();
    for one in all {
        if !told.contains(&one) {
            told.push(one);
        }
    }
    told
}

/// Sets a key of a tier, `tier.NAME.KEY`, or of a cluster, `cluster.KEY`, `network.KEY` or `node.KEY`. `None` if the
/// tier does not exist, or if a part of the key is not a table.
fn set(outline: &mut ParsedPool, key: &str, value: &str) -> Option<()> {
    if let Some(cluster) = &mut outline.cluster {
        let own = key.strip_prefix("cluster.");
        let below = key.starts_with("network.") || key.starts_with("node.");
        if let Some(own) = own.or_else(|| below.then_some(key)) {
            return Key::set(&mut cluster.keys, own, as_value(value), None);
        }
    }
    let rest = key.strip_prefix("tier.")?;
    let below = |name: &str| rest.strip_prefix(name)?.strip_prefix('.');
    let tiers = outline.tiers.iter_mut();
    let tier = tiers.filter(|tier| below(&tier.name.text).is_some());
    // The longest name, if one name is a prefix of another.
    let tier = tier.max_by_key(|tier| tier.name.text.len())?;
    let key = rest[tier.name.text.len() + 1..].to_owned();
    Key::set(&mut tier.keys, &key, as_value(value), None)
}
