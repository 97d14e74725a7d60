//! A job while it is read: values of fio's options before they are combined into a [`Job`](crate::job::Job).
//!
//! Options may come in any order and depend on each other: `bsrange` replaces `bs`, `ba` defaults to the smallest
//! block, `rate` excludes `rate_iops`. [`Settings::finish`] applies these rules once, as fio does after reading a
//! section.

use model::Span;
use model::host::{Advice, Engine, Filesystem};

use crate::job::{
    BlockSizes, Distribution, IoLog, Job, LatencyTarget, Mix, Rate, SteadyMetric, SteadyState,
    ThinkTime,
};

use super::engines;
use super::files::is_device;
use super::value::OptionError;
use super::zone_options::ZoneOptions;
use crate::blocks::limits;

/// fio's view of a job.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Values that need no combination with other options.
    pub job: Job,
    /// Whether `direct=0` or `buffered=1` is given.
    pub says_buffered: bool,
    /// Whether the options are a command line without a job file: direct I/O is then the default.
    pub direct_by_default: bool,
    /// Advice by `fadvise_hint`; `None` follows the job's accesses.
    pub advice: Option<Advice>,
    pub bs: [u64; 3],
    pub min_bs: [Option<u64>; 3],
    pub max_bs: [Option<u64>; 3],
    pub split: [Option<Vec<(u64, f64)>>; 3],
    pub align: [Option<u64>; 3],
    pub unaligned: bool,
    pub sizes_by_pattern: bool,
    pub rate_bytes: [Option<u64>; 3],
    pub rate_iops: [Option<u64>; 3],
    pub zones: ZoneOptions,
    /// Ranges of a trim command (`num_range`).
    pub trim_ranges: u32,
    pub think: ThinkTime,
    /// `thinktime_blocks`, if given: its default has no effect together with `thinktime_iotime`.
    pub think_blocks: Option<u32>,
    pub latency_target: Span,
    pub latency_window: Span,
    pub latency_percentile: f64,
    pub latency_run: bool,
    pub steady: (SteadyMetric, bool, f64, bool),
    pub steady_duration: Span,
    pub steady_ramp: Span,
    /// `steadystate_check_interval`, if it is given.
    pub steady_interval: Option<Span>,
    pub iolog: IoLog,
    pub filename: Option<String>,
    pub directory: Option<String>,
    pub wait_for: Option<String>,
    /// Remarks about options that are only partly simulated.
    pub notes: Vec<String>,
    /// Engine-specific options in the job's own section, with the engines that have them.
    pub engine_options: Vec<(&'static str, &'static [&'static str])>,
}

impl Default for Settings {
    /// Returns fio's defaults.
    fn default() -> Settings {
        let mut job = Job::default();
        let psync = engines::find("psync").expect("fio's default engine is known");
        job.engine = psync.engine;
        job.engine_name = psync.name.into();
        job.direct = false;
        Settings {
            job,
            says_buffered: false,
            direct_by_default: false,
            advice: None,
            bs: [4096; 3],
            min_bs: [None; 3],
            max_bs: [None; 3],
            split: [None, None, None],
            align: [None; 3],
            unaligned: false,
            sizes_by_pattern: false,
            rate_bytes: [None; 3],
            rate_iops: [None; 3],
            zones: ZoneOptions::default(),
            trim_ranges: 1,
            think: ThinkTime::default(),
            think_blocks: None,
            latency_target: Span::ZERO,
            latency_window: Span::ZERO,
            latency_percentile: 100.0,
            latency_run: false,
            steady: (SteadyMetric::Iops, true, 0.01, true),
            steady_duration: Span::ZERO,
            steady_ramp: Span::ZERO,
            steady_interval: None,
            iolog: IoLog {
                path: std::path::PathBuf::new(),
                no_stall: false,
                time_scale: 100,
            },
            filename: None,
            directory: None,
            wait_for: None,
            notes: Vec::new(),
            engine_options: Vec::new(),
        }
    }
}

/// A message that only arises from the combination of options: the option, and the problem or remark.
#[derive(PartialEq)]
pub(super) struct OptionMessage<T> {
    pub option: &'static str,
    pub what: T,
}

impl OptionMessage<OptionError> {
    /// Creates a problem of an option, with the allowed values.
    pub(super) fn problem(
        option: &'static str,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> OptionMessage<OptionError> {
        let what = OptionError::new(what, help);
        OptionMessage { option, what }
    }
}

/// Result of combining a job's options.
pub(super) struct ResolvedJob {
    pub job: Job,
    pub wrong: Vec<OptionMessage<OptionError>>,
    /// Differences from fio, as text that begins with the job.
    pub notes: Vec<String>,
    /// Differences because of which fio would measure something else.
    pub unlike: Vec<String>,
}

impl Settings {
    /// Clears the options that would take precedence over an overriding option, wherever they are written.
    pub(super) fn give_way_to(&mut self, option: &str) {
        match option {
            "bs" | "blocksize" => {
                (self.min_bs, self.max_bs) = ([None; 3], [None; 3]);
                self.split = [None, None, None];
            }
            "bsrange" | "blocksize_range" => self.split = [None, None, None],
            "rate" => self.rate_iops = [None; 3],
            "rate_iops" => self.rate_bytes = [None; 3],
            _ => {}
        }
    }

    /// Combines the options.
    pub(super) fn finish(mut self) -> ResolvedJob {
        let mut wrong = Vec::new();
        let mut notes = std::mem::take(&mut self.notes);
        let mut unlike = Vec::new();
        self.finish_steady(&mut wrong);
        self.finish_zones(&mut wrong, &mut notes);
        self.without_metadata(&mut notes);
        self.finish_blocks(&mut wrong, &mut notes);
        self.finish_commands(&mut wrong, &mut notes);
        self.job.on_device = self.is_on_device();
        self.finish_rates(&mut wrong);
        self.finish_times(&mut notes);
        self.finish_engine(&mut wrong, &mut notes, &mut unlike);
        self.finish_depth(&mut notes);
        if self
            .job
            .distribution
            .iter()
            .any(|by| *by != Distribution::Random)
        {
            self.job.norandommap = true;
        }
        if self.latency_target > Span::ZERO {
            self.job.latency_target = Some(LatencyTarget {
                target: self.latency_target,
                window: self.latency_window,
                percentile: self.latency_percentile,
                run: self.latency_run,
            });
        }
        if self.steady_duration >= Span::from_seconds(1.0) {
            let (metric, slope, limit, percent) = self.steady;
            self.job.steady_state = Some(SteadyState {
                metric,
                slope,
                limit,
                percent,
                duration: self.steady_duration,
                ramp: self.steady_ramp,
                interval: self.steady_interval.unwrap_or(Span::from_seconds(1.0)),
            });
        }
        if !self.iolog.path.as_os_str().is_empty() {
            self.job.iolog = Some(self.iolog);
        }
        ResolvedJob {
            job: self.job,
            wrong,
            notes,
            unlike,
        }
    }

    fn finish_blocks(
        &mut self,
        wrong: &mut Vec<OptionMessage<OptionError>>,
        notes: &mut Vec<String>,
    ) {
        let random = self.job.random;
        if self.sizes_by_pattern {
            // In this case, read sizes apply to sequential I/O, and write sizes to random I/O.
            let from = usize::from(random);
            for direction in 0..3 {
                self.bs[direction] = self.bs[from];
                self.min_bs[direction] = self.min_bs[from];
                self.max_bs[direction] = self.max_bs[from];
                self.split[direction] = self.split[from].clone();
            }
            if random && self.job.percentage_random != [100; 3] {
                notes.push(
                    "bs_is_seq_rand: in the simulation, all I/O of a random job has the random size".into(),
                );
            }
        }
        let cached = self.is_cached();
        let mut pages = false;
        for direction in 0..3 {
            let fixed = self.bs[direction];
            let min = self.min_bs[direction].unwrap_or(fixed);
            let max = self.max_bs[direction].unwrap_or(fixed).max(min);
            let from = match (&self.split[direction], self.min_bs[direction]) {
                (Some(_), _) => "bssplit",
                (None, Some(_)) => "bsrange",
                (None, None) => "bs",
            };
            let mut block = |bytes: u64| {
                if cached && !bytes.is_multiple_of(512) && (1..=LARGEST).contains(&bytes) {
                    pages = true;
                    return bytes as u32;
                }
                block(bytes, from, wrong)
            };
            let sizes = match &self.split[direction] {
                _ if min == max => BlockSizes::Fixed(block(min)),
                Some(split) => BlockSizes::Split(
                    split
                        .iter()
                        .map(|&(size, share)| (block(size), share))
                        .collect(),
                ),
                None if self.unaligned => BlockSizes::Range {
                    min: block(min),
                    max: block(max),
                    step: 512,
                },
                None => BlockSizes::Range {
                    min: block(min),
                    max: block(max),
                    step: block(min),
                },
            };
            self.job.block_sizes[direction] = sizes;
            self.finish_alignment(direction, min, cached, wrong);
        }
        self.job.whole_pages |= pages;
        let mut seen: Vec<OptionMessage<OptionError>> = Vec::new();
        for about in wrong.drain(..) {
            if !seen.contains(&about) {
                seen.push(about);
            }
        }
        *wrong = seen;
    }

    /// Sets the alignment of blocks of a direction: multiples of `ba`, or of its smallest block.
    fn finish_alignment(
        &mut self,
        direction: usize,
        smallest: u64,
        cached: bool,
        wrong: &mut Vec<OptionMessage<OptionError>>,
    ) {
        let given = self.align[direction].filter(|_| self.job.random);
        let align = given.unwrap_or(smallest);
        if align != smallest {
            self.job.norandommap = true;
            if !align.is_multiple_of(512) && !cached {
                wrong.push(OptionMessage::problem(
                    "ba",
                    format!("{align} is not a multiple of 512"),
                    "a multiple of 512 bytes",
                ));
            }
        }
        self.job.whole_pages |= cached && !align.is_multiple_of(512);
        let least = if cached { 1 } else { 512 };
        self.job.block_align[direction] = u32::try_from(align).unwrap_or(512).max(least);
    }

    /// Checks whether the job uses a drive and not a file: by the name, or by an engine that supports no files.
    pub(super) fn is_on_device(&self) -> bool {
        self.filename.as_deref().is_some_and(is_device)
            || engines::find(&self.job.engine_name)
                .is_some_and(|engine| engine.engine == Engine::UserSpace)
    }

    /// Checks that the interval of the steady-state test divides its window, as in fio.
    fn finish_steady(&mut self, wrong: &mut Vec<OptionMessage<OptionError>>) {
        let (Some(interval), window) = (self.steady_interval, self.steady_duration) else {
            return;
        };
        let fits = interval >= Span::from_seconds(1.0)
            && (window == Span::ZERO
                || interval < window && window.ns().is_multiple_of(interval.ns()));
        if !fits {
            wrong.push(OptionMessage::problem(
                "steadystate_check_interval",
                "does not divide steadystate_duration into several whole intervals",
                "a second or more, such as steadystate_check_interval=2s with steadystate_duration=10s",
            ));
            self.steady_interval = None;
        }
    }

    /// Removes metadata from block sizes: in a format with metadata after each logical block (extended LBA, such as
    /// 4096 + 64 B), only the data is simulated.
    fn without_metadata(&mut self, notes: &mut Vec<String>) {
        const WITH_METADATA: [&str; 5] =
            ["io_uring_cmd", "xnvme", "spdk", "spdk_nvme", "spdk_bdev"];
        if !WITH_METADATA.contains(&&*self.job.engine_name) {
            return;
        }
        let mut seen = None;
        let mut data = |bytes: &mut u64| {
            if let Some((logical, metadata)) = extended_format(*bytes) {
                seen.get_or_insert((*bytes, logical, metadata));
                *bytes = *bytes / (logical + metadata) * logical;
            }
        };
        self.bs.iter_mut().for_each(&mut data);
        for sizes in [&mut self.min_bs, &mut self.max_bs, &mut self.align] {
            sizes.iter_mut().flatten().for_each(&mut data);
        }
        let splits = self.split.iter_mut().flatten().flatten();
        splits.for_each(|(bytes, _)| data(bytes));
        if let Some((bytes, logical, metadata)) = seen {
            notes.push(format!(
                "block size {bytes} B belongs to a format of {logical} B with {metadata} B of metadata: only the data is simulated"
            ));
        }
    }

    /// Checks whether I/O goes through the page cache, so that blocks may have any size.
    pub(super) fn is_cached(&self) -> bool {
        let engine = engines::find(&self.job.engine_name);
        let data = matches!(self.job.mix, Mix::Read | Mix::Write | Mix::ReadWrite);
        data && engine.is_some_and(|engine| engine.mapped || !self.job.direct && !engine.unbuffered)
    }

    fn finish_rates(&mut self, wrong: &mut Vec<OptionMessage<OptionError>>) {
        let given = |rates: &[Option<u64>; 3]| rates.iter().flatten().any(|&rate| rate > 0);
        if given(&self.rate_bytes) && given(&self.rate_iops) {
            wrong.push(OptionMessage::problem(
                "rate_iops",
                "rate and rate_iops exclude each other",
                "one of the two",
            ));
        }
        for direction in 0..3 {
            let bytes = self.rate_bytes[direction].filter(|&rate| rate > 0);
            let iops = self.rate_iops[direction].filter(|&rate| rate > 0);
            self.job.rate[direction] = bytes.map(Rate::Bytes).or(iops.map(Rate::Iops));
        }
    }

    fn finish_times(&mut self, notes: &mut Vec<String>) {
        if self.job.runtime == Some(Span::ZERO) {
            self.job.runtime = None;
        }
        let ends = self.job.runtime.is_some()
            || self.job.size.is_some()
            || self.job.io_size.is_some()
            || self.job.filesize.is_some()
            || self.job.number_ios.is_some()
            || !self.iolog.path.as_os_str().is_empty();
        if !ends {
            notes.push(
                "neither size nor runtime: the whole drive is covered once, as fio would".into(),
            );
        }
        if self.job.time_based && self.job.runtime.is_none() {
            notes.push("time_based needs a runtime and is ignored without, as in fio".into());
            self.job.time_based = false;
        }
        if self.job.time_based && self.job.number_ios.is_some() {
            notes.push("number_ios does not end what is time_based, as in fio".into());
        }
        self.job.loops = self.job.loops.max(1);
        self.job.numjobs = self.job.numjobs.max(1);
        self.think.spin = self.think.spin.min(self.think.pause);
        self.think.blocks = match (self.think_blocks, self.think.iotime) {
            (None, iotime) if iotime > Span::ZERO => u32::MAX,
            (blocks, _) => blocks.unwrap_or(1).max(1),
        };
        if self.think.pause > Span::ZERO {
            self.job.think = Some(self.think);
        }
    }

    fn finish_engine(
        &mut self,
        wrong: &mut Vec<OptionMessage<OptionError>>,
        notes: &mut Vec<String>,
        unlike: &mut Vec<String>,
    ) {
        let Some(engine) = engines::find(&self.job.engine_name) else {
            return;
        };
        for &(option, engines) in &self.engine_options {
            if !engines.contains(&self.job.engine_name.as_str()) {
                wrong.push(OptionMessage::problem(
                    option,
                    format!("is not an option of ioengine={}", self.job.engine_name),
                    format!("ioengine={}", engines.join(" or ioengine=")),
                ));
            }
        }
        unlike.extend(engine.stands_in.map(String::from));
        let buffered = self.is_cached();
        let plays = !self.iolog.path.as_os_str().is_empty();
        // Some loads cannot be direct, and a sync means little without a page cache.
        let synced = self.job.syncs() && self.job.mix == Mix::Write;
        let asked = self.says_buffered || engine.mapped || synced || self.job.whole_pages;
        let cached = buffered && !plays && (asked || !self.direct_by_default);
        if cached {
            self.finish_cached(notes);
        } else if buffered && !plays {
            unlike.push(
                "options without a job file measure the drive itself (direct=1), whereas fio's default is buffered I/O: direct=0 selects the page cache"
                    .into(),
            );
        } else if buffered {
            unlike.push(
                "buffered I/O of a recorded list (read_iolog) has no model and is run as direct=1"
                    .into(),
            );
        }
        if self.job.whole_pages {
            let sizes = self.job.block_sizes.iter().map(|sizes| limits(sizes).0);
            let mut odd = sizes.filter(|bytes| !bytes.is_multiple_of(512));
            if let Some(bytes) = odd.find(|bytes| bytes.is_multiple_of(1000)) {
                notes.push(format!(
                    "block size {bytes} B is not a multiple of 512: to fio `4kib` is 4000, and with kb_base=1000 `4k` is; 4096 is `4k`"
                ));
            }
        }
        self.job.direct = !cached;
    }

    /// Puts a job's I/O into the page cache.
    fn finish_cached(&mut self, notes: &mut Vec<String>) {
        let device = self.is_on_device();
        let job = &mut self.job;
        job.filesystem = (!device).then(Filesystem::default);
        job.advice = self.advice.unwrap_or(match job.random {
            true => Advice::Random,
            false => Advice::Sequential,
        });
        let mapped = engines::find(&job.engine_name).is_some_and(|engine| engine.mapped);
        let why = match self.says_buffered || mapped {
            true => "direct=0",
            false => "fio's default; direct=1 bypasses the page cache",
        };
        let through = match device {
            true => "",
            false => " and the journal of ext4, unless --filesystem says otherwise",
        };
        notes.push(format!(
            "buffered I/O ({why}): through the host's page cache{through}"
        ));
        if job.engine == Engine::Libaio && job.iodepth > 1 {
            notes.push(format!(
                "ioengine={} with direct=0: the system call that submits an I/O also waits for it, so iodepth={} keeps one in flight",
                job.engine_name, job.iodepth
            ));
        }
    }

    fn finish_depth(&mut self, notes: &mut Vec<String>) {
        let job = &mut self.job;
        let synchronous = engines::find(&job.engine_name).is_some_and(|engine| engine.synchronous);
        if synchronous && job.iodepth > 1 {
            notes.push(format!(
                "ioengine={} is synchronous: iodepth={} is capped at 1, as in fio",
                job.engine_name, job.iodepth
            ));
            job.iodepth = 1;
        }
        if job.iodepth_low > job.iodepth || job.iodepth_low == 0 {
            job.iodepth_low = job.iodepth;
        }
        if job.iodepth_batch > job.iodepth || job.iodepth_batch == 0 {
            job.iodepth_batch = job.iodepth;
        }
        if job.iodepth_batch_complete_max < job.iodepth_batch_complete_min {
            job.iodepth_batch_complete_max = job.iodepth_batch_complete_min;
        }
        if job.mix == Mix::Read && (job.fsync > 0 || job.fdatasync > 0) {
            notes.push("fsync and fdatasync count writes, but this job has no writes".into());
        }
    }
}

/// Returns logical block and metadata of a format in which this many bytes are whole blocks; `None` for plain blocks.
fn extended_format(bytes: u64) -> Option<(u64, u64)> {
    if bytes == 0 || bytes.is_multiple_of(512) {
        return None;
    }
    let metadata = [8, 16, 64, 128];
    let formats = [4096, 512]
        .into_iter()
        .flat_map(|logical| metadata.map(|more| (logical, more)));
    let mut whole = formats.filter(|(logical, more)| bytes.is_multiple_of(logical + more));
    whole.next()
}

/// Largest block size, bytes.
const LARGEST: u64 = 1 << 30;

/// Checks a block size of `option`. Returns it if a drive can accept it, otherwise 512, with the problem in `wrong`.
fn block(bytes: u64, option: &'static str, wrong: &mut Vec<OptionMessage<OptionError>>) -> u32 {
    let problem = if !bytes.is_multiple_of(512) {
        OptionError::new(
            format!("block size {bytes} is not a multiple of 512 bytes"),
            "a multiple of 512 with direct=1, such as 4096 or 4k (to fio `4kib` is 4000, and with kb_base=1000 `4k` is)",
        )
    } else if bytes > LARGEST {
        OptionError::new(
            format!("blocks of {bytes} bytes are too large"),
            "at most 1g",
        )
    } else if bytes == 0 {
        OptionError::new("block size 0", "at least 512")
    } else {
        return bytes as u32;
    };
    wrong.push(OptionMessage {
        option,
        what: problem,
    });
    512
}
