//! The persistent event log: events of the subsystem with times, in the order in which they are reported.
//!
//! The newest event comes first; the oldest are dropped when space runs out. Not recorded: hardware errors, firmware
//! and temperature events, and events before the server's start. Source: NVM Express Base Specification 1.4, chapter
//! 5.14.1.13 and figures 214 to 230.

use std::collections::VecDeque;

use model::management::SanitizeStatus;
use zerocopy::IntoBytes;

use super::facts::{Drives, Facts};
use super::identify::{name, text};
use super::log::{HealthPage, PERSISTENT};
use super::wire::{Sqe, Status};
use crate::clock::Wall;

/// Maximum size of the log in units of 64 KiB, for Identify Controller.
pub(super) const MOST_64K: u32 = 1;
/// Bytes of the log's header, and of an event's header.
const HEAD: usize = 512;
const EVENT_HEAD: usize = 24;
/// Maximum bytes of all events.
const ROOM: usize = ((MOST_64K as usize) << 16) - HEAD;

/// Types of events.
pub(super) mod kind {
    pub(in crate::nvme) const SMART: u8 = 0x01;
    pub(in crate::nvme) const TIMESTAMP: u8 = 0x03;
    pub(in crate::nvme) const POWER_ON: u8 = 0x04;
    pub(in crate::nvme) const NAMESPACE: u8 = 0x06;
    pub(in crate::nvme) const FORMAT_START: u8 = 0x07;
    pub(in crate::nvme) const FORMAT_END: u8 = 0x08;
    pub(in crate::nvme) const SANITIZE_START: u8 = 0x09;
    pub(in crate::nvme) const SANITIZE_END: u8 = 0x0a;
    pub(in crate::nvme) const FEATURE: u8 = 0x0b;
}

/// Event types that occur.
const KINDS: [u8; 9] = [
    kind::SMART,
    kind::TIMESTAMP,
    kind::POWER_ON,
    kind::NAMESPACE,
    kind::FORMAT_START,
    kind::FORMAT_END,
    kind::SANITIZE_START,
    kind::SANITIZE_END,
    kind::FEATURE,
];

/// An event of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
struct PersistentEvent {
    kind: u8,
    controller: u16,
    /// Time in milliseconds of the server's clock.
    at_ms: u64,
    data: Vec<u8>,
}

impl PersistentEvent {
    fn put(&self, page: &mut Vec<u8>) {
        // Type, its revision, bytes of the header after these three.
        page.extend_from_slice(&[self.kind, 1, EVENT_HEAD as u8 - 3, 0]);
        page.extend_from_slice(&self.controller.to_le_bytes());
        page.extend_from_slice(&self.at_ms.to_le_bytes());
        page.extend_from_slice(&[0; 6]);
        // No vendor-specific data.
        page.extend_from_slice(&[0; 2]);
        page.extend_from_slice(&(self.data.len() as u16).to_le_bytes());
        page.extend_from_slice(&self.data);
    }

    fn bytes(&self) -> usize {
        EVENT_HEAD + self.data.len()
    }
}

/// The events so far.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Events, the newest first.
    events: VecDeque<PersistentEvent>,
    bytes: usize,
    /// Number of contexts so far.
    generation: u16,
}

impl History {
    /// Records an event. `controller`: the controller whose command caused it; 0 if none.
    pub(super) fn note(&mut self, kind: u8, controller: u16, at: Wall, data: Vec<u8>) {
        let event = PersistentEvent {
            kind,
            controller,
            at_ms: at.ns() / 1_000_000,
            data,
        };
        self.bytes += event.bytes();
        self.events.push_front(event);
        while self.bytes > ROOM {
            let oldest = self.events.pop_back();
            self.bytes -= oldest.map_or(self.bytes, |it| it.bytes());
        }
    }

    /// Records the power-on of the drives, of which this is the first.
    pub(super) fn begin(&mut self, drive: usize, drives: &mut dyn Drives) {
        if !self.events.is_empty() {
            return;
        }
        let health = drives.health(drive);
        let cycles = health.lifetime.power_cycles;
        let (facts, at) = (drives.facts(drive), drives.wall());
        let mut data = vec![0; 8];
        text(&mut data, &facts.firmware);
        // No controller had been connected.
        data.extend_from_slice(&[0; 16]);
        data.extend_from_slice(&(cycles as u32).to_le_bytes());
        data.extend_from_slice(&[0; 8]);
        data.extend_from_slice(&(at.ns() / 1_000_000).to_le_bytes());
        self.note(kind::POWER_ON, 0, at, data);
        let health = HealthPage::from_health(&health);
        self.note(kind::SMART, 0, at, health.as_bytes().to_vec());
    }

    /// Records the beginning of a Format NVM, with its parameters.
    pub(super) fn format_begins(&mut self, controller: u16, sqe: &Sqe, all: bool, at: Wall) {
        let mut data = sqe.nsid.get().to_le_bytes().to_vec();
        data.extend_from_slice(&[u8::from(all), 0, 0, 0]);
        data.extend_from_slice(&sqe.cdw10.get().to_le_bytes());
        self.note(kind::FORMAT_START, controller, at, data);
    }

