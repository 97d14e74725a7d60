//! A complete, typed and valid job. The terms are fio's (`man fio`, "JOB FILE PARAMETERS"). The fio reader creates
//! jobs from job files and command lines; suites create them directly with `Job { name: .., ..Job::default() }`.

use std::path::PathBuf;
use std::sync::Arc;

use model::host::{Advice, Blocking, Durable, Engine, FileConfig, Filesystem};
use model::{Op, Span};
use serde::{Deserialize, Serialize};

pub use super::commands::{CpuNodes, WriteMode};
pub use super::direction::Direction;
pub use super::steady::{SteadyMetric, SteadyState};
pub use super::zoned::ZonedMode;

/// The directions that a job mixes (`rw`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Mix {
    /// Reads only.
    #[default]
    Read,
    /// Writes only.
    Write,
    /// Trims only.
    Trim,
    /// Reads and writes, by [`Job::read_percent`].
    ReadWrite,
    /// Each block is trimmed, then written.
    TrimWrite,
}

/// Effect of a modifier such as `rw=randread:8` (with `rw_sequencer`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Sequencer {
    /// A new random offset after this number of I/Os, sequential in between.
    #[default]
    Sequential,
    /// Each offset is used this number of times.
    Identical,
}

/// Block sizes of one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum BlockSizes {
    /// One size for all blocks.
    Fixed(u32),
    /// Uniform from `min` to `max`, in steps of `min` (or of 512 B with `bs_unaligned`).
    Range {
        /// Smallest, bytes.
        min: u32,
        /// Largest, bytes.
        max: u32,
        /// Step, bytes.
        step: u32,
    },
    /// Each size with its share in percent; the shares sum to 100.
    Split(Vec<(u32, f64)>),
}

/// Distribution of random offsets (`random_distribution`).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub enum Distribution {
    /// Uniform.
    #[default]
    Random,
    /// Zipf with this theta. `centre` (0 to 1) is the position of the hottest block; `None` hashes it to some
    /// position.
    Zipf {
        /// Exponent.
        theta: f64,
        /// Position of the hottest block.
        centre: Option<f64>,
    },
    /// Pareto with this power.
    Pareto {
        /// Power, 0 to 1.
        power: f64,
        /// Position of the hottest block.
        centre: Option<f64>,
    },
    /// Normal with this standard deviation in percent of the range.
    Normal {
        /// Standard deviation, percent.
        deviation: f64,
        /// Position of the hottest block.
        centre: Option<f64>,
    },
    /// Zones in percent of the range: (share of accesses, share of space); both sum to 100.
    Zoned(Vec<(f64, f64)>),
    /// Zones in bytes: (share of accesses in percent, size).
    ZonedAbsolute(Vec<(f64, u64)>),
}

/// An offset or length on a drive.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Extent {
    /// Absolute value in bytes.
    Bytes(u64),
    /// Percent of the drive.
    Percent(f64),
}

/// Spacing of rate-limited I/Os (`rate_process`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum RateProcess {
    /// Evenly.
    #[default]
    Linear,
    /// As a Poisson process.
    Poisson,
}

/// Rate limit of one direction.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Rate {
    /// Bytes per second.
    Bytes(u64),
    /// I/Os per second.
    Iops(u64),
    /// Mean time between I/Os, for rates that are not whole. fio has no such option.
    Every(Span),
}

impl Rate {
    /// Returns the I/Os per second; `None` for a rate in bytes.
    pub fn iops(self) -> Option<f64> {
        match self {
            Rate::Bytes(_) => None,
            Rate::Iops(iops) => Some(iops as f64),
            Rate::Every(gap) => Some(1.0 / gap.seconds().max(1e-9)),
        }
    }
}

/// `sync`: how writes are made durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum SyncMode {
    /// Not at all.
    #[default]
    None,
    /// `O_SYNC`.
    Sync,
    /// `O_DSYNC`.
    DataSync,
}

/// `thinktime` and its companions.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ThinkTime {
    /// Pause after each group of blocks.
    pub pause: Span,
    /// Part of the pause that uses CPU time.
    pub spin: Span,
    /// Blocks between pauses; at least 1 (0 counts as 1).
    pub blocks: u32,
    /// Longest time between pauses (`thinktime_iotime`); zero: only blocks count.
    #[serde(default)]
    pub iotime: Span,
    /// Count issued blocks (true) or completed ones.
    pub by_issue: bool,
}

/// `latency_target` and its companions: find the largest depth that meets the target.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LatencyTarget {
    /// Maximum latency.
    pub target: Span,
    /// Duration of the test of each depth.
    pub window: Span,
    /// Percentage of I/Os that must meet the target.
    pub percentile: f64,
    /// Whether to continue adapting after the depth has been found.
    pub run: bool,
}

