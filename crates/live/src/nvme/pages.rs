//! Get Log Page: content of the log pages.
//!
//! Every page is built completely when it is requested, from the state of the drives, the subsystem and the
//! controller, and then cut to the requested part. Source: NVM Express Base Specification 1.4, chapter 5.14; NVMe over
//! Fabrics 1.1, chapter 5.4.

use catalogue::VendorLogPages;
use model::management::SanitizeStatus;
use zerocopy::IntoBytes;

use super::controller::{Controller, ERROR_ENTRIES, QUEUE_ENTRIES};
use super::facts::Drives;
use super::identify::{name, text};
use super::lba_status;
use super::log::{
    self, DiscoveryEntry, DiscoveryHeader, ErrorEntry, FirmwarePage, HealthPage, LogPageRequest,
    SanitizePage, zeroed,
};
use super::opcode::{admin as of_admin, io as of_io};
use super::persistent;
use super::target::NvmeTarget;
use super::vendor;
use super::wire::{Sqe, Status};

/// Maximum bytes of one Get Log Page.
const MOST: u64 = 128 << 10;
/// Identifier for all namespaces.
const ALL: u32 = u32::MAX;

const PAGES: &[u8] = &[
    log::SUPPORTED,
    log::ERRORS,
    log::HEALTH,
    log::FIRMWARE,
    log::CHANGED_NAMESPACES,
    log::EFFECTS,
    log::LBA_STATUS,
    log::SANITIZE,
];
/// Pages that are offered on request, whether or not the drive has them.
const FULL_PAGES: &[u8] = &[log::SELF_TEST, log::PERSISTENT];
const DISCOVERY_PAGES: &[u8] = &[log::SUPPORTED, log::ERRORS, log::DISCOVERY];

/// Effects: supported; changes data; changes the namespace; changes which namespaces exist.
const SUPPORTED: u32 = 1;
const CHANGES_DATA: u32 = 1 << 1;
const CHANGES_NAMESPACE: u32 = 1 << 2;
const CHANGES_LIST: u32 = 1 << 3;
/// No other command may run in the namespace meanwhile.
const ALONE: u32 = 1 << 16;

/// Address and port that a host has connected to.
pub(super) type Local = (String, u16);

/// Executes Get Log Page.
pub(super) fn get_log(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    local: &Local,
    drives: &mut dyn Drives,
) -> Result<Vec<u8>, Status> {
    let dwords = [sqe.cdw10, sqe.cdw11, sqe.cdw12, sqe.cdw13].map(|dword| dword.get());
    let asked = LogPageRequest::from_dwords(dwords);
    let discovery = target.is_discovery(controller);
    let of_vendors = match discovery {
        true => Vec::new(),
        false => of_vendors(target, drives),
    };
    let pages = pages(discovery, target.is_full(controller), &of_vendors);
    if !pages.contains(&asked.page) {
        return Err(Status::INVALID_LOG_PAGE);
    }
    if asked.offset % 4 != 0 || asked.bytes > MOST {
        return Err(Status::INVALID_FIELD);
    }
    let mut page = match asked.page {
        log::SUPPORTED => supported(&pages),
        log::ERRORS => errors(target.controller(controller)),
        log::HEALTH => health(target, controller, sqe.nsid.get(), drives)?,
        log::FIRMWARE => firmware(&drives.facts(target.subsystem.first_drive()?).firmware),
        log::CHANGED_NAMESPACES => changed(target.controller(controller), asked.retain),
        log::EFFECTS => effects(target.is_full(controller), target.subsystem.by_member),
        log::LBA_STATUS => lba_status::page(&target.subsystem, drives),
        log::SELF_TEST => target.self_tests.page(&target.subsystem, drives),
        log::PERSISTENT => persistent::command(target, controller, asked.specific, drives)?,
        vendor::OCP_SMART | vendor::OCP_LATENCY | vendor::INTEL_SMART => {
            let drive = drive_of(target, sqe.nsid.get())?;
            // The list of pages includes those of the other drives.
            if !pages_of(drives.facts(drive).log_pages).contains(&asked.page) {
                return Err(Status::INVALID_LOG_PAGE);
            }
            vendor::page(asked.page, &drives.vendor(drive))
        }
        log::DISCOVERY => discovery_page(target.generation, &target.subsystem.options.nqn, local),
        _ => {
            let drive = target.subsystem.first_drive()?;
            sanitize(drives.sanitized(drive), drives.format_seconds(drive))
        }
    };
    if asked.offset > page.len() as u64 {
        return Err(Status::INVALID_FIELD);
    }
    // Bytes beyond the end of a page are zeroes.
    page.drain(..asked.offset as usize);
    page.resize(asked.bytes as usize, 0);
    if !asked.retain
        && let Some(it) = target.controller(controller)
    {
        it.unmask(asked.page);
    }
    Ok(page)
}

