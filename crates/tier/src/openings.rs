//! Openings of a pool. Each slice has a label that records the openings in which it took part, so that old copies are
//! detected.
//!
//! Each opening has a number, one more than that of the previous one, and a mark that no other opening has. The label
//! of a slice contains the number of the last opening that it took part in and the marks of the last [`MARKS`]
//! openings. A slice whose number is lower than the newest is an old copy, or was absent: it lacks all later writes. If
//! the marks of one number differ, the slices were used without each other.
//!
//! An opening is recorded in two rounds before any other write. In the first, each present slice records the mark of
//! the opening that is about to begin; in the second, that it has begun. After a crash in between, either all slices
//! are in the old opening, or each slice records that it took part in the new one. Labels are in the first and in the
//! last block of the area that a pool reserves at the end of each slice
//! ([`PoolConfig::label_bytes`](super::PoolConfig)), and are written alternately.
//!
//! Not detected: copies that were made and restored within one opening. Not here: conclusions from a tier's own labels.

use alloc::vec;
use alloc::vec::Vec;

use model::device::Range;
use model::media::medium::Medium;

use super::below::{Damage, Images, Opening, RecoveryFinding, SliceState};
use super::config::{PoolConfig, Target};
use super::planted::{self, Bug};
use super::record::{BLOCK, NumberReader, NumberWriter, seal, sealed};

/// Minimum bytes of the label area at the end of a slice.
pub const LEAST: u64 = 2 * BLOCK as u64;

/// Number of marks in a label.
pub const MARKS: usize = 128;

const MAGIC: [u8; 8] = *b"DL-SLICE";
const VERSION: u32 = 1;

/// Label of a slice.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct SliceLabel {
    pool: u128,
    member: u16,
    base: u64,
    /// Incremented with each label of a slice.
    sequence: u64,
    /// Number of the last opening.
    number: u64,
    /// Mark of an opening that was about to begin; 0 if there is none.
    next: u64,
    /// Marks of the last opening, of the one before, and so on.
    marks: Vec<u64>,
    /// Slices that took part in the last opening, by their order in the pool, one bit each.
    there: Vec<u64>,
}

/// Maximum number of words in [`SliceLabel::there`]: slices beyond that count as having taken part.
const WORDS: usize = 256;

impl SliceLabel {
    fn encode(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let mut pen = NumberWriter {
            bytes: &mut block,
            at: 0,
        };
        pen.put(&MAGIC);
        pen.put(&VERSION.to_le_bytes());
        pen.put(&u32::from(self.member).to_le_bytes());
        pen.put(&self.pool.to_le_bytes());
        pen.put(&self.base.to_le_bytes());
        pen.put(&self.sequence.to_le_bytes());
        pen.put(&self.number.to_le_bytes());
        pen.put(&self.next.to_le_bytes());
        pen.put(&(self.marks.len() as u32).to_le_bytes());
        pen.put(&(self.there.len() as u32).to_le_bytes());
        for number in self.marks.iter().chain(&self.there) {
            pen.put(&number.to_le_bytes());
        }
        seal(&mut block, BLOCK - 4);
        block
    }

    fn decode(block: &[u8; BLOCK]) -> Option<SliceLabel> {
        let mut cursor = NumberReader { bytes: block };
        if cursor.take() != MAGIC || cursor.word() != VERSION {
            return None;
        }
        sealed(block, BLOCK - 4)?;
        let mut label = SliceLabel {
            member: cursor.word() as u16,
            pool: u128::from_le_bytes(cursor.take()),
            base: cursor.long(),
            sequence: cursor.long(),
            number: cursor.long(),
            next: cursor.long(),
            marks: Vec::new(),
            there: Vec::new(),
        };
        let (count, words) = (cursor.word() as usize, cursor.word() as usize);
        if count > MARKS || words > WORDS || (count as u64) < label.number.min(MARKS as u64) {
            return None;
        }
        label.marks = (0..count).map(|_| cursor.long()).collect();
        label.there = (0..words).map(|_| cursor.long()).collect();
        Some(label)
    }

