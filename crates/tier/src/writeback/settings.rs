//! Settings of a write-back cache.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use model::time::Span;

use super::cleaning::{Cleaning, IdleCleaning, RateControl};
use super::layout::{SUPERBLOCKS, TABLE_ENTRY, UNIT_BITS, label_at, table_bytes};
use super::passing::BypassPolicy;
use super::ring::UNIT;
use super::{WriteBack, recover};
use crate::offline::{ChildImages, Damage};
use crate::striping::Striping;
use crate::{DurabilityPoint, Loss, Promise, TierSettings};

/// When a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Durability {
    /// Once it is durable: records are written with force unit access, and a flush has no effect.
    #[default]
    Ack,
    /// Once the cache has it, possibly in a volatile buffer: a flush makes it durable.
    Flush,
}

impl Durability {
    /// All settings, with their words in files and expressions.
    pub const ALL: [(&str, Durability); 2] =
        [("ack", Durability::Ack), ("flush", Durability::Flush)];
}

/// When data is destaged from the buffer to the capacity tier, and how much at a time.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Destage {
    /// Share of the buffer in use above which destaging starts, 0 to 1.
    pub from: f64,
    /// Once started, destaging continues until the share in use is lower by this: the distance between dm-writecache's
    /// two marks.
    pub band: f64,
    /// Pause between two rounds if exactly that share of the buffer is in use; it decreases with the square of the
    /// excess.
    pub pause: Span,
    /// Share in use at and above which rounds follow each other without a pause.
    pub hurry: f64,
    /// Maximum bytes of the ring that a round frees.
    pub round: u32,
    /// Maximum bytes of one write to a drive of the capacity tier, into which adjacent units are merged.
    pub merge: u32,
    /// Maximum number of writes in flight per drive of the capacity tier.
    pub in_flight: u16,
    /// Destaging below the mark.
    pub cleaning: Cleaning,
}

/// Delay of writes while the buffer fills: a level from 0 to 255, and a delay proportional to its square.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Congestion {
    /// Share of the buffer in use above which the level rises.
    pub from: f64,
    /// Share at which the level is 255.
    pub full: f64,
    /// Delay of a write at that level.
    pub delay: Span,
}

/// When data is made durable without a client's flush, if writes are acknowledged before they are durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CommitPolicy {
    /// After this number of slots of 4 KiB, including headers.
    pub slots: u64,
    /// After this time since the first of them.
    pub after: Span,
}

/// Settings of a write-back cache. Its first child is the cache; the others are the capacity tier.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WriteBackConfig {
    /// Bytes of the cache that are used; the whole cache, if it has less.
    pub buffer_limit: u64,
    /// Bytes of a segment, the unit in which the ring is freed: a multiple of 4096.
    pub segment: u32,
    /// Maximum bytes of a record, including its header: a multiple of 4096.
    pub record: u32,
    /// Maximum number of records in flight.
    pub records_in_flight: u16,
    /// When a write is acknowledged.
    pub durability: Durability,
    /// When the cache is flushed without a client's flush, with [`Durability::Flush`]; `None` for never.
    pub commit: Option<CommitPolicy>,
    /// Bytes of a piece of the table of entries after the ring. With [`Durability::Flush`], a commit writes each piece
    /// in which an entry has changed. 0: there is no table, only the records' headers.
    pub table: u32,
    /// Bytes on one drive of the capacity tier before the next drive follows: a multiple of 4096.
    pub chunk: u32,
    /// Destaging to the capacity tier.
    pub destage: Destage,
    /// Delay of writes.
    pub congestion: Congestion,
    /// Conditions under which writes bypass the cache, if any.
    pub passing: Option<BypassPolicy>,
    /// Bytes of headers and entries of records in use at which the buffer counts as full.
    pub log_limit: u64,
    /// Share of the buffer that is in use at the start, by units scattered over four times their size.
    pub start: f64,
}

/// Largest possible `record`, in bytes.
const LARGEST_RECORD: u32 = 128 << 10;

/// Minimum number of segments of a ring.
const SEGMENTS: u64 = 4;

/// Minimum segment size when the tier is scaled down.
const SMALL_SEGMENT: u32 = 256 << 10;
/// Minimum round size when the tier is scaled down.
const SMALL_ROUND: u32 = 8 << 20;

