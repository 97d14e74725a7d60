//! Messages on members of mirrors and arrays that are out of sync, on their resync, on tiers that reject writes, and on
//! log devices that are not used.

use model::Span;
use tier::{AnyTier, DriveConfig, PoolConfig};

use super::findings;
use crate::clock::Wall;

/// Maximum number of log devices that are checked.
const MOST_LOGS: u16 = 32;

/// Why a tier rejects writes.
pub(super) const REJECTS: &str = "too few of its members can be written to record which of them have missed writes. It accepts writes again when enough can";

/// Interval between messages.
const AGAIN: Span = Span::from_ms(10_000);

/// State of the messages.
#[derive(Debug, Default)]
pub(super) struct Resync {
    /// Mirror members that were not in sync, with the number of their tier.
    stale: Vec<(u16, u16)>,
    /// Children of arrays that are not in sync, with the number of their tier.
    out: Vec<(u16, u16)>,
    /// Log devices that were not used, as children of a tier.
    unused: Vec<(u16, u16)>,
    /// Tiers that reject writes.
    rejecting: Vec<u16>,
    next: Wall,
    /// Time of the last progress message. It prevents two messages at one time, which at the end is a time without
    /// end.
    told: Wall,
}

impl Resync {
    /// Returns the state for a pool with these tiers at its start: a member may be in sync again before the first
    /// check.
    pub(super) fn from_tiers(config: &PoolConfig<DriveConfig>, tiers: &[AnyTier]) -> Resync {
        let mut resync = Resync {
            // The opening reports logs that it does not use.
            unused: unused_logs(tiers).collect(),
            out: out_of_arrays(config, tiers),
            ..Resync::default()
        };
        for (tier, it) in (0..).zip(tiers) {
            if let AnyTier::Mirror(mirror) = it {
                let stale = (0..mirror.legs_count()).filter(|&leg| mirror.is_stale(leg));
                resync.stale.extend(stale.map(|leg| (tier, leg)));
            }
        }
        resync
    }

    /// Returns a message on a log device that is not used any more, or that is used again.
    fn on_logs(&mut self, config: &PoolConfig<DriveConfig>, tiers: &[AnyTier]) -> Option<String> {
        let words = |(tier, log): (u16, u16)| {
            let tier = usize::from(tier);
            (findings::child(config, tier, log), &config.tiers[tier].name)
        };
        if let Some(it) = unused_logs(tiers).find(|it| !self.unused.contains(it)) {
            self.unused.push(it);
            let (log, name) = words(it);
            return Some(format!(
                "{log} failed and {name} does not use it: synced writes go to another log or to the main pool. If {log} has returned, {name} uses it again, at the latest after a restart of the server"
            ));
        }
        let is_used = |it: &(u16, u16)| unused_logs(tiers).all(|one| one != *it);
        let used = self.unused.iter().position(is_used)?;
        let (log, name) = words(self.unused.swap_remove(used));
        Some(format!("{name} uses {log} again"))
    }

    /// Returns a message on a tier that rejects writes, or accepts them again.
    fn on_rejections(
        &mut self,
        config: &PoolConfig<DriveConfig>,
        tiers: &[AnyTier],
    ) -> Option<String> {
        for (tier, it) in (0..).zip(tiers).take(config.tiers.len()) {
            let name = &config.tiers[usize::from(tier)].name;
            let known = self.rejecting.iter().position(|&one| one == tier);
            match (it.rejects_writes(), known) {
                (true, None) => {
                    self.rejecting.push(tier);
                    return Some(format!("{name} rejects writes: {REJECTS}"));
                }
                (false, Some(index)) => {
                    self.rejecting.swap_remove(index);
                    return Some(format!("{name} accepts writes again"));
                }
                _ => {}
            }
        }
        None
    }

    /// Returns a message on a member that an array does not use any more.
    fn on_arrays(&mut self, config: &PoolConfig<DriveConfig>, tiers: &[AnyTier]) -> Option<String> {
        let now_out = out_of_arrays(config, tiers);
        if let Some(index) = self.out.iter().position(|it| !now_out.contains(it)) {
            let (tier, child) = self.out.swap_remove(index);
            let tier = usize::from(tier);
            return Some(format!(
                "{} is in sync with {} again",
                findings::child(config, tier, child),
                config.tiers[tier].name
            ));
        }
        let out = newly_out(&mut self.out, &now_out)?;
        let tier = usize::from(out.0);
        Some(format!(
            "{} continues without {}: it failed, or has missed writes. It is rebuilt when it returns, after a power cut, or when the pool is opened again",
            config.tiers[tier].name,
            findings::child(config, tier, out.1)
        ))
    }

