//! Text made safe for HTML.

/// Text as it may stand in an element or a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(character),
        }
    }
    safe
}

/// JSON as it may stand in a script element: no `<`, so no end tag and no comment can begin.
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
    fn nothing_a_user_wrote_can_end_a_script_or_open_a_tag() {
        let trap = "</script><script>alert('x')</script><!--\u{2028}";
        let json = json_in_script(&serde_json::json!({ "job": trap }));
        assert!(!json.contains('<'));
        let back: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(back["job"], trap);
        assert!(!escape(trap).contains('<'));
        assert!(!escape("a\"b'c").contains(['"', '\'']));
    }
}
