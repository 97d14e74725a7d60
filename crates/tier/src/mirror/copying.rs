//! Resync: a mirror member that has returned gets the writes that it has missed, from a member in sync, while the
//! mirror is in use.
//!
//! Marked regions are copied in order, one chunk at a time; if it is not known what the member lacks, all used regions
//! are copied. Writes to the chunk wait; other writes, and flushes, also go to the member. At the end, the member is
//! flushed, and then listed as in sync, on the other members first. If no member in sync can read a chunk, or the
//! member cannot write it, the resync ends and the member stays out.

use model::command::{Command, Op, Payload, Status};
use model::data::Buffers;
use model::time::Time;

use super::{COPY, Child, LockedRange, Mirror, MirrorPurpose};
use crate::TierContext;
use crate::planted::{self, Bug};
use crate::rebuild::{RebuildProgress, SyncState, sum_left};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ResyncStep {
    /// Looking for the next chunk.
    Seek,
    /// Earlier writes are still in progress.
    Drain,
    /// The chunk is being read from a mirror member; these other members failed to read it.
    Read(Child, u32),
    Write,
    Flush,
}

#[derive(Clone, Debug)]
pub(super) struct ResyncCopy {
    pub(super) leg: Child,
    at: u64,
    bytes: u32,
    payload: Payload,
    step: ResyncStep,
    /// Bytes copied so far.
    copied: u64,
    /// Whether the resync has ended, except for a command in flight.
    pub(super) stopped: bool,
}

/// Whether the data of a command is all zeroes.
fn is_zero<B: Buffers>(command: &Command, buffers: &B) -> bool {
    const PART: u32 = 4096;
    let mut part = [0; PART as usize];
    B::REAL
        && (0..command.bytes).step_by(PART as usize).all(|at| {
            let part = &mut part[..PART.min(command.bytes - at) as usize];
            buffers.get(command.payload.skip(at), part);
            part.iter().all(|byte| *byte == 0)
        })
}