impl WriteBackConfig {
    /// Settings of an all-flash disk group of vSAN (original storage architecture).
    ///
    /// Published: the buffer limit, 30 %, levels 0 to 255 (see `docs/decisions/0061-write-back-cache.md`), and that a
    /// round's pause decreases with the square of the fill level. The times are assumed.
    pub const VSAN: WriteBackConfig = WriteBackConfig {
        buffer_limit: 600_000_000_000,
        segment: 4 << 20,
        record: LARGEST_RECORD,
        records_in_flight: 8,
        durability: Durability::Ack,
        commit: None,
        table: 0,
        chunk: 1 << 20,
        destage: Destage {
            from: 0.3,
            band: 0.0,
            pause: Span::from_ms(5),
            hurry: 0.8,
            round: 64 << 20,
            merge: 1 << 20,
            in_flight: 4,
            cleaning: Cleaning::Fill,
        },
        congestion: Congestion {
            from: 0.8,
            full: 0.98,
            delay: Span::from_ms(5),
        },
        passing: None,
        log_limit: 16 << 30,
        start: 0.0,
    };

    /// The whole cache, no pauses between rounds, and writes at full speed until there is no space.
    pub const PLAIN: WriteBackConfig = WriteBackConfig {
        buffer_limit: u64::MAX,
        destage: Destage {
            pause: Span::ZERO,
            ..WriteBackConfig::VSAN.destage
        },
        congestion: Congestion {
            delay: Span::ZERO,
            ..WriteBackConfig::VSAN.congestion
        },
        log_limit: u64::MAX,
        ..WriteBackConfig::VSAN
    };

    /// Settings of dm-writecache on an SSD: its marks, its commits with a table in pieces of 64 KiB, and a whole round
    /// at once.
    ///
    /// From Linux's `Documentation/admin-guide/device-mapper/writecache.rst` and `drivers/md/dm-writecache.c`.
    pub const DM_WRITECACHE: WriteBackConfig = WriteBackConfig {
        durability: Durability::Flush,
        commit: Some(CommitPolicy {
            slots: 65_536,
            after: Span::from_ms(1000),
        }),
        table: 64 << 10,
        destage: Destage {
            from: 0.5,
            band: 0.5 - 0.45,
            in_flight: 1024,
            ..WriteBackConfig::PLAIN.destage
        },
        ..WriteBackConfig::PLAIN
    };

    /// Settings of dm-writecache on persistent memory: the processor copies one block at a time under a lock, and a block
    /// is durable when it is copied. There is no table and no flush; a record's header stands for its entry.
    ///
    /// From the same documentation of Linux (type `p`). Its 16 bytes of an entry are 4 KiB here.
    pub const DM_WRITECACHE_PMEM: WriteBackConfig = WriteBackConfig {
        durability: Durability::Ack,
        commit: None,
        table: 0,
        record: 8 << 10,
        records_in_flight: 1,
        ..WriteBackConfig::DM_WRITECACHE
    };

    /// Common settings of bcache and Open CAS: a flush makes data durable, the whole ring may be in use, writes are not
    /// delayed.
    const LAZY: WriteBackConfig = WriteBackConfig {
        durability: Durability::Flush,
        segment: 512 << 10,
        destage: Destage {
            from: 0.9,
            hurry: 1.0,
            ..WriteBackConfig::PLAIN.destage
        },
        ..WriteBackConfig::PLAIN
    };

    /// Settings of bcache's write-back mode: 10 % dirty, by a controller; its journal's delay; bypass of sequential
    /// streams beyond 4 MiB, and above 40 and 70 % in use.
    ///
    /// From `drivers/md/bcache/writeback.h` and `Documentation/admin-guide/bcache.rst` of Linux 6.12. It is assumed
    /// that a ring is freed at full speed above 90 %.
    pub const BCACHE: WriteBackConfig = WriteBackConfig {
        passing: Some(BypassPolicy {
            sequential: 4 << 20,
            sequential_from: 0.0,
            from: 0.4,
            fua_from: 0.7,
            ..BypassPolicy::NONE
        }),
        commit: Some(CommitPolicy {
            slots: 1 << 40,
            after: Span::from_ms(100),
        }),
        destage: Destage {
            cleaning: Cleaning::Rate(RateControl {
                target: 0.1,
                proportional: Span::from_ms(40_000),
                integral_s2: 10_000.0,
                update: Span::from_ms(5000),
                least: 4096,
            }),
            ..WriteBackConfig::LAZY.destage
        },
        ..WriteBackConfig::LAZY
    };

    /// Settings of Open CAS's default cleaning policy (ALRU).
    ///
    /// From Open CAS Linux's admin guide: it wakes every 20 s and cleans data older than 120 s, if no client command
    /// has arrived for 10 s. It cleans 100 blocks at a time; here, a segment of 127 and a header. Once the cache is
    /// full, sequential streams beyond 1 MiB bypass. The 90 % are assumed.
    pub const OPEN_CAS: WriteBackConfig = WriteBackConfig {
        passing: Some(BypassPolicy {
            sequential: 1 << 20,
            sequential_from: 0.9,
            // The threshold of nhit, if that is selected; by default every write is admitted.
            fill_from: 0.8,
            ..BypassPolicy::NONE
        }),
        destage: Destage {
            cleaning: Cleaning::Idle(IdleCleaning {
                wake: Span::from_ms(20_000),
                quiet: Span::from_ms(10_000),
                stale: Span::from_ms(120_000),
            }),
            ..WriteBackConfig::LAZY.destage
        },
        ..WriteBackConfig::LAZY
    };

