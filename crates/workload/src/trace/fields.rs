//! Columns of one line, and the checks of their values.

use super::TraceError;
use text::problem::Place;

/// Maximum number of columns that a format reads.
pub(super) const MOST: usize = 24;

/// A line split into columns.
pub(super) struct Fields<'a> {
    line: usize,
    whole: &'a [u8],
    columns: [&'a [u8]; MOST],
    count: usize,
}

/// Formats bytes of a file for a message: as short text.
pub(super) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut short: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().count() > 40 {
        short.push('…');
    }
    format!("`{short}`")
}

/// Removes surrounding blanks and quotes from a column.
fn unquoted(column: &[u8]) -> &[u8] {
    let column = column.trim_ascii();
    let inner = column
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""));
    inner.map_or(column, <[u8]>::trim_ascii)
}

/// Splits a text at blanks and tabs.
fn blanks(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let columns = text.split(u8::is_ascii_whitespace);
    columns.filter(|column| !column.is_empty())
}

impl<'a> Fields<'a> {
    /// Splits a line at commas and removes surrounding blanks and quotes; a comma in a quoted column does not
    /// separate.
    pub(super) fn commas(line: usize, text: &'a [u8]) -> Fields<'a> {
        let mut quoted = false;
        let has_quotes = text.contains(&b'"');
        let columns = text.split(move |&byte| {
            quoted ^= has_quotes && byte == b'"';
            byte == b',' && !quoted
        });
        Fields::from(line, text, columns.map(unquoted))
    }

    /// Splits a line at semicolons and removes surrounding blanks.
    pub(super) fn semicolons(line: usize, text: &'a [u8]) -> Fields<'a> {
        let columns = text.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        Fields::from(line, text, columns)
    }

    /// Splits a line at blanks and tabs.
    pub(super) fn blanks(line: usize, text: &'a [u8]) -> Fields<'a> {
        Fields::from(line, text, blanks(text))
    }

    /// Splits a line at blanks. The column after the first `before` columns and before the last `after` columns may
    /// contain blanks.
    pub(super) fn split_around(
        line: usize,
        text: &'a [u8],
        before: usize,
        after: usize,
    ) -> Fields<'a> {
        let count = blanks(text).count();
        let Some(more) = count
            .checked_sub(before + after + 1)
            .filter(|&more| more > 0)
        else {
            return Fields::blanks(line, text);
        };
        let start = |column: &[u8]| column.as_ptr() as usize - text.as_ptr() as usize;
        let named = |index: usize| blanks(text).nth(index).unwrap_or(&[]);
        let (first, last) = (named(before), named(before + more));
        let middle = &text[start(first)..start(last) + last.len()];
        let ahead = blanks(text).take(before);
        let behind = blanks(text).skip(before + more + 1);
        Fields::from(line, text, ahead.chain([middle]).chain(behind))
    }

    fn from(line: usize, whole: &'a [u8], columns: impl Iterator<Item = &'a [u8]>) -> Fields<'a> {
        let mut fields = Fields {
            line,
            whole: whole.trim_ascii(),
            columns: [&[]; MOST],
            count: 0,
        };
        for column in columns {
            if let Some(slot) = fields.columns.get_mut(fields.count) {
                *slot = column;
            }
            fields.count += 1;
        }
        fields
    }

    /// Returns the number of the line.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// Returns the whole line without surrounding blanks.
    pub(super) fn line_text(&self) -> &'a [u8] {
        self.whole
    }

    /// Returns the index of the column with this name.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        let held = &self.columns[..self.count.min(MOST)];
        held.iter().position(|column| *column == name.as_bytes())
    }

    /// Returns the number of columns in the line.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the text of a column, from 0; empty if the column does not exist.
    pub(super) fn text(&self, column: usize) -> &'a [u8] {
        self.columns.get(column).copied().unwrap_or(&[])
    }

    /// Returns an error unless the line has this many columns.
    pub(super) fn expect(&self, count: usize, what: &str) -> Result<(), TraceError> {
        if self.count == count {
            return Ok(());
        }
        let has = if self.count == 1 { "column" } else { "columns" };
        Err(self.fault(format!("has {} {has}, not {count}: {what}", self.count)))
    }

    /// Parses a whole number from 0 to 2^64 - 1.
    pub(super) fn number(&self, column: usize, name: &str) -> Result<u64, TraceError> {
        whole(self.text(column)).ok_or_else(|| self.invalid_column(column, name, "a whole number"))
    }

    /// Parses a whole number, in decimal digits with or without commas between thousands, or hexadecimal after `0x`.
    pub(super) fn either(&self, column: usize, name: &str) -> Result<u64, TraceError> {
        let text = self.text(column);
        let number = match text
            .strip_prefix(b"0x")
            .or_else(|| text.strip_prefix(b"0X"))
        {
            Some(digits) => std::str::from_utf8(digits)
                .ok()
                .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
                .and_then(|digits| u64::from_str_radix(digits, 16).ok()),
            None if text.contains(&b',') => ungrouped(text),
            None => whole(text),
        };
        number.ok_or_else(|| self.invalid_column(column, name, "a whole number"))
    }

    /// Parses a whole number of sectors; returns bytes.
    pub(super) fn sectors(&self, column: usize, name: &str) -> Result<u64, TraceError> {
        let sectors = self.number(column, name)?;
        let wrong = || self.invalid_column(column, name, "a number of 512 B sectors below 2^55");
        sectors.checked_mul(512).ok_or_else(wrong)
    }

    /// Parses a decimal number in units of `unit_ns` nanoseconds; returns whole nanoseconds.
    pub(super) fn time(&self, column: usize, name: &str, unit_ns: u64) -> Result<u128, TraceError> {
        decimal(self.text(column), unit_ns).ok_or_else(|| {
            self.invalid_column(column, name, "a decimal number that is not negative")
        })
    }

    /// Returns the problem with an invalid column.
    pub(super) fn invalid_column(&self, column: usize, name: &str, right: &str) -> TraceError {
        let found = shown(self.text(column));
        self.fault(format!(
            "column {} ({name}) is {found}, not {right}",
            column + 1
        ))
    }

    /// Returns a problem with the line.
    pub(super) fn fault(&self, what: impl Into<String>) -> TraceError {
        TraceError::new(Place::Line(self.line), what)
    }

    /// Returns the place of the line.
    pub(super) fn place(&self) -> Place {
        Place::Line(self.line)
    }
}

