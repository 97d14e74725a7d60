//! What is asked of every medium, beside being a [`Device`]: to be built, and what an administrator may set or see.
//!
//! A composition of drives is a medium too, and passes each question to its members. What a medium does not say is
//! answered by what stands here: it has no such thing. A setting that a drive does not have is refused, never ignored.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::nand::WarmState;
use crate::device::Device;
use crate::management::refusal::filled;
use crate::management::{LbaFormat, Refusal};
use crate::time::{Span, Time};

/// The state a drive is in when a run begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Precondition {
    /// As it left the factory: nothing written.
    Fresh,
    /// Written once from end to end, sequentially.
    Filled,
    /// As at the end of two fills with 4 KiB random writes: collection and write buffer in their steady state.
    #[default]
    Steady,
}

impl Precondition {
    /// As options and results name it.
    pub fn name(self) -> &'static str {
        match self {
            Precondition::Fresh => "fresh",
            Precondition::Filled => "filled",
            Precondition::Steady => "steady",
        }
    }

    /// That of a member of a pool which is in this state, if all of the member is a ring or not: a ring is written in order,
    /// again and again, and never at random.
    #[must_use]
    pub fn of_member(self, is_ring: bool) -> Precondition {
        match self {
            Precondition::Steady if is_ring => Precondition::Filled,
            _ => self,
        }
    }
}

/// What feeds the random streams of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Seeds {
    /// What it has been through before the run: drives with one have one state at the start.
    pub warm: u64,
    /// What happens in the run.
    pub run: u64,
}

impl Seeds {
    /// Those of one of several drives; the first has these themselves.
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
    /// One for both.
    fn from(seed: u64) -> Seeds {
        Seeds {
            warm: seed,
            run: seed,
        }
    }
}

/// What a drive of one medium is made of.
pub trait Medium: Clone {
    /// The drive it makes.
    type Drive: MediumDrive<Config = Self>;

    /// The drive in this state; the seeds feed its random streams.
    fn build(&self, state: Precondition, seeds: impl Into<Seeds>) -> Self::Drive;

    /// Why there can be no such drive, in sentences; nothing if there can.
    fn impossible(&self) -> Vec<String> {
        Vec::new()
    }

    /// Bytes a host can address.
    fn capacity_bytes(&self) -> u64;

    /// A drive that behaves like this one under uniform random writes but has only about `bytes`, so that it reaches
    /// its steady state after fewer of them. What happens then happens after the same number of fills; how much
    /// smaller it is says [`Medium::capacity_bytes`]. A drive that is smaller already stays as it is.
    fn shrunk(&self, bytes: u64) -> Self;

    /// Changes the LBA format from one without metadata, in which the configuration is, to any. Metadata travels and is
    /// stored with the data: link and data paths take [`LbaFormat::longer`] for each block.
    fn set_lba_format(&mut self, format: LbaFormat);

    /// How long a FORMAT takes.
    fn format_duration(&self) -> Span;

    /// Watts without work.
    fn idle_watts(&self) -> f64;

    /// Bytes of all dies, spare included; `None` for what has no dies.
    fn raw_bytes(&self) -> Option<u64> {
        None
    }

    /// Largest command in bytes; `None` where the drive takes any.
    fn max_transfer(&self) -> Option<u32> {
        None
    }

    /// Bytes of buffers that lose what is acknowledged but not flushed when power goes. A medium without such buffers
    /// has none.
    fn volatile_bytes(&self) -> u64 {
        0
    }

    /// Whether there are such bytes (NVMe's volatile write cache).
    fn volatile_write_cache(&self) -> bool {
        self.volatile_bytes() > 0
    }

    /// SMART's Percentage Used at the start.
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

    /// Whether it collects garbage, so that what holds no data is spare area and lowers its write amplification.
    fn collects(&self) -> bool {
        false
    }

    /// Keeps a share of the capacity, 0 to 0.9, from its user for good: as much more spare area.
    ///
    /// # Errors
    /// If the medium has no spare area, or the share is not in 0 to 0.9.
    fn set_overprovision(&mut self, share: f64) -> Result<(), Refusal> {
        let _ = share;
        Err(Refusal::NO_SPARE)
    }

