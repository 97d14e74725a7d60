//! Recovery of the ring after a crash, and formatting.
//!
//! The newest superblock defines where the ring begins, and to which pool it belongs. Records follow from there: each
//! has the next number, the checksum of the previous record, the epoch that its number belongs to, and data with the
//! stated checksums. The ring ends at the first gap. If a later record, or the superblock, states that the missing
//! record was durable, it is lost: the loss is reported, and the tier no longer accepts writes. Otherwise records after
//! the gap were never acknowledged as durable; a new epoch prevents them from being replayed later.
//!
//! A block at the end of the ring that cannot be read may have been a durable record. This is reported, and the tier
//! accepts no writes, unless possible loss is accepted; then the block is overwritten. An unreadable superblock needs
//! no report: from an older one, the same records are found, or later ones that state what is missing.
//!
//! Trims are replayed on the capacity tier, because it is not known whether they were done. Then the superblock of the
//! new epoch is written, followed by the labels of the capacity tier. A cache whose epoch is lower than that of a label
//! is therefore an old copy.
//!
//! After a gap, all blocks of 64 MiB are searched, and the first blocks of segments up to 4 GiB after it. A loss of all
//! of these is not reported. A search of the whole ring would delay each start: by a minute for 256 GB on a busy machine.

use alloc::vec;
use alloc::vec::Vec;

use model::command::Status;
use model::data::{Unwritable, sum as sum_of};
use model::time::Time;

use super::ring::UNIT;
use super::{CACHE, WriteBack, layout};
use crate::Child;
use crate::offline::{ChildImages, Damage, RecoveryFinding, all_present};
use crate::planted::{self, Bug};
use crate::record::{BLOCK, BackingLabel, RecordContent, RecordHeader, Superblock};

/// Number of a ring's first superblock: the one that the first start writes uses the last position, so that a ring with
/// data continues where a ring without data begins.
const FIRST: u64 = layout::SUPERBLOCK_COPIES - 1;

/// Number of slots after a gap that are searched for the beginning of a record: more than the volatile buffers of
/// drives.
const SEARCHED: u64 = (64 << 20) / UNIT as u64;

/// Number of slots after a gap within which segments are searched that begin with a record: more than the volatile
/// buffer of any drive, so that a drive which ignored flushes is found.
const SEGMENTS_SEARCHED: u64 = (4 << 30) / UNIT as u64;

/// Pool of the ring, and its epoch: a crash begins a new epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct RingEpochs {
    pub(super) pool: u128,
    /// See [`Superblock::epochs`].
    pub(super) epochs: [(u64, u64); 8],
}

impl RingEpochs {
    /// Returns the current epoch.
    pub(super) fn epoch(&self) -> u64 {
        self.epochs[0].0
    }

    /// Begins the next epoch, with the record of this number.
    fn begin(&mut self, number: u64) {
        let epoch = self.epoch() + 1;
        // An epoch without records is replaced, except for its number.
        if self.epochs[0].1 != number || epoch == 1 {
            self.epochs.rotate_right(1);
        }
        self.epochs[0] = (epoch, number);
    }

    /// Whether a record of this number may be of this epoch.
    fn has(&self, number: u64, epoch: u64) -> bool {
        let mut known = self.epochs.iter().filter(|it| it.0 != 0);
        match known.clone().find(|it| it.1 <= number) {
            Some(&(of, _)) => epoch == of,
            // Older than all known epochs.
            None => known.next_back().is_some_and(|oldest| epoch < oldest.0),
        }
    }
}

fn unwritable(child: Child) -> impl Fn(Unwritable) -> Damage {
    move |Unwritable| Damage::Unwritable(child)
}

fn block(child: Child, at: u64, below: &mut dyn ChildImages) -> Option<[u8; BLOCK]> {
    let mut block = [0; BLOCK];
    below.read(child, at, &mut block).ok()?;
    Some(block)
}

fn newest_superblock(below: &mut dyn ChildImages) -> Option<Superblock> {
    let places = (0..layout::SUPERBLOCK_COPIES).map(|place| place * u64::from(UNIT));
    let superblocks =
        places.filter_map(|at| block(CACHE, at, below).and_then(|it| Superblock::decode(&it)));
    match planted::has(Bug::BelievesOldSuperblock) {
        true => superblocks.min_by_key(|it| (it.epoch, it.sequence)),
        false => superblocks.max_by_key(|it| (it.epoch, it.sequence)),
    }
}

