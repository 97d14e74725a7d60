//! The legs of a mirror, or the children of an array with parity, are found again by their labels after a crash.
//!
//! The newest label, by the opening of the pool and then by its sequence, says which legs have everything. A leg counts as one of
//! them if it took part in the last opening, its own label is of that opening, and that label is the newest or the one before
//! it, which is all that a crash can leave: labels go out one at a time, each to all legs in sync. Any other leg is an old copy
//! or was away, and stale, whatever the labels say of it. Stale legs lack what is marked if their label is not older than the one
//! before marks last went, because all that was written since is marked; otherwise everything. In each opening labels are written
//! anew: on the legs that were in sync first, on those that have been brought up afterwards.

use alloc::vec::Vec;

use super::Child;
use super::below::{Below, Damage, Found, Standing};
use super::label::{self, Label, State};
use super::labels::{Labels, all};

use super::planted::{self, Bug};
use crate::data::Unwritable;

/// That a leg does not take what has to be written.
pub(super) fn unwritable(leg: Child) -> impl Fn(Unwritable) -> Damage {
    move |Unwritable| Damage::Unwritable(leg)
}

/// New labels on all legs: they count as alike.
pub(super) fn format(
    labels: &mut Labels,
    at: u64,
    pool: u128,
    below: &mut dyn Below,
) -> Result<(), Damage> {
    let mut state = labels.known.clone();
    state.opening = below.opening().map_or(0, |last| last + 1);
    labels.resume(pool, 0, &state);
    for leg in labels.legs() {
        // The next has the number 1, and goes to the other place.
        for (place, sequence) in [(1, 0), (0, 0)] {
            labels.resume(pool, sequence, &state);
            write_label(labels, at, (leg, place), below).map_err(unwritable(leg))?;
        }
        below.sync(leg).map_err(unwritable(leg))?;
    }
    Ok(())
}

/// Takes the labels of a leg away.
pub(super) fn strip(at: u64, leg: Child, below: &mut dyn Below) -> Result<(), Damage> {
    for place in 0..2 {
        let at = at + place * label::BYTES as u64;
        let cleared = below.write(leg, at, &[0; label::BYTES]);
        cleared.map_err(unwritable(leg))?;
    }
    below.sync(leg).map_err(unwritable(leg))
}

fn write_label(
    labels: &Labels,
    at: u64,
    (leg, place): (Child, u64),
    below: &mut dyn Below,
) -> Result<(), Unwritable> {
    let mut bytes = [0; label::BYTES];
    let label = labels.label(leg, &labels.known);
    label.encode(&mut bytes);
    below.write(leg, at + place * label::BYTES as u64, &bytes)
}

/// What is known goes out as the next label, to all legs in sync, while nothing runs. `at` is where labels begin.
///
/// # Errors
/// The first leg that does not take it.
pub(super) fn say(labels: &mut Labels, at: u64, below: &mut dyn Below) -> Result<(), Child> {
    labels.say();
    let in_sync = labels.known.in_sync;
    for leg in labels.legs().filter(|leg| in_sync & (1 << leg) != 0) {
        let written = write_label(labels, at, (leg, labels.place()), below);
        written.and_then(|()| below.sync(leg)).map_err(|_| leg)?;
    }
    Ok(())
}

/// All legs have everything, also on their media: marks go, in the next label.
///
/// # Errors
/// The first leg that does not take it.
pub(super) fn settle(labels: &mut Labels, at: u64, below: &mut dyn Below) -> Result<(), Damage> {
    for leg in labels.legs() {
        below.sync(leg).map_err(unwritable(leg))?;
    }
    labels.at_rest();
    say(labels, at, below).map_err(Damage::Unwritable)
}

