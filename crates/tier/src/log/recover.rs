//! Recovery of a volume after a crash, and formatting.
//!
//! The newest root defines which group is on the main pool, where its tables are and where the log continues after it.
//! The log's writes of later groups are replayed: each record that they change is copied to a free slot and changed
//! there; then tables and a root are written, as for a group. Data that the old root needs is never overwritten,
//! including the log and referenced records, so recovery can be interrupted anywhere and restarted. The new root begins
//! an epoch, even if there was nothing to replay, so that blocks after a gap of an earlier crash are never replayed
//! later. Labels of log devices follow.
//!
//! If a log device is missing, the volume opens without it: data since the last group that was only on this device is
//! lost, and the loss is reported.
//!
//! If a block cannot be read that may be the next one of the log, or a newer root, data that was synced may be missing.
//! This is reported, and the volume accepts no writes, unless possible loss is accepted; then the block is overwritten.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use model::data::{self, Unreadable};

use super::chain::{Chain, LogTail, UnreadBlock};
use super::commit::Issuer;
use super::group::Groups;
use super::layout::{self, LogContinuation, LogLabel, Root, UNIT};
use super::replay::{LogReplay, unwritable};
use super::room::SlotAllocator;
use super::tables::LEVELS;
use super::{IntentLog, LogEpoch, MAIN};
use crate::Child;
use crate::below::SliceState;
use crate::offline::{ChildImages, Damage, RecoveryFinding};
use crate::planted::{self, Bug};
use crate::record::BLOCK;

fn block(child: Child, at: u64, below: &mut dyn ChildImages) -> Option<[u8; BLOCK]> {
    let mut block = [0; BLOCK];
    below.read(child, at, &mut block).ok()?;
    Some(block)
}

fn roots(record: u64, below: &mut dyn ChildImages) -> Vec<Root> {
    let places = (0..layout::root_places(record)).map(|place| place * UNIT);
    let decode = |at| block(MAIN, at, below).and_then(|it| Root::decode(&it));
    places.filter_map(decode).collect()
}

fn newest(roots: Vec<Root>) -> Option<Root> {
    // If one start wrote several roots, the one that includes the labels.
    let age = |it: &Root| (it.epoch, it.number, it.labelled.clone());
    roots.into_iter().max_by_key(age)
}

/// Returns the position of the root after this one if it cannot be read: a newer root may be there.
fn unread_root(root: &Root, record: u64, below: &mut dyn ChildImages) -> Option<UnreadBlock> {
    let (at, bytes) = (layout::root_at(root.number + 1, record), BLOCK as u64);
    let unread = below.read(MAIN, at, &mut [0; BLOCK]).is_err();
    let child = MAIN;
    (unread && !planted::has(Bug::EndsAtUnreadableBlock)).then_some(UnreadBlock {
        child,
        at,
        bytes,
    })
}

/// Reports blocks that cannot be read and may have been durable. Returns whether the volume can accept writes: possible
/// loss is accepted, and the blocks are overwritten so that they are not in doubt again.
fn overwrite_unread(unread: &[UnreadBlock], below: &mut dyn ChildImages) -> Result<bool, Damage> {
    let mut children: Vec<Child> = unread.iter().map(|it| it.child).collect();
    children.sort_unstable();
    children.dedup();
    for &child in &children {
        below.found(RecoveryFinding::Unread(child));
    }
    if !children.is_empty() && !below.accepts_loss() {
        return Ok(false);
    }
    for it in unread {
        let written = below.write(it.child, it.at, &vec![0; it.bytes as usize]);
        written.map_err(unwritable(it.child))?;
    }
    for &child in &children {
        below.sync(child).map_err(unwritable(child))?;
    }
    Ok(true)
}

/// Returns the log devices that are present, and their bytes.
fn logs<'a>(
    children: &'a [u64],
    below: &dyn ChildImages,
) -> impl Iterator<Item = (Child, u64)> + use<'a> {
    let there: Vec<bool> = (0..children.len() as Child)
        .map(|child| below.present(child))
        .collect();
    let all = (0..).zip(children.iter().copied()).skip(1);
    all.filter(move |&(child, _)| there[usize::from(child)])
}

fn label(tier: &IntentLog, child: Child) -> LogLabel {
    LogLabel {
        pool: tier.life.pool,
        epoch: tier.life.epoch,
        log: child - 1,
        logs: tier.rings.len() as u16,
    }
}

