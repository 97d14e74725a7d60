//! What a ring of records on the media says of itself, looked at without its recovery: has that kept silent about a loss?
//!
//! Every block of a cache is looked at before the recovery. The newest superblock and each header of its epoch say up to
//! which record all were durable: if the recovery finds fewer it has to tell. Left out: caches that are tiers themselves
//! (their members' blocks are not the ring's).

use model::data::Contents;
use model::tier::offline::Found;
use model::tier::record::{BLOCK, Header, Superblock};

use super::world::{Disks, World};

/// What a ring says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Says {
    /// The number of the record before its first.
    before: u64,
    /// All up to this number were durable.
    durable: u64,
}

/// What each ring says of which the cache is a member, or a slice of one.
pub(super) fn says(world: &World, disks: &Disks) -> Vec<Says> {
    let caches = world.caches();
    caches
        .filter_map(|(member, base, bytes)| {
            let image = &disks.images[usize::from(member)];
            let blocks = (base..base + bytes).step_by(BLOCK).filter_map(|at| {
                let mut block = [0; BLOCK];
                image.read(at, &mut block).ok()?;
                Some(block)
            });
            let blocks: Vec<[u8; BLOCK]> = blocks.filter(|it| it[..8] != [0; 8]).collect();
            let superblocks = blocks.iter().filter_map(Superblock::decode);
            let newest = superblocks.max_by_key(|it| (it.epoch, it.sequence))?;
            let headers = blocks.iter().filter_map(Header::decode);
            let own = headers.filter(|it| it.0.epoch == newest.epoch);
            let durable = own.map(|it| it.0.flushed_through).max().unwrap_or(0);
            Some(Says {
                before: newest.tail_number - 1,
                durable: durable.max(newest.flushed_through),
            })
        })
        .collect()
}

/// The number up to which records were durable, if the recovery has found fewer and not told.
pub(super) fn untold(says: &[Says], found: &[(u16, Found)]) -> Option<u64> {
    let mut through = None;
    for (_, found) in found {
        match found {
            Found::Lost(_) => return None,
            Found::Replayed { through: last, .. } => through = Some(*last),
            _ => {}
        }
    }
    let fewer = |it: &&Says| it.durable > through.unwrap_or(it.before);
    says.iter().find(fewer).map(|it| it.durable)
}
