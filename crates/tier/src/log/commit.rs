//! Commits: unlogged writes go into log blocks, and waiting commits complete when the blocks are durable.
//!
//! Commits that arrive while blocks are being prepared are combined afterwards. A block is sent when it is full, or
//! when the first commit in it has waited a tenth of the recent latency of blocks. It is sent immediately if commits
//! arrive one at a time. Blocks are prepared one after another. Each is written and then flushed, if a commit waits for
//! it; other blocks are flushed with the next one. Blocks complete in order, because a log is read up to the first
//! missing block.
//!
//! The main pool takes blocks that do not fit on a log device, and all blocks if no log device responds: they are
//! written, flushed, then acknowledged. Not modelled: in ZFS, a commit that waits for the very block that a log device
//! failed waits for its transaction group (`zil_commit_impl`); here the main pool takes this block too.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use model::anatomy::{Anatomy, Part};
use model::command::{Command, Completion, Payload, Status};
use model::data::Buffers;
use model::engine::Slab;
use model::time::{Span, Time};

use super::layout::{HEADER, LogContent, SECTOR, UNIT};
use super::queue::Urgency;
use super::{
    IntentLog, IntentLogConfig, LogEvent, LogPurpose, Logbias, MAIN, SyncPolicy, TierContext,
    UnloggedWrite, tier_anatomy,
};
use crate::Child;
use crate::planted::{self, Bug};

/// Number of commits that arrive one at a time after which blocks no longer wait for others.
const ALONE_AFTER: u32 = 8;
/// A block waits for other commits for this fraction of the recent latency of blocks.
const WAITS: u64 = 10;
/// Minimum time that a block waits.
const SHORTEST_WAIT: Span = Span::from_us(5);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LogBlockState {
    /// The block accepts records.
    Filling,
    /// The block waits for the software, or its writes are in flight.
    Writing,
    /// The block is written, and will be flushed with the next.
    Deferred,
    Flushing,
    Done,
}

/// A log block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    state: LogBlockState,
    /// Number, once the block is sent, and its data.
    pub(super) number: u64,
    pub(super) payload: Payload,
    pub(super) used: u64,
    /// When it is sent even if it is not full.
    goes_at: Time,
    bulk: bool,
    /// Writes in the block, and the commits that wait for it.
    pub(super) carried: Vec<UnloggedWrite>,
    pub(super) waiters: Vec<u32>,
    /// Number of commands in flight.
    left: u32,
    /// Children that must be flushed, one bit each.
    touched: u64,
    status: Status,
    sent: Time,
    /// Latency breakdown since the block was sent, and the time up to which it is complete.
    anatomy: Anatomy,
    since: Time,
}

/// State of the creation of blocks.
#[derive(Clone, Debug)]
pub(super) struct Issuer {
    /// Commits that have not been processed yet.
    waiting: Vec<u32>,
    pub(super) blocks: Slab<Block>,
    /// Number of the last block that was sent, checksum of its header, and the number up to which all blocks are
    /// durable.
    pub(super) last: u64,
    pub(super) previous: u32,
    pub(super) durable: u64,
    /// All blocks that are not complete, in order: the last may be filling.
    chain: VecDeque<u32>,
    /// Blocks that the software must prepare; it works on the first.
    closed: VecDeque<u32>,
    busy: bool,
    /// Bytes logged since a block was last sent before it was full.
    burst: u64,
    /// Recent latency of blocks.
    latency: Span,
    /// Above zero: commits have arrived concurrently.
    parallel: u32,
    /// The log device that is used next.
    turn: usize,
    /// Memory of completed blocks, for reuse.
    spare: Vec<(Vec<UnloggedWrite>, Vec<u32>)>,
}

impl Default for Issuer {
    fn default() -> Issuer {
        Issuer {
            waiting: Vec::new(),
            blocks: Slab::default(),
            last: 0,
            previous: 0,
            durable: 0,
            chain: VecDeque::new(),
            closed: VecDeque::new(),
            busy: false,
            burst: 0,
            latency: Span::ZERO,
            parallel: 0,
            turn: 0,
            spare: Vec::new(),
        }
    }
}

