//! Namespace Management and Namespace Attachment: namespaces are created, deleted, attached and detached.
//!
//! All namespaces of a drive have its format. So a namespace with another format is created only on a drive that has
//! no namespace, and Format NVM formats all of them (as Identify Controller's FNA states). Over fabrics, metadata is
//! transferred with the data. A namespace of a format with metadata is therefore created with extended blocks even if
//! the host did not request them, as most programs do not. A namespace that was attached to any controller is attached
//! to those that connect later. Not supported: thin provisioning, private namespaces, NVM sets and endurance groups.
//! Source: NVM Express Base Specification 2.0, chapters 5.23, 5.24 and 8.11; NVM Command Set Specification 1.0, 5.8.

use super::answer::{AdminOutcome, WaitCondition};
use super::facts::{Drives, StartResult};
use super::history::kind;
use super::layout::{Extent, UNIT};
use super::subsystem::Subsystem;
use super::target::NvmeTarget;
use super::wire::{Sqe, Status};

/// Identifier for all namespaces.
const ALL: u32 = u32::MAX;
/// Maximum number of entries of a list of controllers.
const MOST_CONTROLLERS: usize = 2047;

/// Operations of both commands.
mod select {
    pub(super) const CREATE: u32 = 0;
    pub(super) const DELETE: u32 = 1;
    pub(super) const ATTACH: u32 = 0;
    pub(super) const DETACH: u32 = 1;
}

/// Parameters of a namespace to create.
#[derive(Clone, Copy, Debug)]
struct NamespaceParameters {
    blocks: u64,
    /// Number of the format.
    format: usize,
    flbas: u8,
    dps: u8,
    sharing: u8,
}

impl NamespaceParameters {
    fn decode(data: &[u8]) -> Result<NamespaceParameters, Status> {
        let data = data
            .first_chunk::<384>()
            .ok_or(Status::DATA_SGL_LENGTH_INVALID)?;
        let wide = |at: usize| {
            let bytes = data[at..at + 8].first_chunk().copied();
            u64::from_le_bytes(bytes.unwrap_or_default())
        };
        let (size, capacity) = (wide(0), wide(8));
        if size == 0 || capacity > size {
            return Err(Status::INVALID_FIELD);
        }
        if capacity < size {
            return Err(Status::THIN_PROVISIONING);
        }
        let (flbas, dps) = (data[26], data[29]);
        if dps & 7 > 3 || dps & 0xf0 != 0 {
            return Err(Status::INVALID_FIELD);
        }
        Ok(NamespaceParameters {
            blocks: size,
            // The two high bits of the number are in a separate field.
            format: usize::from(flbas & 0xf | (flbas >> 5 & 3) << 4),
            flbas,
            dps,
            sharing: data[30],
        })
    }

    /// Returns the data for the event log.
    fn event(&self, nsid: u32) -> Vec<u8> {
        let mut event = select::CREATE.to_le_bytes().to_vec();
        event.resize(8, 0);
        event.extend_from_slice(&self.blocks.to_le_bytes());
        event.resize(24, 0);
        event.extend_from_slice(&self.blocks.to_le_bytes());
        event.extend_from_slice(&[self.flbas, self.dps, self.sharing, 0]);
        event.resize(44, 0);
        event.extend_from_slice(&nsid.to_le_bytes());
        event
    }
}

/// Executes Namespace Management. Returns [`WaitCondition::EmptyDrive`] if the drive must first complete its commands: the
/// command is then tried again.
pub(super) fn manage(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    data: &[u8],
    drives: &mut dyn Drives,
) -> Result<AdminOutcome, Status> {
    // If the division cannot be saved, it cannot be changed.
    let mut all = target.subsystem.options.drives.iter();
    if all.any(|&it| drives.facts(it).read_only) {
        return Err(Status::WRITE_PROTECTED);
    }
    match sqe.cdw10.get() & 0xf {
        select::CREATE => create(target, controller, sqe, data, drives),
        select::DELETE => delete(target, controller, sqe.nsid.get(), drives),
        _ => Err(Status::INVALID_FIELD),
    }
}

/// Returns the place for such a namespace, and whether its drive must switch to another format.
fn place(
    subsystem: &Subsystem,
    wanted: &NamespaceParameters,
    drives: &mut dyn Drives,
) -> Result<(usize, u64, u64, bool), Status> {
    let mut why = Status::INVALID_FORMAT;
    for &drive in &subsystem.options.drives {
        let facts = drives.facts(drive);
        let Some(format) = facts.formats.get(wanted.format) else {
            continue;
        };
        let protection = facts.protection_of(wanted.format, wanted.dps);
        if !protection.fits(format.metadata) {
            continue;
        }
        let other = facts.format != wanted.format || facts.protection != protection;
        if other && !subsystem.layout.is_empty(drive) {
            continue;
        }
        why = Status::INSUFFICIENT_CAPACITY;
        let Some(bytes) = wanted.blocks.checked_mul(format.data.into()) else {
            continue;
        };
        // A whole number of units is allocated.
        let Some(taken) = bytes.checked_next_multiple_of(UNIT) else {
            continue;
        };
        if let Some(first) = subsystem.layout.room(drive, facts.bytes, taken) {
            return Ok((drive, first, bytes, other));
        }
    }
    Err(why)
}

