//! Numbers as `smartctl` and `nvme` print them: integers with the thousands separators of any locale, JSON numbers that
//! some versions write as strings or floating-point numbers, hexadecimal flags.

use serde_json::Value;

/// Returns a JSON number, or the number that a JSON string begins with; `None` for a negative number or another value.
///
/// Some versions of nvme-cli write an object with `value` where others write a number.
pub(super) fn of_json(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => plain(text.trim()).or_else(|| of_text(text)),
        Value::Object(members) => match members.get("value") {
            Some(Value::Object(_)) | None => None,
            Some(value) => of_json(value),
        },
        _ => None,
    };
    number.filter(|number| number.is_finite() && *number >= 0.0)
}

/// Returns a number without separators; words such as `inf` are not numbers.
fn plain(text: &str) -> Option<f64> {
    let digit = text.starts_with(|c: char| c.is_ascii_digit());
    let number = digit.then(|| text.parse::<f64>().ok())?;
    number.filter(|number| number.is_finite())
}

fn is_separator(c: char) -> bool {
    matches!(
        c,
        ',' | '.' | '\'' | '\u{2019}' | ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}'
    )
}

/// Returns the whole number that a text begins with: `28,167,888 [14.4 TB]`, `28.167.888`, `1,23,45,678`, `0x00`, `45%`.
pub(super) fn of_text(text: &str) -> Option<f64> {
    let text = text.trim().trim_start_matches('~');
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        let end = hexadecimal.find(|c: char| !c.is_ascii_hexdigit());
        let digits = &hexadecimal[..end.unwrap_or(hexadecimal.len())];
        return u64::from_str_radix(digits, 16).ok().map(|it| it as f64);
    }
    let word = text.split_whitespace().next()?;
    let exponent = word.contains(['e', 'E']);
    if exponent
        && word
            .chars()
            .all(|c| c.is_ascii_digit() || "eE+-.".contains(c))
    {
        return plain(word);
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && !is_separator(c));
    let number = text[..end.unwrap_or(text.len())].trim_end_matches(is_separator);
    let groups: Vec<&str> = number.split(is_separator).collect();
    let digits: usize = groups.iter().map(|group| group.len()).sum();
    let (first, rest) = groups.split_first()?;
    if rest.is_empty() {
        return plain(first);
    }
    // The last group has three digits in every locale; Indian groups before it have two.
    let grouped = (1..=3).contains(&first.len())
        && rest.iter().all(|group| matches!(group.len(), 2 | 3))
        && rest.last().is_some_and(|group| group.len() == 3)
        && digits <= 39;
    match grouped {
        true => plain(&groups.concat()),
        // Words follow a number after a blank; a decimal has a point.
        false => plain(word.trim_end_matches([',', '.', ';'])),
    }
}

/// Returns the decimal that a text begins with; the decimal separator is a point, as in JSON.
pub(super) fn decimal(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    plain(&text[..end.unwrap_or(text.len())])
}
