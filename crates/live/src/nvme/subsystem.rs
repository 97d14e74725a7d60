//! A subsystem: its drives, and the namespaces that hosts see in them.
//!
//! Drives are namespaces of one subsystem, in order, starting with 1. If hosts may create namespaces, namespaces are
//! parts of drives. Not supported: several ports, reservations.

use model::management::{LbaFormat, Operation, OperationKind};

use super::facts::Drives;
use super::layout::{Extent, NamespaceTable};
use super::protection::Protection;
use super::wire::Status;

/// Name of the discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Maximum number of I/O queues of a controller, independent of the drive.
const MOST_QUEUES: u16 = 127;
/// Maximum number of namespaces that hosts may create, unless there are more drives.
const MOST_NAMESPACES: u32 = 16;
/// Maximum bytes of a command, independent of the drive.
const MOST_TRANSFER: u32 = 1 << 20;

/// How drives are offered over NVMe/TCP.
#[derive(Clone, Debug)]
pub struct NvmeOptions {
    /// Name of the subsystem.
    pub nqn: String,
    /// Whether protection information is inserted and stripped here, so that hosts see plain blocks in formats with
    /// metadata (Linux rejects metadata over NVMe/TCP).
    pub strip_metadata: bool,
    /// Maximum number of simultaneous controllers.
    pub controllers: u16,
    /// The namespaces: indices of the served drives, in order.
    pub drives: Vec<usize>,
    /// Whether to offer functions that hosts and test suites try even if the drive lacks them: namespace management,
    /// Copy, device self-test, persistent event log. Longer guards are added to the drive ([`super::add_formats`]).
    pub full: bool,
}

impl NvmeOptions {
    /// Returns options with a subsystem named after `id`, for drives 0 to `drives`.
    pub fn new(id: &str, drives: usize) -> NvmeOptions {
        NvmeOptions {
            nqn: format!("nqn.2026-11.org.drivelab:{id}"),
            strip_metadata: false,
            controllers: 256,
            drives: (0..drives).collect(),
            full: false,
        }
    }
}

/// A format that a host has requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FormatRequest {
    /// To begin when no command is in flight.
    Asked,
    /// In progress.
    Begun,
    /// In progress, and the connection that requested it is closed.
    Orphaned,
    /// The drive has refused it.
    Refused,
}

/// A namespace as hosts see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Namespace {
    /// Index of the drive.
    pub(super) drive: usize,
    /// Offset of its first byte in the drive, a multiple of the block size.
    pub(super) first: u64,
    /// Value that makes its identifiers unique; 0 for the namespace of a whole drive.
    pub(super) salt: u64,
    /// Allocated bytes.
    pub(super) bytes: u64,
    /// Bytes of data in a block.
    pub(super) block: u32,
    /// Bytes of metadata in a block as stored.
    pub(super) metadata: u16,
    /// Number of blocks.
    pub(super) blocks: u64,
    /// Protection information.
    pub(super) protection: Protection,
    /// Whether metadata is inserted and stripped here.
    pub(super) strip: bool,
    /// A format that is requested or in progress.
    pub(super) format: Option<FormatRequest>,
    /// Whether a sanitize was in progress at the last check.
    pub(super) sanitizing: bool,
    /// Maximum bytes of one command, without metadata.
    pub(super) max_transfer: u32,
    /// Whether the members of a pool store the data.
    pub(super) by_member: bool,
}

impl Namespace {
    /// Returns the bytes of a block on the wire if metadata is transferred with the data.
    pub(super) fn extended(&self) -> u32 {
        self.block + u32::from(if self.strip { 0 } else { self.metadata })
    }
}

/// The drives of a subsystem as namespaces.
#[derive(Debug)]
pub(super) struct Subsystem {
    pub(super) options: NvmeOptions,
    /// Namespaces by their identifiers less one.
    pub(super) namespaces: Vec<Option<Namespace>>,
    /// Placement of the namespaces.
    pub(super) layout: NamespaceTable,
    /// Whether any drive has a volatile write cache.
    pub(super) write_cache: bool,
    /// Whether any drive is a pool whose members store the data.
    pub(super) by_member: bool,
    /// I/O queues of a controller: the smallest number among the drives.
    pub(super) io_queues: u16,
    pub(super) warning_kelvin: u16,
}

