//! Lists of tables (`[[key]]`), each with a cursor of its own.

use std::collections::BTreeSet;

use toml_edit::{Item, Table};

use super::{Layer, Section, article};
use text::toml::span_of;

impl<'a> Section<'a> {
    /// Returns the tables of a list of tables (`[[key]]`), with numbers from 1 in their paths. A table with the key
    /// `sheet` takes that document, not the file's, as the source of figures without kind and source.
    pub fn tables(&mut self, key: &str) -> Vec<Section<'a>> {
        let Some((layer, item)) = self.find(key) else {
            return Vec::new();
        };
        let path = self.full(key);
        let Some(list) = item.as_array_of_tables() else {
            self.record(layer.file.problem(
                span_of(layer.table, key, item),
                format!(
                    "`{path}` is {}, not a list of tables",
                    article(item.type_name())
                ),
                Some(format!(
                    "write each of its tables below a line `[[{path}]]`"
                )),
            ));
            return Vec::new();
        };
        let numbered = (1..).zip(list.iter());
        let section = |(number, table): (usize, &'a Table)| Section {
            findings: self.findings,
            path: format!("{path}.{number}"),
            layers: vec![Layer {
                table,
                sheet: table.get("sheet").and_then(Item::as_str).or(layer.sheet),
                ..layer
            }],
            asked: BTreeSet::new(),
            header: table.span(),
            own: layer.file,
        };
        numbered.map(section).collect()
    }
}
