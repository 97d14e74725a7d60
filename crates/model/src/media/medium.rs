//! The interface of every medium, in addition to [`Device`]: construction, and administrative settings and properties.
//!
//! A composition of drives is a medium too, and forwards each call to its members. The default implementations here are
//! for media without the feature. A setting that a drive does not support is rejected, never ignored.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::nand::WarmState;
use crate::device::Device;
use crate::management::refusal::filled;
use crate::management::{LbaFormat, Refusal};
use crate::time::{Span, Time};

/// Initial state of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Precondition {
    /// New: nothing written.
    Fresh,
    /// Written once from start to end, sequentially.
    Filled,
    /// State after two fills with 4 KiB random writes: garbage collection and write buffer are in steady state.
    #[default]
    Steady,
}

impl Precondition {
    /// Returns the name used in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Precondition::Fresh => "fresh",
            Precondition::Filled => "filled",
            Precondition::Steady => "steady",
        }
    }

    /// Returns the state of a pool member, for a pool in this state. `is_ring`: whether the entire member is a ring,
    /// which is always written sequentially and never at random.
    #[must_use]
    pub fn of_member(self, is_ring: bool) -> Precondition {
        match self {
            Precondition::Steady if is_ring => Precondition::Filled,
            _ => self,
        }
    }
}

/// Seeds of a drive's random streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Seeds {
    /// Seed for preconditioning: drives with equal values have equal initial states.
    pub warm: u64,
    /// Seed for events during the run.
    pub run: u64,
}

impl Seeds {
    /// Returns the seeds of one of several drives; the first has these seeds unchanged.
    #[must_use]
    pub fn of_member(self, index: usize) -> Seeds {
        let further = (index as u64).wrapping_mul(0x2545_f491_4f6c_dd1d);
        Seeds {
            warm: self.warm.wrapping_add(further),
            run: self.run.wrapping_add(further),
        }
    }
}

impl From<u64> for Seeds {
    /// Uses one seed for both purposes.
    fn from(seed: u64) -> Seeds {
        Seeds {
            warm: seed,
            run: seed,
        }
    }
}

/// Configuration of a drive of one medium.
pub trait Medium: Clone {
    /// The type of drive that this configuration creates.
    type Drive: MediumDrive<Config = Self>;

    /// Creates the drive in this state; the seeds initialise its random streams.
    fn build(&self, state: Precondition, seeds: impl Into<Seeds>) -> Self::Drive;

    /// Returns the reasons why the configuration is invalid, as sentences; empty if it is valid.
    fn impossible(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the bytes that a host can address.
    fn capacity_bytes(&self) -> u64;

    /// Returns a drive that behaves like this one under uniform random writes but has only about `bytes`, so that it
    /// reaches steady state after fewer of them. Events happen after the same number of fills; the actual size is
    /// [`Medium::capacity_bytes`]. A drive that is already smaller is returned unchanged.
    fn shrunk(&self, bytes: u64) -> Self;

    /// Changes the LBA format from one without metadata, which the configuration has, to any other. Metadata is
    /// transferred and stored with the data: link and data paths take [`LbaFormat::longer`] for each block.
    fn set_lba_format(&mut self, format: LbaFormat);

    /// Returns the duration of a FORMAT.
    fn format_duration(&self) -> Span;

    /// Returns the idle power in watts.
    fn idle_watts(&self) -> f64;

    /// Returns the bytes of all dies, spare area included; `None` for media without dies.
    fn raw_bytes(&self) -> Option<u64> {
        None
    }

    /// Returns the size of the largest command in bytes; `None` if there is no limit.
    fn max_transfer(&self) -> Option<u32> {
        None
    }

    /// Returns the bytes of volatile buffers, whose data is lost in a power cut if it was acknowledged but not flushed.
    /// The default is for media without such buffers.
    fn volatile_bytes(&self) -> u64 {
        0
    }

    /// Whether there are volatile buffers (NVMe's volatile write cache).
    fn volatile_write_cache(&self) -> bool {
        self.volatile_bytes() > 0
    }

    /// Returns SMART's Percentage Used at the start.
    fn percentage_used(&self) -> f64 {
        0.0
    }

    /// Sets SMART's Percentage Used at the start.
    ///
    /// # Errors
    /// If the medium does not wear, or the percentage is not in 0 to 1000.
    fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        let _ = percent;
        Err(Refusal::NO_WEAR)
    }

