//! Identify: properties of a controller and its namespaces.
//!
//! Model, firmware, formats, queues, maximum transfer, write cache and power states come from the catalogue. Atomicity
//! is that of the server: a write is applied as a whole, and after a crash each 4 KiB page is old or new. Source: NVM
//! Express Base Specification 1.4, chapter 5.15; NVMe over Fabrics 1.1, figure 29.

use zerocopy::IntoBytes;

use super::IN_CAPSULE;
use super::controller::{ERROR_ENTRIES, EVENT_REQUESTS, QUEUE_ENTRIES, VERSION};
use super::copy;
use super::extended;
use super::facts::{Drives, Facts};
use super::history;
use super::identify::{
    ControllerData, IDENTIFY, IndependentNamespaceData, NamespaceData, NvmControllerData, name,
    text, wide,
};
use super::log::zeroed;
use super::self_test;
use super::subsystem::{DISCOVERY_NQN, FormatRequest, Namespace, Subsystem, transfer};
use super::target::NvmeTarget;
use super::wire::{Sqe, Status};

/// Requested data structure: controller or namespace structure (CNS).
mod cns {
    pub(super) const NAMESPACE: u8 = 0x00;
    pub(super) const CONTROLLER: u8 = 0x01;
    pub(super) const ACTIVE: u8 = 0x02;
    pub(super) const DESCRIPTORS: u8 = 0x03;
    pub(super) const NVM_NAMESPACE: u8 = 0x05;
    pub(super) const NVM_CONTROLLER: u8 = 0x06;
    pub(super) const NVM_ACTIVE: u8 = 0x07;
    pub(super) const INDEPENDENT: u8 = 0x08;
    pub(super) const ALLOCATED: u8 = 0x10;
    pub(super) const ALLOCATED_NAMESPACE: u8 = 0x11;
    pub(super) const ATTACHED_CONTROLLERS: u8 = 0x12;
    pub(super) const CONTROLLERS: u8 = 0x13;
    pub(super) const COMMAND_SETS: u8 = 0x1c;
}

/// Bytes of a page that is written atomically, even in a crash.
const ATOM: u32 = 4096;
/// Identifier for all namespaces.
const ALL: u32 = u32::MAX;

/// Returns `log2` of the number of 4 KiB pages in this number of bytes.
fn pages_exponent(bytes: u32) -> u8 {
    (bytes / 4096).max(1).ilog2() as u8
}

/// Returns the requested Identify data structure.
pub(super) fn identify(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    drives: &mut dyn Drives,
) -> Result<Vec<u8>, Status> {
    let (what, nsid) = (sqe.cdw10.get() as u8, sqe.nsid.get());
    let discovery = target.is_discovery(controller);
    Ok(match what {
        cns::CONTROLLER if discovery => discovery_controller(controller).as_bytes().to_vec(),
        cns::CONTROLLER => {
            let all = target.subsystem.options.drives.iter();
            let all: Vec<Facts> = all.map(|&it| drives.facts(it)).collect();
            let data = drive_controller(controller, &target.subsystem, &all);
            data.as_bytes().to_vec()
        }
        _ if discovery => return Err(Status::INVALID_FIELD),
        cns::ACTIVE | cns::NVM_ACTIVE => list(target, controller, nsid, true)?,
        cns::ALLOCATED => list(target, controller, nsid, false)?,
        cns::NVM_NAMESPACE => {
            let namespace = *target.active(controller, nsid)?;
            nvm_namespace(&namespace, &drives.facts(namespace.drive))
        }
        cns::NVM_CONTROLLER if sqe.cdw11.get() >> 24 == 0 => nvm_controller().as_bytes().to_vec(),
        cns::NVM_CONTROLLER => return Err(Status::INVALID_FIELD),
        cns::NAMESPACE => namespace_page(target, controller, nsid, true, drives)?,
        cns::ALLOCATED_NAMESPACE => namespace_page(target, controller, nsid, false, drives)?,
        cns::INDEPENDENT => independent(target.active(controller, nsid)?),
        cns::DESCRIPTORS => {
            let namespace = *target.active(controller, nsid)?;
            descriptors(&namespace, &drives.facts(namespace.drive))
        }
        cns::ATTACHED_CONTROLLERS => controllers(target, sqe, Some(nsid))?,
        cns::CONTROLLERS => controllers(target, sqe, None)?,
        cns::COMMAND_SETS => {
            let mut page = vec![0; IDENTIFY];
            // The first combination: the NVM command set.
            page[0] = 1;
            page
        }
        _ => return Err(Status::INVALID_FIELD),
    })
}