/// Returns the identifiers of the supported log pages.
fn pages(discovery: bool, full: bool, of_vendors: &[u8]) -> Vec<u8> {
    let pages = if discovery { DISCOVERY_PAGES } else { PAGES };
    let more = if full { FULL_PAGES } else { &[] };
    [pages, more, of_vendors].concat()
}

/// Returns the identifiers of a drive's vendor pages.
fn pages_of(kind: VendorLogPages) -> &'static [u8] {
    match kind {
        VendorLogPages::None => &[],
        VendorLogPages::Ocp => &[vendor::OCP_SMART, vendor::OCP_LATENCY],
        VendorLogPages::Intel => &[vendor::INTEL_SMART],
    }
}

/// Returns the identifiers of the vendor pages that at least one drive of the subsystem has.
fn of_vendors(target: &NvmeTarget, drives: &mut dyn Drives) -> Vec<u8> {
    let of_drives = target.subsystem.options.drives.iter();
    of_drives
        .flat_map(|&drive| pages_of(drives.facts(drive).log_pages))
        .copied()
        .collect()
}

fn errors(controller: Option<&mut Controller>) -> Vec<u8> {
    let mut page = Vec::new();
    for entry in controller.iter().flat_map(|it| it.errors()) {
        page.extend_from_slice(entry.as_bytes());
    }
    page.resize(ERROR_ENTRIES * size_of::<ErrorEntry>(), 0);
    page
}

/// Returns the drive of a namespace; for the controller as a whole, the first drive.
fn drive_of(target: &mut NvmeTarget, nsid: u32) -> Result<usize, Status> {
    if nsid == 0 || nsid == ALL {
        return target.subsystem.first_drive();
    }
    let namespace = target.namespace(nsid);
    Ok(namespace.ok_or(Status::INVALID_NAMESPACE)?.drive)
}

/// Returns the health of the drive of a namespace; for the controller as a whole, of the first drive.
fn health(
    target: &mut NvmeTarget,
    controller: u16,
    nsid: u32,
    drives: &mut dyn Drives,
) -> Result<Vec<u8>, Status> {
    let drive = drive_of(target, nsid)?;
    if let Some(it) = target.controller(controller) {
        for _ in 0..it.take_uncounted() {
            drives.count_error(drive);
        }
    }
    let data = HealthPage::from_health(&drives.health(drive));
    Ok(data.as_bytes().to_vec())
}

fn firmware(revision: &str) -> Vec<u8> {
    let mut data: FirmwarePage = zeroed();
    data.active = 1;
    text(&mut data.revisions[0], revision);
    data.as_bytes().to_vec()
}

fn changed(controller: Option<&mut Controller>, retain: bool) -> Vec<u8> {
    let mut page = Vec::new();
    if let Some(it) = controller {
        for nsid in &it.changed {
            page.extend_from_slice(&nsid.to_le_bytes());
        }
        if !retain {
            it.changed.clear();
        }
    }
    page.resize(4096, 0);
    page
}

