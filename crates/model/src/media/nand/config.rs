//! Configuration of a NAND drive.

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::ftl::{FtlGeometry, NandGeometry, UNIT, Watermark};
use crate::time::Span;

/// Configuration of a NAND drive. [`NandConfig::check`] validates it.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NandConfig {
    /// Geometry of the array.
    pub geometry: NandGeometry,
    /// Logical block size in bytes: 512 or 4096.
    pub block: u32,
    /// Times of the dies and channels.
    pub timing: NandTiming,
    /// Controller and link.
    pub controller: NandController,
    /// DRAM write buffer.
    pub buffer: WriteBuffer,
    /// Garbage collection.
    pub collection: Collection,
    /// Read-ahead of sequential streams, if the drive has it.
    pub read_ahead: Option<ReadAhead>,
    /// Memory for the map, if it does not hold the whole map.
    #[cfg_attr(feature = "serde", serde(default))]
    pub map: Option<MapConfig>,
    /// pSLC write cache, if the drive has one.
    pub slc: Option<SlcCache>,
    /// Patrol read and refresh of the medium.
    pub refresh: Option<NandRefresh>,
    /// Firmware pauses during which no writes are accepted.
    pub housekeeping: Option<Housekeeping>,
    /// Pacing of writes, if the firmware admits them only as fast as the array can take them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub pace: Option<Pace>,
    /// Power and energy.
    pub power: NandPower,
    /// Rated program and erase cycles of a block.
    pub rated_cycles: u32,
    /// SMART's Percentage Used when the run begins.
    pub percentage_used_at_start: f64,
    /// Wear of each erase, as a multiple of the drive's own.
    #[cfg_attr(
        feature = "serde",
        serde(default = "own_wear", skip_serializing_if = "is_own_wear")
    )]
    pub wear_factor: f64,
    /// Percentage Used at and above which the medium is read-only, if the drive has such an end.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub read_only_at_percent: Option<f64>,
    /// Share of the capacity, from its beginning, that holds data in a written initial state: above 0, at most 1. The
    /// rest is trimmed.
    #[cfg_attr(feature = "serde", serde(default = "whole"))]
    pub filled: f64,
}

/// The default: the drive is full.
#[cfg(feature = "serde")]
fn whole() -> f64 {
    1.0
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

/// Times of the medium.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NandTiming {
    /// Sensing a page into the die's register (tR), mean over the pages of a block.
    pub read: Span,
    /// Spread of the sense time around its mean, as a share of it (0 to 1): lower, upper and worn pages differ. Uniform
    /// without `read_thresholds`; otherwise the share by which the slowest kind of page exceeds the mean.
    pub read_spread: f64,
    /// Number of thresholds that a sense of each kind of page compares the cells with, such as 1, 2 and 4 for lower,
    /// middle and upper pages of three bits. Each kind is equally frequent; a sense takes a fixed time and a time for
    /// each threshold. Empty if the kinds are not known. Pages in SLC mode have one kind.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Vec::is_empty")
    )]
    pub read_thresholds: Vec<u32>,
    /// Whether a die senses its next page while the data of the previous one waits for the channel and crosses it
    /// (ONFI's cache read of any page). If not, the die is busy until the data has crossed.
    pub cache_read: bool,
    /// Probability that a sense must be repeated with other thresholds (each repetition may need another one).
    pub retry_probability: f64,
    /// Programming a multi-plane page (tPROG), mean over the pages of a block.
    pub program: Span,
    /// Distance of lower pages below and upper pages above that mean, as a share of it (0 to 1): the pages of a block
    /// alternate between lower and upper. 0 if all bits of a cell are programmed at once.
    pub program_spread: f64,
    /// Random deviation of each program from that, in both directions, as a share of it (0 to 1): the number of pulses
    /// is determined during programming.
    #[cfg_attr(feature = "serde", serde(default))]
    pub program_jitter: f64,
    /// Erasing a multi-plane block (tBERS).
    pub erase: Span,
    /// Suspension of programs and erases by reads, if dies and firmware support it.
    pub suspend: Option<Suspend>,
    /// Command and address cycles of each transfer on a channel.
    pub channel_command: Span,
    /// Picoseconds per byte on a channel.
    pub channel_ps_per_byte: u64,
}

