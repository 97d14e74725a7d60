//! Label state of a running mirror: its knowledge about its members, the part of it that is in their labels, and the
//! label that is being written.
//!
//! Only one label at a time is in flight, to all members that are to count as in sync and that the labels list as such.
//! Changes in the meantime are written with the next label. A member that returns is therefore listed on the other
//! members first.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use model::command::{Command, Op, Payload, Status};
use model::data::Buffers;

use super::bits::Bits;
use super::label::{self, LabelState, MemberLabel};
use super::rebuild::SyncState;

#[derive(Clone, Debug)]
pub(super) struct Labels {
    /// Identifier of the pool.
    pub(super) pool: u128,
    /// Bytes per region.
    pub(super) region: u64,
    /// Current state.
    pub(super) known: LabelState,
    /// State in the labels of all members that are in sync; excluding bits that a label in flight clears.
    pub(super) written: LabelState,
    /// State in the label in flight.
    pub(super) on_its_way: LabelState,
    sequence: u64,
    /// Writes of the label in flight that have not completed, the members that it was sent to, and those that failed.
    left: u32,
    to: u32,
    failed: u32,
    /// Status of the last write that failed.
    status: Status,
    payloads: Vec<Payload>,
    /// Whether there is a change to write.
    pub(super) changed: bool,
    legs: u16,
    /// Number of members that must remain: one for a mirror, the number of data columns for an array with parity.
    pub(super) needed: u32,
    /// Whether the last label is on fewer members than are needed: no write is acknowledged.
    pub(super) nowhere: bool,
}

/// Result of writing a label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LabelWrite {
    /// Members on which the label could not be written.
    pub(super) failed: u32,
    /// Error status, if the label is on fewer members than are needed.
    pub(super) nowhere: Option<Status>,
}

/// Returns the bytes per region for a mirror of `bytes` bytes, so that the bits fit into a label.
pub(super) fn region_bytes(asked: u64, bytes: u64) -> u64 {
    let least = bytes.div_ceil(label::REGIONS).next_power_of_two();
    asked.max(least)
}

/// Returns the bit mask of `legs` members.
pub(super) fn all(legs: usize) -> u32 {
    (((1_u64) << legs) - 1) as u32
}

impl Labels {
    /// Returns the number of members.
    pub(super) fn count(&self) -> usize {
        usize::from(self.legs)
    }

    /// Returns all members.
    pub(super) fn legs(&self) -> impl Iterator<Item = u16> + use<> {
        0..self.legs
    }

    /// Creates the labels of a new mirror, whose members are identical.
    pub(super) fn new(legs: usize, bytes: u64, region: u64) -> Labels {
        let regions = bytes.div_ceil(region) as usize;
        let state = LabelState {
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
            status: Status::Success,
            payloads: vec![Payload::default(); legs],
            changed: false,
            legs: legs as u16,
            needed: 1,
            nowhere: false,
        }
    }

    /// Continues with the state of the last label that was written.
    pub(super) fn resume(&mut self, pool: u128, sequence: u64, state: &LabelState) {
        self.pool = pool;
        self.sequence = sequence;
        for own in [&mut self.known, &mut self.written, &mut self.on_its_way] {
            own.copy(state);
        }
    }

    /// Makes the known state that of the next label, as if it were written already; the caller writes the label
    /// offline.
    pub(super) fn say(&mut self) {
        let state = self.known.clone();
        self.resume(self.pool, self.sequence + 1, &state);
        self.changed = false;
    }

    /// The label could not be written to all members in sync: `before` is still the written state. The next label of an
    /// array has the same sequence, so that no member in sync is more than one label behind. That of a mirror has the
    /// next one, because a mirror continues with one member.
    pub(super) fn take_back(&mut self, before: LabelState) {
        self.written = before;
        self.changed = true;
        self.reuse_sequence();
    }

    /// Makes the next label have the sequence of the last, unless one member is enough.
    fn reuse_sequence(&mut self) {
        if self.needed > 1 {
            self.sequence -= 1;
            // Marks were cleared for the label after the last.
            self.known.cleared = self.known.cleared.min(self.sequence + 1);
        }
    }

    /// Returns the index of the label copy that was written last.
    pub(super) fn place(&self) -> u64 {
        self.sequence % 2
    }

    pub(super) fn regions(&self, at: u64, bytes: u64) -> Range<usize> {
        (at / self.region) as usize..(at + bytes).div_ceil(self.region) as usize
    }

