//! A volume as a [`Medium`]: how it is built, and what its administrator may set and see.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Volume, VolumeConfig};
use crate::management::LbaFormat;
use crate::media::{Medium, MediumDrive, Precondition, Seeds};
use crate::time::Span;

impl Medium for VolumeConfig {
    type Drive = Volume;

    /// What was written before changes nothing but credits: a new volume has them all, one that was written until now has
    /// spent them.
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

    /// Limits stay what they are: clouds have them of the volume as it was bought.
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

    /// A volume has no FORMAT; a new one takes its place at once.
    fn format_duration(&self) -> Span {
        Span::ZERO
    }

    /// No cloud says.
    fn idle_watts(&self) -> f64 {
        0.0
    }
}

impl MediumDrive for Volume {
    type Config = VolumeConfig;
}