/// Returns the sanitize page; `seconds`: duration of a format.
fn sanitize(status: SanitizeStatus, seconds: u32) -> Vec<u8> {
    let mut data: SanitizePage = zeroed();
    data.progress.set(u16::MAX);
    match status {
        SanitizeStatus::Never => {}
        SanitizeStatus::Done => data.status.set(1),
        SanitizeStatus::InProgress(share) => {
            data.status.set(2);
            data.progress
                .set((share * 65_536.0).clamp(0.0, 65_535.0) as u16);
        }
    }
    data.estimates[0].set(u32::MAX);
    data.estimates[1].set(seconds);
    data.estimates[2].set(u32::MAX);
    data.as_bytes().to_vec()
}

fn discovery_page(generation: u64, nqn: &str, local: &Local) -> Vec<u8> {
    let mut header: DiscoveryHeader = zeroed();
    header.generation.set(generation);
    header.records.set(1);
    let (address, port) = local;
    let mut entry: DiscoveryEntry = zeroed();
    entry.transport = 3;
    entry.family = if address.contains(':') { 2 } else { 1 };
    entry.kind = 2;
    // Flow control can be disabled.
    entry.requirements = 1 << 2;
    entry.port_id.set(1);
    entry.cntlid.set(0xffff);
    entry.admin_entries.set(QUEUE_ENTRIES.min(128));
    text(&mut entry.service, &port.to_string());
    name(&mut entry.subnqn, nqn);
    text(&mut entry.address, address);
    [header.as_bytes(), entry.as_bytes()].concat()
}

fn supported(pages: &[u8]) -> Vec<u8> {
    let mut page = vec![0; 1024];
    for &number in pages {
        page[usize::from(number) * 4] = 1;
    }
    page
}

fn effects(full: bool, by_member: bool) -> Vec<u8> {
    let mut page = vec![0; 4096];
    let mut put = |index: usize, effects: u32| {
        page[index * 4..index * 4 + 4].copy_from_slice(&effects.to_le_bytes());
    };
    for opcode in [
        of_admin::GET_LOG,
        of_admin::IDENTIFY,
        of_admin::ABORT,
        of_admin::SET_FEATURES,
        of_admin::GET_FEATURES,
        of_admin::ASYNC_EVENT,
        of_admin::KEEP_ALIVE,
        of_admin::GET_LBA_STATUS,
    ] {
        put(usize::from(opcode), SUPPORTED);
    }
    let formats = SUPPORTED | CHANGES_DATA | CHANGES_NAMESPACE | ALONE;
    put(usize::from(of_admin::FORMAT), formats);
    put(
        usize::from(of_admin::SANITIZE),
        SUPPORTED | CHANGES_DATA | ALONE,
    );
    let io = 256;
    for opcode in [of_io::FLUSH, of_io::READ, of_io::COMPARE, of_io::VERIFY] {
        put(io + usize::from(opcode), SUPPORTED);
    }
    for opcode in [
        of_io::WRITE,
        of_io::WRITE_UNCORRECTABLE,
        of_io::WRITE_ZEROES,
        of_io::DATASET,
    ] {
        put(io + usize::from(opcode), SUPPORTED | CHANGES_DATA);
    }
    if by_member {
        put(usize::from(of_admin::FORMAT), 0);
        put(usize::from(of_admin::SANITIZE), 0);
        put(io + usize::from(of_io::WRITE_UNCORRECTABLE), 0);
    }
    if full {
        let namespaces = SUPPORTED | CHANGES_NAMESPACE | CHANGES_LIST;
        put(usize::from(of_admin::SELF_TEST), SUPPORTED);
        put(usize::from(of_admin::NAMESPACES), namespaces | CHANGES_DATA);
        put(usize::from(of_admin::ATTACHMENT), namespaces);
        put(io + usize::from(of_io::COPY), SUPPORTED | CHANGES_DATA);
    }
    page
}
