//! Rebuilds and resyncs of pool members during a run: from the return or replacement of a member until its tiers have
//! brought all data to it.
//!
//! A replaced member is a drive of the same model in the same initial state, not an erased one: its writes are as fast
//! as those of the drive before it.

use model::{Span, Time};
use serde::{Deserialize, Serialize};
use text::digits::fixed;
use text::quantity::decimal;
use tier::{DriveConfig, SyncState, Target};

use super::{FaultKind, FaultSupport, RunFault};

/// The rebuild of a member in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rebuild {
    /// Name of the member.
    pub member: String,
    /// Time at which the member returned or was replaced.
    pub from: Time,
    /// Time at which the rebuild ended, the member failed again, or the run ended.
    pub to: Time,
    /// Whether the member was in sync at that time.
    pub in_sync: bool,
    /// Bytes that the rebuild has written to the member.
    pub written: u64,
    /// Bytes that it still had to write.
    pub left: u64,
    /// Time at which the rebuild began; `None` if it waited for another one, or did not begin.
    pub began: Option<Time>,
    /// Whether it would have continued if the run had not ended, or the member had not failed.
    pub is_pending: bool,
}

impl Rebuild {
    /// Returns the length of the rebuild.
    pub fn length(&self) -> Span {
        self.to.since(self.from)
    }

    /// Returns the bytes per second that the rebuild has written since it began; `None` if it has written nothing.
    pub fn rate(&self) -> Option<f64> {
        let seconds = self.to.since(self.began.unwrap_or(self.from)).seconds();
        (self.written > 0 && seconds > 0.0).then(|| self.written as f64 / seconds)
    }

    /// Returns one line: how long it took, or how far it got.
    pub fn words(&self) -> String {
        let (from, to) = (self.from.seconds(), self.to.seconds());
        let length = duration(self.length().seconds());
        let rate = self.rate().map_or(String::new(), |rate| {
            format!(" at {}/s", decimal(rate as u64))
        });
        let written = decimal(self.written);
        let member = &self.member;
        match self.in_sync {
            true => format!(
                "{member}: in sync after {length} (from {} s to {} s); {written} written to it{rate}",
                fixed(from, 3, 3),
                fixed(to, 3, 3)
            ),
            false => format!(
                "{member}: not in sync {length} later (at {} s); {written} written to it{rate}{}",
                fixed(to, 3, 3),
                self.rest()
            ),
        }
    }

    /// Returns what an unfinished rebuild still has to do.
    fn rest(&self) -> String {
        let left = decimal(self.left);
        match self.remaining_seconds() {
            Some(seconds) => format!("; {left} left: another {} at this rate", duration(seconds)),
            None if !self.is_pending => "; no rebuild is running".into(),
            None if self.began.is_none() => format!("; {left} left: it waits for another rebuild"),
            None => format!("; {left} left"),
        }
    }

    /// Returns the seconds that an unfinished rebuild would still take at its rate.
    pub fn remaining_seconds(&self) -> Option<f64> {
        let rate = self.rate().filter(|_| self.is_pending)?;
        Some(self.left as f64 / rate)
    }
}

/// Formats a duration in the largest unit with a value of at least two.
fn duration(seconds: f64) -> String {
    let units = [(3600.0, "h"), (60.0, "min"), (1.0, "s")];
    let unit = units.iter().find(|(unit, _)| seconds >= 2.0 * unit);
    match unit {
        Some((unit, name)) => format!("{} {name}", fixed(seconds / unit, 3, 3)),
        None => format!("{} ms", fixed(seconds * 1e3, 3, 3)),
    }
}

/// The rebuilds of a run so far.
#[derive(Clone, Debug, Default)]
pub(super) struct RebuildWatch {
    /// Rebuilds in progress.
    current: Vec<WatchedRebuild>,
    ended: Vec<Rebuild>,
}

/// A rebuild in progress.
#[derive(Clone, Debug)]
struct WatchedRebuild {
    member: u16,
    rebuild: Rebuild,
    /// Bytes that earlier rebuilds of the member had written.
    before: u64,
    /// Whether the member lacked data at any time.
    has_lacked: bool,
}

impl RebuildWatch {
    #[inline]
    pub(super) fn is_watching(&self) -> bool {
        !self.current.is_empty()
    }

