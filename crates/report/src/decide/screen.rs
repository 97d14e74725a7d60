//! Charts of decisions are drawn twice, for a wide and for a narrow screen (a phone), and the style sheet shows one of
//! them: so both have letters of a readable size, without scripts.
//!
//! The widths of letters are unknown here; they are assumed to be those of a wide font.

/// Screen for which a chart is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Screen {
    Broad,
    Slim,
}

/// Height of a line of text.
pub(super) const LINE: f64 = 15.0;
/// Average width of a letter in text of 12 pixels.
pub(super) const LETTER: f64 = 7.2;

impl Screen {
    pub(super) const BOTH: [Screen; 2] = [Screen::Broad, Screen::Slim];

    /// Returns the class in the style sheet.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Screen::Broad => "chart broad",
            Screen::Slim => "chart slim",
        }
    }

    /// Returns the width in pixels, for letters with a height of 12.
    pub(super) const fn width(self) -> f64 {
        match self {
            Screen::Broad => 1040.0,
            Screen::Slim => 360.0,
        }
    }
}

/// Returns the width of a text in pixels.
pub(super) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// Splits words into lines of at most this number of letters; a longer word is a line of its own.
pub(super) fn lines(text: &str, letters: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match all.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => all.push(word.to_owned()),
        }
    }
    all
}

/// Returns a name of at most this number of letters. A longer name keeps its beginning and its end, where names of
/// pools differ.
pub(super) fn short(name: &str, letters: usize) -> String {
    let all: Vec<char> = name.chars().collect();
    if all.len() <= letters {
        return name.to_owned();
    }
    let end = (letters - 1) / 2;
    let begin = letters - 1 - end;
    let parts = [&all[..begin], &['…'], &all[all.len() - end..]];
    parts.concat().into_iter().collect()
}

/// Returns a number as SVG writes it.
pub(super) fn px(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_every_word_and_are_no_longer_than_asked() {
        let text = "a partition or file that begins at an odd sector (512 B alignment)";
        for letters in [12, 20, 44, 100] {
            let all = lines(text, letters);
            assert!(all.iter().all(|line| line.len() <= letters), "{all:?}");
            assert_eq!(all.join(" "), text);
        }
    }

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(short("p4800x-375", 10), "p4800x-375");
        assert_eq!(short("mirror(2*p4801x-100)", 11), "mirro…-100)");
    }
}
