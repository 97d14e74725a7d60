//! Reader of a pool file: TOML with members, slices and tiers becomes an outline.

use toml_edit::{Item, TableLike, Value};

use super::keys::bytes_of;
use super::outline::{
    ClusterEntry, Form, Key, LocatedName, MemberEntry, ParsedPool, SliceEntry, TextRange, TierEntry,
};
use crate::Change;
use text::problem::Problem;
use text::quantity::{Bytes, Quantity};
use text::toml::{Cursor, Page, SourceFile, key_span, parse, span_of};

/// Maximum number of drives of one kind.
const MOST: u64 = 1024;

/// Checks whether the text describes a pool and not a drive.
pub(super) fn is_pool(file: &SourceFile) -> bool {
    parse(file).is_ok_and(|document| {
        let has = |key: &str| document.get(key).is_some_and(Item::is_table_like);
        has("tier") || has("members") || has("slices")
    })
}

/// Reads the file into an outline, with the problems of its form.
pub(super) fn read(file: &SourceFile) -> (ParsedPool, Vec<Problem>) {
    let document = match parse(file) {
        Ok(document) => document,
        Err(problems) => return (ParsedPool::default(), problems.0),
    };
    let page = Page::new(file);
    let mut outline = ParsedPool::default();
    {
        let mut root = Cursor::new(&page, "pool", document.as_table(), None);
        outline.name = Some(root.text("name"));
        if root.has("serve") {
            outline.serve = Some(names(&mut root, "serve"));
        }
        for (name, at, table) in tables(&mut root, "members") {
            outline.members.push(member(&page, (name, at), table));
        }
        for (name, at, table) in tables(&mut root, "slices") {
            outline.slices.push(slice(&page, (name, at), table));
        }
        for (name, at, table) in tables(&mut root, "tier") {
            outline.tiers.extend(tier(&page, (name, at), table));
        }
        outline.cluster = cluster(&mut root);
    }
    (outline, page.problems.into_inner())
}

/// Returns the tables in a table of tables, each with its name.
fn tables<'a>(
    root: &mut Cursor<'a>,
    key: &'static str,
) -> Vec<(String, TextRange, &'a dyn TableLike)> {
    let Some(item) = root.item(key) else {
        return Vec::new();
    };
    let Some(table) = item.as_table_like() else {
        root.add_problem(
            key,
            format!("`{key}` is not a table"),
            format!("write [{key}]"),
        );
        return Vec::new();
    };
    let mut found = Vec::new();
    for (name, item) in table.iter() {
        let at = key_span(table, name).or_else(|| span_of(table, name, item));
        match item.as_table_like() {
            Some(inner) => found.push((name.to_owned(), at, inner)),
            None => root.wrong_at(
                at,
                format!("`{key}.{name}` is not a table"),
                match key {
                    "members" => format!("write `{name} = {{ drive = \"...\" }}`"),
                    "slices" => format!("write `{name} = {{ of = \"...\", size = \"16 GiB\" }}`"),
                    _ => format!("write `{name} = {{ kind = \"mirror\", members = \"...\" }}`"),
                },
            ),
        }
    }
    found
}

/// Reads names with their places: a list of texts, or one text.
fn names(cursor: &mut Cursor<'_>, key: &'static str) -> Vec<LocatedName> {
    let places: Vec<TextRange> = match cursor.value(key) {
        Some(Value::Array(array)) => array.iter().map(Value::span).collect(),
        _ => Vec::new(),
    };
    let whole = cursor.place(key);
    let texts = cursor.texts(key).into_iter().enumerate();
    let named = |(index, text): (usize, String)| LocatedName {
        text,
        at: places
            .get(index)
            .cloned()
            .flatten()
            .or_else(|| whole.clone()),
    };
    texts.map(named).collect()
}

/// Reads `[cluster]` and its tables.
fn cluster(root: &mut Cursor<'_>) -> Option<ClusterEntry> {
    if !root.has("cluster") {
        return None;
    }
    let at = root.place("cluster");
    let mut all = Vec::new();
    for (name, key) in [("", "cluster"), ("network", "network"), ("node", "node")] {
        let Some(item) = root.item(key) else {
            continue;
        };
        let Some(table) = item.as_table_like() else {
            root.add_problem(
                key,
                format!("`{key}` is not a table"),
                format!("write [{key}]"),
            );
            continue;
        };
        match name {
            "" => all.extend(keys(table)),
            name => all.push(Key {
                name: name.to_owned(),
                at: root.place(key),
                form: Form::Table(keys(table)),
            }),
        }
    }
    Some(ClusterEntry { at, keys: all })
}

fn member(page: &Page<'_>, (name, at): (String, TextRange), table: &dyn TableLike) -> MemberEntry {
    let mut cursor = Cursor::new(page, format!("members.{name}"), table, at.clone());
    let words = |value: &Value| match value {
        Value::String(text) => text.value().clone(),
        other => other.to_string().trim().to_owned(),
    };
    let set = cursor.pairs("set").into_iter();
    MemberEntry {
        drive: LocatedName {
            text: cursor.text("drive"),
            at: cursor.place("drive"),
        },
        count: cursor.count("count", 1..=MOST).map(|count| count as u16),
        set: set
            .map(|(key, value)| -> Change { (key, words(value)) })
            .collect(),
        name: LocatedName { text: name, at },
        scope: String::new(),
    }
}

fn slice(page: &Page<'_>, (name, at): (String, TextRange), table: &dyn TableLike) -> SliceEntry {
    let mut cursor = Cursor::new(page, format!("slices.{name}"), table, at.clone());
    if !cursor.has("of") {
        let help = "name the members that it is a part of, such as `of = \"nda.*\"`";
        cursor.add_problem("of", "`of` is missing", help);
    }
    let mut size = |key| {
        let value = cursor.value(key)?;
        let bytes = bytes_of(value);
        if bytes.is_none() {
            cursor.add_problem(key, format!("`{key}` is not a size"), Bytes::HELP);
        }
        // In whole blocks, as for drives.
        bytes.map(|bytes| bytes / 4096 * 4096)
    };
    SliceEntry {
        size: size("size"),
        offset: size("offset"),
        of: names(&mut cursor, "of"),
        name: LocatedName { text: name, at },
    }
}

fn tier(
    page: &Page<'_>,
    (name, at): (String, TextRange),
    table: &dyn TableLike,
) -> Option<TierEntry> {
    let (mut kind, mut rest) = (None, Vec::new());
    for key in keys(table) {
        match (&*key.name, &key.form) {
            ("kind", Form::Value(Value::String(word))) => {
                kind = Some(LocatedName {
                    text: word.value().clone(),
                    at: key.at,
                });
            }
            _ => rest.push(key),
        }
    }
    let Some(kind) = kind else {
        let what = format!("tier.{name}: `kind` is missing");
        page.add_problem(at, what, format!("the kinds are {}", super::kind_words()));
        return None;
    };
    Some(TierEntry {
        name: LocatedName { text: name, at },
        kind,
        keys: rest,
        scope: String::new(),
    })
}

fn keys(table: &dyn TableLike) -> Vec<Key> {
    let key = |(name, item): (&str, &Item)| {
        let form = match (item.as_value(), item.as_table_like()) {
            (_, Some(table)) => Form::Table(keys(table)),
            (Some(value), None) => Form::Value(value.clone()),
            (None, None) => return None,
        };
        Some(Key {
            name: name.to_owned(),
            at: span_of(table, name, item),
            form,
        })
    };
    table.iter().filter_map(key).collect()
}
