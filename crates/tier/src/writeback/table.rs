//! Commits that write a table. After the ring there is an entry of 16 bytes for each slot. To make records durable, the
//! pieces of this table with changed entries are written, then the cache is flushed, then a superblock is written with
//! force unit access.
//!
//! Like dm-writecache on an SSD: `ssd_commit_flushed` writes whole pieces of 64 KiB, waits for the data in flight and
//! flushes; `ssd_commit_superblock` follows (`drivers/md/dm-writecache.c`, Linux 6.12; read, not copied). Its lock is
//! held all that time: no record is sent meanwhile. Flushes that arrive share the next commit, or complete with the
//! current one if it has made their data durable. Overwriting a block that is in the cache changes no entry there, so
//! such a commit is only a flush; a round of destaging changes the entries of the slots that it frees. If there is
//! nothing new to make durable, nothing is done.
//!
//! The content of the table is also in the records' headers, and recovery reads those: pieces are written as zeroes,
//! only for their cost. Not modelled: reads also wait for the lock; the kernel frees destaged blocks in smaller groups
//! than a round, each with its own commit.

use alloc::vec::Vec;

use model::anatomy::{Anatomy, Part};
use model::command::{Command, Completion, Payload, Status};
use model::data::Buffers;
use model::engine::Slab;
use model::time::Time;

use super::layout::{self, TABLE_ENTRY};
use super::ring::UNIT;
use super::{CACHE, WriteBack, WriteBackPurpose};
use crate::TierContext;

/// Stage of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum MapCommitStage {
    /// No commit is in progress.
    #[default]
    None,
    /// This number of pieces is being written; then it waits for the records in flight.
    Pieces(u32),
    /// The cache is being flushed, or the superblock is being written.
    Ends,
}

/// State of commits with a table.
#[derive(Clone, Debug, Default)]
pub(super) struct TableCommits {
    stage: MapCommitStage,
    /// Pieces with entries that have changed since they were written.
    changed: Vec<u32>,
    /// Buffers of the pieces that are being written.
    pieces: Slab<Payload>,
    /// Number of pieces that the commit in progress has written.
    written: u32,
    /// Requests that wait for the next commit, and those that wait for the one in progress.
    waiting: Vec<u32>,
    served: Vec<u32>,
    /// Whether a round of destaging waits for the next commit to write its tail, or for the one in progress.
    tail_waits: bool,
    tail: bool,
    /// Latency breakdown of the commit in progress, and the time up to which it is complete.
    anatomy: Anatomy,
    until: Time,
    superblock: Payload,
}

impl TableCommits {
    /// Whether a commit is in progress, so that no record may be sent.
    #[inline]
    pub(super) fn holds(&self) -> bool {
        self.stage != MapCommitStage::None
    }

    /// The entry of a slot has changed, in a table with pieces of `piece` bytes.
    #[inline]
    pub(super) fn change(&mut self, slot: u32, piece: u32) {
        let piece = slot / (piece / TABLE_ENTRY as u32);
        if self.changed.last() != Some(&piece) && !self.changed.contains(&piece) {
            self.changed.push(piece);
        }
    }

    /// A step of the commit has ended.
    fn took(&mut self, now: Time, anatomy: &Anatomy) {
        self.anatomy.append(anatomy);
        self.until = now;
    }
}

impl WriteBack {
    /// Units are about to be put at the head: those that are not in the cache get entries.
    pub(super) fn note_entries(&mut self, first: u64, count: u32) {
        for index in 0..count {
            if self.map.get(first + u64::from(index)).is_none() {
                let slot = self.ring.head_slot() + index;
                self.table.change(slot, self.config.table);
            }
        }
    }