    /// Returns a message at `now`: a member is in sync again, or the progress of the resync.
    pub(super) fn next_message(
        &mut self,
        now: Wall,
        config: &PoolConfig<DriveConfig>,
        tiers: &[AnyTier],
    ) -> Option<String> {
        let noted = self.on_logs(config, tiers);
        let noted = noted.or_else(|| self.on_rejections(config, tiers));
        if let Some(line) = noted.or_else(|| self.on_arrays(config, tiers)) {
            return Some(line);
        }
        let name = |(tier, leg): (u16, u16)| findings::child(config, usize::from(tier), leg);
        let mut copied = None;
        for (tier, it) in (0..).zip(tiers).take(config.tiers.len()) {
            let AnyTier::Mirror(mirror) = it else {
                copied = copied.or(rebuilt(it).map(|(child, percent)| ((tier, child), percent)));
                continue;
            };
            let known = |&(of, leg): &(u16, u16)| of == tier && !mirror.is_stale(leg);
            if let Some(index) = self.stale.iter().position(known) {
                let leg = self.stale.swap_remove(index);
                let of = &config.tiers[usize::from(tier)].name;
                return Some(format!("{} is in sync with {of} again", name(leg)));
            }
            // Before the labels of the others list a member as out, it may turn out that none of them can be written.
            let is_out = |&leg: &u16| mirror.in_sync() >> leg & 1 == 0;
            for leg in (0..mirror.legs_count()).filter(is_out) {
                if !self.stale.contains(&(tier, leg)) {
                    self.stale.push((tier, leg));
                    self.next = now.plus(AGAIN);
                    let of = &config.tiers[usize::from(tier)].name;
                    return Some(format!(
                        "{of} continues without {}: it failed, or has missed writes. It is resynchronised when it returns, or when the pool is opened again",
                        name((tier, leg))
                    ));
                }
            }
            copied = copied.or(mirror
                .progress()
                .map(|(leg, percent)| ((tier, leg), percent)));
        }
        let (leg, percent) = copied?;
        if now < self.next || now <= self.told {
            return None;
        }
        self.told = now;
        self.next = now.plus(AGAIN);
        Some(format!(
            "{} is being resynchronised: {percent} %",
            name(leg)
        ))
    }
}

/// Returns the child of an array that is rebuilt, and the completed share in percent.
fn rebuilt(tier: &AnyTier) -> Option<(u16, u64)> {
    let progress = tier.rebuild()?;
    let all = (progress.copied + tier.rebuild_left(progress.child)).max(1);
    Some((progress.child, progress.copied * 100 / all))
}

/// Returns which children are being brought up to date, with the completed share of the first resync or rebuild of each
/// tier.
pub(super) fn rebuilds(config: &PoolConfig<DriveConfig>, tiers: &[AnyTier]) -> Option<String> {
    let each = tiers.iter().enumerate().take(config.tiers.len());
    let words = each.filter_map(|(tier, it)| {
        let (child, percent) = match it {
            AnyTier::Mirror(mirror) => mirror.progress()?,
            it => rebuilt(it)?,
        };
        let child = findings::child(config, tier, child);
        Some(format!("{child} is being resynchronised: {percent} %"))
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// Returns a child that is out now and is not in `known`, and adds it there.
fn newly_out(known: &mut Vec<(u16, u16)>, now: &[(u16, u16)]) -> Option<(u16, u16)> {
    let new = *now.iter().find(|it| !known.contains(it))?;
    known.push(new);
    Some(new)
}

/// Returns the log devices that are not used, as children of a tier.
pub(super) fn unused_logs(tiers: &[AnyTier]) -> impl Iterator<Item = (u16, u16)> + '_ {
    (0..).zip(tiers).flat_map(|(tier, it)| {
        let log = match it {
            AnyTier::IntentLog(log) => Some(log),
            _ => None,
        };
        // The first child is the main pool.
        let children = (1..=MOST_LOGS)
            .filter(move |&child| log.is_some_and(|log| log.is_unused(usize::from(child) - 1)));
        children.map(move |child| (tier, child))
    })
}

/// Returns the children of mirrors and arrays that do not have all acknowledged data, each with its tier.
pub(super) fn out_of_sync<'a>(
    config: &'a PoolConfig<DriveConfig>,
    tiers: &'a [AnyTier],
) -> impl Iterator<Item = (u16, u16)> + 'a {
    let each = (0..).zip(config.tiers.iter().zip(tiers));
    each.flat_map(|(number, (tier, it))| {
        let in_sync = it.in_sync();
        let children =
            (0..tier.children.len() as u16).filter(move |&child| in_sync >> child.min(31) & 1 == 0);
        children.map(move |child| (number, child))
    })
}

/// Returns the children of arrays that are not in sync.
fn out_of_arrays(config: &PoolConfig<DriveConfig>, tiers: &[AnyTier]) -> Vec<(u16, u16)> {
    let is_array = |it: &(u16, u16)| {
        matches!(
            tiers[usize::from(it.0)],
            AnyTier::Raid5(_) | AnyTier::Raid6(_)
        )
    };
    out_of_sync(config, tiers).filter(is_array).collect()
}

#[cfg(test)]
mod tests {
    use super::newly_out;

    #[test]
    fn each_failure_of_a_child_is_reported_once() {
        let mut known = vec![(0, 1)];
        assert_eq!(newly_out(&mut known, &[(0, 1)]), None);
        assert_eq!(newly_out(&mut known, &[(0, 1), (0, 2)]), Some((0, 2)));
        assert_eq!(newly_out(&mut known, &[(0, 1), (0, 2)]), None);
    }
}
