//! Get Features and Set Features.
//!
//! No value is kept over a reset, so the saved value is the default. Values for interrupts are stored without effect:
//! fabrics have no interrupts. Source: NVM Express Base Specification 1.4, chapter 5.21; 2.0, figures 330 (interrupts)
//! and 361 (host behavior).

use super::answer::AdminOutcome;
use super::controller::{Features, HOST_BEHAVIOR};
use super::facts::Drives;
use super::target::NvmeTarget;
use super::wire::{Sqe, Status};

/// Feature numbers.
pub mod feature {
    /// Number of Arbitration.
    pub const ARBITRATION: u8 = 0x01;
    /// Number of Power Management.
    pub const POWER: u8 = 0x02;
    /// Temperature Threshold.
    pub const TEMPERATURE: u8 = 0x04;
    /// Number of Error Recovery.
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
    /// Number of Timestamp.
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

/// Selector of the requested value.
const DEFAULT: u32 = 1;
const SAVED: u32 = 2;
const SUPPORTED: u32 = 3;
/// Supported capabilities: changeable.
const CHANGEABLE: u64 = 1 << 2;
/// Saves the value.
const SAVE: u32 = 1 << 31;
/// Maximum number of power states.
const STATES: u32 = 32;

/// Get Features.
pub(super) fn get(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    drives: &mut dyn Drives,
) -> Result<AdminOutcome, Status> {
    let number = sqe.cdw10.get() as u8;
    let select = sqe.cdw10.get() >> 8 & 7;
    let subsystem = &target.subsystem;
    let write_cache = subsystem.write_cache;
    let queues = u32::from(subsystem.io_queues) - 1;
    let controller = target.controllers.get(controller);
    let controller = controller.ok_or(Status::INTERNAL_ERROR)?;
    let features = match select {
        0 => controller.features,
        DEFAULT | SAVED => *controller.defaults(),
        SUPPORTED => return capabilities(number, write_cache).map(AdminOutcome::Done),
        _ => return Err(Status::INVALID_FIELD),
    };
    let dw0 = match number {
        feature::ARBITRATION => features.arbitration,
        feature::POWER => features.power_state,
        feature::TEMPERATURE => threshold(&features, sqe.cdw11.get())?,
        feature::ERROR_RECOVERY => features.error_recovery,
        feature::WRITE_CACHE if write_cache => {
            // Enabled by default.
            let on = subsystem.options.drives.iter().all(|&it| {
                let facts = drives.facts(it);
                !facts.write_cache || facts.write_cache_enabled
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
            let (stamp, origin) = timestamp(&features, drives.wall().ns());
            let page = [&stamp.to_le_bytes()[..6], &[origin, 0]].concat();
            return Ok(AdminOutcome::Page(page));
        }
        feature::HOST_BEHAVIOR => {
            let mut page = vec![0; 512];
            page[..HOST_BEHAVIOR].copy_from_slice(&features.host_behavior);
            return Ok(AdminOutcome::Page(page));
        }
        feature::HOST_ID => return Ok(AdminOutcome::Page(controller.host_id.to_vec())),
        _ => return Err(Status::INVALID_FIELD),
    };
    Ok(AdminOutcome::Done(dw0.into()))
}

/// Executes Set Features, and records it in the persistent event log.
pub(super) fn set(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    data: &[u8],
    drives: &mut dyn Drives,
) -> Result<AdminOutcome, Status> {
    let at = drives.wall();
    let before = target.controller(controller).map(|it| it.features);
    let dw0 = set_only(target, controller, sqe, data, drives)?;
    let history = &mut target.history;
    match before {
        Some(before) if sqe.cdw10.get() as u8 == feature::TIMESTAMP => {
            history.timestamp_set(controller, timestamp(&before, at.ns()).0, at);
        }
        _ => history.feature_set(controller, sqe, dw0, at),
    }
    Ok(AdminOutcome::Done(dw0.into()))
}

/// Executes Set Features without recording it; returns dword 0.
fn set_only(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    data: &[u8],
    drives: &mut dyn Drives,
) -> Result<u32, Status> {
    if sqe.cdw10.get() & SAVE != 0 {
        return Err(Status::FEATURE_NOT_SAVEABLE);
    }
    let (number, value) = (sqe.cdw10.get() as u8, sqe.cdw11.get());
    let subsystem = &target.subsystem;
    let most = u32::from(subsystem.io_queues) - 1;
    let write_cache = subsystem.write_cache;
    let controller = target.controllers.get(controller);
    let controller = controller.ok_or(Status::INTERNAL_ERROR)?;
    let features = &mut controller.features;
    match number {
        feature::ARBITRATION => features.arbitration = value,
        feature::POWER => {
            let state = value & (STATES - 1);
            for &drive in &subsystem.options.drives {
                drives.set_power_state(drive, state)?;
            }
            features.power_state = state;
        }
        feature::TEMPERATURE => set_threshold(features, value)?,
        feature::ERROR_RECOVERY => features.error_recovery = value,
        feature::WRITE_CACHE if write_cache => {
            for &drive in &subsystem.options.drives {
                if drives.facts(drive).write_cache {
                    drives.enable_write_cache(drive, value & 1 != 0)?;
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
            return Ok(granted);
        }
        feature::COALESCING => features.coalescing = value & 0xffff,
        feature::VECTOR => set_vector(features, value, most)?,
        feature::ATOMICITY => features.atomicity = value & 1,
        feature::EVENTS => features.events = value,
        // Only the report interval; the poll interval is set by the controller.
        feature::LBA_STATUS => features.lba_status = value & 0xffff,
        feature::KEEP_ALIVE => features.keep_alive_ms = value,
        feature::TIMESTAMP => {
            let bytes = data.first_chunk::<8>();
            let bytes = *bytes.ok_or(Status::DATA_SGL_LENGTH_INVALID)?;
            let stamp = u64::from_le_bytes(bytes) & 0xffff_ffff_ffff;
            features.timestamp = Some((stamp, drives.wall().ns()));
        }
        feature::HOST_BEHAVIOR => {
            let bytes = data.first_chunk::<HOST_BEHAVIOR>();
            features.host_behavior = *bytes.ok_or(Status::DATA_SGL_LENGTH_INVALID)?;
        }
        // Over fabrics, Connect sets it.
        feature::HOST_ID => return Err(Status::COMMAND_SEQUENCE),
        _ => return Err(Status::INVALID_FIELD),
    }
    Ok(0)
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

/// Returns the interrupt vector: one for each I/O queue and one for the admin queue. `queues`: I/O queues less one.
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

/// Returns the controller's timestamp in milliseconds, and whether the host has set it.
fn timestamp(features: &Features, now_ns: u64) -> (u64, u8) {
    match features.timestamp {
        Some((stamp, then)) => (stamp + now_ns.saturating_sub(then) / 1_000_000, 1 << 1),
        None => (now_ns / 1_000_000, 0),
    }
}

/// Returns the selected threshold, of the composite temperature or of the only sensor.
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
