//! A cursor over the keys of one tier: settings that the owner chooses, and figures of hardware and software.
//!
//! A setting is written plainly (`chunk = "512 KiB"`) and has a default. A figure (the cost of software, the level at
//! which a product begins to throttle) is written with its kind and source, and so is its default. A figure written
//! plainly, as on the command line, counts as assumed. On a problem a getter records the problem and returns the
//! default. Dropping the cursor reports the keys that no getter has read.

#![allow(
    dead_code,
    reason = "tier kinds that use most of the settings are listed separately"
)]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use model::Span;
use toml_edit::Value;

use super::outline::{Form, Key, LocatedName, TextRange};
use crate::section::Findings;
use crate::{Figure, FigureKind};
use text::problem::nearest;
use text::quantity::{Bytes, Quantity, Rate, Share, Watts};
use text::toml::{SourceFile, quoted};

/// Default of an optional figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fallback {
    /// Value as in a file, such as `5 ms`.
    pub(super) value: &'static str,
    /// Kind, such as `assumed`.
    pub(super) kind: FigureKind,
    /// Source, or the reason for an assumption.
    pub(super) source: &'static str,
}

impl Fallback {
    /// Creates one that is assumed, for a reason.
    pub(super) const fn assumed(value: &'static str, source: &'static str) -> Fallback {
        Fallback {
            value,
            kind: FigureKind::Assumed,
            source,
        }
    }
}

/// A cursor over the keys of a tier, or of a table in it; see the module description.
pub(super) struct Keys<'a> {
    findings: &'a Findings,
    file: &'a SourceFile,
    /// Name in messages, such as `tier.tank`.
    path: String,
    keys: &'a [Key],
    at: TextRange,
    asked: BTreeSet<String>,
    /// Index of the tier's entry, and the length of its name in `path`.
    tier: (usize, usize),
    /// All present settings, for callers that display the pool.
    settings: &'a RefCell<Vec<CurrentSetting>>,
}

/// A present setting.
pub(super) struct CurrentSetting {
    /// Index of the tier's entry.
    pub(super) tier: usize,
    /// Key below the tier.
    pub(super) key: String,
    pub(super) value: String,
    /// All allowed values, if the setting is one of a few words.
    pub(super) words: Vec<String>,
}

/// Parses sizes as fio writes them, in powers of 1024.
fn binary(text: &str) -> Option<u64> {
    let last = text.chars().last()?.to_ascii_lowercase();
    let power = "kmgt".find(last)? as u32 + 1;
    let number = text[..text.len() - 1].trim_end().parse::<u64>().ok()?;
    number.checked_mul(1024u64.pow(power))
}

/// Parses bytes as files (`512 KiB`) and command lines (`512k`) write them.
pub(super) fn bytes_of(value: &Value) -> Option<u64> {
    match Bytes::read(value) {
        Some(Bytes(bytes)) => Some(bytes),
        None => binary(value.as_str()?),
    }
}

impl<'a> Keys<'a> {
    pub(super) fn new(
        (findings, file): (&'a Findings, &'a SourceFile),
        (path, tier): (String, usize),
        (keys, at): (&'a [Key], TextRange),
        settings: &'a RefCell<Vec<CurrentSetting>>,
    ) -> Keys<'a> {
        Keys {
            findings,
            file,
            tier: (tier, path.len()),
            path,
            keys,
            at,
            asked: BTreeSet::new(),
            settings,
        }
    }

    fn record(&self, at: TextRange, what: String, help: String) {
        let help = (!help.is_empty()).then_some(help);
        let problem = self.file.problem(at, what, help);
        self.findings.problems.borrow_mut().push(problem);
    }

