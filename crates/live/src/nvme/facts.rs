//! Interface between the controller and the drives: the only place that knows the capabilities of a served drive.
//!
//! Admin commands query [`Drives`] and receive plain values, so that they can be tested without a drive.

use catalogue::VendorLogPages;
use model::Time;
use model::management::{Health, LbaFormat, Operation, Refusal, SanitizeStatus};
use model::media::Medium;

use super::extended;
use super::protection::{Protection, Tuple};
use super::vendor::VendorFacts;
use super::wire::Status;
use crate::clock::Wall;
use crate::port::{Notice, Port};
use crate::served::{Outcome, ServedDevice};
use crate::store::Share;
use workload::faults::Fault;

/// Properties of a drive.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) vendor: u16,
    /// Log pages in addition to those of NVMe.
    pub(super) log_pages: VendorLogPages,
    pub(super) model: String,
    pub(super) serial: String,
    pub(super) firmware: String,
    pub(super) warning_kelvin: u16,
    pub(super) critical_kelvin: u16,
    /// Whether the drive has a volatile write cache.
    pub(super) write_cache: bool,
    /// Whether the volatile write cache is enabled.
    pub(super) write_cache_enabled: bool,
    pub(super) bytes: u64,
    pub(super) read_only: bool,
    pub(super) power_limits_watts: Vec<f64>,
    pub(super) formats: Vec<LbaFormat>,
    /// Protection information that each format can hold.
    pub(super) tuples: Vec<Tuple>,
    /// Number of formats that are not the drive's own; these are the last ones.
    pub(super) added_formats: usize,
    /// Number of the format in use.
    pub(super) format: usize,
    pub(super) protection: Protection,
    pub(super) max_transfer: Option<u32>,
    pub(super) io_queues: u16,
    /// Division into namespaces by hosts; `None` if there is none.
    pub(super) shares: Option<Vec<Share>>,
    /// Whether the members of a pool store the data: no fused commands, no blocks made unreadable, no formats.
    pub(super) by_member: bool,
}

fn kelvin(celsius: f64) -> u16 {
    (celsius + 273.15).round() as u16
}

impl Facts {
    fn from_drive(drive: &ServedDevice) -> Facts {
        let sheet = drive.sheet();
        let management = drive.management();
        let mut formats = management.lba_formats.clone();
        if drive.is_by_member() {
            formats.truncate(1);
        }
        let added_formats = drive.added_formats();
        let tuples = extended::tuples(formats.len(), added_formats);
        let format = drive.lba_format_number();
        let tuple = tuples.get(format).copied().unwrap_or_default();
        Facts {
            vendor: sheet.nvme.vendor_id,
            log_pages: sheet.nvme.log_pages,
            model: sheet.nvme.model_number.clone(),
            serial: drive.serial().to_owned(),
            firmware: sheet.nvme.firmware.clone(),
            warning_kelvin: kelvin(management.thermal.warning_celsius),
            critical_kelvin: kelvin(management.thermal.critical_celsius),
            write_cache: drive.has_write_cache(),
            write_cache_enabled: drive.write_cache_enabled(),
            bytes: drive.bytes(),
            read_only: drive.read_only(),
            power_limits_watts: management.power_limits_watts.clone(),
            formats,
            tuples,
            added_formats,
            format,
            protection: Protection::from_bits(drive.protection(), tuple),
            max_transfer: sheet.config.max_transfer(),
            io_queues: sheet.io_queues,
            shares: drive.shares().map(<[Share]>::to_vec),
            by_member: drive.is_by_member(),
        }
    }

    /// Returns the protection information that a host requests, for the format with this number.
    pub(super) fn protection_of(&self, number: usize, dps: u8) -> Protection {
        Protection::from_bits(dps, self.tuples.get(number).copied().unwrap_or_default())
    }

    /// Returns a unique identifier of a namespace: made from the drive's model and serial number and, if a host has
    /// created the namespace, from a value that distinguishes it from the others on the drive.
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

