//! Commands of I/O queues: checks them, submits them to the drive, and executes them when the drive completes them.
//!
//! Data is transferred at completion. Compare is a read whose data is not sent. Verify is a read that transfers
//! nothing. For a fused compare and write, the comparison is repeated when the write completes, so that no other
//! command can come between. Not supported: streams and other directives, end-to-end storage tags, the zoned and
//! key-value command sets. Source: NVM Express Base Specification 1.4, chapter 6.

use model::Op;

use super::facts::status_of;
pub use super::opcode::io as opcode;
use super::plan::{ALL, plan, range, ranges};
use super::queue::QueuePair;
use super::slots::{CommandStage, Purpose};
use super::target::NvmeTarget;
use super::wire::{Sqe, Status};
use crate::outbox::Outbox;
use crate::port::Port;
use crate::served::{IoRequest, Outcome, Reply};

/// Dword 12: force unit access.
const FUA: u32 = 1 << 30;
/// Dword 11 of Dataset Management: deallocate.
const DEALLOCATE: u32 = 1 << 2;
/// Maximum bytes that one command to the drive deallocates.
const DEALLOCATED_AT_ONCE: u64 = 1 << 30;

/// State of the I/O commands of a queue, in addition to their slots.
#[derive(Debug, Default)]
pub(super) struct Io {
    /// The first of two fused commands, whose second must follow immediately.
    fused: Option<u16>,
    /// Buffer for data that is checked here.
    pub(super) page: Vec<u8>,
    /// Metadata of the blocks that are being transferred.
    pub(super) metadata: Vec<u8>,
    /// Whether a namespace has metadata.
    pub(super) with_metadata: bool,
}

impl Io {
    /// Checks an I/O command before its data is requested.
    pub(super) fn prepare(
        &mut self,
        queue: &mut QueuePair,
        slot: u16,
        out: &mut Outbox,
    ) -> Result<(), Status> {
        let sqe = queue.slots[slot].sqe;
        let plan = plan(&mut queue.shared.borrow_mut(), queue.controller, &sqe);
        if self.fused.is_some() || sqe.fused() != 0 {
            self.pair(queue, slot, plan.is_ok(), out)?;
        }
        let plan = plan?;
        let it = &mut queue.slots[slot];
        it.purpose = plan.purpose;
        it.drive = plan.drive;
        it.offset = plan.offset;
        it.bytes = plan.bytes;
        if sqe.fused() == Sqe::FUSED_FIRST {
            it.purpose = Purpose::CompareAndWrite;
        }
        Ok(())
    }

