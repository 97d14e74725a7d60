//! A cursor over one table of a catalogue file. It collects all problems instead of stopping at the first.
//!
//! Each getter takes a key and the range of valid values. On a problem the getter records the problem and returns the
//! lower end of the range, so that its caller can continue and find the next problem. The result is discarded at the
//! end. A key that the file does not have is looked up in its family's file, then in the file that all drives share.
//! Dropping the section reports the keys that no getter has read, so a reader cannot forget to check for misspelt
//! keys.

mod tables;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

use model::Span;
use toml_edit::{Item, TableLike, Value};

use super::figure::FigureTable;
use super::{DriveSheet, Figure, FigureKind};
use text::problem::{Problem, Problems};
use text::quantity::{Bytes, Dollars, Joules, Quantity, Rate, Share, Watts};
use text::toml::{SourceFile, quoted, span_of, strangers};

/// Problems, figures and members found so far: shared by the sections of one drive or host.
#[derive(Debug, Default)]
pub struct Findings {
    /// Problems found so far, in order.
    pub problems: RefCell<Vec<Problem>>,
    /// Every figure read, in the order of reading.
    pub figures: RefCell<Vec<Figure>>,
    /// Drives that are parts of the drive, each once.
    pub members: RefCell<Vec<DriveSheet>>,
    /// Whether the family that the file names could not be read. Missing keys may be in the family.
    lacks_family: Cell<bool>,
}

impl Findings {
    /// Takes the family's file. If it is missing, the reader continues with the drive's own file, so that all
    /// problems are reported together.
    pub fn family<T>(&self, found: Result<T, Problems>) -> Option<T> {
        found
            .map_err(|problems| {
                self.lacks_family.set(true);
                self.problems.borrow_mut().extend(problems.0);
            })
            .ok()
    }
}

/// The table in one file. A section may have a table in the drive's own file, in its family's, and in the file of all
/// drives.
#[derive(Clone, Copy)]
struct Layer<'a> {
    file: &'a SourceFile,
    table: &'a dyn TableLike,
    inherited: bool,
    /// The data sheet that the file names; it is the source of figures without kind and source.
    sheet: Option<&'a str>,
}

/// A figure's value with its place.
struct LocatedValue<'a> {
    value: &'a Value,
    file: &'a SourceFile,
    at: Option<Range<usize>>,
}

/// A cursor over one table; see the module description.
pub struct Section<'a> {
    findings: &'a Findings,
    path: String,
    layers: Vec<Layer<'a>>,
    asked: BTreeSet<String>,
    /// Place for a missing key.
    header: Option<Range<usize>>,
    own: &'a SourceFile,
}

