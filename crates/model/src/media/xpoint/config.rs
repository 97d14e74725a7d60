//! What an XPoint drive is made of.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::time::Span;

/// Bytes of the unit in which an XPoint drive stores, protects and locks data.
pub const UNIT: u32 = 4096;

/// Most groups of dies a drive may have.
pub const MAX_GROUPS: u32 = 32;

/// Most places in the table of units that wait.
pub const MAX_TABLE_PLACES: u32 = 1 << 16;

/// What an XPoint drive is made of. The catalogue makes it; [`XPointConfig::problems`] names what cannot be.
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
    /// Largest command in bytes (MDTS); the host's driver splits what is larger.
    pub max_transfer: u32,
    /// Time for a command's way through the drive.
    pub timing: Timing,
    /// Patrol and refresh.
    pub refresh: Refresh,
    /// Wear levelling.
    pub levelling: Levelling,
    /// Reads that need more than one attempt.
    pub recovery: Recovery,
    /// Power and its governor.
    pub power: Power,
    /// Endurance and what happens at its end.
    pub wear: Wear,
    /// Bytes a second at which a FORMAT goes through each die; all dies at once.
    pub format_die_bytes_per_second: u64,
}

/// Times and rates of an XPoint drive.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Timing {
    /// Doorbell, fetch of the command and posting of its completion: constant, so it is all counted on the way in.
    pub link: Span,
    /// Link transfer, picoseconds a byte; not slower than the data paths.
    pub link_ps_per_byte: u64,
    /// From the controller's request for write data until its first byte arrives from host memory.
    pub data_fetch: Span,
    /// From the start of work on a command until its units start.
    pub controller: Span,
    /// Added for each logical block of a command beyond its first: its place in the map and its checks.
    pub further_block: Span,
    /// Shortest time from one command to the next.
    pub controller_interval: Span,
    /// Units of 4 KiB that the controller works on at once; commands that have more wait before it, in order.
    pub controller_slots: u32,
    /// Buffers for units of writes that have left the table: as many are on the data path or at their dies at once.
    pub write_buffers: u32,
    /// Places for units that wait for the data path, in each direction; a unit's place is a hash of its number.
    pub table_places: u32,
    /// Controller's data path from the medium to the host, picoseconds a byte; moves whole units.
    pub read_path_ps_per_byte: u64,
    /// The least part of a unit that is read, corrected and moved by itself, a power of two of at least 512 bytes;
    /// [`UNIT`] if only whole units are.
    pub read_part: u32,
    /// What the completion of a read takes of the read path, behind its data.
    pub read_completion: Span,
    /// A unit takes the read path as much less or more than the mean as this, evenly spread: error correction.
    pub read_spread: Span,
    /// Controller's data path from the host to the medium, picoseconds a byte; moves whole units.
    pub write_path_ps_per_byte: u64,
    /// Lost by the data path when it turns from reads to writes or back.
    pub turnaround: Span,
    /// Whether reads and writes have a front of the controller and a data path each; nothing then turns around.
    pub duplex: bool,
    /// One die alone reads a unit.
    pub die_read: Span,
    /// Checking and correcting what was read of a unit, on its way from the dies; the next is read meanwhile.
    pub decode: Span,
    /// One die alone writes a unit.
    pub die_write: Span,
}

/// Background reads and rewrites that keep data from fading.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Refresh {
    /// Units refreshed at a time, during which their group of dies serves nobody else.
    pub batch_units: u32,
    /// Time for one pass over the whole medium.
    pub period: Span,
    /// After power-on one whole pass is made in this time.
    pub after_power_on: Span,
    /// How long the drive has been on when the run begins.
    pub uptime_at_start: Span,
}

/// Moving data that stays in place, so that all of the medium wears alike.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Levelling {
    /// Mean number of unit writes to a group of dies between two moves in it; 0 for never.
    pub writes_per_move: u32,
    /// Units moved at a time.
    pub batch_units: u32,
}

/// Correction of errors beyond what is done in passing. It always succeeds: lost data is not modelled.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Recovery {
    /// Mean number of unit reads between two that need it; 0 for never.
    pub reads_per_recovery: u32,
    /// How much longer such a read takes its group of dies.
    pub time: Span,
}

/// Power.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Power {
    /// Watts without work.
    pub idle_watts: f64,
    /// Joules for each byte of the units read.
    pub read_joules_per_byte: f64,
    /// Joules for each byte of the units written.
    pub write_joules_per_byte: f64,
    /// The governor's limit in watts; above `idle_watts`.
    pub limit_watts: f64,
    /// The governor looks at the mean over about this long.
    pub governor_window: Span,
}

/// Endurance.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Wear {
    /// Bytes the host may write in the drive's life.
    pub endurance_bytes: u64,
    /// SMART's Percentage Used when the run begins.
    pub percentage_used_at_start: f64,
    /// Percentage Used at which writes are throttled.
    pub protect_at_percent: f64,
    /// Bytes a second that may be written from then on.
    pub protected_bytes_per_second: u64,
}

/// The least parts of a unit that are read, corrected and moved by themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// Bytes of a part, a power of two, less one.
    within: u16,
}

impl Parts {
    /// Of the `unwanted` bytes of a unit those that make whole parts, which nobody reads or moves.
    #[inline]
    pub(super) fn spared(self, unwanted: u16) -> u16 {
        unwanted & !self.within
    }
}

impl Timing {
    /// Requires what must hold among the times.
    fn check(&self, require: &mut impl FnMut(bool, &str)) {
        let slowest_link = self.read_path_ps_per_byte.min(self.write_path_ps_per_byte);
        require(
            self.controller_slots > 0,
            "the controller must work on at least one command at once",
        );
        require(
            self.write_buffers > 0,
            "there must be a buffer for a unit that is written",
        );
        require(
            self.table_places > 0 && self.table_places <= MAX_TABLE_PLACES,
            "the table of units must have a place, and at most 65536",
        );
        require(
            self.read_part.is_power_of_two() && (512..=UNIT).contains(&self.read_part),
            "the part of a unit that is read by itself must be a power of two from 512 to 4096 bytes",
        );
        require(
            self.link_ps_per_byte <= slowest_link,
            "the link must not be slower than the data paths",
        );
        require(
            self.read_spread <= Span::per_bytes(self.read_path_ps_per_byte, u64::from(UNIT)),
            "no unit can take the read path in less than no time",
        );
    }
}

impl XPointConfig {
    /// Groups of dies that work independently.
    pub fn groups(&self) -> u32 {
        self.dies_per_channel
    }

    /// A group reads one unit in this time.
    pub fn unit_read(&self) -> Span {
        Span::from_ns(self.timing.die_read.ns() / u64::from(self.channels))
    }

    /// A group writes one unit in this time.
    pub fn unit_write(&self) -> Span {
        Span::from_ns(self.timing.die_write.ns() / u64::from(self.channels))
    }

    /// The parts of a unit that are read and moved by themselves.
    pub(super) fn parts(&self) -> Parts {
        Parts {
            within: self.timing.read_part as u16 - 1,
        }
    }

    /// Units a group holds, spare included.
    pub(super) fn group_units(&self) -> u64 {
        u64::from(self.channels) * self.die_bytes / u64::from(UNIT)
    }

    /// Everything that is impossible about it, in words.
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
            "there must be a channel, and a die in it",
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
