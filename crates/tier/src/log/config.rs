//! Settings of an intent log, its durability guarantee, and the size of log that it needs.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use model::time::Span;

use super::layout::{self, LARGEST_BLOCK, UNIT};
use super::trim::Autotrim;
use super::{IntentLog, recover, tables};
use crate::offline::{ChildImages, Damage};
use crate::{Child, DurabilityPoint, Loss, Promise, TierSettings};

/// Without a log device, or for throughput, larger writes go to their final location, and the log references them.
pub(super) const INDIRECT_FROM: u64 = 32 << 10;

/// Policy that defines which writes are logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SyncPolicy {
    /// Writes with force unit access, and all unlogged writes at a flush.
    #[default]
    Standard,
    /// All writes, before they are acknowledged.
    Always,
    /// No writes: flushes and force unit access are acknowledged without effect.
    Disabled,
}

impl SyncPolicy {
    /// All policies, with their words in files and expressions.
    pub const ALL: [(&str, SyncPolicy); 3] = [
        ("standard", SyncPolicy::Standard),
        ("always", SyncPolicy::Always),
        ("disabled", SyncPolicy::Disabled),
    ];
}

/// Optimisation goal of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Logbias {
    /// Low latency: log devices are used.
    #[default]
    Latency,
    /// Few bytes written twice: data goes directly to the main pool, and so does the log.
    Throughput,
}

impl Logbias {
    /// All goals, with their words in files and expressions.
    pub const ALL: [(&str, Logbias); 2] = [
        ("latency", Logbias::Latency),
        ("throughput", Logbias::Throughput),
    ];
}

/// CPU time of the software itself, without the drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LogCpu {
    /// Time per read.
    pub read: Span,
    /// Time per write, without copying its data.
    pub write: Span,
    /// Picoseconds per byte copied from or to the client.
    pub copy_ps: u64,
    /// Time per commit (a flush, or a write with force unit access): in the caller's thread, in parallel with others.
    pub commit: Span,
    /// Time per log block: one block after another, for all commits.
    pub block: Span,
    /// Picoseconds per byte of a record for compressing it, in threads of their own.
    pub compress_ps: u64,
    /// Picoseconds per byte of a record for decompressing it, in the reader's thread.
    pub decompress_ps: u64,
}

/// Sizes that are the same for all volumes, except for small ones that tests use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LogScale {
    /// Bits of a record's number that one level of the tables takes: 1 to 8. The volume does not record it.
    pub level_bits: u32,
    /// Bytes of log blocks that a recovery keeps in memory; it reads the others again.
    pub kept: u32,
    /// Bytes of a log beyond a gap in which a recovery searches for later blocks. At least the size of a volatile buffer.
    pub searched: u64,
}

impl Default for LogScale {
    fn default() -> LogScale {
        LogScale {
            level_bits: 8,
            kept: 16 << 20,
            searched: 64 << 20,
        }
    }
}

/// Settings of an intent log. Its children are the main pool, followed by any number of log devices, which are used in
/// turn.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IntentLogConfig {
    /// Addressable bytes: whole records, at most the result of [`IntentLogConfig::most_bytes`] for the main pool.
    pub size: u64,
    /// Bytes of the machine's memory: a tenth of it, at most 4 GiB, may be dirty; half of it caches written data.
    pub ram: u64,
    /// Bytes per record, which is always written as a whole: a power of two, 4 KiB to 1 MiB.
    pub record: u32,
    /// Bytes that a compressed record takes on the main pool: a multiple of 4 KiB, at most `record`; `None` without
    /// compression.
    pub stored: Option<u32>,
    /// Trims of freed space, if any.
    pub autotrim: Option<Autotrim>,
    /// Maximum bytes that a transaction group writes with one command: whole records, at least one. ZFS aggregates up
    /// to 1 MiB for hard disks and 128 KiB for flash.
    pub run: u32,
    /// Whether all records were written sequentially before the run; otherwise none was.
    pub filled: bool,
    /// Number of parts of the main pool with their own queues (the children of a stripe of mirrors): at least 1.
    pub lanes: u16,
    /// Policy that defines which writes are logged.
    pub sync: SyncPolicy,
    /// Optimisation goal of the log.
    pub logbias: Logbias,
    /// Bytes of combined commits above which their blocks are queued with non-urgent writes.
    pub slog_bulk: u64,
    /// Maximum size of a log block in bytes: a multiple of 4 KiB, 8 KiB to 128 KiB.
    pub block: u32,
    /// Maximum time for which a transaction group accepts writes.
    pub txg: Span,
    /// CPU time of the software.
    pub cpu: LogCpu,
    /// Sizes of tables and of searches.
    pub scale: LogScale,
}

impl IntentLogConfig {
    /// Returns the maximum of dirty bytes: a tenth of the memory, at most 4 GiB.
    pub fn dirty_max(&self) -> u64 {
        (self.ram / 10).min(4 << 30)
    }

    /// Returns the bytes that a record takes on the main pool.
    pub fn stored(&self) -> u32 {
        self.stored.unwrap_or(self.record)
    }

    /// Returns the bytes of log needed at this write rate: two transaction groups, and at most twice the maximum of
    /// dirty bytes.
    pub fn log_needed(&self, bytes_per_second: f64) -> f64 {
        let twice = 2.0 * self.dirty_max() as f64;
        (bytes_per_second * 2.0 * self.txg.seconds()).min(twice)
    }

