//! Get Features and Set Features.
//!
//! Nothing is saved over a reset, so "saved" is the default. What is set for interrupts is kept and has no effect: over
//! fabrics there are none.
//! Source: NVM Express Base Specification 1.4, chapter 5.21; 2.0, figures 330 (interrupts) and 361 (host behavior).

use super::admin::Answer;
use super::connection::Connection;
use super::controller::Features;
use super::facts;
use super::io::status_of;
use super::wire::{Sqe, Status};
use crate::port::Port;

/// Numbers of features.
pub mod feature {
    /// Arbitration.
    pub const ARBITRATION: u8 = 0x01;
    /// Power Management.
    pub const POWER: u8 = 0x02;
    /// Temperature Threshold.
    pub const TEMPERATURE: u8 = 0x04;
    /// Error Recovery.
    pub const ERROR_RECOVERY: u8 = 0x05;
    /// Volatile Write Cache.
    pub const WRITE_CACHE: u8 = 0x06;
    /// Number of Queues.
    pub const QUEUES: u8 = 0x07;
    /// Interrupt Coalescing.
    pub const COALESCING: u8 = 0x08;
    /// Interrupt Vector Configuration.
    pub const VECTOR: u8 = 0x09;
    /// Write Atomicity Normal.
    pub const ATOMICITY: u8 = 0x0a;
    /// Asynchronous Event Configuration.
    pub const EVENTS: u8 = 0x0b;
    /// Timestamp.
    pub const TIMESTAMP: u8 = 0x0e;
    /// Keep Alive Timer.
    pub const KEEP_ALIVE: u8 = 0x0f;
    /// LBA Status Information Attributes.
    pub const LBA_STATUS: u8 = 0x15;
    /// Host Behavior Support.
    pub const HOST_BEHAVIOR: u8 = 0x16;
    /// Host Identifier.
    pub const HOST_ID: u8 = 0x81;
}

/// Which value is wanted.
const DEFAULT: u32 = 1;
const SAVED: u32 = 2;
const SUPPORTED: u32 = 3;
/// Supported capabilities: it can be changed.
const CHANGEABLE: u64 = 1 << 2;
/// Save the value.
const SAVE: u32 = 1 << 31;
/// Bytes of Host Behavior Support that mean something: command retry, telemetry, format extension, dispersed namespaces,
/// formats of Copy (two bytes).
pub(super) const HOST_BEHAVIOR: usize = 6;
/// Most power states.
const STATES: u32 = 32;