/// Writes a root, and labels that state that the log devices belong to it.
///
/// The root is first written to one position, so that the other positions keep the previous epoch until the labels are
/// written. Then all positions get the root that requires the labels: from then on, a log device with an older label is
/// rejected. `labels`: the newest label of each log device.
fn begin_life(
    tier: &mut IntentLog,
    onward: LogContinuation,
    (children, labels): (&[u64], &[Newest]),
    below: &mut dyn ChildImages,
) -> Result<(), Damage> {
    let before = labels.iter().map(|it| it.epoch);
    tier.labelled = before.collect();
    let root = tier.root(onward.clone());
    let at = layout::root_at(root.number, tier.record);
    let written = below.write(MAIN, at, &root.encode());
    written.map_err(unwritable(MAIN))?;
    below.sync(MAIN).map_err(unwritable(MAIN))?;
    for (child, bytes) in logs(children, below) {
        let log = usize::from(child) - 1;
        let at = layout::label_at(bytes, 1 - labels[log].copy);
        let written = below.write(child, at, &label(tier, child).encode());
        written.map_err(unwritable(child))?;
        below.sync(child).map_err(unwritable(child))?;
        tier.labelled[log] = tier.life.epoch;
    }
    let root = tier.root(onward).encode();
    let places = (0..layout::root_places(tier.record)).map(|place| place * UNIT);
    for other in places.filter(|it| *it != at) {
        below.write(MAIN, other, &root).map_err(unwritable(MAIN))?;
    }
    below.sync(MAIN).map_err(unwritable(MAIN))?;
    below.write(MAIN, at, &root).map_err(unwritable(MAIN))?;
    below.sync(MAIN).map_err(unwritable(MAIN))
}

/// Formats a volume without groups. Leftovers of an earlier volume on the main pool or a log device have an earlier
/// epoch.
pub(super) fn format(
    mut tier: IntentLog,
    children: &[u64],
    pool: u128,
    below: &mut dyn ChildImages,
) -> Result<(), Damage> {
    if let Some(child) = (0..children.len() as Child).find(|&it| !below.present(it)) {
        return Err(Damage::Missing(child));
    }
    let before = newest(roots(tier.record, below)).map_or(0, |it| it.epoch);
    for place in 0..layout::root_places(tier.record) {
        let cleared = below.write(MAIN, place * UNIT, &[0; BLOCK]);
        cleared.map_err(unwritable(MAIN))?;
    }
    tier.life = LogEpoch {
        pool,
        epoch: before + 1,
    };
    // The first start writes the root that precedes the first group's.
    tier.groups.open = 0;
    let onward = tier.onward();
    let labels = vec![Newest::default(); children.len() - 1];
    begin_life(&mut tier, onward, (children, &labels), below)
}

/// Newest label of a log device: its epoch, and the index of its copy.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    epoch: u32,
    copy: u64,
}

/// Checks that the main pool and the log devices that are present are parts of this volume, and of the same epoch.
/// Returns the labels of the log devices. For a missing device, the main pool states the epoch of its label.
fn belong_together(
    tier: &IntentLog,
    root: &Root,
    children: &[u64],
    pool: u128,
    below: &mut dyn ChildImages,
) -> Result<Vec<Newest>, Damage> {
    if root.pool != pool {
        return Err(Damage::Foreign(MAIN));
    }
    let shape = (tier.config.record, tier.config.size, tier.room.slots());
    let same = (root.record, root.size, root.slots) == shape
        && root.filled == tier.config.filled
        && root.onward.heads.len() == tier.rings.len()
        && root.number < u64::MAX / 2;
    if !same {
        return Err(Damage::Misplaced(MAIN));
    }
    let absent = |&epoch: &u32| Newest { epoch, copy: 0 };
    let mut labels: Vec<Newest> = root.labelled.iter().map(absent).collect();
    for (child, bytes) in logs(children, below) {
        let copies = [0, 1].map(|copy| {
            let label = LogLabel::decode(&block(child, layout::label_at(bytes, copy), below)?)?;
            Some((copy, label))
        });
        // That of another pool may be older or newer.
        let age = |it: &(u64, LogLabel)| (it.1.pool == pool, it.1.epoch);
        let newest = copies.into_iter().flatten().max_by_key(age);
        let log = usize::from(child) - 1;
        if below.standing(child) != SliceState::Current {
            // It is known to be an old copy, and the volume opens without it. Its label counts from here.
            let own = newest.filter(|it| it.1.pool == pool);
            labels[log] = own.map_or(Newest::default(), |(copy, label)| Newest {
                epoch: label.epoch,
                copy,
            });
            continue;
        }
        let (copy, newest) = newest.ok_or(Damage::Bare(child))?;
        if newest.pool != pool {
            return Err(Damage::Foreign(child));
        }
        if (newest.log, newest.logs) != (child - 1, tier.rings.len() as u16) {
            return Err(Damage::Misplaced(child));
        }
        let epoch = newest.epoch;
        if epoch > root.epoch {
            return Err(Damage::Outdated(MAIN));
        }
        if epoch < root.labelled[log] {
            return Err(Damage::Outdated(child));
        }
        labels[log] = Newest { epoch, copy };
    }
    Ok(labels)
}