    /// Returns a unique identifier of 64 bits, marked as locally administered.
    pub(super) fn eui64(&self, salt: u64) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = self.nguid(salt);
        [a & 0xfc | 2, b, c, d, e, f, g, h]
    }
}

/// Returns the NVMe status for a drive's outcome.
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

/// Whether a long operation has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StartResult {
    Yes,
    /// Not begun, because commands are in flight.
    Busy,
    Refused,
}

/// The drives as an administrator sees them, each by its index, and the connections that must be notified of changes.
pub(super) trait Drives {
    /// Returns the properties of the drive.
    fn facts(&mut self, drive: usize) -> Facts;
    /// Returns the present health.
    fn health(&mut self, drive: usize) -> Health;
    /// Returns the counters of log pages that are not NVMe's.
    fn vendor(&mut self, drive: usize) -> VendorFacts;
    /// Returns byte ranges (start, end) that cannot be read.
    fn unreadable(&mut self, drive: usize) -> Vec<(u64, u64)>;
    /// Returns a counter that changes with [`Drives::unreadable`].
    fn unreadable_changes(&mut self, drive: usize) -> u16;
    /// Returns the status in the sanitize log.
    fn sanitized(&mut self, drive: usize) -> SanitizeStatus;
    /// Returns the duration of a format in whole seconds of wall-clock time.
    fn format_seconds(&mut self, drive: usize) -> u32;
    /// Returns the format or sanitize in progress.
    fn operation(&mut self, drive: usize) -> Option<Operation>;
    /// Returns the time of the drive's model.
    fn now(&mut self, drive: usize) -> Time;
    /// Returns the wall-clock time.
    fn wall(&self) -> Wall;
    /// Checks whether the server runs at full speed, without a clock.
    fn free(&self) -> bool;

    /// Begins a format, which also sets the protection information.
    fn begin_format(&mut self, drive: usize, number: usize, dps: u8) -> StartResult;
    /// Switches a drive of which no part is in use to another format at once.
    fn adopt_format(&mut self, drive: usize, number: usize, dps: u8) -> StartResult;
    /// Begins a sanitize of the drive.
    fn begin_sanitize(&mut self, drive: usize) -> StartResult;
    /// Sets the power state with this number; an error if the drive does not have it.
    fn set_power_state(&mut self, drive: usize, state: u32) -> Result<(), Status>;
    /// Enables or disables the volatile write cache.
    fn enable_write_cache(&mut self, drive: usize, on: bool) -> Result<(), Status>;
    /// Discards the data of a range of bytes.
    fn discard(&mut self, drive: usize, first: u64, bytes: u64) -> Result<(), Status>;
    /// Saves the division of the drive.
    fn divide(&mut self, drive: usize, shares: Option<Vec<Share>>) -> Result<(), Status>;
    /// Cuts the power of the drive and restores it, after the answer.
    fn cut_power(&mut self, drive: usize) -> Result<(), Status>;
    /// Counts an entry in the error log.
    fn count_error(&mut self, drive: usize);

    /// Asks the connection with this number to check for events.
    fn ring(&mut self, endpoint: u32);
    /// Asks the calling connection to check for events.
    fn ring_back(&mut self);
    /// Notifies all connections.
    fn notify(&mut self, drive: usize, notice: Notice);
}

/// Returns the meaning of a refusal; without a clock, an operation that has begun is completed at once.
fn begun(port: &mut Port<'_>, drive: usize, result: Result<Operation, Refusal>) -> StartResult {
    match result {
        Ok(operation) => {
            if port.clock().free() {
                port.drive(drive).operation(operation.until);
            }
            StartResult::Yes
        }
        Err(Refusal::Busy) => StartResult::Busy,
        Err(_) => StartResult::Refused,
    }
}