    /// Sets the wear of each byte written, as a multiple of the drive's own: a run of seconds then reaches the end of a
    /// drive's life. Rates and latencies do not depend on it before that end.
    ///
    /// # Errors
    /// If the medium does not wear, or the factor is not above 0 and at most 1e12.
    fn set_wear_factor(&mut self, factor: f64) -> Result<(), Refusal> {
        let _ = factor;
        Err(Refusal::NO_WEAR)
    }

    /// Returns the Percentage Used at and above which the medium is read-only, if the drive has such an end.
    fn read_only_percent(&self) -> Option<f64> {
        None
    }

    /// Whether the drive collects garbage, so that blocks without data are spare area and lower its write
    /// amplification.
    fn collects(&self) -> bool {
        false
    }

    /// Removes a share of the capacity, 0 to 0.9, from the user permanently: it becomes additional spare area.
    ///
    /// # Errors
    /// If the medium has no spare area, or the share is not in 0 to 0.9.
    fn set_overprovision(&mut self, share: f64) -> Result<(), Refusal> {
        let _ = share;
        Err(Refusal::NO_SPARE)
    }

    /// Sets the share of the capacity, from its beginning, that holds data if the [`Precondition`] is a written state;
    /// the rest is trimmed. A medium that is written in place does not depend on this.
    ///
    /// # Errors
    /// If the share is not above 0 and at most 1.
    fn set_filled(&mut self, share: f64) -> Result<(), Refusal> {
        filled(share).map(|_| ())
    }

    /// Returns the Percentage Used at and above which the drive throttles its writes permanently, if it does.
    fn write_protect_percent(&self) -> Option<f64> {
        None
    }

    /// Returns the governor's limit in watts, if there is a governor.
    fn power_limit_watts(&self) -> Option<f64> {
        None
    }

    /// Sets the governor's limit in watts, above idle power.
    ///
    /// # Errors
    /// If there is no governor, or the limit is not above idle power.
    fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        let _ = watts;
        Err(Refusal::NO_GOVERNOR)
    }

    /// Sets how long the drive has been on when the run begins.
    ///
    /// # Errors
    /// If nothing in the drive depends on that.
    fn set_uptime(&mut self, uptime: Span) -> Result<(), Refusal> {
        let _ = uptime;
        Err(Refusal::NO_REFRESH)
    }
}

/// A drive of one medium.
pub trait MediumDrive: Device + Sized {
    /// The type of its configuration.
    type Config: Medium<Drive = Self>;

    /// Creates the drive that [`Medium::build`] creates, in the memory of a used one: for callers that run one plan
    /// after another. Useful if a drive has large tables.
    fn reset(self, config: &Self::Config, state: Precondition, seeds: impl Into<Seeds>) -> Self {
        drop(self);
        config.build(state, seeds)
    }

    /// Before its first use: if `states` contains the state in which the first write will find the drive, uses it. If
    /// `again` is set, keeps a state that it computes itself. Does not change results.
    fn know(&mut self, states: &[Arc<WarmState>], again: bool) {
        let _ = (states, again);
    }

    /// Reports the states that it knows, for other drives with the same configuration and seed.
    fn warm_states(&self, tell: &mut dyn FnMut(&Arc<WarmState>)) {
        let _ = tell;
    }

    /// Changes the governor's limit in watts, above idle power.
    ///
    /// # Errors
    /// As [`Medium::set_power_limit`].
    fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        let _ = watts;
        Err(Refusal::NO_GOVERNOR)
    }

    /// Changes SMART's Percentage Used (to observe the end of life without years of writing).
    ///
    /// # Errors
    /// As [`Medium::set_percentage_used`].
    fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        let _ = percent;
        Err(Refusal::NO_WEAR)
    }

    /// The drive has just been switched on: background work that follows a power-on restarts. The default does nothing.
    fn power_on(&mut self, now: Time) {
        let _ = now;
    }

    /// Computes in advance what the drive would compute at its first write (a map in steady state: up to a second of
    /// CPU time), for callers that serve it in wall-clock time. Reads before that write then find another map; nothing
    /// else changes.
    fn prepare(&mut self) {}

    /// Reports the memory ranges of the drive's tables that are accessed at random, so that callers can back them with
    /// large pages. The tables stay there during the lifetime of the drive; its behaviour does not change.
    fn scattered_tables(&mut self, tell: &mut dyn FnMut(core::ops::Range<*const u8>)) {
        let _ = tell;
    }
}
