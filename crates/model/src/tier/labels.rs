//! What a running mirror knows of its legs, what of that their labels say, and the label that is being written.
//!
//! One label at a time is on its way, to all legs that are to count as in sync and that the labels say are: what becomes
//! known meanwhile goes out with the next. So a leg that comes back is entered on the others first.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::bits::Bits;
use super::label::{self, Label, State};
use crate::command::{Command, Op, Payload, Status};
use crate::data::Buffers;

#[derive(Clone, Debug)]
pub(super) struct Labels {
    /// The pool's own number.
    pub(super) pool: u128,
    /// Bytes of a region.
    pub(super) region: u64,
    /// As it is.
    pub(super) known: State,
    /// As it stands on all legs that are in sync; of its bits those that no label on its way clears.
    pub(super) written: State,
    /// As the label says that is on its way.
    pub(super) on_its_way: State,
    sequence: u64,
    /// Writes of it that have not completed, and the legs that it went to, and that failed.
    left: u32,
    to: u32,
    failed: u32,
    payloads: Vec<Payload>,
    /// There is something to write.
    pub(super) changed: bool,
    legs: u16,
    /// So many legs must remain: one of a mirror, those of the data of an array with parity.
    pub(super) needed: u32,
}

/// How a label fared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Written {
    /// The legs on which it could not be written.
    pub(super) failed: u32,
    /// Why, if it is on none.
    pub(super) nowhere: Option<Status>,
}

/// Bytes of a region of a mirror of so many: so that the bits fit into a label.
pub(super) fn region_bytes(asked: u64, bytes: u64) -> u64 {
    let least = bytes.div_ceil(label::REGIONS).next_power_of_two();
    asked.max(least)
}

/// All of so many legs.
pub(super) fn all(legs: usize) -> u32 {
    (((1_u64) << legs) - 1) as u32
}

impl Labels {
    /// How many legs there are.
    pub(super) fn count(&self) -> usize {
        usize::from(self.legs)
    }

    /// All of them.
    pub(super) fn legs(&self) -> impl Iterator<Item = u16> + use<> {
        0..self.legs
    }

    /// Of a mirror that is new: all legs alike.
    pub(super) fn new(legs: usize, bytes: u64, region: u64) -> Labels {
        let regions = bytes.div_ceil(region) as usize;
        let state = State {
            in_sync: all(legs),
            epoch: 1,
            cleared: 0,
            opening: 0,
            busy: false,
            dirty: Bits::new(regions),
        };
        Labels {
            pool: 0,
            region,
            known: state.clone(),
            written: state.clone(),
            on_its_way: state,
            sequence: 0,
            left: 0,
            to: 0,
            failed: 0,
            payloads: vec![Payload::default(); legs],
            changed: false,
            legs: legs as u16,
            needed: 1,
        }
    }

    /// As the last label says that has been written.
    pub(super) fn resume(&mut self, pool: u128, sequence: u64, state: &State) {
        self.pool = pool;
        self.sequence = sequence;
        for own in [&mut self.known, &mut self.written, &mut self.on_its_way] {
            own.copy(state);
        }
    }

    /// What is known is what the next label says, which is written while nothing runs.
    pub(super) fn say(&mut self) {
        let state = self.known.clone();
        self.resume(self.pool, self.sequence + 1, &state);
        self.changed = false;
    }

    /// Which of the two places on a leg the last label has.
    pub(super) fn place(&self) -> u64 {
        self.sequence % 2
    }

    pub(super) fn regions(&self, at: u64, bytes: u64) -> Range<usize> {
        (at / self.region) as usize..(at + bytes).div_ceil(self.region) as usize
    }

    /// A range is going to be written: whether the labels say so already, so that it may.
    #[inline]
    pub(super) fn mark(&mut self, at: u64, bytes: u64) -> bool {
        let regions = self.regions(at, bytes);
        self.changed |= self.known.dirty.set(regions.clone());
        self.written.dirty.has(regions)
    }

    /// The same for an array with parity: labels also say that writes are under way.
    #[inline]
    pub(super) fn mark_busy(&mut self, at: u64, bytes: u64) -> bool {
        let marked = self.mark(at, bytes);
        self.changed |= !self.known.busy;
        self.known.busy = true;
        marked && self.written.busy
    }

