//! TOML files: their text with places, and a cursor over one table. The cursor collects all problems instead of
//! stopping at the first, and reports keys that no getter has read. Values here are plain. The values of the
//! catalogue have kinds and sources and may come from a family's file; they have a cursor of their own.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use toml_edit::{Document, Item, TableLike, Value};

use crate::problem::{Place, Problem, Problems, nearest};

/// Text of one file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Path of the file, for messages.
    pub origin: String,
    /// Content of the file.
    pub text: Arc<str>,
}

impl SourceFile {
    /// Returns a problem at these bytes of the file, or with the whole file.
    pub fn problem(&self, at: Option<Range<usize>>, what: String, help: Option<String>) -> Problem {
        let place = at.map_or(Place::Whole, |range| Place::Text {
            text: Arc::clone(&self.text),
            range,
        });
        Problem {
            origin: self.origin.clone(),
            place,
            what,
            help,
        }
    }
}

/// Parses the document of a file.
///
/// # Errors
/// The file is not TOML.
pub fn parse(file: &SourceFile) -> Result<Document<&str>, Problems> {
    Document::parse(&*file.text).map_err(|error| {
        let message = error.message().trim().replace('\n', "; ");
        Problems(vec![file.problem(
            error.span(),
            format!("not TOML: {message}"),
            None,
        )])
    })
}

/// Returns the place of an item: of its value, or of its key (a table made by dotted keys has no place of its own).
pub fn span_of(table: &dyn TableLike, key: &str, item: &Item) -> Option<Range<usize>> {
    item.span().or_else(|| key_span(table, key))
}

/// Joins words in backquotes, with commas.
pub fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// Returns the place of a key.
pub fn key_span(table: &dyn TableLike, key: &str) -> Option<Range<usize>> {
    table.get_key_value(key).and_then(|(key, _)| key.span())
}

/// A key that no getter has read.
pub struct UnknownKey {
    /// Name of the key.
    pub key: String,
    /// Place of the key.
    pub at: Option<Range<usize>>,
    /// A similar known key, or the list of allowed keys.
    pub help: String,
}

/// Returns the keys of a table that are not in `asked`.
pub fn strangers(table: &dyn TableLike, asked: &BTreeSet<String>) -> Vec<UnknownKey> {
    let unknown = table.iter().filter(|(key, _)| !asked.contains(*key));
    unknown
        .map(|(key, item)| UnknownKey {
            key: key.to_owned(),
            at: key_span(table, key).or_else(|| item.span()),
            help: match nearest(key, asked.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
                    format!("the keys here are {}", quoted(&asked))
                }
            },
        })
        .collect()
}

/// One file with its problems.
pub struct Page<'a> {
    /// Text of the file.
    pub file: &'a SourceFile,
    /// Problems found so far.
    pub problems: RefCell<Vec<Problem>>,
}

impl<'a> Page<'a> {
    /// Creates a page without problems.
    pub fn new(file: &'a SourceFile) -> Page<'a> {
        Page {
            file,
            problems: RefCell::default(),
        }
    }

    /// Records a problem at these bytes.
    pub fn add_problem(
        &self,
        at: Option<Range<usize>>,
        what: impl Into<String>,
        help: impl Into<String>,
    ) {
        let help: String = help.into();
        let help = (!help.is_empty()).then_some(help);
        let problem = self.file.problem(at, what.into(), help);
        self.problems.borrow_mut().push(problem);
    }
}

/// Tables of a list, each with its place.
pub type Tables<'a> = Vec<(&'a dyn TableLike, Option<Range<usize>>)>;