    /// Settings of Intel's Rapid Storage Technology with Optane Memory before a hard disk.
    ///
    /// Intel publishes that it caches writes and reads, not how: all of this is assumed. Writes are durable when they
    /// are acknowledged, because the module has no volatile buffer. It destages when the client is idle, and streams
    /// bypass it.
    pub const INTEL_RST: WriteBackConfig = WriteBackConfig {
        durability: Durability::Ack,
        passing: Some(BypassPolicy {
            sequential: 4 << 20,
            ..BypassPolicy::NONE
        }),
        destage: Destage {
            from: 0.7,
            cleaning: Cleaning::Idle(IdleCleaning {
                wake: Span::from_ms(1000),
                quiet: Span::from_ms(1000),
                stale: Span::from_ms(10_000),
            }),
            ..WriteBackConfig::LAZY.destage
        },
        ..WriteBackConfig::LAZY
    };

    /// Open CAS's aggressive policy (ACP): 128 blocks every 10 ms.
    pub const ACP: Cleaning = Cleaning::Steady(Span::from_ms(10));

    /// Returns the number of segments of the ring on a cache of `cache` bytes.
    pub fn segments(&self, cache: u64) -> u32 {
        let cache = cache.saturating_sub(SUPERBLOCKS);
        let per = u64::from(self.slots_of_segment());
        let segment = u64::from(self.segment.max(1));
        let has = match self.table {
            0 => cache / segment,
            // The rest of the table's last unit belongs to the table, too.
            _ => cache.saturating_sub(u64::from(UNIT)) / (segment + per * TABLE_ENTRY),
        };
        let most = u64::from(u32::MAX / self.slots_of_segment().max(1));
        has.min(self.buffer_limit / segment).min(most) as u32
    }

    /// Creates the tier with an empty buffer: data in the buffer at the start of a simulation was never written.
    fn empty(&self, children: &[u64]) -> WriteBack {
        let config = WriteBackConfig {
            start: 0.0,
            ..self.clone()
        };
        config.build(children)
    }

    pub(super) fn slots_of_segment(&self) -> u32 {
        self.segment / UNIT
    }

    fn own_problems(&self, problems: &mut Vec<String>) {
        let destage = &self.destage;
        let mut bytes = |what: &str, value: u32, least: u32, most: u32| {
            if !value.is_multiple_of(UNIT) || value < least || value > most {
                problems.push(format!(
                    "its {what} has {value} bytes, and should have a multiple of 4096 from {least} to {most}"
                ));
            }
        };
        bytes("segment", self.segment, 16 << 10, 64 << 20);
        bytes("record", self.record, 8 << 10, LARGEST_RECORD);
        if self.table > 0 {
            bytes("table's piece", self.table, UNIT, LARGEST_RECORD);
        }
        bytes("chunk", self.chunk, UNIT, 1 << 30);
        bytes("round of destaging", destage.round, UNIT, 1 << 30);
        bytes("largest write of destaging", destage.merge, UNIT, 16 << 20);
        let mut share = |what: &str, value: f64, above: f64| {
            if !(above..=1.0).contains(&value) {
                problems.push(format!(
                    "{what} is {value}, and should be from {above} to 1"
                ));
            }
        };
        share("the share at the start", self.start, 0.0);
        share("the share at which destaging starts", destage.from, 0.0);
        share(
            "the band between start and end of destaging",
            destage.band,
            0.0,
        );
        share("the share without pauses", destage.hurry, destage.from);
        share(
            "the share at which congestion starts",
            self.congestion.from,
            0.0,
        );
        share(
            "the share of full congestion",
            self.congestion.full,
            self.congestion.from,
        );
        if let Some(law) = self.passing {
            share(
                "the share at which sequential streams bypass the cache",
                law.sequential_from,
                0.0,
            );
            share(
                "the share above which all writes bypass the cache",
                law.from,
                0.0,
            );
            share(
                "the share above which durable writes bypass the cache",
                law.fua_from,
                0.0,
            );
            share("the share at which misses are counted", law.fill_from, 0.0);
        }
        self.other_problems(problems);
    }

