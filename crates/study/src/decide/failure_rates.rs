//! Failure rates of drives, and rates of unreadable blocks, by class of drive.
//!
//! A rate counts failures after which the drive is replaced. Models of one class differ by a factor of ten, and no
//! source names the drives of the catalogue. Each rate therefore has a range, and so does an answer. Not modelled:
//! age (infant mortality, wear: `drivelab life`), common failures of several drives (one batch, one firmware, one
//! power supply), heat.
//!
//! Each rate has its source. Sources marked "from memory" were not read again when the rates were entered.

use catalogue::DriveSheet;
use model::media::Medium;
use serde::Serialize;
use tier::DriveConfig;

/// Drives with similar failure rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveClass {
    /// Rotating magnetic disks.
    HardDisk,
    /// Flash drives whose write cache is not volatile.
    DataCentreFlash,
    /// Flash drives with a volatile write cache.
    ClientFlash,
    /// 3D XPoint.
    XPoint,
}

/// Failure rate, and rate of unreadable blocks, of a class.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FailureRate {
    /// Annual failure rate as a share: typical, lowest and highest.
    pub per_year: [f64; 3],
    /// Source of the failure rate.
    pub source: &'static str,
    /// Unreadable sectors per bit read, at most.
    pub unreadable_per_bit: f64,
    /// Source of the rate of unreadable sectors.
    pub unreadable_source: &'static str,
}

impl DriveClass {
    /// Returns the class of a drive; `None` for memory and for cloud volumes, whose providers repair them.
    pub fn new(drive: &DriveSheet) -> Option<DriveClass> {
        match &drive.config {
            DriveConfig::Hdd(_) => Some(DriveClass::HardDisk),
            DriveConfig::XPoint(_) => Some(DriveClass::XPoint),
            DriveConfig::Nand(_) | DriveConfig::Raid0(_) => {
                match drive.config.volatile_write_cache() {
                    false => Some(DriveClass::DataCentreFlash),
                    true => Some(DriveClass::ClientFlash),
                }
            }
            _ => None,
        }
    }

    /// Returns the name for readers.
    pub const fn name(self) -> &'static str {
        match self {
            DriveClass::HardDisk => "hard disk",
            DriveClass::DataCentreFlash => "flash with PLP",
            DriveClass::ClientFlash => "flash without PLP",
            DriveClass::XPoint => "3D XPoint",
        }
    }

    /// Returns the published rates.
    pub const fn rate(self) -> FailureRate {
        match self {
            DriveClass::HardDisk => FailureRate {
                per_year: [0.0157, 0.0035, 0.0228],
                source: "Backblaze Drive Stats: 1.57 % in 2024, 2.28 % in the second quarter of 2023; least: 2.5 million hours MTBF, as makers rate nearline disks (from memory)",
                unreadable_per_bit: 1e-15,
                unreadable_source: "makers' limit for nearline disks, 1 sector in 10^15 bits (from memory)",
            },
            DriveClass::DataCentreFlash => FailureRate {
                per_year: [0.0022, 0.0007, 0.012],
                source: "Maneas et al., FAST 2020, 1.4 million drives: 0.22 % are replaced in a year, 0.07 to 1.2 % by model (from memory)",
                unreadable_per_bit: 1e-16,
                unreadable_source: "JESD218, enterprise class, at most 1 in 10^16 bits (from memory)",
            },
            DriveClass::ClientFlash => FailureRate {
                per_year: [0.009, 0.0058, 0.02],
                source: "Backblaze, SSDs that servers boot from: about 0.9 % (2023); least: 1.5 million hours MTBF, as makers rate them; greatest: assumed (from memory)",
                unreadable_per_bit: 1e-15,
                unreadable_source: "JESD218, client class, at most 1 in 10^15 bits (from memory)",
            },
            DriveClass::XPoint => FailureRate {
                per_year: [0.0044, 0.0007, 0.012],
                source: "Intel's 2 million hours MTBF (from memory); no study of a fleet is known: the range of flash with PLP is assumed",
                unreadable_per_bit: 1e-17,
                unreadable_source: "Intel's limit for data-centre drives, 1 sector in 10^17 bits (from memory)",
            },
        }
    }
}
