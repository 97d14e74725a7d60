//! `[raid0]`: several drives of the catalogue, striped into one.

use model::media::Medium;
use tier::DriveConfig;
use tier::raid0::Raid0Config;

use super::change::{Change, changed};
use super::{Context, DriveRole, MediumSection, Section, locate, pool, read_drive};

/// Maximum relative difference between the given capacity and the sum of the members; makers round.
const ROUNDING: f64 = 0.001;

pub(super) const SECTION: MediumSection = MediumSection {
    name: "raid0",
    read,
    free: &[],
    composed: true,
};

fn read(section: &mut Section<'_>, context: &Context<'_>) -> DriveConfig {
    let names = section.texts("members");
    let stripe = section.bytes("stripe", 4096..=16 << 20);
    if !stripe.is_multiple_of(4096) {
        section.problem(
            "stripe",
            "`raid0.stripe` is not a multiple of 4 KiB",
            "write a multiple of 4 KiB, such as `128 KiB`",
        );
    }
    let config = Raid0Config {
        members: members(section, context, &names),
        stripe: stripe as u32,
    };
    // If a member is missing, its size is missing too.
    if config.members.len() == names.len() && !names.is_empty() {
        let held = config.capacity_bytes();
        let off = (held as f64 / context.capacity as f64 - 1.0).abs();
        if off > ROUNDING {
            section.problem(
                "members",
                format!(
                    "the members hold {held} bytes, the drive is said to hold {}",
                    context.capacity
                ),
                "correct `capacity` or `members`",
            );
        }
    }
    DriveConfig::Raid0(config)
}

/// Returns the members that can be read; records problems with the others. The members of a member are not read: its
/// user refuses it, so a drive that names itself does not recurse without end.
fn members(section: &mut Section<'_>, context: &Context<'_>, names: &[String]) -> Vec<DriveConfig> {
    let DriveRole::Alone(changes) = context.role else {
        return Vec::new();
    };
    for (key, _) in changes {
        if names.iter().all(|name| of_member(key, name).is_none()) {
            section.problem(
                "members",
                format!("`{key}` cannot be changed: it names none of the members"),
                "write `members.NAME.KEY`",
            );
        }
    }
    if names.len() == 1 {
        section.problem("members", "there is only one member", "name at least two");
    }
    let mut read: Vec<(&str, Option<DriveConfig>)> = Vec::new();
    for name in names {
        let known = read.iter().find(|(earlier, _)| earlier == name);
        let config = match known {
            Some((_, config)) => config.clone(),
            None => member(section, context, name, changes),
        };
        read.push((name, config));
    }
    read.into_iter().filter_map(|(_, config)| config).collect()
}

/// Returns the key inside the member, from a key `members.NAME.KEY`.
fn of_member<'a>(key: &'a str, name: &str) -> Option<&'a str> {
    let rest = key.strip_prefix("members.")?.strip_prefix(name)?;
    rest.strip_prefix('.')
}

fn member(
    section: &mut Section<'_>,
    context: &Context<'_>,
    name: &str,
    changes: &[Change],
) -> Option<DriveConfig> {
    let located = match locate(name, "drive", context.home) {
        Ok(located) => located,
        Err(problems) => {
            let help = problems.0.into_iter().find_map(|problem| problem.help);
            let what = format!("there is no drive `{name}`");
            section.problem("members", what, help.unwrap_or_default());
            return None;
        }
    };
    if pool::is_pool(&located.file) {
        let help = "name drives as members";
        section.problem("members", format!("`{name}` is a pool, not a drive"), help);
        return None;
    }
    let own: Vec<Change> = changes
        .iter()
        .filter_map(|(key, value)| Some((of_member(key, name)?.to_owned(), value.clone())))
        .collect();
    let sheet = changed(located, &own).and_then(|located| read_drive(&located, DriveRole::Member));
    match sheet {
        Ok(sheet) if matches!(sheet.config, DriveConfig::Raid0(_)) => {
            section.problem(
                "members",
                format!("`{name}` is a RAID-0 itself"),
                "name the drives inside it as members",
            );
            None
        }
        Ok(sheet) => {
            let config = sheet.config.clone();
            section.member(sheet);
            Some(config)
        }
        Err(problems) => {
            section.adopt(problems);
            None
        }
    }
}
