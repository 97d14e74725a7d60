//! A mirror is found again on its legs after a crash, and made whole.
//!
//! The newest label, by the opening of the pool and then by its sequence, says which legs have everything. A leg counts as one of
//! them if it took part in the last opening, its own label is of that opening, and that label is the newest or the one before
//! it, which is all that a crash can leave: labels go out one at a time, each to all legs in sync. Any other leg is an old copy
//! or was away, and stale, whatever the labels say of it.
//!
//! Of the legs in sync the first that has the newest label is copied over the others where regions are marked, on any of their
//! labels. Stale legs get what is marked if their label is not older than the one before marks last went, because all that was
//! written since is marked; otherwise everything. They get it while the mirror is in use ([`super::copying`]). Labels are written
//! anew in each opening, on the legs in sync.

use alloc::vec::Vec;

use super::label::{self, Label, State};
use super::labels::all;
use super::{Child, Mirror};
use crate::data::{Unreadable, Unwritable};
use crate::tier::below::Standing;
use crate::tier::offline::{Below, Damage, Found};
use crate::tier::planted::{self, Bug};

/// What is compared and copied at a time: a read error costs no more than this.
const PIECE: u64 = 4096;

fn unwritable(leg: Child) -> impl Fn(Unwritable) -> Damage {
    move |Unwritable| Damage::Unwritable(leg)
}