/// The newest of the two labels of a leg that is there.
fn newest_of(own: &Labels, at: u64, leg: Child, below: &mut dyn Below) -> Option<Label> {
    let regions = own.regions(0, at).end;
    let mut labels = [[0; label::BYTES]; 2];
    for (place, bytes) in (0..).zip(&mut labels) {
        let at = at + place * label::BYTES as u64;
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
    own: &Labels,
    at: u64,
    pool: u128,
    below: &mut dyn Below,
) -> Result<Vec<Option<Label>>, Damage> {
    let mut labels = Vec::with_capacity(own.count());
    for leg in own.legs() {
        let label = match below.present(leg) {
            true => newest_of(own, at, leg, below),
            false => None,
        };
        if let Some(label) = &label {
            if label.pool != pool {
                return Err(Damage::Foreign(leg));
            }
            let same = usize::from(label.legs) == own.count();
            if label.leg != leg || !same || label.region != own.region {
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

/// The labels of all legs, and what follows from them.
pub(super) struct Legs {
    pub(super) labels: Vec<Option<Label>>,
    pub(super) newest: Label,
    pub(super) present: u32,
    /// Those that have everything.
    pub(super) in_sync: u32,
    /// Of these, those that have the newest label.
    pub(super) newest_label: u32,
    /// The number of the last opening of the pool.
    last: u64,
}

impl Legs {
    pub(super) fn find(
        own: &Labels,
        at: u64,
        pool: u128,
        below: &mut dyn Below,
    ) -> Result<Legs, Damage> {
        let labels = labels_of(own, at, pool, below)?;
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
            newest.state.in_sync & set_of(own.legs(), |leg| has_label(leg) && current(leg));
        if planted::has(Bug::AcceptsStaleLegs) {
            in_sync = set_of(own.legs(), has_label);
        }
        if in_sync.count_ones() < own.needed {
            return Err(nobody(own, &newest, below));
        }
        let is_newest = |leg: Child| {
            let own = label(leg).is_some_and(|it| it.sequence == newest.sequence);
            in_sync & (1 << leg) != 0 && own
        };
        let newest_label = set_of(own.legs(), is_newest);
        Ok(Legs {
            present: set_of(own.legs(), |leg| below.present(leg)),
            newest_label,
            in_sync,
            newest,
            labels,
            last,
        })
    }

    /// The labels are as they were found: what is marked on any that counts, and which legs count. Tells what was not in order.
    pub(super) fn resume(&self, labels: &mut Labels, below: &mut dyn Below) {
        let newest = &self.newest;
        for leg in labels.legs() {
            if newest.state.in_sync & !self.present & (1 << leg) != 0 {
                below.found(Found::Absent(leg));
            }
        }
        labels.resume(newest.pool, newest.sequence, &newest.state);
        for leg in labels.legs().filter(|leg| self.in_sync & (1 << leg) != 0) {
            if let Some(own) = &self.labels[usize::from(leg)] {
                labels.known.dirty.add(&own.state.dirty);
            }
        }
        let marked = labels.known.dirty.count();
        if marked > 0 {
            below.found(Found::Unclean(marked));
        }
        labels.known.in_sync = self.in_sync;
    }

    /// Legs that are there and have missed something, or did not take what others have.
    pub(super) fn stale(&self, labels: &Labels) -> impl Iterator<Item = Child> + use<> {
        let stale = self.present & !labels.known.in_sync;
        labels.legs().filter(move |leg| stale & (1 << leg) != 0)
    }

    /// What was marked when a leg had its last label, if all that it lacks is marked there or on the newest label.
    ///
    /// Beside the labels that are written now, a stale leg's own that says one of the legs in sync is out would look like a split
    /// brain at the next opening. Such a leg gets everything, and its label goes.
    pub(super) fn known(&self, leg: Child) -> Option<&State> {
        let own = self.labels[usize::from(leg)].as_ref()?;
        let denies = own.state.opening >= self.last && self.in_sync & !own.state.in_sync != 0;
        (own.sequence + 1 >= self.newest.state.cleared && !denies).then_some(&own.state)
    }

    /// New labels on these legs, which are in sync now: on those that were so before first, so that none that was copied to says
    /// of itself what they do not. One that does not take its label is out, and the others get a label that says so.
    ///
    /// Where more than one leg is needed those that have the label before the newest get that first: of two openings that are
    /// cut none is left two labels behind.
    pub(super) fn conclude(
        &self,
        labels: &mut Labels,
        at: u64,
        now_in_sync: u32,
        below: &mut dyn Below,
    ) -> Result<(), Damage> {
        let (pool, newest) = (labels.pool, &self.newest);
        let behind = labels.known.in_sync & self.in_sync & !self.newest_label;
        if labels.needed > 1 && behind != 0 {
            let known = labels.known.clone();
            labels.known.in_sync = newest.state.in_sync;
            for leg in labels.legs().filter(|leg| behind & (1 << leg) != 0) {
                let place = (leg, newest.sequence % 2);
                write_label(labels, at, place, below).map_err(unwritable(leg))?;
                below.sync(leg).map_err(unwritable(leg))?;
            }
            labels.known = known;
        }
        let mut state = labels.known.clone();
        state.busy = false;
        let mut sequence = newest.sequence;
        state.in_sync = now_in_sync;
        state.opening = match below.opening() {
            // Of what was cut before the opening had begun there may be labels already.
            Some(last) => newest.state.opening.max(last + 1),
            None => newest.state.opening + 1,
        };
        loop {
            sequence += 1;
            state.epoch = newest.state.epoch + u64::from(state.in_sync != newest.state.in_sync);
            if state.in_sync == all(labels.count()) {
                if !state.dirty.is_empty() {
                    state.cleared = sequence;
                }
                state.dirty.clear();
            }
            labels.resume(pool, sequence, &state);
            let before = |leg: &Child| self.in_sync & (1 << leg) != 0;
            let (first, then): (Vec<Child>, Vec<Child>) = labels
                .legs()
                .filter(|leg| state.in_sync & (1 << leg) != 0)
                .partition(before);
            let failed = first.into_iter().chain(then).find(|&leg| {
                write_label(labels, at, (leg, sequence % 2), below).is_err()
                    || below.sync(leg).is_err()
            });
            let Some(failed) = failed else {
                return Ok(());
            };
            state.in_sync &= !(1 << failed);
            if state.in_sync.count_ones() < labels.needed {
                return Err(Damage::Unwritable(failed));
            }
        }
    }
}

/// Too few legs have everything: which is missing, or too old.
fn nobody(labels: &Labels, newest: &Label, below: &dyn Below) -> Damage {
    let first = |there: bool| {
        let mut of_newest = labels
            .legs()
            .filter(|leg| newest.state.in_sync & (1 << leg) != 0);
        of_newest.find(|&leg| below.present(leg) == there)
    };
    match (first(false), first(true)) {
        // Where one is enough, one that is there is too old.
        (_, Some(leg)) if labels.needed == 1 => Damage::Outdated(leg),
        (Some(leg), _) => Damage::Missing(leg),
        (None, leg) => Damage::Outdated(leg.unwrap_or_default()),
    }
}
