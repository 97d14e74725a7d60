//! Health as reported by NVMe's SMART / Health Information log, and the part of it that survives a restart.
//!
//! Use of spare blocks is not modelled: available spare stays at 100 %.

use crate::media::Medium;
use crate::time::Span;

/// Counters over a drive's life, which the server of the drive stores across restarts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lifetime {
    /// Bytes the host has read.
    pub host_bytes_read: u64,
    /// Bytes the host has written.
    pub host_bytes_written: u64,
    /// Read commands of the host.
    pub host_read_commands: u64,
    /// Write commands of the host.
    pub host_write_commands: u64,
    /// Time with outstanding commands.
    pub busy: Span,
    /// Time powered on.
    pub power_on: Span,
    /// Number of power-ons.
    pub power_cycles: u64,
    /// Number of power losses without a shutdown.
    pub unsafe_shutdowns: u64,
    /// Number of reads whose data could not be returned.
    pub media_errors: u64,
    /// Number of entries ever written to the error log.
    pub error_log_entries: u64,
    /// Percent of rated endurance used, with fractions.
    pub percentage_used: f64,
    /// Time above the warning temperature.
    pub warm: Span,
    /// Time above the critical temperature.
    pub hot: Span,
    /// Number of the LBA format in use.
    pub lba_format: usize,
    /// Whether a sanitize has ever completed.
    pub sanitized: bool,
}

impl Lifetime {
    /// Returns the lifetime of a drive whose only history is that of its configuration.
    pub fn of_new(config: &impl Medium) -> Lifetime {
        Lifetime {
            percentage_used: config.percentage_used(),
            ..Lifetime::default()
        }
    }
}

/// Conditions of the drive as a whole: the bits of NVMe's Critical Warning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CriticalWarning {
    /// Available spare is below its threshold.
    pub spare: bool,
    /// At or above the warning temperature.
    pub temperature: bool,
    /// Reliability is degraded: the rated endurance is used up.
    pub reliability: bool,
    /// The drive accepts no more writes.
    pub read_only: bool,
    /// The volatile memory is no longer backed up.
    pub backup: bool,
}

impl CriticalWarning {
    /// Returns the byte as defined by NVMe.
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
    /// Conditions that cause a warning.
    pub warning: CriticalWarning,
    /// Temperature of the whole drive in degrees Celsius.
    pub celsius: f64,
    /// Percentage of spare blocks that are available.
    pub available_spare: u8,
    /// Threshold of that percentage below which the drive warns.
    pub spare_threshold: u8,
    /// Mean power in watts since the previous query of health; 0 if no time has passed.
    pub watts: f64,
    /// All counters over the drive's life.
    pub lifetime: Lifetime,
}

impl Health {
    /// Returns Percentage Used as in SMART: whole percent rounded down, at most 255.
    pub fn percentage_used(&self) -> u8 {
        self.lifetime.percentage_used.clamp(0.0, 255.0) as u8
    }

    /// Returns data read in units of 1000 x 512 B, rounded up.
    pub fn data_units_read(&self) -> u64 {
        self.lifetime.host_bytes_read.div_ceil(512_000)
    }

    /// Returns data written in units of 1000 x 512 B, rounded up.
    pub fn data_units_written(&self) -> u64 {
        self.lifetime.host_bytes_written.div_ceil(512_000)
    }

    /// Returns minutes with outstanding commands.
    pub fn busy_minutes(&self) -> u64 {
        minutes(self.lifetime.busy)
    }

    /// Returns hours powered on.
    pub fn power_on_hours(&self) -> u64 {
        minutes(self.lifetime.power_on) / 60
    }

    /// Returns minutes at or above the warning temperature and below the critical one.
    pub fn warning_minutes(&self) -> u64 {
        minutes(self.lifetime.warm)
    }

    /// Returns minutes at or above the critical temperature.
    pub fn critical_minutes(&self) -> u64 {
        minutes(self.lifetime.hot)
    }

    /// Returns the temperature in whole kelvin, as in NVMe.
    pub fn kelvin(&self) -> u16 {
        libm::round(self.celsius + 273.15).clamp(0.0, 65_535.0) as u16
    }
}

fn minutes(span: Span) -> u64 {
    span.ns() / 60_000_000_000
}
