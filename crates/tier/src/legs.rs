//! Recovery of mirror members, or of the children of an array with parity, by their labels after a crash.
//!
//! The newest label, by the opening of the pool, then by its sequence and then by its epoch, lists the members that are
//! complete. A member counts as complete if it took part in the last opening, its own label is of that opening, and that
//! label is the newest or the one before. Any other member is an old copy or was absent. It is stale, even if the labels
//! list it as complete.
//!
//! A crash or a failed write leaves no other state, because labels are written one at a time, each to all members in
//! sync. A member that cannot be written is out: the next label states this, and only then a write that it missed is
//! acknowledged. If an array would have too few members left, the label is not complete. Nothing that depends on it is
//! acknowledged, and the next label has the same sequence. No member in sync is therefore more than one label behind,
//! however often an attempt fails. Members may have different labels of one sequence; each lists only complete members.
//! A mirror needs one member, and continues with those that have the label.
//!
//! If present members lack the newest label of an array, and fewer than needed can have it, it was not complete. The
//! label before it applies, because no acknowledged write depends on the newest.
//!
//! If loss is accepted and too few members count as complete, those of the last opening that the newest label lists
//! count, whatever their own sequence is.
//!
//! If none of the members that count as complete was complete when the pool ended, as noted outside of the pool, the
//! labels that say so are lost: the tier is not opened.
//!
//! A stale member lacks the marked regions if its label is not older than the one before marks were last cleared,
//! because all later writes are marked; otherwise it lacks everything. In each opening, labels are rewritten: first on
//! the members that were in sync, then on those that have been resynced.

use alloc::vec::Vec;

use super::Child;
use super::below::{ChildImages, Damage, RecoveryFinding, SliceState};
use super::label::{self, LabelState, MemberLabel};
use super::labels::{Labels, all};

use model::data::Unwritable;

use super::planted::{self, Bug};

/// Returns the damage of a member that cannot be written.
pub(super) fn unwritable(leg: Child) -> impl Fn(Unwritable) -> Damage {
    move |Unwritable| Damage::Unwritable(leg)
}

/// Writes new labels on all members, which count as identical.
pub(super) fn format(
    labels: &mut Labels,
    at: u64,
    pool: u128,
    below: &mut dyn ChildImages,
) -> Result<(), Damage> {
    let mut state = labels.known.clone();
    state.opening = below.opening().map_or(0, |last| last + 1);
    labels.resume(pool, 0, &state);
    for leg in labels.legs() {
        // The next label has the number 1, and goes to the other copy.
        for (place, sequence) in [(1, 0), (0, 0)] {
            labels.resume(pool, sequence, &state);
            write_label(labels, at, (leg, place), below).map_err(unwritable(leg))?;
        }
        below.sync(leg).map_err(unwritable(leg))?;
    }
    Ok(())
}

/// Removes the labels of a member.
pub(super) fn strip(at: u64, leg: Child, below: &mut dyn ChildImages) -> Result<(), Damage> {
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
    below: &mut dyn ChildImages,
) -> Result<(), Unwritable> {
    let mut bytes = [0; label::BYTES];
    let label = labels.label(leg, &labels.known);
    label.encode(&mut bytes);
    below.write(leg, at + place * label::BYTES as u64, &bytes)
}

/// Writes the known state as the next label to all members in sync, offline. `at` is the offset of the labels.
///
/// # Errors
/// The first member that cannot be written.
pub(super) fn say(labels: &mut Labels, at: u64, below: &mut dyn ChildImages) -> Result<(), Child> {
    let before = labels.written.clone();
    labels.say();
    let in_sync = labels.known.in_sync;
    for leg in labels.legs().filter(|leg| in_sync & (1 << leg) != 0) {
        let written = write_label(labels, at, (leg, labels.place()), below);
        if written.and_then(|()| below.sync(leg)).is_err() {
            labels.take_back(before);
            return Err(leg);
        }
    }
    Ok(())
}