/// A recorded list of I/Os to replay (`read_iolog`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct IoLog {
    /// The file.
    pub path: PathBuf,
    /// Whether to ignore recorded times (`replay_no_stall`).
    pub no_stall: bool,
    /// Percentage of the recorded rate: 100 is the recorded rate, 200 is twice as fast (`replay_time_scale`).
    pub time_scale: u32,
}

/// One recorded I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TimedIo {
    /// Time of issue, from the start of the recording.
    pub at: Span,
    /// Operation.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u32,
}

/// How directions are reported (`unified_rw_reporting`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Unified {
    /// Each direction separately.
    #[default]
    Separate,
    /// All directions together.
    Mixed,
    /// Each direction separately, and all together.
    Both,
}

/// Properties that only affect a job's report, never the simulation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reporting {
    /// Free text shown with the job (`description`).
    pub description: Option<String>,
    /// Whether directions are reported separately or together.
    pub unified: Unified,
    /// 1024 or 1000: the meaning of `k`, and whether MiB or MB comes first (`kb_base`).
    pub kb_base: u64,
    /// Whether rates are in bits instead of bytes (`unit_base=1`).
    pub bits: bool,
    /// Significant digits of a figure in text (`significant_figures`).
    pub significant_figures: usize,
    /// Decimals of a percentile in text, as in `percentile_list`.
    pub percentile_digits: usize,
    /// Omit total latency (`disable_lat`).
    pub disable_lat: bool,
    /// Omit completion latency (`disable_clat`).
    pub disable_clat: bool,
    /// Omit submission latency (`disable_slat`).
    pub disable_slat: bool,
    /// Omit rates over time (`disable_bw_measurement`).
    pub disable_bw: bool,
}

impl Default for Reporting {
    fn default() -> Reporting {
        Reporting {
            description: None,
            unified: Unified::Separate,
            kb_base: 1024,
            bits: false,
            significant_figures: 4,
            percentile_digits: 2,
            disable_lat: false,
            disable_clat: false,
            disable_slat: false,
            disable_bw: false,
        }
    }
}

/// Page size of the page cache, bytes.
pub const PAGE: u64 = 4096;

/// Returns first byte and length of the pages that an I/O touches.
#[inline]
pub(crate) fn whole_pages(offset: u64, bytes: u32) -> (u64, u32) {
    let start = offset - offset % PAGE;
    let end = (offset + u64::from(bytes)).next_multiple_of(PAGE);
    (start, (end - start) as u32)
}

