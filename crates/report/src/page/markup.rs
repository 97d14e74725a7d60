//! Text for the page, beyond maud's escaping: figures with their units, JSON in a script.

/// Returns the text with a non-breaking space between each number and its unit.
pub(crate) fn tied(text: &str) -> String {
    const UNITS: [&str; 17] = [
        "µs", "ms", "ns", "s", "k", "M", "IOPS", "B", "KiB", "MiB", "MB/s", "GB/s", "%", "GB",
        "TB", "times", "fold",
    ];
    let mut tied = String::with_capacity(text.len());
    let mut number = false;
    for (index, word) in text.split(' ').enumerate() {
        let unit = word.trim_end_matches([',', '.', ';', ':']);
        let unit = UNITS.contains(&unit);
        if index > 0 {
            tied.push(if number && unit { '\u{a0}' } else { ' ' });
        }
        tied.push_str(word);
        // `550 k IOPS`: a unit may follow a unit.
        number = word.ends_with(|last: char| last.is_ascii_digit()) || (number && unit);
    }
    tied
}

/// Returns JSON for a script element: without `<`, so that no end tag and no comment can begin.
pub(super) fn json_in_script(value: &serde_json::Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_units() {
        assert_eq!(
            tied("with 550 k IOPS; at QD8 a few"),
            "with 550\u{a0}k\u{a0}IOPS; at QD8 a few"
        );
        assert_eq!(tied("9.8 µs, 0.1 % on"), "9.8\u{a0}µs, 0.1\u{a0}% on");
    }

    #[test]
    fn nothing_a_user_wrote_can_end_a_script() {
        let trap = "</script><script>alert('x')</script><!--\u{2028}";
        let json = json_in_script(&serde_json::json!({ "job": trap }));
        assert!(!json.contains('<'));
        let back: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(back["job"], trap);
    }
}
