//! A job as it will run: typed, complete, valid by construction. The words are fio's (`man fio`, "JOB FILE
//! PARAMETERS"); the fio reader makes these from job files and command lines, suites make them directly with
//! `Job { name: .., ..Job::default() }`.

use std::path::PathBuf;
use std::sync::Arc;

use model::host::{Durable, Engine, FileConfig, Filesystem};
use model::{Op, Span};
use serde::{Deserialize, Serialize};

/// A direction of data, as fio counts them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Direction {
    /// Reads.
    Read = 0,
    /// Writes.
    Write = 1,
    /// Trims (deallocation).
    Trim = 2,
}

/// Which directions a job mixes (`rw`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Mix {
    /// Only reads.
    #[default]
    Read,
    /// Only writes.
    Write,
    /// Only trims.
    Trim,
    /// Reads and writes by [`Job::read_percent`].
    ReadWrite,
    /// Each block is trimmed, then written.
    TrimWrite,
}

/// What a modifier such as `rw=randread:8` (with `rw_sequencer`) does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Sequencer {
    /// A new random offset after that many I/Os, sequential in between.
    #[default]
    Sequential,
    /// The same offset that many times.
    Identical,
}

/// Block sizes of one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum BlockSizes {
    /// Always the same.
    Fixed(u32),
    /// Uniform from `min` to `max` in steps of `min` (or of 512 B with `bs_unaligned`).
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

/// Where random offsets fall (`random_distribution`).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub enum Distribution {
    /// Uniform.
    #[default]
    Random,
    /// Zipf with this theta; `centre` (0 to 1) places the hottest block, which is hashed elsewhere if `None`.
    Zipf {
        /// Exponent.
        theta: f64,
        /// Place of the hottest block.
        centre: Option<f64>,
    },
    /// Pareto with this power.
    Pareto {
        /// Power, 0 to 1.
        power: f64,
        /// Place of the hottest block.
        centre: Option<f64>,
    },
    /// Normal with this standard deviation in percent of the range.
    Normal {
        /// Standard deviation, percent.
        deviation: f64,
        /// Place of the hottest block.
        centre: Option<f64>,
    },
    /// Zones in percent of the range: (share of accesses, share of space); both sum to 100.
    Zoned(Vec<(f64, f64)>),
    /// Zones in bytes: (share of accesses in percent, size).
    ZonedAbsolute(Vec<(f64, u64)>),
}

/// A place or length in a drive.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Extent {
    /// Bytes.
    Bytes(u64),
    /// Percent of the drive.
    Percent(f64),
}

/// How paced I/Os are spaced (`rate_process`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum RateProcess {
    /// Evenly.
    #[default]
    Linear,
    /// As a Poisson process.
    Poisson,
}

/// The limit of one direction's pace.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Rate {
    /// Bytes a second.
    Bytes(u64),
    /// I/Os a second.
    Iops(u64),
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
    /// How much of the pause burns CPU.
    pub spin: Span,
    /// Blocks between pauses; at least 1 (0 counts as 1).
    pub blocks: u32,
    /// Longest time between pauses (`thinktime_iotime`); zero: only blocks count.
    #[serde(default)]
    pub iotime: Span,
    /// Count issued blocks (true) or completed ones.
    pub by_issue: bool,
}

/// `latency_target` and its companions: find the largest depth that meets it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LatencyTarget {
    /// Latency to stay under.
    pub target: Span,
    /// How long each depth is tried.
    pub window: Span,
    /// Percent of I/Os that must meet it.
    pub percentile: f64,
    /// Go on adapting after the depth has been found.
    pub run: bool,
}

/// What a `steadystate` criterion looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SteadyMetric {
    /// I/Os a second.
    Iops,
    /// Bytes a second.
    Bandwidth,
    /// Mean latency.
    Latency,
}

fn one_second() -> Span {
    Span::from_seconds(1.0)
}

/// `steadystate` and its companions: end the job early when it is steady.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SteadyState {
    /// The figure watched, once an interval.
    pub metric: SteadyMetric,
    /// Whether the slope of a least-squares fit is judged rather than the largest deviation from the mean.
    pub slope: bool,
    /// Limit of deviation or slope.
    pub limit: f64,
    /// Whether `limit` is percent of the mean.
    pub percent: bool,
    /// Length of the window.
    pub duration: Span,
    /// Time before the window begins.
    pub ramp: Span,
    /// Time of one sample (`steadystate_check_interval`).
    #[serde(default = "one_second")]
    pub interval: Span,
}