    /// Sets which share of the capacity, from its beginning, holds data where a [`Precondition`] says that the drive has been
    /// written; the rest is trimmed. What is written in place is no other for it.
    ///
    /// # Errors
    /// If the share is not above 0 and at most 1.
    fn set_filled(&mut self, share: f64) -> Result<(), Refusal> {
        filled(share).map(|_| ())
    }

    /// Percentage Used at which the drive throttles its writes for good, if it does.
    fn write_protect_percent(&self) -> Option<f64> {
        None
    }

    /// The governor's limit in watts, if there is a governor.
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
    /// If nothing in it depends on that.
    fn set_uptime(&mut self, uptime: Span) -> Result<(), Refusal> {
        let _ = uptime;
        Err(Refusal::NO_REFRESH)
    }
}

/// A drive of one medium.
pub trait MediumDrive: Device + Sized {
    /// What it is made of.
    type Config: Medium<Drive = Self>;

    /// The drive that [`Medium::build`] makes, in the memory of a used one: for a caller that runs one plan after
    /// another. Worth it where a drive has large tables.
    fn reset(self, config: &Self::Config, state: Precondition, seeds: impl Into<Seeds>) -> Self {
        drop(self);
        config.build(state, seeds)
    }

    /// Before it is used: takes the state in which its first write will find it from these, if it is among them, and
    /// keeps what it makes itself if that is wanted `again`. Changes no result.
    fn know(&mut self, states: &[Arc<WarmState>], again: bool) {
        let _ = (states, again);
    }

    /// Tells the states that it knows, for other drives of its make and seed.
    fn warm_states(&self, tell: &mut dyn FnMut(&Arc<WarmState>)) {
        let _ = tell;
    }

    /// Sets the governor's limit in watts from now on, above idle power.
    ///
    /// # Errors
    /// As [`Medium::set_power_limit`].
    fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        let _ = watts;
        Err(Refusal::NO_GOVERNOR)
    }

    /// Sets SMART's Percentage Used as of now (to see the end of life without writing for years).
    ///
    /// # Errors
    /// As [`Medium::set_percentage_used`].
    fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        let _ = percent;
        Err(Refusal::NO_WEAR)
    }

    /// The drive has just been switched on: what it does after that begins again. One that does nothing special just
    /// goes on.
    fn power_on(&mut self, now: Time) {
        let _ = now;
    }

    /// Computes now what it would compute at its first write (a map in its steady state: up to a second of CPU time),
    /// for a caller that serves it against a clock. Reads before that write find another map then; nothing else changes.
    fn prepare(&mut self) {}

    /// Tells where those of its tables are in memory that are looked up at random all over, for who can have them backed
    /// by large pages. They stay there as long as the drive is; what it does does not change.
    fn scattered_tables(&mut self, tell: &mut dyn FnMut(core::ops::Range<*const u8>)) {
        let _ = tell;
    }
}

/// Applies to each member of a composition; all are tried, the first refusal is reported.
///
/// # Errors
/// The first refusal.
pub(crate) fn all(results: impl Iterator<Item = Result<(), Refusal>>) -> Result<(), Refusal> {
    results.fold(Ok(()), Result::and)
}

/// The members of a composition, each in its state, in the memory of `used` ones where there are some. The first has the seeds
/// themselves.
pub(crate) fn members<'a, M: Medium + 'a>(
    used: Vec<M::Drive>,
    configs: impl Iterator<Item = (&'a M, Precondition)>,
    seeds: Seeds,
) -> Vec<M::Drive> {
    let mut used = used.into_iter();
    let member = |(index, (config, state)): (usize, (&M, Precondition))| {
        let own = seeds.of_member(index);
        match used.next() {
            Some(drive) => drive.reset(config, state, own),
            None => config.build(state, own),
        }
    };
    configs.enumerate().map(member).collect()
}
