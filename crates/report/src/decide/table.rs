//! Tables of answers. The terminal and the page show the same value.
//!
//! A cell is formatted text. A figure may have its range or kind in brackets after it, and ` !` after a figure that
//! misses its limit: the terminal prints both as they are, the page sets them below the figure.

use comfy_table::CellAlignment;
use maud::{Markup, html};
use text::terminal::{Width, folded, plain};

use crate::page::tied;

/// Style sheet of the tables.
pub(crate) const STYLE: &str = include_str!("table.css");
/// Mark of a figure that misses its limit.
const MISSED: &str = " !";
/// Cell without a value.
const NONE: &str = "-";
/// Words with more characters than this are wrapped on a page.
const LONG: usize = 20;
/// A table with more rows than this has its own scroll bar, so that its header stays in view.
const TALL: usize = 16;

/// A column: its name on the terminal, its heading on the page, and its alignment.
#[derive(Clone, Debug)]
pub struct AnswerColumn {
    name: String,
    heading: Option<&'static str>,
    is_figure: bool,
}

impl AnswerColumn {
    /// Returns a column of words, which are aligned to the left.
    pub(crate) fn words(name: impl Into<String>) -> AnswerColumn {
        AnswerColumn {
            name: name.into(),
            heading: None,
            is_figure: false,
        }
    }

    /// Returns a column of figures, which are aligned to the right.
    pub(crate) fn figures(name: impl Into<String>) -> AnswerColumn {
        AnswerColumn {
            is_figure: true,
            ..AnswerColumn::words(name)
        }
    }

    /// Returns the column with a heading for the page, where there is space for whole words and the unit.
    pub(crate) fn headed(self, heading: &'static str) -> AnswerColumn {
        AnswerColumn {
            heading: Some(heading),
            ..self
        }
    }

    fn heading(&self) -> &str {
        self.heading.unwrap_or(&self.name)
    }
}

/// A table: its caption on the page, its columns and its rows.
#[derive(Clone, Debug)]
pub struct AnswerTable {
    caption: &'static str,
    /// Number of columns that name a row.
    keys: usize,
    columns: Vec<AnswerColumn>,
    rows: Vec<Vec<String>>,
}