impl Drives for Port<'_> {
    fn facts(&mut self, drive: usize) -> Facts {
        Facts::from_drive(self.drive(drive))
    }

    fn health(&mut self, drive: usize) -> Health {
        let now = self.model_time(drive);
        self.drive(drive).health(now)
    }

    fn vendor(&mut self, drive: usize) -> VendorFacts {
        let health = self.health(drive);
        VendorFacts::from_drive(self.drive(drive), health)
    }

    fn unreadable(&mut self, drive: usize) -> Vec<(u64, u64)> {
        self.drive(drive).unreadable()
    }

    fn unreadable_changes(&mut self, drive: usize) -> u16 {
        self.drive(drive).unreadable_changes()
    }

    fn sanitized(&mut self, drive: usize) -> SanitizeStatus {
        let now = self.model_time(drive);
        self.drive(drive).sanitize_status(now)
    }

    fn format_seconds(&mut self, drive: usize) -> u32 {
        let span = self.drive(drive).format_duration();
        self.clock().on_the_wall(span).seconds().min(4e9) as u32
    }

    fn operation(&mut self, drive: usize) -> Option<Operation> {
        let now = self.model_time(drive);
        self.drive(drive).operation(now)
    }

    fn now(&mut self, drive: usize) -> Time {
        self.model_time(drive)
    }

    fn wall(&self) -> Wall {
        Port::wall(self)
    }

    fn free(&self) -> bool {
        self.clock().free()
    }

    fn begin_format(&mut self, drive: usize, number: usize, dps: u8) -> StartResult {
        let now = self.model_time(drive);
        let result = self.drive(drive).format(now, number, dps);
        begun(self, drive, result)
    }

    fn adopt_format(&mut self, drive: usize, number: usize, dps: u8) -> StartResult {
        let now = self.model_time(drive);
        match self.drive(drive).adopt_format(now, number, dps) {
            Ok(()) => StartResult::Yes,
            Err(Refusal::Busy) => StartResult::Busy,
            Err(_) => StartResult::Refused,
        }
    }

    fn begin_sanitize(&mut self, drive: usize) -> StartResult {
        let now = self.model_time(drive);
        let result = self.drive(drive).sanitize(now);
        begun(self, drive, result)
    }

    fn set_power_state(&mut self, drive: usize, state: u32) -> Result<(), Status> {
        let served = self.drive(drive);
        let limits = &served.management().power_limits_watts;
        match limits.get(state as usize) {
            Some(&watts) => served
                .set_power_limit(watts)
                .map_err(|_| Status::INVALID_FIELD),
            // A drive without a governor has one state.
            None if limits.is_empty() && state == 0 => Ok(()),
            None => Err(Status::INVALID_FIELD),
        }
    }

    fn enable_write_cache(&mut self, drive: usize, on: bool) -> Result<(), Status> {
        let done = self.drive(drive).enable_write_cache(on);
        done.map_err(status_of)
    }

    fn discard(&mut self, drive: usize, first: u64, bytes: u64) -> Result<(), Status> {
        let now = self.model_time(drive);
        let gone = self.drive(drive).discard(now, first, bytes);
        gone.map_err(|_| Status::INTERNAL_ERROR)
    }

    fn divide(&mut self, drive: usize, shares: Option<Vec<Share>>) -> Result<(), Status> {
        let written = self.drive(drive).divide(shares);
        written.map_err(|_| Status::INTERNAL_ERROR)
    }

    fn cut_power(&mut self, drive: usize) -> Result<(), Status> {
        let cut = self.fault(drive.into(), Fault::PowerCut);
        cut.map_err(|_| Status::INTERNAL_ERROR)
    }

    fn count_error(&mut self, drive: usize) {
        self.drive(drive).count_error_log_entry();
    }

    fn ring(&mut self, endpoint: u32) {
        Port::ring(self, endpoint);
    }

    fn ring_back(&mut self) {
        Port::ring(self, self.me());
    }

    fn notify(&mut self, drive: usize, notice: Notice) {
        Port::notify(self, drive, notice);
    }
}