/// Suspension of a program or erase, so that a read need not wait for its end.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Suspend {
    /// From the request of a read until the die can sense.
    pub latency: Span,
    /// Added to the rest of the operation each time it resumes.
    pub resume: Span,
    /// Maximum number of suspensions of one operation; then it runs to its end.
    pub most: u32,
    /// A program stops only at whole multiples of this before its end; zero: at any moment.
    #[cfg_attr(feature = "serde", serde(default))]
    pub step: Span,
    /// Time after its start during which a program does not stop (the first pulses); it can stop at the end of that
    /// time.
    #[cfg_attr(feature = "serde", serde(default))]
    pub blind: Span,
    /// Like `step`, for an erase: it stops between its pulses.
    #[cfg_attr(feature = "serde", serde(default))]
    pub erase_step: Span,
}

/// Processors that share, by address, the controller's work for reads from the medium.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReadCoreConfig {
    /// Number of processors: 1 to 64.
    pub count: u32,
    /// Time of one processor per read command.
    pub per_read: Span,
}

/// Controller and link.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NandController {
    /// Controller time per read command, with its first sense. A command that finds all its data read ahead has paid
    /// for one sense of the read-ahead.
    pub per_read: Span,
    /// Controller time per sense beyond a command's first, including those of read-ahead and of the map; `None`: as
    /// long as for a command.
    #[cfg_attr(feature = "serde", serde(default))]
    pub per_read_unit: Option<Span>,
    /// Controller time per write command.
    pub per_write: Span,
    /// Controller time per 4 KiB unit of a write beyond its first.
    pub per_write_unit: Span,
    /// Minimum time between two senses of one command: the senses of a command are issued one after another, but
    /// several commands are processed at a time.
    pub issue_interval: Span,
    /// Minimum time between two 4 KiB units of one write command: the units of a command are accepted one after
    /// another, but several commands are processed at a time.
    pub write_issue_interval: Span,
    /// Processors, each with its own queue, that a read command passes before its first sense, if there are any; the
    /// address of its first 4 KiB unit selects the processor. Reads of data in memory do not pass them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub cores: Option<ReadCoreConfig>,
    /// Additional fixed latency of a read (firmware, error correction, completion).
    pub read_latency: Span,
    /// Additional fixed latency of a write, flush or deallocation.
    pub write_latency: Span,
    /// Mean of a random addition to that (exponential).
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_spread: Span,
    /// Doorbell, command fetch and completion over the link.
    pub link_latency: Span,
    /// Picoseconds per byte over the link, in each direction.
    pub link_ps_per_byte: u64,
    /// Picoseconds per byte of written data over the link, if they differ (SATA acknowledges each frame of a write).
    #[cfg_attr(feature = "serde", serde(default))]
    pub link_write_ps_per_byte: Option<u64>,
    /// Command slots of the link, if it has few (SATA); commands beyond them wait, and flushes and deallocations are not
    /// queued.
    #[cfg_attr(feature = "serde", serde(default))]
    pub slots: Option<NonZeroU32>,
    /// Maximum transfer of one command (MDTS); larger ones are split.
    pub max_transfer: u32,
    /// Whether a partial write of a 4 KiB unit is acknowledged only when the rest of the unit has been read.
    pub merge_before_ack: bool,
}

impl NandController {
    /// Returns the controller time of a sense beyond a command's first.
    #[inline]
    pub(super) fn per_further_sense(&self) -> Span {
        self.per_read_unit.unwrap_or(self.per_read)
    }

    /// Returns the picoseconds per byte of written data over the link.
    #[inline]
    pub(super) fn write_ps_per_byte(&self) -> u64 {
        self.link_write_ps_per_byte.unwrap_or(self.link_ps_per_byte)
    }
}

/// DRAM write buffer.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WriteBuffer {
    /// Bytes of host data that it can hold, including data on its way to the medium.
    pub bytes: u64,
    /// Whether capacitors preserve it in a power loss (PLP): then a flush and FUA cost nothing.
    pub protected: bool,
    /// Time that a flush takes, after the data, to save the tables that locate the data, if capacitors do not preserve
    /// those.
    pub save_tables: Span,
    /// Time that a write with force unit access takes, after the data, to save these tables; zero if it does not save
    /// them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub fua_tables: Span,
    /// Units of 4 KiB of tables that are programmed per write command that does not continue one of the last writes;
    /// the old tables become garbage.
    #[cfg_attr(feature = "serde", serde(default))]
    pub tables_per_write: f64,
}

