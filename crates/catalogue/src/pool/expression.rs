//! A pool as an expression on a command line: `intent-log(main=raidz(6*exos-x18-16tb; parity=2), log=p4801x-100)`.
//!
//! ```text
//! pool    = KIND "(" part { "," part } [ ";" setting { "," setting } ] ")"
//! part    = [ ROLE "=" ] [ COUNT "*" ] ( pool | DRIVE )
//! setting = KEY "=" VALUE
//! ```
//! A part without a role is one of `members`. DRIVE is a name of the catalogue or the path of a file. A drive that
//! occurs once keeps its name. Drives that occur several times are named DRIVE.0, DRIVE.1 and so on, in the order of
//! the expression. A tier has the name of its role, or by default of its kind. Names that contain one of `*=,;()` are
//! not allowed.

use super::outline::{Form, Key, LocatedName, MemberEntry, ParsedPool, TextRange, TierEntry};
use crate::change::as_value;
use text::problem::Problem;
use text::toml::SourceFile;

/// Maximum nesting of pools. A deeper expression is a mistake, and would overflow the stack.
const DEEPEST: usize = 16;
/// Maximum number of drives.
const MOST: usize = 1024;

/// Checks whether the text is an expression and not a name or a path.
pub(super) fn is_expression(words: &str) -> bool {
    let before = words.split('(').next().unwrap_or_default();
    words.contains('(') && !before.contains(['/', '\\']) && !before.ends_with(".toml")
}

/// Parses the expression into an outline.
///
/// # Errors
/// The first syntax error, with its place.
pub(super) fn read(file: &SourceFile) -> Result<ParsedPool, Problem> {
    let mut words = ExpressionParser { file, at: 0 };
    let part = words.part(0)?;
    if words.at < file.text.trim_end().len() {
        return Err(words.syntax_error("text after the end of the pool", "remove it"));
    }
    if part.role.is_some() || part.count > 1 || matches!(part.what, PartKind::Drive) {
        let help = "write a kind and its members, such as `mirror(2*p4801x-100)`";
        let what = String::from("the expression is not a single pool");
        return Err(file.problem(part.name.at, what, Some(help.into())));
    }
    let mut drives = Vec::new();
    let mut tiers = Vec::new();
    part.count(1, &mut drives, &mut tiers);
    let total = drives.iter().map(|(_, count)| *count).sum::<usize>();
    if total.max(tiers.iter().map(|(_, count)| *count).sum()) > MOST {
        let help = format!("a pool has at most {MOST}");
        return Err(file.problem(None, String::from("too many drives or tiers"), Some(help)));
    }
    let mut drives: Vec<NumberedName> = drives.into_iter().map(NumberedName::from).collect();
    // Two files of the same name in different folders.
    for index in 1..drives.len() {
        let (before, rest) = drives.split_at_mut(index);
        let alike = before.iter().filter(|it| it.plain == rest[0].plain).count();
        if alike > 0 {
            rest[0].called = format!("{}-{}", rest[0].plain, alike + 1);
        }
    }
    let mut expanded = ExpandedPool {
        drives,
        tiers: tiers.into_iter().map(NumberedName::from).collect(),
        outline: ParsedPool::default(),
    };
    for drive in &expanded.drives {
        expanded.outline.members.push(MemberEntry {
            scope: String::new(),
            name: LocatedName {
                text: drive.called.clone(),
                at: drive.first.clone(),
            },
            drive: LocatedName {
                text: drive.text.clone(),
                at: drive.first.clone(),
            },
            count: (drive.count > 1).then_some(drive.count as u16),
            set: Vec::new(),
        });
    }
    expanded.add(&part);
    Ok(expanded.outline)
}

/// A parsed part.
struct ExpressionPart {
    role: Option<LocatedName>,
    count: usize,
    /// Name of the drive, or of the kind.
    name: LocatedName,
    what: PartKind,
}

enum PartKind {
    Drive,
    Pool {
        parts: Vec<ExpressionPart>,
        settings: Vec<Key>,
    },
}

impl ExpressionPart {
    /// Returns the name that the part has if it occurs once.
    fn called(&self) -> String {
        match (&self.what, &self.role) {
            (PartKind::Pool { .. }, Some(role)) => role.text.clone(),
            (PartKind::Pool { .. }, None) => self.name.text.clone(),
            (PartKind::Drive, _) => self.name.text.clone(),
        }
    }

