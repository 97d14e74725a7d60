//! A drive in a host: the one place where the two are put together.
//!
//! What each needs to know of the other is settled here: how many submission queues the host has of this drive, and
//! whether it sends flushes at all.

use std::num::NonZeroU16;

use catalogue::{DriveSheet, HostSheet};
use model::host::{HostConfig, ProgramCosts};
use model::media::{DriveConfig, Medium};
use serde::{Deserialize, Serialize};

/// A drive in a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Machine {
    name: String,
    drive: DriveConfig,
    host: HostConfig,
    costs: Option<ProgramCosts>,
}

/// A machine as it was written down.
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
        let machine = Machine::of(&written.name, written.drive, written.host);
        Ok(Machine {
            costs: written.costs,
            ..machine
        })
    }
}

impl Machine {
    /// A drive and a host of the catalogue.
    pub fn new(drive: &DriveSheet, host: &HostSheet) -> Machine {
        let config = HostConfig {
            io_queues: NonZeroU16::new(drive.io_queues),
            ..host.config.clone()
        };
        Machine {
            costs: host.act,
            ..Machine::of(&drive.id, drive.config.clone(), config)
        }
    }

    /// A drive and a host that no file describes; messages call the drive `name`.
    pub fn of(name: &str, drive: DriveConfig, host: HostConfig) -> Machine {
        Machine {
            name: name.to_owned(),
            host: HostConfig {
                // What has no volatile cache gets no flushes.
                write_through: !drive.volatile_write_cache(),
                ..host
            },
            drive,
            costs: None,
        }
    }

    /// Another drive in the same host, with as many queues.
    pub fn with_drive(&self, drive: DriveConfig) -> Machine {
        Machine {
            costs: self.costs,
            ..Machine::of(&self.name, drive, self.host.clone())
        }
    }

    /// The host with something changed.
    pub fn with_host(mut self, change: impl FnOnce(&mut HostConfig)) -> Machine {
        change(&mut self.host);
        self.host.write_through = !self.drive.volatile_write_cache();
        self
    }

    /// The host with these costs of a program beside its I/O.
    pub fn with_costs(mut self, costs: ProgramCosts) -> Machine {
        self.costs = Some(costs);
        self
    }

    /// Under another name.
    pub(crate) fn named(mut self, name: &str) -> Machine {
        self.name = name.to_owned();
        self
    }

    /// What messages call the drive.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The drive.
    pub fn drive(&self) -> &DriveConfig {
        &self.drive
    }

    /// The host, as it meets this drive.
    pub fn host(&self) -> &HostConfig {
        &self.host
    }

    /// What a program costs there beside its I/O, if that is known.
    pub fn costs(&self) -> Option<ProgramCosts> {
        self.costs
    }
}