/// Parses a whole number with a comma before each three digits, such as `1,048,576`.
fn ungrouped(text: &[u8]) -> Option<u64> {
    let mut groups = text.split(|&byte| byte == b',');
    let first = groups
        .next()
        .filter(|first| (1..=3).contains(&first.len()))?;
    groups.try_fold(whole(first)?, |number, group| {
        let group = whole(group).filter(|_| group.len() == 3)?;
        number.checked_mul(1_000)?.checked_add(group)
    })
}

/// Parses a whole number in decimal digits.
pub(super) fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, &byte| {
        let digit = byte.wrapping_sub(b'0');
        let value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        (digit < 10).then_some(value)
    })
}

/// Parses a decimal number such as `12.34` and multiplies it by `unit`, rounded to the nearest whole number; `None`
/// if the text is anything else. (Exact: a double has too few digits for the nanoseconds of a Unix time.)
pub(super) fn decimal(text: &[u8], unit: u64) -> Option<u128> {
    let point = text.iter().position(|&byte| byte == b'.');
    let (before, after) = match point {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[][..]),
    };
    if before.is_empty() && after.is_empty() || !after.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = if before.is_empty() { 0 } else { whole(before)? };
    // 18 digits are more than any unit here has; further digits change the rounded result by at most half a unit.
    let after = &after[..after.len().min(18)];
    let fraction = u128::from(if after.is_empty() { 0 } else { whole(after)? });
    let scale = 10u128.pow(after.len() as u32);
    let fraction = (fraction * u128::from(unit) + scale / 2) / scale;
    Some(u128::from(seconds) * u128::from(unit) + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_with_blanks_is_one_column() {
        let columns = |text: &str| {
            let fields = Fields::split_around(1, text.as_bytes(), 1, 2);
            let texts = (0..fields.count()).map(|column| shown(fields.text(column)));
            texts.collect::<Vec<_>>().join("")
        };
        assert_eq!(columns(" 1 tmux: server  2 3 "), "`1``tmux: server``2``3`");
        assert_eq!(columns("1 a 2 3"), "`1``a``2``3`");
        assert_eq!(columns("1 2 3"), "`1``2``3`");
        assert_eq!(columns("1 a  b c 2 3"), "`1``a  b c``2``3`");
    }

    #[test]
    fn a_comma_in_quotes_separates_nothing() {
        let columns = |text: &str| {
            let fields = Fields::commas(1, text.as_bytes());
            let texts = (0..fields.count()).map(|column| shown(fields.text(column)));
            texts.collect::<Vec<_>>().join("")
        };
        assert_eq!(columns(r#"1, "a, b",3,"4""#), "`1``a, b``3``4`");
        assert_eq!(columns(r#"1,"a"#), "`1``\\\"a`");
        assert_eq!(columns("1,,3"), "`1````3`");
    }

    #[test]
    fn decimals_are_exact() {
        let second = 1_000_000_000;
        assert_eq!(
            decimal(b"1456095145.133076000", second),
            Some(1_456_095_145_133_076_000)
        );
        assert_eq!(decimal(b"5265.313", 1_000_000), Some(5_265_313_000));
        assert_eq!(decimal(b".5", second), Some(500_000_000));
        assert_eq!(decimal(b"7.", second), Some(7_000_000_000));
        assert_eq!(decimal(b"0.0000000005", second), Some(1));
        for wrong in [
            "",
            ".",
            "-1",
            "1e3",
            "1.2.3",
            "nan",
            "1.x",
            "99999999999999999999",
        ] {
            assert_eq!(decimal(wrong.as_bytes(), second), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn whole_numbers_are_as_the_standard_library_reads_them(text in "[0-9]{1,22}|[0-9a+ -]{0,4}") {
            let expected = if text.starts_with('+') { None } else { text.parse::<u64>().ok() };
            prop_assert_eq!(whole(text.as_bytes()), expected);
        }
    }
}
