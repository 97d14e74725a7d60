//! A mirror is found again on its legs after a crash, and made whole.
//!
//! The label with the highest epoch and sequence says which legs have everything. Of those that are there the first is
//! copied over the others where regions are marked. Legs that are there and have missed something get what is marked since
//! all were in sync, or everything if they were out before that. Then the labels are written anew: on the legs that were in
//! sync first, on those that have been copied to afterwards.

use alloc::vec::Vec;

use super::label::{self, Label};
use super::labels::all;
use super::{Child, Mirror};
use crate::data::{Unreadable, Unwritable};
use crate::tier::offline::{Below, Damage, Found};
use crate::tier::planted::{self, Bug};

/// What is compared and copied at a time: a read error costs no more than this.
const PIECE: u64 = 4096;

fn unwritable(leg: Child) -> impl Fn(Unwritable) -> Damage {
    move |Unwritable| Damage::Unwritable(leg)
}

/// New labels on all legs: they count as alike.
pub(super) fn format(mut mirror: Mirror, pool: u128, below: &mut dyn Below) -> Result<(), Damage> {
    let state = mirror.labels.known.clone();
    mirror.labels.resume(pool, 0, &state);
    for leg in mirror.legs() {
        // The next has the number 1, and goes to the other place.
        for (place, sequence) in [(1, 0), (0, 0)] {
            mirror.labels.resume(pool, sequence, &state);
            write_label(&mirror, leg, place, below).map_err(unwritable(leg))?;
        }
        below.sync(leg).map_err(unwritable(leg))?;
    }
    Ok(())
}

fn write_label(
    mirror: &Mirror,
    leg: Child,
    place: u64,
    below: &mut dyn Below,
) -> Result<(), Unwritable> {
    let mut bytes = [0; label::BYTES];
    let label = mirror.labels.label(leg, &mirror.labels.known);
    label.encode(&mut bytes);
    below.write(leg, mirror.bytes + place * label::BYTES as u64, &bytes)
}

/// The newest of the two labels of a leg that is there.
fn newest_of(mirror: &Mirror, leg: Child, below: &mut dyn Below) -> Option<Label> {
    let regions = mirror.labels.regions(0, mirror.bytes).end;
    let mut labels = [[0; label::BYTES]; 2];
    for (place, bytes) in (0..).zip(&mut labels) {
        let at = mirror.bytes + place * label::BYTES as u64;
        if below.read(leg, at, bytes).is_err() {
            // Which no label is.
            bytes.fill(0);
        }
    }
    // The older one is looked at where the newer one is none.
    labels.sort_by_key(Label::claimed);
    let mut newest_first = labels.iter().rev();
    newest_first.find_map(|bytes| Label::decode(bytes, regions))
}

/// The labels of all legs, if they are this mirror's.
fn labels_of(
    mirror: &Mirror,
    pool: u128,
    below: &mut dyn Below,
) -> Result<Vec<Option<Label>>, Damage> {
    let mut labels = Vec::with_capacity(mirror.copies.places());
    for leg in mirror.legs() {
        let label = match below.present(leg) {
            true => newest_of(mirror, leg, below),
            false => None,
        };
        if let Some(label) = &label {
            if label.pool != pool {
                return Err(Damage::Foreign(leg));
            }
            let same = usize::from(label.legs) == mirror.copies.places();
            if label.leg != leg || !same || label.region != mirror.labels.region {
                return Err(Damage::Misplaced(leg));
            }
        }
        labels.push(label);
    }
    Ok(labels)
}

/// Two legs each of which has gone on without the other.
fn apart(labels: &[Option<Label>]) -> Option<(Child, Child)> {
    let out = |of: usize, leg: usize| {
        let label = labels[of].as_ref();
        label.is_some_and(|it| it.state.in_sync & (1 << leg) == 0)
    };
    let legs = 0..labels.len();
    let pairs = legs.flat_map(|one| (0..one).map(move |two| (two, one)));
    let found = pairs
        .into_iter()
        .find(|&(one, two)| out(one, two) && out(two, one));
    found.map(|(one, two)| (one as Child, two as Child))
}