/// Writes the superblock of an empty ring, or of one that was replayed: it begins at the tail.
fn write_superblock(
    tier: &mut WriteBack,
    first: (u64, u32),
    below: &mut dyn ChildImages,
) -> Result<(), Damage> {
    let place = tier.destaging.next_superblock();
    let superblock = tier.superblock(tier.ring.tail(), first);
    let written = below.write(CACHE, place, &superblock.encode());
    written.map_err(unwritable(CACHE))?;
    below.sync(CACHE).map_err(unwritable(CACHE))
}

/// Returns the children of the capacity tier, and the offsets of their labels.
fn labels(children: &[u64]) -> impl Iterator<Item = (Child, u64)> + '_ {
    let all = children.iter().enumerate().skip(1);
    all.map(|(child, &bytes)| (child as Child, layout::label_at(bytes)))
}

fn label(tier: &WriteBack, child: Child) -> BackingLabel {
    BackingLabel {
        pool: tier.life.pool,
        epoch: tier.life.epoch(),
        drive: child - CACHE - 1,
        drives: tier.striping.count as u16,
        chunk: tier.striping.chunk as u32,
    }
}

fn write_labels(
    tier: &WriteBack,
    children: &[u64],
    below: &mut dyn ChildImages,
) -> Result<(), Damage> {
    for (child, at) in labels(children) {
        // Alternately, so that a torn one leaves the other intact.
        let at = at + tier.life.epoch() % 2 * u64::from(UNIT);
        let written = below.write(child, at, &label(tier, child).encode());
        written.map_err(unwritable(child))?;
        below.sync(child).map_err(unwritable(child))?;
    }
    Ok(())
}

/// Formats an empty ring. Leftovers of an earlier ring on the cache have an earlier epoch.
pub(super) fn format(
    mut tier: WriteBack,
    children: &[u64],
    pool: u128,
    below: &mut dyn ChildImages,
) -> Result<(), Damage> {
    all_present(children, below)?;
    let before = newest_superblock(below).map_or(0, |it| it.epoch);
    tier.life.pool = pool;
    tier.life.epochs[0] = (before + 1, 1);
    for place in 0..layout::SUPERBLOCK_COPIES {
        let cleared = below.write(CACHE, place * u64::from(UNIT), &[0; BLOCK]);
        cleared.map_err(unwritable(CACHE))?;
    }
    tier.destaging.superblocks = FIRST - 1;
    write_superblock(&mut tier, (1, 0), below)?;
    write_labels(&tier, children, below)
}

/// Checks that the cache and its backing drives are parts of this pool, and of the same epoch.
fn belong_together(
    tier: &WriteBack,
    superblock: &Superblock,
    children: &[u64],
    pool: u128,
    below: &mut dyn ChildImages,
) -> Result<(), Damage> {
    if superblock.pool != pool {
        return Err(Damage::Foreign(CACHE));
    }
    let shape = (tier.config.segment, tier.ring.segments.len() as u32);
    let slots = tier.ring.slots();
    if (superblock.segment, superblock.segments) != shape
        || !superblock.tail.is_multiple_of(u64::from(tier.ring.per))
        || superblock.tail > u64::MAX - 2 * slots
        || superblock.tail_number == 0
    {
        return Err(Damage::Misplaced(CACHE));
    }
    for (child, at) in labels(children) {
        let copies = [at, at + u64::from(UNIT)].map(|at| {
            let block = block(child, at, below)?;
            BackingLabel::decode(&block)
        });
        let newest = copies.into_iter().flatten().max_by_key(|it| it.epoch);
        let newest = newest.ok_or(Damage::Bare(child))?;
        if newest.pool != pool {
            return Err(Damage::Foreign(child));
        }
        let own = label(tier, child);
        if (newest.drive, newest.drives, newest.chunk) != (own.drive, own.drives, own.chunk) {
            return Err(Damage::Misplaced(child));
        }
        if newest.epoch > superblock.epoch {
            return Err(Damage::Outdated(CACHE));
        }
    }
    Ok(())
}

/// Required properties of the next record of a ring.
#[derive(Clone, Copy)]
pub(super) struct Next {
    pub(super) number: u64,
    pub(super) previous: u32,
}