/// New labels on all legs: they count as alike.
pub(super) fn format(mut mirror: Mirror, pool: u128, below: &mut dyn Below) -> Result<(), Damage> {
    let mut state = mirror.labels.known.clone();
    state.opening = below.opening().map_or(0, |last| last + 1);
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

/// Two legs each of which has gone on without the other. Of a leg that was away in the last opening the labels of slices tell
/// whether it did.
fn apart(labels: &[Option<Label>], below: &dyn Below) -> Option<(Child, Child)> {
    if planted::has(Bug::AcceptsSplitBrain) {
        return None;
    }
    // An old copy that takes part again has a label of an earlier opening until it has been copied to.
    let last = below.opening().unwrap_or(0);
    let current = |leg: usize, label: &Label| {
        matches!(below.standing(leg as Child), Standing::Current) && label.state.opening >= last
    };
    let out = |of: usize, leg: usize| {
        let label = labels[of].as_ref().filter(|label| current(of, label));
        label.is_some_and(|it| it.state.in_sync & (1 << leg) == 0)
    };
    let legs = 0..labels.len();
    let pairs = legs.flat_map(|one| (0..one).map(move |two| (two, one)));
    let found = pairs
        .into_iter()
        .find(|&(one, two)| out(one, two) && out(two, one));
    found.map(|(one, two)| (one as Child, two as Child))
}

/// A set of legs.
fn set_of(legs: impl Iterator<Item = Child>, which: impl Fn(Child) -> bool) -> u32 {
    legs.filter(|&leg| which(leg))
        .fold(0, |legs, leg| legs | 1 << leg)
}

/// The labels of a mirror, and what follows from them.
struct Legs {
    labels: Vec<Option<Label>>,
    newest: Label,
    present: u32,
    /// Those that have everything.
    in_sync: u32,
    /// Of these, those that have the newest label.
    newest_label: u32,
}

impl Legs {
    fn find(mirror: &Mirror, pool: u128, below: &mut dyn Below) -> Result<Legs, Damage> {
        let labels = labels_of(mirror, pool, below)?;
        let newest = labels.iter().flatten();
        let newest = newest.max_by_key(|label| (label.state.opening, label.sequence));
        let Some(newest) = newest.cloned() else {
            return Err(Damage::Unlabelled);
        };
        if let Some((one, two)) = apart(&labels, below) {
            return Err(Damage::Apart(one, two));
        }
        let last = below.opening().unwrap_or(0);
        let label = |leg: Child| labels[usize::from(leg)].as_ref();
        // A leg that is there without a label that can be read has lost at least that.
        let has_label = |leg: Child| below.present(leg) && label(leg).is_some();
        let current = |leg: Child| {
            let own = label(leg)
                .is_some_and(|it| it.state.opening >= last && it.sequence + 1 >= newest.sequence);
            let away = matches!(below.standing(leg), Standing::Old(_) | Standing::Away(_));
            (own && !away) || planted::has(Bug::AcceptsOldCopies)
        };
        let mut in_sync =
            newest.state.in_sync & set_of(mirror.legs(), |leg| has_label(leg) && current(leg));
        if planted::has(Bug::AcceptsStaleLegs) {
            in_sync = set_of(mirror.legs(), has_label);
        }
        if in_sync == 0 {
            return Err(nobody(mirror, &newest, below));
        }
        let is_newest = |leg: Child| {
            let own = label(leg).is_some_and(|it| it.sequence == newest.sequence);
            in_sync & (1 << leg) != 0 && own
        };
        let newest_label = set_of(mirror.legs(), is_newest);
        Ok(Legs {
            present: set_of(mirror.legs(), |leg| below.present(leg)),
            newest_label,
            in_sync,
            newest,
            labels,
        })
    }

    /// What was marked when a leg had its last label, if all that it lacks is marked there or on the newest label.
    fn known(&self, leg: Child) -> Option<&State> {
        let own = self.labels[usize::from(leg)].as_ref()?;
        (own.sequence + 1 >= self.newest.state.cleared).then_some(&own.state)
    }
}

/// No leg has everything: which is missing, or too old.
fn nobody(mirror: &Mirror, newest: &Label, below: &dyn Below) -> Damage {
    let of_newest = |leg: &Child| newest.state.in_sync & (1 << leg) != 0;
    let there = mirror
        .legs()
        .filter(of_newest)
        .find(|&leg| below.present(leg));
    match there {
        Some(leg) => Damage::Outdated(leg),
        None => Damage::Missing(newest.state.in_sync.trailing_zeros() as Child),
    }
}

pub(super) fn recover(
    mut mirror: Mirror,
    pool: u128,
    below: &mut dyn Below,
) -> Result<Mirror, Damage> {
    let legs = Legs::find(&mirror, pool, below)?;
    let newest = &legs.newest;
    for leg in mirror.legs() {
        if newest.state.in_sync & !legs.present & (1 << leg) != 0 {
            below.found(Found::Absent(leg));
        }
        if legs.present & (1 << leg) == 0 && below.is_tier(leg) {
            mirror.barred |= 1 << leg;
        }
    }
    mirror.labels.resume(pool, newest.sequence, &newest.state);
    for leg in mirror.legs().filter(|leg| legs.in_sync & (1 << leg) != 0) {
        if let Some(own) = &legs.labels[usize::from(leg)] {
            mirror.labels.known.dirty.add(&own.state.dirty);
        }
    }
    let marked = mirror.labels.known.dirty.count();
    if marked > 0 {
        below.found(Found::Unclean(marked));
    }
    mirror.labels.known.in_sync = match planted::has(Bug::LeavesLegsUnlike) {
        true => legs.in_sync,
        false => make_alike(&mirror, &legs, below),
    };
    if mirror.labels.known.in_sync == 0 {
        return Err(Damage::Unwritable(legs.in_sync.trailing_zeros() as Child));
    }
    let stale = legs.present & !mirror.labels.known.in_sync;
    let last = below.opening().unwrap_or(0);
    // Beside the labels that are written now, a stale leg's own that says one of these legs is out would look like a split
    // brain at the next opening. The leg gets everything, and its label goes.
    let denies = |own: &State| own.opening >= last && legs.in_sync & !own.in_sync != 0;
    for leg in mirror.legs().filter(|leg| stale & (1 << leg) != 0) {
        let known = legs.known(leg).filter(|own| !denies(own));
        match known {
            Some(own) => mirror.labels.known.dirty.add(&own.dirty),
            // What is half a copy must not seem to be an old one.
            None if strip(&mirror, leg, below).is_err() => continue,
            None => {}
        }
        let marked = mirror.labels.known.dirty.count();
        below.found(Found::Stale(leg, known.is_some().then_some(marked)));
        mirror.copy_later(leg, known.is_none());
    }
    conclude(&mut mirror, newest, below)?;
    Ok(mirror)
}

/// Takes the labels of a leg away.
pub(super) fn strip(mirror: &Mirror, leg: Child, below: &mut dyn Below) -> Result<(), Damage> {
    for place in 0..2 {
        let at = mirror.bytes + place * label::BYTES as u64;
        let cleared = below.write(leg, at, &[0; label::BYTES]);
        cleared.map_err(unwritable(leg))?;
    }
    below.sync(leg).map_err(unwritable(leg))
}

/// New labels on the legs in sync. One that does not take it is out, and the others get a label that says so.
fn conclude(mirror: &mut Mirror, newest: &Label, below: &mut dyn Below) -> Result<(), Damage> {
    let pool = mirror.labels.pool;
    let mut state = mirror.labels.known.clone();
    let mut sequence = newest.sequence;
    state.opening = match below.opening() {
        // Of what was cut before the opening had begun there may be labels already.
        Some(last) => newest.state.opening.max(last + 1),
        None => newest.state.opening + 1,
    };
    loop {
        sequence += 1;
        state.epoch = newest.state.epoch + u64::from(state.in_sync != newest.state.in_sync);
        if state.in_sync == all(mirror.copies.places()) {
            if !state.dirty.is_empty() {
                state.cleared = sequence;
            }
            state.dirty.clear();
        }
        mirror.labels.resume(pool, sequence, &state);
        let failed = mirror.legs().find(|&leg| {
            let written = state.in_sync & (1 << leg) == 0
                || write_label(mirror, leg, sequence % 2, below).is_ok() && below.sync(leg).is_ok();
            !written
        });
        let Some(failed) = failed else {
            return Ok(());
        };
        state.in_sync &= !(1 << failed);
        if state.in_sync == 0 {
            return Err(Damage::Unwritable(failed));
        }
    }
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
