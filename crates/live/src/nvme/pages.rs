//! Get Log Page: what is in the log pages.
//!
//! Every page is made whole when it is asked for, and cut to the part that is wanted.
//! Source: NVM Express Base Specification 1.4, chapter 5.14; NVMe over Fabrics 1.1, chapter 5.4.

use model::management::{Health, SanitizeStatus};
use zerocopy::IntoBytes;

use super::admin::{self, Answer};
use super::connection::Connection;
use super::controller::{ERROR_ENTRIES, QUEUE_ENTRIES};
use super::facts::{self, Facts};
use super::identify::{name, text, wide};
use super::io;
use super::lba_status;
use super::log::{
    self, Asked, DiscoveryEntry, DiscoveryHeader, ErrorEntry, FirmwarePage, HealthPage,
    SanitizePage, zeroed,
};
use super::persistent;
use super::self_test;
use super::wire::{Sqe, Status};
use crate::port::Port;

/// Most bytes of one Get Log Page.
const MOST: u64 = 128 << 10;
/// All namespaces.
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
/// Those that are there on request, whatever the drive has.
const FULL_PAGES: &[u8] = &[log::SELF_TEST, log::PERSISTENT];
const DISCOVERY_PAGES: &[u8] = &[log::SUPPORTED, log::ERRORS, log::DISCOVERY];

/// Effects: supported; changes data; changes the namespace; changes which namespaces there are.
const SUPPORTED: u32 = 1;
const CHANGES_DATA: u32 = 1 << 1;
const CHANGES_NAMESPACE: u32 = 1 << 2;
const CHANGES_LIST: u32 = 1 << 3;
/// Nothing else may run in the namespace meanwhile.
const ALONE: u32 = 1 << 16;

impl Connection {
    pub(super) fn get_log(&mut self, sqe: &Sqe, port: &mut Port<'_>) -> Result<Answer, Status> {
        let dwords = [sqe.cdw10, sqe.cdw11, sqe.cdw12, sqe.cdw13].map(|dword| dword.get());
        let asked = Asked::of(dwords);
        let pages = self.pages();
        if !pages.contains(&asked.page) {
            return Err(Status::INVALID_LOG_PAGE);
        }
        if asked.offset % 4 != 0 || asked.bytes > MOST {
            return Err(Status::INVALID_FIELD);
        }
        let mut page = std::mem::take(&mut self.page);
        page.clear();
        let made = self.make_page(&asked, sqe, port, &mut page);
        let beyond = asked.offset > page.len() as u64;
        if made.is_ok() && !beyond {
            // Beyond the end of a page there are zeroes.
            page.drain(..asked.offset as usize);
            page.resize(asked.bytes as usize, 0);
        }
        self.page = page;
        made?;
        if beyond {
            return Err(Status::INVALID_FIELD);
        }
        if !asked.retain
            && let Some(it) = self.shared.borrow_mut().controller(self.queue.controller)
        {
            it.unmask(asked.page);
        }
        Ok(Answer::Page)
    }

    /// The log pages that there are.
    fn pages(&self) -> Vec<u8> {
        let mut pages = if self.is_discovery() {
            DISCOVERY_PAGES.to_vec()
        } else {
            PAGES.to_vec()
        };
        if self.is_full() {
            pages.extend_from_slice(FULL_PAGES);
        }
        pages
    }

    fn make_page(
        &self,
        asked: &Asked,
        sqe: &Sqe,
        port: &mut Port<'_>,
        page: &mut Vec<u8>,
    ) -> Result<(), Status> {
        let shared = || self.shared.borrow_mut();
        match asked.page {
            log::SUPPORTED => supported(&self.pages(), page),
            log::ERRORS => self.error_page(page),
            log::HEALTH => self.health_page(sqe, port, page)?,
            log::FIRMWARE => self.firmware_page(port, page)?,
            log::CHANGED_NAMESPACES => self.changed_page(asked.retain, page),
            log::EFFECTS => effects_page(self.is_full(), page),
            log::LBA_STATUS => *page = lba_status::page(&shared(), port),
            log::SELF_TEST => *page = self_test::page(&mut shared(), port),
            log::PERSISTENT => {
                let controller = self.queue.controller;
                *page = persistent::command(&mut shared(), controller, asked.specific, port)?;
            }
            log::DISCOVERY => self.discovery_page(page),
            _ => self.sanitize_page(port, page)?,
        }
        Ok(())
    }

    fn error_page(&self, page: &mut Vec<u8>) {
        if let Some(it) = self.shared.borrow_mut().controller(self.queue.controller) {
            for entry in it.errors() {
                page.extend_from_slice(entry.as_bytes());
            }
        }
        page.resize(ERROR_ENTRIES * size_of::<ErrorEntry>(), 0);
    }

