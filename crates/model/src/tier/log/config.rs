//! What an intent log is made of, what that promises, and how large a log it needs.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::layout::{self, LARGEST_BLOCK, UNIT};
use super::{IntentLog, recover};
use crate::tier::offline::{Below, Damage};
use crate::tier::{Child, Durable, Loss, Promise, TierSettings};
use crate::time::Span;

/// Without a log of its own, or where throughput is wanted, larger writes go where they stay, and the log names them.
pub(super) const INDIRECT_FROM: u64 = 32 << 10;

/// Which writes are logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SyncPolicy {
    /// Those with force unit access, and what a flush finds not yet logged.
    #[default]
    Standard,
    /// All, before they are acknowledged.
    Always,
    /// None: flushes and force unit access are acknowledged and do nothing.
    Disabled,
}

impl SyncPolicy {
    /// All of them, with the words of files and expressions.
    pub const ALL: [(&str, SyncPolicy); 3] = [
        ("standard", SyncPolicy::Standard),
        ("always", SyncPolicy::Always),
        ("disabled", SyncPolicy::Disabled),
    ];
}

/// What the log is to be good at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Logbias {
    /// Short waits: the log's own children are used.
    #[default]
    Latency,
    /// Few bytes written twice: data go to main at once, and so does the log.
    Throughput,
}

impl Logbias {
    /// All of them, with the words of files and expressions.
    pub const ALL: [(&str, Logbias); 2] = [
        ("latency", Logbias::Latency),
        ("throughput", Logbias::Throughput),
    ];
}

/// What the software itself takes. Drives are not in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LogCpu {
    /// Of each read.
    pub read: Span,
    /// Of each write, without copying its data.
    pub write: Span,
    /// Picoseconds to copy a byte from or to the client.
    pub copy_ps: u64,
    /// Of each commit (a flush, or a write with force unit access): in the caller's thread, beside others.
    pub commit: Span,
    /// Of each log block: one after the other, whoever waits for them.
    pub block: Span,
}

/// What an intent log is made of. Its children: main, then none, one or several logs, which are used in turn.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IntentLogConfig {
    /// Bytes that can be addressed: whole records, at most what [`IntentLogConfig::most_bytes`] leaves free of main.
    pub size: u64,
    /// Bytes of the machine's memory: a tenth of it, at most 4 GiB, may be dirty; half of it keeps what was written.
    pub ram: u64,
    /// Bytes of a record, which is always written whole: a power of two, 4 KiB to 1 MiB.
    pub record: u32,
    /// Most bytes that a transaction group writes with one command: whole records or one. ZFS joins up to 1 MiB for hard
    /// disks and 128 KiB for flash.
    pub run: u32,
    /// Whether all records were written, in order, before the run; else none was.
    pub filled: bool,
    /// How many parts of main have queues of their own (the children of a stripe of mirrors): at least 1.
    pub lanes: u16,
    /// Which writes are logged.
    pub sync: SyncPolicy,
    /// What the log is to be good at.
    pub logbias: Logbias,
    /// Bytes of commits taken together, beyond which their blocks wait with what is not urgent.
    pub slog_bulk: u64,
    /// Largest log block in bytes: a multiple of 4 KiB, 8 KiB to 128 KiB.
    pub block: u32,
    /// Longest time that a transaction group takes writes in.
    pub txg: Span,
    /// What the software takes.
    pub cpu: LogCpu,
}

impl IntentLogConfig {
    /// Bytes that may be dirty: a tenth of the memory, at most 4 GiB.
    pub fn dirty_max(&self) -> u64 {
        (self.ram / 10).min(4 << 30)
    }

    /// Bytes that the log needs where so many bytes a second come in: two transaction groups, and at most twice what may
    /// be dirty.
    pub fn log_needed(&self, bytes_per_second: f64) -> f64 {
        let twice = 2.0 * self.dirty_max() as f64;
        (bytes_per_second * 2.0 * self.txg.seconds()).min(twice)
    }