    /// Checks that fused commands come in pairs.
    fn pair(
        &mut self,
        queue: &mut QueuePair,
        slot: u16,
        possible: bool,
        out: &mut Outbox,
    ) -> Result<(), Status> {
        let first = self.fused.take();
        let sqe = queue.slots[slot].sqe;
        if sqe.fused() != Sqe::FUSED_SECOND
            && let Some(first) = first
        {
            self.give_up(queue, first, Status::ABORTED_MISSING_FUSED, out);
        }
        match (sqe.fused(), first) {
            (0, _) => Ok(()),
            (Sqe::FUSED_FIRST, _) if sqe.opcode == opcode::COMPARE => {
                self.fused = possible.then_some(slot);
                Ok(())
            }
            (Sqe::FUSED_SECOND, None) => Err(Status::ABORTED_MISSING_FUSED),
            (Sqe::FUSED_SECOND, Some(first)) => {
                let other = &queue.slots[first].sqe;
                let same = other.nsid == sqe.nsid
                    && other.slba() == sqe.slba()
                    && other.cdw12.get() & 0xffff == sqe.cdw12.get() & 0xffff;
                if !possible || !same || sqe.opcode != opcode::WRITE {
                    self.give_up(queue, first, Status::ABORTED_FAILED_FUSED, out);
                    return if possible {
                        Err(Status::INVALID_FIELD)
                    } else {
                        Ok(())
                    };
                }
                queue.slots[first].partner = Some(slot);
                queue.slots[slot].partner = Some(first);
                Ok(())
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Fails a waiting command, or marks it to fail when its data has arrived.
    fn give_up(&mut self, queue: &mut QueuePair, slot: u16, status: Status, out: &mut Outbox) {
        let it = &mut queue.slots[slot];
        it.partner = None;
        it.early = status;
        if it.stage == CommandStage::Parked {
            queue.fail(slot, status, out);
        }
    }

    /// Fails the other command of a fused pair after one has failed.
    pub(super) fn unfused(&mut self, queue: &mut QueuePair, slot: u16, out: &mut Outbox) {
        if self.fused == Some(slot) {
            self.fused = None;
        }
        if let Some(partner) = queue.slots[slot].partner.take() {
            self.give_up(queue, partner, Status::ABORTED_FAILED_FUSED, out);
        }
    }

    /// Updates properties that apply to all commands of the queue.
    pub(super) fn refresh(&mut self, target: &NvmeTarget) {
        let mut all = target.subsystem.present();
        self.with_metadata = all.any(|(_, it)| it.metadata > 0);
    }

    /// Executes a command whose data is complete.
    #[inline]
    pub(super) fn execute(
        &mut self,
        queue: &mut QueuePair,
        slot: u16,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) {
        match self.check_dataset(queue, slot) {
            Ok(true) => self.begin(queue, slot, out, port),
            Ok(false) => queue.respond(slot, Status::SUCCESS, 0, out),
            Err(status) => queue.fail(slot, status, out),
        }
    }

    /// Submits a command to the drive.
    #[inline]
    fn begin(&mut self, queue: &mut QueuePair, slot: u16, out: &mut Outbox, port: &mut Port<'_>) {
        let it = &mut queue.slots[slot];
        if !it.early.is_success() {
            let status = it.early;
            self.unfused(queue, slot, out);
            queue.fail(slot, status, out);
            return;
        }
        let op = match it.purpose {
            Purpose::Read | Purpose::Compare | Purpose::Verify => Op::Read,
            Purpose::Write if it.partner.is_none() => Op::Write,
            Purpose::Zeroes | Purpose::Uncorrectable => Op::WriteZeroes,
            Purpose::Nothing => Op::Flush,
            Purpose::Deallocate => return self.deallocate(queue, slot, out, port),
            Purpose::Copy => return self.copy(queue, slot, out, port),
            Purpose::Write | Purpose::CompareAndWrite => return self.fuse(queue, slot, port),
        };
        self.submit(queue, slot, op, port);
    }

    #[inline]
    pub(super) fn submit(&mut self, queue: &mut QueuePair, slot: u16, op: Op, port: &mut Port<'_>) {
        let it = &mut queue.slots[slot];
        it.stage = CommandStage::InDrive;
        let mut request = IoRequest {
            tag: slot.into(),
            op,
            fua: it.sqe.cdw12.get() & FUA != 0 && op != Op::Flush,
            queue: queue.id - 1,
            offset: it.offset,
            bytes: it.bytes,
        };
        if op == Op::Flush {
            (request.offset, request.bytes) = (0, 0);
            if it.sqe.nsid.get() == ALL {
                let shared = queue.shared.borrow();
                it.parts = shared.subsystem.options.drives.len() as u32;
                for &drive in &shared.subsystem.options.drives {
                    port.submit(drive, request);
                }
                return;
            }
        }
        it.parts = 1;
        let from_host = &it.data;
        port.submit_with(usize::from(it.drive), request, &mut |data| {
            let given = data.len() == from_host.len();
            if given {
                data.copy_from_slice(from_host);
            }
            given
        });
    }

    /// Begins a compare and write when both commands are complete.
    fn fuse(&mut self, queue: &mut QueuePair, slot: u16, port: &mut Port<'_>) {
        queue.slots[slot].stage = CommandStage::Parked;
        let Some(partner) = queue.slots[slot].partner else {
            return;
        };
        if queue.slots[partner].stage == CommandStage::Parked {
            let first = if queue.slots[slot].purpose == Purpose::CompareAndWrite {
                slot
            } else {
                partner
            };
            self.submit(queue, first, Op::Read, port);
        }
    }

    /// Continues a Dataset Management with the next piece of its ranges.
    fn deallocate(
        &mut self,
        queue: &mut QueuePair,
        slot: u16,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) {
        let Some((block, base)) = self.block_of(queue, slot) else {
            queue.fail(slot, Status::INVALID_NAMESPACE, out);
            return;
        };
        let it = &mut queue.slots[slot];
        while it.range < ranges(&it.sqe) {
            let Some((first, blocks)) = range(&it.data, it.range) else {
                break;
            };
            let left = blocks * u64::from(block) - it.done_in_range;
            if left == 0 {
                it.range += 1;
                it.done_in_range = 0;
                continue;
            }
            let piece = left.min(DEALLOCATED_AT_ONCE);
            it.offset = base + first * u64::from(block) + it.done_in_range;
            it.bytes = piece as u32;
            it.done_in_range += piece;
            self.submit(queue, slot, Op::Deallocate, port);
            return;
        }
        queue.respond(slot, Status::SUCCESS, 0, out);
    }

    /// Returns the block size of the command's namespace, and the namespace's first byte.
    fn block_of(&self, queue: &mut QueuePair, slot: u16) -> Option<(u32, u64)> {
        let mut shared = queue.shared.borrow_mut();
        let nsid = queue.slots[slot].sqe.nsid.get();
        let namespace = shared.namespace(nsid)?;
        Some((namespace.block, namespace.first))
    }

    /// Continues a command that the drive has completed.
    #[inline]
    pub(super) fn completed(
        &mut self,
        queue: &mut QueuePair,
        reply: &Reply,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) {
        let slot = reply.tag as u16;
        let it = &mut queue.slots[slot];
        it.parts -= 1;
        if reply.outcome != Outcome::Success {
            it.early = status_of(reply.outcome);
        }
        if it.parts > 0 {
            return;
        }
        if !it.early.is_success() {
            let status = it.early;
            // A Copy reports the number of the range.
            let dw0 = if it.purpose == Purpose::Copy {
                it.range
            } else {
                0
            };
            self.unfused(queue, slot, out);
            queue.fail_with(slot, status, dw0, out);
            return;
        }
        match it.purpose {
            Purpose::Read => self.give_data(queue, slot, out, port),
            Purpose::Write => self.take_data(queue, slot, out, port),
            Purpose::Deallocate => self.deallocate(queue, slot, out, port),
            Purpose::Copy => self.copied(queue, slot, out, port),
            Purpose::Nothing => queue.respond(slot, Status::SUCCESS, 0, out),
            Purpose::CompareAndWrite => self.compared(queue, slot, out, port),
            Purpose::Compare | Purpose::Verify | Purpose::Zeroes | Purpose::Uncorrectable => {
                self.finish(queue, slot, out, port);
            }
        }
    }

    /// Compares the data of a fused pair: continues with the write, or ends both.
    fn compared(
        &mut self,
        queue: &mut QueuePair,
        slot: u16,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) {
        let verdict = self.compare(queue, slot, port);
        match (verdict, queue.slots[slot].partner) {
            (Ok(()), Some(partner)) => {
                queue.slots[slot].stage = CommandStage::Parked;
                self.submit(queue, partner, Op::Write, port);
            }
            (verdict, _) => {
                self.unfused(queue, slot, out);
                queue.fail(
                    slot,
                    verdict.err().unwrap_or(Status::ABORTED_MISSING_FUSED),
                    out,
                );
            }
        }
    }

    fn take_data(
        &mut self,
        queue: &mut QueuePair,
        slot: u16,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) {
        let Some(first) = queue.slots[slot].partner else {
            let status = self
                .store(queue, slot, port)
                .err()
                .unwrap_or(Status::SUCCESS);
            queue.end(slot, status, out);
            return;
        };
        // The comparison is repeated at the time of the write.
        let verdict = self.compare(queue, first, port);
        let written = verdict.and_then(|()| self.store(queue, slot, port));
        queue.slots[slot].partner = None;
        queue.slots[first].partner = None;
        match (verdict, written) {
            (Ok(()), Ok(())) => {
                queue.respond(first, Status::SUCCESS, 0, out);
                queue.respond(slot, Status::SUCCESS, 0, out);
            }
            (Ok(()), Err(status)) => {
                queue.fail(first, Status::ABORTED_FAILED_FUSED, out);
                queue.fail(slot, status, out);
            }
            (Err(status), _) => {
                queue.fail(first, status, out);
                queue.fail(slot, Status::ABORTED_FAILED_FUSED, out);
            }
        }
    }

    fn finish(&mut self, queue: &mut QueuePair, slot: u16, out: &mut Outbox, port: &mut Port<'_>) {
        let result = match queue.slots[slot].purpose {
            Purpose::Compare => self.compare(queue, slot, port),
            Purpose::Verify => self.verify(queue, slot, port),
            Purpose::Zeroes => self.zeroed(queue, slot, port),
            _ => self.make_unreadable(queue, slot, port),
        };
        queue.end(slot, result.err().unwrap_or(Status::SUCCESS), out);
    }

    /// Checks the ranges of a Dataset Management when they are known.
    fn check_dataset(&self, queue: &QueuePair, slot: u16) -> Result<bool, Status> {
        let it = &queue.slots[slot];
        if it.purpose != Purpose::Deallocate || it.range > 0 {
            return Ok(true);
        }
        let mut shared = queue.shared.borrow_mut();
        let namespace = shared
            .namespace(it.sqe.nsid.get())
            .ok_or(Status::INVALID_NAMESPACE)?;
        for index in 0..ranges(&it.sqe) {
            let (first, blocks) = range(&it.data, index).ok_or(Status::DATA_SGL_LENGTH_INVALID)?;
            if first
                .checked_add(blocks)
                .is_none_or(|end| end > namespace.blocks)
            {
                return Err(Status::LBA_OUT_OF_RANGE);
            }
        }
        // Without the attribute "deallocate", the ranges are only hints.
        Ok(it.sqe.cdw11.get() & DEALLOCATE != 0)
    }
}
