//! What all connections of an NVMe/TCP front end share: subsystems, their namespaces, controllers.
//!
//! Drives are namespaces of one subsystem, in order, from 1. Left out: namespace management, several ports, reservations.

use model::management::{LbaFormat, Operation, OperationKind};

use super::controller::{Controller, Features, Notification};
use super::facts::{self, Facts};
use super::protection::Protection;
use crate::port::{Notice, Port};

/// Name of the subsystem that only tells where the others are.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Most I/O queues of a controller, whatever the drive has.
const MOST_QUEUES: u16 = 127;
/// Most bytes of a command, whatever the drive takes.
const MOST_TRANSFER: u32 = 1 << 20;

/// How drives are offered over NVMe/TCP.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the subsystem.
    pub nqn: String,
    /// Insert and strip protection information here, so that hosts see plain blocks on formats with metadata (Linux
    /// refuses metadata over NVMe/TCP).
    pub strip_metadata: bool,
    /// Controllers at a time.
    pub controllers: u16,
    /// The namespaces: indices of the served drives, in order.
    pub drives: Vec<usize>,
}

impl Options {
    /// A subsystem named after `id`, for drives 0 to `drives`.
    pub fn new(id: &str, drives: usize) -> Options {
        Options {
            nqn: format!("nqn.2026-11.org.drivelab:{id}"),
            strip_metadata: false,
            controllers: 256,
            drives: (0..drives).collect(),
        }
    }
}

/// A format that a host has asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// To be begun when the commands that are inside have left.
    Asked,
    /// In progress.
    Begun,
    /// In progress, and the connection that asked for it has gone.
    Orphaned,
    /// The drive does not do it.
    Refused,
}

/// A namespace as hosts see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Namespace {
    /// Index of the drive.
    pub(super) drive: usize,
    /// Bytes of data in a block.
    pub(super) block: u32,
    /// Bytes of metadata in a block as stored.
    pub(super) metadata: u16,
    /// Blocks.
    pub(super) blocks: u64,
    /// Protection information.
    pub(super) protection: Protection,
    /// Metadata is inserted and stripped here.
    pub(super) strip: bool,
    /// A format that is asked for or in progress.
    pub(super) format: Option<Work>,
    /// A sanitize that was in progress when last looked.
    pub(super) sanitizing: bool,
    /// Whether the drive has a volatile write cache.
    pub(super) write_cache: bool,
    /// Most bytes of one command, data only.
    pub(super) max_transfer: u32,
}

impl Namespace {
    /// Bytes of a block over the wire when metadata goes with the data.
    pub(super) fn extended(&self) -> u32 {
        self.block + u32::from(if self.strip { 0 } else { self.metadata })
    }
}

/// What all connections share.
#[derive(Debug)]
pub struct Target {
    pub(super) options: Options,
    pub(super) namespaces: Vec<Namespace>,
    controllers: Vec<Option<Box<Controller>>>,
    next: usize,
    io_queues: u16,
    warning_kelvin: u16,
    /// Changes with what the discovery log says.
    pub(super) generation: u64,
}

impl Target {
    /// Nothing connected yet; namespaces are read when the first connection comes.
    pub fn new(options: Options) -> Target {
        let mut controllers = Vec::new();
        controllers.resize_with(usize::from(options.controllers), || None);
        Target {
            options,
            namespaces: Vec::new(),
            controllers,
            next: 0,
            io_queues: 1,
            warning_kelvin: 0,
            generation: 1,
        }
    }

    /// Creates a controller; `None` when there are too many. Identifiers are used again as late as possible.
    pub(super) fn create(
        &mut self,
        discovery: bool,
        defaults: Features,
    ) -> Option<&mut Controller> {
        let count = self.controllers.len();
        let index = (0..count)
            .map(|step| (self.next + step) % count)
            .find(|&index| self.controllers[index].is_none())?;
        self.next = index + 1;
        let id = index as u16 + 1;
        let fresh = Box::new(Controller::new(id, discovery, defaults));
        Some(self.controllers[index].insert(fresh))
    }

    /// The controller of this identifier.
    #[inline]
    pub(super) fn controller(&mut self, id: u16) -> Option<&mut Controller> {
        self.controllers
            .get_mut(usize::from(id).wrapping_sub(1))?
            .as_deref_mut()
    }

    /// Forgets a controller.
    pub(super) fn remove(&mut self, id: u16) {
        if let Some(place) = self.controllers.get_mut(usize::from(id).wrapping_sub(1)) {
            *place = None;
        }
    }

