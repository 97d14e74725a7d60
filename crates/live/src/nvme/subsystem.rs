//! A subsystem: its drives, and the namespaces that hosts see in them.
//!
//! Drives are namespaces of one subsystem, in order, from 1; where hosts may create namespaces, they are parts of
//! drives. Left out: several ports, reservations.

use model::management::{LbaFormat, Operation, OperationKind};

use super::facts::Drives;
use super::layout::{Extent, Layout};
use super::protection::Protection;
use super::wire::Status;

/// Name of the subsystem that only tells where the others are.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Most I/O queues of a controller, whatever the drive has.
const MOST_QUEUES: u16 = 127;
/// Most namespaces that hosts may create, unless there are more drives.
const MOST_NAMESPACES: u32 = 16;
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
    /// Offer what hosts and test suites like to try, whether the drive has it or not: namespace management, Copy,
    /// device self-test, persistent event log. Longer guards come with the drive ([`super::add_formats`]).
    pub full: bool,
}

impl Options {
    /// A subsystem named after `id`, for drives 0 to `drives`.
    pub fn new(id: &str, drives: usize) -> Options {
        Options {
            nqn: format!("nqn.2026-11.org.drivelab:{id}"),
            strip_metadata: false,
            controllers: 256,
            drives: (0..drives).collect(),
            full: false,
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
    /// Where it begins in the drive, in bytes: a multiple of the block.
    pub(super) first: u64,
    /// What makes its unique names its own; 0 for the drive's own namespace.
    pub(super) salt: u64,
    /// Bytes that are allocated to it.
    pub(super) bytes: u64,
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
    /// Most bytes of one command, data only.
    pub(super) max_transfer: u32,
    /// Its data are kept by the members of a pool.
    pub(super) by_member: bool,
}

impl Namespace {
    /// Bytes of a block over the wire when metadata goes with the data.
    pub(super) fn extended(&self) -> u32 {
        self.block + u32::from(if self.strip { 0 } else { self.metadata })
    }
}

/// The drives of a subsystem as namespaces.
#[derive(Debug)]
pub(super) struct Subsystem {
    pub(super) options: Options,
    /// By their identifiers less one.
    pub(super) namespaces: Vec<Option<Namespace>>,
    /// Where they are.
    pub(super) layout: Layout,
    /// Whether any drive has a volatile write cache.
    pub(super) write_cache: bool,
    /// Whether any is a pool whose members have the data.
    pub(super) by_member: bool,
    /// I/O queues of a controller: as many as the drive with the fewest has.
    pub(super) io_queues: u16,
    pub(super) warning_kelvin: u16,
}

impl Subsystem {
    /// Namespaces are read when the first connection comes.
    pub(super) fn new(options: Options) -> Subsystem {
        Subsystem {
            options,
            namespaces: Vec::new(),
            layout: Layout::default(),
            write_cache: false,
            by_member: false,
            io_queues: 1,
            warning_kelvin: 0,
        }
    }

    /// The namespace of this identifier.
    #[inline]
    pub(super) fn namespace(&mut self, nsid: u32) -> Option<&mut Namespace> {
        self.namespaces
            .get_mut((nsid as usize).wrapping_sub(1))?
            .as_mut()
    }

    /// The status for an identifier that no namespace has: where one could be, it is a wrong field.
    pub(super) fn absent(&self, nsid: u32) -> Status {
        if nsid != 0 && nsid <= self.most() && self.options.full {
            Status::INVALID_FIELD
        } else {
            Status::INVALID_NAMESPACE
        }
    }

    /// All namespaces, with their identifiers.
    pub(super) fn present(&self) -> impl Iterator<Item = (u32, &Namespace)> {
        let numbered = (1..).zip(&self.namespaces);
        numbered.filter_map(|(nsid, it)| Some((nsid, it.as_ref()?)))
    }

    /// The drive that stands for all of them.
    ///
    /// # Errors
    /// The status for a subsystem without drives.
    pub(super) fn first_drive(&self) -> Result<usize, Status> {
        let first = self.options.drives.first();
        first.copied().ok_or(Status::INVALID_NAMESPACE)
    }

    /// The highest identifier that a namespace may have.
    pub(super) fn most(&self) -> u32 {
        let drives = self.options.drives.len() as u32;
        if self.options.full {
            drives.max(MOST_NAMESPACES)
        } else {
            drives
        }
    }

    /// Looks at the drives for the first time, if that has not been done.
    pub(super) fn begin(&mut self, drives: &mut dyn Drives) {
        let options = &self.options;
        self.layout.begin(&options.drives, options.full, drives);
    }

    /// Looks at the drives: what their namespaces are now.
    pub(super) fn look(&mut self, drives: &mut dyn Drives) {
        self.begin(drives);
        self.io_queues = MOST_QUEUES;
        (self.write_cache, self.by_member) = (false, false);
        for &drive in &self.options.drives {
            let facts = drives.facts(drive);
            self.io_queues = self.io_queues.min(facts.io_queues.max(1));
            self.warning_kelvin = facts.warning_kelvin;
            self.write_cache |= facts.write_cache;
            self.by_member |= facts.by_member;
        }
        let before = std::mem::take(&mut self.namespaces);
        for (index, extent) in self.layout.extents().iter().enumerate() {
            let old = before.get(index).copied().flatten();
            let namespace = extent.map(|extent| self.seen(&extent, old, drives));
            self.namespaces.push(namespace);
        }
    }

    /// A namespace as it is now. What `old` says of work in progress goes on.
    fn seen(&self, extent: &Extent, old: Option<Namespace>, drives: &mut dyn Drives) -> Namespace {
        let drive = extent.drive;
        let facts = drives.facts(drive);
        let format = facts.formats.get(facts.format).copied();
        let format = format.unwrap_or(LbaFormat::plain(512));
        let operation = drives.operation(drive);
        Namespace {
            drive,
            first: extent.first,
            bytes: extent.end() - extent.first,
            salt: extent.salt,
            block: format.data,
            metadata: format.metadata,
            blocks: extent.bytes / u64::from(format.data),
            protection: facts.protection,
            strip: self.options.strip_metadata,
            // What nobody waits for ends when the drive is done.
            format: old
                .and_then(|old| old.format)
                .filter(|&work| work != Work::Orphaned || operation.is_some()),
            // Whoever sees that it has ended tells the hosts.
            sanitizing: sanitizes(operation) || old.is_some_and(|old| old.sanitizing),
            max_transfer: transfer(facts.max_transfer),
            by_member: facts.by_member,
        }
    }

    /// What all namespaces of a drive have in common: one without a size.
    pub(super) fn common(&self, drive: usize, drives: &mut dyn Drives) -> Namespace {
        let nowhere = Extent {
            drive,
            first: 0,
            bytes: if self.options.full {
                0
            } else {
                drives.facts(drive).bytes
            },
            salt: 0,
            attached: false,
        };
        let one = self.present().find(|(_, it)| it.drive == drive);
        self.seen(&nowhere, one.map(|(_, it)| *it), drives)
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
}

/// Whether it is a sanitize.
fn sanitizes(operation: Option<Operation>) -> bool {
    operation.is_some_and(|it| it.kind == OperationKind::Sanitize)
}

/// Most bytes of a command: what the drive takes, as a power of two of 4 KiB, and not more than one PDU should carry.
pub(super) fn transfer(of_drive: Option<u32>) -> u32 {
    let most = of_drive.unwrap_or(MOST_TRANSFER).clamp(4096, MOST_TRANSFER);
    1 << most.ilog2()
}