    /// Returns the maximum size of a volume on a main pool of this size: new records are written before old ones are
    /// freed, the log may be there too, and 1/32 always stays free.
    pub fn most_bytes(&self, main: u64) -> u64 {
        let record = u64::from(self.record.max(1));
        let spare = (main / 32).max(4 * self.dirty_max() + 16 * record.max(LARGEST_BLOCK / 4));
        main.saturating_sub(spare) / u64::from(self.stored().max(1)) * record
    }
}

impl TierSettings for IntentLogConfig {
    type Tier = IntentLog;

    fn build(&self, children: &[u64]) -> IntentLog {
        IntentLog::new(self, children)
    }

    fn capacity(&self, _children: &[u64]) -> u64 {
        self.size
    }

    /// Durable data is on the main pool, or still in the log and in memory. A log on several devices is read as one.
    fn promise(&self, children: &[Promise]) -> Promise {
        let main = children[0].loss.clone();
        let logs: Vec<Loss> = children[1..].iter().map(|log| log.loss.clone()).collect();
        let uses_logs = self.logbias == Logbias::Latency && !logs.is_empty();
        let (durable, loss) = match self.sync {
            SyncPolicy::Disabled => (DurabilityPoint::Later, Loss::any(vec![main, Loss::Ram])),
            _ if uses_logs => {
                let log_and_ram = Loss::all(vec![Loss::any(logs), Loss::Ram]);
                (DurabilityPoint::Flushed, Loss::any(vec![main, log_and_ram]))
            }
            _ => (DurabilityPoint::Flushed, main),
        };
        let durable = match (self.sync, durable) {
            (SyncPolicy::Always, _) => DurabilityPoint::Acknowledged,
            (_, durable) => durable,
        };
        Promise { durable, loss }
    }

    /// The tier works without any of its log devices.
    fn does_without(&self, child: Child) -> bool {
        child != 0
    }

    fn problems(&self, children: &[u64]) -> Vec<String> {
        let mut problems = Vec::new();
        let record = u64::from(self.record);
        if !self.record.is_power_of_two() || !(4096..=1 << 20).contains(&self.record) {
            problems.push(String::from(
                "its record must be a power of two from 4 KiB to 1 MiB",
            ));
            return problems;
        }
        if self.size == 0 || !self.size.is_multiple_of(record) {
            problems.push(format!(
                "its size must be a multiple of the record size, {record} bytes"
            ));
        }
        if self.dirty_max() < 2 * record {
            problems.push(format!(
                "a tenth of its memory of {} bytes does not hold two records",
                self.ram
            ));
        }
        let block = u64::from(self.block);
        if !(2 * UNIT..=LARGEST_BLOCK).contains(&block) || !block.is_multiple_of(UNIT) {
            problems.push(String::from(
                "its largest log block must be a multiple of 4 KiB, from 8 KiB to 128 KiB",
            ));
        }
        let top_bits = tables::LEVELS as u32 * self.scale.level_bits;
        if !(1..=8).contains(&self.scale.level_bits)
            || (self.size / record) >> top_bits >= layout::ENTRIES as u64
        {
            problems.push(String::from("its tables are too small for all records"));
        }
        if self.run == 0 || self.run > 16 << 20 {
            problems.push(String::from(
                "its limit for merged records must be from 1 byte to 16 MiB",
            ));
        }
        if self.lanes == 0 || self.txg == Span::ZERO {
            problems.push(String::from(
                "it must have at least one queue to main, and transaction groups longer than zero",
            ));
        }
        let Some((&main, logs)) = children.split_first() else {
            problems.push(String::from(
                "it requires a main child, followed by its logs if any",
            ));
            return problems;
        };
        if self.size > self.most_bytes(main) {
            problems.push(format!(
                "a size of {} bytes leaves too little of main's {main} free: at most {}",
                self.size,
                self.most_bytes(main)
            ));
        }
        if !self.stored().is_multiple_of(4096) || !(4096..=self.record).contains(&self.stored()) {
            problems.push(String::from(
                "a stored record must have a multiple of 4 KiB, at most its size",
            ));
            return problems;
        }
        if main / u64::from(self.stored()) >= u64::from(u32::MAX) {
            problems.push(String::from("its main has more than 2^32 records"));
        }
        if logs.len() > layout::MOST_LOGS {
            problems.push(String::from("it can have at most 32 logs"));
        }
        if logs.iter().any(|&log| log < LARGEST_BLOCK / 2) {
            problems.push(String::from("each of its logs must have at least 64 KiB"));
        }
        problems
    }

    fn writes_whole_blocks(&self) -> bool {
        true
    }

    /// Five seconds do not shrink with the capacity.
    fn shrinks(&self) -> bool {
        false
    }

    fn format(
        &self,
        children: &[u64],
        pool: u128,
        below: &mut dyn ChildImages,
    ) -> Result<(), Damage> {
        recover::format(self.build(children), children, pool, below)
    }

    fn recover(
        &self,
        children: &[u64],
        pool: u128,
        below: &mut dyn ChildImages,
    ) -> Result<IntentLog, Damage> {
        recover::recover(self.build(children), children, pool, below)
    }

    /// Compressed data cannot be found again: the model stores what clients wrote.
    fn recovers(&self) -> bool {
        self.stored.is_none()
    }

    /// Cached records, and those of two groups, one of which is copied for writing.
    fn data_in_memory(&self) -> u64 {
        (self.ram / 2).min(self.size) + 2 * self.dirty_max()
    }
}
