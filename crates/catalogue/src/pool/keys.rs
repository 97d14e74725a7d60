//! A cursor over what one tier says about itself: settings that its owner chooses, and figures of the world.
//!
//! A setting is written plainly (`chunk = "512 KiB"`) and has a default. A figure of the world (what software costs, when
//! a product begins to throttle) is written with its kind and source, and so is its default; written plainly, as on the
//! command line, it counts as assumed. On a problem a getter records it and returns the default. A key that nobody asked
//! for is reported when the cursor is dropped.

#![allow(dead_code, reason = "the kinds that need most of it come one by one")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use model::Span;
use toml_edit::Value;

use super::outline::{At, Form, Key, Named};
use crate::section::Findings;
use crate::{Figure, Kind};
use text::problem::nearest;
use text::quantity::{Bytes, Quantity, Rate, Share, Watts};
use text::toml::{SourceFile, quoted};

/// A figure of the world that a file need not say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fallback {
    /// As a file would write it, such as `5 ms`.
    pub(super) value: &'static str,
    /// Its kind.
    pub(super) kind: Kind,
    /// Its source, or the reason for an assumption.
    pub(super) source: &'static str,
}

/// A cursor over the keys of a tier, or of a table in it. See the head of this file.
pub(super) struct Keys<'a> {
    findings: &'a Findings,
    file: &'a SourceFile,
    /// What messages call it, such as `tier.tank`.
    path: String,
    keys: &'a [Key],
    at: At,
    asked: BTreeSet<String>,
    /// Number of the tier's entry, and how much of `path` is its name.
    tier: (usize, usize),
    /// Every setting as it is now, for who shows the pool.
    settings: &'a RefCell<Vec<Noted>>,
}

/// A setting as it is now.
pub(super) struct Noted {
    /// The tier's entry.
    pub(super) tier: usize,
    /// Below the tier.
    pub(super) key: String,
    pub(super) value: String,
    /// All that it can be, if it is one of a few words.
    pub(super) words: Vec<String>,
}

/// Sizes as fio and its kind write them, in powers of 1024.
fn binary(text: &str) -> Option<u64> {
    let last = text.chars().last()?.to_ascii_lowercase();
    let power = "kmgt".find(last)? as u32 + 1;
    let number = text[..text.len() - 1].trim_end().parse::<u64>().ok()?;
    number.checked_mul(1024u64.pow(power))
}

/// Bytes as files (`512 KiB`) and command lines (`512k`) write them.
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
        (keys, at): (&'a [Key], At),
        settings: &'a RefCell<Vec<Noted>>,
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

    fn record(&self, at: At, what: String, help: String) {
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

    /// Whether the key is written.
    pub(super) fn has(&mut self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Records that a key's value is wrong although its form is right, or that the key is missing.
    pub(super) fn problem(&mut self, key: &str, what: impl Into<String>, help: impl Into<String>) {
        let at = self.find(key).and_then(|it| it.at.clone());
        self.record(at.or_else(|| self.at.clone()), what.into(), help.into());
    }

    /// The table of this key; an empty one if it is not written.
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

    /// The names that a key gives, if it is written: of members, slices or tiers.
    pub(super) fn names(&mut self, key: &str) -> Option<Vec<Named>> {
        let found = self.find(key)?;
        let named = |value: &Value| {
            Some(Named {
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

    /// The value that a plain key has; a setting that names things or has keys below it is a problem.
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
        self.settings.borrow_mut().push(Noted {
            tier,
            key: self.full(key).split_off(name + 1),
            value,
            words: Vec::new(),
        });
    }

    /// Notes all that the setting just read can be.
    fn note_words(&self, words: &[&str]) {
        if let Some(noted) = self.settings.borrow_mut().last_mut() {
            noted.words = words.iter().map(ToString::to_string).collect();
        }
    }

    /// A setting that `read` understands, `allowed` finds right and `show` writes.
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

    /// Any quantity within `range`.
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

    /// A size in bytes.
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

    /// A time.
    pub(super) fn span(&mut self, key: &str, range: RangeInclusive<Span>, default: Span) -> Span {
        self.get(key, range, default)
    }

    /// A share of a whole, written in percent and returned as 0 to 1.
    pub(super) fn share(&mut self, key: &str, range: RangeInclusive<f64>, default: f64) -> f64 {
        let shares = Share(*range.start())..=Share(*range.end());
        self.get(key, shares, Share(default)).0
    }

    /// A whole number.
    pub(super) fn count(&mut self, key: &str, range: RangeInclusive<u64>, default: u64) -> u64 {
        self.get(key, range, default)
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, key: &str, default: bool) -> bool {
        let help = "write true or false, without quotes";
        let flag = self.setting(key, default, help, Value::as_bool, |it| it.to_string());
        self.note_words(&["false", "true"]);
        flag
    }

    /// One of a few words.
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

    /// A figure of the world: any quantity within `range`.
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

    /// A figure's value as written, if it is, with its kind and source noted.
    fn stated(&mut self, key: &str, figure: &mut Figure) -> Option<Value> {
        let found = self.find(key)?;
        let value = match &found.form {
            Form::Value(value) => {
                figure.kind = Kind::Assumed;
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
                    .word("kind", &help, Kind::named)
                    .unwrap_or(Kind::Assumed);
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

    /// An attribute of a figure that must be there.
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

    /// A figure of the world that is a rate; `range` in bytes a second.
    pub(super) fn rate(
        &mut self,
        key: &str,
        range: RangeInclusive<f64>,
        default: Fallback,
    ) -> Rate {
        self.figure(key, Rate(*range.start())..=Rate(*range.end()), default)
    }

    /// A figure of the world that is a power; `range` in watts.
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
    /// Reports the keys that nobody asked for.
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
