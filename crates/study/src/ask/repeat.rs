//! The command or the Python call that makes a request again, from the fields that differ from their defaults.
//!
//! A field is the option `--working-set` on the command line and the argument `working_set` in Python. On the command
//! line, all drives have the settings of the first: no subcommand gives drives settings of their own.

use serde_json::{Map, Value};

use super::{Ask, DriveSpec};

/// Interface that a request is written for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Face {
    /// A shell.
    CommandLine,
    /// A call of the package `drivelab`.
    Python,
}

/// Field of the drives.
const DRIVES: &str = "drives";
/// Field of further options of fio's jobs, and its name in Python.
const FIO: (&str, &str) = ("fio", "options");
/// Settings that are numbers in Python.
const NUMBERS: [&str; 2] = ["percentage-used", "wear-factor"];

/// Returns the command or call that makes the request again.
pub fn repeat<A: Ask>(request: &A, face: Face) -> String {
    let fields = changed(request);
    let drives = fields.iter().find(|(name, _)| name == DRIVES);
    let drives = drives.map(|(_, drives)| serde_json::from_value(drives.clone()));
    let drives: Vec<DriveSpec> = drives.and_then(Result::ok).unwrap_or_default();
    let first = fields.iter().filter(|(name, _)| A::FIRST == Some(name));
    let is_option = |(name, _): &&(String, Value)| name != DRIVES && A::FIRST != Some(name);
    let options = fields.iter().filter(is_option);
    match face {
        Face::CommandLine => {
            let mut words = vec![String::from("drivelab"), A::NAME.to_owned()];
            words.extend(first.map(|(_, value)| word(value)));
            words.extend(drives.iter().map(|drive| drive.name.clone()));
            let settings = drives.first().map(|drive| drive.settings.options());
            for (option, value) in settings.into_iter().flatten() {
                words.extend([format!("--{option}"), value]);
            }
            for (name, value) in options {
                words.extend(option_words(name, value));
            }
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            words.join(" ")
        }
        Face::Python => {
            let named: Vec<String> = drives.iter().map(python_drive).collect();
            let mut words: Vec<String> = first.map(|(_, value)| literal(value)).collect();
            words.push(format!("[{}]", named.join(", ")));
            words.extend(options.map(|(name, value)| argument(name, value)));
            format!("drivelab.{}({})", A::NAME, words.join(", "))
        }
    }
}

/// Returns the fields that differ from their defaults, in their order.
fn changed<A: Ask>(request: &A) -> Vec<(String, Value)> {
    let fields = |request: &A| match serde_json::to_value(request) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let usual = fields(&A::default());
    let differs = |(name, value): &(String, Value)| usual.get(name) != Some(value);
    fields(request).into_iter().filter(differs).collect()
}

/// Returns a value as one word of a command line.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn option_words(name: &str, value: &Value) -> Vec<String> {
    let option = format!("--{}", name.replace('_', "-"));
    match value {
        Value::Bool(_) => vec![option],
        Value::Array(several) => {
            let each = several.iter().map(|one| match one {
                Value::Array(pair) => {
                    Value::String(pair.iter().map(word).collect::<Vec<_>>().join("="))
                }
                one => one.clone(),
            });
            each.flat_map(|one| option_words(name, &one)).collect()
        }
        // A value that begins with a dash would be read as an option.
        value => match word(value) {
            text if text.starts_with('-') => vec![format!("{option}={text}")],
            text => vec![option, text],
        },
    }
}

fn argument(name: &str, value: &Value) -> String {
    match value {
        Value::Array(pairs) if name == FIO.0 => {
            let pair = |pair: &Value| format!("{}: {}", literal(&pair[0]), literal(&pair[1]));
            let pairs: Vec<String> = pairs.iter().map(pair).collect();
            format!("{}={{{}}}", FIO.1, pairs.join(", "))
        }
        value => format!("{name}={}", literal(value)),
    }
}

/// Returns a value as Python writes it.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => String::from("None"),
        Value::Bool(true) => String::from("True"),
        Value::Bool(false) => String::from("False"),
        Value::String(text) => python_text(text),
        Value::Array(several) => {
            let several: Vec<String> = several.iter().map(literal).collect();
            format!("[{}]", several.join(", "))
        }
        Value::Object(jobs) => format!("drivelab.fio({})", arguments_of_fio(jobs).join(", ")),
        other => other.to_string(),
    }
}

/// Returns the arguments of `drivelab.fio` for jobs; it splits options as a shell does.
fn arguments_of_fio(jobs: &Map<String, Value>) -> Vec<String> {
    let given = |name: &str| jobs.get(name).and_then(Value::as_array);
    let options = given("options").into_iter().flatten();
    let options: Vec<String> = options.map(|option| quoted(&word(option))).collect();
    let options = (!options.is_empty()).then(|| python_text(&options.join(" ")));
    let named = ["files", "sections"].into_iter().filter_map(|name| {
        let several = given(name).filter(|several| !several.is_empty())?;
        Some(format!(
            "{name}={}",
            literal(&Value::Array(several.clone()))
        ))
    });
    options.into_iter().chain(named).collect()
}

fn python_text(text: &str) -> String {
    let escaped = |c: char| match c {
        '\\' => String::from("\\\\"),
        '\'' => String::from("\\'"),
        '\n' => String::from("\\n"),
        '\r' => String::from("\\r"),
        c => c.to_string(),
    };
    format!("'{}'", text.chars().map(escaped).collect::<String>())
}

/// Returns a drive as Python makes it: a name, or a call with its settings.
fn python_drive(drive: &DriveSpec) -> String {
    let mut words = vec![python_text(&drive.name)];
    let mut changes = String::new();
    for (option, value) in drive.settings.options() {
        match value.split_once('=').filter(|_| option == "set") {
            Some((key, value)) => {
                let call = format!(".set({}, {})", python_text(key), python_text(value));
                changes.push_str(&call);
            }
            None => {
                let value = match NUMBERS.contains(&option) {
                    true => value,
                    false => python_text(&value),
                };
                words.push(format!("{}={value}", option.replace('-', "_")));
            }
        }
    }
    let volume = drive.settings.volume.iter();
    words.extend(volume.map(|name| format!("volume={}", python_text(name))));
    match words.len() == 1 && changes.is_empty() {
        true => words.concat(),
        false => format!("drivelab.Drive({}){changes}", words.join(", ")),
    }
}

/// Returns a word as a shell reads it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,/:+%@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them_otherwise() {
        assert_eq!(quoted("p99=1ms,iops=5"), "p99=1ms,iops=5");
        assert_eq!(quoted("p99<1ms"), "'p99<1ms'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