    /// Whether a slice took part in the last opening.
    fn was_there(&self, slice: usize) -> bool {
        let word = self.there.get(slice / 64);
        word.is_none_or(|word| word >> (slice % 64) & 1 == 1)
    }

    /// Returns the mark of the opening with this number; `None` if it is not in the label.
    fn mark(&self, number: u64) -> Option<u64> {
        let back = self.number.checked_sub(number)?;
        self.marks.get(back as usize).copied()
    }
}

/// A slice of a member, and the position of its label.
#[derive(Clone, Copy, Debug)]
struct Slice {
    tier: u16,
    child: u16,
    member: u16,
    base: u64,
    places: [u64; 2],
}

/// Returns all slices of a pool; empty if the label area is too small.
fn slices<M: Medium>(config: &PoolConfig<M>) -> Vec<Slice> {
    if config.label_bytes < LEAST {
        return Vec::new();
    }
    let mut slices = Vec::new();
    for (tier, it) in config.tiers.iter().enumerate() {
        for (child, target) in it.children.iter().enumerate() {
            if let Target::Slice {
                member,
                base,
                bytes,
            } = *target
            {
                let end = base + bytes;
                slices.push(Slice {
                    tier: tier as u16,
                    child: child as u16,
                    member,
                    base,
                    places: [end - config.label_bytes, end - BLOCK as u64],
                });
            }
        }
    }
    slices
}

/// Result of reading a label.
enum Read {
    Absent,
    /// The label cannot be read, so the state is unknown.
    Unreadable,
    Bare,
    /// The label, and which of the two positions the next one uses.
    Label(SliceLabel, usize),
}

fn read(slice: &Slice, images: &mut impl Images) -> Read {
    if !images.present(slice.member) {
        return Read::Absent;
    }
    let mut unreadable = false;
    let mut newest: Option<(SliceLabel, usize)> = None;
    for (place, &at) in slice.places.iter().enumerate() {
        let mut block = [0; BLOCK];
        match images.read(slice.member, at, &mut block) {
            Ok(()) => {
                let label = SliceLabel::decode(&block);
                let newer = |it: &SliceLabel| {
                    newest
                        .as_ref()
                        .is_none_or(|(old, _)| it.sequence > old.sequence)
                };
                if let Some(label) = label.filter(newer) {
                    newest = Some((label, 1 - place));
                }
            }
            Err(_) => unreadable = true,
        }
    }
    match newest {
        Some((label, place)) => Read::Label(label, place),
        None if unreadable => Read::Unreadable,
        None => Read::Bare,
    }
}

/// Conclusions from the labels of all slices.
pub(super) struct Openings {
    slices: Vec<Slice>,
    read: Vec<Read>,
    /// The newest label.
    newest: SliceLabel,
    standings: Vec<SliceState>,
    /// Whether tiers open with the remaining children, even if data may be lost permanently.
    pub(super) accepts_loss: bool,
    /// By tier: the children in sync when the pool ended, as noted outside of the pool. Empty if unknown.
    pub(super) noted: Vec<u32>,
    /// By tier: the used ranges of its addresses.
    pub(super) used: Vec<Vec<Range>>,
}

/// Reason why a pool cannot be opened: the tier's number, and its damage.
type TierDamage = (u16, Damage);

impl Openings {
    /// Reads all labels. `remembered`: the last opening, as noted outside of the pool.
    ///
    /// # Errors
    /// If a slice belongs to another pool or position, or slices were used without each other, or all of them are older
    /// than `remembered`.
    pub(super) fn read<M: Medium>(
        config: &PoolConfig<M>,
        pool: u128,
        remembered: Option<Opening>,
        images: &mut impl Images,
    ) -> Result<Openings, TierDamage> {
        let slices = slices(config);
        let read: Vec<Read> = slices
            .iter()
            .map(|slice| self::read(slice, images))
            .collect();
        let mut newest = SliceLabel {
            pool,
            ..SliceLabel::default()
        };
        let mut newest_member = None;
        for (slice, read) in slices.iter().zip(&read) {
            let Read::Label(label, _) = read else {
                continue;
            };
            if label.pool != pool {
                return Err((slice.tier, Damage::Foreign(slice.child)));
            }
            if (label.member, label.base) != (slice.member, slice.base) {
                return Err((slice.tier, Damage::Misplaced(slice.child)));
            }
            if newest_member.is_none() || label.number > newest.number {
                newest = label.clone();
                newest_member = Some(slice.member);
            }
        }
        let mut openings = Openings {
            standings: Vec::with_capacity(slices.len()),
            slices,
            read,
            newest,
            accepts_loss: false,
            noted: Vec::new(),
            used: Vec::new(),
        };
        openings.judge(newest_member)?;
        if !openings.slices.is_empty() {
            openings.compare(remembered)?;
        }
        Ok(openings)
    }

