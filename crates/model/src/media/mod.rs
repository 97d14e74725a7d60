//! Drives by the medium inside. To add a medium: one file here, and one line in each `match` below.

pub mod nand;
pub mod ram;
pub mod xpoint;

use crate::command::{Command, Completion};
use crate::device::{Capacity, Device, Gauges};
use crate::tier::raid0::{Raid0, Raid0Config};
use crate::time::Time;

/// The state a drive is in when a run begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Precondition {
    /// As it left the factory: nothing written.
    Fresh,
    /// Written once from end to end, sequentially.
    Filled,
    /// As after two fills with 4 KiB random writes: garbage collection in its steady state.
    #[default]
    Steady,
}

impl Precondition {
    /// As options and results name it.
    pub fn name(self) -> &'static str {
        match self {
            Precondition::Fresh => "fresh",
            Precondition::Filled => "filled",
            Precondition::Steady => "steady",
        }
    }
}

/// What a drive is made of: valid by construction, made by the catalogue.
#[derive(Clone, PartialEq, Debug)]
pub enum DriveConfig {
    /// A RAM disk.
    Ram(ram::RamConfig),
    /// 3D XPoint.
    XPoint(Box<xpoint::XPointConfig>),
    /// A NAND drive.
    Nand(Box<nand::NandConfig>),
    /// Several drives as one.
    Raid0(Raid0Config),
}

/// Any drive, dispatched without a virtual call.
#[derive(Clone, Debug)]
pub enum Drive {
    /// A RAM disk.
    Ram(ram::Ram),
    /// 3D XPoint.
    XPoint(Box<xpoint::XPoint>),
    /// A NAND drive.
    Nand(Box<nand::Nand>),
    /// Several drives as one.
    Raid0(Box<Raid0<Drive>>),
}

impl Drive {
    /// Builds the drive in this state; `seed` feeds its random streams.
    pub fn new(config: &DriveConfig, state: Precondition, seed: u64) -> Drive {
        match config {
            DriveConfig::Ram(config) => Drive::Ram(ram::Ram::new(config.clone())),
            // Written in place: what was written before changes nothing.
            DriveConfig::XPoint(config) => {
                Drive::XPoint(Box::new(xpoint::XPoint::new((**config).clone(), seed)))
            }
            DriveConfig::Raid0(config) => {
                Drive::Raid0(Box::new(Raid0::of_drives(config, state, seed)))
            }
            DriveConfig::Nand(config) => {
                Drive::Nand(Box::new(nand::Nand::new((**config).clone(), state, seed)))
            }
        }
    }

    /// The drive that [`Drive::new`] builds, in the memory of one that has served: for who runs one plan after the
    /// other. Only a NAND drive has tables that are worth it.
    pub fn anew(self, config: &DriveConfig, state: Precondition, seed: u64) -> Drive {
        match (self, config) {
            (Drive::Nand(used), DriveConfig::Nand(config)) => {
                Drive::Nand(Box::new(used.anew((**config).clone(), state, seed)))
            }
            (Drive::Raid0(used), DriveConfig::Raid0(config)) => {
                Drive::Raid0(Box::new(used.anew(config, state, seed)))
            }
            (used, config) => {
                drop(used);
                Drive::new(config, state, seed)
            }
        }
    }
}

/// Calls the same method on whichever drive it is.
macro_rules! each {
    ($drive:expr, $inner:ident => $call:expr) => {
        match $drive {
            Drive::Ram($inner) => $call,
            Drive::XPoint($inner) => $call,
            Drive::Nand($inner) => $call,
            Drive::Raid0($inner) => $call,
        }
    };
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
    fn advance(&mut self, now: Time, done: &mut Vec<Completion>) {
        each!(self, drive => drive.advance(now, done))
    }
    #[inline]
    fn advance_through(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        each!(self, drive => drive.advance_through(now, horizon, done))
    }
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        each!(self, drive => drive.inspect(now, gauges))
    }
}

impl DriveConfig {
    /// Bytes a host can address.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            DriveConfig::Ram(config) => config.bytes,
            DriveConfig::XPoint(config) => config.bytes,
            DriveConfig::Nand(config) => config.geometry.capacity,
            DriveConfig::Raid0(config) => config.capacity_bytes(),
        }
    }

    /// A drive that behaves like this one under uniform random writes but has only about `bytes`, so that it reaches
    /// its steady state after fewer of them. What happens then happens after the same number of fills; how much
    /// smaller it is says [`DriveConfig::capacity_bytes`]. A drive that is smaller already stays as it is.
    pub fn shrunk(&self, bytes: u64) -> DriveConfig {
        let mut shrunk = self.clone();
        let fewer = |all: &mut u64| *all = (*all).min((bytes / 4096).max(1) * 4096);
        match &mut shrunk {
            DriveConfig::Ram(config) => fewer(&mut config.bytes),
            // Written in place: only fewer addresses are in use.
            DriveConfig::XPoint(config) => fewer(&mut config.bytes),
            DriveConfig::Nand(config) => **config = config.shrunk(bytes),
            DriveConfig::Raid0(config) => {
                let each = bytes / config.members.len().max(1) as u64;
                for member in &mut config.members {
                    *member = member.shrunk(each);
                }
            }
        }
        shrunk
    }
}