    /// A flush, or a write with force unit access, waits until all previous writes are durable.
    pub(super) fn wait_for_table<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        self.table.waiting.push(request);
        self.begin_table(now, way);
    }

    /// A round of destaging waits until its tail is written.
    pub(super) fn commit_tail<W: TierContext>(&mut self, now: Time, way: &mut W) {
        self.table.tail_waits = true;
        self.begin_table(now, way);
    }

    /// Begins a commit, unless one is in progress or there is nothing to make durable.
    pub(super) fn begin_table<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if self.table.holds() {
            return;
        }
        let open = self.flushed.position < self.ring.applied() || !self.records.is_empty();
        let tail = self.table.tail_waits;
        if self.failed.is_some() || !(open || tail) {
            return self.end_waiting(now, way);
        }
        self.commits.stop();
        let table = &mut self.table;
        core::mem::swap(&mut table.waiting, &mut table.served);
        for &request in &table.served {
            self.requests[request].account(now, Part::Tier);
        }
        (table.tail, table.tail_waits) = (tail, false);
        (table.anatomy, table.until) = (Anatomy::ZERO, now);
        let pieces = core::mem::take(&mut table.changed);
        table.written = pieces.len() as u32;
        table.stage = MapCommitStage::Pieces(table.written);
        let slots = self.ring.slots();
        let (begin, bytes) = (layout::table_at(slots), layout::table_bytes(slots));
        let size = u64::from(self.config.table);
        for &piece in &pieces {
            let at = u64::from(piece) * size;
            let bytes = size.min(bytes - at) as u32;
            let payload = way.buffers().take(bytes);
            way.buffers().zero(payload, bytes);
            let index = self.table.pieces.insert(payload);
            let command = Command {
                payload,
                ..Command::write(0, begin + at, bytes)
            };
            way.send(CACHE, WriteBackPurpose::Table.token(index), command);
        }
        self.table.changed = pieces;
        self.table.changed.clear();
        self.go_on_with_table(now, way);
    }

    /// Completes waiting requests that have nothing to wait for, or fails them if nothing can be made durable any more.
    fn end_waiting<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let status = self.failed.unwrap_or_default();
        let mut waiting = core::mem::take(&mut self.table.waiting);
        for request in waiting.drain(..) {
            let own = &mut self.requests[request];
            own.account(now, Part::Tier);
            own.status = status;
            self.end(request, way);
        }
        self.table.waiting = waiting;
    }

    /// A piece of the table has been written.
    pub(super) fn piece_written<W: TierContext>(
        &mut self,
        now: Time,
        index: u32,
        done: &Completion,
        way: &mut W,
    ) {
        let payload = self.table.pieces[index];
        self.table.pieces.release(index);
        way.buffers().release(payload);
        if done.status != Status::Success {
            self.failed.get_or_insert(done.status);
        }
        let MapCommitStage::Pieces(left) = self.table.stage else {
            return;
        };
        self.table.stage = MapCommitStage::Pieces(left - 1);
        if left == 1 {
            // All were sent at one time: the last one has the latency of all.
            self.table.took(now, &done.anatomy);
        }
        self.go_on_with_table(now, way);
    }

    /// Flushes the cache once the pieces and the records are written.
    pub(super) fn go_on_with_table<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if self.table.stage != MapCommitStage::Pieces(0) || !self.records.is_empty() {
            return;
        }
        let waited = now.since(self.table.until);
        self.table.anatomy.add(Part::Tier, waited);
        self.table.until = now;
        self.table.stage = MapCommitStage::Ends;
        if self.failed.is_some() {
            return self.table_is_over(now, way);
        }
        way.send(
            CACHE,
            WriteBackPurpose::TableFlush.token(0),
            Command::flush(0),
        );
    }

    /// The cache has been flushed: writes the superblock that states that the ring is durable.
    pub(super) fn table_flushed<W: TierContext>(
        &mut self,
        now: Time,
        done: &Completion,
        way: &mut W,
    ) {
        self.table.took(now, &done.anatomy);
        if done.status != Status::Success {
            self.failed.get_or_insert(done.status);
        }
        if self.failed.is_some() {
            return self.table_is_over(now, way);
        }
        self.has_committed(self.applied());
        if self.table.written == 0 && !self.table.tail {
            return self.table_is_over(now, way);
        }
        let place = self.destaging.next_superblock();
        let payload = way.buffers().take(UNIT);
        if W::Buffers::REAL {
            let tail = match self.table.tail {
                true => self.destaging.until(),
                false => self.ring.tail(),
            };
            let superblock = self.superblock_from(tail);
            way.buffers().put(payload, &superblock.encode());
        }
        self.table.superblock = payload;
        let command = Command {
            fua: true,
            payload,
            ..Command::write(0, place, UNIT)
        };
        way.send(CACHE, WriteBackPurpose::TableEnd.token(0), command);
    }

    /// The superblock has been written.
    pub(super) fn table_ended<W: TierContext>(
        &mut self,
        now: Time,
        done: &Completion,
        way: &mut W,
    ) {
        way.buffers().release(self.table.superblock);
        self.table.took(now, &done.anatomy);
        if done.status != Status::Success {
            self.failed.get_or_insert(done.status);
        }
        self.table_is_over(now, way);
    }

    /// Completes the commit's requests, and continues with others.
    fn table_is_over<W: TierContext>(&mut self, now: Time, way: &mut W) {
        self.table.stage = MapCommitStage::None;
        let status = self.failed.unwrap_or_default();
        let mut served = core::mem::take(&mut self.table.served);
        for request in served.drain(..) {
            let own = &mut self.requests[request];
            own.anatomy.append(&self.table.anatomy);
            own.status = status;
            self.end(request, way);
        }
        self.table.served = served;
        if status != Status::Success {
            self.end_waiting(now, way);
            return self.give_up(now, status, way);
        }
        if core::mem::take(&mut self.table.tail) {
            self.tail_is_durable(now, way);
        }
        if !self.table.waiting.is_empty() || self.table.tail_waits {
            self.begin_table(now, way);
        }
        self.pump(now, way);
    }
}
