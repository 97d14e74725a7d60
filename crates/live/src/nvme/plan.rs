//! Plan of an I/O command: checks the command against its namespace before its data is requested.
//!
//! Source: NVM Express Base Specification 1.4, chapter 6.

use super::copy;
use super::opcode::io as opcode;
use super::protection::Checks;
use super::slots::Purpose;
use super::subsystem::Namespace;
use super::target::NvmeTarget;
use super::wire::{Sqe, Status};

/// Identifier for all namespaces, in Flush.
pub(super) const ALL: u32 = u32::MAX;
/// Bytes of a range of Dataset Management.
const RANGE: usize = 16;

/// Returns one range of Dataset Management: first block and number of blocks.
pub(super) fn range(data: &[u8], index: u32) -> Option<(u64, u64)> {
    let start = index as usize * RANGE;
    let bytes = data.get(start..start + RANGE)?;
    let blocks = u32::from_le_bytes(bytes[4..8].try_into().ok()?);
    let first = u64::from_le_bytes(bytes[8..16].try_into().ok()?);
    Some((first, blocks.into()))
}

/// Returns the number of ranges of a Dataset Management.
pub(super) fn ranges(sqe: &Sqe) -> u32 {
    (sqe.cdw10.get() & 0xff) + 1
}

/// Returns the plan of a command of this controller.
pub(super) fn plan(target: &mut NvmeTarget, id: u16, sqe: &Sqe) -> Result<IoPlan, Status> {
    let controller = target.controller(id).filter(|it| it.ready());
    let controller = controller.ok_or(Status::COMMAND_SEQUENCE)?;
    let copies = controller.copies();
    let full = target.subsystem.options.full;
    let nsid = sqe.nsid.get();
    let flush_all = sqe.opcode == opcode::FLUSH && nsid == ALL;
    let namespace = if flush_all {
        let mut all = target.subsystem.present();
        all.next().ok_or(Status::INVALID_NAMESPACE)?.1
    } else {
        target.active(id, nsid)?
    };
    if sqe.opcode == opcode::COPY && full {
        return IoPlan::of_copy(sqe, namespace, copies);
    }
    if namespace.format.is_some() {
        return Err(Status::FORMAT_IN_PROGRESS);
    }
    if namespace.sanitizing {
        return Err(Status::SANITIZE_IN_PROGRESS);
    }
    IoPlan::for_command(sqe, namespace)
}

/// Plan of an I/O command.
#[derive(Clone, Copy, Debug)]
pub(super) struct IoPlan {
    pub(super) purpose: Purpose,
    pub(super) drive: u16,
    /// First byte in the drive, with the length; metadata is not counted.
    pub(super) offset: u64,
    pub(super) bytes: u32,
}

impl IoPlan {
    fn for_command(sqe: &Sqe, namespace: &Namespace) -> Result<IoPlan, Status> {
        let plan = |purpose, offset, bytes| IoPlan {
            purpose,
            drive: namespace.drive as u16,
            offset,
            bytes,
        };
        let purpose = match sqe.opcode {
            opcode::FLUSH => return Ok(plan(Purpose::Nothing, 0, 0)),
            opcode::DATASET => {
                IoPlan::check_ranges(sqe)?;
                return Ok(plan(Purpose::Deallocate, 0, 0));
            }
            opcode::READ => Purpose::Read,
            opcode::WRITE => Purpose::Write,
            opcode::COMPARE => Purpose::Compare,
            opcode::VERIFY => Purpose::Verify,
            opcode::WRITE_ZEROES => Purpose::Zeroes,
            opcode::WRITE_UNCORRECTABLE if !namespace.by_member => Purpose::Uncorrectable,
            _ => return Err(Status::INVALID_OPCODE),
        };
        if namespace.by_member && sqe.fused() != 0 {
            return Err(Status::INVALID_FIELD);
        }
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
            let checks = Checks::from_sqe(sqe);
            namespace.protection.admits(&checks, slba)?;
        }
        let offset = namespace.first + slba * u64::from(namespace.block);
        Ok(plan(purpose, offset, bytes))
    }

    fn of_copy(sqe: &Sqe, namespace: &Namespace, enabled: u16) -> Result<IoPlan, Status> {
        if namespace.format.is_some() {
            return Err(Status::FORMAT_IN_PROGRESS);
        }
        if namespace.sanitizing {
            return Err(Status::SANITIZE_IN_PROGRESS);
        }
        if sqe.sgl.length.get() < copy::list_bytes(sqe, enabled)? {
            return Err(Status::DATA_SGL_LENGTH_INVALID);
        }
        Ok(IoPlan {
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