/// One job with all its copies (`numjobs`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Section name.
    pub name: String,
    /// Number of the virtual machine that runs the job, from 1; `None` without guests ([`crate::guests`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<u32>,
    /// Whether to wait until all jobs before this one have ended.
    pub stonewall: bool,
    /// Whether the job starts a new reporting group (`new_group`; a stonewall does too).
    pub new_group: bool,
    /// Whether to report its threads as one (`group_reporting`).
    pub group_reporting: bool,
    /// Number of copies (`numjobs`).
    pub numjobs: u32,
    /// Threads rather than processes (shown in output only).
    pub thread: bool,
    /// Directions of the I/Os.
    pub mix: Mix,
    /// Whether offsets are random instead of sequential.
    pub random: bool,
    /// Percent of reads in a read-write mix (`rwmixread`).
    pub read_percent: u32,
    /// The number after `rw=...:` of a random job; 1 if absent.
    pub sequence: u32,
    /// Meaning of `sequence`.
    pub sequencer: Sequencer,
    /// Bytes skipped after each sequential I/O (`rw=write:4k`); a negative value (`rw=read:-8k`) goes backwards.
    pub skip: i64,
    /// Zones of `zonemode=strided`.
    pub strided: Option<crate::strided::StridedZones>,
    /// Zones of `zonemode=zbd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zoned: Option<ZonedMode>,
    /// Commands of writes with their shares in percent (`write_mode`); empty for plain writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_modes: Vec<(WriteMode, u32)>,
    /// Block sizes by direction.
    pub block_sizes: [BlockSizes; 3],
    /// Alignment of offsets by direction (`blockalign`; the smallest block size by default).
    pub block_align: [u32; 3],
    /// Queue depth.
    pub iodepth: u32,
    /// I/Os per submission.
    pub iodepth_batch: u32,
    /// Minimum completions per reap.
    pub iodepth_batch_complete_min: u32,
    /// Maximum completions per reap.
    pub iodepth_batch_complete_max: u32,
    /// Depth at which the thread starts to issue again; 0 means at once (fio's default: `iodepth` itself).
    pub iodepth_low: u32,
    /// First byte of the range.
    pub offset: Extent,
    /// Offset increment of each further copy.
    pub offset_increment: Extent,
    /// Length of the range; `None` means the rest of the drive.
    pub size: Option<Extent>,
    /// Bytes to transfer, if different from `size`.
    pub io_size: Option<Extent>,
    /// Maximum file size (`filesize`): the range ends there.
    pub filesize: Option<u64>,
    /// Maximum run time.
    pub runtime: Option<Span>,
    /// Whether to continue until `runtime` after the range has been covered.
    pub time_based: bool,
    /// Time at the start that is excluded from statistics.
    pub ramp_time: Span,
    /// Delay before the start.
    pub startdelay: Span,
    /// Number of passes over the range.
    pub loops: u32,
    /// Maximum I/Os per loop ([`Job::loops`]); no effect with [`Job::time_based`].
    pub number_ios: Option<u64>,
    /// Rate limit by direction.
    pub rate: [Option<Rate>; 3],
    /// Spacing of rate-limited I/Os.
    pub rate_process: RateProcess,
    /// Think time.
    pub think: Option<ThinkTime>,
    /// Distribution of random offsets by direction.
    pub distribution: [Distribution; 3],
    /// Whether random offsets may repeat before all have been used (`norandommap`).
    pub norandommap: bool,
    /// Percentage of random I/Os in a random job, by direction (`percentage_random`).
    pub percentage_random: [u32; 3],
    /// Seed of this job's random streams (`randseed`); `None` derives it from the run's seed.
    pub randseed: Option<u64>,
    /// Host path.
    pub engine: Engine,
    /// fio's name of the engine, for output.
    pub engine_name: String,
    /// Whether completions are polled.
    pub high_priority: bool,
    /// Whether a kernel thread polls the submission queue (`sqthread_poll`).
    pub sq_poll: bool,
    /// NUMA nodes of its threads (`numa_cpu_nodes`).
    #[serde(default, skip_serializing_if = "CpuNodes::is_drive")]
    pub cpu_nodes: CpuNodes,
    /// Unbuffered I/O. Other I/O goes through the host's page cache.
    pub direct: bool,
    /// Advice to the page cache about the accesses.
    #[serde(default)]
    pub advice: Advice,
    /// Whether clean pages of the range are removed from the page cache at the start.
    #[serde(default)]
    pub invalidate: bool,
    /// Whether the job uses a block device. A range beyond the end of the device is cut, as in fio.
    #[serde(default)]
    pub on_device: bool,
    /// File system of the job's file; `None`: the job uses the drive directly.
    pub filesystem: Option<Filesystem>,
    /// Whether the file already exists and has been written (`overwrite`): no write changes its extent map.
    pub overwrite: bool,
    /// Whether each I/O transfers whole pages on the drive ([`whole_pages`]), as the page cache does for block sizes
    /// that a drive does not accept.
    pub whole_pages: bool,
    /// fsync after this many writes; 0 means never.
    pub fsync: u32,
    /// fdatasync after this many writes; 0 means never.
    pub fdatasync: u32,
    /// Whether to fsync at the end.
    pub end_fsync: bool,
    /// Durability of each write.
    pub sync: SyncMode,
    /// Search for the largest depth that meets a latency.
    pub latency_target: Option<LatencyTarget>,
    /// Criterion for ending the job in steady state.
    pub steady_state: Option<SteadyState>,
    /// Percentiles to report.
    pub percentile_list: Vec<f64>,
    /// Report percentiles of completion latency (`clat_percentiles`).
    pub clat_percentiles: bool,
    /// Report percentiles of total latency (`lat_percentiles`).
    pub lat_percentiles: bool,
    /// Report percentiles of submission latency (`slat_percentiles`).
    pub slat_percentiles: bool,
    /// Location of recorded I/Os to replay instead of generated ones.
    pub iolog: Option<IoLog>,
    /// Recorded I/Os to replay instead of generated ones, in order of time. The caller reads [`Job::iolog`] into this
    /// field before the run; a run itself reads no file. Each I/O is issued when it is due (at once with `no_stall`)
    /// and a slot of `iodepth` is free, so a slow drive delays them.
    pub records: Option<Arc<[TimedIo]>>,
    /// Properties that only affect the report.
    pub reporting: Reporting,
    /// Options as written (key, value), for `job options` in fio's JSON.
    pub as_written: Vec<(String, String)>,
}

impl Job {
    /// An [`Job::io_size`] that is never reached: the job repeats its range until another limit ends it.
    pub const ROUND: Extent = Extent::Bytes(1000 << 40);

