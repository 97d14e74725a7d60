//! Configuration of an XPoint drive.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::time::Span;

/// Bytes of the unit in which an XPoint drive stores, protects and locks data.
pub const UNIT: u32 = 4096;

/// Maximum number of die groups in a drive.
pub const MAX_GROUPS: u32 = 32;

/// Maximum number of places in the table of waiting units.
pub const MAX_TABLE_PLACES: u32 = 1 << 16;

/// Configuration of an XPoint drive. The catalogue creates it; [`XPointConfig::problems`] names invalid values.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct XPointConfig {
    /// Bytes a host can address.
    pub bytes: u64,
    /// Logical block in bytes: 512 or 4096.
    pub block: u32,
    /// Channels. A unit is striped over one die of each channel.
    pub channels: u32,
    /// Dies in each channel: the groups that work independently.
    pub dies_per_channel: u32,
    /// Bytes of a die, spare included.
    pub die_bytes: u64,
    /// Largest command in bytes (MDTS); the host's driver splits larger ones.
    pub max_transfer: u32,
    /// Times of a command's steps through the drive.
    pub timing: XPointTiming,
    /// Patrol and refresh.
    pub refresh: XPointRefresh,
    /// Wear levelling.
    pub levelling: Levelling,
    /// Reads that need more than one attempt.
    pub recovery: Recovery,
    /// Power and its governor.
    pub power: XPointPower,
    /// Endurance and what happens at its end.
    pub wear: Wear,
    /// Rate in bytes per second at which a FORMAT processes each die; all dies work at once.
    pub format_die_bytes_per_second: u64,
}

/// Times and rates of an XPoint drive.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct XPointTiming {
    /// Doorbell, command fetch and completion posting: constant, so that all of it is counted at submission.
    pub link: Span,
    /// Link transfer, in picoseconds per byte; not slower than the data paths.
    pub link_ps_per_byte: u64,
    /// From the controller's request for write data until its first byte arrives from host memory.
    pub data_fetch: Span,
    /// From the start of work on a command until its units start.
    pub controller: Span,
    /// Added for each logical block of a command beyond the first: its map entry and its checks.
    pub further_block: Span,
    /// Minimum time between two commands.
    pub controller_interval: Span,
    /// Units of 4 KiB that the controller works on at once; commands that do not fit wait, in order.
    pub controller_slots: u32,
    /// Buffers for units of writes that have left the table: the maximum number on the data path or at their dies at
    /// once.
    pub write_buffers: u32,
    /// Places in the table for units that wait for the data path, in each direction. A unit's place is a hash of its
    /// number.
    pub table_places: u32,
    /// Controller's data path from the medium to the host, in picoseconds per byte; transfers whole units.
    pub read_path_ps_per_byte: u64,
    /// Smallest part of a unit that is read, corrected and transferred separately: a power of two of at least 512
    /// bytes; [`UNIT`] if only whole units are.
    pub read_part: u32,
    /// Time that the completion of a read occupies the read path, after its data.
    pub read_completion: Span,
    /// Maximum deviation, in both directions, of a unit's time on the read path from the mean, uniformly distributed:
    /// error correction.
    pub read_spread: Span,
    /// Controller's data path from the host to the medium, in picoseconds per byte; transfers whole units.
    pub write_path_ps_per_byte: u64,
    /// Time lost by the data path when it changes between reads and writes.
    pub turnaround: Span,
    /// Whether reads and writes each have a controller front end and a data path; there is then no turnaround.
    pub duplex: bool,
    /// Time for a single die to read a unit.
    pub die_read: Span,
    /// Time for checking and correcting the read data of a unit, after it leaves the dies; the next unit is read
    /// meanwhile.
    pub decode: Span,
    /// Time for a single die to write a unit.
    pub die_write: Span,
}

/// Background reads and rewrites that keep data readable.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct XPointRefresh {
    /// Units refreshed at a time; during that time their die group serves no commands.
    pub batch_units: u32,
    /// Time for one pass over the whole medium.
    pub period: Span,
    /// Time for the first whole pass after power-on.
    pub after_power_on: Span,
    /// How long the drive has been on when the run begins.
    pub uptime_at_start: Span,
}

/// Moving static data, so that the whole medium wears evenly.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Levelling {
    /// Mean number of unit writes to a die group between two moves in it; 0 for never.
    pub writes_per_move: u32,
    /// Units moved at a time.
    pub batch_units: u32,
}

/// Correction of errors beyond normal decoding. It always succeeds: data loss is not modelled.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Recovery {
    /// Mean number of unit reads between two that need it; 0 for never.
    pub reads_per_recovery: u32,
    /// Additional time that such a read occupies its die group.
    pub time: Span,
}

/// Power consumption and its governor.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct XPointPower {
    /// Idle power in watts.
    pub idle_watts: f64,
    /// Joules per byte of the units read.
    pub read_joules_per_byte: f64,
    /// Joules per byte of the units written.
    pub write_joules_per_byte: f64,
    /// The governor's limit in watts; above `idle_watts`.
    pub limit_watts: f64,
    /// Approximate length of the window over which the governor averages power.
    pub governor_window: Span,
}