/// Replays the ring.
pub(super) fn recover(
    mut tier: WriteBack,
    children: &[u64],
    pool: u128,
    below: &mut dyn ChildImages,
) -> Result<WriteBack, Damage> {
    all_present(children, below)?;
    let superblock = newest_superblock(below).ok_or(Damage::Bare(CACHE))?;
    belong_together(&tier, &superblock, children, pool, below)?;
    let life = RingEpochs {
        pool,
        epochs: superblock.epochs,
    };
    tier.life = life;
    tier.destaging.superblocks = superblock.sequence;
    tier.ring.restart_at(superblock.tail);
    let first = (superblock.tail_number, superblock.previous);
    let mut next = Next {
        number: first.0,
        previous: first.1,
    };
    let mut trims = Vec::new();
    let mut data = vec![0; tier.config.record as usize];
    while let Some((header, sum)) = read_record(&mut tier, next, &mut data, below) {
        replay(&mut tier, next, &header, &mut trims);
        next = Next {
            number: header.number + 1,
            previous: sum,
        };
    }
    let unreadable = unreadable_record(&mut tier, next, &mut data, below);
    let through = next.number - 1;
    let beyond = scan_tail(&tier, next.number, &mut data, below);
    tier.first_record = through;
    tier.previous = next.previous;
    tier.flushed = tier.applied();
    tier.counts = super::WriteBackCounts::default();
    let durable = beyond.durable_through.max(superblock.flushed_through);
    let lost = durable.saturating_sub(through);
    if through >= first.0 || beyond.records > 0 {
        below.found(RecoveryFinding::Replayed {
            through,
            records: next.number - first.0,
            dropped: beyond.records,
            rounds: tier.ring.head() / tier.ring.slots(),
        });
    }
    if !planted::has(Bug::ForgetsTrims) {
        trim(&tier, &trims, below)?;
    }
    if lost > 0 && !planted::has(Bug::CutsSilently) {
        below.found(RecoveryFinding::Lost(lost));
        tier.failed = Some(Status::WriteFault);
        return Ok(tier);
    }
    if let Some((at, bytes)) = unreadable {
        below.found(RecoveryFinding::Unread(CACHE));
        if !below.accepts_loss() {
            tier.failed = Some(Status::WriteFault);
            return Ok(tier);
        }
        let cleared = below.write(CACHE, at, &vec![0; bytes]);
        cleared.map_err(unwritable(CACHE))?;
        below.sync(CACHE).map_err(unwritable(CACHE))?;
    }
    tier.life.begin(next.number);
    write_superblock(&mut tier, first, below)?;
    write_labels(&tier, children, below)?;
    let at = tier.next_round(Time::ZERO);
    tier.destaging.begin_at(at);
    Ok(tier)
}

/// Reads a header at a slot; returns it with its checksum if it is one of this ring.
fn read_header(
    tier: &WriteBack,
    slot: u32,
    below: &mut dyn ChildImages,
) -> Option<(RecordHeader, u32)> {
    let block = block(CACHE, WriteBack::place(slot), below)?;
    let (header, sum) = RecordHeader::decode(&block)?;
    let own = header.pool == tier.life.pool && tier.life.has(header.number, header.epoch);
    own.then_some((header, sum))
}

/// Returns the units of data of a record.
fn units(header: &RecordHeader) -> u64 {
    let with_data = header
        .entries
        .iter()
        .filter(|it| it.content == RecordContent::Data);
    with_data.map(|it| u64::from(it.units)).sum()
}

/// Reads the record at the head, if it is the next one and complete; returns it with the checksum of its header.
fn read_record(
    tier: &mut WriteBack,
    next: Next,
    data: &mut [u8],
    below: &mut dyn ChildImages,
) -> Option<(RecordHeader, u32)> {
    let room = u64::from(tier.ring.room());
    if room == 0 {
        return None;
    }
    let slot = tier.ring.head_slot();
    let (header, sum) = read_header(tier, slot, below)?;
    if (header.number, header.previous) != (next.number, next.previous) {
        return None;
    }
    let all = tier.units;
    let within = |it: &crate::record::RecordEntry| it.unit + u64::from(it.units) <= all;
    if units(&header) >= room || !header.entries.iter().all(within) {
        return None;
    }
    has_data(&header, slot, data, below).then_some((header, sum))
}

/// Returns the offset and bytes at the head if they cannot be read and the next record may be there.
fn unreadable_record(
    tier: &mut WriteBack,
    next: Next,
    data: &mut [u8],
    below: &mut dyn ChildImages,
) -> Option<(u64, usize)> {
    if tier.ring.room() == 0 || planted::has(Bug::EndsAtUnreadableRecord) {
        return None;
    }
    let slot = tier.ring.head_slot();
    let at = WriteBack::place(slot);
    let mut block = [0; BLOCK];
    if below.read(CACHE, at, &mut block).is_err() {
        return Some((at, BLOCK));
    }
    let (header, _) = read_header(tier, slot, below)?;
    let follows = (header.number, header.previous) == (next.number, next.previous);
    let data = data.get_mut(..(units(&header) * u64::from(UNIT)) as usize)?;
    let unreadable = below.read(CACHE, at + u64::from(UNIT), data).is_err();
    (follows && unreadable).then_some((at + u64::from(UNIT), data.len()))
}

