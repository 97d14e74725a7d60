//! Destaging: the oldest segments are moved to the capacity tier, and freed.
//!
//! Destaging works in rounds. A round takes segments starting at the tail, sorts their live units by drive and address,
//! merges adjacent ones, and reads and writes them, with a limited number of writes at a time per drive. Then it
//! flushes these drives, unmaps units that have not been overwritten meanwhile, and writes the new tail to a
//! superblock; only then are the segments free. If flushes make records durable, the cache is flushed as well, because
//! data that newer records replace is not destaged. A round ends before the next begins, so that older data of a unit
//! is never written after newer data.

use alloc::vec;
use alloc::vec::Vec;

use model::command::{Command, Completion, Payload, Status};
use model::data::Buffers;
use model::engine::Slab;
use model::time::Time;

use super::cleaning::Cleaning;
use super::layout::{self, packed, unpacked};
use super::ring::UNIT;
use super::{CACHE, Durability, DurablePosition, WriteBack, WriteBackPurpose};
use crate::TierContext;
use crate::planted::{self, Bug};

/// Stage of destaging.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DestageStage {
    /// Idle; a round may begin at this time.
    Idle(Time),
    /// Data is being moved.
    Moving,
    /// This number of drives of the capacity tier must still be flushed.
    Hardening(u16),
    /// Reads from the segments are still in progress.
    Pinned,
    /// The tail is being written.
    Recording,
}

/// A run of adjacent units on a drive of the capacity tier, while it is moved.
#[derive(Clone, Copy, Debug)]
struct DestageRun {
    /// The drive, counted from 0.
    drive: u16,
    /// The first unit on it, and the number of units.
    first: u64,
    units: u32,
    /// Reads in flight.
    left: u32,
    /// Buffer with its bytes.
    payload: Payload,
}

/// State of a drive of the capacity tier in a round.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// Range of the round's units that are still to be started.
    next: usize,
    end: usize,
    in_flight: u16,
    /// Whether it has been written since it was flushed.
    touched: bool,
}

/// State of destaging.
#[derive(Clone, Debug)]
pub(super) struct Destaging {
    stage: DestageStage,
    /// Units of the round by drive and address there, packed into one number, each with its slot and its number.
    units: Vec<(u64, u32, u64)>,
    lanes: Vec<Lane>,
    runs: Slab<DestageRun>,
    /// Runs that are in progress, as indices into `runs`.
    under_way: Vec<u32>,
    /// Whether the upper mark has been exceeded, and the lower one has not been reached yet.
    pub(super) drains: bool,
    /// The first position after the round's segments.
    until: u64,
    /// Position up to which the ring is durable after the flushes.
    hardens: DurablePosition,
    /// Number of the last superblock, and its bytes.
    pub(super) superblocks: u64,
    superblock: Payload,
}

impl Destaging {
    /// Creates the state for `drives` drives.
    pub(super) fn new(drives: usize) -> Destaging {
        Destaging {
            stage: DestageStage::Idle(Time::NEVER),
            units: Vec::new(),
            lanes: vec![Lane::default(); drives],
            runs: Slab::default(),
            under_way: Vec::new(),
            drains: false,
            until: 0,
            hardens: DurablePosition::default(),
            superblocks: 0,
            superblock: Payload::default(),
        }
    }

    /// Returns the first position after the round's segments.
    pub(super) fn until(&self) -> u64 {
        self.until
    }

    /// Returns when the next round begins.
    #[inline]
    pub(super) fn due(&self) -> Time {
        match self.stage {
            DestageStage::Idle(at) => at,
            _ => Time::NEVER,
        }
    }

    /// Sets when the next round begins.
    pub(super) fn begin_at(&mut self, at: Time) {
        self.stage = DestageStage::Idle(at);
    }

    /// Power cut: no work is in progress any more, and written data may not be durable.
    pub(super) fn cut(&mut self) {
        self.stage = DestageStage::Idle(Time::NEVER);
        self.units.clear();
        self.runs = Slab::default();
        self.under_way.clear();
        for lane in &mut self.lanes {
            *lane = Lane {
                touched: lane.touched,
                ..Lane::default()
            };
        }
    }

    /// Marks a drive as written.
    pub(super) fn touch(&mut self, drive: usize) {
        self.lanes[drive].touched = true;
    }

