//! Autotrim: space of the main pool that groups have freed is trimmed there, many groups at a time.
//!
//! Ranges that were allocated again meanwhile are not trimmed, nor are short ones. Space is not allocated while it is
//! trimmed. Source: OpenZFS's `zpoolprops.7` (`autotrim`) and `zfs.4` (`zfs_trim_txg_batch`,
//! `zfs_trim_extent_bytes_min`, `zfs_trim_extent_bytes_max`, `zfs_vdev_trim_max_active`). Not modelled: ZFS trims each
//! metaslab at a time of its own, and by drive; here a trim goes to the main pool as a whole.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use model::command::{Command, Op};

use super::{IntentLog, LogPurpose, MAIN, TierContext};

/// Maximum bytes of a trim.
const LARGEST_TRIM: u64 = 128 << 20;

/// When and how freed space is trimmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Autotrim {
    /// Number of transaction groups whose freed space is trimmed together.
    pub groups: u32,
    /// Minimum bytes of a trim.
    pub least: u32,
    /// Maximum number of trims in flight.
    pub in_flight: u16,
}

/// State of trims.
#[derive(Clone, Debug, Default)]
pub(super) struct Trims {
    /// Slots that were freed, and the number of groups that freed them.
    freed: Vec<u32>,
    groups: u32,
    /// Ranges of slots that are still to be trimmed, and those in flight.
    waiting: VecDeque<(u32, u32)>,
    under_way: Vec<(u32, u32)>,
    /// Bytes trimmed since the start.
    pub(super) bytes: u64,
}

impl Trims {
    /// A slot has been freed.
    #[inline]
    pub(super) fn free(&mut self, slot: u32) {
        self.freed.push(slot);
    }

    /// Power cut: returns the ranges that were being trimmed.
    pub(super) fn cut(&mut self) -> Vec<(u32, u32)> {
        self.freed.clear();
        self.waiting.clear();
        self.groups = 0;
        core::mem::take(&mut self.under_way)
    }
}

impl IntentLog {
    /// A group is on the main pool: trims freed space if enough groups have freed some.
    pub(super) fn trim_freed<W: TierContext>(&mut self, way: &mut W) {
        let Some(law) = self.config.autotrim else {
            return;
        };
        self.trims.groups += 1;
        if self.trims.groups < law.groups {
            return;
        }
        self.trims.groups = 0;
        let mut freed = core::mem::take(&mut self.trims.freed);
        freed.sort_unstable();
        freed.dedup();
        for run in freed.chunk_by(|one, two| one + 1 == *two) {
            self.trims.waiting.push_back((run[0], run.len() as u32));
        }
        freed.clear();
        self.trims.freed = freed;
        self.send_trims(way);
    }

    /// Sends as many trims as are allowed.
    fn send_trims<W: TierContext>(&mut self, way: &mut W) {
        let Some(law) = self.config.autotrim else {
            return;
        };
        let longest = LARGEST_TRIM.min(u64::from(self.room.free()) / 8 * self.slot) / self.slot;
        while self.trims.under_way.len() < usize::from(law.in_flight) {
            let Some((first, count)) = self.trims.waiting.pop_front() else {
                return;
            };
            let free = |slot: &u32| !self.room.is_taken(*slot);
            let begin = (first..first + count).find(free).unwrap_or(first + count);
            let most = (first + count - begin).min(longest.max(1) as u32);
            let run = (begin..begin + most).take_while(free).count() as u32;
            let rest = begin + run.max(1);
            if rest < first + count {
                self.trims.waiting.push_front((rest, first + count - rest));
            }
            let bytes = u64::from(run) * self.slot;
            if run == 0 || bytes < u64::from(law.least) {
                continue;
            }
            (begin..begin + run).for_each(|slot| self.room.mark(slot));
            self.trims.under_way.push((begin, run));
            self.trims.bytes += bytes;
            let at = u64::from(begin) * self.slot;
            let command = Command::new(0, Op::Deallocate, at, bytes as u32);
            let what = LogPurpose::Trim { first: begin };
            self.send((MAIN, what), None, command, way);
        }
    }

    /// A trim has completed: its space can be allocated again.
    pub(super) fn trimmed<W: TierContext>(&mut self, first: u32, way: &mut W) {
        if let Some(index) = self.trims.under_way.iter().position(|it| it.0 == first) {
            let (first, count) = self.trims.under_way.swap_remove(index);
            self.reuse_trimmed(first, count);
        }
        self.send_trims(way);
    }

    /// Frees space that was being trimmed.
    pub(super) fn reuse_trimmed(&mut self, first: u32, count: u32) {
        (first..first + count).for_each(|slot| self.room.retire(slot));
        self.room.have_retired();
    }
}
