//! Messages on the findings on a pool's members before it is served.

use tier::offline::{Damage, RecoveredTiers, RecoveryFinding};
use tier::{DriveConfig, Kind, PoolConfig, Target};

/// Returns the name of a tier's child.
pub(super) fn child(config: &PoolConfig<DriveConfig>, tier: usize, child: u16) -> String {
    match config.tiers[tier].children.get(usize::from(child)) {
        Some(&Target::Slice { member, .. }) => config.members[usize::from(member)].name.clone(),
        Some(&Target::Tier(tier)) => config.tiers[usize::from(tier)].name.clone(),
        None => format!("child {child}"),
    }
}

fn regions(count: u32) -> String {
    match count {
        1 => String::from("1 region"),
        count => format!("{count} regions"),
    }
}

fn regions_were(count: u32) -> String {
    let were = if count == 1 { "was" } else { "were" };
    format!("{} {were}", regions(count))
}

fn times(count: u64) -> String {
    match count {
        1 => String::from("once"),
        _ => format!("{count} times"),
    }
}

/// Returns the message that a member is a copy from `missed` openings ago.
fn old(missed: u64) -> String {
    format!("an old copy: the pool was opened {} since", times(missed))
}

/// Returns the message on log records after a gap. None of them was acknowledged, unless durable ones are missing.
fn behind_gap(found: &RecoveredTiers, tier: u16, dropped: u64) -> String {
    let is_lost =
        |it: &(u16, RecoveryFinding)| it.0 == tier && matches!(it.1, RecoveryFinding::Lost(_));
    match (dropped, found.found.iter().any(is_lost)) {
        (0, _) => String::new(),
        (_, false) => format!(", {dropped} after a gap, none of them acknowledged, are dropped"),
        (_, true) => format!(", {dropped} after a gap cannot be used"),
    }
}

/// Returns the message for an array with parity where it differs from that for a mirror.
fn of_array(
    config: &PoolConfig<DriveConfig>,
    &(tier, what): &(u16, RecoveryFinding),
) -> Option<String> {
    let tier = usize::from(tier);
    let own = &config.tiers[tier];
    if !matches!(own.kind, Kind::Raid5(_) | Kind::Raid6(_)) {
        return None;
    }
    let name = &own.name;
    Some(match what {
        RecoveryFinding::Stale(leg, Some(count)) => format!(
            "{} missed writes while it was absent: {} computed from the other members; it is in sync with {name} again",
            child(config, tier, leg),
            regions(count)
        ),
        RecoveryFinding::Stale(leg, None) => format!(
            "{} is not used by {name}: part of the data that it missed could not be computed or written",
            child(config, tier, leg)
        ),
        RecoveryFinding::Unclean(count) => {
            let were = regions_were(count);
            format!(
                "{name} was not closed cleanly: {were} being written; parity matches the data again"
            )
        }
        _ => return None,
    })
}

/// Returns the message on a ring or log that was replayed, or has lost records.
fn of_log(
    config: &PoolConfig<DriveConfig>,
    found: &RecoveredTiers,
    accepts_loss: bool,
    &(number, what): &(u16, RecoveryFinding),
) -> Option<String> {
    let name = &config.tiers[usize::from(number)].name;
    Some(match what {
        RecoveryFinding::Replayed {
            records, dropped, ..
        } => {
            let dropped = behind_gap(found, number, dropped);
            format!("{name}: {records} records of its ring were recovered{dropped}")
        }
        RecoveryFinding::Logged {
            group,
            blocks,
            writes,
            dropped,
        } => {
            let dropped = behind_gap(found, number, dropped);
            format!(
                "{name}: {blocks} blocks of its log were recovered after group {group}, and {writes} of their writes replayed{dropped}"
            )
        }
        RecoveryFinding::Lost(records) => lost(name, records),
        RecoveryFinding::Unread(leg) => {
            unread(name, &child(config, usize::from(number), leg), accepts_loss)
        }
        _ => return None,
    })
}