/// Garbage collection.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Collection {
    /// Number of free blocks of a die at and below which it collects.
    pub watermark: Watermark,
    /// When the drive is idle, dies collect up to this number of free blocks; 0 for none.
    pub background_free: u32,
    /// The drive counts as idle after this time without a command.
    pub idle_after: Span,
    /// Firmware time per moved 4 KiB unit, sequential for all dies: for checking that it is valid, and for recording
    /// its new location.
    pub per_unit: Span,
    /// Garbage collection in bursts of all dies at once, if the firmware does not spread it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub bursts: Option<Bursts>,
}

/// Garbage collection in bursts: none until the dies have used up what they have earned, then on all dies at once.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bursts {
    /// Pages of host data that a burst earns per die, on average.
    pub pages: u32,
    /// In a burst, a die takes one page of host data after this number of pages of copies.
    pub host_share: u32,
    /// The number of pages of copies decreases linearly with the number of writes that wait for the buffer, and is zero
    /// at this number of writes.
    pub yield_at: u32,
    /// The number of pages of copies also decreases linearly with the time that the oldest of these writes has waited,
    /// and is zero at this time.
    pub yield_after: Span,
}

/// Read-ahead of sequential streams.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReadAhead {
    /// Distance to read ahead of a stream, in bytes.
    pub bytes: u32,
    /// Number of sequential commands that form a stream.
    pub after: u32,
}

/// Memory for a part of the map: other parts must be sensed before a read can be.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MapConfig {
    /// Bytes of the map that fit into memory, four per indirection unit.
    pub bytes: u64,
    /// Sensing a page of the map.
    pub read: Span,
}

/// pSLC write cache: free blocks that the host writes with one bit per cell while there are enough. In idle time, their
/// data is folded to ordinary blocks.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SlcCache {
    /// Maximum number of blocks per die at a time.
    pub blocks_per_die: u32,
    /// Bits per cell otherwise (2 for MLC, 3 for TLC): a pSLC block holds less by this factor.
    pub bits: u32,
    /// Sensing a pSLC page.
    pub read: Span,
    /// Programming a multi-plane page in pSLC mode: one program for each bit that the cells hold otherwise, one after
    /// the other.
    pub program: Span,
    /// If the cache is full: whether the host waits until blocks of it have been emptied (true), or writes ordinary
    /// blocks.
    pub folds: bool,
}

impl SlcCache {
    /// Returns the time to program a page of `slots` units of which only the first `used` hold data: pSLC programs
    /// without data are left out. Not modelled: units of the mapping table in the page, which callers do not count.
    pub(super) fn program_time(&self, used: u32, slots: u32) -> Span {
        let programs = (used * self.bits).div_ceil(slots).clamp(1, self.bits);
        match programs == self.bits {
            true => self.program,
            false => Span::from_ns(self.program.ns() * u64::from(programs) / u64::from(self.bits)),
        }
    }
}

/// Patrol read, refresh and other background work of one die, at random times.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NandRefresh {
    /// Mean time between two occurrences on one die.
    pub every: Span,
    /// Duration of an occurrence.
    pub lasts: Span,
}

/// Pauses in accepting writes while firmware saves its tables.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Housekeeping {
    /// Number of 4 KiB units written between two pauses.
    pub every_units: u64,
    /// Mean length of a pause; lengths are exponentially distributed.
    pub mean: Span,
}

/// Pacing of writes: units are admitted one after another at the rate at which the dies program them and the copies
/// that they cause.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pace {
    /// Number of 4 KiB units that may be admitted at once after a pause: 1 to 4096.
    pub depth: u32,
}

/// Power and energy.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NandPower {
    /// Idle power in watts.
    pub idle: f64,
    /// Joules per sense of a page.
    pub read: f64,
    /// Joules per program of a multi-plane page.
    pub program: f64,
    /// Joules per erase of a multi-plane block.
    pub erase: f64,
    /// Joules per byte over the link.
    pub per_byte: f64,
}

impl NandTiming {
    /// Whether kinds of pages differ in their thresholds, and the fastest takes some time.
    fn kinds_of_pages_are_possible(&self) -> bool {
        let counts = &self.read_thresholds;
        let (Some(&least), Some(&most)) = (counts.iter().min(), counts.iter().max()) else {
            return true;
        };
        let mean = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        let (below, above) = (mean - f64::from(least), f64::from(most) - mean);
        above > 0.0 && self.read_spread * below < above
    }