impl Issuer {
    /// Creates a state that continues after the block with this number and header checksum: all blocks up to it are
    /// durable.
    pub(super) fn from_last_block(last: u64, previous: u32) -> Issuer {
        Issuer {
            last,
            previous,
            durable: last,
            ..Issuer::default()
        }
    }

    /// Releases the buffers of its blocks.
    pub(super) fn release_buffers(&mut self, buffers: &mut impl Buffers) {
        for block in self.blocks.all_mut() {
            buffers.release(core::mem::take(&mut block.payload));
        }
    }

    /// Returns the writes in blocks that are not durable.
    pub(super) fn carried(&self) -> impl Iterator<Item = &UnloggedWrite> {
        let of = |&block: &u32| self.blocks[block].carried.iter();
        self.chain.iter().flat_map(of)
    }

    /// Returns the block that accepts records.
    fn filling(&self) -> Option<u32> {
        let last = *self.chain.back()?;
        (self.blocks[last].state == LogBlockState::Filling).then_some(last)
    }

    /// Returns the block that accepts records; creates one if there is none.
    fn fill(&mut self) -> u32 {
        if let Some(block) = self.filling() {
            return block;
        }
        let (carried, waiters) = self.spare.pop().unwrap_or_default();
        let block = self.blocks.insert(Block {
            state: LogBlockState::Filling,
            number: 0,
            payload: Payload::default(),
            used: HEADER,
            goes_at: Time::NEVER,
            bulk: false,
            carried,
            waiters,
            left: 0,
            touched: 0,
            status: Status::Success,
            sent: Time::ZERO,
            anatomy: Anatomy::ZERO,
            since: Time::ZERO,
        });
        self.chain.push_back(block);
        block
    }

    fn close(&mut self, block: u32) {
        self.blocks[block].state = LogBlockState::Writing;
        self.closed.push_back(block);
    }

    /// Adds a write to blocks, split into pieces if necessary. If the write references records, each record is a piece.
    /// Data is split only between sectors: a block that is missing after a crash must not leave part of a sector.
    fn put(&mut self, write: UnloggedWrite, config: &IntentLogConfig) {
        let record = u64::from(config.record);
        let (mut at, mut left) = (write.offset, write.bytes);
        loop {
            let block = self.fill();
            let free = u64::from(config.block) - self.blocks[block].used;
            let data = match write.content {
                LogContent::Data => u64::from(left),
                _ => 0,
            };
            if free < HEADER + data.min(UNIT) {
                self.close(block);
                continue;
            }
            let mut piece = data.min((free - HEADER) / SECTOR * SECTOR);
            if planted::has(Bug::LogCutsSectors) {
                piece = data.min(free - HEADER);
            }
            self.burst += HEADER + piece;
            let bulk = self.burst > config.slog_bulk;
            let block = &mut self.blocks[block];
            block.used += HEADER + piece;
            block.bulk |= bulk;
            let bytes = match write.content {
                LogContent::Data => piece as u32,
                LogContent::Named => left.min((record - at % record) as u32),
                LogContent::Zeroes => left,
            };
            block.carried.push(UnloggedWrite {
                offset: at,
                bytes,
                ..write
            });
            at += u64::from(bytes);
            left -= bytes;
            if left == 0 {
                return;
            }
        }
    }
}