    /// Compares each label with the newest.
    fn judge(&mut self, newest_member: Option<u16>) -> Result<(), TierDamage> {
        let newest = &self.newest;
        for (index, (slice, read)) in self.slices.iter().zip(&self.read).enumerate() {
            let standing = match read {
                Read::Absent | Read::Unreadable => SliceState::Current,
                // The first opening may have been interrupted before all slices had their first label.
                Read::Bare if newest.number == 0 => SliceState::Current,
                Read::Bare => SliceState::Bare,
                Read::Label(label, _) => {
                    let begun =
                        label.next != 0 && newest.mark(label.number + 1) == Some(label.next);
                    let number = label.number + u64::from(begun);
                    let same = |number| {
                        newest
                            .mark(number)
                            .is_none_or(|mark| label.mark(number) == Some(mark))
                    };
                    let mixed = planted::has(Bug::AcceptsSplitBrain);
                    if label.number > 0 && !same(label.number) && !mixed {
                        let other = newest_member.unwrap_or(slice.member);
                        return Err((slice.tier, Damage::Diverged(slice.member, other)));
                    }
                    match newest.number - number {
                        0 => SliceState::Current,
                        missed if newest.was_there(index) => SliceState::Old(missed),
                        missed => SliceState::Away(missed),
                    }
                }
            };
            self.standings.push(standing);
        }
        Ok(())
    }

    /// Compares the newest label with the opening noted outside of the pool.
    fn compare(&self, remembered: Option<Opening>) -> Result<(), TierDamage> {
        let Some(remembered) = remembered.filter(|it| it.number > 0) else {
            return Ok(());
        };
        if planted::has(Bug::AcceptsOldCopies) {
            return Ok(());
        }
        let newest = &self.newest;
        if newest.number < remembered.number {
            return Err((0, Damage::AllOutdated(remembered.number - newest.number)));
        }
        match newest.mark(remembered.number) {
            Some(mark) if mark != remembered.mark => Err((0, Damage::OtherLife)),
            _ => Ok(()),
        }
    }

    /// Returns the state of a tier's child.
    pub(super) fn standing(&self, tier: u16, child: u16) -> SliceState {
        let is_it = |it: &&Slice| (it.tier, it.child) == (tier, child);
        let index = self.slices.iter().position(|it| is_it(&it));
        index.map_or(SliceState::Current, |index| self.standings[index])
    }

    /// Returns the children of a tier that were in sync when the pool ended, as noted outside of the pool.
    pub(super) fn noted(&self, tier: usize) -> u32 {
        self.noted.get(tier).copied().unwrap_or(u32::MAX)
    }

    /// Returns the number of the last opening; `None` if the pool has no labels.
    pub(super) fn last(&self) -> Option<u64> {
        (!self.slices.is_empty()).then_some(self.newest.number)
    }

    /// Returns the number of the last opening that each of `members` members took part in, if its labels state it.
    pub(super) fn of_members(&self, members: usize) -> Vec<Option<u64>> {
        let mut numbers = vec![None; members];
        for (slice, read) in self.slices.iter().zip(&self.read) {
            if let Read::Label(label, _) = read {
                let number = &mut numbers[usize::from(slice.member)];
                *number = (*number).max(Some(label.number));
            }
        }
        numbers
    }

