//! A pool as written, before its names are resolved: the common form of files and expressions.

use std::ops::Range;

use toml_edit::Value;

use crate::Change;

/// Place in the text, in bytes.
pub(super) type TextRange = Option<Range<usize>>;

/// A word with its place.
#[derive(Clone, Debug)]
pub(super) struct LocatedName {
    pub(super) text: String,
    pub(super) at: TextRange,
}

/// Drives of one kind.
#[derive(Debug)]
pub(super) struct MemberEntry {
    pub(super) name: LocatedName,
    /// A drive's name, or the path of its file.
    pub(super) drive: LocatedName,
    /// Number of drives, named NAME.0, NAME.1 and so on. `None` means one drive, named NAME.
    pub(super) count: Option<u16>,
    /// Changed figures of the drive.
    pub(super) set: Vec<Change>,
    /// Prefix of the name in a cluster, which copies the entry.
    pub(super) scope: String,
}

/// Parts of members.
#[derive(Debug)]
pub(super) struct SliceEntry {
    pub(super) name: LocatedName,
    /// Names of members, possibly with `*`.
    pub(super) of: Vec<LocatedName>,
    /// Bytes of each slice; `None` means all that remains.
    pub(super) size: Option<u64>,
    /// First byte of each slice; `None` means the end of the previous slice.
    pub(super) offset: Option<u64>,
}

/// A tier as written.
#[derive(Debug)]
pub(super) struct TierEntry {
    pub(super) name: LocatedName,
    pub(super) kind: LocatedName,
    /// Keys of the tier.
    pub(super) keys: Vec<Key>,
    /// Prefix of its name, and of the names in it, in a cluster, which copies the entry.
    pub(super) scope: String,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) name: String,
    /// Place of the value, or otherwise of the key.
    pub(super) at: TextRange,
    pub(super) form: Form,
}

/// Value of a key.
#[derive(Clone, Debug)]
pub(super) enum Form {
    Value(Value),
    /// Keys below this one.
    Table(Vec<Key>),
    /// Names of members, slices or tiers.
    Names(Vec<LocatedName>),
}

/// Description of the nodes of a cluster, each with copies of the rest of the file.
#[derive(Debug)]
pub(super) struct ClusterEntry {
    pub(super) at: TextRange,
    /// Keys of `[cluster]`, with `[network]` and `[node]` as tables.
    pub(super) keys: Vec<Key>,
}

/// A parsed pool with unresolved names.
#[derive(Debug, Default)]
pub(super) struct ParsedPool {
    pub(super) name: Option<String>,
    pub(super) members: Vec<MemberEntry>,
    pub(super) slices: Vec<SliceEntry>,
    pub(super) tiers: Vec<TierEntry>,
    /// Names of the served tiers; `None` means the topmost tiers.
    pub(super) serve: Option<Vec<LocatedName>>,
    pub(super) cluster: Option<ClusterEntry>,
}

impl MemberEntry {
    /// Returns the name in the file.
    pub(super) fn plain(&self) -> &str {
        &self.name.text[self.scope.len()..]
    }
}

impl TierEntry {
    /// Returns the name in the file.
    pub(super) fn plain(&self) -> &str {
        &self.name.text[self.scope.len()..]
    }
}

impl Key {
    /// Sets the value of a dotted key and creates the key if it does not exist; `None` if a part of the key is not a
    /// table.
    pub(super) fn set(keys: &mut Vec<Key>, name: &str, value: Value, at: TextRange) -> Option<()> {
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
