//! Rebuilds of the members of a pool, as the sum over the tiers directly above each member.

use model::data::Buffers;
use model::device::Device;

use super::Pool;
use crate::{AnyTier, Child, RebuildProgress, SyncState, Target};

impl<L: Device, B: Buffers> Pool<L, B> {
    /// Returns the state of a member.
    pub fn sync_state(&self, member: u16) -> SyncState {
        let states = self
            .uses(member)
            .map(|(tier, child)| tier.sync_state(child));
        states.max().unwrap_or(SyncState::InSync)
    }

    /// Whether a member lacks data that a tier must bring to it.
    pub fn lacks(&self, member: u16) -> bool {
        self.sync_state(member) != SyncState::InSync
    }

    /// Returns the progress of the rebuild of a member, if there is one: that of the first tier.
    pub fn rebuild(&self, member: u16) -> Option<RebuildProgress> {
        self.uses(member).find_map(|(tier, child)| {
            let progress = tier.rebuild()?;
            (progress.child == child).then_some(progress)
        })
    }

    /// Returns the bytes that all rebuilds of a member have written to it.
    pub fn rebuilt_bytes(&self, member: u16) -> u64 {
        let uses = self.uses(member);
        uses.map(|(tier, child)| tier.rebuilt_bytes(child)).sum()
    }

    /// Starts no more chunks of rebuilds, up to a power cut. Those in progress end, and members stay out.
    pub fn pause_rebuilds(&mut self) {
        self.tiers.iter_mut().for_each(AnyTier::pause_rebuilds);
    }

    /// Returns the bytes that rebuilds of a member still have to write to it.
    pub fn rebuild_left(&self, member: u16) -> u64 {
        let uses = self.uses(member);
        uses.map(|(tier, child)| tier.rebuild_left(child)).sum()
    }

    /// Returns the tiers directly above a member, each with its child that is on the member.
    fn uses(&self, member: u16) -> impl Iterator<Item = (&AnyTier, Child)> {
        let tiers = self.tiers.iter().zip(&self.below.children);
        tiers.flat_map(move |(tier, children)| {
            let on_it = move |target: &Target| {
                matches!(*target, Target::Slice { member: one, .. } if one == member)
            };
            let used = (0..).zip(children).filter(move |(_, it)| on_it(it));
            used.map(move |(child, _)| (tier, child))
        })
    }
}
