//! NVMe/TCP as a protocol of the server, and how clients reach the served drives.

use text::problem::{Problem, Problems};

use super::extended::add_formats;
use super::front::NvmeTcp;
use super::subsystem::NvmeOptions;
use crate::port::Front;
use crate::protocol::{
    Address, AddressKind, Clients, FrontEndOptions, Protocol, Service, Setting, on_command_line,
};
use crate::served::ServedDevice;
use crate::setup::Setup;

/// The NVMe/TCP protocol.
pub const PROTOCOL: Protocol = Protocol {
    option: "nvme-tcp",
    value: "ADDR",
    help: "Serve NVMe/TCP at this address: HOST:PORT; may be given several times",
    places: AddressKind::Addresses { passed: false },
    clients: Clients::OverSocket,
    settings: &[
        Setting {
            name: "controller",
            value: Some("KIND"),
            values: &[
                ("drive", "Features of the drive"),
                ("full", "Optional features too"),
            ],
            requires: None,
            help: "Features of the NVMe/TCP controller: those of the drive, or also optional features that hosts and \
                   test suites use (namespace management, Copy, longer guards, device self-test, persistent event log)",
        },
        Setting {
            name: "strip-metadata",
            value: None,
            values: &[],
            requires: None,
            help: "Insert and strip metadata in the server, so that hosts see plain blocks on formats with protection \
                   information",
        },
    ],
    read,
};

/// One subsystem, named after the first drive, with all drives as its namespaces.
struct AsSubsystem {
    options: NvmeOptions,
    target: NvmeTcp,
}

fn read(asked: &FrontEndOptions) -> Result<Box<dyn Service>, Problems> {
    let id = asked.names.first().map_or("drives", String::as_str);
    let options = NvmeOptions {
        strip_metadata: asked.has("strip-metadata"),
        full: asked.value("controller") == Some("full"),
        ..NvmeOptions::new(id, asked.names.len())
    };
    let target = NvmeTcp::new(options.clone());
    Ok(Box::new(AsSubsystem { options, target }))
}

impl Service for AsSubsystem {
    fn set_up(&self, setup: &mut Setup) {
        if self.options.full {
            add_formats(setup);
        }
    }

    fn accepts(&self, drive: &ServedDevice) -> Result<(), Problem> {
        if drive.is_by_member() && self.options.full {
            let name = drive.name();
            return Err(on_command_line(
                format!(
                    "{name}: a pool that stores its data by member has one namespace and one format"
                ),
                "serve it without --controller full",
            ));
        }
        // Otherwise hosts would see one namespace, with the data of the former namespaces at their places.
        if drive.shares().is_none() || self.options.full {
            return Ok(());
        }
        let name = drive.name();
        Err(on_command_line(
            format!("{name}: hosts have divided its store into namespaces"),
            "serve it with --controller full, or with another --store",
        ))
    }

    fn front(&self, _: usize) -> Box<dyn Front> {
        Box::new(self.target.share_subsystem())
    }

    fn lines(&self, at: &Address) -> Vec<String> {
        let nqn = &self.options.nqn;
        match at {
            Address::Tcp(address) => {
                let (host, port) = (address.ip(), address.port());
                vec![
                    format!("  nvme discover -t tcp -a {host} -s {port}"),
                    format!("  nvme connect -t tcp -a {host} -s {port} -n {nqn}"),
                    format!("  drivelab bench-target nvme-tcp://{address}"),
                ]
            }
            // For programs with a socket of their own.
            Address::Unix(path) => vec![format!("  {nqn} at unix:{}", path.display())],
            Address::Passed(_) => Vec::new(),
        }
    }
}
