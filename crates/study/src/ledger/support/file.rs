//! Content of `ledger/support.json`: a line for each drive, family, source and missed row, so that a diff shows which of
//! them a change of a model affects.

use serde_json::Value;

use super::Supports;

impl Supports {
    /// Returns the content of `ledger/support.json`.
    ///
    /// # Errors
    /// A value cannot be written as JSON.
    pub fn json_lines(&self) -> serde_json::Result<String> {
        Ok(lines(&serde_json::to_value(self)?, 2) + "\n")
    }
}

/// Returns a value as JSON: one line for each entry at the upper `levels`, the entries below on one line.
fn lines(value: &Value, levels: u32) -> String {
    match value {
        Value::Object(fields) if levels > 0 && !fields.is_empty() => {
            let fields = fields.iter();
            let line = |(key, value)| format!("\"{key}\": {}", lines(value, levels - 1));
            let fields: Vec<String> = fields.map(line).collect();
            format!("{{\n{}\n}}", fields.join(",\n"))
        }
        Value::Array(list) if levels > 0 && !list.is_empty() => {
            let list: Vec<String> = list.iter().map(Value::to_string).collect();
            format!("[\n{}\n]", list.join(",\n"))
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A release without a change of a model does not change the file.
    #[test]
    fn the_file_is_written_as_it_was_read() {
        let text = include_str!("../../../../../ledger/support.json");
        let supports: Supports = serde_json::from_str(text).expect("the file is valid");
        assert!(supports.misses.len() > 100 && supports.drives.len() > 20);
        assert_eq!(supports.json_lines().expect("JSON"), text);
    }
}
