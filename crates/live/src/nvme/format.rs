//! Format NVM and Sanitize, with the duration of the modelled drive.
//!
//! A format begins when no command is in flight in the drive, and completes when it is done. Meanwhile, I/O is
//! rejected with the status that states the reason. Cryptographic erase is executed as user data erase. Source: NVM
//! Express Base Specification 1.4, chapters 5.23 and 5.24.

use super::answer::{AdminOutcome, WaitCondition};
use super::facts::{Drives, StartResult};
use super::self_test::SelfTestStatus;
use super::subsystem::FormatRequest;
use super::target::NvmeTarget;
use super::wire::{Sqe, Status};
use crate::port::Notice;

/// Identifier for all namespaces.
const ALL: u32 = u32::MAX;

/// Parameters of a format.
#[derive(Clone, Copy, Debug)]
struct FormatParameters {
    number: usize,
    dps: u8,
    extended: bool,
    erase: u8,
}

impl FormatParameters {
    fn from_cdw10(cdw10: u32) -> FormatParameters {
        FormatParameters {
            number: (cdw10 & 0xf) as usize,
            // As in Identify.
            dps: (cdw10 >> 5 & 0xf) as u8,
            extended: cdw10 & 1 << 4 != 0,
            erase: (cdw10 >> 9 & 7) as u8,
        }
    }
}

/// Executes Format NVM: begins it, or defers it until the drives have no command in flight ([`start_formats`]); [`ended`]
/// checks for its end.
pub(super) fn format(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    drives: &mut dyn Drives,
) -> Result<AdminOutcome, Status> {
    if target.subsystem.by_member {
        return Err(Status::INVALID_OPCODE);
    }
    let wanted = FormatParameters::from_cdw10(sqe.cdw10.get());
    if wanted.erase > 2 || wanted.dps & 7 > 3 {
        return Err(Status::INVALID_FIELD);
    }
    let mut concerned = target.concerned(controller, sqe.nsid.get())?;
    let all = target.subsystem.options.full;
    if all {
        // All namespaces have one format.
        concerned = target.concerned(controller, ALL)?;
    }
    for &nsid in &concerned {
        let namespace = target.namespace(nsid).ok_or(Status::INVALID_NAMESPACE)?;
        if namespace.format.is_some() {
            return Err(Status::FORMAT_IN_PROGRESS);
        }
        if namespace.sanitizing {
            return Err(Status::SANITIZE_IN_PROGRESS);
        }
        let facts = drives.facts(namespace.drive);
        let format = facts.formats.get(wanted.number);
        let metadata = format.ok_or(Status::INVALID_FORMAT)?.metadata;
        let protection = facts.protection_of(wanted.number, wanted.dps);
        if !protection.fits(metadata) {
            return Err(Status::INVALID_FORMAT);
        }
        // Fabrics do not support separate metadata.
        if metadata > 0 && !wanted.extended && !namespace.strip {
            return Err(Status::INVALID_FORMAT);
        }
    }
    for &nsid in &concerned {
        if let Some(namespace) = target.namespace(nsid) {
            namespace.format = Some(FormatRequest::Asked);
        }
    }
    let tests = &mut target.self_tests;
    tests.interrupt(SelfTestStatus::Formatted, &target.subsystem, drives);
    target
        .history
        .format_begins(controller, sqe, all, drives.wall());
    start_formats(target, sqe, &concerned, drives);
    drives.ring_back();
    Ok(AdminOutcome::Later(WaitCondition::Format(concerned)))
}

/// Begins the formats of namespaces whose drives have no command in flight. At full speed they are completed at once.
pub(super) fn start_formats(
    target: &mut NvmeTarget,
    sqe: &Sqe,
    concerned: &[u32],
    drives: &mut dyn Drives,
) {
    // Drives whose format has begun: the first of several namespaces begins it.
    let mut begun = Vec::new();
    let wanted = FormatParameters::from_cdw10(sqe.cdw10.get());
    for &nsid in concerned {
        let Some(namespace) = target.namespace(nsid) else {
            continue;
        };
        if namespace.format != Some(FormatRequest::Asked) {
            continue;
        }
        if begun.contains(&namespace.drive) {
            namespace.format = Some(FormatRequest::Begun);
            continue;
        }
        match drives.begin_format(namespace.drive, wanted.number, wanted.dps) {
            StartResult::Yes => {
                namespace.format = Some(FormatRequest::Begun);
                begun.push(namespace.drive);
            }
            StartResult::Busy => {}
            StartResult::Refused => namespace.format = Some(FormatRequest::Refused),
        }
    }
}

/// Checks whether the format of these namespaces is completed.
pub(super) fn ended(target: &mut NvmeTarget, concerned: &[u32], drives: &mut dyn Drives) -> bool {
    concerned.iter().all(|&nsid| {
        let namespace = target.namespace(nsid);
        match namespace.and_then(|it| Some((it.drive, it.format?))) {
            None | Some((_, FormatRequest::Refused)) => true,
            Some((_, FormatRequest::Asked)) => false,
            Some((drive, FormatRequest::Begun | FormatRequest::Orphaned)) => {
                drives.operation(drive).is_none()
            }
        }
    })
}

/// Ends the format of these namespaces and returns the status of the command.
pub(super) fn end(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    concerned: &[u32],
    drives: &mut dyn Drives,
) -> Status {
    let mut refused = false;
    for &nsid in concerned {
        if let Some(it) = target.namespace(nsid) {
            refused |= it.format.take() == Some(FormatRequest::Refused);
            drives.notify(it.drive, Notice::Namespace);
        }
    }
    let status = if refused {
        Status::INTERNAL_ERROR
    } else {
        Status::SUCCESS
    };
    target.look(drives);
    let history = &mut target.history;
    history.format_ends(controller, sqe, status, drives.wall());
    status
}

/// Begins a sanitize; it is still in progress when the command completes.
pub(super) fn sanitize(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    drives: &mut dyn Drives,
) -> Result<AdminOutcome, Status> {
    if target.subsystem.by_member {
        return Err(Status::INVALID_OPCODE);
    }
    // 1: leave failure mode, 2: erase blocks, 3: overwrite, 4: crypto erase.
    match sqe.cdw10.get() & 7 {
        1 => return Ok(AdminOutcome::Done(0)),
        2 => {}
        _ => return Err(Status::INVALID_FIELD),
    }
    let subsystem = &mut target.subsystem;
    if subsystem.present().any(|(_, it)| it.format.is_some()) {
        return Err(Status::FORMAT_IN_PROGRESS);
    }
    if subsystem.present().any(|(_, it)| it.sanitizing) {
        return Err(Status::SANITIZE_IN_PROGRESS);
    }
    for &drive in &subsystem.options.drives {
        match drives.begin_sanitize(drive) {
            StartResult::Yes => {}
            // Commands are still in flight: the host must wait for them.
            StartResult::Busy => return Err(Status::COMMAND_SEQUENCE),
            StartResult::Refused => return Err(Status::INTERNAL_ERROR),
        }
        for namespace in subsystem.namespaces.iter_mut().flatten() {
            namespace.sanitizing |= namespace.drive == drive;
        }
    }
    let tests = &mut target.self_tests;
    tests.interrupt(SelfTestStatus::Sanitized, subsystem, drives);
    let history = &mut target.history;
    history.sanitize_begins(controller, sqe, drives.wall());
    drives.ring_back();
    Ok(AdminOutcome::Done(0))
}
