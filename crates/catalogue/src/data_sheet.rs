//! A maker's data sheet that becomes a drive of the catalogue. The data sheet has the format of a drive file. Fixed
//! figures come from its family, the number of dies follows from the capacity, and the caller that simulates the
//! drive supplies the solved figures.
//!
//! A figure that neither the sheet nor its family gives is reported as in any drive file.

use std::sync::Arc;

use tier::DriveConfig;
use toml_edit::{DocumentMut, Item};

use super::change::{NewFigure, set_as};
use super::locate::{CatalogueFile, Home, locate};
use super::{DriveRole, DriveSheet, Ratings, read_drive};
use text::problem::{Problem, Problems};
use text::toml::{parse, span_of};

/// A data sheet that can become a drive; see the module description.
pub struct DataSheet {
    located: CatalogueFile,
    /// The drive with the figures of its family and as many dies as its capacity needs.
    pub drive: DriveSheet,
    /// The document with the published figures.
    pub document: String,
    /// Ratings that the document gives.
    pub ratings: Ratings,
    /// The family that supplies the figures that the sheet does not give.
    pub family: String,
}

/// A solved figure: its key, its value as text, and its source.
#[derive(Clone, Debug, PartialEq)]
pub struct SolvedFigure {
    /// Dotted key.
    pub key: String,
    /// Value as text, with its unit.
    pub value: String,
    /// `spec` if a rating determines the figure; `assumed` if only the family and the capacity do, or if the rating
    /// was not checked.
    pub kind: &'static str,
    /// Source of the figure.
    pub source: String,
}

impl DataSheet {
    /// Opens the sheet in this file, or the sheet of a drive of the catalogue, with `family` or with the family that
    /// it names.
    ///
    /// # Errors
    /// All problems in the file.
    pub fn open(path: &str, family: Option<&str>) -> Result<DataSheet, Problems> {
        let located = locate(path, "drive", &Home::BuiltIn)?;
        let drive = read_drive(&located, DriveRole::DataSheet(family))?;
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
                "only drives with NAND can be made from a data sheet",
                "their section is [nand]; files of other media must be complete",
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

    /// Returns a problem with a rating, at the place of the rating.
    pub fn problem(&self, key: &str, what: String, help: String) -> Problem {
        let file = &self.located.file;
        let document = parse(file).ok();
        let at = document.as_ref().and_then(|document| {
            let ratings = document.get("ratings")?.as_table_like()?;
            span_of(ratings, key, ratings.get(key)?)
        });
        file.problem(at, what, Some(help))
    }

    /// Returns the drive with these figures, and the text of its file.
    ///
    /// # Errors
    /// The figures contradict each other or are out of range.
    pub fn with_figures(&self, figures: &[SolvedFigure]) -> Result<(DriveSheet, String), Problems> {
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
            let stated = NewFigure {
                value: super::change::as_value(&figure.value),
                kind: figure.kind,
                source: &figure.source,
                note: None,
            };
            set_as(document.as_table_mut(), &figure.key, &stated);
        }
        let text = document.to_string();
        let mut located = CatalogueFile {
            id: self.located.id.clone(),
            file: self.located.file.clone(),
            home: self.located.home.clone(),
        };
        located.file.text = Arc::from(&*text);
        Ok((read_drive(&located, DriveRole::Alone(&[]))?, text))
    }
}
