//! Combined workload of a published run's jobs, with which chapters check whether they run the same workload.

use super::results::PointSettings;
use workload::job::{BlockSizes, Job, Mix};

/// One workload over a drive.
pub(crate) struct Shape {
    /// Reads, writes or both.
    pub(crate) mix: Mix,
    /// Whether the access is random (false: sequential).
    pub(crate) random: bool,
    /// Bytes of an I/O.
    pub(crate) bytes: u64,
    /// Alignment of offsets in bytes.
    pub(crate) align: u64,
    /// Reads, in percent of the I/Os.
    pub(crate) read_percent: u32,
    /// I/Os in flight over all threads.
    pub(crate) depth: u32,
    /// Number of threads that issue I/Os.
    pub(crate) threads: u32,
}

/// Minimum range in bytes of a workload over the drive.
const LEAST_SPAN: u64 = 64 << 20;

impl Shape {
    /// Returns the workload of the jobs; `None` if they differ from each other, are rate-limited, or access only a few
    /// places.
    pub(crate) fn from_jobs(jobs: &[Job]) -> Option<Shape> {
        let first = jobs.first()?;
        let way = usize::from(first.mix == Mix::Write);
        let BlockSizes::Fixed(bytes) = first.block_sizes[way] else {
            return None;
        };
        let like = |job: &Job| {
            let small = match job.size {
                Some(workload::job::Extent::Bytes(size)) => size < LEAST_SPAN,
                _ => false,
            };
            job.mix == first.mix
                && job.random == first.random
                && job.block_sizes == first.block_sizes
                && job.rate.iter().all(Option::is_none)
                && !small
        };
        jobs.iter().all(like).then(|| Shape {
            mix: first.mix,
            random: first.random,
            bytes: u64::from(bytes),
            align: u64::from(first.block_align[way]),
            read_percent: first.read_percent,
            depth: jobs.iter().map(|job| job.iodepth * job.numjobs).sum(),
            threads: jobs.iter().map(|job| job.numjobs).sum(),
        })
    }

    /// Checks whether the workload is random 4 KiB I/O.
    pub(crate) fn is_small(&self) -> bool {
        self.random && self.bytes == 4096
    }

    /// Checks whether the workload has only reads or only writes.
    pub(crate) fn is_one_way(&self) -> bool {
        matches!(self.mix, Mix::Read | Mix::Write)
    }

    /// Returns the settings of a point that runs the workload; `None` for trims.
    pub(crate) fn settings(&self) -> Option<PointSettings> {
        let direction = match self.mix {
            Mix::Read => "read",
            Mix::Write => "write",
            Mix::ReadWrite => "mix",
            Mix::Trim | Mix::TrimWrite => return None,
        };
        Some(PointSettings {
            direction: Some(direction),
            pattern: Some(if self.random { "random" } else { "sequential" }),
            block_bytes: Some(self.bytes),
            queue_depth: Some(self.depth),
            threads: Some(self.threads),
            ..PointSettings::default()
        })
    }
}
