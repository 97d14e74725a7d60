//! One controller: the state that a host has set up by connecting, apart from its connections.
//!
//! Registers (as fabrics properties), features, asynchronous events, the error log. A controller exists as long as the
//! connection of its admin queue. Not supported: controllers that outlive that connection, and saved features (after a
//! new connection every feature has its default). Source: NVM Express Base Specification 1.4, chapters 3.1, 5.2 and
//! 5.21; NVMe over Fabrics 1.1, chapter 3.5.

use std::collections::VecDeque;

use super::log::{ErrorEntry, zeroed};
use super::wire::Status;
use crate::clock::Wall;

/// Maximum number of outstanding asynchronous event requests.
pub const EVENT_REQUESTS: usize = 8;
/// Number of entries that the error log keeps.
pub const ERROR_ENTRIES: usize = 64;
/// Maximum number of entries of a queue.
pub const QUEUE_ENTRIES: u16 = 1024;
/// Specification version of the controllers: 1.4.
pub const VERSION: u32 = 0x0001_0400;

/// Number of used bytes of Host Behavior Support: command retry, telemetry, format extension, dispersed namespaces,
/// formats of Copy (two bytes).
pub const HOST_BEHAVIOR: usize = 6;

/// Registers that a host reads and writes as properties.
pub mod property {
    /// Capabilities (64 bits).
    pub const CAP: u32 = 0x00;
    /// Version.
    pub const VS: u32 = 0x08;
    /// Configuration.
    pub const CC: u32 = 0x14;
    /// Status.
    pub const CSTS: u32 = 0x1c;
    /// Reset of the subsystem.
    pub const NSSR: u32 = 0x20;
}

/// CAP: entries of a queue less one; queues are contiguous; 10 s to become ready; the NVM command set.
pub const CAPABILITIES: u64 = (QUEUE_ENTRIES as u64 - 1) | 1 << 16 | 20 << 24 | 1 << 37;

/// CSTS.RDY.
const READY: u32 = 1;
/// CSTS.SHST: shutdown complete.
const SHUT_DOWN: u32 = 2 << 2;

/// An event for the host, as dword 0 of the completion of an asynchronous event request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notification(pub u32);

impl Notification {
    /// Health: the drive is less reliable.
    pub const RELIABILITY: Notification = Notification::new(1, 0, super::log::HEALTH);
    /// Health: the temperature is above or below a threshold.
    pub const TEMPERATURE: Notification = Notification::new(1, 1, super::log::HEALTH);
    /// Health: spare is below its threshold.
    pub const SPARE: Notification = Notification::new(1, 2, super::log::HEALTH);
    /// A namespace has changed.
    pub const NAMESPACE: Notification = Notification::new(2, 0, super::log::CHANGED_NAMESPACES);
    /// The discovery log page has changed.
    pub const DISCOVERY: Notification = Notification::new(2, 0xf0, super::log::DISCOVERY);
    /// The log page of unreadable blocks has changed.
    pub const LBA_STATUS: Notification = Notification::new(2, 5, super::log::LBA_STATUS);
    /// A sanitize has ended.
    pub const SANITIZED: Notification = Notification::new(6, 1, super::log::SANITIZE);

    const fn new(kind: u32, detail: u32, page: u8) -> Notification {
        Notification(kind | detail << 8 | (page as u32) << 16)
    }

    /// Returns the log page with details; reading it enables further events of this kind.
    pub const fn page(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// Returns the bit of the feature "asynchronous event configuration" that enables the event; 0 if it is always
    /// enabled.
    const fn switch(self) -> u32 {
        match self {
            Notification::SPARE => 1 << 0,
            Notification::TEMPERATURE => 1 << 1,
            Notification::RELIABILITY => 1 << 2,
            Notification::NAMESPACE => 1 << 8,
            Notification::LBA_STATUS => 1 << 13,
            Notification::DISCOVERY => 1 << 31,
            _ => 0,
        }
    }
}

/// Values of the features.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// Feature 01h.
    pub arbitration: u32,
    /// Feature 02h: number of the power state.
    pub power_state: u32,
    /// Feature 04h: over-temperature threshold in kelvin.
    pub temperature: u16,
    /// Feature 04h: under-temperature threshold in kelvin.
    pub temperature_low: u16,
    /// Feature 05h.
    pub error_recovery: u32,
    /// Feature 07h: I/O queues, as dword 0.
    pub queues: Option<u32>,
    /// Feature 08h.
    pub coalescing: u32,
    /// Feature 09h: interrupt vectors without coalescing, one bit each.
    pub uncoalesced: u128,
    /// Feature 0Ah.
    pub atomicity: u32,
    /// Feature 0Bh.
    pub events: u32,
    /// Feature 0Eh: milliseconds as set by the host, and the server's clock at that time (wall nanoseconds).
    pub timestamp: Option<(u64, u64)>,
    /// Feature 0Fh, in ms; 0: no keep-alive.
    pub keep_alive_ms: u32,
    /// Feature 15h.
    pub lba_status: u32,
    /// Feature 16h: the used bytes.
    pub host_behavior: [u8; HOST_BEHAVIOR],
}

