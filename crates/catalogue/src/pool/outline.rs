//! A pool as written, before its names mean anything: what a file and an expression have in common.

use std::ops::Range;

use toml_edit::Value;

use crate::Change;

/// Where something is in the text, in bytes.
pub(super) type At = Option<Range<usize>>;

/// A word with its place.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) text: String,
    pub(super) at: At,
}

/// Drives of one kind.
#[derive(Debug)]
pub(super) struct MemberEntry {
    pub(super) name: Named,
    /// A drive's name, or the path of its file.
    pub(super) drive: Named,
    /// How many, which then are NAME.0, NAME.1 and so on; without it there is one, called NAME.
    pub(super) count: Option<u16>,
    /// Figures of the drive that are changed.
    pub(super) set: Vec<Change>,
    /// What its name has before that of the file, where a cluster has several of it.
    pub(super) scope: String,
}

/// Parts of members.
#[derive(Debug)]
pub(super) struct SliceEntry {
    pub(super) name: Named,
    /// Names of members, perhaps with `*`.
    pub(super) of: Vec<Named>,
    /// Bytes of each; all that is left without it.
    pub(super) size: Option<u64>,
    /// Its first byte; where the last one ends without it.
    pub(super) offset: Option<u64>,
}

/// A tier.
#[derive(Debug)]
pub(super) struct TierEntry {
    pub(super) name: Named,
    pub(super) kind: Named,
    /// What it says besides.
    pub(super) keys: Vec<Key>,
    /// What its name, and the names in it, have before those of the file, where a cluster has several of it.
    pub(super) scope: String,
}

/// A key with what is written for it.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) name: String,
    /// Where the value is, or else the key.
    pub(super) at: At,
    pub(super) form: Form,
}

/// What is written for a key.
#[derive(Clone, Debug)]
pub(super) enum Form {
    Value(Value),
    /// Keys below this one.
    Table(Vec<Key>),
    /// Names of members, slices or tiers.
    Names(Vec<Named>),
}

/// That there are nodes, each with several of all the rest.
#[derive(Debug)]
pub(super) struct ClusterEntry {
    pub(super) at: At,
    /// Of `[cluster]`, with `[network]` and `[node]` as tables in it.
    pub(super) keys: Vec<Key>,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) name: Option<String>,
    pub(super) members: Vec<MemberEntry>,
    pub(super) slices: Vec<SliceEntry>,
    pub(super) tiers: Vec<TierEntry>,
    /// Names of the tiers that are served; those on which nothing stands without it.
    pub(super) serve: Option<Vec<Named>>,
    pub(super) cluster: Option<ClusterEntry>,
}

impl MemberEntry {
    /// Its name in the file.
    pub(super) fn plain(&self) -> &str {
        &self.name.text[self.scope.len()..]
    }
}

impl TierEntry {
    /// Its name in the file.
    pub(super) fn plain(&self) -> &str {
        &self.name.text[self.scope.len()..]
    }
}

impl Key {
    /// The key that a dotted name leads to, made if there is none; `None` if a part of it is no table.
    pub(super) fn set(keys: &mut Vec<Key>, name: &str, value: Value, at: At) -> Option<()> {
        let (first, rest) = match name.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (name, None),
        };
        let index = keys.iter().position(|key| key.name == first);
        let index = index.unwrap_or_else(|| {
            keys.push(Key {
                name: first.to_owned(),
                at: at.clone(),
                form: Form::Table(Vec::new()),
            });
            keys.len() - 1
        });
        let key = &mut keys[index];
        match (rest, &mut key.form) {
            (Some(rest), Form::Table(below)) => Key::set(below, rest, value, at),
            (Some(_), _) => None,
            (None, form) => {
                *form = Form::Value(value);
                key.at = at;
                Some(())
            }
        }
    }
}
