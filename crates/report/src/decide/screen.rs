//! Charts of decisions are drawn twice, for a broad screen and for a slim one (a phone), and the style sheet shows one: so both have
//! letters of a size that is read, without scripts.
//!
//! Widths of letters are not known here; they are taken to be those of a wide font.

/// For which screen a chart is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Screen {
    Broad,
    Slim,
}

/// Height of a line of text.
pub(super) const LINE: f64 = 15.0;
/// Width of a letter, on average, of text in 12 pixels.
pub(super) const LETTER: f64 = 7.2;

impl Screen {
    pub(super) const BOTH: [Screen; 2] = [Screen::Broad, Screen::Slim];

    /// Of the style sheet.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Screen::Broad => "chart broad",
            Screen::Slim => "chart slim",
        }
    }

    /// In pixels, where letters are 12 high.
    pub(super) const fn width(self) -> f64 {
        match self {
            Screen::Broad => 1040.0,
            Screen::Slim => 360.0,
        }
    }
}

/// Pixels of a text.
pub(super) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// Words in lines of at most so many letters; a longer word is a line of its own.
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

/// A name of at most so many letters: of a longer one the beginning and the end, which is where names of pools differ.
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

/// As SVG has it.
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