fn nvm_namespace(namespace: &Namespace, facts: &Facts) -> Vec<u8> {
    let mut page = vec![0; IDENTIFY];
    let (tuples, added) = (&facts.tuples, facts.added_formats);
    extended::page(tuples, added, namespace.protection, &mut page);
    page
}

/// Returns the controller structure; `all`: the drives of the subsystem.
fn drive_controller(id: u16, subsystem: &Subsystem, all: &[Facts]) -> ControllerData {
    let first = all.first();
    let mut data = any_controller(id, &subsystem.options.nqn);
    data.cntrltype = 1;
    if let Some(first) = first {
        data.vid.set(first.vendor);
        data.ssvid.set(first.vendor);
        text(&mut data.sn, &first.serial);
        text(&mut data.mn, &first.model);
        text(&mut data.fr, &first.firmware);
        data.wctemp.set(first.warning_kelvin);
        data.cctemp.set(first.critical_kelvin);
    }
    let most = all.iter().map(|it| transfer(it.max_transfer)).min();
    data.mdts = most.map_or(0, pages_exponent);
    // Events: changes of namespaces and of unreadable blocks.
    data.oaes.set(1 << 8 | 1 << 13);
    // Traffic counts as keep-alive; the host identifier has 128 bits.
    data.ctratt.set(1 << 6 | 1);
    // Format NVM, Get LBA Status; sanitize by erasing blocks.
    data.oacs.set(1 << 1 | 1 << 9);
    data.sanicap.set(1 << 1);
    data.lpa = 1 << 1 | 1 << 2;
    data.nn.set(subsystem.most());
    data.mnan.set(subsystem.most());
    // Compare, Write Uncorrectable, Dataset Management, Write Zeroes, Save/Select, Timestamp, Verify.
    data.oncs
        .set(1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7);
    // Compare and write, fused.
    data.fuses.set(1);
    data.vwc = if all.iter().any(|it| it.write_cache) {
        7
    } else {
        6
    };
    let bytes: u128 = all.iter().map(|it| u128::from(it.bytes)).sum();
    data.tnvmcap = wide(bytes);
    if all.iter().any(|it| it.by_member) {
        without_members_leave(&mut data);
    }
    if subsystem.options.full {
        full_controller(&mut data, bytes - u128::from(subsystem.layout.allocated()));
    }
    let limits = first.map_or(&[][..], |it| &it.power_limits_watts);
    data.npss = limits.len().clamp(1, 32) as u8 - 1;
    for (descriptor, (number, &watts)) in data.psd.iter_mut().zip((0u8..).zip(limits)) {
        descriptor
            .max_power
            .set((watts * 100.0).clamp(0.0, 65_535.0) as u16);
        descriptor.relative = [number; 4];
    }
    data
}

/// Removes the capabilities that are missing if the members of a pool store the data: Format NVM, sanitize, Write
/// Uncorrectable, fused commands.
fn without_members_leave(data: &mut ControllerData) {
    data.oacs.set(data.oacs.get() & !(1 << 1));
    data.sanicap.set(0);
    data.oncs.set(data.oncs.get() & !(1 << 1));
    data.fuses.set(0);
}

/// Returns the properties that all controllers share.
fn any_controller(id: u16, nqn: &str) -> ControllerData {
    let mut data: ControllerData = zeroed();
    text(&mut data.sn, "0");
    text(&mut data.mn, "drivelab");
    text(&mut data.fr, env!("CARGO_PKG_VERSION"));
    data.cntlid.set(id);
    data.ver.set(VERSION);
    data.rtd3r.set(1_000_000);
    data.rtd3e.set(1_000_000);
    // Hosts with several connections to one drive see one namespace.
    data.cmic = 1 << 1;
    data.acl = 3;
    data.aerl = EVENT_REQUESTS as u8 - 1;
    data.elpe = ERROR_ENTRIES as u8 - 1;
    data.frmw = 1 | 1 << 1;
    data.kas.set(1);
    data.sqes = 0x66;
    data.cqes = 0x44;
    data.maxcmd.set(QUEUE_ENTRIES);
    // SGLs; offsets within capsules; the transport moves data.
    data.sgls.set(1 | 1 << 20 | 1 << 21);
    name(&mut data.subnqn, nqn);
    data.ioccsz.set((64 + IN_CAPSULE) / 16);
    data.iorcsz.set(1);
    data.msdbd = 1;
    data
}

