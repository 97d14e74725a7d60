//! Resolves jobs into threads: the settings of each copy of each job on a drive of a given size, or everything that
//! does not fit.

use model::Capacity;

use super::blocks::limits;
use super::job::{BlockSizes, Direction, Distribution, Extent, Job, Mix, PAGE};
use text::problem::{Place, Problem, Problems};

/// One copy of one job, resolved against a drive.
#[derive(Clone, Debug)]
pub(crate) struct JobCopy {
    /// Index of the job.
    pub(crate) job: usize,
    /// Index of the copy, from 0.
    pub(crate) copy: u32,
    /// Reporting group.
    pub(crate) group: u32,
    /// Phase: jobs of one phase run together; a stonewall starts the next.
    pub(crate) phase: u32,
    /// First byte of the range.
    pub(crate) start: u64,
    /// Length of the range.
    pub(crate) len: u64,
    /// Bytes from the first byte of the range to the end of the file or drive.
    pub(crate) reach: u64,
    /// Bytes of one pass.
    pub(crate) io_size: u64,
    /// Smallest block by direction.
    pub(crate) smallest: [u32; 3],
    /// Queue depth: a synchronous engine has one, for any `iodepth`.
    pub(crate) depth: u32,
}

/// Returns the directions of a mix.
pub(crate) fn directions(mix: Mix) -> &'static [Direction] {
    match mix {
        Mix::Read => &[Direction::Read],
        Mix::Write => &[Direction::Write],
        Mix::Trim => &[Direction::Trim],
        Mix::ReadWrite => &[Direction::Read, Direction::Write],
        Mix::TrimWrite => &[Direction::Trim, Direction::Write],
    }
}

const KEYS: [&str; 3] = ["read", "write", "trim"];

/// Collects the problems of one job.
struct JobCheck<'a> {
    job: &'a Job,
    problems: &'a mut Problems,
}