/// Loads the tables of a root, and the slots of the main pool that they use.
fn load(tier: &mut IntentLog, root: &Root, below: &mut dyn ChildImages) -> Result<(), Damage> {
    let mut room = SlotAllocator::empty(
        tier.room.slots(),
        tier.room.roots(),
        tier.room.records(),
        tier.config.filled,
    );
    let node = |place: u64| block(MAIN, place * UNIT, below);
    let read = tier.tables.read(root, &mut room, node);
    read.ok_or(Damage::Unfound(MAIN))?;
    room.recount();
    tier.tables.mark(&mut room);
    room.set_cursor(root.onward.cursor);
    tier.room = room;
    Ok(())
}

pub(super) fn recover(
    mut tier: IntentLog,
    children: &[u64],
    pool: u128,
    below: &mut dyn ChildImages,
) -> Result<IntentLog, Damage> {
    if !below.present(MAIN) {
        return Err(Damage::Missing(MAIN));
    }
    let root = newest(roots(tier.record, below)).ok_or(Damage::Bare(MAIN))?;
    let labels = belong_together(&tier, &root, children, pool, below)?;
    load(&mut tier, &root, below)?;
    for (log, ring) in tier.rings.iter_mut().enumerate() {
        let child = log as Child + 1;
        ring.broken = !below.present(child) || below.standing(child) != SliceState::Current;
        if !below.present(child) {
            below.found(RecoveryFinding::Absent(child));
        }
    }
    let bytes = children.iter().enumerate();
    let bytes = bytes.map(|(child, &bytes)| match child {
        0 => bytes,
        _ => layout::ring_bytes(bytes),
    });
    let mut chain = Chain {
        tier: &tier,
        root: &root,
        bytes: bytes.collect(),
        below,
        unread: Vec::new(),
    };
    let (places, next) = chain.walk();
    let mut unread = core::mem::take(&mut chain.unread);
    let beyond = chain.scan_tail(&next);
    let lost = beyond.durable >= next.number && !planted::has(Bug::MissesSilently);
    let lost = lost && tier.rings.iter().all(|it| !it.broken);
    let root_unread = unread_root(&root, tier.record, chain.below);
    unread.extend(root_unread);
    // A loss that is known stays, even if possible loss is accepted. Otherwise before the replay, which uses free slots.
    let writable = !lost && overwrite_unread(&unread, chain.below)?;
    // A newer root may need slots that are free according to this one.
    let places = match root_unread.is_some() && !writable {
        true => Vec::new(),
        false => places,
    };
    // The next start finds them unreadable too.
    let avoided: &[UnreadBlock] = if writable { &[] } else { &unread };
    let replay = LogReplay::run(&mut chain, &places, avoided)?;
    let LogReplay {
        room,
        changed,
        writes,
        ..
    } = replay;
    report_findings(
        &root,
        (places.len() as u64, writes),
        next.number,
        beyond,
        below,
    );
    tier.life = LogEpoch {
        pool,
        epoch: root.epoch,
    };
    tier.groups = Groups::from_synced(root.number);
    tier.room = room;
    for (&record, &slot) in &changed {
        tier.room.place(record, slot);
    }
    sum_up(&mut tier, &changed, below)?;
    if !writable {
        // Existing data can be read; nothing more is written, so that the next start has the same result.
        tier.suspended = true;
        return Ok(tier);
    }
    begin_next_epoch(tier, &root, next, &changed, (children, &labels), below)
}