    /// Returns slices that were absent, each with its tier.
    pub(super) fn stale_slices(&self) -> Vec<(u16, RecoveryFinding)> {
        let each = self.slices.iter().zip(&self.standings);
        let behind = each.filter_map(|(slice, standing)| match standing {
            SliceState::Old(missed) => {
                Some((slice.tier, RecoveryFinding::Behind(slice.child, *missed)))
            }
            SliceState::Away(missed) => {
                Some((slice.tier, RecoveryFinding::Away(slice.child, *missed)))
            }
            SliceState::Bare => Some((slice.tier, RecoveryFinding::Behind(slice.child, 0))),
            SliceState::Current => None,
        });
        behind.collect()
    }

    /// Makes a slice count as one without a label, until the next opening has begun.
    ///
    /// # Errors
    /// If that cannot be written.
    pub(super) fn strip(
        &mut self,
        tier: u16,
        child: u16,
        images: &mut impl Images,
    ) -> Result<(), Damage> {
        let is_it = |it: &Slice| (it.tier, it.child) == (tier, child);
        let Some(index) = self.slices.iter().position(is_it) else {
            return Ok(());
        };
        let slice = self.slices[index];
        for at in slice.places {
            let cleared = images.write(slice.member, at, &[0; BLOCK]);
            cleared.map_err(|_| Damage::Unwritable(child))?;
        }
        images
            .sync(slice.member)
            .map_err(|_| Damage::Unwritable(child))?;
        self.read[index] = Read::Bare;
        self.standings[index] = SliceState::Bare;
        Ok(())
    }

    /// Begins the next opening: all present slices take part in it.
    ///
    /// # Errors
    /// If that cannot be written.
    pub(super) fn begin(
        mut self,
        mark: u64,
        images: &mut impl Images,
    ) -> Result<Option<Opening>, TierDamage> {
        if self.slices.is_empty() {
            return Ok(None);
        }
        let mark = mark.max(1);
        let before = SliceLabel {
            next: mark,
            ..self.newest.clone()
        };
        let mut begun = SliceLabel {
            next: 0,
            number: before.number + 1,
            ..before.clone()
        };
        begun.there = vec![0; self.slices.len().div_ceil(64).min(WORDS)];
        for (index, read) in self.read.iter().enumerate() {
            if let (false, Some(word)) = (
                matches!(read, Read::Absent),
                begun.there.get_mut(index / 64),
            ) {
                *word |= 1 << (index % 64);
            }
        }
        begun.marks.insert(0, mark);
        begun.marks.truncate(MARKS);
        for (round, label) in [&before, &begun].into_iter().enumerate() {
            let each = self.slices.iter().zip(&mut self.read);
            for ((slice, read), standing) in each.zip(&self.standings) {
                // A slice that is behind must not appear to have taken part in the last opening if this one does not
                // begin.
                if round == 0 && *standing != SliceState::Current {
                    continue;
                }
                let (sequence, place) = match read {
                    Read::Absent => continue,
                    Read::Unreadable | Read::Bare => (0, 0),
                    Read::Label(own, place) => (own.sequence, *place),
                };
                let own = SliceLabel {
                    member: slice.member,
                    base: slice.base,
                    sequence: sequence + 1,
                    ..label.clone()
                };
                let unwritable = |_| (slice.tier, Damage::Unwritable(slice.child));
                let at = slice.places[place];
                images
                    .write(slice.member, at, &own.encode())
                    .map_err(unwritable)?;
                images.sync(slice.member).map_err(unwritable)?;
                *read = Read::Label(own, 1 - place);
            }
        }
        Ok(Some(Opening {
            number: begun.number,
            mark,
        }))
    }
}

/// Writes the labels of a new pool.
///
/// # Errors
/// If they cannot be written.
pub(super) fn format<M: Medium>(
    config: &PoolConfig<M>,
    pool: u128,
    images: &mut impl Images,
) -> Result<(), TierDamage> {
    for slice in slices(config) {
        let unwritable = |_| (slice.tier, Damage::Unwritable(slice.child));
        for (sequence, at) in (0..).zip(slice.places) {
            let label = SliceLabel {
                pool,
                member: slice.member,
                base: slice.base,
                sequence,
                ..SliceLabel::default()
            };
            images
                .write(slice.member, at, &label.encode())
                .map_err(unwritable)?;
        }
        images.sync(slice.member).map_err(unwritable)?;
    }
    Ok(())
}