impl JobCheck<'_> {
    fn add(&mut self, what: String, help: impl Into<String>) {
        self.problems.0.push(Problem {
            origin: format!("job {}", self.job.name),
            place: Place::Whole,
            what,
            help: Some(help.into()),
        });
    }

    fn numbers(&mut self) {
        let job = self.job;
        for (name, value) in [
            ("numjobs", job.numjobs),
            ("iodepth", job.iodepth),
            ("loops", job.loops),
        ] {
            if value == 0 {
                self.add(format!("{name} is 0"), format!("{name} is at least 1"));
            }
        }
        if job.iodepth > 65_535 {
            self.add(
                format!("iodepth {} exceeds the size of a queue", job.iodepth),
                "at most 65535 (NVMe's largest queue)",
            );
        }
        if job.read_percent > 100 {
            self.add(
                format!("rwmixread {} is above 100", job.read_percent),
                "0 to 100",
            );
        }
        if job.numjobs > 1024 {
            self.add(
                format!("numjobs {} is too large", job.numjobs),
                "at most 1024",
            );
        }
        if job.time_based && job.runtime.is_none() && job.records.is_none() {
            self.add(
                String::from("time_based without runtime would never end"),
                "give runtime, such as runtime=60",
            );
        }
    }

    /// Checks the sizes of the zones of `zonemode=zbd`.
    fn zone_sizes(&mut self, block: u32) {
        let Some(zones) = self.job.zoned else { return };
        for &direction in directions(self.job.mix) {
            let largest = limits(&self.job.block_sizes[direction as usize]).1;
            if u64::from(largest) > zones.capacity && direction != Direction::Trim {
                self.add(
                    format!(
                        "a {} block of {largest} B is larger than a zone of {} B",
                        KEYS[direction as usize], zones.capacity
                    ),
                    "a larger zonesize or a smaller bs",
                );
            }
        }
        let block = u64::from(block);
        if !zones.size.is_multiple_of(block) || !zones.capacity.is_multiple_of(block) {
            self.add(
                format!(
                    "zonesize {} or zonecapacity {} is not a multiple of the drive's {block} B sectors",
                    zones.size, zones.capacity
                ),
                format!("multiples of {block}"),
            );
        }
    }

    /// Returns the bytes of the whole zones in the range of a copy.
    fn zoned_bytes(&mut self, zones: super::job::ZonedMode, start: u64, len: u64) -> u64 {
        let count = zones.whole_zones(start, len).1;
        if count == 0 {
            self.add(
                format!(
                    "the range from byte {start}, {len} B long, holds no whole zone of {} B",
                    zones.size
                ),
                "a larger size, a smaller zonesize, or an offset at a multiple of zonesize",
            );
        }
        count * zones.size
    }

    fn blocks(&mut self, block: u32, len: Option<u64>) {
        for &direction in directions(self.job.mix) {
            let d = direction as usize;
            let sizes = &self.job.block_sizes[d];
            let mut all = match sizes {
                BlockSizes::Fixed(bytes) => vec![*bytes],
                BlockSizes::Range { min, max, step } => vec![*min, *max, *step],
                BlockSizes::Split(shares) => shares.iter().map(|share| share.0).collect(),
            };
            all.dedup();
            for bytes in all {
                if bytes == 0 || !bytes.is_multiple_of(block) && !self.job.whole_pages {
                    self.add(
                        format!("a {} block of {bytes} B is not a multiple of the drive's {block} B sectors", KEYS[d]),
                        format!("direct I/O moves whole sectors: bs is a multiple of {block}"),
                    );
                }
            }
            if let BlockSizes::Range { min, max, .. } = sizes
                && min > max
            {
                self.add(
                    format!("the {} block range {min}-{max} is empty", KEYS[d]),
                    "smallest first",
                );
            }
            if let BlockSizes::Split(shares) = sizes
                && !(99.0..=101.0).contains(&shares.iter().map(|share| share.1).sum::<f64>())
            {
                self.add(
                    format!("the shares of the {} bssplit do not sum to 100", KEYS[d]),
                    "percent of I/Os, such as 4k/70:64k/30",
                );
            }
            if let Some(zones) = self.job.strided
                && !(zones.range + zones.skip).is_multiple_of(u64::from(block))
                && !self.job.whole_pages
            {
                let (range, skip) = (zones.range, zones.skip);
                self.add(
                    format!("zonerange {range} and zoneskip {skip} place zones between the drive's {block} B sectors"),
                    format!("a zonerange (or zonesize) and a zoneskip that are multiples of {block}"),
                );
            }
            let align = self.job.block_align[d];
            if align == 0 || !align.is_multiple_of(block) && !self.job.whole_pages {
                self.add(
                    format!(
                        "blockalign {align} is not a multiple of the drive's {block} B sectors"
                    ),
                    format!("a multiple of {block}"),
                );
            }
            let largest = limits(sizes).1;
            if let Some(len) = len
                && u64::from(largest) > len
            {
                self.add(
                    format!(
                        "a {} block of {largest} B is larger than the range of {len} B",
                        KEYS[d]
                    ),
                    "a larger size or a smaller bs",
                );
            }
        }
    }

    /// Checks that recorded I/Os end within the drive.
    fn records(&mut self, drive: u64) {
        if let Some(records) = &self.job.records {
            for record in records.iter() {
                let out = record.op != model::Op::Flush
                    && record.offset + u64::from(record.bytes) > drive;
                if out {
                    self.add(
                        format!(
                            "the recorded I/O at byte {} ends beyond the drive's {} B",
                            record.offset, drive
                        ),
                        "wrap or refuse addresses when the trace is read",
                    );
                    break;
                }
            }
        }
    }

    fn distribution(&mut self, distribution: &Distribution) {
        let centre = match distribution {
            Distribution::Zipf { theta, centre } => {
                if !(*theta > 0.0 && theta.is_finite()) {
                    self.add(
                        format!("zipf theta {theta} is not above 0"),
                        "such as zipf:1.2",
                    );
                }
                *centre
            }
            Distribution::Pareto { power, centre } => {
                if !(*power > 0.0 && *power < 1.0) {
                    self.add(
                        format!("pareto power {power} is not between 0 and 1"),
                        "such as pareto:0.2",
                    );
                }
                *centre
            }
            Distribution::Normal { deviation, centre } => {
                if !(*deviation > 0.0 && *deviation <= 100.0) {
                    self.add(
                        format!(
                            "normal deviation {deviation} is not above 0 and at most 100 percent"
                        ),
                        "such as normal:10",
                    );
                }
                *centre
            }
            Distribution::Zoned(zones) => {
                self.shares(zones.iter().map(|zone| zone.0).sum(), "accesses");
                self.shares(zones.iter().map(|zone| zone.1).sum(), "the range");
                None
            }
            Distribution::ZonedAbsolute(zones) => {
                self.shares(zones.iter().map(|zone| zone.0).sum(), "accesses");
                None
            }
            Distribution::Random => None,
        };
        if let Some(centre) = centre
            && !(0.0..=1.0).contains(&centre)
        {
            self.add(
                format!("the distribution's centre {centre} is outside 0 to 1"),
                "a share of the range",
            );
        }
    }

    fn shares(&mut self, sum: f64, of: &str) {
        if !(99.0..=101.0).contains(&sum) {
            self.add(
                format!("the zones' shares of {of} sum to {sum}, not 100"),
                "such as zoned:60/10:30/20:8/30:2/40",
            );
        }
    }
}

fn bytes_of(extent: Extent, drive: u64, unit: u64) -> u64 {
    match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(percent) => {
            let bytes = (drive as f64 * percent / 100.0) as u64;
            bytes.min(drive) / unit * unit
        }
    }
}

