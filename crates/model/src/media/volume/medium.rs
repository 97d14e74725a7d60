//! A volume as a [`Medium`]: construction, and administrative settings and properties.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Volume, VolumeConfig};
use crate::management::LbaFormat;
use crate::media::{Medium, MediumDrive, Precondition, Seeds};
use crate::time::Span;

impl Medium for VolumeConfig {
    type Drive = Volume;

    /// Earlier writes change nothing except credits: a new volume has all credits, and one that was written until now
    /// has spent them.
    fn build(&self, state: Precondition, seeds: impl Into<Seeds>) -> Volume {
        let credits = state == Precondition::Fresh;
        Volume::new(self.clone(), credits, seeds.into().run)
    }

    fn impossible(&self) -> Vec<String> {
        self.problems()
    }

    fn capacity_bytes(&self) -> u64 {
        self.bytes
    }

    /// Limits do not change: in clouds, they depend on the volume as purchased.
    fn shrunk(&self, bytes: u64) -> VolumeConfig {
        VolumeConfig {
            bytes: self.bytes.min((bytes / 4096).max(1) * 4096),
            ..self.clone()
        }
    }

    fn set_lba_format(&mut self, format: LbaFormat) {
        self.block = format.data;
        for ps_per_byte in [
            &mut self.path.read_ps_per_byte,
            &mut self.path.write_ps_per_byte,
            &mut self.store.read_ps_per_byte,
            &mut self.store.write_ps_per_byte,
        ] {
            *ps_per_byte = format.longer(*ps_per_byte);
        }
    }

    /// A volume has no FORMAT; a new volume replaces it at once.
    fn format_duration(&self) -> Span {
        Span::ZERO
    }

    /// Not published by any cloud.
    fn idle_watts(&self) -> f64 {
        0.0
    }
}

impl MediumDrive for Volume {
    type Config = VolumeConfig;
}