    /// Returns the position of the next superblock, and increments the number.
    pub(super) fn next_superblock(&mut self) -> u64 {
        let place = self.superblocks % layout::SUPERBLOCK_COPIES * u64::from(UNIT);
        self.superblocks += 1;
        place
    }

    /// Whether a range of a drive is being written.
    pub(super) fn writes(&self, drive: usize, offset: u64, bytes: u64) -> bool {
        self.under_way.iter().any(|&index| {
            let run = &self.runs[index];
            let at = run.first * u64::from(UNIT);
            let end = at + u64::from(run.units) * u64::from(UNIT);
            usize::from(run.drive) == drive && at < offset + bytes && offset < end
        })
    }
}

impl WriteBack {
    /// If no round is in progress: begins a round if necessary, or determines when the next may begin.
    #[inline]
    pub(super) fn consider<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let DestageStage::Idle(due) = self.destaging.stage else {
            return;
        };
        let by_fill = matches!(self.config.destage.cleaning, Cleaning::Fill);
        if due < Time::NEVER && (by_fill || !self.must_destage()) {
            return;
        }
        let at = self.next_round(now);
        self.destaging.begin_at(at);
        if at <= now {
            self.begin_round(now, way);
        }
    }

    /// Begins a round with the oldest segments, and their live units.
    pub(super) fn begin_round<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let at = self.next_round(now);
        if at > now {
            return self.destaging.begin_at(at);
        }
        let segments = self.segments_of_round();
        let until = self.ring.tail() + u64::from(segments) * u64::from(self.ring.per);
        let mut units = core::mem::take(&mut self.destaging.units);
        units.clear();
        self.look_up_oldest(until);
        for (slot, unit) in self.oldest.until(until, self.ring.slots()) {
            if self.map.get(unit) == Some(slot) {
                let (child, offset) = self.home(unit * u64::from(UNIT));
                let at = packed(u32::from(child) - 1, offset / u64::from(UNIT));
                units.push((at, slot, unit));
            }
        }
        units.sort_unstable();
        let bytes = match self.must_destage() {
            // Necessary destaging does not count for the controlled rate.
            true => 0,
            false => units.len() as u64 * u64::from(UNIT),
        };
        self.cleaner.begins(now, bytes);
        let mut next = 0;
        for (drive, lane) in self.destaging.lanes.iter_mut().enumerate() {
            lane.next = next;
            next += units[next..].partition_point(|&(at, ..)| unpacked(at).0 as usize == drive);
            lane.end = next;
        }
        self.destaging.units = units;
        self.destaging.until = until;
        self.destaging.stage = DestageStage::Moving;
        self.start_runs(now, way);
    }

    /// Starts as many runs as each drive may have in progress, and ends the stage if there are no more.
    pub(super) fn start_runs<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if self.destaging.stage != DestageStage::Moving || self.failed.is_some() {
            return;
        }
        for drive in 0..self.destaging.lanes.len() {
            while self.destaging.lanes[drive].in_flight < self.config.destage.in_flight {
                if !self.start_run(drive, way) {
                    break;
                }
            }
        }
        // The flush must also cover ranges that are trimmed by entries in these segments.
        let until = self.destaging.until;
        let trims = self.zeroing.iter().any(|&it| self.entry_of(it) < until);
        let mut lanes = self.destaging.lanes.iter();
        let moved = lanes.all(|it| it.next == it.end && it.in_flight == 0);
        if moved && !trims {
            self.harden(now, way);
        }
    }

    /// Whether a unit of the round has not been overwritten since the round began.
    fn is_live(&self, slot: u32, unit: u64) -> bool {
        self.map.get(unit) == Some(slot)
    }

    /// Reads the next run for a drive; returns false if there is none, or it must wait.
    fn start_run<W: TierContext>(&mut self, drive: usize, way: &mut W) -> bool {
        let lane = self.destaging.lanes[drive];
        let (mut from, end) = (lane.next, lane.end);
        while from < end {
            let (_, slot, unit) = self.destaging.units[from];
            if self.is_live(slot, unit) {
                break;
            }
            from += 1;
        }
        let most = (self.config.destage.merge / UNIT) as usize;
        let first = self.destaging.units.get(from).map_or(0, |unit| unit.0);
        let mut to = from;
        while to < end.min(from + most) {
            let (at, slot, unit) = self.destaging.units[to];
            if at != first + (to - from) as u64 || !self.is_live(slot, unit) {
                break;
            }
            to += 1;
        }
        let (unit, units) = (unpacked(first).1, (to - from) as u32);
        let offset = unit * u64::from(UNIT);
        let bytes = u64::from(units * UNIT);
        if units > 0
            && (self.is_zeroed(drive, offset, bytes)
                || (self.is_passed(drive, offset, bytes) && !planted::has(Bug::PassesDestaging)))
        {
            return false;
        }
        self.destaging.lanes[drive].next = to;
        if units == 0 {
            return false;
        }
        self.destaging.lanes[drive].in_flight += 1;
        let run = self.destaging.runs.insert(DestageRun {
            drive: drive as u16,
            first: unit,
            units,
            left: 0,
            payload: way.buffers().take(units * UNIT),
        });
        self.destaging.under_way.push(run);
        self.lift(run, from..to, way);
        true
    }

    /// Reads the units of a run; units that are adjacent in the ring are read together.
    fn lift<W: TierContext>(&mut self, run: u32, range: core::ops::Range<usize>, way: &mut W) {
        let mut at = range.start;
        while at < range.end {
            let slot = self.destaging.units[at].1;
            let mut count = 1;
            while at + (count as usize) < range.end
                && self.destaging.units[at + count as usize].1 == slot + count
                && count < self.config.record / UNIT
            {
                count += 1;
            }
            let moving = &mut self.destaging.runs[run];
            moving.left += 1;
            let into = (at - range.start) as u32 * UNIT;
            let command = Command {
                payload: moving.payload.skip(into),
                ..Command::read(0, WriteBack::place(slot), count * UNIT)
            };
            way.send(CACHE, WriteBackPurpose::Lift.token(run), command);
            at += count as usize;
        }
    }

    /// A part of a run has been read; after the last part, the run is written.
    pub(super) fn lifted<W: TierContext>(
        &mut self,
        now: Time,
        run: u32,
        done: &Completion,
        way: &mut W,
    ) {
        let moving = &mut self.destaging.runs[run];
        moving.left -= 1;
        let left = moving.left;
        let DestageRun {
            drive,
            first,
            units,
            payload,
            ..
        } = *moving;
        if done.status != Status::Success {
            self.give_up(now, done.status, way);
        }
        if left > 0 {
            return;
        }
        if self.failed.is_some() {
            self.leave(run, way);
            self.pass_waiting(now, way);
            return self.zero_waiting(now, way);
        }
        self.destaging.touch(drive.into());
        let offset = first * u64::from(UNIT);
        let command = Command {
            payload,
            ..Command::write(0, offset, units * UNIT)
        };
        way.send(drive + 1, WriteBackPurpose::Put.token(run), command);
    }

    /// A run has ended.
    fn leave<W: TierContext>(&mut self, run: u32, way: &mut W) {
        let ended = self.destaging.runs[run];
        way.buffers().release(ended.payload);
        self.destaging.runs.release(run);
        self.destaging.under_way.retain(|&it| it != run);
        self.destaging.lanes[usize::from(ended.drive)].in_flight -= 1;
    }

    /// A run has been written.
    pub(super) fn put<W: TierContext>(
        &mut self,
        now: Time,
        run: u32,
        done: &Completion,
        way: &mut W,
    ) {
        self.leave(run, way);
        if done.status != Status::Success {
            self.give_up(now, done.status, way);
        }
        if !self.zeroing.is_empty() {
            self.zero_waiting(now, way);
        }
        if !self.passing.is_empty() {
            self.pass_waiting(now, way);
        }
        self.start_runs(now, way);
    }

    /// All runs have been written: flushes the drives.
    fn harden<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let mut flushes = 0;
        if self.config.durability == Durability::Flush && !planted::has(Bug::TailBeforeRecords) {
            // Units that were not destaged because newer records replace them must not be lost with these records.
            self.destaging.hardens = self.applied();
            flushes += 1;
            way.send(CACHE, WriteBackPurpose::Harden.token(0), Command::flush(0));
        }
        for drive in 0..self.destaging.lanes.len() {
            let touched = core::mem::take(&mut self.destaging.lanes[drive].touched);
            if touched && !planted::has(Bug::TailBeforeFlush) {
                flushes += 1;
                way.send(
                    drive as u16 + 1,
                    WriteBackPurpose::Harden.token(0),
                    Command::flush(0),
                );
            }
        }
        self.destaging.stage = DestageStage::Hardening(flushes);
        if flushes == 0 {
            self.forget(now, way);
        }
    }

    /// A drive of the capacity tier has been flushed.
    pub(super) fn hardened<W: TierContext>(&mut self, now: Time, done: &Completion, way: &mut W) {
        if done.status != Status::Success {
            self.give_up(now, done.status, way);
        }
        let DestageStage::Hardening(left) = self.destaging.stage else {
            return;
        };
        self.destaging.stage = DestageStage::Hardening(left - 1);
        if left == 1 && self.failed.is_none() {
            self.has_committed(self.destaging.hardens);
            self.forget(now, way);
        }
    }

    /// Unmaps the units that the capacity tier has now, unless they have been overwritten.
    fn forget<W: TierContext>(&mut self, now: Time, way: &mut W) {
        for index in 0..self.destaging.units.len() {
            let (_, slot, unit) = self.destaging.units[index];
            if planted::has(Bug::ForgetsOverwritten)
                && let Some(newest) = self.map.get(unit)
            {
                self.unmap(unit, newest);
            } else if self.is_live(slot, unit) {
                self.unmap(unit, slot);
                self.counts.destaged += u64::from(UNIT);
                if self.config.table > 0 {
                    self.table.change(slot, self.config.table);
                }
            }
        }
        self.destaging.stage = DestageStage::Pinned;
        self.record_tail(now, way);
    }

    /// One command less needs a segment.
    #[inline]
    pub(super) fn unpin<W: TierContext>(&mut self, now: Time, segment: u32, way: &mut W) {
        self.ring.segments[segment as usize].pins -= 1;
        if self.destaging.stage == DestageStage::Pinned {
            self.record_tail(now, way);
        }
    }

    /// Writes the tail, once no command needs the segments.
    fn record_tail<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let pinned = |index: usize| self.ring.segments[index].pins > 0;
        let mut oldest = self.ring.oldest(self.destaging.until);
        let waits = oldest.any(pinned) && !planted::has(Bug::ReusesUnderReads);
        if self.failed.is_some() || waits {
            return;
        }
        self.destaging.stage = DestageStage::Recording;
        if self.config.table > 0 {
            return self.commit_tail(now, way);
        }
        let place = self.destaging.next_superblock();
        let payload = way.buffers().take(UNIT);
        if W::Buffers::REAL {
            let superblock = self.superblock_from(self.destaging.until);
            way.buffers().put(payload, &superblock.encode());
        }
        self.destaging.superblock = payload;
        let command = Command {
            fua: !planted::has(Bug::SuperblockNotThrough),
            payload,
            ..Command::write(0, place, UNIT)
        };
        way.send(CACHE, WriteBackPurpose::Superblock.token(0), command);
        if planted::has(Bug::ReusesBeforeSuperblock) {
            self.ring.free(self.destaging.until);
            self.pump(now, way);
        }
    }

    /// The tail is durable: the segments are free.
    pub(super) fn advanced<W: TierContext>(&mut self, now: Time, done: &Completion, way: &mut W) {
        way.buffers().release(self.destaging.superblock);
        if done.status != Status::Success {
            self.give_up(now, done.status, way);
            return;
        }
        self.tail_is_durable(now, way);
    }

    /// Frees the segments before the new tail.
    pub(super) fn tail_is_durable<W: TierContext>(&mut self, now: Time, way: &mut W) {
        // Computed before there is more space: the pause depends on the previous fill level.
        let pause = self.pause();
        self.ring.free(self.destaging.until);
        let at = match (self.must_destage(), self.config.destage.cleaning) {
            (true, Cleaning::Fill) => now + pause,
            _ => self.next_round(now),
        };
        self.destaging.begin_at(at);
        if at == now {
            self.begin_round(now, way);
        }
        self.pump(now, way);
    }
}