/// Endurance, and throttling at its end.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Wear {
    /// Rated endurance: bytes that the host may write over the drive's life.
    pub endurance_bytes: u64,
    /// SMART's Percentage Used when the run begins.
    pub percentage_used_at_start: f64,
    /// Wear of each byte written, as a multiple of the drive's own.
    #[cfg_attr(
        feature = "serde",
        serde(default = "own_wear", skip_serializing_if = "is_own_wear")
    )]
    pub factor: f64,
    /// Percentage Used at which writes are throttled.
    pub protect_at_percent: f64,
    /// Write rate in bytes per second after that.
    pub protected_bytes_per_second: u64,
}

/// The default: wear as rated.
#[cfg(feature = "serde")]
fn own_wear() -> f64 {
    1.0
}

#[cfg(feature = "serde")]
fn is_own_wear(factor: &f64) -> bool {
    *factor == own_wear()
}

/// Smallest parts of a unit that are read, corrected and transferred separately.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// Bytes of a part (a power of two) minus one.
    within: u16,
}

impl Parts {
    /// Returns how many of the `unwanted` bytes of a unit form whole parts, which are neither read nor transferred.
    #[inline]
    pub(super) fn spared(self, unwanted: u16) -> u16 {
        unwanted & !self.within
    }
}

impl XPointTiming {
    /// Checks conditions between the times.
    fn check(&self, require: &mut impl FnMut(bool, &str)) {
        let slowest_link = self.read_path_ps_per_byte.min(self.write_path_ps_per_byte);
        require(
            self.controller_slots > 0,
            "the controller must work on at least one command at once",
        );
        require(
            self.write_buffers > 0,
            "there must be at least one buffer for written units",
        );
        require(
            self.table_places > 0 && self.table_places <= MAX_TABLE_PLACES,
            "the table of units must have 1 to 65536 places",
        );
        require(
            self.read_part.is_power_of_two() && (512..=UNIT).contains(&self.read_part),
            "the smallest part of a unit that can be read alone must be a power of two from 512 to 4096 bytes",
        );
        require(
            self.link_ps_per_byte <= slowest_link,
            "the link must not be slower than the data paths",
        );
        require(
            self.read_spread <= Span::per_bytes(self.read_path_ps_per_byte, u64::from(UNIT)),
            "the shortest time on the read path must not be negative",
        );
    }
}

impl XPointConfig {
    /// Returns the number of independent die groups.
    pub fn groups(&self) -> u32 {
        self.dies_per_channel
    }

    /// Returns the time in which a group reads one unit.
    pub fn unit_read(&self) -> Span {
        Span::from_ns(self.timing.die_read.ns() / u64::from(self.channels))
    }

    /// Returns the time in which a group writes one unit.
    pub fn unit_write(&self) -> Span {
        Span::from_ns(self.timing.die_write.ns() / u64::from(self.channels))
    }

    /// Returns the parts of a unit that are read and transferred separately.
    pub(super) fn parts(&self) -> Parts {
        Parts {
            within: self.timing.read_part as u16 - 1,
        }
    }

    /// Returns the units of a group, spare area included.
    pub(super) fn group_units(&self) -> u64 {
        u64::from(self.channels) * self.die_bytes / u64::from(UNIT)
    }

    /// Returns a description of each invalid value.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut require = |holds: bool, what: &str| {
            if !holds {
                problems.push(what.to_string());
            }
        };
        let unit = u64::from(UNIT);
        require(
            self.bytes >= unit && self.bytes.is_multiple_of(unit) && self.bytes / unit < 1 << 32,
            "capacity must be a multiple of 4 KiB, below 16 TiB",
        );
        require(
            self.block == 512 || self.block == 4096,
            "the logical block must be 512 or 4096 bytes",
        );
        require(
            self.channels > 0 && self.dies_per_channel > 0,
            "there must be at least one channel, with at least one die",
        );
        require(
            self.dies_per_channel <= MAX_GROUPS,
            "at most 32 dies in a channel",
        );
        let dies = u64::from(self.channels) * u64::from(self.dies_per_channel);
        require(
            dies.saturating_mul(self.die_bytes) >= self.bytes,
            "the dies hold less than the capacity",
        );
        require(
            self.max_transfer >= UNIT && self.max_transfer.is_multiple_of(UNIT),
            "the largest command must be a multiple of 4 KiB",
        );
        self.timing.check(&mut require);
        let refresh = &self.refresh;
        require(
            refresh.batch_units == 0
                || (refresh.period > Span::ZERO && refresh.after_power_on > Span::ZERO),
            "a refresh needs the time of a pass, and that of the pass after power-on",
        );
        require(
            self.power.limit_watts > self.power.idle_watts && self.power.idle_watts >= 0.0,
            "the power limit must be above idle power",
        );
        require(
            self.power.read_joules_per_byte >= 0.0 && self.power.write_joules_per_byte >= 0.0,
            "energy for each byte must not be negative",
        );
        require(
            self.wear.endurance_bytes > 0
                && self.wear.protected_bytes_per_second > 0
                && self.format_die_bytes_per_second > 0,
            "endurance, the throttled rate and that of a FORMAT must be above zero",
        );
        require(
            self.wear.percentage_used_at_start >= 0.0 && self.wear.protect_at_percent >= 0.0,
            "percentages used must not be negative",
        );
        problems
    }
}
