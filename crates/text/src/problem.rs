//! A problem with an input: file, place, problem, and the allowed form. All problems of one input are collected
//! before they are reported, so that a user corrects a file once.

mod render;

use std::fmt;
use std::ops::Range;

/// One problem with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file (as the user named it), or `command line`.
    pub origin: String,
    /// Place in the input.
    pub place: Place,
    /// The problem, with the key and the value.
    pub what: String,
    /// The allowed values, or the next step.
    pub help: Option<String>,
}

/// Place of a problem in an input.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Place {
    /// The input as a whole.
    #[default]
    Whole,
    /// Outside the input: a defect of the program itself.
    Program,
    /// A line, counted from 1.
    Line(usize),
    /// A byte offset in a binary file (after decompression).
    Byte(u64),
    /// A range of bytes in an available text, shown with its line.
    Text {
        /// The text of the whole input.
        text: std::sync::Arc<str>,
        /// The invalid bytes.
        range: Range<usize>,
    },
}

/// All problems of an input; never empty as an error.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Creates one problem with an input as a whole.
    pub fn whole(origin: impl Into<String>, what: impl Into<String>) -> Problems {
        Problems(vec![Problem {
            origin: origin.into(),
            place: Place::Whole,
            what: what.into(),
            help: None,
        }])
    }

    /// Creates a defect of the program itself, which no other input would avoid.
    pub fn defect(origin: impl Into<String>, what: impl Into<String>) -> Problems {
        let mut problems = Problems::whole(origin, what);
        problems.0[0].place = Place::Program;
        problems
    }

    /// Checks whether the problem is a defect of the program and not of its input.
    pub fn is_defect(&self) -> bool {
        self.0.iter().any(|problem| problem.place == Place::Program)
    }

    /// Returns `Ok(value)` if there are no problems.
    pub fn or<T>(self, value: T) -> Result<T, Problems> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        match &self.place {
            Place::Whole => {}
            Place::Program => write!(f, ": a defect of drivelab")?,
            Place::Line(line) => write!(f, ":{line}")?,
            Place::Byte(offset) => write!(f, ": byte {offset}")?,
            Place::Text { text, range } => {
                let before = &text[..range.start.min(text.len())];
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
                write!(f, ":{line}:{column}")?;
            }
        }
        write!(f, ": {}", self.what)?;
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "error: {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Returns the name in `known` that is closest to `written`, if one is close enough.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(written, name), name))
        .filter(|&(distance, name)| distance <= name.len().max(written.len()).div_ceil(3).max(1))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}
