//! Commands of I/O queues: checked, handed to the drive, and carried out when the drive says so.
//!
//! Data moves at completion. Compare is a read whose data stays here; Verify is a read that moves nothing; of fused
//! compare and write the comparison is made again when the write completes, so that nothing can come between.
//! Left out: streams and other directives, end-to-end storage tags, the zoned and key-value command sets.
//! Source: NVM Express Base Specification 1.4, chapter 6.

use model::Op;

use super::connection::{Connection, Phase};
use super::copy;
use super::protection::Checks;
use super::slots::{Purpose, Stage};
use super::target::Namespace;
use super::wire::{Sqe, Status};
use crate::outbox::Outbox;
use crate::port::Port;
use crate::served::{Outcome, Reply, Request};

/// Opcodes of I/O commands.
pub mod opcode {
    /// Flush.
    pub const FLUSH: u8 = 0x00;
    /// Write.
    pub const WRITE: u8 = 0x01;
    /// Read.
    pub const READ: u8 = 0x02;
    /// Write Uncorrectable.
    pub const WRITE_UNCORRECTABLE: u8 = 0x04;
    /// Compare.
    pub const COMPARE: u8 = 0x05;
    /// Write Zeroes.
    pub const WRITE_ZEROES: u8 = 0x08;
    /// Dataset Management.
    pub const DATASET: u8 = 0x09;
    /// Verify.
    pub const VERIFY: u8 = 0x0c;
    /// Copy.
    pub const COPY: u8 = 0x19;
}

/// Flush: all namespaces.
const ALL: u32 = u32::MAX;
/// Dword 12: force unit access.
const FUA: u32 = 1 << 30;
/// Dword 11 of Dataset Management: deallocate.
const DEALLOCATE: u32 = 1 << 2;
/// Bytes of a range of Dataset Management.
const RANGE: usize = 16;
/// Most bytes that are deallocated by one command to the drive.
const DEALLOCATED_AT_ONCE: u64 = 1 << 30;

/// One range of Dataset Management: first block and blocks.
fn range(data: &[u8], index: u32) -> Option<(u64, u64)> {
    let start = index as usize * RANGE;
    let bytes = data.get(start..start + RANGE)?;
    let blocks = u32::from_le_bytes(bytes[4..8].try_into().ok()?);
    let first = u64::from_le_bytes(bytes[8..16].try_into().ok()?);
    Some((first, blocks.into()))
}

/// Ranges that a Dataset Management names.
fn ranges(sqe: &Sqe) -> u32 {
    (sqe.cdw10.get() & 0xff) + 1
}

/// Why the drive could not.
pub(super) fn status_of(outcome: Outcome) -> Status {
    match outcome {
        Outcome::Success => Status::SUCCESS,
        Outcome::OutOfRange => Status::LBA_OUT_OF_RANGE,
        Outcome::UnrecoveredRead => Status::UNRECOVERED_READ,
        Outcome::WriteFault => Status::WRITE_FAULT,
        Outcome::NoSpace => Status::CAPACITY_EXCEEDED,
        Outcome::ReadOnly => Status::WRITE_PROTECTED,
        Outcome::Formatting => Status::FORMAT_IN_PROGRESS,
        Outcome::Busy => Status::COMMAND_INTERRUPTED,
        Outcome::PowerLoss | Outcome::Failed => Status::INTERNAL_ERROR,
    }
}

impl Connection {
    /// Checks an I/O command, before its data is asked for.
    pub(super) fn prepare_io(&mut self, slot: u16, out: &mut Outbox) -> Result<(), Status> {
        let sqe = self.slots[slot].sqe;
        let plan = self.plan(&sqe);
        if self.fused.is_some() || sqe.fused() != 0 {
            self.pair(slot, plan.is_ok(), out)?;
        }
        let plan = plan?;
        let it = &mut self.slots[slot];
        it.purpose = plan.purpose;
        it.drive = plan.drive;
        it.offset = plan.offset;
        it.bytes = plan.bytes;
        if sqe.fused() == Sqe::FUSED_FIRST {
            it.purpose = Purpose::CompareAndWrite;
        }
        Ok(())
    }

