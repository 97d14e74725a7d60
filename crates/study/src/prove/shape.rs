//! The shape of a pool: its tiers, the class of each drive, and the settings that determine durability.
//!
//! Two pools with equal shapes have the same guarantee, because they run the same code in the same order. Not part of
//! the shape: sizes, names, drive models, and policies that only change when data moves. A stripe, a concatenation, a
//! capacity tier or a set of log devices with more than one equal child counts as `n`.

use model::media::Medium;
use tier::{
    Cleaning, DriveConfig, Durability, IntentLogConfig, Kind, Logbias, PoolConfig, SyncPolicy,
    Target, TierConfig, WriteBackConfig, Writes,
};

/// Returns the shape of a pool as text, such as `mirror(2*volatile-flash)`.
pub fn shape(config: &PoolConfig<DriveConfig>) -> String {
    let volumes = config.volumes.iter().map(|&tier| tier_shape(config, tier));
    volumes.collect::<Vec<_>>().join(" + ")
}

fn tier_shape(config: &PoolConfig<DriveConfig>, tier: u16) -> String {
    let tier = &config.tiers[usize::from(tier)];
    let children: Vec<String> = tier.children.iter().map(|it| child(config, it)).collect();
    let inner = match &tier.kind {
        Kind::Mirror(_) | Kind::Raidz(_) | Kind::Raid5(_) | Kind::Raid6(_) => {
            alike(&children, usize::MAX)
        }
        Kind::Stripe(_) | Kind::Concat(_) => alike(&children, 2),
        Kind::IntentLog(_) => parts("main", "log", &children),
        Kind::ReadCache(_) => parts("cache", "main", &children),
        Kind::WriteBack(_) => parts("cache", "capacity", &children),
        Kind::LogStructured(_) => parts("capacity", "log", &children),
        Kind::Cluster(_) => alike(&children, usize::MAX),
    };
    let settings = settings(tier);
    match settings.is_empty() {
        true => format!("{}({inner})", tier.kind.word()),
        false => format!("{}({inner}; {})", tier.kind.word(), settings.join(", ")),
    }
}

/// Combines consecutive equal children into a count; `n` if there are at least `n_from`.
fn alike(children: &[String], n_from: usize) -> String {
    let runs = children.chunk_by(|one, two| one == two);
    let words = runs.map(|run| match run.len() {
        1 => run[0].clone(),
        many if many >= n_from => format!("n*{}", run[0]),
        many => format!("{many}*{}", run[0]),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Labels the first child with one name, the others with another.
fn parts(first: &str, others: &str, children: &[String]) -> String {
    match children {
        [] => String::new(),
        [one] => format!("{first}={one}"),
        [one, rest @ ..] => format!("{first}={one}, {others}={}", alike(rest, 2)),
    }
}

fn child(config: &PoolConfig<DriveConfig>, target: &Target) -> String {
    match *target {
        Target::Tier(tier) => tier_shape(config, tier),
        Target::Slice { member, .. } => {
            let class = class(&config.members[usize::from(member)].drive);
            let all = config.tiers.iter().flat_map(|it| &it.children);
            let of_it =
                |it: &&Target| matches!(it, Target::Slice { member: it, .. } if *it == member);
            match all.filter(of_it).count() {
                1 => class,
                // Which of its slices fail together is part of the shape.
                _ => format!("{class}@{member}"),
            }
        }
    }
}

/// Returns a drive's medium, and whether it has a volatile write cache.
fn class(drive: &DriveConfig) -> String {
    let medium = match drive {
        DriveConfig::Ram(_) => "ram",
        DriveConfig::XPoint(_) => "xpoint",
        DriveConfig::Nand(_) => "flash",
        DriveConfig::Hdd(_) => "disk",
        DriveConfig::Volume(_) => "volume",
        DriveConfig::Raid0(_) => "raid0",
        DriveConfig::Pool(_) => "pool",
    };
    match drive.volatile_write_cache() {
        true => format!("volatile-{medium}"),
        false => medium.to_owned(),
    }
}

/// Returns the settings that differ from the default and determine durability, or the paths that a write may take.
fn settings(tier: &TierConfig) -> Vec<String> {
    match &tier.kind {
        Kind::IntentLog(log) => log_settings(log),
        Kind::WriteBack(cache) => cache_settings(cache),
        Kind::Raidz(raidz) => vec![format!("parity={}", raidz.parity)],
        Kind::ReadCache(cache) if cache.writes == Writes::Around => vec!["writes=around".into()],
        _ => Vec::new(),
    }
}

fn log_settings(log: &IntentLogConfig) -> Vec<String> {
    let mut settings = Vec::new();
    match log.sync {
        SyncPolicy::Standard => {}
        SyncPolicy::Always => settings.push("sync=always".into()),
        SyncPolicy::Disabled => settings.push("sync=disabled".into()),
    }
    if log.logbias == Logbias::Throughput {
        settings.push("logbias=throughput".into());
    }
    settings
}

fn cache_settings(cache: &WriteBackConfig) -> Vec<String> {
    let mut settings = Vec::new();
    if cache.durability == Durability::Flush {
        settings.push("durability=flush".to_owned());
    }
    if cache.commit.is_some() {
        settings.push("commits".into());
    }
    if cache.table > 0 {
        settings.push("table".into());
    }
    if cache.passing.is_some_and(|it| !it.is_none()) {
        settings.push("passing".into());
    }
    if matches!(cache.destage.cleaning, Cleaning::Steady(_)) {
        settings.push("cleaning=steady".into());
    }
    settings
}