/// Whether the data of a record is after its header in this slot; the data is read to `data`.
fn has_data(
    header: &RecordHeader,
    slot: u32,
    data: &mut [u8],
    below: &mut dyn ChildImages,
) -> bool {
    let Some(data) = data.get_mut(..(units(header) * u64::from(UNIT)) as usize) else {
        return false;
    };
    if below.read(CACHE, WriteBack::place(slot + 1), data).is_err() {
        return false;
    }
    let mut rest = &data[..];
    let entries = header.entries.iter();
    let mut with_data = entries.filter(|it| it.content == RecordContent::Data);
    with_data.all(|entry| {
        let (own, others) = rest.split_at(entry.units as usize * UNIT as usize);
        rest = others;
        sum_of(own) == entry.sum || planted::has(Bug::BelievesHeaders)
    })
}

/// Updates the state in memory as if the record at the head had just been written.
pub(super) fn replay(
    tier: &mut WriteBack,
    next: Next,
    header: &RecordHeader,
    trims: &mut Vec<(u64, u64)>,
) {
    tier.ring.begin(next.number, next.previous);
    for entry in &header.entries {
        let (first, units) = (entry.unit, u64::from(entry.units));
        if entry.content == RecordContent::Data {
            let slot = tier.ring.head_slot();
            tier.ring.put(entry.units);
            for index in 0..entry.units {
                tier.map(first + u64::from(index), slot + index);
            }
        } else {
            tier.ring.note();
            tier.forget_before(first..first + units, tier.ring.head());
            match entry.content {
                RecordContent::Passed if planted::has(Bug::TrimsWhatPassed) => {}
                RecordContent::Passed => leave_alone(trims, first, first + units),
                _ => trims.push((first, first + units)),
            }
        }
    }
    tier.ring.apply(tier.ring.head());
}

/// Excludes units from the trims to be replayed.
fn leave_alone(trims: &mut Vec<(u64, u64)>, first: u64, end: u64) {
    for index in 0..trims.len() {
        let (from, until) = trims[index];
        if first < until && from < end {
            trims[index] = (from, first.max(from));
            trims.push((end.min(until), until));
        }
    }
}

/// State after the head.
#[derive(Clone, Copy, Default)]
struct RingTail {
    records: u64,
    /// The highest number that one of the records there states as durable.
    durable_through: u64,
}

/// Searches for records after the head, where the record of number `missing` is absent. `data` has space for those of a
/// record.
fn scan_tail(
    tier: &WriteBack,
    missing: u64,
    data: &mut [u8],
    below: &mut dyn ChildImages,
) -> RingTail {
    let (mut beyond, per) = (RingTail::default(), u64::from(tier.ring.per));
    let mut at = tier.ring.head();
    let end = (tier.ring.tail() + tier.ring.slots()).min(at + SEGMENTS_SEARCHED);
    let all_of = at + SEARCHED;
    while at < end {
        let found = read_header(tier, tier.ring.slot(at), below);
        let later = found.filter(|(header, _)| header.number > missing);
        match later {
            Some((header, _)) => {
                beyond.records += 1;
                beyond.durable_through = beyond.durable_through.max(header.flushed_through);
                // The data itself does not matter. If it is absent, another record may have been written over it, by a
                // drive that misdirects or loses writes.
                let whole = has_data(&header, tier.ring.slot(at), data, below);
                let units = if whole { units(&header) } else { 0 };
                at = (at + 1 + units).min((at / per + 1) * per);
            }
            None if at % per == 0 && at > all_of => at += per,
            None => at += 1,
        }
    }
    beyond
}

/// Trims ranges on the capacity tier, so that they read as zeroes.
fn trim(tier: &WriteBack, trims: &[(u64, u64)], below: &mut dyn ChildImages) -> Result<(), Damage> {
    let mut touched = vec![false; tier.striping.count as usize + 1];
    for unit in trims.iter().flat_map(|&(first, end)| first..end) {
        let (child, at) = tier.home(unit * u64::from(UNIT));
        let is_zero = block(child, at, below).is_some_and(|it| it == [0; BLOCK]);
        if !is_zero {
            touched[usize::from(child)] = true;
            let written = below.write(child, at, &[0; BLOCK]);
            written.map_err(unwritable(child))?;
        }
    }
    for (child, _) in touched.iter().enumerate().filter(|it| *it.1) {
        let child = child as Child;
        below.sync(child).map_err(unwritable(child))?;
    }
    Ok(())
}