    /// Checks conditions that the types do not enforce.
    fn check(&self, need: &mut impl FnMut(bool, &str)) {
        need(
            (0.0..1.0).contains(&self.retry_probability),
            "the probability of a read retry must be at least 0 and below 1",
        );
        need(
            (0.0..=1.0).contains(&self.read_spread),
            "the spread of sense times must be from 0 to 1",
        );
        need(
            self.kinds_of_pages_are_possible(),
            "the numbers of thresholds of a sense must differ between kinds of pages, and each kind must take more than no \
             time: lower `read_spread`",
        );
        need(
            !self.read.eq(&Span::ZERO),
            "the read time must be above zero",
        );
        need(
            (0.0..1.0).contains(&self.program_spread),
            "the spread of program times must be at least 0 and below 1",
        );
        need(
            (0.0..1.0).contains(&self.program_jitter),
            "the jitter of program times must be at least 0 and below 1",
        );
        need(
            !self.program.eq(&Span::ZERO),
            "the program time must be above zero",
        );
        need(
            !self.erase.eq(&Span::ZERO),
            "the erase time must be above zero",
        );
    }
}

impl NandConfig {
    /// Returns the shape of the array.
    ///
    /// # Panics
    /// If the configuration is invalid.
    pub(super) fn shape(&self) -> FtlGeometry {
        match self.check() {
            Ok(shape) => shape,
            Err(wrong) => panic!("impossible NAND drive: {}", wrong.join("; ")),
        }
    }

    /// Checks conditions that the types do not enforce, and returns the shape of the array.
    ///
    /// # Errors
    /// One sentence for each invalid value.
    pub fn check(&self) -> Result<FtlGeometry, Vec<String>> {
        let mut wrong = Vec::new();
        let mut need = |ok: bool, what: &str| {
            if !ok {
                wrong.push(String::from(what));
            }
        };
        let kinds = self.timing.read_thresholds.len() as u64;
        let page = u64::from(self.geometry.planes) * u64::from(self.geometry.page_bytes);
        need(
            kinds == 0 || (page / u64::from(UNIT)).is_multiple_of(kinds),
            "a page of all planes must have a whole number of 4 KiB slots for each entry of `read_thresholds`",
        );
        need(
            self.block == 512 || self.block == 4096,
            "the logical block size must be 512 or 4096 bytes",
        );
        need(
            self.collection.watermark.low >= 2,
            "the low-water mark must be at least 2 free blocks",
        );
        need(
            self.controller.max_transfer >= UNIT && self.controller.max_transfer % UNIT == 0,
            "the largest transfer must be a multiple of 4096 bytes",
        );
        if let Some(cores) = &self.controller.cores {
            need(
                (1..=64).contains(&cores.count),
                "the controller must have 1 to 64 cores for reads",
            );
        }
        self.timing.check(&mut need);
        need(
            (0.0..=4.0).contains(&self.buffer.tables_per_write),
            "the tables of a write must be at most four units",
        );
        if let Some(map) = &self.map {
            need(
                map.bytes >= 4096 && !map.read.eq(&Span::ZERO),
                "the memory for the map must hold at least one page of 4 KiB, and the time to sense a page must be above zero",
            );
        }
        need(self.rated_cycles > 0, "the rated cycles must be above zero");
        need(
            self.filled > 0.0 && self.filled <= 1.0,
            "the share that holds data must be above 0 and at most 1",
        );
        need(
            self.buffer.bytes >= 2 * page && self.buffer.bytes < 1 << 40,
            "the write buffer must hold at least two multi-plane pages",
        );
        need(
            self.geometry.indirection <= UNIT || self.buffer.protected,
            "an indirection unit above 4 KiB requires a protected write buffer: otherwise a power cut could lose older data",
        );
        if let Some(slc) = &self.slc {
            need(
                (2..=4).contains(&slc.bits) && slc.blocks_per_die > 0,
                "an SLC cache must have at least one block per die, in NAND of 2 to 4 bits per cell",
            );
        }
        let spare = self.collection.watermark.spare_blocks();
        match self.geometry.shape(spare) {
            Ok(shape) if wrong.is_empty() => Ok(shape.filled_to(self.filled)),
            Ok(_) => Err(wrong),
            Err(error) => {
                wrong.push(error.0);
                Err(wrong)
            }
        }
    }
}