impl Mirror {
    /// Starts the resync of a returned member, if one is waiting.
    pub(super) fn copy_next<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if self.copying.is_some() || self.returned == 0 {
            return;
        }
        let leg = self.returned.trailing_zeros() as Child;
        self.returned &= !(1 << leg);
        self.copying = Some(ResyncCopy {
            leg,
            at: 0,
            bytes: 0,
            payload: Payload::default(),
            step: ResyncStep::Seek,
            copied: 0,
            stopped: false,
        });
        self.copy_on(now, way);
    }

    /// Ends the resync; the member stays out.
    pub(super) fn stop_copying(&mut self) {
        let Some(copying) = &mut self.copying else {
            return;
        };
        if matches!(
            copying.step,
            ResyncStep::Read(..) | ResyncStep::Write | ResyncStep::Flush
        ) {
            copying.stopped = true;
        } else {
            self.copying = None;
        }
        self.end_extent(COPY);
    }

    /// Continues the resync, if no command of it is in flight.
    pub(super) fn copy_on<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let seeks = |it: &ResyncCopy| it.step == ResyncStep::Seek;
        if self.copying.as_ref().is_some_and(seeks) && self.pace.next() > now {
            return;
        }
        let Some(mut copying) = self.copying.take() else {
            return;
        };
        if copying.step == ResyncStep::Seek {
            self.seek(&mut copying, way);
            if copying.step == ResyncStep::Drain {
                self.pace.start(now, copying.bytes.into());
            }
        }
        if copying.step == ResyncStep::Drain {
            let end = copying.at + u64::from(copying.bytes);
            let mut others = self.extents.iter().filter(|it| it.request != COPY);
            let over = planted::has(Bug::CopiesOverWrites);
            if over || !others.any(|it| it.at < end && copying.at < it.end) {
                copying.payload = way.buffers().take(copying.bytes);
                self.read_chunk(copying, 0, way);
                return;
            }
        }
        self.copying = Some(copying);
    }

    /// Returns when the next chunk may start, if the resync waits for that.
    pub(super) fn copy_due(&self) -> Time {
        match &self.copying {
            Some(copying) if copying.step == ResyncStep::Seek => self.pace.next(),
            _ => Time::NEVER,
        }
    }

    /// Takes the next marked chunk and locks it for writes; or ends the resync.
    fn seek<W: TierContext>(&mut self, copying: &mut ResyncCopy, way: &mut W) {
        let mut from = copying.at + u64::from(copying.bytes);
        if planted::has(Bug::CopiesFirstChunks) {
            from = from.next_multiple_of(self.labels.region);
        }
        if from > 0 && planted::has(Bug::CopiesOneRegion) {
            from = self.bytes;
        }
        let next = match self.whole & (1 << copying.leg) {
            0 => self.next_marked(from),
            _ => self.next_used(from),
        };
        match next.filter(|&(at, _)| at < self.bytes) {
            Some((at, border)) => {
                let end = (at + self.copied).min(border).min(self.bytes);
                (copying.at, copying.bytes) = (at, (end - at) as u32);
                copying.step = ResyncStep::Drain;
                if !planted::has(Bug::CopiesOverWrites) {
                    self.extents.push(LockedRange {
                        at,
                        end,
                        request: COPY,
                    });
                }
            }
            None => {
                copying.step = ResyncStep::Flush;
                let mut leg = copying.leg;
                if planted::has(Bug::JoinsUnflushed) {
                    leg = (leg + 1) % self.legs_count();
                }
                self.send(leg, MirrorPurpose::Copy, &Command::flush(0), way);
            }
        }
    }

    /// Returns the next part at or after an address that is marked and used: its first byte and end.
    fn next_marked(&self, mut from: u64) -> Option<(u64, u64)> {
        let region = self.labels.region;
        loop {
            let index = self.labels.known.dirty.next((from / region) as usize)?;
            let border = (index as u64 + 1) * region;
            // Within a marked region it continues there; otherwise the next one begins.
            let (at, end) = self.next_used(from.max(index as u64 * region))?;
            if at < border {
                return Some((at, end.min(border)));
            }
            from = at;
        }
    }

    /// Returns the next used part at or after an address: its first byte and end.
    fn next_used(&self, from: u64) -> Option<(u64, u64)> {
        let rest = self.used.iter().filter_map(|it| {
            let end = it.offset + it.bytes;
            (end > from).then_some((it.offset.max(from), end))
        });
        rest.min()
    }

    /// Schedules a resync of a member for when the mirror runs; of everything, or of marked regions.
    pub(super) fn copy_later(&mut self, leg: Child, whole: bool) {
        self.returned |= 1 << leg;
        if whole {
            self.whole |= 1 << leg;
        }
        self.rest_at = Time::ZERO;
    }

    /// Returns the member being resynced, and the completed share of the used addresses, in percent.
    pub fn progress(&self) -> Option<(Child, u64)> {
        let copying = self.copying.as_ref()?;
        let ends = self.used.iter().map(|it| it.offset + it.bytes);
        let end = ends.max().unwrap_or(0).max(1);
        Some((copying.leg, (copying.at * 100 / end).min(100)))
    }

    /// Returns the progress of the resync in bytes.
    pub fn rebuild(&self) -> Option<RebuildProgress> {
        let copying = self.copying.as_ref()?;
        Some(RebuildProgress {
            child: copying.leg,
            copied: copying.copied,
        })
    }

    /// Returns the resync of this member, if it is running.
    fn resync_of(&self, leg: Child) -> Option<&ResyncCopy> {
        let copying = self.copying.as_ref();
        copying.filter(|it| it.leg == leg && !it.stopped)
    }

    /// Returns the state of a member.
    pub fn sync_state(&self, leg: Child) -> SyncState {
        match (self.resync_of(leg), self.returned >> leg & 1) {
            (Some(_), _) => SyncState::Rebuilding,
            (None, 1) => SyncState::Waiting,
            _ => self.labels.sync_state(leg),
        }
    }

    pub(crate) fn pause_rebuilds(&mut self) {
        self.pace.pause();
    }

    /// Returns the bytes that resyncs have written to a member.
    pub fn rebuilt_bytes(&self, leg: Child) -> u64 {
        self.pace.written(leg)
    }

    /// Returns the bytes that the resync of a member still has to copy, or will have to if it waits.
    pub fn rebuild_left(&self, leg: Child) -> u64 {
        let from = self.resync_of(leg).map_or(0, |it| match it.step {
            ResyncStep::Seek | ResyncStep::Flush => it.at + u64::from(it.bytes),
            _ => it.at,
        });
        sum_left(from, |from| {
            let (at, end) = match self.whole & (1 << leg) {
                0 => self.next_marked(from),
                _ => self.next_used(from),
            }?;
            (at < self.bytes).then_some((at, end.min(self.bytes)))
        })
    }

    /// Returns the number of mirror members.
    pub fn legs_count(&self) -> Child {
        self.copies.places() as Child
    }

    /// Returns the members that have all acknowledged data, one bit each.
    #[inline]
    pub fn in_sync(&self) -> u32 {
        self.labels.complete()
    }

    /// Whether writes fail because no member in sync can record which members have missed writes.
    pub fn rejects_writes(&self) -> bool {
        self.labels.nowhere
    }

    /// Whether a member lacks data that others have.
    pub fn is_stale(&self, leg: Child) -> bool {
        self.labels.readable() & (1 << leg) == 0
    }

    /// Reads a chunk from a member in sync that has not been tried; if there is none, ends the resync.
    fn read_chunk<W: TierContext>(&mut self, mut copying: ResyncCopy, tried: u32, way: &mut W) {
        let legs = self.labels.readable() & !tried;
        if legs == 0 {
            way.buffers().release(copying.payload);
            self.end_extent(COPY);
            return;
        }
        let from = legs.trailing_zeros() as Child;
        copying.step = ResyncStep::Read(from, tried);
        let read = Command {
            payload: copying.payload,
            ..Command::new(0, Op::Read, copying.at, copying.bytes)
        };
        self.copying = Some(copying);
        self.send(from, MirrorPurpose::Copy, &read, way);
    }

    /// A command of the resync has completed.
    pub(super) fn copied<W: TierContext>(&mut self, now: Time, status: Status, way: &mut W) {
        let Some(mut copying) = self.copying.take() else {
            return;
        };
        let holds = matches!(copying.step, ResyncStep::Read(..) | ResyncStep::Write);
        if copying.stopped {
            if holds {
                way.buffers().release(copying.payload);
            }
            self.copy_next(now, way);
            self.send_waiting(now, way);
            return;
        }
        let well = status == Status::Success;
        match copying.step {
            ResyncStep::Read(from, _) if well => {
                self.read_errors.reset(from);
                copying.step = ResyncStep::Write;
                let mut write = Command {
                    payload: copying.payload,
                    ..Command::new(0, Op::Write, copying.at, copying.bytes)
                };
                if self.whole & (1 << copying.leg) != 0 && is_zero(&write, way.buffers()) {
                    // So that data that was never written takes no space.
                    write.op = Op::WriteZeroes;
                }
                let leg = copying.leg;
                self.copying = Some(copying);
                self.send(leg, MirrorPurpose::Copy, &write, way);
            }
            ResyncStep::Read(from, tried) => {
                let is_out = status == Status::Gone || self.read_errors.add(from);
                if is_out && self.labels.leave(from) {
                    self.pump(way);
                }
                self.read_chunk(copying, tried | 1 << from, way);
                if self.copying.is_none() {
                    self.send_waiting(now, way);
                }
            }
            ResyncStep::Write => {
                way.buffers().release(copying.payload);
                self.end_extent(COPY);
                copying.step = ResyncStep::Seek;
                if well {
                    copying.copied += u64::from(copying.bytes);
                    self.pace.add(copying.leg, copying.bytes.into());
                }
                self.copying = well.then_some(copying);
                self.send_waiting(now, way);
            }
            _ => {
                if well {
                    self.labels.join(copying.leg);
                    self.whole &= !(1 << copying.leg);
                    // The copy includes the ranges of these requests and was flushed afterwards.
                    for &request in self.flushing.iter().chain(&self.unacknowledged) {
                        self.requests[request].done |= 1 << copying.leg;
                        self.requests[request].failed &= !(1 << copying.leg);
                    }
                    self.rest_at = now + super::REST;
                    self.pump(way);
                }
                self.copy_next(now, way);
            }
        }
    }
}
