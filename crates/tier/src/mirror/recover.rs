//! Recovery of a mirror from its members after a crash ([`legs`]).
//!
//! Among the members in sync, the first with the newest label is copied to the others in regions that are marked on any
//! of their labels. Stale members are resynced while the mirror is in use ([`super::copying`]). Labels are rewritten in
//! each opening, on the members in sync. Writes of the tier above during its recovery are also marked first, until the
//! recovery of the pool ends.

use model::data::{Unreadable, Unwritable};
use model::time::Time;

use super::{Child, Mirror, REST};
use crate::legs::{self, Legs, unwritable};
use crate::offline::{ChildImages, Damage, RecoveryFinding};
use crate::planted::{self, Bug};

/// Unit of comparing and copying, so that a read error affects no more than this.
const PIECE: u64 = 4096;

pub(super) fn recover(
    mut mirror: Mirror,
    pool: u128,
    below: &mut dyn ChildImages,
) -> Result<Mirror, Damage> {
    let bytes = mirror.bytes;
    let legs = Legs::find(&mirror.labels, bytes, pool, below)?;
    for leg in mirror.legs() {
        if legs.present & (1 << leg) == 0 && below.is_tier(leg) {
            mirror.barred |= 1 << leg;
        }
    }
    legs.resume(&mut mirror.labels, below);
    if !planted::has(Bug::LeavesLegsUnlike) {
        mirror.labels.known.in_sync = make_alike(&mirror, &legs, below);
    }
    if mirror.labels.known.in_sync == 0 {
        return Err(Damage::Unwritable(legs.in_sync.trailing_zeros() as Child));
    }
    for leg in legs.stale(&mirror.labels) {
        let known = legs.resync_marks(leg);
        match known {
            Some(own) => mirror.labels.known.dirty.add(&own.dirty),
            // An incomplete copy must not look like an old one.
            None if legs::strip(bytes, leg, below).is_err() => continue,
            None => {}
        }
        let marked = mirror.labels.known.dirty.count();
        below.found(RecoveryFinding::Stale(
            leg,
            known.is_some().then_some(marked),
        ));
        mirror.copy_later(leg, known.is_none());
    }
    let now_in_sync = mirror.labels.known.in_sync;
    legs.conclude(&mut mirror.labels, bytes, now_in_sync, below)?;
    mirror.found = true;
    Ok(mirror)
}

/// Marks a range that the tier above is about to write offline, as for a client. After a crash during that write,
/// members may differ there, and members resynced later get the range. The marks are cleared when recovery has ended,
/// or when the mirror is idle.
///
/// # Errors
/// If a member in sync cannot write the label.
pub(super) fn mark(
    mirror: &mut Mirror,
    at: u64,
    bytes: u64,
    below: &mut dyn ChildImages,
) -> Result<(), Unwritable> {
    // A mirror that is being formatted has no labels for marks, and no data.
    if !mirror.found || planted::has(Bug::RecoversUnmarked) || mirror.labels.mark(at, bytes) {
        return Ok(());
    }
    mirror.rest_at = mirror.rest_at.min(Time::ZERO + REST);
    legs::say(&mut mirror.labels, mirror.bytes, below).map_err(|_| Unwritable)
}

/// Clears the marks of such writes if all members have the data.
pub(super) fn settle(mirror: &mut Mirror, below: &mut dyn ChildImages) -> Result<(), Damage> {
    if mirror.rest_at == Time::NEVER || !mirror.labels.is_whole() {
        return Ok(());
    }
    mirror.rest_at = Time::NEVER;
    legs::settle(&mut mirror.labels, mirror.bytes, below)
}

/// Returns the pieces of all marked regions.
fn marked(mirror: &Mirror) -> impl Iterator<Item = u64> + '_ {
    let region = mirror.labels.region;
    let dirty = &mirror.labels.known.dirty;
    let regions = core::iter::successors(dirty.next(0), |&last| dirty.next(last + 1));
    let pieces = match planted::has(Bug::AlikeFirstPieces) {
        true => 1,
        false => usize::MAX,
    };
    regions.flat_map(move |index| {
        let first = index as u64 * region;
        (first..(first + region).min(mirror.bytes))
            .step_by(PIECE as usize)
            .take(pieces)
    })
}

/// Reads a piece from the first of these members that can read it.
fn read_first(
    mirror: &Mirror,
    legs: u32,
    at: u64,
    into: &mut [u8],
    below: &mut dyn ChildImages,
) -> Result<(), Unreadable> {
    let mut legs = mirror.legs().filter(|leg| legs & (1 << leg) != 0);
    match legs.any(|leg| below.read(leg, at, into).is_ok()) {
        true => Ok(()),
        false => Err(Unreadable),
    }
}

/// Writes a piece if it differs; returns whether it did.
fn set(leg: Child, at: u64, piece: &[u8], below: &mut dyn ChildImages) -> Result<bool, Damage> {
    let mut own = [0; PIECE as usize];
    let own = &mut own[..piece.len()];
    if below.read(leg, at, own).is_ok() && own == piece {
        return Ok(false);
    }
    below.write(leg, at, piece).map_err(unwritable(leg))?;
    Ok(true)
}

/// In marked regions, copies the first member in sync with the newest label to the others. Data that it cannot read is
/// read from another member; data that none can read is left unchanged. Returns the members that are identical
/// afterwards: those that could be written.
fn make_alike(mirror: &Mirror, legs: &Legs, below: &mut dyn ChildImages) -> u32 {
    let mut piece = [0; PIECE as usize];
    let mut alike = legs.in_sync;
    for at in marked(mirror) {
        let read = read_first(mirror, legs.newest_label, at, &mut piece, below);
        if read.is_ok() || read_first(mirror, legs.in_sync, at, &mut piece, below).is_ok() {
            for leg in mirror.legs().filter(|leg| legs.in_sync & (1 << leg) != 0) {
                if set(leg, at, &piece, below).is_err() {
                    alike &= !(1 << leg);
                }
            }
        }
    }
    for leg in mirror.legs().filter(|leg| legs.in_sync & (1 << leg) != 0) {
        if below.sync(leg).is_err() {
            alike &= !(1 << leg);
        }
    }
    alike
}
