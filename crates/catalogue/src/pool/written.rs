//! Converts an expression into the equivalent file, which can be kept and edited.
//!
//! Parts that an expression cannot contain (slices, changed figures of members, served tiers) have their defaults in
//! the file too. Drives that the expression names by a path keep that path.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use super::outline::{Form, Key, ParsedPool};
use text::problem::Problems;

/// Returns the TOML file of the pool that an expression describes.
///
/// # Errors
/// The first syntax error of the expression; names are not looked up.
pub fn text_of_expression(words: &str) -> Result<String, Problems> {
    let (_, outline) = super::outlined(words)?;
    Ok(text_of(words.trim(), &outline))
}

fn text_of(name: &str, outline: &ParsedPool) -> String {
    let mut document = DocumentMut::new();
    document.insert("name", Item::Value(name.into()));
    let mut members = Table::new();
    for member in &outline.members {
        let mut entry = InlineTable::new();
        entry.insert("drive", (&*member.drive.text).into());
        if let Some(count) = member.count {
            entry.insert("count", i64::from(count).into());
        }
        members.insert(&member.name.text, Item::Value(Value::InlineTable(entry)));
    }
    document.insert("members", Item::Table(members));
    let mut tiers = Table::new();
    for tier in &outline.tiers {
        let mut entry = InlineTable::new();
        entry.insert("kind", (&*tier.kind.text).into());
        add(&mut entry, &tier.keys);
        tiers.insert(&tier.name.text, Item::Value(Value::InlineTable(entry)));
    }
    document.insert("tier", Item::Table(tiers));
    document.to_string()
}

fn add(table: &mut InlineTable, keys: &[Key]) {
    for key in keys {
        let value = match &key.form {
            Form::Value(value) => value.clone().decorated(" ", ""),
            Form::Names(names) => Value::Array(names.iter().map(|it| &*it.text).collect::<Array>()),
            Form::Table(below) => {
                let mut inner = InlineTable::new();
                add(&mut inner, below);
                Value::InlineTable(inner)
            }
        };
        table.insert(&key.name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{drive, drive_from_text};

    #[test]
    fn the_file_of_an_expression_is_the_same_pool() {
        let pools = [
            "mirror(2*p4801x-100)",
            "stripe(p3700-1600, p3700-800; chunk=512k)",
            "concat(2*p4801x-100)",
            "write-back-cache(cache=p5800x-400, capacity=3*d7-p5510-3840; like=vsan)",
            "intent-log(main=raidz(6*exos-x18-16tb; parity=2), log=mirror(2*p4801x-100))",
            "stripe(2*mirror(2*p4801x-100))",
        ];
        for words in pools {
            let text = text_of_expression(words).expect("an expression");
            let whole = drive(words).expect("it loads");
            let again = drive_from_text("pool.toml", &text)
                .unwrap_or_else(|problems| panic!("{words}\n{text}\n{problems:?}"));
            assert_eq!(again.config, whole.config, "{words}\n{text}");
            assert_eq!(again.capacity, whole.capacity, "{words}");
        }
    }

    #[test]
    fn what_is_no_expression_has_no_file() {
        let problems = text_of_expression("mirror(2*").expect_err("it ends too early");
        assert!(problems.0[0].what.contains("ends too early"));
    }
}
