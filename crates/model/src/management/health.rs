//! Health as NVMe's SMART / Health Information log tells it, and the part of it that outlives a restart.
//!
//! Spare blocks that are used up are not modelled: available spare stays at 100 %.

use crate::media::{DriveConfig, Medium};
use crate::time::Span;

/// What a drive has been through: kept over restarts by whoever serves it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lifetime {
    /// Bytes the host has read.
    pub host_bytes_read: u64,
    /// Bytes the host has written.
    pub host_bytes_written: u64,
    /// Commands that read.
    pub host_read_commands: u64,
    /// Commands that write.
    pub host_write_commands: u64,
    /// Time with commands outstanding.
    pub busy: Span,
    /// Time with power.
    pub power_on: Span,
    /// Times it was switched on.
    pub power_cycles: u64,
    /// Times power went without a shutdown.
    pub unsafe_shutdowns: u64,
    /// Data that could not be given back.
    pub media_errors: u64,
    /// Entries ever made in the error log.
    pub error_log_entries: u64,
    /// Percent of rated endurance used, with fractions.
    pub percentage_used: f64,
    /// Time above the warning temperature.
    pub warm: Span,
    /// Time above the critical temperature.
    pub hot: Span,
    /// Number of the LBA format in use.
    pub lba_format: usize,
    /// Whether it has ever been sanitized to the end.
    pub sanitized: bool,
}

impl Lifetime {
    /// That of a drive which has been through nothing but what its configuration says.
    pub fn of_new(config: &DriveConfig) -> Lifetime {
        Lifetime {
            percentage_used: config.percentage_used(),
            ..Lifetime::default()
        }
    }
}

/// What is wrong with the drive as a whole: the bits of NVMe's Critical Warning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CriticalWarning {
    /// Available spare is below its threshold.
    pub spare: bool,
    /// At or above the warning temperature.
    pub temperature: bool,
    /// Less reliable than it was: the rated endurance is used up.
    pub reliability: bool,
    /// It takes no writes any more.
    pub read_only: bool,
    /// Its volatile memory is no longer backed up.
    pub backup: bool,
}

impl CriticalWarning {
    /// The byte as NVMe has it.
    pub const fn bits(self) -> u8 {
        self.spare as u8
            | (self.temperature as u8) << 1
            | (self.reliability as u8) << 2
            | (self.read_only as u8) << 3
            | (self.backup as u8) << 4
    }
}

/// Health at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Health {
    /// What is wrong.
    pub warning: CriticalWarning,
    /// Temperature of the whole drive in degrees Celsius.
    pub celsius: f64,
    /// Percent of the spare blocks that are left.
    pub available_spare: u8,
    /// Percent of them below which the drive warns.
    pub spare_threshold: u8,
    /// Mean watts since the health before was asked for; 0 where no time has passed.
    pub watts: f64,
    /// All that is counted over the drive's life.
    pub lifetime: Lifetime,
}

impl Health {
    /// Percentage Used as SMART has it: whole percent rounded down, 255 at most.
    pub fn percentage_used(&self) -> u8 {
        self.lifetime.percentage_used.clamp(0.0, 255.0) as u8
    }

    /// Thousands of 512 B read, rounded up.
    pub fn data_units_read(&self) -> u64 {
        self.lifetime.host_bytes_read.div_ceil(512_000)
    }

    /// Thousands of 512 B written, rounded up.
    pub fn data_units_written(&self) -> u64 {
        self.lifetime.host_bytes_written.div_ceil(512_000)
    }

    /// Minutes with commands outstanding.
    pub fn busy_minutes(&self) -> u64 {
        minutes(self.lifetime.busy)
    }

    /// Hours with power.
    pub fn power_on_hours(&self) -> u64 {
        minutes(self.lifetime.power_on) / 60
    }

    /// Minutes at or above the warning temperature and below the critical one.
    pub fn warning_minutes(&self) -> u64 {
        minutes(self.lifetime.warm)
    }

    /// Minutes at or above the critical temperature.
    pub fn critical_minutes(&self) -> u64 {
        minutes(self.lifetime.hot)
    }

    /// The temperature in whole kelvin, as NVMe has it.
    pub fn kelvin(&self) -> u16 {
        libm::round(self.celsius + 273.15).clamp(0.0, 65_535.0) as u16
    }
}

fn minutes(span: Span) -> u64 {
    span.ns() / 60_000_000_000
}