/// Checks whether these jobs fit a drive of this capacity.
///
/// # Errors
/// Everything that does not fit, for all jobs.
pub fn check(jobs: &[Job], capacity: Capacity) -> Result<(), Problems> {
    resolve(jobs, capacity).map(|_| ())
}

/// Returns remarks about jobs whose `size` or `filesize` is larger than a drive of `drive_bytes` bytes, and is
/// therefore cut.
pub fn cut(jobs: &[Job], drive_bytes: u64) -> Vec<String> {
    let beyond = |job: &&Job| {
        let start = match job.offset {
            Extent::Bytes(bytes) => bytes,
            Extent::Percent(_) => 0,
        };
        let size = match job.size {
            Some(Extent::Bytes(bytes)) => start.saturating_add(bytes),
            _ => 0,
        };
        job.on_device && size.max(job.filesize.unwrap_or(0)) > drive_bytes
    };
    let jobs = jobs.iter().filter(beyond);
    jobs.map(|job| {
        format!(
            "job {}: its range goes beyond the drive's {} B and ends there, as fio ends it on a block device",
            job.name, drive_bytes
        )
    })
    .collect()
}

/// Returns remarks about jobs that end only after more than 10^9 I/Os, such as a pass over a whole drive in blocks of 3
/// bytes. fio does as many.
pub fn long_passes(jobs: &[Job], drive_bytes: u64) -> Vec<String> {
    const MANY: u64 = 1_000_000_000;
    let remark = |job: &Job| {
        if job.runtime.is_some()
            || job.number_ios.is_some()
            || job.io_size.is_some()
            || job.iolog.is_some()
        {
            return None;
        }
        let range = job
            .size
            .map_or(job.filesize.unwrap_or(drive_bytes), |size| {
                bytes_of(size, drive_bytes, 1).min(drive_bytes)
            });
        let blocks = job.block_sizes.iter().map(|sizes| limits(sizes).0);
        let block = u64::from(blocks.min().unwrap_or(1).max(1));
        let copies = u64::from(job.loops).saturating_mul(u64::from(job.numjobs));
        let ios = (range / block).saturating_mul(copies);
        (ios > MANY).then(|| {
            format!(
                "job {}: up to {:.1} thousand million I/Os of {block} B or more, as in fio; --runtime or --size ends it earlier",
                job.name,
                ios as f64 * 1e-9
            )
        })
    };
    jobs.iter().filter_map(remark).collect()
}

/// Returns all threads of these jobs on a drive of this capacity.
///
/// # Errors
/// Everything that does not fit, for all jobs.
pub(crate) fn resolve(jobs: &[Job], capacity: Capacity) -> Result<Vec<JobCopy>, Problems> {
    let mut problems = Problems::default();
    let mut threads = Vec::new();
    let (mut group, mut phase) = (0, 0);
    if jobs.is_empty() {
        return Err(Problems::whole("jobs", "there are no jobs to run"));
    }
    for (index, job) in jobs.iter().enumerate() {
        if index > 0 {
            group += u32::from(job.stonewall || job.new_group);
            phase += u32::from(job.stonewall);
        }
        let before = problems.0.len();
        let mut check = JobCheck {
            job,
            problems: &mut problems,
        };
        check.numbers();
        for &direction in directions(job.mix) {
            check.distribution(&job.distribution[direction as usize]);
        }
        check.records(capacity.bytes);
        let unit = unit_of(job, capacity);
        let first = extent(&mut check, job, 0, capacity, unit);
        check.blocks(capacity.block, first.map(|(_, len)| len));
        check.zone_sizes(capacity.block);
        for copy in 0..job.numjobs.min(1024) {
            let here = if copy == 0 {
                first
            } else if first.is_some() {
                extent(&mut check, job, copy, capacity, unit)
            } else {
                None
            };
            let Some((start, len)) = here else { break };
            // As in fio, a pass has the bytes of the whole zones.
            let in_zones = job.zoned.map(|zones| check.zoned_bytes(zones, start, len));
            if in_zones == Some(0) {
                break;
            }
            let reach = reach_of(job, start, len, capacity.bytes);
            threads.push(JobCopy {
                job: index,
                copy,
                group,
                phase,
                start,
                len,
                reach,
                io_size: job.io_size.map_or_else(
                    || in_zones.unwrap_or_else(|| pass_bytes(job, len, reach, capacity.bytes)),
                    |extent| bytes_of(extent, capacity.bytes, unit),
                ),
                depth: if job.engine.asynchronous() {
                    job.iodepth
                } else {
                    1
                },
                smallest: std::array::from_fn(|d| limits(&job.block_sizes[d]).0),
            });
        }
        debug_assert!(problems.0.len() >= before);
    }
    problems.or(threads)
}

