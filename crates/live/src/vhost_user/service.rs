//! vhost-user-blk as a protocol of the server, and how a guest gets the served drives.

use text::problem::Problems;

use super::VhostUser;
use crate::port::Front;
use crate::protocol::{Address, AddressKind, Clients, FrontEndOptions, Protocol, Service};
use crate::served::ServedDevice;

/// The vhost-user-blk protocol.
pub const PROTOCOL: Protocol = Protocol {
    option: "vhost-user",
    value: "SOCKET",
    help: "Serve a drive as the disk of a guest (vhost-user-blk) on a Unix socket at this path; one for each drive in order",
    places: AddressKind::EachDrive,
    clients: Clients::OverMemory,
    settings: &[],
    read,
};

/// One disk for each drive.
struct VhostUserService;

fn read(_: &FrontEndOptions) -> Result<Box<dyn Service>, Problems> {
    Ok(Box::new(VhostUserService))
}

impl Service for VhostUserService {
    fn front(&self, number: usize) -> Box<dyn Front> {
        Box::new(VhostUser::new(number))
    }

    fn drive_lines(&self, index: usize, _: &ServedDevice, at: &[Address]) -> Vec<String> {
        let Some(Address::Unix(path)) = at.get(index) else {
            return Vec::new();
        };
        vec![format!(
            "  qemu-system-x86_64 ... -object memory-backend-memfd,id=mem,size=4G,share=on -numa node,memdev=mem \
             -chardev socket,id=disk{index},path={},reconnect=1 -device vhost-user-blk-pci,chardev=disk{index}",
            path.canonicalize().unwrap_or(path.clone()).display()
        )]
    }
}