/// Returns messages on repairs, one per line; empty if nothing was wrong. `accepts_loss`: whether the pool was opened
/// with possible loss accepted.
pub(super) fn lines(
    config: &PoolConfig<DriveConfig>,
    found: &RecoveredTiers,
    accepts_loss: bool,
) -> Vec<String> {
    let line = |&(number, what): &(u16, RecoveryFinding)| {
        let tier = usize::from(number);
        let name = &config.tiers[tier].name;
        Some(match what {
            RecoveryFinding::Absent(log)
                if matches!(config.tiers[tier].kind, Kind::IntentLog(_)) =>
            {
                let log = child(config, tier, log);
                format!(
                    "{log} is missing: writes that {name} synced after the last transaction group are lost if only {log} had them"
                )
            }
            RecoveryFinding::Behind(leg, 0) => {
                let leg = child(config, tier, leg);
                format!("{leg} is blank, or not part of this pool: {name} does not use its data")
            }
            RecoveryFinding::Behind(leg, missed) => {
                let leg = child(config, tier, leg);
                format!("{leg} is {}: {name} does not use its data", old(missed))
            }
            RecoveryFinding::Away(leg, missed) => {
                let leg = child(config, tier, leg);
                let times = times(missed);
                format!("{leg} was absent: {name} was opened {times} without it")
            }
            RecoveryFinding::Absent(leg) => {
                let leg = child(config, tier, leg);
                format!("{leg} is missing: {name} continues without it")
            }
            RecoveryFinding::Stale(leg, Some(count)) => {
                let leg = child(config, tier, leg);
                format!("{leg} is being resynchronised: {}", regions(count))
            }
            RecoveryFinding::Stale(leg, None) => {
                let leg = child(config, tier, leg);
                format!("{leg} is being resynchronised: everything that {name} uses")
            }
            RecoveryFinding::Renewed(leg, why) => {
                let leg = child(config, tier, leg);
                let why = damage(config, &leg, why);
                format!("{why}; it is recreated, and {name} copies everything to it")
            }
            RecoveryFinding::Unclean(count) => {
                let were = regions_were(count);
                format!(
                    "{name} was not closed cleanly: {were} being written; its members are in sync again"
                )
            }
            RecoveryFinding::Replayed { .. }
            | RecoveryFinding::Logged { .. }
            | RecoveryFinding::Lost(_)
            | RecoveryFinding::Unread(_) => return None,
        })
    };
    let either = |it| {
        let own = of_array(config, it).or_else(|| of_log(config, found, accepts_loss, it));
        own.or_else(|| line(it))
    };
    found.found.iter().filter_map(either).collect()
}

/// Returns the message on a tier whose durable records are missing.
fn lost(name: &str, records: u64) -> String {
    format!(
        "{name} has lost data: at least {records} records are missing that were acknowledged as durable. Writes after the first missing record are lost too. The pool is read-only, in its state before that record. Restore undamaged stores of its members, or copy the remaining data to a new pool"
    )
}

/// Returns the message on a block of a tier's child that cannot be read and may have been durable.
fn unread(name: &str, child: &str, accepts_loss: bool) -> String {
    let next = match accepts_loss {
        false => {
            "The pool is read-only, in its state before that block. With --accept-loss it continues from that state"
        }
        true => "The pool continues in its state before that block",
    };
    format!(
        "{name}: a block of {child} cannot be read. It may have held data that was acknowledged as durable. That data, and all later writes, may be lost. {next}"
    )
}

/// Returns messages on logs that are missing or old copies. A start without such a log begins a new epoch of the
/// volume, in which that log is an old copy: data that only the log has is permanently lost.
pub(super) fn absent_logs(config: &PoolConfig<DriveConfig>, found: &RecoveredTiers) -> Vec<String> {
    let line = |&(tier, what): &(u16, RecoveryFinding)| {
        let tier = usize::from(tier);
        let of_log = matches!(config.tiers[tier].kind, Kind::IntentLog(_));
        let (log, why) = match what {
            RecoveryFinding::Absent(log) if of_log => (log, String::from("missing")),
            RecoveryFinding::Behind(log, 0) if of_log => {
                (log, String::from("blank, or not part of this pool"))
            }
            RecoveryFinding::Behind(log, missed) if of_log => (log, old(missed)),
            _ => return None,
        };
        let (log, name) = (child(config, tier, log), &config.tiers[tier].name);
        Some(format!(
            "{log}, a log of {name}, is {why}: a start without it permanently loses writes that were synced after the last transaction group if only {log} has them"
        ))
    };
    found.found.iter().filter_map(line).collect()
}

/// Returns advice for a tier that cannot be opened.
pub(super) fn way_on(damage: Damage) -> Option<&'static str> {
    Some(match damage {
        Damage::Outdated(_) | Damage::Bare(_) => "restore the newest copy of its store",
        Damage::Apart(..) | Damage::Diverged(..) => {
            "keep one of them: move the store of the other, both files, out of the folder"
        }
        Damage::AllOutdated(_) | Damage::OtherLife => {
            "restore the newest copies, or serve the present stores as they are with --accept-loss"
        }
        Damage::Behind(_) => {
            "restore the stores of the other members, or serve the present stores as they are with --accept-loss"
        }
        Damage::Hole(_) => {
            "restore the newest copy of its store, or serve the present stores with --accept-loss: parts of the data may be wrong"
        }
        Damage::Missing(_) => {
            "restore both files of its store (.img and .img.state); --accept-loss does not replace them"
        }
        Damage::Foreign(_) | Damage::Misplaced(_) => {
            "put each store (.img and .img.state) back under the name of its member, or move this one out of the folder: a mirror or array continues without it, other pools lose its data"
        }
        Damage::Unlabelled => {
            "restore both files (.img and .img.state) of a member that was in sync; --accept-loss does not replace them"
        }
        Damage::Unwritable(_) => "move its store, both files, to a disk that can be written",
        _ => return None,
    })
}