/// A cursor over one table; see the module description.
pub struct Cursor<'a> {
    page: &'a Page<'a>,
    table: &'a dyn TableLike,
    /// Name of the table in messages.
    name: String,
    at: Option<Range<usize>>,
    asked: BTreeSet<String>,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor over a table that messages call `name`; `at` is its place.
    pub fn new(
        page: &'a Page<'a>,
        name: impl Into<String>,
        table: &'a dyn TableLike,
        at: Option<Range<usize>>,
    ) -> Cursor<'a> {
        Cursor {
            page,
            table,
            name: name.into(),
            at,
            asked: BTreeSet::new(),
        }
    }

    /// Returns the place of a key's value, or of the table if the key is absent.
    pub fn place(&self, key: &str) -> Option<Range<usize>> {
        self.table
            .get(key)
            .and_then(|item| span_of(self.table, key, item))
            .or_else(|| self.at.clone())
    }

    /// Records a problem with a key's value.
    pub fn add_problem(&self, key: &str, what: impl Into<String>, help: impl Into<String>) {
        let what = format!("{}: {}", self.name, what.into());
        self.page.add_problem(self.place(key), what, help);
    }

    /// Records a problem at these bytes.
    pub fn wrong_at(
        &self,
        at: Option<Range<usize>>,
        what: impl Into<String>,
        help: impl Into<String>,
    ) {
        let what = format!("{}: {}", self.name, what.into());
        self.page.add_problem(at, what, help);
    }

    /// Checks whether the key is present.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Returns the item of a key; `None` if the key is absent.
    pub fn item(&mut self, key: &'static str) -> Option<&'a Item> {
        self.asked.insert(key.to_owned());
        self.table.get(key)
    }

    /// Returns the value of a key; `None` if the key is absent or not a value.
    pub fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        let item = self.item(key)?;
        if item.as_value().is_none() {
            self.add_problem(key, format!("`{key}` is a table, not a value"), "");
        }
        item.as_value()
    }

    /// Reads an optional text.
    pub fn maybe_text(&mut self, key: &'static str) -> Option<String> {
        let value = self.value(key)?;
        match value.as_str() {
            Some(text) if !text.trim().is_empty() => Some(text.to_owned()),
            _ => {
                let what = format!("`{key}` must be a text in quotes");
                self.add_problem(key, what, "");
                None
            }
        }
    }

    /// Reads a required text.
    pub fn text(&mut self, key: &'static str) -> String {
        if !self.table.contains_key(key) {
            self.asked.insert(key.to_owned());
            self.add_problem(key, format!("`{key}` is missing"), "write a text in quotes");
        }
        self.maybe_text(key).unwrap_or_default()
    }

    /// Reads a list of texts, or one text as a list of one; empty if the key is absent.
    pub fn texts(&mut self, key: &'static str) -> Vec<String> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let list: Option<Vec<String>> = match value {
            Value::String(text) => Some(vec![text.value().clone()]),
            Value::Array(array) => array
                .iter()
                .map(|value| value.as_str().map(str::to_owned))
                .collect(),
            _ => None,
        };
        list.unwrap_or_else(|| {
            let what = format!("`{key}` must be a list of texts");
            self.add_problem(key, what, "such as [\"--rw=randread\", \"--bs=4k\"]");
            Vec::new()
        })
    }

    /// Reads a list of texts, or one text with spaces between them; empty if the key is absent.
    pub fn words(&mut self, key: &'static str) -> Vec<String> {
        match self.table.get(key).and_then(Item::as_str) {
            Some(_) => {
                let text = self.text(key);
                text.split_whitespace().map(str::to_owned).collect()
            }
            None => self.texts(key),
        }
    }

    /// Reads an optional whole number within `range`.
    pub fn count(
        &mut self,
        key: &'static str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Option<u64> {
        let value = self.value(key)?;
        let number = value
            .as_integer()
            .and_then(|whole| u64::try_from(whole).ok());
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let help = format!("from {} to {}, without quotes", range.start(), range.end());
            self.add_problem(key, format!("`{key}` must be a whole number"), help);
        }
        number
    }

    /// Returns a cursor over the table of a key; `None` if the key is absent or not a table.
    pub fn table(&mut self, key: &'static str) -> Option<Cursor<'a>> {
        let item = self.item(key)?;
        let Some(table) = item.as_table_like() else {
            let what = format!("`{key}` is not a table");
            self.page
                .add_problem(item.span(), what, format!("write [{key}]"));
            return None;
        };
        Some(Cursor::new(self.page, key, table, item.span()))
    }

    /// Returns the tables of `[[key]]` or of `key = [{ ... }]`; none if the key is absent.
    pub fn tables(&mut self, key: &'static str) -> Tables<'a> {
        let tables: Option<Tables<'a>> = match self.item(key) {
            None => return Vec::new(),
            Some(Item::ArrayOfTables(tables)) => {
                let tables = tables.iter();
                Some(tables.map(|table| (table as _, table.span())).collect())
            }
            Some(Item::Value(Value::Array(list))) => {
                let tables = list.iter();
                tables
                    .map(|value| Some((value.as_inline_table()? as _, value.span())))
                    .collect()
            }
            Some(_) => None,
        };
        tables.unwrap_or_else(|| {
            let what = format!("`{key}` is not a list of tables");
            let help = format!("write [[{key}]] for each, or {key} = [{{ ... }}, {{ ... }}]");
            self.page.add_problem(self.place(key), what, help);
            Vec::new()
        })
    }

    /// Returns keys and values of an optional table of values.
    pub fn pairs(&mut self, key: &'static str) -> Vec<(String, &'a Value)> {
        let Some(item) = self.item(key) else {
            return Vec::new();
        };
        let Some(table) = item.as_table_like() else {
            let help = format!("such as {key} = {{ \"xpoint.power.limit\" = \"12 W\" }}");
            self.add_problem(key, format!("`{key}` must be a table"), help);
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for (name, item) in table.iter() {
            match item.as_value() {
                Some(value) => pairs.push((name.to_owned(), value)),
                None => {
                    let what = format!("`{key}.{name}` is a table, not a value");
                    self.add_problem(key, what, "put dotted keys in quotes");
                }
            }
        }
        pairs
    }
}

impl Drop for Cursor<'_> {
    /// Reports the keys that no getter has read.
    fn drop(&mut self) {
        for unknown in strangers(self.table, &self.asked) {
            let what = format!("{}: unknown key `{}`", self.name, unknown.key);
            self.page.add_problem(unknown.at, what, unknown.help);
        }
    }
}