    /// Adds problems other than those of sizes and shares.
    fn other_problems(&self, problems: &mut Vec<String>) {
        if self.destage.in_flight == 0 || self.records_in_flight == 0 {
            problems.push(String::from(
                "at least one record and one destaging write must be allowed in flight",
            ));
        }
        if self.destage.band > self.destage.from {
            problems.push(String::from(
                "the band of destaging is larger than the share at which it starts",
            ));
        }
        if self.table > 0 && self.durability == Durability::Ack {
            problems.push(String::from(
                "its table is written by commits, but acknowledged writes are durable without a commit",
            ));
        }
        if self
            .commit
            .is_some_and(|it| it.slots == 0 || it.after == Span::ZERO)
        {
            problems.push(String::from(
                "a commit must have at least one slot and a duration above zero",
            ));
        }
        problems.extend(self.destage.cleaning.problem().map(String::from));
        if self
            .passing
            .is_some_and(|law| !(1..=100).contains(&law.fill_at_miss))
        {
            problems.push(String::from(
                "the miss at which a block is admitted must be from 1 to 100",
            ));
        }
        if self.log_limit == 0 {
            problems.push(String::from("the log must have at least one entry"));
        }
    }
}

impl TierSettings for WriteBackConfig {
    type Tier = WriteBack;

    fn build(&self, children: &[u64]) -> WriteBack {
        WriteBack::new(self, children)
    }

    fn recovers(&self) -> bool {
        true
    }

    fn capacity(&self, children: &[u64]) -> u64 {
        let sizes = children.get(1..).unwrap_or_default();
        let chunk = match sizes.len() {
            1 => UNIT,
            _ => self.chunk.max(UNIT),
        };
        Striping::capacity(sizes.iter().map(|&bytes| label_at(bytes)), chunk.into())
    }

    /// The cache has data that the capacity tier does not have yet, and is usable only with the capacity tier.
    fn promise(&self, children: &[Promise]) -> Promise {
        let mut losses: Vec<Loss> = children.iter().map(|child| child.loss.clone()).collect();
        let capacity = losses.split_off(losses.len().min(1));
        losses.push(Loss::any(capacity));
        let cache = children.first().map(|cache| cache.durable);
        Promise {
            durable: match self.durability {
                Durability::Ack => DurabilityPoint::Acknowledged,
                Durability::Flush => cache.unwrap_or(DurabilityPoint::Flushed),
            },
            loss: Loss::any(losses),
        }
    }

    fn format(
        &self,
        children: &[u64],
        pool: u128,
        below: &mut dyn ChildImages,
    ) -> Result<(), Damage> {
        recover::format(self.empty(children), children, pool, below)
    }

    fn recover(
        &self,
        children: &[u64],
        pool: u128,
        below: &mut dyn ChildImages,
    ) -> Result<WriteBack, Damage> {
        recover::recover(self.empty(children), children, pool, below)
    }

    fn problems(&self, children: &[u64]) -> Vec<String> {
        let mut problems = Vec::new();
        self.own_problems(&mut problems);
        if children.len() < 2 {
            problems.push(String::from(
                "it requires a cache and at least one capacity drive",
            ));
        }
        let Some(&cache) = children.first() else {
            return problems;
        };
        if problems.is_empty() && u64::from(self.segments(cache)) < SEGMENTS {
            let table = match self.table {
                0 => 0,
                _ => table_bytes(SEGMENTS * u64::from(self.slots_of_segment())),
            };
            let least = SEGMENTS * u64::from(self.segment) + SUPERBLOCKS + table;
            problems.push(format!(
                "its buffer is too small for {SEGMENTS} segments: the cache must have at least {least} bytes"
            ));
        }
        let capacity = self.capacity(children);
        if problems.is_empty() && capacity == 0 {
            problems.push(String::from("its chunk is larger than the capacity drives"));
        }
        if capacity / u64::from(UNIT) >= 1 << UNIT_BITS {
            let pib = capacity as f64 / (1_u64 << 50) as f64;
            problems.push(format!(
                "the capacity drives have {pib:.1} PiB, but must have less than 4 PiB: use slices of the drives"
            ));
        }
        problems
    }

    fn shrink(&mut self, factor: f64) {
        let scaled = |bytes: u64| match bytes {
            u64::MAX => bytes,
            _ => libm::ceil(bytes as f64 * factor) as u64,
        };
        self.buffer_limit = scaled(self.buffer_limit);
        self.log_limit = scaled(self.log_limit);
        if let Some(commit) = &mut self.commit {
            commit.slots = scaled(commit.slots).max(1);
        }
        let smaller = |bytes: u32, least: u32| {
            let wanted = (scaled(bytes.into()) as u32).max(least.min(bytes));
            wanted.next_multiple_of(UNIT)
        };
        self.segment = smaller(self.segment, SMALL_SEGMENT);
        self.destage.round = smaller(self.destage.round, SMALL_ROUND);
    }
}