    fn find(&mut self, key: &str) -> Option<&'a Key> {
        self.asked.insert(key.to_owned());
        self.keys.iter().find(|it| it.name == key)
    }

    fn full(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }

    /// Checks whether the key is present.
    pub(super) fn has(&mut self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Records that the value of a key is invalid although its form is correct, or that the key is missing.
    pub(super) fn problem(&mut self, key: &str, what: impl Into<String>, help: impl Into<String>) {
        let at = self.find(key).and_then(|it| it.at.clone());
        self.record(at.or_else(|| self.at.clone()), what.into(), help.into());
    }

    /// Returns the table of this key; an empty one if the key is absent.
    pub(super) fn section(&mut self, key: &str) -> Keys<'a> {
        let path = self.full(key);
        let found = self.find(key);
        let keys: &[Key] = match found.map(|it| &it.form) {
            Some(Form::Table(keys)) => keys,
            Some(_) => {
                let help = format!("write `{key} = {{ ... }}` with its keys inside");
                self.problem(key, format!("`{path}` is not a table"), help);
                &[]
            }
            None => &[],
        };
        let at = found.and_then(|it| it.at.clone());
        let at = at.or_else(|| self.at.clone());
        Keys {
            path,
            keys,
            at,
            asked: BTreeSet::new(),
            ..*self
        }
    }

    /// Returns the names that a key gives, of members, slices or tiers; `None` if the key is absent.
    pub(super) fn names(&mut self, key: &str) -> Option<Vec<LocatedName>> {
        let found = self.find(key)?;
        let named = |value: &Value| {
            Some(LocatedName {
                text: value.as_str()?.to_owned(),
                at: value.span().or_else(|| found.at.clone()),
            })
        };
        let names = match &found.form {
            Form::Names(names) => Some(names.clone()),
            Form::Value(Value::Array(array)) => array.iter().map(named).collect(),
            Form::Value(value) => named(value).map(|one| vec![one]),
            Form::Table(_) => None,
        };
        if names.is_none() {
            let what = format!("`{}` does not name anything", self.full(key));
            let help = "write the names of members, slices or tiers, such as `\"sas.*\"` or `[\"a\", \"b\"]`";
            self.problem(key, what, help);
        }
        Some(names.unwrap_or_default())
    }

    /// Returns the value of a plain key. A setting that names parts or has keys below it is a problem.
    fn plain(&mut self, key: &str, help: &str) -> Option<&'a Value> {
        match &self.find(key)?.form {
            Form::Value(value) => Some(value),
            _ => {
                let what = format!("`{}` is not one value", self.full(key));
                self.problem(key, what, help);
                None
            }
        }
    }

    fn note(&self, key: &str, value: String) {
        let (tier, name) = self.tier;
        self.settings.borrow_mut().push(CurrentSetting {
            tier,
            key: self.full(key).split_off(name + 1),
            value,
            words: Vec::new(),
        });
    }

    /// Records the allowed words of the last setting.
    fn note_words(&self, words: &[&str]) {
        if let Some(noted) = self.settings.borrow_mut().last_mut() {
            noted.words = words.iter().map(ToString::to_string).collect();
        }
    }

    /// Reads a setting: `read` parses the value, `allowed` checks it and `show` prints it.
    fn setting<T: Copy>(
        &mut self,
        key: &str,
        default: T,
        help: &str,
        read: impl Fn(&Value) -> Option<T>,
        show: impl Fn(T) -> String,
    ) -> T {
        let value = match self.plain(key, help) {
            None => default,
            Some(value) => read(value).unwrap_or_else(|| {
                let written = value.as_str().map(str::to_owned);
                let written = written.unwrap_or_else(|| value.to_string().trim().to_owned());
                let what = format!("`{}` cannot be `{written}`", self.full(key));
                self.problem(key, what, help);
                default
            }),
        };
        self.note(key, show(value));
        value
    }

    /// Reads any quantity within `range`.
    pub(super) fn get<Q: Quantity>(
        &mut self,
        key: &str,
        range: RangeInclusive<Q>,
        default: Q,
    ) -> Q {
        let help = format!(
            "{}; from {} to {}",
            Q::HELP,
            range.start().show(),
            range.end().show()
        );
        let read = |value: &Value| Q::read(value).filter(|it| range.contains(it));
        self.setting(key, default, &help, read, Q::show)
    }

    /// Reads a size in bytes.
    pub(super) fn bytes(&mut self, key: &str, range: RangeInclusive<u64>, default: u64) -> u64 {
        let show = |bytes| Bytes(bytes).show();
        let help = format!(
            "{}; from {} to {}",
            Bytes::HELP,
            show(*range.start()),
            show(*range.end())
        );
        let read = |value: &Value| bytes_of(value).filter(|it| range.contains(it));
        self.setting(key, default, &help, read, show)
    }

    /// Reads a time.
    pub(super) fn span(&mut self, key: &str, range: RangeInclusive<Span>, default: Span) -> Span {
        self.get(key, range, default)
    }

    /// Reads a share, written in percent and returned as 0 to 1.
    pub(super) fn share(&mut self, key: &str, range: RangeInclusive<f64>, default: f64) -> f64 {
        let shares = Share(*range.start())..=Share(*range.end());
        self.get(key, shares, Share(default)).0
    }

    /// Reads a whole number.
    pub(super) fn count(&mut self, key: &str, range: RangeInclusive<u64>, default: u64) -> u64 {
        self.get(key, range, default)
    }

    /// Reads a flag.
    pub(super) fn flag(&mut self, key: &str, default: bool) -> bool {
        let help = "write true or false, without quotes";
        let flag = self.setting(key, default, help, Value::as_bool, |it| it.to_string());
        self.note_words(&["false", "true"]);
        flag
    }

    /// Reads one of a few words.
    pub(super) fn choice<T: Copy + PartialEq>(
        &mut self,
        key: &str,
        choices: &[(&str, T)],
        default: T,
    ) -> T {
        let words: Vec<&str> = choices.iter().map(|&(word, _)| word).collect();
        let help = format!("write one of {}", quoted(&words));
        let read = |value: &Value| {
            let word = value.as_str()?;
            choices.iter().find(|it| it.0 == word).map(|it| it.1)
        };
        let show = |choice: T| {
            let found = choices.iter().find(|it| it.1 == choice);
            found.map_or_else(String::new, |it| it.0.to_owned())
        };
        let choice = self.setting(key, default, &help, read, show);
        self.note_words(&words);
        choice
    }

    /// Reads a figure: any quantity within `range`.
    pub(super) fn figure<Q: Quantity>(
        &mut self,
        key: &str,
        range: RangeInclusive<Q>,
        default: Fallback,
    ) -> Q {
        let of = |text: &str| Q::read(&crate::change::as_value(text));
        let fallback = of(default.value).unwrap_or(*range.start());
        let mut figure = Figure {
            key: self.full(key),
            value: default.value.to_owned(),
            kind: default.kind,
            source: default.source.to_owned(),
            note: None,
            date: None,
            file: String::from("drivelab"),
            inherited: true,
        };
        let value = match self.stated(key, &mut figure) {
            Some(value) => Q::read(&value).filter(|it| range.contains(it)).or_else(|| {
                let what = format!("`{}` cannot be `{}`", self.full(key), figure.value);
                let (low, high) = (range.start().show(), range.end().show());
                self.problem(key, what, format!("{}; from {low} to {high}", Q::HELP));
                None
            }),
            None => None,
        };
        self.findings.figures.borrow_mut().push(figure);
        value.unwrap_or(fallback)
    }

    /// Returns the written value of a figure and records its kind and source; `None` if the figure is absent.
    fn stated(&mut self, key: &str, figure: &mut Figure) -> Option<Value> {
        let found = self.find(key)?;
        let value = match &found.form {
            Form::Value(value) => {
                figure.kind = FigureKind::Assumed;
                figure.source = String::from("written for this pool");
                value.clone()
            }
            _ => {
                let mut attributes = self.section(key);
                let help = format!(
                    "write `{key} = {{ value = \"{}\", kind = \"assumed\", source = \"...\" }}`",
                    figure.value
                );
                figure.kind = attributes
                    .word("kind", &help, FigureKind::named)
                    .unwrap_or(FigureKind::Assumed);
                figure.source = attributes
                    .word("source", &help, |it| Some(it.to_owned()))
                    .unwrap_or_default();
                if attributes.has("note") {
                    figure.note = attributes.word("note", &help, |it| Some(it.to_owned()));
                }
                let value = attributes.plain("value", &help).cloned();
                if value.is_none() {
                    let what = format!("`{}` has no value", self.full(key));
                    self.problem(key, what, help);
                }
                value?
            }
        };
        figure.value = match &value {
            Value::String(text) => text.value().clone(),
            other => other.to_string().trim().to_owned(),
        };
        self.file.origin.clone_into(&mut figure.file);
        figure.inherited = false;
        Some(value)
    }

    /// Reads a required attribute of a figure.
    fn word<T>(&mut self, key: &str, help: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.plain(key, help).and_then(Value::as_str);
        let value = text.filter(|it| !it.trim().is_empty()).and_then(read);
        if value.is_none() {
            let what = match text {
                Some(text) => format!("`{}` cannot be `{text}`", self.full(key)),
                None => format!("`{}` is missing", self.full(key)),
            };
            self.problem(key, what, help);
        }
        value
    }

    /// Reads a figure that is a rate; `range` in bytes per second.
    pub(super) fn rate(
        &mut self,
        key: &str,
        range: RangeInclusive<f64>,
        default: Fallback,
    ) -> Rate {
        self.figure(key, Rate(*range.start())..=Rate(*range.end()), default)
    }

    /// Reads a figure that is a power; `range` in watts.
    pub(super) fn watts(
        &mut self,
        key: &str,
        range: RangeInclusive<f64>,
        default: Fallback,
    ) -> f64 {
        self.figure(key, Watts(*range.start())..=Watts(*range.end()), default)
            .0
    }
}

impl Drop for Keys<'_> {
    /// Reports the keys that no getter has read.
    fn drop(&mut self) {
        for key in self.keys {
            if self.asked.contains(&key.name) {
                continue;
            }
            let asked = || self.asked.iter().map(String::as_str);
            let help = match nearest(&key.name, asked()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys here are {}", quoted(&asked().collect::<Vec<_>>())),
            };
            let what = format!("unknown key `{}`", self.full(&key.name));
            self.record(key.at.clone(), what, help);
        }
    }
}