/// Writes the table nodes above changed records, and a root that begins the next epoch.
fn begin_next_epoch(
    mut tier: IntentLog,
    root: &Root,
    next: LogContinuation,
    changed: &BTreeMap<u64, Option<u32>>,
    logs: (&[u64], &[Newest]),
    below: &mut dyn ChildImages,
) -> Result<IntentLog, Damage> {
    tier.life.epoch += 1;
    tier.groups = Groups::from_synced(root.number + 1);
    write_tables(&mut tier, changed, below)?;
    tier.issuer = Issuer::from_last_block(next.number - 1, next.previous);
    for (ring, &head) in tier.rings.iter_mut().zip(&next.heads) {
        ring.set_head(u64::from(head) * UNIT);
    }
    let onward = LogContinuation {
        main: 0,
        cursor: tier.room.cursor(),
        ..next
    };
    below.sync(MAIN).map_err(unwritable(MAIN))?;
    begin_life(&mut tier, onward, logs, below)?;
    // Slots that only the old root and the log needed are free now.
    tier.room.recount();
    tier.tables.mark(&mut tier.room);
    tier.tables.take_empty(&mut Vec::new());
    // Groups are counted from the one before the root's number.
    tier.groups = Groups::from_synced(root.number);
    Ok(tier)
}

fn report_findings(
    root: &Root,
    (blocks, writes): (u64, u64),
    missing: u64,
    beyond: LogTail,
    below: &mut dyn ChildImages,
) {
    if blocks > 0 || beyond.blocks > 0 {
        below.found(RecoveryFinding::Logged {
            group: root.number.saturating_sub(1),
            blocks,
            writes,
            dropped: beyond.blocks,
        });
    }
    if beyond.durable >= missing && !planted::has(Bug::MissesSilently) {
        below.found(RecoveryFinding::Lost(beyond.durable + 1 - missing));
    }
}

/// Computes the checksums of changed records.
fn sum_up(
    tier: &mut IntentLog,
    changed: &BTreeMap<u64, Option<u32>>,
    below: &mut dyn ChildImages,
) -> Result<(), Damage> {
    let mut data = vec![0; tier.record as usize];
    for (&number, &slot) in changed {
        let mut sum = None;
        if let Some(slot) = slot {
            let read = below.read(MAIN, u64::from(slot) * tier.record, &mut data);
            read.map_err(|Unreadable| Damage::Unfound(MAIN))?;
            sum = Some(data::sum(&data));
        }
        tier.tables.set_sum(number, sum);
    }
    Ok(())
}

/// Writes the table nodes above changed records.
fn write_tables(
    tier: &mut IntentLog,
    changed: &BTreeMap<u64, Option<u32>>,
    below: &mut dyn ChildImages,
) -> Result<(), Damage> {
    let per = tier.tables.per();
    let (mut first, mut used) = (0, per);
    for level in 0..LEVELS {
        let mut last = None;
        for &number in changed.keys() {
            let node = tier.tables.node_of(number, level);
            if last == Some(node) {
                continue;
            }
            last = Some(node);
            if used == per {
                let slot = tier.room.take().ok_or(Damage::Unwritable(MAIN))?;
                (first, used) = (u64::from(slot) * per, 0);
            }
            let place = first + used;
            used += 1;
            tier.tables.place(level, node, place);
            let node = tier.tables.encode(level, node, &tier.room);
            let written = below.write(MAIN, place * UNIT, &node);
            written.map_err(unwritable(MAIN))?;
        }
    }
    Ok(())
}

impl IntentLog {
    /// Returns the parts of a range: location on the main pool, if any, position in the range, and number of bytes.
    pub(super) fn stopped_pieces(
        &self,
        at: u64,
        bytes: u64,
    ) -> impl Iterator<Item = (Option<u64>, usize, usize)> + '_ {
        let mut next = at;
        core::iter::from_fn(move || {
            let from = next;
            if from == at + bytes {
                return None;
            }
            let number = from / self.record;
            next = (at + bytes).min((number + 1) * self.record);
            let slot = self.room.slot(number);
            let place = slot.map(|slot| u64::from(slot) * self.record + from % self.record);
            Some((place, (from - at) as usize, (next - from) as usize))
        })
    }

    /// Reads offline.
    pub(super) fn read_stopped(
        &self,
        at: u64,
        into: &mut [u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unreadable> {
        self.stopped_pieces(at, into.len() as u64)
            .try_for_each(|(place, from, bytes)| {
                let part = &mut into[from..from + bytes];
                match place {
                    Some(place) => below.read(MAIN, place, part),
                    None => {
                        part.fill(0);
                        Ok(())
                    }
                }
            })
    }
}