/// A recorded list of I/Os to play (`read_iolog`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct IoLog {
    /// The file.
    pub path: PathBuf,
    /// Ignore recorded times (`replay_no_stall`).
    pub no_stall: bool,
    /// Percent of the recorded rate: 100 as recorded, 200 twice as fast (`replay_time_scale`).
    pub time_scale: u32,
}

/// One recorded I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TimedIo {
    /// When it was issued, from the start of the recording.
    pub at: Span,
    /// What it did.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u32,
}

/// How directions are reported (`unified_rw_reporting`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Unified {
    /// Each by itself.
    #[default]
    Separate,
    /// All as one.
    Mixed,
    /// Each by itself and all as one.
    Both,
}

/// What only a job's report looks at, never the simulation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reporting {
    /// Free text shown with the job (`description`).
    pub description: Option<String>,
    /// Directions apart or together.
    pub unified: Unified,
    /// 1024 or 1000: what a `k` is, and which of MiB and MB comes first (`kb_base`).
    pub kb_base: u64,
    /// Rates in bits rather than bytes (`unit_base=1`).
    pub bits: bool,
    /// Digits of a figure in text (`significant_figures`).
    pub significant_figures: usize,
    /// Digits after the point of a percentile in text, as in `percentile_list`.
    pub percentile_digits: usize,
    /// Leave out total latency (`disable_lat`).
    pub disable_lat: bool,
    /// Leave out completion latency (`disable_clat`).
    pub disable_clat: bool,
    /// Leave out submission latency (`disable_slat`).
    pub disable_slat: bool,
    /// Leave out rates over time (`disable_bw_measurement`).
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

/// Bytes of a page of the page cache.
pub const PAGE: u64 = 4096;

/// First byte and length of the pages that an I/O touches.
#[inline]
pub(crate) fn whole_pages(offset: u64, bytes: u32) -> (u64, u32) {
    let start = offset - offset % PAGE;
    let end = (offset + u64::from(bytes)).next_multiple_of(PAGE);
    (start, (end - start) as u32)
}