/// Returns the reason why a tier without any readable label cannot be opened. `absent`: by member.
pub(super) fn without_label(
    config: &PoolConfig<DriveConfig>,
    name: &str,
    absent: &[bool],
) -> String {
    let Some(tier) = config.tiers.iter().position(|it| it.name == name) else {
        return damage(config, name, Damage::Unlabelled);
    };
    let each = (0..).zip(&config.tiers[tier].children);
    let each = each.map(|(number, target)| {
        let is_missing = match *target {
            Target::Slice { member, .. } => absent[usize::from(member)],
            Target::Tier(_) => false,
        };
        let child = child(config, tier, number);
        match is_missing {
            true => format!("{child} is missing"),
            false => format!("{child} has no readable label (blank, or never fully in sync)"),
        }
    });
    let each: Vec<String> = each.collect();
    format!("{name} has no member that can be used: {}", each.join(", "))
}

/// Returns the next step for a folder whose `pool.state` is missing or damaged.
pub(super) fn without_state(config: &PoolConfig<DriveConfig>) -> String {
    let is_copy = |tier: u16| {
        let tier = &config.tiers[usize::from(tier)];
        let mut children = tier.children.iter();
        let whole = children.all(|it| matches!(*it, Target::Slice { base: 0, .. }));
        matches!(tier.kind, Kind::Mirror(_)) && whole
    };
    let restore = "restore pool.state from a copy of this folder; --accept-loss does not replace it, because only pool.state has the pool's size and the members in sync";
    match *config.volumes {
        [one] if is_copy(one) => format!(
            "{restore}. Without a copy: each member's .img begins with the whole data of the mirror, if that member was in sync. Copy its first bytes to a new store, and check them"
        ),
        _ => format!("{restore}. To start an empty pool, name another --store"),
    }
}

/// Returns the reason why a tier cannot be opened.
pub(super) fn damage(config: &PoolConfig<DriveConfig>, name: &str, damage: Damage) -> String {
    let tier = config.tiers.iter().position(|it| it.name == name);
    let named = |leg: u16| tier.map_or(format!("child {leg}"), |tier| child(config, tier, leg));
    match damage {
        Damage::Missing(leg) => {
            let leg = named(leg);
            format!("{name}: {leg} has data that the other members do not have, and is missing")
        }
        Damage::Unlabelled => format!("{name}: none of its members has a readable label"),
        Damage::Foreign(leg) => format!("{name}: {} belongs to another pool", named(leg)),
        Damage::Misplaced(leg) => format!(
            "{name}: {} belongs to another position in this pool",
            named(leg)
        ),
        Damage::Apart(one, two) => format!(
            "{name}: {} and {} diverged: each has writes that the other does not have",
            named(one),
            named(two)
        ),
        Damage::Unfound(leg) => {
            format!(
                "{name}: {} does not contain the data that its own tables or log list",
                named(leg)
            )
        }
        Damage::Outdated(leg) => format!(
            "{name}: {} is an old copy, or was absent: the pool was opened without it since",
            named(leg)
        ),
        Damage::Behind(leg) => format!(
            "{name}: {} has missed writes, and the members that have them are missing or have unreadable labels",
            named(leg)
        ),
        Damage::Bare(leg) => format!(
            "{name}: {} is blank, or not part of this pool: it has no label",
            named(leg)
        ),
        Damage::Diverged(one, two) => {
            let member = |index: u16| &config.members[usize::from(index)].name;
            format!(
                "{} and {} diverged: each has writes that the other does not have",
                member(one),
                member(two)
            )
        }
        Damage::Hole(leg) => format!(
            "{name}: {} is missing, old, was absent or is partly unreadable, and writes were in flight when the pool ended: its data cannot be computed with certainty",
            named(leg)
        ),
        Damage::Lossy => format!("{name} has lost durable data"),
        Damage::AllOutdated(missed) => {
            let times = if missed == 1 {
                "once"
            } else {
                "more than once"
            };
            format!("all present members are old copies: the pool was opened {times} since")
        }
        Damage::OtherLife => String::from(
            "the members were used without this folder: its pool.state does not match them",
        ),
        Damage::Unwritable(leg) => format!("{name}: {} cannot be written", named(leg)),
        other => format!("{name}: {other}"),
    }
}