    /// Bytes that a volume may have on so much of main: new records are written before old ones are given up, the log may
    /// be there too, and a 32nd stays free in any case.
    pub fn most_bytes(&self, main: u64) -> u64 {
        let record = u64::from(self.record.max(1));
        let spare = (main / 32).max(4 * self.dirty_max() + 16 * record.max(LARGEST_BLOCK / 4));
        main.saturating_sub(spare) / record * record
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

    /// Durable data are on main, or still in the log and in memory. A log in several parts is read as one.
    fn promise(&self, children: &[Promise]) -> Promise {
        let main = children[0].loss.clone();
        let logs: Vec<Loss> = children[1..].iter().map(|log| log.loss.clone()).collect();
        let uses_logs = self.logbias == Logbias::Latency && !logs.is_empty();
        let (durable, loss) = match self.sync {
            SyncPolicy::Disabled => (Durable::Later, Loss::any(vec![main, Loss::Ram])),
            _ if uses_logs => {
                let log_and_ram = Loss::all(vec![Loss::any(logs), Loss::Ram]);
                (Durable::Flushed, Loss::any(vec![main, log_and_ram]))
            }
            _ => (Durable::Flushed, main),
        };
        let durable = match (self.sync, durable) {
            (SyncPolicy::Always, _) => Durable::Acknowledged,
            (_, durable) => durable,
        };
        Promise { durable, loss }
    }

    /// Any of its logs.
    fn does_without(&self, child: Child) -> bool {
        child != 0
    }

    fn problems(&self, children: &[u64]) -> Vec<String> {
        let mut problems = Vec::new();
        let record = u64::from(self.record);
        if !self.record.is_power_of_two() || !(4096..=1 << 20).contains(&self.record) {
            problems.push(String::from(
                "its record is no power of two from 4 KiB to 1 MiB",
            ));
            return problems;
        }
        if self.size == 0 || !self.size.is_multiple_of(record) {
            problems.push(format!(
                "its size is not of whole records of {record} bytes"
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
        if self.run == 0 || self.run > 16 << 20 {
            problems.push(String::from("it joins records up to 1 byte to 16 MiB"));
        }
        if self.lanes == 0 || self.txg == Span::ZERO {
            problems.push(String::from(
                "its main has at least one queue, and a transaction group some time",
            ));
        }
        let Some((&main, logs)) = children.split_first() else {
            problems.push(String::from("it stands on main, and on logs if it has any"));
            return problems;
        };
        if self.size > self.most_bytes(main) {
            problems.push(format!(
                "a size of {} bytes leaves too little of main's {main} free: at most {}",
                self.size,
                self.most_bytes(main)
            ));
        }
        if main / record >= u64::from(u32::MAX) {
            problems.push(String::from("its main has more than 2^32 records"));
        }
        if logs.len() > layout::MOST_LOGS {
            problems.push(String::from("it stands on at most 32 logs"));
        }
        if logs.iter().any(|&log| log < LARGEST_BLOCK / 2) {
            problems.push(String::from("each of its logs has at least 64 KiB"));
        }
        problems
    }

    fn writes_whole_blocks(&self) -> bool {
        true
    }

    /// Five seconds are five seconds.
    fn shrinks(&self) -> bool {
        false
    }

    fn format(&self, children: &[u64], pool: u128, below: &mut dyn Below) -> Result<(), Damage> {
        recover::format(self.build(children), children, pool, below)
    }

    fn recover(
        &self,
        children: &[u64],
        pool: u128,
        below: &mut dyn Below,
    ) -> Result<IntentLog, Damage> {
        recover::recover(self.build(children), children, pool, below)
    }

    fn recovers(&self) -> bool {
        true
    }

    /// Records that are kept, and those of two groups, of which one is copied to be written.
    fn data_in_memory(&self) -> u64 {
        (self.ram / 2).min(self.size) + 2 * self.dirty_max()
    }
}