impl Subsystem {
    /// Returns a subsystem; its namespaces are read when the first connection arrives.
    pub(super) fn new(options: NvmeOptions) -> Subsystem {
        Subsystem {
            options,
            namespaces: Vec::new(),
            layout: NamespaceTable::default(),
            write_cache: false,
            by_member: false,
            io_queues: 1,
            warning_kelvin: 0,
        }
    }

    /// Returns the namespace with this identifier.
    #[inline]
    pub(super) fn namespace(&mut self, nsid: u32) -> Option<&mut Namespace> {
        self.namespaces
            .get_mut((nsid as usize).wrapping_sub(1))?
            .as_mut()
    }

    /// Returns the status for an identifier without a namespace: `INVALID_FIELD` if a namespace could have it.
    pub(super) fn absent(&self, nsid: u32) -> Status {
        if nsid != 0 && nsid <= self.most() && self.options.full {
            Status::INVALID_FIELD
        } else {
            Status::INVALID_NAMESPACE
        }
    }

    /// Returns all namespaces, with their identifiers.
    pub(super) fn present(&self) -> impl Iterator<Item = (u32, &Namespace)> {
        let numbered = (1..).zip(&self.namespaces);
        numbered.filter_map(|(nsid, it)| Some((nsid, it.as_ref()?)))
    }

    /// Returns the drive that represents all of them.
    ///
    /// # Errors
    /// The status for a subsystem without drives.
    pub(super) fn first_drive(&self) -> Result<usize, Status> {
        let first = self.options.drives.first();
        first.copied().ok_or(Status::INVALID_NAMESPACE)
    }

    /// Returns the highest identifier that a namespace may have.
    pub(super) fn most(&self) -> u32 {
        let drives = self.options.drives.len() as u32;
        if self.options.full {
            drives.max(MOST_NAMESPACES)
        } else {
            drives
        }
    }

    /// Reads the drives for the first time, if that has not been done.
    pub(super) fn begin(&mut self, drives: &mut dyn Drives) {
        let options = &self.options;
        self.layout.begin(&options.drives, options.full, drives);
    }

    /// Reads the drives: updates their namespaces.
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

    /// Returns the present state of a namespace. Work in progress in `old` continues.
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
            // Formats without a waiting connection end when the drive is done.
            format: old
                .and_then(|old| old.format)
                .filter(|&work| work != FormatRequest::Orphaned || operation.is_some()),
            // The code that detects the end notifies the hosts.
            sanitizing: sanitizes(operation) || old.is_some_and(|old| old.sanitizing),
            max_transfer: transfer(facts.max_transfer),
            by_member: facts.by_member,
        }
    }

    /// Returns the properties that all namespaces of a drive share, as a namespace without a size.
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

    /// Handles the end of the connection that requested a format of this namespace: a format that has not begun is
    /// dropped, and one in progress continues in the drive.
    pub(super) fn abandon(&mut self, nsid: u32) {
        if let Some(namespace) = self.namespace(nsid) {
            namespace.format = match namespace.format {
                Some(FormatRequest::Begun | FormatRequest::Orphaned) => {
                    Some(FormatRequest::Orphaned)
                }
                Some(FormatRequest::Asked | FormatRequest::Refused) | None => None,
            };
        }
    }
}

/// Checks whether the operation is a sanitize.
fn sanitizes(operation: Option<Operation>) -> bool {
    operation.is_some_and(|it| it.kind == OperationKind::Sanitize)
}

/// Returns the maximum bytes of a command: the drive's limit as a power of two of 4 KiB, up to the size of one PDU.
pub(super) fn transfer(of_drive: Option<u32>) -> u32 {
    let most = of_drive.unwrap_or(MOST_TRANSFER).clamp(4096, MOST_TRANSFER);
    1 << most.ilog2()
}
