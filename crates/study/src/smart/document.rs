//! JSON documents in a file, and the text between them.
//!
//! A document begins at a line that begins with `{`, or with `[` before a `{`. After one that is not valid JSON, reading
//! resumes at the next line whose first character is `{`: both programs indent all but the outermost braces.

use serde_json::{Map, Value};
use text::problem::Problem;

use super::{ParsedDevice, at_line, nvme_cli, smartctl};

/// Part of a file.
pub(super) enum FilePart<'a> {
    /// The drives of one document.
    Json(Vec<Result<ParsedDevice, Problem>>),
    /// Text, which may be the programs' output without `-j`.
    Text {
        /// Number of its first line.
        line: usize,
        /// The text itself.
        text: &'a str,
    },
}

/// Returns the documents of a file, and the text before, between and after them.
pub(super) fn pieces<'a>(origin: &str, text: &'a str) -> Vec<FilePart<'a>> {
    let mut pieces = Vec::new();
    let mut lines = LineCounter::new(text);
    let mut identity = None;
    let mut done = 0;
    while let Some(start) = next(text, done) {
        if start > done {
            pieces.push(FilePart::Text {
                line: lines.line_at(done),
                text: &text[done..start],
            });
        }
        let line = lines.line_at(start);
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                done = start + stream.byte_offset();
                let mut reader = Reader {
                    origin,
                    line,
                    found: Vec::new(),
                    identity: &mut identity,
                };
                reader.take(None, &value, 0);
                pieces.push(FilePart::Json(reader.found));
            }
            Some(Err(error)) => {
                let problem = invalid(origin, line, &text[start..], &error);
                pieces.push(FilePart::Json(vec![Err(problem)]));
                let after = text[start + 1..].find("\n{");
                done = after.map_or(text.len(), |at| start + 1 + at + 1);
            }
            None => break,
        }
    }
    if done < text.len() {
        pieces.push(FilePart::Text {
            line: lines.line_at(done),
            text: &text[done..],
        });
    }
    pieces
}

/// Counts lines up to ascending offsets, each byte once.
struct LineCounter<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> LineCounter<'a> {
    fn new(text: &'a str) -> LineCounter<'a> {
        LineCounter {
            text,
            at: 0,
            line: 1,
        }
    }

    fn line_at(&mut self, offset: usize) -> usize {
        let between = self.text.as_bytes()[self.at..offset].iter();
        self.line += between.filter(|&&byte| byte == b'\n').count();
        self.at = offset;
        self.line
    }
}

/// Returns the offset of the next document at or after `from`, which is the start of the file, the start of a line or
/// the end of a document.
fn next(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let line = &text[at..];
        let begin = line.trim_start_matches([' ', '\t', '\r', ',']);
        let list = begin
            .strip_prefix('[')
            .is_some_and(|rest| rest.trim_start().starts_with('{'));
        if begin.starts_with('{') || list {
            return Some(text.len() - begin.len());
        }
        at += line.find('\n')? + 1;
    }
}

fn invalid(origin: &str, line: usize, text: &str, error: &serde_json::Error) -> Problem {
    let within = error.line().saturating_sub(1);
    let at = line + within;
    // An outermost brace where an indented line is expected.
    let begins = || {
        text.lines()
            .nth(within)
            .is_some_and(|row| row.starts_with('{'))
    };
    let next = within > 0 && error.column() <= 1 && begins();
    match error.is_eof() || next {
        true => {
            let how = match next {
                true => "another one begins",
                false => "the text ends",
            };
            at_line(
                origin,
                line,
                format!("the JSON document that begins here is incomplete: {how} at line {at}"),
                "copy the output to its last `}`",
            )
        }
        false => at_line(
            origin,
            at,
            format!("the JSON document that begins at line {line} is invalid here: {error}"),
            "copy the output unchanged, without lines of the terminal in it",
        ),
    }
}

/// Levels of arrays and objects around documents.
const LEVELS: usize = 4;

struct Reader<'a> {
    origin: &'a str,
    line: usize,
    found: Vec<Result<ParsedDevice, Problem>>,
    /// Identify Controller of nvme-cli that precedes the log of its drive.
    identity: &'a mut Option<nvme_cli::Identity>,
}

impl Reader<'_> {
    fn take(&mut self, label: Option<&str>, value: &Value, level: usize) {
        match value {
            Value::Array(values) if level < LEVELS => {
                for value in values {
                    self.take(label, value, level + 1);
                }
            }
            Value::Object(members) => self.object(label, members, level),
            _ => {}
        }
    }

    fn object(&mut self, label: Option<&str>, members: &Map<String, Value>, level: usize) {
        let (origin, line) = (self.origin, self.line);
        if smartctl::is(members) {
            let read = smartctl::read(origin, line, label, members);
            self.found.push(read);
        } else if nvme_cli::is(members) {
            let identity = self.identity.take();
            let read = nvme_cli::read(origin, line, label, identity, members);
            self.found.push(read);
        } else if let Some(identity) = nvme_cli::identity(members) {
            *self.identity = Some(identity);
        } else {
            let inner: Vec<(&String, &Value)> = members
                .iter()
                .filter(|(_, value)| value.is_object() || value.is_array())
                .collect();
            let before = self.found.len();
            if level < LEVELS {
                for (key, value) in inner {
                    self.take(Some(key), value, level + 1);
                }
            }
            if level == 0 && self.found.len() == before {
                self.found.push(Err(unknown(origin, line, members)));
            }
        }
    }
}

fn unknown(origin: &str, line: usize, members: &Map<String, Value>) -> Problem {
    let keys: Vec<String> = members
        .keys()
        .take(4)
        .map(|key| text::foreign::printable(key).chars().take(40).collect())
        .collect();
    let keys = match keys.is_empty() {
        true => String::from("it is empty"),
        false => format!("its keys are {}", keys.join(", ")),
    };
    at_line(
        origin,
        line,
        format!("this JSON document has no SMART log of smartctl or nvme-cli; {keys}"),
        super::ASK,
    )
}
