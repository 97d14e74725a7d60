//! Inspection of a ring of records on the media, without its recovery: has the ring lost records without reporting it?
//!
//! Every block of a cache is inspected before the recovery. The newest superblock and each header of its epoch contain
//! the number of the last record up to which all were durable: if the recovery finds fewer, it must report that. Not
//! covered: caches that are tiers themselves (their members' blocks are not the ring's).

use model::data::Contents;
use tier::offline::{RecoveredTiers, RecoveryFinding};
use tier::record::{BLOCK, RecordHeader, Superblock};

use super::world::{Disks, TestPool};

/// Number of blocks at the beginning of a cache that hold superblocks.
const SUPERBLOCKS: usize = 4;

/// Durable records of a ring, according to its media.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RingStatus {
    /// Number of the tier.
    tier: u16,
    /// Number of the record before its first.
    before: u64,
    /// All records up to this number were durable.
    durable: u64,
}

/// Returns the durable records of each ring whose cache is a member, or a slice of one.
pub(super) fn ring_statuses(world: &TestPool, disks: &Disks) -> Vec<RingStatus> {
    let caches = world.caches();
    caches
        .filter_map(|cache| {
            let image = &disks.images[usize::from(cache.member)];
            let blocks = (cache.base..cache.base + cache.bytes).step_by(BLOCK);
            let mut blocks = blocks.filter_map(|at| {
                let mut block = [0; BLOCK];
                image.read(at, &mut block).ok()?;
                Some(block)
            });
            // A superblock that a drive has written to a wrong address is not searched for.
            let superblocks: Vec<_> = blocks.by_ref().take(SUPERBLOCKS).collect();
            let superblocks = superblocks.iter().filter_map(Superblock::decode);
            let newest = superblocks.max_by_key(|it| (it.epoch, it.sequence))?;
            let blocks: Vec<[u8; BLOCK]> = blocks.filter(|it| it[..8] != [0; 8]).collect();
            let headers = blocks.iter().filter_map(RecordHeader::decode);
            let own = headers.filter(|it| it.0.epoch == newest.epoch);
            let durable = own.map(|it| it.0.flushed_through).max().unwrap_or(0);
            Some(RingStatus {
                tier: cache.tier,
                before: newest.tail_number - 1,
                durable: durable.max(newest.flushed_through),
            })
        })
        .collect()
}

/// Returns the number up to which records of a ring were durable, if the recovery has found fewer without reporting
/// it. A ring that cannot be opened, or was created again, counts as reported: another copy replaces it.
pub(super) fn untold(world: &TestPool, says: &[RingStatus], tiers: &RecoveredTiers) -> Option<u64> {
    let silent = |it: &&RingStatus| {
        let own = || tiers.found.iter().filter(|found| found.0 == it.tier);
        if !tiers.has(it.tier) || world.is_renewed(it.tier, &tiers.found) {
            return false;
        }
        let through = own().find_map(|(_, found)| match found {
            RecoveryFinding::Replayed { through, .. } => Some(*through),
            _ => None,
        });
        let told = own().any(|(_, found)| found.is_loss());
        !told && it.durable > through.unwrap_or(it.before)
    };
    says.iter().find(silent).map(|it| it.durable)
}
