//! Text from files of other origin: characters that must not reach a terminal, and encodings other than UTF-8.

use std::borrow::Cow;

/// Checks whether a terminal would execute this character, or move text because of it: control characters, and
/// direction marks.
fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text with each such character written as its escape, such as `\u{1b}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match acts(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// Returns the encoding if these bytes begin as UTF-16 text, with or without a byte order mark; `None` otherwise.
///
/// Without a mark, only text whose first four characters are ASCII is recognised.
pub fn utf16(bytes: &[u8]) -> Option<&'static str> {
    const LITTLE: &str = "UTF-16 (little-endian)";
    const BIG: &str = "UTF-16 (big-endian)";
    let ascii = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    match bytes {
        // The mark followed by two zero bytes is the mark of UTF-32.
        [0xff, 0xfe, 0, 0, ..] => None,
        [0xff, 0xfe, ..] => Some(LITTLE),
        [0xfe, 0xff, ..] => Some(BIG),
        [a, 0, b, 0, c, 0, d, 0, ..] if [*a, *b, *c, *d].iter().all(|&it| ascii(it)) => {
            Some(LITTLE)
        }
        [0, a, 0, b, 0, c, 0, d, ..] if [*a, *b, *c, *d].iter().all(|&it| ascii(it)) => Some(BIG),
        _ => None,
    }
}

/// Advice for a file in UTF-16.
pub const UTF16_HELP: &str = "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW; Windows PowerShell's `>` writes UTF-16, so let fio write the file itself (--output=FILE)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_escaped() {
        assert_eq!(printable("größe 4k"), "größe 4k");
        assert_eq!(
            printable("a\x1b[2Jb\u{202e}c\n"),
            "a\\u{1b}[2Jb\\u{202e}c\\n"
        );
        assert_eq!(printable("\u{9b}31m"), "\\u{9b}31m");
    }

    #[test]
    fn utf_16_is_told_from_text_and_records() {
        assert_eq!(utf16(b"\xff\xfe{\0"), Some("UTF-16 (little-endian)"));
        assert_eq!(utf16(b"\xfe\xff\0{"), Some("UTF-16 (big-endian)"));
        assert_eq!(utf16(b"[\0g\0l\0o\0"), Some("UTF-16 (little-endian)"));
        assert_eq!(utf16(b"\0[\0g\0l\0o"), Some("UTF-16 (big-endian)"));
        assert_eq!(utf16(b"{\"a\": 1}"), None);
        assert_eq!(utf16(&[1, 0, 2, 0, 3, 0, 4, 0]), None);
        assert_eq!(utf16(b"\xff\xfe\0\0{\0\0\0"), None);
        assert_eq!(utf16(b""), None);
    }
}