    /// Records the end of a Format NVM.
    pub(super) fn format_ends(&mut self, controller: u16, sqe: &Sqe, status: Status, at: Wall) {
        let mut data = sqe.nsid.get().to_le_bytes().to_vec();
        // Progress is not recorded; bit 0: it failed.
        data.extend_from_slice(&[0, u8::from(!status.is_success()), 0, 0]);
        data.extend_from_slice(&u32::from(status.field() << 1).to_le_bytes());
        self.note(kind::FORMAT_END, controller, at, data);
    }

    /// Records the beginning of a sanitize, with its parameters.
    pub(super) fn sanitize_begins(&mut self, controller: u16, sqe: &Sqe, at: Wall) {
        let mut data = (1u32 << 1).to_le_bytes().to_vec();
        data.extend_from_slice(&sqe.cdw10.get().to_le_bytes());
        data.extend_from_slice(&sqe.cdw11.get().to_le_bytes());
        self.note(kind::SANITIZE_START, controller, at, data);
    }

    /// Records the end of a sanitize.
    pub(super) fn sanitize_ends(&mut self, status: SanitizeStatus, at: Wall) {
        let mut data = u16::MAX.to_le_bytes().to_vec();
        let well = u16::from(status == SanitizeStatus::Done);
        data.extend_from_slice(&well.to_le_bytes());
        data.extend_from_slice(&[0; 4]);
        self.note(kind::SANITIZE_END, 0, at, data);
    }

    /// Records a successful Set Features: its dwords, and the first dword of its completion.
    pub(super) fn feature_set(&mut self, controller: u16, sqe: &Sqe, dw0: u32, at: Wall) {
        // Two dwords of the command; bit 3: dword 0 of the completion follows.
        let mut data = (2u32 | 1 << 3).to_le_bytes().to_vec();
        for dword in [sqe.cdw10.get(), sqe.cdw11.get(), dw0] {
            data.extend_from_slice(&dword.to_le_bytes());
        }
        self.note(kind::FEATURE, controller, at, data);
    }

    /// Records that the host has set the timestamp.
    pub(super) fn timestamp_set(&mut self, controller: u16, before_ms: u64, at: Wall) {
        let mut data = before_ms.to_le_bytes().to_vec();
        data.extend_from_slice(&(at.ns() / 1_000_000).to_le_bytes());
        self.note(kind::TIMESTAMP, controller, at, data);
    }

    /// Returns the present log, for a host that begins to read it. `drive`: the drive that represents all.
    pub(super) fn establish(
        &mut self,
        nqn: &str,
        drive: usize,
        drives: &mut dyn Drives,
    ) -> Vec<u8> {
        self.generation = self.generation.wrapping_add(1);
        let health = drives.health(drive);
        let facts = drives.facts(drive);
        let cycles = health.lifetime.power_cycles;
        self.page(&facts, nqn, health.power_on_hours(), cycles, drives.wall())
    }

    fn page(&self, facts: &Facts, nqn: &str, hours: u64, cycles: u64, at: Wall) -> Vec<u8> {
        let mut page = vec![0; HEAD];
        let all = (HEAD + self.bytes) as u64;
        page[0] = PERSISTENT;
        page[4..8].copy_from_slice(&(self.events.len() as u32).to_le_bytes());
        page[8..16].copy_from_slice(&all.to_le_bytes());
        // Revision; bytes of the header after this field.
        page[16] = 1;
        page[18..20].copy_from_slice(&(HEAD as u16 - 20).to_le_bytes());
        page[20..28].copy_from_slice(&(at.ns() / 1_000_000).to_le_bytes());
        page[28..36].copy_from_slice(&hours.to_le_bytes());
        page[44..52].copy_from_slice(&cycles.to_le_bytes());
        page[52..54].copy_from_slice(&facts.vendor.to_le_bytes());
        page[54..56].copy_from_slice(&facts.vendor.to_le_bytes());
        text(&mut page[56..76], &facts.serial);
        text(&mut page[76..116], &facts.model);
        name(&mut page[116..372], nqn);
        page[372..374].copy_from_slice(&self.generation.to_le_bytes());
        for kind in KINDS {
            page[480 + usize::from(kind) / 8] |= 1 << (kind % 8);
        }
        for event in &self.events {
            event.put(&mut page);
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_events_give_way() {
        let mut history = History::default();
        for number in 0..400u32 {
            let mut data = vec![0; 512];
            data[..4].copy_from_slice(&number.to_le_bytes());
            history.note(kind::SMART, 1, Wall::default(), data);
        }
        let sum: usize = history.events.iter().map(PersistentEvent::bytes).sum();
        assert!(sum == history.bytes && sum <= ROOM && sum > ROOM - 536);
        assert_eq!(history.events[0].data[..2], [143, 1], "the newest is kept");
    }
}
