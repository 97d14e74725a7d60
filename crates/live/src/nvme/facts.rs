//! What the controller asks of the drives: the one place that knows what a served drive can do.

use model::management::{Health, LbaFormat, Operation, Refusal, SanitizeStatus};
use model::media::Medium;

use super::extended;
use super::protection::Protection;
use super::wire::Status;
use crate::port::Port;
use crate::served::Served;

/// What a drive is.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) vendor: u16,
    pub(super) model: String,
    pub(super) serial: String,
    pub(super) firmware: String,
    pub(super) warning_kelvin: u16,
    pub(super) critical_kelvin: u16,
    pub(super) write_cache: bool,
    pub(super) bytes: u64,
    pub(super) read_only: bool,
    pub(super) power_limits_watts: Vec<f64>,
    pub(super) formats: Vec<LbaFormat>,
    /// Number of the one in use.
    pub(super) format: usize,
    pub(super) protection: Protection,
    pub(super) max_transfer: Option<u32>,
    pub(super) io_queues: u16,
}

fn drive_protection(drive: &Served) -> Protection {
    let tuple = extended::tuple(drive, drive.model().lba_format_number());
    Protection::of(drive.protection(), tuple)
}

fn kelvin(celsius: f64) -> u16 {
    (celsius + 273.15).round() as u16
}

impl Facts {
    pub(super) fn of(drive: &Served) -> Facts {
        let sheet = drive.sheet();
        let management = drive.model().management();
        Facts {
            vendor: sheet.nvme.vendor_id,
            model: sheet.nvme.model_number.clone(),
            serial: drive.serial().to_owned(),
            firmware: sheet.nvme.firmware.clone(),
            warning_kelvin: kelvin(management.thermal.warning_celsius),
            critical_kelvin: kelvin(management.thermal.critical_celsius),
            write_cache: drive.has_write_cache(),
            bytes: drive.bytes(),
            read_only: drive.read_only(),
            power_limits_watts: management.power_limits_watts.clone(),
            formats: management.lba_formats.clone(),
            format: drive.model().lba_format_number(),
            protection: drive_protection(drive),
            max_transfer: sheet.config.max_transfer(),
            io_queues: sheet.io_queues,
        }
    }

    /// A name for a namespace that no other has: made of the drive's model and serial number and, if hosts have created
    /// it, what makes it differ from the others on the drive.
    pub(super) fn nguid(&self, salt: u64) -> [u8; 16] {
        let mut bytes = [0; 16];
        let mut text = [self.model.as_bytes(), b"/", self.serial.as_bytes()].concat();
        if salt > 0 {
            text.push(b'/');
            text.extend_from_slice(&salt.to_le_bytes());
        }
        for (part, seed) in bytes.chunks_exact_mut(4).zip(1u8..) {
            let sum = crc32c::crc32c(&[text.as_slice(), &[seed]].concat());
            part.copy_from_slice(&sum.to_be_bytes());
        }
        bytes
    }

    /// The same in 64 bits, marked as locally administered.
    pub(super) fn eui64(&self, salt: u64) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = self.nguid(salt);
        [a & 0xfc | 2, b, c, d, e, f, g, h]
    }
}

/// Health of a drive.
pub(super) fn health(port: &mut Port<'_>, drive: usize) -> Health {
    let now = port.model_time(drive);
    port.drive(drive).health(now)
}

/// Ranges in bytes of a drive that cannot be read.
pub(super) fn unreadable(port: &mut Port<'_>, drive: usize) -> Vec<(u64, u64)> {
    port.drive(drive).unreadable()
}

/// Whether a long operation has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begun {
    Yes,
    /// Commands are inside.
    Busy,
    Refused,
}

impl Begun {
    fn of(port: &mut Port<'_>, drive: usize, result: Result<Operation, Refusal>) -> Begun {
        match result {
            Ok(operation) => {
                if port.clock().free() {
                    // Without a clock it is over at once.
                    port.drive(drive).operation(operation.until);
                }
                Begun::Yes
            }
            Err(Refusal::Busy) => Begun::Busy,
            Err(_) => Begun::Refused,
        }
    }
}

/// What the sanitize log says.
pub(super) fn sanitized(port: &mut Port<'_>, drive: usize) -> SanitizeStatus {
    let now = port.model_time(drive);
    port.drive(drive).sanitize_status(now)
}

/// Whole seconds of wall time that a format takes.
pub(super) fn format_seconds(port: &mut Port<'_>, drive: usize) -> u32 {
    let span = port.drive(drive).model().format_duration();
    port.clock().on_the_wall(span).seconds().min(4e9) as u32
}

/// Bytes of metadata in the format of this number, if there is such a format.
pub(super) fn format_metadata(port: &mut Port<'_>, drive: usize, number: usize) -> Option<u16> {
    let formats = &port.drive(drive).model().management().lba_formats;
    formats.get(number).map(|format| format.metadata)
}

/// Begins a format, which sets the protection information too.
pub(super) fn begin_format(port: &mut Port<'_>, drive: usize, number: usize, dps: u8) -> Begun {
    let now = port.model_time(drive);
    let result = port.drive(drive).format(now, number, dps);
    Begun::of(port, drive, result)
}

/// Protection information as a host wants it, of a format of this number.
pub(super) fn protection(port: &mut Port<'_>, drive: usize, number: usize, dps: u8) -> Protection {
    Protection::of(dps, extended::tuple(port.drive(drive), number))
}

/// A drive of which nothing is in use takes another format at once.
pub(super) fn adopt_format(port: &mut Port<'_>, drive: usize, number: usize, dps: u8) -> Begun {
    let now = port.model_time(drive);
    match port.drive(drive).adopt_format(now, number, dps) {
        Ok(()) => Begun::Yes,
        Err(Refusal::Busy) => Begun::Busy,
        Err(_) => Begun::Refused,
    }
}

/// Begins a sanitize.
pub(super) fn begin_sanitize(port: &mut Port<'_>, drive: usize) -> Begun {
    let now = port.model_time(drive);
    let result = port.drive(drive).sanitize(now);
    Begun::of(port, drive, result)
}

/// The format or sanitize in progress.
pub(super) fn operation(port: &mut Port<'_>, drive: usize) -> Option<Operation> {
    let now = port.model_time(drive);
    port.drive(drive).operation(now)
}

/// Percent of it that are left to do.
pub(super) fn percent_left(port: &mut Port<'_>, drive: usize) -> u8 {
    let now = port.model_time(drive);
    let operation = port.drive(drive).operation(now);
    operation.map_or(0, |it| (100.0 * (1.0 - it.progress(now))).ceil() as u8)
}

/// Sets the power state of this number.
///
/// # Errors
/// [`Status::INVALID_FIELD`] if the drive has no such state.
pub(super) fn set_power_state(port: &mut Port<'_>, drive: usize, state: u32) -> Result<(), Status> {
    let served = port.drive(drive);
    let limits = &served.model().management().power_limits_watts;
    match limits.get(state as usize) {
        Some(&watts) => served
            .set_power_limit(watts)
            .map_err(|_| Status::INVALID_FIELD),
        // A drive without a governor has one state.
        None if limits.is_empty() && state == 0 => Ok(()),
        None => Err(Status::INVALID_FIELD),
    }
}
