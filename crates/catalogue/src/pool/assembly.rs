//! Builds the model's configuration from an outline: looks up names, lays out slices, and reads tiers from the drives
//! upwards. All problems are reported together, each with its place.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use model::media::Medium;
use tier::config::LABEL_BYTES;
use tier::{DriveConfig, Kind, Member, PoolConfig, Target, TierConfig, TierSettings};

use super::keys::{CurrentSetting, Keys};
use super::members::Drives;
use super::outline::{LocatedName, ParsedPool, TextRange};
use super::{ChildRole, KINDS, PoolSheet, TierSheet};
use crate::section::Findings;
use text::problem::nearest;
use text::quantity::decimal;
use text::toml::{SourceFile, quoted};

/// A named part of the pool: a member, a slice or a tier.
struct NamedPart {
    name: String,
    at: TextRange,
    what: NameTarget,
    /// The tier that uses it.
    used_by: Option<String>,
}

#[derive(Clone, Copy)]
enum NameTarget {
    Member(u16),
    Slice(Target),
    /// Index of the tier's entry.
    Tier(usize),
}

/// Progress of reading a tier.
#[derive(Clone, Copy, PartialEq)]
enum Progress {
    Unread,
    Reading,
    /// Index of the tier in the configuration; `None` if the tier has a problem.
    Read(Option<u16>),
}

pub(super) struct Assembly<'a> {
    findings: &'a Findings,
    file: &'a SourceFile,
    outline: &'a ParsedPool,
    drives: &'a Drives,
    settings: &'a RefCell<Vec<CurrentSetting>>,
    things: Vec<NamedPart>,
    progress: Vec<Progress>,
    tiers: Vec<TierConfig>,
    sheets: Vec<TierSheet>,
    capacities: Vec<u64>,
    /// By entry: the index of its sheet.
    sheet_of: Vec<Option<usize>>,
}

/// The tier that is being read, as the reader of its kind sees it.
pub(super) struct TierReader<'t, 'a> {
    /// Settings and figures of the tier.
    pub(super) keys: Keys<'a>,
    assembly: &'t mut Assembly<'a>,
    /// Prefix of the names in the tier.
    scope: &'a str,
    /// Name of the tier in messages.
    name: String,
    children: Vec<Target>,
    roles: Vec<ChildRole>,
}

/// Builds the configuration that the outline describes, and its sheet. If there is a problem, records it and returns
/// `None`.
pub(super) fn assemble(
    findings: &Findings,
    file: &SourceFile,
    outline: &ParsedPool,
    drives: &Drives,
) -> Option<(PoolConfig<DriveConfig>, PoolSheet)> {
    let settings = RefCell::default();
    let mut assembly = Assembly {
        findings,
        file,
        outline,
        drives,
        settings: &settings,
        things: Vec::new(),
        progress: vec![Progress::Unread; outline.tiers.len()],
        tiers: Vec::new(),
        sheets: Vec::new(),
        capacities: Vec::new(),
        sheet_of: vec![None; outline.tiers.len()],
    };
    assembly.name_members();
    assembly.name_slices();
    assembly.name_tiers();
    for tier in 0..outline.tiers.len() {
        assembly.tier(tier);
    }
    let volumes = assembly.volumes();
    assembly.check_idle();
    let Assembly {
        tiers,
        mut sheets,
        sheet_of,
        ..
    } = assembly;
    for noted in settings.into_inner() {
        let Some(sheet) = sheet_of[noted.tier] else {
            continue;
        };
        if !noted.words.is_empty() {
            let words = (noted.key.clone(), noted.words);
            sheets[sheet].words.push(words);
        }
        sheets[sheet].settings.push((noted.key, noted.value));
    }
    if !findings.problems.borrow().is_empty() {
        return None;
    }
    let member = |(name, config): (&String, &Option<DriveConfig>)| {
        Some(Member {
            name: name.clone(),
            drive: config.clone()?,
        })
    };
    let members = drives.names.iter().zip(&drives.configs);
    let config = PoolConfig {
        members: members.map(member).collect::<Option<_>>()?,
        tiers,
        volumes,
        label_bytes: LABEL_BYTES,
    };
    for what in config.problems() {
        let problem = file.problem(None, what, None);
        findings.problems.borrow_mut().push(problem);
    }
    let sheet = PoolSheet {
        members: drives.sheets.iter().copied().collect::<Option<_>>()?,
        tiers: sheets,
    };
    Some((config, sheet))
}

