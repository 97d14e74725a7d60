//! What the controller asks of the drives: the one place that knows what a served drive can do.

use model::management::{Health, LbaFormat, Lifetime};
use model::media::DriveConfig;

use super::protection::Protection;
use super::wire::Status;
use crate::port::Port;
use crate::served::{Outcome, Served};

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
    pub(super) power_limits_watts: Vec<f64>,
    pub(super) formats: Vec<LbaFormat>,
    /// Number of the one in use.
    pub(super) format: usize,
    /// Of a format or sanitize in progress.
    pub(super) percent_left: u8,
    pub(super) protection: Protection,
    pub(super) max_transfer: Option<u32>,
    pub(super) io_queues: u16,
}

fn kelvin(celsius: f64) -> u16 {
    (celsius + 273.15).round() as u16
}

impl Facts {
    pub(super) fn of(drive: &Served) -> Facts {
        let sheet = drive.sheet();
        let config: &DriveConfig = &sheet.config;
        Facts {
            vendor: sheet.nvme.vendor_id,
            model: sheet.nvme.model_number.clone(),
            serial: drive.serial().to_owned(),
            firmware: sheet.nvme.firmware.clone(),
            warning_kelvin: kelvin(sheet.management.thermal.warning_celsius),
            critical_kelvin: kelvin(sheet.management.thermal.critical_celsius),
            write_cache: config.volatile_write_cache(),
            bytes: drive.bytes(),
            power_limits_watts: sheet.management.power_limits_watts.clone(),
            formats: sheet.management.lba_formats.clone(),
            format: 0,
            percent_left: 0,
            protection: Protection::default(),
            max_transfer: config.max_transfer(),
            io_queues: sheet.io_queues,
        }
    }

    /// A name for the namespace that no other has: made of the drive's model and serial number.
    pub(super) fn nguid(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let text = [self.model.as_bytes(), b"/", self.serial.as_bytes()].concat();
        for (part, seed) in bytes.chunks_exact_mut(4).zip(1u8..) {
            let sum = crc32c::crc32c(&[text.as_slice(), &[seed]].concat());
            part.copy_from_slice(&sum.to_be_bytes());
        }
        bytes
    }

    /// The same in 64 bits, marked as locally administered.
    pub(super) fn eui64(&self) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = self.nguid();
        [a & 0xfc | 2, b, c, d, e, f, g, h]
    }
}

/// Health of a drive.
pub(super) fn health(port: &mut Port<'_>, drive: usize) -> Health {
    let served = port.drive(drive);
    let counters = *served.counters();
    Health {
        warning: Default::default(),
        celsius: served.sheet().management.thermal.ambient_celsius,
        available_spare: 100,
        spare_threshold: 10,
        watts: 0.0,
        lifetime: Lifetime {
            host_bytes_read: counters.bytes_read,
            host_bytes_written: counters.bytes_written,
            host_read_commands: counters.reads,
            host_write_commands: counters.writes,
            ..Lifetime::of_new(&served.sheet().config)
        },
    }
}

/// What the sanitize log says.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(dead_code, reason = "served drives do not sanitize yet")]
pub(super) enum Sanitized {
    Never,
    Done,
    /// The share that is done.
    InProgress(f64),
}

/// Whether a long operation has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code, reason = "served drives do not format yet")]
pub(super) enum Begun {
    Yes,
    /// Commands are inside.
    Busy,
    Refused,
}

pub(super) fn sanitized(_port: &mut Port<'_>, _drive: usize) -> Sanitized {
    Sanitized::Never
}

/// Whole seconds of wall time that a format takes.
pub(super) fn format_seconds(port: &mut Port<'_>, drive: usize) -> u32 {
    let span = port.drive(drive).sheet().config.format_duration();
    port.clock().on_the_wall(span).seconds().min(4e9) as u32
}

/// Bytes of metadata in the format of this number, if there is such a format.
pub(super) fn format_metadata(port: &mut Port<'_>, drive: usize, number: usize) -> Option<u16> {
    let formats = &port.drive(drive).sheet().management.lba_formats;
    formats.get(number).map(|format| format.metadata)
}

pub(super) fn begin_format(
    _port: &mut Port<'_>,
    _drive: usize,
    _number: usize,
    _protection: Protection,
) -> Begun {
    Begun::Refused
}

pub(super) fn begin_sanitize(_port: &mut Port<'_>, _drive: usize) -> Begun {
    Begun::Refused
}

/// Whether a format or sanitize is in progress.
pub(super) fn in_progress(_port: &mut Port<'_>, _drive: usize) -> bool {
    false
}

/// Sets the power state of this number.
pub(super) fn set_power_state(port: &mut Port<'_>, drive: usize, state: u32) -> Result<(), Status> {
    let limits = &port.drive(drive).sheet().management.power_limits_watts;
    if state as usize >= limits.len().max(1) {
        return Err(Status::INVALID_FIELD);
    }
    Ok(())
}

/// Whether a sanitize is in progress.
pub(super) fn sanitizing(_port: &mut Port<'_>, _drive: usize) -> bool {
    false
}

/// Metadata of the blocks from this one on.
pub(super) fn read_metadata(
    _drive: &mut Served,
    _block: u64,
    _metadata: &mut [u8],
) -> Result<(), Outcome> {
    Err(Outcome::UnrecoveredRead)
}

pub(super) fn write_metadata(
    _drive: &mut Served,
    _block: u64,
    _metadata: &[u8],
    _fua: bool,
) -> Result<(), Outcome> {
    Err(Outcome::WriteFault)
}

pub(super) fn forget_metadata(
    _drive: &mut Served,
    _first: u64,
    _blocks: u64,
) -> Result<(), Outcome> {
    Err(Outcome::WriteFault)
}

pub(super) fn make_unreadable(_drive: &mut Served, _offset: u64, _bytes: u32) {}
