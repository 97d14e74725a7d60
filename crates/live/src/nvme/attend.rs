//! Asynchronous events: the end of sanitizes, of formats without a waiting connection, and of self-tests, and events
//! that must be reported.

use super::controller::Notification;
use super::facts::Drives;
use super::lba_status;
use super::subsystem::FormatRequest;
use super::target::NvmeTarget;
use crate::port::Notice;

/// Checks for events, and notes those that this controller must report.
pub(super) fn attend(target: &mut NvmeTarget, controller: u16, drives: &mut dyn Drives) {
    target.self_tests.settle(&target.subsystem, drives);
    let (mut ended, mut sanitized) = (false, None);
    for namespace in target.subsystem.namespaces.iter_mut().flatten() {
        let drive = namespace.drive;
        if namespace.format == Some(FormatRequest::Orphaned) && drives.operation(drive).is_none() {
            ended = true;
            drives.notify(drive, Notice::Namespace);
        }
        if namespace.sanitizing && drives.operation(drive).is_none() {
            namespace.sanitizing = false;
            sanitized = Some(drive);
        }
    }
    if let Some(drive) = sanitized {
        let status = drives.sanitized(drive);
        target.history.sanitize_ends(status, drives.wall());
    }
    let seen = lba_status::generation(&target.subsystem, drives);
    if let Some(it) = target.controller(controller) {
        if sanitized.is_some() {
            it.notify(Notification::SANITIZED);
        }
        let before = it.lba_status_seen.replace(seen);
        if before.is_some_and(|before| before != seen) {
            it.notify(Notification::LBA_STATUS);
        }
    }
    if ended {
        target.look(drives);
    }
}