/// Returns the bytes that a pass over a range transfers. If all blocks have one size, fio skips the remainder after
/// the last whole block. A job that skips bytes after each block (`rw=read:12k`) ends at the end of its range. It
/// wraps to the start only if the range is the whole file or drive. Not modelled: the end of mixes that skip bytes,
/// whose directions fio ends one by one.
fn pass_bytes(job: &Job, len: u64, reach: u64, drive: u64) -> u64 {
    let sizes = |direction: &Direction| limits(&job.block_sizes[*direction as usize]);
    let mut sizes = directions(job.mix).iter().map(sizes);
    let block = match sizes.next() {
        Some((min, max)) if min == max && min > 0 && sizes.all(|other| other == (min, max)) => {
            u64::from(min)
        }
        _ => return len,
    };
    if let (Some(zones), true) = (job.strided, one_by_one(job)) {
        let whole = len - len % block;
        let end = zones.bytes_before_end(reach, block);
        return end.map_or(whole, |end| end.clamp(block, whole.max(block)));
    }
    let all = job.filesize.map_or(drive, |bytes| bytes.min(drive));
    match u64::try_from(job.skip) {
        Ok(skip) if skip > 0 && len < all && one_by_one(job) => {
            let (whole, left) = (len / (block + skip), len % (block + skip));
            whole * block + left.min(block)
        }
        _ => len - len % block,
    }
}

/// Checks whether a job ends by itself after sequential I/Os of one direction.
fn one_by_one(job: &Job) -> bool {
    !job.random && directions(job.mix).len() == 1 && !job.time_based
}

/// Returns the bytes from `start` to the end of the drive or of the job's file.
fn reach_of(job: &Job, start: u64, len: u64, drive: u64) -> u64 {
    let end = match job.filesize {
        Some(filesize) => filesize.min(drive),
        None if job.on_device => drive,
        None => start + len,
    };
    end.saturating_sub(start).max(len)
}

/// Returns the smallest block that a job uses.
pub(crate) fn smallest_block(job: &Job) -> Option<u32> {
    let sizes = |direction: &Direction| limits(&job.block_sizes[*direction as usize]).0;
    directions(job.mix).iter().map(sizes).min()
}

/// Returns the rounding unit of percentages: the smallest block in use; percentages are rounded down.
fn unit_of(job: &Job, capacity: Capacity) -> u64 {
    let smallest = smallest_block(job).unwrap_or(capacity.block);
    u64::from(smallest.max(capacity.block))
}

/// Returns first byte and length of the range of one copy.
fn extent(
    check: &mut JobCheck<'_>,
    job: &Job,
    copy: u32,
    capacity: Capacity,
    unit: u64,
) -> Option<(u64, u64)> {
    let drive = if job.whole_pages {
        capacity.bytes - capacity.bytes % PAGE
    } else {
        capacity.bytes
    };
    let start = bytes_of(job.offset, drive, unit).saturating_add(
        bytes_of(job.offset_increment, drive, unit).saturating_mul(u64::from(copy)),
    );
    if start >= drive {
        check.add(
            format!("offset {start} of copy {copy} lies beyond the drive's {drive} B"),
            "a smaller offset, offset_increment or numjobs",
        );
        return None;
    }
    if !start.is_multiple_of(u64::from(capacity.block)) && !job.whole_pages {
        check.add(
            format!(
                "offset {start} is not a multiple of the drive's {} B sectors",
                capacity.block
            ),
            format!("a multiple of {}", capacity.block),
        );
        return None;
    }
    let end = job.filesize.map_or(drive, |filesize| filesize.min(drive));
    let left = end.saturating_sub(start);
    let len = match job.size {
        // As in fio: a percentage of the file, limited to the part after the offset.
        Some(size @ Extent::Percent(_)) => bytes_of(size, end, unit).min(left),
        // fio cuts a size at the end of a block device, and at that of a file with `filesize`.
        Some(Extent::Bytes(bytes)) if job.on_device || job.filesize.is_some() => bytes.min(left),
        Some(Extent::Bytes(bytes)) => bytes,
        None => left,
    };
    if let Some(filesize) = job.filesize
        && filesize > drive
        && !job.on_device
    {
        check.add(
            format!("filesize {filesize} is larger than the drive's {drive} B"),
            "at most the drive",
        );
        return None;
    }
    if len == 0 {
        check.add(
            format!("copy {copy} has a range of 0 B"),
            "a larger size, or an offset before filesize",
        );
        return None;
    }
    if start + len > end {
        let limit = if end == drive { "drive" } else { "filesize" };
        check.add(
            format!(
                "copy {copy} reaches to byte {}, beyond the {limit}'s {end} B",
                start + len
            ),
            "a smaller size, offset or offset_increment",
        );
        return None;
    }
    Some((start, len))
}
