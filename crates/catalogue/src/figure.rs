//! One figure of a catalogue file: a table with value, kind, source and an optional note.

use std::ops::Range;

use toml_edit::{Item, TableLike};

use super::FigureKind;
use text::problem::{Problem, nearest};
use text::toml::{SourceFile, quoted, span_of};

/// A figure as its file gives it.
pub(super) struct FigureTable<'a> {
    /// Dotted key of the figure.
    pub(super) full: &'a str,
    /// Place in the file.
    pub(super) at: Option<Range<usize>>,
    /// File that contains the figure.
    pub(super) file: &'a SourceFile,
    /// Attributes of the figure.
    pub(super) table: &'a dyn TableLike,
}

impl<'a> FigureTable<'a> {
    /// Returns the text of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        self.table.get(name).and_then(Item::as_str)
    }

    /// Returns a problem with one attribute, at its place or, if it is absent, at the place of the figure.
    fn problem(&self, attribute: &str, what: String, help: Option<String>) -> Problem {
        let place = self.table.get(attribute).and_then(Item::span);
        self.file
            .problem(place.or_else(|| self.at.clone()), what, help)
    }

    /// Returns problems with attributes that are unknown, absent or empty.
    pub(super) fn attribute_problems(&self, extra: &[&str]) -> Vec<Problem> {
        let full = self.full;
        let known: Vec<&str> = ["value", "kind", "source", "note"]
            .iter()
            .chain(extra)
            .copied()
            .collect();
        let mut problems = Vec::new();
        for (attribute, item) in self.table.iter() {
            if !known.contains(&attribute) {
                let near = nearest(attribute, known.iter().copied());
                problems.push(self.file.problem(
                    span_of(self.table, attribute, item),
                    format!("`{full}` has an unknown attribute `{attribute}`"),
                    Some(match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("a figure has {}", quoted(&known)),
                    }),
                ));
            }
        }
        for required in ["source"].iter().chain(extra) {
            if self
                .attribute(required)
                .is_none_or(|text| text.trim().is_empty())
            {
                let what = format!("`{full}` has no {required}");
                problems.push(self.problem(
                    required,
                    what,
                    Some(attribute_help(required).to_owned()),
                ));
            }
        }
        if self.table.contains_key("note") && self.attribute("note").is_none() {
            let what = format!("the note of `{full}` must be a text in quotes");
            problems.push(self.problem("note", what, None));
        }
        problems
    }

    /// Returns the `kind` attribute.
    pub(super) fn kind(&self) -> Result<FigureKind, Problem> {
        let word = self.attribute("kind");
        word.and_then(FigureKind::named).ok_or_else(|| {
            let what = match word {
                Some(word) => format!("`{}` has the unknown kind `{word}`", self.full),
                None => format!("`{}` has no kind", self.full),
            };
            self.problem("kind", what, Some(attribute_help("kind").to_owned()))
        })
    }
}

fn attribute_help(attribute: &str) -> &'static str {
    match attribute {
        "kind" => "the kinds are spec, measured, fitted, assumed",
        "source" => {
            "name the rows of figures.csv, such as `source = \"S4-016\"`, or for an assumption the reason"
        }
        _ => "write year and month, such as `date = \"2017-11\"`",
    }
}