impl Connection {
    pub(super) fn get_features(
        &mut self,
        sqe: &Sqe,
        port: &mut Port<'_>,
    ) -> Result<Answer, Status> {
        let number = sqe.cdw10.get() as u8;
        let select = sqe.cdw10.get() >> 8 & 7;
        let mut shared = self.shared.borrow_mut();
        let write_cache = shared.write_cache;
        let queues = u32::from(shared.io_queues()) - 1;
        let drives = shared.options.drives.clone();
        let controller = shared.controller(self.queue.controller);
        let controller = controller.ok_or(Status::INTERNAL_ERROR)?;
        let features = match select {
            0 => controller.features,
            DEFAULT | SAVED => *controller.defaults(),
            SUPPORTED => return capabilities(number, write_cache).map(Answer::Done),
            _ => return Err(Status::INVALID_FIELD),
        };
        let dw0 = match number {
            feature::ARBITRATION => features.arbitration,
            feature::POWER => features.power_state,
            feature::TEMPERATURE => threshold(&features, sqe.cdw11.get())?,
            feature::ERROR_RECOVERY => features.error_recovery,
            feature::WRITE_CACHE if write_cache => {
                // Switched on by default.
                let on = drives.iter().all(|&it| {
                    !port.drive(it).has_write_cache() || port.drive(it).write_cache_enabled()
                });
                u32::from(on || select != 0)
            }
            feature::QUEUES => features.queues.unwrap_or(queues | queues << 16),
            feature::COALESCING => features.coalescing,
            feature::VECTOR => {
                let vector = vector(sqe.cdw11.get(), queues)?;
                vector | u32::from(features.uncoalesced >> vector & 1 != 0) << 16
            }
            feature::ATOMICITY => features.atomicity,
            feature::EVENTS => features.events,
            feature::LBA_STATUS => features.lba_status,
            feature::KEEP_ALIVE => features.keep_alive_ms,
            feature::TIMESTAMP => {
                let (stamp, origin) = timestamp(&features, port.wall().ns());
                self.page.clear();
                self.page.extend_from_slice(&stamp.to_le_bytes()[..6]);
                self.page.extend_from_slice(&[origin, 0]);
                return Ok(Answer::Page);
            }
            feature::HOST_BEHAVIOR => {
                self.page.clear();
                self.page.resize(512, 0);
                self.page[..HOST_BEHAVIOR].copy_from_slice(&features.host_behavior);
                return Ok(Answer::Page);
            }
            feature::HOST_ID => {
                self.page.clear();
                self.page.extend_from_slice(&controller.host_id);
                return Ok(Answer::Page);
            }
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(Answer::Done(dw0.into()))
    }

    /// Set Features, noted among the persistent events.
    pub(super) fn set_and_note(
        &mut self,
        slot: u16,
        sqe: &Sqe,
        port: &mut Port<'_>,
    ) -> Result<Answer, Status> {
        let (id, at) = (self.queue.controller, port.wall());
        let before = self
            .shared
            .borrow_mut()
            .controller(id)
            .map(|it| it.features);
        let answer = self.set_features(slot, sqe, port)?;
        let history = &mut self.shared.borrow_mut().history;
        let dw0 = match answer {
            Answer::Done(dwords) => dwords as u32,
            _ => 0,
        };
        match before {
            Some(before) if sqe.cdw10.get() as u8 == feature::TIMESTAMP => {
                history.timestamp_set(id, timestamp(&before, at.ns()).0, at);
            }
            _ => history.feature_set(id, sqe, dw0, at),
        }
        Ok(answer)
    }

    fn set_features(
        &mut self,
        slot: u16,
        sqe: &Sqe,
        port: &mut Port<'_>,
    ) -> Result<Answer, Status> {
        if sqe.cdw10.get() & SAVE != 0 {
            return Err(Status::FEATURE_NOT_SAVEABLE);
        }
        let (number, value) = (sqe.cdw10.get() as u8, sqe.cdw11.get());
        let data = &self.slots[slot].data;
        let mut shared = self.shared.borrow_mut();
        let most = u32::from(shared.io_queues()) - 1;
        let write_cache = shared.write_cache;
        let drives = shared.options.drives.clone();
        let controller = shared.controller(self.queue.controller);
        let controller = controller.ok_or(Status::INTERNAL_ERROR)?;
        let features = &mut controller.features;
        match number {
            feature::ARBITRATION => features.arbitration = value,
            feature::POWER => {
                let state = value & (STATES - 1);
                for drive in drives {
                    facts::set_power_state(port, drive, state)?;
                }
                features.power_state = state;
            }
            feature::TEMPERATURE => set_threshold(features, value)?,
            feature::ERROR_RECOVERY => features.error_recovery = value,
            feature::WRITE_CACHE if write_cache => {
                for drive in drives {
                    if port.drive(drive).has_write_cache() {
                        let done = port.drive(drive).enable_write_cache(value & 1 != 0);
                        done.map_err(status_of)?;
                    }
                }
            }
            feature::QUEUES => {
                let (submission, completion) = (value & 0xffff, value >> 16);
                if submission == 0xffff || completion == 0xffff {
                    return Err(Status::INVALID_FIELD);
                }
                let granted = submission.min(most) | completion.min(most) << 16;
                features.queues = Some(granted);
                return Ok(Answer::Done(granted.into()));
            }
            feature::COALESCING => features.coalescing = value & 0xffff,
            feature::VECTOR => set_vector(features, value, most)?,
            feature::ATOMICITY => features.atomicity = value & 1,
            feature::EVENTS => features.events = value,
            // How often the controller reports; how often a host should ask is the controller's.
            feature::LBA_STATUS => features.lba_status = value & 0xffff,
            feature::KEEP_ALIVE => features.keep_alive_ms = value,
            feature::TIMESTAMP => {
                let bytes = data.first_chunk::<8>();
                let bytes = *bytes.ok_or(Status::DATA_SGL_LENGTH_INVALID)?;
                let stamp = u64::from_le_bytes(bytes) & 0xffff_ffff_ffff;
                features.timestamp = Some((stamp, port.wall().ns()));
            }
            feature::HOST_BEHAVIOR => {
                let bytes = data.first_chunk::<HOST_BEHAVIOR>();
                features.host_behavior = *bytes.ok_or(Status::DATA_SGL_LENGTH_INVALID)?;
            }
            // Over fabrics it is set by Connect.
            feature::HOST_ID => return Err(Status::COMMAND_SEQUENCE),
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok(Answer::Done(0))
    }
}

fn capabilities(number: u8, write_cache: bool) -> Result<u64, Status> {
    match number {
        feature::WRITE_CACHE if !write_cache => Err(Status::INVALID_FIELD),
        feature::ARBITRATION
        | feature::POWER
        | feature::TEMPERATURE
        | feature::ERROR_RECOVERY
        | feature::WRITE_CACHE
        | feature::QUEUES
        | feature::COALESCING
        | feature::VECTOR
        | feature::ATOMICITY
        | feature::EVENTS
        | feature::LBA_STATUS
        | feature::TIMESTAMP
        | feature::KEEP_ALIVE
        | feature::HOST_BEHAVIOR => Ok(CHANGEABLE),
        feature::HOST_ID => Ok(0),
        _ => Err(Status::INVALID_FIELD),
    }
}

/// The interrupt vector that is meant: one for each I/O queue and the admin queue's. `queues`: I/O queues less one.
fn vector(cdw11: u32, queues: u32) -> Result<u32, Status> {
    let vector = cdw11 & 0xffff;
    if vector <= queues + 1 {
        Ok(vector)
    } else {
        Err(Status::INVALID_FIELD)
    }
}

fn set_vector(features: &mut Features, cdw11: u32, queues: u32) -> Result<(), Status> {
    let bit = 1 << vector(cdw11, queues)?;
    features.uncoalesced &= !bit;
    if cdw11 & 1 << 16 != 0 {
        features.uncoalesced |= bit;
    }
    Ok(())
}

/// Milliseconds as the controller counts them, and whether the host has set them.
fn timestamp(features: &Features, now_ns: u64) -> (u64, u8) {
    match features.timestamp {
        Some((stamp, then)) => (stamp + now_ns.saturating_sub(then) / 1_000_000, 1 << 1),
        None => (now_ns / 1_000_000, 0),
    }
}

/// Which of the two thresholds, of the composite temperature or of the one sensor there is.
fn threshold(features: &Features, cdw11: u32) -> Result<u32, Status> {
    match (cdw11 >> 16 & 0xf, cdw11 >> 20 & 3) {
        (0 | 1, 0) => Ok(features.temperature.into()),
        (0 | 1, 1) => Ok(features.temperature_low.into()),
        _ => Err(Status::INVALID_FIELD),
    }
}

fn set_threshold(features: &mut Features, cdw11: u32) -> Result<(), Status> {
    match (cdw11 >> 16 & 0xf, cdw11 >> 20 & 3) {
        (0 | 1 | 0xf, 0) => features.temperature = cdw11 as u16,
        (0 | 1 | 0xf, 1) => features.temperature_low = cdw11 as u16,
        _ => return Err(Status::INVALID_FIELD),
    }
    Ok(())
}
