//! A table: as the text of a CSV file, and by column for users of typed columns (Arrow, data frames).
//!
//! A column has the type of its cells; an empty column has none.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;
use serde_json::{Map, Value};

/// A table with a header; its text is that of a CSV file, empty only if there are no rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    text: String,
    names: Vec<String>,
    rows: Vec<Vec<Value>>,
}

/// Cells of a column, `None` where there is no figure.
#[derive(Clone, Debug, PartialEq)]
pub enum CsvColumn {
    /// Strings.
    Text(Vec<Option<String>>),
    /// Whole numbers.
    Whole(Vec<Option<u64>>),
    /// Numbers with decimals.
    Number(Vec<Option<f64>>),
    /// Boolean values.
    Truth(Vec<Option<bool>>),
    /// This number of empty cells.
    Empty(usize),
}

impl Table {
    /// Returns the table of these rows: structs without nesting, or tuples of them.
    pub(super) fn from_rows<R: Serialize>(rows: impl IntoIterator<Item = R>) -> Table {
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        let mut table = Table::default();
        for row in rows {
            writer
                .serialize(&row)
                .expect("a flat struct is written to memory");
            let value = serde_json::to_value(&row).expect("a flat struct is plain data");
            let cells = flat(value);
            if table.names.is_empty() {
                table.names = cells.keys().cloned().collect();
            }
            table.rows.push(cells.into_values().collect());
        }
        table.text = text_of(writer);
        table
    }

    /// Returns the table of these rows of cells, `None` where there is no figure; the first cell is a text.
    pub(super) fn of_cells(names: Vec<String>, rows: Vec<(String, Vec<Option<f64>>)>) -> Table {
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        let mut line = |cells: &mut dyn Iterator<Item = String>| {
            writer
                .write_record(cells)
                .expect("as many cells as the first line has, to memory");
        };
        line(&mut names.iter().cloned());
        let mut all = Vec::new();
        for (first, cells) in rows {
            let words = cells
                .iter()
                .map(|cell| cell.map_or(String::new(), |it| it.to_string()));
            line(&mut [first.clone()].into_iter().chain(words));
            let cells = cells.into_iter().map(Value::from);
            all.push([Value::from(first)].into_iter().chain(cells).collect());
        }
        Table {
            text: text_of(writer),
            names,
            rows: all,
        }
    }

    /// Returns the columns in order, each with its name.
    pub fn columns(&self) -> impl Iterator<Item = (&str, CsvColumn)> {
        let names = self.names.iter().enumerate();
        names.map(|(index, name)| {
            let cells: Vec<&Value> = self.rows.iter().map(|row| &row[index]).collect();
            (&**name, column(&cells))
        })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }
}

/// Returns a tuple of structs as one struct.
fn flat(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(cells) => cells,
        Value::Array(parts) => parts.into_iter().flat_map(flat).collect(),
        _ => Map::new(),
    }
}

fn text_of(writer: ::csv::Writer<Vec<u8>>) -> String {
    let bytes = writer.into_inner().expect("memory takes all");
    String::from_utf8(bytes).expect("numbers and UTF-8 words")
}

fn column(cells: &[&Value]) -> CsvColumn {
    let known = || cells.iter().filter(|cell| !cell.is_null());
    if known().next().is_none() {
        CsvColumn::Empty(cells.len())
    } else if known().all(|cell| cell.is_boolean()) {
        CsvColumn::Truth(cells.iter().map(|cell| cell.as_bool()).collect())
    } else if known().all(|cell| cell.is_u64()) {
        CsvColumn::Whole(cells.iter().map(|cell| cell.as_u64()).collect())
    } else if known().all(|cell| cell.is_number()) {
        CsvColumn::Number(cells.iter().map(|cell| cell.as_f64()).collect())
    } else {
        let word = |cell: &&Value| Some(cell.as_str()?.to_owned());
        CsvColumn::Text(cells.iter().map(word).collect())
    }
}

/// Dereferences to the text of the CSV file.
impl Deref for Table {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Left {
        name: &'static str,
        ios: u64,
    }

    #[derive(Serialize)]
    struct Right {
        mean_us: Option<f64>,
        steady: Option<bool>,
        watts: Option<f64>,
    }

    #[test]
    fn the_file_and_the_columns_say_the_same() {
        let row = |name, ios, mean_us, steady| {
            let right = Right {
                mean_us,
                steady,
                watts: None,
            };
            (Left { name, ios }, right)
        };
        let table = Table::from_rows([row("a", 1, None, Some(true)), row("b", 2, Some(3.0), None)]);
        assert_eq!(
            table.to_string(),
            "name,ios,mean_us,steady,watts\na,1,,true,\nb,2,3.0,,\n"
        );
        let columns: Vec<_> = table.columns().collect();
        assert_eq!(
            columns,
            [
                (
                    "name",
                    CsvColumn::Text(vec![Some("a".into()), Some("b".into())])
                ),
                ("ios", CsvColumn::Whole(vec![Some(1), Some(2)])),
                // A column of figures that are not counts has decimals even if a value is whole.
                ("mean_us", CsvColumn::Number(vec![None, Some(3.0)])),
                ("steady", CsvColumn::Truth(vec![Some(true), None])),
                ("watts", CsvColumn::Empty(2)),
            ]
        );
        assert_eq!(table.rows(), 2);
    }
}