    /// Counts the drives and tiers by name; this part occurs `times` times.
    fn count(
        &self,
        times: usize,
        drives: &mut Vec<(LocatedName, usize)>,
        tiers: &mut Vec<(LocatedName, usize)>,
    ) {
        let times = times.saturating_mul(self.count).min(MOST + 1);
        let counts = match self.what {
            PartKind::Drive => &mut *drives,
            PartKind::Pool { .. } => &mut *tiers,
        };
        let called = self.called();
        match counts.iter_mut().find(|(name, _)| name.text == called) {
            Some((_, count)) => *count += times,
            None => counts.push((
                LocatedName {
                    text: called,
                    at: self.name.at.clone(),
                },
                times,
            )),
        }
        if let PartKind::Pool { parts, .. } = &self.what {
            for part in parts {
                part.count(times, drives, tiers);
            }
        }
    }
}

/// A name that may occur several times.
struct NumberedName {
    /// Text in the expression.
    text: String,
    /// For a path, the stem of its file name.
    plain: String,
    /// Name in the pool.
    called: String,
    first: TextRange,
    count: usize,
    next: usize,
}

impl From<(LocatedName, usize)> for NumberedName {
    fn from((name, count): (LocatedName, usize)) -> NumberedName {
        let plain = crate::locate::stem(std::path::Path::new(&name.text)).to_owned();
        NumberedName {
            called: plain.clone(),
            plain,
            text: name.text,
            first: name.at,
            count,
            next: 0,
        }
    }
}

impl NumberedName {
    fn next(&mut self) -> String {
        self.next += 1;
        match self.count {
            1 => self.called.clone(),
            _ => format!("{}.{}", self.called, self.next - 1),
        }
    }
}

struct ExpandedPool {
    drives: Vec<NumberedName>,
    tiers: Vec<NumberedName>,
    outline: ParsedPool,
}

impl ExpandedPool {
    /// Adds a part and its contents as often as its count; returns the names.
    fn add(&mut self, part: &ExpressionPart) -> Vec<LocatedName> {
        let mut names = Vec::new();
        let called = part.called();
        for _ in 0..part.count {
            let text = match &part.what {
                PartKind::Drive => numbered(&mut self.drives, &called),
                PartKind::Pool { parts, settings } => {
                    let text = numbered(&mut self.tiers, &called);
                    let mut keys = settings.clone();
                    for part in parts {
                        self.add_to(&mut keys, part);
                    }
                    self.outline.tiers.push(TierEntry {
                        name: LocatedName {
                            text: text.clone(),
                            at: part.name.at.clone(),
                        },
                        kind: part.name.clone(),
                        keys,
                        scope: String::new(),
                    });
                    text
                }
            };
            names.push(LocatedName {
                text,
                at: part.name.at.clone(),
            });
        }
        names
    }

    fn add_to(&mut self, keys: &mut Vec<Key>, part: &ExpressionPart) {
        let mut names = self.add(part);
        let role = part.role.as_ref().map_or("members", |role| &role.text);
        let at = part
            .role
            .as_ref()
            .map_or(&part.name, |role| role)
            .at
            .clone();
        match keys
            .iter_mut()
            .find(|key| key.name == role)
            .map(|key| &mut key.form)
        {
            Some(Form::Names(known)) => known.append(&mut names),
            _ => keys.push(Key {
                name: role.to_owned(),
                at,
                form: Form::Names(names),
            }),
        }
    }
}

fn numbered(all: &mut [NumberedName], text: &str) -> String {
    let found = all.iter_mut().find(|one| one.text == text);
    found.map(NumberedName::next).unwrap_or_default()
}

/// Separators of words.
const SIGNS: [char; 6] = ['*', '=', ',', ';', '(', ')'];

struct ExpressionParser<'a> {
    file: &'a SourceFile,
    at: usize,
}