impl<'a> Assembly<'a> {
    fn add_problem(&self, at: &TextRange, what: String, help: impl Into<String>) {
        let problem = self.file.problem(at.clone(), what, Some(help.into()));
        self.findings.problems.borrow_mut().push(problem);
    }

    fn add(&mut self, name: String, at: TextRange, what: NameTarget) {
        if self.things.iter().any(|thing| thing.name == name) {
            let help = "members, slices and tiers need names of their own";
            self.add_problem(&at, format!("`{name}` is defined twice"), help);
            return;
        }
        self.things.push(NamedPart {
            name,
            at,
            what,
            used_by: None,
        });
    }

    fn name_members(&mut self) {
        let drives = self.drives;
        for (index, (name, at)) in drives.names.iter().zip(&drives.places).enumerate() {
            self.add(name.clone(), at.clone(), NameTarget::Member(index as u16));
        }
    }

    /// Names the slices of one entry NAME.0 and so on if there are several of them, or if their members are given
    /// with a `*`.
    fn name_slices(&mut self) {
        let drives = self.drives;
        let mut ends = vec![0; drives.names.len()];
        for entry in &self.outline.slices {
            let found = self.resolve(&entry.of, &entry.name.text);
            let several = found.len() > 1 || entry.of.iter().any(|of| of.text.contains('*'));
            for (index, &thing) in found.iter().enumerate() {
                let NameTarget::Member(member) = self.things[thing].what else {
                    let what = format!(
                        "slices.{}: `{}` is not a member",
                        entry.name.text, self.things[thing].name
                    );
                    self.add_problem(&entry.name.at, what, "slices are parts of drives");
                    continue;
                };
                self.things[thing].used_by = Some(format!("slice `{}`", entry.name.text));
                let end = &mut ends[usize::from(member)];
                let base = entry.offset.unwrap_or(*end);
                let held = drives.configs[usize::from(member)].as_ref();
                let held = held.map(Medium::capacity_bytes);
                let rest = held.unwrap_or(u64::MAX / 2).saturating_sub(base);
                let bytes = entry.size.unwrap_or(rest / 4096 * 4096);
                *end = base + bytes;
                if bytes > rest || bytes <= LABEL_BYTES {
                    let what = format!(
                        "slices.{}: {} of `{}` starting at {} exceeds its capacity of {}",
                        entry.name.text,
                        decimal(bytes),
                        drives.names[usize::from(member)],
                        decimal(base),
                        decimal(held.unwrap_or(0)),
                    );
                    let help = "a slice lies within its member and is larger than the 1 MiB that its label takes";
                    self.add_problem(&entry.name.at, what, help);
                }
                let name = match several {
                    true => format!("{}.{index}", entry.name.text),
                    false => entry.name.text.clone(),
                };
                let target = Target::Slice {
                    member,
                    base,
                    bytes,
                };
                self.add(name, entry.name.at.clone(), NameTarget::Slice(target));
            }
        }
    }

    fn name_tiers(&mut self) {
        for (index, tier) in self.outline.tiers.iter().enumerate() {
            self.add(
                tier.name.text.clone(),
                tier.name.at.clone(),
                NameTarget::Tier(index),
            );
        }
    }

    /// Finds the parts with these names. For a name without a part, records a problem of `who`.
    fn resolve(&self, names: &[LocatedName], who: &str) -> Vec<usize> {
        self.resolve_in("", names, who)
    }

    /// As `resolve`, in one part of a cluster.
    fn resolve_in(&self, scope: &str, names: &[LocatedName], who: &str) -> Vec<usize> {
        let mut found = Vec::new();
        for name in names {
            let full = format!("{scope}{}", name.text);
            let matching =
                |(index, thing): (usize, &NamedPart)| matches(&full, &thing.name).then_some(index);
            let before = found.len();
            found.extend(self.things.iter().enumerate().filter_map(matching));
            if found.len() > before {
                continue;
            }
            let text = &name.text;
            let what = format!("{who}: there is no `{text}`");
            let several = format!("{text}.0");
            let known = || {
                let names = self.things.iter().map(|thing| &*thing.name);
                names.filter_map(|name| name.strip_prefix(scope))
            };
            let help = match (known().any(|it| it == several), nearest(text, known())) {
                (true, _) => format!("there are several: write `{text}.*`, or one as `{several}`"),
                (false, Some(near)) => format!("did you mean `{near}`?"),
                (false, None) => {
                    format!("there are `{}`", known().collect::<Vec<_>>().join("`, `"))
                }
            };
            self.add_problem(&name.at, what, help);
        }
        found
    }

