//! A drive of any kind: one of the media of `model`, or a composition of drives. To add a medium: see
//! [`model::media`], and its line in `media!` below.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::command::{Command, Completion};
use model::device::{Capacity, Device, Gauges, Range};
use model::management::{LbaFormat, Refusal};
use model::media::{Medium, MediumDrive, Precondition, Seeds, hdd, nand, ram, volume, xpoint};
use model::time::{Span, Time};

use crate::raid0::{Raid0, Raid0Config};
use crate::{Pool, PoolConfig};

/// Defines the two enums of all media, and forwards calls to the respective medium.
macro_rules! media {
    ($($(#[$doc:meta])* $name:ident: $config:ty => $drive:ty,)*) => {
        /// Configuration of a drive: valid by construction, created by the catalogue.
        #[derive(Clone, PartialEq, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum DriveConfig {
            $($(#[$doc])* $name($config),)*
        }

        /// Any drive, dispatched without a virtual call.
        #[derive(Clone, Debug)]
        pub enum Drive {
            $($(#[$doc])* $name($drive),)*
        }

        /// Evaluates an expression for a configuration of any medium.
        macro_rules! each_config {
            ($this:expr, $inner:ident => $call:expr) => {
                match $this { $(DriveConfig::$name($inner) => $call,)* }
            };
        }

        /// Evaluates an expression for a drive of any medium.
        macro_rules! each {
            ($this:expr, $inner:ident => $call:expr) => {
                match $this { $(Drive::$name($inner) => $call,)* }
            };
        }

        impl DriveConfig {
            fn build_any(&self, state: Precondition, seeds: Seeds) -> Drive {
                match self {
                    $(DriveConfig::$name(config) => Drive::$name(config.build(state, seeds).into()),)*
                }
            }

            fn shrunk_any(&self, bytes: u64) -> DriveConfig {
                match self {
                    $(DriveConfig::$name(config) => DriveConfig::$name(config.shrunk(bytes).into()),)*
                }
            }
        }

        impl Drive {
            fn reset_any(self, config: &DriveConfig, state: Precondition, seeds: Seeds) -> Drive {
                match (self, config) {
                    $((Drive::$name(used), DriveConfig::$name(config)) => {
                        Drive::$name(used.reset(config, state, seeds).into())
                    })*
                    (used, config) => {
                        drop(used);
                        config.build(state, seeds)
                    }
                }
            }
        }
    };
}

media! {
    /// A RAM disk.
    Ram: ram::RamConfig => ram::Ram,
    /// 3D XPoint.
    XPoint: Box<xpoint::XPointConfig> => Box<xpoint::XPoint>,
    /// A NAND drive.
    Nand: Box<nand::NandConfig> => Box<nand::Nand>,
    /// A hard disk.
    Hdd: Box<hdd::HddConfig> => Box<hdd::Hdd>,
    /// A volume of a cloud or hypervisor.
    Volume: Box<volume::VolumeConfig> => Box<volume::Volume>,
    /// Several drives as one.
    Raid0: Raid0Config<DriveConfig> => Box<Raid0<Drive>>,
    /// Several drives combined by tiers.
    Pool: Box<PoolConfig<DriveConfig>> => Box<Pool<Drive>>,
}

impl Drive {
    /// Creates the drive in this state; the seeds initialise its random streams.
    pub fn new(config: &DriveConfig, state: Precondition, seeds: impl Into<Seeds>) -> Drive {
        config.build(state, seeds)
    }

    /// Returns the drive as a trait object, for callers with one code path for all media. Calls are then virtual.
    pub fn as_device(&mut self) -> &mut dyn Device {
        each!(self, drive => drive)
    }
}

impl Device for Drive {
    fn capacity(&self) -> Capacity {
        each!(self, drive => drive.capacity())
    }
    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        each!(self, drive => drive.submit(now, command))
    }
    #[inline]
    fn next_event(&self) -> Time {
        each!(self, drive => drive.next_event())
    }
    #[inline]
    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        each!(self, drive => drive.advance(now, horizon, done))
    }
    fn at_risk(&self, ranges: &mut Vec<Range>) {
        each!(self, drive => drive.at_risk(ranges))
    }
    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        each!(self, drive => drive.power_cut(now, lost))
    }
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        each!(self, drive => drive.inspect(now, gauges))
    }
}

impl MediumDrive for Drive {
    type Config = DriveConfig;

    fn reset(self, config: &DriveConfig, state: Precondition, seeds: impl Into<Seeds>) -> Drive {
        self.reset_any(config, state, seeds.into())
    }
    fn know(&mut self, states: &[Arc<nand::WarmState>], again: bool) {
        each!(self, drive => drive.know(states, again));
    }
    fn warm_states(&self, tell: &mut dyn FnMut(&Arc<nand::WarmState>)) {
        each!(self, drive => drive.warm_states(tell));
    }
    fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        each!(self, drive => drive.set_power_limit(watts))
    }
    fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        each!(self, drive => drive.set_percentage_used(percent))
    }
    fn power_on(&mut self, now: Time) {
        each!(self, drive => drive.power_on(now));
    }
    fn prepare(&mut self) {
        each!(self, drive => drive.prepare());
    }
    fn scattered_tables(&mut self, tell: &mut dyn FnMut(core::ops::Range<*const u8>)) {
        each!(self, drive => drive.scattered_tables(tell));
    }
}

