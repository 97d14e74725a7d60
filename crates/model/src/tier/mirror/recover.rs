//! A mirror is found again on its legs after a crash ([`legs`]), and made whole.
//!
//! Of the legs in sync the first that has the newest label is copied over the others where regions are marked, on any of their
//! labels. Stale legs get what they lack while the mirror is in use ([`super::copying`]). Labels are written anew in each
//! opening, on the legs in sync. What a tier above writes while it recovers is marked before, too, until the recovery of the pool ends.

use super::{Child, Mirror, REST};
use crate::data::{Unreadable, Unwritable};
use crate::tier::legs::{self, Legs, unwritable};
use crate::tier::offline::{Below, Damage, Found};
use crate::tier::planted::{self, Bug};
use crate::time::Time;

/// What is compared and copied at a time: a read error costs no more than this.
const PIECE: u64 = 4096;

pub(super) fn recover(
    mut mirror: Mirror,
    pool: u128,
    below: &mut dyn Below,
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
        let known = legs.known(leg);
        match known {
            Some(own) => mirror.labels.known.dirty.add(&own.dirty),
            // What is half a copy must not seem to be an old one.
            None if legs::strip(bytes, leg, below).is_err() => continue,
            None => {}
        }
        let marked = mirror.labels.known.dirty.count();
        below.found(Found::Stale(leg, known.is_some().then_some(marked)));
        mirror.copy_later(leg, known.is_none());
    }
    let now_in_sync = mirror.labels.known.in_sync;
    legs.conclude(&mut mirror.labels, bytes, now_in_sync, below)?;
    mirror.found = true;
    Ok(mirror)
}

/// Marks a range that the tier above is about to write while nothing runs, as for a client: a crash between the legs leaves
/// them unlike there, and legs that are copied to later get it. The marks go when recovery has ended, or when the mirror rests.
///
/// # Errors
/// If a leg in sync does not take the label.
pub(super) fn mark(
    mirror: &mut Mirror,
    at: u64,
    bytes: u64,
    below: &mut dyn Below,
) -> Result<(), Unwritable> {
    // What is being made has no labels to mark it on, and no data.
    if !mirror.found || planted::has(Bug::RecoversUnmarked) || mirror.labels.mark(at, bytes) {
        return Ok(());
    }
    mirror.rest_at = mirror.rest_at.min(Time::ZERO + REST);
    legs::say(&mut mirror.labels, mirror.bytes, below).map_err(|_| Unwritable)
}

/// Takes the marks of such writes away where all legs have them.
pub(super) fn settle(mirror: &mut Mirror, below: &mut dyn Below) -> Result<(), Damage> {
    if mirror.rest_at == Time::NEVER || !mirror.labels.is_whole() {
        return Ok(());
    }
    mirror.rest_at = Time::NEVER;
    legs::settle(&mut mirror.labels, mirror.bytes, below)
}

/// The pieces of all marked regions.
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

/// A piece as the first of these legs has it that can read it.
fn read_first(
    mirror: &Mirror,
    legs: u32,
    at: u64,
    into: &mut [u8],
    below: &mut dyn Below,
) -> Result<(), Unreadable> {
    let mut legs = mirror.legs().filter(|leg| legs & (1 << leg) != 0);
    match legs.any(|leg| below.read(leg, at, into).is_ok()) {
        true => Ok(()),
        false => Err(Unreadable),
    }
}

/// Writes a piece where it differs; whether it did.
fn set(leg: Child, at: u64, piece: &[u8], below: &mut dyn Below) -> Result<bool, Damage> {
    let mut own = [0; PIECE as usize];
    let own = &mut own[..piece.len()];
    if below.read(leg, at, own).is_ok() && own == piece {
        return Ok(false);
    }
    below.write(leg, at, piece).map_err(unwritable(leg))?;
    Ok(true)
}

/// Where regions are marked, the first leg in sync that has the newest label is copied over the others. What it cannot read
/// comes from one of them; what none can read stays so. The legs that are alike then: those that took it.
fn make_alike(mirror: &Mirror, legs: &Legs, below: &mut dyn Below) -> u32 {
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
