//! Syntax of a job file: sections, comments, `include`, `${ENV}`, `$pagesize` and similar keywords.

use std::path::Path;
use std::sync::Arc;

use super::expression;
use super::{JobReader, Line};

/// Maximum nesting of included files.
const DEEPEST_INCLUDE: u32 = 16;
/// Maximum number of included files in total. Without this limit, a file that includes itself twice would be read
/// 2^16 times before the nesting is too deep.
const MOST_INCLUDES: u32 = 256;

/// Value of `$mb_memory`. Hosts of the catalogue do not specify their memory, and the memory of the machine that runs
/// the simulation would change the job between machines.
const MB_MEMORY: u32 = 65_536;

/// An option after substitution.
pub(super) struct ExpandedOption {
    pub text: String,
    /// Environment variables that are not set; their value is empty.
    pub unset: Vec<String>,
}

/// The start of a section.
struct Section {
    name: String,
    header: Line,
}

impl JobReader<'_> {
    /// Reads a whole job file. With `stonewall`, its first job waits for all jobs before it.
    pub(super) fn file(&mut self, origin: &str, text: &str, stonewall: bool) {
        let text: Arc<str> = text.strip_prefix('\u{feff}').unwrap_or(text).into();
        let origin: Arc<str> = origin.into();
        let mut stonewall = stonewall;
        let mut section: Option<Section> = None;
        let mut lines = Vec::new();
        for line in lines_of(&origin, &text) {
            let written = line.written();
            if written.starts_with('[') {
                self.section(section.take(), &mut lines, &mut stonewall);
                section = Some(self.header(line));
            } else if section.is_none() {
                let what = format!("`{written}` is before the first section");
                let help = Some("a section such as [global] or [job1] above it".to_string());
                self.problem(&origin, line.place(), what, help);
            } else {
                self.line(line, 0, &mut lines);
            }
        }
        self.section(section, &mut lines, &mut stonewall);
    }

    fn section(&mut self, section: Option<Section>, lines: &mut Vec<Line>, stonewall: &mut bool) {
        let lines = std::mem::take(lines);
        let Some(Section { name, header }) = section else {
            return;
        };
        if name.starts_with("global") {
            self.global(&lines);
        } else if self.wants(&name) {
            let mut lines = lines;
            lines.extend(self.overriding.iter().cloned());
            self.job(&name, &header, &lines, std::mem::take(stonewall));
        }
    }

    fn header(&mut self, line: Line) -> Section {
        let written = line.written();
        let name = written.strip_prefix('[').unwrap_or(written);
        let name = match name.split_once(']') {
            Some((name, "")) if !name.is_empty() => name.to_string(),
            _ => {
                let what = format!("`{written}` is not the head of a section");
                let help =
                    Some("a name in brackets, such as [job1], on a line of its own".to_string());
                self.problem(&line.origin.clone(), line.place(), what, help);
                name.trim_end_matches(']').to_string()
            }
        };
        Section { name, header: line }
    }

    /// Adds an option to its section, or the options of a file that the line includes.
    fn line(&mut self, line: Line, depth: u32, lines: &mut Vec<Line>) {
        let Some(rest) = line.written().strip_prefix("include") else {
            lines.push(line);
            return;
        };
        if !rest.starts_with(char::is_whitespace) {
            lines.push(line);
            return;
        }
        self.includes += 1;
        if self.includes > MOST_INCLUDES {
            if self.includes == MOST_INCLUDES + 1 {
                let what = format!("more than {MOST_INCLUDES} files are included in all");
                let help =
                    Some("check whether a file includes itself through other files".to_string());
                self.problem(&line.origin.clone(), line.place(), what, help);
            }
            return;
        }
        let named = Path::new(rest.trim());
        let beside = Path::new(&*line.origin)
            .parent()
            .map(|folder| folder.join(named));
        let read =
            |path: &Path| (self.surroundings.read)(path).map(|bytes| (path.to_path_buf(), bytes));
        let found = read(named).or_else(|error| match &beside {
            Some(path) if path != named => read(path),
            _ => Err(error),
        });
        match found {
            Ok(_) if depth >= DEEPEST_INCLUDE => {
                let what = format!("files include each other more than {DEEPEST_INCLUDE} deep");
                self.problem(&line.origin.clone(), line.place(), what, None);
            }
            Ok((path, bytes)) => {
                let origin: Arc<str> = path.display().to_string().into();
                let text: Arc<str> = String::from_utf8_lossy(&bytes).into();
                for included in lines_of(&origin, &text) {
                    if included.written().starts_with('[') {
                        let what = "an included file has no sections of its own".to_string();
                        self.problem(&origin, included.place(), what, Some("options only".into()));
                    } else {
                        self.line(included, depth + 1, lines);
                    }
                }
            }
            Err(error) => {
                let what = format!("include: {} cannot be read: {error}", named.display());
                self.problem(&line.origin.clone(), line.place(), what, None);
            }
        }
    }

    /// Replaces `${NAME}` and `$keyword` in the option.
    pub(super) fn substitute(&mut self, line: &Line, job: &str) -> ExpandedOption {
        let mut text = String::new();
        let mut unset = Vec::new();
        let mut rest = line.written();
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else {
                break;
            };
            text.push_str(before);
            match (self.surroundings.environment)(name) {
                Some(value) => text.push_str(&value),
                None => unset.push(name.to_owned()),
            }
            rest = after;
        }
        text.push_str(rest);
        let mut computed = false;
        let keywords = [
            ("$pagesize", 4096),
            ("$mb_memory", MB_MEMORY),
            ("$ncpus", self.surroundings.processors),
        ];
        for (keyword, value) in keywords {
            if text.contains(keyword) {
                if value == MB_MEMORY {
                    let what = format!(
                        "$mb_memory is read as {MB_MEMORY}: no host here says how much memory it has"
                    );
                    self.note(what, job);
                }
                text = text.replace(keyword, &value.to_string());
                computed = true;
            }
        }
        if computed {
            text = calculate(text);
        }
        ExpandedOption { text, unset }
    }
}

/// After a keyword, the value may be an arithmetic expression.
fn calculate(text: String) -> String {
    let Some((key, value)) = text.split_once('=') else {
        return text;
    };
    if !value.contains(['+', '-', '*', '/']) {
        return text;
    }
    match expression::evaluate(value, &|_| None) {
        Some(value) => format!("{key}={}", value as u64),
        None => text,
    }
}

/// Returns the lines that are neither empty nor comments, without comments and surrounding blanks.
fn lines_of<'t>(origin: &'t Arc<str>, text: &'t Arc<str>) -> impl Iterator<Item = Line> + 't {
    let mut start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let at = start;
        start += line.len();
        let end = line.find([';', '#']).unwrap_or(line.len());
        let blank = |letter: char| letter.is_whitespace() || letter.is_control();
        let content = line[..end].trim_matches(blank);
        if content.is_empty() {
            return None;
        }
        let lead = line.find(|letter| !blank(letter)).unwrap_or(0);
        Some(Line {
            origin: origin.clone(),
            text: text.clone(),
            range: at + lead..at + lead + content.len(),
            overriding: false,
        })
    })
}