    /// Health of the drive of a namespace; of the first drive for the controller as a whole.
    fn health_page(
        &self,
        sqe: &Sqe,
        port: &mut Port<'_>,
        page: &mut Vec<u8>,
    ) -> Result<(), Status> {
        let nsid = sqe.nsid.get();
        let mut shared = self.shared.borrow_mut();
        let drive = if nsid == 0 || nsid == ALL {
            shared.first_drive()?
        } else {
            let namespace = shared.namespace(nsid);
            namespace.ok_or(Status::INVALID_NAMESPACE)?.drive
        };
        if let Some(it) = shared.controller(self.queue.controller) {
            for _ in 0..it.take_uncounted() {
                port.drive(drive).count_error_log_entry();
            }
        }
        let data = health_data(&facts::health(port, drive));
        page.extend_from_slice(data.as_bytes());
        Ok(())
    }

    fn firmware_page(&self, port: &mut Port<'_>, page: &mut Vec<u8>) -> Result<(), Status> {
        let drive = self.shared.borrow().first_drive()?;
        let mut data: FirmwarePage = zeroed();
        data.active = 1;
        text(
            &mut data.revisions[0],
            &Facts::of(port.drive(drive)).firmware,
        );
        page.extend_from_slice(data.as_bytes());
        Ok(())
    }

    fn changed_page(&self, retain: bool, page: &mut Vec<u8>) {
        if let Some(it) = self.shared.borrow_mut().controller(self.queue.controller) {
            for nsid in &it.changed {
                page.extend_from_slice(&nsid.to_le_bytes());
            }
            if !retain {
                it.changed.clear();
            }
        }
        page.resize(4096, 0);
    }

    fn sanitize_page(&self, port: &mut Port<'_>, page: &mut Vec<u8>) -> Result<(), Status> {
        let drive = self.shared.borrow().first_drive()?;
        let mut data: SanitizePage = zeroed();
        data.progress.set(u16::MAX);
        match facts::sanitized(port, drive) {
            SanitizeStatus::Never => {}
            SanitizeStatus::Done => data.status.set(1),
            SanitizeStatus::InProgress(share) => {
                data.status.set(2);
                data.progress
                    .set((share * 65_536.0).clamp(0.0, 65_535.0) as u16);
            }
        }
        let seconds = facts::format_seconds(port, drive);
        data.estimates[0].set(u32::MAX);
        data.estimates[1].set(seconds);
        data.estimates[2].set(u32::MAX);
        page.extend_from_slice(data.as_bytes());
        Ok(())
    }

    fn discovery_page(&self, page: &mut Vec<u8>) {
        let shared = self.shared.borrow();
        let mut header: DiscoveryHeader = zeroed();
        header.generation.set(shared.generation);
        header.records.set(1);
        page.extend_from_slice(header.as_bytes());
        let (address, port) = &self.local;
        let mut entry: DiscoveryEntry = zeroed();
        entry.transport = 3;
        entry.family = if address.contains(':') { 2 } else { 1 };
        entry.kind = 2;
        // Flow control can be switched off.
        entry.requirements = 1 << 2;
        entry.port_id.set(1);
        entry.cntlid.set(0xffff);
        entry.admin_entries.set(QUEUE_ENTRIES.min(128));
        text(&mut entry.service, &port.to_string());
        name(&mut entry.subnqn, &shared.options.nqn);
        text(&mut entry.address, address);
        page.extend_from_slice(entry.as_bytes());
    }
}

/// The health of a drive, as the log page has it.
pub(super) fn health_data(health: &Health) -> HealthPage {
    let it = &health.lifetime;
    let number = |value: u64| wide(value.into());
    let mut data: HealthPage = zeroed();
    data.critical_warning = health.warning.bits();
    data.composite_temperature.set(health.kelvin());
    data.available_spare = health.available_spare;
    data.available_spare_threshold = health.spare_threshold;
    data.percentage_used = health.percentage_used();
    data.data_units_read = number(health.data_units_read());
    data.data_units_written = number(health.data_units_written());
    data.host_reads = number(it.host_read_commands);
    data.host_writes = number(it.host_write_commands);
    data.controller_busy_time = number(health.busy_minutes());
    data.power_cycles = number(it.power_cycles);
    data.power_on_hours = number(health.power_on_hours());
    data.unsafe_shutdowns = number(it.unsafe_shutdowns);
    data.media_errors = number(it.media_errors);
    data.error_log_entries = number(it.error_log_entries);
    data.warning_temperature_time
        .set(health.warning_minutes() as u32);
    data.critical_temperature_time
        .set(health.critical_minutes() as u32);
    data.temperature_sensors[0].set(health.kelvin());
    data
}

fn supported(pages: &[u8], page: &mut Vec<u8>) {
    page.resize(1024, 0);
    for &number in pages {
        page[usize::from(number) * 4] = 1;
    }
}

fn effects_page(full: bool, page: &mut Vec<u8>) {
    use admin::opcode as of_admin;
    use io::opcode as of_io;
    page.resize(4096, 0);
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
    if full {
        let namespaces = SUPPORTED | CHANGES_NAMESPACE | CHANGES_LIST;
        put(usize::from(of_admin::SELF_TEST), SUPPORTED);
        put(usize::from(of_admin::NAMESPACES), namespaces | CHANGES_DATA);
        put(usize::from(of_admin::ATTACHMENT), namespaces);
        put(io + usize::from(of_io::COPY), SUPPORTED | CHANGES_DATA);
    }
}