impl AnswerTable {
    /// Returns a table without rows, whose first `keys` columns name a row.
    pub(crate) fn new(
        caption: &'static str,
        keys: usize,
        columns: Vec<AnswerColumn>,
    ) -> AnswerTable {
        AnswerTable {
            caption,
            keys,
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn add(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        debug_assert_eq!(cells.len(), self.columns.len(), "{}", self.caption);
        self.rows.push(cells);
    }

    /// Returns the table for a terminal. A table that is too wide is divided between columns.
    fn text(&self, width: Width) -> String {
        let mut table = plain();
        table.set_header(self.columns.iter().map(|column| &column.name));
        for row in &self.rows {
            table.add_row(row);
        }
        let columns = self.columns.iter().zip(table.column_iter_mut());
        for (_, column) in columns.filter(|(one, _)| one.is_figure) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        folded(&table, self.keys, width)
    }

    /// Returns the class of the cells of each column.
    fn classes(&self) -> Vec<Option<&'static str>> {
        let columns = self.columns.iter().enumerate();
        let is_long = |index: usize| {
            let mut cells = self.rows.iter().map(|row| &row[index]);
            cells.any(|cell| cell.chars().count() > LONG)
        };
        let class = columns.map(|(index, column)| match column.is_figure {
            true => Some("figure"),
            false => is_long(index).then_some("long"),
        });
        class.collect()
    }

    /// Returns the table for a page. Its container takes focus, so that keys scroll it on a narrow screen.
    pub(crate) fn markup(&self) -> Markup {
        let tall = (self.rows.len() > TALL).then_some("tall");
        let classes = self.classes();
        html! {
            div class={ "scroll answers" @if let Some(tall) = tall { " " (tall) } } tabindex="0" role="region" aria-label=(self.caption) {
                table {
                    caption { span { (self.caption) } }
                    thead { tr {
                        @for (column, class) in self.columns.iter().zip(&classes) {
                            th scope="col" class=[class] { (tied(column.heading())) }
                        }
                    } }
                    tbody {
                        @for row in &self.rows { tr {
                            @for (index, (cell, column)) in row.iter().zip(&self.columns).enumerate() {
                                @let class = classes[index];
                                @if index < self.keys { th scope="row" class=[class] { (value(cell, column)) } }
                                @else { td class=[class] { (value(cell, column)) } }
                            }
                        } }
                    }
                }
            }
        }
    }
}

/// Returns the tables for a terminal, one below another.
pub fn text_of(tables: &[AnswerTable], width: Width) -> String {
    let texts: Vec<String> = tables.iter().map(|table| table.text(width)).collect();
    texts.join("\n\n")
}

/// Returns a cell for the page.
fn value(cell: &str, column: &AnswerColumn) -> Markup {
    if cell == NONE {
        return html! { span aria-hidden="true" { "–" } span class="hidden" { "not available" } };
    }
    if !column.is_figure {
        return html! { (tied(cell)) };
    }
    let (shown, missed) = match cell.strip_suffix(MISSED) {
        Some(shown) => (shown, true),
        None => (cell, false),
    };
    let parts = shown
        .strip_suffix(')')
        .and_then(|open| open.split_once(" ("));
    let (figure, range) = parts.map_or((shown, None), |(figure, range)| (figure, Some(range)));
    html! {
        @if missed { strong class="missed" { (tied(figure)) } } @else { (tied(figure)) }
        @if let Some(range) = range { " " span class="range" { (tied(range)) } }
        @if missed { " " span class="range missed" { "misses the limit" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> AnswerTable {
        let columns = vec![
            AnswerColumn::words("drive"),
            AnswerColumn::figures("W").headed("power, W"),
            AnswerColumn::figures("p99"),
        ];
        let mut table = AnswerTable::new("Figures of each drive", 1, columns);
        table.add(["a<b (c)", "3.5", "914 µs (839 to 990 µs) !"].map(String::from));
        table.add(["d", "-", "-"].map(String::from));
        table
    }

    #[test]
    fn the_terminal_shows_names_and_cells_as_they_are() {
        assert_eq!(
            text_of(&[table()], None),
            " drive      W                       p99\n a<b (c)  3.5  914 µs (839 to 990 µs) !\n d          -                         -"
        );
        assert_eq!(text_of(&[table(), table()], None).lines().count(), 7);
    }

    #[test]
    fn the_page_has_headings_with_units_and_says_what_marks_mean() {
        let page = table().markup().into_string();
        for part in [
            r#"<div class="scroll answers" tabindex="0" role="region" aria-label="Figures of each drive">"#,
            "<caption><span>Figures of each drive</span></caption>",
            r#"<th scope="col" class="figure">power, W</th>"#,
            // Only figures have a range.
            r#"<th scope="row">a&lt;b (c)</th>"#,
            "<strong class=\"missed\">914\u{a0}µs</strong> <span class=\"range\">839 to 990\u{a0}µs</span> <span class=\"range missed\">misses the limit</span>",
            r#"<span class="hidden">not available</span>"#,
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains(" !"), "{page}");
        let mut long = table();
        long.add(["a name of more than twenty letters", "1", "2"].map(String::from));
        assert!(
            long.markup()
                .into_string()
                .contains(r#"<th scope="row" class="long">d</th>"#)
        );
    }

    #[test]
    fn a_long_table_scrolls_below_its_header() {
        let mut long = table();
        assert!(!long.markup().into_string().contains("tall"));
        for _ in 0..TALL {
            long.add(["d", "1", "2"].map(String::from));
        }
        assert!(long.markup().into_string().contains("scroll answers tall"));
    }
}