impl ExpressionParser<'_> {
    fn syntax_error(&self, what: &str, help: &str) -> Problem {
        let text = &self.file.text;
        let start = self.at.min(text.len());
        let end = text[start..]
            .chars()
            .next()
            .map_or(start, |c| start + c.len_utf8());
        let what = match start < end {
            true => format!("unexpected `{}`: {what}", &text[start..end]),
            false => format!("it ends too early: {what}"),
        };
        self.file
            .problem(Some(start..end), what, Some(help.to_owned()))
    }

    /// Consumes the next separator if it is this one.
    fn sign(&mut self, sign: char) -> bool {
        let rest = &self.file.text[self.at..];
        let blank = rest.len() - rest.trim_start().len();
        let found = rest[blank..].starts_with(sign);
        if found {
            self.at += blank + sign.len_utf8();
        }
        found
    }

    /// Returns the text up to the next separator.
    fn word(&mut self, signs: &[char]) -> Option<LocatedName> {
        let rest = &self.file.text[self.at..];
        let until = rest.find(signs).unwrap_or(rest.len());
        let word = rest[..until].trim();
        let start = self.at + (rest.len() - rest.trim_start().len()).min(until);
        self.at += until;
        (!word.is_empty()).then(|| LocatedName {
            text: word.to_owned(),
            at: Some(start..start + word.len()),
        })
    }

    fn name(&mut self, what: &str) -> Result<LocatedName, Problem> {
        let help = "such as `mirror(2*p4801x-100)` or `stripe(p3700-400, p3700-800; chunk=512k)`";
        self.word(&SIGNS)
            .ok_or_else(|| self.syntax_error(&format!("{what} is missing here"), help))
    }

    fn part(&mut self, depth: usize) -> Result<ExpressionPart, Problem> {
        let mut name = self.name("a drive, a kind or a role")?;
        let mut role = None;
        if self.sign('=') {
            role = Some(name);
            name = self.name("a drive or a kind")?;
        }
        let mut count = 1;
        if self.sign('*') {
            let fits = |count: &usize| (1..=MOST).contains(count);
            let Some(many) = name.text.parse().ok().filter(fits) else {
                let what = format!("`{}` is not a valid count", name.text);
                let help = format!("write a count from 1 to {MOST}");
                return Err(self.file.problem(name.at, what, Some(help)));
            };
            count = many;
            name = self.name("a drive or a kind")?;
        }
        let what = match self.sign('(') {
            false => PartKind::Drive,
            true if depth == DEEPEST => {
                return Err(self.syntax_error("pools are nested too deeply", "leave some out"));
            }
            true => self.inside(depth + 1)?,
        };
        Ok(ExpressionPart {
            role,
            count,
            name,
            what,
        })
    }

    /// Parses the content of the brackets.
    fn inside(&mut self, depth: usize) -> Result<PartKind, Problem> {
        let mut parts = vec![self.part(depth)?];
        while self.sign(',') {
            parts.push(self.part(depth)?);
        }
        let mut settings = Vec::new();
        if self.sign(';') {
            loop {
                self.setting(&mut settings)?;
                if !self.sign(',') {
                    break;
                }
            }
        }
        let role = |part: &ExpressionPart| {
            part.role
                .as_ref()
                .map_or("members", |it| &it.text)
                .to_owned()
        };
        let roles: Vec<String> = parts.iter().map(role).collect();
        if let Some(clash) = settings.iter().find(|key| roles.contains(&key.name)) {
            let what = format!("`{}` is a role and a setting", clash.name);
            let help = String::from("the parts of a pool come before the `;`");
            return Err(self.file.problem(clash.at.clone(), what, Some(help)));
        }
        match self.sign(')') {
            true => Ok(PartKind::Pool { parts, settings }),
            false => Err(self.syntax_error(
                "a `)` is missing here",
                "parts are separated by `,`, settings follow after `;`",
            )),
        }
    }

    fn setting(&mut self, settings: &mut Vec<Key>) -> Result<(), Problem> {
        let help = "write settings as KEY=VALUE, such as `chunk=512k`";
        let key = self
            .word(&SIGNS)
            .ok_or_else(|| self.syntax_error("a setting is missing here", help))?;
        if !self.sign('=') {
            return Err(self.syntax_error("a `=` is missing here", help));
        }
        let value = self
            .word(&[',', ';', '(', ')'])
            .ok_or_else(|| self.syntax_error("a value is missing here", help))?;
        let place = match (key.at.clone(), value.at) {
            (Some(key), Some(value)) => Some(key.start..value.end),
            _ => None,
        };
        let clash = || format!("`{}` is set twice", key.text);
        let known = settings.iter().any(|it| it.name == key.text);
        if known || Key::set(settings, &key.text, as_value(&value.text), place.clone()).is_none() {
            return Err(self
                .file
                .problem(place, clash(), Some(String::from("keep one of them"))));
        }
        Ok(())
    }
}
