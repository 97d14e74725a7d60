//! A cursor over one table of a ledger file: like the catalogue's, it gathers every problem instead of stopping at the
//! first, and reports keys that nobody asked for. Values here are plain: a ledger's figures have their source by their
//! row id.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

use toml_edit::{Item, TableLike, Value};

use crate::catalogue::section::SourceFile;
use crate::catalogue::{key_span, quoted, span_of};
use crate::problem::{Problem, nearest};

/// One ledger file at hand, with what is wrong with it.
pub(crate) struct Page<'a> {
    pub(crate) file: &'a SourceFile,
    pub(crate) problems: RefCell<Vec<Problem>>,
}

impl<'a> Page<'a> {
    pub(crate) fn new(file: &'a SourceFile) -> Page<'a> {
        Page {
            file,
            problems: RefCell::default(),
        }
    }

    /// Records a problem at these bytes.
    pub(crate) fn wrong(
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

/// Tables of a list of them, each with where it stands.
pub(crate) type Tables<'a> = Vec<(&'a dyn TableLike, Option<Range<usize>>)>;

/// A cursor over one table. See the head of this file.
pub(crate) struct Cursor<'a> {
    page: &'a Page<'a>,
    table: &'a dyn TableLike,
    /// What messages call the table.
    name: String,
    at: Option<Range<usize>>,
    asked: BTreeSet<&'static str>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(
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

    /// Where the value of a key is, or the table if there is no such key.
    pub(crate) fn place(&self, key: &str) -> Option<Range<usize>> {
        self.table
            .get(key)
            .and_then(|item| span_of(self.table, key, item))
            .or_else(|| self.at.clone())
    }

    /// Records a problem with a key's value.
    pub(crate) fn wrong(&self, key: &str, what: impl Into<String>, help: impl Into<String>) {
        let what = format!("{}: {}", self.name, what.into());
        self.page.wrong(self.place(key), what, help);
    }

    /// Whether the key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The item of a key, if it is there.
    pub(crate) fn item(&mut self, key: &'static str) -> Option<&'a Item> {
        self.asked.insert(key);
        self.table.get(key)
    }

    /// The value of a key, if it is there and a value.
    pub(crate) fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        let item = self.item(key)?;
        if item.as_value().is_none() {
            self.wrong(key, format!("`{key}` is a table, not a value"), "");
        }
        item.as_value()
    }

    /// A text, if the key is there.
    pub(crate) fn maybe_text(&mut self, key: &'static str) -> Option<String> {
        let value = self.value(key)?;
        match value.as_str() {
            Some(text) if !text.trim().is_empty() => Some(text.to_owned()),
            _ => {
                let what = format!("`{key}` must be a text in quotes");
                self.wrong(key, what, "");
                None
            }
        }
    }

    /// A text that must be there.
    pub(crate) fn text(&mut self, key: &'static str) -> String {
        if !self.table.contains_key(key) {
            self.asked.insert(key);
            self.wrong(key, format!("`{key}` is missing"), "write a text in quotes");
        }
        self.maybe_text(key).unwrap_or_default()
    }

    /// A list of texts, or one text for a list of one; empty if the key is absent.
    pub(crate) fn texts(&mut self, key: &'static str) -> Vec<String> {
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
            self.wrong(key, what, "such as [\"--rw=randread\", \"--bs=4k\"]");
            Vec::new()
        })
    }

    /// A whole number within `range`, if the key is there.
    pub(crate) fn count(
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
            self.wrong(key, format!("`{key}` must be a whole number"), help);
        }
        number
    }

    /// The tables of `[[key]]`; none if the key is absent.
    pub(crate) fn tables(&mut self, key: &'static str) -> Tables<'a> {
        let Some(item) = self.item(key) else {
            return Vec::new();
        };
        let Some(tables) = item.as_array_of_tables() else {
            let what = format!("`{key}` is not a list of tables");
            self.page
                .wrong(item.span(), what, format!("write [[{key}]]"));
            return Vec::new();
        };
        let tables = tables.iter();
        tables
            .map(|table| (table as &dyn TableLike, table.span()))
            .collect()
    }

    /// Keys and values of a table of values, if the key is there.
    pub(crate) fn pairs(&mut self, key: &'static str) -> Vec<(String, &'a Value)> {
        let Some(item) = self.item(key) else {
            return Vec::new();
        };
        let Some(table) = item.as_table_like() else {
            let help = format!("such as {key} = {{ \"xpoint.power.limit\" = \"12 W\" }}");
            self.wrong(key, format!("`{key}` must be a table"), help);
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for (name, item) in table.iter() {
            match item.as_value() {
                Some(value) => pairs.push((name.to_owned(), value)),
                None => {
                    let what = format!("`{key}.{name}` is a table, not a value");
                    self.wrong(key, what, "put dotted keys in quotes");
                }
            }
        }
        pairs
    }
}

impl Drop for Cursor<'_> {
    /// Reports the keys that nobody asked for.
    fn drop(&mut self) {
        for (key, item) in self.table.iter() {
            if self.asked.contains(key) {
                continue;
            }
            let help = match nearest(key, self.asked.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let asked: Vec<&str> = self.asked.iter().copied().collect();
                    format!("the keys here are {}", quoted(&asked))
                }
            };
            let at = key_span(self.table, key).or_else(|| item.span());
            let what = format!("{}: unknown key `{key}`", self.name);
            self.page.wrong(at, what, help);
        }
    }
}