    /// No write is under way, and all that was written is durable, as the next label says. Marks go where no leg is out.
    pub(super) fn at_rest(&mut self) {
        if self.is_whole() {
            self.clean();
        }
        self.known.busy = false;
        self.changed = true;
    }

    /// Legs that reads go to: in sync, and the labels say so.
    #[inline]
    pub(super) fn readable(&self) -> u32 {
        self.known.in_sync & self.written.in_sync
    }

    /// Legs that must have a write before it is acknowledged, because some label says or is about to say that they have
    /// everything.
    #[inline]
    pub(super) fn required(&self) -> u32 {
        match self.left {
            0 => self.written.in_sync,
            _ => self.written.in_sync | self.on_its_way.in_sync,
        }
    }

    /// A leg has missed something. False if the others are too few.
    pub(super) fn leave(&mut self, leg: u16) -> bool {
        let bit = 1 << leg;
        if (self.readable() & !bit).count_ones() < self.needed {
            return false;
        }
        if self.known.in_sync & bit != 0 {
            self.known.in_sync &= !bit;
            self.known.epoch += 1;
            self.changed = true;
        }
        true
    }

    /// A leg has all that the others have.
    pub(super) fn join(&mut self, leg: u16) {
        self.known.in_sync |= 1 << leg;
        self.known.epoch += 1;
        self.changed = true;
    }

    /// No region differs any more, as the next label says.
    pub(super) fn clean(&mut self) {
        self.known.dirty.clear();
        self.known.cleared = self.sequence + 1;
        self.changed = true;
    }

    /// Whether all legs are in sync, and all labels say so.
    pub(super) fn is_whole(&self) -> bool {
        self.readable() == all(usize::from(self.legs))
    }

    /// Sends the next label if there is something to say and none is on its way; `labels_at` is where they begin.
    pub(super) fn pump<B: Buffers>(
        &mut self,
        labels_at: u64,
        buffers: &mut B,
        send: &mut Vec<(u16, Command)>,
    ) {
        if self.left > 0 || !self.changed {
            return;
        }
        self.changed = false;
        self.on_its_way.copy(&self.known);
        // A bit that is being cleared counts no more.
        self.written.dirty.keep(&self.known.dirty);
        self.written.busy &= self.known.busy;
        self.sequence += 1;
        (self.to, self.failed) = (self.readable(), 0);
        for leg in (0..self.legs).filter(|leg| self.to & (1 << leg) != 0) {
            let payload = buffers.take(label::BYTES as u32);
            if B::REAL {
                let mut bytes = [0; label::BYTES];
                self.label(leg, &self.on_its_way).encode(&mut bytes);
                buffers.put(payload, &bytes);
            }
            self.payloads[usize::from(leg)] = payload;
            self.left += 1;
            let at = labels_at + self.sequence % 2 * label::BYTES as u64;
            let command = Command {
                fua: true,
                payload,
                ..Command::new(0, Op::Write, at, label::BYTES as u32)
            };
            send.push((leg, command));
        }
    }

    pub(super) fn label(&self, leg: u16, state: &State) -> Label {
        Label {
            pool: self.pool,
            leg,
            legs: self.legs,
            sequence: self.sequence,
            region: self.region,
            state: state.clone(),
        }
    }

    /// The label has been written on a leg, or not. With the last of them: how it fared.
    pub(super) fn done<B: Buffers>(
        &mut self,
        leg: u16,
        status: Status,
        buffers: &mut B,
    ) -> Option<Written> {
        buffers.give_back(self.payloads[usize::from(leg)]);
        if status != Status::Success {
            self.failed |= 1 << leg;
        }
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        if self.failed == self.to {
            self.changed = true;
            return Some(Written {
                failed: 0,
                nowhere: Some(status),
            });
        }
        // A leg that is entered on the others has yet to hear of it itself.
        self.changed |= self.on_its_way.in_sync & !self.to != 0;
        self.written.copy(&self.on_its_way);
        Some(Written {
            failed: self.failed,
            nowhere: None,
        })
    }

    /// Power went: what was on its way may or may not have been written; either is right.
    pub(super) fn forget(&mut self) {
        self.left = 0;
        self.changed = false;
        self.known.copy(&self.written);
        (self.known.busy, self.written.busy) = (false, false);
        if self.is_whole() {
            self.known.dirty.clear();
            self.written.dirty.clear();
        }
    }
}