    /// Returns the total number of I/Os after which a thread ends.
    pub fn most_ios(&self) -> Option<u64> {
        let each = self.number_ios.filter(|_| !self.time_based)?;
        Some(each.saturating_mul(self.loops.into()))
    }

    /// Returns the average interval between direct writes to blocks of the file that are allocated but not yet
    /// written. fio allocates the file of a job that only writes, so the first pass meets such blocks.
    fn converts_every(&self) -> Option<Span> {
        let only_writes = self.mix == Mix::Write && self.records.is_none();
        if !self.direct || !only_writes || self.overwrite || self.filesystem.is_none() {
            return None;
        }
        let (Some(Extent::Bytes(size)), Some(runtime), true) =
            (&self.size, self.runtime, self.time_based)
        else {
            return Some(Span::ZERO);
        };
        let block = match &self.block_sizes[1] {
            BlockSizes::Fixed(bytes) => *bytes,
            // The smallest size: extents are converted one by one.
            BlockSizes::Range { min, .. } => *min,
            BlockSizes::Split(parts) => parts.iter().map(|part| part.0).min().unwrap_or(4096),
        };
        let blocks = (size / u64::from(block.max(1))).max(1);
        Some(Span::from_ns((runtime + self.ramp_time).ns() / blocks))
    }

    /// Returns the file model of this job's threads, on the whole drive; `None` if they use the drive directly, without a
    /// page cache.
    pub fn file(&self) -> Option<FileConfig> {
        if self.direct && self.filesystem.is_none() {
            return None;
        }
        Some(FileConfig {
            filesystem: self.filesystem,
            buffered: !self.direct,
            appends: !self.random && !self.overwrite && self.records.is_none(),
            converts_every: self.converts_every(),
            each: match self.sync {
                SyncMode::None => None,
                SyncMode::DataSync => Some(Durable::Data),
                SyncMode::Sync => Some(Durable::All),
            },
            // A job with both uses fsync.
            sync: if self.fdatasync > 0 && self.fsync == 0 {
                Durable::Data
            } else {
                Durable::All
            },
            syncs: self.syncs(),
            blocking: match self.engine {
                Engine::PosixAio => Blocking::Helper,
                Engine::IoUring | Engine::IoUringCmd => Blocking::Never,
                Engine::Sync | Engine::Pvsync2 | Engine::Libaio | Engine::UserSpace => {
                    Blocking::Thread
                }
            },
            advice: self.advice,
            range: (0, u64::MAX),
            invalidates: self.invalidate,
        })
    }

    /// Whether the job syncs while it writes.
    pub fn syncs(&self) -> bool {
        self.fsync > 0 || self.fdatasync > 0 || self.sync != SyncMode::None
    }
}

/// Percentiles that fio reports by default.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

impl Default for Job {
    /// Returns fio's defaults, but with direct I/O and libaio (fio's are buffered and psync).
    fn default() -> Job {
        Job {
            name: String::from("job"),
            guest: None,
            stonewall: false,
            new_group: false,
            group_reporting: false,
            numjobs: 1,
            thread: false,
            mix: Mix::Read,
            random: false,
            read_percent: 50,
            sequence: 1,
            sequencer: Sequencer::Sequential,
            skip: 0,
            strided: None,
            zoned: None,
            write_modes: Vec::new(),
            block_sizes: [const { BlockSizes::Fixed(4096) }; 3],
            block_align: [4096; 3],
            iodepth: 1,
            iodepth_batch: 1,
            iodepth_batch_complete_min: 1,
            iodepth_batch_complete_max: 1,
            iodepth_low: 0,
            offset: Extent::Bytes(0),
            offset_increment: Extent::Bytes(0),
            size: None,
            io_size: None,
            filesize: None,
            runtime: None,
            time_based: false,
            ramp_time: Span::ZERO,
            startdelay: Span::ZERO,
            loops: 1,
            number_ios: None,
            rate: [None; 3],
            rate_process: RateProcess::Linear,
            think: None,
            distribution: [const { Distribution::Random }; 3],
            norandommap: false,
            percentage_random: [100; 3],
            randseed: None,
            engine: Engine::Libaio,
            engine_name: String::from("libaio"),
            high_priority: false,
            sq_poll: false,
            cpu_nodes: CpuNodes::Drive,
            direct: true,
            advice: Advice::Normal,
            invalidate: true,
            on_device: false,
            filesystem: None,
            overwrite: false,
            whole_pages: false,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            sync: SyncMode::None,
            latency_target: None,
            steady_state: None,
            percentile_list: PERCENTILES.to_vec(),
            clat_percentiles: true,
            lat_percentiles: false,
            slat_percentiles: false,
            iolog: None,
            records: None,
            reporting: Reporting::default(),
            as_written: Vec::new(),
        }
    }
}
