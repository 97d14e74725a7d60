//! The persistent event log as hosts read it.
//!
//! A host establishes a context, which keeps the log as it is then, reads it in any number of parts, and releases it.
//! Source: NVM Express Base Specification 1.4, chapter 5.14.1.13.

use super::facts::Drives;
use super::target::NvmeTarget;
use super::wire::Status;

/// Actions of a command.
mod action {
    pub(super) const READ: u8 = 0;
    pub(super) const ESTABLISH: u8 = 1;
    pub(super) const RELEASE: u8 = 2;
}

/// Returns the requested part of the log; nothing for a command that only releases the context.
pub(super) fn command(
    target: &mut NvmeTarget,
    controller: u16,
    specific: u8,
    drives: &mut dyn Drives,
) -> Result<Vec<u8>, Status> {
    let exists = target
        .controller(controller)
        .is_some_and(|it| it.event_log.is_some());
    let log = match specific & 3 {
        action::ESTABLISH if !exists => {
            let drive = target.subsystem.first_drive();
            let drive = drive.map_err(|_| Status::INTERNAL_ERROR)?;
            let nqn = &target.subsystem.options.nqn;
            Some(target.history.establish(nqn, drive, drives))
        }
        action::READ if exists => None,
        action::RELEASE => {
            if let Some(it) = target.controller(controller) {
                it.event_log = None;
            }
            return Ok(Vec::new());
        }
        action::READ | action::ESTABLISH => return Err(Status::COMMAND_SEQUENCE),
        _ => return Err(Status::INVALID_FIELD),
    };
    let it = target
        .controller(controller)
        .ok_or(Status::INTERNAL_ERROR)?;
    if log.is_some() {
        it.event_log = log;
    }
    Ok(it.event_log.clone().unwrap_or_default())
}
