//! Table of rows in a ledger file: text with `|` between cells, one line for each row, below a line with the names of
//! the columns. Lines that are empty or begin with `#` are skipped. A cell cannot contain `|`.

use std::ops::Range;

use toml_edit::Value;

use text::problem::nearest;
use text::toml::{Cursor, Page, quoted};

/// Columns that a table must have.
const REQUIRED: &[&str] = &[
    "id",
    "published",
    "unit",
    "evidence",
    "metric",
    "what",
    "conditions",
];

/// Columns that a table can have.
const OPTIONAL: &[&str] = &["is", "tolerance", "fixes", "note"];

/// One row of a table. Records problems at the place of a cell.
pub(super) struct RowCursor<'a> {
    page: &'a Page<'a>,
    cells: Vec<(&'a str, Range<usize>)>,
    /// Bytes of the line.
    line: Range<usize>,
    /// Name of the row in messages.
    name: &'a str,
}

impl<'a> RowCursor<'a> {
    /// Returns the text of a cell; `None` if it is empty or the table does not have the column.
    pub(super) fn maybe_text(&self, column: &str) -> Option<&'a str> {
        let (_, at) = self.cells.iter().find(|(name, _)| *name == column)?;
        let text = &self.page.file.text[at.clone()];
        (!text.is_empty()).then_some(text)
    }

    /// Returns the text of a cell that must not be empty.
    pub(super) fn text(&self, column: &str) -> &'a str {
        self.maybe_text(column).unwrap_or_else(|| {
            self.add_problem(column, format!("`{column}` is missing"), "");
            ""
        })
    }

    /// Returns the bytes of a cell, or of the line if the cell is empty.
    pub(super) fn place(&self, column: &str) -> Range<usize> {
        let cell = self.cells.iter().find(|(name, _)| *name == column);
        match cell {
            Some((_, at)) if !at.is_empty() => at.clone(),
            _ => self.line.clone(),
        }
    }

    /// Records a problem with a cell.
    pub(super) fn add_problem(
        &self,
        column: &str,
        what: impl Into<String>,
        help: impl Into<String>,
    ) {
        let what = format!("{}: {}", self.name, what.into());
        self.page.add_problem(Some(self.place(column)), what, help);
    }
}

/// Reads the table of `[rows]`; no rows if there is none.
pub(super) fn rows<'a>(page: &'a Page<'a>, root: &mut Cursor<'a>) -> Vec<RowCursor<'a>> {
    const HELP: &str = "write [rows], then table = '''...''', a line for each row";
    let Some(mut section) = root.table("rows") else {
        return Vec::new();
    };
    let span = section.value("table").and_then(Value::span);
    let text = &*page.file.text;
    let content = span.filter(|span| text[span.clone()].starts_with("'''"));
    let Some(content) = content.map(|span| span.start + 3..span.end - 3) else {
        section.add_problem("table", "`table` is missing or not such a text", HELP);
        return Vec::new();
    };
    let mut lines = lines(text, content);
    let Some(header) = lines.next() else {
        section.add_problem("table", "the table is empty", HELP);
        return Vec::new();
    };
    let columns = columns(page, header);
    lines.filter_map(|line| row(page, &columns, line)).collect()
}

/// Returns the lines that are neither empty nor comments, without the spaces around them.
fn lines(text: &str, within: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut next = within.start;
    text[within].split_inclusive('\n').filter_map(move |line| {
        let at = trimmed(text, next..next + line.len());
        next += line.len();
        (!at.is_empty() && !text[at.clone()].starts_with('#')).then_some(at)
    })
}

/// Returns the cells of a line, without the spaces around them.
fn cells(text: &str, line: Range<usize>) -> Vec<Range<usize>> {
    let mut next = line.start;
    let cells = text[line].split('|').map(|cell| {
        let at = next..next + cell.len();
        next = at.end + 1;
        trimmed(text, at)
    });
    cells.collect()
}

fn trimmed(text: &str, at: Range<usize>) -> Range<usize> {
    let whole = &text[at.clone()];
    let start = at.start + whole.len() - whole.trim_start().len();
    start..start + whole.trim().len()
}