fn discovery_controller(id: u16) -> ControllerData {
    let mut data = any_controller(id, DISCOVERY_NQN);
    data.cntrltype = 2;
    data.oaes.set(1 << 31);
    data.lpa = 1 << 2;
    data.ioccsz.set(0);
    data.iorcsz.set(0);
    data.sqes = 0;
    data.cqes = 0;
    data
}

/// Lists namespaces after this one: those attached to this controller, or all.
fn list(target: &mut NvmeTarget, id: u16, after: u32, attached: bool) -> Result<Vec<u8>, Status> {
    if after >= ALL - 1 {
        return Err(Status::INVALID_NAMESPACE);
    }
    let here = target.controllers.get(id).map_or(0, |it| it.attached);
    let here = |nsid: u32| here.checked_shr(nsid - 1).is_none_or(|bits| bits & 1 != 0);
    let present = target.subsystem.present().map(|(nsid, _)| nsid);
    let wanted = present.filter(|&nsid| nsid > after && (!attached || here(nsid)));
    let mut page = vec![0; IDENTIFY];
    for (place, nsid) in page.chunks_exact_mut(4).zip(wanted) {
        place.copy_from_slice(&nsid.to_le_bytes());
    }
    Ok(page)
}

/// Lists controllers starting with the one named in the command; only those with this namespace attached.
fn controllers(target: &mut NvmeTarget, sqe: &Sqe, nsid: Option<u32>) -> Result<Vec<u8>, Status> {
    let from = (sqe.cdw10.get() >> 16) as u16;
    if let Some(nsid) = nsid {
        let absent = target.subsystem.absent(nsid);
        target.namespace(nsid).ok_or(absent)?;
    }
    let mut count = 0;
    let wanted = target
        .controllers
        .iter_mut()
        .filter(|it| it.id >= from && nsid.is_none_or(|nsid| it.has(nsid) && !it.discovery))
        .map(|it| it.id);
    let mut page = vec![0; IDENTIFY];
    for (place, id) in page[2..].chunks_exact_mut(2).zip(wanted) {
        place.copy_from_slice(&id.to_le_bytes());
        count += 1u16;
    }
    page[..2].copy_from_slice(&count.to_le_bytes());
    Ok(page)
}

/// Returns the structure of a namespace; zeroes if it is not attached here but could be.
fn namespace_page(
    target: &mut NvmeTarget,
    id: u16,
    nsid: u32,
    attached: bool,
    drives: &mut dyn Drives,
) -> Result<Vec<u8>, Status> {
    let namespace = if nsid == ALL {
        // The properties common to all namespaces are those of a whole drive's namespace.
        let drive = target.subsystem.first_drive()?;
        Some(target.subsystem.common(drive, drives))
    } else if attached {
        target.active(id, nsid).ok().copied()
    } else {
        target.namespace(nsid).copied()
    };
    let Some(namespace) = namespace else {
        let possible = nsid != 0 && nsid <= target.subsystem.most();
        return if possible {
            Ok(vec![0; IDENTIFY])
        } else {
            Err(Status::INVALID_NAMESPACE)
        };
    };
    let left = namespace.format.map(|work| match work {
        FormatRequest::Asked | FormatRequest::Refused => 100,
        FormatRequest::Begun | FormatRequest::Orphaned => percent_left(namespace.drive, drives),
    });
    let mut data = describe(&namespace, &drives.facts(namespace.drive), left);
    if target.subsystem.options.full {
        full_namespace(&mut data, &namespace);
    }
    Ok(data.as_bytes().to_vec())
}

/// Returns the remaining percentage of the operation in progress.
fn percent_left(drive: usize, drives: &mut dyn Drives) -> u8 {
    let operation = drives.operation(drive);
    let now = drives.now(drive);
    operation.map_or(0, |it| (100.0 * (1.0 - it.progress(now))).ceil() as u8)
}

fn independent(namespace: &Namespace) -> Vec<u8> {
    let mut data: IndependentNamespaceData = zeroed();
    data.nmic = 1;
    data.fpi = 1 << 7;
    data.nstat = u8::from(namespace.format.is_none());
    data.as_bytes().to_vec()
}