    /// Returns the tier of this entry; reads it first if necessary.
    fn tier(&mut self, index: usize) -> Option<u16> {
        match self.progress[index] {
            Progress::Read(tier) => return tier,
            Progress::Reading => {
                let entry = &self.outline.tiers[index];
                let what = format!("tier.{}: the tier contains itself", entry.name.text);
                self.add_problem(
                    &entry.name.at,
                    what,
                    "the lowest tiers of a pool must consist of drives",
                );
                return None;
            }
            Progress::Unread => self.progress[index] = Progress::Reading,
        }
        let tier = self.read(index);
        self.progress[index] = Progress::Read(tier);
        tier
    }

    fn read(&mut self, index: usize) -> Option<u16> {
        let entry = &self.outline.tiers[index];
        let known = KINDS.iter().find(|kind| kind.word == entry.kind.text);
        let Some(reader) = known else {
            let what = format!("tier.{}: no kind `{}`", entry.name.text, entry.kind.text);
            let words = KINDS.iter().map(|kind| kind.word);
            let help = match nearest(&entry.kind.text, words) {
                Some("raidz") => String::from(
                    "write `raidz`, with `; parity=2` after its drives for two parity columns",
                ),
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the kinds are {}", super::kind_words()),
            };
            self.add_problem(&entry.kind.at, what, help);
            return None;
        };
        let path = format!("tier.{}", entry.plain());
        let before = self.findings.problems.borrow().len();
        let mut tier = TierReader {
            keys: Keys::new(
                (self.findings, self.file),
                (path.clone(), index),
                (&entry.keys, entry.name.at.clone()),
                self.settings,
            ),
            assembly: self,
            scope: &entry.scope,
            name: path,
            children: Vec::new(),
            roles: Vec::new(),
        };
        let kind = (reader.read)(&mut tier);
        let TierReader {
            keys,
            children,
            roles,
            ..
        } = tier;
        drop(keys);
        if self.findings.problems.borrow().len() > before {
            return None;
        }
        let sizes = self.sizes(&children);
        // Sizes are meaningful only if every drive is known.
        if self.findings.problems.borrow().is_empty() {
            for what in kind.problems(&sizes) {
                let what = format!("tier.{}: {what}", entry.plain());
                self.add_problem(&entry.name.at, what, "see docs/tiers.md");
            }
        }
        self.capacities.push(kind.capacity(&sizes));
        self.sheet_of[index] = Some(self.sheets.len());
        self.sheets.push(TierSheet {
            kind: reader.word,
            roles,
            settings: Vec::new(),
            words: Vec::new(),
        });
        self.tiers.push(TierConfig {
            name: entry.name.text.clone(),
            kind,
            children,
        });
        Some((self.tiers.len() - 1) as u16)
    }

    /// Returns the bytes of each target that a tier above can use.
    fn sizes(&self, targets: &[Target]) -> Vec<u64> {
        let size = |target: &Target| match *target {
            Target::Slice { bytes, .. } => bytes.saturating_sub(LABEL_BYTES),
            Target::Tier(tier) => self.capacities[usize::from(tier)],
        };
        targets.iter().map(size).collect()
    }

    /// Returns the target that a part is for the tier above, and records its use. `None` if the part cannot be used.
    fn target(&mut self, thing: usize, user: &str, at: &TextRange) -> Option<Target> {
        if let Some(other) = &self.things[thing].used_by {
            let name = &self.things[thing].name;
            let what = match other == user {
                true => format!("{user} names `{name}` twice"),
                false => format!("{user}: {other} already uses `{name}`"),
            };
            let help =
                "each member, slice or tier is in one place; parts of a drive are slices of it";
            self.add_problem(at, what, help);
            return None;
        }
        self.things[thing].used_by = Some(user.to_owned());
        match self.things[thing].what {
            NameTarget::Slice(target) => Some(target),
            NameTarget::Tier(tier) => self.tier(tier).map(Target::Tier),
            NameTarget::Member(member) => {
                let config = self.drives.configs[usize::from(member)].as_ref()?;
                Some(Target::Slice {
                    member,
                    base: 0,
                    bytes: config.capacity_bytes() / 4096 * 4096,
                })
            }
        }
    }

