//! What a NAND drive is made of.

use alloc::string::String;
use alloc::vec::Vec;

use crate::ftl::{Geometry, Shape, UNIT, Watermark};
use crate::time::Span;

/// A NAND drive. [`NandConfig::check`] says whether it can be.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NandConfig {
    /// The array.
    pub geometry: Geometry,
    /// Logical block size in bytes: 512 or 4096.
    pub block: u32,
    /// Times of the dies and channels.
    pub timing: Timing,
    /// Controller and link.
    pub controller: Controller,
    /// DRAM write buffer.
    pub buffer: WriteBuffer,
    /// Garbage collection.
    pub collection: Collection,
    /// Reading ahead of sequential streams, if the drive does it.
    pub read_ahead: Option<ReadAhead>,
    /// Memory for the map, of a drive that has none for all of it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub map: Option<MapConfig>,
    /// Pseudo-SLC write cache, if the drive has one.
    pub slc: Option<SlcCache>,
    /// Patrol and refresh of the medium.
    pub refresh: Option<Refresh>,
    /// Firmware pauses in taking writes.
    pub housekeeping: Option<Housekeeping>,
    /// Pacing of writes, if the firmware lets them in no faster than the array will take them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub pace: Option<Pace>,
    /// Power and energy.
    pub power: Power,
    /// Program and erase cycles a block is rated for.
    pub rated_cycles: u32,
    /// SMART's Percentage Used when the run begins.
    pub percentage_used_at_start: f64,
    /// Share of the capacity, from its beginning, that holds data where a state says that the drive has been written: above
    /// 0, at most 1. The rest is trimmed.
    #[cfg_attr(feature = "serde", serde(default = "whole"))]
    pub filled: f64,
}

/// Drives that say nothing else are full.
#[cfg(feature = "serde")]
fn whole() -> f64 {
    1.0
}

/// Times of the medium.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Timing {
    /// Sensing a page into the die's register (tR), mean over the pages of a block.
    pub read: Span,
    /// Uniform spread of the sense time around its mean, as a share of it (0 to 1): lower, upper and worn pages differ.
    pub read_spread: f64,
    /// Whether a die senses its next page while the data of the last one wait for the channel and cross it (ONFI's cache
    /// read of any page). If not, the die is taken until they have crossed.
    pub cache_read: bool,
    /// Probability that a sense must be repeated with other thresholds (each repetition may need another).
    pub retry_probability: f64,
    /// Programming a multi-plane page (tPROG), mean over the pages of a block.
    pub program: Span,
    /// How far lower pages are below and upper pages above that mean, as a share of it (0 to 1): the pages of a block
    /// are lower and upper by turns. 0 where the bits of a cell are programmed at once.
    pub program_spread: f64,
    /// By how much each program differs from that at random, either way, as a share of it (0 to 1): the pulses that a page
    /// wants are counted while it is programmed.
    #[cfg_attr(feature = "serde", serde(default))]
    pub program_jitter: f64,
    /// Erasing a multi-plane block (tBERS).
    pub erase: Span,
    /// Suspension of programs and erases by reads, if the dies and firmware do it.
    pub suspend: Option<Suspend>,
    /// Command and address cycles of each transfer on a channel.
    pub channel_command: Span,
    /// Picoseconds a byte takes on a channel.
    pub channel_ps_per_byte: u64,
}

/// Suspension of a program or erase so that a read need not wait for its end.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Suspend {
    /// From the wish to read until the die can sense.
    pub latency: Span,
    /// Added to the rest of the operation each time it resumes.
    pub resume: Span,
    /// Most suspensions of one operation; then it runs to its end.
    pub most: u32,
    /// A program stops only at whole multiples of this before its end; zero: anywhere.
    #[cfg_attr(feature = "serde", serde(default))]
    pub step: Span,
    /// How long a program, once begun, does not stop (the first pulses); it can at the end of that.
    #[cfg_attr(feature = "serde", serde(default))]
    pub blind: Span,
    /// As `step`, of an erase: it stops between its pulses.
    #[cfg_attr(feature = "serde", serde(default))]
    pub erase_step: Span,
}

/// Processors that share by address what a drive does to read from its medium.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Cores {
    /// How many: 1 to 64.
    pub count: u32,
    /// What a read command takes of one.
    pub per_read: Span,
}