pub(super) fn recover(
    mut mirror: Mirror,
    pool: u128,
    below: &mut dyn Below,
) -> Result<Mirror, Damage> {
    let labels = labels_of(&mirror, pool, below)?;
    let newest = labels.iter().flatten();
    let newest = newest.max_by_key(|label| (label.state.epoch, label.sequence));
    let Some(newest) = newest.cloned() else {
        return Err(Damage::Unlabelled);
    };
    if let Some((one, two)) = apart(&labels) {
        return Err(Damage::Apart(one, two));
    }
    // A leg that is there without a label that can be read has lost at least that.
    let there = |leg: Child| below.present(leg) && labels[usize::from(leg)].is_some();
    let of = |which: &dyn Fn(Child) -> bool| {
        let legs = mirror.legs().filter(|&leg| which(leg));
        legs.fold(0_u32, |legs, leg| legs | 1 << leg)
    };
    let (present, labelled) = (of(&|leg| below.present(leg)), of(&there));
    let mut in_sync = newest.state.in_sync & labelled;
    if planted::has(Bug::AcceptsStaleLegs) {
        in_sync = labelled;
    }
    if in_sync == 0 {
        let first = newest.state.in_sync.trailing_zeros();
        return Err(Damage::Missing(first as Child));
    }
    for leg in mirror.legs() {
        if newest.state.in_sync & !present & (1 << leg) != 0 {
            below.found(Found::Absent(leg));
        }
    }
    let marked = newest.state.dirty.count();
    if marked > 0 {
        below.found(Found::Unclean(marked));
    }
    mirror.labels.resume(pool, newest.sequence, &newest.state);
    mirror.labels.known.in_sync = in_sync;
    if !planted::has(Bug::LeavesLegsUnlike) {
        make_alike(&mirror, in_sync, below)?;
    }
    let mut now_in_sync = in_sync;
    for leg in mirror
        .legs()
        .filter(|leg| present & !in_sync & (1 << leg) != 0)
    {
        let own = labels[usize::from(leg)].as_ref();
        let known = own.is_some_and(|label| label.state.epoch >= newest.state.whole);
        let copied = bring_up(&mirror, leg, in_sync, known, below)?;
        below.found(Found::Stale(leg, copied));
        if copied.is_some() {
            now_in_sync |= 1 << leg;
        }
    }
    let orderly = now_in_sync == in_sync && in_sync == newest.state.in_sync && marked == 0;
    let alike = labels
        .iter()
        .flatten()
        .all(|label| label.state == newest.state);
    if orderly && alike {
        return Ok(mirror);
    }
    conclude(&mut mirror, in_sync, now_in_sync, below)?;
    Ok(mirror)
}

/// New labels: on the legs that were in sync first, so that none that was copied to says of itself what they do not.
fn conclude(
    mirror: &mut Mirror,
    in_sync: u32,
    now_in_sync: u32,
    below: &mut dyn Below,
) -> Result<(), Damage> {
    let mut state = mirror.labels.known.clone();
    state.in_sync = now_in_sync;
    state.epoch += 1;
    if now_in_sync == all(mirror.copies.places()) {
        state.whole = state.epoch;
        state.dirty.clear();
    }
    let sequence = mirror.labels.label(0, &state).sequence + 1;
    let pool = mirror.labels.pool;
    mirror.labels.resume(pool, sequence, &state);
    for legs in [in_sync, now_in_sync & !in_sync] {
        for leg in mirror.legs().filter(|leg| legs & (1 << leg) != 0) {
            write_label(mirror, leg, sequence % 2, below).map_err(unwritable(leg))?;
            below.sync(leg).map_err(unwritable(leg))?;
        }
    }
    Ok(())
}

/// The pieces of all marked regions.
fn marked(mirror: &Mirror) -> impl Iterator<Item = u64> + '_ {
    let region = mirror.labels.region;
    let dirty = &mirror.labels.known.dirty;
    let regions = core::iter::successors(dirty.next(0), |&last| dirty.next(last + 1));
    regions.flat_map(move |index| {
        let first = index as u64 * region;
        (first..(first + region).min(mirror.bytes)).step_by(PIECE as usize)
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

/// Where regions are marked, the first leg in sync is copied over the others. What none can read stays so.
fn make_alike(mirror: &Mirror, in_sync: u32, below: &mut dyn Below) -> Result<(), Damage> {
    let mut piece = [0; PIECE as usize];
    for at in marked(mirror) {
        if read_first(mirror, in_sync, at, &mut piece, below).is_ok() {
            for leg in mirror.legs().filter(|leg| in_sync & (1 << leg) != 0) {
                set(leg, at, &piece, below)?;
            }
        }
    }
    for leg in mirror.legs().filter(|leg| in_sync & (1 << leg) != 0) {
        below.sync(leg).map_err(unwritable(leg))?;
    }
    Ok(())
}

/// Gives a leg what it has missed: what is marked if that is `known`, or everything. How many regions; nothing if some of it
/// cannot be read any more, because then the leg must not answer for it.
fn bring_up(
    mirror: &Mirror,
    leg: Child,
    in_sync: u32,
    known: bool,
    below: &mut dyn Below,
) -> Result<Option<u32>, Damage> {
    let mut piece = [0; PIECE as usize];
    let mut readable = true;
    let mut copy = |at: u64| -> Result<(), Damage> {
        match read_first(mirror, in_sync, at, &mut piece, below) {
            Ok(()) => set(leg, at, &piece, below).map(drop),
            Err(Unreadable) => {
                readable = false;
                Ok(())
            }
        }
    };
    let regions = match known {
        true => {
            marked(mirror).try_for_each(&mut copy)?;
            mirror.labels.known.dirty.count()
        }
        false => {
            (0..mirror.bytes)
                .step_by(PIECE as usize)
                .try_for_each(&mut copy)?;
            mirror.labels.regions(0, mirror.bytes).end as u32
        }
    };
    below.sync(leg).map_err(unwritable(leg))?;
    Ok(readable.then_some(regions))
}
