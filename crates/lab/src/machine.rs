//! A drive in a host: the only place where both are combined.
//!
//! The settings of each that depend on the other are made here: the number of submission queues between the host and
//! this drive, and whether the host sends flushes.

use std::num::NonZeroU16;

use catalogue::{DriveSheet, HostSheet};
use model::host::{HostConfig, ProgramCosts, SchedulerConfig};
use model::media::Medium;
use serde::{Deserialize, Serialize};
use tier::DriveConfig;

/// A drive in a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Machine {
    name: String,
    drive: DriveConfig,
    host: HostConfig,
    costs: Option<ProgramCosts>,
}

/// Returns the scheduler with the properties of this drive. Linux' NVMe driver has 1023 entries in a queue.
fn scheduler(drive: &DriveConfig, host: SchedulerConfig) -> SchedulerConfig {
    const NVME: u32 = 1023;
    const NCQ: u32 = 32;
    let (slots, rotational) = match drive {
        DriveConfig::Hdd(_) => (NCQ, true),
        DriveConfig::Nand(config) => (config.controller.slots.map_or(NVME, u32::from), false),
        _ => (NVME, false),
    };
    SchedulerConfig {
        slots,
        rotational,
        ..host
    }
}

/// Serialised form of a machine.
#[derive(Deserialize)]
struct Written {
    name: String,
    drive: DriveConfig,
    host: HostConfig,
    costs: Option<ProgramCosts>,
}

impl TryFrom<Written> for Machine {
    type Error = String;

    fn try_from(written: Written) -> Result<Machine, String> {
        let problems = written.drive.impossible();
        if !problems.is_empty() {
            return Err(format!("impossible drive: {}", problems.join("; ")));
        }
        let machine = Machine::from_configs(&written.name, written.drive, written.host);
        Ok(Machine {
            costs: written.costs,
            ..machine
        })
    }
}

impl Machine {
    /// Combines a drive and a host of the catalogue.
    pub fn new(drive: &DriveSheet, host: &HostSheet) -> Machine {
        let config = HostConfig {
            io_queues: NonZeroU16::new(drive.io_queues),
            power_transitions: drive.power_transitions(&host.config),
            ..host.config.clone()
        };
        Machine {
            costs: host.act,
            ..Machine::from_configs(&drive.id, drive.config.clone(), config)
        }
    }

    /// Combines a drive and a host without files; messages call the drive `name`.
    pub fn from_configs(name: &str, drive: DriveConfig, host: HostConfig) -> Machine {
        let on_memory_bus = matches!(&drive, DriveConfig::Ram(ram) if ram.memory_bus.is_some());
        let host = match on_memory_bus {
            true => host.without_interrupts(),
            false => host,
        };
        Machine {
            name: name.to_owned(),
            host: HostConfig {
                // A drive without a volatile cache gets no flushes.
                write_through: !drive.volatile_write_cache(),
                scheduler: scheduler(&drive, host.scheduler),
                ..host
            },
            drive,
            costs: None,
        }
    }

    /// Returns this host with another drive, and as many queues.
    pub fn with_drive(&self, drive: DriveConfig) -> Machine {
        Machine {
            costs: self.costs,
            ..Machine::from_configs(&self.name, drive, self.host.clone())
        }
    }

    /// Returns the machine with a changed host.
    pub fn with_host(mut self, change: impl FnOnce(&mut HostConfig)) -> Machine {
        change(&mut self.host);
        self.host.scheduler = scheduler(&self.drive, self.host.scheduler);
        self.host.write_through = !self.drive.volatile_write_cache();
        self
    }

    /// Returns the machine with a program's costs in addition to its I/O.
    pub fn with_costs(mut self, costs: ProgramCosts) -> Machine {
        self.costs = Some(costs);
        self
    }

    /// Returns the machine with another name.
    pub(crate) fn named(mut self, name: &str) -> Machine {
        self.name = name.to_owned();
        self
    }

    /// Returns the name of the drive in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the drive's configuration.
    pub fn drive(&self) -> &DriveConfig {
        &self.drive
    }

    /// Returns the host with the settings for this drive.
    pub fn host(&self) -> &HostConfig {
        &self.host
    }

    /// Returns the costs of a program in addition to its I/O, if known.
    pub fn costs(&self) -> Option<ProgramCosts> {
        self.costs
    }
}