    fn plan(&self, sqe: &Sqe) -> Result<Plan, Status> {
        let mut shared = self.shared.borrow_mut();
        let id = self.queue.controller;
        let controller = shared.controller(id).filter(|it| it.ready());
        let controller = controller.ok_or(Status::COMMAND_SEQUENCE)?;
        let copies = controller.copies();
        let full = shared.options.full;
        let nsid = sqe.nsid.get();
        let flush_all = sqe.opcode == opcode::FLUSH && nsid == ALL;
        let namespace = if flush_all {
            let first = shared.present().next().map(|(nsid, _)| nsid);
            let first = first.and_then(|nsid| shared.namespace(nsid));
            first.ok_or(Status::INVALID_NAMESPACE)?
        } else {
            shared.active(id, nsid)?
        };
        if sqe.opcode == opcode::COPY && full {
            return Plan::of_copy(sqe, namespace, copies);
        }
        if namespace.format.is_some() {
            return Err(Status::FORMAT_IN_PROGRESS);
        }
        if namespace.sanitizing {
            return Err(Status::SANITIZE_IN_PROGRESS);
        }
        Plan::of(sqe, namespace)
    }

    /// Sees that fused commands come in pairs.
    fn pair(&mut self, slot: u16, possible: bool, out: &mut Outbox) -> Result<(), Status> {
        let first = self.fused.take();
        let sqe = self.slots[slot].sqe;
        if sqe.fused() != Sqe::FUSED_SECOND
            && let Some(first) = first
        {
            self.give_up(first, Status::ABORTED_MISSING_FUSED, out);
        }
        match (sqe.fused(), first) {
            (0, _) => Ok(()),
            (Sqe::FUSED_FIRST, _) if sqe.opcode == opcode::COMPARE => {
                self.fused = possible.then_some(slot);
                Ok(())
            }
            (Sqe::FUSED_SECOND, None) => Err(Status::ABORTED_MISSING_FUSED),
            (Sqe::FUSED_SECOND, Some(first)) => {
                let other = &self.slots[first].sqe;
                let same = other.nsid == sqe.nsid
                    && other.slba() == sqe.slba()
                    && other.cdw12.get() & 0xffff == sqe.cdw12.get() & 0xffff;
                if !possible || !same || sqe.opcode != opcode::WRITE {
                    self.give_up(first, Status::ABORTED_FAILED_FUSED, out);
                    return if possible {
                        Err(Status::INVALID_FIELD)
                    } else {
                        Ok(())
                    };
                }
                self.slots[first].partner = Some(slot);
                self.slots[slot].partner = Some(first);
                Ok(())
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Fails a command that waits, or as soon as its data has come.
    fn give_up(&mut self, slot: u16, status: Status, out: &mut Outbox) {
        let it = &mut self.slots[slot];
        it.partner = None;
        it.early = status;
        if it.stage == Stage::Parked {
            self.fail(slot, status, out);
        }
    }

    /// This command has failed: if it is one of two fused ones, so has the other.
    pub(super) fn unfused(&mut self, slot: u16, out: &mut Outbox) {
        if self.fused == Some(slot) {
            self.fused = None;
        }
        if let Some(partner) = self.slots[slot].partner.take() {
            self.give_up(partner, Status::ABORTED_FAILED_FUSED, out);
        }
    }

    /// Hands a command whose data is complete to the drive.
    #[inline]
    pub(super) fn execute_io(&mut self, slot: u16, out: &mut Outbox, port: &mut Port<'_>) {
        let it = &mut self.slots[slot];
        if !it.early.is_success() {
            let status = it.early;
            self.unfused(slot, out);
            self.fail(slot, status, out);
            return;
        }
        let op = match it.purpose {
            Purpose::Read | Purpose::Compare | Purpose::Verify => Op::Read,
            Purpose::Write if it.partner.is_none() => Op::Write,
            Purpose::Zeroes | Purpose::Uncorrectable => Op::WriteZeroes,
            Purpose::Nothing => Op::Flush,
            Purpose::Deallocate => return self.deallocate(slot, out, port),
            Purpose::Copy => return self.copy(slot, out, port),
            Purpose::Write | Purpose::CompareAndWrite => return self.fuse(slot, port),
        };
        self.submit(slot, op, port);
    }

    #[inline]
    pub(super) fn submit(&mut self, slot: u16, op: Op, port: &mut Port<'_>) {
        let it = &mut self.slots[slot];
        it.stage = Stage::InDrive;
        let mut request = Request {
            tag: slot.into(),
            op,
            fua: it.sqe.cdw12.get() & FUA != 0 && op != Op::Flush,
            queue: self.queue.id - 1,
            offset: it.offset,
            bytes: it.bytes,
        };
        if op == Op::Flush {
            (request.offset, request.bytes) = (0, 0);
            if it.sqe.nsid.get() == ALL {
                let shared = self.shared.borrow();
                it.parts = shared.options.drives.len() as u32;
                for &drive in &shared.options.drives {
                    port.submit(drive, request);
                }
                return;
            }
        }
        it.parts = 1;
        port.submit(usize::from(it.drive), request);
    }

    /// Compare and write: begins when both are complete.
    fn fuse(&mut self, slot: u16, port: &mut Port<'_>) {
        self.slots[slot].stage = Stage::Parked;
        let Some(partner) = self.slots[slot].partner else {
            return;
        };
        if self.slots[partner].stage == Stage::Parked {
            let first = if self.slots[slot].purpose == Purpose::CompareAndWrite {
                slot
            } else {
                partner
            };
            self.submit(first, Op::Read, port);
        }
    }

    /// Goes on with the ranges of a Dataset Management, one piece at a time.
    fn deallocate(&mut self, slot: u16, out: &mut Outbox, port: &mut Port<'_>) {
        let Some((block, base)) = self.block_of(slot) else {
            self.fail(slot, Status::INVALID_NAMESPACE, out);
            return;
        };
        let it = &mut self.slots[slot];
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
            self.submit(slot, Op::Deallocate, port);
            return;
        }
        self.respond(slot, Status::SUCCESS, 0, out);
    }

    /// Bytes of a block of its namespace, and the first byte of that.
    fn block_of(&self, slot: u16) -> Option<(u32, u64)> {
        let mut shared = self.shared.borrow_mut();
        let nsid = self.slots[slot].sqe.nsid.get();
        let namespace = shared.namespace(nsid)?;
        Some((namespace.block, namespace.first))
    }

    /// The drive has done its part of a command.
    #[inline]
    pub(super) fn completed(&mut self, reply: &Reply, out: &mut Outbox, port: &mut Port<'_>) {
        let slot = reply.tag as u16;
        let it = &mut self.slots[slot];
        it.parts -= 1;
        if reply.outcome != Outcome::Success {
            it.early = status_of(reply.outcome);
        }
        if it.parts > 0 {
            return;
        }
        if !it.early.is_success() {
            let status = it.early;
            // A Copy tells which range it was.
            let dw0 = if it.purpose == Purpose::Copy {
                it.range
            } else {
                0
            };
            self.unfused(slot, out);
            self.fail_with(slot, status, dw0, out);
            return;
        }
        match it.purpose {
            Purpose::Read => self.give_data(slot, out, port),
            Purpose::Write => self.take_data(slot, out, port),
            Purpose::Deallocate => self.deallocate(slot, out, port),
            Purpose::Copy => self.copied(slot, out, port),
            Purpose::Nothing => self.respond(slot, Status::SUCCESS, 0, out),
            Purpose::CompareAndWrite => self.compared(slot, out, port),
            Purpose::Compare | Purpose::Verify | Purpose::Zeroes | Purpose::Uncorrectable => {
                self.finish(slot, out, port);
            }
        }
    }

    /// The comparison of a fused pair has been read: on to the write, or the end of both.
    fn compared(&mut self, slot: u16, out: &mut Outbox, port: &mut Port<'_>) {
        let verdict = self.compare(slot, port);
        match (verdict, self.slots[slot].partner) {
            (Ok(()), Some(partner)) => {
                self.slots[slot].stage = Stage::Parked;
                self.submit(partner, Op::Write, port);
            }
            (verdict, _) => {
                self.unfused(slot, out);
                self.fail(
                    slot,
                    verdict.err().unwrap_or(Status::ABORTED_MISSING_FUSED),
                    out,
                );
            }
        }
    }

    fn take_data(&mut self, slot: u16, out: &mut Outbox, port: &mut Port<'_>) {
        let Some(first) = self.slots[slot].partner else {
            let status = self.store(slot, port).err().unwrap_or(Status::SUCCESS);
            self.end(slot, status, out);
            return;
        };
        // Again, at the moment at which the write happens.
        let verdict = self.compare(first, port);
        let written = verdict.and_then(|()| self.store(slot, port));
        self.slots[slot].partner = None;
        self.slots[first].partner = None;
        match (verdict, written) {
            (Ok(()), Ok(())) => {
                self.respond(first, Status::SUCCESS, 0, out);
                self.respond(slot, Status::SUCCESS, 0, out);
            }
            (Ok(()), Err(status)) => {
                self.fail(first, Status::ABORTED_FAILED_FUSED, out);
                self.fail(slot, status, out);
            }
            (Err(status), _) => {
                self.fail(first, status, out);
                self.fail(slot, Status::ABORTED_FAILED_FUSED, out);
            }
        }
    }

    fn finish(&mut self, slot: u16, out: &mut Outbox, port: &mut Port<'_>) {
        let result = match self.slots[slot].purpose {
            Purpose::Compare => self.compare(slot, port),
            Purpose::Verify => self.verify(slot, port),
            Purpose::Zeroes => self.zeroed(slot, port),
            _ => self.make_unreadable(slot, port),
        };
        self.end(slot, result.err().unwrap_or(Status::SUCCESS), out);
    }

    #[inline]
    pub(super) fn end(&mut self, slot: u16, status: Status, out: &mut Outbox) {
        if status.is_success() {
            self.respond(slot, status, 0, out);
        } else {
            self.fail(slot, status, out);
        }
    }
}

/// What an I/O command comes to.
#[derive(Clone, Copy, Debug)]
struct Plan {
    purpose: Purpose,
    drive: u16,
    offset: u64,
    bytes: u32,
}

impl Plan {
    fn of(sqe: &Sqe, namespace: &Namespace) -> Result<Plan, Status> {
        let plan = |purpose, offset, bytes| Plan {
            purpose,
            drive: namespace.drive as u16,
            offset,
            bytes,
        };
        let purpose = match sqe.opcode {
            opcode::FLUSH => return Ok(plan(Purpose::Nothing, 0, 0)),
            opcode::DATASET => {
                Plan::check_ranges(sqe)?;
                return Ok(plan(Purpose::Deallocate, 0, 0));
            }
            opcode::READ => Purpose::Read,
            opcode::WRITE => Purpose::Write,
            opcode::COMPARE => Purpose::Compare,
            opcode::VERIFY => Purpose::Verify,
            opcode::WRITE_ZEROES => Purpose::Zeroes,
            opcode::WRITE_UNCORRECTABLE => Purpose::Uncorrectable,
            _ => return Err(Status::INVALID_OPCODE),
        };
        let slba = sqe.slba();
        let blocks = (sqe.cdw12.get() & 0xffff) + 1;
        let end = slba
            .checked_add(blocks.into())
            .ok_or(Status::LBA_OUT_OF_RANGE)?;
        if end > namespace.blocks {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let bytes = blocks * namespace.block;
        if matches!(purpose, Purpose::Read | Purpose::Write | Purpose::Compare) {
            let wire = namespace.wire_bytes(sqe, blocks);
            if bytes > namespace.max_transfer {
                return Err(Status::INVALID_FIELD);
            }
            if sqe.sgl.length.get() != wire {
                return Err(Status::DATA_SGL_LENGTH_INVALID);
            }
        }
        if purpose != Purpose::Uncorrectable && !namespace.strip {
            let checks = Checks::of(sqe);
            namespace.protection.admits(&checks, slba)?;
        }
        let offset = namespace.first + slba * u64::from(namespace.block);
        Ok(plan(purpose, offset, bytes))
    }

    fn of_copy(sqe: &Sqe, namespace: &Namespace, enabled: u16) -> Result<Plan, Status> {
        if namespace.format.is_some() {
            return Err(Status::FORMAT_IN_PROGRESS);
        }
        if namespace.sanitizing {
            return Err(Status::SANITIZE_IN_PROGRESS);
        }
        if sqe.sgl.length.get() < copy::list_bytes(sqe, enabled)? {
            return Err(Status::DATA_SGL_LENGTH_INVALID);
        }
        Ok(Plan {
            purpose: Purpose::Copy,
            drive: namespace.drive as u16,
            offset: 0,
            bytes: 0,
        })
    }

    fn check_ranges(sqe: &Sqe) -> Result<(), Status> {
        let wanted = ranges(sqe) * RANGE as u32;
        if sqe.sgl.length.get() < wanted || sqe.sgl.length.get() > 4096 {
            return Err(Status::DATA_SGL_LENGTH_INVALID);
        }
        Ok(())
    }
}

impl Connection {
    /// The ranges of a Dataset Management, now that they are known.
    pub(super) fn check_dataset(&mut self, slot: u16) -> Result<bool, Status> {
        let it = &self.slots[slot];
        if self.phase != Phase::Io || it.purpose != Purpose::Deallocate || it.range > 0 {
            return Ok(true);
        }
        let mut shared = self.shared.borrow_mut();
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
        // Without the attribute "deallocate" the ranges are only hints.
        Ok(it.sqe.cdw11.get() & DEALLOCATE != 0)
    }
}