impl<'a> Section<'a> {
    /// Returns the root of a drive's or host's file. `behind` gives the files for missing keys, the nearest first.
    pub(super) fn root(
        findings: &'a Findings,
        own: (&'a SourceFile, &'a dyn TableLike),
        behind: impl IntoIterator<Item = (&'a SourceFile, &'a dyn TableLike)>,
    ) -> Section<'a> {
        let mut layers = vec![Layer {
            file: own.0,
            table: own.1,
            inherited: false,
            sheet: own.1.get("sheet").and_then(Item::as_str),
        }];
        layers.extend(behind.into_iter().map(|(file, table)| Layer {
            file,
            table,
            inherited: true,
            sheet: None,
        }));
        Section {
            findings,
            path: String::new(),
            layers,
            asked: BTreeSet::new(),
            header: None,
            own: own.0,
        }
    }

    fn full(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn record(&self, problem: Problem) {
        self.findings.problems.borrow_mut().push(problem);
    }

    /// Finds the key: in the drive's own file, otherwise in the next layer that has it.
    fn find(&mut self, key: &str) -> Option<(Layer<'a>, &'a Item)> {
        self.asked.insert(key.to_owned());
        self.layers
            .iter()
            .find_map(|&layer| Some((layer, layer.table.get(key)?)))
    }

    fn missing(&self, key: &str, help: &str) {
        if self.findings.lacks_family.get() {
            return;
        }
        let full = self.full(key);
        self.record(self.own.problem(
            self.header.clone(),
            format!("`{full}` is missing"),
            Some(help.to_owned()),
        ));
    }

    /// Checks whether one of the layers has this key.
    pub fn has(&mut self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Reads an optional key with `get`: `section.maybe("idle", |s, key| s.watts(key, 0.0..=50.0))`.
    pub fn maybe<T>(&mut self, key: &str, get: impl FnOnce(&mut Self, &str) -> T) -> Option<T> {
        self.has(key).then(|| get(self, key))
    }

    /// Records that the value of a key is invalid although its form is correct (it contradicts another value, for
    /// example). Not recorded while the family is missing: the other value may be in the family.
    pub fn problem(&mut self, key: &str, what: impl Into<String>, help: impl Into<String>) {
        if self.findings.lacks_family.get() {
            return;
        }
        let (file, at) = match self.find(key) {
            Some((layer, item)) => {
                let value = item
                    .as_table_like()
                    .and_then(|figure| figure.get("value"))
                    .unwrap_or(item);
                (layer.file, span_of(layer.table, key, value))
            }
            None => (self.own, self.header.clone()),
        };
        self.record(file.problem(at, what.into(), Some(help.into())));
    }

    /// Returns the number of problems so far, in all sections.
    pub fn problems(&self) -> usize {
        self.findings.problems.borrow().len()
    }

    /// Records a problem with this section as a whole. Not recorded while the family is missing.
    pub fn whole_problem(&self, what: impl Into<String>, help: impl Into<String>) {
        if self.findings.lacks_family.get() {
            return;
        }
        self.record(
            self.own
                .problem(self.header.clone(), what.into(), Some(help.into())),
        );
    }

    /// Records the problems of another file that this file names.
    pub fn adopt(&self, problems: Problems) {
        self.findings.problems.borrow_mut().extend(problems.0);
    }

    /// Keeps a drive that is a part of this drive.
    pub(super) fn member(&self, sheet: DriveSheet) {
        self.findings.members.borrow_mut().push(sheet);
    }

    /// Returns a table inside this one. If the table does not exist, its keys are reported as missing when they are
    /// read.
    pub fn section(&mut self, key: &str) -> Section<'a> {
        self.asked.insert(key.to_owned());
        let path = self.full(key);
        let mut layers = Vec::new();
        let mut header = self.header.clone();
        for &layer in &self.layers {
            let Some(item) = layer.table.get(key) else {
                continue;
            };
            let at = span_of(layer.table, key, item);
            match item.as_table_like() {
                Some(table) => {
                    if !layer.inherited {
                        header = at;
                    }
                    layers.push(Layer { table, ..layer });
                }
                None => self.record(layer.file.problem(
                    at,
                    format!("`{path}` is {}, not a section", article(item.type_name())),
                    Some(format!("write it as `[{path}]` with its keys below")),
                )),
            }
        }
        Section {
            findings: self.findings,
            path,
            layers,
            asked: BTreeSet::new(),
            header,
            own: self.own,
        }
    }

    /// Reads a plain string that is a name and not a figure: no kind, no source.
    pub fn name(&mut self, key: &str) -> String {
        let help = format!("write `{key} = \"...\"`");
        let Some((layer, item)) = self.find(key) else {
            self.missing(key, &help);
            return String::new();
        };
        match item.as_str() {
            Some(text) if !text.trim().is_empty() => text.to_owned(),
            _ => {
                self.record(layer.file.problem(
                    span_of(layer.table, key, item),
                    format!("`{}` must be a name in quotes", self.full(key)),
                    Some(help),
                ));
                String::new()
            }
        }
    }

    /// Reads a figure of any quantity within `range`; on a problem returns the lower end of the range.
    pub fn get<Q: Quantity>(&mut self, key: &str, range: RangeInclusive<Q>) -> Q {
        let Some(written) = self.figure(key, Q::HELP, &[]) else {
            return *range.start();
        };
        self.check(key, &written, written.value, &range)
            .unwrap_or(*range.start())
    }

    /// Reads a list of at least one figure of any quantity, each within `range`, with one kind and source for all. A
    /// single figure needs no brackets.
    pub fn list<Q: Quantity>(&mut self, key: &str, range: RangeInclusive<Q>) -> Vec<Q> {
        let Some(written) = self.figure(key, Q::HELP, &[]) else {
            return Vec::new();
        };
        let Some(array) = written.value.as_array() else {
            let one = self.check(key, &written, written.value, &range);
            return one.into_iter().collect();
        };
        if array.is_empty() {
            self.add_problem(
                key,
                &written,
                written.value,
                "a list of one or more",
                Q::HELP,
            );
        }
        array
            .iter()
            .filter_map(|value| self.check(key, &written, value, &range))
            .collect()
    }

    /// Reads a time.
    pub fn span(&mut self, key: &str, range: RangeInclusive<Span>) -> Span {
        self.get(key, range)
    }

    /// Reads a size, in bytes.
    pub fn bytes(&mut self, key: &str, range: RangeInclusive<u64>) -> u64 {
        self.get(key, Bytes(*range.start())..=Bytes(*range.end())).0
    }

    /// Reads a rate; `range` is in bytes per second.
    pub fn rate(&mut self, key: &str, range: RangeInclusive<f64>) -> Rate {
        self.get(key, Rate(*range.start())..=Rate(*range.end()))
    }

    /// Reads a count: a whole number without a unit.
    pub fn count<T>(&mut self, key: &str, range: RangeInclusive<T>) -> T
    where
        T: Copy + Into<u64> + TryFrom<u64>,
    {
        let (low, high) = (*range.start(), *range.end());
        T::try_from(self.get(key, low.into()..=high.into())).unwrap_or(low)
    }

    /// Reads a number without a unit.
    pub fn number(&mut self, key: &str, range: RangeInclusive<f64>) -> f64 {
        self.get(key, range)
    }

    /// Reads a share, written in percent and returned as 0 to 1 (`16.3 %` is 0.163); `range` is in shares too.
    pub fn share(&mut self, key: &str, range: RangeInclusive<f64>) -> f64 {
        self.get(key, Share(*range.start())..=Share(*range.end())).0
    }

    /// Reads a power in watts.
    pub fn watts(&mut self, key: &str, range: RangeInclusive<f64>) -> f64 {
        self.get(key, Watts(*range.start())..=Watts(*range.end())).0
    }

    /// Reads an energy in joules.
    pub fn joules(&mut self, key: &str, range: RangeInclusive<f64>) -> f64 {
        self.get(key, Joules(*range.start())..=Joules(*range.end()))
            .0
    }

    /// Reads a price in US dollars, with its date (year, or year and month).
    pub fn price(&mut self, key: &str) -> (f64, String) {
        let Some(written) = self.figure(key, Dollars::HELP, &["date"]) else {
            return (0.0, String::new());
        };
        let dollars = self
            .check(
                key,
                &written,
                written.value,
                &(Dollars(0.01)..=Dollars(1e6)),
            )
            .unwrap_or_default()
            .0;
        let date = self
            .find(key)
            .and_then(|(_, item)| item.as_table_like()?.get("date")?.as_str())
            .unwrap_or_default();
        (dollars, date.to_owned())
    }

    /// Reads a figure that is a text.
    pub fn text(&mut self, key: &str) -> String {
        const HELP: &str = "write a text in quotes";
        let Some(written) = self.figure(key, HELP, &[]) else {
            return String::new();
        };
        match written.value.as_str() {
            Some(text) if !text.trim().is_empty() => text.to_owned(),
            _ => {
                self.add_problem(key, &written, written.value, "a text", HELP);
                String::new()
            }
        }
    }

    /// Reads a list of at least one text.
    pub fn texts(&mut self, key: &str) -> Vec<String> {
        const HELP: &str = "write a list of texts in quotes, such as [\"512\", \"4096\"]";
        let Some(written) = self.figure(key, HELP, &[]) else {
            return Vec::new();
        };
        let texts: Option<Vec<String>> = written
            .value
            .as_array()
            .filter(|array| !array.is_empty())
            .and_then(|array| {
                array
                    .iter()
                    .map(|value| value.as_str().map(str::to_owned))
                    .collect()
            });
        texts.unwrap_or_else(|| {
            self.add_problem(key, &written, written.value, "a list of texts", HELP);
            Vec::new()
        })
    }

    /// Reads a flag.
    pub fn flag(&mut self, key: &str) -> bool {
        const HELP: &str = "write true or false without quotes";
        let Some(written) = self.figure(key, HELP, &[]) else {
            return false;
        };
        written.value.as_bool().unwrap_or_else(|| {
            self.add_problem(key, &written, written.value, "yes or no", HELP);
            false
        })
    }

    /// Reads one of a few words; returns the first choice on a problem. `choices` must not be empty.
    pub fn choice<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> T {
        let words: Vec<&str> = choices.iter().map(|&(word, _)| word).collect();
        let help = format!("write one of {}", quoted(&words));
        let Some(written) = self.figure(key, &help, &[]) else {
            return choices[0].1;
        };
        let chosen = written.value.as_str();
        match choices.iter().find(|(word, _)| Some(*word) == chosen) {
            Some(&(_, choice)) => choice,
            None => {
                self.add_problem(key, &written, written.value, "one of the choices", &help);
                choices[0].1
            }
        }
    }

    /// Returns the value if it has the right quantity and is within the range; otherwise a problem.
    fn check<Q: Quantity>(
        &self,
        key: &str,
        written: &LocatedValue<'_>,
        value: &Value,
        range: &RangeInclusive<Q>,
    ) -> Option<Q> {
        let Some(quantity) = Q::read(value) else {
            self.add_problem(key, written, value, Q::WHAT, Q::HELP);
            return None;
        };
        if range.contains(&quantity) {
            return Some(quantity);
        }
        self.record(written.file.problem(
            value.span().or_else(|| written.at.clone()),
            format!("`{}` is out of range", self.full(key)),
            Some(format!(
                "it must be from {} to {}",
                range.start().show(),
                range.end().show()
            )),
        ));
        None
    }

    fn add_problem(
        &self,
        key: &str,
        written: &LocatedValue<'_>,
        value: &Value,
        what: &str,
        help: &str,
    ) {
        self.record(written.file.problem(
            value.span().or_else(|| written.at.clone()),
            format!("`{}` is not {what}", self.full(key)),
            Some(help.to_owned()),
        ));
    }

    /// Records a figure as printed in the data sheet that its file names.
    fn note_of_sheet(&self, key: String, value: &Value, sheet: &str, layer: Layer<'_>) {
        self.note(Figure {
            key,
            value: as_written(value),
            kind: FigureKind::of_document(sheet),
            source: sheet.to_owned(),
            note: None,
            date: None,
            file: layer.file.origin.clone(),
            inherited: layer.inherited,
        });
    }

    fn note(&self, figure: Figure) {
        self.findings.figures.borrow_mut().push(figure);
    }

    /// Returns the value of a figure, after checking and recording its kind and source; `extra` attributes are also
    /// required.
    fn figure(&mut self, key: &str, help: &str, extra: &[&str]) -> Option<LocatedValue<'a>> {
        let Some((layer, item)) = self.find(key) else {
            self.missing(key, help);
            return None;
        };
        let at = span_of(layer.table, key, item);
        let full = self.full(key);
        if let (Some(value), Some(sheet), []) = (item.as_value(), layer.sheet, extra)
            && !value.is_inline_table()
        {
            self.note_of_sheet(full, value, sheet, layer);
            let file = layer.file;
            return Some(LocatedValue { value, file, at });
        }
        let Some(table) = item.as_table_like() else {
            let shown = item.to_string();
            self.record(layer.file.problem(
                at,
                format!("`{full}` has no kind and no source"),
                Some(format!(
                    "write `{key} = {{ value = {}, kind = \"spec\", source = \"S4-016\" }}`; the kinds are spec, \
                     measured, fitted, assumed",
                    shown.trim()
                )),
            ));
            return None;
        };
        let figure = FigureTable {
            full: &full,
            at: at.clone(),
            file: layer.file,
            table,
        };
        let mut problems = figure.attribute_problems(extra);
        let kind = figure.kind().unwrap_or_else(|problem| {
            problems.push(problem);
            FigureKind::Assumed
        });
        let value = table.get("value").and_then(Item::as_value);
        if value.is_none() {
            let what = format!("`{full}` has no value");
            problems.push(layer.file.problem(at.clone(), what, Some(help.to_owned())));
        }
        self.findings.problems.borrow_mut().extend(problems);
        let value = value?;
        self.note(Figure {
            value: as_written(value),
            kind,
            source: figure.attribute("source").unwrap_or_default().to_owned(),
            note: figure.attribute("note").map(str::to_owned),
            date: figure.attribute("date").map(str::to_owned),
            file: layer.file.origin.clone(),
            inherited: layer.inherited,
            key: full,
        });
        Some(LocatedValue {
            value,
            file: layer.file,
            at,
        })
    }
}

impl Drop for Section<'_> {
    /// Reports the keys that no getter has read.
    fn drop(&mut self) {
        for layer in &self.layers {
            for unknown in strangers(layer.table, &self.asked) {
                let what = format!("unknown key `{}`", self.full(&unknown.key));
                self.record(layer.file.problem(unknown.at, what, Some(unknown.help)));
            }
        }
    }
}

/// Returns the value as in the file, without quotes.
fn as_written(value: &Value) -> String {
    match value {
        Value::String(text) => text.value().clone(),
        Value::Array(array) => {
            let items: Vec<String> = array.iter().map(as_written).collect();
            items.join(", ")
        }
        other => other.to_string().trim().to_owned(),
    }
}

fn article(noun: &str) -> String {
    let vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {noun}", if vowel { "an" } else { "a" })
}