/// A controller of the subsystem.
#[derive(Debug)]
pub struct Controller {
    /// Controller identifier.
    pub id: u16,
    /// Whether it belongs to the discovery subsystem.
    pub discovery: bool,
    /// Identifier of the host.
    pub host_id: [u8; 16],
    /// Name of the host.
    pub host_nqn: String,
    /// Endpoint of the admin queue.
    pub endpoint: u32,
    /// Time of the last activity on an I/O queue, which counts as keep-alive, as CTRATT states.
    pub heard: Wall,
    /// Feature values set by the host.
    pub features: Features,
    defaults: Features,
    configuration: u32,
    status: u32,
    /// Connected I/O queues, one bit each; queue 0 is bit 0.
    queues: u128,
    /// Counter of resets, starting with a number that no other controller has. It identifies I/O queues from before a
    /// reset, which no longer exist.
    pub life: u64,
    /// Attached namespaces, one bit each; those above 128 are always attached.
    pub attached: u128,
    waiting: VecDeque<Notification>,
    /// Log pages that must be read before further events of their kind are reported.
    masked: Vec<u8>,
    errors: VecDeque<ErrorEntry>,
    error_count: u64,
    /// Errors that have not been counted in the drive's error log.
    uncounted: u64,
    /// Namespaces that have changed since the host read the list.
    pub changed: Vec<u32>,
    /// The persistent event log as it was when the host began to read it.
    pub event_log: Option<Vec<u8>>,
    /// State of the list of unreadable blocks at the last report to the host.
    pub lba_status_seen: Option<u16>,
}

impl Controller {
    /// Returns a controller that has just been created by Connect.
    pub fn new(id: u16, discovery: bool, defaults: Features) -> Controller {
        Controller {
            id,
            discovery,
            host_id: [0; 16],
            host_nqn: String::new(),
            endpoint: 0,
            heard: Wall::default(),
            features: defaults,
            defaults,
            configuration: 0,
            status: 0,
            queues: 0,
            life: 0,
            attached: u128::MAX,
            waiting: VecDeque::new(),
            masked: Vec::new(),
            errors: VecDeque::new(),
            error_count: 0,
            uncounted: 0,
            changed: Vec::new(),
            event_log: None,
            lba_status_seen: None,
        }
    }

    /// Returns the default values of the features.
    pub fn defaults(&self) -> &Features {
        &self.defaults
    }

    /// Checks whether the controller accepts commands other than fabrics commands.
    pub fn ready(&self) -> bool {
        self.status & READY != 0
    }

    /// Reads a register; `None` if there is none at this offset. `wide`: 8 bytes are requested.
    pub fn read_property(&self, offset: u32, wide: bool) -> Option<u64> {
        match (offset, wide) {
            (property::CAP, true) => Some(CAPABILITIES),
            (property::VS, false) => Some(VERSION.into()),
            (property::CC, false) => Some(self.configuration.into()),
            (property::CSTS, false) => Some(self.status.into()),
            (property::NSSR, false) => Some(0),
            _ => None,
        }
    }