impl IntentLog {
    /// The software has worked on a commit: it is combined with others.
    pub(super) fn commit<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        self.spend(now, request, Part::Tier);
        if self.suspended {
            return self.refuse(now, request, way);
        }
        self.issuer.waiting.push(request);
        self.take_commits(now, way);
    }

    /// Processes all waiting commits, unless previous blocks still have to be prepared.
    fn take_commits<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let issuer = &mut self.issuer;
        if issuer.busy || !issuer.closed.is_empty() || issuer.waiting.is_empty() {
            return;
        }
        let beside_others = issuer.waiting.len() > 1 || !issuer.chain.is_empty();
        issuer.parallel = match beside_others {
            true => ALONE_AFTER,
            false => issuer.parallel.saturating_sub(1),
        };
        debug_assert!(self.config.sync != SyncPolicy::Disabled);
        while let Some(write) = self.unlogged.pop_front() {
            issuer.put(write, &self.config);
        }
        let mut waiting = core::mem::take(&mut issuer.waiting);
        if let Some(&last) = issuer.chain.back() {
            issuer.blocks[last].waiters.append(&mut waiting);
        }
        if let Some(block) = issuer.filling() {
            let waits = Span::from_ns(issuer.latency.ns() / WAITS);
            if issuer.parallel == 0 || waits < SHORTEST_WAIT {
                issuer.close(block);
                issuer.burst = 0;
            } else if issuer.blocks[block].goes_at == Time::NEVER {
                issuer.blocks[block].goes_at = now + waits;
                self.schedule(now + waits, LogEvent::Waited(block));
            }
        }
        // There was nothing to log, and no block is in flight.
        for request in waiting.drain(..) {
            self.finish(request, way);
        }
        self.issuer.waiting = waiting;
        self.make_ready(now);
    }

    /// A block has waited for other commits.
    pub(super) fn waited(&mut self, now: Time, block: u32) {
        let issuer = &mut self.issuer;
        if issuer.filling() == Some(block) && issuer.blocks[block].goes_at == now {
            issuer.close(block);
            issuer.burst = 0;
            self.make_ready(now);
        }
    }

    /// The software prepares the next block, if it is idle.
    fn make_ready(&mut self, now: Time) {
        if self.issuer.busy {
            return;
        }
        if let Some(&block) = self.issuer.closed.front() {
            self.issuer.busy = true;
            let takes = self.config.cpu.block;
            self.work(now, takes, LogEvent::Issue(block));
        }
    }

    /// A block is ready: sends it to a log device or to the main pool, and the records that it references to the main
    /// pool.
    pub(super) fn issue<W: TierContext>(&mut self, now: Time, block: u32, way: &mut W) {
        self.issuer.busy = false;
        self.issuer.closed.pop_front();
        // The block, and the records that it references, are freed with the current open group, so there must be one.
        self.open_group(now);
        self.issuer.last += 1;
        let this = &mut self.issuer.blocks[block];
        this.number = self.issuer.last;
        (this.sent, this.since) = (now, now);
        for index in 0..this.carried.len() {
            let write = self.issuer.blocks[block].carried[index];
            if write.content == LogContent::Named {
                let named = self.write_early(block, write, way);
                self.issuer.blocks[block].carried[index] = named;
            }
        }
        self.fill_block(block, way);
        self.place(now, block, false, way);
        self.make_ready(now);
        self.take_commits(now, way);
        self.kick_group(now, way);
    }

    /// Sends a block to a location with enough space. One that has moved from a failed log device goes to the main pool.
    fn place<W: TierContext>(&mut self, now: Time, block: u32, moved: bool, way: &mut W) {
        self.open_group(now);
        let this = &mut self.issuer.blocks[block];
        this.left += 1;
        let bytes = this.used.next_multiple_of(UNIT);
        self.log_bytes += bytes;
        self.groups.log(bytes);
        let mut place = None;
        if self.config.logbias == Logbias::Latency && !moved {
            for _ in 0..self.rings.len() {
                let ring = self.issuer.turn % self.rings.len();
                self.issuer.turn = ring + 1;
                place = self.rings[ring].take(bytes).map(|at| (ring + 1, at));
                if place.is_some() {
                    break;
                }
            }
            let full = place.is_none() && !self.rings.is_empty();
            self.full_blocks += u64::from(full);
        }
        let bulk = self.issuer.blocks[block].bulk && place.is_some();
        let on_main = |this: &mut IntentLog| {
            let groups = &mut this.groups;
            let at = groups.place_on_main(bytes, moved, this.slot, &mut this.room);
            at.map(|at| (usize::from(MAIN), at))
        };
        let Some((child, at)) = place.or_else(|| on_main(self)) else {
            return self.no_room(now, block, way);
        };
        self.head_block(block, way);
        let urgency = match bulk {
            true => Urgency::Bulk,
            false => Urgency::Urgent,
        };
        let command = Command {
            payload: self.issuer.blocks[block].payload,
            ..Command::write(0, at, bytes as u32)
        };
        let what = (child as Child, LogPurpose::Block { block });
        self.send(what, Some(urgency), command, way);
    }

    /// A block fits nowhere (which should not happen): no further writes are acknowledged.
    fn no_room<W: TierContext>(&mut self, now: Time, block: u32, way: &mut W) {
        self.suspended = true;
        let this = &mut self.issuer.blocks[block];
        this.left -= 1;
        this.status = Status::WriteFault;
        if this.left == 0 {
            this.state = LogBlockState::Done;
            self.end_blocks(now, way);
        }
    }

    /// Writes a dirty record that a block references to its final location, unless that has been done. Returns the
    /// write with its location.
    fn write_early<W: TierContext>(
        &mut self,
        block: u32,
        write: UnloggedWrite,
        way: &mut W,
    ) -> UnloggedWrite {
        let Some(handle) = self.records.find(write.offset / self.record) else {
            // Its group is on the main pool.
            return write;
        };
        let record = *self.records.get(handle);
        if record.hole {
            let content = LogContent::Zeroes;
            return UnloggedWrite { content, ..write };
        }
        if record.open && record.early != super::records::NONE {
            let (slot, sum) = (record.early, record.early_sum);
            return UnloggedWrite { slot, sum, ..write };
        }
        if !record.open && !record.syncing {
            return write;
        }
        let Some(slot) = self.room.take() else {
            self.suspended = true;
            self.issuer.blocks[block].status = Status::WriteFault;
            return write;
        };
        let payload = way.buffers().take(self.config.record);
        way.buffers().copy(record.data, payload, self.config.record);
        let sum = way.buffers().sum(payload, self.config.record);
        if record.open {
            let record = self.records.get_mut(handle);
            (record.early, record.early_sum) = (slot, sum);
        } else {
            // Its group, which is not on the main pool yet, has another location for it.
            self.groups.slots.push(slot);
        }
        if !planted::has(Bug::NamesUnwritten) {
            self.issuer.blocks[block].left += 1;
        }
        let command = Command {
            payload,
            ..Command::write(0, u64::from(slot) * self.slot, self.slot as u32)
        };
        let what = (MAIN, LogPurpose::Early { block });
        self.send(what, Some(Urgency::Urgent), command, way);
        UnloggedWrite { slot, sum, ..write }
    }

    /// A write of a block, or of a record that it references, has completed.
    pub(super) fn block_written<W: TierContext>(
        &mut self,
        now: Time,
        (block, child): (u32, Child),
        done: &Completion,
        way: &mut W,
    ) {
        let this = &mut self.issuer.blocks[block];
        this.left -= 1;
        this.touched |= 1 << child;
        if done.status != Status::Success {
            if child != MAIN {
                return self.elsewhere(now, block, child, way);
            }
            this.status = Status::WriteFault;
            // The chain ends here: later blocks would not be found.
            self.suspended = true;
        }
        let this = &mut self.issuer.blocks[block];
        if this.left > 0 {
            return;
        }
        let took = tier_anatomy(&done.anatomy, now.since(this.since));
        this.anatomy.append(&took);
        this.since = now;
        let (touched, nobody) = (this.touched, this.waiters.is_empty());
        if nobody && this.status == Status::Success {
            let place = self.issuer.chain.iter().position(|&it| it == block);
            let next = place.and_then(|place| self.issuer.chain.get(place + 1));
            if let Some(&next) = next {
                let next = &mut self.issuer.blocks[next];
                if matches!(next.state, LogBlockState::Filling | LogBlockState::Writing) {
                    next.touched |= touched;
                    self.issuer.blocks[block].state = LogBlockState::Deferred;
                    return;
                }
            }
        }
        if planted::has(Bug::LogNotFlushed) {
            self.issuer.blocks[block].state = LogBlockState::Done;
            return self.end_blocks(now, way);
        }
        self.flush_block(block, way);
    }

    /// A log device failed to write a block or to make it durable. It is not used until it returns. The main pool takes
    /// the block, and earlier blocks that would have been flushed with it.
    fn elsewhere<W: TierContext>(&mut self, now: Time, block: u32, child: Child, way: &mut W) {
        self.rings[usize::from(child) - 1].broken = true;
        let issuer = &self.issuer;
        let before = issuer.chain.iter().copied().take_while(|&it| it != block);
        let there = |&it: &u32| {
            let it = &issuer.blocks[it];
            it.state == LogBlockState::Deferred && it.touched & 1 << child != 0
        };
        let again: Vec<u32> = before.filter(there).chain([block]).collect();
        for block in again {
            let this = &mut self.issuer.blocks[block];
            this.touched &= !(1 << child);
            this.state = LogBlockState::Writing;
            self.place(now, block, true, way);
        }
    }

    fn flush_block<W: TierContext>(&mut self, block: u32, way: &mut W) {
        let this = &mut self.issuer.blocks[block];
        this.state = LogBlockState::Flushing;
        let touched = this.touched;
        for child in 0..self.queues.len() as Child {
            if touched & 1 << child != 0 {
                self.issuer.blocks[block].left += 1;
                let what = (child, LogPurpose::BlockFlush { block });
                self.send(what, None, Command::flush(0), way);
            }
        }
    }

    pub(super) fn block_flushed<W: TierContext>(
        &mut self,
        now: Time,
        (block, child): (u32, Child),
        done: &Completion,
        way: &mut W,
    ) {
        let this = &mut self.issuer.blocks[block];
        this.left -= 1;
        if done.status != Status::Success {
            if child != MAIN {
                return self.elsewhere(now, block, child, way);
            }
            this.status = Status::WriteFault;
            // The chain ends here: later blocks would not be found.
            self.suspended = true;
        } else if child != MAIN {
            self.rings[usize::from(child) - 1].untried = false;
        }
        let this = &mut self.issuer.blocks[block];
        if this.left > 0 {
            return;
        }
        if this.state == LogBlockState::Writing {
            // Meanwhile the main pool has it, instead of a log device that failed.
            return self.flush_block(block, way);
        }
        let took = tier_anatomy(&done.anatomy, now.since(this.since));
        this.anatomy.append(&took);
        this.since = now;
        this.state = LogBlockState::Done;
        if planted::has(Bug::LogOutOfOrder) {
            self.end_early(now, block, way);
        }
        self.end_blocks(now, way);
    }

    /// Completes blocks in order; those that were flushed with another block complete with it.
    fn end_blocks<W: TierContext>(&mut self, now: Time, way: &mut W) {
        loop {
            let issuer = &self.issuer;
            let deferred = |&&it: &&u32| issuer.blocks[it].state == LogBlockState::Deferred;
            let count = issuer.chain.iter().take_while(deferred).count();
            let flushed = issuer.chain.get(count);
            if flushed.is_none_or(|&it| issuer.blocks[it].state != LogBlockState::Done) {
                return;
            }
            for _ in 0..=count {
                if let Some(block) = self.issuer.chain.pop_front() {
                    self.end_block(now, block, way);
                }
            }
        }
    }

    fn end_block<W: TierContext>(&mut self, now: Time, block: u32, way: &mut W) {
        let this = &mut self.issuer.blocks[block];
        let mut carried = core::mem::take(&mut this.carried);
        let mut waiters = core::mem::take(&mut this.waiters);
        let (sent, since, mut status, number) = (this.sent, this.since, this.status, this.number);
        let anatomy = this.anatomy;
        way.buffers().release(core::mem::take(&mut this.payload));
        // A recovery finds no block after one that is not durable.
        let follows = self.issuer.durable + 1 == number || planted::has(Bug::LogGoesOnAfterGap);
        if status == Status::Success && follows {
            self.issuer.durable = number;
        } else {
            status = Status::WriteFault;
        }
        let took = now.since(sent);
        let latency = &mut self.issuer.latency;
        *latency = match *latency {
            Span::ZERO => took,
            before => Span::from_ns((7 * before.ns() + took.ns()) / 8),
        };
        for request in waiters.drain(..) {
            // Before the block was sent it waited for other commits; after it was flushed, for earlier blocks.
            self.spend(sent.max(self.requests[request].since), request, Part::Tier);
            let waiting = &mut self.requests[request];
            let of_block = tier_anatomy(&anatomy, since.since(waiting.since));
            waiting.anatomy.append(&of_block);
            waiting.since = waiting.since.max(since);
            waiting.status = status;
            self.spend(now, request, Part::Tier);
            self.finish(request, way);
        }
        carried.clear();
        self.issuer.spare.push((carried, waiters));
        self.issuer.blocks.release(block);
    }
}