    /// The namespace of this identifier.
    #[inline]
    pub(super) fn namespace(&mut self, nsid: u32) -> Option<&mut Namespace> {
        self.namespaces.get_mut((nsid as usize).wrapping_sub(1))
    }

    /// Controllers that are connected.
    pub fn connected(&self) -> usize {
        self.controllers.iter().flatten().count()
    }

    /// Identifiers of the controllers, from this one on.
    pub(super) fn identifiers(&self, from: u16) -> impl Iterator<Item = u16> {
        let all = self.controllers.iter().flatten().map(|it| it.id);
        all.filter(move |&id| id >= from)
    }

    /// I/O queues of a controller: as many as the drive with the fewest has.
    pub(super) fn io_queues(&self) -> u16 {
        self.io_queues
    }

    /// Features as they are without a host's doing.
    pub(super) fn defaults(&self) -> Features {
        Features {
            arbitration: 0,
            power_state: 0,
            temperature: self.warning_kelvin,
            temperature_low: 0,
            error_recovery: 0,
            queues: None,
            atomicity: 0,
            events: 0,
            timestamp: None,
            keep_alive_ms: 0,
            host_behavior: 0,
        }
    }

    /// Looks at the drives: what their namespaces are now.
    pub(super) fn look(&mut self, port: &mut Port<'_>) {
        let before = std::mem::take(&mut self.namespaces);
        self.io_queues = MOST_QUEUES;
        for (index, &drive) in self.options.drives.iter().enumerate() {
            let facts = Facts::of(port.drive(drive));
            let format = facts.formats.get(facts.format).copied();
            let format = format.unwrap_or(LbaFormat::plain(512));
            let old = before.get(index);
            self.io_queues = self.io_queues.min(facts.io_queues.max(1));
            self.warning_kelvin = facts.warning_kelvin;
            let operation = facts::operation(port, drive);
            self.namespaces.push(Namespace {
                drive,
                block: format.data,
                metadata: format.metadata,
                blocks: facts.bytes / u64::from(format.data),
                protection: facts.protection,
                strip: self.options.strip_metadata,
                // What nobody waits for ends when the drive is done.
                format: old
                    .and_then(|old| old.format)
                    .filter(|&work| work != Work::Orphaned || operation.is_some()),
                sanitizing: sanitizes(operation),
                write_cache: facts.write_cache,
                max_transfer: transfer(facts.max_transfer),
            });
        }
    }

    /// The connection that asked for a format of this namespace has gone: what has not begun never will, and what has
    /// goes on, for it is the drive's.
    pub(super) fn abandon(&mut self, nsid: u32) {
        if let Some(namespace) = self.namespace(nsid) {
            namespace.format = match namespace.format {
                Some(Work::Begun | Work::Orphaned) => Some(Work::Orphaned),
                Some(Work::Asked | Work::Refused) | None => None,
            };
        }
    }

    /// Something happened to a drive: this controller is told.
    pub(super) fn notice(
        &mut self,
        controller: u16,
        drive: usize,
        notice: Notice,
        port: &mut Port<'_>,
    ) {
        let nsid = (1..)
            .zip(&self.namespaces)
            .find(|(_, namespace)| namespace.drive == drive)
            .map(|(nsid, _)| nsid);
        let (Some(nsid), Some(controller)) = (nsid, self.controller(controller)) else {
            return;
        };
        if controller.discovery {
            return;
        }
        match notice {
            Notice::Health => {
                let warning = facts::health(port, drive).warning;
                for (is_so, event) in [
                    (warning.spare, Notification::SPARE),
                    (warning.temperature, Notification::TEMPERATURE),
                    (warning.reliability, Notification::RELIABILITY),
                ] {
                    if is_so {
                        controller.notify(event);
                    }
                }
            }
            Notice::Namespace => {
                controller.notify(Notification::NAMESPACE);
                if !controller.changed.contains(&nsid) {
                    controller.changed.push(nsid);
                }
            }
            Notice::PowerCut => {}
        }
    }
}

/// Whether it is a sanitize.
fn sanitizes(operation: Option<Operation>) -> bool {
    operation.is_some_and(|it| it.kind == OperationKind::Sanitize)
}

/// Most bytes of a command: what the drive takes, as a power of two of 4 KiB, and not more than one PDU should carry.
fn transfer(of_drive: Option<u32>) -> u32 {
    let most = of_drive.unwrap_or(MOST_TRANSFER).clamp(4096, MOST_TRANSFER);
    1 << most.ilog2()
}
