//! Note of the members in sync, in `pool.state`: which children of mirrors and arrays have all acknowledged data.
//!
//! Labels on the members state this too, but a member that is missing, or cannot read its labels, takes its labels with
//! it. Other members then appear complete although they have missed writes. The note is written before a client gets
//! the acknowledgement of a write that a member has missed, so an opening can tell, and refuses
//! ([`Damage::Behind`](tier::offline::Damage)). While it cannot be written, it waits in the order of the members'
//! writes, as they do without space ([`PoolSpace`]), and no client gets such an acknowledgement.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use tier::offline::RecoveredTiers;
use tier::{AnyTier, DriveConfig, Kind, PoolConfig};

use super::room::PoolSpace;
use crate::store::PoolState;

/// Name of the file in messages.
pub(super) const NAME: &str = "pool.state";

/// Returns by tier the children in sync according to the file, one bit each; all bits of tiers that it does not name.
pub(super) fn in_sync(config: &PoolConfig<DriveConfig>, state: &PoolState) -> Vec<u32> {
    let of = |name: &str| {
        let behind = state.behind.iter().find(|(tier, _)| tier == name);
        behind.map_or(u32::MAX, |(_, behind)| !behind)
    };
    config.tiers.iter().map(|tier| of(&tier.name)).collect()
}

/// Returns the lines of the file: the names of tiers that have children out of sync, and these children.
fn out_of_sync(config: &PoolConfig<DriveConfig>, in_sync: &[u32]) -> Vec<(String, u32)> {
    let each = config.tiers.iter().zip(in_sync);
    let behind = each.filter_map(|(tier, in_sync)| {
        let all = u32::MAX >> (32 - tier.children.len().clamp(1, 32));
        let behind = all & !in_sync;
        (behind != 0).then(|| (tier.name.clone(), behind))
    });
    behind.collect()
}

/// The note of a running pool.
#[derive(Debug, Default)]
pub(super) struct Note {
    /// The file and its content; `None` in memory.
    file: Option<(PathBuf, PoolState)>,
    /// By tier: the children in sync.
    in_sync: Vec<u32>,
    /// Mirrors and arrays that could be opened, by their number.
    tracked: Vec<u16>,
    /// Contents of the file that could not be written yet, each with its position in the order of the members' writes.
    waiting: VecDeque<(u64, PoolState)>,
    /// Error of the last attempt to write the file.
    failure: Option<io::Error>,
}

impl Note {
    /// Returns the note of a pool that has just been opened, and whose file has been written.
    pub(super) fn new(
        config: &PoolConfig<DriveConfig>,
        file: Option<(PathBuf, PoolState)>,
        found: &RecoveredTiers,
    ) -> Note {
        let mut note = Note {
            file,
            ..Note::default()
        };
        note.opened(config, found);
        note
    }

    /// Takes over the state of recovered tiers.
    pub(super) fn opened(&mut self, config: &PoolConfig<DriveConfig>, found: &RecoveredTiers) {
        let is_tracked = |tier: &u16| {
            let kind = &config.tiers[usize::from(*tier)].kind;
            let has_labels = matches!(kind, Kind::Mirror(_) | Kind::Raid5(_) | Kind::Raid6(_));
            has_labels && found.has(*tier)
        };
        self.tracked = (0..config.tiers.len() as u16).filter(is_tracked).collect();
        self.in_sync.clone_from(&found.in_sync);
    }

    /// Returns by tier the children in sync.
    pub(super) fn in_sync(&self) -> &[u32] {
        &self.in_sync
    }

    /// Checks whether the tiers differ from the note.
    #[inline]
    pub(super) fn is_old(&self, tiers: &[AnyTier]) -> bool {
        self.tracked.iter().any(|&tier| {
            let tier = usize::from(tier);
            tiers[tier].in_sync() != self.in_sync[tier]
        })
    }

    /// Takes over the state of running tiers, and writes the file.
    #[cold]
    pub(super) fn update(
        &mut self,
        config: &PoolConfig<DriveConfig>,
        tiers: &[AnyTier],
        room: &PoolSpace,
    ) {
        for &tier in &self.tracked {
            let tier = usize::from(tier);
            self.in_sync[tier] = tiers[tier].in_sync();
        }
        self.write(config, room);
    }

    /// Writes the file. If that fails, the pool's stores must not change either until it has been written.
    pub(super) fn write(&mut self, config: &PoolConfig<DriveConfig>, room: &PoolSpace) {
        let Some((path, state)) = &mut self.file else {
            return;
        };
        state.behind = out_of_sync(config, &self.in_sync);
        if !room.is_full() {
            let Err(error) = state.save(path) else {
                return;
            };
            room.fill(NAME, &error);
            let what = format!("{NAME}: which members are in sync: {error}");
            self.failure = Some(io::Error::new(error.kind(), what));
        }
        if let Some(order) = room.keep(state.emit().len() as u64) {
            self.waiting.push_back((order, state.clone()));
        }
    }

    /// Returns the position of the oldest waiting content of the file in the order of the members' writes.
    pub(super) fn oldest_waiting(&self) -> Option<u64> {
        self.waiting.front().map(|(order, _)| *order)
    }

    /// Writes the oldest waiting content of the file.
    ///
    /// # Errors
    /// Errors of the host; the content then still waits.
    pub(super) fn write_oldest(&mut self, room: &PoolSpace) -> io::Result<()> {
        if let (Some((path, _)), Some((_, state))) = (&self.file, self.waiting.front()) {
            let saved = state.save(path);
            saved.inspect_err(|error| room.fill(NAME, error))?;
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Takes the error of the last attempt to write the file.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }
}

/// Returns the content of the file of a pool that has just been opened.
pub(super) fn opened(
    config: &PoolConfig<DriveConfig>,
    state: &PoolState,
    found: &RecoveredTiers,
) -> PoolState {
    PoolState {
        opening: found.opening.unwrap_or_default(),
        behind: out_of_sync(config, &found.in_sync),
        ..state.clone()
    }
}