/// Controller and link.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Controller {
    /// Time the controller is taken by each read command, and by each sense beyond a command's first. A command that
    /// finds all it wants read ahead has paid for a sense of the reading ahead.
    pub per_read: Span,
    /// Time it is taken by each write command.
    pub per_write: Span,
    /// Time it is taken by each 4 KiB unit of a write beyond its first.
    pub per_write_unit: Span,
    /// Least time between two senses of one command: commands are taken apart one sense after the other, but several
    /// commands at a time.
    pub issue_interval: Span,
    /// Least time between two 4 KiB units of one write command: a command's data are taken in one after the other, but
    /// several commands at a time.
    pub write_issue_interval: Span,
    /// Before its first sense a read command goes to one of these, each with a queue of its own, where there are any: the
    /// address of its first 4 KiB unit says to which. What is in memory already does not.
    #[cfg_attr(feature = "serde", serde(default))]
    pub cores: Option<Cores>,
    /// Fixed latency of a read besides (firmware, error correction, completion).
    pub read_latency: Span,
    /// Fixed latency of a write, flush or deallocation besides.
    pub write_latency: Span,
    /// What that takes longer, on average (exponential).
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_spread: Span,
    /// Doorbell, command fetch and completion over the link.
    pub link_latency: Span,
    /// Picoseconds a byte takes over the link, each direction.
    pub link_ps_per_byte: u64,
    /// Largest transfer of one command (MDTS); larger ones are taken apart.
    pub max_transfer: u32,
    /// Whether a write of part of a 4 KiB unit is acknowledged only when the rest of the unit has been read.
    pub merge_before_ack: bool,
}

/// DRAM write buffer.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WriteBuffer {
    /// Bytes of host data it can hold, on their way to the medium included.
    pub bytes: u64,
    /// Whether capacitors keep it through a power loss: then a flush and FUA cost nothing.
    pub protected: bool,
    /// What a flush takes behind the data to save the tables in which they are found, if capacitors do not keep those.
    pub save_tables: Span,
    /// Units of 4 KiB of tables that are programmed with each write command which does not go on where one of the last
    /// ended; the old tables are garbage then.
    #[cfg_attr(feature = "serde", serde(default))]
    pub tables_per_write: f64,
}

/// Garbage collection.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Collection {
    /// Free blocks of a die from which on it collects.
    pub watermark: Watermark,
    /// Collect up to this many free blocks a die when the drive is idle; 0 for none.
    pub background_free: u32,
    /// The drive counts as idle after this long without a command.
    pub idle_after: Span,
    /// Time the firmware takes for each 4 KiB unit that is moved, one after the other for all dies: to see that it is
    /// valid, and to book its new place.
    pub per_unit: Span,
    /// Collection in bursts of all dies at once, if the firmware does not spread it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub bursts: Option<Bursts>,
}

/// Collection in bursts: none until the dies have used up what they have earned, then all of them at once.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bursts {
    /// Pages of host data that a burst earns each die, on average.
    pub pages: u32,
    /// In a burst a die takes one page of host data after so many pages of copies, ...
    pub host_share: u32,
    /// ... fewer in proportion while writes wait for the buffer, and none with so many that wait.
    pub yield_at: u32,
}

/// Reading ahead.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReadAhead {
    /// How far ahead of a stream to read, bytes.
    pub bytes: u32,
    /// Sequential commands that make a stream.
    pub after: u32,
}

/// Memory for a part of the map: what is not held is sensed before a read can be.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MapConfig {
    /// Bytes of the map that are held, four for each indirection unit.
    pub bytes: u64,
    /// Sensing a page of the map.
    pub read: Span,
}

/// Pseudo-SLC write cache: free blocks that the host writes with one bit a cell while there are plenty. Idle time moves
/// their data to ordinary blocks.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SlcCache {
    /// Most blocks of each die at a time.
    pub blocks_per_die: u32,
    /// Bits a cell stores otherwise (2 for MLC, 3 for TLC): an SLC block holds that much less.
    pub bits: u32,
    /// Sensing a page of them.
    pub read: Span,
    /// Programming a multi-plane page in SLC mode.
    pub program: Span,
    /// When the cache is full: the host waits until blocks of it have been emptied (true), or writes ordinary blocks.
    pub folds: bool,
}

