//! What is wrong with an input: file, place, what, and what would be right. All problems of one input are gathered
//! before any is reported, so that a user mends a file once.

mod render;

use std::fmt;
use std::ops::Range;

/// One thing wrong with one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file (as the user named it), or `command line`.
    pub origin: String,
    /// Where in it.
    pub place: Place,
    /// What is wrong, naming the key and the value.
    pub what: String,
    /// What would be right.
    pub help: Option<String>,
}

/// Where in an input a problem is.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Place {
    /// The input as a whole.
    #[default]
    Whole,
    /// Not in the input: a defect of the program itself.
    Program,
    /// A line, counted from 1.
    Line(usize),
    /// A byte offset in a binary file (after decompression).
    Byte(u64),
    /// A range of bytes in a text that is at hand, to be shown with the line it is in.
    Text {
        /// The text of the whole input.
        text: std::sync::Arc<str>,
        /// The bytes at fault.
        range: Range<usize>,
    },
}

/// Everything wrong with an input; never empty when it is an error.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// One problem with an input as a whole.
    pub fn whole(origin: impl Into<String>, what: impl Into<String>) -> Problems {
        Problems(vec![Problem {
            origin: origin.into(),
            place: Place::Whole,
            what: what.into(),
            help: None,
        }])
    }

    /// A defect of the program itself, which no other input would mend.
    pub fn defect(origin: impl Into<String>, what: impl Into<String>) -> Problems {
        let mut problems = Problems::whole(origin, what);
        problems.0[0].place = Place::Program;
        problems
    }

    /// Whether the program is at fault, and not what it was given.
    pub fn is_defect(&self) -> bool {
        self.0.iter().any(|problem| problem.place == Place::Program)
    }

    /// `Ok(value)` if there are no problems.
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

/// The name in `known` that `written` most likely meant, if one is near.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(written, name), name))
        .filter(|&(distance, name)| distance <= name.len().max(written.len()).div_ceil(3).max(1))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}