impl Medium for DriveConfig {
    type Drive = Drive;

    fn build(&self, state: Precondition, seeds: impl Into<Seeds>) -> Drive {
        self.build_any(state, seeds.into())
    }
    fn impossible(&self) -> Vec<String> {
        each_config!(self, config => config.impossible())
    }
    fn capacity_bytes(&self) -> u64 {
        each_config!(self, config => config.capacity_bytes())
    }
    fn shrunk(&self, bytes: u64) -> DriveConfig {
        self.shrunk_any(bytes)
    }
    fn set_lba_format(&mut self, format: LbaFormat) {
        each_config!(self, config => config.set_lba_format(format));
    }
    fn format_duration(&self) -> Span {
        each_config!(self, config => config.format_duration())
    }
    fn idle_watts(&self) -> f64 {
        each_config!(self, config => config.idle_watts())
    }
    fn raw_bytes(&self) -> Option<u64> {
        each_config!(self, config => config.raw_bytes())
    }
    fn max_transfer(&self) -> Option<u32> {
        each_config!(self, config => config.max_transfer())
    }
    fn volatile_bytes(&self) -> u64 {
        each_config!(self, config => config.volatile_bytes())
    }
    fn volatile_write_cache(&self) -> bool {
        each_config!(self, config => config.volatile_write_cache())
    }
    fn percentage_used(&self) -> f64 {
        each_config!(self, config => config.percentage_used())
    }
    fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        each_config!(self, config => config.set_percentage_used(percent))
    }
    fn set_wear_factor(&mut self, factor: f64) -> Result<(), Refusal> {
        each_config!(self, config => config.set_wear_factor(factor))
    }
    fn read_only_percent(&self) -> Option<f64> {
        each_config!(self, config => config.read_only_percent())
    }
    fn collects(&self) -> bool {
        each_config!(self, config => config.collects())
    }
    fn set_overprovision(&mut self, share: f64) -> Result<(), Refusal> {
        each_config!(self, config => config.set_overprovision(share))
    }
    fn set_filled(&mut self, share: f64) -> Result<(), Refusal> {
        each_config!(self, config => config.set_filled(share))
    }
    fn write_protect_percent(&self) -> Option<f64> {
        each_config!(self, config => config.write_protect_percent())
    }
    fn power_limit_watts(&self) -> Option<f64> {
        each_config!(self, config => config.power_limit_watts())
    }
    fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        each_config!(self, config => config.set_power_limit(watts))
    }
    fn set_uptime(&mut self, uptime: Span) -> Result<(), Refusal> {
        each_config!(self, config => config.set_uptime(uptime))
    }
}
