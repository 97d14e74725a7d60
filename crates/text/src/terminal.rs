//! Tables and sentences that fit a terminal.
//!
//! On a terminal lines are broken at words, to its width. Where the output is kept (a pipe, a file) nothing is broken:
//! one row is one line, for `grep` and `less -S`. Columns of figures are never broken.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};

/// Columns of the terminal that it is for; none where it is kept.
pub type Width = Option<u16>;

/// A table without lines around its cells, as wide as the terminal at most.
pub fn table(width: Width) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
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

/// Keeps these columns of the table in one line: names and figures.
pub fn unbroken(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
}

/// A sentence after `head`, broken at spaces; further lines are indented as far as the first.
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
        // A word that fits no line stands alone.
        let path = "/a/path/that/is/longer/than/the/line";
        assert_eq!(
            paragraph("at ", &format!("x {path} y"), Some(10)),
            format!("at x\n   {path}\n   y")
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