fn create(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    data: &[u8],
    drives: &mut dyn Drives,
) -> Result<AdminOutcome, Status> {
    // Only the NVM command set.
    if sqe.cdw11.get() >> 24 != 0 {
        return Err(Status::INVALID_FIELD);
    }
    let wanted = NamespaceParameters::decode(data)?;
    if target.subsystem.layout.free_identifier() > target.subsystem.most() {
        return Err(Status::NO_NAMESPACE_ID);
    }
    let (drive, first, bytes, other) = place(&target.subsystem, &wanted, drives)?;
    if other {
        match drives.adopt_format(drive, wanted.format, wanted.dps) {
            StartResult::Yes => {}
            StartResult::Busy => return Ok(AdminOutcome::Later(WaitCondition::EmptyDrive)),
            StartResult::Refused => return Err(Status::INTERNAL_ERROR),
        }
    }
    let nsid = target.subsystem.layout.create(drive, first, bytes);
    remember(target, drive, drives)?;
    target.history.note(
        kind::NAMESPACE,
        controller,
        drives.wall(),
        wanted.event(nsid),
    );
    for it in target.controllers.iter_mut() {
        it.attach(nsid, false);
    }
    Ok(AdminOutcome::Done(nsid.into()))
}

fn delete(
    target: &mut NvmeTarget,
    controller: u16,
    nsid: u32,
    drives: &mut dyn Drives,
) -> Result<AdminOutcome, Status> {
    let concerned: Vec<u32> = if nsid == ALL {
        target.subsystem.present().map(|(nsid, _)| nsid).collect()
    } else {
        vec![nsid]
    };
    for &nsid in &concerned {
        let absent = target.subsystem.absent(nsid);
        let namespace = target.namespace(nsid).ok_or(absent)?;
        if namespace.format.is_some() {
            return Err(Status::FORMAT_IN_PROGRESS);
        }
        if namespace.sanitizing {
            return Err(Status::SANITIZE_IN_PROGRESS);
        }
    }
    for nsid in concerned {
        target
            .self_tests
            .namespace_gone(nsid, &target.subsystem, drives);
        let Some(extent) = target.subsystem.layout.delete(nsid) else {
            continue;
        };
        forget(&extent, drives)?;
        remember(target, extent.drive, drives)?;
        for it in target.controllers.iter_mut().filter(|it| it.has(nsid)) {
            it.attach(nsid, false);
            it.namespace_changed(nsid);
            drives.ring(it.endpoint);
        }
        let mut event = select::DELETE.to_le_bytes().to_vec();
        event.resize(44, 0);
        event.extend_from_slice(&nsid.to_le_bytes());
        target
            .history
            .note(kind::NAMESPACE, controller, drives.wall(), event);
    }
    Ok(AdminOutcome::Done(0))
}

/// Discards the data of a namespace; the drive deallocates it.
fn forget(extent: &Extent, drives: &mut dyn Drives) -> Result<(), Status> {
    let rest = drives.facts(extent.drive).bytes - extent.first;
    let bytes = extent.bytes.next_multiple_of(UNIT).min(rest);
    drives.discard(extent.drive, extent.first, bytes)
}

/// Saves the namespaces of the drive, and reads them again.
fn remember(target: &mut NvmeTarget, drive: usize, drives: &mut dyn Drives) -> Result<(), Status> {
    let bytes = drives.facts(drive).bytes;
    let shares = target.subsystem.layout.shares(drive, bytes);
    let written = drives.divide(drive, shares);
    target.look(drives);
    written
}

/// Parses a list of controllers: the number, then their identifiers.
fn controllers(data: &[u8]) -> Result<Vec<u16>, Status> {
    let mut numbers = data
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let count = usize::from(numbers.next().ok_or(Status::DATA_SGL_LENGTH_INVALID)?);
    let list: Vec<u16> = numbers.take(count).collect();
    if list.len() < count {
        return Err(Status::DATA_SGL_LENGTH_INVALID);
    }
    let ascends = list.windows(2).all(|pair| pair[0] < pair[1]);
    if count == 0 || count > MOST_CONTROLLERS || !ascends {
        return Err(Status::CONTROLLER_LIST);
    }
    Ok(list)
}

/// Executes Namespace Attachment: attaches to, or detaches from, all controllers of a list, or none of them.
pub(super) fn attach(
    target: &mut NvmeTarget,
    sqe: &Sqe,
    data: &[u8],
    drives: &mut dyn Drives,
) -> Result<AdminOutcome, Status> {
    let nsid = sqe.nsid.get();
    let attached = match sqe.cdw10.get() & 0xf {
        select::ATTACH => true,
        select::DETACH => false,
        _ => return Err(Status::INVALID_FIELD),
    };
    let absent = target.subsystem.absent(nsid);
    let drive = target.namespace(nsid).ok_or(absent)?.drive;
    let list = controllers(data)?;
    for &id in &list {
        match target.controller(id) {
            Some(it) if it.discovery => return Err(Status::CONTROLLER_LIST),
            None => return Err(Status::CONTROLLER_LIST),
            Some(it) if it.has(nsid) == attached => {
                return Err(if attached {
                    Status::ALREADY_ATTACHED
                } else {
                    Status::NOT_ATTACHED
                });
            }
            Some(_) => {}
        }
    }
    for &id in &list {
        if let Some(it) = target.controller(id) {
            it.attach(nsid, attached);
            it.namespace_changed(nsid);
            drives.ring(it.endpoint);
        }
    }
    let any = target
        .controllers
        .iter_mut()
        .any(|it| !it.discovery && it.has(nsid));
    target.subsystem.layout.attach(nsid, any);
    remember(target, drive, drives)?;
    Ok(AdminOutcome::Done(0))
}