    /// Marks a range that will be written. Returns whether the labels already contain the marks, so that the write may
    /// proceed.
    #[inline]
    pub(super) fn mark(&mut self, at: u64, bytes: u64) -> bool {
        let regions = self.regions(at, bytes);
        self.changed |= self.known.dirty.set(regions.clone());
        self.written.dirty.has(regions)
    }

    /// Like [`Labels::mark`], for an array with parity: labels also state that writes are in progress.
    #[inline]
    pub(super) fn mark_busy(&mut self, at: u64, bytes: u64) -> bool {
        let marked = self.mark(at, bytes);
        self.changed |= !self.known.busy;
        self.known.busy = true;
        marked && self.written.busy
    }

    /// No write is in progress, and all writes are durable; the next label states that. Marks are cleared unless a
    /// member is out.
    pub(super) fn at_rest(&mut self) {
        if self.is_whole() {
            self.clean();
        }
        self.known.busy = false;
        self.changed = true;
    }

    /// Returns the members that can be read: in sync, and listed as such in the labels.
    #[inline]
    pub(super) fn readable(&self) -> u32 {
        self.known.in_sync & self.written.in_sync
    }

    /// Returns the members that have all acknowledged data: a write that others have missed is acknowledged only when
    /// the labels list the others as out.
    #[inline]
    pub(super) fn complete(&self) -> u32 {
        self.written.in_sync
    }

    /// Returns the members that must complete a write before it is acknowledged, because a current or future label
    /// lists them as complete.
    #[inline]
    pub(super) fn required(&self) -> u32 {
        match self.left {
            0 => self.written.in_sync,
            _ => self.written.in_sync | self.on_its_way.in_sync,
        }
    }

    /// Returns the state of a member that is not being rebuilt.
    pub(super) fn sync_state(&self, leg: u16) -> SyncState {
        let has = |mask: u32| mask >> leg & 1 == 1;
        match (has(self.known.in_sync), has(self.written.in_sync)) {
            (true, true) => SyncState::InSync,
            (true, false) => SyncState::Joining,
            (false, _) => SyncState::Out,
        }
    }

    /// Marks a member as out, because it has missed a write. Returns false if too few members remain.
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

    /// Marks a member as in sync.
    pub(super) fn join(&mut self, leg: u16) {
        self.known.in_sync |= 1 << leg;
        self.known.epoch += 1;
        self.changed = true;
    }

    /// Clears all marks with the next label.
    pub(super) fn clean(&mut self) {
        self.known.dirty.clear();
        self.known.cleared = self.sequence + 1;
        self.changed = true;
    }

    /// Whether all members are in sync, and all labels say so.
    pub(super) fn is_whole(&self) -> bool {
        self.readable() == all(usize::from(self.legs))
    }

    /// Sends the next label if there is a change and none is in flight; `labels_at` is the offset of the labels.
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
        // A bit that is being cleared no longer counts.
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

    pub(super) fn label(&self, leg: u16, state: &LabelState) -> MemberLabel {
        MemberLabel {
            pool: self.pool,
            leg,
            legs: self.legs,
            sequence: self.sequence,
            region: self.region,
            state: state.clone(),
        }
    }

    /// A member has completed the write of the label, or failed. With the last member, returns the result.
    pub(super) fn done<B: Buffers>(
        &mut self,
        leg: u16,
        status: Status,
        buffers: &mut B,
    ) -> Option<LabelWrite> {
        buffers.release(self.payloads[usize::from(leg)]);
        if status != Status::Success {
            self.failed |= 1 << leg;
            self.status = status;
        }
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        let took = self.to & !self.failed;
        // A member of an array that has missed a write meanwhile does not count.
        let remain = took & self.known.in_sync;
        self.nowhere = took == 0 || (self.needed > 1 && remain.count_ones() < self.needed);
        if self.nowhere {
            self.changed = true;
            self.reuse_sequence();
            let status = match self.failed {
                0 => Status::WriteFault,
                _ => self.status,
            };
            return Some(LabelWrite {
                failed: 0,
                nowhere: Some(status),
            });
        }
        // A member that is listed on the others must receive the label itself.
        self.changed |= self.on_its_way.in_sync & !self.to != 0;
        self.written.copy(&self.on_its_way);
        Some(LabelWrite {
            failed: self.failed,
            nowhere: None,
        })
    }

    /// Power cut: the label in flight may or may not have been written; both are valid.
    pub(super) fn forget(&mut self) {
        self.left = 0;
        (self.changed, self.nowhere) = (false, false);
        self.known.copy(&self.written);
        (self.known.busy, self.written.busy) = (false, false);
        if self.is_whole() {
            self.known.dirty.clear();
            self.written.dirty.clear();
        }
    }
}