    /// Writes a register.
    ///
    /// # Errors
    /// The status of a write that is not allowed.
    pub fn write_property(&mut self, offset: u32, wide: bool, value: u64) -> Result<(), Status> {
        match (offset, wide) {
            (property::CC, false) => {
                self.configure(value as u32);
                Ok(())
            }
            // A reset of the subsystem is not supported; the write is ignored, as CAP states.
            (property::NSSR, false) => Ok(()),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn configure(&mut self, value: u32) {
        let was = self.configuration;
        self.configuration = value;
        let enabled = value & 1 != 0;
        if was & 1 != 0 && !enabled {
            self.reset();
            self.configuration = value;
            return;
        }
        // Queue entries of 64 and 16 bytes, pages of 4 KiB, the NVM command set; other values are not possible.
        let possible = value >> 4 & 7 == 0 && value >> 7 & 0xf == 0;
        if enabled && possible {
            self.status |= READY;
        }
        if value >> 14 & 3 != 0 {
            self.status |= SHUT_DOWN;
        } else if was >> 14 & 3 != 0 {
            self.status &= !SHUT_DOWN;
        }
    }

    /// Resets the controller: I/O queues are removed, and features have their defaults.
    fn reset(&mut self) {
        let keep_alive_ms = self.features.keep_alive_ms;
        self.features = self.defaults;
        self.features.keep_alive_ms = keep_alive_ms;
        self.status = 0;
        self.queues = 0;
        self.life += 1;
        self.waiting.clear();
        self.masked.clear();
        self.event_log = None;
    }

    /// Marks an I/O queue as in use; `false` if it is already in use.
    pub fn take_queue(&mut self, queue: u16) -> bool {
        let bit = 1 << (queue & 127);
        let fresh = self.queues & bit == 0;
        self.queues |= bit;
        fresh
    }

    /// Marks an I/O queue as free.
    pub fn leave_queue(&mut self, queue: u16) {
        self.queues &= !(1 << (queue & 127));
    }

    /// Returns the descriptor formats of Copy that the host has enabled, one bit each.
    pub fn copies(&self) -> u16 {
        let bytes = self.features.host_behavior;
        u16::from_le_bytes([bytes[4], bytes[5]])
    }

    /// Checks whether the namespace with this identifier is attached, if it exists.
    #[inline]
    pub fn has(&self, nsid: u32) -> bool {
        let bit = self.attached.checked_shr(nsid.wrapping_sub(1));
        bit.is_none_or(|bit| bit & 1 != 0)
    }

    /// Attaches or detaches a namespace; one above 128 cannot be detached.
    pub fn attach(&mut self, nsid: u32, attached: bool) {
        let bit = 1u128.checked_shl(nsid.wrapping_sub(1)).unwrap_or_default();
        if attached {
            self.attached |= bit;
        } else {
            self.attached &= !bit;
        }
    }

    /// Records that a namespace has changed, was created or was deleted, and notifies the host.
    pub fn namespace_changed(&mut self, nsid: u32) {
        self.notify(Notification::NAMESPACE);
        if !self.changed.contains(&nsid) {
            self.changed.push(nsid);
        }
    }

    /// Queues an event for the host.
    pub fn notify(&mut self, event: Notification) {
        let wanted = event.switch() == 0 || self.features.events & event.switch() != 0;
        if wanted && !self.waiting.contains(&event) && self.waiting.len() < 32 {
            self.waiting.push_back(event);
        }
    }

    /// Returns the next event, if it may be reported to the host.
    pub fn next_event(&mut self) -> Option<Notification> {
        let masked = &self.masked;
        let open = |event: &Notification| !masked.contains(&event.page());
        let index = self.waiting.iter().position(open)?;
        let event = self.waiting.remove(index)?;
        self.masked.push(event.page());
        Some(event)
    }

    /// Enables further events after the host has read this log page.
    pub fn unmask(&mut self, page: u8) {
        self.masked.retain(|&masked| masked != page);
    }

    /// Records a command that failed.
    pub fn failed(&mut self, queue: u16, cid: u16, status: Status, nsid: u32, lba: u64) {
        self.error_count += 1;
        self.uncounted += 1;
        let mut entry: ErrorEntry = zeroed();
        entry.count.set(self.error_count);
        entry.sq_id.set(queue);
        entry.cid.set(cid);
        entry.status.set(status.field() << 1);
        entry.location.set(0xffff);
        entry.lba.set(lba);
        entry.nsid.set(nsid);
        entry.transport = 3;
        if self.errors.len() == ERROR_ENTRIES {
            self.errors.pop_back();
        }
        self.errors.push_front(entry);
    }

    /// Returns the number of errors since the last call.
    pub fn take_uncounted(&mut self) -> u64 {
        std::mem::take(&mut self.uncounted)
    }

    /// Returns the error log, the newest entry first.
    pub fn errors(&self) -> impl Iterator<Item = &ErrorEntry> {
        self.errors.iter()
    }
}
