//! A maker's data sheet on its way to a drive of the catalogue: the same file, with the figures that its family has as
//! they are, dies for its capacity, and figures solved by whoever simulates it put in.
//!
//! What is no figure of a sheet and no family's is reported as in any drive's file.

use std::sync::Arc;

use model::media::DriveConfig;
use toml_edit::{DocumentMut, Item};

use super::change::{Stated, set_as};
use super::locate::{Home, Located, locate};
use super::{DriveSheet, Ratings, Role, read_drive};
use text::problem::{Problem, Problems};
use text::toml::{parse, span_of};

/// A data sheet that can become a drive. See the head of this file.
pub struct DataSheet {
    located: Located,
    /// As its family has it, with dies for its capacity.
    pub drive: DriveSheet,
    /// The document that it is from.
    pub document: String,
    /// What the drive is rated at.
    pub ratings: Ratings,
    /// The family that lends it what the sheet does not say.
    pub family: String,
}

/// A figure to put in: its key, its value in words, and where it is from.
#[derive(Clone, Debug, PartialEq)]
pub struct Solved {
    /// Dotted key.
    pub key: String,
    /// In words, with its unit.
    pub value: String,
    /// `spec` if a rating sets it, `assumed` if only the family and the capacity do.
    pub kind: &'static str,
    /// Where it is from.
    pub source: String,
}

impl DataSheet {
    /// The sheet in this file, or that of a drive of the catalogue, as a drive of this family, or of the one that it names.
    ///
    /// # Errors
    /// Everything wrong with it.
    pub fn open(path: &str, family: Option<&str>) -> Result<DataSheet, Problems> {
        let located = locate(path, "drive", &Home::BuiltIn)?;
        let drive = read_drive(&located, Role::DataSheet(family))?;
        let mut problems = Vec::new();
        let mut lacks = |what: &str, help: &str| {
            let what = what.to_owned();
            problems.push(located.file.problem(None, what, Some(help.to_owned())));
        };
        if drive.sheet.is_none() {
            lacks(
                "`sheet` is missing",
                "name the maker's document, with number or revision: sheet = \"...\"",
            );
        }
        let family = family.map(str::to_owned).or_else(|| drive.family.clone());
        if family.is_none() {
            lacks(
                "`family` is missing",
                "name what it is built like: family = \"...\", or --family",
            );
        }
        if drive.ratings.is_none() {
            lacks(
                "no rating is given",
                "write [ratings] with at least one of sequential_read, sequential_write, random_read, random_write",
            );
        }
        if !matches!(drive.config, DriveConfig::Nand(_)) {
            lacks(
                "only drives with NAND are made from a sheet",
                "their section is [nand]; other media are described in full",
            );
        }
        match (drive.sheet.clone(), drive.ratings.clone(), family) {
            (Some(document), Some(ratings), Some(family)) if problems.is_empty() => Ok(DataSheet {
                located,
                drive,
                document,
                ratings,
                family,
            }),
            _ => Err(Problems(problems)),
        }
    }

    /// A problem with a rating, at its place.
    pub fn problem(&self, key: &str, what: String, help: String) -> Problem {
        let file = &self.located.file;
        let document = parse(file).ok();
        let at = document.as_ref().and_then(|document| {
            let ratings = document.get("ratings")?.as_table_like()?;
            span_of(ratings, key, ratings.get(key)?)
        });
        file.problem(at, what, Some(help))
    }

    /// The drive with these figures, and the text of its file.
    ///
    /// # Errors
    /// The figures contradict each other or are out of their range.
    pub fn with(&self, figures: &[Solved]) -> Result<(DriveSheet, String), Problems> {
        let origin = &self.located.file.origin;
        let mut document: DocumentMut = self
            .located
            .file
            .text
            .parse()
            .map_err(|error| Problems::whole(&**origin, format!("not TOML: {error}")))?;
        if document.get("family").and_then(Item::as_str) != Some(&self.family) {
            document["family"] = toml_edit::value(&*self.family);
        }
        for figure in figures {
            let stated = Stated {
                value: super::change::as_value(&figure.value),
                kind: figure.kind,
                source: &figure.source,
                note: None,
            };
            set_as(document.as_table_mut(), &figure.key, &stated);
        }
        let text = document.to_string();
        let mut located = Located {
            id: self.located.id.clone(),
            file: self.located.file.clone(),
            home: self.located.home.clone(),
        };
        located.file.text = Arc::from(&*text);
        Ok((read_drive(&located, Role::Alone(&[]))?, text))
    }
}
