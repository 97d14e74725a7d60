//! How often drives fail, and how often a block cannot be read, by class of drive.
//!
//! A rate is of failures after which the drive is replaced. Models of one class differ by a factor of ten, and no source here names the
//! drives of the catalogue, so each rate has a range, and an answer has one too. Left out: age (infant mortality, wear: `drivelab life`),
//! drives that fail together (one batch, one firmware, one power supply), heat.
//!
//! Sources stand beside each rate. Those marked "from memory" were not read again when they were entered.

use catalogue::DriveSheet;
use model::media::{DriveConfig, Medium};
use serde::Serialize;

/// Drives that fail alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Hard disks.
    HardDisk,
    /// Flash drives whose write cache is not volatile.
    DataCentreFlash,
    /// Flash drives with a volatile write cache.
    ClientFlash,
    /// 3D XPoint.
    XPoint,
}

/// Failures and unreadable blocks of a class.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FailureRate {
    /// Share of drives that fail in a year: typical, least and greatest.
    pub per_year: [f64; 3],
    /// Where that is from.
    pub source: &'static str,
    /// Unreadable sectors for each bit that is read, at most.
    pub unreadable_per_bit: f64,
    /// Where that is from.
    pub unreadable_source: &'static str,
}

impl Class {
    /// The class of a drive; `None` for memory and for volumes of clouds, whose providers repair them.
    pub fn new(drive: &DriveSheet) -> Option<Class> {
        match &drive.config {
            DriveConfig::Hdd(_) => Some(Class::HardDisk),
            DriveConfig::XPoint(_) => Some(Class::XPoint),
            DriveConfig::Nand(_) | DriveConfig::Raid0(_) => {
                match drive.config.volatile_write_cache() {
                    false => Some(Class::DataCentreFlash),
                    true => Some(Class::ClientFlash),
                }
            }
            _ => None,
        }
    }

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Class::HardDisk => "hard disk",
            Class::DataCentreFlash => "flash with PLP",
            Class::ClientFlash => "flash without PLP",
            Class::XPoint => "3D XPoint",
        }
    }

    /// What is published of it.
    pub const fn rate(self) -> FailureRate {
        match self {
            Class::HardDisk => FailureRate {
                per_year: [0.0157, 0.0035, 0.0228],
                source: "Backblaze Drive Stats: 1.57 % in 2024, 2.28 % in the second quarter of 2023; least: 2.5 million hours MTBF, as makers rate nearline disks (from memory)",
                unreadable_per_bit: 1e-15,
                unreadable_source: "makers' limit for nearline disks, 1 sector in 10^15 bits (from memory)",
            },
            Class::DataCentreFlash => FailureRate {
                per_year: [0.0022, 0.0007, 0.012],
                source: "Maneas et al., FAST 2020, 1.4 million drives: 0.22 % are replaced in a year, 0.07 to 1.2 % by model (from memory)",
                unreadable_per_bit: 1e-16,
                unreadable_source: "JESD218, enterprise class, at most 1 in 10^16 bits (from memory)",
            },
            Class::ClientFlash => FailureRate {
                per_year: [0.009, 0.0058, 0.02],
                source: "Backblaze, SSDs that servers boot from: about 0.9 % (2023); least: 1.5 million hours MTBF, as makers rate them; greatest: assumed (from memory)",
                unreadable_per_bit: 1e-15,
                unreadable_source: "JESD218, client class, at most 1 in 10^15 bits (from memory)",
            },
            Class::XPoint => FailureRate {
                per_year: [0.0044, 0.0007, 0.012],
                source: "Intel's 2 million hours MTBF (from memory); nobody has published a fleet: the range is assumed, that of flash with PLP",
                unreadable_per_bit: 1e-17,
                unreadable_source: "Intel's limit for data-centre drives, 1 sector in 10^17 bits (from memory)",
            },
        }
    }
}
