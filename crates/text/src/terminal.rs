//! Tables and sentences that fit a terminal.
//!
//! On a terminal, lines are wrapped at words, to its width. Output to a pipe or file is not wrapped: one row is one
//! line, for `grep` and `less -S`. Columns of figures are never wrapped.

use std::ops::Range;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

/// Columns of the terminal; `None` for a pipe or file.
pub type Width = Option<u16>;

/// Creates a table without borders, at most as wide as the terminal.
pub fn table(width: Width) -> Table {
    let mut table = plain();
    match width {
        Some(width) => {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(width);
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    table
}

/// Creates a table without borders, of any width.
pub fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Aligns these columns to the right, as for figures.
pub fn right(table: &mut Table, columns: Range<usize>) {
    let all = table.column_iter_mut().skip(columns.start);
    for column in all.take(columns.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// Keeps these columns of the table in one line: names and figures.
pub fn unbroken(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
}

/// Returns the table as text. A table wider than the terminal is divided between columns into several tables, one
/// below another. Each has the first `keys` columns, so that no figure is wrapped.
pub fn folded(table: &Table, keys: usize, width: Width) -> String {
    let widths = table.column_max_content_widths();
    // One blank on each side; the last one is trimmed.
    let room = |column: usize| usize::from(widths[column]) + 2;
    let all: usize = (0..widths.len()).map(room).sum();
    let Some(width) = width.filter(|&width| all > usize::from(width) + 1) else {
        return table.trim_fmt();
    };
    let keys = keys.min(widths.len());
    let kept: usize = (0..keys).map(room).sum();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut used = usize::MAX;
    for column in keys..widths.len() {
        used = used.saturating_add(room(column));
        match groups.last_mut() {
            Some(group) if used <= usize::from(width) + 1 => group.push(column),
            _ => {
                groups.push(vec![column]);
                used = kept + room(column);
            }
        }
    }
    let part = |group: &Vec<usize>| {
        let mut part = table.clone();
        part.set_content_arrangement(ContentArrangement::Dynamic);
        part.set_width(width);
        for column in 0..widths.len() {
            let constraint = match column < keys {
                true => Some(ColumnConstraint::ContentWidth),
                false if !group.contains(&column) => Some(ColumnConstraint::Hidden),
                // A single column may be a sentence, which is wrapped at words.
                false if group.len() == 1 => None,
                false => Some(ColumnConstraint::ContentWidth),
            };
            if let (Some(column), Some(constraint)) = (part.column_mut(column), constraint) {
                column.set_constraint(constraint);
            }
        }
        part.trim_fmt()
    };
    let parts: Vec<String> = groups.iter().map(part).collect();
    parts.join("\n\n")
}

/// Returns a sentence after `head`, wrapped at spaces; further lines are indented to the same column as the first.
pub fn paragraph(head: &str, text: &str, width: Width) -> String {
    let indent = head.chars().count();
    let room = match width {
        Some(width) => usize::from(width).saturating_sub(indent).max(20),
        None => usize::MAX,
    };
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("one at least");
        let long = line.chars().count() + 1 + word.chars().count() > room;
        if line.is_empty() {
            line.push_str(word);
        } else if long {
            lines.push(word.to_owned());
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    format!("{head}{}", lines.join(&format!("\n{}", " ".repeat(indent))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_broken_at_words_on_a_terminal_only() {
        let text = "one two three four five six seven";
        assert_eq!(paragraph("• ", text, None), format!("• {text}"));
        assert_eq!(
            paragraph("• ", text, Some(24)),
            "• one two three four\n  five six seven"
        );
        // A word longer than a line has its own line.
        let path = "/a/path/that/is/longer/than/the/line";
        assert_eq!(
            paragraph("at ", &format!("x {path} y"), Some(10)),
            format!("at x\n   {path}\n   y")
        );
    }

    /// Every figure appears once and whole, each part has the key columns, and no line is wider than the terminal.
    #[test]
    fn a_table_of_figures_is_folded_between_columns() {
        let mut table = table(None);
        table.set_header(["drive", "IOPS", "mean us", "p99 us", "p99.9 us"]);
        table.add_row(["p4800x-375", "123,456", "10.1", "20.2", "30.3"]);
        assert_eq!(folded(&table, 1, None), table.trim_fmt());
        assert_eq!(folded(&table, 1, Some(80)), table.trim_fmt());
        for width in [24, 30, 36] {
            let text = folded(&table, 1, Some(width));
            assert!(
                text.lines()
                    .all(|line| line.chars().count() <= width.into()),
                "{text}"
            );
            for figure in ["123,456", "10.1", "20.2", "30.3", "p99.9 us"] {
                assert_eq!(text.matches(figure).count(), 1, "{width}: {figure}\n{text}");
            }
            let parts: Vec<&str> = text.split("\n\n").collect();
            assert!(parts.len() > 1 && parts.iter().all(|part| part.contains("p4800x-375")));
        }
        let sentence = "a sentence that is longer than the terminal is wide";
        table.add_row(["x", sentence, "1", "2", "3"]);
        let text = folded(&table, 1, Some(40));
        assert!(
            text.lines().all(|line| line.chars().count() <= 40),
            "{text}"
        );
    }

    #[test]
    fn a_table_is_broken_on_a_terminal_only_and_never_in_its_figures() {
        let filled = |width| {
            let mut table = table(width);
            table.add_row(["123456789 IOPS", "a sentence that says a lot about it"]);
            unbroken(&mut table, [0]);
            table.trim_fmt()
        };
        assert_eq!(filled(None).lines().count(), 1);
        let narrow = filled(Some(34));
        assert!(narrow.lines().count() > 1, "{narrow}");
        assert!(narrow.contains("123456789 IOPS"), "{narrow}");
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 34),
            "{narrow}"
        );
    }
}
