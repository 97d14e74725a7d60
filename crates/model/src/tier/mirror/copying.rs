//! A leg that has come back gets what it has missed, from a leg in sync, while the mirror is in use.
//!
//! What is marked is copied in order, or everything that is used where nobody knows what it lacks, a chunk at a time: writes to the chunk wait, writes elsewhere go to the leg as well,
//! and so do flushes. At the end the leg is flushed, and then entered as in sync, on the others first. A chunk that no leg
//! in sync can read, or that the leg does not take, ends it: the leg stays out.

use super::{COPY, Child, Extent, For, Mirror};
use crate::command::{Command, Op, Payload, Status};
use crate::data::Buffers;
use crate::tier::Way;
use crate::tier::planted::{self, Bug};
use crate::time::Time;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Looking for the next chunk.
    Seek,
    /// Writes that began before are still inside.
    Drain,
    /// It is being read from a leg; from these legs it could not be.
    Read(Child, u32),
    Write,
    Flush,
}

#[derive(Clone, Debug)]
pub(super) struct Copying {
    pub(super) leg: Child,
    at: u64,
    bytes: u32,
    payload: Payload,
    step: Step,
    /// It is over, but for a command that is still inside.
    pub(super) stopped: bool,
}

/// Whether the data of a command are zeroes.
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
    /// Begins to copy to a leg that has returned, if one waits for it.
    pub(super) fn copy_next<W: Way>(&mut self, now: Time, way: &mut W) {
        if self.copying.is_some() || self.returned == 0 {
            return;
        }
        let leg = self.returned.trailing_zeros() as Child;
        self.returned &= !(1 << leg);
        self.copying = Some(Copying {
            leg,
            at: 0,
            bytes: 0,
            payload: Payload::default(),
            step: Step::Seek,
            stopped: false,
        });
        self.copy_on(now, way);
    }

    /// The leg stays out.
    pub(super) fn stop_copying(&mut self) {
        let Some(copying) = &mut self.copying else {
            return;
        };
        if matches!(copying.step, Step::Read(..) | Step::Write | Step::Flush) {
            copying.stopped = true;
        } else {
            self.copying = None;
        }
        self.end_extent(COPY);
    }

    /// Goes on where nothing is awaited from below.
    pub(super) fn copy_on<W: Way>(&mut self, _now: Time, way: &mut W) {
        let Some(mut copying) = self.copying.take() else {
            return;
        };
        if copying.step == Step::Seek {
            self.seek(&mut copying, way);
        }
        if copying.step == Step::Drain {
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

    /// The next chunk of what is marked, which is taken so that no write goes there; or the end.
    fn seek<W: Way>(&mut self, copying: &mut Copying, way: &mut W) {
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
                copying.step = Step::Drain;
                if !planted::has(Bug::CopiesOverWrites) {
                    self.extents.push(Extent {
                        at,
                        end,
                        request: COPY,
                    });
                }
            }
            None => {
                copying.step = Step::Flush;
                self.send(copying.leg, For::Copy, &Command::flush(0), way);
            }
        }
    }

    /// The next part of a marked region that is used, from an address on: where it begins and ends.
    fn next_marked(&self, mut from: u64) -> Option<(u64, u64)> {
        let region = self.labels.region;
        loop {
            let index = self.labels.known.dirty.next((from / region) as usize)?;
            let border = (index as u64 + 1) * region;
            // Within a marked region it goes on where it is; else the next begins.
            let (at, end) = self.next_used(from.max(index as u64 * region))?;
            if at < border {
                return Some((at, end.min(border)));
            }
            from = at;
        }
    }

    /// The next part of what is used, from an address on: where it begins and ends.
    fn next_used(&self, from: u64) -> Option<(u64, u64)> {
        let rest = self.used.iter().filter_map(|it| {
            let end = it.offset + it.bytes;
            (end > from).then_some((it.offset.max(from), end))
        });
        rest.min()
    }

    /// A leg is copied to as soon as the mirror runs; it gets everything, or what is marked.
    pub(super) fn copy_later(&mut self, leg: Child, whole: bool) {
        self.returned |= 1 << leg;
        if whole {
            self.whole |= 1 << leg;
        }
        self.rest_at = Time::ZERO;
    }

    /// The leg that is being copied to, and how much of the addresses in use is done, in percent.
    pub fn progress(&self) -> Option<(Child, u64)> {
        let copying = self.copying.as_ref()?;
        let ends = self.used.iter().map(|it| it.offset + it.bytes);
        let end = ends.max().unwrap_or(0).max(1);
        Some((copying.leg, (copying.at * 100 / end).min(100)))
    }

    /// How many legs there are.
    pub fn legs_count(&self) -> Child {
        self.copies.places() as Child
    }

    /// Whether a leg lacks something that others have.
    pub fn is_stale(&self, leg: Child) -> bool {
        self.labels.readable() & (1 << leg) == 0
    }

    /// Reads a chunk from a leg in sync that has not been tried; if there is none, it is over.
    fn read_chunk<W: Way>(&mut self, mut copying: Copying, tried: u32, way: &mut W) {
        let legs = self.labels.readable() & !tried;
        if legs == 0 {
            way.buffers().give_back(copying.payload);
            self.end_extent(COPY);
            return;
        }
        let from = legs.trailing_zeros() as Child;
        copying.step = Step::Read(from, tried);
        let read = Command {
            payload: copying.payload,
            ..Command::new(0, Op::Read, copying.at, copying.bytes)
        };
        self.copying = Some(copying);
        self.send(from, For::Copy, &read, way);
    }

    /// A command for the copy has completed.
    pub(super) fn copied<W: Way>(&mut self, now: Time, status: Status, way: &mut W) {
        let Some(mut copying) = self.copying.take() else {
            return;
        };
        let holds = matches!(copying.step, Step::Read(..) | Step::Write);
        if copying.stopped {
            if holds {
                way.buffers().give_back(copying.payload);
            }
            self.copy_next(now, way);
            self.send_waiting(now, way);
            return;
        }
        let well = status == Status::Success;
        match copying.step {
            Step::Read(..) if well => {
                copying.step = Step::Write;
                let mut write = Command {
                    payload: copying.payload,
                    ..Command::new(0, Op::Write, copying.at, copying.bytes)
                };
                if self.whole & (1 << copying.leg) != 0 && is_zero(&write, way.buffers()) {
                    // So that what was never written takes no room.
                    write.op = Op::WriteZeroes;
                }
                let leg = copying.leg;
                self.copying = Some(copying);
                self.send(leg, For::Copy, &write, way);
            }
            Step::Read(from, tried) => {
                if status == Status::Gone && self.labels.leave(from) {
                    self.pump(way);
                }
                self.read_chunk(copying, tried | 1 << from, way);
                if self.copying.is_none() {
                    self.send_waiting(now, way);
                }
            }
            Step::Write => {
                way.buffers().give_back(copying.payload);
                self.end_extent(COPY);
                copying.step = Step::Seek;
                self.copying = well.then_some(copying);
                self.send_waiting(now, way);
            }
            _ => {
                if well {
                    self.labels.join(copying.leg);
                    self.whole &= !(1 << copying.leg);
                    // What these are about was copied, and flushed behind it.
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