    /// Returns the served tiers: the named ones, or by default the topmost tiers.
    fn volumes(&mut self) -> Vec<u16> {
        let outline = self.outline;
        let mut served = Vec::new();
        match &outline.serve {
            Some(names) => {
                for name in names {
                    for thing in self.resolve(std::slice::from_ref(name), "serve") {
                        served.push((thing, name.at.clone()));
                    }
                }
            }
            None => {
                let top = |thing: &NamedPart| {
                    matches!(thing.what, NameTarget::Tier(_)) && thing.used_by.is_none()
                };
                let tops = self.things.iter().enumerate().filter(|(_, it)| top(it));
                served.extend(tops.map(|(index, thing)| (index, thing.at.clone())));
            }
        }
        let mut volumes = Vec::new();
        for (thing, at) in served {
            if !matches!(self.things[thing].what, NameTarget::Tier(_)) {
                let what = format!("serve: `{}` is not a tier", self.things[thing].name);
                self.add_problem(&at, what, "put it into a `concat` of one");
                continue;
            }
            if let Some(Target::Tier(tier)) = self.target(thing, "serve", &at) {
                volumes.push(tier);
            }
        }
        if self.outline.tiers.is_empty() && self.findings.problems.borrow().is_empty() {
            let help = format!(
                "write [tier.NAME] with `kind`: one of {}",
                super::kind_words()
            );
            self.add_problem(&None, String::from("the pool has no tiers"), help);
        }
        volumes
    }

    /// Reports parts that no tier uses and that are not served. Skipped if there are other problems, because these
    /// may be the cause.
    fn check_idle(&self) {
        if !self.findings.problems.borrow().is_empty() {
            return;
        }
        let idle = self.things.iter().filter(|it| it.used_by.is_none());
        let idle: Vec<&NamedPart> = idle.collect();
        if let Some(first) = idle.first() {
            let names: Vec<&str> = idle.iter().map(|thing| &*thing.name).collect();
            let what = format!("no tier uses {}", quoted(&names));
            let help = "name it in a tier or in `serve`, or take it out";
            self.add_problem(&first.at, what, help);
        }
    }
}

impl TierReader<'_, '_> {
    /// Checks whether a role that has been read has a tier of such a kind.
    pub(super) fn has_child_of(&self, role: &str, is: impl Fn(&Kind) -> bool) -> bool {
        let mut first = 0;
        for one in &self.roles {
            let children = &self.children[first..first + one.children];
            first += one.children;
            if one.name == role {
                return children.iter().any(|target| match target {
                    Target::Tier(tier) => is(&self.assembly.tiers[usize::from(*tier)].kind),
                    Target::Slice { .. } => false,
                });
            }
        }
        false
    }

    /// Adds the parts that a role names to the children of the tier. Returns the usable bytes of each. A role whose
    /// minimum is 0 may be absent.
    pub(super) fn children(
        &mut self,
        role: &'static str,
        count: RangeInclusive<usize>,
    ) -> Vec<u64> {
        let (least, most) = (*count.start(), *count.end());
        let Some(names) = self.keys.names(role) else {
            if least > 0 {
                let what = format!("`{}.{role}` is missing", self.name);
                let help = "name members, slices or tiers, such as `\"sas.*\"`";
                self.keys.problem(role, what, help);
            }
            return Vec::new();
        };
        let user = format!("`{}`", self.name);
        let found = self.assembly.resolve_in(self.scope, &names, &self.name);
        // Names without a part have already been reported.
        let told = found.is_empty() && !names.is_empty();
        if !told && !count.contains(&found.len()) {
            let what = format!("`{}.{role}` names {}", self.name, found.len());
            let help = match least == most {
                true => format!("name {least}"),
                false => format!("name from {least} to {most}"),
            };
            self.keys.problem(role, what, help);
        }
        let at = names.first().and_then(|name| name.at.clone());
        let mut children = Vec::new();
        for &thing in &found {
            children.extend(self.assembly.target(thing, &user, &at));
        }
        self.roles.push(ChildRole {
            name: role,
            children: children.len(),
        });
        let sizes = self.assembly.sizes(&children);
        self.children.append(&mut children);
        sizes
    }
}

/// Checks whether a name matches a pattern, in which `*` matches any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(rest) = name.strip_prefix(before) else {
        return false;
    };
    rest.char_indices()
        .map(|(index, _)| index)
        .chain([rest.len()])
        .any(|index| matches(after, &rest[index..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, whether) in [
            ("sas.*", "sas.0", true),
            ("sas.*", "sas.12", true),
            ("sas.*", "sas", false),
            ("*", "anything", true),
            ("*.1", "sas.1", true),
            ("*.1", "sas.11", false),
            ("s*.*1", "sas.11", true),
            ("sas", "sas.0", false),
        ] {
            assert_eq!(matches(pattern, name), whether, "{pattern} {name}");
        }
    }
}