/// Reads the names of the columns.
fn columns<'a>(page: &'a Page<'a>, header: Range<usize>) -> Vec<&'a str> {
    let text = &*page.file.text;
    let known = || REQUIRED.iter().chain(OPTIONAL).copied();
    let mut columns: Vec<&str> = Vec::new();
    for at in cells(text, header.clone()) {
        let name = &text[at.clone()];
        if !known().any(|column| column == name) {
            let help = nearest(name, known()).map_or_else(
                || format!("the columns are {}", quoted(&known().collect::<Vec<_>>())),
                |near| format!("did you mean `{near}`?"),
            );
            page.add_problem(Some(at), format!("there is no column `{name}`"), help);
        } else if columns.contains(&name) {
            page.add_problem(Some(at), format!("column `{name}` occurs twice"), "");
        }
        columns.push(name);
    }
    let missing: Vec<&str> = REQUIRED
        .iter()
        .filter(|column| !columns.contains(column))
        .copied()
        .collect();
    if !missing.is_empty() {
        let what = format!("the table has no column {}", quoted(&missing));
        page.add_problem(Some(header), what, "");
    }
    columns
}

/// Reads a line; `None` if its number of cells is wrong.
fn row<'a>(page: &'a Page<'a>, columns: &[&'a str], line: Range<usize>) -> Option<RowCursor<'a>> {
    let places = cells(&page.file.text, line.clone());
    let name = places
        .first()
        .map_or("row", |id| &page.file.text[id.clone()]);
    if places.len() != columns.len() {
        let what = format!(
            "{name}: the line has {} cells, the table {} columns",
            places.len(),
            columns.len()
        );
        let help = "an empty cell needs its `|` too";
        page.add_problem(Some(line), what, help);
        return None;
    }
    let cells = columns.iter().copied().zip(places).collect();
    Some(RowCursor {
        page,
        cells,
        line,
        name,
    })
}

#[cfg(test)]
mod tests {
    use crate::ledger::file;

    const MEASURE: &str = "[measure.a]\ndrive = \"ram-disk\"\nstate = \"fresh\"\nhost = \"xeon-2017\"\nfio = [\"--rw=randread\"]\n";

    fn problems(table: &str) -> String {
        match file("test.toml", &format!("{MEASURE}[rows]\n{table}\n")) {
            Ok(_) => String::new(),
            Err(problems) => problems.render(false),
        }
    }

    #[test]
    fn the_order_of_columns_is_free_and_comments_are_skipped() {
        let table = "table = '''\n# a comment\nmetric|what| id |conditions|unit|evidence|published\n\n\
                     a.read.iops|w|S0-001|c|IOPS|predicted|12\n'''\n";
        let text = format!("{MEASURE}[rows]\n{table}");
        let file = file("test.toml", &text).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(file.rows.len(), 1);
        assert_eq!(file.rows[0].id, "S0-001");
    }

    #[test]
    fn problems_of_a_table_name_its_place() {
        let header = "id|published|unit|evidence|metric|what|conditions";
        let said = problems(&format!("table = '''\n{header}|notes\n'''"));
        assert!(said.contains("there is no column `notes`"), "{said}");
        assert!(said.contains("did you mean `note`?"), "{said}");
        assert!(said.contains("test.toml:8:51"), "{said}");
        let said = problems("table = '''\nid|id|published|unit|evidence|metric|what\n'''");
        assert!(said.contains("column `id` occurs twice"), "{said}");
        assert!(
            said.contains("the table has no column `conditions`"),
            "{said}"
        );
        let said = problems(&format!("table = '''\n{header}\nS0-001|1|us\n'''"));
        assert!(
            said.contains("S0-001: the line has 3 cells, the table 7 columns"),
            "{said}"
        );
        let said = problems(&format!(
            "table = '''\n{header}\nS0-001|1||predicted|a.read.iops|w|c\n'''"
        ));
        assert!(said.contains("S0-001: `unit` is missing"), "{said}");
        let said = problems("table = '''\n'''");
        assert!(said.contains("the table is empty"), "{said}");
        for other in ["table = \"id\"", "table = 3", "tabel = ''''''"] {
            let said = problems(other);
            assert!(said.contains("write [rows], then table = '''"), "{said}");
        }
    }
}