/// Patrol reads, refresh and other duties of one die, at random times.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Refresh {
    /// Mean time between two on one die.
    pub every: Span,
    /// How long one keeps the die.
    pub lasts: Span,
}

/// Pauses in taking writes while firmware saves its tables.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Housekeeping {
    /// 4 KiB units written between two pauses.
    pub every_units: u64,
    /// Mean length of a pause; lengths are exponentially distributed.
    pub mean: Span,
}

/// Pacing of writes: units are let in one after the other at the rate at which the dies program them and the copies that
/// they cause.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pace {
    /// 4 KiB units that may come at once after a pause: 1 to 4096.
    pub depth: u32,
}

/// Power and energy.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Power {
    /// Watts without work.
    pub idle: f64,
    /// Joules for sensing a page.
    pub read: f64,
    /// Joules for programming a multi-plane page.
    pub program: f64,
    /// Joules for erasing a multi-plane block.
    pub erase: f64,
    /// Joules for each byte over the link.
    pub per_byte: f64,
}

impl Timing {
    /// Asks for what the types leave open.
    fn check(&self, need: &mut impl FnMut(bool, &str)) {
        need(
            (0.0..1.0).contains(&self.retry_probability),
            "the probability of a read retry is at least 0 and below 1",
        );
        need(
            (0.0..=1.0).contains(&self.read_spread),
            "the spread of sense times is in 0 to 1",
        );
        need(!self.read.eq(&Span::ZERO), "the read time is not zero");
        need(
            (0.0..1.0).contains(&self.program_spread),
            "the spread of program times is at least 0 and below 1",
        );
        need(
            (0.0..1.0).contains(&self.program_jitter),
            "the jitter of program times is at least 0 and below 1",
        );
        need(
            !self.program.eq(&Span::ZERO),
            "the program time is not zero",
        );
        need(!self.erase.eq(&Span::ZERO), "the erase time is not zero");
    }
}

impl NandConfig {
    /// The array's numbers.
    ///
    /// # Panics
    /// If the configuration is impossible.
    pub(super) fn shape(&self) -> Shape {
        match self.check() {
            Ok(shape) => shape,
            Err(wrong) => panic!("impossible NAND drive: {}", wrong.join("; ")),
        }
    }

    /// Checks what the types leave open, and gives the array's numbers.
    ///
    /// # Errors
    /// One sentence for each thing that is impossible.
    pub fn check(&self) -> Result<Shape, Vec<String>> {
        let mut wrong = Vec::new();
        let mut need = |ok: bool, what: &str| {
            if !ok {
                wrong.push(String::from(what));
            }
        };
        need(
            self.block == 512 || self.block == 4096,
            "the logical block size is 512 or 4096 bytes",
        );
        need(
            self.collection.watermark.low >= 2,
            "the low-water mark is at least 2 free blocks",
        );
        need(
            self.controller.max_transfer >= UNIT && self.controller.max_transfer % UNIT == 0,
            "the largest transfer is a multiple of 4096 bytes",
        );
        if let Some(cores) = &self.controller.cores {
            need(
                (1..=64).contains(&cores.count),
                "the controller has 1 to 64 cores for reads",
            );
        }
        self.timing.check(&mut need);
        need(
            (0.0..=4.0).contains(&self.buffer.tables_per_write),
            "the tables of a write are at most four units",
        );
        if let Some(map) = &self.map {
            need(
                map.bytes >= 4096 && !map.read.eq(&Span::ZERO),
                "the memory for the map holds a page of 4 KiB at least, and sensing one takes a time",
            );
        }
        need(self.rated_cycles > 0, "the rated cycles are not zero");
        let filled = self.filled > 0.0 && self.filled <= 1.0;
        need(filled, "the share that holds data is above 0, at most 1");
        let page = u64::from(self.geometry.planes) * u64::from(self.geometry.page_bytes);
        need(
            self.buffer.bytes >= 2 * page && self.buffer.bytes < 1 << 40,
            "the write buffer holds at least two multi-plane pages",
        );
        need(
            self.geometry.indirection <= UNIT || self.buffer.protected,
            "an indirection unit above 4 KiB needs a protected write buffer: a loss of power would take old data",
        );
        if let Some(slc) = &self.slc {
            need(
                (2..=4).contains(&slc.bits) && slc.blocks_per_die > 0,
                "an SLC cache has at least one block a die, of 2 to 4 bits a cell otherwise",
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