    /// A fault is about to happen.
    pub(super) fn before(&mut self, now: Time, fault: &RunFault, device: &impl FaultSupport) {
        let Some(member) = fault.member else { return };
        let ends = matches!(fault.what, FaultKind::Dies | FaultKind::LosesPower);
        let begins = matches!(fault.what, FaultKind::Returns | FaultKind::Replaced);
        if !ends && !begins {
            return;
        }
        if let Some(index) = self.current.iter().position(|it| it.member == member) {
            let watched = self.current.swap_remove(index);
            self.ended.push(unfinished(&watched, now, device));
        }
        if begins {
            let name = fault.called.rsplit_once(": ");
            let rebuild = Rebuild {
                member: name.map_or("", |it| it.0).to_owned(),
                from: now,
                to: now,
                in_sync: false,
                written: 0,
                left: 0,
                began: None,
                is_pending: false,
            };
            self.current.push(WatchedRebuild {
                member,
                rebuild,
                before: device.rebuilt_bytes(member),
                has_lacked: false,
            });
        }
    }

    /// Updates the rebuilds in progress. Returns the members that are in sync now and to which something was
    /// written.
    #[cold]
    pub(super) fn look(&mut self, now: Time, device: &impl FaultSupport) -> Vec<String> {
        let mut names = Vec::new();
        let ended = &mut self.ended;
        self.current.retain_mut(|it| {
            let (state, rebuild) = (device.sync_state(it.member), &mut it.rebuild);
            if state == SyncState::Rebuilding {
                rebuild.began.get_or_insert(now);
            }
            rebuild.written = device.rebuilt_bytes(it.member) - it.before;
            let in_sync = state == SyncState::InSync;
            if !in_sync && state != SyncState::Out {
                it.has_lacked = true;
                return true;
            }
            (rebuild.to, rebuild.in_sync) = (now, in_sync);
            if in_sync && rebuild.written > 0 {
                names.push(rebuild.member.clone());
            }
            if !in_sync || it.has_lacked {
                ended.push(rebuild.clone());
            }
            false
        });
        names
    }

    /// Returns the rebuilds of a run that ended at `end`.
    pub(super) fn ended(&self, end: Time, device: &impl FaultSupport) -> Vec<Rebuild> {
        let current = self.current.iter();
        let current = current.map(|it| unfinished(it, end, device));
        self.ended.iter().cloned().chain(current).collect()
    }
}

/// Returns the rebuild as it is at `now`.
fn unfinished(watched: &WatchedRebuild, now: Time, device: &impl FaultSupport) -> Rebuild {
    let member = watched.member;
    Rebuild {
        to: now.max(watched.rebuild.from),
        left: device.rebuild_left(member),
        is_pending: true,
        ..watched.rebuild.clone()
    }
}

/// Returns the first member of a pool that other members can rebuild, and its name.
pub fn rebuilt_member(drive: &DriveConfig) -> Option<(u16, String)> {
    let DriveConfig::Pool(pool) = drive else {
        return None;
    };
    let mut members = (0..).zip(&pool.members);
    let (member, found) = members.find(|&(member, _)| is_rebuilt(drive, Some(member)).is_ok())?;
    Some((member, found.name.clone()))
}

/// Checks whether the tiers of a member could bring all its data to an empty drive.
///
/// # Errors
/// Why they could not.
pub(super) fn is_rebuilt(drive: &DriveConfig, member: Option<u16>) -> Result<(), String> {
    let (DriveConfig::Pool(pool), Some(member)) = (drive, member) else {
        return Err(
            "nothing has a copy of the data of a drive that is used alone; `replaced` needs a member of a mirror, raid5, raid6 or raidz".into(),
        );
    };
    let is_on =
        |target: &Target| matches!(*target, Target::Slice { member: one, .. } if one == member);
    let above = pool.tiers.iter().filter(|it| it.children.iter().any(is_on));
    for tier in above {
        if !tier.kind.has_copies() {
            return Err(format!(
                "nothing has a copy of the data of this member: it is part of {}, a {}; `replaced` needs a member of a mirror, raid5, raid6 or raidz",
                tier.name,
                tier.kind.word()
            ));
        }
    }
    Ok(())
}