/// Returns the unique identifiers of a namespace.
fn descriptors(namespace: &Namespace, facts: &Facts) -> Vec<u8> {
    let mut page = vec![0; IDENTIFY];
    let mut at = 0;
    let mut put = |kind: u8, value: &[u8]| {
        page[at] = kind;
        page[at + 1] = value.len() as u8;
        page[at + 4..at + 4 + value.len()].copy_from_slice(value);
        at += 4 + value.len();
    };
    let nguid = facts.nguid(namespace.salt);
    put(2, &nguid);
    // A UUID of version 8 (vendor-specific rule) from the same bytes.
    let mut uuid = nguid;
    uuid[6] = uuid[6] & 0x0f | 0x80;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    put(3, &uuid);
    // The NVM command set.
    put(4, &[0]);
    page
}

/// Adds the properties of a controller that offers everything, and the capacity left for new namespaces.
fn full_controller(data: &mut ControllerData, unallocated: u128) {
    // Namespace Management, Device Self-test.
    data.oacs.set(data.oacs.get() | 1 << 3 | 1 << 4);
    // Formats beyond the original sixteen.
    data.ctratt.set(data.ctratt.get() | 1 << 15);
    // A format, or a format with erase, applies to all namespaces.
    data.fna = 0b11;
    data.unvmcap = wide(unallocated);
    let bytes = u128::from(data.tnvmcap[0].get());
    data.edstt.set(self_test::extended_minutes(bytes as u64));
    // One self-test at a time in the subsystem.
    data.dsto = 1;
    data.lpa |= 1 << 4;
    data.pels.set(history::MOST_64K);
    // Copy, and its formats.
    data.oncs.set(data.oncs.get() | 1 << 8);
    data.ocfs.set(copy::FORMATS);
}

/// Adds the copy limits of a namespace.
fn full_namespace(data: &mut NamespaceData, namespace: &Namespace) {
    let limits = copy::CopyLimits::for_namespace(namespace);
    data.mssrl.set(limits.range as u16);
    data.mcl.set(limits.all);
    data.msrc = limits.ranges as u8 - 1;
}

fn nvm_controller() -> NvmControllerData {
    let mut data: NvmControllerData = zeroed();
    data.dmrl = 255;
    data
}

/// Returns the namespace structure; `left`: the remaining percentage of a format in progress.
fn describe(namespace: &Namespace, facts: &Facts, left: Option<u8>) -> NamespaceData {
    let mut data: NamespaceData = zeroed();
    let strip = namespace.strip;
    data.nsze.set(namespace.blocks);
    data.ncap.set(namespace.blocks);
    data.nuse.set(namespace.blocks);
    // Own atomicity; deallocated and unwritten blocks can be reported; preferred sizes.
    data.nsfeat = 1 << 1 | 1 << 4;
    let mut formats = 0;
    for (number, format) in facts.formats.iter().enumerate().take(16) {
        let place = &mut data.lbaf[number];
        place.lbads = format.data.trailing_zeros() as u8;
        place.ms.set(if strip { 0 } else { format.metadata });
        place.rp = format.performance as u8;
        formats = number as u8;
    }
    data.nlbaf = formats;
    data.flbas = facts.format as u8 & 0xf;
    if namespace.metadata > 0 && !strip {
        // Metadata is transferred with the data.
        data.flbas |= 1 << 4;
        data.dps = namespace.protection.bits();
    }
    if facts.formats.iter().any(|format| format.metadata > 0) && !strip {
        data.mc = 1;
        data.dpc = 0b1_1111;
    }
    data.nmic = 1;
    data.fpi = 1 << 7 | left.unwrap_or(0).min(100);
    // Deallocated blocks read as zeroes; Write Zeroes may deallocate.
    data.dlfeat = 0b1001;
    let per_atom = (ATOM / namespace.block).max(1) as u16 - 1;
    let whole = (namespace.max_transfer / namespace.block).clamp(1, 65_536) - 1;
    data.nawun.set(whole as u16);
    data.nacwu.set(whole as u16);
    data.nawupf.set(per_atom);
    data.nabspf.set(per_atom);
    data.nvmcap = wide(u128::from(namespace.bytes));
    // Bit 0: write protected.
    data.nsattr = u8::from(facts.read_only);
    for field in [
        &mut data.npwg,
        &mut data.npwa,
        &mut data.npdg,
        &mut data.npda,
    ] {
        field.set(per_atom);
    }
    data.nguid = facts.nguid(namespace.salt);
    data.eui64 = facts.eui64(namespace.salt);
    data
}