/// All members are complete, also on their media: clears the marks, with the next label.
///
/// # Errors
/// The first member that cannot be written.
pub(super) fn settle(
    labels: &mut Labels,
    at: u64,
    below: &mut dyn ChildImages,
) -> Result<(), Damage> {
    for leg in labels.legs() {
        below.sync(leg).map_err(unwritable(leg))?;
    }
    labels.at_rest();
    say(labels, at, below).map_err(Damage::Unwritable)
}

/// Returns the newer of the two labels of a member that is present.
fn newest_of(
    own: &Labels,
    at: u64,
    leg: Child,
    below: &mut dyn ChildImages,
) -> Option<MemberLabel> {
    let regions = own.regions(0, at).end;
    let mut labels = [[0; label::BYTES]; 2];
    for (place, bytes) in (0..).zip(&mut labels) {
        let at = at + place * label::BYTES as u64;
        if below.read(leg, at, bytes).is_err() {
            // All zeroes are not a valid label.
            bytes.fill(0);
        }
    }
    // The older label is used if the newer one is invalid.
    labels.sort_by_key(MemberLabel::claimed);
    let mut newest_first = labels.iter().rev();
    newest_first.find_map(|bytes| MemberLabel::decode(bytes, regions))
}

/// Returns the labels of all members, if they belong to this mirror.
fn labels_of(
    own: &Labels,
    at: u64,
    pool: u128,
    below: &mut dyn ChildImages,
) -> Result<Vec<Option<MemberLabel>>, Damage> {
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

/// Returns two members that were each used without the other. If a member was absent in the last opening, the labels of
/// slices decide that instead.
fn apart(labels: &[Option<MemberLabel>], below: &dyn ChildImages) -> Option<(Child, Child)> {
    if planted::has(Bug::AcceptsSplitBrain) {
        return None;
    }
    // An old copy that takes part again has a label of an earlier opening until it has been resynced.
    let last = below.opening().unwrap_or(0);
    let current = |leg: usize, label: &MemberLabel| {
        matches!(below.standing(leg as Child), SliceState::Current) && label.state.opening >= last
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

/// Returns a set of members.
fn set_of(legs: impl Iterator<Item = Child>, which: impl Fn(Child) -> bool) -> u32 {
    legs.filter(|&leg| which(leg))
        .fold(0, |legs, leg| legs | 1 << leg)
}

/// Returns the order of a label. The higher epoch in one sequence lists fewer members. If the members are equal, the safe
/// label is one that states that writes are in progress.
fn rank(label: &MemberLabel) -> (u64, u64, u64, bool) {
    let state = &label.state;
    (state.opening, label.sequence, state.epoch, state.busy)
}

/// Whether a member is present, has a label, and took part in the last opening of the pool.
fn took_part(
    labels: &[Option<MemberLabel>],
    leg: Child,
    last: u64,
    below: &dyn ChildImages,
) -> bool {
    let away = matches!(
        below.standing(leg),
        SliceState::Old(_) | SliceState::Away(_)
    );
    let label = labels[usize::from(leg)].as_ref();
    !away && label.is_some_and(|it| it.state.opening >= last)
}

/// Returns the newest label that may be complete: that may have been written to as many members as are needed. `None` if
/// there is no label.
fn newest_complete(
    own: &Labels,
    labels: &[Option<MemberLabel>],
    last: u64,
    below: &dyn ChildImages,
) -> Option<MemberLabel> {
    let newest = labels.iter().flatten().max_by_key(|label| rank(label))?;
    // A member that is missing, or that is an old copy, may have had the label.
    let lacks = |leg: Child| {
        let label = labels[usize::from(leg)].as_ref();
        let older =
            label.is_some_and(|it| rank(it) < rank(newest) && it.sequence + 1 >= newest.sequence);
        older && took_part(labels, leg, last, below)
    };
    let may_have = newest.state.in_sync & !set_of(own.legs(), lacks);
    let older = labels.iter().flatten();
    let older = older
        .filter(|it| rank(it) < rank(newest) && it.sequence + 1 >= newest.sequence)
        .filter(|it| it.state.opening >= last)
        .max_by_key(|label| rank(label));
    match older {
        Some(older) if may_have.count_ones() < own.needed => {
            let mut before = older.clone();
            before.state.busy |= newest.state.busy;
            Some(before)
        }
        _ => Some(newest.clone()),
    }
}

/// Labels of all members, and conclusions from them.
pub(super) struct Legs {
    pub(super) labels: Vec<Option<MemberLabel>>,
    pub(super) newest: MemberLabel,
    pub(super) present: u32,
    /// Members that are complete.
    pub(super) in_sync: u32,
    /// Members in sync that have the newest label.
    pub(super) newest_label: u32,
    /// Number of the last opening of the pool.
    last: u64,
}

impl Legs {
    pub(super) fn find(
        own: &Labels,
        at: u64,
        pool: u128,
        below: &mut dyn ChildImages,
    ) -> Result<Legs, Damage> {
        let labels = labels_of(own, at, pool, below)?;
        let last = below.opening().unwrap_or(0);
        let Some(newest) = newest_complete(own, &labels, last, below) else {
            return Err(Damage::Unlabelled);
        };
        if let Some((one, two)) = apart(&labels, below) {
            return Err(Damage::Apart(one, two));
        }
        let label = |leg: Child| labels[usize::from(leg)].as_ref();
        // A member without a readable label has lost at least the label.
        let has_label = |leg: Child| below.present(leg) && label(leg).is_some();
        let of_last = |leg: Child| took_part(&labels, leg, last, below);
        let current = |leg: Child| {
            let near = label(leg).is_some_and(|it| it.sequence + 1 >= newest.sequence);
            (near && of_last(leg)) || planted::has(Bug::AcceptsOldCopies)
        };
        let mut in_sync =
            newest.state.in_sync & set_of(own.legs(), |leg| has_label(leg) && current(leg));
        if planted::has(Bug::AcceptsStaleLegs) {
            in_sync = set_of(own.legs(), has_label);
        }
        if in_sync.count_ones() < own.needed && below.accepts_loss() {
            in_sync = newest.state.in_sync & set_of(own.legs(), of_last);
        }
        if in_sync.count_ones() < own.needed {
            return Err(nobody(own, &newest, in_sync, below));
        }
        // The labels that state which members are complete may be unreadable, or missing with their members.
        if in_sync & below.noted() == 0 && !planted::has(Bug::ServesBehind) {
            return Err(Damage::Behind(in_sync.trailing_zeros() as Child));
        }
        let is_newest = |leg: Child| {
            let own = label(leg).is_some_and(|it| rank(it) >= rank(&newest));
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

    /// Restores the labels' state: the marks of all labels that count, and the members in sync. Reports deviations.
    pub(super) fn resume(&self, labels: &mut Labels, below: &mut dyn ChildImages) {
        let newest = &self.newest;
        for leg in labels.legs() {
            if self.present & (1 << leg) == 0 {
                below.found(RecoveryFinding::Absent(leg));
            }
        }
        labels.resume(newest.pool, newest.sequence, &newest.state);
        for leg in labels.legs().filter(|leg| self.in_sync & (1 << leg) != 0) {
            if let Some(own) = &self.labels[usize::from(leg)] {
                labels.known.dirty.add(&own.state.dirty);
            }
        }
        let marked = labels.known.dirty.count();
        // If a leg is out, marks stay at an orderly end too, so marks alone do not show a crash. The label of an array
        // states whether it was busy. A mirror with one leg has no other leg to synchronise.
        let unclean = match labels.needed {
            1 => self.in_sync.count_ones() > 1,
            _ => newest.state.busy,
        };
        if marked > 0 && unclean {
            below.found(RecoveryFinding::Unclean(marked));
        }
        labels.known.in_sync = self.in_sync;
    }

    /// Returns members that are present and have missed writes, or failed to write data that others have.
    pub(super) fn stale(&self, labels: &Labels) -> impl Iterator<Item = Child> + use<> {
        let stale = self.present & !labels.known.in_sync;
        labels.legs().filter(move |leg| stale & (1 << leg) != 0)
    }

    /// Returns the marks of a member's last label, if everything that the member lacks is marked there or in the newest
    /// label.
    ///
    /// If the label of a stale member lists a current member as out, that label would look like a split brain at the
    /// next opening, because it would coexist with the newly written labels. Such a member is copied completely, and
    /// its label is removed.
    pub(super) fn resync_marks(&self, leg: Child) -> Option<&LabelState> {
        let own = self.labels[usize::from(leg)].as_ref()?;
        let denies = own.state.opening >= self.last && self.in_sync & !own.state.in_sync != 0;
        (own.sequence + 1 >= self.newest.state.cleared && !denies).then_some(&own.state)
    }

    /// Writes new labels to these members, which are now in sync. Members that were in sync before are first, so that no
    /// resynced member claims more than the others confirm.
    ///
    /// If more than one member is needed, members that have the label before the newest get the newest label first: two
    /// interrupted openings then leave no member two labels behind. If a member cannot be written, the others get a
    /// label of the same sequence that states this. If too few members can be written, the sequence therefore is at
    /// most one higher than before.
    pub(super) fn conclude(
        &self,
        labels: &mut Labels,
        at: u64,
        mut now_in_sync: u32,
        below: &mut dyn ChildImages,
    ) -> Result<(), Damage> {
        let (pool, newest) = (labels.pool, &self.newest);
        let behind = labels.known.in_sync & self.in_sync & !self.newest_label;
        if labels.needed > 1 && behind != 0 {
            let known = labels.known.clone();
            labels.known.in_sync = newest.state.in_sync;
            let behind = labels.legs().filter(|leg| behind & (1 << leg) != 0);
            let failed = write_labels(labels, at, behind, below);
            labels.known = known;
            now_in_sync = without(labels, now_in_sync, failed)?;
        }
        let sequence = newest.sequence + 1;
        let mut state = labels.known.clone();
        state.busy = false;
        state.epoch = newest.state.epoch + u64::from(now_in_sync != newest.state.in_sync);
        state.opening = match below.opening() {
            // If the previous attempt was interrupted before the opening had begun, its labels may exist already.
            Some(last) => newest.state.opening.max(last + 1),
            None => newest.state.opening + 1,
        };
        loop {
            state.in_sync = now_in_sync;
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
            let failed = write_labels(labels, at, first.into_iter().chain(then), below);
            if failed == 0 {
                return Ok(());
            }
            now_in_sync = without(labels, now_in_sync, failed)?;
            // Of two labels of one sequence, the one with the higher epoch is newer.
            state.epoch += 1;
        }
    }
}

/// Writes the known state with the current sequence to these members. Returns the members that cannot be written.
fn write_labels(
    labels: &Labels,
    at: u64,
    legs: impl Iterator<Item = Child>,
    below: &mut dyn ChildImages,
) -> u32 {
    let place = labels.place();
    let fails = |&leg: &Child| {
        let written = write_label(labels, at, (leg, place), below);
        written.and_then(|()| below.sync(leg)).is_err()
    };
    legs.filter(fails).fold(0, |failed, leg| failed | 1 << leg)
}

/// Removes members that cannot be written from those in sync.
///
/// # Errors
/// One of them, if too few members remain.
fn without(labels: &Labels, in_sync: u32, failed: u32) -> Result<u32, Damage> {
    let left = in_sync & !failed;
    match left.count_ones() < labels.needed {
        true => Err(Damage::Unwritable(failed.trailing_zeros() as Child)),
        false => Ok(left),
    }
}

/// Too few members are complete: returns one that is missing, or one that is present and not in `complete`.
fn nobody(labels: &Labels, newest: &MemberLabel, complete: u32, below: &dyn ChildImages) -> Damage {
    let first = |there: bool| {
        let mut of_newest = labels
            .legs()
            .filter(|leg| newest.state.in_sync & !complete & (1 << leg) != 0);
        of_newest.find(|&leg| below.present(leg) == there)
    };
    match (first(false), first(true)) {
        // If one is enough, one that is present is too old.
        (_, Some(leg)) if labels.needed == 1 => Damage::Outdated(leg),
        (Some(leg), _) => Damage::Missing(leg),
        (None, leg) => Damage::Outdated(leg.unwrap_or_default()),
    }
}
