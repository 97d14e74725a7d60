//! First lines of answers: the verdict on a drive, with its strongest caveat, in at most [`LENGTH`] characters.

use study::decide::life::LifeAnswer;

/// Maximum characters of a first line.
pub const LENGTH: usize = 160;

/// Maximum characters of a name in a first line; expressions of pools may be longer.
const NAME: usize = 48;

/// Checks whether a text is short enough for a first line.
pub(super) fn fits(text: &str) -> bool {
    text.chars().count() <= LENGTH
}

/// Returns the first of these texts that fits; if none does, the beginning of the last, in whole sentences or words.
pub(super) fn first_that_fits(texts: impl IntoIterator<Item = String>) -> String {
    let mut last = String::new();
    for text in texts {
        if fits(&text) {
            return text;
        }
        last = text;
    }
    beginning(&last)
}

/// Returns the beginning of a text that is too long for a first line: its first sentences if they fit, otherwise its first
/// words.
fn beginning(text: &str) -> String {
    if fits(text) {
        return text.to_owned();
    }
    let begin: String = text.chars().take(LENGTH - 1).collect();
    if let Some(at) = begin.rfind(". ") {
        return begin[..=at].to_owned();
    }
    let words = begin.rfind(' ').map_or(&*begin, |at| &begin[..at]);
    format!("{}…", words.trim_end_matches([' ', ',', ';', ':']))
}

/// Returns a name for a first line; a long expression of a pool is cut.
pub(super) fn short(name: &str) -> String {
    cut(name, NAME)
}

fn cut(text: &str, most: usize) -> String {
    match text.chars().count() <= most {
        true => text.to_owned(),
        false => {
            let begin: String = text.chars().take(most - 1).collect();
            format!("{}…", begin.trim_end())
        }
    }
}

/// Returns a note after the name of a drive whose model no measurement tests, by its support level.
pub(super) fn untested(model: &str) -> &'static str {
    match model {
        "from data sheet" => " (model from data sheet)",
        "unvalidated" => " (unvalidated model)",
        "not judged yet" => " (model not judged yet)",
        _ => "",
    }
}

/// Returns "the model", with its support level if no measurement tests it.
pub(super) fn the_model(model: &str) -> String {
    let note = untested(model).replace("model ", "").replace(" model", "");
    format!("the model{note}")
}

/// Returns a name with the note of [`untested`].
pub(super) fn named(drive: &str, model: &str) -> String {
    format!("{}{}", short(drive), untested(model))
}

/// Returns what the years at a load of bursts presuppose: checkpoints and backups have pauses between them.
pub(super) fn pause(answer: &LifeAnswer) -> &'static str {
    match answer.load.as_ref().is_some_and(|load| load.is_burst) {
        true => " without pause",
        false => "",
    }
}

/// Returns a name with the note of [`untested`], and another one.
pub(super) fn named_with(drive: &str, model: &str, note: Option<&str>) -> String {
    let Some(note) = note else {
        return named(drive, model);
    };
    let notes = match untested(model).trim_matches([' ', '(', ')']) {
        "" => note.to_owned(),
        tested => format!("{tested}; {note}"),
    };
    format!("{} ({notes})", short(drive))
}

/// Returns names as a list: the first `shown` of them, and the number of the others.
pub(super) fn some_of(names: &[String], shown: usize) -> String {
    let shown = shown.clamp(1, names.len().max(1));
    let listed: Vec<&str> = names.iter().take(shown).map(String::as_str).collect();
    match names.len() - shown.min(names.len()) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

/// Returns parts of a sentence on a drive as lines of whole parts: as many as fit into the first, then the others.
pub(super) fn in_lines(name: &str, parts: &[String]) -> Vec<String> {
    let whole = |parts: &[String]| format!("{name}: {}.", parts.join("; "));
    let first = (1..=parts.len())
        .rev()
        .find(|&count| fits(&whole(&parts[..count])));
    let (first, rest) = parts.split_at(first.unwrap_or(1).min(parts.len()));
    let both = [first, rest].into_iter().filter(|parts| !parts.is_empty());
    let mut lines: Vec<String> = both.map(whole).collect();
    if let Some(line) = lines.first_mut() {
        *line = beginning(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_is_never_longer() {
        let long = "a ".repeat(200);
        let line = first_that_fits([long.clone(), format!("b {long}")]);
        assert!(line.starts_with("b a") && line.ends_with('…'), "{line}");
        assert!(fits(&line));
        assert_eq!(
            first_that_fits([long.clone(), String::from("short")]),
            "short"
        );
        assert!(short(&long).chars().count() <= NAME);
        // Whole sentences, or whole words.
        let words = "lengthy ".repeat(40);
        let line = first_that_fits([format!("Take it. {words}")]);
        assert_eq!(line, "Take it.");
        let line = first_that_fits([words]);
        assert!(line.ends_with("lengthy…"), "{line}");
        let lines = in_lines("x", &[long.clone(), long]);
        assert_eq!(lines.len(), 2);
        assert!(fits(&lines[0]), "{}", lines[0]);
    }

    #[test]
    fn a_model_is_named_once() {
        let levels = [
            "from data sheet",
            "unvalidated",
            "not judged yet",
            "validated",
        ];
        assert_eq!(
            levels.map(the_model),
            [
                "the model (from data sheet)",
                "the model (unvalidated)",
                "the model (not judged yet)",
                "the model"
            ]
        );
    }

    #[test]
    fn names_that_do_not_fit_are_counted() {
        let names = ["a", "b", "c"].map(String::from);
        assert_eq!(some_of(&names, 3), "a, b, c");
        assert_eq!(some_of(&names, 9), "a, b, c");
        assert_eq!(some_of(&names, 1), "a and 2 more");
        let parts = ["one", "two"].map(String::from);
        assert_eq!(in_lines("x", &parts), ["x: one; two."]);
    }
}
