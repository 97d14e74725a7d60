//! A hard disk as a [`Medium`]: construction, and administrative settings and properties.

use alloc::string::String;
use alloc::vec::Vec;

use super::geometry::DiskGeometry;
use super::{Hdd, HddConfig};
use crate::management::LbaFormat;
use crate::media::{Medium, MediumDrive, Precondition, Seeds};
use crate::time::Span;

impl Medium for HddConfig {
    type Drive = Hdd;

    /// Written in place: earlier writes have no effect.
    fn build(&self, _state: Precondition, seeds: impl Into<Seeds>) -> Hdd {
        Hdd::new(self.clone(), seeds.into().run)
    }

    fn impossible(&self) -> Vec<String> {
        self.problems()
    }

    fn capacity_bytes(&self) -> u64 {
        self.bytes
    }

    /// Fewer surfaces and cylinders, with tracks of the same length; the arm takes the same time for the same share of
    /// the cylinders. Surfaces are reduced first: with few cylinders, too many waiting writes would be on one of them.
    fn shrunk(&self, bytes: u64) -> HddConfig {
        let bytes = self.bytes.min((bytes / 4096).max(1) * 4096);
        let mut small = HddConfig {
            bytes,
            ..self.clone()
        };
        let heads = u128::from(self.disk.heads) * u128::from(bytes) / u128::from(self.bytes);
        small.disk.heads = (heads as u32).max(1);
        small
    }

    fn set_lba_format(&mut self, format: LbaFormat) {
        self.link.ps_per_byte = format.longer(self.link.ps_per_byte);
        // The part of a track available for data shrinks by that share.
        let shorter = |rate: u64| {
            let share =
                f64::from(format.data) / f64::from(format.data + u32::from(format.metadata));
            (rate as f64 * share) as u64
        };
        self.disk.outer = shorter(self.disk.outer);
        self.disk.inner = shorter(self.disk.inner);
        self.block = format.data;
        self.disk.sector = self.disk.sector.max(format.data);
    }

    /// The whole disk is written sequentially.
    fn format_duration(&self) -> Span {
        Span::from_ns(DiskGeometry::new(self).whole())
    }

    fn idle_watts(&self) -> f64 {
        self.power.idle
    }

    fn volatile_bytes(&self) -> u64 {
        if self.write_cache {
            self.buffer.write
        } else {
            0
        }
    }
}

impl MediumDrive for Hdd {
    type Config = HddConfig;
}
