//! The model that times commands, and the place of the data: one drive with its data in a separate store, or a pool
//! whose members have the data.

use model::management::{Health, LbaFormat, ManagedDrive, Management, Operation, Refusal};
use model::{Command, Completion, Device, Gauges, Span, Time};
use tier::Drive;

use super::data::DriveData;
use super::pooled::ServedPool;

/// A drive, and data that the drive's model does not hold itself.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) drive: ManagedDrive<Drive>,
    pub(super) data: DriveData,
}

/// A single drive or a pool.
#[derive(Debug)]
pub(super) enum Machine {
    Drive(Box<Plain>),
    Pool(Box<ServedPool>),
}

/// Refusal of an operation that a pool does not support.
pub(super) const BY_MEMBER: Refusal =
    Refusal::Unsupported("a pool that keeps its data by member cannot be formatted or sanitized");

impl Machine {
    #[inline]
    pub(super) fn submit(&mut self, now: Time, command: Command) {
        match self {
            Machine::Drive(it) => it.drive.submit(now, command),
            Machine::Pool(pool) => pool.submit(now, command),
        }
    }

    #[inline]
    pub(super) fn next_event(&self) -> Time {
        match self {
            Machine::Drive(it) => it.drive.next_event(),
            Machine::Pool(pool) => pool.next_event(),
        }
    }

    #[inline]
    pub(super) fn advance(&mut self, now: Time, done: &mut Vec<Completion>) {
        match self {
            Machine::Drive(it) => {
                it.drive.advance(now, now, done);
            }
            Machine::Pool(pool) => pool.advance(now, done),
        }
    }

    pub(super) fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        match self {
            Machine::Drive(it) => it.drive.inspect(now, gauges),
            Machine::Pool(pool) => pool.inspect(now, gauges),
        }
    }

    /// Calls `what` with each drive of the machine.
    pub(super) fn each_drive(&mut self, mut what: impl FnMut(&mut ManagedDrive<Drive>)) {
        match self {
            Machine::Drive(it) => what(&mut it.drive),
            Machine::Pool(pool) => pool.each_drive(what).for_each(drop),
        }
    }

    /// Returns the format in use; a pool uses the first of `offered`.
    #[inline]
    pub(super) fn lba_format(&self, offered: &Management) -> LbaFormat {
        match self {
            Machine::Drive(it) => it.drive.lba_format(),
            Machine::Pool(_) => offered.lba_formats[0],
        }
    }

    pub(super) fn health(&mut self, now: Time) -> Health {
        match self {
            Machine::Drive(it) => it.drive.health(now),
            Machine::Pool(pool) => pool.health(now),
        }
    }

    #[inline]
    pub(super) fn operation(&mut self, now: Time) -> Option<Operation> {
        match self {
            Machine::Drive(it) => it.drive.operation(now),
            Machine::Pool(_) => None,
        }
    }

    pub(super) fn format_duration(&self) -> Span {
        match self {
            Machine::Drive(it) => it.drive.format_duration(),
            Machine::Pool(_) => Span::ZERO,
        }
    }

    pub(super) fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        match self {
            Machine::Drive(it) => it.drive.set_power_limit(watts),
            Machine::Pool(pool) => pool.set_power_limit(watts),
        }
    }

    pub(super) fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        match self {
            Machine::Drive(it) => it.drive.set_percentage_used(percent),
            Machine::Pool(pool) => pool.set_percentage_used(percent),
        }
    }

    /// Returns the single drive, to be formatted or sanitized.
    ///
    /// # Errors
    /// It is a pool.
    pub(super) fn drive_alone(&mut self) -> Result<&mut ManagedDrive<Drive>, Refusal> {
        match self {
            Machine::Drive(it) => Ok(&mut it.drive),
            Machine::Pool(_) => Err(BY_MEMBER),
        }
    }
}