/// One job (all `numjobs` of it).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Section name.
    pub name: String,
    /// Wait until all jobs before this one have ended.
    pub stonewall: bool,
    /// Begins a new reporting group (`new_group`; a stonewall does too).
    pub new_group: bool,
    /// Report its threads as one (`group_reporting`).
    pub group_reporting: bool,
    /// Copies of it (`numjobs`).
    pub numjobs: u32,
    /// Threads rather than processes (shown in output only).
    pub thread: bool,
    /// Directions.
    pub mix: Mix,
    /// Random rather than sequential offsets.
    pub random: bool,
    /// Percent of reads in a read-write mix (`rwmixread`).
    pub read_percent: u32,
    /// The number after `rw=...:` of a random job; 1 when absent.
    pub sequence: u32,
    /// What that number means.
    pub sequencer: Sequencer,
    /// Bytes left out after each sequential I/O (`rw=write:4k`); negative goes backwards (`rw=read:-8k` with 4k blocks
    /// reads the range from its end).
    pub skip: i64,
    /// By direction.
    pub block_sizes: [BlockSizes; 3],
    /// By direction: offsets are multiples of this (`blockalign`; the smallest block size by default).
    pub block_align: [u32; 3],
    /// I/Os kept in flight.
    pub iodepth: u32,
    /// I/Os submitted at once.
    pub iodepth_batch: u32,
    /// Fewest completions reaped at once.
    pub iodepth_batch_complete_min: u32,
    /// Most completions reaped at once.
    pub iodepth_batch_complete_max: u32,
    /// Refill only when the depth has fallen to this; 0 means at once (fio's default: `iodepth` itself).
    pub iodepth_low: u32,
    /// First byte.
    pub offset: Extent,
    /// Added to `offset` for each further copy.
    pub offset_increment: Extent,
    /// Length of the range; the rest of the drive if `None`.
    pub size: Option<Extent>,
    /// Bytes to transfer, if other than `size`.
    pub io_size: Option<Extent>,
    /// Limit of the file's size (`filesize`): the range ends there.
    pub filesize: Option<u64>,
    /// End after this long.
    pub runtime: Option<Span>,
    /// Go on until `runtime` even when the range has been covered.
    pub time_based: bool,
    /// Not counted in statistics at the start.
    pub ramp_time: Span,
    /// Wait before starting.
    pub startdelay: Span,
    /// Cover the range this many times.
    pub loops: u32,
    /// End after this many I/Os for each of [`Job::loops`]; of no effect where [`Job::time_based`].
    pub number_ios: Option<u64>,
    /// By direction.
    pub rate: [Option<Rate>; 3],
    /// Spacing of paced I/Os.
    pub rate_process: RateProcess,
    /// Pauses.
    pub think: Option<ThinkTime>,
    /// Distribution of random offsets by direction.
    pub distribution: [Distribution; 3],
    /// Random offsets may repeat before all have been used (`norandommap`).
    pub norandommap: bool,
    /// Percent of random I/Os in a random job, by direction (`percentage_random`).
    pub percentage_random: [u32; 3],
    /// Seed of this job's streams (`randseed`); derived from the run's when `None`.
    pub randseed: Option<u64>,
    /// The interface.
    pub engine: Engine,
    /// fio's own name of the engine, for output.
    pub engine_name: String,
    /// Polled completions.
    pub high_priority: bool,
    /// A kernel thread polls the submission queue (`sqthread_poll`).
    pub sq_poll: bool,
    /// Unbuffered I/O. Buffered has a model for jobs that write and sync; the fio reader makes others direct, with a warning.
    pub direct: bool,
    /// It has a block device: a range that is longer than the drive ends with it, as in fio.
    #[serde(default)]
    pub on_device: bool,
    /// The file system that the job's file is in; `None`: it has the drive itself.
    pub filesystem: Option<Filesystem>,
    /// The file is there and written (`overwrite`): no write changes its map of extents.
    pub overwrite: bool,
    /// Each I/O moves whole pages on the drive ([`whole_pages`]), as the page cache makes them of blocks that no drive
    /// takes.
    pub whole_pages: bool,
    /// fsync after this many writes; 0 never.
    pub fsync: u32,
    /// fdatasync after this many writes; 0 never.
    pub fdatasync: u32,
    /// fsync at the end.
    pub end_fsync: bool,
    /// Durability of each write.
    pub sync: SyncMode,
    /// Search for a depth.
    pub latency_target: Option<LatencyTarget>,
    /// End when steady.
    pub steady_state: Option<SteadyState>,
    /// Percentiles to report.
    pub percentile_list: Vec<f64>,
    /// Report percentiles of completion latency (`clat_percentiles`).
    pub clat_percentiles: bool,
    /// Report percentiles of total latency (`lat_percentiles`).
    pub lat_percentiles: bool,
    /// Report percentiles of submission latency (`slat_percentiles`).
    pub slat_percentiles: bool,
    /// I/Os to play instead of making them: where they were written.
    pub iolog: Option<IoLog>,
    /// I/Os to play instead of making them, in order of time. Whoever reads [`Job::iolog`] puts them here before the
    /// run; a run itself reads no file. They are issued when due (at once with `no_stall`) and a slot of `iodepth` is
    /// free, so a drive that cannot follow delays them.
    pub records: Option<Arc<[TimedIo]>>,
    /// What only the report looks at.
    pub reporting: Reporting,
    /// The options as written (key, value), for `job options` in fio's JSON.
    pub as_written: Vec<(String, String)>,
}

impl Job {
    /// An [`Job::io_size`] that is never reached: the job goes round its range until something else ends it.
    pub const ROUND: Extent = Extent::Bytes(1000 << 40);

    /// I/Os after which a thread ends, in all.
    pub fn most_ios(&self) -> Option<u64> {
        let each = self.number_ios.filter(|_| !self.time_based)?;
        Some(each.saturating_mul(self.loops.into()))
    }

    /// How often its direct writes meet blocks of its file that are allocated and were never written, on average over its
    /// run: fio allocates the file of a job that only writes and does not write it first, so its first pass does.
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
            // The smallest: extents are marked one by one.
            BlockSizes::Range { min, .. } => *min,
            BlockSizes::Split(parts) => parts.iter().map(|part| part.0).min().unwrap_or(4096),
        };
        let blocks = (size / u64::from(block.max(1))).max(1);
        Some(Span::from_ns((runtime + self.ramp_time).ns() / blocks))
    }

    /// What a thread of this job has of a file; `None` if it has the drive itself, without a page cache.
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
            // A job with both has fsync.
            sync: if self.fdatasync > 0 && self.fsync == 0 {
                Durable::Data
            } else {
                Durable::All
            },
        })
    }
}

impl Default for Job {
    /// fio's defaults, but direct I/O and libaio (fio's are buffered and psync).
    fn default() -> Job {
        Job {
            name: String::from("job"),
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
            distribution: [
                Distribution::Random,
                Distribution::Random,
                Distribution::Random,
            ],
            norandommap: false,
            percentage_random: [100; 3],
            randseed: None,
            engine: Engine::Libaio,
            engine_name: String::from("libaio"),
            high_priority: false,
            sq_poll: false,
            direct: true,
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
            percentile_list: vec![
                1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5,
                99.9, 99.95, 99.99,
            ],
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
